//! Progress of a revision, told as it happens.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::client::Client;
use super::output::{Exit, Outcome, Output, colored};
use crate::server::view::{RepositoryView, RevisionView};

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

/// Prints every change of a revision's statuses until nothing more will happen, or patience ends. As long as the revision is
/// not known, whoever follows has a sync under way.
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
        let is_synced = revision.is_some();
        let allowed = if is_synced { patience.whole } else { patience.first };
        if let Some(revision) = revision {
            for line in news(&mut told, &revision) {
                output.line(line)?;
            }
            if revision.is_settled() {
                waits(&revision).into_iter().try_for_each(|line| output.line(line))?;
                return Ok(exit(&revision));
            }
        }
        if started.elapsed() > allowed {
            output.line(match is_synced {
                true => "it goes on without us; `launchway status` tells how it ends".to_owned(),
                false => under_way(problem(client, repository).await?.as_deref()),
            })?;
            return Ok(Exit::Failed); // as for `status --wait`
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// What is known to be wrong with a repository; hooks are not told.
async fn problem(client: &Client, repository: &str) -> Outcome<Option<String>> {
    if client.is_for_hooks() {
        return Ok(None);
    }
    let known: Option<RepositoryView> = client.find(&format!("repositories/{repository}")).await?;
    Ok(known.and_then(|repository| repository.problem))
}

/// Why a revision is not known yet whose sync has not come to its end.
fn under_way(problem: Option<&str>) -> String {
    let before = problem.map(|problem| format!("; what is known to be wrong: {problem}")).unwrap_or_default();
    format!("the sync is still under way; `launchway status` tells what becomes of it{before}")
}

/// What a revision that has come to rest waits for, a line each.
pub(super) fn waits(revision: &RevisionView) -> Vec<String> {
    revision.waits.iter().map(|wait| format!("waits for a person: {} ({})", wait.message, wait.hint)).collect()
}

/// How it has come to rest: what waits for a person is not done.
pub(super) fn exit(revision: &RevisionView) -> Exit {
    if revision.is_good() { Exit::Good } else { Exit::Failed }
}

/// The lines that were not told yet, warnings first; `told` remembers them by place.
fn news(told: &mut BTreeMap<String, String>, revision: &RevisionView) -> Vec<String> {
    let warnings = revision.warnings.iter().map(|warning| (warning.clone(), warning.clone()));
    let statuses = revision.statuses.iter().map(|status| {
        let place = status.place();
        let line = format!("{} {place} {}", colored(&status.state), status.description);
        (place, line)
    });
    let is_news =
        |(place, line): (String, String)| (told.insert(place, line.clone()).as_ref() != Some(&line)).then_some(line);
    warnings.chain(statuses).filter_map(is_news).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::view::{StatusView, WaitView};

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
            warnings: Vec::new(),
            statuses: states.iter().map(status).collect(),
            goes_on: false,
            waits: Vec::new(),
        }
    }

    #[test]
    fn a_line_is_told_once_until_it_changes() {
        let mut told = BTreeMap::new();
        assert_eq!(news(&mut told, &revision(&[("a", "pending"), ("b", "pending")])).len(), 2);
        assert_eq!(news(&mut told, &revision(&[("a", "pending"), ("b", "success")])).len(), 1);
        assert_eq!(news(&mut told, &revision(&[("a", "pending"), ("b", "success")])).len(), 0);
        let warned = RevisionView {
            warnings: vec!["a.yaml:1:2: warning: x".into()],
            ..revision(&[("a", "pending"), ("b", "success")])
        };
        assert_eq!(news(&mut told, &warned), ["a.yaml:1:2: warning: x"]);
        assert_eq!(news(&mut told, &warned).len(), 0);
    }

    #[test]
    fn a_sync_that_takes_long_is_said_to_with_what_is_known() {
        let alone = "the sync is still under way; `launchway status` tells what becomes of it";
        assert_eq!(under_way(None), alone);
        let told = under_way(Some("cannot reach `x`"));
        assert_eq!(told, format!("{alone}; what is known to be wrong: cannot reach `x`"));
    }

    #[test]
    fn what_nobody_has_started_yet_is_no_failure_and_what_else_waits_is_not_done() {
        assert!(!revision(&[]).is_settled(), "it was not synced yet");
        assert!(!RevisionView { goes_on: true, ..revision(&[("a", "success")]) }.is_settled());
        assert!(revision(&[("a", "success"), ("b", "pending")]).is_settled());
        let waits = |states, kinds: &[&str]| {
            let wait =
                |kind: &&str| WaitView { kind: (*kind).into(), message: "it waits".into(), hint: "do this".into() };
            RevisionView { waits: kinds.iter().map(wait).collect(), ..revision(states) }
        };
        for (states, kinds, expected) in [
            (&[("a", "success")], &[][..], Exit::Good),
            (&[("a", "failure")], &[], Exit::Failed),
            (&[("a", "success")], &["byHand"], Exit::Good),
            (&[("a", "failure")], &["byHand"], Exit::Failed),
            (&[("a", "success")], &["hold", "byHand"], Exit::Failed),
            (&[("a", "pending")], &["paused"], Exit::Failed),
            (&[("a", "success")], &["down"], Exit::Failed),
        ] {
            let revision = waits(states, kinds);
            assert_eq!(exit(&revision), expected, "{revision:?}");
            assert_eq!(super::waits(&revision).len(), kinds.len());
        }
        assert_eq!(super::waits(&waits(&[], &["down"])), ["waits for a person: it waits (do this)"]);
    }
}
