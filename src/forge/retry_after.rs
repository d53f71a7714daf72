//! `Retry-After` (RFC 9110, section 10.2.3): how long a host asks to be left alone.

use std::time::Duration;

use crate::model::time::Timestamp;

/// No host is left alone for longer: its clock may be wrong, and people wait for their statuses.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// When a host may be asked again, from the header's value: seconds, or a date. `None` if it is neither.
pub fn parse(value: &str, now: Timestamp) -> Option<Timestamp> {
    let value = value.trim();
    let wait = match value.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => date(value)?.since(now),
    };
    Some(now + wait.min(LONGEST))
}

fn date(value: &str) -> Option<Timestamp> {
    let date = jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(value).ok()?;
    Some(Timestamp(date.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_understood_and_bounded() {
        let now = Timestamp(1_445_412_420_000); // 2015-10-21T07:27:00Z
        let in_seconds = |seconds: i64| Some(Timestamp(now.0 + seconds * 1000));
        let cases = [
            ("0", in_seconds(0)),
            (" 120 ", in_seconds(120)),
            ("999999999999", in_seconds(3600)),
            ("Wed, 21 Oct 2015 07:28:00 GMT", in_seconds(60)),
            ("Wed, 21 Oct 2015 07:00:00 GMT", in_seconds(0)),
            ("Wed, 21 Oct 2099 07:00:00 GMT", in_seconds(3600)),
            ("-5", None),
            ("soon", None),
            ("", None),
        ];
        for (value, expected) in cases {
            assert_eq!(parse(value, now), expected, "{value:?}");
        }
    }
}
