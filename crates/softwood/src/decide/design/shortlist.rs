//! The rows of a pool that a batch is chosen from: different rows before copies, and of a large pool a
//! part with high scores.

use crate::data::dedup::cell_hashes;
use crate::data::table::Table;
use crate::decide::design::streams;
use crate::numerics::order::sort_descending;
use crate::rng::{Key, shuffle};

/// Candidates of a batch, unless the batch needs more: memory and time grow with candidates x
/// members.
const MAX_CANDIDATES: usize = 2000;
/// Candidates for each row of the batch.
const CANDIDATES_PER_ROW: usize = 4;

/// All rows in random order, so that the key decides between equal scores.
pub(super) fn random_order(n_rows: usize, key: Key) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..n_rows).collect();
    shuffle(&mut key.child(streams::ORDER).rng(), &mut rows);
    rows
}

/// Groups of rows, each in the order of `rows`: the first group has one of every set of equal rows,
/// the second another one of every set that has several, and so on.
pub(super) fn groups_of_different_rows(table: &Table, rows: &[usize], key: Key) -> Vec<Vec<usize>> {
    let hashes = cell_hashes(table, vec![key.word(); table.n_rows()]);
    let mut order: Vec<(u64, usize)> = (rows.iter().map(|&row| hashes[row]))
        .zip(0..rows.len())
        .collect();
    order.sort_unstable();
    let mut group_of = vec![0; rows.len()];
    let mut n_groups = 0;
    for equal in order.chunk_by(|a, b| a.0 == b.0) {
        for (group, &(_, position)) in equal.iter().enumerate() {
            group_of[position] = group;
        }
        n_groups = n_groups.max(equal.len());
    }
    let mut groups = vec![Vec::new(); n_groups];
    for (&row, group) in rows.iter().zip(group_of) {
        groups[group].push(row);
    }
    groups
}

/// Number of candidates for a batch of `n` rows.
pub(super) fn n_candidates(n: usize) -> usize {
    MAX_CANDIDATES.max(n.saturating_mul(CANDIDATES_PER_ROW))
}

/// The candidates for a batch of `n` rows, sorted by falling score. Of more rows than
/// [`n_candidates`], half of the candidates are the rows with the largest scores, and half are drawn
/// from the others with probabilities in proportion to the scores, so that the candidates are not
/// all of one region.
pub(super) fn shortlist(mut rows: Vec<usize>, scores: &[f64], n: usize, key: Key) -> Vec<usize> {
    // stable: rows of equal scores stay in their random order
    sort_descending(&mut rows, scores);
    let limit = n_candidates(n);
    if rows.len() <= limit {
        return rows;
    }
    let others = rows.split_off(limit / 2);
    let uniforms = key.child(streams::SHORTLIST).uniforms(others.len());
    // the first arrivals of Poisson processes whose rates are the scores
    let arrival = |(row, u): (usize, f64)| {
        let time = -(1.0 - u).ln();
        (time.max(f64::MIN_POSITIVE) / scores[row], row)
    };
    let mut arrivals: Vec<(f64, usize)> = others.into_iter().zip(uniforms).map(arrival).collect();
    arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));
    arrivals.truncate(limit - rows.len());
    rows.extend(arrivals.into_iter().map(|(_, row)| row));
    sort_descending(&mut rows, scores);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::column::Column;

    #[test]
    fn copies_of_a_row_come_after_all_different_rows() {
        let a = Column::numeric("a", vec![1.0, f64::NAN, 1.0, 0.0, f64::NAN, -0.0, 1.0]);
        let b = Column::categorical("b", &["x", "x", "x", "y", "x", "y", "z"].map(Some));
        let table = Table::new(vec![a, b]).unwrap();
        let rows = [6, 5, 4, 3, 2, 1, 0];
        let groups = groups_of_different_rows(&table, &rows, Key::from_seed(0));
        assert_eq!(groups, [vec![6, 5, 4, 2], vec![3, 1, 0]]);
    }

    #[test]
    fn the_shortlist_has_the_largest_scores_and_a_sample_of_the_others() {
        // the lower half of the pool has no score at all
        let n_rows = 4 * MAX_CANDIDATES;
        let score = |row: usize| row.saturating_sub(n_rows / 2) as f64;
        let scores: Vec<f64> = (0..n_rows).map(score).collect();
        let key = Key::from_seed(1);
        let found = shortlist(random_order(n_rows, key), &scores, 10, key);
        assert_eq!(found.len(), MAX_CANDIDATES);
        let half = MAX_CANDIDATES / 2;
        let largest: Vec<usize> = (n_rows - half..n_rows).rev().collect();
        assert_eq!(found[..half], largest);
        assert!(found[half..].iter().all(|&row| row > n_rows / 2));
        let mean = found[half..].iter().map(|&row| scores[row]).sum::<f64>() / half as f64;
        // proportional sampling of 1000 of the scores 1 to 3000: above their mean, below their maximum
        assert!((1600.0..2400.0).contains(&mean), "{mean}");
        let mut unique = found;
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), MAX_CANDIDATES);
    }
}
