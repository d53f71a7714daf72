-- What the generated values of templates are derived from. A copy has it too: what was generated stays what it is.
CREATE TABLE seed (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  bytes    BLOB    NOT NULL -- 32 of them
) STRICT;

-- What the last webhooks came to, for people.
CREATE TABLE webhook_calls (
  repository TEXT NOT NULL PRIMARY KEY,
  record     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What the runs of one delivery through all stages have in common; of sequences.
ALTER TABLE runs ADD COLUMN context TEXT;
CREATE INDEX runs_by_context ON runs (context, created_at, number) WHERE context IS NOT NULL;
