//! The held-out score of a Langevin chain: that of the mixture over its later half.

use std::collections::VecDeque;

use crate::boosting::langevin::Sampling;
use crate::numerics::logspace::log_mean_exp;

/// Most log-likelihoods that are remembered; where there are more rows, fewer points go into the mixture.
const MAX_NUMBERS: usize = 4_000_000;

/// Log-likelihoods of the held-out rows at the last points.
#[derive(Debug)]
pub(crate) struct ValidationWindow {
    points: VecDeque<Vec<f64>>,
    n_seen: usize,
    is_chain: bool,
}

impl ValidationWindow {
    pub(crate) fn new(sampling: Sampling) -> Self {
        Self {
            points: VecDeque::new(),
            n_seen: 0,
            is_chain: sampling != Sampling::Off,
        }
    }

    /// Adds a point and forgets those of the first half; without noise only the last counts.
    pub(crate) fn push(&mut self, log_densities: Vec<f64>) {
        self.n_seen += 1;
        let most = (MAX_NUMBERS / log_densities.len().max(1)).max(1);
        let n_kept = if self.is_chain {
            self.n_seen.div_ceil(2).min(most)
        } else {
            1
        };
        self.points.push_back(log_densities);
        while self.points.len() > n_kept {
            self.points.pop_front();
        }
    }

    /// Log-likelihood of each row under the even mixture of the points.
    pub(crate) fn mixture(&self) -> Vec<f64> {
        mixture(&self.points.iter())
    }
}

/// Log-likelihood of each row under the even mixture of components, given its log-likelihoods under each.
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
    fn the_mixture_is_over_the_later_half() {
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
