//! Categories: an input for each of the frequent ones, one for the others, one for missing cells.

use serde::{Deserialize, Serialize};

use crate::data::column::{MISSING, Values};
use crate::data::table::Table;

/// A category's way to its inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CategoricalColumn {
    pub(super) column: usize,
    /// Input of each level, counted within the column; `None` where training had no such row.
    pub(super) input_of_level: Vec<Option<usize>>,
    /// Input of missing cells, where training had any.
    pub(super) missing: Option<usize>,
    pub(super) n_inputs: usize,
}

impl CategoricalColumn {
    pub(super) fn fit(
        column: usize,
        codes: &[u32],
        weights: &[f64],
        (n_levels, max_categories): (usize, usize),
    ) -> Self {
        let mut counts = vec![0.0; n_levels];
        for (&code, weight) in codes
            .iter()
            .zip(weights)
            .filter(|(code, _)| (**code as usize) < n_levels)
        {
            counts[code as usize] += weight;
        }
        let mut by_count: Vec<usize> = (0..n_levels).filter(|&level| counts[level] > 0.0).collect();
        by_count.sort_by(|&a, &b| counts[b].total_cmp(&counts[a]));
        let mut input_of_level = vec![None; n_levels];
        for (rank, &level) in by_count.iter().enumerate() {
            // from the cap on, all share the input "other"
            input_of_level[level] = Some(rank.min(max_categories));
        }
        let mut n_inputs = by_count.len().min(max_categories + 1);
        let missing = codes.contains(&MISSING).then(|| {
            n_inputs += 1;
            n_inputs - 1
        });
        Self {
            column,
            input_of_level,
            missing,
            n_inputs,
        }
    }

    pub(super) fn input(&self, table: &Table, row: usize) -> Option<usize> {
        match &table.columns()[self.column].values {
            Values::Categorical { codes, .. } if codes[row] == MISSING => self.missing,
            Values::Categorical { codes, .. } => self
                .input_of_level
                .get(codes[row] as usize)
                .copied()
                .flatten(),
            Values::Numeric(_) => None,
        }
    }
}
