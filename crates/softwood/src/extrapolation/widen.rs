//! The added variance of the rows of a block.

use crate::data::table::Rows;
use crate::extrapolation::Extrapolation;
use crate::gaussian_process::points::Points;
use crate::gaussian_process::posterior::Latent;
use crate::numerics::dot::dot;
use crate::numerics::logspace::log_sum_exp;
use crate::predictive::block::{AddedVariance, Block, Head};
use crate::predictive::moments::{RowMoments, row_moments};

/// Factor of the variance of the process above the usual one.
const VARIANCE_FACTOR: f64 = 1.5;
/// Distance of the two means that is no contradiction, in standard deviations of the model's own
/// distribution.
const MAX_DEVIATIONS: f64 = 3.0;
/// Shift of a logit that belongs to one standard deviation of the class index.
const LOGIT_SCALE: f64 = 3.0;
/// Class probabilities count as at least this much before their logits are shifted, far from the
/// training rows: linear leaves can be certain of anything there.
const MIN_PROBABILITY: f64 = 0.02;
/// Factor of the knowledge variance of the members that is added to their components, if knowledge is all
/// of the variance, and share of knowledge from which on there is some.
const SMOOTHING: f64 = 0.06;
const MIN_KNOWLEDGE_SHARE: f64 = 0.9;
/// Largest variance that the process may expect, in standard units of the target.
const MAX_ADDED: f64 = 1e30;
/// Below this share of a member's function that is independent of the deviations of the model's own
/// members, the deviations are scaled instead.
const MIN_INDEPENDENT: f64 = 1e-6;

/// How the members of a row change.
#[derive(Debug, Clone, Copy)]
struct Widening {
    /// Share of the variance of the members' means that moves into their components: 0 among the training
    /// rows, near 1 far from them.
    moved_share: f64,
    /// Variance that is added to the components, including the moved one.
    added: f64,
}

impl Widening {
    /// For a row with moments `own` of the model and the weight `w` of a new row, for which the process
    /// expects the knowledge variance `expected`. Members whose functions must not change keep their
    /// means.
    fn new(own: &RowMoments, weight: f64, expected: f64, moves_means: bool) -> Self {
        let own_part = weight * own.knowledge;
        let (moved_share, added) = if moves_means {
            (weight, expected.max(own_part))
        } else {
            (0.0, (expected - own_part).max(0.0))
        };
        let remaining = RowMoments {
            mean: own.mean,
            data: own.data + added,
            knowledge: (1.0 - moved_share) * own.knowledge,
        };
        Self {
            moved_share,
            added: added + between_members(&remaining),
        }
    }
}

impl Extrapolation {
    /// Adds the knowledge uncertainty of the process to a block of members, and that between narrow
    /// members.
    pub(crate) fn widen(&self, rows: &Rows<'_>, block: &mut Block) {
        let points = self.scaled_points(rows);
        let latent = self.process.latent(&points);
        match block.head {
            Head::Normal { .. } => self.widen_numbers(block, &points, &latent),
            Head::Categorical { .. } => self.widen_classes(block, &points, &latent),
        }
    }

    /// Widens the components of the rows of a regression model.
    fn widen_numbers(&self, block: &mut Block, points: &Points, latent: &Latent) {
        let own: Vec<RowMoments> = row_moments(block).collect();
        let widenings: Vec<Widening> = own
            .iter()
            .enumerate()
            .map(|(row, own)| self.widening(block, own, latent.mean[row], latent.variance[row]))
            .collect();
        if widenings.iter().all(|widening| widening.added <= 0.0) {
            return;
        }
        let mut added = AddedVariance {
            mean: own.iter().map(|own| own.mean).collect(),
            variance: vec![0.0; block.stride],
            data: own.iter().map(|own| own.data).collect(),
            member_shift: vec![0.0; block.n_members * block.stride],
        };
        for (row, (own, widening)) in own.iter().zip(widenings).enumerate() {
            if widening.added > 0.0 {
                let point: Vec<f64> = points.row(row).collect();
                let shifts = self.widen_row(block, row, own, widening, &point);
                added.variance[row] = widening.added;
                for (member, shift) in shifts.into_iter().enumerate() {
                    added.member_shift[member * block.stride + row] = shift;
                }
            }
        }
        block.added = Some(added);
    }

    /// The change of a row with moments `own` of the model, and `mean` and `variance` of the process.
    fn widening(&self, block: &Block, own: &RowMoments, mean: f64, variance: f64) -> Widening {
        // standard units of the process in those of the block
        let ratio = self.units.scale / block.scale;
        let shift = (self.units.shift - block.shift) / block.scale;
        let distance = (own.mean - shift) / ratio - mean;
        let (excess, square) = (variance - self.baseline, distance * distance);
        // a row is new if the process is unsure about it, or if the means differ by more than what the
        // process missed at held-out rows and what the model itself allows for
        let of_model =
            MAX_DEVIATIONS * MAX_DEVIATIONS * (own.data + own.knowledge) / (ratio * ratio);
        let weight = share_above(variance, self.baseline)
            .max(share_above(square, self.residual_baseline + of_model));
        if weight <= 0.0 {
            return Widening::new(own, 0.0, 0.0, self.shifts_members);
        }
        let expected = ratio * ratio * (VARIANCE_FACTOR * excess.max(0.0) + weight * square);
        // the disagreement of means may overflow; no variance at all, if the units do not fit
        let expected = if expected.is_nan() {
            0.0
        } else {
            expected.min(MAX_ADDED)
        };
        Widening::new(own, weight, expected, self.shifts_members)
    }

