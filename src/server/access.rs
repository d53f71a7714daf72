//! Who may read and who may act.
//!
//! The socket for commands tells the user, and whoever can open it may do everything. The one for hooks takes what a hook
//! needs, of any user. Over TCP every request needs a token, but for reading what comes straight from this machine, as
//! long as nothing says that a proxy stands before this server. A browser that was lured here by another site gives itself
//! away by its `Host` or `Origin` and gets nothing; it may read, and send the forms of this server's own pages.

use std::net::SocketAddr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::http::{HeaderMap, StatusCode, header};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;

use super::host::{Host, PublicAddress};
use super::origin::Origin;
use super::problem::Problem;

/// Who asks where nobody has to say it.
pub const THIS_MACHINE: &str = "this machine";
/// What proxies add; `x-forwarded-…` does too.
const ADDED_BY_PROXIES: [&str; 6] =
    ["forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip"];

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reading.
    Read,
    /// Reading and acting.
    Operate,
}

/// What somebody must be allowed for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// To read what becomes of one revision.
    Follow,
    /// To have a repository synced.
    Sync,
    /// To read anything.
    Read,
    /// To send the form of a page.
    Submit,
    /// To do anything.
    Operate,
}

impl Need {
    /// Whether it changes nothing.
    pub(super) fn is_reading(self) -> bool {
        self.role() == Role::Read
    }

    /// What a token must allow for it.
    fn role(self) -> Role {
        match self {
            Self::Follow | Self::Read => Role::Read,
            Self::Sync | Self::Submit | Self::Operate => Role::Operate,
        }
    }

    /// Whether it is what a browser does for its user, who gives a token as a password.
    pub(super) fn is_of_browsers(self) -> bool {
        self.is_reading() || self == Self::Submit
    }
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

/// The rules of one daemon.
#[derive(Clone, Debug)]
pub struct Access {
    /// Who is known.
    pub tokens: Vec<Token>,
    /// Whether only this machine can connect over TCP.
    pub loopback: bool,
    /// Where people reach this server; then something stands before it that may pass on anybody's requests.
    pub public: Option<PublicAddress>,
}

impl Access {
    /// Whether a request may do what it needs; returns who asks.
    ///
    /// # Errors
    /// The answer to give instead.
    pub fn admit(&self, origin: &Origin, headers: &HeaderMap, need: Need) -> Result<String, Problem> {
        match (origin, need) {
            (Origin::Commands { user }, _) | (Origin::Hooks { user }, Need::Follow | Need::Sync) => Ok(user.clone()),
            (Origin::Hooks { .. }, Need::Read | Need::Submit | Need::Operate) => Err(only_for_hooks()),
            (Origin::Deployers { .. }, _) => Err(only_for_deployers()),
            (Origin::Network { client }, _) => self.admit_from_network(*client, headers, need),
        }
    }

    /// A browser, which can send no token of itself, may give one as the password of any user. It sends that with whatever
    /// any page makes it ask for: a form counts only where the browser says that a page of this server has sent it.
    fn admit_from_network(&self, client: SocketAddr, headers: &HeaderMap, need: Need) -> Result<String, Problem> {
        self.not_lured(headers)?;
        if need == Need::Submit && !headers.contains_key(header::ORIGIN) {
            let detail = "the form of a page is taken only from a browser that says where it has it from";
            return Err(Problem::new(StatusCode::FORBIDDEN, detail).hint("programs use `/api/v1`"));
        }
        let role = need.role();
        let token = match presented(headers) {
            Some(secret) => self.known(secret),
            None => password(headers).filter(|_| need.is_of_browsers()).and_then(|secret| self.known(&secret)),
        };
        match token {
            Some(token) if token.role >= role => Ok(token.name.clone()),
            Some(token) => {
                let detail = format!("the token of `{}` may read, not act", token.name);
                Err(Problem::new(StatusCode::FORBIDDEN, detail))
            }
            None if role == Role::Read && self.is_open(client, headers) => Ok(THIS_MACHINE.to_owned()),
            None => Err(unauthorized()),
        }
    }

    /// Whether a request comes straight from this machine, as far as can be told: a proxy may name no one else and send a
    /// `Host` of its own, so that nothing is open once there is a public address. A token that was sent counts.
    fn is_open(&self, client: SocketAddr, headers: &HeaderMap) -> bool {
        self.loopback
            && self.public.is_none()
            && client.ip().to_canonical().is_loopback()
            && presented(headers).is_none()
            && !is_forwarded(headers)
    }

    fn known(&self, secret: &str) -> Option<&Token> {
        let same = |token: &&Token| verify_slices_are_equal(token.secret.as_bytes(), secret.as_bytes()).is_ok();
        self.tokens.iter().filter(|token| !token.secret.is_empty()).find(same)
    }

