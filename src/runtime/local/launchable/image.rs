//! What a resolved image names on this machine.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{Failure, Result};

/// A resolved image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Image {
    /// The host's own files.
    Host,
    /// A directory of a revision.
    Tree {
        /// Where it is in the revision, for messages.
        path: String,
        /// Its tree's id in hex.
        id: String,
    },
    /// An archive in a file of this machine.
    File {
        /// Its absolute path.
        path: PathBuf,
        /// SHA-256 in hex, if the image names it.
        digest: Option<String>,
    },
    /// An archive on a web server.
    Web {
        /// Its address.
        url: String,
        /// SHA-256 in hex.
        digest: String,
    },
}

impl Image {
    /// Reads a resolved image.
    pub(super) fn parse(image: &str) -> Result<Self> {
        let refused = |what: &str, hint: &str| Failure::stalled(format!("image `{}` {what}", shown(image))).hint(hint);
        if image == "host" {
            return Ok(Self::Host);
        }
        if let Some(tree) = image.strip_prefix("git:") {
            let found = tree.rsplit_once('@').filter(|(_, id)| is_hex(id, 40) || is_hex(id, 64));
            let (path, id) =
                found.ok_or_else(|| refused("has no tree id", "it is added when a revision is planned"))?;
            return Ok(Self::Tree { path: path.to_owned(), id: id.to_owned() });
        }
        let (location, digest) = match image.rsplit_once("@sha256:") {
            Some((location, digest)) if is_hex(digest, 64) => (location, Some(digest.to_owned())),
            Some(_) => return Err(refused("has a malformed digest", "write `@sha256:` and 64 lower-case hex digits")),
            None => (image, None),
        };
        if let Some(path) = location.strip_prefix("file://").map(Path::new) {
            if !path.is_absolute() {
                return Err(refused("is no absolute path", "write `file:///` and the path"));
            }
            return Ok(Self::File { path: path.to_owned(), digest });
        }
        if !location.starts_with("https://") {
            return Err(refused("names no launchable", "use `git:<path>`, `file:///…`, `https://…` or `host`"));
        }
        let digest = digest.ok_or_else(|| refused("has no digest", "add `@sha256:` and the archive's SHA-256"))?;
        Ok(Self::Web { url: location.to_owned(), digest })
    }
}

impl fmt::Display for Image {
    /// As in a file, without the digest and without what an address may hold of secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Tree { path, .. } => write!(f, "git:{path}"),
            Self::File { path, .. } => write!(f, "file://{}", path.display()),
            Self::Web { url, .. } => f.write_str(&shown(url)),
        }
    }
}

/// An address without user, password and query.
fn shown(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.escape_debug().to_string() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    format!("{scheme}://{host}{path}").escape_debug().to_string()
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// What content is called on the disk: one name for equal content, whatever it was named by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key(String);

impl Key {
    /// The key of a Git tree.
    pub(super) fn tree(id: &str) -> Self {
        Self(format!("git-{id}"))
    }

    /// The key of an archive.
    pub(super) fn archive(sha256: &str) -> Self {
        Self(format!("sha256-{sha256}"))
    }

    /// The key that a folder of this name stands for.
    pub(super) fn of_folder(name: &str) -> Option<Self> {
        let known = |rest: &str| is_hex(rest, 40) || is_hex(rest, 64);
        let rest = name.strip_prefix("git-").or_else(|| name.strip_prefix("sha256-"))?;
        known(rest).then(|| Self(name.to_owned()))
    }

    /// As a folder's name.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHA1: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
    const SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn every_resolved_form_is_read() {
        let tree = |path: &str| Image::Tree { path: path.into(), id: SHA1.into() };
        let file =
            |digest: Option<&str>| Image::File { path: "/srv/app@1.tar.gz".into(), digest: digest.map(str::to_owned) };
        let cases = [
            ("host".to_owned(), Image::Host),
            (format!("git:apps/web@{SHA1}"), tree("apps/web")),
            (format!("git:.@{SHA1}"), tree(".")),
            (format!("git:a@b@{SHA1}"), tree("a@b")),
            ("file:///srv/app@1.tar.gz".to_owned(), file(None)),
            (format!("file:///srv/app@1.tar.gz@sha256:{SHA256}"), file(Some(SHA256))),
            (
                format!("https://x.example/a.tgz@sha256:{SHA256}"),
                Image::Web { url: "https://x.example/a.tgz".into(), digest: SHA256.into() },
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(Image::parse(&text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_resolved_form_is_refused_with_a_hint() {
        let cases = [
            ("git:app", "image `git:app` has no tree id"),
            ("git:app@HEAD", "image `git:app@HEAD` has no tree id"),
            ("file://app.tar.gz", "image `file://app.tar.gz` is no absolute path"),
            ("file:///a@sha256:12", "image `file:///a@sha256:12` has a malformed digest"),
            ("https://u:p@x.example/a.tgz?token=1", "image `https://x.example/a.tgz` has no digest"),
            ("http://x.example/a.tgz", "image `http://x.example/a.tgz` names no launchable"),
            ("docker.io/library/nginx:1", "image `docker.io/library/nginx:1` names no launchable"),
        ];
        for (text, expected) in cases {
            let failure = Image::parse(text).unwrap_err();
            assert_eq!(failure.to_string(), expected);
            assert!(failure.hint_text().is_some());
        }
    }

    proptest! {
        #[test]
        fn nothing_panics_and_no_key_is_a_path(text in ".{0,80}") {
            let _ignored = Image::parse(&text).map(|image| image.to_string());
            if let Some(key) = Key::of_folder(&text) {
                prop_assert!(!key.as_str().contains(['/', '.']));
            }
        }
    }
}
