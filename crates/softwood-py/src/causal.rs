//! Effects of treatments: tables and settings from Python to the library, estimates back.

use std::sync::Arc;

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use softwood::data::Values;
use softwood::decide::causal::problems::{
    CausalProblem, CausalToy, IhdpSurface, OUTCOME, TREATMENT,
};
use softwood::decide::causal::{
    CausalConfig, CausalRoles, EffectEstimate, EffectModel, TreatmentPolicy, estimate,
};
use softwood::{Family, Key, ModelSpec, Pool, Result, Run, Table};

use crate::convert::{RawColumn, RawTable, vector};
use crate::errors::to_python;
use crate::interrupt::interruptible;

/// Covariates, treatment and outcome, read from the attributes of `softwood._arguments.CausalTable`.
#[derive(FromPyObject)]
pub(crate) struct CausalTable<'py> {
    covariates: RawTable<'py>,
    treatment: RawColumn,
    outcome: RawColumn,
}

/// How effects are estimated, read from the attributes of `softwood._arguments.CausalRun`.
#[derive(FromPyObject)]
pub(crate) struct CausalRun {
    /// Family and parameters (JSON) of the model of the outcome.
    model: (String, String),
    /// Those of the model of the propensity; none: the default.
    propensity: Option<(String, String)>,
    method: String,
    scope: String,
    treated: Option<String>,
    control: Option<String>,
    n_folds: usize,
    clip: f64,
    seed: u64,
    /// Number of threads; 0: one per core.
    n_threads: usize,
}

fn spec((family, params): &(String, String)) -> Result<ModelSpec> {
    Family::from_name(family)?.params_from_json(params)
}

impl CausalRun {
    fn config(&self) -> Result<CausalConfig> {
        let mut config = CausalConfig::new(spec(&self.model)?)
            .method(self.method.parse()?)
            .scope(self.scope.parse()?);
        if let Some(propensity) = &self.propensity {
            config = config.propensity(spec(propensity)?);
        }
        config.n_folds = self.n_folds;
        config.clip = self.clip;
        Ok(config)
    }
}

/// Estimates the effects of a treatment.
#[pyfunction]
pub(crate) fn estimate_effects(
    py: Python<'_>,
    data: CausalTable<'_>,
    run: CausalRun,
) -> PyResult<PyEffects> {
    let config = run.config().map_err(to_python)?;
    let (treatment, outcome) = (data.treatment.into_column(), data.outcome.into_column());
    let mut roles = CausalRoles::new(&treatment.name, &outcome.name);
    roles.treated = run.treated;
    roles.control = run.control;
    let table = data.covariates.into_table()?;
    let table = table
        .with_column(treatment)
        .and_then(|table| table.with_column(outcome))
        .map_err(to_python)?;
    let model = interruptible(py, |observer| {
        let pool = Pool::new(run.n_threads)?;
        let run = Run::new(Key::from_seed(run.seed), &pool).observer(observer);
        estimate(&table, &roles, &config, &run)
    })?;
    Ok(PyEffects {
        model: Arc::new(model),
    })
}

/// Estimated effects of a treatment.
#[pyclass(frozen, name = "Effects", module = "softwood._native")]
#[derive(Debug)]
pub(crate) struct PyEffects {
    model: Arc<EffectModel>,
}

impl PyEffects {
    fn compute<T: Send>(
        &self,
        py: Python<'_>,
        n_threads: usize,
        compute: impl FnOnce(&EffectModel, &Pool) -> Result<T> + Send,
    ) -> PyResult<T> {
        interruptible(py, |_| compute(&self.model, &Pool::new(n_threads)?))
    }
}

#[pymethods]
impl PyEffects {
    /// Levels, counts and the unadjusted difference, as JSON.
    fn describe(&self) -> String {
        let (treated, control) = self.model.levels();
        json!({"treated": treated, "control": control, "n_rows": self.model.is_treated().len(),
               "n_left_out": self.model.n_left_out(), "n_folds": self.model.n_folds(),
               "naive_difference": self.model.naive_difference()})
        .to_string()
    }

