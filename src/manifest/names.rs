//! Kubernetes' and Keptn's rules for names. Each returns what is wrong.

/// RFC 1123 subdomain: `metadata.name` of most objects.
pub(crate) fn subdomain(name: &str) -> Result<(), &'static str> {
    let is_good = !name.is_empty() && name.len() <= 253 && name.split('.').all(is_label);
    if is_good { Ok(()) } else { Err("must be lower-case letters, digits, `-` and `.`, and at most 253 of them") }
}

/// The longest name of a deployment config: on the local runtime, its namespace (63) with the name of the longest pod that
/// is named after it, a task's (`-<task, 63>-<times>-<8 of the run>-<try>`), still names one file, of 255 bytes.
const LONGEST_CONFIG: usize = 100;

/// A deployment config's name.
pub(crate) fn config(name: &str) -> Result<(), &'static str> {
    subdomain(name)?;
    let is_good = name.len() <= LONGEST_CONFIG;
    if is_good { Ok(()) } else { Err("must be at most 100 characters: its pods, hooks and tasks are named after it") }
}

/// An image stream's name: as a component of an OCI repository's.
pub(crate) fn image_stream(name: &str) -> Result<(), &'static str> {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit());
    let is_good = name.len() <= 253 && name.split(['.', '_', '-']).all(is_word);
    if is_good { Ok(()) } else { Err("must be lower-case letters and digits, with `-`, `_` or `.` between them") }
}

/// RFC 1123 label: containers, volumes, services.
pub(crate) fn label(name: &str) -> Result<(), &'static str> {
    let is_good = name.len() <= 63 && is_label(name);
    if is_good { Ok(()) } else { Err("must be lower-case letters, digits and `-`, and at most 63 of them") }
}

/// A port's name (IANA service name).
pub(crate) fn port(name: &str) -> Result<(), &'static str> {
    let has_letter = name.bytes().any(|byte| byte.is_ascii_lowercase());
    let is_good = name.len() <= 15 && is_label(name) && has_letter && !name.contains("--");
    if is_good { Ok(()) } else { Err("must be at most 15 lower-case letters, digits and single `-`, with a letter") }
}

/// Keptn's rule for projects, stages and services.
pub(crate) fn entity(name: &str) -> Result<(), &'static str> {
    let is_good = name.starts_with(|first: char| first.is_ascii_lowercase()) && is_label(name);
    if is_good { Ok(()) } else { Err("must be lower-case letters, digits and `-`, beginning with a letter") }
}

/// A service that an event names: by Keptn's rule, and no longer than a deployment config, which is a service of its own.
pub(crate) fn service(name: &str) -> Result<(), &'static str> {
    entity(name)?;
    config(name)
}

/// A variable of a hook: a C identifier, as upstream asks for.
pub(crate) fn identifier(name: &str) -> Result<(), &'static str> {
    let mut bytes = name.bytes();
    let is_good = bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_good { Ok(()) } else { Err("must be letters, digits and `_`, not beginning with a digit") }
}

/// A variable of a container.
pub(crate) fn variable(name: &str) -> Result<(), &'static str> {
    let is_good = !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    if is_good { Ok(()) } else { Err("must be letters, digits, `_`, `-` and `.`, not beginning with a digit") }
}

/// A key of a ConfigMap or Secret, which may become a file.
pub(crate) fn data_key(name: &str) -> Result<(), &'static str> {
    let is_good = !name.is_empty()
        && name.len() <= 253
        && !name.starts_with("..")
        && name != "."
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    if is_good { Ok(()) } else { Err("must be letters, digits, `_`, `-` and `.`, and not begin with `..`") }
}

fn is_label(name: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.first().is_some_and(|&byte| is_edge(byte))
        && bytes.last().is_some_and(|&byte| is_edge(byte))
        && bytes.iter().all(|&byte| is_edge(byte) || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_upstreams_rules() {
        type Rule = fn(&str) -> Result<(), &'static str>;
        let long = "x".repeat(64);
        let (longest, too_long) = ("x".repeat(100), "x".repeat(101));
        let table: [(Rule, &[&str], &[&str]); 10] = [
            (subdomain, &["web", "a.b-c", "1"], &["", "Web", "-a", "a-", "a..b", "a_b"]),
            (image_stream, &["web", "postgres_exporter", "a.b-c", "1"], &["", "Web", "_a", "a-", "a__b"]),
            (config, &["web", "a.b-c", &longest], &["", "Web", &too_long]),
            (label, &["web", "1"], &["", "a.b", &long]),
            (port, &["http", "p1"], &["80", "", "a--b", "averyveryverylong"]),
            (entity, &["dev", "a1"], &["1a", "", "a-", "Dev", "a.b"]),
            (service, &["web", &longest], &["", "1a", "a.b", &too_long]),
            (identifier, &["A", "_x1"], &["1a", "", "a-b", "a.b"]),
            (variable, &["A", "a.b-c"], &["1a", "", "a=b", "a b"]),
            (data_key, &["a.conf", "_x"], &["", "..a", ".", "a/b"]),
        ];
        for (rule, good, bad) in table {
            for name in good {
                assert_eq!(rule(name), Ok(()), "{name}");
            }
            for name in bad {
                assert!(rule(name).is_err(), "{name}");
            }
        }
    }
}
