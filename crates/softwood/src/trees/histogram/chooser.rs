//! How one of the candidate splits of a node is chosen: by the best score, by the best noisy score,
//! or at random in proportion to the marginal likelihood.
//!
//! A strategy ranks candidates one by one, and the candidate of highest rank is the split. Columns
//! can therefore be searched in any order and on any thread, and the candidates of several
//! groups of columns are merged by their ranks.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::numerics::gaussian::Gaussian;
use crate::rng::{Key, uniform};
use crate::trees::histogram::candidate::SplitCandidate;
use crate::trees::histogram::splitter::REFUSED;

/// Gains below this fraction of the score of a node are rounding errors.
const MIN_GAIN: f32 = 1e-5;

/// Label of the random stream of the no-split alternative; columns have smaller labels.
const NO_SPLIT: u64 = 1 << 32;

/// How one of the candidate splits of a node is chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SplitChooser {
    /// The split of largest score, if it gains anything.
    Best,
    /// The split of the largest noisy score.
    Noisy(SplitNoise),
    /// A random split, or none.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the grow-from-root sampler of XBART will use it")
    )]
    Sampled(SplitSampling),
}

/// Normal noise on the roots of split scores: its standard deviation and random stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SplitNoise {
    pub(crate) sd: f32,
    pub(crate) key: Key,
}

/// A random choice among all candidate splits of a node and no split (He and Hahn 2020).
///
/// Let `m(S)` be the marginal likelihood of the rows `S` as a leaf: output `k` has gradient sum
/// `G_k`, hessian sum `H_k`, noise variance `v` and a Normal prior of variance `v / l2_k` on its
/// value, so that
///
/// ```text
/// ln m(S) = sum_k G_k^2 / (2 v (H_k + l2_k)) - ln(1 + H_k / l2_k) / 2 + constant,
/// ```
///
/// where the constant is the same for every partition of the same rows. A node of depth `d` is
/// split with prior probability `p = base (1 + d)^-power`, and then by each of its `C` candidates
/// with probability `p / C`. The posterior probabilities are in proportion to
/// `m(left) m(right) / m(node)` for every candidate, and to `C (1 - p) / p` for no split.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SplitSampling {
    /// Variance of the noise, in units of the squared gradient.
    pub(crate) noise_variance: f64,
    /// Prior probability that the root is split, above 0 and at most 1.
    pub(crate) base: f64,
    /// How fast that probability falls with the depth.
    pub(crate) power: f64,
    pub(crate) key: Key,
}

impl SplitSampling {
    /// Logarithm of the prior odds of no split against one split of a node of this depth.
    pub(crate) fn log_no_split(&self, depth: usize) -> f64 {
        ((1.0 + depth as f64).powf(self.power) / self.base - 1.0).ln()
    }

    /// Whether a node remains unsplit although `best` has the highest rank of its candidates.
    /// `stream` is the random stream of the node.
    fn refuses(&self, best: &SplitCandidate, depth: usize, stream: usize) -> bool {
        let key = self.key.child(stream as u64).child(NO_SPLIT);
        let log_weight = self.log_no_split(depth) + (best.n_candidates as f64).ln();
        let rank = log_weight + gumbel(uniform(&mut key.rng()));
        rank >= f64::from(best.rank)
    }
}

impl SplitChooser {
    /// The split of a node or level of this depth, from the best candidates of all groups of
    /// columns in order; `stream` is its random stream.
    pub(crate) fn choose(
        &self,
        candidates: impl Iterator<Item = SplitCandidate>,
        depth: usize,
        stream: usize,
    ) -> Option<SplitCandidate> {
        let best = candidates.reduce(SplitCandidate::better)?;
        match self {
            Self::Sampled(sampling) if sampling.refuses(&best, depth, stream) => None,
            _ => Some(best),
        }
    }
}

/// Ranks the candidate splits of one column, in the order of the scan. Implementations are inlined
/// into the loop over candidates.
pub(crate) trait RankCandidates {
    /// The rank of a candidate with this score.
    fn rank(&mut self, score: f32) -> f32;

