//! Target encoding: categories and category crosses as smoothed means of the target.
//!
//! A group of rows has the value `(S + a p) / (W + a)`: the weighted sum `S` of the target and the
//! weight `W` of its rows, the prior `p` (the mean of all rows) and the strength `a`. The encoding
//! is ordered, as in CatBoost: a training row uses only the rows of its group that come before it,
//! so that it does not use its own target, and the first row of a group has the value of an unseen
//! category. A new row uses all rows of its group.

use serde::{Deserialize, Serialize};

use crate::data::categories::groups::{CategoryGroups, NO_GROUP, RowGroups};
use crate::data::column::Column;
use crate::data::table::Table;
use crate::error::{Error, Result};
use crate::par::Pool;
use crate::store::record::{Array, Record};

/// Strength of the prior, in rows of mean weight.
pub(crate) const STRENGTH: f64 = 1.0;

/// The training rows in order, their weights, and the targets (one, or an indicator per class).
#[derive(Debug, Clone, Copy)]
pub(crate) struct EncodingSample<'a> {
    pub(crate) features: &'a Table,
    pub(crate) rows: &'a [u32],
    pub(crate) weights: &'a [f64],
    /// Targets x rows of the table.
    pub(crate) targets: &'a [Vec<f64>],
}

/// A fitted target encoder: groupings of the rows, and the sums of the targets in each group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TargetEncoder {
    groups: Vec<EncodedGroup>,
    spec: EncodingSpec,
}

/// Parameters that all groupings share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct EncodingSpec {
    /// Columns of each grouping.
    columns: Vec<Vec<usize>>,
    /// Mean of each target.
    priors: Vec<f64>,
    /// Weight of the prior.
    strength: f64,
}

/// One grouping with the weight and the target sums of each group.
#[derive(Debug, Clone, PartialEq)]
struct EncodedGroup {
    grouping: CategoryGroups,
    weight: Vec<f64>,
    /// Targets x groups.
    sums: Vec<Vec<f64>>,
}

impl TargetEncoder {
    /// Fits the encoder for the groupings by `columns` and returns the training table: the columns
    /// of [`Self::apply`], but every row uses only the rows before it.
    pub(crate) fn fit(
        sample: &EncodingSample<'_>,
        columns: &[Vec<usize>],
        pool: &Pool,
    ) -> (Self, Table) {
        let total: f64 = sample.weights.iter().sum();
        let prior = |target: &Vec<f64>| {
            let rows = sample.rows.iter().zip(sample.weights);
            rows.map(|(&row, weight)| weight * target[row as usize])
                .sum::<f64>()
                / total
        };
        let priors: Vec<f64> = sample.targets.iter().map(prior).collect();
        let strength = STRENGTH * total / sample.rows.len() as f64;
        let encoded = pool.map(columns.len(), |set| {
            CategoryGroups::of(sample.features, &columns[set], sample.rows).map(
                |(grouping, index)| encode_ordered(sample, grouping, &index, &priors, strength),
            )
        });
        let (groups, values): (Vec<EncodedGroup>, Vec<Vec<Vec<f64>>>) =
            encoded.into_iter().flatten().unzip();
        let spec = EncodingSpec {
            columns: groups
                .iter()
                .map(|group| group.grouping.columns.clone())
                .collect(),
            priors,
            strength,
        };
        let encoder = Self { groups, spec };
        let rows = sample.rows;
        let table = encoder.table(sample.features, rows.len(), |at| rows[at] as usize, values);
        (encoder, table)
    }

    /// Fits an encoder with the same groupings to other rows and returns the training table. Groups
    /// without rows in the new sample keep their sums.
    pub(crate) fn renewed(&self, sample: &EncodingSample<'_>, pool: &Pool) -> (Self, Table) {
        let (mut renewed, table) = Self::fit(sample, &self.spec.columns, pool);
        for (group, before) in renewed.groups.iter_mut().zip(&self.groups) {
            group.add_missing_groups(before);
        }
        (renewed, table)
    }

