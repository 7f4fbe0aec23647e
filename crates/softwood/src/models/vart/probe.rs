//! One training step of a `vart` tree and its matrix products alone, for `benches/vst.rs`. The cargo
//! feature `bench` enables this module; it is not part of the public interface.

use crate::error::Result;
use crate::inference::lowrank_gaussian::LowRank;
use crate::inference::optimizer_state::OptimizerState;
use crate::inference::prior::WeightPrior;
use crate::inference::schedule::TrainingSchedule;
use crate::inference::train::PosteriorRun;
use crate::models::vart::groups::groups;
use crate::models::vart::objective::{Temperatures, VartObjective, VartSettings};
use crate::models::vart::spec::VartSpec;
use crate::models::vart::structure_kl::SplitPrior;
use crate::rng::Key;
use crate::soft::general_layout::LeafShape;
use crate::soft::layout::TreeLayout;
use crate::soft::stopping_tree::StoppingTree;
use crate::soft::stopping_weights::NodeShape;
use crate::variational::encoded_rows::EncodedRows;
use crate::variational::options::Prior;
use crate::variational::probe::{ProbeShape, StepProducts};

/// A complete tree whose nodes may stop, and its data, before a training step.
pub struct StructureStepProbe {
    train: &'static EncodedRows,
    objective: VartObjective<'static>,
    state: OptimizerState,
    rows: Vec<usize>,
    products: StepProducts,
}

impl std::fmt::Debug for StructureStepProbe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StructureStepProbe").finish_non_exhaustive()
    }
}

impl StructureStepProbe {
    /// Generates data and an initial model whose nodes split with the probability of this logit. The
    /// trees of the shape are not used: there is one, with the leaf mixing `blend`.
    ///
    /// # Errors
    /// When the shape has no rows or no inputs.
    pub fn new(shape: ProbeShape, logit: f32) -> Result<Self> {
        let split = shape.encoded()?;
        let (tree, _) = StoppingTree::of_heap(|node| node + 1 < 1 << shape.depth);
        let spec = VartSpec {
            added: tree.clone(),
            first: tree,
            n_added: 0,
            shape: NodeShape {
                leaf: LeafShape {
                    n_inputs: shape.n_inputs,
                    n_channels: 2,
                    is_linear: true,
                },
                has_constant_scale: false,
            },
            mixing_levels: 0,
            likelihood: split.scale.likelihood,
            beta: 1.0,
        };
        // a probe lives as long as its benchmark: its data are never freed
        let train: &'static EncodedRows = Box::leak(Box::new(split.train));
        let key = Key::from_seed(1);
        let weights = key.child(1).uniforms(spec.n_weights());
        let weights = weights.iter().map(|&u| u as f32 - 0.5).collect();
        let start = LowRank::initial(weights, shape.rank, 0.5, key.child(2));
        let layout = spec.active(|_| true).kernel.stack.first;
        let products = StepProducts::new(
            shape.batch,
            layout.width(),
            shape.n_draws * layout.n_activations(),
        );
        let temperature = 0.1;
        let settings = VartSettings {
            logits: vec![logit; spec.n_logits()],
            prior: SplitPrior {
                base: 0.95,
                power: 1.0,
            },
            temperatures: Temperatures {
                first: temperature,
                last: temperature,
            },
            n_epochs: 1,
            batch_size: shape.batch,
            n_draws: shape.n_draws,
            split_rate: 1.0,
            has_relaxed_kl: false,
            spec: spec.clone(),
        };
        let mut objective = VartObjective::new(settings, train, None, key.child(3));
        let run = PosteriorRun {
            start: start.with_blocks(spec.block_ends()),
            prior: WeightPrior {
                scale: 0.5,
                groups: groups(&spec, Prior::Ard, 0.5),
            },
            kl_weight: 1.0,
            schedule: TrainingSchedule {
                n_epochs: 1,
                batch_size: shape.batch,
                n_draws: shape.n_draws,
                learning_rate: 0.001,
            },
            early_stopping: false,
            is_warm_start: false,
            patience: None,
        };
        Ok(Self {
            state: OptimizerState::new(&mut objective, run, key),
            objective,
            train,
            rows: (0..shape.batch).collect(),
            products,
        })
    }

    /// One training step with a learning rate of zero. Returns the log-likelihood.
    pub fn step(&mut self) -> f64 {
        self.state.step(&mut self.objective, &self.rows, 0.0)
    }

    /// The two matrix products of a step on all nodes alone.
    pub fn products(&mut self) -> f32 {
        self.products.run(&self.train.inputs)
    }
}
