//! Progress of a revision, told as it happens.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::client::Client;
use super::output::{Exit, Outcome, Output, colored};
use crate::server::view::RevisionView;

/// How often it asks.
const PERIOD: Duration = Duration::from_millis(200);

/// How long to follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Until the revision must have been synced.
    pub(super) first: Duration,
    /// Until its end.
    pub(super) whole: Duration,
}

/// Prints every change of a revision's statuses until nothing more will happen, or patience ends.
pub(super) async fn follow(
    client: &Client,
    repository: &str,
    commit: &str,
    patience: Patience,
    output: &mut Output,
) -> Outcome {
    let started = Instant::now();
    let mut told = BTreeMap::new();
    loop {
        let revision: Option<RevisionView> = client.find(&format!("revisions/{repository}/{commit}")).await?;
        let allowed = if revision.is_some() { patience.whole } else { patience.first };
        if let Some(revision) = revision {
            for line in news(&mut told, &revision) {
                output.line(line)?;
            }
            if revision.is_settled() {
                return Ok(if revision.has_failed() { Exit::Failed } else { Exit::Good });
            }
        }
        if started.elapsed() > allowed {
            output.line(match told.is_empty() {
                true => "it was not synced in time: is it pushed to the branch that is watched?",
                false => "it goes on without us; `launchway status` tells how it ends",
            })?;
            return Ok(Exit::Failed); // as for `status --wait`
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// The lines that were not told yet; `told` remembers them by place.
fn news(told: &mut BTreeMap<String, String>, revision: &RevisionView) -> Vec<String> {
    let mut lines = Vec::new();
    for status in &revision.statuses {
        let line = format!("{} {} {}", colored(&status.state), status.place(), status.description);
        if told.insert(status.place(), line.clone()).as_ref() != Some(&line) {
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::view::StatusView;

    fn revision(states: &[(&str, &str)]) -> RevisionView {
        let status = |(context, state): &(&str, &str)| StatusView {
            context: (*context).to_owned(),
            commit: None,
            state: (*state).to_owned(),
            description: String::new(),
            path: None,
            attempt: 1,
        };
        RevisionView {
            repository: "shop".into(),
            commit: "1a2b".into(),
            subject: "x".into(),
            at: "2026-11-21T08:00:00Z".into(),
            result: "planned".into(),
            plan: None,
            carriers: Vec::new(),
            problems: Vec::new(),
            statuses: states.iter().map(status).collect(),
        }
    }

    #[test]
    fn a_line_is_told_once_until_it_changes() {
        let mut told = BTreeMap::new();
        assert_eq!(news(&mut told, &revision(&[("a", "pending"), ("b", "pending")])).len(), 2);
        assert_eq!(news(&mut told, &revision(&[("a", "pending"), ("b", "success")])).len(), 1);
        assert_eq!(news(&mut told, &revision(&[("a", "pending"), ("b", "success")])).len(), 0);
    }

    #[test]
    fn a_revision_is_settled_when_nothing_is_pending() {
        assert!(!revision(&[]).is_settled());
        assert!(!revision(&[("a", "success"), ("b", "running")]).is_settled());
        assert!(revision(&[("a", "success"), ("b", "skipped")]).is_settled());
        assert!(revision(&[("a", "failure")]).has_failed());
    }
}