    /// Encodes the training rows in another order: `order` holds positions in the sample. Calls
    /// `visit` with the index and the values of every column of the training table that depends on
    /// the order.
    pub(crate) fn reordered(
        &self,
        sample: &EncodingSample<'_>,
        order: &[u32],
        mut visit: impl FnMut(usize, &[f64]),
    ) {
        let mut next_appended = sample.features.columns().len();
        for group in &self.groups {
            let table_row = |position: usize| sample.rows[position] as usize;
            let n_rows = sample.rows.len();
            let index = group.grouping.index(sample.features, n_rows, table_row);
            let groups = RowGroups {
                index: &index,
                n_groups: group.weight.len(),
            };
            for (target, &prior) in self.spec.priors.iter().enumerate() {
                let encoding_prior = EncodingPrior {
                    prior,
                    strength: self.spec.strength,
                };
                let positions = order.iter().map(|&position| position as usize);
                let counts = accumulate(sample, target, groups, encoding_prior, positions);
                let column = match group.grouping.columns[..] {
                    [column] if target == 0 => column,
                    _ => {
                        next_appended += 1;
                        next_appended - 1
                    }
                };
                visit(column, &counts.values);
            }
            // the column of group weights does not depend on the order
            next_appended += 1;
        }
    }

    /// The table that trees see: a column with a grouping of its own is replaced by its first
    /// encoding, all other encodings are appended after the last column.
    pub(crate) fn apply(
        &self,
        features: &Table,
        n_rows: usize,
        row: impl Fn(usize) -> usize + Copy,
    ) -> Table {
        let values = self
            .groups
            .iter()
            .map(|group| {
                let index = group.grouping.index(features, n_rows, row);
                group.values(&index, &self.spec)
            })
            .collect();
        self.table(features, n_rows, row, values)
    }

    fn table(
        &self,
        features: &Table,
        n_rows: usize,
        row: impl Fn(usize) -> usize,
        values: Vec<Vec<Vec<f64>>>,
    ) -> Table {
        let rows: Vec<usize> = (0..n_rows).map(row).collect();
        let mut replaced: Vec<Option<Column>> = vec![None; features.columns().len()];
        let mut appended = Vec::new();
        for (group, values) in self.groups.iter().zip(values) {
            for (target, values) in values.into_iter().enumerate() {
                match group.grouping.columns[..] {
                    [column] if target == 0 => replaced[column] = Some(Column::numeric("", values)),
                    _ => appended.push(Column::numeric("", values)),
                }
            }
        }
        let kept = features.columns().iter().zip(replaced);
        let columns = kept.map(|(column, replaced)| replaced.unwrap_or_else(|| column.take(&rows)));
        Table::derived(columns.chain(appended).collect(), n_rows)
    }

    /// The columns of the user's table that each column of the table of [`Self::apply`] depends on.
    pub(crate) fn sources(&self, n_features: usize) -> Vec<Vec<usize>> {
        let mut sources: Vec<Vec<usize>> = (0..n_features).map(|column| vec![column]).collect();
        for group in &self.groups {
            let columns = &group.grouping.columns;
            let n = self.n_values() - usize::from(columns.len() == 1);
            sources.extend(std::iter::repeat_n(columns.clone(), n));
        }
        sources
    }

    /// The columns of the table of [`Self::apply`] that show the same groups of rows: an encoding
    /// for each class and the weight. Empty if there is only one target, or if there are so few
    /// of these columns that trees can afford to see all of them.
    pub(crate) fn encodings_by_class(&self, n_features: usize) -> Vec<Vec<usize>> {
        if self.spec.priors.len() == 1 {
            return Vec::new();
        }
        let mut next_appended = n_features;
        let sets = self.groups.iter().map(|group| {
            let (n, mut columns) = (self.n_values(), Vec::new());
            if let [column] = group.grouping.columns[..] {
                columns.push(column);
            }
            columns.extend((columns.len()..n).map(|_| {
                next_appended += 1;
                next_appended - 1
            }));
            columns
        });
        let sets: Vec<Vec<usize>> = sets.collect();
        let n_columns: usize = sets.iter().map(Vec::len).sum();
        if n_columns > MAX_FEW_ENCODINGS {
            sets
        } else {
            Vec::new()
        }
    }

    /// Number of levels of each column of the table of [`Self::apply`], `None` for numbers, from
    /// those of the user's table.
    pub(crate) fn kinds(&self, levels: &[Option<usize>]) -> Vec<Option<usize>> {
        let mut kinds = levels.to_vec();
        for group in &self.groups {
            if let [column] = group.grouping.columns[..] {
                kinds[column] = None;
            }
        }
        kinds.resize(self.sources(levels.len()).len(), None);
        kinds
    }

    /// Number of columns of a grouping: an encoding per target, and the weight of the group.
    fn n_values(&self) -> usize {
        self.spec.priors.len() + 1
    }

