//! Calibration of the noise on rows that are left out one at a time.
//!
//! A row with the target `y`, one copy of which has the noise variance `v`, and for which the process
//! has the mean `m` and the variance `s` of the function, has without this copy
//!
//! - the residual `(y - m) v / (v - s)`,
//! - the variance `s v / (v - s)` of the function,
//!
//! exactly for an exact process, and up to the change of the inducing values for a sparse one. Scale and
//! tails of the noise suit these residuals; the variance of the function stays as it is.

use crate::data::dataset::Dataset;
use crate::data::target::Target;
use crate::extrapolation::variance_factors;
use crate::gaussian_process::points::Points;
use crate::models::gp::fitted::Gp;
use crate::predictive::block::{Block, Head};
use crate::predictive::noise_calibration::{HeldOutBlock, NoiseCalibration};

/// Largest number of rows that are left out.
const MAX_ROWS: usize = 2000;
/// Number of members that the noise is calibrated with.
const N_MEMBERS: usize = 32;
/// Largest share of the noise in the variance of the function: rows that nothing else tells about have
/// no residual.
const MAX_LEVERAGE: f64 = 0.99;

/// A row without one of its copies.
struct LeaveOneOutRow {
    mean: f64,
    /// Variance of the function.
    variance: f64,
    noise_sd: f64,
    target: f64,
    weight: f64,
}

/// The model with the noise of left-out rows; `data` has the deduplicated training rows, and `floor` is the
/// smallest standard deviation of the noise.
pub(super) fn calibrated(model: Gp, data: &Dataset, floor: f64) -> Gp {
    let rows = left_out_rows(&model, &data.spaced(MAX_ROWS));
    let n_members = model.parts().n_members.min(N_MEMBERS);
    let tails = variance_factors(n_members);
    let mut block = Block::new(Head::Normal { components: 1 }, n_members, rows.len());
    block.weight.fill(1.0);
    let mut added = vec![0.0; n_members * block.stride];
    for (at, row) in rows.iter().enumerate() {
        for (member, tail) in tails.iter().enumerate() {
            let index = block.at(member, 0) + at;
            let normal = block.normal_mut();
            (normal.mean[index], normal.sd[index]) = (row.mean, row.noise_sd);
            added[index] = tail * row.variance;
        }
    }
    let held_out = [HeldOutBlock {
        block,
        added,
        target: rows.iter().map(|row| row.target).collect(),
        weight: rows.iter().map(|row| row.weight).collect(),
    }];
    let found = NoiseCalibration::learn(&held_out, floor).with_coverage_of(&held_out);
    let noise = model.parts().noise.scaled(found.scale, floor);
    model.with_noise(
        noise,
        NoiseCalibration {
            scale: 1.0,
            ..found
        },
    )
}

fn left_out_rows(model: &Gp, data: &Dataset) -> Vec<LeaveOneOutRow> {
    let parts = model.parts();
    let Target::Numeric(values) = data.target() else {
        return Vec::new();
    };
    let rows = data.features().rows(0..data.n_rows());
    let latent = parts
        .posterior
        .latent(&Points::encoded(&parts.encoder, &rows));
    let mut noise = Block::new(Head::Normal { components: 1 }, 1, data.n_rows());
    parts.noise.fill(&rows, parts.substitutes, &mut noise);
    let row = |row: usize| {
        let weight = data.weights().map_or(1.0, |weights| weights[row]);
        LeaveOneOutRow::new(
            parts.units.apply(values[row]),
            (latent.mean[row], latent.variance[row]),
            noise.normal().sd[row],
            weight,
        )
    };
    (0..data.n_rows()).filter_map(row).collect()
}

impl LeaveOneOutRow {
    /// A row for which the process has this mean and variance; `None` if nothing else tells about it.
    fn new(target: f64, (mean, variance): (f64, f64), noise_sd: f64, weight: f64) -> Option<Self> {
        let noise = noise_sd * noise_sd;
        if variance > MAX_LEVERAGE * noise {
            return None;
        }
        let factor = noise / (noise - variance);
        Some(Self {
            mean: target - factor * (target - mean),
            variance: factor * variance,
            noise_sd,
            target,
            weight,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian_process::exact;
    use crate::gaussian_process::kernel::{CovarianceKernel, KernelShape};
    use crate::gaussian_process::points::Observations;
    use softwood_testkit::close;

    #[test]
    fn a_row_is_left_out_as_by_a_process_without_one_of_its_copies() {
        let n = 10;
        let points = Points::from_columns(
            (0..n).map(|row| (row * row % 13) as f64 / 4.0).collect(),
            n,
            1,
        );
        let targets: Vec<f64> = (0..n).map(|row| (row * 5 % 7) as f64 / 3.0 - 1.0).collect();
        let kernel = CovarianceKernel {
            shape: KernelShape::Matern52,
            log_lengths: vec![0.2],
            log_signal: 0.1,
        };
        let noise_sd = 0.3;
        let latent = |weights: &[f64]| {
            let noise = vec![noise_sd * noise_sd; n];
            let rows = Observations {
                points: &points,
                targets: &targets,
                weights,
                noise: &noise,
            };
            exact::posterior(&kernel, &rows)
                .unwrap()
                .unwrap()
                .latent(&points)
        };
        let with_all = latent(&vec![2.0; n]);
        for row in 0..n {
            let mut weights = vec![2.0; n];
            weights[row] = 1.0;
            let expected = latent(&weights);
            let of_process = (with_all.mean[row], with_all.variance[row]);
            let found = LeaveOneOutRow::new(targets[row], of_process, noise_sd, 2.0).unwrap();
            close(
                &[found.mean, found.variance],
                &[expected.mean[row], expected.variance[row]],
                1e-7,
            );
        }
        assert!(LeaveOneOutRow::new(0.0, (0.1, 0.09), noise_sd, 1.0).is_none());
    }
}
