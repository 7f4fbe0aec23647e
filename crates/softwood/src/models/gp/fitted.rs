//! The fitted process: encoder, hyper-parameters, posterior, and the sampled functions of the members.

use serde_json::{Value, json};

use crate::data::encoding::Encoder;
use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::data::target::TargetUnits;
use crate::data::unseen::UnseenSubstitutes;
use crate::error::{Error, Result};
use crate::explain::tree_export::TreeExport;
use crate::extrapolation::variance_factors;
use crate::fit::Fit;
use crate::gaussian_process::kernel::{CovarianceKernel, KernelShape};
use crate::gaussian_process::pathwise::{PriorDraws, update_weights};
use crate::gaussian_process::points::Points;
use crate::gaussian_process::posterior::{BLOCK, GpPosterior};
use crate::model::{JointNormal, Model, Training};
use crate::models::gp::noise_tree::GpNoise;
use crate::models::gp::params::{GpParams, GpRnnTreeParams};
use crate::numerics::dense_cholesky::DenseCholesky;
use crate::numerics::dot::dot;
use crate::numerics::gemm::{Matrix, transposed_product};
use crate::params;
use crate::predictive::block::{AddedVariance, Block, Head, no_finite_prediction};
use crate::predictive::moments::row_moments;
use crate::predictive::noise_calibration::NoiseCalibration;
use crate::rng::Key;
use crate::stop::until_cancelled;
use crate::store::range::{self, MAX_STANDARD};
use crate::store::record::{Array, Record};

/// Largest number of members in a file.
const MAX_MEMBERS: usize = 1000;
/// Bound of the logarithms of length scales and signal in a file.
const MAX_LOGARITHM: f64 = 25.0;
/// Bound of the inputs in a file: encoded inputs are clamped to a thousand.
const MAX_INPUT: f32 = 1e4;

/// What training finds.
#[derive(Debug, Clone)]
pub(super) struct GpParts {
    pub(super) family: &'static str,
    pub(super) schema: Schema,
    pub(super) units: TargetUnits,
    pub(super) encoder: Encoder,
    /// The parameters of the fit.
    pub(super) params: Value,
    pub(super) training: Training,
    pub(super) noise: GpNoise,
    /// Tails of the noise; their scale is that of `noise`.
    pub(super) calibration: NoiseCalibration,
    pub(super) posterior: GpPosterior,
    /// Encoded inputs of the points of the posterior.
    pub(super) points: Points,
    /// Key of the members.
    pub(super) key: Key,
    pub(super) substitutes: UnseenSubstitutes,
    pub(super) n_members: usize,
}

/// A fitted Gaussian process.
#[derive(Debug, Clone)]
pub struct Gp {
    parts: GpParts,
    prior: PriorDraws,
    /// Weights of the covariances in the mean and in the update of each pair of members (points x (1 +
    /// pairs)).
    weights: Vec<f64>,
    /// Factors of the variance of the function for each member.
    tails: Vec<f64>,
}

/// Mean and variance of the function for each member and row, and the distance of the member from the
/// mean. They differ between members in rows with unseen categories alone.
struct MemberLatents {
    stride: usize,
    mean: Vec<f64>,
    variance: Vec<f64>,
    shift: Vec<f64>,
    /// Rows with unseen cells.
    unseen: Vec<usize>,
}

impl MemberLatents {
    fn new(block: &Block) -> Self {
        let zeros = || vec![0.0; block.n_members * block.stride];
        Self {
            stride: block.stride,
            mean: zeros(),
            variance: zeros(),
            shift: zeros(),
            unseen: Vec::new(),
        }
    }

    fn set(&mut self, member: usize, row: usize, functions: &RowFunctions<'_>) {
        let at = member * self.stride + row;
        self.mean[at] = functions.mean;
        self.variance[at] = functions.variance;
        self.shift[at] = functions.shift(member);
    }

