//! When a repository is synced without anybody asking. Pure.

use std::time::Duration;

use crate::model::time::Timestamp;

/// The pause before the first retry, however seldom a repository is polled, or if it is not: a webhook whose sync failed
/// would be lost until then.
const FIRST_RETRY: Duration = Duration::from_secs(5);
/// Retries are never further apart than this (or than the interval, if that is longer).
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// When to sync next after a sync that ended at `now`; `None` if only a trigger may cause one.
///
/// `interval` is the configured one, zero for "off". `failures` counts the syncs that failed since somebody asked for
/// one: each doubles the pause. `random` is any random number: it shifts the time by up to a tenth of the pause, so that a thousand
/// repositories on one host are not synced all at once.
pub fn next_sync(now: Timestamp, interval: Duration, failures: u32, random: u64) -> Option<Timestamp> {
    let pause = match failures {
        0 if interval.is_zero() => return None,
        0 => interval,
        _ => back_off(interval, failures),
    };
    Some(now + jittered(pause, random))
}

fn back_off(interval: Duration, failures: u32) -> Duration {
    let first = if interval.is_zero() { FIRST_RETRY } else { FIRST_RETRY.min(interval) };
    let factor = 1_u32.checked_shl(failures - 1).unwrap_or(u32::MAX);
    first.saturating_mul(factor).min(LONGEST_PAUSE.max(interval))
}

/// Between 90 % and 110 % of `pause`.
fn jittered(pause: Duration, random: u64) -> Duration {
    let tenth = pause.as_nanos() / 10;
    let shift = (2 * tenth).saturating_mul(u128::from(random)) / u128::from(u64::MAX);
    let nanos = pause.as_nanos() - tenth + shift;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIDDLE: u64 = u64::MAX / 2;

    #[test]
    fn pauses_double_up_to_ten_minutes() {
        let table = [
            // interval, failures, pause in seconds
            (30, 0, Some(30)),
            (30, 1, Some(5)),
            (30, 2, Some(10)),
            (30, 5, Some(80)),
            (30, 8, Some(600)),
            (30, u32::MAX, Some(600)),
            (2, 1, Some(2)),
            (3_600, 0, Some(3_600)),
            (3_600, 1, Some(5)),
            (3_600, 20, Some(3_600)),
            (0, 0, None),
            (0, 1, Some(5)),
            (0, 3, Some(20)),
            (0, 40, Some(600)),
        ];
        for (interval, failures, pause) in table {
            let next = next_sync(Timestamp(0), Duration::from_secs(interval), failures, MIDDLE);
            let seconds = next.map(|time| (time.0 + 500) / 1_000);
            assert_eq!(seconds, pause, "every {interval} s after {failures} failures");
        }
    }

    proptest! {
        #[test]
        fn jitter_is_at_most_a_tenth(seconds in 1_u64..1_000_000, random: u64) {
            let interval = Duration::from_secs(seconds);
            let pause = next_sync(Timestamp(7), interval, 0, random).unwrap().since(Timestamp(7));
            prop_assert!(pause >= interval * 9 / 10 - Duration::from_millis(1) && pause <= interval * 11 / 10);
        }

        #[test]
        fn any_input_gives_a_time_that_is_not_past(now: i64, nanos: u64, failures: u32, random: u64) {
            let next = next_sync(Timestamp(now), Duration::from_nanos(nanos), failures, random);
            prop_assert!(next.is_none_or(|next| next >= Timestamp(now)));
        }
    }
}
