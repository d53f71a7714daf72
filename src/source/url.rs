//! Addresses of repositories: the forms that `git` takes, without those that run programs.

use std::fmt;
use std::path::{Path, PathBuf};

use reqwest::Url;

use crate::error::{Failure, Result};
use crate::model::host::is_loopback;

/// Where a repository is. Holds no secret: an address with a password in it is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteUrl {
    text: String,
    parts: UrlParts,
}

/// An address, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UrlParts {
    Local(PathBuf),
    /// `url` has no user name, password, query or trailing slash.
    Http {
        url: Url,
        user: Option<String>,
    },
    Ssh {
        user: Option<String>,
        host: String,
        port: Option<u16>,
        path: String,
    },
    Git {
        host: String,
        port: u16,
        path: String,
    },
}

/// A repository's place on a forge, guessed from its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slug {
    /// Where the forge's pages are, such as `https://git.example:3000`.
    pub base: String,
    /// The owner, with slashes in it where groups nest.
    pub owner: String,
    /// The repository's name, without `.git`.
    pub name: String,
}

impl RemoteUrl {
    /// Reads an address: a path, `file://`, `https://`, `http://`, `ssh://`, `git://` or `user@host:path`.
    ///
    /// `http` and `git` are refused to other machines unless `insecure` is set, because anyone on the way could change
    /// what is deployed.
    pub fn parse(text: &str, insecure: bool) -> Result<Self> {
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(Failure::stalled("the repository's address is empty or holds control characters"));
        }
        let parts = match text.split_once("://") {
            Some((scheme, rest)) => with_scheme(&scheme.to_ascii_lowercase(), rest, text)?,
            None => without_scheme(text)?,
        };
        let url = Self { text: display(&parts), parts };
        url.refuse_unencrypted(insecure)?;
        Ok(url)
    }

    pub(super) fn parts(&self) -> &UrlParts {
        &self.parts
    }

    /// The path of a repository on this machine.
    pub fn local_path(&self) -> Option<&Path> {
        match &self.parts {
            UrlParts::Local(path) => Some(path),
            _ => None,
        }
    }

    /// The host that it is on; empty for this machine.
    pub fn host(&self) -> &str {
        match &self.parts {
            UrlParts::Local(_) => "",
            UrlParts::Http { url, .. } => url.host_str().unwrap_or_default(),
            UrlParts::Ssh { host, .. } | UrlParts::Git { host, .. } => host,
        }
    }

    /// The last part of the path without `.git`: a name to call the repository by.
    pub fn short_name(&self) -> String {
        let path = match &self.parts {
            UrlParts::Local(path) => path.to_string_lossy().into_owned(),
            UrlParts::Http { url, .. } => url.path().to_owned(),
            UrlParts::Ssh { path, .. } | UrlParts::Git { path, .. } => path.clone(),
        };
        let path = path.trim_end_matches('/').trim_end_matches("/.git");
        let name = path.rsplit(['/', ':']).next().unwrap_or_default();
        name.strip_suffix(".git").unwrap_or(name).to_owned()
    }

    /// Guesses the forge behind an address of the form `host/owner…/name`.
    pub fn slug(&self) -> Option<Slug> {
        let (base, path) = match &self.parts {
            UrlParts::Http { url, .. } => (url.origin().ascii_serialization(), url.path()),
            UrlParts::Ssh { host, path, .. } => (format!("https://{}", bracketed(host)), path.as_str()),
            UrlParts::Git { host, path, .. } => (format!("https://{}", bracketed(host)), path.as_str()),
            UrlParts::Local(_) => return None,
        };
        let path = path.trim_matches('/');
        let (owner, name) = path.strip_suffix(".git").unwrap_or(path).rsplit_once('/')?;
        let plain = !owner.is_empty() && !name.is_empty() && !owner.starts_with('~');
        plain.then(|| Slug { base, owner: owner.to_owned(), name: name.to_owned() })
    }

    /// Whether both lead to the same repository as far as their texts tell: people and daemons reach one over different
    /// transports, as different users, at different ports.
    pub fn leads_where(&self, other: &Self) -> bool {
        self == other || self.place().is_some_and(|place| other.place() == Some(place))
    }

    /// The other machine, and the path there.
    fn place(&self) -> Option<(String, &str)> {
        let (host, path) = match &self.parts {
            UrlParts::Http { url, .. } => (url.host_str()?, url.path()),
            UrlParts::Ssh { host, path, .. } | UrlParts::Git { host, path, .. } => (host.as_str(), path.as_str()),
            UrlParts::Local(_) => return None,
        };
        let (host, path) = (host.trim_start_matches('[').trim_end_matches(']'), path.trim_matches('/'));
        Some((host.to_ascii_lowercase(), path.strip_suffix(".git").unwrap_or(path)))
    }

    fn refuse_unencrypted(&self, insecure: bool) -> Result<()> {
        let (scheme, host) = match &self.parts {
            UrlParts::Http { url, .. } if url.scheme() == "http" => ("http", url.host_str().unwrap_or_default()),
            UrlParts::Git { host, .. } => ("git", host.as_str()),
            _ => return Ok(()),
        };
        if insecure || is_loopback(host) {
            return Ok(());
        }
        Err(Failure::stalled(format!("`{self}` is not encrypted: {scheme}:// is refused to other machines"))
            .hint("use https:// or ssh://, or set `insecure: true` for this repository"))
    }
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