    /// Metadata and arrays for a record.
    pub(crate) fn encode(&self) -> (serde_json::Value, Vec<(String, Array)>) {
        let mut arrays = Vec::new();
        for (at, group) in self.groups.iter().enumerate() {
            let words =
                (group.grouping.keys.iter()).flat_map(|&key| [key as u32, (key >> 32) as u32]);
            let sums = group
                .weight
                .iter()
                .chain(group.sums.iter().flatten())
                .copied();
            arrays.push((format!("group{at}.keys"), Array::U32(words.collect())));
            arrays.push((format!("group{at}.sums"), Array::F64(sums.collect())));
        }
        (serde_json::to_value(&self.spec).unwrap_or_default(), arrays)
    }

    /// Reads the encoder from a record; `levels` holds the number of levels of each column of the
    /// schema, `None` for numbers.
    ///
    /// # Errors
    /// When the encoder is absent or does not match the schema.
    pub(crate) fn decode(record: &Record, levels: &[Option<usize>]) -> Result<Self> {
        let spec: EncodingSpec = record.part("statistics")?;
        if !spec.fits(levels) {
            return Err(mismatch());
        }
        let groups = spec
            .columns
            .iter()
            .enumerate()
            .map(|(index, columns)| EncodedGroup::decode(record, index, columns, &spec));
        Ok(Self {
            groups: groups.collect::<Result<_>>()?,
            spec,
        })
    }
}

fn mismatch() -> Error {
    Error::Format("the target statistics do not fit the schema".to_owned())
}

impl EncodingSpec {
    /// Whether a spec that was read from a file matches the schema.
    fn fits(&self, levels: &[Option<usize>]) -> bool {
        let is_grouping = |columns: &Vec<usize>| match columns[..] {
            [column] => levels.get(column).is_some_and(Option::is_some),
            _ => (2..=3).contains(&columns.len()) && columns.iter().all(|&c| c < levels.len()),
        };
        self.columns.iter().all(is_grouping)
            && (1..=MAX_TARGETS).contains(&self.priors.len())
            && self.priors.iter().all(|prior| prior.abs() <= MAX_STORED)
            && (1.0 / MAX_STORED..=MAX_STORED).contains(&self.strength)
    }
}

/// Largest sum, weight or prior that is accepted from a file: their products are finite.
const MAX_STORED: f64 = 1e150;

/// Largest number of targets; with more classes, categories are not target-encoded.
pub(crate) const MAX_TARGETS: usize = 8;

/// Largest number of encodings, over all groupings and classes, that are few.
const MAX_FEW_ENCODINGS: usize = 64;

impl EncodedGroup {
    fn decode(
        record: &Record,
        index: usize,
        columns: &[usize],
        spec: &EncodingSpec,
    ) -> Result<Self> {
        let (words, remainder) = record.u32s(&format!("group{index}.keys"))?.as_chunks::<2>();
        let keys: Vec<u64> = words
            .iter()
            .map(|&[low, high]| u64::from(low) | u64::from(high) << 32)
            .collect();
        let n_groups = keys.len();
        let n_sums = n_groups * (1 + spec.priors.len());
        let sums = record.f64s(&format!("group{index}.sums"), n_sums)?;
        let is_sound = remainder.is_empty()
            && n_groups > 0
            && keys.windows(2).all(|pair| pair[0] < pair[1])
            && sums[..n_groups].iter().all(|&weight| weight >= 0.0)
            && sums.iter().all(|sum| sum.abs() <= MAX_STORED);
        if !is_sound {
            return Err(mismatch());
        }
        let mut parts = sums.chunks_exact(n_groups).map(<[f64]>::to_vec);
        Ok(Self {
            grouping: CategoryGroups {
                columns: columns.to_vec(),
                keys,
            },
            weight: parts.next().unwrap_or_default(),
            sums: parts.collect(),
        })
    }

    /// Adds the groups of an earlier fit that do not occur here.
    fn add_missing_groups(&mut self, earlier: &Self) {
        let own_keys = std::mem::take(&mut self.grouping.keys);
        let missing: Vec<usize> = (0..earlier.weight.len())
            .filter(|&group| {
                own_keys
                    .binary_search(&earlier.grouping.keys[group])
                    .is_err()
            })
            .collect();
        // keys with their positions in the own groups followed by the missing ones
        let mut order: Vec<(u64, usize)> = own_keys.iter().copied().zip(0..).collect();
        let appended = missing.iter().map(|&group| earlier.grouping.keys[group]);
        order.extend(appended.zip(own_keys.len()..));
        order.sort_unstable();
        let merge = |own: &[f64], earlier: &[f64]| -> Vec<f64> {
            let all: Vec<f64> = own
                .iter()
                .copied()
                .chain(missing.iter().map(|&group| earlier[group]))
                .collect();
            order.iter().map(|&(_, position)| all[position]).collect()
        };
        self.weight = merge(&self.weight, &earlier.weight);
        for (sums, earlier) in self.sums.iter_mut().zip(&earlier.sums) {
            *sums = merge(sums, earlier);
        }
        self.grouping.keys = order.iter().map(|&(key, _)| key).collect();
    }

