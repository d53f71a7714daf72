//! What a project says of environments of pull requests: `previews: {stage: dev, max: 5, ttl: 3d}`.

use std::time::Duration;

use serde_json::Value;

use super::findings::Findings;
use super::pod_template::text_at;
use crate::model::duration;
use crate::model::environment::{EnvironmentSettings, MOST};
use crate::model::ids::StageName;
use crate::model::object::Location;

/// Where it is said.
const FIELD: &str = "/spec/previews";
/// The stage that environments are made after where nobody says which.
const STAGE: &str = "dev";
/// Shorter, one would be gone before anybody has seen it.
const SHORTEST: Duration = Duration::from_secs(60);
/// Longer, and nobody has meant it.
const LONGEST: Duration = Duration::from_secs(366 * DAY);
const DAY: u64 = 24 * 3600;

/// The setting, with the place where the stage is said.
pub(super) fn read(value: &Value, findings: &mut Findings<'_>) -> Option<(EnvironmentSettings, Location)> {
    let said = value.pointer(FIELD).filter(|said| said.is_object())?;
    let stage = Some(text_at(said, "/stage")).filter(|stage| !stage.is_empty()).unwrap_or(STAGE);
    let place = match said.get("stage") {
        Some(_) => findings.location(&format!("{FIELD}/stage")),
        None => findings.key_location(FIELD),
    };
    let (max, ttl) = (max(said, findings), ttl(said, findings));
    Some((EnvironmentSettings { stage: StageName::new(stage), max, ttl_seconds: ttl.as_secs() }, place))
}

fn max(said: &Value, findings: &mut Findings<'_>) -> u32 {
    let Some(number) = said.get("max").and_then(Value::as_u64) else { return EnvironmentSettings::MAX };
    let max = u32::try_from(number).ok().filter(|max| (1..=MOST).contains(max));
    if max.is_none() {
        let message = format!("{number} is not a number from 1 to {MOST}");
        findings.error(&format!("{FIELD}/max"), "invalid", message).hint =
            Some("how many environments there are at most; without `previews` there are none".to_owned());
    }
    max.unwrap_or(EnvironmentSettings::MAX)
}

fn ttl(said: &Value, findings: &mut Findings<'_>) -> Duration {
    let text = text_at(said, "/ttl");
    if text.is_empty() {
        return EnvironmentSettings::TTL;
    }
    let ttl = with_days(text).filter(|ttl| (SHORTEST..=LONGEST).contains(ttl));
    if ttl.is_none() {
        let message = format!("`{text}` is not a time from a minute to a year");
        findings.error(&format!("{FIELD}/ttl"), "invalid", message).hint = Some("such as 3d, 36h or 1d12h".to_owned());
    }
    ttl.unwrap_or(EnvironmentSettings::TTL)
}

/// A duration that may begin with days, which Go's do not have.
fn with_days(text: &str) -> Option<Duration> {
    let Some((days, rest)) = text.split_once('d') else { return duration::parse(text) };
    let days = Duration::from_secs(days.parse::<u64>().ok()?.checked_mul(DAY)?);
    if rest.is_empty() { Some(days) } else { days.checked_add(duration::parse(rest)?) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_may_begin_with_days() {
        for (text, seconds) in [
            ("3d", Some(3 * DAY)),
            ("1d12h", Some(DAY + 12 * 3600)),
            ("36h", Some(36 * 3600)),
            ("90s", Some(90)),
            ("d", None),
            ("-1d", None),
            ("1.5d", None),
            ("3days", None),
            ("99999999999999999999d", None),
        ] {
            assert_eq!(with_days(text).map(|time| time.as_secs()), seconds, "{text}");
        }
    }
}
