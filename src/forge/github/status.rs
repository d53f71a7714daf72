//! Statuses in GitHub's words.

use serde::{Deserialize, Serialize};

use crate::forge::hosted::{description, link};
use crate::forge::text::one_line;
use crate::model::commit_status::{CommitStatus, StatusState};

/// GitHub refuses longer ones.
pub(super) const DESCRIPTION_LIMIT: usize = 140;

/// Contexts are compared whole by branch protections; ours are made of names, which are shorter.
const CONTEXT_LIMIT: usize = 255;

/// One context of a commit, as it is sent and as it is read back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct GithubStatus {
    pub(super) state: String,
    /// GitHub takes the same word in other cases for the same context.
    pub(super) context: String,
    #[serde(default, deserialize_with = "absent_is_empty")]
    pub(super) description: String,
    #[serde(default, deserialize_with = "absent_is_empty", skip_serializing_if = "String::is_empty")]
    pub(super) target_url: String,
}

impl PartialEq for GithubStatus {
    fn eq(&self, other: &Self) -> bool {
        let seen = |status: &Self| (status.state.clone(), status.description.clone(), status.target_url.clone());
        self.context.eq_ignore_ascii_case(&other.context) && seen(self) == seen(other)
    }
}

pub(super) fn absent_is_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A status as GitHub takes it. `public_url` is the daemon's public address, if it has one.
pub(super) fn rendered(status: &CommitStatus, public_url: Option<&str>) -> GithubStatus {
    GithubStatus {
        state: state(status.state).to_owned(),
        context: one_line(&status.context, CONTEXT_LIMIT),
        description: description(status, DESCRIPTION_LIMIT),
        target_url: link(status, public_url),
    }
}

/// GitHub has no word for what was not reached or was superseded: only what had nothing to do may be green.
fn state(state: StatusState) -> &'static str {
    match state {
        StatusState::Pending | StatusState::Running => "pending",
        StatusState::Success | StatusState::Unchanged => "success",
        StatusState::Failure | StatusState::Cancelled | StatusState::Skipped => "failure",
        StatusState::Error => "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: StatusState, description: &str) -> CommitStatus {
        CommitStatus {
            path: Some("/runs/01ABC".to_owned()),
            ..CommitStatus::new(
                "1111111111111111111111111111111111111111".into(),
                "launchway/dev/web",
                state,
                description,
            )
        }
    }

    #[test]
    fn only_what_ended_well_or_had_nothing_to_do_is_green() {
        for (state, expected) in [
            (StatusState::Pending, "pending"),
            (StatusState::Running, "pending"),
            (StatusState::Success, "success"),
            (StatusState::Unchanged, "success"),
            (StatusState::Failure, "failure"),
            (StatusState::Cancelled, "failure"),
            (StatusState::Skipped, "failure"),
            (StatusState::Error, "error"),
        ] {
            assert_eq!(rendered(&status(state, ""), None).state, expected, "{state}");
        }
    }

    #[test]
    fn the_body_is_githubs() {
        let text = format!("{}🚢 and more", "x".repeat(139));
        let sent = rendered(&status(StatusState::Failure, &text), Some("https://deploy.example"));
        let expected = format!(
            r#"{{"state":"failure","context":"launchway/dev/web","description":"{}…","target_url":"https://deploy.example/runs/01ABC"}}"#,
            "x".repeat(139)
        );
        assert_eq!(serde_json::to_string(&sent).unwrap(), expected);
        let read =
            r#"{"id": 1, "state": "success", "context": "Launchway/Dev/Web", "description": null, "target_url": null}"#;
        assert_eq!(
            serde_json::from_str::<GithubStatus>(read).unwrap(),
            rendered(&status(StatusState::Success, ""), None)
        );
    }
}
