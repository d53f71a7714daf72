//! To which version somebody goes back. The one resolver, whoever asks: `rollout undo`, `rollback`, and what says before
//! what that would do.

use std::collections::BTreeMap;

use crate::error::Failure;
use crate::model::ids::CommitId;
use crate::model::rollback::{Past, RollbackTo};
use crate::model::state::ConfigState;
use crate::model::time::Timestamp;

/// When revisions were planned, as far as that is known.
pub(super) type Planned = BTreeMap<CommitId, Timestamp>;

/// The version to go back to.
///
/// # Errors
/// If there is none, or not any more.
pub(super) fn choose(
    history: &[Past],
    state: &ConfigState,
    to: &RollbackTo,
    planned: &Planned,
) -> Result<u32, Failure> {
    let name = &state.key.name;
    match to {
        RollbackTo::Version(version) => named(history, state, *version),
        RollbackTo::LastComplete => last_complete_before(history, state)
            .ok_or_else(|| Failure::stalled(format!("no previous deployment exists for `{name}`"))),
        RollbackTo::Revision(commit) => deployed_at(history, commit, planned).ok_or_else(|| {
            let message = format!("nothing of `{name}` was deployed when {} had been applied", commit.short());
            Failure::stalled(message).hint(listed(state))
        }),
    }
}

fn named(history: &[Past], state: &ConfigState, version: u32) -> Result<u32, Failure> {
    if history.iter().any(|past| past.version == version) {
        return Ok(version);
    }
    let name = &state.key.name;
    let message = match (1..=state.latest_version).contains(&version) {
        true => format!("version {version} of `{name}` is not in the history any more"),
        false => format!("there is no version {version} of `{name}`"),
    };
    Err(Failure::stalled(message).hint(listed(state)))
}

fn listed(state: &ConfigState) -> String {
    format!("`launchway history {} -s {}` lists what there is", state.object.target(), state.key.stage)
}

/// Where a later version was attempted, what serves is what was before it; else the last one that served before that, and was
/// something else: what serves may have been deployed again as it was.
fn last_complete_before(history: &[Past], state: &ConfigState) -> Option<u32> {
    let serving = state.serving.as_ref().map(|serving| serving.number);
    let serves_badly = history.iter().any(|past| Some(past.version) == serving && past.failed);
    if state.attempted.is_some() && serving.is_some() && !serves_badly {
        return serving;
    }
    let content = state.serving.as_ref().map(|serving| &serving.object.digest);
    let beside = state.beside.as_ref().map(|beside| &beside.version);
    if let Some(beside) = beside.filter(|beside| Some(&beside.object.digest) != content) {
        return Some(beside.number); // it is there, so that going back takes no time
    }
    let good = history.iter().filter(|past| past.is_good() && Some(&past.content) != content);
    good.map(|past| past.version).filter(|version| serving.is_none_or(|serving| *version < serving)).max()
}

