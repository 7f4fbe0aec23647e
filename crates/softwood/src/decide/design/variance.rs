//! Choice of the rows with the largest knowledge uncertainty, without near-duplicates.

use crate::decide::design::deviations::ScaledDeviations;
use crate::error::Result;
use crate::stop;

/// Two rows are near-duplicates if the deviations of the members on them have a larger absolute
/// correlation: the label of one says nearly all that the label of the other would.
const MAX_CORRELATION: f64 = 0.95;

/// Chooses `n` candidates in their order, which is that of the scores; returns their positions.
/// Candidates that are near-duplicates of a chosen one wait for a next round, in which only the rows
/// of that round count.
///
/// # Errors
/// When the work is cancelled.
pub(super) fn choose(candidates: &ScaledDeviations, n: usize) -> Result<Vec<usize>> {
    let mut chosen = Vec::with_capacity(n);
    let mut open: Vec<usize> = (0..candidates.n_rows()).collect();
    while chosen.len() < n && !open.is_empty() {
        let round = chosen.len();
        let mut deferred = Vec::new();
        for position in open {
            stop::check()?;
            let is_near =
                |&other: &usize| candidates.correlation(position, other) > MAX_CORRELATION;
            if chosen.len() == n {
                break;
            }
            if chosen[round..].iter().any(is_near) {
                deferred.push(position);
            } else {
                chosen.push(position);
            }
        }
        open = deferred;
    }
    Ok(chosen)
}
