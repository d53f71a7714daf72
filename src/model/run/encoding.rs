//! Reading runs. What serde derives takes all of a run aside before it looks for the word that says what it is, and then reads
//! it a second time; here it comes first, as it was written.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::Run;

/// The key of the word.
const TAG: &str = "run";
/// The words.
const KINDS: &[&str] = &["sequence", "deployment"];

impl<'de> Deserialize<'de> for Run {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfAKind)
    }
}

struct OfAKind;

impl<'de> Visitor<'de> for OfAKind {
    type Value = Run;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a run that begins with `{TAG}`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Run, A::Error> {
        if map.next_key::<String>()?.as_deref() != Some(TAG) {
            return Err(A::Error::missing_field(TAG));
        }
        let kind: String = map.next_value()?;
        let rest = MapAccessDeserializer::new(map);
        match kind.as_str() {
            "sequence" => Deserialize::deserialize(rest).map(Run::Sequence),
            "deployment" => Deserialize::deserialize(rest).map(Run::Deployment),
            other => Err(A::Error::unknown_variant(other, KINDS)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::fixtures::{delivery, deployed, deployment, sequence};
    use crate::model::run::Phase;

    #[test]
    fn what_was_written_is_read_and_nothing_else_is() {
        let by = delivery("1", "a");
        for run in [sequence(&by), deployed(deployment(1, "a", &by, Phase::Complete))] {
            let text = serde_json::to_string(&run).unwrap();
            let read: Run = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
            assert_eq!(read.id(), run.id());
        }
        for (wrong, expected) in [
            (json!({}), "missing field `run`"),
            (json!({"id": "1", "run": "sequence"}), "missing field `run`"),
            (json!({"run": "hook"}), "unknown variant `hook`, expected `sequence` or `deployment`"),
            (json!({"run": "sequence"}), "missing field `id`"),
            (json!("sequence"), "expected a run that begins with `run`"),
        ] {
            let problem = serde_json::from_str::<Run>(&wrong.to_string()).unwrap_err().to_string();
            assert!(problem.contains(expected), "{wrong}: {problem}");
        }
    }
}
