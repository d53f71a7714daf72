//! Calls of Git hosts about pushes, pull requests, comments and checks: whose call it is, whether it is authentic, and what it says. All of it is pure; the
//! HTTP around it is `server::webhook`.
//!
//! A call means "sync", or carries what a person asks for in a comment or with a check's button. What is read from it decides whether to, and is shown to people; what is
//! deployed is what the remote repository says then.

mod comment;
mod happened;
mod json;
mod named;
mod push;
mod rerun;
mod signature;
mod verdict;

use http::HeaderMap;
use serde_json::Value;

pub use comment::Comments;
pub(in crate::forge) use comment::{Written, in_words_of_github, number, text, time};
pub use happened::Merges;
pub(in crate::forge) use happened::{Merge, branch, closed_as_merged};
pub use json::Malformed;
pub use named::{Meant, Named};
pub(in crate::forge) use push::{Update, commit, full_ref, reference, single_ref};
pub(in crate::forge) use rerun::Again;
pub use rerun::Reruns;
pub use signature::{Authentication, BadSignature, verify};
pub use verdict::{Call, Interest, Verdict, Watching, interpret};

use super::address::ForgeKind;

/// 1 MiB in bytes.
pub(super) const MIB: usize = 1024 * 1024;

/// Ids of deliveries are UUIDs or about as long.
const DELIVERY_ID_LIMIT: usize = 128;

/// Whose call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// Gitea.
    Gitea,
    /// Forgejo, with headers of its own beside Gitea's.
    Forgejo,
    /// Gogs, from which both come.
    Gogs,
    /// GitHub.
    Github,
    /// GitLab.
    Gitlab,
    /// Bitbucket Cloud.
    BitbucketCloud,
    /// Bitbucket Data Center.
    BitbucketDataCenter,
    /// Azure DevOps.
    Azure,
    /// Any program that signs as Standard Webhooks do.
    StandardWebhooks,
    /// Any program that signs what it sends.
    Generic,
}

/// What is particular to the calls of one host. Names of headers are in lower case.
#[derive(Debug)]
pub struct Dialect {
    /// What names the event.
    pub event: EventName,
    /// The names of events that are pushes.
    pub pushes: &'static [&'static str],
    /// The names of events about pull requests, as far as those are planned.
    pub pulls: &'static [&'static str],
    /// How it tells of comments on pull requests.
    pub comments: Comments,
    /// The names of events about tags, where those are no pushes.
    pub tags: &'static [&'static str],
    /// Its calls about merged pull requests.
    pub merges: Merges,
    /// And about checks that are asked for again.
    pub reruns: Reruns,
    /// How a call shows that it is the host's.
    pub authentication: Authentication,
    /// Where the delivery's id is.
    pub delivery: DeliveryId,
    /// Whether a push names the new commit; the host always does.
    pub commit_required: bool,
    /// The longest body in bytes, unless configured otherwise.
    pub body_limit: usize,
    /// What a call says of refs.
    pub(in crate::forge) updates: fn(&Value) -> Vec<Update>,
    /// Which repository it is about.
    pub(in crate::forge) repository: fn(&Value) -> Named,
}

/// Where the name of the event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventName {
    /// In this header.
    Header(&'static str),
    /// In this field of the body.
    Field(&'static str),
    /// It is always this one.
    Always(&'static str),
}

/// Where the id of a delivery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryId {
    /// In the first of these headers that is there, if it is.
    Header(&'static [&'static str]),
    /// The same, and a call without one is refused.
    Required(&'static [&'static str]),
    /// In this field of the body.
    Field(&'static str),
}

/// The id of a delivery is missing where one is required, or unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a header `{header}` with an id of 1 to 128 visible characters is required")]
pub struct BadDeliveryId {
    /// The header to use.
    pub header: &'static str,
}

