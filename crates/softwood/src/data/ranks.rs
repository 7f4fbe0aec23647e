//! Values of a column at equal steps of rank.

/// At most `n` and at least two values at equal steps of weighted rank. There is at least one value.
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

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn a_weight_counts_as_repeated_values() {
        let sorted = [1.0, 2.0, 5.0, 9.0];
        let repeated = [1.0, 1.0, 1.0, 2.0, 5.0, 5.0, 9.0, 9.0];
        let weighted = values_by_rank(&sorted, &[3.0, 1.0, 2.0, 2.0], 4);
        close(&weighted, &values_by_rank(&repeated, &[1.0; 8], 4), 0.0);
        close(&weighted, &[1.0, 1.0, 5.0, 9.0], 0.0);
        close(&values_by_rank(&[4.0], &[1.0], 16), &[4.0, 4.0], 0.0);
    }
}
