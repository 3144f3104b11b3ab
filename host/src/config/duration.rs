//! Durations as Go writes them: `1.5h30m`, `300ms`.
//!
//! Must not accept what Go would refuse, nor a budget of nothing: a run or check with no time is a mistake.

use std::time::Duration;

/// The longest duration, in nanoseconds: what Go's signed 64-bit count holds, about 292 years.
const MAX_NANOS: u128 = i64::MAX as u128;

/// Fractions beyond this many digits are below a nanosecond in every unit, so they are read and dropped.
const MAX_FRACTION_DIGITS: usize = 18;

const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Nothing is written.
    #[error("a duration cannot be empty")]
    Empty,
    /// There is no number where one must be.
    #[error("a duration is made of numbers with units, as in `1h30m`")]
    Shape,
    /// A number has no unit.
    #[error("`{0}` has no unit")]
    NoUnit(String),
    /// A unit that does not exist.
    #[error("`{0}` is not a unit of time")]
    UnknownUnit(String),
    /// Below zero.
    #[error("a duration cannot be negative")]
    Negative,
    /// Zero, or less than a nanosecond.
    #[error("a duration cannot be zero")]
    Zero,
    /// More than fits.
    #[error("a duration cannot be longer than about 292 years")]
    Overflow,
}

impl DurationError {
    /// What to write instead.
    pub fn help(&self) -> String {
        match self {
            Self::NoUnit(number) => {
                format!("write the unit, for example `{number}s` for seconds or `{number}m` for minutes")
            }
            Self::UnknownUnit(unit) => match meant(unit) {
                Some(advice) => advice.to_owned(),
                None => "the units are `ns`, `us` (or `µs`), `ms`, `s`, `m` and `h`".to_owned(),
            },
            Self::Negative | Self::Zero => "leave the key out to set no limit".to_owned(),
            Self::Empty | Self::Shape | Self::Overflow => "write it like `30m`, `1h30m` or `1.5s`".to_owned(),
        }
    }
}

/// What somebody means by a unit that Go does not have.
fn meant(unit: &str) -> Option<&'static str> {
    match unit.to_ascii_lowercase().as_str() {
        "d" | "day" | "days" => Some("write days in hours: `24h` is one day"),
        "w" | "week" | "weeks" => Some("write weeks in hours: `168h` is one week"),
        "sec" | "secs" | "second" | "seconds" => Some("seconds are written `s`"),
        "min" | "mins" | "minute" | "minutes" => Some("minutes are written `m`"),
        "hr" | "hrs" | "hour" | "hours" => Some("hours are written `h`"),
        "msec" | "millis" | "milliseconds" => Some("milliseconds are written `ms`"),
        "h" | "m" | "s" | "ms" | "us" | "ns" => Some("units are in lower case"),
        _ => None,
    }
}

/// Reads a duration in Go's syntax. It is positive, and exact to the nanosecond.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest.is_empty() {
        return Err(if text.is_empty() { DurationError::Empty } else { DurationError::Shape });
    }
    // Go takes a bare zero as a duration; here it is one that cannot be meant.
    let mut nanos = 0_u128;
    while !rest.is_empty() && rest != "0" {
        let (part, after) = part(rest)?;
        nanos = nanos.saturating_add(part);
        rest = after;
    }
    if negative {
        return Err(DurationError::Negative);
    }
    match nanos {
        0 => Err(DurationError::Zero),
        1..=MAX_NANOS => Ok(Duration::from_nanos(u64::try_from(nanos).map_err(|_| DurationError::Overflow)?)),
        _ => Err(DurationError::Overflow),
    }
}

/// One number with its unit, in nanoseconds, and what follows it.
fn part(text: &str) -> Result<(u128, &str), DurationError> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::Shape);
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, after) = rest.split_at(end);
    if unit.is_empty() {
        return Err(DurationError::NoUnit(text[..text.len() - rest.len()].to_owned()));
    }
    let scale = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale);
    let scale = scale.ok_or_else(|| DurationError::UnknownUnit(unit.to_owned()))?;
    let kept = &fraction[..fraction.len().min(MAX_FRACTION_DIGITS)];
    // Below 10^18 times 3.6 * 10^12: far from the edge of 128 bits.
    let (dividend, divisor) =
        kept.bytes().fold((0, 1), |(sum, divisor), digit| (sum * 10 + u128::from(digit - b'0'), divisor * 10));
    Ok((number(whole).saturating_mul(scale).saturating_add(dividend * scale / divisor), after))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// The value of some digits; what is too large for any duration stays too large.
