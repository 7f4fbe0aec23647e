//! Appends rows to a dataset, so that it equals the dataset of all rows at once.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::data::column::{Column, Values};
use crate::data::dataset::{Dataset, check_weights};
use crate::data::schema::{Labels, NameIndex, Schema, Task};
use crate::data::target::Target;
use crate::error::{Error, Result};

impl Dataset {
    /// Appends rows with the same columns, in any order of the columns. The result is the dataset
    /// of one table with the rows of both: new categories extend the levels of a column, and new
    /// classes those of the target.
    ///
    /// Names that are sorted on both sides stay sorted, which may renumber the earlier codes;
    /// otherwise new names follow the earlier ones.
    ///
    /// # Errors
    /// When columns differ in name or kind, the targets differ in name or task, only one side has
    /// weights, or the weights of all rows are too large. The dataset is then unchanged.
    ///
    /// ```
    /// use softwood::{Column, Dataset, Roles, Table};
    ///
    /// let rows = |x: Vec<f64>, town: &[Option<&str>], y: Vec<f64>| {
    ///     let columns = vec![Column::numeric("x", x), Column::categorical("town", town), Column::numeric("y", y)];
    ///     Dataset::from_table(&Table::new(columns)?, &Roles { target: "y".to_owned(), ..Roles::default() })
    /// };
    /// let mut data = rows(vec![1.0, 2.0], &[Some("Bonn"), None], vec![0.1, 0.2])?;
    /// data.append(&rows(vec![3.0], &[Some("Cham")], vec![0.3])?)?; // a new category
    /// assert_eq!(data.n_rows(), 3);
    /// # Ok::<(), softwood::Error>(())
    /// ```
    pub fn append(&mut self, rows: &Self) -> Result<()> {
        let order = self.matching_columns(rows)?;
        let labels = self.joint_labels(rows)?;
        self.weights = self.joint_weights(rows)?;
        let columns = rows.features.columns();
        self.features
            .append(order.into_iter().map(|at| &columns[at]), rows.n_rows());
        let task = append_target(
            (&mut self.target, &self.schema),
            (&rows.target, &rows.schema),
        );
        let (dtype, other_dtype) = (self.schema.label_dtype.take(), &rows.schema.label_dtype);
        let has_names = self.schema.has_names();
        let schema = Schema::of(&self.features, &self.schema.target, task)
            .with_labels(labels)
            .with_label_dtype(dtype.filter(|dtype| Some(dtype) == other_dtype.as_ref()));
        self.schema = if has_names {
            schema
        } else {
            schema.without_names()
        };
        Ok(())
    }

    /// For each feature column, the index of the column of the same name in `rows`.
    fn matching_columns(&self, rows: &Self) -> Result<Vec<usize>> {
        let (columns, others) = (self.features.columns(), rows.features.columns());
        let (ours, theirs) = (self.features.index(), rows.features.index());
        let is_extra = |other: &&Column| ours.find(&other.name).is_none();
        if let Some(extra) = others.iter().find(is_extra) {
            let problem = "the appended rows have this column, the dataset has not; drop it";
            return Err(Error::column(&extra.name, problem));
        }
        let matching = |column: &Column| {
            let at = theirs.find(&column.name).ok_or_else(|| {
                let problem = "the dataset has this column, the appended rows have not";
                Error::column(&column.name, problem)
            })?;
            let (kind, other) = (kind_of(&column.values), kind_of(&others[at].values));
            if kind != other {
                let problem = format!("{kind} in the dataset, but {other} in the appended rows");
                return Err(Error::column(&column.name, problem));
            }
            Ok(at)
        };
        columns.iter().map(matching).collect()
    }

    /// The type of the class labels of all rows.
    fn joint_labels(&self, rows: &Self) -> Result<Labels> {
        let (schema, other) = (&self.schema, &rows.schema);
        if schema.target != other.target {
            let problem = format!(
                "it is the target, but the appended rows have `{}`",
                other.target
            );
            return Err(Error::column(&schema.target, problem));
        }
        let is_same_task = schema.classes().is_some() == other.classes().is_some();
        match (schema.labels, other.labels) {
            (a, b) if is_same_task && (a == b || schema.classes().is_none()) => Ok(a),
            (Labels::Text | Labels::Boolean, Labels::Text | Labels::Boolean) if is_same_task => {
                Ok(Labels::Text)
            }
            _ => {
                let problem = format!(
                    "the target is {} in the dataset, but {} in the appended rows",
                    target_kind(schema),
                    target_kind(other)
                );
                Err(Error::column(&schema.target, problem))
            }
        }
    }

    fn joint_weights(&self, rows: &Self) -> Result<Option<Vec<f64>>> {
        match (&self.weights, &rows.weights) {
            (None, None) => Ok(None),
            (Some(weights), Some(others)) => {
                let joint = [weights.as_slice(), others].concat();
                check_weights(&joint, joint.len())?;
                Ok(Some(joint))
            }
            (weights, _) => {
                let (with, without) = if weights.is_some() {
                    ("dataset", "appended rows")
                } else {
                    ("appended rows", "dataset")
                };
                Err(Error::Table(format!(
                    "weights are given for the {with}, but not for the {without}; give both or none"
                )))
            }
        }
    }
}

