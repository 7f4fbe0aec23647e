//! ScanOrder leaves of a tree lie above which along the columns that a prediction must rise or fall in.
//!
//! Two leaves are compared where a row of one becomes a row of the other by a step over a threshold in such a column, all
//! other cells kept: only those. A missing cell has no place in the order.

use crate::data::binning::binned::MISSING_BIN;
use crate::trees::condition::{BinCondition, RightBins};
use crate::trees::histogram::candidate::ColumnInfo;
use crate::trees::structure::TreeStructure;

/// A lower and an upper leaf: the value of the first may not exceed that of the second.
pub(crate) type LeafPair = [usize; 2];

/// All pairs of neighbouring leaves; those further apart follow from them.
pub(crate) fn pairs(structure: &TreeStructure, columns: &ColumnInfo) -> Vec<LeafPair> {
    if !columns.is_ordered() {
        return Vec::new();
    }
    match structure {
        TreeStructure::Symmetric(conditions) => of_symmetric(conditions, columns),
        TreeStructure::General {
            conditions,
            children,
        } => LeafWalk::new(conditions, children, columns).pairs(),
    }
}

/// The pair in the order of its values.
fn directed(order: i8, below: usize, above: usize) -> LeafPair {
    if order > 0 {
        [below, above]
    } else {
        [above, below]
    }
}

/// The bins on both sides of a condition's threshold, where there are such.
fn sides(condition: &BinCondition, columns: &ColumnInfo) -> Option<[u8; 2]> {
    match condition.right_bins {
        RightBins::Above { bin, .. } if usize::from(bin) + 1 < columns.n_bins[condition.column] => {
            Some([bin, bin + 1])
        }
        _ => None,
    }
}

fn of_symmetric(conditions: &[BinCondition], columns: &ColumnInfo) -> Vec<LeafPair> {
    let mut pairs = Vec::new();
    let place = |at: usize| conditions.len() - 1 - at;
    for (at, condition) in conditions.iter().enumerate() {
        let order = columns.order[condition.column];
        let is_repeated = conditions[..at].iter().any(|other| {
            other.column == condition.column && threshold(other) == threshold(condition)
        });
        let Some(bins) = sides(condition, columns).filter(|_| order != 0 && !is_repeated) else {
            continue;
        };
        // bits of the conditions on this column, as the bins on both sides answer them
        let (mut own, mut answers) = (0, [0; 2]);
        for (at, other) in conditions.iter().enumerate() {
            if other.column == condition.column {
                own |= 1 << place(at);
                for (answer, bin) in answers.iter_mut().zip(bins) {
                    *answer |= usize::from(other.goes_right(bin)) << place(at);
                }
            }
        }
        let others = (0..1_usize << conditions.len()).filter(|leaf| leaf & own == 0);
        pairs.extend(others.map(|rest| directed(order, rest | answers[0], rest | answers[1])));
    }
    pairs
}

fn threshold(condition: &BinCondition) -> Option<u8> {
    match condition.right_bins {
        RightBins::Above { bin, .. } => Some(bin),
        RightBins::In(_) => None,
    }
}

/// Bins that a row may have in one column.
type BinMask = [u64; 4];

/// A walk down a tree whose nodes have conditions of their own, with the bins that lead to where it stands.
struct LeafWalk<'a> {
    conditions: &'a [BinCondition],
    children: &'a [[i32; 2]],
    columns: &'a ColumnInfo,
    /// By column.
    region: Vec<BinMask>,
    pairs: Vec<LeafPair>,
}

/// A step over a threshold: the column, and the bins on both sides.
#[derive(Clone, Copy)]
struct WalkStep {
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

    /// Looks at the node and at all below it.
    fn down(&mut self, node: usize) {
        let condition = self.conditions[node];
        let [left, right] = self.children[node];
        if self.columns.order[condition.column] != 0
            && let Some(bins) = sides(&condition, self.columns)
        {
            let column = condition.column;
            if bins.iter().all(|&bin| holds(&self.region[column], bin)) {
                self.across(WalkStep { column, bins }, [left, right]);
            }
        }
        for (side, child) in [left, right].into_iter().enumerate() {
            if child >= 0 {
                self.narrowed(condition, side == 1, |walk| walk.down(child as usize));
            }
        }
    }

    /// Pairs of leaves below two nodes, the first on the lower side of the step, the second on the upper.
    fn across(&mut self, step: WalkStep, nodes: [i32; 2]) {
        let Some(side) = nodes.iter().position(|&node| node >= 0) else {
            let order = self.columns.order[step.column];
            let [below, above] = nodes.map(|node| !node as usize);
            self.pairs.push(directed(order, below, above));
            return;
        };
        let node = nodes[side] as usize;
        let condition = self.conditions[node];
        let with = |child: i32| {
            let mut next = nodes;
            next[side] = child;
            next
        };
        if condition.column == step.column {
            let answer = usize::from(condition.goes_right(step.bins[side]));
            self.across(step, with(self.children[node][answer]));
            return;
        }
        for (answer, child) in self.children[node].into_iter().enumerate() {
            self.narrowed(condition, answer == 1, |walk| {
                walk.across(step, with(child))
            });
        }
    }

    /// Goes on among the rows that answer a condition so, if there can be any.
    fn narrowed(&mut self, condition: BinCondition, answer: bool, go_on: impl FnOnce(&mut Self)) {
        let before = self.region[condition.column];
        let mut after = [0; 4];
        for bin in 0..=u8::MAX {
            if holds(&before, bin) && condition.goes_right(bin) == answer {
                after[bin as usize / 64] |= 1 << (bin % 64);
            }
        }
        if after != [0; 4] {
            self.region[condition.column] = after;
            go_on(self);
            self.region[condition.column] = before;
        }
    }
}

fn holds(set: &BinMask, bin: u8) -> bool {
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
            order: vec![1, -1, 0],
        }
    }

    /// Pairs by their meaning: every row, one step up in a column.
    fn by_rows(structure: &TreeStructure, columns: &ColumnInfo) -> Vec<LeafPair> {
        let mut found = Vec::new();
        let n = &columns.n_bins;
        for row in 0..n[0] * n[1] * n[2] {
            let cells = [row % n[0], row / n[0] % n[1], row / n[0] / n[1]];
            let leaf = |cells: [usize; 3]| structure.leaf(|column| cells[column] as u8);
            for column in 0..2 {
                let mut next = cells;
                next[column] += 1;
                if cells[column] > 0 && next[column] < n[column] && leaf(cells) != leaf(next) {
                    found.push(directed(columns.order[column], leaf(cells), leaf(next)));
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Phantom leaves, which no row reaches, may be compared too: they stand apart from all others.
    fn reached(
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
    fn pairs_are_those_that_some_row_steps_between() {
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
            // a tree of the same conditions in which each node has a leaf or the next condition, or both have
            let children = vec![[1, 2], [3, -1], [-2, -3], [-4, -5]];
            let general = TreeStructure::General {
                conditions,
                children,
            };
            for structure in [symmetric, general] {
                let found = reached(pairs(&structure, &columns), &structure, &columns);
                assert_eq!(found, by_rows(&structure, &columns), "{structure:?}");
            }
        }
    }
}
