use serde_json::json;

use super::*;

fn values(text: &str) -> Vec<Value> {
    let reading = read(text.as_bytes());
    assert_eq!(reading.errors, [], "{text}");
    reading.documents.into_iter().map(|document| document.value).collect()
}

fn errors(text: &str) -> Vec<(u32, u32, &'static str)> {
    let errors = read(text.as_bytes()).errors;
    errors.iter().map(|error| (error.position.line, error.position.column, error.code)).collect()
}

#[test]
fn files_as_users_have_them_are_read() {
    let table = [
        ("a: 1\n---\n---\nb: 2\n", vec![json!({"a": 1}), json!({"b": 2})]),
        ("\u{feff}a: 1\r\nb: x\r\n", vec![json!({"a": 1, "b": "x"})]),
        ("{\"a\": 1}\n{\"b\": 2}", vec![json!({"a": 1}), json!({"b": 2})]),
        ("{\n\t\"a\": [\n\t\t1,\n\t\t2\n\t]\n}\n", vec![json!({"a": [1, 2]})]),
        ("{\"a\":1,\"b\":\"x\\/\\u00e9\\ud83c\\udfb5\"}", vec![json!({"a": 1, "b": "x/é🎵"})]),
        ("{a: 1, b: [x, 'y']}", vec![json!({"a": 1, "b": ["x", "y"]})]),
        ("on: yes", vec![json!({"on": true})]),
        ("'on': 'yes'\n1: 2", vec![json!({"on": "yes", "1": 2})]),
        ("a: !!str 1.10", vec![json!({"a": "1.10"})]),
        ("base: &b {x: 1, y: 2}\nz:\n  <<: *b\n  y: 3", vec![json!({"base": {"x": 1, "y": 2}, "z": {"y": 3, "x": 1}})]),
        ("a: &x [1]\nb: *x", vec![json!({"a": [1], "b": [1]})]),
        ("# nothing\n", vec![]),
        ("", vec![]),
        ("text: |\n  one\n  two\n", vec![json!({"text": "one\ntwo\n"})]),
    ];
    for (text, expected) in table {
        assert_eq!(values(text), expected, "{text:?}");
    }
}

#[test]
fn what_cannot_be_read_is_placed() {
    type Case<'a> = (&'a str, &'a [(u32, u32, &'a str)]);
    let table: [Case<'_>; 8] = [
        ("a: 1\nb: 2\na: 3\n", &[(3, 1, "duplicate-key")]),
        ("x:\n  a: 1\n  a: 2\n  b: 1\n  b: 2\n", &[(3, 3, "duplicate-key"), (5, 3, "duplicate-key")]),
        ("{\"a\": 1, \"a\": 2}", &[(1, 10, "duplicate-key")]),
        ("{\"a\": 1}\n{\"b\": 1,\n \"b\": 2}", &[(3, 2, "duplicate-key")]),
        ("a: !vault secret", &[(1, 11, "tag")]),
        ("a: .nan", &[(1, 4, "number")]),
        ("? [1, 2]\n: 3", &[(1, 3, "key")]),
        ("a: 1\n<<: 7\n", &[(2, 1, "merge")]),
    ];
    for (text, expected) in table {
        assert_eq!(errors(text), expected, "{text:?}");
    }
}

#[test]
fn a_duplicate_key_is_named_with_its_first_place() {
    let error = read(b"a: 1\na: 2").errors.remove(0);
    assert!(error.message.contains("`a`"), "{}", error.message);
    assert_eq!(error.pointer, "/a");
    assert_eq!(error.hint.as_deref(), Some("it is already set in line 1: remove one of the two"));
}

#[test]
fn documents_before_a_syntax_error_are_kept_and_the_error_is_placed() {
    let reading = read(b"a: 1\n---\nb: [1\nc: 2\n");
    assert_eq!(reading.documents.len(), 1);
    assert_eq!(reading.errors.len(), 1);
    assert!(reading.errors[0].position.line >= 3);
}

#[test]
fn every_value_knows_its_place() {
    let reading = read("# é\nspec:\n  list:\n  - name: a\n    value: yes\n  \"a/b\": 1\n".as_bytes());
    let document = &reading.documents[0];
    let at = |line, column| Position { line, column };
    assert_eq!(document.position("/spec/list/0/value"), at(5, 12));
    assert_eq!(document.key_position("/spec/list/0/value"), at(5, 5));
    assert_eq!(document.written("/spec/list/0/value"), Some("yes"));
    assert_eq!(document.key_position("/spec/a~1b"), at(6, 3));
    assert_eq!(document.position("/spec/list/0/missing/deep"), at(4, 5), "the nearest parent");
}

#[test]
fn places_in_a_stream_of_objects_count_from_the_files_start() {
    let reading = read(b"{\"a\": 1}\n\n{\n\t\"b\": 2\n}");
    assert_eq!(reading.documents[1].position("/b"), Position { line: 4, column: 7 });
}

#[test]
fn growth_is_bounded() {
    let mut laughs = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (level, name) in ('b'..='i').enumerate() {
        let inner = char::from(b'a' + u8::try_from(level).expect("small"));
        laughs.push_str(&format!("{name}: &{name} [{}]\n", vec![format!("*{inner}"); 9].join(", ")));
    }
    let deep = "[".repeat(100_000);
    let nested = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let many: String = (0..300_000).map(|n| format!("k{n}: 1\n")).collect();
    let long = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), vec!["*a"; 40].join(", "));
    assert_eq!(read(laughs.as_bytes()).errors[0].code, "limit");
    assert!(!read(deep.as_bytes()).errors.is_empty());
    assert_eq!(read(nested.as_bytes()).errors, []);
    assert_eq!(read(many.as_bytes()).errors[0].code, "limit");
    assert_eq!(read(long.as_bytes()).errors[0].code, "limit");
}

#[test]
fn other_encodings_are_refused() {
    for bytes in [&b"\xff\xfea\x00"[..], b"a: \xff"] {
        assert_eq!(read(bytes).errors[0].code, "encoding");
    }
}

proptest::proptest! {
    #[test]
    fn no_input_panics(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let _reading = read(&bytes);
    }

    #[test]
    fn no_yaml_like_input_panics(text in "[-a-c:{}\\[\\],&*!|>'\"#? \\t\\n0-9.<~]{0,80}") {
        for document in read(text.as_bytes()).documents {
            let _position = document.position("/a/0");
        }
    }
}
