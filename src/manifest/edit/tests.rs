use proptest::prelude::*;
use serde_json::{Value, json};

use super::change::To;
use super::*;
use crate::manifest::yaml::push_segment;

fn edited(text: &str, changes: &[Change]) -> String {
    let once = edit("web.yaml", text, 0, changes).unwrap_or_else(|problem| unreachable!("{problem}\n{text}"));
    let again = edit("web.yaml", &once, 0, changes).unwrap_or_else(|problem| unreachable!("{problem}\n{once}"));
    assert!(changes.iter().any(|change| change.value().is_none()) || again == once, "{once}\n{again}");
    once
}

const WEB: &str = "\
# Copyright
apiVersion: v1   # old
kind: DeploymentConfig
metadata: {name: web}
spec:
    replicas: 2

    # what starts it
    triggers:   # two
      - type: ConfigChange   # first
      # the image
      - type: ImageChange
        imageChangeParams: {automatic: true, containerNames: [web]}
    strategy:
        type: 'Rolling'  # slowly
        rollingParams:
            timeoutSeconds: 10
            # nothing else
    note: |
        a
          b   # no comment

    end: \"x\"
# the end
";

#[test]
fn only_the_lines_of_a_change_are_touched() {
    let table: [(&[Change], &str, &str); 13] = [
        (&[Change::set("/spec/replicas", 3)], "    replicas: 2\n", "    replicas: 3\n"),
        (&[Change::set("/spec/strategy/type", "Recreate")], "'Rolling'  # slowly", "'Recreate'  # slowly"),
        (&[Change::set("/spec/end", "yes")], "\"x\"", "\"yes\""),
        (&[Change::set("/spec/note", "c\n")], "        a\n          b   # no comment\n", "        c\n"),
        (
            &[Change::set("/spec/triggers/2", json!({"type": "X", "z": [1]}))],
            "[web]}\n",
            "[web]}\n      - type: X\n        z:\n          - 1\n",
        ),
        (&[Change::remove("/spec/triggers/0")], "      - type: ConfigChange   # first\n", ""),
        (&[Change::set("/spec/triggers/1/imageChangeParams/automatic", false)], "automatic: true", "automatic: false"),
        (
            &[Change::set("/spec/strategy/rollingParams/pre", json!({"failurePolicy": "Abort"}))],
            "            # nothing else\n",
            "            # nothing else\n            pre:\n                failurePolicy: Abort\n",
        ),
        (
            &[Change::remove("/spec/strategy/rollingParams/timeoutSeconds")],
            "rollingParams:\n            timeoutSeconds: 10\n",
            "rollingParams: {}\n",
        ),
        (&[Change::set("/metadata/annotations/a~1b", "c")], "{name: web}", "{name: web, annotations: {a/b: c}}"),
        (
            &[Change::set("/spec/a/b/c", 1)],
            "    end: \"x\"\n",
            "    end: \"x\"\n    a:\n        b:\n            c: 1\n",
        ),
        (&[Change::remove("/spec/note")], "    note: |\n        a\n          b   # no comment\n", ""),
        (
            &[Change::moved("/spec/triggers/1")],
            "      # the image\n      - type: ImageChange\n        imageChangeParams: {automatic: true, containerNames: [web]}\n",
            "",
        ),
    ];
    for (changes, before, after) in table {
        assert_eq!(WEB.matches(before).count(), 1, "{before}");
        assert_eq!(edited(WEB, changes), WEB.replace(before, after), "{changes:?}");
    }
}

#[test]
fn a_list_that_is_emptied_and_filled_keeps_the_comments_around_it() {
    let empty = edited(WEB, &[Change::remove("/spec/triggers/1"), Change::remove("/spec/triggers/0")]);
    let expected = "    # what starts it\n    triggers: []   # two\n      # the image\n    strategy:\n";
    assert!(empty.contains(expected), "{empty}");
    let filled = edited(&empty, &[Change::set("/spec/triggers/0", json!({"type": "ConfigChange"}))]);
    assert!(filled.contains("    triggers:   # two\n    - type: ConfigChange\n"), "{filled}");
}

/// Text before, what changes, text after.
type Case<'a> = (&'a str, Change, &'a str);

