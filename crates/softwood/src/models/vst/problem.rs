//! A data set made ready for training: encoded inputs, standardised targets, and the law of the leaves.

use crate::data::dataset::{Dataset, Target};
use crate::data::encode::{Encoder, Encoding};
use crate::data::standardise::{Standard, resolution};
use crate::models::vst::VstParams;
use crate::soft::law::Law;

/// Encoded rows: inputs `n_rows x width` with a last column of ones.
#[derive(Debug, Clone)]
pub(super) struct Coded {
    pub(super) inputs: Vec<f32>,
    pub(super) target: Vec<f32>,
    pub(super) weight: Vec<f32>,
    pub(super) total_weight: f64,
}

impl Coded {
    pub(super) fn n_rows(&self) -> usize {
        self.target.len()
    }

    /// Weighted mean over the rows.
    pub(super) fn mean(&self, values: &[f64]) -> f64 {
        let terms = self.weight.iter().zip(values);
        let sum: f64 = terms
            .map(|(&weight, value)| f64::from(weight) * value)
            .sum();
        sum / self.total_weight
    }
}

/// Targets that do not depend on how inputs are encoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) standard: Standard,
    pub(super) law: Law,
    pub(super) n_channels: usize,
}

/// Least leaf scale in units of the target's, where the target is no grid.
const LEAST_SCALE: f64 = 1e-3;

impl Scale {
    /// Standard units of the training target and the law that suits it.
    pub(super) fn of(data: &Dataset, params: &VstParams) -> Self {
        match data.target() {
            Target::Classes(_) => Self {
                standard: Standard {
                    shift: 0.0,
                    scale: 1.0,
                },
                law: Law::Categorical,
                n_channels: data.schema().classes().map_or(2, <[String]>::len),
            },
            Target::Numeric(values) => {
                let standard = Standard::fit(values, data.weights());
                let half_step = resolution(values, data.weights())
                    .map_or(0.0, |step| 0.5 * step / standard.scale);
                let floor = params.min_scale.unwrap_or(LEAST_SCALE.max(half_step));
                let law = match params.noise_scale {
                    Some(sd) => Law::KnownNoise {
                        sd: sd / standard.scale,
                    },
                    None => Law::Normal { floor },
                };
                Self {
                    standard,
                    law,
                    n_channels: 2,
                }
            }
        }
    }

    fn code(&self, data: &Dataset, encoder: &Encoder) -> Coded {
        let target = match data.target() {
            Target::Numeric(values) => values
                .iter()
                .map(|&y| self.standard.apply(y) as f32)
                .collect(),
            Target::Classes(codes) => codes.iter().map(|&code| code as f32).collect(),
        };
        let weight: Vec<f32> = match data.weights() {
            Some(weights) => weights.iter().map(|&weight| weight as f32).collect(),
            None => vec![1.0; data.n_rows()],
        };
        let total_weight = weight.iter().map(|&weight| f64::from(weight)).sum();
        Coded {
            inputs: encoder.encode(&data.features().rows(0..data.n_rows())),
            target,
            weight,
            total_weight,
        }
    }
}

/// Training and held-out rows in one encoding.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub(super) encoder: Encoder,
    pub(super) scale: Scale,
    pub(super) train: Coded,
    /// Empty where nothing is held out.
    pub(super) held_out: Option<Coded>,
}

impl Problem {
    pub(super) fn new(
        data: &Dataset,
        held_out: Option<&Dataset>,
        scale: Scale,
        encoding: Encoding,
    ) -> Self {
        let ones = vec![1.0; data.n_rows()];
        let encoder = Encoder::fit(data.features(), data.weights().unwrap_or(&ones), encoding);
        let train = scale.code(data, &encoder);
        let held_out = held_out.map(|rows| scale.code(rows, &encoder));
        Self {
            encoder,
            scale,
            train,
            held_out,
        }
    }
}
