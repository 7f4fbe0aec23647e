//! Which categorical columns, and whole numbers of few values with them, say more about the target together than each alone.
//!
//! Sets are taken one after the other. Of a set, each row is foretold by the mean residual `m` of the earlier rows of its group; with
//! the best slope that gains `(sum w r m)^2 / (2 sum w m^2)` in squared error. What the best set foretells is taken off the residuals
//! `r` before the next is looked for, so that of several names for one thing only the first counts. The columns themselves
//! are taken off before any set.

use crate::data::categories::groups::{CategoryGroups, few_whole_numbers};
use crate::data::categories::target_encoding::EncodingSample;
use crate::data::column::{Column, Values};
use crate::par::Pool;

/// Most sets that are kept.
const MAX_SETS: usize = 24;
/// Rows that are looked at, and cells in all.
const MAX_ROWS: usize = 50_000;
const MAX_CELLS: usize = 10_000_000;
/// Rows below which nothing could be told: where there are so many pairs, none is looked at.
const MIN_ROWS: usize = 500;
/// Rows of no residual that every group starts with.
const CAUTION: f64 = 5.0;
/// Standard errors that a gain must lie above nothing.
const MIN_Z: f64 = 4.0;
/// Times that each column and set is taken off, since columns overlap and means of few rows are drawn towards zero.
const SWEEPS: usize = 2;
/// Numeric columns of so many whole numbers stand beside categories: a month may say with a place what neither says alone.
const WHOLE_NUMBERS: std::ops::RangeInclusive<usize> = 3..=64;

/// Sets of two or three columns, the best first, one of each pair being among `many`: trees part few levels by themselves. A
/// triple stands after a pair of its columns.
pub(crate) fn category_crosses(
    sample: &EncodingSample<'_>,
    many: &[usize],
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
    let mut left = CrossResiduals::of(&sample);
    for _ in 0..SWEEPS {
        for &column in &categories {
            left.take_off(&[column]);
        }
    }
    let pairs = categories.iter().enumerate().flat_map(|(at, &a)| {
        let later = categories[at + 1..].iter();
        later.map(move |&b| vec![a, b])
    });
    let pairs = pairs.filter(|pair| pair.iter().any(|column| many.contains(column)));
    let mut line = left.line(pairs.collect(), 0, pool);
    let mut found: Vec<Vec<usize>> = Vec::new();
    while found.len() < MAX_SETS {
        let Some(set) = left.next(&mut line, found.len()) else {
            break;
        };
        for _ in 0..SWEEPS {
            left.take_off(&set);
        }
        let triples: Vec<Vec<usize>> = triples(&set, &categories)
            .filter(|triple| line.iter().all(|candidate| candidate.set != *triple))
            .filter(|triple| !found.contains(triple))
            .collect();
        found.push(set);
        line.extend(left.line(triples, found.len(), pool));
    }
    found
}

/// A pair and one column more, for each of the columns.
fn triples(set: &[usize], columns: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let more = columns.iter().filter(move |column| !set.contains(column));
    let triples = more.map(move |&column| {
        let mut triple = [set, &[column]].concat();
        triple.sort_unstable();
        triple
    });
    triples.filter(|triple| triple.len() == 3)
}

/// Columns of names: categories, and whole numbers of few values.
fn categories(sample: &EncodingSample<'_>) -> Vec<usize> {
    let is_of_names = |column: &Column| match &column.values {
        Values::Categorical { levels, .. } => levels.len() > 1,
        Values::Numeric(values) => {
            let rows = sample.rows.iter().map(|&row| row as usize);
            few_whole_numbers(values, rows, *WHOLE_NUMBERS.end())
                .is_some_and(|seen| WHOLE_NUMBERS.contains(&seen.len()))
        }
    };
    let columns = sample.features.columns().iter().enumerate();
    columns
        .filter(|(_, column)| is_of_names(column))
        .map(|(at, _)| at)
        .collect()
}

