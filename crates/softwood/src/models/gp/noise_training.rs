//! Training of a process whose noise is a tree that a network writes.
//!
//! The log noise scale of a row is the constant `m_l` of its leaf, and the network gives the
//! probabilities `P_l(x)` of the leaves. With `1 / r_n = Σ_l P_l(x_n) e^(-2 m_l)`, the bound is
//!
//! `ln N(y | 0, K + diag(r)) + Σ_n (½ ln r_n - Σ_l P_l(x_n) m_l) - KL`
//!
//! (Antorán et al. 2020, appendix E; `gaussian_process/noise_levels.rs` has it with a floor of the noise and
//! weights of the rows). Its derivative with respect to `P_l(x_n)` is
//! `-m_l - ½ s_n e^(-2 m_l)`, where `s_n` is the posterior expectation of `(y_n - f(x_n))²`: so given
//! `s` the network is trained without the process, and given the routes the process and the
//! scales of the leaves are trained without the network. Training alternates between both, with few
//! steps of each at a time.

use crate::data::binning::binned::Cuts;
use crate::data::dataset::Dataset;
use crate::error::{Error, Result};
use crate::fit::Run;
use crate::gaussian_process::hyperparameters::{EstimationProblem, HyperSpace};
use crate::gaussian_process::noise_levels::{
    LevelEstimate, LevelFit, LevelProblem, LevelShares, level_variances,
};
use crate::gaussian_process::points::Points;
use crate::gaussian_process::sparse_training::SparseTraining;
use crate::model::{CurvePoint, Model, Training};
use crate::models::gp::fitted::Gp;
use crate::models::gp::noise_network::{
    NoiseNetwork, NoiseRows, NoiseTrainer, NoiseUnit, RelativeSquares, ScaleTree,
};
use crate::models::gp::noise_tree::{GpNoise, NoiseLeaf, NoiseTree};
use crate::models::gp::params::GpRnnTreeParams;
use crate::models::gp::problem::{Problem, not_positive_definite};
use crate::models::gp::search::Progress;
use crate::models::gp::streams;
use crate::observer::Event;
use crate::stop;
use crate::trees::structure::TreeStructure;

/// Largest number of searches for a tree: each starts from the squared errors under the tree before.
const MAX_ROUNDS: usize = 3;
/// Number of times that process and network are trained in turn.
const N_TURNS: usize = 4;
/// Number of turns of a sparse process; each costs passes over all rows.
const N_SPARSE_TURNS: usize = 2;
/// Share of a training run that the networks have done before the turns begin.
const JOINT_START: f64 = 0.4;
/// Iterations of the search for hyper-parameters in a turn, and with the leaves of the hard tree.
const TURN_ITERATIONS: usize = 6;
const LEAF_ITERATIONS: usize = 20;
/// Largest number of updates of the leaves of the hard tree.
const N_LEAF_UPDATES: usize = 3;
/// Largest number of updates of the levels of a sparse process with fixed hyper-parameters, and relative
/// change of a level that ends them.
const N_LEVEL_UPDATES: usize = 8;
const MIN_CHANGE: f64 = 0.01;
/// Smallest variance of a level above the floor.
const MIN_EXCESS: f64 = 1e-8;
/// Number of rows that the noise of all rows counts as in the noise of a leaf.
const PSEUDO_ROWS: f64 = 0.5;

/// A process in training.
#[derive(Clone)]
struct ProcessState<'a> {
    problem: &'a Problem,
    /// Hyper-parameters without the noise, which the levels have.
    theta: Vec<f64>,
    /// Points of a sparse process.
    inducing: Option<Points>,
    /// The space of the hyper-parameters, with a noise of 1.
    level_space: HyperSpace,
    /// Logarithms of the standard deviations of the levels above the floor.
    log_scales: Vec<f64>,
    /// Expected squared error of each row.
    squares: Vec<f64>,
    /// The bound plus the log density of the priors; `None` for a sparse process.
    value: Option<f64>,
    /// Share of the work that is done, for events.
    done: [usize; 2],
}

