//! What calls say that happened beside pushes to the watched branch: tags, and merged pull requests.

use serde_json::Value;

use super::Host;
use super::push::{Update, commit, full_ref};
use crate::model::git_event::{GitEvent, GitEventKind};

/// The calls of one host about merged pull requests.
#[derive(Clone, Copy, Debug)]
pub struct Merges {
    /// The names of their events.
    pub(in crate::forge) events: &'static [&'static str],
    /// What such a call says; nothing, if that is not a merge.
    pub(in crate::forge) read: fn(&Value) -> Option<Merge>,
}

/// A pull request that was merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::forge) struct Merge {
    /// The ref in full that it was merged into.
    pub(in crate::forge) into: Option<String>,
    /// Where that is since.
    pub(in crate::forge) commit: Option<String>,
    pub(in crate::forge) number: Option<u64>,
}

impl Merges {
    /// A host that tells of none.
    pub(in crate::forge) const NONE: Self = Self { events: &[], read: |_| None };
}

/// The branch with the name at a pointer, in full.
pub(in crate::forge) fn branch(payload: &Value, pointer: &str) -> Option<String> {
    full_ref(payload.pointer(pointer)?.as_str()?.to_owned(), Some("branch"))
}

/// A merge in the words of GitHub, which its relatives share.
pub(in crate::forge) fn closed_as_merged(payload: &Value) -> Option<Merge> {
    let is_merged = payload.get("action")? == "closed" && payload.pointer("/pull_request/merged")? == true;
    is_merged.then(|| Merge {
        into: branch(payload, "/pull_request/base/ref"),
        commit: commit(payload, "/pull_request/merge_commit_sha"),
        number: payload.get("number").and_then(Value::as_u64),
    })
}

/// What happened by a call that names an event: in which tags came or moved, or which pull request was merged into the
/// watched branch.
pub(super) fn happened(
    host: Host,
    event: &str,
    payload: &Value,
    updates: &[Update],
    watched: Option<&str>,
) -> Vec<GitEvent> {
    let dialect = host.dialect();
    if dialect.pushes.contains(&event) || dialect.tags.contains(&event) {
        return updates.iter().filter_map(tag).collect();
    }
    let merge = dialect.merges.events.contains(&event).then(|| (dialect.merges.read)(payload)).flatten();
    let merge = merge.filter(|merge| watched.is_some() && merge.into.as_deref() == watched);
    merge.and_then(merged).into_iter().collect()
}

fn tag(update: &Update) -> Option<GitEvent> {
    let (reference, commit) = (update.reference.clone()?, update.after.as_ref()?.to_ascii_lowercase());
    let event = GitEvent::tag(reference, commit);
    let is_gone = event.commit.as_ref().is_some_and(|commit| commit.bytes().all(|digit| digit == b'0'));
    (event.tag_name().is_some() && !is_gone).then_some(event)
}