/// The version that served once a revision had been applied: that of the newest revision up to it, and of this the newest
/// version. A revision that changed nothing, or whose deployment failed, left what was there.
fn deployed_at(history: &[Past], commit: &CommitId, planned: &Planned) -> Option<u32> {
    let until = *planned.get(commit)?;
    let since = |past: &Past| planned.get(&past.commit).copied().unwrap_or(past.created_at);
    let good = history.iter().filter(|past| past.is_good() && since(past) <= until);
    good.max_by_key(|past| (since(past), past.version)).map(|past| past.version)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::fixtures::{attempted, delivery, ended, serving};
    use crate::model::ids::Digest;
    use crate::model::outcome::Outcome;

    /// A history as a line: `C` is complete, `F` failed, `S` failed and serves all the same, `A` is what serves again, `.` was pruned;
    /// version 1 first, version *n* of revision *n*.
    fn history(line: &str) -> Vec<Past> {
        let past = |(place, phase): (usize, char)| {
            let version = u32::try_from(place + 1).expect("a short line");
            let (repository, commit) = ("repo".into(), revision(version));
            let created_at = Timestamp(i64::from(version) * 10);
            let (is_complete, failed) = (matches!(phase, 'C' | 'S' | 'A'), matches!(phase, 'F' | 'S'));
            let content = match phase {
                'A' => serving(version, "a").object.digest.clone(),
                _ => Digest::new(format!("of {version}")),
            };
            (phase != '.').then_some(Past { version, is_complete, failed, repository, commit, content, created_at })
        };
        line.chars().enumerate().filter_map(past).collect()
    }

    fn revision(number: u32) -> CommitId {
        format!("{number:07}").as_str().into()
    }

    /// Where versions up to `latest` were attempted and one serves; nothing, if that is 0.
    fn state(serves: u32, latest: u32) -> ConfigState {
        let by = ended(delivery("s1", "b"), Outcome::FAIL);
        let known = serving(latest - u32::from(latest > serves), "a");
        let mut state = if latest > serves { attempted(known, "b", &by, Some(Outcome::FAIL)) } else { known };
        match (serves, &mut state.serving) {
            (0, serving) => *serving = None,
            (_, Some(version)) => version.number = serves,
            (_, None) => {}
        }
        state
    }

    fn chosen(line: &str, state: &ConfigState, to: &RollbackTo) -> Result<u32, String> {
        let planned = (1..=9).map(|number| (revision(number), Timestamp(i64::from(number) * 10))).collect();
        choose(&history(line), state, to, &planned).map_err(|failure| failure.one_line())
    }

    #[test]
    fn the_last_complete_version_counts_and_no_failed_one() {
        for (line, serves, expected) in [
            ("CC", 2, Some(1)),
            ("CFFC", 4, Some(1)),
            ("C.FC", 4, Some(1)),
            ("CF", 1, Some(1)),
            ("CFF", 1, Some(1)), // a server that takes one off the latest version would deploy what failed
            ("CCF", 2, Some(2)),
            ("C", 1, None),
            ("FC", 2, None),
            ("FF", 0, None),
            ("CSS", 3, Some(1)), // what failed and serves all the same is nothing to go back to
            ("CSF", 2, Some(1)),
            ("SC", 2, None),
            ("CAA", 3, Some(1)), // what was bad is not gone back to because it was deployed again
            ("AA", 2, None),
        ] {
            let latest = u32::try_from(line.len()).expect("a short line");
            let found = chosen(line, &state(serves, latest), &RollbackTo::LastComplete);
            let none = || "no previous deployment exists for `web`".to_owned();
            assert_eq!(found, expected.ok_or_else(none), "{line} {serves}");
        }
    }

    #[test]
    fn a_version_that_is_named_is_taken_if_it_is_there() {
        let hint = "(`launchway history dc/web -s dev` lists what there is)";
        for (version, expected) in [
            (1, Ok(1)),
            (2, Ok(2)),
            (3, Err(format!("version 3 of `web` is not in the history any more {hint}"))),
            (9, Err(format!("there is no version 9 of `web` {hint}"))),
            (0, Err(format!("there is no version 0 of `web` {hint}"))),
        ] {
            assert_eq!(chosen("CF.C", &state(4, 4), &RollbackTo::Version(version)), expected);
        }
    }

    #[test]
    fn a_revision_means_what_served_once_it_had_been_applied() {
        for (line, number, expected) in [
            ("CCC", 2, Some(2)),
            ("CFC", 2, Some(1)), // its deployment failed
            ("C.C", 2, Some(1)),
            ("CC", 3, Some(2)), // it changed nothing here
            ("FC", 1, None),
        ] {
            let latest = u32::try_from(line.len()).expect("a short line");
            let found = chosen(line, &state(latest, latest), &RollbackTo::Revision(revision(number))).ok();
            assert_eq!(found, expected, "{line} {number}");
        }
        let unknown = chosen("CC", &state(2, 2), &RollbackTo::Revision("abcdefabc".into()));
        let hint = "(`launchway history dc/web -s dev` lists what there is)";
        assert_eq!(unknown, Err(format!("nothing of `web` was deployed when abcdefa had been applied {hint}")));
    }

    #[test]
    fn what_was_rolled_back_to_is_no_newer_revision() {
        let planned = |number: u32| (revision(number), Timestamp(i64::from(number) * 10));
        let mut past = history("CCC");
        past[2].commit = revision(1); // version 3 went back to version 1
        for (number, expected) in [(1, 3), (2, 2), (3, 2)] {
            let to = RollbackTo::Revision(revision(number));
            let found = choose(&past, &state(3, 3), &to, &(1..=3).map(planned).collect());
            assert_eq!(found.ok(), Some(expected), "{number}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_gone_back_to_that_never_served(line in "[CF.]{0,8}", last in "[CF]") {
            let line = line + &last;
            let latest = u32::try_from(line.len()).expect("a short line");
            let complete = |past: &&Past| past.is_good();
            let past = history(&line);
            let serves = past.iter().filter(complete).map(|past| past.version).max().unwrap_or(0);
            let found = chosen(&line, &state(serves, latest), &RollbackTo::LastComplete).ok();
            // The latest complete version below the last one that was attempted.
            let expected = past.iter().filter(complete).map(|past| past.version).filter(|it| *it < latest).max();
            prop_assert_eq!(found, expected);
            for number in 1..=9 {
                if let Ok(found) = chosen(&line, &state(serves, latest), &RollbackTo::Revision(revision(number))) {
                    let later = past.iter().filter(complete).any(|it| it.version > found && it.version <= number);
                    prop_assert!(found <= number && !later, "{} for revision {}", found, number);
                }
            }
        }
    }
}
