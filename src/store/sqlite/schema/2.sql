-- Times are milliseconds since the Unix epoch, UTC. `record` is JSON in an envelope with a version; the other columns
-- repeat what is searched for. `number` is the order in which rows came.

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
CREATE INDEX runs_by_time ON runs (created_at, number);
CREATE INDEX runs_by_service ON runs (project, stage, service, created_at, number);
CREATE INDEX runs_by_commit ON runs (commit_id, created_at, number);
CREATE INDEX runs_by_revision ON runs (commit_id, service, created_at, number);
CREATE INDEX runs_by_config ON runs (project, stage, config, created_at, number) WHERE config IS NOT NULL;
CREATE INDEX runs_open ON runs (created_at, number) WHERE is_open;
CREATE INDEX runs_by_attempt ON runs (project, stage, service, commit_id, repository, sequence, attempt) WHERE is_sequence;

-- What files declare and what runs, each content once. Records name it by its digest.
CREATE TABLE contents (
  number  INTEGER PRIMARY KEY,
  digest  TEXT NOT NULL UNIQUE,
  content TEXT NOT NULL
) STRICT;

-- The rows of other tables that name a content; without any, retention deletes it.
CREATE TABLE content_users (
  user_table TEXT    NOT NULL,
  user       INTEGER NOT NULL,
  content    INTEGER NOT NULL REFERENCES contents (number),
  PRIMARY KEY (user_table, user, content)
) STRICT, WITHOUT ROWID;
CREATE INDEX content_users_by_content ON content_users (content);

CREATE TABLE events (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  run    TEXT    NOT NULL,
  at     INTEGER NOT NULL,
  record TEXT    NOT NULL
) STRICT;
CREATE INDEX events_by_run ON events (run, number);
CREATE INDEX events_by_time ON events (at);

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
CREATE INDEX outbox_by_due ON outbox (lane, due, id);

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
CREATE INDEX configs_by_service ON configs (project, stage, service);
CREATE INDEX configs_attempted_by ON configs (attempted_by) WHERE attempted_by IS NOT NULL;
-- Planning reads all of a stage and must not touch the records.
CREATE INDEX configs_applied ON configs (project, stage, name, digest, version, is_settled, repository);

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
CREATE INDEX objects_by_service ON objects (project, stage, service);
CREATE INDEX objects_applied ON objects (project, stage, kind, name, digest, version, repository);

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
CREATE INDEX plans_by_time ON plans (at);

-- What a plan says about one service, in all stages; the row in `plans` has the rest.
CREATE TABLE plan_parts (
  number  INTEGER PRIMARY KEY AUTOINCREMENT,
  plan    TEXT NOT NULL REFERENCES plans (id) ON DELETE CASCADE,
  project TEXT NOT NULL,
  service TEXT NOT NULL,
  record  TEXT NOT NULL,
  UNIQUE (plan, service)
) STRICT;
CREATE INDEX plan_parts_newest ON plan_parts (project, service, number);

CREATE TABLE revisions (
  number     INTEGER PRIMARY KEY AUTOINCREMENT,
  repository TEXT    NOT NULL,
  commit_id  TEXT    NOT NULL,
  at         INTEGER NOT NULL,
  plan       TEXT REFERENCES plans (id),
  record     TEXT    NOT NULL,
  UNIQUE (repository, commit_id)
) STRICT;
CREATE INDEX revisions_by_time ON revisions (repository, at, number);
CREATE INDEX revisions_by_plan ON revisions (plan);

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
CREATE INDEX slots_open ON slots (project, stage, service) WHERE is_open;

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

-- Names that only one may have.
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
CREATE INDEX posted_open ON posted (repository, commit_id) WHERE is_open;
CREATE INDEX posted_by_time ON posted (at);

CREATE TABLE deliveries (
  repository TEXT    NOT NULL,
  id         TEXT    NOT NULL,
  at         INTEGER NOT NULL,
  PRIMARY KEY (repository, id)
) STRICT, WITHOUT ROWID;
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