impl Host {
    /// Its word for people, as the configuration spells it where it names hosts.
    pub fn as_str(self) -> &'static str {
        match self {
            Host::Gitea => "gitea",
            Host::Forgejo => "forgejo",
            Host::Gogs => "gogs",
            Host::Github => "github",
            Host::Gitlab => "gitlab",
            Host::BitbucketCloud => "bitbucket",
            Host::BitbucketDataCenter => "bitbucket-data-center",
            Host::Azure => "azure",
            Host::StandardWebhooks => "standard-webhooks",
            Host::Generic => "generic",
        }
    }

    /// Tells whose call it is by its headers. Forgejo sends Gitea's headers too, and Gitea those of Gogs and GitHub, so
    /// that they are told in this order; a call with headers of Gitea's relatives is not GitHub's. A call that no host
    /// is known for counts as generic.
    pub fn identify(headers: &HeaderMap) -> Self {
        let has = |name: &str| headers.contains_key(name);
        let has_relative = || {
            let is_relative = |name: &str| ["x-gitea-", "x-gogs-", "x-forgejo-"].iter().any(|p| name.starts_with(p));
            headers.keys().any(|name| is_relative(name.as_str()))
        };
        let begins = |name: &str, prefix: &[u8]| headers.get(name).is_some_and(|it| it.as_bytes().starts_with(prefix));
        match () {
            () if has("x-forgejo-event") => Host::Forgejo,
            () if has("x-gitea-event") => Host::Gitea,
            () if has("x-gogs-event") => Host::Gogs,
            () if has("x-github-event") && !has_relative() => Host::Github,
            () if has("x-gitlab-event") => Host::Gitlab,
            () if has("x-event-key") && has("x-hook-uuid") => Host::BitbucketCloud,
            () if has("x-event-key") => Host::BitbucketDataCenter,
            () if begins("user-agent", b"VSServices/") || has("x-vss-activityid") => Host::Azure,
            () if has(signature::STANDARD_SIGNATURE) && !has("x-signature") => Host::StandardWebhooks,
            () => Host::Generic,
        }
    }

    /// Whether its calls may be about repositories on a forge of this kind.
    pub fn is_of(self, kind: ForgeKind) -> bool {
        match self {
            Host::Gitea | Host::Forgejo | Host::Gogs => kind == ForgeKind::Gitea,
            Host::Github => kind == ForgeKind::Github,
            Host::Gitlab => kind == ForgeKind::Gitlab,
            Host::BitbucketCloud => kind == ForgeKind::Bitbucket,
            Host::BitbucketDataCenter => kind == ForgeKind::BitbucketDataCenter,
            Host::Azure => kind == ForgeKind::Azure,
            Host::StandardWebhooks | Host::Generic => false,
        }
    }

    /// What is particular to this host.
    pub fn dialect(self) -> &'static Dialect {
        match self {
            Host::Gitea => &super::gitea::GITEA,
            Host::Forgejo => &super::gitea::FORGEJO,
            Host::Gogs => &super::gitea::GOGS,
            Host::Github => &super::github::DIALECT,
            Host::Gitlab => &super::gitlab::DIALECT,
            Host::BitbucketCloud => &super::bitbucket::CLOUD,
            Host::BitbucketDataCenter => &super::bitbucket::DATA_CENTER,
            Host::Azure => &super::azure::DIALECT,
            Host::StandardWebhooks => &super::plain::STANDARD,
            Host::Generic => &super::plain::GENERIC,
        }
    }

    /// Which repository a call is about.
    pub fn repository(self, call: &Call) -> Named {
        (self.dialect().repository)(call.payload())
    }

    /// The id under which a delivery is remembered. Hosts send the same one when they deliver again.
    pub fn delivery_id(self, headers: &HeaderMap, call: &Call) -> Result<Option<String>, BadDeliveryId> {
        let in_headers = |names: &[&str]| names.iter().find_map(|name| single(headers, name)).map(str::to_owned);
        let usable = |id: Option<String>| id.filter(|id| is_delivery_id(id));
        match self.dialect().delivery {
            DeliveryId::Header(names) => Ok(usable(in_headers(names))),
            DeliveryId::Field(field) => Ok(usable(call.text(field))),
            DeliveryId::Required(names) => {
                let header = names.last().copied().unwrap_or_default();
                usable(in_headers(names)).map(Some).ok_or(BadDeliveryId { header })
            }
        }
    }
}

fn is_delivery_id(id: &str) -> bool {
    (1..=DELIVERY_ID_LIMIT).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The value of a header that occurs once and is text.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    value.to_str().ok().map(str::trim)
}

#[cfg(test)]
mod tests;
