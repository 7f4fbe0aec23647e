//! The native module `softwood._native`: types in, types out. Everything that decides anything lives in the library.

#![allow(
    clippy::needless_pass_by_value,
    reason = "arguments arrive from Python by value"
)]
#![allow(
    clippy::redundant_closure_for_method_calls,
    reason = "a method path does not fit a question about every lifetime"
)]

mod convert;
mod dist;
mod errors;
mod estimator;
mod run;

/// Fitted models and their answers, as the Python package sees them.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::dist::PyDistribution;
    #[pymodule_export]
    use crate::estimator::{PyModel, families, fit};
}
