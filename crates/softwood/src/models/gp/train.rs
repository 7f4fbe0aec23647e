//! Training of both families: deduplicate the rows, then fit a process with constant noise or one
//! whose noise is a tree.

use crate::data::dataset::Dataset;
use crate::error::Result;
use crate::fit::{Fit, Run};
use crate::models::gp::config::GpConfig;
use crate::models::gp::fitted::Gp;
use crate::models::gp::noise_calibration::calibrated;
use crate::models::gp::noise_training;
use crate::models::gp::params::{GpParams, GpRnnTreeParams};
use crate::models::gp::problem::{Problem, too_large};
use crate::models::gp::search::Progress;
use crate::params::Checked;
use crate::stop;
use crate::store::record::Record;

impl Fit for GpParams {
    type Fitted = Gp;
    const FAMILY: &'static str = "gp";
    const SUPPORTS_CLASSES: bool = false;

    fn restore(record: &Record) -> Result<Gp> {
        Gp::from_record::<Self>(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Gp> {
        let data = data.try_deduplicated()?;
        let problem = Problem::new(GpConfig::from(&**params), &**params, &data, run.key)?;
        let mut progress = Progress::new(run);
        let n_rows = problem.points.n();
        let model = if problem.config.is_exact(n_rows) {
            problem.fit_exact(&mut progress)
        } else {
            problem.fit_sparse(&mut progress)
        };
        let model = model.map_err(|error| too_large(error, n_rows))?;
        finished(model, &problem, &data)
    }
}

/// The model with a calibrated noise, if its parameters ask for that.
fn finished(model: Gp, problem: &Problem, data: &Dataset) -> Result<Gp> {
    if !problem.config.calibrates() {
        return Ok(model);
    }
    let model = calibrated(model, data, problem.space.min_noise_sd);
    stop::check()?;
    Ok(model)
}

impl Fit for GpRnnTreeParams {
    type Fitted = Gp;
    const FAMILY: &'static str = "gp-rnn-tree";
    const SUPPORTS_CLASSES: bool = false;

    fn restore(record: &Record) -> Result<Gp> {
        Gp::from_record::<Self>(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Gp> {
        let data = data.try_deduplicated()?;
        let problem = Problem::new(GpConfig::from(&**params), &**params, &data, run.key)?;
        let mut progress = Progress::new(run);
        let n_rows = problem.points.n();
        let model = noise_training::fit(&problem, params, &data, run, &mut progress);
        let model = model.map_err(|error| too_large(error, n_rows))?;
        finished(model, &problem, &data)
    }
}
