//! The structural difference of two values, both with their defaults applied.
//!
//! Lists whose entries have a key (as Kubernetes' list maps do) are compared by that key, so that an inserted
//! container or variable is one difference and not a shift of all that follow.

use serde_json::{Map, Value};

use crate::model::plan::Difference;
use crate::plan::generated;

/// The keys that name a list's entries, in order of preference. Source: the patch merge keys of `core/v1`.
const LIST_KEYS: [&str; 5] = ["name", "mountPath", "containerPort", "port", "type"];

/// Lists in which the order of keyed entries matters too, as upstream compares them: later variables may refer to earlier
/// ones, init containers run one after another, and the first port is `PORT`.
const ORDERED: [&str; 6] = ["env", "initContainers", "containers", "ports", "volumes", "volumeMounts"];

/// Everything that differs, in the order of the new value. Of generated values only that they differ is told.
pub fn diff(old: &Value, new: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    let sealed = (generated::sealed(old), generated::sealed(new));
    let (old, new) = (sealed.0.as_ref().unwrap_or(old), sealed.1.as_ref().unwrap_or(new));
    compare(&mut String::new(), Some(old), Some(new), &mut found);
    match sealed {
        (None, None) => found,
        _ => found.into_iter().map(generated::hidden).collect(),
    }
}

fn compare(pointer: &mut String, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<Difference>) {
    match (old, new) {
        (old, new) if old == new => {}
        (Some(Value::Object(old)), Some(Value::Object(new))) => objects(pointer, old, new, found),
        (Some(Value::Array(old)), Some(Value::Array(new))) => arrays(pointer, old, new, found),
        (old, new) => {
            found.push(Difference { pointer: pointer.clone(), old: old.cloned(), new: new.cloned() });
        }
    }
}

fn objects(pointer: &mut String, old: &Map<String, Value>, new: &Map<String, Value>, found: &mut Vec<Difference>) {
    for (key, value) in new {
        below(pointer, key, |pointer| compare(pointer, old.get(key), Some(value), found));
    }
    for (key, value) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
        below(pointer, key, |pointer| compare(pointer, Some(value), None, found));
    }
}

fn arrays(pointer: &mut String, old: &[Value], new: &[Value], found: &mut Vec<Difference>) {
    let Some(key) = LIST_KEYS.iter().find(|key| names_all(key, old) && names_all(key, new)) else {
        return by_index(pointer, old, new, found);
    };
    let before = found.len();
    let same = |entries: &'_ [Value], name: &str| entries.iter().position(|entry| name_of(key, entry) == name);
    for (index, entry) in new.iter().enumerate() {
        let earlier = same(old, &name_of(key, entry)).map(|index| &old[index]);
        below(pointer, &index.to_string(), |pointer| compare(pointer, earlier, Some(entry), found));
    }
    for (index, entry) in old.iter().enumerate() {
        if same(new, &name_of(key, entry)).is_none() {
            below(pointer, &index.to_string(), |pointer| compare(pointer, Some(entry), None, found));
        }
    }
    if found.len() == before && ORDERED.iter().any(|list| pointer.ends_with(&format!("/{list}"))) {
        let names = |entries: &[Value]| Some(Value::from_iter(entries.iter().map(|entry| name_of(key, entry))));
        found.push(Difference { pointer: pointer.clone(), old: names(old), new: names(new) });
    }
}

fn by_index(pointer: &mut String, old: &[Value], new: &[Value], found: &mut Vec<Difference>) {
    for index in 0..old.len().max(new.len()) {
        below(pointer, &index.to_string(), |pointer| compare(pointer, old.get(index), new.get(index), found));
    }
}

/// Whether `key` names every entry of a list, each differently.
fn names_all(key: &str, entries: &[Value]) -> bool {
    let mut names: Vec<String> = entries.iter().map(|entry| name_of(key, entry)).collect();
    names.sort_unstable();
    names.iter().all(|name| !name.is_empty()) && names.windows(2).all(|pair| pair[0] != pair[1])
}

