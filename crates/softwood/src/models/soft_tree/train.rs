//! Training: deduplicate rows, split off a validation set, choose the encoding, grow the trees, and
//! train the posterior over their weights.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::data::bootstrap::bootstrap_weights;
use crate::data::dataset::Dataset;
use crate::data::encoding::Encoding;
use crate::data::schema::Schema;
use crate::data::target::Target;
use crate::error::Result;
use crate::fit::{Fit, Run};
use crate::inference::schedule::TrainingSchedule;
use crate::model::Training;
use crate::models::soft_tree::encoding_choice::EncodingChoice;
use crate::models::soft_tree::fitted::SoftTree;
use crate::models::soft_tree::growth::{Grown, GrowthOptions, TreeGrowth};
use crate::models::soft_tree::growth_rows::GrowthRows;
use crate::models::soft_tree::online::PublishedSettings;
use crate::models::soft_tree::params::SoftTreeParams;
use crate::models::soft_tree::posterior::FittedTree;
use crate::models::soft_tree::published::PublishedGrowth;
use crate::models::soft_tree::streams;
use crate::models::soft_tree::warm_start::warm_start;
use crate::params::Checked;
use crate::rng::Key;
use crate::soft::general_layout::LeafShape;
use crate::soft::layout::TreeLayout;
use crate::stop;
use crate::store::record::Record;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::{EncodedRows, EncodedSplit, TargetScale};
use crate::variational::ensemble::{ChainRows, FittedEnsemble};
use crate::variational::fit_rows::FitRows;
use crate::variational::options::PosteriorMethod;
use crate::variational::streams::run as run_streams;

impl Fit for SoftTreeParams {
    type Fitted = SoftTree;
    const FAMILY: &'static str = "soft-tree";
    const SUPPORTS_WARM_START: bool = true;
    const WARM_START_IS_SHORT: bool = true;

    fn extrapolates(&self) -> bool {
        self.extrapolation
    }

    fn restore(record: &Record) -> Result<SoftTree> {
        SoftTree::from_record(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<SoftTree> {
        let deduplicated = data.deduplicated();
        stop::check()?;
        if let Some(fitted) = run.fitted(Self::FAMILY)? {
            return warm_start(params, fitted, &deduplicated, run);
        }
        let config = params.config(deduplicated.target(), 1);
        let split_key = run.key.child(run_streams::VALIDATION_SPLIT);
        let rows = FitRows::new(&config, &deduplicated, run, split_key);
        stop::check()?;
        let fit = SoftTreeFit {
            params,
            run,
            scale: TargetScale::of(rows.train(), &config),
            rows: &rows,
            schema: data.schema(),
        };
        let EncodingChoice { split, stopped } = fit.choose_encoding()?;
        if let Some(grown) = stopped {
            let tree = fit.stopped_fit(&split, &split.train, &grown, run.key);
            return Ok(fit.assemble(vec![tree]));
        }
        let is_stopped = AtomicBool::new(false);
        let trees = run.pool.map(params.n_trees(), |at| {
            // a stopped fit keeps the trees that it has
            if at > 0 && is_stopped.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let tree = fit.fit_tree(&split, at)?;
            is_stopped.fetch_or(tree.is_stopped, Ordering::Relaxed);
            Ok(Some(tree))
        });
        let trees: Result<Vec<_>> = trees.into_iter().filter_map(Result::transpose).collect();
        let mut model = fit.assemble(trees?);
        if !params.is_ensemble() {
            let (target, schedule) = (rows.train().target(), config.schedule(rows.train()));
            let method = params.posterior_method();
            sample(&mut model, target, &split.train, method, schedule, run)?;
        }
        if let (Some(validation), true) = (rows.validation(), params.calibrate_noise) {
            model.ensemble.calibrate(validation);
        }
        Ok(model)
    }
}

/// Replaces the draws of the trees by those of chains, if they are worth it.
///
/// # Errors
/// When the observer discards the fit or the work is cancelled.
pub(super) fn sample(
    model: &mut SoftTree,
    target: &Target,
    train: &EncodedRows,
    method: Option<PosteriorMethod>,
    schedule: TrainingSchedule,
    run: &Run<'_>,
) -> Result<()> {
    let fits = model.ensemble.fits.iter();
    let configs = fits.map(|fit| (model.params).config(target, fit.spec.stack.first.n_leaves()));
    let configs: Vec<SoftTreeConfig> = configs.collect();
    let chains = configs.iter().map(|config| ChainRows {
        config,
        rows: train,
    });
    let chains: Vec<ChainRows<'_>> = chains.collect();
    model.ensemble.sample(&chains, method, schedule, run)
}

/// The model of some trees.
pub(super) fn assemble(
    params: &SoftTreeParams,
    trees: Vec<FittedTree>,
    scale: &TargetScale,
    schema: &Schema,
    run: &Run<'_>,
) -> SoftTree {
    let training = Training {
        chosen: describe(&trees),
        target_sd: scale.target_sd(),
        curve: trees[0].curve.clone(),
        is_stopped: trees.iter().any(|tree| tree.is_stopped),
        ..Training::default()
    };
    let summaries = trees.iter().map(|tree| tree.summary.clone()).collect();
    let n_members = if params.is_ensemble() {
        trees.len()
    } else {
        params.n_members
    };
    let posteriors = trees.into_iter().map(|tree| tree.posterior);
    SoftTree {
        params: params.clone(),
        n_members,
        summaries,
        ensemble: FittedEnsemble::new(
            schema.clone(),
            training,
            scale.standard,
            posteriors.collect(),
            n_members,
            run.key.child(run_streams::POSTERIOR_DRAWS),
        )
        .extrapolating(run.extrapolation),
    }
}

/// Parameters and rows of a fit.
pub(super) struct SoftTreeFit<'a> {
    pub(super) params: &'a SoftTreeParams,
    pub(super) run: &'a Run<'a>,
    pub(super) rows: &'a FitRows<'a>,
    pub(super) scale: TargetScale,
    pub(super) schema: &'a Schema,
}

impl SoftTreeFit<'_> {
    pub(super) fn assemble(&self, trees: Vec<FittedTree>) -> SoftTree {
        assemble(self.params, trees, &self.scale, self.schema, self.run)
    }

