//! A grown tree without its leaf values: conditions in flat arrays.

use crate::trees::condition::BinCondition;

/// Tests and how they lead to leaves.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TreeStructure {
    /// Every node of a level asks the same condition; a leaf is the number whose bits are the answers, the first answer highest.
    Symmetric(Vec<BinCondition>),
    /// Node 0 is the root. A child below zero is the leaf `!child`, else a node that stands after its parent.
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

    /// The leaf of a row whose bin of each column `bin` tells.
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