/// Appends a target of the same task; the task of all rows.
fn append_target(
    (target, schema): (&mut Target, &Schema),
    (other, other_schema): (&Target, &Schema),
) -> Task {
    match (target, other) {
        (Target::Numeric(values), Target::Numeric(others)) => {
            values.extend_from_slice(others);
            Task::Regression
        }
        (Target::Classes(codes), Target::Classes(others)) => {
            let compare = match schema.labels {
                Labels::Number => compare_numbers,
                Labels::Text | Labels::Boolean => compare_texts,
            };
            let classes = schema.classes().unwrap_or_default();
            let other_classes = other_schema.classes().unwrap_or_default();
            let union = NameUnion::of(classes, other_classes, compare);
            union.append(codes, others);
            Task::Classification {
                classes: union.names,
            }
        }
        _ => unreachable!("targets of one task were checked to have the same kind"),
    }
}

impl Column {
    /// Appends the cells of a column of the same kind.
    pub(crate) fn append(&mut self, other: &Self) {
        match (&mut self.values, &other.values) {
            (Values::Numeric(values), Values::Numeric(others)) => values.extend_from_slice(others),
            (
                Values::Categorical { codes, levels },
                Values::Categorical {
                    codes: others,
                    levels: other_levels,
                },
            ) if levels == other_levels => codes.extend_from_slice(others),
            (
                Values::Categorical { codes, levels },
                Values::Categorical {
                    codes: others,
                    levels: other_levels,
                },
            ) => {
                let union = NameUnion::of(levels, other_levels, compare_texts);
                union.append(codes, others);
                *levels = Arc::new(union.names);
            }
            _ => unreachable!("columns were checked to have the same kind"),
        }
    }
}

/// The names of two lists, and the new code of each name of either list.
struct NameUnion {
    names: Vec<String>,
    first: Vec<u32>,
    second: Vec<u32>,
}

impl NameUnion {
    /// In the order of `compare` if both lists are; otherwise new names follow the first list.
    fn of(first: &[String], second: &[String], compare: fn(&String, &String) -> Ordering) -> Self {
        let is_sorted = |names: &[String]| names.is_sorted_by(|a, b| compare(a, b).is_le());
        let index = NameIndex::of(first);
        let is_new = |name: &&String| index.find(name).is_none();
        let mut names = first.to_vec();
        names.extend(second.iter().filter(is_new).cloned());
        if is_sorted(first) && is_sorted(second) {
            names.sort_by(compare);
        }
        let index = NameIndex::of(&names);
        let codes = |list: &[String]| list.iter().filter_map(|name| index.find(name)).collect();
        let (first, second) = (codes(first), codes(second));
        Self {
            names,
            first,
            second,
        }
    }

    /// Renumbers codes of the first list and appends codes of the second. Codes without a name,
    /// those of missing and unseen categories, stay.
    fn append(&self, codes: &mut Vec<u32>, others: &[u32]) {
        let new = |map: &[u32], code: u32| map.get(code as usize).copied().unwrap_or(code);
        for code in codes.iter_mut() {
            *code = new(&self.first, *code);
        }
        codes.extend(others.iter().map(|&code| new(&self.second, code)));
    }
}

fn compare_texts(a: &String, b: &String) -> Ordering {
    a.cmp(b)
}

/// Names of numbers in the order of the numbers.
fn compare_numbers(a: &String, b: &String) -> Ordering {
    let number = |name: &String| name.parse().unwrap_or(f64::NAN);
    number(a).total_cmp(&number(b))
}

fn kind_of(values: &Values) -> &'static str {
    match values {
        Values::Numeric(_) => "numbers",
        Values::Categorical { .. } => "categories",
    }
}