    /// Adds the variance of the function to the noise of the members of a block, times the tail of each
    /// member. The mixture of Normal distributions around the sampled functions would be a comb of
    /// narrow peaks where the noise is small.
    fn fill_block(mut self, tails: &[f64], out: &mut Block) {
        let stride = self.stride;
        if stride == 0 {
            return;
        }
        let n_members = out.n_members as f64;
        let (mut variance, mut data) = (vec![0.0; stride], vec![0.0; stride]);
        let normal = out.normal_mut();
        for (member, tail) in tails.iter().enumerate() {
            for row in 0..stride {
                let at = member * stride + row;
                let noise = normal.sd[at] * normal.sd[at];
                let added = tail * self.variance[at];
                data[row] += noise / n_members;
                variance[row] += added / n_members;
                normal.sd[at] = (noise + added).sqrt();
            }
        }
        for row in std::mem::take(&mut self.unseen) {
            self.match_moments(row, variance[row]);
        }
        out.normal_mut().mean = self.mean;
        out.added = Some(AddedVariance {
            mean: row_moments(out).map(|row| row.mean).collect(),
            variance,
            data,
            member_shift: self.shift,
        });
    }

    /// Centres and scales the shifts of a row with means of its own for each member, so that the functions
    /// have the mean of these means, and a variance that is larger than theirs by `added`.
    fn match_moments(&mut self, row: usize, added: f64) {
        let (stride, n) = (self.stride, self.mean.len() / self.stride);
        let of_row = |values: &[f64]| -> Vec<f64> {
            let values: Vec<f64> = (0..n).map(|member| values[member * stride + row]).collect();
            let mean = values.iter().sum::<f64>() / n as f64;
            values.iter().map(|value| value - mean).collect()
        };
        let (means, shifts) = (of_row(&self.mean), of_row(&self.shift));
        let (square, product) = (dot(&shifts, &shifts), dot(&shifts, &means));
        // the root of scale² square + 2 scale product = n added
        let scale = (product * product + square * n as f64 * added).sqrt() - product;
        let scale = if square > 0.0 { scale / square } else { 0.0 };
        for (member, shift) in shifts.into_iter().enumerate() {
            self.shift[member * stride + row] = scale * shift;
        }
    }
}

/// The functions at one row.
struct RowFunctions<'a> {
    /// Row within the rows that are evaluated.
    row: usize,
    mean: f64,
    variance: f64,
    /// Distance of the first member of each pair from the mean, before scaling.
    distances: &'a [f64],
    /// Scale of the distances.
    scale: f64,
}

impl RowFunctions<'_> {
    /// Distance of a member from the mean.
    fn shift(&self, member: usize) -> f64 {
        let sign = if member.is_multiple_of(2) { 1.0 } else { -1.0 };
        let distance = self.distances.get(member / 2).copied().unwrap_or(0.0);
        sign * self.scale * distance
    }
}

impl Gp {
    pub(super) fn parts(&self) -> &GpParts {
        &self.parts
    }

    /// The model with this noise, whose tails are those of the calibration.
    pub(super) fn with_noise(mut self, noise: GpNoise, calibration: NoiseCalibration) -> Self {
        let GpPosterior {
            kernel, precision, ..
        } = &self.parts.posterior;
        let (n, is_sparse) = (self.parts.points.n(), precision.is_some());
        self.parts.training.chosen = description(kernel, &noise, n, is_sparse);
        self.parts.noise = noise;
        self.parts.calibration = calibration;
        self
    }

    /// Draws the members of the model. `noise` is the variance of each observation of an exact process.
    pub(super) fn new(parts: GpParts, noise: &[f64]) -> Self {
        let prior = prior_draws(&parts);
        let updates = update_weights(&parts.posterior, &prior, noise, parts.key);
        Self::with_updates(parts, prior, &updates)
    }

    fn with_updates(parts: GpParts, prior: PriorDraws, updates: &[f64]) -> Self {
        let n_pairs = prior.n_draws();
        let alpha = parts.posterior.alpha.iter().enumerate();
        let weights = alpha
            .flat_map(|(point, &alpha)| {
                let updates = updates[point * n_pairs..(point + 1) * n_pairs].iter();
                std::iter::once(alpha).chain(updates.copied())
            })
            .collect();
        Self {
            tails: variance_factors(parts.n_members),
            parts,
            prior,
            weights,
        }
    }

