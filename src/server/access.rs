//! Who may read and who may act.
//!
//! On a loopback address anybody on the machine may read; a browser that was lured there by another site gives itself
//! away by its `Host` or `Origin` and gets nothing. Acting, and reading on any other address, needs a token.

use std::net::IpAddr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::http::{HeaderMap, StatusCode, header};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;

use super::problem::Problem;

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reading.
    Read,
    /// Reading and acting.
    Operate,
}

/// A secret that somebody proves themselves with.
#[derive(Clone)]
pub struct Token {
    /// Whose it is; in the record of what they do.
    pub name: String,
    /// What it allows.
    pub role: Role,
    secret: String,
}

impl Token {
    /// A token of somebody.
    pub fn new(name: impl Into<String>, role: Role, secret: impl Into<String>) -> Self {
        Self { name: name.into(), role, secret: secret.into() }
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("name", &self.name).field("role", &self.role).finish_non_exhaustive()
    }
}

/// The rules of one listener.
#[derive(Clone, Debug)]
pub struct Access {
    /// Who is known.
    pub tokens: Vec<Token>,
    /// Whether only this machine can connect.
    pub loopback: bool,
    /// The host of the public address, if there is one, as a browser sends it.
    pub public_host: Option<String>,
}

impl Access {
    /// Whether a request may read; returns who asks. A browser, which can send no token of itself, may give one as the
    /// password of any user.
    ///
    /// # Errors
    /// The answer to give instead.
    pub fn reader(&self, headers: &HeaderMap) -> Result<String, Problem> {
        self.not_lured(headers)?;
        let token = match presented(headers) {
            Some(secret) => self.known(secret),
            None => password(headers).and_then(|secret| self.known(&secret)),
        };
        match token {
            Some(token) => Ok(token.name.clone()),
            // A password may be meant for a proxy that stands before this server and passes it on.
            None if self.loopback && presented(headers).is_none() => Ok("this machine".to_owned()),
            None => Err(unauthorized()),
        }
    }

    /// Whether a request may act; returns who asks.
    ///
    /// # Errors
    /// The answer to give instead.
    pub fn operator(&self, headers: &HeaderMap) -> Result<String, Problem> {
        self.not_lured(headers)?;
        let token = presented(headers).and_then(|secret| self.known(secret)).ok_or_else(unauthorized)?;
        if token.role < Role::Operate {
            let detail = format!("the token of `{}` may read, not act", token.name);
            return Err(Problem::new(StatusCode::FORBIDDEN, detail));
        }
        Ok(token.name.clone())
    }

    fn known(&self, secret: &str) -> Option<&Token> {
        let same = |token: &&Token| verify_slices_are_equal(token.secret.as_bytes(), secret.as_bytes()).is_ok();
        self.tokens.iter().filter(|token| !token.secret.is_empty()).find(same)
    }

    fn not_lured(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let host = headers.get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if self.loopback && !self.is_ours(host) {
            let detail = format!("this server does not answer for host `{host}`");
            return Err(Problem::new(StatusCode::FORBIDDEN, detail).hint("set `publicUrl` to the address you use"));
        }
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let from = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
        if from.is_some_and(|from| from == host || self.is_public(from)) {
            return Ok(());
        }
        Err(Problem::new(StatusCode::FORBIDDEN, "this server takes no requests from other sites"))
    }

    fn is_ours(&self, host: &str) -> bool {
        is_loopback(host) || self.is_public(host)
    }

    fn is_public(&self, host: &str) -> bool {
        self.public_host.as_deref() == Some(host)
    }
}

fn unauthorized() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "a valid token is needed")
        .hint("send it as `Authorization: Bearer …`; the operator's is `operator-token` in the state folder")
}

/// The token of a request: `Authorization: Bearer`, or `x-token`.
fn presented(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer =
        |value: &'_ str| -> bool { value.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer ")) };
    match text("authorization") {
        Some(value) if bearer(value) => value.get(7..).map(str::trim),
        _ => text("x-token"),
    }
}

