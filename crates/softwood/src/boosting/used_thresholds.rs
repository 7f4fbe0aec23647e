//! What the trees of a chain ask of a table: of most columns far fewer edges than were cut, of some nothing.

use crate::boosting::chain::Chain;
use crate::boosting::predict::BinSource;
use crate::data::binning::bin_lookup::BinLookup;
use crate::data::binning::binned::{Cut, Cuts, MAX_BINS, MISSING_BIN};
use crate::data::column::{UNSEEN, Values};
use crate::data::table::Rows;
use crate::data::unseen::UnseenSubstitutes;
use crate::trees::condition::RightBins;

/// The questions of a chain, by column. Cells get bins that answer them as the bins that they were cut into would.
#[derive(Debug, Clone)]
pub(crate) struct UsedThresholds(Vec<ColumnThresholds>);

#[derive(Debug, Clone)]
enum ColumnThresholds {
    Nothing,
    Number(BinLookup),
    /// Bins of the levels, and of a category that training never saw.
    Category {
        bins: Vec<u8>,
        unseen: u8,
    },
}

impl UsedThresholds {
    /// The questions of one of several chains, each of which guesses in its own way what a category is that training never saw.
    pub(crate) fn new(
        chain: &Chain,
        cuts: &Cuts,
        substitutes: UnseenSubstitutes,
        number: usize,
    ) -> Self {
        let mut edges = vec![None; cuts.columns.len()];
        for condition in chain
            .trees
            .iter()
            .flat_map(|tree| tree.structure.conditions())
        {
            let of_column = edges[condition.column].get_or_insert([false; MAX_BINS]);
            // bins above `bin` begin at this edge; that of missing cells is told apart by having no edge below
            if let RightBins::Above { bin, .. } = condition.right_bins
                && let Some(edge) = usize::from(bin).checked_sub(1)
            {
                of_column[edge] = true;
            }
        }
        let columns = cuts.columns.iter().zip(edges).enumerate();
        let question = |(column, (cut, used_thresholds)): (
            usize,
            (&Cut, Option<[bool; MAX_BINS]>),
        )| match (cut, used_thresholds) {
            (_, None) => ColumnThresholds::Nothing,
            (Cut::Number { edges, .. }, Some(used_thresholds)) => {
                let which: Vec<usize> = (0..edges.len())
                    .filter(|&edge| used_thresholds[edge])
                    .collect();
                ColumnThresholds::Number(BinLookup::of_some(edges, &which))
            }
            (Cut::Category { bins }, Some(_)) => {
                let unseen = substitutes
                    .code(number, column, &(1..cut.n_bins()))
                    .map_or(MISSING_BIN, |bin| bin as u8);
                let told = |&bin: &u8| if bin == MISSING_BIN { unseen } else { bin };
                ColumnThresholds::Category {
                    bins: bins.iter().map(told).collect(),
                    unseen,
                }
            }
        };
        Self(columns.map(question).collect())
    }

    /// The answers of some rows.
    pub(crate) fn of<'a>(&'a self, rows: &'a Rows<'a>) -> UsedBins<'a> {
        UsedBins {
            used_thresholds: self,
            rows,
        }
    }
}

/// Rows of a table, in bins as a chain asks for them.
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
            (ColumnThresholds::Nothing, _) => {}
            (ColumnThresholds::Number(lookup), Values::Numeric(values)) => {
                lookup.bins(&values[cells], bins);
            }
            (
                ColumnThresholds::Category {
                    bins: known,
                    unseen,
                },
                Values::Categorical { codes, .. },
            ) => {
                for (bin, &code) in bins.iter_mut().zip(&codes[cells]) {
                    let found = known.get(code as usize).copied();
                    let other = if code == UNSEEN { *unseen } else { MISSING_BIN };
                    *bin = found.unwrap_or(other);
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

    /// Two numbers, one of them with missing cells, and categories of which training sees all but the last.
    fn table() -> Table {
        let numbers = |column| Key::from_seed(column).uniforms(N);
        let gappy = numbers(2).into_iter().enumerate();
        let gappy = gappy.map(|(row, x)| if row % 9 == 0 { f64::NAN } else { x });
        let codes: Vec<Option<String>> = (0..N)
            .map(|row| (row % 11 > 0).then(|| format!("{:02}", row * 7 % 20)))
            .collect();
        Table::new(vec![
            Column::numeric("a", numbers(1)),
            Column::numeric("b", gappy.collect()),
            Column::categorical("c", &codes),
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
    fn answers_are_those_of_the_bins_that_cells_were_cut_into() {
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
        let alone = [above(1, 255, true), above(1, 0, false)];
        let set = BinCondition {
            column: 2,
            right_bins: RightBins::In([0x2b5d5, 0, 0, 0]),
        };
        let substitutes = UnseenSubstitutes::new(Key::from_seed(8));
        for conditions in [
            few.clone(),
            many.collect(),
            alone.to_vec(),
            vec![set],
            [&few[..], &[set]].concat(),
        ] {
            for number in [0, 3] {
                let rows = table.rows(5..N);
                let mut binned = cuts.bin_range(&rows);
                substitute_unseen(&cuts.unseen(&rows), substitutes, number, &mut binned);
                let used_thresholds =
                    UsedThresholds::new(&chain(&conditions), &cuts, substitutes, number);
                let answers = used_thresholds.of(&rows);
                let mut bins = vec![0; 300];
                for condition in &conditions {
                    answers.fill(condition.column, 40, &mut bins);
                    for (at, &bin) in bins.iter().enumerate() {
                        let own = binned.bin(40 + at, condition.column);
                        assert_eq!(
                            condition.goes_right(bin),
                            condition.goes_right(own),
                            "{condition:?}"
                        );
                    }
                }
            }
        }
    }
}