    /// Calls `take` for each of some encoded rows.
    fn each_row(&self, points: &Points, mut take: impl FnMut(&RowFunctions<'_>)) {
        let GpParts {
            posterior,
            n_members,
            ..
        } = &self.parts;
        let n_pairs = self.prior.n_draws();
        let width = 1 + n_pairs;
        let mut products = vec![0.0; BLOCK * width];
        let mut first = 0;
        posterior.each_block(points, |block| {
            let n = posterior.points.n();
            let covariances = Matrix::new(block.covariances, n, BLOCK);
            let weights = Matrix::new(&self.weights, n, width);
            transposed_product(&mut products, covariances, weights);
            let mut distances = self.prior.values(block.points);
            for row in 0..block.n {
                let products = &products[row * width..(row + 1) * width];
                let distances = &mut distances[row * n_pairs..(row + 1) * n_pairs];
                for (distance, update) in distances.iter_mut().zip(&products[1..]) {
                    *distance -= update;
                }
                // the variance over all members is that of the posterior
                let squares: f64 = distances.iter().map(|distance| distance * distance).sum();
                let scale = block.variance[row] * *n_members as f64 / (2.0 * squares);
                take(&RowFunctions {
                    row: first + row,
                    mean: products[0],
                    variance: block.variance[row],
                    distances,
                    scale: if squares > 0.0 { scale.sqrt() } else { 0.0 },
                });
            }
            first += block.n;
        });
    }

    /// Builds the model from its record.
    ///
    /// # Errors
    /// When the record is incomplete or contradicts itself.
    pub(super) fn from_record<P: Fit>(record: &Record) -> Result<Self> {
        let schema = Schema::from_record(record)?;
        let encoder: Encoder = record.part("encoder")?;
        if !encoder.fits(&schema) || schema.classes().is_some() {
            return Err(Error::Format(
                "the encoder does not fit the schema".to_owned(),
            ));
        }
        let n_members: usize = record.part("n_members")?;
        if !(1..=MAX_MEMBERS).contains(&n_members) {
            return Err(Error::Format(format!(
                "`n_members` is {n_members}; expected 1 to {MAX_MEMBERS} members"
            )));
        }
        let kernel = read_kernel(record, encoder.n_inputs())?;
        let noise = GpNoise::from_record(record, &schema)?;
        let params: P = params::from_record(&record.part("params")?)?;
        let (points, posterior) = read_posterior(record, kernel)?;
        let updates = numbers(record, "updates", points.n().saturating_mul(n_members / 2))?;
        let parts = GpParts {
            family: P::FAMILY,
            units: TargetUnits::from_record(record)?,
            params: serde_json::to_value(params).unwrap_or_default(),
            training: record.part("training")?,
            key: record.part("key")?,
            substitutes: UnseenSubstitutes::from_record(record)?,
            schema,
            encoder,
            noise,
            calibration: NoiseCalibration::from_record(record)?,
            posterior,
            points,
            n_members,
        };
        let prior = prior_draws(&parts);
        Ok(Self::with_updates(parts, prior, updates))
    }

    /// Evaluates rows with unseen cells again, in which each member replaces such a cell by a known
    /// category or value of its own.
    fn replace_unseen(&self, rows: &Rows<'_>, out: &mut MemberLatents) {
        let GpParts {
            encoder,
            n_members,
            substitutes,
            ..
        } = &self.parts;
        let (n_inputs, width) = (encoder.n_inputs(), encoder.n_inputs() + 1);
        let unseen = encoder.unseen(rows);
        for cells in until_cancelled(unseen.chunk_by(|a, b| a.row == b.row)) {
            let row = cells[0].row;
            out.unseen.push(row);
            let groups = substitutes.groups(*n_members, cells);
            let points = groups
                .iter()
                .flat_map(|group| encoder.substituted(rows, cells, &group.codes));
            let points: Vec<f32> = points.collect();
            let points = Points::from_rows(&points, width, n_inputs);
            self.each_row(&points, |functions| {
                for &member in &groups[functions.row].members {
                    out.set(member, row, functions);
                }
            });
        }
    }
}

/// The prior draws of the pairs of members.
fn prior_draws(parts: &GpParts) -> PriorDraws {
    PriorDraws::new(&parts.posterior.kernel, parts.n_members / 2, parts.key)
}

/// The 64-bit floats called `name`, which must be `len` many and of usual magnitude.
fn numbers<'a>(record: &'a Record, name: &str, len: usize) -> Result<&'a [f64]> {
    let values = record.f64s(name, len)?;
    for &value in values {
        range::check(name, value, &(-MAX_STANDARD..=MAX_STANDARD))?;
    }
    Ok(values)
}