    /// Moves the means of the members of one row towards their mean and adds variance to their components.
    /// Returns by how much each member, as a function, differs from its new mean. `point` has the scaled
    /// inputs of the row.
    fn widen_row(
        &self,
        block: &mut Block,
        row: usize,
        own: &RowMoments,
        widening: Widening,
        point: &[f64],
    ) -> Vec<f64> {
        let means = member_means(block, row);
        let shares = self.shares(block);
        let n_components = block.n_components();
        let shrinkage = 1.0 - (1.0 - widening.moved_share).sqrt();
        let toward_mean: Vec<f64> = means
            .iter()
            .map(|mean| shrinkage * (mean - own.mean))
            .collect();
        for (member, tail) in shares.tails.iter().enumerate() {
            for component in 0..n_components {
                let at = block.at(member, component) + row;
                let normal = block.normal_mut();
                normal.mean[at] -= toward_mean[member];
                let sd = &mut normal.sd[at];
                *sd = (*sd * *sd + widening.added * tail).sqrt();
            }
        }
        if !self.shifts_members {
            return toward_mean;
        }
        let further = (widening.added - widening.moved_share * own.knowledge).max(0.0);
        let mut shifts = member_shifts(&means, further, shares.functions.at(point));
        for (shift, toward_mean) in shifts.iter_mut().zip(toward_mean) {
            *shift += toward_mean;
        }
        shifts
    }

    /// Shifts the logits of each member of the rows of a classification model.
    fn widen_classes(&self, block: &mut Block, points: &Points, latent: &Latent) {
        let n_classes = block.n_components();
        for (row, variance) in latent.variance.iter().enumerate() {
            let excess = variance - self.baseline;
            if excess <= 0.0 || !self.shifts_members {
                continue;
            }
            let scale = LOGIT_SCALE * (VARIANCE_FACTOR * excess).sqrt();
            let floor = (MIN_PROBABILITY * excess / variance).max(f64::MIN_POSITIVE);
            let point: Vec<f64> = points.row(row).collect();
            let functions = self.shares(block).functions.at(&point);
            for member in 0..block.n_members {
                let at = |class: usize| block.at(member, class) + row;
                let logits = (0..n_classes).map(|class| {
                    let logit = block.weight[at(class)].max(floor).ln();
                    logit + scale * functions[class * block.n_members + member]
                });
                let logits: Vec<f64> = logits.collect();
                let total = log_sum_exp(logits.iter().copied());
                for (class, logit) in logits.iter().enumerate() {
                    block.weight[(member * n_classes + class) * block.stride + row] =
                        (logit - total).exp();
                }
            }
        }
    }
}

/// The share of a value that is above a baseline.
fn share_above(value: f64, baseline: f64) -> f64 {
    if value > baseline {
        1.0 - baseline / value
    } else {
        0.0
    }
}

/// The variance that is added to a row whose members disagree by more than three times their noise. The
/// members are some of many functions: without it the density between them would be almost zero.
fn between_members(own: &RowMoments) -> f64 {
    let share = own.knowledge / (own.knowledge + own.data);
    let excess = (share - MIN_KNOWLEDGE_SHARE) / (1.0 - MIN_KNOWLEDGE_SHARE);
    // a row without any variance has no share
    if excess > 0.0 {
        SMOOTHING * excess * own.knowledge
    } else {
        0.0
    }
}

/// The means of all members on a row.
fn member_means(block: &Block, row: usize) -> Vec<f64> {
    let normal = block.normal();
    let mean = |member: usize| {
        let components = 0..block.n_components();
        components
            .map(|component| {
                let at = block.at(member, component) + row;
                block.weight[at] * normal.mean[at]
            })
            .sum()
    };
    (0..block.n_members).map(mean).collect()
}

