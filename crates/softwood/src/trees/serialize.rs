//! Tree structures as `u32` words of a record. Reading checks every index.
//!
//! A tree consists of its kind (0 symmetric, 1 general), the number of conditions, the conditions
//! and, for a general tree, two children per condition. A condition consists of the column, its
//! kind (0 threshold with missing cells on the left, 1 threshold with missing cells on the right, 2
//! set of bins) and the bin of the threshold or the eight words of the set.

use crate::data::binning::binned::Cuts;
use crate::error::{Error, Result};
use crate::trees::condition::{BinCondition, RightBins};
use crate::trees::structure::TreeStructure;

/// Greatest depth of a symmetric tree in a file; such a tree has `2^depth` leaves.
const MAX_SYMMETRIC_DEPTH: usize = 16;

impl TreeStructure {
    /// Number of words of the tree.
    pub(crate) fn n_words(&self) -> usize {
        let conditions = self.conditions().iter();
        let n_words: usize = conditions
            .map(|condition| match &condition.right_bins {
                RightBins::Above { .. } => 3,
                RightBins::In(set) => 2 + 2 * set.len(),
            })
            .sum();
        let n_children = match self {
            Self::General { children, .. } => 2 * children.len(),
            Self::Symmetric(_) => 0,
        };
        2 + n_words + n_children
    }

    /// Appends the tree to `words`.
    pub(crate) fn write(&self, words: &mut Vec<u32>) {
        let conditions = self.conditions();
        words.push(u32::from(matches!(self, Self::General { .. })));
        words.push(conditions.len() as u32);
        for condition in conditions {
            push_condition(condition, words);
        }
        if let Self::General { children, .. } = self {
            words.extend(children.iter().flatten().map(|&child| child as u32));
        }
    }

    /// Reads a tree on columns with these cuts.
    ///
    /// # Errors
    /// When the words end too early, name a missing column or bin, or do not form a tree.
    pub(crate) fn read(words: &mut WordReader<'_>, cuts: &Cuts) -> Result<Self> {
        let is_general = words.next()? == 1;
        let n_conditions = words.count()?;
        let conditions = (0..n_conditions)
            .map(|_| read_condition(words, cuts))
            .collect::<Result<Vec<_>>>()?;
        if is_general {
            return Ok(Self::General {
                conditions,
                children: read_children(words, n_conditions)?,
            });
        }
        if n_conditions > MAX_SYMMETRIC_DEPTH {
            return Err(Error::Format(format!(
                "a symmetric tree has depth {n_conditions}; at most {MAX_SYMMETRIC_DEPTH} is possible"
            )));
        }
        Ok(Self::Symmetric(conditions))
    }
}

fn push_condition(condition: &BinCondition, words: &mut Vec<u32>) {
    words.push(condition.column as u32);
    match condition.right_bins {
        RightBins::Above { bin, missing_right } => {
            words.extend([u32::from(missing_right), u32::from(bin)]);
        }
        RightBins::In(set) => {
            words.push(2);
            words.extend(
                set.iter()
                    .flat_map(|&word| [word as u32, (word >> 32) as u32]),
            );
        }
    }
}

/// A reader of words that fails at their end.
#[derive(Debug)]
pub(crate) struct WordReader<'a>(std::slice::Iter<'a, u32>);

impl<'a> WordReader<'a> {
    pub(crate) fn new(words: &'a [u32]) -> Self {
        Self(words.iter())
    }

    /// Whether all words have been read.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    pub(crate) fn next(&mut self) -> Result<u32> {
        self.0
            .next()
            .copied()
            .ok_or_else(|| Error::Format("a list of trees ends too early".to_owned()))
    }

    /// A count of items, each of which takes at least one of the remaining words.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let count = self.next()? as usize;
        if count > self.0.len() {
            return Err(Error::Format(format!(
                "a list of trees announces {count} items, but {} words remain",
                self.0.len()
            )));
        }
        Ok(count)
    }
}

/// Children of the nodes of a general tree.
pub(crate) fn read_children(
    words: &mut WordReader<'_>,
    n_conditions: usize,
) -> Result<Vec<[i32; 2]>> {
    let broken = || Error::Format("the nodes of a tree are not connected as a tree".to_owned());
    let mut children = Vec::with_capacity(n_conditions);
    let mut n_leaves = 0;
    let mut has_parent = vec![false; n_conditions];
    for node in 0..n_conditions {
        let mut pair = [0; 2];
        for child in &mut pair {
            *child = words.next()? as i32;
            let is_valid = if *child >= 0 {
                let place = *child as usize;
                // a child stands after its parent and has no other parent: routing ends
                place > node
                    && has_parent
                        .get_mut(place)
                        .is_some_and(|has_parent| !std::mem::replace(has_parent, true))
            } else {
                n_leaves += 1;
                !*child == n_leaves - 1
            };
            if !is_valid {
                return Err(broken());
            }
        }
        children.push(pair);
    }
    if n_conditions > 0 && n_leaves as usize != n_conditions + 1 {
        return Err(broken());
    }
    Ok(children)
}

fn read_condition(words: &mut WordReader<'_>, cuts: &Cuts) -> Result<BinCondition> {
    let column = words.next()? as usize;
    let kind = words.next()?;
    let cut = cuts.columns.get(column);
    let right_bins = match (kind, cut) {
        (0 | 1, Some(cut)) => {
            let bin = words.next()?;
            let n_bins = cut.n_bins().max(2);
            if bin == 0 || bin as usize >= n_bins {
                return Err(Error::Format(format!(
                    "a tree has its threshold at bin {bin} of column {column}, which has {n_bins} bins"
                )));
            }
            RightBins::Above {
                bin: bin as u8,
                missing_right: kind == 1,
            }
        }
        (2, Some(cut)) if cut.is_category() => {
            let mut set = [0; 4];
            for word in &mut set {
                *word = u64::from(words.next()?) | u64::from(words.next()?) << 32;
            }
            RightBins::In(set)
        }
        _ => {
            return Err(Error::Format(format!(
                "a tree has a condition of kind {kind} on column {column}, which does not exist or does not allow it"
            )));
        }
    };
    Ok(BinCondition { column, right_bins })
}
