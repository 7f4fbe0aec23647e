//! Out-of-domain rows: the columns of another table, moved to the mean and the standard deviation of
//! the columns that they replace, so that only shapes and dependences differ.

use std::path::Path;

use softwood::data::{Target, Values};
use softwood::evaluate::Split;
use softwood::{Column, Dataset, Error, Key, Result, Table};
use softwood_io::{ReadOptions, read_table};

use super::data_files;
use super::published::OodOrigin;

/// Random stream of the categories.
const CATEGORIES: u64 = 0x6361_7465_676f_7279;

/// Numeric columns of the other table, without constant ones.
#[derive(Debug)]
pub(crate) struct OodColumns(Vec<Vec<f64>>);

impl OodColumns {
    /// Reads the first table that exists; `None` if there is none.
    pub(crate) fn read(folder: &Path, set: &str, origin: &OodOrigin) -> Result<Option<Self>> {
        let files = origin.own_files.get(set).unwrap_or(&origin.files);
        let Some(path) = files.iter().find_map(|name| data_files::find(folder, name)) else {
            return Ok(None);
        };
        let table = read_table(&path, &ReadOptions::default())?;
        Ok(Some(Self::of(table, origin.target_first)))
    }

    fn of(table: Table, target_first: bool) -> Self {
        let mut columns = table.into_columns();
        let target = columns.iter().position(|column| column.name == "target");
        if let Some(target) = target.map(|at| columns.remove(at))
            && target_first
        {
            columns.insert(0, target);
        }
        let numbers = columns
            .into_iter()
            .filter_map(|column| match column.values {
                Values::Numeric(values) => Some(values),
                Values::Categorical { .. } => None,
            });
        let varies = |values: &Vec<f64>| mean_and_sd(values.iter().copied()).1 > 0.0;
        Self(numbers.filter(varies).collect())
    }

    /// Rows for one split: as many as it has test rows, if the other table has as many. Feature `j`
    /// of `data` comes from column `j`. The statistics are those of all rows for regression and of
    /// the test rows for classification; categories are drawn uniformly from those of the test rows.
    pub(crate) fn rows(&self, data: &Dataset, split: &Split, key: Key) -> Result<Table> {
        let n_rows = self.0.first().map_or(0, Vec::len).min(split.test.len());
        let in_domain = match data.target() {
            Target::Classes(_) => data.features().take(&split.test),
            _ => data.features().clone(),
        };
        let test = data.features().take(&split.test);
        let key = key.child(CATEGORIES);
        let columns = in_domain.columns().iter().zip(test.columns()).enumerate();
        let columns = columns.map(|(at, (column, test))| {
            let values = match (&column.values, &test.values) {
                (Values::Numeric(values), _) => {
                    Values::Numeric(self.moved(at, n_rows, values, &column.name)?)
                }
                (_, Values::Categorical { codes, levels }) => Values::Categorical {
                    codes: drawn(codes, &key.child(at as u64).uniforms(n_rows)),
                    levels: levels.clone(),
                },
                (Values::Categorical { .. }, Values::Numeric(_)) => column.values.clone(),
            };
            Ok(Column {
                name: column.name.clone(),
                values,
            })
        });
        Table::new(columns.collect::<Result<_>>()?)
    }

    /// The first values of a column with the mean and the standard deviation of `like`.
    fn moved(&self, at: usize, n_rows: usize, like: &[f64], name: &str) -> Result<Vec<f64>> {
        let Some(column) = self.0.get(at) else {
            let problem = format!(
                "the table of other rows has {} numeric columns that vary; this would need column {}",
                self.0.len(),
                at + 1
            );
            return Err(Error::column(name, problem));
        };
        let values = &column[..n_rows];
        let (mean, sd) = mean_and_sd(values.iter().copied());
        let (new_mean, new_sd) = mean_and_sd(like.iter().copied());
        let factor = if sd > 0.0 { new_sd / sd } else { 0.0 };
        let moved = |value: &f64| new_mean + factor * (value - mean);
        Ok(values.iter().map(moved).collect())
    }
}

/// A category of `seen` for each uniform draw; categories that occur count once.
fn drawn(seen: &[u32], uniforms: &[f64]) -> Vec<u32> {
    let mut categories = seen.to_vec();
    categories.sort_unstable();
    categories.dedup();
    let draw = |u: &f64| categories[(u * categories.len() as f64) as usize];
    uniforms.iter().map(draw).collect()
}

/// Mean and standard deviation (divided by n) of the numbers that are not missing.
pub(crate) fn mean_and_sd(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let present = values.filter(|value| !value.is_nan());
    let n = present.clone().count().max(1) as f64;
    let mean = present.clone().sum::<f64>() / n;
    let squares: f64 = present.map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood::Roles;

    fn data(classify: bool) -> Dataset {
        let colours = ["red", "blue", "red", "green", "blue", "blue"].map(Some);
        let table = Table::new(vec![
            Column::numeric("a", vec![1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN]),
            Column::categorical("colour", &colours),
            Column::numeric("target", vec![0.0, 1.0, 0.0, 1.0, 0.0, 1.0]),
        ]);
        let roles = Roles {
            target: "target".to_owned(),
            classify: Some(classify),
            ..Roles::default()
        };
        Dataset::from_table(table.unwrap(), &roles).unwrap()
    }

    fn origin() -> Table {
        Table::new(vec![
            Column::numeric("u", vec![7.0; 4]),
            Column::numeric("v", vec![0.0, 10.0, 0.0, 10.0]),
            Column::numeric("target", vec![5.0, 5.0, 5.0, 6.0]),
        ])
        .unwrap()
    }

    #[test]
    fn columns_have_the_moments_of_those_that_they_replace() {
        let split = Split {
            test: vec![0, 1, 2, 3, 4, 5],
            ..Split::default()
        };
        let columns = OodColumns::of(origin(), false);
        let rows = columns
            .rows(&data(false), &split, Key::from_seed(0))
            .unwrap();
        assert_eq!(rows.n_rows(), 4);
        let Values::Numeric(a) = &rows.column("a").unwrap().values else {
            panic!("a is numeric");
        };
        let (mean, sd) = mean_and_sd(a.iter().copied());
        assert!((mean - 3.0).abs() < 1e-12 && (sd - 2.0_f64.sqrt()).abs() < 1e-12);
        assert!(a[0] < a[1]);
    }

    #[test]
    fn the_target_is_the_first_column_if_it_is_used_and_constant_columns_are_not() {
        let first = OodColumns::of(origin(), true).0;
        assert_eq!(
            first,
            [vec![5.0, 5.0, 5.0, 6.0], vec![0.0, 10.0, 0.0, 10.0]]
        );
    }

    #[test]
    fn categories_are_those_of_the_test_rows() {
        let split = Split {
            test: vec![0, 1, 2],
            ..Split::default()
        };
        let columns = OodColumns(vec![(0..3).map(f64::from).collect(); 2]);
        let rows = columns
            .rows(&data(true), &split, Key::from_seed(0))
            .unwrap();
        let Values::Categorical { codes, levels } = &rows.column("colour").unwrap().values else {
            panic!("colour is categorical");
        };
        assert!(codes.iter().all(|&code| levels[code as usize] != "green"));
    }

    #[test]
    fn too_few_columns_are_an_error_that_names_the_feature() {
        let columns = OodColumns(Vec::new());
        let split = Split {
            test: vec![0],
            ..Split::default()
        };
        let message = columns
            .rows(&data(false), &split, Key::from_seed(0))
            .unwrap_err();
        assert!(message.to_string().contains("`a`"), "{message}");
    }
}
