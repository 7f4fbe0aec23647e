//! Whether the members differ enough for knowledge uncertainty to be trusted.
//!
//! Members are compared on a few training rows, separately for each output: their variance, within
//! and between chains, and the effective number of independent members. Two bounds are known in
//! advance:
//!
//! - In a Langevin chain a leaf value follows at best the autoregression
//!   `x -> (1 - e) q x + noise`, where `e` is the learning rate and `q` the shrinkage per tree.
//!   Virtual members `p` trees apart therefore have a correlation of at least `((1 - e) q)^p`. If
//!   each round updates 31 of `C` classes, `e` is multiplied by `31/C`. A few members of one chain
//!   cannot show this correlation, so the smaller effective number counts.
//! - The members of a posterior vary at least as much as those of a model that consists of a
//!   constant: `1 / sum s^-2` for a mean, `1/(2 N)` for a log scale and `1 / sum p (1 - p)` for a
//!   logit, where the sums run over all rows.

use crate::boosting::chain::Chain;
use crate::boosting::langevin::Sampling;
use crate::data::binning::binned::Binned;
use crate::likelihood::OutputNames;
use crate::model::{MemberReport, OutputSpread};
use crate::models::boosting::config::{BoostingConfig, Members};
use crate::models::boosting::likelihood::BoostingLikelihood;
use crate::numerics::logspace::log_sum_exp;
use crate::numerics::mcmc_diagnostics::{Draws, effective_of};
use crate::par::Pool;

/// Number of rows that members are compared on: as many as are routed at once.
const ROWS: usize = 64;
/// Smallest effective number of members for a useful variance: below it the relative error of the
/// variance is above one.
const MIN_EFFECTIVE: f64 = 3.0;
/// Standard Normal quantile of the test for too small a variance: it fails for 1% of the fits if
/// the model is a constant, and for fewer otherwise.
const ALARM_QUANTILE: f64 = 2.326;

/// The trained members and the facts that their comparison needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemberDiagnostics<'a> {
    pub(super) config: &'a BoostingConfig,
    pub(super) members: Members,
    pub(super) chains: &'a [Chain],
    pub(super) likelihood: BoostingLikelihood,
    pub(super) learning_rate: f64,
    /// Standard deviation of the target: the unit of the mean.
    pub(super) target_scale: f64,
    /// Total weight of the training rows.
    pub(super) total_weight: f64,
}

/// Raw outputs of the members of one chain.
#[derive(Debug)]
struct MemberOutputs {
    /// By output, then row, then member.
    outputs: Vec<Vec<Vec<f64>>>,
    /// Log-sum-exp over the outputs, by row and member, if they are the logits of several classes.
    log_totals: Vec<Vec<f64>>,
}

