//! What rows outside of their trees' bags say of the noise.
//!
//! Numbers: a new row's variance is `a + b v + c s`, `v` being the mean variance of its leaves and `s` the variance of their means
//! over trees; `a, b, c >= 0` maximise the likelihood of the rows out of bag. What is left over rarely has a Normal law: most rows are
//! predicted well and a few are not, so it is split into a narrow and a wide Normal, again by likelihood. Classes: probabilities are mixed with the shares of
//! the whole and raised to a power, both of most likelihood.

use serde::{Deserialize, Serialize};

/// Rows that are looked at.
const MAX_ROWS: usize = 50_000;
/// Fewest rows to look at.
const MIN_ROWS: usize = 10;
/// Steps towards the best variances.
const STEPS: usize = 200;
/// Steps towards the best split into narrow and wide, and rows of variance one that each is given besides.
const SPLIT_STEPS: usize = 100;
const SPLIT_PRIOR: f64 = 3.0;
/// Shares of the whole and powers that are tried.
const SHARES: [f64; 9] = [1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1, 0.2];
const POWERS: [f64; 12] = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5];

/// Largest number that a file may hold: far beyond any that a fit gives, far from overflow.
const MAX: f64 = 1e30;

/// How leaves become a law.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "law", rename_all = "lowercase")]
pub(super) enum ForestNoise {
    /// Constant, factor of the leaves' variance, factor of the variance between trees; the least variance; and how the law is
    /// split.
    Number {
        parts: [f64; 3],
        floor: f64,
        tails: Tails,
    },
    /// Part and shares of the whole, and the power.
    Classes {
        part: f64,
        whole: Vec<f64>,
        power: f64,
    },
}

/// A Normal law of variance one, split into a narrow and a wide one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Tails {
    /// Weight of the wide one.
    part: f64,
    narrow: f64,
    wide: f64,
}

impl Tails {
    /// No split at all.
    const NONE: Self = Self {
        part: 0.1,
        narrow: 1.0,
        wide: 1.0,
    };

    /// The split of most likelihood for squared residuals in units of their variance, and their weights.
    fn fit(rows: &[(f64, f64)]) -> Self {
        let total: f64 = rows.iter().map(|row| row.1).sum();
        let mut tails = Self {
            part: 0.1,
            narrow: 0.7,
            wide: 4.0,
        };
        for _ in 0..SPLIT_STEPS {
            let (mut weight, mut squares) = ([0.0; 2], [0.0; 2]);
            for &(square, of) in rows {
                let log = |part: f64, variance: f64| {
                    part.ln() - 0.5 * (variance.ln() + square / variance)
                };
                let gap = log(tails.part, tails.wide) - log(1.0 - tails.part, tails.narrow);
                let share = 1.0 / (1.0 + (-gap).exp());
                for (at, share) in [(0, 1.0 - share), (1, share)] {
                    weight[at] += of * share;
                    squares[at] += of * share * square;
                }
            }
            let variance = |at: usize| {
                ((squares[at] + SPLIT_PRIOR) / (weight[at] + SPLIT_PRIOR)).clamp(1e-6, 1e6)
            };
            tails = Self {
                part: (weight[1] / total).clamp(1e-6, 1.0 - 1e-6),
                narrow: variance(0),
                wide: variance(1),
            };
        }
        tails
    }
}

/// A row out of bag: squared residual, mean variance of its leaves, variance of their means, what the variance has besides, and
/// its weight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Residual {
    pub(super) square: f64,
    pub(super) within: f64,
    pub(super) between: f64,
    pub(super) known: f64,
    pub(super) weight: f64,
}

impl ForestNoise {
    /// Without rows out of bag.
    pub(super) fn plain_number(floor: f64) -> Self {
        Self::Number {
            parts: [0.0, 1.0, 1.0],
            floor: floor * floor,
            tails: Tails::NONE,
        }
    }