fn check(table: &[Case<'_>]) {
    for (before, change, after) in table {
        assert_eq!(edited(before, std::slice::from_ref(change)), *after, "{before}");
    }
}

#[test]
fn every_style_stays_what_it_is() {
    check(&[
        // Lines that end in CR LF, a byte order mark, no line end at all.
        (
            "a: 1\r\nb: {c: 2}\r\n",
            Change::set("/b", json!({"c": {"d": 3}, "e": [1]})),
            "a: 1\r\nb:\r\n  c:\r\n    d: 3\r\n  e:\r\n  - 1\r\n",
        ),
        (
            "a:\r\n  b: 1\r\nc: 2\r\n",
            Change::set("/a/d", "x\ny\n"),
            "a:\r\n  b: 1\r\n  d: |\r\n    x\r\n    y\r\nc: 2\r\n",
        ),
        ("\u{feff}a: 1\n", Change::set("/a", 2), "\u{feff}a: 2\n"),
        ("\u{feff}b: 1\na: 1", Change::remove("/b"), "\u{feff}a: 1"),
        ("a: 1", Change::set("/b", 2), "a: 1\nb: 2"),
        ("a: 1\nb: 2", Change::remove("/b"), "a: 1"),
        // Brackets.
        ("{a: 1, b: [x,y]}\n", Change::set("/b/2", "z"), "{a: 1, b: [x,y, z]}\n"),
        ("{a: 1, b: [x,y]}\n", Change::remove("/b/0"), "{a: 1, b: [y]}\n"),
        ("{a: 1, b: [x,y]}\n", Change::remove("/b"), "{a: 1}\n"),
        ("{a: 1}\n", Change::remove("/a"), "{}\n"),
        ("{a: }\n", Change::set("/a", 1), "{a: 1 }\n"),
        ("x: [\n  a, # one\n  b  # two\n]\n", Change::set("/x/2", "c"), "x: [\n  a, # one\n  b,  # two\n  c\n]\n"),
        ("x: [\n  a, # one\n  b, # two\n]\n", Change::set("/x/2", "c"), "x: [\n  a, # one\n  b, # two\n  c,\n]\n"),
        ("x: [\n  a, # one\n  b  # two\n]\n", Change::remove("/x/1"), "x: [\n  a, # one\n]\n"),
        ("x: [\n  a, # one\n  b  # two\n]\n", Change::remove("/x/0"), "x: [\n  b  # two\n]\n"),
        ("x:\n- {}\n", Change::set("/x/0/a", json!({"b": 1})), "x:\n- a:\n    b: 1\n"),
        // Nothing there yet.
        ("a:\nb: 1\n", Change::set("/a/c", 1), "a:\n  c: 1\nb: 1\n"),
        ("a: ~ # why\nb: 1\n", Change::set("/a/c", 1), "a: # why\n  c: 1\nb: 1\n"),
        ("a: # why\nb: 1\n", Change::set("/a", "x"), "a: x # why\nb: 1\n"),
        // Lists.
        ("x:\n- a\n# about y\ny: 1\n", Change::set("/x/1", "b"), "x:\n- a\n- b\n# about y\ny: 1\n"),
        ("- a\n- - b\n  - c\n", Change::remove("/1/0"), "- a\n- - c\n"),
        ("- a: 1\n  b: 2\n", Change::remove("/0/a"), "- b: 2\n"),
        ("- a: 1 # x\n  # y\n  b: 2\n", Change::remove("/0/a"), "-  # x\n  # y\n  b: 2\n"),
        ("-\n  a: 1\n-   b: 2\n", Change::set("/1/c", 3), "-\n  a: 1\n-   b: 2\n    c: 3\n"),
        ("a: [1]\n", Change::set("/a", json!({"b": 1})), "a:\n  b: 1\n"),
        ("a:\n  b: 1\nc: 2\n", Change::set("/a", "x"), "a: x\nc: 2\n"),
        // Texts over lines.
        ("a: |\n\n  x\n\nb: 1\n", Change::set("/a", "y"), "a: |-\n  y\n\nb: 1\n"),
        ("a: >- # why\n  x\n  y\nb: 1\n", Change::set("/a", "z"), "a: z\nb: 1\n"),
        ("a: |+\n  x\n\n\nb: 1\n", Change::set("/c", 1), "a: |+\n  x\n\n\nb: 1\nc: 1\n"),
        ("x:\n  a: |+\n    x\n\nb: 1\n", Change::set("/x/c", 1), "x:\n  a: |+\n    x\n\n  c: 1\nb: 1\n"),
        ("a: one\n  two # why\nb: 1\n", Change::set("/a", json!([1])), "a: # why\n- 1\nb: 1\n"),
        ("a: \"one\n  two\"\n", Change::set("/a", "x"), "a: \"x\"\n"),
        // Tags and anchors.
        ("a: !!str 12\n", Change::set("/a", "x"), "a: !!str x\n"),
        ("a: &n {b: 1}\nc: 2\n", Change::set("/a/d", 2), "a: &n {b: 1, d: 2}\nc: 2\n"),
        ("a: &n {b: 1}\nc: *n\n", Change::set("/c", 2), "a: &n {b: 1}\nc: 2\n"),
        ("a: &n {b: 1}\nc: {<<: *n, d: 1}\n", Change::set("/c/b", 2), "a: &n {b: 1}\nc: {<<: *n, d: 1, b: 2}\n"),
        // The words of another place.
        (
            "a: 1\n",
            Change::written("/b/c", json!({"d": 1}), "# why\nd: 1 # so\n".into()),
            "a: 1\nb:\n  c:\n    # why\n    d: 1 # so\n",
        ),
        ("a: {}\n", Change::written("/a/c", json!({"d": 1}), "d: 1 # so\n".into()), "a:\n  c:\n    d: 1 # so\n"),
        ("{a: 1}\n", Change::written("/b", json!({"d": 1}), "d: 1 # so\n".into()), "{a: 1, b: {d: 1}}\n"),
    ]);
}

#[test]
fn json_stays_json() {
    let tabs = "{\n\t\"a\": {\n\t\t\"b\": 1\n\t},\n\t\"l\": [\n\t\t\"x\"\n\t]\n}\n";
    check(&[
        (
            tabs,
            Change::set("/a/c", json!({"d": ["yes"]})),
            "{\n\t\"a\": {\n\t\t\"b\": 1,\n\t\t\"c\": {\n\t\t\t\"d\": [\n\t\t\t\t\"yes\"\n\t\t\t]\n\t\t}\n\t},\n\t\"l\": [\n\t\t\"x\"\n\t]\n}\n",
        ),
        (tabs, Change::remove("/a"), "{\n\t\"l\": [\n\t\t\"x\"\n\t]\n}\n"),
        (tabs, Change::remove("/l/0"), "{\n\t\"a\": {\n\t\t\"b\": 1\n\t},\n\t\"l\": []\n}\n"),
        ("{\"a\": 1}", Change::set("/b", json!([{"c": "é\n"}])), "{\"a\": 1, \"b\": [{\"c\": \"é\\n\"}]}"),
        ("{\n  \"a\": {}\n}\n", Change::set("/a/b", 1), "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n"),
    ]);
    let stream = "{\"a\": 1}\n{\"a\": 1}\n";
    assert_eq!(edit("a.json", stream, 1, &[Change::set("/a", 2)]).expect("changed"), "{\"a\": 1}\n{\"a\": 2}\n");
}

#[test]
fn the_other_documents_of_a_file_stay() {
    let text = "# head\n---\na: 1\n---\n# empty\n---\nb: 2\n...\n--- {c: 3}\n";
    for (document, pointer, before, after) in
        [(0, "/a", "a: 1", "a: 9"), (1, "/b", "b: 2", "b: 9"), (2, "/c", "c: 3", "c: 9")]
    {
        let edited = edit("a.yaml", text, document, &[Change::set(pointer, 9)]).expect("changed");
        assert_eq!(edited, text.replace(before, after));
    }
    let gone = edit("a.yaml", text, 3, &[Change::set("/a", 9)]).expect_err("there are three");
    assert!(gone.to_string().contains("no document 4"), "{gone}");
}

#[test]
fn what_cannot_be_changed_alone_is_refused_with_what_to_write() {
    let table = [
        ("a: &n {b: 1}\nc: *n\n", Change::set("/a/b", 2), "web.yaml:1:11: error: this cannot be changed here without"),
        (
            "a: &n {b: 1}\nc: *n\n",
            Change::set("/c/b", 2),
            "web.yaml:2:4: error: this is `*n`, a value that stands elsewhere",
        ),
        ("a: &n\n  b: 1\nc: *n\n", Change::remove("/a"), "web.yaml:2:3: error: this cannot be changed"),
        ("a: 1\n", Change::set("/a/b", 2), "web.yaml:1:4: error: this is no mapping, and has no `b`"),
        ("a: {<<: {b: 1}}\n", Change::remove("/a/b"), "web.yaml:1:4: error: this is not where it is said"),
        ("a: [\n", Change::set("/a", 2), "web.yaml:1:4: error: "),
        ("", Change::set("/a", 2), "web.yaml:1:1: error: there is no document 1"),
        ("a: \"x\ny\"\nb: 1\n", Change::set("/b", 2), "web.yaml:2:1: error: this line is not indented as it may be"),
    ];
    for (text, change, expected) in table {
        let problem = edit("web.yaml", text, 0, &[change]).expect_err(text);
        assert!(problem.to_string().starts_with(expected), "{text}: {problem}");
    }
    let problem = edit("web.yaml", "a: 1\n", 0, &[Change::set("/a/b", json!([{"c": "yes"}]))]).expect_err("no mapping");
    assert_eq!(problem.hint.as_deref(), Some("write it by hand: `a.b` is to be `[{c: \"yes\"}]`"));
}

#[test]
fn words_take_their_comments_along() {
    let text = "a:\n    # over b\n    b: # at b\n        # in b\n        c: |\n            x\n\n            y # z\n    d: {e: 1} # at d\n";
    let found = |pointer: &str, with_key: bool| words(text, 0, pointer, with_key);
    let inside = "# in b\nc: |\n    x\n\n    y # z\n";
    assert_eq!(found("/a/b", false).as_deref(), Some(inside));
    let whole = "# over b\nb: # at b\n    # in b\n    c: |\n        x\n\n        y # z\n";
    assert_eq!(found("/a/b", true).as_deref(), Some(whole));
    assert_eq!(found("/a/d", true).as_deref(), Some("d: {e: 1} # at d\n"));
    assert_eq!(found("/a/d/e", true), None);
    assert_eq!(found("/a/x", true), None);
    assert_eq!(words("a: &x 1\nb:\n  c: *x\n", 0, "/b", true), None);
}

/// Texts of all kinds, in which anything is changed.
const TEXTS: [&str; 6] = [
    WEB,
    "a: 1\n---\n- x # y\n-   b: 2\n    c: [1, {d: 2}]\n- - 1\n  - 2\n",
    "{\n  \"a\": {\"b\": [1, 2]},\n  \"c\": \"d\"\n}\n",
    "a: {b: [1, 2, # two\n  3], c: {}, d: }\ne: >\n  folded\n  text\n\n# end",
    "a:\r\n- b: |\r\n    x\r\n  c: 'y'\r\nd:\r\n  e:\r\n  f: ~\r\n",
    "? a\n: b\nc: &x\n  d: 1\ne: *x\nf: {<<: *x}\n",
];

fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    let mut inner = |key: &str, value: &Value| {
        let mut pointer = at.to_owned();
        push_segment(&mut pointer, key);
        pointers(value, &pointer, found);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| inner(key, value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, value)| inner(&index.to_string(), value)),
        _ => {}
    }
}