    fn not_lured(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let text = headers.get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let host = Host::parse(text);
        let is_ours = |host: &Host| host.is_loopback() || self.public.as_ref().is_some_and(|public| public.is_at(host));
        if self.loopback && !host.as_ref().is_some_and(is_ours) {
            let detail = format!("this server does not answer for host `{text}`");
            return Err(Problem::new(StatusCode::FORBIDDEN, detail).hint("set `publicUrl` to the address you use"));
        }
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let from = origin.to_str().ok().and_then(PublicAddress::parse);
        let is_own = |from: &PublicAddress| {
            host.as_ref().is_some_and(|host| from.is_at(host))
                || self.public.as_ref().is_some_and(|public| public.is_same_site(from))
        };
        match from.as_ref().is_some_and(is_own) {
            true => Ok(()),
            false => Err(Problem::new(StatusCode::FORBIDDEN, "this server takes no requests from other sites")),
        }
    }
}

fn unauthorized() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "a valid token is needed").hint(
        "send it as `Authorization: Bearer …`, commands that of `LAUNCHWAY_TOKEN`; the operator's is `operator-token` in \
         the state folder",
    )
}

fn only_for_hooks() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "this socket takes only what a hook needs: a sync, and what becomes of a push")
        .hint("use `launchway.sock`, as the daemon's own user or in its `access.socketGroup`")
}

fn only_for_deployers() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "this socket is for deployers, each of which may do something to its deployment alone",
    )
}

/// Whether a proxy says that it passes this on.
fn is_forwarded(headers: &HeaderMap) -> bool {
    let is_added = |name: &str| ADDED_BY_PROXIES.contains(&name) || name.starts_with("x-forwarded");
    headers.keys().any(|name| is_added(name.as_str()))
}

