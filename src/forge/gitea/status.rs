//! Statuses in Gitea's words.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::forge::text::one_line;
use crate::model::commit_status::{CommitStatus, StatusState};
use crate::model::ids::CommitId;

/// Gitea stores descriptions of any length and shows them in one table cell; other hosts cut at this length too.
const DESCRIPTION_LIMIT: usize = 255;

/// Contexts are compared whole by branch protections; ours are made of names, which are shorter.
const CONTEXT_LIMIT: usize = 255;

/// The first version that knows the state `skipped`.
const FIRST_WITH_SKIPPED: (u64, u64) = (1, 25);

/// One context of a commit, as it is sent and as it is read back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GiteaStatus {
    /// Named `state` in what is sent and `status` in what is read.
    #[serde(alias = "status")]
    pub(super) state: String,
    pub(super) context: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) target_url: String,
}

/// What this server, and this daemon, make of a status.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rendering<'a> {
    /// The daemon's public address, if it has one.
    pub(super) public_url: Option<&'a str>,
    /// Whether the server knows the state `skipped`.
    pub(super) knows_skipped: bool,
}

impl Rendering<'_> {
    /// What is to be visible on each commit, in the order of writing. Of several statuses of one context only the last
    /// is: it is what a reader would see, and writing an earlier one again after a failure would take it back.
    pub(super) fn by_commit(self, statuses: &[CommitStatus]) -> Vec<(&CommitId, Vec<GiteaStatus>)> {
        let last: HashMap<_, _> =
            statuses.iter().enumerate().map(|(index, status)| ((&status.commit, &status.context), index)).collect();
        let mut commits: Vec<(&CommitId, Vec<GiteaStatus>)> = Vec::new();
        for (index, status) in statuses.iter().enumerate() {
            if last.get(&(&status.commit, &status.context)) != Some(&index) {
                continue;
            }
            let rendered = self.render(status);
            match commits.iter_mut().find(|(commit, _)| *commit == &status.commit) {
                Some((_, wanted)) => wanted.push(rendered),
                None => commits.push((&status.commit, vec![rendered])),
            }
        }
        commits
    }

    fn render(self, status: &CommitStatus) -> GiteaStatus {
        let description = match status.state {
            StatusState::Cancelled if !status.description.starts_with("cancelled") => {
                format!("cancelled: {}", status.description)
            }
            _ => status.description.clone(),
        };
        let target_url = match (self.public_url, &status.path) {
            (Some(base), Some(path)) => format!("{}/{}", base.trim_end_matches('/'), path.trim_start_matches('/')),
            _ => String::new(),
        };
        GiteaStatus {
            state: self.state(status.state).to_owned(),
            context: one_line(&status.context, CONTEXT_LIMIT),
            description: one_line(description.trim_end_matches([':', ' ']), DESCRIPTION_LIMIT),
            target_url,
        }
    }

    /// Gitea takes any word here and shows what it does not know as pending for ever.
    fn state(self, state: StatusState) -> &'static str {
        match state {
            StatusState::Pending | StatusState::Running => "pending",
            StatusState::Success => "success",
            StatusState::Failure | StatusState::Cancelled => "failure",
            StatusState::Error => "error",
            StatusState::Skipped if self.knows_skipped => "skipped",
            StatusState::Skipped => "success",
        }
    }
}