    /// Average effect over the rows of the estimation.
    fn average<'py>(
        &self,
        py: Python<'py>,
        level: f64,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let found = self.compute(py, n_threads, |model, pool| {
            model.average_effect(level, pool)
        })?;
        to_dict(py, found)
    }

    /// Average effect over the treated rows of the estimation.
    fn on_treated<'py>(
        &self,
        py: Python<'py>,
        level: f64,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let found = self.compute(py, n_threads, |model, pool| {
            model.effect_on_treated(level, pool)
        })?;
        to_dict(py, found)
    }

    /// Average effect over the rows of a table.
    fn average_of<'py>(
        &self,
        py: Python<'py>,
        table: RawTable<'_>,
        level: f64,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let table = table.into_table()?;
        let found = self.compute(py, n_threads, |model, pool| {
            model.average_effect_of(&table, level, pool)
        })?;
        to_dict(py, found)
    }

    /// Effects of the rows of a table: mean, standard deviation, ends of the interval.
    fn conditional<'py>(
        &self,
        py: Python<'py>,
        table: RawTable<'_>,
        level: f64,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let table = table.into_table()?;
        let model = Arc::clone(&self.model);
        let effects = interruptible(py, |observer| {
            let pool = Pool::new(n_threads)?;
            model.conditional_effects_observed(&table, level, &pool, observer)
        })?;
        let found = PyDict::new(py);
        found.set_item("mean", vector(py, effects.mean))?;
        found.set_item("std", vector(py, effects.std))?;
        found.set_item("lower", vector(py, effects.lower))?;
        found.set_item("upper", vector(py, effects.upper))?;
        Ok(found)
    }

    /// The value of a policy, as JSON, and its decisions. Without decisions, rows whose effect
    /// exceeds the cost are treated.
    fn policy_value<'py>(
        &self,
        py: Python<'py>,
        decisions: Option<PyReadonlyArray1<'_, bool>>,
        cost: f64,
        level: f64,
        n_threads: usize,
    ) -> PyResult<(String, Bound<'py, PyArray1<bool>>)> {
        let policy = decisions.map_or(TreatmentPolicy::EffectAbove, |decisions| {
            let all: Vec<bool> = decisions.as_array().iter().copied().collect();
            TreatmentPolicy::Given(all)
        });
        let found = self.compute(py, n_threads, |model, pool| {
            model.policy_value(&policy, cost, level, pool)
        })?;
        Ok((json!(found).to_string(), vector(py, found.decisions)))
    }

    /// Positions of the rows of the estimation among the rows that were given.
    fn row_indices<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        let rows = self.model.row_indices().iter();
        vector(py, rows.map(|&row| row as u64).collect())
    }

    /// Overlap of the arms: a report as JSON, propensities, and knowledge uncertainty of factual and
    /// counterfactual outcomes.
    fn overlap<'py>(&self, py: Python<'py>) -> PyResult<(String, Bound<'py, PyDict>)> {
        let overlap = self.model.overlap();
        let rows = PyDict::new(py);
        rows.set_item("propensity", vector(py, overlap.propensity.clone()))?;
        rows.set_item(
            "factual_knowledge",
            vector(py, overlap.factual_knowledge.clone()),
        )?;
        rows.set_item(
            "counterfactual_knowledge",
            vector(py, overlap.counterfactual_knowledge.clone()),
        )?;
        Ok((json!(overlap).to_string(), rows))
    }
}

fn to_dict(py: Python<'_>, estimate: EffectEstimate) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("mean", estimate.mean)?;
    found.set_item("std", estimate.std)?;
    found.set_item("lower", estimate.lower)?;
    found.set_item("upper", estimate.upper)?;
    found.set_item("draws", vector(py, estimate.draws))?;
    Ok(found)
}

/// Outcomes on given covariates with known effects: a simulated surface of the IHDP data.
#[pyfunction]
pub(crate) fn draw_ihdp<'py>(
    py: Python<'py>,
    covariates: RawTable<'_>,
    is_treated: PyReadonlyArray1<'_, bool>,
    surface: &str,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let found = IhdpSurface::ALL
        .into_iter()
        .find(|own| own.name() == surface);
    let Some(surface) = found else {
        let problem = format!("surface = {surface:?}: expected 'linear' or 'nonlinear'");
        return Err(PyValueError::new_err(problem));
    };
    let is_treated: Vec<bool> = is_treated.as_array().iter().copied().collect();
    let covariates = covariates.into_table()?;
    let problem = surface.draw(&covariates, &is_treated, Key::from_seed(seed));
    problem_to_dict(py, problem.map_err(to_python)?)
}

/// A toy problem with known effects.
#[pyfunction]
pub(crate) fn draw_toy(
    py: Python<'_>,
    has_good_overlap: bool,
    n_rows: usize,
    seed: u64,
) -> PyResult<Bound<'_, PyDict>> {
    let toy = if has_good_overlap {
        CausalToy::GoodOverlap
    } else {
        CausalToy::LittleOverlap
    };
    let problem = toy.draw(n_rows, Key::from_seed(seed)).map_err(to_python)?;
    let x = numbers(&problem.table, "x");
    let found = problem_to_dict(py, problem)?;
    found.set_item("x", vector(py, x))?;
    Ok(found)
}

fn problem_to_dict(py: Python<'_>, problem: CausalProblem) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("treatment", vector(py, numbers(&problem.table, TREATMENT)))?;
    found.set_item("outcome", vector(py, numbers(&problem.table, OUTCOME)))?;
    found.set_item("true_effect", problem.true_effect)?;
    found.set_item("true_effect_on_treated", problem.true_effect_on_treated)?;
    found.set_item("true_cate", vector(py, problem.true_cate))?;
    Ok(found)
}

/// The numbers of a column of a drawn table.
fn numbers(table: &Table, name: &str) -> Vec<f64> {
    match table.column(name).map(|column| &column.values) {
        Ok(Values::Numeric(values)) => values.clone(),
        _ => Vec::new(),
    }
}
