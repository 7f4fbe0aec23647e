//! Thompson sampling: each suggestion is the best row of a random member.

use crate::decide::design::member_rows::{MemberChoice, visit_members};
use crate::decide::design::streams;
use crate::decide::design::suggestions::MemberObjective;
use crate::error::Result;
use crate::stop;

/// Chooses `n` of the candidates, each by another member until all of them have chosen; a member
/// whose best row is taken chooses its next best. Returns positions.
///
/// # Errors
/// As [`crate::Distribution::sample_functions`].
pub(super) fn choose(
    objective: &MemberObjective<'_>,
    rows: &[usize],
    n: usize,
) -> Result<Vec<usize>> {
    let members = MemberChoice {
        n: objective.distribution.n_members().min(n),
        key: objective.key.child(streams::MEMBERS),
    };
    let mut rankings: Vec<Ranking> = vec![Ranking::default(); members.n];
    visit_members(
        objective.distribution,
        rows,
        members,
        |position, outputs| {
            let values = objective.values(outputs);
            for (ranking, value) in rankings.iter_mut().zip(values) {
                ranking.push(value, position, n);
            }
        },
    )?;
    let mut is_taken = vec![false; rows.len()];
    let mut chosen = Vec::with_capacity(n);
    for ranking in &mut rankings {
        ranking.truncate(n);
    }
    let mut next = vec![0; members.n];
    for draw in 0..n {
        stop::check()?;
        let member = draw % members.n;
        let ranking = &rankings[member].best;
        // n rows are ranked, and fewer than n are taken
        while is_taken[ranking[next[member]].1] {
            next[member] += 1;
        }
        let position = ranking[next[member]].1;
        is_taken[position] = true;
        chosen.push(position);
    }
    Ok(chosen)
}

/// The best rows of a member.
#[derive(Debug, Clone, Default)]
struct Ranking {
    /// Values and positions; between two calls of `truncate` more than the best ones.
    best: Vec<(f64, usize)>,
}

impl Ranking {
    /// Adds a row; keeps the `n` best ones at least.
    fn push(&mut self, value: f64, position: usize, n: usize) {
        self.best.push((value, position));
        if self.best.len() >= 2 * n + 64 {
            self.truncate(n);
        }
    }

    /// Keeps the `n` best rows, in order; of equal values the first positions.
    fn truncate(&mut self, n: usize) {
        self.best
            .sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        self.best.truncate(n);
    }
}
