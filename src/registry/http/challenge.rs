//! What a registry wants to hear before it answers.

/// The header `WWW-Authenticate`, as far as registries use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A user name and a password.
    Basic,
    /// A token from somebody else.
    Bearer {
        /// Who gives it.
        realm: String,
        /// What it is for.
        service: Option<String>,
        /// What it allows.
        scope: Option<String>,
    },
}

impl Challenge {
    /// Reads one; nothing, if it is none that is known.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service, mut scope) = (None, None, None);
        for (name, value) in parameters(rest) {
            match name.to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value),
                "service" => service = Some(value),
                "scope" => scope = Some(value),
                _ => {}
            }
        }
        Some(Self::Bearer { realm: realm?, service, scope })
    }
}

/// `name="value"` pairs, separated by commas that may stand in values too.
fn parameters(text: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([' ', ',']);
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        found.push((name, value.trim().to_owned()));
        rest = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| Challenge::Bearer {
            realm: realm.into(),
            service: service.map(Into::into),
            scope: scope.map(Into::into),
        };
        for (header, expected) in [
            (r#"Basic realm="registry""#, Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            (
                r#"Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull,push""#,
                Some(bearer("https://auth.example/token", Some("registry.example"), Some("repository:a/b:pull,push"))),
            ),
            (r#"bearer Realm="https://a/t" , service=x"#, Some(bearer("https://a/t", Some("x"), None))),
            (r#"Bearer service="x""#, None),
            ("Negotiate", None),
            ("", None),
        ] {
            assert_eq!(Challenge::parse(header), expected, "{header}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(header in ".{0,200}") {
            drop(Challenge::parse(&header));
        }
    }
}
