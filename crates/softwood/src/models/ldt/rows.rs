//! Encoded rows with their targets and weights.

use crate::data::dataset::Dataset;
use crate::data::encoding::Encoder;
use crate::data::target::TargetUnits;
use crate::trees::cart::CartTarget;

/// Standardised targets are clamped to this magnitude: those of a validation set may be anything.
const MAX_TARGET: f32 = 1e15;

/// Encoded rows of a dataset with their targets and weights.
#[derive(Debug)]
pub(super) struct InputRows {
    /// Rows x (`n_inputs` + 1); the last input is one.
    values: Vec<f32>,
    pub(super) n_inputs: usize,
    /// Standardised numbers, or class codes.
    pub(super) target: Vec<f32>,
    pub(super) weight: Vec<f64>,
    pub(super) kind: CartTarget,
}

impl InputRows {
    pub(super) fn new(
        data: &Dataset,
        encoder: &Encoder,
        units: &TargetUnits,
        kind: CartTarget,
    ) -> Self {
        let n_rows = data.n_rows();
        let mut target = units.encode(data.target(), 0..n_rows);
        if kind == CartTarget::Number {
            for target in &mut target {
                *target = target.clamp(-MAX_TARGET, MAX_TARGET);
            }
        }
        Self {
            values: encoder.encode(&data.features().rows(0..n_rows)),
            n_inputs: encoder.n_inputs(),
            target,
            weight: data
                .weights()
                .map_or_else(|| vec![1.0; n_rows], <[f64]>::to_vec),
            kind,
        }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.target.len()
    }

    /// Inputs of a row, without the one for the bias.
    pub(super) fn row(&self, row: usize) -> &[f32] {
        let start = row * (self.n_inputs + 1);
        &self.values[start..start + self.n_inputs]
    }

    /// Statistics of some rows.
    pub(super) fn stats(&self, rows: &[u32]) -> Vec<f64> {
        let mut stats = vec![0.0; self.kind.n_stats()];
        for row in rows.iter().map(|&row| row as usize) {
            self.kind
                .push(&mut stats, self.target[row], self.weight[row]);
        }
        stats
    }

    /// Standard deviation of each input.
    pub(super) fn standard_deviations(&self) -> Vec<f32> {
        let total: f64 = self.weight.iter().sum();
        let mut moments = vec![[0.0; 2]; self.n_inputs];
        for (row, weight) in self.weight.iter().enumerate() {
            for ([sum, squares], &x) in moments.iter_mut().zip(self.row(row)) {
                let x = f64::from(x);
                *sum += weight * x;
                *squares += weight * x * x;
            }
        }
        let sd = |[sum, squares]: [f64; 2]| {
            let mean = sum / total;
            (squares / total - mean * mean).max(0.0).sqrt() as f32
        };
        moments.into_iter().map(sd).collect()
    }
}
