INSERT INTO fence VALUES (1, 3, 1795248600000, '01KAN0000000000000000000AA');
INSERT INTO runs (id, version, is_sequence, is_open, repository, project, stage, service, plan, attempt, commit_id, created_at, record)
  VALUES ('01KAG0000000000000000000', 2, 1, 0, 'shop', 'shop', 'dev', 'web', 'sha256:aa', 1,
          '1111111111111111111111111111111111111111', 1795248600000, '{"v":1,"record":{}}');
INSERT INTO events (run, at, record)
  VALUES ('01KAG0000000000000000000', 1795248600000, '{"v":1,"record":{"event":"admitted"}}');
INSERT INTO outbox (lane, run, key, due, asked_at, record)
  VALUES ('runs', '01KAG0000000000000000000', 'timer/retry', 1795248601000, 1795248600000,
          '{"v":1,"record":{"action":"clearTimer","timer":"retry"}}');
INSERT INTO configs (project, stage, name, version, service, repository, digest, is_settled, runs_in_use, record)
  VALUES ('shop', 'dev', 'web', 1, 'web', 'shop', 'sha256:bb', 1, '[]', '{"v":1,"record":{}}');
INSERT INTO objects (project, stage, kind, name, version, service, repository, digest, record)
  VALUES ('shop', 'dev', 'Service', 'web', 1, 'web', 'shop', 'sha256:cc', '{"v":1,"record":{}}');
INSERT INTO repositories VALUES ('shop', 1, '1111111111111111111111111111111111111111', NULL, '{"v":1,"record":{}}');
INSERT INTO plans (id, at, record) VALUES ('sha256:aa', 1795248600000, '{"v":1,"record":{}}');
INSERT INTO revisions (repository, commit_id, at, plan, record)
  VALUES ('shop', '1111111111111111111111111111111111111111', 1795248600000, 'sha256:aa', '{"v":1,"record":{}}');
INSERT INTO plan_parts (plan, project, service, record) VALUES ('sha256:aa', 'shop', 'web', '{"v":1,"record":{}}');
INSERT INTO slots VALUES ('shop', 'dev', 'web', 1, 1, '01KAG0000000000000000000', 'sha256:dd', 'sha256:ee', '{"v":1,"record":{}}');
INSERT INTO passed VALUES ('shop', 'dev', 'web', 'sha256:dd', 1, 1795248600000, '{"v":1,"record":{}}');
INSERT INTO holds VALUES ('shop', 1, '{"v":1,"record":{}}');
INSERT INTO names VALUES ('project', 'shop', 1, '{"v":1,"record":{}}');
INSERT INTO posted
  VALUES ('shop', 'notes', '1111111111111111111111111111111111111111', 'launchway/dev', 0, 7, 1795248600000,
          '{"v":1,"record":{}}');
INSERT INTO contents (digest, content) VALUES ('sha256:cc', '{}');
INSERT INTO content_users SELECT 'objects', objects.number, contents.number FROM objects, contents;
INSERT INTO deliveries VALUES ('shop', 'd1', 1795248600000);
