//! What is deleted once nothing needs it any more: see [`Retention`].

use rusqlite::Connection;

use super::failure::Error;
use super::writer::Writer;
use crate::model::transaction::KEPT_BY_AGE;
use crate::store::{CommitError, Retained, Retention};

/// Rows that one transaction deletes, so that no commit waits long behind it.
const BATCH: u32 = 1_000;

/// What is deleted, with its kind, in an order in which what one statement deletes may be why the next one can.
/// `:before` is the oldest time that stays, `:most` how many stay of what is younger, `:rows` how many to take at once.
const DELETIONS: [(&str, &str); 12] = [
    (
        "revisions",
        "DELETE FROM revisions WHERE number IN (
           SELECT number FROM (
             SELECT number, repository, commit_id, at,
               row_number() OVER (PARTITION BY repository ORDER BY at DESC, number DESC) AS place
             FROM revisions) AS revision
           WHERE (at < :before OR place > :most)
           AND NOT EXISTS (SELECT 1 FROM repositories
             WHERE name = revision.repository AND (applied = commit_id OR seen = commit_id))
           AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.commit_id = revision.commit_id AND runs.is_open)
           AND NOT EXISTS (SELECT 1 FROM outbox WHERE run = 'report' AND due IS NOT NULL
             AND key GLOB 'report/' || revision.repository || '/' || revision.commit_id || '/*' AND asked_at >= :before)
           LIMIT :rows)",
    ),
    (
        "runs",
        "DELETE FROM runs WHERE number IN (
           SELECT deployment.number FROM (
             SELECT number, id, project, stage, config, is_open, created_at,
               row_number() OVER (PARTITION BY project, stage, config ORDER BY created_at DESC, number DESC) AS place
             FROM runs WHERE config IS NOT NULL) AS deployment
           LEFT JOIN configs ON configs.project = deployment.project AND configs.stage = deployment.stage
             AND configs.name = deployment.config
           WHERE NOT is_open
           AND CASE WHEN configs.number IS NULL THEN created_at < :before OR place > :most
               ELSE place > 1 + ifnull(configs.history_limit, :most) END
           AND NOT EXISTS (SELECT 1 FROM json_each(configs.runs_in_use) WHERE value = deployment.id)
           LIMIT :rows)",
    ),
    (
        "runs",
        "DELETE FROM runs WHERE number IN (
           SELECT number FROM (
             SELECT *,
               row_number() OVER (PARTITION BY project, stage, service ORDER BY created_at DESC, number DESC) AS place
             FROM runs WHERE is_sequence) AS run
           WHERE NOT is_open AND (created_at < :before OR place > :most)
           AND id NOT IN (SELECT attempted_by FROM configs WHERE attempted_by IS NOT NULL)
           AND NOT (
             EXISTS (SELECT 1 FROM slots WHERE slots.project = run.project AND slots.stage = run.stage
               AND slots.service = run.service AND slots.run = run.id)
             AND (EXISTS (SELECT 1 FROM configs WHERE configs.project = run.project AND configs.stage = run.stage
                 AND configs.service = run.service)
               OR EXISTS (SELECT 1 FROM objects WHERE objects.project = run.project AND objects.stage = run.stage
                 AND objects.service = run.service)))
           AND NOT (
             EXISTS (SELECT 1 FROM revisions
               WHERE revisions.repository = run.repository AND revisions.commit_id = run.commit_id)
             AND NOT EXISTS (SELECT 1 FROM runs AS newer
               WHERE newer.is_sequence AND newer.project = run.project AND newer.stage = run.stage
                 AND newer.service = run.service AND newer.commit_id = run.commit_id
                 AND newer.repository = run.repository AND newer.sequence IS run.sequence
                 AND newer.attempt > run.attempt AND (run.plan IS NULL OR newer.plan IS NOT NULL)))
           LIMIT :rows)",
    ),
    (
        "slots",
        "DELETE FROM slots WHERE (project, stage, service) IN (
           SELECT project, stage, service FROM slots
           WHERE NOT is_open AND deployed
           AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.project = slots.project AND runs.stage = slots.stage
             AND runs.service = slots.service)
           AND NOT EXISTS (SELECT 1 FROM configs WHERE configs.project = slots.project AND configs.stage = slots.stage
             AND configs.service = slots.service)
           AND NOT EXISTS (SELECT 1 FROM objects WHERE objects.project = slots.project AND objects.stage = slots.stage
             AND objects.service = slots.service)
           LIMIT :rows)",
    ),
    (
        "events",
        "DELETE FROM events WHERE number IN (
           SELECT number FROM events WHERE at < :before
           AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = events.run AND runs.is_open)
           LIMIT :rows)",
    ),
    (
        "parts of plans",
        "DELETE FROM plan_parts WHERE number IN (
           SELECT number FROM plan_parts AS part
           WHERE NOT EXISTS (SELECT 1 FROM revisions WHERE revisions.plan = part.plan)
           AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.plan = part.plan AND runs.is_open)
           AND (EXISTS (SELECT 1 FROM plan_parts AS newer
               WHERE newer.project = part.project AND newer.service = part.service AND newer.number > part.number)
             OR (project, service) NOT IN (SELECT project, service FROM slots))
           LIMIT :rows)",
    ),
    (
        "plans",
        "DELETE FROM plans WHERE number IN (
           SELECT number FROM plans
           WHERE NOT EXISTS (SELECT 1 FROM revisions WHERE revisions.plan = plans.id)
           AND NOT EXISTS (SELECT 1 FROM plan_parts WHERE plan_parts.plan = plans.id)
           AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.plan = plans.id AND runs.is_open)
           LIMIT :rows)",
    ),
    (
        "passed",
        "DELETE FROM passed WHERE (project, stage, service, content) IN (
           SELECT project, stage, service, content FROM (
             SELECT project, stage, service, content, at,
               row_number() OVER (PARTITION BY project, stage, service ORDER BY at DESC, content) AS place
             FROM passed) AS it
           WHERE (at < :before OR place > :most)
           AND NOT EXISTS (SELECT 1 FROM slots WHERE slots.project = it.project AND slots.stage = it.stage
             AND slots.service = it.service AND (slots.content = it.content OR place = 1))
           LIMIT :rows)",
    ),
    // What was given up, or is for a sink that nobody configures any more; reports that nobody took, once their revision is gone.
    (
        "actions",
        "DELETE FROM outbox WHERE id IN (
           SELECT id FROM outbox WHERE asked_at < :before AND CASE WHEN run <> 'report' THEN due IS NULL OR key GLOB 'send/*'
             ELSE NOT EXISTS (SELECT 1 FROM revisions
               WHERE outbox.key GLOB 'report/' || repository || '/' || commit_id || '/*') END
           LIMIT :rows)",
    ),
    (
        "statuses",
        "DELETE FROM posted WHERE rowid IN (
           SELECT rowid FROM posted WHERE NOT EXISTS (SELECT 1 FROM revisions
             WHERE revisions.repository = posted.repository AND revisions.commit_id = posted.commit_id)
           LIMIT :rows)",
    ),
    // Events go by their age alone: whoever tells one again may have told a hundred others since.
    (
        "deliveries",
        "DELETE FROM deliveries WHERE (repository, id) IN (
           SELECT repository, id FROM (
             SELECT repository, id, at,
               row_number() OVER (PARTITION BY repository, id LIKE :kept_by_age ORDER BY at DESC, id) AS place
             FROM deliveries)
           WHERE at < :before OR (place > :most AND id NOT LIKE :kept_by_age)
           LIMIT :rows)",
    ),
    (
        "contents",
        "DELETE FROM contents WHERE number IN (
           SELECT number FROM contents
           WHERE NOT EXISTS (SELECT 1 FROM content_users WHERE content_users.content = contents.number)
           LIMIT :rows)",
    ),
];

