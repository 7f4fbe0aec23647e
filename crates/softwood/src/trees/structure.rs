//! A grown tree without its leaf values: tests in flat arrays.

use crate::trees::condition::Test;

/// Tests and how they lead to leaves.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Skeleton {
    /// Every node of a level asks the same test; a leaf is the number whose bits are the answers, the first answer highest.
    Symmetric(Vec<Test>),
    /// Node 0 is the root. A child below zero is the leaf `!child`, else a node that stands after its parent.
    General {
        tests: Vec<Test>,
        children: Vec<[i32; 2]>,
    },
}

impl Skeleton {
    pub(crate) fn tests(&self) -> &[Test] {
        match self {
            Self::Symmetric(tests) | Self::General { tests, .. } => tests,
        }
    }

    pub(crate) fn n_leaves(&self) -> usize {
        match self {
            Self::Symmetric(tests) => 1 << tests.len(),
            Self::General { tests, .. } => tests.len() + 1,
        }
    }

    /// The leaf of a row whose bin of each column `bin` tells.
    #[inline]
    pub(crate) fn leaf(&self, bin: impl Fn(usize) -> u8) -> usize {
        match self {
            Self::Symmetric(tests) => tests.iter().fold(0, |leaf, test| {
                2 * leaf + usize::from(test.goes_right(bin(test.column)))
            }),
            Self::General { tests, children } => {
                let mut at = if tests.is_empty() { -1 } else { 0 };
                while at >= 0 {
                    let test = &tests[at as usize];
                    at = children[at as usize][usize::from(test.goes_right(bin(test.column)))];
                }
                !at as usize
            }
        }
    }
}