/// The password of a request that a browser sends after it asked its user.
fn password(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    let decoded = BASE64.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    String::from_utf8(decoded).ok()?.split_once(':').map(|(_, password)| password.to_owned())
}

/// Whether a `Host` header names this machine: `localhost` or an address of loopback, with any port.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(loopback: bool) -> Access {
        let tokens = vec![Token::new("ann", Role::Operate, "operate"), Token::new("ci", Role::Read, "read")];
        Access { tokens, loopback, public_host: Some("deploy.example".into()) }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value"))).collect()
    }

    #[test]
    fn reading_on_loopback_needs_no_token_but_our_host() {
        for (host, allowed) in [
            ("localhost:8787", true),
            ("127.0.0.1:8787", true),
            ("127.9.9.9", true),
            ("[::1]:8787", true),
            ("deploy.example", true),
            ("evil.example", false),
            ("localhost.evil.example", false),
            ("10.0.0.1", false),
            ("", false),
        ] {
            assert_eq!(access(true).reader(&headers(&[("host", host)])).is_ok(), allowed, "{host}");
        }
    }

    #[test]
    fn another_sites_page_gets_nothing() {
        for (origin, allowed) in [
            ("http://localhost:8787", true),
            ("https://deploy.example", true),
            ("http://localhost:9999", false),
            ("https://evil.example", false),
            ("null", false),
        ] {
            let headers = headers(&[("host", "localhost:8787"), ("origin", origin), ("x-token", "operate")]);
            assert_eq!(access(true).operator(&headers).is_ok(), allowed, "{origin}");
        }
    }

    #[test]
    fn acting_needs_an_operators_token() {
        let with = |name, value| headers(&[("host", "localhost"), (name, value)]);
        let status = |headers| access(true).operator(&headers).map_err(|problem| problem.status);
        assert_eq!(status(with("authorization", "Bearer operate")), Ok("ann".into()));
        assert_eq!(status(with("authorization", "bearer operate")), Ok("ann".into()));
        assert_eq!(status(with("x-token", "operate")), Ok("ann".into()));
        assert_eq!(status(with("x-token", "read")), Err(403));
        assert_eq!(status(with("x-token", "guess")), Err(401));
        assert_eq!(status(headers(&[("host", "localhost")])), Err(401));
    }

    #[test]
    fn reading_from_elsewhere_needs_a_token() {
        let from = |pairs: &[(&'static str, &str)]| access(false).reader(&headers(pairs)).is_ok();
        assert!(!from(&[("host", "deploy.example")]));
        assert!(from(&[("host", "deploy.example"), ("x-token", "read")]));
    }

    #[test]
    fn a_browser_gives_its_token_as_a_password_and_can_only_read() {
        for (credentials, allowed) in [("ann:operate", true), (":read", true), ("read:", false), ("read", false)] {
            let value = format!("Basic {}", BASE64.encode(credentials));
            let headers = headers(&[("host", "deploy.example"), ("authorization", &value)]);
            assert_eq!(access(false).reader(&headers).is_ok(), allowed, "{credentials}");
            assert!(access(false).operator(&headers).is_err(), "{credentials}");
            let here = self::headers(&[("host", "localhost"), ("authorization", &value)]);
            assert!(access(true).reader(&here).is_ok(), "{credentials}");
        }
    }

    #[test]
    fn a_wrong_token_is_refused_even_where_none_is_needed() {
        assert!(access(true).reader(&headers(&[("host", "localhost"), ("x-token", "guess")])).is_err());
    }

    #[test]
    fn an_empty_secret_opens_nothing() {
        let access = Access { tokens: vec![Token::new("x", Role::Operate, "")], loopback: true, public_host: None };
        assert!(access.operator(&headers(&[("host", "localhost"), ("x-token", "")])).is_err());
    }

    #[test]
    fn a_token_shows_no_secret() {
        assert!(!format!("{:?}", Token::new("ann", Role::Operate, "hunter2")).contains("hunter2"));
    }
}
