//! Pairs of leaves whose values a monotone constraint orders.
//!
//! Two leaves form a pair if a row moves from one to the other when its value in a constrained
//! column crosses a threshold and its other cells stay the same. Constraints do not apply to
//! missing cells.

use crate::data::binning::binned::MISSING_BIN;
use crate::trees::condition::{BinCondition, RightBins};
use crate::trees::histogram::candidate::ColumnInfo;
use crate::trees::structure::TreeStructure;

/// A lower and an upper leaf: the value of the lower one must not exceed that of the upper one.
pub(crate) type LeafPair = [usize; 2];

/// All pairs of neighbouring leaves, which imply the order of leaves further apart.
pub(crate) fn pairs(structure: &TreeStructure, columns: &ColumnInfo) -> Vec<LeafPair> {
    if !columns.has_monotone_constraints() {
        return Vec::new();
    }
    match structure {
        TreeStructure::Symmetric(conditions) => symmetric_pairs(conditions, columns),
        TreeStructure::General {
            conditions,
            children,
        } => LeafWalk::new(conditions, children, columns).pairs(),
    }
}

/// The pair of the leaves below and above a threshold, under a constraint of this direction.
fn directed(direction: i8, below: usize, above: usize) -> LeafPair {
    if direction > 0 {
        [below, above]
    } else {
        [above, below]
    }
}

/// The bins next to the threshold of a condition, unless one side has no bin.
fn bins_at_threshold(condition: &BinCondition, columns: &ColumnInfo) -> Option<[u8; 2]> {
    match condition.right_bins {
        RightBins::Above { bin, .. } if usize::from(bin) + 1 < columns.n_bins[condition.column] => {
            Some([bin, bin + 1])
        }
        _ => None,
    }
}

fn symmetric_pairs(conditions: &[BinCondition], columns: &ColumnInfo) -> Vec<LeafPair> {
    let mut pairs = Vec::new();
    let bit = |at: usize| conditions.len() - 1 - at;
    for (at, condition) in conditions.iter().enumerate() {
        let direction = columns.monotonic_cst[condition.column];
        let is_repeated = conditions[..at].iter().any(|other| {
            other.column == condition.column && threshold(other) == threshold(condition)
        });
        let bins = bins_at_threshold(condition, columns);
        let Some(bins) = bins.filter(|_| direction != 0 && !is_repeated) else {
            continue;
        };
        // leaf bits of the conditions on this column: all of them, and those set for either bin
        let (mut mask, mut sides) = (0, [0; 2]);
        for (at, other) in conditions.iter().enumerate() {
            if other.column == condition.column {
                mask |= 1 << bit(at);
                for (side, bin) in sides.iter_mut().zip(bins) {
                    *side |= usize::from(other.goes_right(bin)) << bit(at);
                }
            }
        }
        let others = (0..1_usize << conditions.len()).filter(|leaf| leaf & mask == 0);
        pairs.extend(others.map(|other| directed(direction, other | sides[0], other | sides[1])));
    }
    pairs
}

fn threshold(condition: &BinCondition) -> Option<u8> {
    match condition.right_bins {
        RightBins::Above { bin, .. } => Some(bin),
        RightBins::In(_) => None,
    }
}

/// A set of bins of one column.
type BinMask = [u64; 4];

/// A depth-first traversal of a general tree that collects pairs.
struct LeafWalk<'a> {
    conditions: &'a [BinCondition],
    children: &'a [[i32; 2]],
    columns: &'a ColumnInfo,
    /// The bins, by column, that lead to the current node.
    region: Vec<BinMask>,
    pairs: Vec<LeafPair>,
}

/// A threshold of a constrained column, and the bins next to it.
#[derive(Clone, Copy)]
struct ThresholdCrossing {
    column: usize,
    bins: [u8; 2],
}

impl<'a> LeafWalk<'a> {
    fn new(
        conditions: &'a [BinCondition],
        children: &'a [[i32; 2]],
        columns: &'a ColumnInfo,
    ) -> Self {
        let region = columns.n_bins.iter().map(|&n_bins| {
            let mut set = [0; 4];
            for bin in usize::from(MISSING_BIN)..n_bins {
                set[bin / 64] |= 1 << (bin % 64);
            }
            set
        });
        Self {
            conditions,
            children,
            columns,
            region: region.collect(),
            pairs: Vec::new(),
        }
    }

    fn pairs(mut self) -> Vec<LeafPair> {
        if !self.conditions.is_empty() {
            self.down(0);
        }
        self.pairs
    }

    /// Collects the pairs of the threshold of a node and of all nodes below it.
    fn down(&mut self, node: usize) {
        let condition = self.conditions[node];
        let [left, right] = self.children[node];
        if self.columns.monotonic_cst[condition.column] != 0
            && let Some(bins) = bins_at_threshold(&condition, self.columns)
        {
            let column = condition.column;
            if bins.iter().all(|&bin| contains(&self.region[column], bin)) {
                self.across(ThresholdCrossing { column, bins }, [left, right]);
            }
        }
        for (side, child) in [left, right].into_iter().enumerate() {
            if child >= 0 {
                self.narrowed(condition, side == 1, |walk| walk.down(child as usize));
            }
        }
    }

