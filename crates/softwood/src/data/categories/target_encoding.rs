//! Target statistics: categories, alone or together, as numbers that tell what the target was where they stood.
//!
//! A group of rows becomes `(S + a p) / (W + a)`: weighted sum `S` of the target and weight `W` of the group's rows, prior `p`
//! (the mean of all), strength `a`. A training row counts only the rows of its group that stand before it: it never sees its
//! own target, and the first row of a group is what a category will look like that was never seen. A new row counts all.

use serde::{Deserialize, Serialize};

use crate::data::categories::groups::{CategoryGroups, NO_GROUP};
use crate::data::column::Column;
use crate::data::table::Table;
use crate::error::{Error, Result};
use crate::par::Pool;
use crate::store::record::{Array, Record};

/// Rows of the mean that every group starts with.
pub(crate) const STRENGTH: f64 = 1.0;

/// What statistics are of: rows in order, weights, and the targets (one, or an indicator per class).
#[derive(Debug, Clone, Copy)]
pub(crate) struct EncodingSample<'a> {
    pub(crate) features: &'a Table,
    pub(crate) rows: &'a [u32],
    pub(crate) weights: &'a [f64],
    /// By row of the table.
    pub(crate) targets: &'a [Vec<f64>],
}

/// Groupings and what the target was in each group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TargetEncoder {
    groups: Vec<EncodedGroup>,
    spec: EncodingSpec,
}

/// What all groupings share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct EncodingSpec {
    /// Columns of each grouping.
    columns: Vec<Vec<usize>>,
    /// Mean of each target.
    priors: Vec<f64>,
    /// Weight of the prior.
    strength: f64,
}

#[derive(Debug, Clone, PartialEq)]
struct EncodedGroup {
    grouping: CategoryGroups,
    weight: Vec<f64>,
    /// Targets x groups.
    sums: Vec<Vec<f64>>,
}

