//! Whether a call is authentic: signed over its raw body with a secret that only host and daemon know or, where a host
//! signs nothing, sent with that secret.

use aws_lc_rs::{constant_time, digest, hmac};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::{Host, single};
use crate::model::time::Timestamp;
use crate::secret::Secret;

/// Bytes of a SHA-256 digest.
const DIGEST_LENGTH: usize = 32;

/// The header with the signatures of Standard Webhooks.
pub(super) const STANDARD_SIGNATURE: &str = "webhook-signature";

/// How far the time of a signed call may be from ours, in seconds. Source: the specification of Standard Webhooks.
const TOLERANCE: i64 = 5 * 60;

/// What stands before the base64 of a Standard Webhooks secret.
const STANDARD_SECRET: &str = "whsec_";

/// How a host shows that a call is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// An HMAC-SHA256 of the raw body in hex, behind `prefix`. The first of the headers that is there decides alone.
    Hmac {
        /// The headers.
        headers: &'static [&'static str],
        /// What stands before the digits.
        prefix: &'static str,
    },
    /// The signature of Standard Webhooks over id, time and raw body.
    StandardWebhooks,
    /// The same, or the secret itself in this header. A call with a signature is judged by that alone.
    SignatureOrToken(&'static str),
    /// The secret itself: as the password of HTTP Basic, or in this header.
    PasswordOrToken(&'static str),
}

/// Why a call is not authentic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSignature {
    /// There is none of the required kind, or more than one.
    #[error("exactly one header `{header}: {prefix}<64 hex digits>` with the HMAC-SHA256 of the body is required")]
    Missing {
        /// The header that is required.
        header: &'static str,
        /// What stands before the digits.
        prefix: &'static str,
    },
    /// There is nothing that a secret could be compared with.
    #[error("a header `{0}` with the webhook's secret is required")]
    NoSecret(&'static str),
    /// A part of what Standard Webhooks sign is missing or unusable.
    #[error("headers `webhook-id`, `webhook-timestamp` and `webhook-signature: v1,<base64>` are required")]
    NotStandard,
    /// It was signed too long ago, or in the future: it may be a replay.
    #[error("the call was signed more than 5 minutes from now; are both clocks right?")]
    Stale,
    /// None of the secrets fits.
    #[error("the signature does not fit the body and the secret")]
    Wrong,
}

/// Checks that a call comes from the host. Several secrets may be valid at once, so that they can be changed one side
/// after the other; an empty one is none. Comparing takes the same time wherever what is compared differs.
pub fn verify(
    host: Host,
    secrets: &[Secret],
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Result<(), BadSignature> {
    let usable = || secrets.iter().filter(|secret| !secret.reveal().is_empty());
    let any = |fits: &dyn Fn(&Secret) -> bool| {
        let fitting = usable().find(|secret| fits(secret));
        fitting.map(|_| ()).ok_or(BadSignature::Wrong)
    };
    match host.dialect().authentication {
        Authentication::Hmac { headers: names, prefix } => {
            let header = names.iter().find(|name| headers.contains_key(**name)).or(names.first()).copied();
            let header = header.unwrap_or_default();
            let signature = hex_digest(headers, header, prefix).ok_or(BadSignature::Missing { header, prefix })?;
            any(&|secret| is_signed(secret.reveal().as_bytes(), body, &signature))
        }
        Authentication::SignatureOrToken(header) if !headers.contains_key(STANDARD_SIGNATURE) => {
            let token = single(headers, header).ok_or(BadSignature::NoSecret(header))?;
            any(&|secret| is_same(secret.reveal(), token))
        }
        Authentication::StandardWebhooks | Authentication::SignatureOrToken(_) => {
            let signed = Signed::read(headers, body).ok_or(BadSignature::NotStandard)?;
            if (signed.at - now.0 / 1000).abs() > TOLERANCE {
                return Err(BadSignature::Stale);
            }
            any(&|secret| signed.fits(secret))
        }
        Authentication::PasswordOrToken(header) => {
            let given = single(headers, header).map(str::to_owned).or_else(|| basic_password(headers));
            let given = given.ok_or(BadSignature::NoSecret(header))?;
            any(&|secret| is_same(secret.reveal(), &given))
        }
    }
}

fn is_signed(key: &[u8], body: &[u8], signature: &[u8]) -> bool {
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, key), body, signature).is_ok()
}

