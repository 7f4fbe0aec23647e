//! Whether members differ enough for their spread to be trusted.
//!
//! Members are compared on a few training rows, output by output: the variance between them, that within and between
//! chains, and how many independent ones they are worth. Two bounds are known beforehand. Virtual members `p` trees apart
//! have a correlation of at least `((1 - e) q)^p` at learning rate `e` and shrinkage `q`, a leaf's value being the chain
//! `x -> (1 - e) q x + noise` at best (`e` times 31/C where of C classes a round moves 31): an estimate from a few members of
//! one chain cannot see that, so the lesser of both counts. And members of a posterior differ at least as much as if a
//! constant alone were unknown: by `1 / sum s^-2` for a mean, `1/(2 N)` for a log scale, `1 / sum p (1 - p)` for a logit,
//! sums over all rows.

use crate::boosting::chain::Chain;
use crate::boosting::langevin::Sampling;
use crate::data::binning::binned::Binned;
use crate::model::{MemberReport, OutputSpread};
use crate::models::boosting::config::{BoostingConfig, Members};
use crate::models::boosting::likelihood::BoostingLikelihood;
use crate::numerics::logspace::log_sum_exp;
use crate::numerics::mcmc_diagnostics::{Draws, effective_of};
use crate::par::Pool;

/// Rows that members are compared on: as many as are routed at once.
const ROWS: usize = 64;
/// Effective members below which a variance says little: its relative error is then above one.
const MIN_EFFECTIVE: f64 = 3.0;
/// Standard deviations below the expected variance at which members are too alike: a false alarm in a hundred, were a
/// constant all that is unknown, and fewer for any other model.
const ALARM: f64 = 2.326;

/// What is compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemberDiagnostics<'a> {
    members: Members,
    chains: &'a [Chain],
    likelihood: BoostingLikelihood,
    sampling: Sampling,
    /// Whether trees see parts of the rows or columns.
    is_sampled: bool,
    learning_rate: f64,
    /// Units of the target per unit of its standardised form.
    scale: f64,
    total_weight: f64,
}

/// What a chain's members say.
#[derive(Debug)]
struct MemberOutputs {
    /// Raw outputs: by output, then row, then member.
    outputs: Vec<Vec<Vec<f64>>>,
    /// Log of the summed exponentials of the outputs, by row and member, where they are the logits of several classes.
    totals: Vec<Vec<f64>>,
}

impl<'a> MemberDiagnostics<'a> {
    /// The members of some chains; besides, the learning rate, the target's scale and the weight of all rows.
    pub(super) fn new(
        config: &BoostingConfig<'_>,
        chains: &'a [Chain],
        likelihood: BoostingLikelihood,
        (learning_rate, scale, total_weight): (f64, f64, f64),
    ) -> Self {
        Self {
            members: config.members,
            chains,
            likelihood,
            sampling: config.sampling,
            is_sampled: config.subsample < 1.0 || config.colsample < 1.0,
            learning_rate,
            scale,
            total_weight,
        }
    }

