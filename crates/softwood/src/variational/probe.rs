//! One training step and its matrix products alone, for `benches/vst.rs`. The cargo feature `bench`
//! enables this module; it is not part of the public interface.

use crate::data::column::Column;
use crate::data::dataset::Dataset;
use crate::data::encoding::{Encoding, Rotation, Scaling};
use crate::data::schema::{Schema, Task};
use crate::data::table::Table;
use crate::data::target::Target;
use crate::error::Result;
use crate::inference::optimizer_state::OptimizerState;
use crate::inference::schedule::TrainingSchedule;
use crate::numerics::gemm::{Matrix, product, product_transposed};
use crate::rng::{Key, uniform};
use crate::soft::additive::AdditiveLayout;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::Layout;
use crate::variational::config::{NoiseSpec, SoftTreeConfig};
use crate::variational::encoded_rows::{EncodedRows, EncodedSplit, TargetScale};
use crate::variational::objective::SoftTreeObjective;
use crate::variational::options::Prior;
use crate::variational::streams::initial_posterior as streams;
use crate::variational::train::TrainingRun;

/// Trees of a timed step; all have linear leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeTrees {
    /// One tree with the leaf mixing `mixture`.
    One,
    /// One blended tree that is added to an offset.
    Added,
    /// This number of blended trees, trained jointly.
    Together(usize),
}

/// Sizes of a timed step.
#[derive(Debug, Clone, Copy)]
pub struct ProbeShape {
    /// Trees that the step trains.
    pub trees: ProbeTrees,
    /// Number of inputs.
    pub n_inputs: usize,
    /// Number of rows of the minibatch.
    pub batch: usize,
    /// Depth of each tree.
    pub depth: usize,
    /// Rank of the low-rank part of the posterior covariance.
    pub rank: usize,
    /// Number of posterior draws.
    pub n_draws: usize,
}

impl ProbeShape {
    fn stack(&self) -> AdditiveLayout {
        let blend = Layout {
            n_inputs: self.n_inputs,
            depth: self.depth,
            mixing_levels: 0,
            n_channels: 2,
            is_linear: true,
        };
        match self.trees {
            ProbeTrees::One => AdditiveLayout::single(Layout {
                mixing_levels: self.depth,
                ..blend
            }),
            ProbeTrees::Added => AdditiveLayout::on_offset(blend, blend),
            ProbeTrees::Together(n) => AdditiveLayout {
                n_added: n.saturating_sub(1),
                ..AdditiveLayout::single(blend)
            },
        }
    }

    /// Generated rows.
    pub(crate) fn encoded(&self) -> Result<EncodedSplit> {
        let data = generated(*self)?;
        let encoding = Encoding {
            scaling: Scaling::Standard,
            rotation: Rotation::None,
            squares: false,
            max_categories: 1,
        };
        let scale = TargetScale::of(&data, &self.config());
        Ok(EncodedSplit::new(&data, None, scale, encoding))
    }

    fn config(&self) -> SoftTreeConfig {
        SoftTreeConfig {
            depth: Some(self.depth),
            max_depth: usize::MAX,
            leaf: None,
            leaf_mixing: None,
            mixing_levels: None,
            prefers_blend: false,
            homoscedastic_warmup: false,
            beta: 1.0,
            rank: self.rank,
            prior: Prior::Ard,
            prior_scale: 0.5,
            kl_weight: 1.0,
            learning_rate: None,
            batch_size: None,
            n_epochs: None,
            n_draws: None,
            early_stopping: false,
            validation_fraction: 0.1,
            scaling: None,
            rotation: None,
            squares: None,
            max_categories: 1,
            min_scale: None,
            noise: NoiseSpec::Varying,
        }
    }
}

/// A model and its data before a training step.
pub struct StepProbe {
    train: &'static EncodedRows,
    objective: SoftTreeObjective<'static>,
    state: OptimizerState,
    rows: Vec<usize>,
    stack: AdditiveLayout,
    products: StepProducts,
}

impl std::fmt::Debug for StepProbe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepProbe")
            .field("stack", &self.stack)
            .finish_non_exhaustive()
    }
}

