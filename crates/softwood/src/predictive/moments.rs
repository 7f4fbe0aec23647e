//! Moments of Normal heads and the decomposition of the variance into data (aleatoric) and
//! knowledge (epistemic) uncertainty.
//!
//! With the mean `m_s = Σ w μ` and the variance `v_s = Σ w (σ² + μ²) - m_s²` of member `s`: mean =
//! mean of `m_s`, knowledge = population variance of `m_s`, data = mean of `v_s`, total = knowledge
//! + data (law of total variance).
//!
//! Variance that was added to the components of the members (`Block::added`) is knowledge.

use multiversion::multiversion;

use crate::predictive::block::Block;

/// Total, data and knowledge uncertainty of each row: variances in squared units of the target
/// (regression), or entropies in nats (classification).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Uncertainty {
    /// Sum of data and knowledge uncertainty.
    pub total: Vec<f64>,
    /// Data (aleatoric) uncertainty: the noise of the target, which no amount of training data
    /// removes.
    pub data: Vec<f64>,
    /// Knowledge (epistemic) uncertainty: the disagreement of the members, which shrinks as the
    /// model sees more data.
    pub knowledge: Vec<f64>,
}

/// Mean, standard deviation and variance decomposition of each row, in the target's units.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Moments {
    /// Predictive mean.
    pub mean: Vec<f64>,
    /// Predictive standard deviation: the square root of the total variance.
    pub std: Vec<f64>,
    /// Square root of the data variance; finite wherever `std` is.
    pub data_std: Vec<f64>,
    /// Square root of the knowledge variance; finite wherever `std` is.
    pub knowledge_std: Vec<f64>,
    /// Total variance and its two parts. A variance of targets beyond 1e154 may exceed the largest
    /// number and is that number then; the standard deviations above are exact.
    pub variance: Uncertainty,
}

impl Uncertainty {
    /// Adds the two parts to the total.
    pub(crate) fn sum_of(data: Vec<f64>, knowledge: Vec<f64>) -> Self {
        let total = (data.iter().zip(&knowledge))
            .map(|(a, b)| (a + b).min(f64::MAX))
            .collect();
        Self {
            total,
            data,
            knowledge,
        }
    }
}

impl Moments {
    /// Moments from the rows of [`moments`].
    pub(crate) fn from_rows(values: &[f64]) -> Self {
        let column = |index: usize| values.chunks_exact(MOMENTS).map(move |row| row[index]);
        let variance = Uncertainty::sum_of(column(1).collect(), column(2).collect());
        Self {
            mean: column(0).collect(),
            std: column(3).collect(),
            data_std: column(4).collect(),
            knowledge_std: column(5).collect(),
            variance,
        }
    }
}

/// Number of values per row of [`moments`]: mean, data variance, knowledge variance, and the
/// standard deviations of total, data and knowledge.
pub(crate) const MOMENTS: usize = 6;

/// Mean, variances and standard deviations of each row of a Normal block, in the target's units
/// (row-major, rows x [`MOMENTS`]).
pub(crate) fn moments(block: &Block, out: &mut [f64]) {
    let scale = block.scale;
    let own = row_moments(block);
    for (row, (out, own)) in out.chunks_exact_mut(MOMENTS).zip(own).enumerate() {
        let (mean, data, knowledge) = match &block.added {
            Some(added) => {
                let knowledge = own.knowledge + added.variance[row];
                (added.mean[row], added.data[row], knowledge)
            }
            None => (own.mean, own.data, own.knowledge),
        };
        out[0] = block.shift + scale * mean;
        out[1] = (data * scale * scale).min(f64::MAX);
        out[2] = (knowledge * scale * scale).min(f64::MAX);
        // in the target's units a variance may overflow where its square root does not
        out[3] = (data + knowledge).sqrt() * scale;
        out[4] = data.sqrt() * scale;
        out[5] = knowledge.sqrt() * scale;
    }
}

