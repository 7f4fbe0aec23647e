//! The thresholds that the trees of a chain use: usually far fewer than there are bin edges, and
//! none for some columns. Binning new rows by these alone is faster.

use crate::boosting::chain::Chain;
use crate::boosting::predict::BinSource;
use crate::data::binning::bin_lookup::BinLookup;
use crate::data::binning::binned::{Cut, Cuts, MAX_BINS, MISSING_BIN};
use crate::data::column::{UNSEEN, Values};
use crate::data::table::Rows;
use crate::data::unseen::UnseenSubstitutes;
use crate::trees::condition::RightBins;

/// Thresholds that a chain uses, by column. Cells get bins for which every condition of the chain
/// has the same result as for the bins of the training edges.
#[derive(Debug, Clone)]
pub(crate) struct UsedThresholds(Vec<ColumnThresholds>);

#[derive(Debug, Clone)]
enum ColumnThresholds {
    /// No condition uses the column.
    Unused,
    /// Bins between the thresholds, and the bin of a missing cell.
    Number { lookup: BinLookup, missing: u8 },
    /// Bins of the levels, of an unseen category and of a missing cell.
    Category {
        bins: Vec<u8>,
        unseen: u8,
        missing: u8,
    },
}

impl UsedThresholds {
    /// Thresholds of chain number `number`. Each chain replaces an unseen cell by a known one of
    /// its own.
    pub(crate) fn new(
        chain: &Chain,
        cuts: &Cuts,
        substitutes: UnseenSubstitutes,
        number: usize,
    ) -> Self {
        let mut edges_used = vec![None; cuts.columns.len()];
        for condition in chain
            .trees
            .iter()
            .flat_map(|tree| tree.structure.conditions())
        {
            let edges = edges_used[condition.column].get_or_insert([false; MAX_BINS]);
            // the bins above `bin` start at edge `bin - 1`; bin 0 holds the missing cells, and no
            // edge is needed to separate them
            if let RightBins::Above { bin, .. } = condition.right_bins
                && let Some(edge) = usize::from(bin).checked_sub(1)
            {
                edges[edge] = true;
            }
        }
        let columns = cuts.columns.iter().zip(edges_used).enumerate();
        let thresholds =
            |(column, (cut, used)): (usize, (&Cut, Option<[bool; MAX_BINS]>))| match (cut, used) {
                (_, None) => ColumnThresholds::Unused,
                (
                    Cut::Number {
                        edges,
                        substitutes: bins,
                        ..
                    },
                    Some(used),
                ) => {
                    let which: Vec<usize> = (0..edges.len()).filter(|&edge| used[edge]).collect();
                    let missing = substitutes
                        .code_of_number(number, column, bins.len())
                        .map_or(MISSING_BIN, |code| bins[code]);
                    ColumnThresholds::Number {
                        lookup: BinLookup::of_some(edges, &which),
                        missing,
                    }
                }
                (Cut::Category { bins, is_complete }, Some(_)) => {
                    let unseen = substitutes
                        .code(number, column, &(1..cut.n_bins()))
                        .map_or(MISSING_BIN, |bin| bin as u8);
                    let substitute = |&bin: &u8| if bin == MISSING_BIN { unseen } else { bin };
                    ColumnThresholds::Category {
                        bins: bins.iter().map(substitute).collect(),
                        unseen,
                        missing: if *is_complete { unseen } else { MISSING_BIN },
                    }
                }
            };
        Self(columns.map(thresholds).collect())
    }

    /// The bins of some rows.
    pub(crate) fn of<'a>(&'a self, rows: &'a Rows<'a>) -> UsedBins<'a> {
        UsedBins {
            used_thresholds: self,
            rows,
        }
    }
}

/// Rows of a table in the bins between the thresholds that a chain uses.
#[derive(Debug)]
pub(crate) struct UsedBins<'a> {
    used_thresholds: &'a UsedThresholds,
    rows: &'a Rows<'a>,
}