impl StepProbe {
    /// Generates data and an initial model.
    ///
    /// # Errors
    /// When the shape has no rows or no inputs.
    pub fn new(shape: ProbeShape) -> Result<Self> {
        let (config, stack) = (shape.config(), shape.stack());
        let mut split = shape.encoded()?;
        split.train.offset = vec![0.0; stack.n_offset() * shape.batch];
        // a probe lives as long as its benchmark: its data and configuration are never freed
        let train: &'static EncodedRows = Box::leak(Box::new(split.train));
        let config: &'static SoftTreeConfig = Box::leak(Box::new(config));
        let key = Key::from_seed(1);
        let weights = key.child(streams::WEIGHTS).uniforms(stack.n_weights());
        let weights = weights.iter().map(|&u| u as f32 - 0.5).collect();
        let training_run = TrainingRun {
            config,
            spec: SoftTreeSpec {
                stack,
                likelihood: split.scale.likelihood,
                beta: config.beta,
            },
            train,
            validation: None,
            start: config.initial_posterior(weights, key.child(streams::FACTORS)),
            schedule: TrainingSchedule {
                n_epochs: 1,
                batch_size: shape.batch,
                n_draws: shape.n_draws,
                learning_rate: 0.001,
            },
            is_warm_start: false,
            freezes_scale: false,
            redraw_offset: None,
        };
        let mut objective = SoftTreeObjective::new(&training_run);
        let state = OptimizerState::new(&mut objective, training_run.posterior_run(), key);
        let n_products = shape.n_draws * stack.n_activations();
        Ok(Self {
            train,
            objective,
            state,
            rows: (0..shape.batch).collect(),
            stack,
            products: StepProducts::new(shape.batch, stack.width(), n_products),
        })
    }

    /// One training step: posterior draws, matrix products, fused kernel, gradients of the
    /// variational parameters, Adam. Returns the log-likelihood.
    pub fn step(&mut self) -> f64 {
        self.state.step(&mut self.objective, &self.rows, 1e-3)
    }

    /// The two matrix products of a step alone.
    pub fn products(&mut self) -> f32 {
        self.products.run(&self.train.inputs)
    }
}

/// The two matrix products of a step: activations, and gradients of the weights.
pub(crate) struct StepProducts {
    n_rows: usize,
    width: usize,
    weights: Vec<f32>,
    activations: Vec<f32>,
    gradients: Vec<f32>,
}

impl StepProducts {
    /// Products with this number of activations for each row.
    pub(crate) fn new(n_rows: usize, width: usize, n_activations: usize) -> Self {
        Self {
            n_rows,
            width,
            weights: vec![0.1; n_activations * width],
            activations: vec![0.1; n_activations * n_rows],
            gradients: vec![0.0; n_activations * width],
        }
    }

    /// Computes both products.
    pub(crate) fn run(&mut self, inputs: &[f32]) -> f32 {
        let inputs = Matrix::new(inputs, self.n_rows, self.width);
        let n_products = self.weights.len() / self.width;
        let weights = Matrix::new(&self.weights, n_products, self.width);
        product_transposed(&mut self.activations, weights, inputs);
        let activations = Matrix::new(&self.activations, n_products, self.n_rows);
        product(&mut self.gradients, activations, inputs);
        self.gradients[0]
    }
}

/// Uniform inputs and targets.
fn generated(shape: ProbeShape) -> Result<Dataset> {
    let mut rng = Key::from_seed(0).rng();
    let mut column = |name: String| {
        Column::numeric(
            name,
            (0..shape.batch)
                .map(|_| 2.0 * uniform(&mut rng) - 1.0)
                .collect(),
        )
    };
    let features = Table::new(
        (0..shape.n_inputs)
            .map(|input| column(format!("x{input}")))
            .collect(),
    )?;
    let target = (0..shape.batch)
        .map(|_| 2.0 * uniform(&mut rng) - 1.0)
        .collect();
    Dataset::new(
        Schema::of(&features, "y", Task::Regression),
        features,
        Target::Numeric(target),
        None,
    )
}
