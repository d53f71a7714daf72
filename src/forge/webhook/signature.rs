//! Whether a call is authentic: an HMAC-SHA256 over the raw body, with a secret that only host and daemon know.

use aws_lc_rs::hmac;
use http::HeaderMap;

use super::{Dialect, Host, single};
use crate::secret::Secret;

/// Bytes of a SHA-256 digest.
const DIGEST_LENGTH: usize = 32;

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
    /// None of the secrets makes this signature.
    #[error("the signature does not fit the body and the secret")]
    Wrong,
}

/// Checks the signature of a call over its raw body. Several secrets may be valid at once, so that they can be changed
/// one side after the other; an empty one is none. Comparing takes the same time wherever the signatures differ.
pub fn verify(host: Host, secrets: &[Secret], headers: &HeaderMap, body: &[u8]) -> Result<(), BadSignature> {
    let dialect = host.dialect();
    let missing = BadSignature::Missing { header: dialect.signature, prefix: dialect.signature_prefix };
    let signature = digest(dialect, headers).ok_or(missing)?;
    let is_made_by = |secret: &&Secret| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.reveal().as_bytes());
        hmac::verify(&key, body, &signature).is_ok()
    };
    let usable = secrets.iter().filter(|secret| !secret.reveal().is_empty());
    usable.into_iter().find(is_made_by).map(|_| ()).ok_or(BadSignature::Wrong)
}

fn digest(dialect: &Dialect, headers: &HeaderMap) -> Option<[u8; DIGEST_LENGTH]> {
    let value = single(headers, dialect.signature)?;
    let digits = value.strip_prefix(dialect.signature_prefix)?.as_bytes();
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
        verify(host, &secrets, &headers, body)
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
}
