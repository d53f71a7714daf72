//! Statuses in GitLab's words.

use serde::{Deserialize, Serialize};

use crate::forge::hosted::{description, link};
use crate::forge::text::one_line;
use crate::model::commit_status::{CommitStatus, StatusState};

/// GitLab refuses longer ones.
const LIMIT: usize = 255;

/// One context of a commit, as it is sent and as it is read back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct GitlabStatus {
    /// Named `state` in what is sent and `status` in what is read.
    #[serde(alias = "status")]
    pub(super) state: String,
    pub(super) name: String,
    #[serde(default, deserialize_with = "absent_is_empty")]
    pub(super) description: String,
    #[serde(default, deserialize_with = "absent_is_empty", skip_serializing_if = "String::is_empty")]
    pub(super) target_url: String,
    /// The pipeline that it stands in; GitLab would make another one for each writer that does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pipeline_id: Option<u64>,
    /// The branch, without which GitLab guesses one.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub(super) branch: Option<String>,
}

impl PartialEq for GitlabStatus {
    /// GitLab takes a new description or link only together with a new state.
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.state) == (&other.name, &other.state)
    }
}

fn absent_is_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A status as GitLab takes it. `public_url` is the daemon's public address, if it has one.
pub(super) fn rendered(status: &CommitStatus, public_url: Option<&str>, branch: Option<&str>) -> GitlabStatus {
    GitlabStatus {
        state: state(status.state).to_owned(),
        name: one_line(&status.context, LIMIT),
        description: description(status, LIMIT),
        target_url: link(status, public_url),
        pipeline_id: None,
        branch: branch.map(str::to_owned),
    }
}

fn state(state: StatusState) -> &'static str {
    match state {
        StatusState::Pending => "pending",
        StatusState::Running => "running",
        StatusState::Success | StatusState::Unchanged => "success",
        StatusState::Failure | StatusState::Error => "failed",
        StatusState::Cancelled | StatusState::Skipped => "canceled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_gitlabs() {
        for (state, expected) in [
            (StatusState::Pending, "pending"),
            (StatusState::Running, "running"),
            (StatusState::Success, "success"),
            (StatusState::Unchanged, "success"),
            (StatusState::Failure, "failed"),
            (StatusState::Error, "failed"),
            (StatusState::Cancelled, "canceled"),
            (StatusState::Skipped, "canceled"),
        ] {
            assert_eq!(super::state(state), expected, "{state}");
        }
    }

    #[test]
    fn the_body_is_gitlabs() {
        let status = CommitStatus {
            path: Some("/runs/01ABC".to_owned()),
            ..CommitStatus::new("1111".into(), "launchway/dev", StatusState::Running, "web version 2 is Running")
        };
        let sent =
            GitlabStatus { pipeline_id: Some(7), ..rendered(&status, Some("https://deploy.example"), Some("main")) };
        let expected = r#"{"state":"running","name":"launchway/dev","description":"web version 2 is Running","target_url":"https://deploy.example/runs/01ABC","pipeline_id":7,"ref":"main"}"#;
        assert_eq!(serde_json::to_string(&sent).unwrap(), expected);
        let read = r#"{"id":1,"status":"running","name":"launchway/dev","description":null,"target_url":null,"pipeline_id":7,"ref":"main"}"#;
        assert_eq!(serde_json::from_str::<GitlabStatus>(read).unwrap(), sent, "the rest cannot be changed alone");
    }
}
