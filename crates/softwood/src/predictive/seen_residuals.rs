//! Residuals of models that were trained on a row, made as large as those of models that left it out.
//!
//! The models of an ensemble leave out rows of their own. On a row that some of them left out, the residuals
//! of the others are too small, because they know its target. Multiplied by
//!
//! `γ = mean |residual of models that left the row out| / mean |residual of models trained on it|`
//!
//! they have the size that they would have on new rows. So `y - γ r` in place of the mean `y - r` of
//! such a model lets the ensemble predict a row that it knows as it predicts new rows: with the error of
//! its average and the disagreement of its models.

/// Largest factor `γ`: residuals that are much smaller tell nothing of those on new rows.
const MAX_FACTOR: f64 = 3.0;

/// Sizes of the residuals of the models of an ensemble on rows that some of them left out.
#[derive(Debug, Default)]
pub(crate) struct ResidualSizes {
    left_out: WeightedSum,
    seen: WeightedSum,
}

#[derive(Debug, Default)]
struct WeightedSum {
    sum: f64,
    weight: f64,
}

impl WeightedSum {
    fn mean(&self) -> f64 {
        self.sum / self.weight
    }
}

impl ResidualSizes {
    /// Adds the residual of a model on a row.
    pub(crate) fn add(&mut self, residual: f64, weight: f64, is_left_out: bool) {
        let part = if is_left_out {
            &mut self.left_out
        } else {
            &mut self.seen
        };
        part.sum += weight * residual.abs();
        part.weight += weight;
    }

    /// The factor `γ`, at least 1.
    pub(crate) fn factor(&self) -> f64 {
        let factor = self.left_out.mean() / self.seen.mean();
        // there may be no residuals of one kind, or all of them may be zero
        if factor.is_nan() {
            1.0
        } else {
            factor.clamp(1.0, MAX_FACTOR)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_compares_mean_sizes_and_is_bounded() {
        let factor = |left_out: &[f64], seen: &[f64]| {
            let mut sizes = ResidualSizes::default();
            for residual in left_out {
                sizes.add(*residual, 2.0, true);
            }
            for residual in seen {
                sizes.add(*residual, 1.0, false);
            }
            sizes.factor()
        };
        let found = [
            factor(&[3.0, -3.0], &[2.0, -1.0, 3.0]),
            factor(&[1.0], &[2.0]),
            factor(&[1.0], &[0.0]),
            factor(&[0.0], &[0.0]),
            factor(&[], &[1.0]),
        ];
        softwood_testkit::close(&found, &[1.5, 1.0, MAX_FACTOR, 1.0, 1.0], 1e-12);
    }
}
