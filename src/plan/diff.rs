//! The structural difference of two values, both with their defaults applied.
//!
//! Lists whose entries have a key (as Kubernetes' list maps do) are compared by that key, so that an inserted
//! container or variable is one difference and not a shift of all that follow.

use serde_json::{Map, Value};

use crate::model::plan::Difference;

/// The keys that name a list's entries, in order of preference. Source: the patch merge keys of `core/v1`.
const LIST_KEYS: [&str; 5] = ["name", "mountPath", "containerPort", "port", "type"];

/// Lists in which the order of keyed entries matters too: later variables may refer to earlier ones, and init
/// containers run one after another.
const ORDERED: [&str; 2] = ["env", "initContainers"];

/// Everything that differs, in the order of the new value.
pub fn diff(old: &Value, new: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(&mut String::new(), Some(old), Some(new), &mut found);
    found
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
    for entry in new {
        let name = name_of(key, entry);
        let earlier = same(old, &name).map(|index| &old[index]);
        below(pointer, &name, |pointer| compare(pointer, earlier, Some(entry), found));
    }
    for entry in old {
        let name = name_of(key, entry);
        if same(new, &name).is_none() {
            below(pointer, &name, |pointer| compare(pointer, Some(entry), None, found));
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
        assert_eq!(told(&old, &new), ["/containers/web/image: \"a\" -> \"b\""]);
    }

    #[test]
    fn an_inserted_entry_is_one_difference() {
        let old = json!({"env": [{"name": "A", "value": "1"}, {"name": "C", "value": "3"}]});
        let new =
            json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}]});
        assert_eq!(told(&old, &new), ["/env/B: - -> {\"name\":\"B\",\"value\":\"2\"}"]);
    }

    #[test]
    fn the_order_of_variables_matters_and_that_of_containers_does_not() {
        let list = |key: &str, names: [&str; 2]| json!({key: names.map(|name| json!({"name": name}))});
        assert_eq!(told(&list("env", ["A", "B"]), &list("env", ["B", "A"])), ["/env: [\"A\",\"B\"] -> [\"B\",\"A\"]"]);
        assert!(told(&list("containers", ["a", "b"]), &list("containers", ["b", "a"])).is_empty());
    }

    #[test]
    fn entries_without_a_key_are_compared_by_place() {
        let (old, new) = (json!({"command": ["a", "b"]}), json!({"command": ["a", "c", "d"]}));
        assert_eq!(told(&old, &new), ["/command/1: \"b\" -> \"c\"", "/command/2: - -> \"d\""]);
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
