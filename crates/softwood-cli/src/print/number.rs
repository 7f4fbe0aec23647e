//! Numbers as people read them.

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

/// A share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// A time in seconds.
pub(crate) fn seconds(time: f64) -> String {
    if time < 60.0 {
        return format!("{time:.1} s");
    }
    format!("{} min {:.0} s", (time / 60.0).floor(), time % 60.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits() {
        let texts = [0.0, 0.123_456, -1.5, 1234.56, 123_456.7, 1e-9, f64::NAN].map(short);
        assert_eq!(
            texts,
            [
                "0.0000", "0.1235", "-1.500", "1235", "123457", "1.000e-9", "-"
            ]
        );
    }
}
