-- The tags that repositories had when they were compared last, where sequences wait for new ones.
CREATE TABLE tags (
  repository TEXT NOT NULL PRIMARY KEY,
  record     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Whoever knows what was so of a revision's runs hears that some are gone, without counting those that are left.
ALTER TABLE revisions ADD COLUMN runs_deleted INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER revisions_runs_deleted AFTER DELETE ON runs BEGIN
  UPDATE revisions SET runs_deleted = runs_deleted + 1
  WHERE repository = old.repository AND commit_id = old.commit_id;
END;
