//! What splits gained, by column.

/// Gains as shares of their sum; all zero where nothing was gained.
pub(crate) fn as_shares(mut gains: Vec<f64>) -> Vec<f64> {
    let total: f64 = gains.iter().sum();
    if total > 0.0 {
        for gain in &mut gains {
            *gain /= total;
        }
    }
    gains
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_one_or_stay_zero() {
        assert_eq!(as_shares(vec![1.0, 3.0]), [0.25, 0.75]);
        assert_eq!(as_shares(vec![0.0, 0.0]), [0.0, 0.0]);
    }
}