impl MemberDiagnostics<'_> {
    /// The first of the given rows, as many as members are compared on.
    pub(super) fn rows(rows: &[u32]) -> &[u32] {
        &rows[..rows.len().min(ROWS)]
    }

    /// Compares the members on some rows.
    pub(super) fn report(
        &self,
        rows: &Binned,
        class_names: Option<&[String]>,
        pool: &Pool,
    ) -> MemberReport {
        let draws = self.draws(rows, pool);
        let n_outputs = self.likelihood.n_outputs();
        let outputs: Vec<OutputSpread> = (0..n_outputs)
            .map(|output| self.spread(&draws, output, rows.n_rows(), class_names))
            .collect();
        // knowledge uncertainty is the variance of means or logits; the log scale has no part in it
        let n_relevant = if class_names.is_some() { n_outputs } else { 1 };
        let smallest = |field: fn(&OutputSpread) -> f64| {
            outputs[..n_relevant]
                .iter()
                .map(field)
                .fold(f64::INFINITY, f64::min)
        };
        let effective = smallest(|output| output.effective);
        let warning = self.warning(
            effective,
            smallest(|output| output.variance),
            smallest(|output| output.spread),
        );
        let members = self.members;
        MemberReport {
            n_members: members.total,
            n_chains: members.chains,
            n_rows: rows.n_rows(),
            effective,
            outputs,
            warning,
        }
    }

    fn snapshots(&self, chain: usize) -> Vec<usize> {
        let n_trees = self.chains[chain].trees.len();
        self.members.snapshots(n_trees, chain)
    }

    fn draws(&self, rows: &Binned, pool: &Pool) -> Vec<MemberOutputs> {
        pool.map(self.chains.len(), |at| {
            let snapshots = self.snapshots(at);
            let mut draws =
                vec![vec![vec![0.0; snapshots.len()]; rows.n_rows()]; self.likelihood.n_outputs()];
            self.chains[at].forward(rows, &snapshots, |member, output, first, values| {
                for (row, &value) in draws[output][first..].iter_mut().zip(values) {
                    row[member] = value;
                }
            });
            let log_totals = match self.likelihood {
                BoostingLikelihood::Multiclass { .. } => {
                    log_totals(&draws, rows.n_rows(), snapshots.len())
                }
                _ => Vec::new(),
            };
            MemberOutputs {
                outputs: draws,
                log_totals,
            }
        })
    }

    fn spread(
        &self,
        draws: &[MemberOutputs],
        output: usize,
        n_rows: usize,
        class_names: Option<&[String]>,
    ) -> OutputSpread {
        // some chains may have one member more than others: the last members of each are compared
        let members = self.members;
        let n_draws = members.total / members.chains;
        let mut chains = Draws::new(draws.len(), n_draws);
        for row in 0..n_rows {
            let last = draws.iter().flat_map(|chain| {
                let values = &chain.outputs[output][row];
                &values[values.len() - n_draws..]
            });
            chains.add(&last.copied().collect::<Vec<_>>());
        }
        let effective = chains.effective() * members.total as f64 / (draws.len() * n_draws) as f64;
        let is_mean = class_names.is_none() && output == 0;
        let scale = if is_mean { self.target_scale } else { 1.0 };
        // a variance beyond the largest number is reported as that number
        let in_units = |variance: f64| match scale.powi(2) {
            square if square.is_finite() => square * variance,
            _ => (variance * scale * scale).min(f64::MAX),
        };
        OutputSpread {
            name: output_name(self.likelihood.output_names(), class_names, output),
            effective: effective.min(self.max_effective()),
            r_hat: chains.r_hat(),
            variance: in_units(chains.variance()),
            between_chains: chains.between().map(in_units),
            within_chains: chains.within().map(in_units),
            spread: chains.variance() / self.constant_variance(draws, output, n_rows),
        }
    }

    /// Largest possible effective number of members, from the autocorrelation of a Langevin chain.
    fn max_effective(&self) -> f64 {
        let is_langevin = matches!(
            self.config.sampling,
            Sampling::Posterior | Sampling::Malinin
        );
        let of_chain = |at: usize| {
            let snapshots = self.snapshots(at);
            let distances = snapshots.windows(2).map(|pair| pair[1] - pair[0]);
            match distances.min() {
                Some(n_trees) if is_langevin => {
                    let step = self.learning_rate * self.likelihood.fraction_updated();
                    let correlation = (1.0 - step) * self.chains[at].shrinkage;
                    effective_of(snapshots.len(), correlation.powi(n_trees as i32))
                }
                _ => snapshots.len() as f64,
            }
        };
        (0..self.chains.len()).map(of_chain).sum()
    }

    /// Posterior variance of a constant that is added to an output: one over the expected hessian
    /// of all rows, averaged over the members.
    fn constant_variance(&self, draws: &[MemberOutputs], output: usize, n_rows: usize) -> f64 {
        let (mut sum, mut n) = (0.0, 0.0);
        for MemberOutputs {
            outputs,
            log_totals,
        } in draws
        {
            for row in 0..n_rows {
                for member in 0..outputs[output][row].len() {
                    let log_total = log_totals.get(row).map_or(0.0, |totals| totals[member]);
                    sum += self.information(output, log_total, |at| outputs[at][row][member]);
                    n += 1.0;
                }
            }
        }
        n / (sum * self.total_weight).max(f64::MIN_POSITIVE)
    }

    /// Fisher information (expected hessian) of a row with raw outputs `raw` about one of them;
    /// `log_total` is the log-sum-exp of the logits of several classes.
    fn information(&self, output: usize, log_total: f64, raw: impl Fn(usize) -> f64) -> f64 {
        match self.likelihood {
            BoostingLikelihood::Normal { .. } if output == 1 => 2.0,
            BoostingLikelihood::Normal { .. } => self.likelihood.sd(raw(1)).powi(-2),
            BoostingLikelihood::Squared { sd } => sd.powi(-2),
            BoostingLikelihood::Binary => {
                let p = 1.0 / (1.0 + (-raw(0)).exp());
                p * (1.0 - p)
            }
            BoostingLikelihood::Multiclass { .. } => {
                let p = (raw(output) - log_total).exp();
                p * (1.0 - p)
            }
        }
    }

    /// A warning if the members do not show knowledge uncertainty: given their effective number,
    /// their variance, and the ratio of their variance to the posterior variance of a constant.
    fn warning(&self, effective: f64, variance: f64, spread: f64) -> Option<String> {
        let Members { total, chains, .. } = self.members;
        let sampling = self.config.sampling;
        // members of a smaller temperature differ less, as they should
        let temperature = if sampling.has_leaf_noise() {
            self.config.temperature.unwrap_or(1.0).min(1.0)
        } else {
            1.0
        };
        let has_repeated = |at| self.snapshots(at).windows(2).any(|pair| pair[0] == pair[1]);
        let n_trees = self.chains.first().map_or(0, |chain| chain.trees.len());
        let mut remedy = "use more trees, more chains or `virtual_ensemble` = false";
        let problem = if total == 1 {
            return None;
        } else if (0..chains).any(has_repeated) {
            format!(
                "chains of {n_trees} trees are too short for {total} virtual members, so some members are identical"
            )
        } else if effective < MIN_EFFECTIVE.min(0.5 * total as f64) {
            format!(
                "the {total} members are correlated and count as {effective:.1} independent ones, too few to \
                 estimate knowledge uncertainty"
            )
        } else if sampling == Sampling::Off || temperature <= 0.0 {
            if self.config.has_subsampling() && variance > 0.0 {
                return None;
            }
            remedy = "set `subsample` or `colsample_bytree` below 1";
            "the members differ by rounding errors and at most by a few rows that they leave out, so their \
             knowledge uncertainty is too small"
                .to_owned()
        } else if spread < temperature * variance_ratio_quantile(effective) {
            if sampling != Sampling::Posterior {
                remedy = "use `langevin_noise` = posterior";
            }
            format!(
                "the members are too similar: their variance is {spread:.1e} of the posterior variance of a constant \
                 model, so their knowledge uncertainty is too small"
            )
        } else {
            return None;
        };
        Some(format!("{problem}; {remedy}"))
    }
}