/// Whether a server of this version knows the state `skipped`. Forgejo names the version of Gitea that it is compatible
/// with at the end of its own, as in `11.0.1+gitea-1.22.0`.
pub(super) fn knows_skipped(version: &str) -> bool {
    let version = version.rsplit_once("gitea-").map_or(version, |(_, gitea)| gitea);
    let mut numbers = version.split(['.', '-', '+']).map(|part| part.parse::<u64>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= FIRST_WITH_SKIPPED,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "1111111111111111111111111111111111111111";
    const OTHER: &str = "2222222222222222222222222222222222222222";

    fn status(commit: &str, context: &str, state: StatusState, description: &str) -> CommitStatus {
        CommitStatus {
            commit: CommitId::from(commit),
            context: context.to_owned(),
            state,
            description: description.to_owned(),
            path: Some("/runs/01ABC".to_owned()),
            attempt: 1,
        }
    }

    #[test]
    fn states_are_gitea_s() {
        let new = Rendering { public_url: None, knows_skipped: true };
        let old = Rendering { public_url: None, knows_skipped: false };
        let cases = [
            (StatusState::Pending, "pending", "pending"),
            (StatusState::Running, "pending", "pending"),
            (StatusState::Success, "success", "success"),
            (StatusState::Failure, "failure", "failure"),
            (StatusState::Error, "error", "error"),
            (StatusState::Cancelled, "failure", "failure"),
            (StatusState::Skipped, "skipped", "success"),
        ];
        for (state, on_new, on_old) in cases {
            assert_eq!((new.state(state), old.state(state)), (on_new, on_old), "{state}");
        }
    }

    #[test]
    fn descriptions_are_one_line_and_say_that_something_was_cancelled() {
        let rendering = Rendering { public_url: None, knows_skipped: true };
        let long = format!("{}🚢🚢", "x".repeat(254));
        let cut = format!("{}…", "x".repeat(254));
        let cases = [
            (StatusState::Failure, "exit code 1\nno such table", "exit code 1 no such table"),
            (StatusState::Cancelled, "by a newer revision", "cancelled: by a newer revision"),
            (StatusState::Cancelled, "cancelled by ann", "cancelled by ann"),
            (StatusState::Cancelled, "", "cancelled"),
            (StatusState::Success, &long, &cut),
        ];
        for (state, description, expected) in cases {
            assert_eq!(rendering.render(&status(COMMIT, "launchway/dev", state, description)).description, expected);
        }
    }

    #[test]
    fn a_status_links_to_its_page_only_if_there_is_a_public_address() {
        let success = status(COMMIT, "launchway/dev", StatusState::Success, "");
        let link = |public_url| Rendering { public_url, knows_skipped: true }.render(&success).target_url;
        assert_eq!(link(Some("https://deploy.example/")), "https://deploy.example/runs/01ABC");
        assert_eq!(link(Some("https://example/deploy")), "https://example/deploy/runs/01ABC");
        assert_eq!(link(None), "");
    }

    #[test]
    fn the_last_status_of_a_context_counts_and_commits_keep_their_order() {
        let rendering = Rendering { public_url: None, knows_skipped: true };
        let statuses = [
            status(COMMIT, "launchway/plan", StatusState::Pending, "1"),
            status(OTHER, "launchway/plan", StatusState::Success, "2"),
            status(COMMIT, "launchway/dev", StatusState::Success, "3"),
            status(COMMIT, "launchway/plan", StatusState::Success, "4"),
        ];
        let visible: Vec<(&str, Vec<String>)> = rendering
            .by_commit(&statuses)
            .into_iter()
            .map(|(commit, statuses)| (commit.as_str(), statuses.into_iter().map(|s| s.description).collect()))
            .collect();
        let expected = [(OTHER, vec!["2".to_owned()]), (COMMIT, vec!["3".to_owned(), "4".to_owned()])];
        assert_eq!(visible, expected);
    }

    #[test]
    fn the_version_tells_whether_skipped_is_known() {
        let cases = [
            ("1.26.4", true),
            ("1.25.0", true),
            ("1.25.0+dev-12-gabcdef", true),
            ("2.0.0", true),
            ("1.24.7", false),
            ("11.0.1+gitea-1.22.0", false),
            ("14.0.0+gitea-1.26.0", true),
            ("development", false),
            ("", false),
        ];
        for (version, expected) in cases {
            assert_eq!(knows_skipped(version), expected, "{version}");
        }
    }

    #[test]
    fn what_is_sent_and_what_is_read_back_compare_equal() {
        let sent = GiteaStatus {
            state: "success".to_owned(),
            context: "launchway/dev".to_owned(),
            description: "3 services".to_owned(),
            target_url: String::new(),
        };
        let read =
            r#"{"id":7,"status":"success","context":"launchway/dev","description":"3 services","target_url":""}"#;
        assert_eq!(serde_json::from_str::<GiteaStatus>(read).unwrap(), sent);
        assert_eq!(
            serde_json::to_string(&sent).unwrap(),
            r#"{"state":"success","context":"launchway/dev","description":"3 services","target_url":""}"#
        );
    }
}
