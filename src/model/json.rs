//! JSON that is kept as its text.

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Error, Value};

/// Content whose shape belongs to the users. Thousands of these are kept for as long as the daemon runs, and nearly all
/// are only passed on: as values they would take ten times the memory, so they are read where somebody looks into them.
#[derive(Clone)]
pub struct Json(Arc<str>);

impl Json {
    /// Takes a text that was stored. It is only skimmed, so that reading thousands stays cheap.
    ///
    /// # Errors
    /// If it is no JSON at a glance.
    pub fn parse(text: &str) -> Result<Self, Error> {
        serde_json::from_str::<IgnoredAny>(text)?;
        Ok(Self(text.into()))
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// It as a value to look into.
    pub fn value(&self) -> Value {
        // Only a damaged text gets through `parse` and fails here, as by a number beyond bounds.
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// What is at a JSON pointer, if anything is.
    pub fn at(&self, pointer: &str) -> Option<Value> {
        self.value().pointer_mut(pointer).map(Value::take)
    }

    /// It as one of launchway's own shapes.
    ///
    /// # Errors
    /// If it has another one.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(&self.0)
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self(value.to_string().into())
    }
}

impl Default for Json {
    fn default() -> Self {
        Value::Null.into()
    }
}

/// The order of keys makes no difference.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.value() == other.value()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_put_in_comes_out_in_its_order() {
        let value = json!({"z": [1, {"b": null, "a": "text"}], "y": {}, "x": [], "w": true});
        let kept = Json::from(value.clone());
        assert_eq!(kept.value().to_string(), value.to_string());
        assert_eq!(kept.at("/z/1/a"), Some("text".into()));
        assert_eq!(kept.at("/z/2"), None);
        assert_eq!(Json::parse(kept.text()).unwrap(), kept);
        assert!(Json::parse("{\"a\": ").is_err());
    }

    #[test]
    fn the_order_of_keys_makes_no_difference() {
        assert_eq!(Json::from(json!({"a": 1, "b": 2})), Json::from(json!({"b": 2, "a": 1})));
        assert_ne!(Json::from(json!({"a": 1, "b": 2})), Json::from(json!({"a": 1, "b": 3})));
    }
}