fn with_scheme(scheme: &str, rest: &str, text: &str) -> Result<UrlParts> {
    match scheme {
        "file" => file(rest, text),
        "http" | "https" => http(text),
        "ssh" | "git+ssh" | "ssh+git" => ssh(&parsed(&format!("ssh://{rest}"))?, text),
        "git" => git(&parsed(text)?, text),
        _ => Err(Failure::stalled(format!("`{scheme}://` is not a transport that is supported"))
            .hint("use a path, file://, https:// or ssh://")),
    }
}

fn without_scheme(text: &str) -> Result<UrlParts> {
    if text.split('/').next().is_some_and(|first| first.contains("::")) && !text.contains('[') {
        return Err(Failure::stalled(format!("`{text}` names a remote helper, and those are not run")));
    }
    match scp_like(text) {
        Some((user, host, path)) => ssh_address(user, host, None, path, text),
        None => {
            let path = std::path::absolute(text)
                .map_err(|error| Failure::stalled(format!("`{text}` is not a path")).because(error))?;
            Ok(UrlParts::Local(path))
        }
    }
}

/// `[user@]host:path`, where the colon comes before any slash, as `git` decides it.
fn scp_like(text: &str) -> Option<(Option<&str>, &str, &str)> {
    let (user, rest) = match text.split_once('@') {
        Some((user, rest)) if !user.contains(['/', ':']) => (Some(user), rest),
        _ => (None, text),
    };
    let (host, path) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once("]:")?,
        None => rest.split_once(':')?,
    };
    (!host.contains('/')).then_some((user, host, path))
}

fn file(rest: &str, text: &str) -> Result<UrlParts> {
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return Err(Failure::stalled(format!("`{text}` names another machine")).hint("write file:///absolute/path"));
    }
    Ok(UrlParts::Local(PathBuf::from(percent_decoded(path, text)?)))
}

fn http(text: &str) -> Result<UrlParts> {
    let mut url = parsed(text)?;
    refuse_password(&url)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(Failure::stalled("the repository's address has a `?` or `#` part, which Git does not use"));
    }
    let user = (!url.username().is_empty()).then(|| percent_decoded(url.username(), text)).transpose()?;
    let stripped = url.set_username("");
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    if stripped.is_err() || url.host_str().is_none_or(str::is_empty) {
        return Err(no_host(text));
    }
    Ok(UrlParts::Http { url, user })
}

fn ssh(url: &Url, text: &str) -> Result<UrlParts> {
    refuse_password(url)?;
    let user = (!url.username().is_empty()).then(|| percent_decoded(url.username(), text)).transpose()?;
    let host = url.host_str().ok_or_else(|| no_host(text))?;
    let path = percent_decoded(url.path(), text)?;
    let path = path.strip_prefix('/').filter(|path| path.starts_with('~')).unwrap_or(&path);
    ssh_address(user.as_deref(), host, url.port(), path, text)
}

