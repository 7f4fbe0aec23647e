//! Active learning and experimental design: rows to label next, candidates to try next.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use softwood::decide::design::{
    RowCriterion, RowOptions, SuggestOptions, SuggestionCriterion, select_rows as select,
    suggest as suggest_rows,
};
use softwood::{Distribution, Key, Pool};

use crate::convert::{RawTable, vector};
use crate::errors::to_python;
use crate::interrupt::interruptible;
use crate::model::PyModel;

/// Which rows are chosen, read from the attributes of `softwood._arguments.RowSelectionRun`.
#[derive(FromPyObject)]
pub(crate) struct RowSelectionRun {
    n: usize,
    criterion: String,
    seed: u64,
    /// Number of threads; 0: one per core.
    n_threads: usize,
}

/// Which candidates are chosen, read from the attributes of `softwood._arguments.SuggestionRun`.
#[derive(FromPyObject)]
pub(crate) struct SuggestionRun {
    n: usize,
    maximize: bool,
    criterion: String,
    /// One entry per row, or none at all.
    excluded: Vec<bool>,
    best: Option<f64>,
    /// Index of the class whose probability is the target.
    class_index: Option<usize>,
    seed: u64,
    /// Number of threads; 0: one per core.
    n_threads: usize,
}

/// The rows of a pool to label next, and their scores.
#[pyfunction]
pub(crate) fn select_rows<'py>(
    py: Python<'py>,
    model: &PyModel,
    pool: RawTable<'_>,
    run: RowSelectionRun,
) -> PyResult<Bound<'py, PyDict>> {
    let pool = pool.into_table()?;
    let criterion = RowCriterion::from_name(&run.criterion).map_err(to_python)?;
    let options = RowOptions::new(run.n, Key::from_seed(run.seed)).criterion(criterion);
    let model = model.model();
    let selection = interruptible(py, |observer| {
        let threads = Pool::new(run.n_threads)?;
        let distribution = Distribution::new(model, &pool, &threads)?;
        select(&distribution.observed_by(observer), &options)
    })?;
    let found = PyDict::new(py);
    found.set_item("rows", vector(py, indices(&selection.rows)))?;
    found.set_item("scores", vector(py, selection.scores))?;
    Ok(found)
}

/// The candidates to try next, their predicted means and the knowledge uncertainty of these.
#[pyfunction]
pub(crate) fn suggest<'py>(
    py: Python<'py>,
    model: &PyModel,
    candidates: RawTable<'_>,
    run: SuggestionRun,
) -> PyResult<Bound<'py, PyDict>> {
    let candidates = candidates.into_table()?;
    let mut options = SuggestOptions::new(run.n, Key::from_seed(run.seed))
        .criterion(SuggestionCriterion::from_name(&run.criterion).map_err(to_python)?)
        .maximize(run.maximize)
        .excluded(run.excluded);
    (options.best, options.class) = (run.best, run.class_index);
    let model = model.model();
    let suggestions = interruptible(py, |observer| {
        let threads = Pool::new(run.n_threads)?;
        let distribution = Distribution::new(model, &candidates, &threads)?;
        suggest_rows(&distribution.observed_by(observer), &options)
    })?;
    let found = PyDict::new(py);
    found.set_item("rows", vector(py, indices(&suggestions.rows)))?;
    found.set_item("mean", vector(py, suggestions.mean))?;
    found.set_item("knowledge_sd", vector(py, suggestions.knowledge_sd))?;
    Ok(found)
}

/// Row indices in the type of NumPy.
fn indices(rows: &[usize]) -> Vec<i64> {
    rows.iter().map(|&row| row as i64).collect()
}
