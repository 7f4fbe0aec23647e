//! Predictions of random members for some rows of a distribution, a limited number of rows at a time.

use crate::distribution::Distribution;
use crate::error::Result;
use crate::rng::Key;

/// Predictions that are in memory at a time, unless a single row has more.
const MAX_VALUES: usize = 1 << 22;

/// Which members are evaluated.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemberChoice {
    /// Number of members, at most that of the model.
    pub(super) n: usize,
    /// Key of the choice.
    pub(super) key: Key,
}

/// Calls `visit` for each of `rows` with its position in `rows` and the predictions of the members
/// (members x outputs; outputs as in [`Distribution::members`]). The members are the same for all
/// rows.
///
/// # Errors
/// As [`Distribution::sample_functions`].
pub(super) fn visit_members(
    distribution: &Distribution<'_>,
    rows: &[usize],
    members: MemberChoice,
    mut visit: impl FnMut(usize, &[f64]),
) -> Result<()> {
    let width = members.n * distribution.n_outputs();
    let rows_per_chunk = (MAX_VALUES / width.max(1)).max(1);
    let mut position = 0;
    for chunk in rows.chunks(rows_per_chunk) {
        let part = part(distribution, chunk)?;
        let values = part.sample_functions(members.n, members.key)?;
        for row in values.chunks_exact(width) {
            visit(position, row);
            position += 1;
        }
    }
    Ok(())
}

/// The prediction for some of the rows, with the same threads and observer.
///
/// # Errors
/// When the work is cancelled.
pub(super) fn part<'a>(
    distribution: &'a Distribution<'_>,
    rows: &[usize],
) -> Result<Distribution<'a>> {
    let table = distribution.table().try_take(rows)?;
    let part = distribution.for_rows(table, distribution.pool());
    Ok(part.observed_by(distribution.observer()))
}