fn ssh_address(user: Option<&str>, host: &str, port: Option<u16>, path: &str, text: &str) -> Result<UrlParts> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || path.trim_matches('/').is_empty() {
        return Err(Failure::stalled(format!("`{text}` lacks a host or a path")));
    }
    // A part that begins with a dash would be read as an option by `ssh` or by the program on the other side.
    if [host, path, user.unwrap_or_default()].iter().any(|part| part.starts_with('-')) {
        return Err(Failure::stalled(format!("a part of `{text}` begins with a dash")));
    }
    Ok(UrlParts::Ssh { user: user.map(str::to_owned), host: host.to_owned(), port, path: path.to_owned() })
}

fn git(url: &Url, text: &str) -> Result<UrlParts> {
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| no_host(text))?;
    let path = percent_decoded(url.path(), text)?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok(UrlParts::Git { host, port: url.port().unwrap_or(9418), path })
}

/// The reason is given without the address: it may hold a password in a place where no parser finds it.
fn parsed(text: &str) -> Result<Url> {
    Url::parse(text).map_err(|error| Failure::stalled("the repository's address cannot be read").because(error))
}

fn no_host(text: &str) -> Failure {
    Failure::stalled(format!("`{text}` names no host"))
}

fn refuse_password(url: &Url) -> Result<()> {
    if url.password().is_none() {
        return Ok(());
    }
    Err(Failure::stalled("the repository's address holds a password, which would show in logs and process lists")
        .hint("leave it out and set `credentials` (tokenFile or passwordFile), or LAUNCHWAY_GIT_TOKEN"))
}

fn percent_decoded(text: &str, whole: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = (first == b'%').then(|| tail.get(..2)).flatten().and_then(hex_byte);
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { tail.get(2..).unwrap_or_default() } else { tail };
    }
    match String::from_utf8(bytes) {
        Ok(decoded) if !decoded.chars().any(char::is_control) => Ok(decoded),
        _ => Err(Failure::stalled(format!("`{whole}` holds control characters or is not UTF-8"))),
    }
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok()?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

