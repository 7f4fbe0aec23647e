//! ISO 8601 dates and date-times in text cells, as seconds since 1970-01-01 00:00 UTC.
//!
//! The calendar is a few lines of integer arithmetic, and only one notation is read, so that no
//! date crate is compiled into the build without Arrow.

const SECONDS_PER_DAY: i64 = 86_400;
/// Seconds below which microseconds since 1970 are exact in 64-bit floats.
const MAX_EXACT_MICROS: u64 = (1 << 53) / 1_000_000;
/// Seconds below which nanoseconds since 1970 are exact in 64-bit floats.
const MAX_EXACT_NANOS: u64 = (1 << 53) / 1_000_000_000;

/// Seconds since 1970 of a whole number of seconds and nanoseconds after it. Every reader converts
/// with this function, so that an instant has the same bits in every file format.
pub(crate) fn seconds_since_1970(whole: i64, nanos: u32) -> f64 {
    if nanos.is_multiple_of(1000) && whole.unsigned_abs() < MAX_EXACT_MICROS {
        return (whole * 1_000_000 + i64::from(nanos / 1000)) as f64 / 1e6;
    }
    if whole.unsigned_abs() < MAX_EXACT_NANOS {
        return (whole * 1_000_000_000 + i64::from(nanos)) as f64 / 1e9;
    }
    whole as f64 + f64::from(nanos) / 1e9
}

