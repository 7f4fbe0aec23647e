//! Growing a chain: gradients, a tree, leaf values, an update of every row's outputs; round after round.

use std::ops::ControlFlow;

use multiversion::multiversion;

use crate::boosting::chain::{BoostedTree, Chain};
use crate::boosting::validation_window::{ValidationWindow, mixture};
use crate::data::binning::binned::Binned;
use crate::error::{Error, Result};
use crate::likelihood::OutputTerms;
use crate::likelihood::{Likelihood, weighted_mean};
use crate::numerics::gaussian::Gaussian;
use crate::numerics::prefetch::{AHEAD, prefetch};
use crate::par::Pool;
use crate::rng::{Key, uniform};
use crate::trees::histogram::candidate::{ColumnInfo, SplitNoise};
use crate::trees::histogram::grower::{GrowTask, Grower, HistogramTree, Limits};
use crate::trees::histogram::quantized_gradients::QuantizedGradients;
use crate::trees::histogram::splitter::{GainSpec, ScaledGain};
use crate::trees::monotone::projection::{LeafStep, MonotoneValues};

/// Where the diversity of chains comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sampling {
    /// Nowhere but from row and column sampling.
    Off,
    /// Leaf noise whose stationary distribution is the posterior: variance `e (2 - e) v` for steps of rate `e` in a leaf whose posterior
    /// has the variance `v` (the chain `x -> (1 - e) x + noise` then keeps `v`, whatever `e`).
    Posterior,
    /// Leaf noise of the paper's equation 11: variance `2 e v / N`.
    Malinin,
    /// Noise on the scores of splits, none on leaves.
    SplitNoise,
}

/// How a chain is grown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoostingSettings {
    pub(crate) n_trees: usize,
    pub(crate) learning_rate: f64,
    pub(crate) l2: f64,
    pub(crate) min_child_weight: f64,
    pub(crate) limits: Limits,
    pub(crate) subsample: f64,
    pub(crate) colsample: f64,
    pub(crate) sampling: Sampling,
    /// Shrinkage `1 - shrink_rate learning_rate` before each tree.
    pub(crate) shrink_rate: f64,
    /// Rounds without a better held-out score after which to stop.
    pub(crate) patience: Option<usize>,
}

/// Rows in bins with targets and weights.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BinnedSample<'a> {
    pub(crate) binned: &'a Binned,
    pub(crate) target: &'a [f32],
    pub(crate) weight: &'a [f32],
}

/// What a chain is grown on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoostingData<'a> {
    pub(crate) train: BinnedSample<'a>,
    pub(crate) held_out: Option<BinnedSample<'a>>,
    pub(crate) columns: &'a ColumnInfo,
    pub(crate) pool: &'a Pool,
    /// The training rows as further chains see them, which grow parallel_chains the first for the sake of the held-out score alone.
    pub(crate) parallel_chains: &'a [BinnedSample<'a>],
}

/// Rounds between two points at the held-out rows.
const VALIDATE_EVERY: usize = 5;
/// Rounds that a Langevin chain is given at least to do better on the held-out rows.
const MIN_PATIENCE: usize = 200;

/// Streams of the chains parallel_chains the first one, after those of its rounds.
const PARALLEL_CHAINS: u64 = 1 << 32;

/// Mean log-likelihoods after some trees; on the held-out rows that of the mixture over the second half of the chain and of
/// those parallel_chains it, which stands for the ensemble that the chain would be a member of.
#[derive(Debug, Clone)]
pub(crate) struct ValidationPoint {
    pub(crate) n_trees: usize,
    pub(crate) train: f64,
    pub(crate) held_out: f64,
    /// What the held-out rows ask to be added to each raw output, where they do.
    pub(crate) scale_correction: Vec<f64>,
}

/// A grown chain and how its scores went, where rows were held out.
#[derive(Debug, Clone)]
pub(crate) struct TrainedChain {
    pub(crate) chain: Chain,
    pub(crate) curve: Vec<ValidationPoint>,
    /// Residual variance of the training rows under a likelihood that has none of its own.
    pub(crate) dispersion: f64,
}

