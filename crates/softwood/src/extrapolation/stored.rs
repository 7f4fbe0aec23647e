//! The process in the record of a model.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use crate::data::encoding::Encoder;
use crate::data::schema::Schema;
use crate::data::target::TargetUnits;
use crate::error::{Error, Result};
use crate::extrapolation::Extrapolation;
use crate::extrapolation::process::Process;
use crate::gaussian_process::kernel::{CovarianceKernel, KernelShape};
use crate::gaussian_process::points::Points;
use crate::rng::Key;
use crate::store::range::{self, MAX_STANDARD};
use crate::store::record::{Array, Record};

/// Key of the description in the meta data of a record, and prefix of the arrays.
const NAME: &str = "extrapolation";
/// Bound of the logarithms of length scales and signal in a file.
const MAX_LOGARITHM: f64 = 25.0;
/// Bound of the inputs in a file: encoded inputs are clamped to a thousand.
const MAX_INPUT: f32 = 1e4;
/// Largest number of inducing points in a file.
const MAX_POINTS: usize = 1000;

/// The part of the process that is stored as JSON.
#[derive(serde::Deserialize)]
struct Header {
    encoder: Encoder,
    inputs: Vec<usize>,
    units: TargetUnits,
    log_lengths: Vec<f64>,
    log_signal: f64,
    baseline: f64,
    /// Files of the first versions have none: no residual is large then.
    #[serde(default = "no_residual_baseline")]
    residual_baseline: f64,
    key: Key,
    shifts_members: bool,
    n_points: usize,
}

fn no_residual_baseline() -> f64 {
    MAX_STANDARD
}

impl Extrapolation {
    /// Writes the process of a model, if it has one, to its record.
    pub(crate) fn write(extrapolation: Option<&Self>, mut record: Record) -> Record {
        let (Some(extrapolation), Value::Object(meta)) = (extrapolation, &mut record.meta) else {
            return record;
        };
        let kernel = &extrapolation.process.kernel;
        let header = json!({
            "encoder": extrapolation.encoder, "inputs": extrapolation.inputs, "units": extrapolation.units,
            "log_lengths": kernel.log_lengths, "log_signal": kernel.log_signal,
            "baseline": extrapolation.baseline, "residual_baseline": extrapolation.residual_baseline,
            "key": extrapolation.key, "shifts_members": extrapolation.shifts_members,
            "n_points": extrapolation.process.points.n(),
        });
        meta.insert(NAME.to_owned(), header);
        let Process { points, alpha, .. } = &extrapolation.process;
        let points = points.columns().iter().map(|&value| value as f32);
        record.arrays.extend([
            (array("points"), Array::F32(points.collect())),
            (array("alpha"), Array::F64(alpha.clone())),
            (
                array("factor"),
                Array::F64(extrapolation.process.packed_factor()),
            ),
        ]);
        record
    }

    /// Reads the process of a model, if it has one, from its record.
    ///
    /// # Errors
    /// When the process is incomplete or a value is out of range.
    pub(crate) fn read(record: &Record, schema: &Schema) -> Result<Option<Arc<Self>>> {
        if record.meta.get(NAME).is_none() {
            return Ok(None);
        }
        let header: Header = record.part(NAME)?;
        header.check(schema)?;
        let n = header.n_points;
        let columns = record.f32s(&array("points"), n * header.inputs.len())?;
        if !columns.iter().all(|value| value.abs() <= MAX_INPUT) {
            return Err(damaged("a point"));
        }
        let columns = columns.iter().map(|&value| f64::from(value)).collect();
        let points = Points::from_columns(columns, n, header.inputs.len());
        let numbers = |name: &str, len: usize| -> Result<&[f64]> {
            let values = record.f64s(&array(name), len)?;
            let range = -MAX_STANDARD..=MAX_STANDARD;
            values
                .iter()
                .try_for_each(|&value| range::check(name, value, &range))?;
            Ok(values)
        };
        let alpha = numbers("alpha", n)?.to_vec();
        let factor = numbers("factor", n * (n + 1) / 2)?;
        let kernel = CovarianceKernel {
            shape: KernelShape::Matern52,
            log_lengths: header.log_lengths,
            log_signal: header.log_signal,
        };
        let process = Process::from_parts(kernel, points, alpha, factor);
        Ok(Some(Arc::new(Self {
            encoder: header.encoder,
            inputs: header.inputs,
            units: header.units,
            process: process.ok_or_else(|| damaged("an array"))?,
            baseline: header.baseline,
            residual_baseline: header.residual_baseline,
            key: header.key,
            shifts_members: header.shifts_members,
            shares: OnceLock::new(),
        })))
    }
}

impl Header {
    fn check(&self, schema: &Schema) -> Result<()> {
        let logarithms = -MAX_LOGARITHM..=MAX_LOGARITHM;
        for &logarithm in self.log_lengths.iter().chain([&self.log_signal]) {
            range::check("log_lengths", logarithm, &logarithms)?;
        }
        for (name, value) in [
            ("baseline", self.baseline),
            ("residual_baseline", self.residual_baseline),
        ] {
            range::check(name, value, &(0.0..=MAX_STANDARD))?;
        }
        self.units.check()?;
        let n_inputs = self.encoder.n_inputs();
        let is_valid = self.encoder.fits(schema)
            && (1..=MAX_POINTS).contains(&self.n_points)
            && self.log_lengths.len() == self.inputs.len()
            && self.inputs.iter().all(|&input| input < n_inputs);
        if is_valid {
            Ok(())
        } else {
            Err(damaged("the encoder"))
        }
    }
}

fn array(name: &str) -> String {
    format!("{NAME}_{name}")
}

fn damaged(part: &str) -> Error {
    Error::Format(format!(
        "{part} of the process for extrapolation is not valid"
    ))
}