impl<'a> ProcessState<'a> {
    /// A process with constant noise.
    fn new(problem: &'a Problem, mut theta: Vec<f64>, inducing: Option<Points>) -> Result<Self> {
        let found = problem.space.at(&theta).ok_or_else(not_positive_definite)?;
        let mut level_space = problem.space.clone();
        level_space.fixed.noise_sd = Some(1.0);
        theta.truncate(level_space.n_free());
        let mut state = Self {
            problem,
            theta,
            inducing,
            level_space,
            log_scales: Vec::new(),
            squares: Vec::new(),
            value: None,
            done: [0, 1],
        };
        state.set_levels(&[found.noise()]);
        Ok(state)
    }

    /// Sets the variances of the levels.
    fn set_levels(&mut self, levels: &[f64]) {
        let floor = self.problem.space.min_noise_sd;
        let log_scale = |level: &f64| 0.5 * (level - floor * floor).max(MIN_EXCESS).ln();
        self.log_scales = levels.iter().map(log_scale).collect();
    }

    /// Variances of the levels.
    fn levels(&self) -> Vec<f64> {
        level_variances(&self.log_scales, self.problem.space.min_noise_sd)
    }

    /// Trains hyper-parameters and levels a little, and computes the expected squared errors.
    fn update(
        &mut self,
        shares: &LevelShares,
        n_iterations: usize,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        match self.inducing.clone() {
            None => self.update_exact(shares, n_iterations, progress),
            Some(inducing) => self.update_sparse(shares, inducing),
        }
    }

    fn update_exact(
        &mut self,
        shares: &LevelShares,
        n_iterations: usize,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let problem = LevelProblem {
            estimation: EstimationProblem {
                space: &self.level_space,
                rows: self.problem.rows(),
            },
            shares,
        };
        let start = LevelEstimate {
            theta: self.theta.clone(),
            log_scales: self.log_scales.clone(),
            value: f64::NEG_INFINITY,
        };
        let [done, total] = self.done;
        let mut hear = |_: usize, _: &_| progress.send(&Event::new("noise", done, total));
        let n_iterations = n_iterations.min(self.problem.config.max_iterations);
        let found = problem.maximise(&start, n_iterations, &mut hear)?;
        let bound = problem.bound(&found.theta, &found.log_scales)?;
        stop::check()?;
        self.squares = bound.ok_or_else(not_positive_definite)?.squares;
        self.theta = found.theta;
        self.log_scales = found.log_scales;
        self.value = Some(found.value);
        Ok(())
    }

    fn update_sparse(&mut self, shares: &LevelShares, inducing: Points) -> Result<()> {
        let factors = self.factors(shares);
        let mut training = self.sparse_training(inducing, &factors)?;
        if self.problem.config.n_epochs > 0 && self.level_space.n_free() > 0 {
            training.epoch(0, 1)?;
        }
        let squares = training.expected_squares()?;
        self.theta = training.theta;
        self.squares = squares;
        self.fit_levels(shares, self.log_scales.len());
        Ok(())
    }

    /// Computes squared errors and levels of a sparse process in turn, until the levels change little.
    fn settle_levels(&mut self, shares: &LevelShares) -> Result<()> {
        let Some(inducing) = self.inducing.clone() else {
            return Ok(());
        };
        for _ in 0..N_LEVEL_UPDATES {
            let before = self.levels();
            let factors = self.factors(shares);
            let training = self.sparse_training(inducing.clone(), &factors)?;
            let squares = training.expected_squares()?;
            self.squares = squares;
            self.fit_levels(shares, before.len());
            let changes = self.levels().into_iter().zip(&before);
            let largest = changes.fold(0.0, |max: f64, (level, before)| {
                max.max((level / before - 1.0).abs())
            });
            if largest < MIN_CHANGE {
                break;
            }
        }
        Ok(())
    }