/// Grows a chain, from the best constant or from `base`. `observer` hears of every round: trees so far, the last held-out score.
pub(crate) fn grow<const L: usize>(
    likelihood: &impl Likelihood<L>,
    data: &BoostingData<'_>,
    settings: &BoostingSettings,
    base: Option<&Chain>,
    key: Key,
    observer: &mut dyn FnMut(usize, Option<f64>) -> ControlFlow<()>,
) -> Result<TrainedChain> {
    let mut trainer = ChainTrainer::new(likelihood, data, *settings, base, key);
    let mut parallel_chains: Vec<(BoostingData<'_>, ChainTrainer<L>)> = (0..)
        .zip(data.parallel_chains)
        .map(|(at, &train)| {
            let data = BoostingData { train, ..*data };
            let key = key.child(PARALLEL_CHAINS + at);
            (
                data,
                ChainTrainer::new(likelihood, &data, *settings, base, key),
            )
        })
        .collect();
    let mut curve: Vec<ValidationPoint> = Vec::new();
    let first = base.map_or(0, |base| base.trees.len());
    if first > 0 {
        curve.extend(trainer.validate(likelihood, data, 0, &parallel_chains));
    }
    for n_trees in 1..=settings.n_trees {
        let round = first + n_trees - 1;
        trainer.round(likelihood, data, round)?;
        for (data, trainer) in &mut parallel_chains {
            trainer.round(likelihood, data, round)?;
        }
        if n_trees % VALIDATE_EVERY == 0 || n_trees == settings.n_trees {
            curve.extend(trainer.validate(likelihood, data, n_trees, &parallel_chains));
            if is_stale(&curve, settings) {
                break;
            }
        }
        if observer(n_trees, curve.last().map(|point| point.held_out)).is_break() {
            return Err(Error::Cancelled);
        }
    }
    trainer.chain.settle(first);
    let train = &data.train;
    Ok(TrainedChain {
        dispersion: likelihood.dispersion(&trainer.raw, train.target, train.weight),
        chain: trainer.chain,
        curve,
    })
}

/// Whether no better score is to be hoped for: after some patience, or where a Langevin chain has been past its best for longer
/// than it took to get there.
fn is_stale(curve: &[ValidationPoint], settings: &BoostingSettings) -> bool {
    let (Some(best), Some(last)) = (best_point(curve), curve.last()) else {
        return false;
    };
    let patience = settings.patience.or_else(|| {
        let is_chain = settings.sampling != Sampling::Off;
        is_chain.then_some(best.n_trees + MIN_PATIENCE)
    });
    patience.is_some_and(|patience| last.n_trees >= best.n_trees + patience)
}

/// The point at which the held-out score was best; the first of several.
pub(crate) fn best_point(curve: &[ValidationPoint]) -> Option<ValidationPoint> {
    curve.iter().cloned().reduce(|best, point| {
        if point.held_out > best.held_out {
            point
        } else {
            best
        }
    })
}

struct ChainTrainer<const L: usize> {
    settings: BoostingSettings,
    key: Key,
    chain: Chain,
    /// Raw outputs of the training rows, rows x outputs.
    raw: Vec<f32>,
    held_out: Option<Vec<f32>>,
    grad_hess: Vec<[f32; L]>,
    quantized: QuantizedGradients<L>,
    grower: Grower<L>,
    total_weight: f64,
    window: ValidationWindow,
}

impl<const L: usize> ChainTrainer<L> {
    fn new(
        likelihood: &impl Likelihood<L>,
        data: &BoostingData<'_>,
        settings: BoostingSettings,
        base: Option<&Chain>,
        key: Key,
    ) -> Self {
        let n_rows = data.train.binned.n_rows();
        let chain = base.cloned().unwrap_or_else(|| {
            let start = likelihood.start(data.train.target, data.train.weight);
            Chain::new(start, 1.0 - settings.shrink_rate * settings.learning_rate)
        });
        let raw = |binned: &Binned| chain.raw(binned);
        Self {
            window: ValidationWindow::new(settings.sampling),
            settings,
            key,
            raw: raw(data.train.binned),
            held_out: data.held_out.map(|held_out| raw(held_out.binned)),
            chain,
            grad_hess: vec![[0.0; L]; n_rows],
            quantized: QuantizedGradients::new(n_rows),
            grower: Grower::new(data.train.binned),
            total_weight: data
                .train
                .weight
                .iter()
                .map(|&weight| f64::from(weight))
                .sum(),
        }
    }

    fn validate(
        &mut self,
        likelihood: &impl Likelihood<L>,
        data: &BoostingData<'_>,
        n_trees: usize,
        parallel_chains: &[(BoostingData<'_>, Self)],
    ) -> Option<ValidationPoint> {
        let (held_out, raw) = (data.held_out.as_ref()?, self.held_out.as_ref()?);
        let others = parallel_chains
            .iter()
            .filter_map(|(_, other)| other.held_out.as_ref());
        let chains: Vec<Vec<f64>> = std::iter::once(raw)
            .chain(others)
            .map(|raw| {
                let mut densities = vec![0.0; held_out.target.len()];
                likelihood.log_densities(raw, held_out.target, &mut densities);
                densities
            })
            .collect();
        self.window.push(mixture(&chains.iter()));
        let mixture = self.window.mixture();
        let train = &data.train;
        let mut densities = vec![0.0; train.target.len()];
        likelihood.log_densities(&self.raw, train.target, &mut densities);
        Some(ValidationPoint {
            n_trees,
            scale_correction: likelihood.scale_correction(raw, held_out.target, held_out.weight),
            train: weighted_mean(&densities, train.weight),
            held_out: weighted_mean(&mixture, held_out.weight),
        })
    }

    fn round(
        &mut self,
        likelihood: &impl Likelihood<L>,
        data: &BoostingData<'_>,
        round: usize,
    ) -> Result<()> {
        let key = self.key.child(round as u64);
        let train = &data.train;
        let of_round = likelihood.for_round(key.child(5));
        let likelihood = of_round.as_ref().unwrap_or(likelihood);
        likelihood.grad_hess(&self.raw, train.target, train.weight, &mut self.grad_hess);
        self.quantized.set(&self.grad_hess, key.child(0).word());
        let totals = self.quantized.totals;
        if !totals.iter().all(|total| total.is_finite()) {
            return Err(Error::Diverged {
                step: round,
                what: "the sum of gradients".to_owned(),
            });
        }
        if self.settings.subsample < 1.0 {
            self.leave_rows_out(key.child(1));
        }
        let outputs = likelihood.outputs(self.settings.l2, &totals);
        let gain_spec = GainSpec {
            outputs: outputs.clone(),
            weight: likelihood.weight_entry(),
            min_weight: self.settings.min_child_weight,
        };
        let open = self.open_columns(train.binned.n_columns(), key.child(2));
        let grown = self.grower.grow(&GrowTask {
            binned: train.binned,
            columns: data.columns,
            quantized: &self.quantized,
            scaled_gain: &ScaledGain::new(&gain_spec, &self.quantized),
            limits: self.settings.limits,
            open: &open,
            noise: self.score_noise(round, likelihood.shown().len(), key.child(3)),
            pool: data.pool,
        });
        let dispersion = match self.settings.sampling {
            Sampling::Posterior | Sampling::Malinin => {
                likelihood.dispersion(&self.raw, train.target, train.weight)
            }
            Sampling::Off | Sampling::SplitNoise => 1.0,
        };
        let monotone = MonotoneValues::new(&grown.structure, data.columns);
        let noise = (key.child(4), dispersion);
        let values = self.leaf_values(likelihood, &grown, &outputs, noise, monotone);
        let values = LeafValues {
            all: values,
            moved: likelihood.shown(),
        };
        self.update(&grown, &values);
        if let (Some(raw), Some(held_out)) = (&mut self.held_out, &data.held_out) {
            update_by_routing(raw, &grown, &values, held_out.binned, self.chain.shrinkage);
        }
        self.chain.trees.push(BoostedTree {
            structure: grown.structure,
            values: values.all,
            outputs: likelihood.shown().to_vec(),
            gains: grown.gains,
        });
        Ok(())
    }

    /// Rows that are left out count nothing in the search for splits; leaf values use all.
    fn leave_rows_out(&mut self, key: Key) {
        let mut rng = key.rng();
        for narrow in &mut self.quantized.narrow {
            if uniform(&mut rng) >= self.settings.subsample {
                *narrow = [0; L];
            }
        }
    }

    fn open_columns(&self, n_columns: usize, key: Key) -> Vec<bool> {
        let colsample = self.settings.colsample;
        if colsample >= 1.0 {
            return vec![true; n_columns];
        }
        let n_open = ((n_columns as f64 * colsample).round() as usize).clamp(1, n_columns);
        let mut order: Vec<usize> = (0..n_columns).collect();
        crate::rng::shuffle(&mut key.rng(), &mut order);
        let mut open = vec![false; n_columns];
        for &column in &order[..n_open] {
            open[column] = true;
        }
        open
    }

    /// Score noise falls as `N exp(-round rate)` falls below one.
    fn score_noise(&self, round: usize, n_drawn: usize, key: Key) -> Option<SplitNoise> {
        if self.settings.sampling != Sampling::SplitNoise {
            return None;
        }
        let left = self.total_weight * (-(round as f64) * self.settings.learning_rate).exp();
        // of the first output; where a round draws its outputs, of all that it has drawn
        let grad_hess = 0..n_drawn.max(1);
        let square = |row: &[f32; L]| -> f64 {
            let squares = row[grad_hess.clone()].iter().map(|&g| f64::from(g).powi(2));
            squares.sum::<f64>() / grad_hess.len() as f64
        };
        let mean_square = self.grad_hess.iter().map(square).sum::<f64>() / self.total_weight;
        let sd = mean_square.sqrt() * left / (1.0 + left);
        Some(SplitNoise { sd: sd as f32, key })
    }

    fn leaf_values(
        &self,
        likelihood: &impl Likelihood<L>,
        grown: &HistogramTree,
        outputs: &[OutputTerms],
        (key, dispersion): (Key, f64),
        mut monotone: Option<MonotoneValues>,
    ) -> Vec<f32> {
        let rate = self.settings.learning_rate;
        let is_noisy = matches!(
            self.settings.sampling,
            Sampling::Posterior | Sampling::Malinin
        );
        let n_normals = grown.leaves.len() * outputs.len();
        let mut normals = vec![0.0_f32; if is_noisy { n_normals } else { 0 }];
        Gaussian::new(key).fill(&mut normals);
        let empty_leaf_prior = monotone
            .is_none()
            .then(|| self.empty_leaf_prior())
            .flatten();
        let mut values = Vec::with_capacity(grown.leaves.len() * outputs.len());
        for (leaf, rows) in grown.leaves.iter().enumerate() {
            let rows = self.grower.partition.rows(rows);
            if rows.is_empty() {
                values.extend(outputs.iter().enumerate().map(|(at, output)| {
                    let Some(empty_leaf_prior) =
                        empty_leaf_prior.filter(|_| likelihood.is_free_without_rows(at))
                    else {
                        return 0.0;
                    };
                    let hessian = empty_leaf_prior[output.hessian] + output.l2;
                    let sd = self.noise_sd(
                        likelihood.noise_variance(at, &empty_leaf_prior, hessian),
                        dispersion,
                    );
                    sd as f32 * normals[leaf * outputs.len() + at]
                }));
                if let Some(monotone) = &mut monotone {
                    monotone.push(LeafStep::EMPTY);
                }
                continue;
            }
            let sums = self.quantized.sums(rows);
            for (at, output) in outputs.iter().enumerate() {
                let hessian = sums[output.hessian] + output.l2;
                let limit = likelihood.step_limit(at);
                let step = (sums[output.gradient] / hessian).clamp(-limit, limit);
                let step = rate * step;
                let mut value = step;
                if is_noisy {
                    let sd =
                        self.noise_sd(likelihood.noise_variance(at, &sums, hessian), dispersion);
                    value += sd * f64::from(normals[leaf * outputs.len() + at]);
                }
                values.push(value as f32);
                if let (Some(monotone), 0) = (&mut monotone, at) {
                    monotone.push(LeafStep {
                        step,
                        noise: value - step,
                        hessian: Some(hessian),
                    });
                }
            }
        }
        if let Some(monotone) = monotone {
            let first = values.iter_mut().step_by(outputs.len());
            for (value, in_order) in first.zip(monotone.values()) {
                *value = in_order;
            }
        }
        values
    }

    /// Spread of the noise of a leaf whose value has the posterior variance given.
    fn noise_sd(&self, variance: f64, dispersion: f64) -> f64 {
        let rate = self.settings.learning_rate;
        let part = match self.settings.sampling {
            Sampling::Malinin => 2.0 * rate / self.total_weight,
            _ => rate * (2.0 - rate),
        };
        (part * dispersion * variance).sqrt()
    }

    /// Sums of the `l2` average rows that a leaf without rows is taken to hold: nothing was seen there, so its value is at
    /// least as free as that of a leaf of so few.
    fn empty_leaf_prior(&self) -> Option<[f64; L]> {
        let share = self.settings.l2 / self.total_weight;
        let has_some = self.settings.sampling == Sampling::Posterior && share > 0.0;
        has_some.then(|| self.quantized.totals.map(|total| share * total))
    }

    fn update(&mut self, grown: &HistogramTree, values: &LeafValues<'_>) {
        let n_outputs = self.chain.n_outputs();
        let shrinkage = self.chain.shrinkage as f32;
        for (leaf, rows) in grown.leaves.iter().enumerate() {
            let rows = self.grower.partition.rows(rows);
            match *values.of(leaf, n_outputs) {
                [a] => add_to_rows(self.raw.as_chunks_mut().0, rows, [a], shrinkage),
                [a, b] => add_to_rows(self.raw.as_chunks_mut().0, rows, [a, b], shrinkage),
                ref all if values.moved.is_empty() => {
                    add_to_any(&mut self.raw, rows, all, shrinkage);
                }
                _ => {
                    for &row in rows {
                        let raw = &mut self.raw[row as usize * n_outputs..][..n_outputs];
                        values.add(leaf, raw, shrinkage);
                    }
                }
            }
        }
    }
}

/// Values of the leaves of a tree, for the outputs that it moves: all where none are named.
struct LeafValues<'a> {
    all: Vec<f32>,
    moved: &'a [u16],
}

impl LeafValues<'_> {
    fn of(&self, leaf: usize, n_outputs: usize) -> &[f32] {
        let n = match self.moved.len() {
            0 => n_outputs,
            n => n,
        };
        &self.all[leaf * n..(leaf + 1) * n]
    }

    /// Shrinks the outputs of a row and adds the values of its leaf.
    fn add(&self, leaf: usize, raw: &mut [f32], shrinkage: f32) {
        let values = self.of(leaf, raw.len());
        if self.moved.is_empty() {
            for (raw, value) in raw.iter_mut().zip(values) {
                *raw = shrinkage * *raw + value;
            }
            return;
        }
        for raw in &mut *raw {
            *raw *= shrinkage;
        }
        for (&output, value) in self.moved.iter().zip(values) {
            raw[usize::from(output)] += value;
        }
    }
}

#[multiversion(targets = "simd")]
fn add_to_rows<const K: usize>(
    raw: &mut [[f32; K]],
    rows: &[u32],
    values: [f32; K],
    shrinkage: f32,
) {
    for (at, &row) in rows.iter().enumerate() {
        if let Some(&later) = rows.get(at + AHEAD) {
            prefetch(raw, later as usize);
        }
        let raw = &mut raw[row as usize];
        for output in 0..K {
            raw[output] = shrinkage.mul_add(raw[output], values[output]);
        }
    }
}

#[multiversion(targets = "simd")]
fn add_to_any(raw: &mut [f32], rows: &[u32], values: &[f32], shrinkage: f32) {
    for &row in rows {
        let raw = &mut raw[row as usize * values.len()..][..values.len()];
        for (raw, value) in raw.iter_mut().zip(values) {
            *raw = shrinkage.mul_add(*raw, *value);
        }
    }
}

fn update_by_routing(
    raw: &mut [f32],
    grown: &HistogramTree,
    values: &LeafValues<'_>,
    binned: &Binned,
    shrinkage: f64,
) {
    let n_outputs = raw.len() / binned.n_rows().max(1);
    for (row, raw) in raw.chunks_exact_mut(n_outputs.max(1)).enumerate() {
        let leaf = grown.structure.leaf(|column| binned.bin(row, column));
        values.add(leaf, raw, shrinkage as f32);
    }
}
