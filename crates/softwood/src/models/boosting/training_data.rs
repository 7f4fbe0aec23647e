//! The rows of a fit: dedup, standardised, in bins.

use crate::boosting::inputs::BinnedSample;
use crate::data::binning::binned::Binned;
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
use crate::trees::histogram::candidate::ColumnInfo;
use crate::trees::monotone::directions::orders;

/// Rows in bins, ready for boosting.
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
        standard: &TargetUnits,
    ) -> Self {
        let target = standard.encode(data.target(), rows.numbers.iter().map(|&row| row as usize));
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

/// A dataset to be fitted, and what its numbers are measured in.
#[derive(Debug)]
pub(super) struct TrainingData<'a> {
    pub(super) data: &'a Dataset,
    pub(super) dedup: Deduplicated,
    pub(super) standard: TargetUnits,
    pub(super) likelihood: BoostingLikelihood,
    pub(super) targets: EncodingTargets,
    pub(super) classes: ClassWeights,
    /// Direction of each column that the answer must follow, 0 for none.
    orders: Vec<i8>,
    max_bins: usize,
}

impl<'a> TrainingData<'a> {
    /// `known`: what the numbers are measured in, where a fitted model says so.
    ///
    /// # Errors
    /// When orders or class weights do not fit the data.
    pub(super) fn new(
        config: &BoostingConfig<'_>,
        data: &'a Dataset,
        known: Option<(TargetUnits, BoostingLikelihood)>,
        key: Key,
    ) -> Result<Self> {
        let orders = orders(config.monotone, data)?;
        let dedup = Deduplicated::shuffled(data, key);
        let classes = ClassWeights::new(config.class_weight, data, &dedup)?;
        let dedup = classes.weigh(data, dedup);
        let (standard, likelihood) = known.unwrap_or_else(|| {
            let TargetStandard { units, floor } =
                TargetStandard::of_rows(data, &dedup.rows, &dedup.weights);
            (units, likelihood(config, data, floor))
        });
        let targets = EncodingTargets::of(data, &standard);
        Ok(Self {
            data,
            dedup,
            standard,
            likelihood,
            targets,
            classes,
            orders,
            max_bins: config.max_bins,
        })
    }

    /// What a search must know of the columns of a pipeline.
    pub(super) fn columns(&self, pipeline: &FeaturePipeline, rows: &PreparedRows) -> ColumnInfo {
        let mut orders = self.orders.clone();
        orders.resize(rows.binned.n_columns(), 0);
        ColumnInfo::new(&pipeline.cuts, &rows.binned).ordered(orders)
    }

    pub(super) fn n_rows(&self) -> usize {
        self.dedup.rows.len()
    }

    /// A run of the dedup rows. They are shuffled: a leading part is a random sample.
    pub(super) fn rows(&self, range: std::ops::Range<usize>) -> RowSubset<'_> {
        RowSubset {
            numbers: &self.dedup.rows[range.clone()],
            weights: &self.dedup.weights[range],
        }
    }

    /// Rows to train on, and the pipeline that they make.
    pub(super) fn train(
        &self,
        rows: RowSubset<'_>,
        plan: &CategoryPlan,
        pool: &Pool,
    ) -> (FeaturePipeline, PreparedRows) {
        let how = (plan, &self.targets);
        let (pipeline, binned) =
            FeaturePipeline::fit(self.data.features(), rows, how, self.max_bins, pool);
        let prepared = PreparedRows::new(self.data, rows, binned, &self.standard);
        (pipeline, prepared)
    }

    /// Rows to train on in the bins of a fitted model, and the pipeline that they make.
    pub(super) fn train_on(
        &self,
        rows: RowSubset<'_>,
        pipeline: &FeaturePipeline,
        pool: &Pool,
    ) -> (FeaturePipeline, PreparedRows) {
        let (pipeline, binned) = pipeline.renewed(self.data.features(), rows, &self.targets, pool);
        let prepared = PreparedRows::new(self.data, rows, binned, &self.standard);
        (pipeline, prepared)
    }

    /// Rows to be judged by.
    pub(super) fn judge(
        &self,
        data: &Dataset,
        rows: RowSubset<'_>,
        pipeline: &FeaturePipeline,
    ) -> PreparedRows {
        let binned = pipeline.bin_rows(data.features(), rows.numbers);
        PreparedRows::new(data, rows, binned, &self.standard)
    }
}

fn likelihood(config: &BoostingConfig<'_>, data: &Dataset, floor: f64) -> BoostingLikelihood {
    match data.schema().classes().map(<[String]>::len) {
        Some(2) => BoostingLikelihood::Binary,
        Some(classes) => BoostingLikelihood::Multiclass { classes },
        None if config.is_squared() => BoostingLikelihood::Squared { sd: 1.0 },
        None => BoostingLikelihood::Normal {
            floor: config.min_scale.unwrap_or(floor),
        },
    }
}
