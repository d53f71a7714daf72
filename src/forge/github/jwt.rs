//! The signed text by which a GitHub App shows that it is one.

use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use crate::error::{Context, Failure, Result};
use crate::model::time::Timestamp;
use crate::secret::Secret;

/// How far GitHub's clock may be behind this one: it refuses what was signed in its future.
const BEHIND: Duration = Duration::from_secs(60);
/// How long it is valid: GitHub takes ten minutes at most, by its own clock.
const VALID: Duration = Duration::from_secs(9 * 60);

/// What shows that its bearer is the App of this id, by its private key (PEM, PKCS#1 as GitHub gives it away, or PKCS#8).
///
/// # Errors
/// `Stalled` if there is no such key; nothing of it is told.
pub(super) fn signed(app: u64, key: &Secret, now: Timestamp) -> Result<Secret> {
    let key = read(key)?;
    let text = format!("{}.{}", encoded(&json!({"alg": "RS256", "typ": "JWT"})), encoded(&claims(app, now)));
    let mut signature = vec![0; key.public_modulus_len()];
    let signing = key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature);
    signing.or_stalled(|| "the key does not sign".to_owned())?;
    Ok(Secret::new(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))))
}

fn read(key: &Secret) -> Result<RsaKeyPair> {
    let hint = "download it again: the App's settings → Private keys";
    let der = PrivateKeyDer::from_pem_slice(key.reveal().as_bytes());
    let der = der.map_err(|_no_key| Failure::stalled("it is no private key in PEM form").hint(hint))?;
    let pair = match &der {
        PrivateKeyDer::Pkcs1(pkcs1) => RsaKeyPair::from_der(pkcs1.secret_pkcs1_der()),
        PrivateKeyDer::Pkcs8(pkcs8) => RsaKeyPair::from_pkcs8(pkcs8.secret_pkcs8_der()),
        _ => return Err(Failure::stalled("it is no RSA key").hint(hint)),
    };
    let pair = pair.map_err(|_unusable| Failure::stalled("it is no RSA key of at least 2048 bits").hint(hint))?;
    Ok(pair)
}

fn claims(app: u64, now: Timestamp) -> Value {
    let seconds = now.0 / 1000;
    let (behind, valid) = (BEHIND.as_secs().cast_signed(), VALID.as_secs().cast_signed());
    json!({"iat": seconds - behind, "exp": seconds + valid, "iss": app.to_string()})
}

fn encoded(part: &Value) -> String {
    URL_SAFE_NO_PAD.encode(part.to_string())
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
    use aws_lc_rs::rsa::KeySize;
    use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    /// What stands before a key of 2048 bits where it says that it is one of RSA.
    const PKCS8_HEADER: usize = 26;

    fn pem(label: &str, der: &[u8]) -> Secret {
        let text = STANDARD.encode(der);
        let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| str::from_utf8(line).unwrap()).collect();
        Secret::new(format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n")))
    }

    #[test]
    fn the_three_parts_are_those_of_the_app_in_either_form_of_its_key() {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let der: Pkcs8V1Der<'_> = pair.as_der().unwrap();
        let der = der.as_ref();
        for key in [pem("PRIVATE KEY", der), pem("RSA PRIVATE KEY", &der[PKCS8_HEADER..])] {
            let token = signed(1234, &key, Timestamp(1_700_000_000_999)).unwrap();
            let [header, claims, signature] = token.reveal().split('.').collect::<Vec<_>>().try_into().unwrap();
            let read = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
            let json = |part: &str| serde_json::from_slice::<Value>(&read(part)).unwrap();
            assert_eq!(json(header), json!({"alg": "RS256", "typ": "JWT"}));
            let expected = json!({"iat": 1_699_999_940, "exp": 1_700_000_540, "iss": "1234"});
            assert_eq!(json(claims), expected);
            let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
            public.verify(format!("{header}.{claims}").as_bytes(), &read(signature)).unwrap();
        }
    }

    #[test]
    fn what_is_no_key_is_not_shown() {
        let certificate = pem("CERTIFICATE", b"hunter2");
        for (key, expected) in [
            (Secret::new("hunter2"), "no private key in PEM form"),
            (certificate, "no private key in PEM form"),
            (pem("EC PRIVATE KEY", b"hunter2"), "no RSA key"),
            (pem("PRIVATE KEY", b"hunter2"), "no RSA key of at least 2048 bits"),
            (pem("RSA PRIVATE KEY", b"hunter2"), "no RSA key of at least 2048 bits"),
        ] {
            let problem = signed(1, &key, Timestamp(0)).unwrap_err().one_line();
            assert!(problem.contains(expected) && !problem.contains("hunter2"), "{problem}");
        }
    }
}