    /// Sets the levels to those under which the squared errors are most probable.
    fn fit_levels(&mut self, shares: &LevelShares, n_levels: usize) {
        let fit = LevelFit {
            n_levels,
            n_pseudo: PSEUDO_ROWS,
        };
        let levels = shares.fitted(&self.squares, &self.problem.weights, fit);
        self.set_levels(&levels);
    }

    /// Noise variance of each row; the hyper-parameter of the noise is 1.
    fn factors(&self, shares: &LevelShares) -> Vec<f64> {
        shares.variances(&self.levels(), self.problem.points.n())
    }

    fn sparse_training<'b>(
        &'b self,
        inducing: Points,
        factors: &'b [f64],
    ) -> Result<SparseTraining<'b>> {
        let estimation = EstimationProblem {
            space: &self.level_space,
            rows: self.problem.noisy_rows(factors),
        };
        let key = self.problem.key.child(streams::BATCHES).child(1);
        SparseTraining::new(estimation, inducing, self.theta.clone(), key)
    }

    /// The model with this noise, which has the levels of the state.
    fn model(&self, shares: &LevelShares, noise: GpNoise, training: Training) -> Result<Gp> {
        let factors = self.factors(shares);
        let rows = self.problem.noisy_rows(&factors);
        let Some(inducing) = self.inducing.clone() else {
            let (space, theta) = (&self.level_space, &self.theta);
            return self
                .problem
                .conditioned(space, theta, rows, noise, training);
        };
        let fitted = self.sparse_training(inducing.clone(), &factors)?;
        let (found, posterior) = fitted.posterior()?;
        let parts = self
            .problem
            .parts(&found, posterior, inducing, noise, training);
        Ok(Gp::new(parts, &[]))
    }

    /// The model with a tree of one leaf.
    fn constant_model(&self, cuts: Cuts, training: Training) -> Result<Gp> {
        let shares = LevelShares::One(vec![0; self.problem.points.n()]);
        let weight = self.problem.weights.iter().sum();
        let noise = NoiseTree::constant(cuts, weight, self.levels()[0].sqrt());
        self.model(&shares, GpNoise::Tree(noise), training)
    }
}

/// Fits a process and the tree of its noise; `data` are the deduplicated rows of the problem.
///
/// # Errors
/// When the fit is cancelled, or a matrix does not fit into memory or cannot be factored.
pub(super) fn fit(
    problem: &Problem,
    params: &GpRnnTreeParams,
    data: &Dataset,
    run: &Run<'_>,
    progress: &mut Progress<'_>,
) -> Result<Gp> {
    let (mut state, curve) = constant_process(problem, progress)?;
    let report = |is_stopped: bool| problem.training(curve.clone(), is_stopped);
    let constant = LevelShares::One(vec![0; problem.points.n()]);
    if !progress.is_stopped {
        state.update(&constant, 0, progress)?;
    }
    let rows = NoiseRows::new(data, params, &state.squares);
    stop::check()?;
    if progress.is_stopped || rows.n_inputs() == 0 {
        return state.constant_model(rows.cuts, report(progress.is_stopped));
    }
    let n_turns = if state.inducing.is_some() {
        N_SPARSE_TURNS
    } else {
        N_TURNS
    };
    let search = TreeSearch {
        trainer: NoiseTrainer::new(&rows, params, run),
        problem,
        unit: NoiseUnit {
            variance: state.levels()[0],
            floor: problem.space.min_noise_sd * problem.space.min_noise_sd,
        },
    };
    let mut tree = rows.root(&search.squares(&state));
    for round in 0..MAX_ROUNDS {
        let found = search.starts(params.n_tree_restarts, &state, round)?;
        progress.is_stopped |= search.trainer.is_stopped();
        // the noise of a region shows once the function is not smoothed by the noise of others
        if round > 0 && found.tree.score <= tree.score {
            break;
        }
        let earlier = (state.clone(), tree.clone());
        let (mut network, mut next) = (found.network, found.tree);
        for turn in 0..n_turns {
            state.done = [round * n_turns + turn, MAX_ROUNDS * n_turns];
            let take = || -> Result<Box<dyn Model>> {
                Ok(Box::new(search.snapshot(&state, &next, report(true))?))
            };
            let event = Event::new("noise", state.done[0], state.done[1]);
            if progress.send(&event.with_snapshot(&take)).is_break() {
                break;
            }
            search.turn(&mut state, &mut network, [turn, n_turns], round, progress)?;
            next = search.better(&state, &next, &network);
        }
        stop::check()?;
        tree = search.refit(&mut state, next, progress)?;
        let is_better = match (state.value, earlier.0.value) {
            (Some(value), Some(before)) => value - tree.cost() > before - earlier.1.cost(),
            _ => tree.n_splits() > earlier.1.n_splits(),
        };
        if !is_better && !progress.is_stopped {
            (state, tree) = earlier;
            break;
        }
        if progress.is_stopped {
            break;
        }
    }
    search.model(&state, &tree, report(progress.is_stopped))
}