fn name_of(key: &str, entry: &Value) -> String {
    match entry.get(key) {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// Calls `compare` with the pointer extended by one escaped step.
fn below(pointer: &mut String, step: &str, compare: impl FnOnce(&mut String)) {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
    compare(pointer);
    pointer.truncate(length);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn told(old: &Value, new: &Value) -> Vec<String> {
        let text = |value: Option<Value>| value.map_or("-".to_owned(), |value| value.to_string());
        let line = |found: Difference| format!("{}: {} -> {}", found.pointer, text(found.old), text(found.new));
        diff(old, new).into_iter().map(line).collect()
    }

    #[test]
    fn keyed_lists_are_compared_by_key() {
        let old = json!({"containers": [{"name": "web", "image": "a"}, {"name": "log", "image": "l"}]});
        let new = json!({"containers": [{"name": "log", "image": "l"}, {"name": "web", "image": "b"}]});
        assert_eq!(told(&old, &new), ["/containers/1/image: \"a\" -> \"b\""]);
    }

    #[test]
    fn an_inserted_entry_is_one_difference() {
        let old = json!({"env": [{"name": "A", "value": "1"}, {"name": "C", "value": "3"}]});
        let new =
            json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}]});
        assert_eq!(told(&old, &new), ["/env/1: - -> {\"name\":\"B\",\"value\":\"2\"}"]);
    }

    #[test]
    fn order_matters_where_upstream_compares_it() {
        let list = |key: &str, names: [&str; 2]| json!({key: names.map(|name| json!({"name": name}))});
        for key in ORDERED {
            let expected = format!("/{key}: [\"A\",\"B\"] -> [\"B\",\"A\"]");
            assert_eq!(told(&list(key, ["A", "B"]), &list(key, ["B", "A"])), [expected]);
        }
        assert!(told(&list("imagePullSecrets", ["a", "b"]), &list("imagePullSecrets", ["b", "a"])).is_empty());
    }

    #[test]
    fn entries_without_a_key_are_compared_by_place() {
        let (old, new) = (json!({"command": ["a", "b"]}), json!({"command": ["a", "c", "d"]}));
        assert_eq!(told(&old, &new), ["/command/1: \"b\" -> \"c\"", "/command/2: - -> \"d\""]);
    }

    #[test]
    fn generated_values_are_compared_and_not_shown() {
        let object = |marks: &str, env: Value| {
            let annotations = json!({"launchway.dev/generated": marks, "a": "b"});
            json!({"metadata": {"annotations": annotations}, "env": env})
        };
        let variable = |name: &str, value: &str| json!({"name": name, "value": value});
        let old = object("/env/0/value", json!([variable("A", "hunter2"), variable("B", "1")]));
        let same = object("/env/1/value", json!([variable("B", "1"), variable("A", "hunter2")]));
        let other = object("/env/0/value", json!([variable("A", "hunter3"), variable("B", "1")]));
        let plain = json!({"metadata": {"annotations": {"a": "b"}}, "env": [variable("A", "x"), variable("B", "1")]});
        let more = object("/env/2/value", json!([variable("A", "x"), variable("B", "1"), variable("C", "hunter4")]));
        let table = [
            (&old, &old, vec![]),
            (&old, &same, vec!["/env: [\"A\",\"B\"] -> [\"B\",\"A\"]"]),
            (&old, &other, vec!["/env/0/value: \"(generated)\" -> \"(generated anew)\""]),
            (&plain, &other, vec!["/env/0/value: \"x\" -> \"(generated anew)\""]),
            (&plain, &more, vec!["/env/2: - -> {\"name\":\"C\",\"value\":\"(generated anew)\"}"]),
        ];
        for (old, new, expected) in table {
            assert_eq!(told(old, new), expected, "{old} -> {new}");
        }
    }

    #[test]
    fn steps_are_escaped() {
        let (old, new) = (json!({"a/b": {"c~d": 1}}), json!({"a/b": {"c~d": 2}}));
        assert_eq!(told(&old, &new), ["/a~1b/c~0d: 1 -> 2"]);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf =
            prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), "[a-c]{0,2}".prop_map(Value::from)];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn equal_values_have_no_difference(value in value()) {
            prop_assert!(diff(&value, &value).is_empty());
        }

        #[test]
        fn what_differs_is_told_both_ways(old in value(), new in value()) {
            let (there, back) = (diff(&old, &new), diff(&new, &old));
            prop_assert_eq!(there.len(), back.len());
        }
    }
}