/// 1% quantile of the ratio of a variance that is estimated from `n_draws` draws to the true
/// variance: the quantile of a chi-square distribution over its degrees of freedom (Wilson and
/// Hilferty).
fn variance_ratio_quantile(n_draws: f64) -> f64 {
    let unit = 2.0 / (9.0 * (n_draws - 1.0).max(1.0));
    (1.0 - unit - ALARM_QUANTILE * unit.sqrt()).max(0.0).powi(3)
}

/// Name of an output for users; a parameter of a class has the name of the class.
fn output_name(names: OutputNames, class_names: Option<&[String]>, output: usize) -> String {
    let name = names.name(output);
    match class_names {
        None => name.to_owned(),
        Some([_, second]) => format!("{name} of `{second}`"),
        Some(classes) => format!("{name} of `{}`", classes[output]),
    }
}

/// Log-sum-exp over all outputs, by row and member.
fn log_totals(outputs: &[Vec<Vec<f64>>], n_rows: usize, n_members: usize) -> Vec<Vec<f64>> {
    let log_total = |row: usize, member: usize| {
        let raw = outputs.iter().map(|output| output[row][member]);
        log_sum_exp(raw)
    };
    (0..n_rows)
        .map(|row| {
            (0..n_members)
                .map(|member| log_total(row, member))
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variance_ratios_have_the_quantiles_of_a_chi_square() {
        // 1% quantiles over degrees of freedom: 2.088/9, 0.2971/4, 70.06/100
        for (n_draws, exact) in [(10.0, 0.232), (5.0, 0.0743), (101.0, 0.7006)] {
            assert!(
                (variance_ratio_quantile(n_draws) - exact).abs() < 0.015,
                "{n_draws}"
            );
        }
        assert!(variance_ratio_quantile(2.0) < 1e-9);
    }
}
