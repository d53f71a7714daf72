-- What moved of a revision's services is read from the index alone, however many they are.
DROP INDEX runs_by_revision;
CREATE INDEX runs_by_revision ON runs (commit_id, repository, service, version);
