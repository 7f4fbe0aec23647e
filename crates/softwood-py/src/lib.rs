//! The native module `softwood._native`: converts arguments and results between Python and the
//! library. All decisions are made in the library.

#![allow(
    clippy::needless_pass_by_value,
    reason = "arguments arrive from Python by value"
)]
#![allow(
    clippy::redundant_closure_for_method_calls,
    reason = "a method path of `Distribution` is not general over its lifetime"
)]

mod bandit;
mod callback;
mod causal;
mod convert;
mod design;
mod distribution;
mod errors;
mod evaluate;
mod fit;
mod interrupt;
mod memory;
mod model;
mod significance;

/// Fitted models and predictive distributions for the Python package.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::bandit::{PyAgent, replay_bandit, simulate_bandit};
    #[pymodule_export]
    use crate::callback::PyEvent;
    #[pymodule_export]
    use crate::causal::{PyEffects, draw_ihdp, draw_toy, estimate_effects};
    #[pymodule_export]
    const MIN_ROWS_FOR_THREADS: usize = crate::distribution::MIN_ROWS_FOR_THREADS;
    #[pymodule_export]
    use crate::design::{select_rows, suggest};
    #[pymodule_export]
    use crate::distribution::PyDistribution;
    #[pymodule_export]
    use crate::evaluate::evaluate;
    #[pymodule_export]
    use crate::fit::{families, fit, former_names};
    #[pymodule_export]
    use crate::memory::check_matrix;
    #[pymodule_export]
    use crate::model::PyModel;
    #[pymodule_export]
    use crate::significance::{diebold_mariano, f_test_5x2cv, paired_t_test};
}
