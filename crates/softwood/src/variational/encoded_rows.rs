//! A dataset that is encoded for training: dense inputs, standardised targets, and the likelihood
//! of the leaves.

use std::sync::Arc;

use crate::data::dataset::Dataset;
use crate::data::encoding::{Encoder, Encoding};
use crate::data::target::{Target, TargetStandard, TargetUnits};
use crate::likelihood::soft::SoftLikelihood;
use crate::variational::config::{NoiseSpec, SoftTreeConfig};

/// Encoded rows: inputs `n_rows x width` with a last column of ones.
#[derive(Debug, Clone)]
pub(crate) struct EncodedRows {
    /// Shared by the copies of these rows with other offsets.
    pub(crate) inputs: Arc<Vec<f32>>,
    pub(crate) target: Vec<f32>,
    pub(crate) weight: Vec<f32>,
    pub(crate) total_weight: f64,
    /// Output of the earlier trees for each row, row by row; empty without earlier trees.
    pub(crate) offset: Vec<f32>,
}

impl EncodedRows {
    pub(crate) fn n_rows(&self) -> usize {
        self.target.len()
    }

    /// Size in memory, without the offset.
    fn n_bytes(&self) -> usize {
        (self.inputs.len() + self.target.len() + self.weight.len()) * size_of::<f32>()
    }

    /// Weighted mean of one value per row.
    pub(crate) fn mean(&self, values: &[f64]) -> f64 {
        let terms = self.weight.iter().zip(values);
        let sum: f64 = terms
            .map(|(&weight, value)| f64::from(weight) * value)
            .sum();
        sum / self.total_weight
    }

    /// By how much the scores of the rows rise, in the mean. A row with a weight counts as that many
    /// rows, but at least as one.
    pub(crate) fn mean_gain(&self, before: &[f64], after: &[f64]) -> MeanGain {
        let gains: Vec<f64> = after.iter().zip(before).map(|(a, b)| a - b).collect();
        let mean = self.mean(&gains);
        let squares: Vec<f64> = gains.iter().map(|gain| (gain - mean).powi(2)).collect();
        let n_rows = self.total_weight.max(self.n_rows() as f64);
        MeanGain {
            mean,
            standard_error: (self.mean(&squares) / n_rows).sqrt(),
        }
    }
}

/// Mean difference of two scores of the same rows, and its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MeanGain {
    pub(crate) mean: f64,
    pub(crate) standard_error: f64,
}

/// Standardisation of the target and likelihood of the leaves; both are independent of the encoding
/// of the inputs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetScale {
    pub(crate) standard: TargetUnits,
    pub(crate) likelihood: SoftLikelihood,
    /// Channels per leaf.
    pub(crate) n_channels: usize,
}

impl TargetScale {
    /// Standardises the target of the training rows and chooses the likelihood.
    pub(crate) fn of(data: &Dataset, config: &SoftTreeConfig) -> Self {
        match data.target() {
            Target::Classes(_) => Self {
                standard: TargetStandard::CLASSES.units,
                likelihood: SoftLikelihood::Categorical,
                n_channels: data.schema().classes().map_or(2, <[String]>::len),
            },
            Target::Numeric(values) => {
                let TargetStandard { units, floor } = TargetStandard::of(values, data.weights());
                let floor = config.min_scale.unwrap_or(floor);
                let (likelihood, n_channels) = match config.noise {
                    NoiseSpec::Known(sd) => {
                        let sd = sd / units.scale;
                        (SoftLikelihood::KnownNoise { sd }, 2)
                    }
                    NoiseSpec::Constant { .. } => (SoftLikelihood::KnownNoise { sd: 1.0 }, 1),
                    NoiseSpec::Varying => (SoftLikelihood::Normal { floor }, 2),
                };
                Self {
                    standard: units,
                    likelihood,
                    n_channels,
                }
            }
        }
    }

    /// Standard deviation of the training target; `None` for classification.
    pub(crate) fn target_sd(&self) -> Option<f64> {
        (self.likelihood != SoftLikelihood::Categorical).then_some(self.standard.scale)
    }

    fn encode(&self, data: &Dataset, encoder: &Encoder) -> EncodedRows {
        let target = self.standard.encode(data.target(), 0..data.n_rows());
        let weight: Vec<f32> = match data.weights() {
            Some(weights) => weights.iter().map(|&weight| weight as f32).collect(),
            None => vec![1.0; data.n_rows()],
        };
        let total_weight = weight.iter().map(|&weight| f64::from(weight)).sum();
        EncodedRows {
            inputs: Arc::new(encoder.encode(&data.features().rows(0..data.n_rows()))),
            target,
            weight,
            total_weight,
            offset: Vec::new(),
        }
    }
}

/// Training and validation rows in one encoding.
#[derive(Debug, Clone)]
pub(crate) struct EncodedSplit {
    pub(crate) encoder: Encoder,
    pub(crate) scale: TargetScale,
    pub(crate) train: EncodedRows,
    pub(crate) validation: Option<EncodedRows>,
}

impl EncodedSplit {
    /// Size of the rows in memory.
    pub(crate) fn n_bytes(&self) -> usize {
        let validation = self.validation.as_ref();
        self.train.n_bytes() + validation.map_or(0, EncodedRows::n_bytes)
    }

    /// Encodes rows with an encoder that is fitted to the training rows.
    pub(crate) fn new(
        data: &Dataset,
        validation: Option<&Dataset>,
        scale: TargetScale,
        encoding: Encoding,
    ) -> Self {
        let ones = vec![1.0; data.n_rows()];
        let encoder = Encoder::fit(data.features(), data.weights().unwrap_or(&ones), encoding);
        Self::encoded(data, validation, scale, encoder)
    }

    /// Encodes rows with a fitted encoder.
    pub(crate) fn encoded(
        data: &Dataset,
        validation: Option<&Dataset>,
        scale: TargetScale,
        mut encoder: Encoder,
    ) -> Self {
        encoder.see_missing_cells(data.features());
        let train = scale.encode(data, &encoder);
        let validation = validation.map(|rows| scale.encode(rows, &encoder));
        Self {
            encoder,
            scale,
            train,
            validation,
        }
    }
}
