//! Times as people say them.

use std::time::Duration;

use crate::clock::{Clock, SystemClock};

/// An RFC 3339 time, if it is one.
pub(super) fn instant(time: &str) -> Option<jiff::Timestamp> {
    time.parse().ok()
}

/// How long ago an RFC 3339 time was: `12s`, `5m`, `3h20m`, `9d`; empty if it is none.
pub(super) fn age(time: &str) -> String {
    let Some(then) = instant(time) else { return String::new() };
    let milliseconds = SystemClock.now().0.saturating_sub(then.as_millisecond());
    short(Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0)))
}

/// From one RFC 3339 time to another; empty if one of them is none.
pub(super) fn between(from: &str, to: &str) -> String {
    let time = |text: &str| instant(text).map(jiff::Timestamp::as_millisecond);
    let (Some(from), Some(to)) = (time(from), time(to)) else { return String::new() };
    short(Duration::from_millis(u64::try_from(to.saturating_sub(from)).unwrap_or(0)))
}

/// Two units at most, the smaller one only where it matters.
fn short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..120 => format!("{seconds}s"),
        120..600 if !seconds.is_multiple_of(60) => format!("{minutes}m{}s", seconds % 60),
        120..7200 => format!("{minutes}m"),
        7200..86400 if !minutes.is_multiple_of(60) => format!("{hours}h{}m", minutes % 60),
        7200..172_800 => format!("{hours}h"),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        for (seconds, text) in [
            (1, "1s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (3000, "50m"),
            (7260, "2h1m"),
            (7200, "2h"),
            (200_000, "2d"),
        ] {
            assert_eq!(short(Duration::from_secs(seconds)), text);
        }
        assert_eq!(short(Duration::from_millis(340)), "340ms");
    }

    #[test]
    fn what_is_no_time_has_no_age() {
        assert_eq!(age("yesterday"), "");
        assert_eq!(between("2026-11-21T08:00:00Z", "2026-11-21T08:00:12.5Z"), "12s");
    }
}
