//! Values of a column at equal steps of rank.

/// At most `n` and at least two values at equal steps of weighted rank.
pub(crate) fn values_by_rank(sorted: &[f64], weights: &[f64], n: usize) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    let n = n.min(sorted.len()).max(2);
    let mut values = Vec::with_capacity(n);
    let (mut row, mut weight_below) = (0, 0.0);
    for at in 0..n {
        let rank = total * (at as f64 + 0.5) / n as f64;
        while row + 1 < sorted.len() && weight_below + weights[row] < rank {
            weight_below += weights[row];
            row += 1;
        }
        values.push(sorted[row]);
    }
    values
}