impl TargetEncoder {
    /// TargetEncoder of the rows, by the groupings that `columns` name, and the table that training sees: as [`Self::apply`], but
    /// every row counts only those before it.
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
        let made = pool.map(columns.len(), |at| {
            CategoryGroups::of(sample.features, &columns[at], sample.rows)
                .map(|(grouping, index)| ordered(sample, grouping, &index, &priors, strength))
        });
        let (groups, values): (Vec<EncodedGroup>, Vec<Vec<Vec<f64>>>) =
            made.into_iter().flatten().unzip();
        let spec = EncodingSpec {
            columns: groups
                .iter()
                .map(|group| group.grouping.columns.clone())
                .collect(),
            priors,
            strength,
        };
        let statistics = Self { groups, spec };
        let rows = sample.rows;
        let table = statistics.table(sample.features, rows.len(), |at| rows[at] as usize, values);
        (statistics, table)
    }

    /// TargetEncoder of more rows by the same groupings, and the table that training sees. Groups that these rows lack keep what was
    /// known of them.
    pub(crate) fn renewed(&self, sample: &EncodingSample<'_>, pool: &Pool) -> (Self, Table) {
        let (mut renewed, table) = Self::fit(sample, &self.spec.columns, pool);
        for (group, before) in renewed.groups.iter_mut().zip(&self.groups) {
            group.keep(before);
        }
        (renewed, table)
    }

    /// What the training rows would say in another order of them, `order` having their places: calls `each` with a column of
    /// the table that training sees and its values, for every column that an order changes.
    pub(crate) fn reordered(
        &self,
        sample: &EncodingSample<'_>,
        order: &[u32],
        mut each: impl FnMut(usize, &[f64]),
    ) {
        let mut more = sample.features.columns().len();
        for group in &self.groups {
            let of_rows = |at: usize| sample.rows[at] as usize;
            let n_rows = sample.rows.len();
            let index = group.grouping.index(sample.features, n_rows, of_rows);
            for (at, prior) in self.spec.priors.iter().enumerate() {
                let places = order.iter().map(|&place| place as usize);
                let rule = (*prior, self.spec.strength);
                let counted = count(sample, at, (&index, group.weight.len()), rule, places);
                let column = match group.grouping.columns[..] {
                    [column] if at == 0 => column,
                    _ => {
                        more += 1;
                        more - 1
                    }
                };
                each(column, &counted.seen);
            }
            // the weight of a group is the same in any order
            more += 1;
        }
    }

    /// A table as trees see it: columns that are grouped by alone are replaced by their first statistic, all other statistics
    /// follow after the last column.
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
        let mut more = Vec::new();
        for (group, values) in self.groups.iter().zip(values) {
            for (at, values) in values.into_iter().enumerate() {
                match group.grouping.columns[..] {
                    [column] if at == 0 => replaced[column] = Some(Column::numeric("", values)),
                    _ => more.push(Column::numeric("", values)),
                }
            }
        }
        let kept = features.columns().iter().zip(replaced);
        let columns = kept.map(|(column, replaced)| replaced.unwrap_or_else(|| column.take(&rows)));
        Table::derived(columns.chain(more).collect(), n_rows)
    }

    /// The columns of the user's table that each column of a table made by [`Self::apply`] comes from.
    pub(crate) fn sources(&self, n_features: usize) -> Vec<Vec<usize>> {
        let mut sources: Vec<Vec<usize>> = (0..n_features).map(|column| vec![column]).collect();
        for group in &self.groups {
            let columns = &group.grouping.columns;
            let n = self.n_values() - usize::from(columns.len() == 1);
            sources.extend(std::iter::repeat_n(columns.clone(), n));
        }
        sources
    }

    /// Levels of each column of such a table, none for numbers, given those of the user's.
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

    /// Columns that a grouping gives: a statistic per target, and the weight of the group.
    fn n_values(&self) -> usize {
        self.spec.priors.len() + 1
    }

    /// Metadata and arrays for a record.
    pub(crate) fn encode(&self) -> (serde_json::Value, Vec<(String, Array)>) {
        let mut arrays = Vec::new();
        for (at, group) in self.groups.iter().enumerate() {
            let words = group.grouping.keys.iter();
            let words = words.flat_map(|&key| [key as u32, (key >> 32) as u32]);
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

    /// TargetEncoder from a record, whose schema has these columns: `levels` of each, none for numbers.
    ///
    /// # Errors
    /// When they are not there or do not fit the schema.
    pub(crate) fn decode(record: &Record, levels: &[Option<usize>]) -> Result<Self> {
        let broken = || Error::Format("the target statistics do not fit the schema".to_owned());
        let spec: EncodingSpec = record.part("statistics")?;
        let is_set = |columns: &Vec<usize>| match columns[..] {
            [column] => levels.get(column).is_some_and(Option::is_some),
            _ => (2..=3).contains(&columns.len()) && columns.iter().all(|&c| c < levels.len()),
        };
        let is_sound = spec.columns.iter().all(is_set)
            && (1..=MAX_TARGETS).contains(&spec.priors.len())
            && spec.priors.iter().all(|prior| prior.is_finite())
            && spec.strength > 0.0
            && spec.strength.is_finite();
        if !is_sound {
            return Err(broken());
        }
        let groups = spec.columns.iter().enumerate().map(|(at, columns)| {
            let words = record.u32s(&format!("group{at}.keys"))?.as_chunks::<2>();
            let keys: Vec<u64> = words
                .0
                .iter()
                .map(|&[low, high]| u64::from(low) | u64::from(high) << 32)
                .collect();
            let n = keys.len();
            let sums = record.f64s(&format!("group{at}.sums"), n * (1 + spec.priors.len()))?;
            let is_sound = words.1.is_empty()
                && n > 0
                && keys.windows(2).all(|pair| pair[0] < pair[1])
                && sums[..n].iter().all(|&weight| weight >= 0.0)
                && sums.iter().all(|sum| sum.is_finite());
            if !is_sound {
                return Err(broken());
            }
            let mut parts = sums.chunks_exact(n).map(<[f64]>::to_vec);
            Ok(EncodedGroup {
                grouping: CategoryGroups {
                    columns: columns.clone(),
                    keys,
                },
                weight: parts.next().unwrap_or_default(),
                sums: parts.collect(),
            })
        });
        Ok(Self {
            groups: groups.collect::<Result<_>>()?,
            spec,
        })
    }
}

/// Most targets that statistics are of: where there are more classes, categories are not turned into numbers.
pub(crate) const MAX_TARGETS: usize = 8;

impl EncodedGroup {
    /// Adds the groups of `before` that are not there.
    fn keep(&mut self, before: &Self) {
        let known = std::mem::take(&mut self.grouping.keys);
        let new: Vec<usize> = (0..before.weight.len())
            .filter(|&at| known.binary_search(&before.grouping.keys[at]).is_err())
            .collect();
        let mut order: Vec<(u64, usize)> = known.iter().copied().zip(0..).collect();
        let appended = new.iter().map(|&at| before.grouping.keys[at]);
        order.extend(appended.zip(known.len()..));
        order.sort_unstable();
        let merge = |own: &[f64], before: &[f64]| -> Vec<f64> {
            let all: Vec<f64> = own
                .iter()
                .copied()
                .chain(new.iter().map(|&at| before[at]))
                .collect();
            order.iter().map(|&(_, at)| all[at]).collect()
        };
        self.weight = merge(&self.weight, &before.weight);
        for (sums, before) in self.sums.iter_mut().zip(&before.sums) {
            *sums = merge(sums, before);
        }
        self.grouping.keys = order.iter().map(|&(key, _)| key).collect();
    }

    /// Values of rows in these groups, all rows of the group counting.
    fn values(&self, index: &[u32], spec: &EncodingSpec) -> Vec<Vec<f64>> {
        let known = |group: u32, of: &dyn Fn(usize) -> f64, otherwise: f64| {
            if group == NO_GROUP {
                otherwise
            } else {
                of(group as usize)
            }
        };
        let mut values: Vec<Vec<f64>> = self
            .sums
            .iter()
            .zip(&spec.priors)
            .map(|(sums, &prior)| {
                let value = |at: usize| {
                    (sums[at] + spec.strength * prior) / (self.weight[at] + spec.strength)
                };
                index
                    .iter()
                    .map(|&group| known(group, &value, prior))
                    .collect()
            })
            .collect();
        let weight = |at: usize| self.weight[at];
        let weights = index.iter().map(|&group| known(group, &weight, 0.0));
        values.push(weights.collect());
        values
    }
}

/// Totals of the groups, and the values that training sees.
fn ordered(
    sample: &EncodingSample<'_>,
    grouping: CategoryGroups,
    index: &[u32],
    priors: &[f64],
    strength: f64,
) -> (EncodedGroup, Vec<Vec<f64>>) {
    let n_groups = grouping.keys.len();
    let mut values = Vec::with_capacity(priors.len() + 1);
    let mut group = EncodedGroup {
        grouping,
        weight: Vec::new(),
        sums: Vec::with_capacity(priors.len()),
    };
    for (at, &prior) in priors.iter().enumerate() {
        let rule = (prior, strength);
        let counted = count(sample, at, (index, n_groups), rule, 0..index.len());
        values.push(counted.seen);
        group.sums.push(counted.sums);
        group.weight = counted.weight;
    }
    let weight = |&at: &u32| group.weight.get(at as usize).copied().unwrap_or(0.0);
    values.push(index.iter().map(weight).collect());
    (group, values)
}

/// One target of rows that were counted one after the other.
struct OrderedCounts {
    /// What each row saw of those before it.
    seen: Vec<f64>,
    sums: Vec<f64>,
    weight: Vec<f64>,
}

/// Counts rows in the order of `places`, given the group of each.
fn count(
    sample: &EncodingSample<'_>,
    target: usize,
    (index, n_groups): (&[u32], usize),
    (prior, strength): (f64, f64),
    places: impl Iterator<Item = usize>,
) -> OrderedCounts {
    let target = &sample.targets[target];
    let (mut sums, mut weight) = (vec![0.0; n_groups], vec![0.0; n_groups]);
    let mut seen = vec![prior; index.len()];
    for place in places {
        let group = index[place];
        if group == NO_GROUP {
            continue;
        }
        let at = group as usize;
        let (row, w) = (sample.rows[place], sample.weights[place]);
        seen[place] = (sums[at] + strength * prior) / (weight[at] + strength);
        sums[at] += w * target[row as usize];
        weight[at] += w;
    }
    OrderedCounts { seen, sums, weight }
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
    fn a_training_row_counts_those_before_it_and_a_new_row_counts_all() {
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
        let (statistics, seen) = TargetEncoder::fit(&sample, &[vec![1]], &pool);
        let prior = 0.5;
        let expected = [prior, prior, (1.0 + prior) * 0.5, (1.0 + prior) / 3.0];
        assert_eq!(numbers(&seen, 1), expected);
        assert_eq!(numbers(&seen, 0), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(numbers(&seen, 2), [3.0, 1.0, 3.0, 3.0]);
        let new = statistics.apply(&features, 3, |at| [3, 1, 4][at]);
        assert_eq!(numbers(&new, 1), [(2.0 + prior) / 4.0, prior / 2.0, prior]);
        assert_eq!(numbers(&new, 2), [3.0, 1.0, 0.0]);
        assert_eq!(statistics.sources(2), [vec![0], vec![1], vec![1]]);
        // more rows: what they say counts, what they lack is remembered
        let sample = EncodingSample {
            rows: &[1, 4],
            weights: &[1.0; 2],
            ..sample
        };
        let (renewed, seen) = statistics.renewed(&sample, &pool);
        assert_eq!(numbers(&seen, 1), [0.0, 0.0]);
        let new = renewed.apply(&features, 3, |at| [0, 1, 4][at]);
        assert_eq!(numbers(&new, 2), [3.0, 1.0, 1.0]);
        assert_eq!(numbers(&new, 1), [2.0 / 4.0, 0.0, 0.0]);
    }

    #[test]
    fn statistics_come_back_from_a_record() {
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
        let (statistics, _) = TargetEncoder::fit(&sample, &[vec![0]], &Pool::new(1).unwrap());
        let (meta, arrays) = statistics.encode();
        let mut record = Record {
            family: "sgb".to_owned(),
            meta: serde_json::json!({ "statistics": meta }),
            arrays,
        };
        assert_eq!(
            TargetEncoder::decode(&record, &[Some(7)]).unwrap(),
            statistics
        );
        assert!(TargetEncoder::decode(&record, &[None]).is_err());
        if let Array::U32(words) = &mut record.arrays[0].1 {
            words[0] = 99;
        }
        assert!(TargetEncoder::decode(&record, &[Some(7)]).is_err());
    }

    #[test]
    fn another_order_moves_the_columns_that_depend_on_it_and_only_those() {
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
        let (statistics, seen) = TargetEncoder::fit(&sample, &sets, &pool);
        let mut changed = Vec::new();
        statistics.reordered(&sample, &[0, 1, 2, 3, 4, 5], |column, values| {
            assert_eq!(numbers(&seen, column), values);
            changed.push(column);
        });
        // columns 4, 6 and 9 are weights
        assert_eq!(changed, [0, 3, 2, 5, 7, 8]);
        assert_eq!(numbers(&seen, 9), [3.0, 1.0, 3.0, 1.0, 3.0, 1.0]);
        statistics.reordered(&sample, &[5, 4, 3, 2, 1, 0], |column, values| {
            if column == 7 {
                // the last row of a pair now sees nothing, the first sees all others
                let prior = 0.5;
                assert_eq!(values[4..], [prior, prior]);
                assert_eq!(values[..1], [(1.0 + prior) / 3.0]);
            }
        });
    }
}