impl BinSource for UsedBins<'_> {
    fn n_rows(&self) -> usize {
        self.rows.len()
    }

    fn n_columns(&self) -> usize {
        self.used_thresholds.0.len()
    }

    fn fill(&self, column: usize, first: usize, bins: &mut [u8]) {
        let start = self.rows.range.start + first;
        let cells = start..start + bins.len();
        match (
            &self.used_thresholds.0[column],
            &self.rows.table.columns()[column].values,
        ) {
            (ColumnThresholds::Unused, _) => {}
            (ColumnThresholds::Number { lookup, missing }, Values::Numeric(values)) => {
                lookup.bins(&values[cells], bins);
                if *missing != MISSING_BIN {
                    for bin in bins {
                        *bin = if *bin == MISSING_BIN { *missing } else { *bin };
                    }
                }
            }
            (
                ColumnThresholds::Category {
                    bins: known,
                    unseen,
                    missing,
                },
                Values::Categorical { codes, .. },
            ) => {
                for (bin, &code) in bins.iter_mut().zip(&codes[cells]) {
                    let known_bin = known.get(code as usize).copied();
                    let other_bin = if code == UNSEEN { *unseen } else { *missing };
                    *bin = known_bin.unwrap_or(other_bin);
                }
            }
            _ => unreachable!("tables are aligned to the schema that the cuts were fitted with"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boosting::chain::BoostedTree;
    use crate::data::binning::binned::substitute_unseen;
    use crate::data::column::Column;
    use crate::data::table::Table;
    use crate::rng::Key;
    use crate::trees::condition::BinCondition;
    use crate::trees::structure::TreeStructure;

    const N: usize = 700;

    /// Whether a row is no training row.
    fn is_new(row: usize) -> bool {
        row * 7 % 20 == 19
    }

    /// Two numeric columns and two categorical ones. The training rows have all levels of the first of these but
    /// the last, and no missing cells in `a` and `d`, which all rows that are no training rows lack.
    fn table() -> Table {
        let numbers = |column| Key::from_seed(column).uniforms(N);
        let complete = numbers(1).into_iter().enumerate();
        let complete = complete.map(|(row, x)| if is_new(row) { f64::NAN } else { x });
        let with_missing = numbers(2).into_iter().enumerate();
        let with_missing = with_missing.map(|(row, x)| if row % 9 == 0 { f64::NAN } else { x });
        let complete_codes: Vec<Option<String>> = (0..N)
            .map(|row| (!is_new(row)).then(|| format!("{}", row * 3 % 5)))
            .collect();
        let codes: Vec<Option<String>> = (0..N)
            .map(|row| (row % 11 > 0 || is_new(row)).then(|| format!("{:02}", row * 7 % 20)))
            .collect();
        Table::new(vec![
            Column::numeric("a", complete.collect()),
            Column::numeric("b", with_missing.collect()),
            Column::categorical("c", &codes),
            Column::categorical("d", &complete_codes),
        ])
        .unwrap()
    }

    fn chain(conditions: &[BinCondition]) -> Chain {
        let mut chain = Chain::new(vec![0.0], 1.0);
        chain.trees = conditions
            .iter()
            .map(|&condition| BoostedTree {
                structure: TreeStructure::Symmetric(vec![condition]),
                values: vec![0.0; 2],
                outputs: Vec::new(),
                gains: vec![0.0],
            })
            .collect();
        chain
    }

    #[test]
    fn conditions_have_the_results_of_the_training_bins() {
        let table = table();
        let Values::Categorical { codes, levels } = &table.columns()[2].values else {
            unreachable!()
        };
        let last = levels.len() as u32 - 1;
        let seen: Vec<u32> = (0..N as u32)
            .filter(|&row| codes[row as usize] != last)
            .collect();
        let cuts = Cuts::fit(&table, &seen, &vec![1.0; seen.len()], 200);
        let above = |column, bin, missing_right| BinCondition {
            column,
            right_bins: RightBins::Above { bin, missing_right },
        };
        let few: Vec<BinCondition> = [3, 77, 78, 199, 255]
            .map(|bin| above(0, bin, bin % 2 == 0))
            .into();
        let many = (1..=200).map(|bin| above(1, bin, bin % 2 == 0));
        let missing_only = [above(1, 255, true), above(1, 0, false)];
        let set = BinCondition {
            column: 2,
            right_bins: RightBins::In([0x2b5d5, 0, 0, 0]),
        };
        let complete_set = BinCondition {
            column: 3,
            right_bins: RightBins::In([0b10_1001, 0, 0, 0]),
        };
        let substitutes = UnseenSubstitutes::new(Key::from_seed(8));
        for conditions in [
            few.clone(),
            many.collect(),
            missing_only.to_vec(),
            vec![set],
            vec![complete_set],
            [&few[..], &[set]].concat(),
        ] {
            for number in [0, 3] {
                let rows = table.rows(5..N);
                let mut binned = cuts.bin_range(&rows);
                substitute_unseen(&cuts, &cuts.unseen(&rows), substitutes, number, &mut binned);
                let used_thresholds =
                    UsedThresholds::new(&chain(&conditions), &cuts, substitutes, number);
                let used_bins = used_thresholds.of(&rows);
                let mut bins = vec![0; 300];
                for condition in &conditions {
                    used_bins.fill(condition.column, 40, &mut bins);
                    for (at, &bin) in bins.iter().enumerate() {
                        let training_bin = binned.bin(40 + at, condition.column);
                        assert_eq!(
                            condition.goes_right(bin),
                            condition.goes_right(training_bin),
                            "{condition:?}"
                        );
                    }
                }
            }
        }
    }
}
