//! Which categorical columns say more about the target together than each alone.
//!
//! For a set of columns take the residuals that the best sum of the statistics of its parts leaves, and predict each by the mean
//! residual of the earlier rows of its group: `m`. What that gains in squared error is `sum w (r m - m^2/2)`, below zero
//! where the groups say nothing, since no row sees itself. A set must gain beyond chance.

use crate::data::column::Values;
use crate::data::grouping::Grouping;
use crate::data::statistics::{STRENGTH, Sample};
use crate::data::table::Table;
use crate::par::Pool;

/// Most pairs and triples that are kept.
const MOST_PAIRS: usize = 16;
const MOST_TRIPLES: usize = 8;
/// Pairs that triples are made of.
const SEEDS: usize = 8;
/// Rows that are looked at, and cells in all.
const MOST_ROWS: usize = 50_000;
const MOST_CELLS: usize = 10_000_000;
/// Rows below which nothing could be told: where there are so many pairs, none is looked at.
const FEWEST_ROWS: usize = 500;
/// Rows of no residual that every group starts with.
const CAUTION: f64 = 5.0;
/// Part of the diagonal that is added to it.
const RIDGE: f64 = 1e-3;
/// Standard errors that a gain must lie above nothing.
const LEAST_Z: f64 = 3.0;

/// Sets of two or three categorical columns, the best first, one of each pair being among `many`: trees part few levels by
/// themselves.
pub(crate) fn interactions(sample: &Sample<'_>, many: &[usize], pool: &Pool) -> Vec<Vec<usize>> {
    let categories = categories(sample.features);
    let n_pairs = categories.len() * categories.len().saturating_sub(1) / 2;
    if n_pairs == 0 || n_pairs > MOST_CELLS / FEWEST_ROWS {
        return Vec::new();
    }
    let n_rows = sample.rows.len().min(MOST_ROWS).min(MOST_CELLS / n_pairs);
    let sample = Sample {
        rows: &sample.rows[..n_rows],
        weights: &sample.weights[..n_rows],
        ..*sample
    };
    let single = pool.map(categories.len(), |at| {
        statistics(&sample, &categories[at..=at])
    });
    let pairs: Vec<(usize, usize)> = (0..categories.len())
        .flat_map(|a| (a + 1..categories.len()).map(move |b| (a, b)))
        .filter(|&(a, b)| many.contains(&categories[a]) || many.contains(&categories[b]))
        .collect();
    let gains = pool.map(pairs.len(), |at| {
        let (a, b) = pairs[at];
        let set = vec![categories[a], categories[b]];
        let gain = gain_over(
            &sample,
            &set,
            &residuals(&sample, &[&single[a], &single[b]]),
        )?;
        Some((gain, set))
    });
    let pairs = best(gains, MOST_PAIRS);
    let mut sets: Vec<(Vec<usize>, &Vec<usize>)> = Vec::new();
    for (_, pair) in pairs.iter().take(SEEDS) {
        for &column in categories.iter().filter(|column| !pair.contains(column)) {
            let mut set = pair.clone();
            set.push(column);
            set.sort_unstable();
            if sets.iter().all(|(known, _)| *known != set) {
                sets.push((set, pair));
            }
        }
    }
    let gains = pool.map(sets.len(), |at| {
        let (set, pair) = &sets[at];
        let last = set.iter().copied().find(|column| !pair.contains(column))?;
        let parts = [&statistics(&sample, pair), &statistics(&sample, &[last])];
        let gain = gain_over(&sample, set, &residuals(&sample, &parts))?;
        Some((gain, set.clone()))
    });
    let triples = best(gains, MOST_TRIPLES);
    pairs
        .into_iter()
        .chain(triples)
        .map(|(_, set)| set)
        .collect()
}

fn categories(features: &Table) -> Vec<usize> {
    let columns = features.columns().iter().enumerate();
    columns
        .filter(|(_, column)| matches!(&column.values, Values::Categorical { levels, .. } if levels.len() > 1))
        .map(|(at, _)| at)
        .collect()
}

