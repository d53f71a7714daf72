-- Which of what is due in a lane is performed first, the lowest number. There is no index for what is due alone: each
-- priority is read by itself, in the order in which it came due.
ALTER TABLE outbox ADD COLUMN priority INTEGER NOT NULL DEFAULT 1;
DROP INDEX outbox_by_due;
CREATE INDEX outbox_by_turn ON outbox (lane, priority, due, id);

-- Whether the deployment of the last delivery began.
ALTER TABLE slots ADD COLUMN deployed INTEGER NOT NULL DEFAULT 1;

-- What has happened to each service of a revision is read from the index alone, without the records.
DROP INDEX runs_by_revision;
CREATE INDEX runs_by_revision ON runs (commit_id, repository, service, version);