fn number(digits: &str) -> u128 {
    digits.bytes().fold(0_u128, |sum, digit| sum.saturating_mul(10).saturating_add(u128::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_reads_is_read_alike() {
        let cases: &[(&str, u64)] = &[
            ("1ns", 1),
            ("5us", 5_000),
            ("5\u{b5}s", 5_000),
            ("5\u{3bc}s", 5_000),
            ("300ms", 300_000_000),
            ("30s", 30_000_000_000),
            ("+30s", 30_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5h30m", 7_200_000_000_000),
            ("1h2m3s4ms5us6ns", 3_723_004_005_006),
            (".5s", 500_000_000),
            ("5.s", 5_000_000_000),
            ("1m1m", 120_000_000_000),
            ("0h1s", 1_000_000_000),
            ("0.3333333333333333333h", 1_199_999_999_999),
            ("0.100000000000000000000h", 360_000_000_000),
            ("0.1234567890123456789999s", 123_456_789),
            ("9223372036854775807ns", 9_223_372_036_854_775_807),
            ("2562047h47m16.854775807s", 9_223_372_036_854_775_807),
        ];
        for (text, nanos) in cases {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(*nanos)), "{text}");
        }
    }

    #[test]
    fn what_is_no_budget_is_refused() {
        use DurationError as E;
        let unit = |text: &str| E::UnknownUnit(text.to_owned());
        let bare = |text: &str| E::NoUnit(text.to_owned());
        let cases: &[(&str, E)] = &[
            ("", E::Empty),
            ("-", E::Shape),
            ("+", E::Shape),
            ("s", E::Shape),
            (".", E::Shape),
            (".s", E::Shape),
            ("--1s", E::Shape),
            (" 1s", E::Shape),
            ("1s ", unit("s ")),
            ("1 s", unit(" s")),
            ("30", bare("30")),
            ("1.5", bare("1.5")),
            ("1h30", bare("30")),
            ("1.2.3s", bare("1.2")),
            ("1e3s", unit("e")),
            ("1d", unit("d")),
            ("3M", unit("M")),
            ("1\u{661}s", unit("\u{661}s")),
            ("0", E::Zero),
            ("+0", E::Zero),
            ("-0", E::Negative),
            ("0s", E::Zero),
            ("0h0m", E::Zero),
            ("0.1ns", E::Zero),
            ("-1s", E::Negative),
            ("9223372036854775808ns", E::Overflow),
            ("2562048h", E::Overflow),
            ("99999999999999999999999999999999999999999999999999h", E::Overflow),
        ];
        for (text, error) in cases {
            assert_eq!(parse_duration(text), Err(error.clone()), "{text}");
        }
    }

    #[test]
    fn what_is_printed_reads_back() {
        for nanos in (0..63).map(|bit| (1_u64 << bit) + 7 * bit) {
            for text in [
                format!("{nanos}ns"),
                format!("{}s{}ns", nanos / 1_000_000_000, nanos % 1_000_000_000),
                format!("{}.{:09}s", nanos / 1_000_000_000, nanos % 1_000_000_000),
                format!("{}us{}ns", nanos / 1_000, nanos % 1_000),
            ] {
                assert_eq!(parse_duration(&text), Ok(Duration::from_nanos(nanos)), "{text}");
            }
        }
    }

    #[test]
    fn each_refusal_says_what_to_write() {
        let help = |text: &str| parse_duration(text).unwrap_err().help();
        assert_eq!(help("30"), "write the unit, for example `30s` for seconds or `30m` for minutes");
        assert_eq!(help("2d"), "write days in hours: `24h` is one day");
        assert_eq!(help("2H"), "units are in lower case");
        assert_eq!(help("5min"), "minutes are written `m`");
        assert_eq!(help("5parsec"), "the units are `ns`, `us` (or `µs`), `ms`, `s`, `m` and `h`");
        assert_eq!(help("0s"), "leave the key out to set no limit");
    }
}