fn display(parts: &UrlParts) -> String {
    match parts {
        UrlParts::Local(path) => path.display().to_string(),
        UrlParts::Http { url, .. } => url.as_str().trim_end_matches('/').to_owned(),
        UrlParts::Ssh { user, host, port, path } => {
            let user = user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            format!("ssh://{user}{}{port}/{}", bracketed(host), path.trim_start_matches('/'))
        }
        UrlParts::Git { host, port, path } => {
            let port = if *port == 9418 { String::new() } else { format!(":{port}") };
            format!("git://{}{port}/{}", bracketed(host), path.trim_start_matches('/'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        RemoteUrl::parse(text, false).expect(text).to_string()
    }

    #[test]
    fn every_form_of_git_is_read() {
        for (text, expected) in [
            ("/srv/shop.git", "/srv/shop.git"),
            ("/srv/a:b", "/srv/a:b"),
            ("file:///srv/my%20shop.git", "/srv/my shop.git"),
            ("file://localhost/srv/shop", "/srv/shop"),
            ("https://git.example/acme/shop.git/", "https://git.example/acme/shop.git"),
            ("https://bot@git.example:3000/acme/shop", "https://git.example:3000/acme/shop"),
            ("ssh://git@git.example:2222/acme/shop.git", "ssh://git@git.example:2222/acme/shop.git"),
            ("git@git.example:acme/shop.git", "ssh://git@git.example/acme/shop.git"),
            ("git.example:~alice/shop", "ssh://git.example/~alice/shop"),
            ("ssh://host/~alice/shop", "ssh://host/~alice/shop"),
            ("git@[::1]:shop.git", "ssh://git@[::1]/shop.git"),
            ("git://127.0.0.1:9419/shop.git", "git://127.0.0.1:9419/shop.git"),
            ("http://localhost:8080/shop", "http://localhost:8080/shop"),
            ("http://[::1]/shop", "http://[::1]/shop"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn an_absolute_and_a_relative_ssh_path_differ() {
        let path = |text| match RemoteUrl::parse(text, false).expect(text).parts {
            UrlParts::Ssh { path, .. } => path,
            other => unreachable!("{other:?}"),
        };
        assert_eq!(path("ssh://host/srv/shop"), "/srv/shop");
        assert_eq!(path("host:srv/shop"), "srv/shop");
        assert_eq!(path("host:/srv/shop"), "/srv/shop");
        assert_eq!(path("ssh://host/~alice/shop"), "~alice/shop");
    }

    #[test]
    fn what_runs_programs_or_reveals_secrets_is_refused_without_repeating_them() {
        for text in [
            "",
            "ext::sh -c 'touch /tmp/x'",
            "fd::17",
            "ftp://host/x",
            "ssh://-oProxyCommand=x/y",
            "-oProxyCommand=x:y",
            "-x@host:y",
            "host:-x",
            "https://u:hunter2@git.example/x",
            "ssh://u:hunter2@git.example/x",
            "https://git.example/x?token=hunter2",
            "https://git.example/x\nHost: y",
            "ssh://host/a%0ab",
            "file://other/x",
            "https://u:hunter2@:x/",
        ] {
            let failure = RemoteUrl::parse(text, true).expect_err(text).one_line();
            assert!(!failure.contains("hunter2"), "{failure}");
        }
    }

    #[test]
    fn unencrypted_transports_leave_the_machine_only_when_allowed() {
        for text in ["http://git.example/x", "git://git.example/x", "http://127.0.0.1.evil.example/x"] {
            assert!(RemoteUrl::parse(text, false).is_err(), "{text}");
            assert!(RemoteUrl::parse(text, true).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_repository_is_the_same_over_every_transport() {
        let is_same = |one: &str, other: &str| {
            let parsed = |text| RemoteUrl::parse(text, true).expect(text);
            parsed(one).leads_where(&parsed(other))
        };
        for same in [
            "https://git.example/acme/shop",
            "https://bot@git.example:3000/acme/shop.git/",
            "git@Git.example:acme/shop.git",
            "ssh://git@git.example:2222/acme/shop.git",
            "git://git.example/acme/shop",
        ] {
            assert!(is_same("https://git.example/acme/shop.git", same), "{same}");
        }
        for other in ["https://git.example/acme/cart.git", "git@git.example:ann/shop", "git@other.example:acme/shop"] {
            assert!(!is_same("https://git.example/acme/shop.git", other), "{other}");
        }
        assert!(is_same("ssh://git@[::1]/acme/shop", "http://[::1]:8080/acme/shop"));
        assert!(is_same("/srv/shop.git", "file:///srv/shop.git") && !is_same("/srv/shop.git", "/srv/cart.git"));
    }

    #[test]
    fn a_forge_is_guessed() {
        for (text, expected) in [
            ("https://git.example:3000/acme/shop.git", Some(("https://git.example:3000", "acme", "shop"))),
            ("git@git.example:acme/team/shop", Some(("https://git.example", "acme/team", "shop"))),
            ("ssh://git@git.example:2222/acme/shop.git", Some(("https://git.example", "acme", "shop"))),
            ("https://git.example/shop", None),
            ("/srv/acme/shop.git", None),
        ] {
            let slug = RemoteUrl::parse(text, false).expect(text).slug();
            let slug = slug.as_ref().map(|slug| (slug.base.as_str(), slug.owner.as_str(), slug.name.as_str()));
            assert_eq!(slug, expected, "{text}");
        }
    }

    #[test]
    fn a_short_name_is_the_last_part() {
        for text in ["/srv/shop.git", "/srv/shop/.git", "/srv/shop/", "host:shop.git", "https://h.example/a/shop"] {
            assert_eq!(RemoteUrl::parse(text, false).expect(text).short_name(), "shop", "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,80}") {
            let _outcome = RemoteUrl::parse(&text, true);
        }
    }
}