/// Seconds since 1970 of `2024-01-31`, `2024-01-31T12:30`, `2024-01-31 12:30:05.25Z` or
/// `2024-01-31 12:30:05+02:00`; without an offset the time is UTC. `None` for any other text.
pub(crate) fn parse_date(text: &str) -> Option<f64> {
    let mut rest = text.as_bytes();
    let year = digits(&mut rest, 4)?;
    take(&mut rest, b"-")?;
    let month = digits(&mut rest, 2)?;
    take(&mut rest, b"-")?;
    let day = digits(&mut rest, 2)?;
    let midnight = days_since_1970(year, month, day)? * SECONDS_PER_DAY;
    if rest.is_empty() {
        return Some(seconds_since_1970(midnight, 0));
    }
    take(&mut rest, b"Tt ")?;
    let (seconds, nanos) = time_of_day(&mut rest)?;
    let offset = offset(&mut rest)?;
    let whole = midnight + seconds - offset;
    rest.is_empty().then(|| seconds_since_1970(whole, nanos))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar; `None` if there is no such date.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    const DAYS_BEFORE: [i64; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
    let month = usize::try_from(month)
        .ok()
        .filter(|m| (1..=12).contains(m))?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let leap_day = i64::from(is_leap && month == 2);
    let length = DAYS_BEFORE[month] - DAYS_BEFORE[month - 1] + leap_day;
    if year == 0 || !(1..=length).contains(&day) {
        return None;
    }
    let before = year - 1;
    let leap_days = before / 4 - before / 100 + before / 400 + i64::from(is_leap && month > 2);
    Some(365 * before + leap_days + DAYS_BEFORE[month - 1] + day - 1 - 719_162)
}

/// `12:30`, `12:30:05` or `12:30:05.25` as seconds and nanoseconds; second 60 is a leap second.
fn time_of_day(rest: &mut &[u8]) -> Option<(i64, u32)> {
    let hour = digits(rest, 2).filter(|hour| *hour < 24)?;
    take(rest, b":")?;
    let minute = digits(rest, 2).filter(|minute| *minute < 60)?;
    let minutes = 60 * hour + minute;
    if take(rest, b":").is_none() {
        return Some((60 * minutes, 0));
    }
    let second = digits(rest, 2).filter(|second| *second <= 60)?;
    let nanos = match take(rest, b".,") {
        Some(_) => fraction(rest)?,
        None => 0,
    };
    Some((60 * minutes + second, nanos))
}

/// Decimals of a second as nanoseconds; decimals after the ninth are dropped.
fn fraction(rest: &mut &[u8]) -> Option<u32> {
    let n_digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (decimals, after) = rest.split_at(n_digits);
    *rest = after;
    let digit = |at: usize| decimals.get(at).map_or(0, |byte| u32::from(byte - b'0'));
    let nanos = (0..9).fold(0, |nanos, at| 10 * nanos + digit(at));
    (n_digits > 0).then_some(nanos)
}

/// Seconds east of UTC: nothing, `Z`, `+02:00`, `+0200` or `+02`, perhaps after a blank.
fn offset(rest: &mut &[u8]) -> Option<i64> {
    let _ = take(rest, b" ");
    if rest.is_empty() || take(rest, b"Zz").is_some() {
        return Some(0);
    }
    let sign = if take(rest, b"+-")? == b'+' { 1 } else { -1 };
    let hours = digits(rest, 2).filter(|hours| *hours < 24)?;
    let has_minutes = take(rest, b":").is_some() || !rest.is_empty();
    let minutes = if has_minutes { digits(rest, 2)? } else { 0 };
    (minutes < 60).then_some(sign * (3600 * hours + 60 * minutes))
}

/// Takes exactly `n` digits.
fn digits(rest: &mut &[u8], n: usize) -> Option<i64> {
    let (head, tail) = rest.split_at_checked(n)?;
    if !head.iter().all(u8::is_ascii_digit) {
        return None;
    }
    *rest = tail;
    Some(
        head.iter()
            .fold(0, |sum, byte| 10 * sum + i64::from(byte - b'0')),
    )
}

/// Takes one byte if it is one of `allowed`.
fn take(rest: &mut &[u8], allowed: &[u8]) -> Option<u8> {
    let (&first, tail) = rest.split_first()?;
    if !allowed.contains(&first) {
        return None;
    }
    *rest = tail;
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_midnight_in_utc() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("2024-03-01", 19_783),
            ("0001-01-01", -719_162),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(parse_date(text), Some(days as f64 * 86_400.0), "{text}");
        }
    }

    #[test]
    fn days_are_consecutive_over_four_centuries() {
        let mut expected = days_since_1970(1800, 1, 1).unwrap();
        for year in 1800..2200 {
            for month in 1..=12 {
                for day in 1..=31 {
                    if let Some(found) = days_since_1970(year, month, day) {
                        assert_eq!(found, expected);
                        expected += 1;
                    }
                }
            }
        }
        assert_eq!(expected - days_since_1970(1800, 1, 1).unwrap(), 146_097);
    }

    #[test]
    fn times_fractions_and_offsets_are_read() {
        for (text, seconds) in [
            ("1970-01-02T00:00", 86_400.0),
            ("1970-01-01 00:01:05", 65.0),
            ("1970-01-01t00:00:00.25z", 0.25),
            ("1970-01-01 02:00:00+02:00", 0.0),
            ("1970-01-01T00:00:00-0130", 5400.0),
            ("1970-01-01 00:00:00 +01", -3600.0),
            ("1970-01-01 00:00:00,5", 0.5),
            ("1969-12-31T23:59:59.999999", -0.000_001),
            ("1970-01-01T00:00:00.0000000019", 1e-9),
        ] {
            assert_eq!(parse_date(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn other_texts_are_not_dates() {
        for text in [
            "",
            "2024",
            "2024-01",
            "2024-1-05",
            "2024-13-01",
            "2023-02-29",
            "2024-04-31",
            "0000-01-01",
            "2024/01/05",
            "05.01.2024",
            "2024-01-05T",
            "2024-01-05T12",
            "2024-01-05T24:00",
            "2024-01-05 12:30:61",
            "2024-01-05 12:30:05.",
            "2024-01-05 12:30+2",
            "2024-01-05 12:30 Oslo",
            "2024-01-05x",
            "+024-01-05",
            "２０２４-01-05",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }
}
