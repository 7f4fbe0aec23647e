//! One training step and the bare matrix products inside it, for the benches; not part of the library's interface.

use crate::data::column::Column;
use crate::data::dataset::{Dataset, Target};
use crate::data::encode::{Encoding, Rotation, Scaling};
use crate::data::schema::{Schema, Task};
use crate::data::table::Table;
use crate::error::Result;
use crate::models::vst::params::VstParams;
use crate::models::vst::problem::{Problem, Scale};
use crate::models::vst::train::{Plan, State};
use crate::numerics::gemm::{Matrix, product, product_transposed};
use crate::rng::{Key, uniform};
use crate::soft::layout::Layout;

/// What is timed.
#[derive(Debug, Clone, Copy)]
pub struct ProbeShape {
    /// Inputs.
    pub n_inputs: usize,
    /// Rows per step.
    pub batch: usize,
    /// Levels of the tree, read as a mixture with linear leaves.
    pub depth: usize,
    /// Rank of the posterior.
    pub rank: usize,
    /// Draws per step.
    pub n_draws: usize,
}

/// A model ready for one more step.
pub struct StepProbe {
    problem: Problem,
    state: State,
    rows: Vec<usize>,
    layout: Layout,
    weights: Vec<f32>,
    activations: Vec<f32>,
    gradients: Vec<f32>,
}

impl std::fmt::Debug for StepProbe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepProbe")
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

impl StepProbe {
    /// Makes data of the shape and a model at its start.
    ///
    /// # Errors
    /// When the shape makes no table.
    pub fn new(shape: ProbeShape) -> Result<Self> {
        let data = generated(shape)?;
        let params = VstParams {
            rank: shape.rank,
            ..VstParams::default()
        };
        let encoding = Encoding {
            scaling: Scaling::Standard,
            rotation: Rotation::None,
            squares: false,
            max_categories: 1,
        };
        let problem = Problem::new(&data, None, Scale::of(&data, &params), encoding);
        let plan = Plan {
            depth: shape.depth,
            mixing_levels: shape.depth,
            is_linear: true,
            n_epochs: 1,
            batch_size: shape.batch,
            n_draws: shape.n_draws,
            learning_rate: 0.001,
        };
        let state = State::new(&problem, &params, &plan, Key::from_seed(1));
        let layout = state.layout();
        let n_products = shape.n_draws * layout.n_activations();
        Ok(Self {
            problem,
            state,
            rows: (0..shape.batch).collect(),
            layout,
            weights: vec![0.1; n_products * layout.width()],
            activations: vec![0.1; n_products * shape.batch],
            gradients: vec![0.0; n_products * layout.width()],
        })
    }

    /// One training step: draws, products, fused pass, products, posterior, optimiser.
    pub fn step(&mut self) -> f64 {
        self.state.step(&self.problem, &self.rows, 1e-3)
    }

    /// The two products of a step and nothing else.
    pub fn products(&mut self) -> f32 {
        let (n_rows, width) = (self.rows.len(), self.layout.width());
        let inputs = Matrix::new(&self.problem.train.inputs, n_rows, width);
        let n_products = self.weights.len() / width;
        product_transposed(
            &mut self.activations,
            Matrix::new(&self.weights, n_products, width),
            inputs,
        );
        product(
            &mut self.gradients,
            Matrix::new(&self.activations, n_products, n_rows),
            inputs,
        );
        self.gradients[0]
    }
}

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
