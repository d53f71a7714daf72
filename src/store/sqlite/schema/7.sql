-- Whoever knows what was so of a revision's runs reads what has moved since, and not all of them.
ALTER TABLE runs ADD COLUMN moved INTEGER NOT NULL DEFAULT 0; -- grows with each change of a run of the revision
UPDATE runs SET moved = number;
DROP INDEX runs_by_revision;
CREATE INDEX runs_by_revision ON runs (commit_id, repository, service);
CREATE INDEX runs_by_move ON runs (commit_id, repository, moved);
