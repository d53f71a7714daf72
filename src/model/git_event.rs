//! What happens in a repository beside pushes to its branch, as its host tells it: sequences may be triggered on that.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::ids::RepositoryName;
use super::tag::TAGS;

/// The name of the data that tell of it.
const DATA: &str = "git";

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitEvent {
    /// What.
    pub kind: GitEventKind,
    /// The ref in full that it happened to: the tag, or the branch into which was merged.
    pub reference: String,
    /// Where that ref was afterwards, as far as the host says.
    pub commit: Option<String>,
    /// The pull request's number.
    pub number: Option<u64>,
}

/// What may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GitEventKind {
    /// A tag was pushed, or moved.
    TagCreated,
    /// A pull request was merged into the watched branch.
    PullRequestMerged,
}

impl GitEventKind {
    /// The events, as shipyards name them.
    pub const WORDS: [&'static str; 2] = ["git.tag.created", "git.pull-request.merged"];

    /// Its event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TagCreated => Self::WORDS[0],
            Self::PullRequestMerged => Self::WORDS[1],
        }
    }
}

impl GitEvent {
    /// A tag that leads to an object.
    pub fn tag(reference: String, commit: String) -> Self {
        Self { kind: GitEventKind::TagCreated, reference, commit: Some(commit), number: None }
    }

    /// The tag's name.
    pub fn tag_name(&self) -> Option<&str> {
        self.reference.strip_prefix(TAGS)
    }

    /// Under what it is remembered that it happened: told again, by whatever delivery, it is the same.
    pub fn identity(&self) -> String {
        let commit = self.commit.clone().or_else(|| self.number.map(|number| format!("#{number}")));
        format!("{} {} {}", self.kind.as_str(), self.reference, commit.unwrap_or_default())
    }

    /// Who has had it happen, as the source of an event.
    pub fn source(&self) -> String {
        format!("git/{}", self.reference)
    }

    /// What happened, for people.
    pub fn title(&self) -> String {
        match (self.tag_name(), self.number) {
            (Some(tag), _) => format!("tag {tag}"),
            (None, Some(number)) => format!("pull request {number}"),
            (None, None) => format!("a merge into {}", self.reference),
        }
    }

    /// What is known of it, beside the project, stage and service that an event is about.
    pub fn data(&self, repository: &RepositoryName) -> Map<String, Value> {
        let known = [
            ("repository", Some(json!(repository))),
            ("ref", Some(json!(self.reference))),
            ("tag", self.tag_name().map(Value::from)),
            ("commit", self.commit.as_deref().map(Value::from)),
            ("number", self.number.map(Value::from)),
        ];
        let known = known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
        Map::from_iter([(DATA.to_owned(), Value::Object(known))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_told_apart_by_ref_and_commit_or_number() {
        let tag = GitEvent::tag("refs/tags/v1".into(), "a1".into());
        let merge = |commit: Option<&str>, number| GitEvent {
            kind: GitEventKind::PullRequestMerged,
            reference: "refs/heads/main".into(),
            commit: commit.map(str::to_owned),
            number: Some(number),
        };
        for (event, identity, title, data) in [
            (
                tag,
                "git.tag.created refs/tags/v1 a1",
                "tag v1",
                json!({"repository": "shop", "ref": "refs/tags/v1", "tag": "v1", "commit": "a1"}),
            ),
            (
                merge(Some("b2"), 7),
                "git.pull-request.merged refs/heads/main b2",
                "pull request 7",
                json!({"repository": "shop", "ref": "refs/heads/main", "commit": "b2", "number": 7}),
            ),
            (
                merge(None, 8),
                "git.pull-request.merged refs/heads/main #8",
                "pull request 8",
                json!({"repository": "shop", "ref": "refs/heads/main", "number": 8}),
            ),
        ] {
            assert_eq!((event.identity().as_str(), event.title().as_str()), (identity, title));
            assert_eq!(Value::Object(event.data(&"shop".into())), json!({ "git": data }));
        }
    }
}
