//! Tests of the significance of differences between two models.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use softwood::evaluate::significance::{self, SignificanceTest};

use crate::convert::numbers_of;
use crate::errors::to_python;

/// Statistic, p-value and mean difference.
type TestNumbers = (f64, f64, f64);

/// Paired t-test of scores on the same folds or rows.
#[pyfunction]
pub(crate) fn paired_t_test(
    a: PyReadonlyArray1<'_, f64>,
    b: PyReadonlyArray1<'_, f64>,
) -> PyResult<TestNumbers> {
    let (a, b) = (numbers_of("a", &a)?, numbers_of("b", &b)?);
    numbers(significance::paired_t_test(&a, &b))
}

/// 5x2 cv paired F test of the errors of ten folds.
#[pyfunction]
pub(crate) fn f_test_5x2cv(
    errors_a: PyReadonlyArray1<'_, f64>,
    errors_b: PyReadonlyArray1<'_, f64>,
) -> PyResult<TestNumbers> {
    let a = numbers_of("errors_a", &errors_a)?;
    let b = numbers_of("errors_b", &errors_b)?;
    numbers(significance::f_test_5x2cv(&a, &b))
}

/// Diebold-Mariano test of scores per row, of forecasts `h` steps ahead.
#[pyfunction]
pub(crate) fn diebold_mariano(
    a: PyReadonlyArray1<'_, f64>,
    b: PyReadonlyArray1<'_, f64>,
    h: usize,
) -> PyResult<TestNumbers> {
    let (a, b) = (numbers_of("a", &a)?, numbers_of("b", &b)?);
    numbers(significance::diebold_mariano(&a, &b, h))
}

fn numbers(test: softwood::Result<SignificanceTest>) -> PyResult<TestNumbers> {
    let test = test.map_err(to_python)?;
    Ok((test.statistic, test.p_value, test.mean_difference))
}
