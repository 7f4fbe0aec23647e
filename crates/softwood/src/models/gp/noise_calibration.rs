//! Calibration of the noise on rows that are left out one at a time.
//!
//! A row with the target `y`, one copy of which has the noise variance `v`, and for which the process
//! has the mean `m` and the variance `s` of the function, has without this copy
//!
//! - the residual `(y - m) v / (v - c s)`,
//! - the variance `s v / (v - c s)` of the function,
//!
//! where `c` is 1, or the weight of the row if that is smaller. For a sparse process, a row tells only
//! about the part of the function that the inducing points determine: `s` is the variance of this part, and
//! the variance of the other part is added afterwards. Scale and tails of the noise suit these residuals;
//! the variance of the function stays as it is.

use crate::data::dataset::Dataset;
use crate::data::target::Target;
use crate::extrapolation::variance_factors;
use crate::gaussian_process::points::Points;
use crate::gaussian_process::posterior::GpPosterior;
use crate::models::gp::fitted::Gp;
use crate::predictive::block::{Block, Head};
use crate::predictive::noise_calibration::{HeldOutBlock, NoiseCalibration};

/// Largest number of rows that are left out.
const MAX_ROWS: usize = 2000;
/// Number of members that the noise is calibrated with.
const N_MEMBERS: usize = 32;
/// Largest variance of the function, as a share of that of the noise, at which a row is left out: without
/// it hardly anything would tell about the row.
const MAX_LEVERAGE: f64 = 0.99;

/// A training row under the process that was conditioned on it.
#[derive(Clone, Copy)]
struct ConditionedRow {
    target: f64,
    mean: f64,
    /// Variance of the part of the function that the rows tell about.
    variance: f64,
    /// Variance of the rest of the function.
    unresolved: f64,
    noise_sd: f64,
    weight: f64,
}

/// A row under the process without one of its copies.
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
    let points = Points::encoded(&parts.encoder, &rows);
    let latent = parts.posterior.latent(&points);
    let unresolved = unresolved_variances(&parts.posterior, &points);
    let mut noise = Block::new(Head::Normal { components: 1 }, 1, data.n_rows());
    parts.noise.fill(&rows, parts.substitutes, &mut noise);
    let row = |row: usize| {
        ConditionedRow {
            target: parts.units.apply(values[row]),
            mean: latent.mean[row],
            variance: (latent.variance[row] - unresolved[row]).max(0.0),
            unresolved: unresolved[row],
            noise_sd: noise.normal().sd[row],
            weight: data.weights().map_or(1.0, |weights| weights[row]),
        }
        .left_out()
    };
    (0..data.n_rows()).filter_map(row).collect()
}

/// The variance of the function that is left if the values at the inducing points are known; none for an
/// exact process.
fn unresolved_variances(posterior: &GpPosterior, points: &Points) -> Vec<f64> {
    if posterior.precision.is_none() {
        return vec![0.0; points.n()];
    }
    let given_values = GpPosterior {
        precision: None,
        ..posterior.clone()
    };
    given_values.latent(points).variance
}

impl ConditionedRow {
    /// The row without one of its copies; `None` if hardly anything else tells about it.
    fn left_out(self) -> Option<LeaveOneOutRow> {
        let noise = self.noise_sd * self.noise_sd;
        let explained = self.weight.min(1.0) * self.variance;
        if explained > MAX_LEVERAGE * noise {
            return None;
        }
        let factor = noise / (noise - explained);
        Some(LeaveOneOutRow {
            mean: self.target - factor * (self.target - self.mean),
            variance: factor * self.variance + self.unresolved,
            noise_sd: self.noise_sd,
            target: self.target,
            weight: self.weight,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian_process::exact;
    use crate::gaussian_process::kernel::{CovarianceKernel, KernelShape};
    use crate::gaussian_process::points::Observations;
    use crate::gaussian_process::sparse::{InducingBasis, NaturalParameters};
    use softwood_testkit::close;

    const N: usize = 10;
    const NOISE_SD: f64 = 0.3;

    fn points() -> Points {
        let x = (0..N).map(|row| (row * row % 13) as f64 / 4.0).collect();
        Points::from_columns(x, N, 1)
    }

    fn targets() -> Vec<f64> {
        (0..N).map(|row| (row * 5 % 7) as f64 / 3.0 - 1.0).collect()
    }

    fn kernel() -> CovarianceKernel {
        CovarianceKernel {
            shape: KernelShape::Matern52,
            log_lengths: vec![0.2],
            log_signal: 0.1,
        }
    }

    /// The posterior of rows with these weights, exact or with four inducing points.
    fn posterior(weights: &[f64], is_sparse: bool) -> GpPosterior {
        let (points, targets) = (points(), targets());
        let rows = Observations {
            points: &points,
            targets: &targets,
            weights,
            noise: &[NOISE_SD * NOISE_SD; N],
        };
        if !is_sparse {
            return exact::posterior(&kernel(), &rows).unwrap().unwrap();
        }
        let basis = InducingBasis::new(&kernel(), &points.take(&[0, 2, 3, 5])).unwrap();
        let mut natural = NaturalParameters::prior(4);
        natural.add(&basis.project(rows), 1.0);
        basis.posterior(natural.posterior().unwrap())
    }

    fn check_left_out(weight: f64, is_sparse: bool) {
        let all = posterior(&[weight; N], is_sparse);
        let latent = all.latent(&points());
        let unresolved = unresolved_variances(&all, &points());
        for row in 0..N {
            let mut weights = [weight; N];
            // of a row with a weight of at most 1 next to nothing is left
            weights[row] = (weight - 1.0).max(1e-9);
            let expected = posterior(&weights, is_sparse).latent(&points());
            let found = ConditionedRow {
                target: targets()[row],
                mean: latent.mean[row],
                variance: latent.variance[row] - unresolved[row],
                unresolved: unresolved[row],
                noise_sd: NOISE_SD,
                weight,
            };
            let found = found.left_out().expect("other rows are near");
            close(
                &[found.mean, found.variance],
                &[expected.mean[row], expected.variance[row]],
                1e-5,
            );
        }
    }

    #[test]
    fn a_row_is_left_out_as_by_a_process_without_one_of_its_copies() {
        for weight in [2.0, 1.0, 0.3] {
            check_left_out(weight, false);
            check_left_out(weight, true);
        }
    }

    #[test]
    fn a_row_that_nothing_else_tells_about_has_no_residual() {
        let row = ConditionedRow {
            target: 0.0,
            mean: 0.1,
            variance: 0.09,
            unresolved: 0.0,
            noise_sd: NOISE_SD,
            weight: 1.0,
        };
        assert!(row.left_out().is_none());
    }
}