/// Mean, data variance and variance of the members' means of one row, in standardised units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowMoments {
    pub(crate) mean: f64,
    pub(crate) data: f64,
    pub(crate) knowledge: f64,
}

/// Moments of each row of a Normal block by its components.
pub(crate) fn row_moments(block: &Block) -> impl Iterator<Item = RowMoments> {
    let mut sums = MomentSums::new(block);
    for member in 0..block.n_members {
        sums.add_member(block, member);
    }
    let n_members = block.n_members as f64;
    (0..block.n_rows).map(move |row| {
        let mean = sums.mean[row] / n_members;
        let data = sums.variance[row] / n_members;
        RowMoments {
            mean: sums.centre[row] + mean,
            // keeps NaN, which tells of members that are not finite
            data: if data < 0.0 { 0.0 } else { data },
            knowledge: (sums.mean_squared[row] / n_members - mean * mean).max(0.0),
        }
    })
}

/// Conditional means of the given members on each row, in the target's units (row-major, rows x
/// members).
pub(crate) fn member_means(block: &Block, members: &[usize], out: &mut [f64]) {
    let mut sums = MomentSums::new(block);
    for (index, &member) in members.iter().enumerate() {
        sums.add_member(block, member);
        let shift = |row: usize| match &block.added {
            Some(added) => added.member_shift[member * block.stride + row],
            None => 0.0,
        };
        for (row, out) in out.chunks_exact_mut(members.len()).enumerate() {
            let mean = sums.centre[row] + sums.member_mean[row] + shift(row);
            out[index] = block.shift + block.scale * mean;
        }
    }
}

/// Sums over members. Means are relative to a centre near them, so that squares lose no digits
/// where the means are far from zero.
struct MomentSums {
    centre: Vec<f64>,
    member_mean: Vec<f64>,
    member_square: Vec<f64>,
    mean: Vec<f64>,
    mean_squared: Vec<f64>,
    variance: Vec<f64>,
}

impl MomentSums {
    fn new(block: &Block) -> Self {
        let zeros = vec![0.0; block.stride];
        let mut centre = zeros.clone();
        for component in 0..block.n_components() {
            let at = block.at(0, component);
            let range = at..at + block.stride;
            let means = &block.normal().mean[range.clone()];
            let rows = block.weight[range].iter().zip(means);
            for (centre, (weight, mean)) in centre.iter_mut().zip(rows) {
                *centre += weight * mean;
            }
        }
        Self {
            centre,
            member_mean: zeros.clone(),
            member_square: zeros.clone(),
            mean: zeros.clone(),
            mean_squared: zeros.clone(),
            variance: zeros,
        }
    }

    fn add_member(&mut self, block: &Block, member: usize) {
        self.member_mean.fill(0.0);
        self.member_square.fill(0.0);
        let normal = block.normal();
        let member = block.at(member, 0)..block.at(member + 1, 0);
        add_components(
            &block.weight[member.clone()],
            &normal.mean[member.clone()],
            &normal.sd[member],
            &self.centre,
            &mut self.member_mean,
            &mut self.member_square,
        );
        add_moments(
            &self.member_mean,
            &self.member_square,
            &mut self.mean,
            &mut self.mean_squared,
            &mut self.variance,
        );
    }
}

/// Adds the mean, squared mean and variance of one member to the sums over members.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn add_moments(
    means: &[f64],
    squares: &[f64],
    mean: &mut [f64],
    mean_squared: &mut [f64],
    variance: &mut [f64],
) {
    let rows = means.len();
    let (mean, mean_squared) = (&mut mean[..rows], &mut mean_squared[..rows]);
    let (variance, squares) = (&mut variance[..rows], &squares[..rows]);
    for row in 0..rows {
        let square = means[row] * means[row];
        mean[row] += means[row];
        mean_squared[row] += square;
        variance[row] += squares[row] - square;
    }
}

