//! Validation score of a Langevin chain: the log-likelihood of the mixture over its second half.

use std::collections::VecDeque;

use crate::boosting::langevin::Sampling;
use crate::numerics::logspace::log_mean_exp;

/// Largest number of log-likelihoods that are kept; with many validation rows the mixture has fewer
/// components.
const MAX_VALUES: usize = 4_000_000;

/// Log-likelihoods of the validation rows at the latest validation points.
#[derive(Debug)]
pub(crate) struct ValidationWindow {
    /// Log-likelihood of each row, by validation point.
    points: VecDeque<Vec<f64>>,
    /// Number of points added so far.
    n_points: usize,
    is_langevin: bool,
}

impl ValidationWindow {
    pub(crate) fn new(sampling: Sampling) -> Self {
        Self {
            points: VecDeque::new(),
            n_points: 0,
            is_langevin: sampling != Sampling::Off,
        }
    }

    /// Adds a point and drops those of the first half; without Langevin noise only the last is
    /// kept.
    pub(crate) fn push(&mut self, log_densities: Vec<f64>) {
        self.n_points += 1;
        let max_points = (MAX_VALUES / log_densities.len().max(1)).max(1);
        let n_kept = if self.is_langevin {
            self.n_points.div_ceil(2).min(max_points)
        } else {
            1
        };
        self.points.push_back(log_densities);
        while self.points.len() > n_kept {
            self.points.pop_front();
        }
    }

    /// Log-likelihood of each row under the mixture of all points with equal weights.
    pub(crate) fn mixture(&self) -> Vec<f64> {
        mixture(&self.points.iter())
    }
}

/// Log-likelihood of each row under a mixture with equal weights, given its log-likelihoods under
/// the components.
pub(crate) fn mixture<'a>(
    components: &(impl ExactSizeIterator<Item = &'a Vec<f64>> + Clone),
) -> Vec<f64> {
    let n_rows = components.clone().next().map_or(0, Vec::len);
    (0..n_rows)
        .map(|row| log_mean_exp(components.clone().map(|densities| densities[row])))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mixture_has_the_second_half_of_the_points() {
        let mut window = ValidationWindow::new(Sampling::Posterior);
        for value in [9.0, 8.0, 0.5_f64.ln(), 0.25_f64.ln()] {
            window.push(vec![value]);
        }
        assert!((window.mixture()[0] - 0.375_f64.ln()).abs() < 1e-12);
        let mut plain = ValidationWindow::new(Sampling::Off);
        plain.push(vec![1.0]);
        plain.push(vec![-2.0]);
        assert_eq!(plain.mixture(), [-2.0]);
    }
}
