//! Calls of Git hosts about pushes: whose call it is, whether it is authentic, and what it says. All of it is pure; the
//! HTTP around it is `server::webhook`.
//!
//! A call only ever means "sync". What is read from it decides whether to, and is shown to people; what is
//! deployed is what the remote repository says then.

mod json;
mod push;
mod signature;
mod verdict;

use http::HeaderMap;

pub use json::Malformed;
pub use signature::{BadSignature, verify};
pub use verdict::{Interest, Verdict, interpret};

/// 1 MiB in bytes.
pub(super) const MIB: usize = 1024 * 1024;

/// Ids of deliveries are UUIDs or about as long.
const DELIVERY_ID_LIMIT: usize = 128;

/// Whose call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// Gitea or Forgejo.
    Gitea,
    /// GitHub.
    Github,
    /// Any program that signs what it sends.
    Generic,
}

/// What is particular to the calls of one host. Names of headers are in lower case.
#[derive(Debug)]
pub struct Dialect {
    /// What names the event.
    pub event: EventName,
    /// The header with the HMAC-SHA256 of the raw body, in hex.
    pub signature: &'static str,
    /// What stands before the hex digits.
    pub signature_prefix: &'static str,
    /// The headers with the delivery's id; the first that is there counts.
    pub delivery: &'static [&'static str],
    /// Whether a call without an id is refused.
    pub delivery_required: bool,
    /// Whether a push names the new commit; the host always does.
    pub commit_required: bool,
    /// The longest body in bytes, unless configured otherwise.
    pub body_limit: usize,
}

/// Where the name of the event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventName {
    /// In this header.
    Header(&'static str),
    /// It is always this one.
    Always(&'static str),
}

/// The id of a delivery is missing where one is required, or unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a header `{header}` with an id of 1 to 128 visible characters is required")]
pub struct BadDeliveryId {
    /// The header to use.
    pub header: &'static str,
}

/// Hosts whose calls are not understood, by what tells them from others: a header, or what its value begins with.
const NOT_UNDERSTOOD: [(&str, &str, &str); 5] = [
    ("GitLab", "x-gitlab-event", ""),
    ("Bitbucket", "x-event-key", ""),
    ("Gogs", "x-gogs-event", ""),
    ("Azure DevOps", "user-agent", "VSServices/"),
    ("Bitbucket", "user-agent", "Bitbucket-Webhooks/"),
];

/// The host of a call that is not understood, unless somebody has signed it as a generic one.
pub fn not_understood(headers: &HeaderMap) -> Option<&'static str> {
    if Host::identify(headers) != Host::Generic || headers.contains_key(Host::Generic.dialect().signature) {
        return None;
    }
    let begins = |name: &str, prefix: &str| {
        headers.get(name).is_some_and(|value| value.as_bytes().starts_with(prefix.as_bytes()))
    };
    NOT_UNDERSTOOD.iter().find(|(_, name, prefix)| begins(name, prefix)).map(|(host, ..)| *host)
}

impl Host {
    /// Tells whose call it is by its headers. Gitea comes first because it sends GitHub's headers too; a call with
    /// headers of Gitea's relatives is not GitHub's. A call that no host is known for counts as generic.
    pub fn identify(headers: &HeaderMap) -> Self {
        let has_relative = || {
            let is_relative = |name: &str| ["x-gitea-", "x-gogs-", "x-forgejo-"].iter().any(|p| name.starts_with(p));
            headers.keys().any(|name| is_relative(name.as_str()))
        };
        if headers.contains_key("x-gitea-event") {
            Host::Gitea
        } else if headers.contains_key("x-github-event") && !has_relative() {
            Host::Github
        } else {
            Host::Generic
        }
    }

