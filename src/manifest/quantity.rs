//! Kubernetes' quantities in one spelling: `1000m` and `1` are the same amount of CPU, `1Gi` and `1024Mi` of memory.

/// Nano-units in one.
const ONE: u128 = 1_000_000_000;
/// The largest amount upstream can hold: 2^63 - 1.
const MAX: u128 = i64::MAX as u128 * ONE;

const DECIMAL: [(&str, u128); 6] = [
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
];
const BINARY: [(&str, u128); 6] =
    [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("Ti", 1 << 40), ("Pi", 1 << 50), ("Ei", 1 << 60)];
const FRACTIONS: [(&str, u128); 3] = [("m", 1_000_000), ("u", 1_000), ("n", 1)];

/// The shortest way to write an amount; `None` if it is none, negative, or too large.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let nanos = parse(text)?;
    if !nanos.is_multiple_of(ONE) {
        let (suffix, unit) = FRACTIONS.into_iter().find(|(_, unit)| nanos.is_multiple_of(*unit))?;
        return Some(format!("{}{suffix}", nanos / unit));
    }
    let whole = nanos / ONE;
    let plain = std::iter::once(("", 1));
    let fitting =
        plain.chain(DECIMAL).chain(BINARY).filter(|(_, unit)| whole.is_multiple_of(*unit) && (whole > 0 || *unit == 1));
    fitting.map(|(suffix, unit)| format!("{}{suffix}", whole / unit)).min_by_key(String::len)
}

/// Whether one amount is larger than another; what is no amount is not.
pub(crate) fn is_more(one: &str, other: &str) -> bool {
    matches!((parse(one), parse(other)), (Some(one), Some(other)) if one > other)
}

/// An amount in nano-units; smaller fractions are rounded up, as upstream does.
fn parse(text: &str) -> Option<u128> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || fraction.contains('.') || number.len() > 40 {
        return None;
    }
    let (multiplier, divisor) = scale(suffix)?;
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let divisor = divisor.checked_mul(10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?)?;
    let nanos = digits.checked_mul(multiplier)?.div_ceil(divisor);
    (nanos <= MAX).then_some(nanos)
}

/// What one of a suffix is worth in nano-units: a multiplier and a divisor.
fn scale(suffix: &str) -> Option<(u128, u128)> {
    if suffix.is_empty() {
        return Some((ONE, 1));
    }
    if let Some((_, unit)) = FRACTIONS.into_iter().find(|(name, _)| *name == suffix) {
        return Some((unit, 1));
    }
    if let Some((_, unit)) = DECIMAL.into_iter().chain(BINARY).find(|(name, _)| *name == suffix) {
        return Some((unit * ONE, 1));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let power = 10u128.checked_pow(exponent.unsigned_abs())?;
    if exponent < 0 { Some((ONE, power)) } else { Some((ONE.checked_mul(power)?, 1)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_amounts_are_written_alike() {
        let table = [
            (&["1", "1000m", "1.0", "+1", "1e0"][..], Some("1")),
            (&["1Gi", "1024Mi", "1073741824", "1048576Ki"], Some("1Gi")),
            (&["128M", "128000k", "128e6"], Some("128M")),
            (&["0.5", "500m", ".5", "5e-1"], Some("500m")),
            (&["0", "0m", "0Gi", "0.0"], Some("0")),
            (&["1.5Gi", "1536Mi"], Some("1536Mi")),
            (&["100n", "0.1u"], Some("100n")),
            (&["", "-1", "1 Gi", "one", "1gi", "1..2", ".", "1e", "9223372036854775808", "1e40"], None),
        ];
        for (spellings, expected) in table {
            for spelling in spellings {
                assert_eq!(canonical(spelling).as_deref(), expected, "{spelling}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn writing_again_changes_nothing(text in "[0-9]{1,12}(\\.[0-9]{1,4})?(m|k|Ki|Mi|Gi|M|G|u|n)?") {
            if let Some(once) = canonical(&text) {
                proptest::prop_assert_eq!(canonical(&once), Some(once));
            }
        }
    }
}