/// Compares digests, which are of one length, so that not even the length of the secret shows.
fn is_same(secret: &str, given: &str) -> bool {
    let digest = |text: &str| digest::digest(&digest::SHA256, text.as_bytes());
    constant_time::verify_slices_are_equal(digest(secret).as_ref(), digest(given).as_ref()).is_ok()
}

fn basic_password(headers: &HeaderMap) -> Option<String> {
    let encoded = single(headers, AUTHORIZATION.as_str())?.strip_prefix("Basic ")?;
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    decoded.split_once(':').map(|(_, password)| password.to_owned())
}

/// What Standard Webhooks sign, and the signatures that came with it.
struct Signed {
    content: Vec<u8>,
    /// Seconds since 1970.
    at: i64,
    signatures: Vec<Vec<u8>>,
}

impl Signed {
    fn read(headers: &HeaderMap, body: &[u8]) -> Option<Self> {
        let id = single(headers, "webhook-id")?;
        let time = single(headers, "webhook-timestamp")?;
        // The list may stand in several headers, which a proxy may have joined by commas.
        let signature = |word: &str| STANDARD.decode(word.strip_prefix("v1,")?.trim_end_matches(',')).ok();
        let lists = headers.get_all(STANDARD_SIGNATURE).iter().filter_map(|list| list.to_str().ok());
        let signatures: Vec<Vec<u8>> = lists.flat_map(str::split_ascii_whitespace).filter_map(signature).collect();
        let content = [format!("{id}.{time}.").as_bytes(), body].concat();
        Some(Self { content, at: time.parse().ok()?, signatures }).filter(|signed| !signed.signatures.is_empty())
    }

    /// A secret that does not say that it is base64 is taken as it is.
    fn fits(&self, secret: &Secret) -> bool {
        let key = match secret.reveal().strip_prefix(STANDARD_SECRET) {
            Some(encoded) => STANDARD.decode(encoded).unwrap_or_default(),
            None => secret.reveal().as_bytes().to_vec(),
        };
        !key.is_empty() && self.signatures.iter().any(|signature| is_signed(&key, &self.content, signature))
    }
}