    /// The rank of the best candidate among those of other columns, given its score, the score of
    /// the unsplit node and the rank that was the highest; `None` if it must not be chosen.
    fn among_columns(&mut self, score: f32, unsplit: f32, rank: f32) -> Option<f32>;

    /// Number of allowed candidates that were ranked, if the strategy counts them.
    fn n_candidates(&self) -> usize {
        0
    }
}

/// The strategy [`SplitChooser::Best`] on one column.
pub(crate) struct BestScore;

impl RankCandidates for BestScore {
    #[inline(always)]
    fn rank(&mut self, score: f32) -> f32 {
        score
    }

    fn among_columns(&mut self, score: f32, unsplit: f32, _: f32) -> Option<f32> {
        let gain = score - unsplit;
        if gain <= MIN_GAIN * unsplit.abs() {
            return None;
        }
        Some(gain)
    }
}

/// The strategy [`SplitChooser::Noisy`] on one column.
pub(crate) struct NoisyScore {
    stream: Gaussian,
    sd: f32,
    buffer: [f32; 32],
    n_used: usize,
}

impl NoisyScore {
    /// The noise of one column; `stream` is the random stream of the node or level.
    pub(crate) fn new(noise: SplitNoise, stream: usize, column: usize) -> Self {
        let key = noise.key.child(stream as u64).child(column as u64);
        Self {
            stream: Gaussian::new(key),
            sd: noise.sd,
            buffer: [0.0; 32],
            n_used: 32,
        }
    }
}

impl RankCandidates for NoisyScore {
    /// The root of a score plus noise.
    #[inline]
    fn rank(&mut self, score: f32) -> f32 {
        if self.n_used == self.buffer.len() {
            self.stream.fill(&mut self.buffer);
            self.n_used = 0;
        }
        self.n_used += 1;
        score.max(0.0).sqrt() + self.sd * self.buffer[self.n_used - 1]
    }

    /// New noise: the highest of many ranks would favour columns of many bins.
    fn among_columns(&mut self, score: f32, _: f32, _: f32) -> Option<f32> {
        Some(self.rank(score))
    }
}

/// The strategy [`SplitChooser::Sampled`] on one column. A candidate of log weight `w` gets the rank
/// `w` plus standard Gumbel noise; the highest rank is then a draw in proportion to `exp(w)`.
pub(crate) struct GumbelScore {
    rng: Xoshiro256PlusPlus,
    n_candidates: usize,
}

impl GumbelScore {
    /// The noise of one column; `stream` is the random stream of the node.
    pub(crate) fn new(sampling: SplitSampling, stream: usize, column: usize) -> Self {
        let key = sampling.key.child(stream as u64).child(column as u64);
        Self {
            rng: key.rng(),
            n_candidates: 0,
        }
    }
}

impl RankCandidates for GumbelScore {
    #[inline]
    fn rank(&mut self, score: f32) -> f32 {
        if score <= REFUSED {
            return REFUSED;
        }
        self.n_candidates += 1;
        (f64::from(score) + gumbel(uniform(&mut self.rng))) as f32
    }

    fn among_columns(&mut self, _: f32, _: f32, rank: f32) -> Option<f32> {
        Some(rank)
    }

    fn n_candidates(&self) -> usize {
        self.n_candidates
    }
}

