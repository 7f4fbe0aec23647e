//! Category crosses: sets of categorical columns, and of integer columns with few values, that
//! predict the target better together than each column alone.
//!
//! Crosses are selected greedily. A cross predicts the residual `r` of each row by the mean `m` of
//! the residuals of the earlier rows of its group; with the best slope, that reduces the squared
//! error by `(sum w r m)^2 / (2 sum w m^2)`. The prediction of the best cross is subtracted from
//! the residuals before the next cross is selected, so that of several equivalent crosses only the
//! first is selected. The predictions of the single columns are subtracted before any cross.

use crate::data::categories::groups::{CategoryGroups, RowGroups, few_whole_numbers};
use crate::data::categories::target_encoding::EncodingSample;
use crate::data::column::{Column, Values};
use crate::par::Pool;

/// Largest number of crosses.
const MAX_CROSSES: usize = 24;
/// Largest number of rows, and of cells in all pairs, that the selection uses.
const MAX_ROWS: usize = 50_000;
const MAX_CELLS: usize = 10_000_000;
/// Smallest number of rows; with too many pairs for that many rows, no cross is selected.
const MIN_ROWS: usize = 500;
/// Weight, in rows, of the residual zero in the mean of a group.
const SHRINKAGE_ROWS: f64 = 5.0;
/// Smallest gain in standard errors.
const MIN_Z: f64 = 4.0;
/// Number of times that the predictions of each column and cross are subtracted: columns overlap,
/// and the means of small groups are shrunk towards zero.
const SWEEPS: usize = 2;
/// Numbers of values with which an integer column counts as categorical: a month and a place may
/// predict together what neither predicts alone.
const INTEGER_LEVELS: std::ops::RangeInclusive<usize> = 3..=64;

/// Selects crosses of two or three columns, best first. Every pair has a column of
/// `high_cardinality`, because trees separate few levels themselves. A triple comes after a pair of
/// its columns.
pub(crate) fn category_crosses(
    sample: &EncodingSample<'_>,
    high_cardinality: &[usize],
    pool: &Pool,
) -> Vec<Vec<usize>> {
    let categories = categories(sample);
    let n_pairs = categories.len() * categories.len().saturating_sub(1) / 2;
    if n_pairs == 0 || n_pairs > MAX_CELLS / MIN_ROWS {
        return Vec::new();
    }
    let n_rows = sample.rows.len().min(MAX_ROWS).min(MAX_CELLS / n_pairs);
    let sample = EncodingSample {
        rows: &sample.rows[..n_rows],
        weights: &sample.weights[..n_rows],
        ..*sample
    };
    let mut residuals = CrossResiduals::of(&sample);
    for _ in 0..SWEEPS {
        for &column in &categories {
            residuals.subtract_prediction(&[column]);
        }
    }
    let pairs = pairs(&categories)
        .filter(|pair| pair.iter().any(|column| high_cardinality.contains(column)));
    let mut queue = residuals.candidates(pairs.collect(), 0, pool);
    let mut selected: Vec<Vec<usize>> = Vec::new();
    while selected.len() < MAX_CROSSES {
        let Some(cross) = residuals.pop_best(&mut queue, selected.len()) else {
            break;
        };
        for _ in 0..SWEEPS {
            residuals.subtract_prediction(&cross);
        }
        let triples: Vec<Vec<usize>> = triples(&cross, &categories)
            .filter(|triple| queue.iter().all(|candidate| candidate.columns != *triple))
            .filter(|triple| !selected.contains(triple))
            .collect();
        selected.push(cross);
        queue.extend(residuals.candidates(triples, selected.len(), pool));
    }
    selected
}

/// All pairs of the given columns.
fn pairs(columns: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    columns.iter().enumerate().flat_map(|(index, &a)| {
        let later = columns[index + 1..].iter();
        later.map(move |&b| vec![a, b])
    })
}

/// All triples of a pair and one of the columns; none for a cross that is a triple already.
fn triples(cross: &[usize], columns: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let others = columns.iter().filter(move |column| !cross.contains(column));
    let triples = others.map(move |&column| {
        let mut triple = [cross, &[column]].concat();
        triple.sort_unstable();
        triple
    });
    triples.filter(|triple| triple.len() == 3)
}

/// Columns that a cross may use: categorical ones, and integers with few values.
fn categories(sample: &EncodingSample<'_>) -> Vec<usize> {
    let is_category = |column: &Column| match &column.values {
        Values::Categorical { levels, .. } => levels.len() > 1,
        Values::Numeric(values) => {
            let rows = sample.rows.iter().map(|&row| row as usize);
            few_whole_numbers(values, rows, *INTEGER_LEVELS.end())
                .is_some_and(|seen| INTEGER_LEVELS.contains(&seen.len()))
        }
    };
    let columns = sample.features.columns().iter().enumerate();
    columns
        .filter(|(_, column)| is_category(column))
        .map(|(index, _)| index)
        .collect()
}

