-- Runs of a project in the order in which people read them, without sorting all that it ever had.
CREATE INDEX runs_by_project ON runs (project, created_at, number);

-- What was delivered last by another procedure than is declared, or not deployed: read from the index alone.
CREATE INDEX slots_delivered ON slots (project, stage, procedure, deployed, service, run, content) WHERE run IS NOT NULL;
