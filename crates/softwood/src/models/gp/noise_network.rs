//! Networks that write the tree of the noise, trained on the expected squared errors of the rows;
//! and the hard trees that they end as, pruned by their description length.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::data::binning::binned::{Binned, Cuts};
use crate::data::bootstrap::bootstrap_weights;
use crate::data::dataset::Dataset;
use crate::error::{Error, Result};
use crate::fit::Run;
use crate::inference::radam::RectifiedAdam;
use crate::models::gp::params::GpRnnTreeParams;
use crate::models::gp::streams;
use crate::observer::{Event, Stop};
use crate::par::Pool;
use crate::recurrent::batches::{RouteBatches, RouteInputs, gather};
use crate::recurrent::bin_inputs::{BinInputs, BinnedRows};
use crate::recurrent::hard_tree::HardTree;
use crate::recurrent::imitation::{imitate, target_splits};
use crate::recurrent::network::NetworkShape;
use crate::recurrent::objective::{BatchRows, EntropyTerms, RouteObjective};
use crate::recurrent::scale_leaves::{RouteProbabilities, ScaleLeaves};
use crate::recurrent::schedule::RouteSchedule;
use crate::recurrent::unroll::BLOCK;
use crate::reserve;
use crate::rng::{Key, shuffle};
use crate::stop;
use crate::trees::cart::pruning::{NodeStatistics, PruningPath};
use crate::trees::cart::{CartData, CartLimits, CartTarget, grow};
use crate::trees::histogram::candidate::ColumnInfo;
use crate::trees::structure::TreeStructure;

/// Largest number of inputs of the network; of more, the best ones are used.
const MAX_INPUTS: usize = 128;
/// Largest number of rows of a step.
const MAX_BATCH: usize = 1024;
/// Least weight of a leaf of the CART start.
const MIN_LEAF_WEIGHT: f64 = 10.0;
/// Sharpness of the splits at the beginning and at the end of training, and sharpness of the decisions.
const SHARPNESS: [f64; 3] = [3.0, 50.0, 10.0];
/// Number of steps between two events.
const STEPS_PER_EVENT: usize = 25;
/// Learning rate of the log scales, relative to that of the network.
const LEAF_RATE: f64 = 3.0;
/// Range of the log scales of the leaves, relative to the constant noise.
const LOG_SCALE_RANGE: [f32; 2] = [-7.0, 7.0];
/// Number of pseudo-rows with the constant noise that are added to each leaf of a start.
const PSEUDO_ROWS: f64 = 2.0;
/// Smallest squared error, relative to the constant noise variance.
const MIN_SQUARE: f64 = 1e-8;

/// The training rows as the network sees them.
#[derive(Debug)]
pub(super) struct NoiseRows {
    pub(super) cuts: Cuts,
    binned: Binned,
    columns: ColumnInfo,
    inputs: BinInputs,
    n_rows: usize,
    /// Scores and weights of the padded rows.
    scores: Vec<f32>,
    weight: Vec<f32>,
    rows: Vec<u32>,
}

/// Squared errors of the rows, relative to a noise variance.
#[derive(Debug, Clone)]
pub(super) struct RelativeSquares {
    /// One for each row, and zeros for padding rows.
    values: Vec<f32>,
    /// Smallest noise variance of a leaf.
    floor: f64,
}

/// A network in training.
#[derive(Debug, Clone)]
pub(super) struct NoiseNetwork {
    weights: Vec<f32>,
    /// Logarithms of the standard deviations of the leaves, relative to the constant noise.
    pub(super) log_scales: Vec<f32>,
}

/// A hard tree of the noise with the sums of its leaves.
#[derive(Debug, Clone)]
pub(super) struct ScaleTree {
    pub(super) structure: TreeStructure,
    /// Weight, zero and weighted sum of squares of each leaf.
    stats: Vec<f64>,
    /// Log-likelihood of the rows minus the length of the description of the tree.
    pub(super) score: f64,
    /// Length of the description of a split.
    cost: f64,
}

