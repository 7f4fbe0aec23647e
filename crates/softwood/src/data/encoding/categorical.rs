//! One-hot inputs of categorical columns: one for each frequent category, one for all others, one
//! for missing cells.

use serde::{Deserialize, Serialize};

use crate::data::column::{MISSING, Values};
use crate::data::table::Table;
use crate::numerics::order::sort_descending;

/// The inputs of a categorical column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CategoricalColumn {
    pub(super) column: usize,
    /// Input of each level, relative to the first input of the column; `None` for levels without
    /// training rows.
    pub(super) input_of_level: Vec<Option<usize>>,
    /// Input of missing cells, if there were any in training.
    pub(super) missing: Option<usize>,
    pub(super) n_inputs: usize,
    /// Whether a model was trained further on missing cells, which have no input of their own; false in
    /// files of earlier versions.
    #[serde(default)]
    pub(super) sees_missing: bool,
}

impl CategoricalColumn {
    pub(super) fn fit(
        column: usize,
        codes: &[u32],
        weights: &[f64],
        n_levels: usize,
        max_categories: usize,
    ) -> Self {
        let mut weight_of_level = vec![0.0; n_levels];
        for (&code, weight) in codes
            .iter()
            .zip(weights)
            .filter(|(code, _)| (**code as usize) < n_levels)
        {
            weight_of_level[code as usize] += weight;
        }
        let mut by_weight: Vec<usize> = (0..n_levels)
            .filter(|&level| weight_of_level[level] > 0.0)
            .collect();
        sort_descending(&mut by_weight, &weight_of_level);
        let mut input_of_level = vec![None; n_levels];
        for (rank, &level) in by_weight.iter().enumerate() {
            // rarer categories share the input "other"
            input_of_level[level] = Some(rank.min(max_categories));
        }
        let mut n_inputs = by_weight.len().min(max_categories + 1);
        let missing = codes.contains(&MISSING).then(|| {
            n_inputs += 1;
            n_inputs - 1
        });
        Self {
            column,
            input_of_level,
            missing,
            n_inputs,
            sees_missing: false,
        }
    }

    /// Whether training knows nothing of a cell: it has no input.
    pub(super) fn is_unseen(&self, table: &Table, row: usize) -> bool {
        self.input(table, row).is_none() && !(self.sees_missing && self.is_missing(table, row))
    }

    /// Missing cells of these rows are no longer unseen, because a model is trained on them.
    pub(super) fn see_missing_cells(&mut self, table: &Table) {
        self.sees_missing |= (0..table.n_rows()).any(|row| self.is_missing(table, row));
    }

    fn is_missing(&self, table: &Table, row: usize) -> bool {
        match &table.columns()[self.column].values {
            Values::Categorical { codes, .. } => codes[row] == MISSING,
            Values::Numeric(_) => false,
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
