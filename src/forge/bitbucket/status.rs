//! Statuses in Bitbucket's words.

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::forge::hosted::{description, link};
use crate::forge::text::one_line;
use crate::model::commit_status::{CommitStatus, StatusState};

/// A longer key is refused by Bitbucket Cloud.
const KEY_LIMIT: usize = 40;

/// How much of a longer context is left readable in its key; the rest tells it from others.
const READABLE: usize = 31;

/// Names and descriptions are shown in one line.
const LIMIT: usize = 255;

/// One context of a commit, as it is sent and as it is read back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BitbucketStatus {
    /// The same key again takes the place of what was there.
    pub(super) key: String,
    pub(super) state: String,
    #[serde(default)]
    pub(super) name: String,
    /// Bitbucket wants one in any case.
    #[serde(default)]
    pub(super) url: String,
    #[serde(default)]
    pub(super) description: String,
}

/// A status as Bitbucket takes it, whose word for what was stopped is `stopped`. Where the daemon has no public address,
/// it leads to the commit's own page.
pub(super) fn rendered(
    status: &CommitStatus,
    public_url: Option<&str>,
    commit_page: &str,
    stopped: &str,
) -> BitbucketStatus {
    let linked = link(status, public_url);
    BitbucketStatus {
        key: key(&status.context),
        state: state(status.state, stopped).to_owned(),
        name: one_line(&status.context, LIMIT),
        url: if linked.is_empty() { commit_page.to_owned() } else { linked },
        description: description(status, LIMIT),
    }
}

fn state(state: StatusState, stopped: &str) -> &str {
    match state {
        StatusState::Pending | StatusState::Running => "INPROGRESS",
        StatusState::Success | StatusState::Unchanged => "SUCCESSFUL",
        StatusState::Failure | StatusState::Error => "FAILED",
        StatusState::Cancelled | StatusState::Skipped => stopped,
    }
}

/// A context, or what is readable of it and the beginning of its digest.
fn key(context: &str) -> String {
    if context.len() <= KEY_LIMIT && context.is_ascii() {
        return context.to_owned();
    }
    let readable: String = context.chars().filter(char::is_ascii).take(READABLE).collect();
    let digest = digest(&SHA256, context.as_bytes());
    let hex: String = digest.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{readable}-{hex}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_body_is_bitbuckets() {
        let status = CommitStatus::new("1111".into(), "launchway/dev/web/pre", StatusState::Cancelled, "by ann");
        let sent = rendered(&status, None, "https://bitbucket.org/acme/shop/commits/1111", "STOPPED");
        let expected = r#"{"key":"launchway/dev/web/pre","state":"STOPPED","name":"launchway/dev/web/pre","url":"https://bitbucket.org/acme/shop/commits/1111","description":"cancelled: by ann"}"#;
        assert_eq!(serde_json::to_string(&sent).unwrap(), expected);
    }

    #[test]
    fn only_what_ended_well_or_had_nothing_to_do_is_green() {
        for (state, expected) in [
            (StatusState::Pending, "INPROGRESS"),
            (StatusState::Running, "INPROGRESS"),
            (StatusState::Success, "SUCCESSFUL"),
            (StatusState::Unchanged, "SUCCESSFUL"),
            (StatusState::Failure, "FAILED"),
            (StatusState::Error, "FAILED"),
            (StatusState::Cancelled, "CANCELLED"),
            (StatusState::Skipped, "CANCELLED"),
        ] {
            assert_eq!(super::state(state, "CANCELLED"), expected, "{state}");
        }
    }

    proptest! {
        #[test]
        fn keys_fit_and_differ(contexts in proptest::collection::btree_set("launchway/[a-zé/-]{0,60}", 1..20)) {
            let keys: BTreeSet<String> = contexts.iter().map(|context| key(context)).collect();
            prop_assert_eq!(keys.len(), contexts.len());
            prop_assert!(keys.iter().all(|key| key.len() <= KEY_LIMIT && key.is_ascii()));
        }
    }
}