/// A set that may be taken, and what it gained when so many others had been.
struct CrossCandidate {
    set: Vec<usize>,
    gain: f64,
    n_taken: usize,
}

/// What is left of each target by row of the sample, after what earlier rows say.
struct CrossResiduals<'a> {
    sample: &'a EncodingSample<'a>,
    residuals: Vec<Vec<f64>>,
}

/// What a set foretells of each residual, with the best slope.
struct CrossGain {
    means: Vec<Vec<f64>>,
    slope: f64,
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

    /// None where the columns cannot be grouped.
    fn gain_of(&self, set: &[usize]) -> Option<CrossGain> {
        let sample = self.sample;
        let (grouping, index) = CategoryGroups::of(sample.features, set, sample.rows)?;
        let total: f64 = sample.weights.iter().sum();
        let caution = CAUTION * total / sample.rows.len() as f64;
        let means: Vec<Vec<f64>> = self
            .residuals
            .iter()
            .map(|residual| {
                earlier_means(
                    residual,
                    sample.weights,
                    (&index, grouping.keys.len()),
                    caution,
                )
            })
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

    /// What a set gains, where it is beyond chance.
    fn gain(&self, set: &[usize]) -> Option<f64> {
        let foretold = self.gain_of(set)?;
        (foretold.z > MIN_Z).then_some(foretold.gain)
    }

    fn take_off(&mut self, set: &[usize]) {
        let Some(foretold) = self.gain_of(set) else {
            return;
        };
        for (residual, means) in self.residuals.iter_mut().zip(&foretold.means) {
            for (r, m) in residual.iter_mut().zip(means) {
                *r -= foretold.slope * m;
            }
        }
    }

    /// Those of the sets that gain.
    fn line(&self, sets: Vec<Vec<usize>>, n_taken: usize, pool: &Pool) -> Vec<CrossCandidate> {
        let gains = pool.map(sets.len(), |at| self.gain(&sets[at]));
        let hopes = sets.into_iter().zip(gains);
        hopes
            .filter_map(|(set, gain)| {
                Some(CrossCandidate {
                    set,
                    gain: gain?,
                    n_taken,
                })
            })
            .collect()
    }

    /// The set that gains most. What a set gained once is taken for a bound of what it gains now, so few are looked at again.
    fn next(&self, line: &mut Vec<CrossCandidate>, n_taken: usize) -> Option<Vec<usize>> {
        loop {
            let first = (0..line.len()).reduce(|best, at| {
                let order = line[at].gain.total_cmp(&line[best].gain);
                if order
                    .then_with(|| line[best].set.cmp(&line[at].set))
                    .is_gt()
                {
                    at
                } else {
                    best
                }
            })?;
            let candidate = line.swap_remove(first);
            if candidate.n_taken == n_taken {
                return Some(candidate.set);
            }
            if let Some(gain) = self.gain(&candidate.set) {
                line.push(CrossCandidate {
                    gain,
                    n_taken,
                    ..candidate
                });
            }
        }
    }
}

/// Mean of the earlier rows of each row's group, drawn towards zero.
fn earlier_means(
    values: &[f64],
    weights: &[f64],
    (index, n_groups): (&[u32], usize),
    strength: f64,
) -> Vec<f64> {
    let mut sums = vec![(0.0, strength); n_groups];
    let rows = values.iter().zip(weights).zip(index);
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

    /// Three columns of 20 levels; the target is told by the first two together and by neither alone.
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
    fn columns_that_tell_only_together_are_found_and_no_others() {
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
        // what two columns add up to is left to the trees
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
    fn whole_numbers_are_names_and_fractions_are_not() {
        let (features, target) = table(6000);
        let codes = |at: usize| match &features.columns()[at].values {
            Values::Categorical { codes, .. } => codes.clone(),
            Values::Numeric(_) => unreachable!(),
        };
        // the codes count levels in their own order, so the target is told by the texts
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