    /// Encodings of rows with these groups, from all rows of each group.
    fn values(&self, index: &[u32], spec: &EncodingSpec) -> Vec<Vec<f64>> {
        let lookup = |value: &dyn Fn(usize) -> f64, default: f64| -> Vec<f64> {
            let value_of = |&group: &u32| {
                if group == NO_GROUP {
                    default
                } else {
                    value(group as usize)
                }
            };
            index.iter().map(value_of).collect()
        };
        let encodings = self.sums.iter().zip(&spec.priors).map(|(sums, &prior)| {
            let mean = |group: usize| {
                (sums[group] + spec.strength * prior) / (self.weight[group] + spec.strength)
            };
            lookup(&mean, prior)
        });
        let mut values: Vec<Vec<f64>> = encodings.collect();
        values.push(lookup(&|group| self.weight[group], 0.0));
        values
    }
}

/// Sums of the groups, and the ordered encodings of the training rows.
fn encode_ordered(
    sample: &EncodingSample<'_>,
    grouping: CategoryGroups,
    index: &[u32],
    priors: &[f64],
    strength: f64,
) -> (EncodedGroup, Vec<Vec<f64>>) {
    let groups = RowGroups {
        index,
        n_groups: grouping.keys.len(),
    };
    let mut values = Vec::with_capacity(priors.len() + 1);
    let mut group = EncodedGroup {
        grouping,
        weight: Vec::new(),
        sums: Vec::with_capacity(priors.len()),
    };
    for (target, &prior) in priors.iter().enumerate() {
        let encoding_prior = EncodingPrior { prior, strength };
        let counts = accumulate(sample, target, groups, encoding_prior, 0..index.len());
        values.push(counts.values);
        group.sums.push(counts.sums);
        group.weight = counts.weight;
    }
    let weight = |&row_group: &u32| group.weight.get(row_group as usize).copied().unwrap_or(0.0);
    values.push(index.iter().map(weight).collect());
    (group, values)
}

/// Shrinkage of group means towards the prior.
#[derive(Debug, Clone, Copy)]
struct EncodingPrior {
    /// Mean of the target over all rows.
    prior: f64,
    /// Weight of the prior.
    strength: f64,
}

/// One target after a pass over the rows.
struct OrderedCounts {
    /// Smoothed mean of the earlier rows of each row's group.
    values: Vec<f64>,
    /// Sum of the target of each group.
    sums: Vec<f64>,
    /// Weight of each group.
    weight: Vec<f64>,
}

