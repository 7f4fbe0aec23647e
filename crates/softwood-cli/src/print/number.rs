//! Numbers, times and memory sizes as text.

/// About four significant digits.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "-".to_owned();
    }
    if size != 0.0 && !(1e-4..1e10).contains(&size) {
        return format!("{value:.3e}");
    }
    let before_the_point = if size < 1.0 {
        0
    } else {
        size.log10().floor() as i32 + 1
    };
    let decimals = (4 - before_the_point).max(0) as usize;
    format!("{value:.decimals$}")
}

/// A fraction as a percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// A duration given in seconds, to a tenth of a second below a minute.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 59.95 {
        return format!("{seconds:.1} s");
    }
    let seconds = seconds.round();
    format!("{} min {} s", (seconds / 60.0).floor(), seconds % 60.0)
}

/// A mean time in seconds with its standard deviation, in the unit that suits the mean.
pub(crate) fn time(mean: f64, sd: Option<f64>) -> String {
    let units = [
        (1e-6, "µs"),
        (1e-3, "ms"),
        (1.0, "s"),
        (60.0, "min"),
        (3600.0, "h"),
    ];
    with_unit(mean, sd, &units)
}

/// A mean memory size in bytes with its standard deviation, in the unit that suits the mean.
pub(crate) fn memory(mean: f64, sd: Option<f64>) -> String {
    let units = [(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")];
    with_unit(mean, sd, &units)
}

/// Three significant digits of the mean, in the largest of the units (size and name, in ascending
/// order) that does not exceed it.
fn with_unit(mean: f64, sd: Option<f64>, units: &[(f64, &str)]) -> String {
    if !mean.is_finite() {
        return "-".to_owned();
    }
    // 0.9995 of a unit is printed as 1.00 of it
    let fits = |(size, _): &&(f64, &str)| mean.abs() >= 0.9995 * size;
    let (size, name) = *units.iter().rev().find(fits).unwrap_or(&units[0]);
    let value = mean / size;
    let decimals = match value.abs() {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    match sd {
        Some(sd) => format!("{value:.decimals$} ± {:.decimals$} {name}", sd / size),
        None => format!("{value:.decimals$} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_significant_digits() {
        let texts = [0.0, 0.123_456, -1.5, 1234.56, 123_456.7, 1e-9, f64::NAN].map(short);
        assert_eq!(
            texts,
            [
                "0.0000", "0.1235", "-1.500", "1235", "123457", "1.000e-9", "-"
            ]
        );
    }

    #[test]
    fn durations_are_in_minutes_and_seconds() {
        let texts = [0.04, 59.94, 59.96, 119.7, 3601.0].map(duration);
        assert_eq!(
            texts,
            ["0.0 s", "59.9 s", "1 min 0 s", "2 min 0 s", "60 min 1 s"]
        );
    }

    #[test]
    fn times_and_memory_sizes_have_suitable_units() {
        assert_eq!(time(0.0002, Some(6.396e-5)), "200 ± 64 µs");
        assert_eq!(time(0.999_9, None), "1.00 s");
        assert_eq!(time(0.0, Some(0.0)), "0.00 ± 0.00 µs");
        assert_eq!(time(93.0, Some(3.0)), "1.55 ± 0.05 min");
        assert_eq!(memory(15_716_352.0, Some(418_574.0)), "15.7 ± 0.4 MB");
        assert_eq!(memory(2.5e12, None), "2500 GB");
        assert_eq!(memory(f64::NAN, None), "-");
    }
}