/// A process with constant noise, and its training curve.
fn constant_process<'a>(
    problem: &'a Problem,
    progress: &mut Progress<'_>,
) -> Result<(ProcessState<'a>, Vec<CurvePoint>)> {
    if problem.config.is_exact(problem.points.n()) {
        let theta = problem.exact_theta(progress)?;
        let state = ProcessState::new(problem, theta, None)?;
        return Ok((state, std::mem::take(&mut progress.curve)));
    }
    let (inducing, theta) = problem.sparse_start(progress)?;
    let (training, curve) = problem.train_sparse(&inducing, theta, progress)?;
    let theta = training.theta;
    Ok((ProcessState::new(problem, theta, Some(inducing))?, curve))
}

/// The best network of several starts and its tree.
struct FoundTree {
    network: NoiseNetwork,
    tree: ScaleTree,
}

/// The search for the tree of one fit.
struct TreeSearch<'a> {
    trainer: NoiseTrainer<'a>,
    problem: &'a Problem,
    /// Noise variance that the log scales of the networks are relative to.
    unit: NoiseUnit,
}

impl TreeSearch<'_> {
    fn squares(&self, state: &ProcessState<'_>) -> RelativeSquares {
        self.trainer.rows.squares(&state.squares, self.unit)
    }

    /// Of a tree and that of a network, the one with the better score.
    fn better(
        &self,
        state: &ProcessState<'_>,
        tree: &ScaleTree,
        network: &NoiseNetwork,
    ) -> ScaleTree {
        let squares = self.squares(state);
        let of_network = self.trainer.tree(network, &squares);
        let earlier = self.trainer.rows.pruned(&tree.structure, &squares);
        if of_network.score > earlier.score {
            of_network
        } else {
            earlier
        }
    }

    /// The best network of several starts.
    fn starts(
        &self,
        n_restarts: usize,
        state: &ProcessState<'_>,
        round: usize,
    ) -> Result<FoundTree> {
        let squares = self.squares(state);
        let key = self.problem.key.child(streams::NETWORKS);
        let key = key.child(round as u64);
        let trained = self.trainer.run.pool.map(n_restarts, |restart| {
            let key = key.child(restart as u64);
            let mut network = self.trainer.start(restart, &squares, key)?;
            let steps = key.child(streams::NETWORK_STEPS);
            self.trainer
                .train(&mut network, &squares, [0.0, 1.0], steps)?;
            let tree = self.trainer.tree(&network, &squares);
            Ok((network, tree))
        });
        // a restart that diverges is left out, unless all do
        let mut best: Option<(NoiseNetwork, ScaleTree)> = None;
        let mut failure = None;
        for result in trained {
            match result {
                Ok(found)
                    if best
                        .as_ref()
                        .is_none_or(|best| found.1.score > best.1.score) =>
                {
                    best = Some(found);
                }
                Ok(_) => {}
                Err(error @ Error::Diverged { .. }) => failure = Some(error),
                Err(error) => return Err(error),
            }
        }
        match (best, failure) {
            (Some((network, tree)), _) => Ok(FoundTree { network, tree }),
            (None, failure) => Err(failure.unwrap_or_else(not_positive_definite)),
        }
    }

    /// Trains process and scales with the routes of the network, then the network with the squared
    /// errors of the process.
    fn turn(
        &self,
        state: &mut ProcessState<'_>,
        network: &mut NoiseNetwork,
        [turn, n_turns]: [usize; 2],
        round: usize,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let share = |turn: usize| JOINT_START + (1.0 - JOINT_START) * turn as f64 / n_turns as f64;
        let half_log = 0.5 * self.unit.variance.ln();
        // the probabilities of all leaves for very many rows take much memory
        let shares = match state.inducing {
            None => LevelShares::Several(self.trainer.routes(network, share(turn))?),
            Some(_) => LevelShares::One(self.trainer.hard_leaves(network)),
        };
        let scales = network.log_scales.iter();
        let levels: Vec<f64> = scales
            .map(|&m| (2.0 * (f64::from(m) + half_log)).exp())
            .collect();
        state.set_levels(&levels);
        state.update(&shares, TURN_ITERATIONS, progress)?;
        let levels = state.levels();
        for (log_scale, level) in network.log_scales.iter_mut().zip(&levels) {
            *log_scale = (0.5 * level.ln() - half_log) as f32;
        }
        if progress.is_stopped {
            return Ok(());
        }
        let squares = self.squares(state);
        let key = self.problem.key.child(streams::TURNS);
        let key = key.child(round as u64).child(turn as u64);
        let part = [share(turn), share(turn + 1)];
        self.trainer.train(network, &squares, part, key)?;
        progress.is_stopped |= self.trainer.is_stopped();
        Ok(())
    }

    fn shares(&self, structure: &TreeStructure) -> LevelShares {
        LevelShares::One(self.trainer.rows.leaves(structure))
    }

    /// Trains process and leaves of the hard tree; splits that do not help any more are removed.
    fn refit(
        &self,
        state: &mut ProcessState<'_>,
        mut tree: ScaleTree,
        progress: &mut Progress<'_>,
    ) -> Result<ScaleTree> {
        for _ in 0..N_LEAF_UPDATES {
            let shares = self.shares(&tree.structure);
            state.fit_levels(&shares, tree.n_splits() + 1);
            if progress.is_stopped {
                return Ok(tree);
            }
            state.update(&shares, LEAF_ITERATIONS, progress)?;
            state.settle_levels(&shares)?;
            let pruned = self
                .trainer
                .rows
                .pruned(&tree.structure, &self.squares(state));
            let is_same = pruned.n_splits() == tree.n_splits();
            tree = pruned;
            if is_same {
                return Ok(tree);
            }
        }
        let shares = self.shares(&tree.structure);
        state.fit_levels(&shares, tree.n_splits() + 1);
        state.update(&shares, LEAF_ITERATIONS, progress)?;
        state.settle_levels(&shares)?;
        Ok(tree)
    }

    /// The model of a process whose levels are the leaves of a tree.
    fn model(&self, state: &ProcessState<'_>, tree: &ScaleTree, training: Training) -> Result<Gp> {
        let leaves = tree.weights().into_iter().zip(state.levels());
        let leaves = leaves.map(|(weight, level)| NoiseLeaf {
            weight,
            sd: level.sqrt(),
        });
        let noise = NoiseTree {
            cuts: self.trainer.rows.cuts.clone(),
            structure: tree.structure.clone(),
            leaves: leaves.collect(),
        };
        state.model(
            &self.shares(&tree.structure),
            GpNoise::Tree(noise),
            training,
        )
    }

    /// The model of the present process and tree.
    fn snapshot(
        &self,
        state: &ProcessState<'_>,
        tree: &ScaleTree,
        training: Training,
    ) -> Result<Gp> {
        let mut state = state.clone();
        state.fit_levels(&self.shares(&tree.structure), tree.n_splits() + 1);
        self.model(&state, tree, training)
    }
}
