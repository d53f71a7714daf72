use http::{HeaderName, HeaderValue};

use super::*;

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
}

#[test]
fn the_headers_tell_the_host() {
    let cases: [(&[(&str, &str)], Host); 14] = [
        (&[("x-gitea-event", "push"), ("x-github-event", "push"), ("x-gogs-event", "push")], Host::Gitea),
        (&[("x-forgejo-event", "push"), ("x-gitea-event", "push")], Host::Forgejo),
        (&[("x-github-event", "push")], Host::Github),
        (&[("x-github-event", "push"), ("x-github-hook-id", "1")], Host::Github),
        (&[("x-gogs-event", "push"), ("x-github-event", "push")], Host::Gogs),
        (&[("x-gitlab-event", "Push Hook"), ("webhook-signature", "v1,AA")], Host::Gitlab),
        (&[("x-event-key", "repo:push"), ("x-hook-uuid", "1")], Host::BitbucketCloud),
        (&[("x-event-key", "repo:refs_changed")], Host::BitbucketDataCenter),
        (&[("user-agent", "VSServices/19.225.34309.2")], Host::Azure),
        (&[("webhook-signature", "v1,AA"), ("webhook-id", "1")], Host::StandardWebhooks),
        (&[("x-signature", "sha256="), ("webhook-id", "1")], Host::Generic),
        (&[("x-gitea-delivery", "1"), ("x-github-event", "push")], Host::Generic),
        (&[("user-agent", "curl/8")], Host::Generic),
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
    let cases: [Case; 13] = [
        (Host::Gitea, &[("x-gitea-delivery", "f7b1"), ("x-github-delivery", "other")], Ok(Some("f7b1"))),
        (Host::Gitea, &[("x-github-delivery", "other")], Ok(None)),
        (Host::Forgejo, &[("x-forgejo-delivery", "f7b1"), ("x-gitea-delivery", "other")], Ok(Some("f7b1"))),
        (Host::Github, &[("x-github-delivery", "72d3162e")], Ok(Some("72d3162e"))),
        (Host::Github, &[("x-github-delivery", "two words")], Ok(None)),
        (Host::Gitlab, &[("idempotency-key", "k"), ("x-gitlab-event-uuid", "u")], Ok(Some("k"))),
        (Host::BitbucketCloud, &[("x-request-uuid", "r")], Ok(Some("r"))),
        (Host::Azure, &[], Ok(Some("03c164c2-8912-4d5e-8009-3707d5f83734"))),
        (Host::Generic, &[("x-delivery", "1"), ("webhook-id", "2")], Ok(Some("2"))),
        (Host::Generic, &[("x-delivery", "1")], Ok(Some("1"))),
        (Host::Generic, &[("x-delivery", "1"), ("x-delivery", "2")], required),
        (Host::Generic, &[("x-delivery", "")], required),
        (Host::Generic, &[], required),
    ];
    let call = Call::read(Host::Azure, br#"{"id": "03c164c2-8912-4d5e-8009-3707d5f83734"}"#).unwrap();
    for (host, pairs, expected) in cases {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_static(value));
        }
        let found = host.delivery_id(&map, &call);
        assert_eq!(found, expected.map(|id| id.map(str::to_owned)), "{host:?} {pairs:?}");
    }
}
