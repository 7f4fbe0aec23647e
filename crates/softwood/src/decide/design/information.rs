//! Greedy choice of the rows whose labels carry most information about the model.
//!
//! For labels `y_i = f(i) + noise` and jointly Normal `f`, the mutual information between the labels
//! of a batch `S` and the function is, with the scaled deviations of its rows as the rows of `A`,
//!
//! ```text
//! I(S) = ½ ln det(1 + K_S / s²) = ½ ln det(1 + A Aᵀ)
//! ```
//!
//! and a further row adds half the logarithm of its variance under [`MemberPosterior`]. Gains only
//! fall while rows are added, so that an earlier gain is an upper bound and few rows are computed
//! again at each step.
//!
//! For classes the outputs of a row are treated as Normal with unit noise. To second order in the
//! deviations, the information of a single row is then the mutual information of class and member.

use crate::decide::design::deviations::ScaledDeviations;
use crate::decide::design::member_posterior::MemberPosterior;
use crate::error::Result;
use crate::numerics::cholesky;
use crate::stop;

/// A row with its last computed gain.
struct BoundedGain {
    position: usize,
    gain: f64,
    /// Number of chosen rows when the gain was computed.
    n_chosen: usize,
}

/// Chooses `n` of the candidates one after the other; returns their positions and gains in nats.
///
/// # Errors
/// When the work is cancelled.
pub(super) fn choose(
    posterior: &mut MemberPosterior,
    candidates: &ScaledDeviations,
    n: usize,
) -> Result<Vec<(usize, f64)>> {
    let n_outputs = candidates.n_outputs();
    let mut open = Vec::with_capacity(candidates.n_rows());
    for position in 0..candidates.n_rows() {
        stop::check()?;
        open.push(BoundedGain {
            position,
            gain: gain(posterior, candidates.row(position), n_outputs),
            n_chosen: 0,
        });
    }
    let mut chosen = Vec::with_capacity(n);
    while chosen.len() < n && !open.is_empty() {
        stop::check()?;
        let best = first_largest(open.iter().map(|row| row.gain));
        let row = candidates.row(open[best].position);
        if open[best].n_chosen < chosen.len() {
            open[best].gain = gain(posterior, row, n_outputs).min(open[best].gain);
            open[best].n_chosen = chosen.len();
            continue;
        }
        posterior.add(row);
        // the order of the others decides between equal gains
        let best = open.remove(best);
        chosen.push((best.position, best.gain));
    }
    Ok(chosen)
}

/// What the label of a row would add, in nats; `row` has its deviations (outputs x members).
fn gain(posterior: &MemberPosterior, row: &[f64], n_outputs: usize) -> f64 {
    let mut variance = posterior.row(row, n_outputs).variance;
    if n_outputs == 1 {
        return 0.5 * variance[0].ln();
    }
    // eigenvalues are one or more, but for rounding
    if cholesky::factor(&mut variance, n_outputs) {
        0.5 * cholesky::ln_det(&variance, n_outputs).max(0.0)
    } else {
        0.0
    }
}

/// Index of the first of the largest values.
pub(super) fn first_largest(values: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (at, value) in values.enumerate() {
        if value > best.1 {
            best = (at, value);
        }
    }
    best.0
}