    /// What is particular to this host.
    pub fn dialect(self) -> &'static Dialect {
        match self {
            Host::Gitea => &super::gitea::DIALECT,
            Host::Github => &super::github::DIALECT,
            Host::Generic => &super::plain::DIALECT,
        }
    }

    /// The id under which a delivery is remembered. Hosts send the same one when they deliver again.
    pub fn delivery_id(self, headers: &HeaderMap) -> Result<Option<&str>, BadDeliveryId> {
        let dialect = self.dialect();
        let id = dialect.delivery.iter().find_map(|name| single(headers, name)).filter(|id| is_delivery_id(id));
        match id {
            None if dialect.delivery_required => {
                Err(BadDeliveryId { header: dialect.delivery.last().copied().unwrap_or_default() })
            }
            id => Ok(id),
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
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn the_headers_tell_the_host() {
        let cases: [(&[(&str, &str)], Host); 7] = [
            (&[("x-gitea-event", "push"), ("x-github-event", "push"), ("x-gogs-event", "push")], Host::Gitea),
            (&[("x-forgejo-event", "push"), ("x-gitea-event", "push")], Host::Gitea),
            (&[("x-github-event", "push")], Host::Github),
            (&[("x-github-event", "push"), ("x-github-hook-id", "1")], Host::Github),
            (&[("x-gogs-event", "push"), ("x-github-event", "push")], Host::Generic),
            (&[("x-signature", "sha256=")], Host::Generic),
            (&[], Host::Generic),
        ];
        for (pairs, expected) in cases {
            assert_eq!(Host::identify(&headers(pairs)), expected, "{pairs:?}");
        }
    }

    #[test]
    fn a_delivery_is_known_by_one_usable_id() {
        let required = Err(BadDeliveryId { header: "x-delivery" });
        type Case = (Host, &'static [(&'static str, &'static str)], Result<Option<&'static str>, BadDeliveryId>);
        let cases: [Case; 9] = [
            (Host::Gitea, &[("x-gitea-delivery", "f7b1"), ("x-github-delivery", "other")], Ok(Some("f7b1"))),
            (Host::Gitea, &[("x-github-delivery", "other")], Ok(None)),
            (Host::Github, &[("x-github-delivery", "72d3162e")], Ok(Some("72d3162e"))),
            (Host::Github, &[("x-github-delivery", "two words")], Ok(None)),
            (Host::Generic, &[("x-delivery", "1"), ("webhook-id", "2")], Ok(Some("2"))),
            (Host::Generic, &[("x-delivery", "1")], Ok(Some("1"))),
            (Host::Generic, &[("x-delivery", "1"), ("x-delivery", "2")], required),
            (Host::Generic, &[("x-delivery", "")], required),
            (Host::Generic, &[], required),
        ];
        for (host, pairs, expected) in cases {
            let mut map = HeaderMap::new();
            for (name, value) in pairs {
                map.append(*name, HeaderValue::from_static(value));
            }
            assert_eq!(host.delivery_id(&map), expected, "{host:?} {pairs:?}");
        }
    }

    #[test]
    fn a_host_that_is_not_understood_is_named_unless_the_call_is_signed_as_others_are() {
        type Case = (&'static [(&'static str, &'static str)], Option<&'static str>);
        let cases: [Case; 8] = [
            (&[("x-gitlab-event", "Push Hook"), ("x-gitlab-token", "secret")], Some("GitLab")),
            (&[("x-event-key", "repo:push"), ("x-hub-signature", "sha256=1a2b")], Some("Bitbucket")),
            (&[("x-gogs-event", "push"), ("x-github-event", "push")], Some("Gogs")),
            (&[("user-agent", "VSServices/19.225.34309.2")], Some("Azure DevOps")),
            (&[("x-gitlab-event", "Push Hook"), ("x-signature", "sha256=1a2b")], None),
            (&[("x-gitea-event", "push"), ("x-gogs-event", "push")], None),
            (&[("x-github-event", "push"), ("user-agent", "GitHub-Hookshot/1")], None),
            (&[("user-agent", "curl/8")], None),
        ];
        for (pairs, expected) in cases {
            assert_eq!(not_understood(&headers(pairs)), expected, "{pairs:?}");
        }
    }
}