/// A variance that squared errors are relative to, and the smallest noise variance.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoiseUnit {
    pub(super) variance: f64,
    pub(super) floor: f64,
}

impl NoiseRows {
    /// Bins the rows; `squares` choose the inputs if there are too many.
    pub(super) fn new(data: &Dataset, params: &GpRnnTreeParams, squares: &[f64]) -> Self {
        let n_rows = data.n_rows();
        let rows: Vec<u32> = (0..n_rows as u32).collect();
        let weights = data.weights().expect("deduplicated rows have weights");
        let cuts = Cuts::fit(data.features(), &rows, weights, params.max_bins);
        let binned = cuts.bin_rows(data.features(), &rows);
        let mut weight: Vec<f32> = weights.iter().map(|&weight| weight as f32).collect();
        let mut target: Vec<f32> = squares.iter().map(|s| log_square(*s)).collect();
        // a fit that is stopped early has no squares
        target.resize(n_rows, 0.0);
        let inputs = BinInputs::fit(
            &BinnedRows {
                cuts: &cuts,
                binned: &binned,
                weight: &weight,
                target: &target,
                kind: CartTarget::Number,
            },
            params.max_categories.min(MAX_INPUTS),
            MAX_INPUTS,
        );
        let n_padded = n_rows.next_multiple_of(BLOCK);
        weight.resize(n_padded, 0.0);
        Self {
            scores: inputs.scores(&binned, &rows, n_padded),
            columns: ColumnInfo::new(&cuts, &binned),
            cuts,
            binned,
            inputs,
            n_rows,
            weight,
            rows,
        }
    }

    /// Number of inputs of the network.
    pub(super) fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    pub(super) fn squares(&self, squares: &[f64], unit: NoiseUnit) -> RelativeSquares {
        let relative = squares.iter();
        let relative = relative.map(|s| (s / unit.variance).max(MIN_SQUARE) as f32);
        let mut values: Vec<f32> = relative.collect();
        values.resize(self.weight.len(), 0.0);
        RelativeSquares {
            values,
            floor: (unit.floor / unit.variance).max(MIN_SQUARE),
        }
    }

    fn encoded(&self) -> RouteInputs<'_> {
        RouteInputs {
            scores: &self.scores,
            weight: &self.weight,
            n_rows: self.n_rows,
        }
    }

    /// The leaf of each row.
    pub(super) fn leaves(&self, structure: &TreeStructure) -> Vec<usize> {
        (0..self.n_rows)
            .map(|row| structure.leaf(|column| self.binned.bin(row, column)))
            .collect()
    }

    /// Weight and sum of squares of each leaf, in the form of the statistics of a number.
    fn leaf_stats(&self, structure: &TreeStructure, squares: &RelativeSquares) -> Vec<f64> {
        let mut stats = vec![0.0; 3 * structure.n_leaves()];
        for (row, leaf) in self.leaves(structure).into_iter().enumerate() {
            let weight = f64::from(self.weight[row]);
            stats[3 * leaf] += weight;
            stats[3 * leaf + 2] += weight * f64::from(squares.values[row]);
        }
        stats
    }

    /// The tree of one leaf.
    pub(super) fn root(&self, squares: &RelativeSquares) -> ScaleTree {
        let structure = TreeStructure::General {
            conditions: Vec::new(),
            children: Vec::new(),
        };
        self.pruned(&structure, squares)
    }

    /// The subtree with the best score.
    ///
    /// A split costs `ln n` for its threshold and its scale, half of it each, and `ln d` for the choice
    /// among `d` inputs. Squares of errors with heavy tails vary more than those of Normal errors,
    /// and the likelihood gained by chance grows by the same factor.
    pub(super) fn pruned(&self, structure: &TreeStructure, squares: &RelativeSquares) -> ScaleTree {
        let stats = self.leaf_stats(structure, squares);
        let nodes = NodeStatistics::new(CartTarget::Number, structure, &stats);
        let n = nodes.stats(0)[0];
        let cost = self.dispersion(structure, squares, &stats)
            * (n.max(1.0).ln() + (self.n_inputs().max(1) as f64).ln());
        let leaf_value = |node: usize| {
            let stats = nodes.stats(node);
            let mean = stats[2] / stats[0];
            let variance = mean.max(squares.floor);
            -0.5 * stats[0] * (variance.ln() + mean / variance)
        };
        let n_conditions = nodes.children.len();
        let mut best: Vec<f64> = (0..nodes.n_nodes()).map(leaf_value).collect();
        let mut cut_at = vec![0.0; n_conditions];
        for node in (0..n_conditions).rev() {
            let [left, right] = nodes.children[node];
            let split = best[left] + best[right] - cost;
            if split > best[node] {
                best[node] = split;
                cut_at[node] = 1.0;
            }
        }
        let path = PruningPath {
            cut_at,
            steps: Vec::new(),
        };
        let (structure, stats) = nodes.pruned(structure, &path, 0.0);
        ScaleTree {
            structure,
            stats,
            score: best[0],
            cost,
        }
    }

    /// Variance of the squares, relative to that of the squares of Normal errors with the variance of
    /// their leaf; at least 1.
    fn dispersion(
        &self,
        structure: &TreeStructure,
        squares: &RelativeSquares,
        stats: &[f64],
    ) -> f64 {
        let (mut sum, mut total) = (0.0, 0.0);
        for (row, leaf) in self.leaves(structure).into_iter().enumerate() {
            let weight = f64::from(self.weight[row]);
            if weight <= 0.0 {
                continue;
            }
            let variance = (stats[3 * leaf + 2] / stats[3 * leaf]).max(squares.floor);
            sum += weight * (f64::from(squares.values[row]) / variance - 1.0).powi(2);
            total += weight;
        }
        (sum / (2.0 * total)).max(1.0)
    }
}