fn best(gains: Vec<Option<(f64, Vec<usize>)>>, most: usize) -> Vec<(f64, Vec<usize>)> {
    let mut found: Vec<(f64, Vec<usize>)> = gains.into_iter().flatten().collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.truncate(most);
    found
}

/// The targets of a sample, less their means.
fn centred(sample: &Sample<'_>, target: &[f64]) -> Vec<f64> {
    let values: Vec<f64> = sample
        .rows
        .iter()
        .map(|&row| target[row as usize])
        .collect();
    let total: f64 = sample.weights.iter().sum();
    let mean = dot(&values, &vec![1.0; values.len()], sample.weights) / total;
    values.iter().map(|value| value - mean).collect()
}

fn dot(a: &[f64], b: &[f64], weights: &[f64]) -> f64 {
    let terms = a.iter().zip(b).zip(weights);
    terms.map(|((a, b), weight)| a * b * weight).sum()
}

/// What earlier rows say of each target, by row of the sample; nothing where the columns cannot be grouped.
fn statistics(sample: &Sample<'_>, columns: &[usize]) -> Vec<Vec<f64>> {
    let found = Grouping::of(sample.features, columns, sample.rows);
    let total: f64 = sample.weights.iter().sum();
    let strength = STRENGTH * total / sample.rows.len() as f64;
    let of_target = |target: &Vec<f64>| {
        let centred = centred(sample, target);
        match &found {
            Some((grouping, index)) => {
                earlier_means(&centred, sample.weights, grouping, index, strength)
            }
            None => vec![0.0; centred.len()],
        }
    };
    sample.targets.iter().map(of_target).collect()
}

/// What the best sum of two statistics leaves of each target.
fn residuals(sample: &Sample<'_>, [a, b]: &[&Vec<Vec<f64>>; 2]) -> Vec<Vec<f64>> {
    let weights = sample.weights;
    let of_target = |(at, target): (usize, &Vec<f64>)| {
        let y = centred(sample, target);
        let (a, b) = (&a[at], &b[at]);
        let (aa, ab, bb) = (dot(a, a, weights), dot(a, b, weights), dot(b, b, weights));
        let (ay, by) = (dot(a, &y, weights), dot(b, &y, weights));
        // a little is added to the diagonal: two names of one thing share the slope
        let ridge = RIDGE * (aa + bb) + f64::MIN_POSITIVE;
        let (aa, bb) = (aa + ridge, bb + ridge);
        let determinant = aa * bb - ab * ab;
        let slopes = (
            (bb * ay - ab * by) / determinant,
            (aa * by - ab * ay) / determinant,
        );
        let rows = y.iter().zip(a).zip(b);
        rows.map(|((y, a), b)| y - slopes.0 * a - slopes.1 * b)
            .collect()
    };
    sample.targets.iter().enumerate().map(of_target).collect()
}

/// What a set gains over these residuals; none where it is no gain.
fn gain_over(sample: &Sample<'_>, set: &[usize], residuals: &[Vec<f64>]) -> Option<f64> {
    let (grouping, index) = Grouping::of(sample.features, set, sample.rows)?;
    let total: f64 = sample.weights.iter().sum();
    let caution = CAUTION * total / sample.rows.len() as f64;
    let (mut gain, mut product, mut square) = (0.0, 0.0, 0.0);
    for residual in residuals {
        let means = earlier_means(residual, sample.weights, &grouping, &index, caution);
        for ((r, m), w) in residual.iter().zip(means).zip(sample.weights) {
            gain += w * (r * m - 0.5 * m * m);
            product += w * r * m;
            square += (w * r * m).powi(2);
        }
    }
    (gain > 0.0 && product > LEAST_Z * square.sqrt()).then_some(gain)
}

/// Mean of the earlier rows of each row's group, drawn towards zero.
fn earlier_means(
    values: &[f64],
    weights: &[f64],
    grouping: &Grouping,
    index: &[u32],
    strength: f64,
) -> Vec<f64> {
    let mut sums = vec![(0.0, strength); grouping.keys.len()];
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
    use crate::data::column::Column;
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
            let sample = Sample {
                features: &features,
                rows: &rows,
                weights: &weights,
                targets: &[target],
            };
            interactions(&sample, &[0, 1, 2], &pool)
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
}