/// Deletes what nothing needs any more, batch by batch; says how many rows of each kind went.
pub(super) async fn retain(writer: &Writer, retention: Retention) -> Result<Retained, CommitError> {
    let mut gone = Retained::new();
    for (kind, sql) in DELETIONS {
        loop {
            let rows = writer.perform(move |connection| delete(connection, sql, retention, BATCH)).await?;
            *gone.entry(kind).or_default() += rows;
            if rows < u64::from(BATCH) {
                break;
            }
        }
    }
    Ok(gone)
}

/// What [`retain`] would delete: it is deleted, counted and brought back, in one transaction.
pub(super) async fn superfluous(writer: &Writer, retention: Retention) -> Result<Retained, CommitError> {
    let count = move |connection: &Connection| {
        connection.execute_batch("SAVEPOINT superfluous")?;
        let gone = delete_all(connection, retention);
        connection.execute_batch("ROLLBACK TO superfluous; RELEASE superfluous")?;
        gone
    };
    writer.perform(count).await
}

pub(super) fn delete_all(connection: &Connection, retention: Retention) -> Result<Retained, Error> {
    let mut gone = Retained::new();
    for (kind, sql) in DELETIONS {
        *gone.entry(kind).or_default() += delete(connection, sql, retention, u32::MAX)?;
    }
    Ok(gone)
}

fn delete(connection: &Connection, sql: &str, retention: Retention, rows: u32) -> Result<u64, Error> {
    let mut statement = connection.prepare_cached(sql)?;
    for (name, value) in
        [(":before", retention.before.0), (":most", i64::from(retention.most)), (":rows", i64::from(rows))]
    {
        if let Some(index) = statement.parameter_index(name)? {
            statement.raw_bind_parameter(index, value)?;
        }
    }
    if let Some(index) = statement.parameter_index(":kept_by_age")? {
        statement.raw_bind_parameter(index, format!("{KEPT_BY_AGE}%"))?;
    }
    Ok(u64::try_from(statement.raw_execute()?).unwrap_or(u64::MAX))
}
