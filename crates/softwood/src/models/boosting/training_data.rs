//! The rows of a fit: deduplicated, in bins, with standardized targets.

use crate::boosting::inputs::BinnedSample;
use crate::data::binning::binned::Binned;
use crate::data::categories::target_encoding::EncodingSample;
use crate::data::dataset::Dataset;
use crate::data::dedup::Deduplicated;
use crate::data::target::{TargetStandard, TargetUnits};
use crate::error::Result;
use crate::models::boosting::class_weights::ClassWeights;
use crate::models::boosting::config::BoostingConfig;
use crate::models::boosting::features::{
    CategoryPlan, EncodingTargets, FeaturePipeline, RowSubset,
};
use crate::models::boosting::likelihood::BoostingLikelihood;
use crate::par::Pool;
use crate::rng::Key;
use crate::stop;
use crate::trees::histogram::candidate::ColumnInfo;
use crate::trees::monotone::directions::orders;

/// Largest number of bins of a column in the comparison of candidates for three classes or more.
const MAX_CANDIDATE_BINS: usize = 64;

/// Rows in bins with their targets and weights.
#[derive(Debug)]
pub(super) struct PreparedRows {
    pub(super) binned: Binned,
    target: Vec<f32>,
    weight: Vec<f32>,
}

impl PreparedRows {
    pub(super) fn new(
        data: &Dataset,
        rows: RowSubset<'_>,
        binned: Binned,
        units: &TargetUnits,
    ) -> Self {
        let target = units.encode(data.target(), rows.indices.iter().map(|&row| row as usize));
        Self {
            binned,
            target,
            weight: rows.weights.iter().map(|&weight| weight as f32).collect(),
        }
    }

    pub(super) fn sample(&self) -> BinnedSample<'_> {
        BinnedSample {
            binned: &self.binned,
            target: &self.target,
            weight: &self.weight,
        }
    }

    pub(super) fn total_weight(&self) -> f64 {
        self.weight.iter().map(|&weight| f64::from(weight)).sum()
    }
}

/// Training rows of a dataset, units of the target and the likelihood.
#[derive(Debug)]
pub(super) struct TrainingData<'a> {
    pub(super) data: &'a Dataset,
    pub(super) dedup: Deduplicated,
    pub(super) units: TargetUnits,
    pub(super) likelihood: BoostingLikelihood,
    pub(super) encoding_targets: EncodingTargets,
    pub(super) class_weights: ClassWeights,
    /// Monotonic constraint of each column: 1, -1, or 0 for none.
    directions: Vec<i8>,
    max_bins: usize,
}

/// Target units and likelihood of the fitted model that a warm start continues.
#[derive(Debug, Clone, Copy)]
pub(super) struct FittedUnits {
    pub(super) units: TargetUnits,
    pub(super) likelihood: BoostingLikelihood,
}

impl<'a> TrainingData<'a> {
    /// Deduplicates and shuffles the rows; `fitted` has the units of a warm start.
    ///
    /// # Errors
    /// When monotonic constraints or class weights do not fit the data.
    pub(super) fn new(
        config: &BoostingConfig,
        data: &'a Dataset,
        fitted: Option<FittedUnits>,
        key: Key,
    ) -> Result<Self> {
        let directions = orders(config.monotonic_cst.as_ref(), data)?;
        let dedup = Deduplicated::shuffled(data, key);
        let class_weights = ClassWeights::new(config.class_weight.as_ref(), data, &dedup)?;
        let dedup = class_weights.weigh(data, dedup);
        let FittedUnits { units, likelihood } = fitted.unwrap_or_else(|| {
            let TargetStandard { units, floor } =
                TargetStandard::of_rows(data, &dedup.rows, &dedup.weights);
            FittedUnits {
                units,
                likelihood: likelihood(config, data, floor),
            }
        });
        let encoding_targets = EncodingTargets::of(data, &units);
        stop::check()?;
        Ok(Self {
            data,
            dedup,
            units,
            likelihood,
            encoding_targets,
            class_weights,
            directions,
            max_bins: config.max_bins,
        })
    }

