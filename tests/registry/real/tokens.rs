//! Who gives the tokens that a registry wants to see, as the distribution's `auth: {token: …}` has it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use launchway::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::server::basic;

pub(super) const SERVICE: &str = "registry-of-the-test";
pub(super) const ISSUER: &str = "tokens-of-the-test";

/// Gives tokens; the registry that has the certificate takes them.
#[derive(Debug)]
pub(super) struct Tokens {
    /// Where they are to be had.
    pub(super) realm: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    key: EcdsaKeyPair,
    /// The certificate as a token carries it.
    chain: String,
    folder: tempfile::TempDir,
}

impl Tokens {
    pub(super) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut make = Command::new("openssl");
        make.current_dir(folder.path()).args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
        make.args(["-nodes", "-days", "1", "-subj", "/CN=tokens", "-keyout", "key.pem", "-out", "certificate.pem"]);
        let made = make.output().expect("openssl");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let pem = |name: &str| {
            let text = fs::read_to_string(folder.path().join(name)).unwrap();
            text.lines().filter(|line| !line.starts_with("-----")).collect::<String>()
        };
        let (key, chain) = (STANDARD.decode(pem("key.pem")).unwrap(), pem("certificate.pem"));
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key).unwrap();
        let shared = Arc::new(Shared { key, chain, folder });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let realm = format!("http://{}/token", listener.local_addr().unwrap());
        let app = Router::new().route("/token", get(answer)).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { realm, shared }
    }

    /// The file with the certificate.
    pub(super) fn certificate(&self) -> PathBuf {
        self.shared.folder.path().join("certificate.pem")
    }

    /// A token for these actions.
    pub(super) fn give(&self, repository: &str, actions: &[&str]) -> String {
        self.shared.give(json!([{"type": "repository", "name": repository, "actions": actions}]))
    }
}

impl Shared {
    fn give(&self, access: Value) -> String {
        let now = SystemClock.now().0 / 1000;
        let header = json!({"typ": "JWT", "alg": "ES256", "x5c": [self.chain]});
        let claims = json!({
            "iss": ISSUER, "sub": "", "aud": SERVICE, "jti": "1", "access": access,
            "exp": now + 300, "nbf": now - 60, "iat": now,
        });
        let signed = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Somebody who is known may pull what he asks for; all others get a token that allows nothing.
async fn answer(
    State(shared): State<Arc<Shared>>,
    Query(asked): Query<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Result<String, StatusCode> {
    let said = |name: &str| asked.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    let authorization = headers.get("authorization").and_then(|value| value.to_str().ok());
    let is_known = authorization == Some(&basic());
    if said("service") != SERVICE || (authorization.is_some() && !is_known) {
        return Err(StatusCode::UNAUTHORIZED);
    }
    let [kind, name, actions] = said("scope").split(':').collect::<Vec<_>>()[..] else {
        return Err(StatusCode::BAD_REQUEST);
    };
    let pulls = is_known && actions.split(',').any(|action| action == "pull");
    let access = if pulls { json!([{"type": kind, "name": name, "actions": ["pull"]}]) } else { json!([]) };
    Ok(json!({"token": shared.give(access), "expires_in": 300}).to_string())
}