/// Adds `w d` and `w (σ² + d²)` of the components of one member to the sums of its rows, with `d`
/// the mean relative to the centre.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn add_components(
    weight: &[f64],
    mean: &[f64],
    sd: &[f64],
    centre: &[f64],
    first: &mut [f64],
    second: &mut [f64],
) {
    let rows = centre.len();
    let (first, second) = (&mut first[..rows], &mut second[..rows]);
    let components = weight
        .chunks_exact(rows)
        .zip(mean.chunks_exact(rows))
        .zip(sd.chunks_exact(rows));
    for ((weight, mean), sd) in components {
        for row in 0..rows {
            let from_centre = mean[row] - centre[row];
            first[row] = weight[row].mul_add(from_centre, first[row]);
            let square = from_centre.mul_add(from_centre, sd[row] * sd[row]);
            second[row] = weight[row].mul_add(square, second[row]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predictive::block::Head;
    use softwood_testkit::close;

    /// A block of one row from (weight, mean, sd) of each member's components.
    fn block(members: &[&[[f64; 3]]]) -> Block {
        let components = members[0].len();
        let mut block = Block::new(Head::Normal { components }, members.len(), 1);
        block.normal_mut().sd.fill(1.0);
        for (member, parts) in members.iter().enumerate() {
            for (component, &[weight, mean, sd]) in parts.iter().enumerate() {
                let at = block.at(member, component);
                block.weight[at] = weight;
                let normal = block.normal_mut();
                (normal.mean[at], normal.sd[at]) = (mean, sd);
            }
        }
        block
    }

    #[test]
    fn decomposition_of_three_members() {
        // computed by hand from three members; docs/maths/vst.md, golden values
        let members: Vec<[[f64; 3]; 1]> = [(1.0, 0.5_f64), (1.2, 0.4), (0.9, 0.6)]
            .iter()
            .map(|&(mean, variance)| [[1.0, mean, variance.sqrt()]])
            .collect();
        let members: Vec<&[[f64; 3]]> = members.iter().map(|member| &member[..]).collect();
        let mut out = [0.0; MOMENTS];
        moments(&block(&members), &mut out);
        let knowledge = 0.015_555_555_555_555_6_f64;
        let sds = [0.5 + knowledge, 0.5, knowledge].map(f64::sqrt);
        close(&out[..3], &[3.1 / 3.0, 0.5, knowledge], 1e-14);
        close(&out[3..], &sds, 1e-14);
    }

    #[test]
    fn a_soft_tree_of_two_leaves_keeps_its_moments() {
        // the depth-1 tree of docs/maths/vst.md: gate 0.5498339973, leaves N(-1, 0.5²) and N(2, 1)
        let right = 0.549_833_997_312_478;
        let mut out = [0.0; MOMENTS];
        moments(
            &block(&[&[[1.0 - right, -1.0, 0.5], [right, 2.0, 1.0]]]),
            &mut out,
        );
        let variance = 2.890_024_652_4_f64;
        let sd = variance.sqrt();
        close(&out, &[0.649_501_991_9, variance, 0.0, sd, sd, 0.0], 1e-9);
    }

    #[test]
    fn large_means_lose_no_digits() {
        let mut far = block(&[&[[1.0, 1e6, 1e-3]], &[[1.0, 1e6 + 1e-3, 1e-3]]]);
        far.scale = 2.0;
        let mut out = [0.0; MOMENTS];
        moments(&far, &mut out);
        close(&[out[1] * 1e6, out[2] * 1e6], &[4.0, 1.0], 1e-6);
    }

    #[test]
    fn standard_deviations_stay_finite_where_variances_cannot() {
        for scale in [1e300, 1e-300] {
            let mut extreme = block(&[&[[1.0, 0.0, 2.0]], &[[1.0, 6.0, 2.0]]]);
            extreme.scale = scale;
            let mut out = [0.0; MOMENTS];
            moments(&extreme, &mut out);
            let sds = out[3..].iter().map(|sd| sd / scale).collect::<Vec<_>>();
            close(&sds, &[13.0_f64.sqrt(), 2.0, 3.0], 1e-14);
        }
    }
}
