//! The day of a run, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// Today as `YYYY-MM-DD`.
pub(crate) fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    civil(since.map_or(0, |since| since.as_secs() / 86_400))
}

/// The Gregorian date of a day counted from 1970-01-01. The calendar repeats every 400 years
/// (146097 days); inside, years begin in March, so that the leap day is the last of its year.
fn civil(days: u64) -> String {
    let days = days + 719_468; // from 0000-03-01
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // 0 is March
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!("{:04}-{month:02}-{date:02}", 400 * era + year + later)
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_become_dates() {
        // python: datetime.date(1970, 1, 1) + datetime.timedelta(days)
        let dates = [0, 59, 789, 11_016, 20_454, 20_819].map(civil);
        let expected = [
            "1970-01-01",
            "1970-03-01",
            "1972-02-29",
            "2000-02-29",
            "2026-01-01",
            "2027-01-01",
        ];
        assert_eq!(dates, expected);
    }
}
