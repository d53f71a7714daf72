//! How a new version proves itself beside the one that serves: canary, blue/green and A/B. Beyond upstream.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::deployment_config::LifecycleHook;
use super::duration;
use super::pod::Scalar;

/// How long blue/green keeps the version that served before, unless its file says so.
pub const DEFAULT_KEEP: Duration = Duration::from_secs(600);

/// For `Canary`: the new version gets more and more of the traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CanaryParams {
    /// What it has to pass, in order, before it gets everything.
    pub steps: Vec<CanaryStep>,
    /// Seconds without any progress after which the deployment fails.
    pub timeout_seconds: Option<u64>,
    /// Pods that may be missing, a number or a percentage rounded down.
    pub max_unavailable: Option<Scalar>,
    /// Pods that may be there beyond `replicas`, a number or a percentage rounded up.
    pub max_surge: Option<Scalar>,
    /// Runs before anything changes.
    pub pre: Option<LifecycleHook>,
    /// Runs after the last step, before the rest is exchanged.
    pub mid: Option<LifecycleHook>,
    /// Runs after all new pods are available.
    pub post: Option<LifecycleHook>,
}

/// One step of a canary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CanaryStep {
    /// How much of the traffic and of the replicas the new version gets, in percent.
    pub weight: u32,
    /// How long that stays so.
    pub pause: Option<Pause>,
    /// A command that judges it then.
    pub analysis: Option<LifecycleHook>,
}

/// For `BlueGreen`: the new version comes up whole beside the old one, and gets the traffic at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BlueGreenParams {
    /// How long the old version is kept after that, so that going back takes no time.
    pub keep: Option<Length>,
    /// A command that judges the new version before it gets any traffic.
    pub analysis: Option<LifecycleHook>,
    /// Seconds without any progress after which the deployment fails.
    pub timeout_seconds: Option<u64>,
    /// Runs before anything changes.
    pub pre: Option<LifecycleHook>,
    /// Runs after the analysis, before the new version gets the traffic.
    pub mid: Option<LifecycleHook>,
    /// Runs after it got it.
    pub post: Option<LifecycleHook>,
}

/// For `AB`: both versions stay until another one comes or a person promotes the new one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AbParams {
    /// How much of the traffic and of the replicas the new version gets, in percent.
    pub weight: u32,
    /// Seconds without any progress after which the deployment fails.
    pub timeout_seconds: Option<u64>,
    /// Pods that may be missing, a number or a percentage rounded down.
    pub max_unavailable: Option<Scalar>,
    /// Pods that may be there beyond `replicas`, a number or a percentage rounded up.
    pub max_surge: Option<Scalar>,
    /// Runs before anything changes.
    pub pre: Option<LifecycleHook>,
    /// Runs before the new version gets its part.
    pub mid: Option<LifecycleHook>,
    /// Runs after it got it.
    pub post: Option<LifecycleHook>,
}

/// A duration as files write it: `5m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length(pub Duration);

/// How long a step stays as it is: `5m`, or `{}` until a person resumes it. `{duration: 5m}` is read too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// So long, unless a person resumes it earlier.
    For(Length),
    /// Until a person resumes it.
    UntilResumed,
}

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{}ms", self.0.as_millis()))
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parsed = duration::parse(&text);
        parsed.map(Self).ok_or_else(|| de::Error::custom(format!("`{text}` is no duration such as 5m")))
    }
}

/// The forms in which a pause is written.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenPause {
    Short(Length),
    Long {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration: Option<Length>,
    },
}

impl Serialize for Pause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Pause::For(length) => WrittenPause::Short(*length).serialize(serializer),
            Pause::UntilResumed => WrittenPause::Long { duration: None }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Pause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match WrittenPause::deserialize(deserializer)? {
            WrittenPause::Short(length) | WrittenPause::Long { duration: Some(length) } => Pause::For(length),
            WrittenPause::Long { duration: None } => Pause::UntilResumed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_has_a_length_or_waits_for_a_person() {
        let read = |text: &str| serde_json::from_str::<Pause>(text).ok();
        let minutes = |minutes: u64| Pause::For(Length(Duration::from_secs(60 * minutes)));
        assert_eq!(read(r#""5m""#), Some(minutes(5)));
        assert_eq!(read(r#"{"duration": "1h"}"#), Some(minutes(60)));
        assert_eq!(read("{}"), Some(Pause::UntilResumed));
        assert_eq!(read("5"), None);
        assert_eq!(read(r#""soon""#), None);
        for pause in [minutes(5), Pause::UntilResumed] {
            assert_eq!(read(&serde_json::to_string(&pause).unwrap()), Some(pause), "it is written as it is read");
        }
    }
}
