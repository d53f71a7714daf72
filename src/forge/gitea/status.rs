//! Statuses in Gitea's words.

use serde::{Deserialize, Serialize};

use crate::forge::hosted::{description, link};
use crate::forge::text::one_line;
use crate::model::commit_status::{CommitStatus, StatusState};

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
    pub(super) fn render(self, status: &CommitStatus) -> GiteaStatus {
        GiteaStatus {
            state: self.state(status.state).to_owned(),
            context: one_line(&status.context, CONTEXT_LIMIT),
            description: description(status, DESCRIPTION_LIMIT),
            target_url: link(status, self.public_url),
        }
    }

    /// Gitea takes any word here and shows what it does not know as pending for ever.
    fn state(self, state: StatusState) -> &'static str {
        match state {
            StatusState::Pending | StatusState::Running => "pending",
            StatusState::Success => "success",
            StatusState::Failure | StatusState::Cancelled => "failure",
            StatusState::Error => "error",
            StatusState::Skipped | StatusState::Unchanged if self.knows_skipped => "skipped",
            StatusState::Skipped => "failure",
            StatusState::Unchanged => "success",
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
            (StatusState::Skipped, "skipped", "failure"),
            (StatusState::Unchanged, "skipped", "success"),
        ];
        for (state, on_new, on_old) in cases {
            assert_eq!((new.state(state), old.state(state)), (on_new, on_old), "{state}");
        }
    }

    #[test]
    fn a_description_is_one_line_that_fits() {
        let rendering = Rendering { public_url: None, knows_skipped: true };
        let (long, cut) = (format!("{}🚢🚢", "x".repeat(254)), format!("{}…", "x".repeat(254)));
        for (text, expected) in [("exit code 1\nno such table", "exit code 1 no such table"), (&long, &cut)] {
            let status = CommitStatus::new("1111".into(), "launchway/dev", StatusState::Failure, text);
            assert_eq!(rendering.render(&status).description, expected);
        }
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