fn hex_digest(headers: &HeaderMap, header: &str, prefix: &str) -> Option<[u8; DIGEST_LENGTH]> {
    let value = single(headers, header)?;
    let digits = value.strip_prefix(prefix)?.as_bytes();
    if digits.len() != 2 * DIGEST_LENGTH {
        return None;
    }
    let mut digest = [0; DIGEST_LENGTH];
    for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair.iter().try_fold(0, |byte, digit| Some(byte << 4 | hex_value(*digit)?))?;
    }
    Some(digest)
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const GITHUB_SECRET: &str = "It's a Secret to Everybody";
    const GITHUB_BODY: &[u8] = b"Hello, World!";
    const GITHUB_DIGEST: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    const ADNANH_DIGEST: &str = "f417af3a21bd70379b5796d5f013915e7029f62c580fb0f500f59a35a6f04c89";

    fn check(
        host: Host,
        secrets: &[&str],
        name: &'static str,
        values: &[&str],
        body: &[u8],
    ) -> Result<(), BadSignature> {
        let secrets: Vec<Secret> = secrets.iter().map(|secret| Secret::new(*secret)).collect();
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        verify(host, &secrets, &headers, body, Timestamp(0))
    }

    #[test]
    fn published_signatures_are_accepted() {
        let github = format!("sha256={GITHUB_DIGEST}");
        let generic = format!("sha256={ADNANH_DIGEST}");
        assert_eq!(check(Host::Github, &[GITHUB_SECRET], "x-hub-signature-256", &[&github], GITHUB_BODY), Ok(()));
        assert_eq!(check(Host::Gitea, &[GITHUB_SECRET], "x-gitea-signature", &[GITHUB_DIGEST], GITHUB_BODY), Ok(()));
        assert_eq!(check(Host::Generic, &["secret"], "x-signature", &[&generic], br#"{"a": "z"}"#), Ok(()));
    }

    #[test]
    fn several_secrets_are_valid_at_once_and_upper_case_is_the_same() {
        let upper = format!("sha256={}", GITHUB_DIGEST.to_uppercase());
        for secrets in [["new", GITHUB_SECRET], [GITHUB_SECRET, "old"]] {
            assert_eq!(check(Host::Github, &secrets, "x-hub-signature-256", &[&upper], GITHUB_BODY), Ok(()));
        }
    }

    #[test]
    fn a_wrong_body_or_secret_is_refused() {
        let signature = format!("sha256={GITHUB_DIGEST}");
        let cases: [(&[&str], &[u8]); 5] = [
            (&[GITHUB_SECRET], b"Hello, World?"),
            (&[GITHUB_SECRET], b""),
            (&["it's a secret to everybody"], GITHUB_BODY),
            (&[""], GITHUB_BODY),
            (&[], GITHUB_BODY),
        ];
        for (secrets, body) in cases {
            let result = check(Host::Github, secrets, "x-hub-signature-256", &[&signature], body);
            assert_eq!(result, Err(BadSignature::Wrong), "{secrets:?}");
        }
    }

    #[test]
    fn an_empty_secret_never_makes_a_valid_signature() {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b""), GITHUB_BODY);
        let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let result = check(Host::Gitea, &["", "real"], "x-gitea-signature", &[&hex], GITHUB_BODY);
        assert_eq!(result, Err(BadSignature::Wrong));
    }

    #[test]
    fn anything_but_one_signature_of_the_right_kind_is_missing() {
        let good = format!("sha256={GITHUB_DIGEST}");
        let joined = format!("{good}, {good}");
        let cut = &good[..good.len() - 1];
        let not_hex = format!("{cut}g");
        let cases: [(&str, &[&str]); 11] = [
            ("x-hub-signature-256", &[]),
            ("x-hub-signature-256", &[""]),
            ("x-hub-signature-256", &["sha256="]),
            ("x-hub-signature-256", &[GITHUB_DIGEST]),
            ("x-hub-signature-256", &[cut]),
            ("x-hub-signature-256", &[&not_hex]),
            ("x-hub-signature-256", &[&joined]),
            ("x-hub-signature-256", &[&good, &good]),
            ("x-hub-signature-256", &["sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59"]),
            ("x-hub-signature", &["sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59"]),
            ("x-hub-signature", &[&good]),
        ];
        for (name, values) in cases {
            let result = check(Host::Github, &[GITHUB_SECRET], name, values, GITHUB_BODY);
            assert!(matches!(result, Err(BadSignature::Missing { .. })), "{name}: {values:?}");
        }
    }

    /// Source: the vector of the specification of Standard Webhooks.
    const STANDARD_KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const STANDARD_BODY: &[u8] = br#"{"test": 2432232314}"#;
    const STANDARD_TIME: i64 = 1_614_265_330;
    const STANDARD_VALUE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn signed(host: Host, secret: &str, signature: &str, time: &str, now: i64) -> Result<(), BadSignature> {
        let pairs = [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", time),
            (STANDARD_SIGNATURE, signature),
        ];
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(name, HeaderValue::from_str(value).unwrap());
        }
        headers.insert("x-gitlab-token", HeaderValue::from_static("token"));
        let secrets = [Secret::new(secret), Secret::new("token")];
        verify(host, &secrets, &headers, STANDARD_BODY, Timestamp(now * 1000))
    }

    #[test]
    fn standard_webhooks_are_signed_with_their_time() {
        let other = format!("v1,AAAA v1a,xx {STANDARD_VALUE}");
        let at = STANDARD_TIME.to_string();
        for host in [Host::StandardWebhooks, Host::Gitlab] {
            for (secret, signature, time, now, expected) in [
                (STANDARD_KEY, STANDARD_VALUE, at.as_str(), STANDARD_TIME, Ok(())),
                (STANDARD_KEY, &other, &at, STANDARD_TIME + 300, Ok(())),
                (STANDARD_KEY, STANDARD_VALUE, &at, STANDARD_TIME + 301, Err(BadSignature::Stale)),
                (STANDARD_KEY, STANDARD_VALUE, &at, STANDARD_TIME - 301, Err(BadSignature::Stale)),
                (STANDARD_KEY, STANDARD_VALUE, "1614265331", STANDARD_TIME, Err(BadSignature::Wrong)),
                (STANDARD_KEY, STANDARD_VALUE, "now", STANDARD_TIME, Err(BadSignature::NotStandard)),
                // A good token does not save a bad signature.
                ("whsec_AAAA", STANDARD_VALUE, &at, STANDARD_TIME, Err(BadSignature::Wrong)),
                ("whsec_", STANDARD_VALUE, &at, STANDARD_TIME, Err(BadSignature::Wrong)),
                (STANDARD_KEY, "", &at, STANDARD_TIME, Err(BadSignature::NotStandard)),
                (STANDARD_KEY, "v2,AAAA", &at, STANDARD_TIME, Err(BadSignature::NotStandard)),
            ] {
                assert_eq!(
                    signed(host, secret, signature, time, now),
                    expected,
                    "{host:?} {secret} {signature} {time} {now}"
                );
            }
        }
    }

    #[test]
    fn signatures_of_the_standard_may_stand_in_several_headers_and_ids_may_not() {
        let at = STANDARD_TIME.to_string();
        let pairs = [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", at.as_str()),
            (STANDARD_SIGNATURE, "v1,AAAA"),
            (STANDARD_SIGNATURE, STANDARD_VALUE),
        ];
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        let now = Timestamp(STANDARD_TIME * 1000);
        let secrets = [Secret::new(STANDARD_KEY)];
        let check = |headers: &HeaderMap| verify(Host::StandardWebhooks, &secrets, headers, STANDARD_BODY, now);
        assert_eq!(check(&headers), Ok(()));
        headers.append("webhook-id", HeaderValue::from_static("another"));
        assert_eq!(check(&headers), Err(BadSignature::NotStandard));
    }

    #[test]
    fn hosts_that_sign_nothing_send_the_secret() {
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        let (good, bad, none) = (basic("launchway:secret"), basic("secret:other"), basic("secret"));
        for (host, name, value, expected) in [
            (Host::Gitlab, "x-gitlab-token", "secret", Ok(())),
            (Host::Gitlab, "x-gitlab-token", "secre", Err(BadSignature::Wrong)),
            (Host::Gitlab, "x-gitlab-token", "", Err(BadSignature::Wrong)),
            (Host::Gitlab, "x-other", "secret", Err(BadSignature::NoSecret("x-gitlab-token"))),
            (Host::Azure, "authorization", good.as_str(), Ok(())),
            (Host::Azure, "authorization", &bad, Err(BadSignature::Wrong)),
            (Host::Azure, "authorization", &none, Err(BadSignature::NoSecret("x-launchway-token"))),
            (Host::Azure, "x-launchway-token", "secret", Ok(())),
            (Host::Azure, "x-launchway-token", "Secret", Err(BadSignature::Wrong)),
        ] {
            assert_eq!(check(host, &["old", "secret"], name, &[value], b"{}"), expected, "{name}: {value}");
        }
        assert_eq!(check(Host::Gitlab, &[""], "x-gitlab-token", &[""], b"{}"), Err(BadSignature::Wrong));
    }

    #[test]
    fn the_signature_of_forgejo_decides_alone() {
        let forgejo = |pairs: &[(&'static str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
            verify(Host::Forgejo, &[Secret::new(GITHUB_SECRET)], &pairs.collect(), GITHUB_BODY, Timestamp(0))
        };
        let wrong = "0".repeat(64);
        assert_eq!(forgejo(&[("x-forgejo-signature", GITHUB_DIGEST), ("x-gitea-signature", &wrong)]), Ok(()));
        assert_eq!(forgejo(&[("x-gitea-signature", GITHUB_DIGEST)]), Ok(()));
        let bad = forgejo(&[("x-forgejo-signature", &wrong), ("x-gitea-signature", GITHUB_DIGEST)]);
        assert_eq!(bad, Err(BadSignature::Wrong));
    }
}