    pub(super) fn encode(&self, encoding: Encoding) -> EncodedSplit {
        let (train, validation) = (self.rows.train(), self.rows.validation());
        EncodedSplit::new(train, validation, self.scale, encoding)
    }

    /// The rows of a growing tree: its leaves have the mean (the noise is constant while the tree
    /// grows), or one logit per class.
    pub(super) fn growth_rows<'b>(
        &self,
        split: &'b EncodedSplit,
        train: &'b EncodedRows,
    ) -> GrowthRows<'b> {
        let is_classification = matches!(self.rows.train().target(), Target::Classes(_));
        GrowthRows {
            train,
            validation: split.validation.as_ref(),
            shape: LeafShape {
                n_inputs: split.encoder.n_inputs(),
                n_channels: if is_classification {
                    self.scale.n_channels
                } else {
                    1
                },
                is_linear: self.params.is_linear(),
            },
            is_classification,
        }
    }

    pub(super) fn grow(
        &self,
        split: &EncodedSplit,
        train: &EncodedRows,
        options: GrowthOptions,
        key: Key,
    ) -> Result<Grown> {
        let rows = self.growth_rows(split, train);
        let Some(settings) = PublishedSettings::of(self.params.variant) else {
            return TreeGrowth::new(rows, options, self.run, key).finish();
        };
        let published = PublishedGrowth {
            rows,
            settings,
            options,
            run: self.run,
            key,
        };
        let grown = published.finish()?;
        if options.refines || options.prunes {
            TreeGrowth::new(rows, options, self.run, key).refine_and_prune(grown)
        } else {
            Ok(grown)
        }
    }

    /// Grows tree `at` and trains its weights. Several trees grow on bootstrap samples.
    fn fit_tree(&self, split: &EncodedSplit, at: usize) -> Result<FittedTree> {
        let key = self.run.key.child(run_streams::FITS).child(at as u64);
        let sample = (self.params.n_trees() > 1).then(|| {
            let width = split.encoder.n_inputs() + 1;
            bootstrap(&split.train, width, key.child(streams::fit::BOOTSTRAP))
        });
        let sample = sample.as_ref().unwrap_or(&split.train);
        let options = self.params.growth_options();
        let grown = self.grow(split, sample, options, key.child(streams::fit::GROWTH))?;
        if grown.is_stopped {
            Ok(self.stopped_fit(split, sample, &grown, key))
        } else if self.params.is_ensemble() {
            self.point_fit(split, sample, &grown, key)
        } else {
            self.variational_fit(split, &grown, at, key)
        }
    }
}

/// A bootstrap sample of the rows: those that are drawn, with their bootstrap weights.
fn bootstrap(rows: &EncodedRows, width: usize, key: Key) -> EncodedRows {
    let weights = bootstrap_weights(&rows.weight, key);
    let drawn: Vec<usize> = (0..rows.n_rows())
        .filter(|&row| weights[row] > 0.0)
        .collect();
    let inputs = drawn
        .iter()
        .flat_map(|&row| &rows.inputs[row * width..(row + 1) * width]);
    let weight: Vec<f32> = drawn.iter().map(|&row| weights[row]).collect();
    EncodedRows {
        inputs: Arc::new(inputs.copied().collect()),
        target: drawn.iter().map(|&row| rows.target[row]).collect(),
        total_weight: weight.iter().map(|&weight| f64::from(weight)).sum(),
        weight,
        offset: Vec::new(),
    }
}

/// Description of the fitted trees for users.
fn describe(trees: &[FittedTree]) -> String {
    let leaves = trees.iter().map(|tree| {
        let layout = &tree.posterior.spec.stack.first;
        let kind = match (layout.is_linear(), layout.n_leaves()) {
            (true, 1) => "linear leaf",
            (true, _) => "linear leaves",
            (false, 1) => "constant leaf",
            (false, _) => "constant leaves",
        };
        format!("{} {kind}", layout.n_leaves())
    });
    leaves.collect::<Vec<_>>().join("; ")
}
