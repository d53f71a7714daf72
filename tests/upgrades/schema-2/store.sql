PRAGMA journal_mode = WAL;
PRAGMA foreign_keys = OFF;
BEGIN;
CREATE TABLE fence (
  only_row    INTEGER PRIMARY KEY CHECK (only_row = 1),
  number      INTEGER NOT NULL, -- grows by one with every process that takes the store over
  taken_at    INTEGER NOT NULL,
  incarnation TEXT -- given by the first process that takes it over; a copy has none
) STRICT;
CREATE TABLE runs (
  number      INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT    NOT NULL UNIQUE,
  version     INTEGER NOT NULL,
  is_sequence INTEGER NOT NULL,
  is_open     INTEGER NOT NULL,
  repository  TEXT    NOT NULL,
  project     TEXT    NOT NULL,
  stage       TEXT    NOT NULL,
  service     TEXT    NOT NULL,
  config      TEXT, -- of deployments
  plan        TEXT, -- of sequences
  sequence    TEXT, -- of sequences that bring nothing and only run tasks
  attempt     INTEGER NOT NULL,
  commit_id   TEXT    NOT NULL,
  created_at  INTEGER NOT NULL,
  record      TEXT    NOT NULL
) STRICT;
CREATE TABLE contents (
  number  INTEGER PRIMARY KEY,
  digest  TEXT NOT NULL UNIQUE,
  content TEXT NOT NULL
) STRICT;
CREATE TABLE content_users (
  user_table TEXT    NOT NULL,
  user       INTEGER NOT NULL,
  content    INTEGER NOT NULL REFERENCES contents (number),
  PRIMARY KEY (user_table, user, content)
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  run    TEXT    NOT NULL,
  at     INTEGER NOT NULL,
  record TEXT    NOT NULL
) STRICT;
CREATE TABLE outbox (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  lane     TEXT    NOT NULL,
  run      TEXT    NOT NULL,
  key      TEXT    NOT NULL,
  due      INTEGER, -- nothing: until it is revived
  asked_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  problem  TEXT    NOT NULL DEFAULT '',
  record   TEXT    NOT NULL,
  UNIQUE (run, key)
) STRICT;
CREATE TABLE configs (
  number        INTEGER PRIMARY KEY,
  project       TEXT    NOT NULL,
  stage         TEXT    NOT NULL,
  name          TEXT    NOT NULL,
  version       INTEGER NOT NULL,
  service       TEXT    NOT NULL,
  repository    TEXT    NOT NULL,
  digest        TEXT    NOT NULL,
  is_settled    INTEGER NOT NULL,
  history_limit INTEGER, -- how many old versions are kept; nothing: as many as of everything else
  runs_in_use   TEXT    NOT NULL, -- JSON: the ids of the deployments that serve or may serve, and of the one that is attempted
  attempted_by  TEXT, -- the sequence run that attempts a version
  record        TEXT    NOT NULL,
  UNIQUE (project, stage, name)
) STRICT;
CREATE TABLE objects (
  number     INTEGER PRIMARY KEY,
  project    TEXT    NOT NULL,
  stage      TEXT    NOT NULL,
  kind       TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  version    INTEGER NOT NULL,
  service    TEXT    NOT NULL,
  repository TEXT    NOT NULL,
  digest     TEXT    NOT NULL,
  record     TEXT    NOT NULL,
  UNIQUE (project, stage, kind, name)
) STRICT;
CREATE TABLE repositories (
  name    TEXT    NOT NULL PRIMARY KEY,
  version INTEGER NOT NULL,
  applied TEXT, -- commits that retention spares
  seen    TEXT,
  record  TEXT    NOT NULL
) STRICT;
CREATE TABLE plans (
  number INTEGER PRIMARY KEY,
  id     TEXT    NOT NULL UNIQUE,
  at     INTEGER NOT NULL,
  record TEXT    NOT NULL
) STRICT;
CREATE TABLE plan_parts (
  number  INTEGER PRIMARY KEY AUTOINCREMENT,
  plan    TEXT NOT NULL REFERENCES plans (id) ON DELETE CASCADE,
  project TEXT NOT NULL,
  service TEXT NOT NULL,
  record  TEXT NOT NULL,
  UNIQUE (plan, service)
) STRICT;
CREATE TABLE revisions (
  number     INTEGER PRIMARY KEY AUTOINCREMENT,
  repository TEXT    NOT NULL,
  commit_id  TEXT    NOT NULL,
  at         INTEGER NOT NULL,
  plan       TEXT REFERENCES plans (id),
  record     TEXT    NOT NULL,
  UNIQUE (repository, commit_id)
) STRICT;
CREATE TABLE slots (
  project TEXT    NOT NULL,
  stage   TEXT    NOT NULL,
  service TEXT    NOT NULL,
  version INTEGER NOT NULL,
  is_open INTEGER NOT NULL, -- somebody has it or waits for it
  run       TEXT, -- the last delivery
  content   TEXT,
  procedure TEXT,
  record  TEXT    NOT NULL,
  PRIMARY KEY (project, stage, service)
) STRICT, WITHOUT ROWID;
CREATE TABLE passed (
  project TEXT    NOT NULL,
  stage   TEXT    NOT NULL,
  service TEXT    NOT NULL,
  content TEXT    NOT NULL,
  version INTEGER NOT NULL,
  at      INTEGER NOT NULL, -- the last time
  record  TEXT    NOT NULL,
  PRIMARY KEY (project, stage, service, content)
) STRICT, WITHOUT ROWID;
CREATE TABLE holds (
  project TEXT    NOT NULL PRIMARY KEY,
  version INTEGER NOT NULL,
  record  TEXT    NOT NULL
) STRICT;
CREATE TABLE names (
  kind    TEXT    NOT NULL,
  name    TEXT    NOT NULL,
  version INTEGER NOT NULL,
  record  TEXT    NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE posted (
  repository TEXT    NOT NULL,
  writer     TEXT    NOT NULL,
  commit_id  TEXT    NOT NULL,
  context    TEXT    NOT NULL,
  is_open    INTEGER NOT NULL, -- pending or running
  rendering  INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  record     TEXT    NOT NULL,
  PRIMARY KEY (repository, writer, commit_id, context)
) STRICT;
CREATE TABLE deliveries (
  repository TEXT    NOT NULL,
  id         TEXT    NOT NULL,
  at         INTEGER NOT NULL,
  PRIMARY KEY (repository, id)
) STRICT, WITHOUT ROWID;
INSERT INTO fence VALUES (1, 1, {NOW-351}, '01M87P8VV8DG3F1RGVEYRED5M2');
INSERT INTO runs VALUES (1, '01M87P8VXFAM99CQJWR70E6KAD', 2, 1, 0, 'shop', 'shop', 'default', 'web', NULL, 'c3855683b4cd7bb5d651fcda841195c1', NULL, 1, '42df9f517b8c75bd014962dc45820fc37ead76c4', {NOW-276}, '{"v":1,"record":{"run":"sequence","id":"01M87P8VXFAM99CQJWR70E6KAD","service":{"project":"shop","stage":"default","service":"web"},"destination":{"runtime":"local","namespace":"shop-default"},"repository":"shop","commit":"42df9f517b8c75bd014962dc45820fc37ead76c4","plan":"c3855683b4cd7bb5d651fcda841195c1","cause":"push","is_rollback":false,"attempt":1,"procedure":"sha256:5dd817588015a9f628726ffc5ae9d4d093fb6bae0f367c652d73f955754c33d0","delivery":{"content":"sha256:62bde8ad994e5b0497416c8daaec9179218860cc0ea7915abbe35d734d447a36","changes":[{"key":{"kind":"Service","name":"web"},"decision":"create","reasons":[],"cause":"new","object":{"key":{"kind":"Service","name":"web"},"service":"web","location":{"file":"service.yaml","line":1,"column":1},"digest":"sha256:c3768e3de1d884952b60d2c17dc1693690f0a8d4285aa3e8c18105da4388cb03"}},{"key":{"kind":"DeploymentConfig","name":"web"},"decision":"create","reasons":[],"cause":"first deployment","object":{"key":{"kind":"DeploymentConfig","name":"web"},"service":"web","location":{"file":"web.yaml","line":1,"column":1},"digest":"sha256:b57188c196cb644348bc095c7c41da4bc043754ea8d122a65992fbb2f6f7a3e9"}}]},"limits":{"start":{"secs":600,"nanos":0},"run":{"secs":3600,"nanos":0}},"state":"ended","tasks":[{"name":"deployment","step":"deployment","started_at":{NOW-276},"ended_at":{NOW-218},"outcome":{"status":"succeeded","result":"pass"},"message":"web version 1 serves after 58ms","deployments":[{"config":"web","run":"shop/default/web-1","outcome":{"status":"succeeded","result":"pass"},"message":"version 1 serves after 58ms"}],"tries":[]}],"created_at":{NOW-276},"started_at":{NOW-276},"ended_at":{NOW-218},"outcome":{"status":"succeeded","result":"pass"},"message":""}}');
INSERT INTO runs VALUES (2, '01M87P8VXFDBQ28M9EHKNDXM72', 2, 1, 0, 'shop', 'shop', 'default', 'worker', NULL, 'c3855683b4cd7bb5d651fcda841195c1', NULL, 1, '42df9f517b8c75bd014962dc45820fc37ead76c4', {NOW-276}, '{"v":1,"record":{"run":"sequence","id":"01M87P8VXFDBQ28M9EHKNDXM72","service":{"project":"shop","stage":"default","service":"worker"},"destination":{"runtime":"local","namespace":"shop-default"},"repository":"shop","commit":"42df9f517b8c75bd014962dc45820fc37ead76c4","plan":"c3855683b4cd7bb5d651fcda841195c1","cause":"push","is_rollback":false,"attempt":1,"procedure":"sha256:5dd817588015a9f628726ffc5ae9d4d093fb6bae0f367c652d73f955754c33d0","delivery":{"content":"sha256:700e35323a6f8721d2161318806f31e48ecda05e3cbd36e5e3df8a7b002775c2","changes":[{"key":{"kind":"DeploymentConfig","name":"worker"},"decision":"create","reasons":[],"cause":"first deployment","object":{"key":{"kind":"DeploymentConfig","name":"worker"},"service":"worker","location":{"file":"worker.yaml","line":1,"column":1},"digest":"sha256:e7d0594e20c21fe362dafc6c9ad640bdb7f83adcbe64d8b389432403e0ae6bc6"}}]},"limits":{"start":{"secs":600,"nanos":0},"run":{"secs":3600,"nanos":0}},"state":"ended","tasks":[{"name":"deployment","step":"deployment","started_at":{NOW-276},"ended_at":{NOW-195},"outcome":{"status":"succeeded","result":"pass"},"message":"worker version 1 serves after 81ms","deployments":[{"config":"worker","run":"shop/default/worker-1","outcome":{"status":"succeeded","result":"pass"},"message":"version 1 serves after 81ms"}],"tries":[]}],"created_at":{NOW-276},"started_at":{NOW-276},"ended_at":{NOW-195},"outcome":{"status":"succeeded","result":"pass"},"message":""}}');
INSERT INTO runs VALUES (3, 'shop/default/web-1', 4, 0, 0, 'shop', 'shop', 'default', 'web', 'web', NULL, NULL, 1, '42df9f517b8c75bd014962dc45820fc37ead76c4', {NOW-276}, '{"v":1,"record":{"run":"deployment","id":"shop/default/web-1","config":{"project":"shop","stage":"default","name":"web"},"service":"web","destination":{"runtime":"local","namespace":"shop-default"},"repository":"shop","commit":"42df9f517b8c75bd014962dc45820fc37ead76c4","parent":"01M87P8VXFAM99CQJWR70E6KAD","version":1,"attempt":1,"cause":"first deployment","object":{"key":{"kind":"DeploymentConfig","name":"web"},"service":"web","location":{"file":"web.yaml","line":1,"column":1},"digest":"sha256:b57188c196cb644348bc095c7c41da4bc043754ea8d122a65992fbb2f6f7a3e9"},"replicas":2,"previous":null,"phase":"Complete","step":"done","hooks":[],"generation":1,"progress":{"updated":2,"available":2,"old":0},"problem":"","failure":null,"created_at":{NOW-276},"ended_at":{NOW-218},"message":"version 1 serves after 58ms"}}');
INSERT INTO runs VALUES (4, 'shop/default/worker-1', 5, 0, 0, 'shop', 'shop', 'default', 'worker', 'worker', NULL, NULL, 1, '42df9f517b8c75bd014962dc45820fc37ead76c4', {NOW-276}, '{"v":1,"record":{"run":"deployment","id":"shop/default/worker-1","config":{"project":"shop","stage":"default","name":"worker"},"service":"worker","destination":{"runtime":"local","namespace":"shop-default"},"repository":"shop","commit":"42df9f517b8c75bd014962dc45820fc37ead76c4","parent":"01M87P8VXFDBQ28M9EHKNDXM72","version":1,"attempt":1,"cause":"first deployment","object":{"key":{"kind":"DeploymentConfig","name":"worker"},"service":"worker","location":{"file":"worker.yaml","line":1,"column":1},"digest":"sha256:e7d0594e20c21fe362dafc6c9ad640bdb7f83adcbe64d8b389432403e0ae6bc6"},"replicas":1,"previous":null,"phase":"Complete","step":"done","hooks":[],"generation":2,"progress":{"updated":1,"available":1,"old":0},"problem":"","failure":null,"created_at":{NOW-276},"ended_at":{NOW-195},"message":"version 1 serves after 81ms"}}');
INSERT INTO runs VALUES (5, '01M87P8W4DZBF4876VTBMTQCFX', 1, 1, 1, 'shop', 'shop', 'default', 'web', NULL, '7a47832ba2d3525c304c0bae741e3c0a', NULL, 1, '1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4', {NOW-53}, '{"v":1,"record":{"run":"sequence","id":"01M87P8W4DZBF4876VTBMTQCFX","service":{"project":"shop","stage":"default","service":"web"},"destination":{"runtime":"local","namespace":"shop-default"},"repository":"shop","commit":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","plan":"7a47832ba2d3525c304c0bae741e3c0a","cause":"push","is_rollback":false,"attempt":1,"procedure":"sha256:5dd817588015a9f628726ffc5ae9d4d093fb6bae0f367c652d73f955754c33d0","delivery":{"content":"sha256:f0f9823281a11b3d9b43cfec1f9b9c8a1bdb9630198b8c22d77f5ec8e5ee7d95","changes":[{"key":{"kind":"DeploymentConfig","name":"web"},"decision":"deploy","reasons":[{"pointer":"/spec/template/spec/containers/main/command/2","old":"printf one > version; exec python3 -m http.server --bind 127.0.0.1 $PORT","new":"printf two > version; exec python3 -m http.server --bind 127.0.0.1 $PORT"},{"pointer":"/spec/template/spec/containers/main/readinessProbe/exec/command/2","old":"true","new":"test -f ../../../../../../go"}],"cause":"config change","object":{"key":{"kind":"DeploymentConfig","name":"web"},"service":"web","location":{"file":"web.yaml","line":1,"column":1},"digest":"sha256:273abc41bd1e1226e9db40c0aec46e3759d78764a692b7c2c4426dca5396e9e4"}}]},"limits":{"start":{"secs":600,"nanos":0},"run":{"secs":3600,"nanos":0}},"state":{"running":{"task":0}},"tasks":[{"name":"deployment","step":"deployment","started_at":{NOW-53},"ended_at":null,"outcome":null,"message":"","deployments":[{"config":"web","run":"shop/default/web-2","outcome":null,"message":""}],"tries":[]}],"created_at":{NOW-53},"started_at":{NOW-53},"ended_at":null,"outcome":null,"message":""}}');
INSERT INTO runs VALUES (6, '01M87P8W4DZBF4876VTBMTQCFY', 1, 1, 1, 'shop', 'shop', 'default', 'worker', NULL, '7a47832ba2d3525c304c0bae741e3c0a', NULL, 1, '1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4', {NOW-53}, '{"v":1,"record":{"run":"sequence","id":"01M87P8W4DZBF4876VTBMTQCFY","service":{"project":"shop","stage":"default","service":"worker"},"destination":{"runtime":"local","namespace":"shop-default"},"repository":"shop","commit":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","plan":"7a47832ba2d3525c304c0bae741e3c0a","cause":"push","is_rollback":false,"attempt":1,"procedure":"sha256:5dd817588015a9f628726ffc5ae9d4d093fb6bae0f367c652d73f955754c33d0","delivery":{"content":"sha256:5aadd45d3168be29ef60d26dc4a87a8fae467a6290f05c08b6193c7bd54e1d56","changes":[{"key":{"kind":"DeploymentConfig","name":"worker"},"decision":"deploy","reasons":[{"pointer":"/spec/strategy/recreateParams/pre","old":null,"new":{"failurePolicy":"Abort","execNewPod":{"containerName":"main","command":["sh","-c","while [ ! -f ../../../../../../go ]; do sleep 0.05; done"]}}},{"pointer":"/spec/template/spec/containers/main/env/V/value","old":"one","new":"two"}],"cause":"config change","object":{"key":{"kind":"DeploymentConfig","name":"worker"},"service":"worker","location":{"file":"worker.yaml","line":1,"column":1},"digest":"sha256:c08c897809739b87770b48e409fa8430293425544723c39267ad33735dc23928"}}]},"limits":{"start":{"secs":600,"nanos":0},"run":{"secs":3600,"nanos":0}},"state":{"running":{"task":0}},"tasks":[{"name":"deployment","step":"deployment","started_at":{NOW-53},"ended_at":null,"outcome":null,"message":"","deployments":[{"config":"worker","run":"shop/default/worker-2","outcome":null,"message":""}],"tries":[]}],"created_at":{NOW-53},"started_at":{NOW-53},"ended_at":null,"outcome":null,"message":""}}');
INSERT INTO runs VALUES (7, 'shop/default/web-2', 4, 0, 1, 'shop', 'shop', 'default', 'web', 'web', NULL, NULL, 1, '1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4', {NOW-53}, '{"v":1,"record":{"run":"deployment","id":"shop/default/web-2","config":{"project":"shop","stage":"default","name":"web"},"service":"web","destination":{"runtime":"local","namespace":"shop-default"},"repository":"shop","commit":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","parent":"01M87P8W4DZBF4876VTBMTQCFX","version":2,"attempt":1,"cause":"config change","object":{"key":{"kind":"DeploymentConfig","name":"web"},"service":"web","location":{"file":"web.yaml","line":1,"column":1},"digest":"sha256:273abc41bd1e1226e9db40c0aec46e3759d78764a692b7c2c4426dca5396e9e4"},"replicas":2,"previous":1,"phase":"Running","step":"rollout","hooks":[],"generation":2,"progress":{"updated":1,"available":0,"old":2},"problem":"","failure":null,"created_at":{NOW-53},"ended_at":null,"message":""}}');
INSERT INTO runs VALUES (8, 'shop/default/worker-2', 2, 0, 1, 'shop', 'shop', 'default', 'worker', 'worker', NULL, NULL, 1, '1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4', {NOW-53}, '{"v":1,"record":{"run":"deployment","id":"shop/default/worker-2","config":{"project":"shop","stage":"default","name":"worker"},"service":"worker","destination":{"runtime":"local","namespace":"shop-default"},"repository":"shop","commit":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","parent":"01M87P8W4DZBF4876VTBMTQCFY","version":2,"attempt":1,"cause":"config change","object":{"key":{"kind":"DeploymentConfig","name":"worker"},"service":"worker","location":{"file":"worker.yaml","line":1,"column":1},"digest":"sha256:c08c897809739b87770b48e409fa8430293425544723c39267ad33735dc23928"},"replicas":1,"previous":1,"phase":"New","step":"pre","hooks":[{"point":"pre","by":"01M87P8W4DZBF4876VTBMTQCFY","pod":"worker-2-hook-pre","started_at":{NOW-46},"ended_at":null,"outcome":null}],"generation":2,"progress":{"updated":0,"available":0,"old":0},"problem":"","failure":null,"created_at":{NOW-53},"ended_at":null,"message":""}}');
INSERT INTO contents VALUES (1, 'sha256:1c17adf24f7a2e2160ce6841df4500eaa94ea2c7ba2c9e99533d024650907779', '{"shipyard":{"name":"default","stages":[{"name":"default","sequences":[{"name":"delivery","triggered_on":[],"tasks":[{"name":"deployment","triggered_after_ms":0,"properties":null}]}]}]},"tasks":{"default":{}}}');
INSERT INTO contents VALUES (2, 'sha256:c3768e3de1d884952b60d2c17dc1693690f0a8d4285aa3e8c18105da4388cb03', '{"metadata":{"name":"web"},"spec":{"selector":{"app":"web"},"ports":[{"port":8088,"targetPort":8080,"protocol":"TCP"}],"type":"ClusterIP","sessionAffinity":"None"}}');
INSERT INTO contents VALUES (3, 'sha256:b57188c196cb644348bc095c7c41da4bc043754ea8d122a65992fbb2f6f7a3e9', '{"metadata":{"name":"web"},"spec":{"replicas":2,"selector":{"app":"web"},"strategy":{"type":"Rolling","rollingParams":{"maxUnavailable":0,"maxSurge":1,"updatePeriodSeconds":1,"intervalSeconds":1,"timeoutSeconds":600},"activeDeadlineSeconds":21600},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"terminationGracePeriodSeconds":5,"containers":[{"name":"main","image":"host","ports":[{"containerPort":8080,"protocol":"TCP"}],"command":["sh","-c","printf one > version; exec python3 -m http.server --bind 127.0.0.1 $PORT"],"readinessProbe":{"exec":{"command":["sh","-c","true"]},"periodSeconds":1,"timeoutSeconds":1,"successThreshold":1,"failureThreshold":3},"imagePullPolicy":"IfNotPresent","terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"restartPolicy":"Always","dnsPolicy":"ClusterFirst","schedulerName":"default-scheduler"}},"test":false,"paused":false,"minReadySeconds":0,"triggers":[{"type":"ConfigChange"}],"revisionHistoryLimit":10}}');
INSERT INTO contents VALUES (4, 'sha256:e7d0594e20c21fe362dafc6c9ad640bdb7f83adcbe64d8b389432403e0ae6bc6', '{"metadata":{"name":"worker"},"spec":{"replicas":1,"selector":{"app":"worker"},"strategy":{"type":"Recreate","activeDeadlineSeconds":21600,"recreateParams":{"timeoutSeconds":600}},"template":{"metadata":{"labels":{"app":"worker"}},"spec":{"terminationGracePeriodSeconds":5,"containers":[{"name":"main","image":"host","command":["sleep","1000"],"env":[{"name":"V","value":"one"}],"imagePullPolicy":"IfNotPresent","terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"restartPolicy":"Always","dnsPolicy":"ClusterFirst","schedulerName":"default-scheduler"}},"test":false,"paused":false,"minReadySeconds":0,"triggers":[{"type":"ConfigChange"}],"revisionHistoryLimit":10}}');
INSERT INTO contents VALUES (5, 'sha256:5dd817588015a9f628726ffc5ae9d4d093fb6bae0f367c652d73f955754c33d0', '{"sequence":{"name":"delivery","triggered_on":[],"tasks":[{"name":"deployment","triggered_after_ms":0,"properties":null}]},"tasks":{}}');
INSERT INTO contents VALUES (6, 'sha256:273abc41bd1e1226e9db40c0aec46e3759d78764a692b7c2c4426dca5396e9e4', '{"metadata":{"name":"web"},"spec":{"replicas":2,"selector":{"app":"web"},"strategy":{"type":"Rolling","rollingParams":{"maxUnavailable":0,"maxSurge":1,"updatePeriodSeconds":1,"intervalSeconds":1,"timeoutSeconds":600},"activeDeadlineSeconds":21600},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"terminationGracePeriodSeconds":5,"containers":[{"name":"main","image":"host","ports":[{"containerPort":8080,"protocol":"TCP"}],"command":["sh","-c","printf two > version; exec python3 -m http.server --bind 127.0.0.1 $PORT"],"readinessProbe":{"exec":{"command":["sh","-c","test -f ../../../../../../go"]},"periodSeconds":1,"timeoutSeconds":1,"successThreshold":1,"failureThreshold":3},"imagePullPolicy":"IfNotPresent","terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"restartPolicy":"Always","dnsPolicy":"ClusterFirst","schedulerName":"default-scheduler"}},"test":false,"paused":false,"minReadySeconds":0,"triggers":[{"type":"ConfigChange"}],"revisionHistoryLimit":10}}');
INSERT INTO contents VALUES (7, 'sha256:c08c897809739b87770b48e409fa8430293425544723c39267ad33735dc23928', '{"metadata":{"name":"worker"},"spec":{"replicas":1,"selector":{"app":"worker"},"strategy":{"type":"Recreate","recreateParams":{"pre":{"failurePolicy":"Abort","execNewPod":{"containerName":"main","command":["sh","-c","while [ ! -f ../../../../../../go ]; do sleep 0.05; done"]}},"timeoutSeconds":600},"activeDeadlineSeconds":21600},"template":{"metadata":{"labels":{"app":"worker"}},"spec":{"terminationGracePeriodSeconds":5,"containers":[{"name":"main","image":"host","command":["sleep","1000"],"env":[{"name":"V","value":"two"}],"imagePullPolicy":"IfNotPresent","terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"restartPolicy":"Always","dnsPolicy":"ClusterFirst","schedulerName":"default-scheduler"}},"test":false,"paused":false,"minReadySeconds":0,"triggers":[{"type":"ConfigChange"}],"revisionHistoryLimit":10}}');
INSERT INTO content_users VALUES ('plans', 1, 1);
INSERT INTO content_users VALUES ('plans', 2, 1);
INSERT INTO content_users VALUES ('objects', 1, 2);
INSERT INTO content_users VALUES ('plan_parts', 1, 2);
INSERT INTO content_users VALUES ('runs', 1, 2);
INSERT INTO content_users VALUES ('configs', 1, 3);
INSERT INTO content_users VALUES ('plan_parts', 1, 3);
INSERT INTO content_users VALUES ('runs', 1, 3);
INSERT INTO content_users VALUES ('runs', 3, 3);
INSERT INTO content_users VALUES ('configs', 2, 4);
INSERT INTO content_users VALUES ('plan_parts', 2, 4);
INSERT INTO content_users VALUES ('runs', 2, 4);
INSERT INTO content_users VALUES ('runs', 4, 4);
INSERT INTO content_users VALUES ('runs', 1, 5);
INSERT INTO content_users VALUES ('runs', 2, 5);
INSERT INTO content_users VALUES ('runs', 5, 5);
INSERT INTO content_users VALUES ('runs', 6, 5);
INSERT INTO content_users VALUES ('configs', 1, 6);
INSERT INTO content_users VALUES ('plan_parts', 3, 6);
INSERT INTO content_users VALUES ('runs', 5, 6);
INSERT INTO content_users VALUES ('runs', 7, 6);
INSERT INTO content_users VALUES ('configs', 2, 7);
INSERT INTO content_users VALUES ('plan_parts', 4, 7);
INSERT INTO content_users VALUES ('runs', 6, 7);
INSERT INTO content_users VALUES ('runs', 8, 7);
INSERT INTO events VALUES (1, '01M87P8VXFAM99CQJWR70E6KAD', {NOW-276}, '{"v":1,"record":{"event":"queued","cause":"push"}}');
INSERT INTO events VALUES (2, '01M87P8VXFDBQ28M9EHKNDXM72', {NOW-276}, '{"v":1,"record":{"event":"queued","cause":"push"}}');
INSERT INTO events VALUES (3, '01M87P8VXFAM99CQJWR70E6KAD', {NOW-276}, '{"v":1,"record":{"event":"admitted"}}');
INSERT INTO events VALUES (4, '01M87P8VXFAM99CQJWR70E6KAD', {NOW-276}, '{"v":1,"record":{"event":"deploymentStarted","config":"web","deployment":"shop/default/web-1"}}');
INSERT INTO events VALUES (5, '01M87P8VXFDBQ28M9EHKNDXM72', {NOW-276}, '{"v":1,"record":{"event":"admitted"}}');
INSERT INTO events VALUES (6, '01M87P8VXFDBQ28M9EHKNDXM72', {NOW-276}, '{"v":1,"record":{"event":"deploymentStarted","config":"worker","deployment":"shop/default/worker-1"}}');
INSERT INTO events VALUES (7, 'shop/default/web-1', {NOW-267}, '{"v":1,"record":{"event":"prepared"}}');
INSERT INTO events VALUES (8, 'shop/default/worker-1', {NOW-267}, '{"v":1,"record":{"event":"prepared"}}');
INSERT INTO events VALUES (9, 'shop/default/worker-1', {NOW-249}, '{"v":1,"record":{"event":"served","generation":1,"progress":{"updated":0,"available":0,"old":0},"converged":true,"problem":""}}');
INSERT INTO events VALUES (10, 'shop/default/web-1', {NOW-229}, '{"v":1,"record":{"event":"served","generation":1,"progress":{"updated":2,"available":0,"old":0},"converged":false,"problem":""}}');
INSERT INTO events VALUES (11, 'shop/default/web-1', {NOW-218}, '{"v":1,"record":{"event":"served","generation":1,"progress":{"updated":2,"available":2,"old":0},"converged":true,"problem":""}}');
INSERT INTO events VALUES (12, '01M87P8VXFAM99CQJWR70E6KAD', {NOW-218}, '{"v":1,"record":{"event":"deploymentEnded","deployment":"shop/default/web-1","outcome":{"status":"succeeded","result":"pass"},"message":"version 1 serves after 58ms"}}');
INSERT INTO events VALUES (13, 'shop/default/worker-1', {NOW-213}, '{"v":1,"record":{"event":"served","generation":2,"progress":{"updated":1,"available":0,"old":0},"converged":false,"problem":""}}');
INSERT INTO events VALUES (14, 'shop/default/worker-1', {NOW-195}, '{"v":1,"record":{"event":"served","generation":2,"progress":{"updated":1,"available":1,"old":0},"converged":true,"problem":""}}');
INSERT INTO events VALUES (15, '01M87P8VXFDBQ28M9EHKNDXM72', {NOW-195}, '{"v":1,"record":{"event":"deploymentEnded","deployment":"shop/default/worker-1","outcome":{"status":"succeeded","result":"pass"},"message":"version 1 serves after 81ms"}}');
INSERT INTO events VALUES (16, '01M87P8W4DZBF4876VTBMTQCFX', {NOW-53}, '{"v":1,"record":{"event":"queued","cause":"push"}}');
INSERT INTO events VALUES (17, '01M87P8W4DZBF4876VTBMTQCFY', {NOW-53}, '{"v":1,"record":{"event":"queued","cause":"push"}}');
INSERT INTO events VALUES (18, '01M87P8W4DZBF4876VTBMTQCFX', {NOW-53}, '{"v":1,"record":{"event":"admitted"}}');
INSERT INTO events VALUES (19, '01M87P8W4DZBF4876VTBMTQCFX', {NOW-53}, '{"v":1,"record":{"event":"deploymentStarted","config":"web","deployment":"shop/default/web-2"}}');
INSERT INTO events VALUES (20, '01M87P8W4DZBF4876VTBMTQCFY', {NOW-53}, '{"v":1,"record":{"event":"admitted"}}');
INSERT INTO events VALUES (21, '01M87P8W4DZBF4876VTBMTQCFY', {NOW-53}, '{"v":1,"record":{"event":"deploymentStarted","config":"worker","deployment":"shop/default/worker-2"}}');
INSERT INTO events VALUES (22, 'shop/default/worker-2', {NOW-46}, '{"v":1,"record":{"event":"prepared"}}');
INSERT INTO events VALUES (23, 'shop/default/web-2', {NOW-44}, '{"v":1,"record":{"event":"prepared"}}');
INSERT INTO events VALUES (24, 'shop/default/web-2', {NOW-28}, '{"v":1,"record":{"event":"served","generation":2,"progress":{"updated":0,"available":0,"old":2},"converged":false,"problem":""}}');
INSERT INTO events VALUES (25, 'shop/default/web-2', {NOW-21}, '{"v":1,"record":{"event":"served","generation":2,"progress":{"updated":1,"available":0,"old":2},"converged":false,"problem":""}}');
INSERT INTO outbox VALUES (20, 'runs', 'shop/default/web-2', 'timer/deadline', {NOW+21599947}, {NOW-53}, 0, '', '{"v":1,"record":{"action":"setTimer","timer":"deadline","due":{NOW+21599947}}}');
INSERT INTO outbox VALUES (22, 'runs', 'shop/default/worker-2', 'timer/deadline', {NOW+21599947}, {NOW-53}, 0, '', '{"v":1,"record":{"action":"setTimer","timer":"deadline","due":{NOW+21599947}}}');
INSERT INTO outbox VALUES (31, 'runs', 'shop/default/web-2', 'timer/progress', {NOW+599979}, {NOW-21}, 0, '', '{"v":1,"record":{"action":"setTimer","timer":"progress","due":{NOW+599979}}}');
INSERT INTO outbox VALUES (32, 'statuses/shop/notes', 'report', 'report/shop/1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4/notes', {NOW-21}, {NOW-21}, 0, '', '{"v":1,"record":{"action":"report","repository":"shop","commit":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","writer":"notes"}}');
INSERT INTO configs VALUES (1, 'shop', 'default', 'web', 5, 'web', 'shop', 'sha256:273abc41bd1e1226e9db40c0aec46e3759d78764a692b7c2c4426dca5396e9e4', 0, 10, '["shop/default/web-1","shop/default/web-2"]', '01M87P8W4DZBF4876VTBMTQCFX', '{"v":1,"record":{"key":{"project":"shop","stage":"default","name":"web"},"service":"web","destination":{"runtime":"local","namespace":"shop-default"},"repository":"shop","object":{"key":{"kind":"DeploymentConfig","name":"web"},"service":"web","location":{"file":"web.yaml","line":1,"column":1},"digest":"sha256:273abc41bd1e1226e9db40c0aec46e3759d78764a692b7c2c4426dca5396e9e4"},"declared_on":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","latest_version":2,"serving":{"number":1,"commit":"42df9f517b8c75bd014962dc45820fc37ead76c4","object":{"key":{"kind":"DeploymentConfig","name":"web"},"service":"web","location":{"file":"web.yaml","line":1,"column":1},"digest":"sha256:b57188c196cb644348bc095c7c41da4bc043754ea8d122a65992fbb2f6f7a3e9"}},"attempted":{"version":{"number":2,"commit":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","object":{"key":{"kind":"DeploymentConfig","name":"web"},"service":"web","location":{"file":"web.yaml","line":1,"column":1},"digest":"sha256:273abc41bd1e1226e9db40c0aec46e3759d78764a692b7c2c4426dca5396e9e4"}},"run":"01M87P8W4DZBF4876VTBMTQCFX","outcome":null},"wanted":{"generation":2,"owner":"shop/default/web-2","replicas":2,"targets":{"2":{"portion":"all"}},"fallback":{"version":1,"replicas":2},"pace":{"rolling":{"max_surge":1,"max_unavailable":0}},"min_ready_seconds":0},"scaled":null,"removed":false}}');
INSERT INTO configs VALUES (2, 'shop', 'default', 'worker', 5, 'worker', 'shop', 'sha256:c08c897809739b87770b48e409fa8430293425544723c39267ad33735dc23928', 0, 10, '["shop/default/worker-1","shop/default/worker-2"]', '01M87P8W4DZBF4876VTBMTQCFY', '{"v":1,"record":{"key":{"project":"shop","stage":"default","name":"worker"},"service":"worker","destination":{"runtime":"local","namespace":"shop-default"},"repository":"shop","object":{"key":{"kind":"DeploymentConfig","name":"worker"},"service":"worker","location":{"file":"worker.yaml","line":1,"column":1},"digest":"sha256:c08c897809739b87770b48e409fa8430293425544723c39267ad33735dc23928"},"declared_on":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","latest_version":2,"serving":{"number":1,"commit":"42df9f517b8c75bd014962dc45820fc37ead76c4","object":{"key":{"kind":"DeploymentConfig","name":"worker"},"service":"worker","location":{"file":"worker.yaml","line":1,"column":1},"digest":"sha256:e7d0594e20c21fe362dafc6c9ad640bdb7f83adcbe64d8b389432403e0ae6bc6"}},"attempted":{"version":{"number":2,"commit":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","object":{"key":{"kind":"DeploymentConfig","name":"worker"},"service":"worker","location":{"file":"worker.yaml","line":1,"column":1},"digest":"sha256:c08c897809739b87770b48e409fa8430293425544723c39267ad33735dc23928"}},"run":"01M87P8W4DZBF4876VTBMTQCFY","outcome":null},"wanted":{"generation":2,"owner":"shop/default/worker-2","replicas":1,"targets":{"1":{"portion":"all"}},"fallback":null,"pace":"recreate","min_ready_seconds":0},"scaled":null,"removed":false}}');
INSERT INTO objects VALUES (1, 'shop', 'default', 'Service', 'web', 1, 'web', 'shop', 'sha256:c3768e3de1d884952b60d2c17dc1693690f0a8d4285aa3e8c18105da4388cb03', '{"v":1,"record":{"project":"shop","stage":"default","destination":{"runtime":"local","namespace":"shop-default"},"repository":"shop","object":{"key":{"kind":"Service","name":"web"},"service":"web","location":{"file":"service.yaml","line":1,"column":1},"digest":"sha256:c3768e3de1d884952b60d2c17dc1693690f0a8d4285aa3e8c18105da4388cb03"}}}');
INSERT INTO repositories VALUES ('shop', 3, '1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4', '1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4', '{"v":1,"record":{"name":"shop","url":"{ROOT}/origin.git","branch":"main","project":"shop","namespaces":["shop-default"],"applied":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","seen":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","synced_at":{NOW-53},"problem":null,"status_problems":{},"accepted_rewrite":null,"allowed_prune":null,"down":false,"down_by":""}}');
INSERT INTO plans VALUES (1, 'c3855683b4cd7bb5d651fcda841195c1', {NOW-276}, '{"v":1,"record":{"id":"c3855683b4cd7bb5d651fcda841195c1","repository":"shop","project":"shop","commit":"42df9f517b8c75bd014962dc45820fc37ead76c4","subject":"Change service.yaml","at":{NOW-276},"stages":[{"stage":"default","destination":{"runtime":"local","namespace":"shop-default"},"start":"push","sequence":{"name":"delivery","triggered_on":[],"tasks":[{"name":"deployment","triggered_after_ms":0,"properties":null}]},"services":[]}],"statuses":"auto","procedures":"sha256:1c17adf24f7a2e2160ce6841df4500eaa94ea2c7ba2c9e99533d024650907779"}}');
INSERT INTO plans VALUES (2, '7a47832ba2d3525c304c0bae741e3c0a', {NOW-53}, '{"v":1,"record":{"id":"7a47832ba2d3525c304c0bae741e3c0a","repository":"shop","project":"shop","commit":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","subject":"Change web.yaml","at":{NOW-53},"stages":[{"stage":"default","destination":{"runtime":"local","namespace":"shop-default"},"start":"push","sequence":{"name":"delivery","triggered_on":[],"tasks":[{"name":"deployment","triggered_after_ms":0,"properties":null}]},"services":[]}],"statuses":"auto","procedures":"sha256:1c17adf24f7a2e2160ce6841df4500eaa94ea2c7ba2c9e99533d024650907779"}}');
INSERT INTO plan_parts VALUES (1, 'c3855683b4cd7bb5d651fcda841195c1', 'shop', 'web', '{"v":1,"record":{"service":"web","stages":[["default",{"service":"web","content":"sha256:62bde8ad994e5b0497416c8daaec9179218860cc0ea7915abbe35d734d447a36","previous_stage":null,"configs":1,"changes":[{"key":{"kind":"Service","name":"web"},"decision":"create","reasons":[],"cause":"new","object":{"key":{"kind":"Service","name":"web"},"service":"web","location":{"file":"service.yaml","line":1,"column":1},"digest":"sha256:c3768e3de1d884952b60d2c17dc1693690f0a8d4285aa3e8c18105da4388cb03"}},{"key":{"kind":"DeploymentConfig","name":"web"},"decision":"create","reasons":[],"cause":"first deployment","object":{"key":{"kind":"DeploymentConfig","name":"web"},"service":"web","location":{"file":"web.yaml","line":1,"column":1},"digest":"sha256:b57188c196cb644348bc095c7c41da4bc043754ea8d122a65992fbb2f6f7a3e9"}}]}]]}}');
INSERT INTO plan_parts VALUES (2, 'c3855683b4cd7bb5d651fcda841195c1', 'shop', 'worker', '{"v":1,"record":{"service":"worker","stages":[["default",{"service":"worker","content":"sha256:700e35323a6f8721d2161318806f31e48ecda05e3cbd36e5e3df8a7b002775c2","previous_stage":null,"configs":1,"changes":[{"key":{"kind":"DeploymentConfig","name":"worker"},"decision":"create","reasons":[],"cause":"first deployment","object":{"key":{"kind":"DeploymentConfig","name":"worker"},"service":"worker","location":{"file":"worker.yaml","line":1,"column":1},"digest":"sha256:e7d0594e20c21fe362dafc6c9ad640bdb7f83adcbe64d8b389432403e0ae6bc6"}}]}]]}}');
INSERT INTO plan_parts VALUES (3, '7a47832ba2d3525c304c0bae741e3c0a', 'shop', 'web', '{"v":1,"record":{"service":"web","stages":[["default",{"service":"web","content":"sha256:f0f9823281a11b3d9b43cfec1f9b9c8a1bdb9630198b8c22d77f5ec8e5ee7d95","previous_stage":null,"configs":1,"changes":[{"key":{"kind":"DeploymentConfig","name":"web"},"decision":"deploy","reasons":[{"pointer":"/spec/template/spec/containers/main/command/2","old":"printf one > version; exec python3 -m http.server --bind 127.0.0.1 $PORT","new":"printf two > version; exec python3 -m http.server --bind 127.0.0.1 $PORT"},{"pointer":"/spec/template/spec/containers/main/readinessProbe/exec/command/2","old":"true","new":"test -f ../../../../../../go"}],"cause":"config change","object":{"key":{"kind":"DeploymentConfig","name":"web"},"service":"web","location":{"file":"web.yaml","line":1,"column":1},"digest":"sha256:273abc41bd1e1226e9db40c0aec46e3759d78764a692b7c2c4426dca5396e9e4"}}]}]]}}');
INSERT INTO plan_parts VALUES (4, '7a47832ba2d3525c304c0bae741e3c0a', 'shop', 'worker', '{"v":1,"record":{"service":"worker","stages":[["default",{"service":"worker","content":"sha256:5aadd45d3168be29ef60d26dc4a87a8fae467a6290f05c08b6193c7bd54e1d56","previous_stage":null,"configs":1,"changes":[{"key":{"kind":"DeploymentConfig","name":"worker"},"decision":"deploy","reasons":[{"pointer":"/spec/strategy/recreateParams/pre","old":null,"new":{"failurePolicy":"Abort","execNewPod":{"containerName":"main","command":["sh","-c","while [ ! -f ../../../../../../go ]; do sleep 0.05; done"]}}},{"pointer":"/spec/template/spec/containers/main/env/V/value","old":"one","new":"two"}],"cause":"config change","object":{"key":{"kind":"DeploymentConfig","name":"worker"},"service":"worker","location":{"file":"worker.yaml","line":1,"column":1},"digest":"sha256:c08c897809739b87770b48e409fa8430293425544723c39267ad33735dc23928"}}]}]]}}');
INSERT INTO revisions VALUES (1, 'shop', '42df9f517b8c75bd014962dc45820fc37ead76c4', {NOW-276}, 'c3855683b4cd7bb5d651fcda841195c1', '{"v":1,"record":{"repository":"shop","commit":"42df9f517b8c75bd014962dc45820fc37ead76c4","subject":"Change service.yaml","at":{NOW-276},"result":{"planned":{"plan":"c3855683b4cd7bb5d651fcda841195c1"}},"summary":null,"again":0}}');
INSERT INTO revisions VALUES (2, 'shop', '1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4', {NOW-53}, '7a47832ba2d3525c304c0bae741e3c0a', '{"v":1,"record":{"repository":"shop","commit":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","subject":"Change web.yaml","at":{NOW-53},"result":{"planned":{"plan":"7a47832ba2d3525c304c0bae741e3c0a"}},"summary":null,"again":0}}');
INSERT INTO slots VALUES ('shop', 'default', 'web', 3, 1, '01M87P8VXFAM99CQJWR70E6KAD', 'sha256:62bde8ad994e5b0497416c8daaec9179218860cc0ea7915abbe35d734d447a36', 'sha256:5588eb1064140b3ee33fc63e15e4f2a27d5b94a99c4fab3671720cee825cc337', '{"v":1,"record":{"service":{"project":"shop","stage":"default","service":"web"},"holder":"01M87P8W4DZBF4876VTBMTQCFX","waiting":[],"last_delivery":{"run":"01M87P8VXFAM99CQJWR70E6KAD","content":"sha256:62bde8ad994e5b0497416c8daaec9179218860cc0ea7915abbe35d734d447a36","procedure":"sha256:5588eb1064140b3ee33fc63e15e4f2a27d5b94a99c4fab3671720cee825cc337"}}}');
INSERT INTO slots VALUES ('shop', 'default', 'worker', 3, 1, '01M87P8VXFDBQ28M9EHKNDXM72', 'sha256:700e35323a6f8721d2161318806f31e48ecda05e3cbd36e5e3df8a7b002775c2', 'sha256:5588eb1064140b3ee33fc63e15e4f2a27d5b94a99c4fab3671720cee825cc337', '{"v":1,"record":{"service":{"project":"shop","stage":"default","service":"worker"},"holder":"01M87P8W4DZBF4876VTBMTQCFY","waiting":[],"last_delivery":{"run":"01M87P8VXFDBQ28M9EHKNDXM72","content":"sha256:700e35323a6f8721d2161318806f31e48ecda05e3cbd36e5e3df8a7b002775c2","procedure":"sha256:5588eb1064140b3ee33fc63e15e4f2a27d5b94a99c4fab3671720cee825cc337"}}}');
INSERT INTO passed VALUES ('shop', 'default', 'web', 'sha256:62bde8ad994e5b0497416c8daaec9179218860cc0ea7915abbe35d734d447a36', 1, {NOW-218}, '{"v":1,"record":{"key":{"service":{"project":"shop","stage":"default","service":"web"},"content":"sha256:62bde8ad994e5b0497416c8daaec9179218860cc0ea7915abbe35d734d447a36"},"commit":"42df9f517b8c75bd014962dc45820fc37ead76c4","at":{NOW-218},"procedure":"sha256:5588eb1064140b3ee33fc63e15e4f2a27d5b94a99c4fab3671720cee825cc337"}}');
INSERT INTO passed VALUES ('shop', 'default', 'worker', 'sha256:700e35323a6f8721d2161318806f31e48ecda05e3cbd36e5e3df8a7b002775c2', 1, {NOW-195}, '{"v":1,"record":{"key":{"service":{"project":"shop","stage":"default","service":"worker"},"content":"sha256:700e35323a6f8721d2161318806f31e48ecda05e3cbd36e5e3df8a7b002775c2"},"commit":"42df9f517b8c75bd014962dc45820fc37ead76c4","at":{NOW-195},"procedure":"sha256:5588eb1064140b3ee33fc63e15e4f2a27d5b94a99c4fab3671720cee825cc337"}}');
INSERT INTO names VALUES ('namespace', 'shop-default', 1, '{"v":1,"record":{"name":{"namespace":"shop-default"},"repository":"shop","project":"shop","stage":"default"}}');
INSERT INTO names VALUES ('project', 'shop', 1, '{"v":1,"record":{"name":{"project":"shop"},"repository":"shop","project":"shop","stage":null}}');
INSERT INTO posted VALUES ('shop', 'notes', '42df9f517b8c75bd014962dc45820fc37ead76c4', 'launchway/plan', 0, 6, {NOW-258}, '{"v":1,"record":{"commit":"42df9f517b8c75bd014962dc45820fc37ead76c4","context":"launchway/plan","state":"success","description":"default: 3 create","path":"/revisions/shop/42df9f517b8c75bd014962dc45820fc37ead76c4","attempt":1}}');
INSERT INTO posted VALUES ('shop', 'notes', '42df9f517b8c75bd014962dc45820fc37ead76c4', 'launchway/default/web', 0, 13, {NOW-188}, '{"v":1,"record":{"commit":"42df9f517b8c75bd014962dc45820fc37ead76c4","context":"launchway/default/web","state":"success","description":"web version 1 serves after 58ms","path":"/runs/01M87P8VXFAM99CQJWR70E6KAD","attempt":1}}');
INSERT INTO posted VALUES ('shop', 'notes', '42df9f517b8c75bd014962dc45820fc37ead76c4', 'launchway/default', 0, 15, {NOW-94}, '{"v":1,"record":{"commit":"42df9f517b8c75bd014962dc45820fc37ead76c4","context":"launchway/default","state":"success","description":"2 success (web, worker)","path":"/revisions/shop/42df9f517b8c75bd014962dc45820fc37ead76c4","attempt":2}}');
INSERT INTO posted VALUES ('shop', 'notes', '42df9f517b8c75bd014962dc45820fc37ead76c4', 'launchway/default/worker', 0, 15, {NOW-94}, '{"v":1,"record":{"commit":"42df9f517b8c75bd014962dc45820fc37ead76c4","context":"launchway/default/worker","state":"success","description":"worker version 1 serves after 81ms","path":"/runs/01M87P8VXFDBQ28M9EHKNDXM72","attempt":1}}');
INSERT INTO posted VALUES ('shop', 'notes', '1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4', 'launchway/plan', 0, 21, {NOW-36}, '{"v":1,"record":{"commit":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","context":"launchway/plan","state":"success","description":"default: 2 deploy","path":"/revisions/shop/1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","attempt":1}}');
INSERT INTO posted VALUES ('shop', 'notes', '1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4', 'launchway/default', 1, 21, {NOW-36}, '{"v":1,"record":{"commit":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","context":"launchway/default","state":"running","description":"2 running (web, worker)","path":"/revisions/shop/1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","attempt":2}}');
INSERT INTO posted VALUES ('shop', 'notes', '1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4', 'launchway/default/web', 1, 21, {NOW-36}, '{"v":1,"record":{"commit":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","context":"launchway/default/web","state":"running","description":"web version 2 is New","path":"/runs/01M87P8W4DZBF4876VTBMTQCFX","attempt":1}}');
INSERT INTO posted VALUES ('shop', 'notes', '1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4', 'launchway/default/worker', 1, 21, {NOW-36}, '{"v":1,"record":{"commit":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","context":"launchway/default/worker","state":"running","description":"worker version 2 is New","path":"/runs/01M87P8W4DZBF4876VTBMTQCFY","attempt":1}}');
INSERT INTO posted VALUES ('shop', 'notes', '1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4', 'launchway/default/worker/pre', 1, 21, {NOW-36}, '{"v":1,"record":{"commit":"1f7b5c6b66c62af8d14adfddd8f5817adf8bd7f4","context":"launchway/default/worker/pre","state":"running","description":"running","path":"/runs/shop/default/worker-2","attempt":1}}');
UPDATE sqlite_sequence SET seq = 25 WHERE name = 'events';
UPDATE sqlite_sequence SET seq = 4 WHERE name = 'plan_parts';
UPDATE sqlite_sequence SET seq = 2 WHERE name = 'revisions';
UPDATE sqlite_sequence SET seq = 32 WHERE name = 'outbox';
UPDATE sqlite_sequence SET seq = 8 WHERE name = 'runs';
CREATE INDEX runs_by_time ON runs (created_at, number);
CREATE INDEX runs_by_service ON runs (project, stage, service, created_at, number);
CREATE INDEX runs_by_commit ON runs (commit_id, created_at, number);
CREATE INDEX runs_by_revision ON runs (commit_id, service, created_at, number);
CREATE INDEX runs_by_config ON runs (project, stage, config, created_at, number) WHERE config IS NOT NULL;
CREATE INDEX runs_open ON runs (created_at, number) WHERE is_open;
CREATE INDEX runs_by_attempt ON runs (project, stage, service, commit_id, repository, sequence, attempt) WHERE is_sequence;
CREATE INDEX content_users_by_content ON content_users (content);
CREATE INDEX events_by_run ON events (run, number);
CREATE INDEX events_by_time ON events (at);
CREATE INDEX outbox_by_due ON outbox (lane, due, id);
CREATE INDEX configs_by_service ON configs (project, stage, service);
CREATE INDEX configs_attempted_by ON configs (attempted_by) WHERE attempted_by IS NOT NULL;
CREATE INDEX configs_applied ON configs (project, stage, name, digest, version, is_settled, repository);
CREATE INDEX objects_by_service ON objects (project, stage, service);
CREATE INDEX objects_applied ON objects (project, stage, kind, name, digest, version, repository);
CREATE INDEX plans_by_time ON plans (at);
CREATE INDEX plan_parts_newest ON plan_parts (project, service, number);
CREATE INDEX revisions_by_time ON revisions (repository, at, number);
CREATE INDEX revisions_by_plan ON revisions (plan);
CREATE INDEX slots_open ON slots (project, stage, service) WHERE is_open;
CREATE INDEX posted_open ON posted (repository, commit_id) WHERE is_open;
CREATE INDEX posted_by_time ON posted (at);
CREATE INDEX deliveries_by_time ON deliveries (at);
CREATE TRIGGER runs_deleted AFTER DELETE ON runs
BEGIN
  DELETE FROM content_users WHERE user_table = 'runs' AND user = OLD.number;
  DELETE FROM events WHERE run = OLD.id;
END;
CREATE TRIGGER plans_deleted AFTER DELETE ON plans
BEGIN DELETE FROM content_users WHERE user_table = 'plans' AND user = OLD.number; END;
CREATE TRIGGER plan_parts_deleted AFTER DELETE ON plan_parts
BEGIN DELETE FROM content_users WHERE user_table = 'plan_parts' AND user = OLD.number; END;
CREATE TRIGGER configs_deleted AFTER DELETE ON configs
BEGIN DELETE FROM content_users WHERE user_table = 'configs' AND user = OLD.number; END;
CREATE TRIGGER objects_deleted AFTER DELETE ON objects
BEGIN DELETE FROM content_users WHERE user_table = 'objects' AND user = OLD.number; END;
PRAGMA application_id = 1819763065;
PRAGMA user_version = 2;
COMMIT;