    /// The variances of most likelihood; `has_spread` says whether a member has more than one tree.
    pub(super) fn fit_number(rows: &[Residual], floor: f64, has_spread: bool) -> Self {
        let rows = &rows[..rows.len().min(MAX_ROWS)];
        let floor = floor * floor;
        if rows.len() < MIN_ROWS {
            return Self::plain_number(floor.sqrt());
        }
        let total: f64 = rows.iter().map(|row| row.weight).sum();
        let mean = |of: &dyn Fn(&Residual) -> f64| {
            rows.iter().map(|row| row.weight * of(row)).sum::<f64>() / total
        };
        let level = mean(&|row| row.square).max(floor);
        let start = |size: f64| {
            if size > 0.0 {
                level / (3.0 * size)
            } else {
                0.0
            }
        };
        let mut parts = [
            level / 3.0,
            start(mean(&|row| row.within)),
            if has_spread {
                start(mean(&|row| row.between))
            } else {
                0.0
            },
        ];
        for _ in 0..STEPS {
            // each part times (what it explains / what it claims): the likelihood rises, and none becomes negative
            let (mut up, mut down) = ([0.0; 3], [0.0; 3]);
            for row in rows {
                let of = [1.0, row.within, row.between];
                let claimed: f64 = (0..3).map(|at| parts[at] * of[at]).sum();
                let variance = (claimed + row.known).max(floor);
                for at in 0..3 {
                    up[at] += row.weight * of[at] * row.square / (variance * variance);
                    down[at] += row.weight * of[at] / variance;
                }
            }
            for at in 0..3 {
                if down[at] > 0.0 {
                    parts[at] *= (up[at] / down[at]).sqrt();
                }
            }
        }
        if !parts.iter().all(|part| part.is_finite()) {
            return Self::plain_number(floor.sqrt());
        }
        let left_over = rows.iter().map(|row| {
            let [a, b, c] = parts;
            let variance = (a + b * row.within + c * row.between + row.known).max(floor);
            (row.square / variance, row.weight)
        });
        let tails = Tails::fit(&left_over.collect::<Vec<_>>());
        Self::Number {
            parts,
            floor,
            tails,
        }
    }

    /// Shares of the whole, never zero.
    pub(super) fn plain_classes(weights: &[f64]) -> Self {
        let total = weights.iter().sum::<f64>() + 0.5 * weights.len() as f64;
        Self::Classes {
            part: 0.01,
            whole: weights
                .iter()
                .map(|weight| (weight + 0.5) / total)
                .collect(),
            power: 1.0,
        }
    }

    /// The part and power of most likelihood. Rows are probabilities of all classes, the class, and the weight.
    pub(super) fn fit_classes(self, rows: &[(Vec<f64>, usize, f64)]) -> Self {
        let rows = &rows[..rows.len().min(MAX_ROWS / 5)];
        let Self::Classes { whole, .. } = &self else {
            return self;
        };
        if rows.len() < MIN_ROWS {
            return self;
        }
        let mut best = (f64::NEG_INFINITY, self.clone());
        for part in SHARES {
            for power in POWERS {
                let one = Self::Classes {
                    part,
                    whole: whole.clone(),
                    power,
                };
                let mut buffer = vec![0.0; whole.len()];
                let mut score = 0.0;
                for (probabilities, class, weight) in rows {
                    buffer.copy_from_slice(probabilities);
                    one.classes(&mut buffer);
                    score += weight * buffer[*class].ln();
                }
                if score > best.0 {
                    best = (score, one);
                }
            }
        }
        best.1
    }

    /// Weight and standard deviation of the two Normals of a member.
    pub(super) fn components(&self, within: f64, between: f64) -> [(f64, f64); 2] {
        match self {
            Self::Number {
                parts: [a, b, c],
                floor,
                tails: Tails { part, narrow, wide },
            } => {
                let variance = a + b * within + c * between;
                let sd = |factor: f64| (factor * variance).max(*floor).sqrt();
                [(1.0 - part, sd(*narrow)), (*part, sd(*wide))]
            }
            Self::Classes { .. } => [(0.5, 1.0); 2],
        }
    }

    /// Probabilities of a member from the mean of its trees, in place.
    pub(super) fn classes(&self, probabilities: &mut [f64]) {
        let Self::Classes { part, whole, power } = self else {
            return;
        };
        let mut total = 0.0;
        for (p, share) in probabilities.iter_mut().zip(whole) {
            *p = ((1.0 - part) * *p + part * share).powf(*power);
            total += *p;
        }
        for p in probabilities {
            *p /= total;
        }
    }

    /// Whether it can be read from a file for so many classes, or for numbers.
    pub(super) fn is_sound(&self, classes: Option<usize>) -> bool {
        match self {
            Self::Number {
                parts,
                floor,
                tails,
            } => {
                classes.is_none()
                    && tails.part > 0.0
                    && tails.part < 1.0
                    && tails.narrow > 0.0
                    && tails.wide > 0.0
                    && tails.narrow.max(tails.wide) <= MAX
                    && parts.iter().all(|part| (0.0..=MAX).contains(part))
                    && *floor > 0.0
                    && *floor <= MAX
            }
            Self::Classes { part, whole, power } => {
                classes == Some(whole.len())
                    && *part > 0.0
                    && *part <= 1.0
                    && (0.1..=10.0).contains(power)
                    && whole.iter().all(|share| *share > 0.0 && *share <= 1.0)
            }
        }
    }
}