/// The token of a request: `Authorization: Bearer`, or `x-token`.
pub(super) fn presented(headers: &HeaderMap) -> Option<&str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn access(public: Option<&str>) -> Access {
        let tokens = vec![Token::new("ann", Role::Operate, "operate"), Token::new("ci", Role::Read, "read")];
        Access { tokens, loopback: true, public: public.and_then(PublicAddress::parse) }
    }

    /// The rules of a daemon that listens on another address than loopback.
    fn exposed() -> Access {
        Access { loopback: false, ..access(None) }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value"))).collect()
    }

    fn network(client: &str) -> Origin {
        Origin::Network { client: client.parse().expect("an address") }
    }

    fn here() -> Origin {
        network("127.0.0.1:50000")
    }

    /// Who is admitted, or the status of the answer.
    fn decide(access: &Access, origin: &Origin, pairs: &[(&'static str, &str)], need: Need) -> Result<String, u16> {
        access.admit(origin, &headers(pairs), need).map_err(|problem| problem.status)
    }

    #[test]
    fn where_a_request_comes_from_decides_what_it_may_do() {
        let user = |name: &str| name.to_owned();
        let (commands, hooks) = (Origin::Commands { user: user("ann") }, Origin::Hooks { user: user("git") });
        let elsewhere = network("192.0.2.7:50000");
        let (loopback, behind_proxy, exposed) = (access(None), access(Some("https://deploy.example")), exposed());
        let local: &[_] = &[("host", "localhost")];
        let (yes, no) = (|name: &str| Ok(user(name)), |status: u16| Err(status));
        let all = [Need::Follow, Need::Sync, Need::Read, Need::Operate];
        assert_eq!(decide(&loopback, &hooks, &[], Need::Submit), no(403));
        for (rules, origin, pairs, expected) in [
            (&loopback, &commands, &[][..], [yes("ann"), yes("ann"), yes("ann"), yes("ann")]),
            (&behind_proxy, &commands, &[], [yes("ann"), yes("ann"), yes("ann"), yes("ann")]),
            (&exposed, &commands, &[], [yes("ann"), yes("ann"), yes("ann"), yes("ann")]),
            (&loopback, &hooks, &[], [yes("git"), yes("git"), no(403), no(403)]),
            (&loopback, &hooks, &[("x-token", "operate")], [yes("git"), yes("git"), no(403), no(403)]),
            (&loopback, &here(), local, [yes(THIS_MACHINE), no(401), yes(THIS_MACHINE), no(401)]),
            (&behind_proxy, &here(), local, [no(401), no(401), no(401), no(401)]),
            (&exposed, &here(), local, [no(401), no(401), no(401), no(401)]),
            (&exposed, &elsewhere, local, [no(401), no(401), no(401), no(401)]),
            (&loopback, &elsewhere, local, [no(401), no(401), no(401), no(401)]),
        ] {
            let found = all.map(|need| decide(rules, origin, pairs, need));
            assert_eq!(found, expected, "{origin:?} {pairs:?} {rules:?}");
        }
    }

    #[test]
    fn what_a_proxy_passes_on_needs_a_token() {
        for header in ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"] {
            let forwarded = &[("host", "localhost"), (header, "192.0.2.7")];
            assert_eq!(decide(&access(None), &here(), forwarded, Need::Read), Err(401), "{header}");
            let with_token = &[("host", "localhost"), (header, "192.0.2.7"), ("x-token", "read")];
            assert_eq!(decide(&access(None), &here(), with_token, Need::Read), Ok("ci".into()), "{header}");
        }
    }

    #[test]
    fn on_loopback_only_our_hosts_are_answered() {
        for (host, plain, public) in [
            ("localhost:8787", Ok(THIS_MACHINE), Err(401)),
            ("127.0.0.1:8787", Ok(THIS_MACHINE), Err(401)),
            ("[::1]:8787", Ok(THIS_MACHINE), Err(401)),
            ("deploy.example", Err(403), Err(401)),
            ("DEPLOY.example:443", Err(403), Err(401)),
            ("evil.example", Err(403), Err(403)),
            ("localhost.evil.example", Err(403), Err(403)),
            ("", Err(403), Err(403)),
        ] {
            let read = |access: &Access| decide(access, &here(), &[("host", host)], Need::Read);
            assert_eq!(read(&access(None)), plain.map(str::to_owned), "{host}");
            assert_eq!(
                read(&access(Some("https://deploy.example"))),
                public.map(|name: &str| name.to_owned()),
                "{host}"
            );
        }
    }

    #[test]
    fn another_sites_page_gets_nothing() {
        let access = access(Some("https://Deploy.Example"));
        for (origin, allowed) in [
            ("http://localhost:8787", true),
            ("https://deploy.example", true),
            ("https://deploy.example:443", true),
            ("http://deploy.example", false),
            ("http://localhost:9999", false),
            ("https://evil.example", false),
            ("null", false),
        ] {
            let pairs = [("host", "localhost:8787"), ("origin", origin), ("x-token", "operate")];
            assert_eq!(decide(&access, &here(), &pairs, Need::Operate).is_ok(), allowed, "{origin}");
        }
    }

    #[test]
    fn acting_needs_an_operators_token() {
        let status =
            |name, value| decide(&access(None), &here(), &[("host", "localhost"), (name, value)], Need::Operate);
        assert_eq!(status("authorization", "Bearer operate"), Ok("ann".into()));
        assert_eq!(status("authorization", "bearer operate"), Ok("ann".into()));
        assert_eq!(status("x-token", "operate"), Ok("ann".into()));
        assert_eq!(status("x-token", "read"), Err(403));
        assert_eq!(status("x-token", "guess"), Err(401));
    }

    #[test]
    fn reading_from_elsewhere_needs_a_token() {
        let from = |pairs: &[_]| decide(&exposed(), &network("192.0.2.7:1"), pairs, Need::Read);
        assert_eq!(from(&[("host", "deploy.example")]), Err(401));
        assert_eq!(from(&[("host", "deploy.example"), ("x-token", "read")]), Ok("ci".into()));
    }

    #[test]
    fn a_browser_gives_its_token_as_a_password_and_can_only_read() {
        for (credentials, allowed) in [("ann:operate", true), (":read", true), ("read:", false), ("read", false)] {
            let value = format!("Basic {}", BASE64.encode(credentials));
            let elsewhere = |need| {
                let pairs = [("host", "deploy.example"), ("authorization", value.as_str())];
                decide(&exposed(), &network("192.0.2.7:1"), &pairs, need).is_ok()
            };
            assert_eq!(elsewhere(Need::Read), allowed, "{credentials}");
            assert!(!elsewhere(Need::Operate), "{credentials}");
            let pairs = [("host", "localhost"), ("authorization", value.as_str())];
            assert!(decide(&access(None), &here(), &pairs, Need::Read).is_ok(), "{credentials}");
        }
    }

    #[test]
    fn a_form_counts_only_of_this_servers_own_pages() {
        let (own, basic) = (Some("https://deploy.example"), |it: &str| format!("Basic {}", BASE64.encode(it)));
        for (origin, credentials, expected) in [
            (own, basic("ann:operate"), Ok("ann")),
            (own, "Bearer operate".to_owned(), Ok("ann")),
            (own, basic("ci:read"), Err(403)),
            (own, basic("ann:guess"), Err(401)),
            (None, basic("ann:operate"), Err(403)),
            (Some("null"), basic("ann:operate"), Err(403)),
            (Some("https://evil.example"), basic("ann:operate"), Err(403)),
        ] {
            let mut pairs = vec![("host", "deploy.example"), ("authorization", credentials.as_str())];
            pairs.extend(origin.map(|origin| ("origin", origin)));
            let found = decide(&access(own), &here(), &pairs, Need::Submit);
            assert_eq!(found, expected.map(str::to_owned), "{origin:?} {credentials}");
        }
        let unasked = [("host", "localhost"), ("origin", "http://localhost")];
        assert_eq!(decide(&access(None), &here(), &unasked, Need::Submit), Err(401));
    }

    #[test]
    fn a_wrong_token_is_refused_even_where_none_is_needed() {
        let pairs = [("host", "localhost"), ("x-token", "guess")];
        assert_eq!(decide(&access(None), &here(), &pairs, Need::Read), Err(401));
    }

    #[test]
    fn an_empty_secret_opens_nothing() {
        let access = Access { tokens: vec![Token::new("x", Role::Operate, "")], ..access(None) };
        let pairs = [("host", "localhost"), ("x-token", "")];
        assert_eq!(decide(&access, &here(), &pairs, Need::Operate), Err(401));
    }

    #[test]
    fn a_token_shows_no_secret() {
        assert!(!format!("{:?}", Token::new("ann", Role::Operate, "hunter2")).contains("hunter2"));
    }
}