/// Passes over the rows in the order of `positions` and accumulates one target by group.
fn accumulate(
    sample: &EncodingSample<'_>,
    target: usize,
    groups: RowGroups<'_>,
    encoding_prior: EncodingPrior,
    positions: impl Iterator<Item = usize>,
) -> OrderedCounts {
    let EncodingPrior { prior, strength } = encoding_prior;
    let target = &sample.targets[target];
    let (mut sums, mut weight) = (vec![0.0; groups.n_groups], vec![0.0; groups.n_groups]);
    let mut values = vec![prior; groups.index.len()];
    for position in positions {
        let group = groups.index[position];
        if group == NO_GROUP {
            continue;
        }
        let group = group as usize;
        let (row, w) = (sample.rows[position], sample.weights[position]);
        values[position] = (sums[group] + strength * prior) / (weight[group] + strength);
        sums[group] += w * target[row as usize];
        weight[group] += w;
    }
    OrderedCounts {
        values,
        sums,
        weight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::column::Values;

    fn numbers(table: &Table, column: usize) -> &[f64] {
        match &table.columns()[column].values {
            Values::Numeric(values) => values,
            Values::Categorical { .. } => panic!("numbers are expected"),
        }
    }

    #[test]
    fn a_training_row_uses_earlier_rows_and_a_new_row_uses_all() {
        let texts = [Some("a"), Some("b"), Some("a"), Some("a"), Some("z")];
        let features = Table::new(vec![
            Column::numeric("x", vec![1.0, 2.0, 3.0, 4.0, 5.0]),
            Column::categorical("k", &texts),
        ])
        .unwrap();
        let targets = [vec![1.0, 0.0, 0.0, 1.0, 0.0]];
        let sample = EncodingSample {
            features: &features,
            rows: &[0, 1, 2, 3],
            weights: &[1.0; 4],
            targets: &targets,
        };
        let pool = Pool::new(1).unwrap();
        let (encoder, seen) = TargetEncoder::fit(&sample, &[vec![1]], &pool);
        let prior = 0.5;
        let expected = [prior, prior, (1.0 + prior) * 0.5, (1.0 + prior) / 3.0];
        assert_eq!(numbers(&seen, 1), expected);
        assert_eq!(numbers(&seen, 0), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(numbers(&seen, 2), [3.0, 1.0, 3.0, 3.0]);
        let new = encoder.apply(&features, 3, |at| [3, 1, 4][at]);
        assert_eq!(numbers(&new, 1), [(2.0 + prior) / 4.0, prior / 2.0, prior]);
        assert_eq!(numbers(&new, 2), [3.0, 1.0, 0.0]);
        assert_eq!(encoder.sources(2), [vec![0], vec![1], vec![1]]);
        // other rows: their groups get new sums, groups that they lack keep the old ones
        let sample = EncodingSample {
            rows: &[1, 4],
            weights: &[1.0; 2],
            ..sample
        };
        let (renewed, seen) = encoder.renewed(&sample, &pool);
        assert_eq!(numbers(&seen, 1), [0.0, 0.0]);
        let new = renewed.apply(&features, 3, |at| [0, 1, 4][at]);
        assert_eq!(numbers(&new, 2), [3.0, 1.0, 1.0]);
        assert_eq!(numbers(&new, 1), [2.0 / 4.0, 0.0, 0.0]);
    }

    #[test]
    fn an_encoder_round_trips_through_a_record() {
        let texts: Vec<Option<String>> = (0..40).map(|at| Some(format!("{}", at % 7))).collect();
        let features = Table::new(vec![Column::categorical("k", &texts)]).unwrap();
        let rows: Vec<u32> = (0..40).collect();
        let targets = [(0..40).map(|at| f64::from(at % 3)).collect::<Vec<f64>>()];
        let sample = EncodingSample {
            features: &features,
            rows: &rows,
            weights: &[2.0; 40],
            targets: &targets,
        };
        let (encoder, _) = TargetEncoder::fit(&sample, &[vec![0]], &Pool::new(1).unwrap());
        let (meta, arrays) = encoder.encode();
        let mut record = Record {
            family: "sgb".to_owned(),
            meta: serde_json::json!({ "statistics": meta }),
            arrays,
        };
        assert_eq!(TargetEncoder::decode(&record, &[Some(7)]).unwrap(), encoder);
        assert!(TargetEncoder::decode(&record, &[None]).is_err());
        if let Array::U32(words) = &mut record.arrays[0].1 {
            words[0] = 99;
        }
        assert!(TargetEncoder::decode(&record, &[Some(7)]).is_err());
    }

    #[test]
    fn another_order_changes_the_columns_that_depend_on_it_and_no_others() {
        let a = ["p", "q", "p", "q", "p", "p"].map(Some);
        let b = ["u", "u", "u", "v", "u", "v"].map(Some);
        let features = Table::new(vec![
            Column::categorical("a", &a),
            Column::numeric("x", vec![0.0; 6]),
            Column::categorical("b", &b),
        ])
        .unwrap();
        let targets = [
            vec![1.0, 0.0, 0.0, 1.0, 1.0, 0.0],
            vec![0.0, 1.0, 1.0, 0.0, 0.0, 1.0],
        ];
        let sample = EncodingSample {
            features: &features,
            rows: &[0, 1, 2, 3, 4, 5],
            weights: &[1.0; 6],
            targets: &targets,
        };
        let pool = Pool::new(1).unwrap();
        let sets = [vec![0], vec![2], vec![0, 2]];
        let (encoder, seen) = TargetEncoder::fit(&sample, &sets, &pool);
        let mut changed = Vec::new();
        encoder.reordered(&sample, &[0, 1, 2, 3, 4, 5], |column, values| {
            assert_eq!(numbers(&seen, column), values);
            changed.push(column);
        });
        // columns 4, 6 and 9 are group weights
        assert_eq!(changed, [0, 3, 2, 5, 7, 8]);
        assert_eq!(numbers(&seen, 9), [3.0, 1.0, 3.0, 1.0, 3.0, 1.0]);
        encoder.reordered(&sample, &[5, 4, 3, 2, 1, 0], |column, values| {
            if column == 7 {
                // in reverse order the last row of a group has the prior, the first uses all others
                let prior = 0.5;
                assert_eq!(values[4..], [prior, prior]);
                assert_eq!(values[..1], [(1.0 + prior) / 3.0]);
            }
        });
    }
}
