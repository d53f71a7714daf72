//! Kubernetes' quantities, such as `250m`, `64Mi` and `1.5e3`.

use crate::model::pod::Scalar;

/// A quantity in thousandths of its unit, rounded up; `None` if it is not one.
pub(crate) fn thousandths(quantity: &Scalar) -> Option<i128> {
    match quantity {
        Scalar::Number(number) => Some(i128::from(*number) * 1000),
        Scalar::Text(text) => parse(text),
    }
}

/// `value / by`, rounded up.
pub(crate) fn div_up(value: i128, by: i128) -> i128 {
    value.div_euclid(by) + i128::from(value.rem_euclid(by) != 0)
}

fn parse(text: &str) -> Option<i128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (factor, divisor) = scale(suffix)?;
    let (digits, decimals) = decimal(number)?;
    let divisor = divisor.checked_mul(10_i128.checked_pow(decimals)?)?;
    Some(div_up(digits.checked_mul(factor)?.checked_mul(1000)?, divisor))
}

/// The digits of a decimal number without its point, and how many of them stood behind it.
fn decimal(number: &str) -> Option<(i128, u32)> {
    let (before, behind) = number.split_once('.').unwrap_or((number, ""));
    let bounded = before.len() + behind.len() <= 24 && before.len() + behind.len() > 0;
    let plain = behind.bytes().all(|byte| byte.is_ascii_digit());
    if !bounded || !plain {
        return None;
    }
    Some((format!("{before}{behind}").parse().ok()?, u32::try_from(behind.len()).ok()?))
}

/// What a suffix multiplies and divides by.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    let decimal = |power: u32| 10_i128.pow(power);
    let (factor, divisor) = match suffix {
        "n" => (1, decimal(9)),
        "u" => (1, decimal(6)),
        "m" => (1, decimal(3)),
        "" => (1, 1),
        "k" => (decimal(3), 1),
        "M" => (decimal(6), 1),
        "G" => (decimal(9), 1),
        "T" => (decimal(12), 1),
        "P" => (decimal(15), 1),
        "E" => (decimal(18), 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            let size = 10_i128.checked_pow(power.unsigned_abs().min(40))?;
            if power < 0 { (1, size) } else { (size, 1) }
        }
    };
    Some((factor, divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_does() {
        let cases = [
            ("250m", Some(250)),
            ("1", Some(1000)),
            ("0.5", Some(500)),
            (".5", Some(500)),
            ("64Mi", Some(64 * 1024 * 1024 * 1000)),
            ("1.5Ki", Some(1536 * 1000)),
            ("1e3", Some(1_000_000)),
            ("1E", Some(10_i128.pow(21))),
            ("1u", Some(1)),
            ("12e-1", Some(1200)),
            ("", None),
            ("Mi", None),
            ("1X", None),
            ("1.2.3", None),
            ("99999999999999999999999999", None),
        ];
        for (text, expected) in cases {
            assert_eq!(thousandths(&Scalar::Text(text.into())), expected, "{text:?}");
        }
        assert_eq!(thousandths(&Scalar::Number(2)), Some(2000));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}") {
            thousandths(&Scalar::Text(text));
        }
    }
}
