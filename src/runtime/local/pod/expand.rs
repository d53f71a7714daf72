//! `$(VAR)` and `$$`, as Kubernetes expands them.

use std::collections::BTreeMap;

/// Replaces `$(NAME)` by the variable's value and `$$` by `$`; what names no variable stays as it is.
pub(crate) fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let (piece, length) = piece(from, variables);
        out.push_str(piece);
        rest = from.get(length..).unwrap_or("");
    }
    out + rest
}

/// What stands for the beginning of `from`, which is a `$`, and how long that beginning is.
fn piece<'a>(from: &'a str, variables: &'a BTreeMap<String, String>) -> (&'a str, usize) {
    if from.starts_with("$$") {
        return ("$", 2);
    }
    let name = from.strip_prefix("$(").and_then(|inner| inner.split_once(')')).map(|(name, _)| name);
    match name {
        Some(name) => {
            let length = name.len() + 3;
            (variables.get(name).map_or(from.get(..length).unwrap_or(from), String::as_str), length)
        }
        None => ("$", 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expansion_follows_kubernetes() {
        let variables = BTreeMap::from([("A".to_owned(), "1".to_owned()), ("B".to_owned(), "$(A)".to_owned())]);
        let cases = [
            ("$(A)", "1"),
            ("x$(A)y$(A)", "x1y1"),
            ("$(B)", "$(A)"),
            ("$(NONE)", "$(NONE)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$A ${A}", "$A ${A}"),
            ("$(A", "$(A"),
            ("$", "$"),
            ("ä$(A)ö", "ä1ö"),
        ];
        for (text, expected) in cases {
            assert_eq!(expand(text, &variables), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[$()Aä]{0,20}") {
            expand(&text, &BTreeMap::from([("A".to_owned(), "1".to_owned())]));
        }
    }
}