    /// Standard deviation of the target; `None` for classification.
    pub(super) fn target_sd(&self) -> Option<f64> {
        let is_regression = self.data.schema().classes().is_none();
        is_regression.then_some(self.units.scale)
    }

    /// The columns of a pipeline as the split search needs them.
    pub(super) fn columns(&self, pipeline: &FeaturePipeline, rows: &PreparedRows) -> ColumnInfo {
        let mut directions = self.directions.clone();
        directions.resize(rows.binned.n_columns(), 0);
        ColumnInfo::new(&pipeline.cuts, &rows.binned)
            .ordered(directions)
            .with_encodings(pipeline.encodings_by_class(self.data.features().columns().len()))
    }

    pub(super) fn n_rows(&self) -> usize {
        self.dedup.rows.len()
    }

    /// A range of the deduplicated rows. They are shuffled, so a leading range is a random sample.
    pub(super) fn rows(&self, range: std::ops::Range<usize>) -> RowSubset<'_> {
        RowSubset {
            indices: &self.dedup.rows[range.clone()],
            weights: &self.dedup.weights[range],
        }
    }

    /// Features, weights and encoding targets of some rows.
    pub(super) fn encoding_sample<'b>(&'b self, rows: RowSubset<'b>) -> EncodingSample<'b> {
        self.encoding_targets.sample(self.data.features(), rows)
    }

    /// Fits the feature pipeline to training rows; returns it with the prepared rows.
    pub(super) fn fit_pipeline(
        &self,
        rows: RowSubset<'_>,
        plan: &CategoryPlan,
        pool: &Pool,
    ) -> (FeaturePipeline, PreparedRows) {
        self.fit_binned(rows, plan, self.max_bins, pool)
    }

    /// As [`Self::fit_pipeline`], for the comparison of candidates. With three classes or more,
    /// whose rounds are expensive, candidates have fewer bins than the model.
    pub(super) fn fit_candidate_pipeline(
        &self,
        rows: RowSubset<'_>,
        plan: &CategoryPlan,
        pool: &Pool,
    ) -> (FeaturePipeline, PreparedRows) {
        let max_bins = match self.likelihood {
            BoostingLikelihood::Multiclass { .. } => self.max_bins.min(MAX_CANDIDATE_BINS),
            _ => self.max_bins,
        };
        self.fit_binned(rows, plan, max_bins, pool)
    }

    fn fit_binned(
        &self,
        rows: RowSubset<'_>,
        plan: &CategoryPlan,
        max_bins: usize,
        pool: &Pool,
    ) -> (FeaturePipeline, PreparedRows) {
        let sample = self.encoding_sample(rows);
        let (pipeline, binned) = FeaturePipeline::fit(&sample, plan, max_bins, pool);
        let prepared = PreparedRows::new(self.data, rows, binned, &self.units);
        (pipeline, prepared)
    }

    /// As [`Self::fit_pipeline`], with the bins of a fitted pipeline.
    pub(super) fn refit_pipeline(
        &self,
        rows: RowSubset<'_>,
        pipeline: &FeaturePipeline,
        pool: &Pool,
    ) -> (FeaturePipeline, PreparedRows) {
        let (pipeline, binned) = pipeline.refit(&self.encoding_sample(rows), pool);
        let prepared = PreparedRows::new(self.data, rows, binned, &self.units);
        (pipeline, prepared)
    }

    /// Prepares the validation rows, which may come from another dataset.
    pub(super) fn prepare_validation(
        &self,
        data: &Dataset,
        rows: RowSubset<'_>,
        pipeline: &FeaturePipeline,
    ) -> PreparedRows {
        let binned = pipeline.bin_rows(data.features(), rows.indices);
        PreparedRows::new(data, rows, binned, &self.units)
    }
}

fn likelihood(config: &BoostingConfig, data: &Dataset, floor: f64) -> BoostingLikelihood {
    match data.schema().classes().map(<[String]>::len) {
        Some(2) => BoostingLikelihood::Binary,
        Some(classes) => BoostingLikelihood::Multiclass { classes },
        None if config.has_constant_noise() => BoostingLikelihood::Squared { sd: 1.0 },
        None => BoostingLikelihood::Normal {
            floor: config.min_scale.unwrap_or(floor),
        },
    }
}