/// A standard Gumbel number from a uniform one in [0, 1).
fn gumbel(uniform: f64) -> f64 {
    let exponential = -(-uniform).ln_1p();
    // half of the smallest positive number that the line above can give, instead of 0
    -exponential.max(0.5 / (1_u64 << 53) as f64).ln()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::data::binning::binned::{Binned, Cuts};
    use crate::data::column::Column;
    use crate::data::table::Table;
    use crate::likelihood::OutputTerms;
    use crate::par::Pool;
    use crate::trees::histogram::candidate::ColumnInfo;
    use crate::trees::histogram::grower::{GrowTask, Grower, Growth, Limits};
    use crate::trees::histogram::quantized_gradients::QuantizedGradients;
    use crate::trees::histogram::reduce::SingleProcess;
    use crate::trees::histogram::splitter::{GainSpec, ScaledGain};
    use crate::trees::structure::TreeStructure;

    const N: usize = 16;
    const L2: f64 = 2.0;
    const VARIANCE: f64 = 6.0;
    const BASE: f64 = 0.9;

    /// Gradients; small integers have exact sums.
    const GRADIENTS: [f64; N] = [
        3.0, -2.0, 1.0, 4.0, -1.0, 2.0, -3.0, 1.0, 2.0, -4.0, 3.0, 2.0, -1.0, -2.0, 4.0, 1.0,
    ];

    /// Cell of a numeric column. Column 0 has missing cells; the last two are searched by another
    /// group than the first eight.
    fn cell(row: usize, column: usize) -> f64 {
        match column {
            0 if row % 5 == 2 => f64::NAN,
            0 => (row % 3) as f64,
            8 => (row / 6) as f64,
            _ => f64::from(u8::from((row * (2 * column + 1)) % 16 < 4 + column)),
        }
    }

    fn category(row: usize) -> usize {
        (row * 7 / 3) % 4
    }

    fn table() -> Table {
        let numeric = |column: usize| {
            let cells = (0..N).map(|row| cell(row, column)).collect();
            Column::numeric(format!("{column}"), cells)
        };
        let texts: Vec<_> = (0..N).map(|row| Some(category(row).to_string())).collect();
        let category = Column::categorical("category", &texts);
        Table::new((0..9).map(numeric).chain([category]).collect()).unwrap()
    }

    /// What is drawn: the column and the rows on the right, or no split.
    type Outcome = Option<(usize, u32)>;

    fn log_marginal(rows: u32) -> f64 {
        let sum: f64 = (0..N)
            .filter(|row| rows >> row & 1 == 1)
            .map(|row| GRADIENTS[row])
            .sum();
        let n = f64::from(rows.count_ones());
        sum * sum / (2.0 * VARIANCE * (n + L2)) - 0.5 * (1.0 + n / L2).ln()
    }

    fn rows_where(is_in: impl Fn(usize) -> bool) -> u32 {
        (0..N).filter(|&row| is_in(row)).map(|row| 1 << row).sum()
    }

    /// All candidate splits of the root: every threshold with missing cells left and right, missing
    /// cells against the others, and the categories in the order of their Newton steps.
    fn candidates() -> Vec<(usize, u32)> {
        let mut found = Vec::new();
        for column in 0..9 {
            let missing = rows_where(|row| cell(row, column).is_nan());
            for threshold in [0.5, 1.5] {
                let above = rows_where(|row| cell(row, column) > threshold);
                if above != 0 {
                    found.push((column, above));
                    found.extend((missing != 0).then_some((column, above | missing)));
                }
            }
            found.extend((missing != 0).then_some((column, missing)));
        }
        let of_level = |level: usize| rows_where(|row| category(row) == level);
        let step = |level: usize| {
            let rows = (0..N).filter(|&row| category(row) == level);
            let sum: f64 = rows.map(|row| GRADIENTS[row]).sum();
            sum / (f64::from(of_level(level).count_ones()) + L2)
        };
        let mut order: Vec<usize> = (0..4).collect();
        order.sort_by(|&a, &b| step(a).total_cmp(&step(b)));
        for first in 1..4 {
            let right = order[first..].iter().map(|&level| of_level(level)).sum();
            found.push((9, right));
        }
        found
    }

    fn probabilities() -> BTreeMap<Outcome, f64> {
        let all = (1 << N) - 1;
        let candidates = candidates();
        let no_split = candidates.len() as f64 * (1.0 - BASE) / BASE;
        let weight = |right: u32| {
            let gain = log_marginal(right) + log_marginal(all & !right) - log_marginal(all);
            gain.exp()
        };
        let splits = candidates
            .iter()
            .map(|&(column, right)| (Some((column, right)), weight(right)));
        let mut weights: BTreeMap<Outcome, f64> = splits.chain([(None, no_split)]).collect();
        assert_eq!(weights.len(), candidates.len() + 1, "candidates differ");
        let total: f64 = weights.values().sum();
        for weight in weights.values_mut() {
            *weight /= total;
        }
        weights
    }

    /// Draws the split of the root once for each key.
    fn draw(n_draws: u64, n_threads: usize) -> Vec<Outcome> {
        let table = table();
        let rows: Vec<u32> = (0..N as u32).collect();
        let cuts = Cuts::fit(&table, &rows, &[1.0; N], 255);
        let binned = cuts.bin_rows(&table, &rows);
        let mut quantized = QuantizedGradients::<2>::new(N);
        quantized.set(&GRADIENTS.map(|gradient| [gradient as f32, 1.0]), 0);
        let terms = OutputTerms {
            gradient: 0,
            hessian: 1,
            factor: 1.0,
            l2: L2,
        };
        let gain_spec = GainSpec {
            outputs: vec![terms],
            weight: 1,
            min_weight: 0.0,
        };
        let mut grower = Grower::new(&binned);
        let sampling = |draw: u64| SplitSampling {
            noise_variance: VARIANCE,
            base: BASE,
            power: 1.25,
            key: Key::from_seed(20).child(draw),
        };
        let columns = ColumnInfo::new(&cuts, &binned);
        let scaled_gain = ScaledGain::new(&gain_spec, &quantized);
        let pool = Pool::new(n_threads).unwrap();
        let task = |draw: u64| GrowTask {
            binned: &binned,
            columns: &columns,
            quantized: &quantized,
            scaled_gain: &scaled_gain,
            limits: Limits {
                growth: Growth::Depthwise,
                max_depth: 1,
                max_leaves: usize::MAX,
            },
            allowed: &[true; 10],
            chooser: SplitChooser::Sampled(sampling(draw)),
            pool: &pool,
            reduce: &SingleProcess,
        };
        (0..n_draws)
            .map(|draw| outcome(&grower.grow(&task(draw)).unwrap().structure, &binned))
            .collect()
    }

    fn outcome(structure: &TreeStructure, binned: &Binned) -> Outcome {
        let TreeStructure::General { conditions, .. } = structure else {
            panic!("a general tree")
        };
        let condition = conditions.first()?;
        let bin = |row: usize| binned.bin(row, condition.column);
        let right = rows_where(|row| condition.goes_right(bin(row)));
        Some((condition.column, right))
    }

    /// An outcome of probability `p` occurs `n p` times up to 7 standard deviations. By Bernstein's
    /// inequality one of fewer than 30 outcomes with `n p (1 - p) > 100` violates this with
    /// probability below `30 * 2 exp(-19.8)`, that is 2e-7; the seed is fixed.
    #[test]
    fn sampled_splits_have_the_probabilities_of_the_posterior() {
        let n_draws = 100_000_u32;
        let mut counts: BTreeMap<Outcome, u32> = BTreeMap::new();
        for outcome in draw(n_draws.into(), 1) {
            *counts.entry(outcome).or_default() += 1;
        }
        let probabilities = probabilities();
        assert!(probabilities.len() < 30);
        let total: u32 = probabilities
            .keys()
            .map(|outcome| counts.get(outcome).copied().unwrap_or(0))
            .sum();
        assert_eq!(total, n_draws, "only candidates are drawn");
        for (outcome, p) in probabilities {
            let found = f64::from(counts.get(&outcome).copied().unwrap_or(0));
            let expected = f64::from(n_draws) * p;
            let variance = expected * (1.0 - p);
            assert!(variance > 100.0, "{outcome:?} is too rare: {p}");
            assert!(
                (found - expected).abs() < 7.0 * variance.sqrt(),
                "{outcome:?}: {found} times instead of {expected}"
            );
        }
    }

    #[test]
    fn sampled_splits_do_not_depend_on_the_number_of_threads() {
        let one = draw(200, 1);
        for n_threads in [2, 3, 7] {
            assert_eq!(draw(200, n_threads), one);
        }
    }

    #[test]
    fn prior_odds_of_no_split_rise_with_the_depth() {
        let sampling = SplitSampling {
            noise_variance: 1.0,
            base: 0.8,
            power: 2.0,
            key: Key::from_seed(0),
        };
        for depth in 0..5 {
            let p = 0.8 / (1.0 + depth as f64).powi(2);
            let expected = ((1.0 - p) / p).ln();
            assert!((sampling.log_no_split(depth) - expected).abs() < 1e-12);
        }
    }
}
