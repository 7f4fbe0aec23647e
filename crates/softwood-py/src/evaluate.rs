//! Evaluation of model families by a protocol.

use pyo3::prelude::*;
use serde_json::json;
use softwood::evaluate::{Protocol, Report, Split, evaluate as evaluate_models};
use softwood::{Family, ModelSpec, Pool};

use crate::errors::to_python;
use crate::fit::LabelledTable;
use crate::interrupt::interruptible;

/// Rows of the training, validation and test sets of a fold.
type RawSplit = (Vec<usize>, Vec<usize>, Vec<usize>);

/// How to evaluate, read from the attributes of `softwood._arguments.EvaluationRun`.
#[derive(FromPyObject)]
pub(crate) struct EvaluationRun {
    /// Family and parameters (JSON) of each model.
    models: Vec<(String, String)>,
    /// `holdout:F`, `cv:K` or `paper:F,K`; with `splits`, a name for the report.
    protocol: String,
    /// Folds, instead of the protocol.
    splits: Option<Vec<RawSplit>>,
    seed: u64,
    /// Number of threads; 0: one per core.
    n_threads: usize,
}

/// Fits and scores every model on every split; returns the report as JSON.
#[pyfunction]
pub(crate) fn evaluate(
    py: Python<'_>,
    data: LabelledTable<'_>,
    run: EvaluationRun,
) -> PyResult<String> {
    let specs = run.models.iter().map(|(family, params)| {
        Family::from_name(family).and_then(|family| family.params_from_json(params))
    });
    let specs: Vec<ModelSpec> = specs.collect::<softwood::Result<_>>().map_err(to_python)?;
    let data = data.into_training_set()?;
    let splits = match run.splits {
        Some(splits) => Ok(splits
            .into_iter()
            .map(|(train, held_out, test)| Split {
                train,
                held_out,
                test,
            })
            .collect()),
        None => Protocol::parse(&run.protocol)
            .and_then(|protocol| protocol.splits(&data, run.seed, None)),
    };
    let splits = splits.map_err(to_python)?;
    let models = interruptible(py, |observer| {
        let pool = Pool::new(run.n_threads)?;
        evaluate_models(&specs, &data, &splits, run.seed, &pool, observer)
    })?;
    let report = Report::new(run.protocol, data.n_rows(), run.seed, models);
    Ok(json!(report).to_string())
}
