//! The posterior over the routes of a row: every node goes right with a probability that is a sum of
//! functions of single columns, tabulated by bin.

use crate::data::binning::binned::Cuts;
use crate::error::{Error, Result};
use crate::numerics::real::sigmoid;
use crate::recurrent::bin_inputs::BinInputs;
use crate::recurrent::network::NetworkShape;
use crate::recurrent::node_splits::node_splits;
use crate::recurrent::unroll::Sharpness;
use crate::store::record::{Array, Record};
use crate::trees::serialize::WordReader;

/// Inputs with a smaller share are left out of a node.
const MIN_SHARE: f64 = 0.01;
/// Greatest depth of a tree in a file.
const MAX_DEPTH: usize = 6;

/// A function of one column.
#[derive(Debug, Clone, PartialEq)]
struct GateTable {
    column: usize,
    /// Contribution to the probability of going right, by bin.
    right: Vec<f32>,
}

/// The gates of all inner nodes; the children of node `i` are `2 i + 1` and `2 i + 2`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SoftGates {
    nodes: Vec<Vec<GateTable>>,
}

impl SoftGates {
    /// The gates of a network that decides with this sharpness.
    pub(crate) fn new(
        shape: &NetworkShape,
        weights: &[f32],
        inputs: &BinInputs,
        sharpness: Sharpness,
    ) -> Self {
        let tables = |split: &crate::recurrent::node_splits::NodeSplit| {
            let shares = split.shares(sharpness.share);
            let kept: Vec<usize> = (0..shares.len())
                .filter(|&input| shares[input] >= MIN_SHARE || input == split.input())
                .collect();
            let total: f64 = kept.iter().map(|&input| shares[input]).sum();
            let table = |&at: &usize| {
                let input = &inputs.inputs[at];
                let right = |&score: &f32| {
                    let t = split.biases[at] + split.slopes[at] * f64::from(score);
                    let gate = sigmoid(sharpness.threshold * t);
                    (shares[at] / total * gate) as f32
                };
                GateTable {
                    column: input.column,
                    right: input.scores.iter().map(right).collect(),
                }
            };
            kept.iter().map(table).collect()
        };
        Self {
            nodes: node_splits(shape, weights).iter().map(tables).collect(),
        }
    }

    pub(crate) fn n_leaves(&self) -> usize {
        self.nodes.len() + 1
    }

    /// Fills `nodes` (inner nodes, then leaves) with the probability that the route of a row passes
    /// through them; `bin` returns the bin of the row in a column.
    pub(crate) fn fill(&self, bin: impl Fn(usize) -> u8, nodes: &mut [f64]) {
        nodes[0] = 1.0;
        for (node, tables) in self.nodes.iter().enumerate() {
            let terms = tables
                .iter()
                .map(|table| f64::from(table.right[usize::from(bin(table.column))]));
            let right = terms.sum::<f64>().clamp(0.0, 1.0);
            nodes[2 * node + 2] = nodes[node] * right;
            nodes[2 * node + 1] = nodes[node] * (1.0 - right);
        }
    }

    /// Arrays of a record; `name` distinguishes the trees of a model.
    pub(crate) fn arrays(&self, name: &str) -> [(String, Array); 2] {
        let mut words = vec![self.nodes.len() as u32];
        let mut values = Vec::new();
        for tables in &self.nodes {
            words.push(tables.len() as u32);
            for table in tables {
                words.push(table.column as u32);
                values.extend_from_slice(&table.right);
            }
        }
        [
            (format!("gate_columns{name}"), Array::U32(words)),
            (format!("gates{name}"), Array::F32(values)),
        ]
    }

    /// Reads the arrays of a record.
    ///
    /// # Errors
    /// When an array is absent, names a column that does not exist, or holds no probabilities.
    pub(crate) fn from_record(record: &Record, name: &str, cuts: &Cuts) -> Result<Self> {
        let invalid = || Error::Format("the gates of a tree are not valid".to_owned());
        let mut words = WordReader::new(record.u32s(&format!("gate_columns{name}"))?);
        let mut values = record.all_f32s(&format!("gates{name}"))?;
        let n_nodes = words.count()?;
        if !(n_nodes + 1).is_power_of_two() || n_nodes >= 1 << MAX_DEPTH {
            return Err(invalid());
        }
        let mut nodes = Vec::with_capacity(n_nodes);
        for _ in 0..n_nodes {
            let mut tables = Vec::new();
            for _ in 0..words.count()? {
                let column = words.next()? as usize;
                let cut = cuts.columns.get(column).ok_or_else(invalid)?;
                let n_bins = cut.n_bins().max(2);
                let right = values.split_off(..n_bins).ok_or_else(invalid)?.to_vec();
                if !right.iter().all(|p| (0.0..=1.0).contains(p)) {
                    return Err(invalid());
                }
                tables.push(GateTable { column, right });
            }
            nodes.push(tables);
        }
        if !(words.is_empty() && values.is_empty()) {
            return Err(invalid());
        }
        Ok(Self { nodes })
    }
}