fn read_kernel(record: &Record, n_inputs: usize) -> Result<CovarianceKernel> {
    let range = -MAX_LOGARITHM..=MAX_LOGARITHM;
    let shape: KernelShape = record.part("kernel")?;
    let log_signal = record.part("log_signal")?;
    range::check("log_signal", log_signal, &range)?;
    let log_lengths = record.f64s("log_lengths", n_inputs)?.to_vec();
    for &log_length in &log_lengths {
        range::check("log_lengths", log_length, &range)?;
    }
    Ok(CovarianceKernel {
        shape,
        log_lengths,
        log_signal,
    })
}

/// The encoded points of the posterior, and the posterior.
fn read_posterior(record: &Record, kernel: CovarianceKernel) -> Result<(Points, GpPosterior)> {
    let n: usize = record.part("n_points")?;
    let alpha = numbers(record, "alpha", n)?.to_vec();
    if n == 0 {
        return Err(Error::Format("the process has no points".to_owned()));
    }
    let n_inputs = kernel.log_lengths.len();
    let columns = record.f32s("points", n.saturating_mul(n_inputs))?;
    if !columns.iter().all(|value| value.abs() <= MAX_INPUT) {
        return Err(Error::Format(
            "`points` has inputs that are not finite or too large".to_owned(),
        ));
    }
    let columns = columns.iter().map(|&value| f64::from(value)).collect();
    let points = Points::from_columns(columns, n, n_inputs);
    let factor = |name: &str| {
        let packed = numbers(record, name, n.saturating_mul(n + 1) / 2)?;
        DenseCholesky::from_packed(packed, n)
            .ok_or_else(|| Error::Format(format!("`{name}` has a diagonal that is not positive")))
    };
    let is_sparse: bool = record.part("is_sparse")?;
    let posterior = GpPosterior {
        points: kernel.scaled(&points),
        kernel,
        alpha,
        factor: factor("factor")?,
        precision: is_sparse.then(|| factor("precision")).transpose()?,
    };
    Ok((points, posterior))
}