fn comments(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| Some(line.split_once("# ")?.1)).collect()
}

fn new_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(7)),
        Just(json!("yes")),
        Just(json!("two\nlines\n")),
        Just(json!({})),
        Just(json!([])),
        Just(json!({"k": {"l": [1, {"m": "n"}]}})),
        Just(json!([{"x": 1, "y": 2}, "z"])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn what_is_intended_changes_and_nothing_else(
        text in 0..TEXTS.len(), chosen in any::<prop::sample::Index>(), value in new_value(), how in 0..3, document in 0..2usize,
    ) {
        let text = TEXTS[text];
        let documents = yaml::read(text.as_bytes()).documents;
        let document = document.min(documents.len() - 1);
        let mut known = Vec::new();
        pointers(&documents[document].value, "", &mut known);
        let pointer = &known[chosen.index(known.len())];
        let change = match how {
            0 => Change::set(pointer.as_str(), value),
            1 => Change::set(below(pointer, "new"), value),
            _ => Change::remove(pointer.as_str()),
        };
        let mut wanted = documents[document].value.clone();
        change.apply(&mut wanted);
        let Ok(edited) = edit("a.yaml", text, document, std::slice::from_ref(&change)) else { return Ok(()) };
        let after = yaml::read(edited.as_bytes());
        prop_assert_eq!(&after.errors, &[]);
        prop_assert_eq!(after.documents.len(), documents.len());
        for (index, now) in after.documents.iter().enumerate() {
            prop_assert_eq!(&now.value, if index == document { &wanted } else { &documents[index].value });
        }
        if matches!(change.to, To::Value(_)) {
            prop_assert_eq!(&edit("a.yaml", &edited, document, std::slice::from_ref(&change)).expect("as it is"), &edited);
        }
        if how == 1 {
            prop_assert_eq!(comments(&edited), comments(text));
        }
    }
}

#[test]
fn most_changes_can_be_made() {
    let mut refused = Vec::new();
    let mut count = 0;
    for text in TEXTS {
        for (document, read) in yaml::read(text.as_bytes()).documents.iter().enumerate() {
            let mut known = Vec::new();
            pointers(&read.value, "", &mut known);
            for pointer in known.iter().skip(1) {
                for change in [
                    Change::set(pointer.as_str(), 7),
                    Change::set(pointer.as_str(), "two\nlines\n"),
                    Change::set(pointer.as_str(), json!({"k": [1]})),
                    Change::remove(pointer.as_str()),
                ] {
                    count += 1;
                    if let Err(problem) = edit("a.yaml", text, document, std::slice::from_ref(&change)) {
                        refused.push(format!("{change:?}: {problem}"));
                    }
                }
            }
        }
    }
    // What is shared by name, or merged, cannot be changed in one place alone.
    let shared: Vec<_> =
        refused.iter().filter(|told| !["/c", "/e", "/f", "/a\""].iter().any(|at| told.contains(at))).collect();
    assert!(shared.is_empty(), "{} of {count}: {shared:#?}", refused.len());
}