/// A cross that may be selected, and its gain after `n_selected` other crosses.
struct CrossCandidate {
    columns: Vec<usize>,
    gain: f64,
    n_selected: usize,
}

/// Residuals of each target by row of the sample, after the predictions of columns and crosses.
struct CrossResiduals<'a> {
    sample: &'a EncodingSample<'a>,
    residuals: Vec<Vec<f64>>,
}

/// The prediction of each residual by a cross.
struct CrossGain {
    /// Mean residual of the earlier rows of each row's group, by target.
    means: Vec<Vec<f64>>,
    /// Best slope of the residuals on the means.
    slope: f64,
    /// Reduction of the squared error.
    gain: f64,
    /// Gain in standard errors.
    z: f64,
}

impl<'a> CrossResiduals<'a> {
    fn of(sample: &'a EncodingSample<'a>) -> Self {
        let total: f64 = sample.weights.iter().sum();
        let centred = |target: &Vec<f64>| {
            let values = sample.rows.iter().map(|&row| target[row as usize]);
            let weighted = values.clone().zip(sample.weights);
            let mean = weighted.map(|(value, weight)| value * weight).sum::<f64>() / total;
            values.map(|value| value - mean).collect()
        };
        Self {
            sample,
            residuals: sample.targets.iter().map(centred).collect(),
        }
    }

    /// `None` if the columns have too many levels to be grouped.
    fn predict(&self, columns: &[usize]) -> Option<CrossGain> {
        let sample = self.sample;
        let (grouping, index) = CategoryGroups::of(sample.features, columns, sample.rows)?;
        let groups = RowGroups {
            index: &index,
            n_groups: grouping.keys.len(),
        };
        let total: f64 = sample.weights.iter().sum();
        let strength = SHRINKAGE_ROWS * total / sample.rows.len() as f64;
        let means: Vec<Vec<f64>> = self
            .residuals
            .iter()
            .map(|residual| earlier_means(residual, sample.weights, groups, strength))
            .collect();
        let (mut product, mut error, mut square) = (0.0, 0.0, f64::MIN_POSITIVE);
        for (residual, means) in self.residuals.iter().zip(&means) {
            for ((r, m), w) in residual.iter().zip(means).zip(sample.weights) {
                product += w * r * m;
                error += (w * r * m).powi(2);
                square += w * m * m;
            }
        }
        Some(CrossGain {
            means,
            slope: product / square,
            gain: 0.5 * product * product / square,
            z: product / error.sqrt().max(f64::MIN_POSITIVE),
        })
    }

    /// The gain of a cross, if it is significant.
    fn significant_gain(&self, columns: &[usize]) -> Option<f64> {
        let prediction = self.predict(columns)?;
        (prediction.z > MIN_Z).then_some(prediction.gain)
    }

    fn subtract_prediction(&mut self, columns: &[usize]) {
        let Some(prediction) = self.predict(columns) else {
            return;
        };
        for (residual, means) in self.residuals.iter_mut().zip(&prediction.means) {
            for (r, m) in residual.iter_mut().zip(means) {
                *r -= prediction.slope * m;
            }
        }
    }

    /// The crosses with a significant gain.
    fn candidates(
        &self,
        crosses: Vec<Vec<usize>>,
        n_selected: usize,
        pool: &Pool,
    ) -> Vec<CrossCandidate> {
        let gains = pool.map(crosses.len(), |index| {
            self.significant_gain(&crosses[index])
        });
        let candidates = crosses.into_iter().zip(gains).map(|(columns, gain)| {
            Some(CrossCandidate {
                columns,
                gain: gain?,
                n_selected,
            })
        });
        candidates.flatten().collect()
    }

    /// Removes the cross with the largest gain from the queue. An old gain is treated as an upper
    /// bound of the present one, so that few gains are computed again.
    fn pop_best(&self, queue: &mut Vec<CrossCandidate>, n_selected: usize) -> Option<Vec<usize>> {
        loop {
            let candidate = queue.swap_remove(best_candidate(queue)?);
            if candidate.n_selected == n_selected {
                return Some(candidate.columns);
            }
            if let Some(gain) = self.significant_gain(&candidate.columns) {
                queue.push(CrossCandidate {
                    gain,
                    n_selected,
                    ..candidate
                });
            }
        }
    }
}

