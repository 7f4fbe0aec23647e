//! Ranges of the numbers in a model file. A fit stays far inside of them; beyond them sums, squares
//! and exponentials of a prediction could overflow.

use std::ops::RangeInclusive;

use serde::Serializer;

use crate::error::{Error, Result};

/// Largest magnitude of a mean or a variance in standard units of the target.
pub(crate) const MAX_STANDARD: f64 = 1e30;
/// Standard deviations in standard units of the target.
pub(crate) const STANDARD_DEVIATIONS: RangeInclusive<f64> = 1e-15..=1e40;
/// Floors of standard deviations in standard units of the target.
pub(crate) const FLOORS: RangeInclusive<f64> = 1e-15..=1e3;
/// Spreads of the logarithms of the members' standard deviations.
pub(crate) const TAILS: RangeInclusive<f64> = 0.0..=3.0;

/// Writes a number of a report; one that is not finite becomes the nearest finite one, and NaN the
/// smallest, because JSON has neither and the file could not be read.
#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
pub(crate) fn serialize_finite<S: Serializer>(
    value: &f64,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_f64(finite(*value))
}

fn finite(value: f64) -> f64 {
    if value.is_nan() {
        f64::MIN
    } else {
        value.clamp(f64::MIN, f64::MAX)
    }
}

/// Returns an error unless the number called `name` lies in `range`.
pub(crate) fn check(name: &str, value: f64, range: &RangeInclusive<f64>) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(Error::Format(format!(
        "`{name}` is {value:e}; expected a number from {:e} to {:e}",
        range.start(),
        range.end()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_numbers_are_finite() {
        for (value, expected) in [
            (1.5, 1.5),
            (f64::INFINITY, f64::MAX),
            (f64::NEG_INFINITY, f64::MIN),
            (f64::NAN, f64::MIN),
        ] {
            assert_eq!(finite(value).to_bits(), expected.to_bits());
        }
    }

    #[test]
    fn ranges_include_their_ends_and_no_nan() {
        for value in [1e-15, 1.0, 1e3] {
            assert!(check("a", value, &FLOORS).is_ok());
        }
        for value in [0.0, -1.0, 1001.0, f64::NAN, f64::INFINITY] {
            let message = check("a", value, &FLOORS).unwrap_err().to_string();
            assert!(message.contains("`a` is"), "{message}");
        }
    }
}
