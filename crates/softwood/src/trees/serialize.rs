//! Tests and shapes of trees as words of a record, and back with every index checked.
//!
//! A tree is its kind (0 symmetric, 1 general), the number of conditions, the conditions (column; 0 or 1 for a threshold with missing cells
//! left or right, 2 for a set; the bin, or eight words of the set) and, for a general tree, two children per condition.

use crate::data::binning::binned::Cuts;
use crate::error::{Error, Result};
use crate::trees::condition::{BinCondition, RightBins};
use crate::trees::structure::TreeStructure;

impl TreeStructure {
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

    /// Reads a tree on columns of these cuts.
    ///
    /// # Errors
    /// When the words end too early, name a column or bin that is not there, or do not form a tree.
    pub(crate) fn read(words: &mut WordReader<'_>, cuts: &Cuts) -> Result<Self> {
        read_structure(words, cuts)
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

/// A reader of words that fails at the end.
#[derive(Debug)]
pub(crate) struct WordReader<'a>(std::slice::Iter<'a, u32>);

impl<'a> WordReader<'a> {
    pub(crate) fn new(words: &'a [u32]) -> Self {
        Self(words.iter())
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    pub(crate) fn next(&mut self) -> Result<u32> {
        self.0
            .next()
            .copied()
            .ok_or_else(|| Error::Format("a list of trees ends too early".to_owned()))
    }

    /// A count that cannot exceed what is left.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let count = self.next()? as usize;
        if count > self.0.len() {
            return Err(Error::Format(
                "a list of trees is longer than its array".to_owned(),
            ));
        }
        Ok(count)
    }
}

fn read_structure(words: &mut WordReader<'_>, cuts: &Cuts) -> Result<TreeStructure> {
    let is_general = words.next()? == 1;
    let n_conditions = words.count()?;
    let conditions = (0..n_conditions)
        .map(|_| read_condition(words, cuts))
        .collect::<Result<Vec<_>>>()?;
    if !is_general {
        if n_conditions > 16 {
            return Err(Error::Format("a symmetric tree is too deep".to_owned()));
        }
        return Ok(TreeStructure::Symmetric(conditions));
    }
    let mut children = Vec::with_capacity(n_conditions);
    let mut n_leaves = 0;
    let mut has_parent = vec![false; n_conditions];
    for node in 0..n_conditions {
        let mut pair = [0; 2];
        for child in &mut pair {
            *child = words.next()? as i32;
            let is_sound = if *child >= 0 {
                let place = *child as usize;
                // a child stands after its parent and has no other: no walk goes round in circles
                place > node
                    && has_parent
                        .get_mut(place)
                        .is_some_and(|taken| !std::mem::replace(taken, true))
            } else {
                n_leaves += 1;
                !*child == n_leaves - 1
            };
            if !is_sound {
                return Err(Error::Format(
                    "the nodes of a tree do not form one".to_owned(),
                ));
            }
        }
        children.push(pair);
    }
    if n_conditions > 0 && n_leaves as usize != n_conditions + 1 {
        return Err(Error::Format(
            "the nodes of a tree do not form one".to_owned(),
        ));
    }
    Ok(TreeStructure::General {
        conditions,
        children,
    })
}

fn read_condition(words: &mut WordReader<'_>, cuts: &Cuts) -> Result<BinCondition> {
    let column = words.next()? as usize;
    let kind = words.next()?;
    let cut = cuts.columns.get(column);
    let right_bins = match (kind, cut) {
        (0 | 1, Some(cut)) => {
            let bin = words.next()?;
            if bin == 0 || bin as usize >= cut.n_bins().max(2) {
                return Err(Error::Format(
                    "a threshold lies outside its column".to_owned(),
                ));
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
            return Err(Error::Format(
                "a tree asks what no column can answer".to_owned(),
            ));
        }
    };
    Ok(BinCondition { column, right_bins })
}
