//! Statuses in the words of Azure DevOps.

use serde::{Deserialize, Serialize};

use crate::forge::hosted::{description, link};
use crate::forge::text::one_line;
use crate::model::commit_status::{CommitStatus, StatusState};

/// Shown in one line.
const LIMIT: usize = 255;

/// One context of a commit, as it is sent and as it is read back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AzureStatus {
    pub(super) state: String,
    pub(super) context: Context,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) target_url: Option<String>,
}

/// A context in two parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Context {
    /// What stands before the first slash: `launchway`.
    #[serde(default)]
    pub(super) genre: Option<String>,
    /// What stands behind it.
    pub(super) name: String,
}

/// A status as Azure DevOps takes it. `public_url` is the daemon's public address, if it has one.
pub(super) fn rendered(status: &CommitStatus, public_url: Option<&str>) -> AzureStatus {
    let context = one_line(&status.context, LIMIT);
    let (genre, name) = context.split_once('/').map_or((None, context.as_str()), |(genre, name)| (Some(genre), name));
    AzureStatus {
        state: state(status.state).to_owned(),
        context: Context { genre: genre.map(str::to_owned), name: name.to_owned() },
        description: Some(description(status, LIMIT)).filter(|text| !text.is_empty()),
        target_url: Some(link(status, public_url)).filter(|link| !link.is_empty()),
    }
}

fn state(state: StatusState) -> &'static str {
    match state {
        StatusState::Pending | StatusState::Running => "pending",
        StatusState::Success => "succeeded",
        StatusState::Failure => "failed",
        StatusState::Error => "error",
        StatusState::Cancelled | StatusState::Skipped | StatusState::Unchanged => "notApplicable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: StatusState) -> CommitStatus {
        CommitStatus {
            path: Some("/runs/7".to_owned()),
            ..CommitStatus::new("1111".into(), "launchway/dev/web", state, "version 2 serves")
        }
    }

    #[test]
    fn the_body_is_that_of_azure_devops() {
        let sent = rendered(&status(StatusState::Success), Some("https://deploy.example"));
        let expected = r#"{"state":"succeeded","context":{"genre":"launchway","name":"dev/web"},"description":"version 2 serves","targetUrl":"https://deploy.example/runs/7"}"#;
        assert_eq!(serde_json::to_string(&sent).unwrap(), expected);
        assert_eq!(serde_json::from_str::<AzureStatus>(expected).unwrap(), sent);
    }

    #[test]
    fn what_did_not_happen_is_not_applicable() {
        for (state, expected) in [
            (StatusState::Pending, "pending"),
            (StatusState::Running, "pending"),
            (StatusState::Success, "succeeded"),
            (StatusState::Failure, "failed"),
            (StatusState::Error, "error"),
            (StatusState::Cancelled, "notApplicable"),
            (StatusState::Skipped, "notApplicable"),
            (StatusState::Unchanged, "notApplicable"),
        ] {
            assert_eq!(rendered(&status(state), None).state, expected, "{state}");
        }
    }
}
