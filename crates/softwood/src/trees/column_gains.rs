//! What splits gained, by column.

use crate::trees::cart::pruning::NodeStatistics;
use crate::trees::structure::TreeStructure;

/// Reduction of the loss by the splits on each column, relative to the loss of the root.
pub(crate) fn split_gains(
    nodes: &NodeStatistics,
    structure: &TreeStructure,
    n_columns: usize,
) -> Vec<f64> {
    let losses = nodes.losses();
    let mut gains = vec![0.0; n_columns];
    for (node, condition) in structure.conditions().iter().enumerate() {
        let [left, right] = nodes.children[node];
        gains[condition.column] += (losses[node] - losses[left] - losses[right]).max(0.0);
    }
    gains
}

/// Gains as shares of their sum; all zero where nothing was gained.
pub(crate) fn as_shares(mut gains: Vec<f64>) -> Vec<f64> {
    let total: f64 = gains.iter().sum();
    if total > 0.0 {
        for gain in &mut gains {
            *gain /= total;
        }
    }
    gains
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_one_or_stay_zero() {
        assert_eq!(as_shares(vec![1.0, 3.0]), [0.25, 0.75]);
        assert_eq!(as_shares(vec![0.0, 0.0]), [0.0, 0.0]);
    }
}
