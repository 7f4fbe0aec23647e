//! Expected improvement: the mean over the members of what a row improves on the best value so far.
//!
//! A batch is chosen greedily. With `b_m` the best of the value so far and of member `m` on the rows
//! that are chosen already, a further row is worth `Σ_m max(0, f_m(i) - b_m) / M`: the members are the
//! same draws of functions on all rows, so that a row with nothing to add to a chosen one is worth
//! nothing.

use crate::decide::design::MAX_MEMBERS;
use crate::decide::design::member_rows::{MemberChoice, visit_members};
use crate::decide::design::shortlist::n_candidates;
use crate::decide::design::streams;
use crate::decide::design::suggestions::MemberObjective;
use crate::error::Result;
use crate::reserve::reserve;
use crate::stop;

/// The worth of a row; ordered by its fields.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
struct Worth {
    /// Expected improvement.
    improvement: f64,
    /// Largest difference of a member to its best value: decides where no member improves.
    closest: f64,
}

/// Chooses `n` of the candidates; returns positions.
///
/// # Errors
/// As [`crate::Distribution::sample_functions`].
pub(super) fn choose(
    objective: &MemberObjective<'_>,
    rows: &[usize],
    best: f64,
    n: usize,
) -> Result<Vec<usize>> {
    let members = MemberChoice {
        n: objective.distribution.n_members().min(MAX_MEMBERS),
        key: objective.key.child(streams::MEMBERS),
    };
    let mut bests = vec![best; members.n];
    let candidates = candidates(objective, rows, members, &bests, n)?;
    let candidate_rows: Vec<usize> = candidates.iter().map(|&position| rows[position]).collect();
    let mut values: Vec<f64> = Vec::new();
    reserve(&mut values, candidate_rows.len(), members.n)?;
    visit_members(
        objective.distribution,
        &candidate_rows,
        members,
        |_, outputs| values.extend(objective.values(outputs)),
    )?;
    let values_of = |at: usize| &values[at * members.n..][..members.n];
    let mut open: Vec<usize> = (0..candidates.len()).collect();
    let mut chosen = Vec::with_capacity(n);
    while chosen.len() < n {
        stop::check()?;
        let worths = open
            .iter()
            .map(|&at| worth(values_of(at).iter().copied(), &bests));
        let at = open.remove(first_best(worths));
        for (best, value) in bests.iter_mut().zip(values_of(at)) {
            *best = best.max(*value);
        }
        chosen.push(candidates[at]);
    }
    Ok(chosen)
}

/// Positions of the rows that are worth most on their own, in the order of `rows`.
fn candidates(
    objective: &MemberObjective<'_>,
    rows: &[usize],
    members: MemberChoice,
    bests: &[f64],
    n: usize,
) -> Result<Vec<usize>> {
    let limit = n_candidates(n);
    if rows.len() <= limit {
        return Ok((0..rows.len()).collect());
    }
    let mut worths: Vec<(Worth, usize)> = Vec::with_capacity(rows.len());
    visit_members(
        objective.distribution,
        rows,
        members,
        |position, outputs| {
            worths.push((worth(objective.values(outputs), bests), position));
        },
    )?;
    worths.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(std::cmp::Ordering::Equal));
    let mut candidates: Vec<usize> = worths[..limit].iter().map(|&(_, at)| at).collect();
    candidates.sort_unstable();
    Ok(candidates)
}

/// The worth of a row from the values of its members.
fn worth(values: impl Iterator<Item = f64>, bests: &[f64]) -> Worth {
    let n_members = bests.len() as f64;
    let mut found = Worth {
        improvement: 0.0,
        closest: f64::NEG_INFINITY,
    };
    for (value, best) in values.zip(bests) {
        let difference = value - best;
        found.improvement += difference.max(0.0) / n_members;
        found.closest = found.closest.max(difference);
    }
    found
}

/// Index of the first of the largest items.
fn first_best(worths: impl Iterator<Item = Worth>) -> usize {
    let mut largest: Option<(usize, Worth)> = None;
    for (at, worth) in worths.enumerate() {
        if largest.is_none_or(|(_, best)| worth > best) {
            largest = Some((at, worth));
        }
    }
    largest.map_or(0, |(at, _)| at)
}
