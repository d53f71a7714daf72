//! A registry of one image, as mannered as it is told to be.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::stream;

/// The digest of the text `{}`.
pub(crate) const DIGEST: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
pub(crate) const OTHER: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// How it behaves.
#[derive(Clone, Debug)]
pub(crate) struct Manners {
    pub(crate) digest: &'static str,
    /// Wants a user name and a password.
    pub(crate) basic: bool,
    /// Wants a token, which these give.
    pub(crate) bearer: bool,
    /// Does not say the digest in a header.
    pub(crate) silent: bool,
    /// Its manifest never ends.
    pub(crate) endless: bool,
    /// Leads on so often before it answers.
    pub(crate) redirects: u32,
    /// Leads to another address.
    pub(crate) elsewhere: Option<String>,
    /// Answers nothing else.
    pub(crate) status: Option<u16>,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            digest: DIGEST,
            basic: false,
            bearer: false,
            silent: false,
            endless: false,
            redirects: 0,
            elsewhere: None,
            status: None,
        }
    }
}

/// A running one.
pub(crate) struct Double {
    pub(crate) address: SocketAddr,
    shared: Shared,
}

#[derive(Clone)]
struct Shared {
    manners: Arc<Mutex<Manners>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Double {
    pub(crate) async fn start(manners: Manners) -> Self {
        let shared = Shared { manners: Arc::new(Mutex::new(manners)), seen: Arc::default() };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new().fallback(answer).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, shared }
    }

    pub(crate) fn set(&self, manners: Manners) {
        *self.shared.manners.lock().unwrap() = manners;
    }

    /// What it was asked, and how it has answered.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.shared.seen.lock().unwrap().clone()
    }
}

async fn answer(State(shared): State<Shared>, request: Request) -> Response<Body> {
    let manners = shared.manners.lock().unwrap().clone();
    let response = respond(&manners, &request);
    let told = format!("{} {}", request.method(), response.status().as_u16());
    shared.seen.lock().unwrap().push(told);
    response
}

fn respond(manners: &Manners, request: &Request) -> Response<Body> {
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    let host = text(request.headers(), "host");
    let basic = format!("Basic {}", STANDARD.encode("ci:hunter2"));
    let given = text(request.headers(), "authorization");
    if path == "/token" {
        let is_good = given == basic && query.contains("service=double") && query.contains("acme%2Fweb%3Apull");
        return if is_good { plain(200, r#"{"token": "t0ken"}"#) } else { plain(401, "") };
    }
    if let Some(status) = manners.status {
        return plain(status, "");
    }
    let wanted = if manners.basic { basic.as_str() } else { "Bearer t0ken" };
    if (manners.basic || manners.bearer) && given != wanted {
        let challenge = match manners.basic {
            true => r#"Basic realm="double""#.to_owned(),
            false => format!(r#"Bearer realm="http://{host}/token",service="double",scope="repository:acme/web:pull""#),
        };
        return Response::builder().status(401).header("www-authenticate", challenge).body(Body::empty()).unwrap();
    }
    if let Some(elsewhere) = &manners.elsewhere {
        return led_to(&format!("{elsewhere}{path}"));
    }
    let times: u32 = query.strip_prefix("again=").and_then(|times| times.parse().ok()).unwrap_or(0);
    if times < manners.redirects {
        return led_to(&format!("{path}?again={}", times + 1));
    }
    let etag = format!("\"{}\"", manners.digest);
    if text(request.headers(), "if-none-match") == etag {
        return plain(304, "");
    }
    assert_eq!(path, "/v2/acme/web/manifests/prod");
    assert!(text(request.headers(), "accept").contains("application/vnd.oci.image.index.v1+json"));
    let mut response = Response::builder().status(StatusCode::OK).header("etag", etag);
    if !manners.silent {
        response = response.header("docker-content-digest", manners.digest);
    }
    let chunk = || Ok::<_, std::io::Error>(vec![b' '; 1 << 16]);
    let body = match manners.endless {
        true => Body::from_stream(stream::iter(std::iter::repeat_with(chunk))),
        false => Body::from("{}"),
    };
    response.body(body).unwrap()
}

fn led_to(address: &str) -> Response<Body> {
    Response::builder().status(307).header("location", address).body(Body::empty()).unwrap()
}

fn plain(status: u16, body: &'static str) -> Response<Body> {
    Response::builder().status(status).body(Body::from(body)).unwrap()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
