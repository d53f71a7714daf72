//! Durations as Go writes them: `10s`, `5m`, `1h30m`, `1.5h`, `250ms`.

use std::time::Duration;

/// Nanoseconds of the units, longest names first where one begins like another.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The duration, or `None` if it is none, negative, or longer than a century.
pub fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    if text.is_empty() || text.len() > 64 {
        return None;
    }
    let mut rest = text;
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let (_, nanos) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(scaled(number, nanos)?)?;
        rest = after;
    }
    const CENTURY: u128 = 100 * 366 * 24 * 3_600_000_000_000;
    (total <= CENTURY).then(|| {
        Duration::new(
            u64::try_from(total / 1_000_000_000).unwrap_or(u64::MAX),
            u32::try_from(total % 1_000_000_000).unwrap_or(0),
        )
    })
}

fn scaled(number: &str, nanos: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || fraction.contains('.') || fraction.len() > 12 {
        return None;
    }
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    Some(digits.checked_mul(nanos)? / 10u128.pow(u32::try_from(fraction.len()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gos_durations_are_read() {
        let table = [
            ("10s", Some(10_000)),
            ("1h30m", Some(5_400_000)),
            ("1.5h", Some(5_400_000)),
            ("250ms", Some(250)),
            ("0", Some(0)),
            ("0s", Some(0)),
            ("10", None),
            ("", None),
            ("-1s", None),
            ("1d", None),
            ("s", None),
            (".s", None),
            ("1.2.3s", None),
            ("9999999999999h", None),
        ];
        for (text, millis) in table {
            assert_eq!(parse(text).map(|duration| duration.as_millis()), millis, "{text}");
        }
    }
}