    /// As many of some rows as members are compared on.
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
        // knowledge is told by means or by logits; a log scale moves neither
        let counted = if class_names.is_some() { n_outputs } else { 1 };
        let least = |of: fn(&OutputSpread) -> f64| {
            outputs[..counted]
                .iter()
                .map(of)
                .fold(f64::INFINITY, f64::min)
        };
        let effective = least(|output| output.effective);
        let warning = self.warning(
            effective,
            least(|output| output.variance),
            least(|output| output.spread),
        );
        MemberReport {
            n_members: self.members.total,
            n_chains: self.members.chains,
            n_rows: rows.n_rows(),
            effective,
            outputs,
            warning,
        }
    }

    fn snapshots(&self, chain: usize) -> Vec<usize> {
        self.members
            .snapshots(self.chains[chain].trees.len(), chain)
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
            let totals = match self.likelihood {
                BoostingLikelihood::Multiclass { .. } => {
                    totals(&draws, rows.n_rows(), snapshots.len())
                }
                _ => Vec::new(),
            };
            MemberOutputs {
                outputs: draws,
                totals,
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
        // chains may have one member more than others: the last ones of each are compared
        let n_draws = self.members.total / self.members.chains;
        let mut chains = Draws::new(draws.len(), n_draws);
        for row in 0..n_rows {
            let last = draws.iter().flat_map(|chain| {
                let members = &chain.outputs[output][row];
                &members[members.len() - n_draws..]
            });
            chains.add(&last.copied().collect::<Vec<_>>());
        }
        let effective =
            chains.effective() * self.members.total as f64 / (draws.len() * n_draws) as f64;
        let is_mean = class_names.is_none() && output == 0;
        let unit = if is_mean { self.scale.powi(2) } else { 1.0 };
        OutputSpread {
            name: output_name(class_names, output),
            effective: effective.min(self.most_effective()),
            r_hat: chains.r_hat(),
            variance: unit * chains.variance(),
            between_chains: chains.between().map(|between| unit * between),
            within_chains: chains.within().map(|within| unit * within),
            spread: chains.variance() / self.least_variance(draws, output, n_rows),
        }
    }

    /// What members can be worth at most, by what a chain forgets from one to the next.
    fn most_effective(&self) -> f64 {
        let is_langevin = matches!(self.sampling, Sampling::Posterior | Sampling::Malinin);
        let of_chain = |at: usize| {
            let snapshots = self.snapshots(at);
            let steps = snapshots.windows(2).map(|pair| pair[1] - pair[0]);
            match steps.min() {
                Some(trees) if is_langevin => {
                    let moved = self.learning_rate * self.likelihood.part_moved();
                    let kept = (1.0 - moved) * self.chains[at].shrinkage;
                    effective_of(snapshots.len(), kept.powi(trees as i32))
                }
                _ => snapshots.len() as f64,
            }
        };
        (0..self.chains.len()).map(of_chain).sum()
    }

    /// Variance of the posterior of a constant, added to what the members say.
    fn least_variance(&self, draws: &[MemberOutputs], output: usize, n_rows: usize) -> f64 {
        let (mut sum, mut n) = (0.0, 0.0);
        for MemberOutputs { outputs, totals } in draws {
            for row in 0..n_rows {
                for member in 0..outputs[output][row].len() {
                    let total = totals.get(row).map_or(0.0, |totals| totals[member]);
                    sum += self.information(output, total, |at| outputs[at][row][member]);
                    n += 1.0;
                }
            }
        }
        n / (sum * self.total_weight).max(f64::MIN_POSITIVE)
    }

    /// What a row of these raw outputs tells of one of them: its expected hessian. `total` is that of the classes.
    fn information(&self, output: usize, total: f64, raw: impl Fn(usize) -> f64) -> f64 {
        match self.likelihood {
            BoostingLikelihood::Normal { .. } if output == 1 => 2.0,
            BoostingLikelihood::Normal { .. } => self.likelihood.sd(raw(1)).powi(-2),
            BoostingLikelihood::Squared { sd } => sd.powi(-2),
            BoostingLikelihood::Binary => {
                let p = 1.0 / (1.0 + (-raw(0)).exp());
                p * (1.0 - p)
            }
            BoostingLikelihood::Multiclass { .. } => {
                let p = (raw(output) - total).exp();
                p * (1.0 - p)
            }
        }
    }

    /// What to think of so many effective members with so much variance between them.
    fn warning(&self, effective: f64, variance: f64, spread: f64) -> Option<String> {
        let Members { total, chains, .. } = self.members;
        let is_repeated = |at| self.snapshots(at).windows(2).any(|pair| pair[0] == pair[1]);
        let n_trees = self.chains.first().map_or(0, |chain| chain.trees.len());
        let mut remedy = "take more trees, more chains or virtual = false";
        let problem = if total == 1 {
            return None;
        } else if (0..chains).any(is_repeated) {
            format!(
                "chains of {n_trees} trees are too short for {total} virtual members, so that some are the same"
            )
        } else if effective < MIN_EFFECTIVE.min(0.5 * total as f64) {
            format!(
                "the {total} members are so alike that they count as {effective:.1} independent ones, too few to tell \
                 knowledge uncertainty"
            )
        } else if self.sampling == Sampling::Off {
            if self.is_sampled && variance > 0.0 {
                return None;
            }
            remedy = "give a `subsample` or a `colsample` below 1";
            "nothing but rounding tells the members apart, so that knowledge uncertainty is next to nothing".to_owned()
        } else if spread < least_share(effective) {
            if self.sampling != Sampling::Posterior {
                remedy = "take sampling = posterior";
            }
            format!(
                "the members are more alike than if a constant alone were unknown ({spread:.1e} of its variance), so that \
                 knowledge uncertainty is too small"
            )
        } else {
            return None;
        };
        Some(format!("{problem}; {remedy}"))
    }
}

/// Part of a variance that its estimate from so many draws hardly ever falls below (Wilson and Hilferty's quantile of a
/// chi-square).
fn least_share(n_draws: f64) -> f64 {
    let unit = 2.0 / (9.0 * (n_draws - 1.0).max(1.0));
    (1.0 - unit - ALARM * unit.sqrt()).max(0.0).powi(3)
}

fn output_name(class_names: Option<&[String]>, output: usize) -> String {
    match (class_names, output) {
        (None, 0) => "mean".to_owned(),
        (None, _) => "log scale".to_owned(),
        (Some([_, second]), _) => format!("logit of `{second}`"),
        (Some(names), _) => format!("logit of `{}`", names[output]),
    }
}

/// Log of the summed exponentials of all outputs, by row and member.
fn totals(outputs: &[Vec<Vec<f64>>], n_rows: usize, n_members: usize) -> Vec<Vec<f64>> {
    let total = |row: usize, member: usize| {
        let raw = outputs.iter().map(|output| output[row][member]);
        log_sum_exp(raw)
    };
    (0..n_rows)
        .map(|row| (0..n_members).map(|member| total(row, member)).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_quantiles_of_a_chi_square() {
        // 1% quantiles over degrees of freedom: 2.088/9, 0.2971/4, 70.06/100
        for (n_draws, exact) in [(10.0, 0.232), (5.0, 0.0743), (101.0, 0.7006)] {
            assert!((least_share(n_draws) - exact).abs() < 0.015, "{n_draws}");
        }
        assert!(least_share(2.0) < 1e-9);
    }
}
