//! Indices in the order of scores. A sort is compiled once for each comparison, so the comparisons that
//! many places need stand here. All sorts are stable and use the total order of floating-point numbers.

/// All indices by increasing score.
pub(crate) fn ascending(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    sort_ascending(&mut order, scores);
    order
}

/// All indices by decreasing score.
pub(crate) fn descending(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    sort_descending(&mut order, scores);
    order
}

/// Sorts indices by increasing score.
pub(crate) fn sort_ascending(order: &mut [usize], scores: &[f64]) {
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
}

/// Sorts indices by decreasing score.
pub(crate) fn sort_descending(order: &mut [usize], scores: &[f64]) {
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
}

/// Sorts bins by increasing score.
pub(crate) fn sort_bins(order: &mut [u8], scores: &[f32]) {
    order.sort_by(|&a, &b| scores[usize::from(a)].total_cmp(&scores[usize::from(b)]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_scores_keep_their_order() {
        let scores = [2.0, 1.0, 3.0, 1.0, 2.0];
        assert_eq!(ascending(&scores), [1, 3, 0, 4, 2]);
        assert_eq!(descending(&scores), [2, 0, 4, 1, 3]);
        let mut bins = [4, 3, 1, 0];
        sort_bins(&mut bins, &scores.map(|score| score as f32));
        assert_eq!(bins, [3, 1, 4, 0]);
    }
}