fn target_kind(schema: &Schema) -> &'static str {
    match (&schema.task, schema.labels) {
        (Task::Regression, _) => "a number to predict",
        (Task::Classification { .. }, Labels::Number) => "a class named by a number",
        (Task::Classification { .. }, Labels::Text | Labels::Boolean) => "a class named by a text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::column::{MISSING, UNSEEN};
    use crate::data::dataset::Roles;
    use crate::data::table::Table;

    const X: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    const CITY: [Option<&str>; 6] = [
        Some("oslo"),
        None,
        Some("rome"),
        Some("bern"),
        Some("oslo"),
        Some("turin"),
    ];

    /// Rows `from..to` of a table of a number, a category, a target and weights.
    fn part(target: &dyn Fn(usize) -> Column, from: usize, to: usize) -> Table {
        let y = target(from).values;
        let rows: Vec<usize> = (from..to).collect();
        let whole = Table::new(vec![
            Column::numeric("x", X.to_vec()),
            Column {
                name: "y".to_owned(),
                values: y,
            },
            Column::numeric("w", vec![1.0, 2.0, 0.5, 1.5, 1.0, 3.0]),
        ])
        .unwrap()
        .take(&rows);
        // categories of the part alone, as a reader would find them
        whole
            .with_column(Column::categorical("city", &CITY[from..to]))
            .unwrap()
    }

    fn roles(weight: Option<&str>, classify: bool) -> Roles {
        Roles {
            target: "y".to_owned(),
            weight: weight.map(str::to_owned),
            classify: Some(classify),
            ..Roles::default()
        }
    }

    fn numbers(values: [f64; 6]) -> impl Fn(usize) -> Column {
        move |_| Column::numeric("y", values.to_vec())
    }

    #[test]
    fn appended_rows_give_the_dataset_of_the_whole_table() {
        let y = [10.0, 9.0, 10.0, 2.0, 2.0, 100.0];
        for classify in [false, true] {
            for weight in [None, Some("w")] {
                let target = numbers(y);
                let roles = roles(weight, classify);
                let data = |from, to| {
                    let mut roles = roles.clone();
                    roles.ignore = if weight.is_none() {
                        vec!["w".to_owned()]
                    } else {
                        vec![]
                    };
                    Dataset::from_table(part(&target, from, to), &roles).unwrap()
                };
                for cut in 1..6 {
                    let mut found = data(0, cut);
                    found.append(&data(cut, 6)).unwrap();
                    assert_eq!(found, data(0, 6), "{classify} {weight:?} {cut}");
                }
            }
        }
    }

    #[test]
    fn classes_named_by_texts_stay_sorted_and_booleans_become_texts() {
        let data = |y: &[Option<&str>]| {
            let x = (0..y.len()).map(|x| x as f64).collect();
            let table = Table::new(vec![Column::numeric("x", x), Column::categorical("y", y)]);
            Dataset::from_table(table.unwrap(), &roles(None, true)).unwrap()
        };
        let mut found = data(&[Some("true"), Some("false")]);
        found.append(&data(&[Some("maybe"), Some("true")])).unwrap();
        let classes = ["false", "maybe", "true"].map(str::to_owned);
        assert_eq!(found.schema().classes(), Some(classes.as_slice()));
        assert_eq!(found.schema().labels, Labels::Text);
        assert_eq!(found.target(), &Target::Classes(vec![2, 0, 1, 2]));
    }

    #[test]
    fn levels_in_an_order_of_their_own_are_extended() {
        let union = |a: &[&str], b: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            let (a, b): (Vec<String>, Vec<String>) = (owned(a), owned(b));
            NameUnion::of(&a, &b, compare_texts)
        };
        let sizes = union(&["small", "large"], &["large", "huge"]);
        assert_eq!(sizes.names, ["small", "large", "huge"]);
        let mut codes = vec![0, MISSING, 1];
        sizes.append(&mut codes, &[1, 0, UNSEEN]);
        assert_eq!(codes, [0, MISSING, 1, 2, 1, UNSEEN]);
        let cities = union(&["bern", "rome"], &["oslo"]);
        assert_eq!(cities.names, ["bern", "oslo", "rome"]);
        assert_eq!((cities.first, cities.second), (vec![0, 2], vec![1]));
    }

    #[test]
    fn differences_are_named_and_change_nothing() {
        let y = numbers(X);
        let data = |roles: &Roles, table: Table| Dataset::from_table(table, roles).unwrap();
        let plain = roles(None, false);
        let whole = data(&plain, part(&y, 0, 3));
        let second = part(&y, 3, 6);
        let texts = Column::categorical("x", &CITY[3..]);
        let extra = Column::numeric("extra", vec![0.0; 3]);
        let renamed = Roles {
            target: "x".to_owned(),
            ..plain.clone()
        };
        let cases = [
            (
                data(&plain, second.without(&["city"])),
                "`city`: the dataset has this column",
            ),
            (
                data(&plain, second.clone().with_column(extra).unwrap()),
                "`extra`: the appended rows",
            ),
            (
                data(&plain, second.clone().with_column(texts).unwrap()),
                "`x`: numbers in the dataset",
            ),
            (
                data(&roles(None, true), second.clone()),
                "`y`: the target is a number",
            ),
            (
                data(&roles(Some("w"), false), second.clone()),
                "`w`: the dataset has this column",
            ),
            (
                data(&renamed, second.clone()),
                "`y`: the appended rows have this column",
            ),
        ];
        for (rows, expected) in cases {
            let mut found = whole.clone();
            let message = found.append(&rows).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert_eq!(found, whole);
        }
        let mut weighted = data(&roles(Some("w"), false), part(&y, 0, 3));
        let rows = data(&plain, second.without(&["w"]));
        let message = weighted.append(&rows).unwrap_err().to_string();
        assert!(
            message.contains("weights are given for the dataset"),
            "{message}"
        );
    }
}