impl Model for Gp {
    fn family(&self) -> &'static str {
        self.parts.family
    }

    fn schema(&self) -> &Schema {
        &self.parts.schema
    }

    fn head(&self) -> Head {
        Head::Normal { components: 1 }
    }

    fn n_members(&self) -> usize {
        self.parts.n_members
    }

    fn members(&self, rows: &Rows<'_>, out: &mut Block) -> Result<()> {
        let GpParts {
            encoder,
            units,
            n_members,
            noise,
            calibration,
            substitutes,
            ..
        } = &self.parts;
        out.shift = units.shift;
        out.scale = units.scale;
        out.weight.fill(1.0);
        noise.fill(rows, *substitutes, out);
        calibration.apply(out);
        let encoded = encoder.encode(rows);
        let n_inputs = encoder.n_inputs();
        let points = Points::from_rows(&encoded, n_inputs + 1, n_inputs);
        let mut functions = MemberLatents::new(out);
        self.each_row(&points, |row| {
            for member in 0..*n_members {
                functions.set(member, row.row, row);
            }
        });
        self.replace_unseen(rows, &mut functions);
        functions.fill_block(&self.tails, out);
        out.pad();
        Ok(())
    }

    fn training(&self) -> &Training {
        &self.parts.training
    }

    fn restored(&self, record: &Record) -> Result<Box<dyn Model>> {
        let restore = if self.parts.family == GpRnnTreeParams::FAMILY {
            Self::from_record::<GpRnnTreeParams>
        } else {
            Self::from_record::<GpParams>
        };
        Ok(Box::new(restore(record)?))
    }

    fn record(&self) -> Record {
        let parts = &self.parts;
        let GpPosterior {
            kernel,
            alpha,
            factor,
            precision,
            ..
        } = &parts.posterior;
        let mut meta = json!({
            "schema": parts.schema, "params": parts.params, "training": parts.training,
            "standard": parts.units, "encoder": parts.encoder, "n_members": parts.n_members,
            "unseen": parts.substitutes.stored(), "key": parts.key,
            "kernel": kernel.shape, "log_signal": kernel.log_signal,
            "n_points": parts.points.n(), "is_sparse": precision.is_some(),
        });
        let width = 1 + self.prior.n_draws();
        let updates = self.weights.chunks_exact(width);
        let updates = updates.flat_map(|weights| weights[1..].iter().copied());
        let points = parts.points.columns().iter().map(|&value| value as f32);
        let mut arrays = vec![
            (
                "log_lengths".to_owned(),
                Array::F64(kernel.log_lengths.clone()),
            ),
            ("points".to_owned(), Array::F32(points.collect())),
            ("alpha".to_owned(), Array::F64(alpha.clone())),
            ("updates".to_owned(), Array::F64(updates.collect())),
            ("factor".to_owned(), Array::F64(factor.packed())),
        ];
        if let Some(precision) = precision {
            arrays.push(("precision".to_owned(), Array::F64(precision.packed())));
        }
        parts.noise.write(&mut meta, &mut arrays);
        parts.calibration.write(&mut meta);
        Record {
            family: parts.family.to_owned(),
            meta,
            arrays,
        }
    }

    fn tree_export(&self) -> Option<TreeExport> {
        match &self.parts.noise {
            GpNoise::Constant(_) => None,
            GpNoise::Tree(tree) => Some(tree.export(&self.parts.schema, self.parts.units)),
        }
    }

    fn n_nodes(&self) -> Option<f64> {
        match &self.parts.noise {
            GpNoise::Constant(_) => None,
            GpNoise::Tree(tree) => Some(tree.n_nodes() as f64),
        }
    }

    fn joint(&self, rows: &Rows<'_>) -> Result<Option<JointNormal>> {
        let GpParts {
            encoder,
            posterior,
            units,
            ..
        } = &self.parts;
        let points = Points::encoded(encoder, rows);
        let mean = posterior.latent(&points).mean.into_iter();
        let mean: Vec<f64> = mean.map(|mean| units.shift + units.scale * mean).collect();
        let covariance = posterior.covariance(&points)?.into_iter();
        let covariance: Vec<f64> = covariance
            .map(|value| units.scale * value * units.scale)
            .collect();
        if !mean
            .iter()
            .chain(&covariance)
            .all(|value| value.is_finite())
        {
            return Err(no_finite_prediction());
        }
        Ok(Some(JointNormal::new(mean, covariance)))
    }
}

/// A short description of the hyper-parameters and the noise.
pub(super) fn description(
    kernel: &CovarianceKernel,
    noise: &GpNoise,
    n_points: usize,
    is_sparse: bool,
) -> String {
    let kind = if is_sparse {
        format!("{n_points} inducing points")
    } else {
        "exact".to_owned()
    };
    let noise = match noise {
        GpNoise::Constant(sd) => format!("noise {sd:.4}"),
        GpNoise::Tree(tree) => {
            let sds = || tree.leaves.iter().map(|leaf| leaf.sd);
            let (low, high) = (
                sds().fold(f64::INFINITY, f64::min),
                sds().fold(0.0, f64::max),
            );
            match tree.leaves.len() {
                1 => format!("noise {low:.4}"),
                n => format!("noise from {low:.4} to {high:.4} in {n} leaves"),
            }
        }
    };
    let signal = kernel.log_signal.exp();
    format!("{kind}, signal {signal:.3}, {noise}")
}
