//! Chains as arrays of a record. Reading checks every index.
//!
//! - `chainN.tests` (u32): the number of trees, then the structure of each tree (see
//!   `trees/serialize.rs`)
//! - `chainN.values`, `chainN.gains` (f32): leaf values and gains, tree after tree
//! - `chainN.start` (f64): the constant that the sum starts with, for each output, then the
//!   shrinkage per tree
//! - `chainN.outputs` (u32): the outputs that each tree updates, if that is not all of them

use crate::boosting::chain::{BoostedTree, Chain};
use crate::data::binning::binned::Cuts;
use crate::error::{Error, Result};
use crate::likelihood::categorical::MAX_SHOWN;
use crate::store::range::MAX_STANDARD;
use crate::store::record::{Array, Record};
use crate::trees::serialize::WordReader;
use crate::trees::structure::TreeStructure;

/// The arrays of chain number `at`.
pub(super) fn encode(chain: &Chain, at: usize) -> Vec<(String, Array)> {
    let mut words = vec![chain.trees.len() as u32];
    for tree in &chain.trees {
        tree.structure.write(&mut words);
    }
    let gather = |part: fn(&BoostedTree) -> &Vec<f32>| {
        Array::F32(
            chain
                .trees
                .iter()
                .flat_map(|tree| part(tree).iter().copied())
                .collect(),
        )
    };
    let mut start = chain.start.clone();
    start.push(chain.shrinkage);
    let mut arrays = vec![
        (format!("chain{at}.start"), Array::F64(start)),
        (format!("chain{at}.tests"), Array::U32(words)),
        (format!("chain{at}.values"), gather(|tree| &tree.values)),
        (format!("chain{at}.gains"), gather(|tree| &tree.gains)),
    ];
    let outputs = chain.trees.iter().flat_map(|tree| &tree.outputs);
    let outputs: Vec<u32> = outputs.map(|&output| output.into()).collect();
    if !outputs.is_empty() {
        arrays.push((format!("chain{at}.outputs"), Array::U32(outputs)));
    }
    arrays
}

/// Reads chain number `at`.
///
/// # Errors
/// When an array is absent, too short or too long, or holds an impossible value.
pub(super) fn decode(record: &Record, at: usize, n_outputs: usize, cuts: &Cuts) -> Result<Chain> {
    let start = record.f64s(&format!("chain{at}.start"), n_outputs + 1)?;
    let shrinkage = start[n_outputs];
    let is_value = |value: f64| value.abs() <= MAX_STANDARD;
    if !(start.iter().copied().all(is_value) && shrinkage > 0.0 && shrinkage <= 1.0) {
        return Err(Error::Format(format!(
            "chain {at}: the start values or the shrinkage are out of range"
        )));
    }
    let mut words = WordReader::new(record.u32s(&format!("chain{at}.tests"))?);
    let mut values = record.all_f32s(&format!("chain{at}.values"))?.iter();
    let mut gains = record.all_f32s(&format!("chain{at}.gains"))?.iter();
    let n_trees = words.count()?;
    let updated = updated_outputs(record, at, n_trees, n_outputs)?;
    let mut trees = Vec::with_capacity(n_trees);
    for outputs in updated {
        let structure = TreeStructure::read(&mut words, cuts)?;
        let n_updated = if outputs.is_empty() {
            n_outputs
        } else {
            outputs.len()
        };
        let n_values = structure.n_leaves() * n_updated;
        let tree = BoostedTree {
            values: values.by_ref().take(n_values).copied().collect(),
            outputs,
            gains: gains
                .by_ref()
                .take(structure.conditions().len())
                .copied()
                .collect(),
            structure,
        };
        if tree.values.len() != n_values || tree.gains.len() != tree.structure.conditions().len() {
            return Err(Error::Format(format!(
                "chain {at}: leaf values or gains are missing"
            )));
        }
        let are_values = tree.values.iter().all(|&value| is_value(value.into()));
        if !are_values || !tree.gains.iter().all(|gain| gain.is_finite()) {
            return Err(Error::Format(format!(
                "chain {at}: a leaf value or gain is out of range"
            )));
        }
        trees.push(tree);
    }
    if trees.is_empty() || !words.is_empty() || values.len() + gains.len() > 0 {
        return Err(Error::Format(format!(
            "chain {at}: the lengths of its arrays do not match"
        )));
    }
    Ok(Chain {
        start: start[..n_outputs].to_vec(),
        trees,
        shrinkage,
    })
}

/// The outputs that each tree updates; empty for all.
fn updated_outputs(
    record: &Record,
    at: usize,
    n_trees: usize,
    n_outputs: usize,
) -> Result<Vec<Vec<u16>>> {
    if n_outputs <= MAX_SHOWN {
        return Ok(vec![Vec::new(); n_trees]);
    }
    let all = record.u32s(&format!("chain{at}.outputs"))?;
    let is_sound = |some: &[u32]| {
        let ascend = some.windows(2).all(|pair| pair[0] < pair[1]);
        ascend && some.iter().all(|&output| (output as usize) < n_outputs)
    };
    if n_trees.checked_mul(MAX_SHOWN) != Some(all.len())
        || n_outputs > u16::MAX.into()
        || !all.chunks(MAX_SHOWN).all(is_sound)
    {
        return Err(Error::Format(format!(
            "chain {at}: the outputs that its trees update are not valid"
        )));
    }
    let narrow = |some: &[u32]| some.iter().map(|&output| output as u16).collect();
    Ok(all.chunks(MAX_SHOWN).map(narrow).collect())
}