impl ScaleTree {
    pub(super) fn n_splits(&self) -> usize {
        self.structure.conditions().len()
    }

    /// Length of the description of all splits.
    pub(super) fn cost(&self) -> f64 {
        self.cost * self.n_splits() as f64
    }

    /// Weight of the rows of each leaf.
    pub(super) fn weights(&self) -> Vec<f64> {
        self.stats.chunks_exact(3).map(|stats| stats[0]).collect()
    }
}

/// Training of the networks of one fit.
#[derive(Debug)]
pub(super) struct NoiseTrainer<'a> {
    pub(super) rows: &'a NoiseRows,
    pub(super) shape: NetworkShape,
    schedule: RouteSchedule,
    n_steps: usize,
    pub(super) run: &'a Run<'a>,
    /// Set when the observer stops the fit and keeps it.
    is_stopped: AtomicBool,
}

impl<'a> NoiseTrainer<'a> {
    pub(super) fn new(rows: &'a NoiseRows, params: &GpRnnTreeParams, run: &'a Run<'a>) -> Self {
        let [initial_sharpness, final_sharpness, decision_sharpness] = SHARPNESS;
        Self {
            rows,
            shape: NetworkShape {
                n_inputs: rows.n_inputs(),
                n_hidden: params.n_hidden,
                depth: params.max_depth,
            },
            schedule: RouteSchedule {
                learning_rate: params.learning_rate,
                kl_weight: params.kl_weight,
                initial_sharpness,
                final_sharpness,
                decision_sharpness,
            },
            n_steps: params.n_steps,
            run,
            is_stopped: AtomicBool::new(false),
        }
    }

    /// Whether the observer has stopped the fit and keeps it.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Tells the observer of a step; returns whether training ends.
    fn is_ended(&self, step: usize, n_steps: usize) -> Result<bool> {
        if step.is_multiple_of(STEPS_PER_EVENT) && !self.is_stopped() {
            let event = Event::new("training the network of the noise", step, n_steps);
            match self.run.observer.on_event(&event) {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(Stop::Discard) => return Err(Error::Cancelled),
                ControlFlow::Break(Stop::Keep) => self.is_stopped.store(true, Ordering::Relaxed),
            }
        }
        Ok(self.is_stopped())
    }