    /// Collects the pairs of leaves below two nodes, the first of which contains rows below the
    /// threshold and the second rows above it.
    fn across(&mut self, crossing: ThresholdCrossing, nodes: [i32; 2]) {
        let Some(side) = nodes.iter().position(|&node| node >= 0) else {
            let direction = self.columns.monotonic_cst[crossing.column];
            let [below, above] = nodes.map(|node| !node as usize);
            self.pairs.push(directed(direction, below, above));
            return;
        };
        let node = nodes[side] as usize;
        let condition = self.conditions[node];
        let with = |child: i32| {
            let mut next = nodes;
            next[side] = child;
            next
        };
        if condition.column == crossing.column {
            let right = usize::from(condition.goes_right(crossing.bins[side]));
            self.across(crossing, with(self.children[node][right]));
            return;
        }
        for (right, child) in self.children[node].into_iter().enumerate() {
            self.narrowed(condition, right == 1, |walk| {
                walk.across(crossing, with(child));
            });
        }
    }

    /// Visits one side of a condition, with the region restricted to it, unless no bin leads there.
    fn narrowed(&mut self, condition: BinCondition, right: bool, visit: impl FnOnce(&mut Self)) {
        let before = self.region[condition.column];
        let mut after = [0; 4];
        for bin in 0..=u8::MAX {
            if contains(&before, bin) && condition.goes_right(bin) == right {
                after[bin as usize / 64] |= 1 << (bin % 64);
            }
        }
        if after != [0; 4] {
            self.region[condition.column] = after;
            visit(self);
            self.region[condition.column] = before;
        }
    }
}

fn contains(set: &BinMask, bin: u8) -> bool {
    set[bin as usize / 64] >> (bin % 64) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, below};

    fn condition(column: usize, bin: u8) -> BinCondition {
        let missing_right = bin.is_multiple_of(2);
        BinCondition {
            column,
            right_bins: RightBins::Above { bin, missing_right },
        }
    }

    fn columns() -> ColumnInfo {
        ColumnInfo {
            n_bins: vec![5, 4, 6],
            is_category: vec![false; 3],
            has_missing: vec![true; 3],
            monotonic_cst: vec![1, -1, 0],
            encodings: Vec::new(),
        }
    }

    /// Pairs by definition: every row, moved up by one bin in a constrained column.
    fn pairs_by_rows(structure: &TreeStructure, columns: &ColumnInfo) -> Vec<LeafPair> {
        let mut found = Vec::new();
        let n = &columns.n_bins;
        for row in 0..n[0] * n[1] * n[2] {
            let cells = [row % n[0], row / n[0] % n[1], row / n[0] / n[1]];
            let leaf = |cells: [usize; 3]| structure.leaf(|column| cells[column] as u8);
            for column in 0..2 {
                let mut next = cells;
                next[column] += 1;
                if cells[column] > 0 && next[column] < n[column] && leaf(cells) != leaf(next) {
                    found.push(directed(
                        columns.monotonic_cst[column],
                        leaf(cells),
                        leaf(next),
                    ));
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Removes pairs with leaves that no row reaches: such pairs constrain no reachable leaf.
    fn reachable(
        pairs: Vec<LeafPair>,
        structure: &TreeStructure,
        columns: &ColumnInfo,
    ) -> Vec<LeafPair> {
        let n = &columns.n_bins;
        let leaves: Vec<usize> = (0..n[0] * n[1] * n[2])
            .map(|row| {
                let cells = [row % n[0], row / n[0] % n[1], row / n[0] / n[1]];
                structure.leaf(|column| cells[column] as u8)
            })
            .collect();
        let mut pairs = pairs;
        pairs.retain(|pair| leaves.contains(&pair[0]) && leaves.contains(&pair[1]));
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    #[test]
    fn pairs_agree_with_their_definition() {
        let columns = columns();
        let mut rng = Key::from_seed(1).rng();
        for _ in 0..300 {
            let conditions: Vec<BinCondition> = (0..4)
                .map(|_| {
                    let column = below(&mut rng, 3);
                    condition(
                        column,
                        1 + below(&mut rng, columns.n_bins[column] - 1) as u8,
                    )
                })
                .collect();
            let symmetric = TreeStructure::Symmetric(conditions.clone());
            // a general tree with the same conditions
            let children = vec![[1, 2], [3, -1], [-2, -3], [-4, -5]];
            let general = TreeStructure::General {
                conditions,
                children,
            };
            for structure in [symmetric, general] {
                let found = reachable(pairs(&structure, &columns), &structure, &columns);
                let expected = pairs_by_rows(&structure, &columns);
                assert_eq!(found, expected, "{structure:?}");
            }
        }
    }
}