/// Shifts of the members' means that add `added` to their variance over the members: multiples of the
/// functions `z`, without the part along the deviations of the means themselves.
fn member_shifts(own: &[f64], added: f64, mut z: Vec<f64>) -> Vec<f64> {
    let n = own.len() as f64;
    if own.len() < 2 {
        return vec![0.0; own.len()];
    }
    let mean = own.iter().sum::<f64>() / n;
    let deviations: Vec<f64> = own.iter().map(|own| own - mean).collect();
    let variance = dot(&deviations, &deviations) / n;
    if variance > 0.0 {
        let share = dot(&z, &deviations) / (n * variance);
        let pairs = z.iter_mut().zip(&deviations);
        pairs.for_each(|(z, deviation)| *z -= share * deviation);
    }
    let independent = dot(&z, &z) / n;
    if independent > MIN_INDEPENDENT {
        let scale = (added / independent).sqrt();
        return z.into_iter().map(|z| scale * z).collect();
    }
    let scale = if variance > 0.0 {
        (1.0 + added / variance).sqrt() - 1.0
    } else {
        0.0
    };
    let shifts = deviations.into_iter().map(|deviation| scale * deviation);
    shifts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::column::Column;
    use crate::data::dataset::{Dataset, Roles};
    use crate::data::table::Table;
    use crate::rng::Key;
    use softwood_testkit::close;

    fn variance(values: &[f64]) -> f64 {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        values
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / n
    }

    #[test]
    fn narrow_members_are_smoothed() {
        let added = |knowledge: f64, data: f64| {
            between_members(&RowMoments {
                mean: 0.0,
                data,
                knowledge,
            })
        };
        let found = [
            added(4.0, 0.0),
            added(1.9, 0.1),
            added(1.0, 1.0),
            added(0.0, 1.0),
        ];
        close(&found, &[0.24, 0.057, 0.0, 0.0], 1e-12);
        assert!(added(0.0, 0.0) <= 0.0);
    }

    #[test]
    fn the_larger_of_own_and_expected_variance_counts_away_from_the_rows() {
        let own = RowMoments {
            mean: 3.0,
            data: 1.0,
            knowledge: 2.0,
        };
        // knowledge variance of the moved means and of the components
        let parts = |weight: f64, expected: f64, moves_means: bool| {
            let found = Widening::new(&own, weight, expected, moves_means);
            [(1.0 - found.moved_share) * own.knowledge, found.added]
        };
        close(&parts(0.0, 0.0, true), &[2.0, 0.0], 1e-12);
        close(&parts(0.5, 0.3, true), &[1.0, 1.0], 1e-12);
        close(&parts(0.5, 4.0, true), &[1.0, 4.0], 1e-12);
        close(&parts(1.0, 0.3, true), &[0.0, 2.0], 1e-12);
        close(&parts(0.5, 4.0, false), &[2.0, 3.0], 1e-12);
        close(&parts(0.5, 0.3, false), &[2.0, 0.0], 1e-12);
    }

    #[test]
    fn a_mean_that_contradicts_the_process_is_new() {
        let x: Vec<f64> = (0..200).map(|row| f64::from(row) / 40.0 - 2.5).collect();
        let y = x.iter().map(|x| (2.0 * x).sin()).collect();
        let columns = vec![Column::numeric("x", x), Column::numeric("y", y)];
        let roles = Roles {
            target: "y".to_owned(),
            ..Roles::default()
        };
        let data = Dataset::from_table(Table::new(columns).unwrap(), &roles).unwrap();
        let process = Extrapolation::fit(&data, Key::from_seed(1)).unwrap();
        let process = process.expect("the target varies");
        let rows = data.features().rows(100..101);
        let mean = process.process.latent(&process.scaled_points(&rows)).mean[0];
        // added variance of a row for members `distance` from the mean of the process
        let added = |distance: f64, sd: f64| {
            let mut block = Block::new(Head::Normal { components: 1 }, 4, 1);
            (block.shift, block.scale) = (process.units.shift, process.units.scale);
            block.weight.fill(1.0);
            let normal = block.normal_mut();
            normal.mean.fill(mean + distance);
            normal.sd.fill(sd);
            process.widen(&rows, &mut block);
            block.added.map_or(0.0, |added| added.variance[0])
        };
        let largest = process.residual_baseline;
        assert!(largest < 0.1, "{largest}");
        close(&[added(0.0, 0.01)], &[0.0], 1e-12);
        close(&[added(2.0, 0.01)], &[4.0 - largest - 9e-4], 1e-9);
        // such a distance is no surprise to a model that allows for it
        close(&[added(2.0, 1.0)], &[0.0], 1e-12);
        close(&[added(1e200, 1.0)], &[MAX_ADDED], 1.0);
    }

    #[test]
    fn shifts_add_their_variance_to_that_of_the_means() {
        let independent = vec![1.0, -1.0, 1.0, -1.0];
        let parallel = vec![3.0, 1.0, -1.0, -3.0];
        let own = [2.5, 1.5, 0.5, -0.5];
        for z in [independent, parallel] {
            let shifts = member_shifts(&own, 0.7, z);
            let shifted: Vec<f64> = own.iter().zip(&shifts).map(|(a, b)| a + b).collect();
            close(&[variance(&shifted)], &[variance(&own) + 0.7], 1e-12);
        }
        // members that agree: all of the variance is that of the functions
        let shifts = member_shifts(&[1.0; 4], 0.7, vec![1.0, -1.0, 1.0, -1.0]);
        close(&[variance(&shifts)], &[0.7], 1e-12);
        assert_eq!(member_shifts(&[1.0], 0.7, vec![0.0]), [0.0]);
    }
}