    /// A network that writes a CART tree of the logarithms of the squares (the first restart), of a
    /// bootstrap sample of the rows, or a random tree.
    ///
    /// # Errors
    /// When the work is cancelled.
    pub(super) fn start(
        &self,
        restart: usize,
        squares: &RelativeSquares,
        key: Key,
    ) -> Result<NoiseNetwork> {
        let rows = self.rows;
        let n_leaves = self.shape.n_leaves();
        let mut weights = self
            .shape
            .random_weights(1.0, key.child(streams::NETWORK_WEIGHTS));
        let draws = key.child(streams::NETWORK_START);
        if restart % 3 == 1 {
            let scale = |leaf: usize| (2.0 * leaf as f32 + 1.0) / n_leaves as f32 - 1.0;
            let mut log_scales: Vec<f32> = (0..n_leaves).map(scale).collect();
            shuffle(&mut draws.rng(), &mut log_scales);
            return Ok(NoiseNetwork {
                weights,
                log_scales,
            });
        }
        let mut weight = rows.weight[..rows.n_rows].to_vec();
        if restart > 0 {
            weight = bootstrap_weights(&weight, draws);
        }
        let target = squares.values[..rows.n_rows].iter();
        let target: Vec<f32> = target.map(|&s| log_square(f64::from(s))).collect();
        let pool = Pool::new(1)?;
        let data = CartData {
            binned: &rows.binned,
            columns: &rows.columns,
            target: &target,
            kind: CartTarget::Number,
            pool: &pool,
        };
        let limits = CartLimits {
            max_depth: self.shape.depth,
            min_weight: MIN_LEAF_WEIGHT,
            n_tried: None,
        };
        let key = draws.child(1);
        let cart = grow(&data, &weight, &limits, key, &|| ControlFlow::Continue(()))?;
        let splits = target_splits(&self.shape, &rows.inputs, &cart.structure);
        imitate(self.shape, &splits, &mut weights);
        let tree = self.hard(&weights);
        let mut sums = vec![[0.0; 2]; n_leaves];
        for row in 0..rows.n_rows {
            let [weight, square] = &mut sums[tree.leaf(&rows.binned, row)];
            let of_row = f64::from(rows.weight[row]);
            *weight += of_row;
            *square += of_row * f64::from(squares.values[row]);
        }
        let log_scale = |[weight, square]: &[f64; 2]| {
            let variance = (square + PSEUDO_ROWS) / (weight + PSEUDO_ROWS);
            (0.5 * variance.ln()) as f32
        };
        Ok(NoiseNetwork {
            weights,
            log_scales: sums.iter().map(log_scale).collect(),
        })
    }

    fn hard(&self, weights: &[f32]) -> HardTree {
        HardTree::new(&self.shape, weights, &self.rows.inputs, &self.rows.cuts)
    }

    /// The pruned hard tree of a network.
    pub(super) fn tree(&self, network: &NoiseNetwork, squares: &RelativeSquares) -> ScaleTree {
        let hard = self.hard(&network.weights);
        let (structure, _) = hard.structure(&self.rows.binned, &self.rows.rows);
        self.rows.pruned(&structure, squares)
    }

