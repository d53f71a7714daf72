//! Syncs at fixed times: cron expressions in a time zone. Pure; the one place that knows the cron library.

use cron::Cron;
use cron::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;

use crate::error::{Context, Failure, Result};
use crate::model::time::Timestamp;

/// Longer expressions are refused unread.
const MAX_LENGTH: usize = 256;

/// Times that come again and again.
///
/// Five fields as in Vixie's cron: minute, hour, day of the month, month, day of the week (0 and 7 are Sunday); where
/// both days are given, either is enough. A time that daylight saving skips comes when the clock has jumped, one that it
/// repeats comes once; `*/20` goes on through both hours.
#[derive(Clone, Debug)]
pub struct Schedule {
    cron: Cron,
    zone: TimeZone,
}

impl Schedule {
    /// Reads an expression such as `0 3 * * *` and the name of a time zone such as `Europe/Berlin`.
    ///
    /// # Errors
    /// If either is not known, or the time never comes.
    pub fn parse(expression: &str, zone: &str) -> Result<Self> {
        let schedule = Self { cron: parse_expression(expression)?, zone: parse_zone(zone)? };
        match schedule.next_after(Timestamp(0)) {
            Some(_) => Ok(schedule),
            None => Err(Failure::stalled(format!("`{expression}` never comes")).hint("no month has such a day")),
        }
    }

    /// The first time after `now`; `None` if there is none in this calendar.
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        let now = jiff::Timestamp::from_millisecond(now.0).ok()?.to_zoned(self.zone.clone());
        let next = self.cron.find_next_occurrence(&now, false).ok()?;
        Some(Timestamp(next.timestamp().as_millisecond()))
    }
}

fn parse_expression(expression: &str) -> Result<Cron> {
    if expression.len() > MAX_LENGTH {
        return Err(Failure::stalled(format!("a cron expression has at most {MAX_LENGTH} characters")));
    }
    CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build()
        .parse(expression)
        .or_stalled(|| format!("`{expression}` is no cron expression"))
        .map_err(|failure| failure.hint("five fields: minute, hour, day of the month, month, day of the week"))
}

fn parse_zone(zone: &str) -> Result<TimeZone> {
    TimeZone::get(zone).or_stalled(|| format!("the time zone `{zone}` is not known")).map_err(|failure| {
        failure.hint("a name such as `Europe/Berlin` or `UTC`; the machine's own list is in the package tzdata")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time(text: &str) -> Timestamp {
        Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    fn occurrences(expression: &str, zone: &str, after: &str, count: usize) -> Vec<Timestamp> {
        let schedule = Schedule::parse(expression, zone).unwrap();
        std::iter::successors(schedule.next_after(time(after)), |last| schedule.next_after(*last)).take(count).collect()
    }

    #[test]
    fn daylight_saving_skips_no_day_and_doubles_no_job() {
        let cases: [(&str, &str, &[&str]); 6] = [
            // The clock jumps from 02:00 to 03:00 on 29 March 2026.
            (
                "30 2 * * *",
                "2026-03-28T02:00:00+01:00",
                &["2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"],
            ),
            ("*/30 * * * *", "2026-03-29T01:00:00+01:00", &["2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00"]),
            // The hour from 02:00 comes twice on 25 October 2026.
            ("30 2 * * *", "2026-10-24T12:00:00+02:00", &["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]),
            (
                "*/20 * * * *",
                "2026-10-25T01:50:00+02:00",
                &[
                    "2026-10-25T02:00:00+02:00",
                    "2026-10-25T02:20:00+02:00",
                    "2026-10-25T02:40:00+02:00",
                    "2026-10-25T02:00:00+01:00",
                    "2026-10-25T02:20:00+01:00",
                    "2026-10-25T02:40:00+01:00",
                    "2026-10-25T03:00:00+01:00",
                ],
            ),
            ("0 0 * * *", "2026-03-28T12:00:00+01:00", &["2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"]),
            ("0 4 * * *", "2026-10-24T12:00:00+02:00", &["2026-10-25T04:00:00+01:00", "2026-10-26T04:00:00+01:00"]),
        ];
        for (expression, after, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|text| time(text)).collect();
            assert_eq!(occurrences(expression, "Europe/Berlin", after, expected.len()), expected, "{expression}");
        }
    }

    #[test]
    fn expressions_mean_what_vixies_cron_means() {
        let cases = [
            ("*/5 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"),
            ("0 0 * * 0", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
            ("0 0 * * 7", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
            ("0 0 * * 1", "2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z"),
            ("0 0 * * MON-FRI", "2026-01-02T00:00:00Z", "2026-01-05T00:00:00Z"),
            // Friday the 2nd comes before the 13th.
            ("0 0 13 * 5", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
            ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
            ("0 0 L * *", "2026-02-01T00:00:00Z", "2026-02-28T00:00:00Z"),
            ("@daily", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        ];
        for (expression, after, next) in cases {
            assert_eq!(occurrences(expression, "UTC", after, 1), [time(next)], "{expression}");
        }
    }

    #[test]
    fn what_is_no_schedule_says_why() {
        let cases = [
            ("", "UTC", "no cron expression"),
            ("* * * *", "UTC", "five fields"),
            ("* * * * * *", "UTC", "five fields"),
            ("61 * * * *", "UTC", "no cron expression"),
            ("0 0 31 2 *", "UTC", "never comes"),
            ("0 3 * * *", "Europe/Berlim", "`Europe/Berlim` is not known"),
        ];
        for (expression, zone, expected) in cases {
            let problem = Schedule::parse(expression, zone).unwrap_err().one_line();
            assert!(problem.contains(expected), "{problem}");
        }
        let long = "0,".repeat(500);
        assert!(Schedule::parse(&long, "UTC").is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_next_time_is_always_later(seconds in 0_i64..4_000_000_000) {
            let now = Timestamp(seconds * 1_000);
            for expression in ["30 2 * * *", "*/20 * * * *", "0 0 1 * *"] {
                let schedule = Schedule::parse(expression, "Europe/Berlin").unwrap();
                prop_assert!(schedule.next_after(now).unwrap() > now);
            }
        }

        #[test]
        fn no_text_panics(expression in "[0-9*/,LW#? -]{0,24}") {
            drop(Schedule::parse(&expression, "UTC"));
        }
    }
}