/// It has to be told apart from others.
fn merged(Merge { into, commit, number }: Merge) -> Option<GitEvent> {
    let is_known = commit.is_some() || number.is_some();
    let kind = GitEventKind::PullRequestMerged;
    Some(GitEvent { kind, reference: into.filter(|_| is_known)?, commit, number })
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};
    use serde_json::json;

    use super::super::{Call, EventName, Interest, Watching, interpret};
    use super::*;

    const COMMIT: &str = "6113728f27ae82c7b1a177c8d03f9e96e0adf246";
    const ZERO: &str = "0000000000000000000000000000000000000000";

    /// What a host's call says, and whether it is of interest to whoever looks at pushes alone.
    fn told(host: Host, event: &str, body: &Value) -> (Vec<GitEvent>, Interest) {
        let mut headers = HeaderMap::new();
        if let EventName::Header(header) = host.dialect().event {
            headers.insert(HeaderName::from_static(header), HeaderValue::from_str(event).unwrap());
        }
        let call = Call::read(host, body.to_string().as_bytes()).unwrap();
        let verdict = interpret(host, &headers, &call, Watching { branch: Some("main"), ..Watching::default() });
        (verdict.happened, verdict.interest)
    }

    #[test]
    fn tags_are_told_by_every_host() {
        let push = json!({"ref": "refs/tags/v1", "before": ZERO, "after": COMMIT});
        let cloud = json!({"push": {"changes": [
            {"old": null, "new": {"type": "branch", "name": "main", "target": {"hash": COMMIT}}},
            {"old": null, "new": {"type": "tag", "name": "v1", "target": {"hash": COMMIT}}},
        ]}});
        let data_center = json!({"changes": [{"ref": {"id": "refs/tags/v1"}, "fromHash": ZERO, "toHash": COMMIT}]});
        let update = json!({"name": "refs/tags/v1", "oldObjectId": ZERO, "newObjectId": COMMIT});
        let azure = json!({"eventType": "git.push", "resource": {"refUpdates": [update]}});
        let tag = [GitEvent::tag("refs/tags/v1".into(), COMMIT.into())];
        for (host, event, body, interest) in [
            (Host::Gitea, "push", &push, Interest::Ignored),
            (Host::Forgejo, "push", &push, Interest::Ignored),
            (Host::Gogs, "push", &push, Interest::Ignored),
            (Host::Github, "push", &push, Interest::Ignored),
            (Host::Gitlab, "Tag Push Hook", &push, Interest::Ignored),
            (Host::BitbucketCloud, "repo:push", &cloud, Interest::Accepted),
            (Host::BitbucketDataCenter, "repo:refs_changed", &data_center, Interest::Ignored),
            (Host::Azure, "", &azure, Interest::Ignored),
            (Host::StandardWebhooks, "", &push, Interest::Ignored),
            (Host::Generic, "", &push, Interest::Ignored),
        ] {
            assert_eq!(told(host, event, body), (tag.to_vec(), interest), "{host:?}");
        }
        let gone = json!({"ref": "refs/tags/v1", "before": COMMIT, "after": ZERO});
        for (event, body) in
            [("push", &gone), ("create", &json!({"ref": "v1", "ref_type": "tag"})), ("push", &json!({}))]
        {
            assert_eq!(told(Host::Github, event, body).0, [], "{event} {body}");
        }
    }

    #[test]
    fn merges_into_the_watched_branch_are_told_by_those_that_have_pull_requests() {
        let github = json!({"action": "closed", "number": 7, "pull_request": {
            "merged": true, "merge_commit_sha": COMMIT, "base": {"ref": "main"}, "title": "x",
        }});
        let gitlab = json!({"object_attributes": {
            "action": "merge", "iid": 7, "target_branch": "main", "merge_commit_sha": COMMIT,
        }});
        let cloud = json!({"pullrequest": {
            "id": 7, "destination": {"branch": {"name": "main"}}, "merge_commit": {"hash": COMMIT},
        }});
        let data_center = json!({"pullRequest": {
            "id": 7, "toRef": {"id": "refs/heads/main"}, "properties": {"mergeCommit": {"id": COMMIT}},
        }});
        let azure = json!({"eventType": "git.pullrequest.updated", "resource": {
            "pullRequestId": 7, "status": "completed", "targetRefName": "refs/heads/main",
            "lastMergeCommit": {"commitId": COMMIT},
        }});
        let merged = GitEvent {
            kind: GitEventKind::PullRequestMerged,
            reference: "refs/heads/main".into(),
            commit: Some(COMMIT.into()),
            number: Some(7),
        };
        for (host, event, body, branch, not_merged) in [
            (Host::Gitea, "pull_request", &github, "/pull_request/base/ref", "/pull_request/merged"),
            (Host::Forgejo, "pull_request", &github, "/pull_request/base/ref", "/action"),
            (Host::Github, "pull_request", &github, "/pull_request/base/ref", "/pull_request/merged"),
            (
                Host::Gitlab,
                "Merge Request Hook",
                &gitlab,
                "/object_attributes/target_branch",
                "/object_attributes/action",
            ),
            (Host::BitbucketCloud, "pullrequest:fulfilled", &cloud, "/pullrequest/destination/branch/name", ""),
            (Host::BitbucketDataCenter, "pr:merged", &data_center, "/pullRequest/toRef/id", ""),
            (Host::Azure, "", &azure, "/resource/targetRefName", "/resource/status"),
        ] {
            assert_eq!(told(host, event, body), (vec![merged.clone()], Interest::Ignored), "{host:?}");
            let with = |pointer: &str, value: Value| {
                let mut body = body.clone();
                body.pointer_mut(pointer).into_iter().for_each(|it| *it = value.clone());
                told(host, event, &body).0
            };
            assert_eq!(with(branch, json!("refs/heads/next")), [], "{host:?}: another branch");
            assert!(not_merged.is_empty() || with(not_merged, json!("open")).is_empty(), "{host:?}: it is open");
        }
    }
}