/// Index of the candidate with the largest gain; of equal gains, the one with the first columns.
fn best_candidate(queue: &[CrossCandidate]) -> Option<usize> {
    (0..queue.len()).reduce(|best, index| {
        let (ours, theirs) = (&queue[index], &queue[best]);
        let order = ours.gain.total_cmp(&theirs.gain);
        let order = order.then_with(|| theirs.columns.cmp(&ours.columns));
        if order.is_gt() { index } else { best }
    })
}

/// Mean of the earlier rows of each row's group, shrunk towards zero with weight `strength`.
fn earlier_means(
    values: &[f64],
    weights: &[f64],
    groups: RowGroups<'_>,
    strength: f64,
) -> Vec<f64> {
    let mut sums = vec![(0.0, strength); groups.n_groups];
    let rows = values.iter().zip(weights).zip(groups.index);
    rows.map(|((value, weight), &group)| {
        let Some((sum, total)) = sums.get_mut(group as usize) else {
            return 0.0;
        };
        let mean = *sum / *total;
        *sum += weight * value;
        *total += weight;
        mean
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::table::Table;
    use crate::rng::{Key, below, uniform};

    /// Three columns of 20 levels; the first two predict the target together, neither alone.
    fn table(n: usize) -> (Table, Vec<f64>) {
        let mut rng = Key::from_seed(3).rng();
        let mut codes: Vec<Vec<usize>> = vec![Vec::new(); 3];
        let mut target = Vec::new();
        for _ in 0..n {
            let row: Vec<usize> = (0..3).map(|_| below(&mut rng, 20)).collect();
            target.push(f64::from(u8::from((row[0] + row[1]).is_multiple_of(2))));
            for (codes, code) in codes.iter_mut().zip(row) {
                codes.push(code);
            }
        }
        let columns = codes.into_iter().enumerate().map(|(at, codes)| {
            let texts: Vec<Option<String>> =
                codes.iter().map(|code| Some(format!("{code}"))).collect();
            Column::categorical(format!("c{at}"), &texts)
        });
        (Table::new(columns.collect()).unwrap(), target)
    }

    #[test]
    fn columns_that_predict_only_together_are_selected_and_no_others() {
        let (features, target) = table(6000);
        let rows: Vec<u32> = (0..6000).collect();
        let weights = vec![1.0; 6000];
        let pool = Pool::new(1).unwrap();
        let found = |target: Vec<f64>| {
            let sample = EncodingSample {
                features: &features,
                rows: &rows,
                weights: &weights,
                targets: &[target],
            };
            category_crosses(&sample, &[0, 1, 2], &pool)
        };
        assert_eq!(found(target), [vec![0, 1]]);
        let mut rng = Key::from_seed(4).rng();
        let noise = (0..6000).map(|_| below(&mut rng, 2) as f64).collect();
        assert_eq!(found(noise), Vec::<Vec<usize>>::new());
        // the sum of two columns is no cross: trees fit it
        let Values::Categorical { codes: a, .. } = &features.columns()[0].values else {
            unreachable!()
        };
        let Values::Categorical { codes: b, .. } = &features.columns()[1].values else {
            unreachable!()
        };
        let sum = a
            .iter()
            .zip(b)
            .map(|(a, b)| f64::from(a + b) + 30.0 * (uniform(&mut rng) - 0.5));
        let sum = sum.collect();
        assert_eq!(found(sum), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn integers_are_categories_and_fractions_are_not() {
        let (features, target) = table(6000);
        let codes = |at: usize| match &features.columns()[at].values {
            Values::Categorical { codes, .. } => codes.clone(),
            Values::Numeric(_) => unreachable!(),
        };
        // codes follow the order of the level names, so the target depends on the names
        let whole = |text: usize| {
            let Values::Categorical { levels, .. } = &features.columns()[text].values else {
                unreachable!()
            };
            let value = |&code: &u32| levels[code as usize].parse::<f64>().unwrap();
            codes(text).iter().map(value).collect::<Vec<f64>>()
        };
        let mut columns = features.columns().to_vec();
        columns[1] = Column::numeric("whole", whole(1));
        columns.push(Column::numeric(
            "fraction",
            whole(1).iter().map(|value| value + 0.5).collect(),
        ));
        let features = Table::new(columns).unwrap();
        let rows: Vec<u32> = (0..6000).collect();
        let sample = EncodingSample {
            features: &features,
            rows: &rows,
            weights: &vec![1.0; 6000],
            targets: &[target],
        };
        let pool = Pool::new(1).unwrap();
        assert_eq!(categories(&sample), [0, 1, 2]);
        assert_eq!(category_crosses(&sample, &[0, 2], &pool), [vec![0, 1]]);
    }
}
