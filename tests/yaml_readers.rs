//! YAML as others read it: the reader of manifests against libyaml, whose dialect `kubectl` and `oc` share.

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use launchway::manifest::yaml;

/// The documents as libyaml has them; nothing if it refuses them.
fn as_others_read(text: &str) -> Option<Vec<Value>> {
    let documents = serde_yaml::Deserializer::from_str(text).map(Value::deserialize);
    let documents: Vec<Value> = documents.collect::<Result<_, _>>().ok()?;
    Some(documents.into_iter().filter(|document| !document.is_null()).collect())
}

fn as_we_read(text: &str) -> Result<Vec<Value>, String> {
    let reading = yaml::read(text.as_bytes());
    match reading.errors.first() {
        Some(error) => Err(format!("{}:{}: {}", error.position.line, error.position.column, error.message)),
        None => Ok(reading.documents.into_iter().map(|document| document.value).collect()),
    }
}

/// One kind of text each.
const CASES: &[&str] = &[
    "a:\n  b: \"one\n two\n\n   three\"\n",
    "a:\n  b: \"one\ntwo\"\n",
    "a:\n  b: \"one\n\ttwo\n\tthree\"\n",
    "a: \"one\ttwo\"\n",
    "a:\n  b: 'one\ntwo'\n",
    "a:\n  b: 'one\n\ttwo'\n",
    "a: \"one\\\n  two\"\n",
    "a: \"one\\\n\ttwo\"\n",
    "data: {\n\tx: y\n}\n",
    "data: [\n\tx,\n\ty\n]\n",
    "a:\n  b: {\nx: y\n}\n",
    "a: {x: y,\tz: w}\n",
    "a: one\n  two\n",
    "a:\tb\n",
    "a: b\t# c\n",
    "a: b\t\nc: d\n",
    "a: |\n  x\n  \ty\n",
    "a: \"x\n---y\"\n",
    "a:\n- b\n- c\n",
    "a:\n- \"one\n  two\"\n- \"three\nfour\"\n",
    "a: \"one\n# two\"\n",
    "a:\n  b: \"one\n- two\"\n",
    "a:\n  b: \"one\nc: d\"\n",
    "a: [ # c\n b,\n # d\n c\n]\n",
    "a: {\"b\":\"c\",\"d\":[1,2]}\n",
    "a: {\"b\":c}\n",
    "a: &x\n  b: 1\nc: *x\n",
    "? a\n: b\n",
    "%YAML 1.1\n---\na: b\n",
    "a: http://x:80/y#z\n",
    "a: b@c\n",
    "a: \"*\"\n",
    "a:\n  b: [\n    x\n]\n",
    "\"a b\": c\n",
    "a: >-\n  x\n  y\n\n  z\n",
    "a: |+\n  x\n\n",
    "a: |2\n   x\n",
    "a:\nb: c\n",
    "a: b\u{a0}c\n",
    "a: \"\u{263a} x\"\n",
    "a: \"b\u{2028}c\"\n",
];

#[test]
fn what_real_files_hold_is_read_as_others_read_it() {
    let mut wrong = Vec::new();
    for text in CASES {
        let (ours, others) = (as_we_read(text), as_others_read(text));
        if others.as_ref() != ours.as_ref().ok() {
            wrong.push(format!("{text:?}: others {others:?}, we {ours:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What libyaml refuses and newer readers take.
#[test]
fn what_only_newer_readers_take_is_read_too() {
    for (text, expected) in [
        ("a: b\n\t\nc: d\n", json!({"a": "b", "c": "d"})),
        ("a: b\n\t# x\nc: d\n", json!({"a": "b", "c": "d"})),
        ("a: |\n  \tx\n  y\n", json!({"a": "\tx\ny\n"})),
        ("a:\n-\tb\n", json!({"a": ["b"]})),
    ] {
        assert_eq!(as_others_read(text), None, "{text:?}");
        assert_eq!(as_we_read(text), Ok(vec![expected]), "{text:?}");
    }
}

/// What means something elsewhere is refused by both.
#[test]
fn a_tab_that_would_indent_is_refused() {
    for text in ["a:\n\tb: c\n", "a:\n  b: c\n\td: e\n", "a: \"x\n--- y\"\n", "a: \"x\n... \ny\"\n"] {
        assert_eq!(as_others_read(text), None, "{text:?}");
        assert!(as_we_read(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_long_text_in_quotes_takes_no_long_time() {
    let body = "it's \"quoted\"\n".replace('"', "\\\"").repeat(500);
    let text = format!("a:\n  b: \"{body}\"\n");
    assert_eq!(as_we_read(&text).ok(), as_others_read(&text));
    let endless = format!("a:\n  b: \"{}\"\n", "it's\n".repeat(200_000));
    let since = std::time::Instant::now();
    drop(as_we_read(&endless));
    assert!(since.elapsed().as_secs() < 60, "{:?}", since.elapsed());
}

/// White space at the begin of a line inside quotes or brackets.
fn margin() -> impl Strategy<Value = String> {
    "[ \t]{0,6}"
}

/// Text in quotes over several lines, as people and programs wrap it.
fn quoted() -> impl Strategy<Value = String> {
    let word = "[a-z#:,{}\\[\\]&*|>%@-]{1,6}";
    let line = proptest::collection::vec(word, 0..4).prop_map(|words| words.join(" "));
    let lines = proptest::collection::vec((margin(), line), 0..5);
    (any::<bool>(), "[a-z]{0,5}", lines).prop_map(|(double, first, lines)| {
        let quote = if double { '"' } else { '\'' };
        let rest: String = lines.into_iter().map(|(margin, line)| format!("\n{margin}{line}")).collect();
        format!("{quote}{first}{rest}{quote}")
    })
}

/// Not YAML 1.1's words, `on` and its like: libyaml leaves them to whoever asks it, and this one has 1.2's.
fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![3 => quoted(), 1 => "w[a-z]{0,4}", 1 => "[1-9][0-9]{0,3}", 1 => Just("true".to_owned())]
}

/// A value in brackets, wrapped anywhere.
fn flow() -> impl Strategy<Value = String> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        let wrapped = (prop_oneof![Just(String::new()), margin().prop_map(|margin| format!("\n{margin}"))], inner);
        let item = wrapped.prop_map(|(before, value)| format!("{before}{value}"));
        prop_oneof![
            proptest::collection::vec(item.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(", "))),
            proptest::collection::vec(item, 0..3).prop_map(|items| {
                let entries = items.iter().enumerate().map(|(index, value)| format!("k{index}: {value}"));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }),
        ]
    })
}

/// A value as a block: its lines, not indented yet.
fn block() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![2 => scalar(), 1 => flow()].prop_map(|text| format!("a: {text}\n"));
    leaf.prop_recursive(3, 12, 3, |inner| {
        proptest::collection::vec((inner, scalar()), 1..3).prop_map(|entries| {
            let entry = |(index, (block, scalar)): (usize, (String, String))| {
                let nested: String = block.split_inclusive('\n').map(|line| format!("  {line}")).collect();
                format!("n{index}:\n{nested}s{index}: {scalar}\nl{index}:\n- {scalar}\n")
            };
            entries.into_iter().enumerate().map(entry).collect()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn whatever_others_read_is_read_alike(text in block()) {
        if let Some(others) = as_others_read(&text) {
            prop_assert_eq!(as_we_read(&text), Ok(others), "{}", text);
        }
    }
}
