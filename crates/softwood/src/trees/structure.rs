//! The structure of a tree without its leaf values: conditions in flat arrays.

use crate::trees::condition::BinCondition;

/// Conditions and the paths through them to the leaves.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TreeStructure {
    /// All nodes of a level have the same condition. The index of a leaf has one bit per condition,
    /// set if the condition sends rows of the leaf right; the bit of the root is the highest.
    Symmetric(Vec<BinCondition>),
    /// Node 0 is the root. A negative child is the leaf `!child`; any other child is a node, which
    /// stands after its parent.
    General {
        conditions: Vec<BinCondition>,
        children: Vec<[i32; 2]>,
    },
}

impl TreeStructure {
    pub(crate) fn conditions(&self) -> &[BinCondition] {
        match self {
            Self::Symmetric(conditions) | Self::General { conditions, .. } => conditions,
        }
    }

    pub(crate) fn n_leaves(&self) -> usize {
        match self {
            Self::Symmetric(conditions) => 1 << conditions.len(),
            Self::General { conditions, .. } => conditions.len() + 1,
        }
    }

    /// The leaf of a row; `bin` returns the bin of the row in a column.
    #[inline]
    pub(crate) fn leaf(&self, bin: impl Fn(usize) -> u8) -> usize {
        match self {
            Self::Symmetric(conditions) => conditions.iter().fold(0, |leaf, condition| {
                2 * leaf + usize::from(condition.goes_right(bin(condition.column)))
            }),
            Self::General {
                conditions,
                children,
            } => {
                let mut at = if conditions.is_empty() { -1 } else { 0 };
                while at >= 0 {
                    let condition = &conditions[at as usize];
                    at = children[at as usize]
                        [usize::from(condition.goes_right(bin(condition.column)))];
                }
                !at as usize
            }
        }
    }
}