    /// Trains a network from one share of its run to another.
    ///
    /// # Errors
    /// When the work is cancelled or a batch does not fit into memory.
    pub(super) fn train(
        &self,
        network: &mut NoiseNetwork,
        squares: &RelativeSquares,
        [from, to]: [f64; 2],
        key: Key,
    ) -> Result<()> {
        let encoded = self.rows.encoded();
        let mut batches = RouteBatches::new(encoded, MAX_BATCH, self.shape.depth)?;
        let n_batch = batches.rows().weight.len();
        let mut objective = self.objective(n_batch, from);
        let NoiseNetwork {
            weights,
            log_scales,
        } = network;
        let mut optimisers = [weights.len(), log_scales.len()].map(RectifiedAdam::new);
        let mut gradient = vec![0.0_f32; weights.len()];
        let mut of_batch = vec![0.0_f32; n_batch];
        let mut rng = key.rng();
        let n_steps = ((to - from) * self.n_steps as f64).ceil() as usize;
        for step in 0..n_steps {
            stop::check()?;
            if self.is_ended(step, n_steps)? {
                break;
            }
            let progress = from + (to - from) * step as f64 / n_steps as f64;
            let rate = self.schedule.learning_rate(progress);
            objective.set_sharpness(self.schedule.sharpness(progress));
            objective.set_kl_weight(self.schedule.kl_weight(progress));
            let chosen = batches.draw(&mut rng);
            let batch_squares = if chosen.is_empty() {
                &squares.values
            } else {
                gather(&squares.values, chosen, &mut of_batch);
                &of_batch
            };
            let rows = batches.rows();
            let total: f64 = rows.weight.iter().map(|&w| f64::from(w)).sum();
            let mut leaves = ScaleLeaves::new(log_scales, batch_squares);
            gradient.fill(0.0);
            objective.evaluate(weights, &rows, &mut leaves, &mut gradient);
            let of_leaves = leaves.gradient().into_iter();
            let of_leaves: Vec<f32> = of_leaves.map(|slope| (slope / total) as f32).collect();
            for slope in &mut gradient {
                *slope = (f64::from(*slope) / total) as f32;
            }
            let [of_network, of_scales] = &mut optimisers;
            of_network.ascend(weights, &gradient, rate);
            of_scales.ascend(log_scales, &of_leaves, LEAF_RATE * rate);
            let [low, high] = LOG_SCALE_RANGE;
            for log_scale in &mut *log_scales {
                *log_scale = log_scale.clamp(low, high);
            }
        }
        let is_finite = weights
            .iter()
            .chain(log_scales.iter())
            .all(|w| w.is_finite());
        if is_finite {
            Ok(())
        } else {
            Err(Error::Diverged {
                step: n_steps,
                what: "the network of the noise".to_owned(),
            })
        }
    }

    /// The leaf of each row in the hard tree of a network, among all leaves.
    pub(super) fn hard_leaves(&self, network: &NoiseNetwork) -> Vec<usize> {
        let tree = self.hard(&network.weights);
        (0..self.rows.n_rows)
            .map(|row| tree.leaf(&self.rows.binned, row))
            .collect()
    }

    /// The probabilities of the leaves for each row at this share of a run (rows x leaves).
    ///
    /// # Errors
    /// When they do not fit into memory.
    pub(super) fn routes(&self, network: &NoiseNetwork, progress: f64) -> Result<Vec<f64>> {
        let encoded = self.rows.encoded();
        let n_leaves = self.shape.n_leaves();
        RouteObjective::<f32>::check_memory(&self.shape, encoded.weight.len())?;
        let mut objective = self.objective(encoded.weight.len(), progress);
        let rows = BatchRows {
            inputs: encoded.scores,
            weight: encoded.weight,
            noise: &reserve::zeros(encoded.weight.len(), self.shape.depth)?,
        };
        let mut routes = RouteProbabilities::new(n_leaves, encoded.weight)?;
        let mut gradient = vec![0.0_f32; network.weights.len()];
        objective.evaluate(&network.weights, &rows, &mut routes, &mut gradient);
        routes.values.truncate(self.rows.n_rows * n_leaves);
        Ok(routes.values)
    }

    fn objective(&self, n_rows: usize, progress: f64) -> RouteObjective<f32> {
        let entropy = EntropyTerms {
            kl_weight: self.schedule.kl_weight(progress),
            row_sign: 1.0,
        };
        let sharpness = self.schedule.sharpness(progress);
        RouteObjective::new(self.shape, n_rows, entropy, sharpness)
    }
}

/// Logarithm of a squared error, which CART starts fit.
fn log_square(square: f64) -> f32 {
    square.max(MIN_SQUARE).ln() as f32
}
