//! The name of an OCI image in a registry, as `docker pull` reads it.

use std::fmt;

/// Where names without a host are.
const DEFAULT_HOST: &str = "docker.io";
/// What answers for it.
const DEFAULT_API: &str = "registry-1.docker.io";
/// The longest name of a repository; source: the OCI distribution specification.
const LONGEST: usize = 255;

/// A tag of a repository in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageName {
    host: String,
    repository: String,
    tag: String,
}

impl ImageName {
    /// Reads `[host/]repository[:tag]`; nothing, if it is no such name, or names a digest.
    pub fn parse(text: &str) -> Option<Self> {
        if text.contains('@') {
            return None;
        }
        let (host, rest) = match text.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
            _ => (DEFAULT_HOST, text),
        };
        let (repository, tag) = rest.rsplit_once(':').unwrap_or((rest, "latest"));
        let of_library = host == DEFAULT_HOST && !repository.contains('/');
        let repository = if of_library { format!("library/{repository}") } else { repository.to_owned() };
        let is_host = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':'));
        let is_good = is_host && repository.len() <= LONGEST && repository.split('/').all(is_component) && is_tag(tag);
        is_good.then(|| Self { host: host.to_owned(), repository, tag: tag.to_owned() })
    }

    /// The host as the name says it.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// What answers for the host, with its port.
    pub fn api(&self) -> &str {
        if self.host == DEFAULT_HOST { DEFAULT_API } else { &self.host }
    }

    /// The repository.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The image of a digest in the same repository.
    pub fn at(&self, digest: &str) -> String {
        format!("{}/{}@{digest}", self.host, self.repository)
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:{}", self.host, self.repository, self.tag)
    }
}

fn is_component(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-');
    let is_edge = |end: Option<char>| end.is_some_and(|end| end.is_ascii_lowercase() || end.is_ascii_digit());
    text.bytes().all(is_inner) && is_edge(text.chars().next()) && is_edge(text.chars().next_back())
}

fn is_tag(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let may_begin = text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_');
    may_begin && text.len() <= 128 && text.bytes().all(is_inner)
}

/// Whether a text is a digest that this program can compare.
pub(super) fn is_digest(text: &str) -> bool {
    let hex = text.strip_prefix("sha256:").unwrap_or_default();
    hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_docker_reads_them() {
        for (text, expected, api) in [
            ("nginx", "docker.io/library/nginx:latest", "registry-1.docker.io"),
            ("acme/web:1.2", "docker.io/acme/web:1.2", "registry-1.docker.io"),
            ("quay.io/acme/web", "quay.io/acme/web:latest", "quay.io"),
            ("localhost/web:a", "localhost/web:a", "localhost"),
            ("127.0.0.1:5000/acme/web:a", "127.0.0.1:5000/acme/web:a", "127.0.0.1:5000"),
        ] {
            let name = ImageName::parse(text).expect(text);
            assert_eq!((name.to_string().as_str(), name.api()), (expected, api));
        }
        for text in ["", "Web", "quay.io/", "quay.io/a//b", "a b", "a:", "a:-x", "a@sha256:00", "quay.io/../x", "x@y/a"]
        {
            assert_eq!(ImageName::parse(text), None, "{text}");
        }
    }
}
