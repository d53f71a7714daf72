//! Images on the local runtime name a launchable: a folder of the repository, an archive, or the host's own files.

/// A launchable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Image {
    /// A folder of the deployed revision; its path is normalised, empty for the root.
    Git(String),
    /// An archive by its address.
    Archive,
    /// The host's own files.
    Host,
}

/// Why an image is refused, and what to write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) message: &'static str,
    pub(crate) hint: &'static str,
}

const FORMS: &str = "the local runtime runs `git:<folder>`, `file:///…`, `https://…@sha256:<hex>` or `host`; \
                     OCI images need another runtime";

/// Reads an image as a launchable.
pub(crate) fn parse(image: &str) -> Result<Image, Refusal> {
    let refuse = |message, hint| Err(Refusal { message, hint });
    if image == "host" {
        return Ok(Image::Host);
    }
    if let Some(path) = image.strip_prefix("git:") {
        return git(path);
    }
    let (address, digest) = match image.rsplit_once("@sha256:") {
        Some((address, digest)) => (address, Some(digest)),
        None => (image, None),
    };
    if digest.is_some_and(|hex| hex.len() != 64 || !hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))) {
        return refuse("the digest is malformed", "`@sha256:` is followed by 64 lower-case hexadecimal digits");
    }
    if address.starts_with("https://") {
        return match digest {
            Some(_) if address.len() > "https://".len() => Ok(Image::Archive),
            Some(_) => refuse("the address is incomplete", FORMS),
            None => refuse("an archive from the network needs its digest", "append `@sha256:<hex of the archive>`"),
        };
    }
    if let Some(path) = address.strip_prefix("file://") {
        let is_safe = path.starts_with('/') && path.len() > 1 && !path.split('/').any(|part| part == "..");
        return if is_safe {
            Ok(Image::Archive)
        } else {
            refuse("the archive's path must be absolute, without `..`", FORMS)
        };
    }
    if address.starts_with("http://") {
        return refuse("archives are not fetched over plain http", "use `https://…@sha256:<hex>`");
    }
    refuse("this is no launchable", FORMS)
}

fn git(path: &str) -> Result<Image, Refusal> {
    let refuse = |message, hint| Err(Refusal { message, hint });
    if path.contains('@') {
        return refuse("the revision of a folder is the deployed one", "write `git:<folder>` without `@`");
    }
    match folder(path) {
        Some(folder) => Ok(Image::Git(folder)),
        None => refuse(
            "the folder must be inside the repository",
            "write its path from the root, such as `git:services/web`, or `git:.` for all of it",
        ),
    }
}

/// The normal form of a folder's path from the root: empty for the root itself; `None` if it leaves the tree.
pub(crate) fn folder(path: &str) -> Option<String> {
    if path.is_empty() || path.starts_with('/') || path.contains(['\\', '\0']) {
        return None;
    }
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let leaves = parts.iter().any(|part| *part == ".." || part.eq_ignore_ascii_case(".git"));
    (!leaves).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchables_are_told_from_everything_else() {
        let hex = "a".repeat(64);
        let (https, file) = (format!("https://x.example/a.tgz@sha256:{hex}"), format!("file:///a.tgz@sha256:{hex}"));
        let good = [
            ("host", Image::Host),
            ("git:web", Image::Git("web".into())),
            ("git:./services/web/", Image::Git("services/web".into())),
            ("git:.", Image::Git(String::new())),
            ("file:///srv/app.tar.gz", Image::Archive),
            (&https, Image::Archive),
            (&file, Image::Archive),
        ];
        for (text, image) in good {
            assert_eq!(parse(text), Ok(image), "{text}");
        }
        let bad = [
            "",
            "nginx",
            "nginx:1.27",
            "quay.io/a/b@sha256:0000",
            "git:",
            "git:/web",
            "git:../x",
            "git:a/../../b",
            "git:web@abc",
            "git:.git/hooks",
            "https://x.example/a.tgz",
            "http://x.example/a.tgz",
            "file://a.tgz",
            "file:///a/../b",
            "https://@sha256:zz",
            "HOST",
        ];
        for text in bad {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
