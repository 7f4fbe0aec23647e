//! Calibration of the noise on the out-of-bag rows.
//!
//! Regression: the variance of a new row is `a + b v + c s`, where `v` is the mean variance in its
//! leaves and `s` the variance of the leaf means over the trees; `a, b, c >= 0` maximize the
//! likelihood of the out-of-bag rows. The standardized residuals are rarely Normal, since most rows
//! are predicted well and a few are not; they get a mixture of a narrow and a wide Normal
//! distribution, also by maximum likelihood. Classification: the probabilities are mixed with the
//! overall class frequencies and raised to a power; both the weight of the frequencies and the
//! power maximize the likelihood.

use serde::{Deserialize, Serialize};

use crate::store::range::FLOORS;

/// Largest number of out-of-bag rows that are used.
const MAX_ROWS: usize = 50_000;
/// Smallest number of out-of-bag rows for a calibration.
const MIN_ROWS: usize = 10;
/// Iterations for the coefficients of the variance.
const VARIANCE_STEPS: usize = 200;
/// EM iterations for the mixture of a narrow and a wide Normal distribution.
const MIXTURE_STEPS: usize = 100;
/// Pseudo-rows of variance one that are added to each component of the mixture.
const MIXTURE_PRIOR: f64 = 3.0;
/// Weights of the class frequencies that are compared.
const FREQUENCY_WEIGHTS: [f64; 9] = [1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1, 0.2];
/// Powers of the probabilities that are compared.
const POWERS: [f64; 12] = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5];

/// Largest number that is accepted from a file: far above the result of any fit, far from overflow.
const MAX_STORED: f64 = 1e30;

/// How the leaf values of the trees become a predictive distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "law", rename_all = "lowercase")]
pub(super) enum ForestNoise {
    /// Regression.
    Number {
        /// `a`, `b` and `c` of the variance `a + b v + c s`.
        #[serde(rename = "parts")]
        coefficients: [f64; 3],
        /// Smallest variance.
        floor: f64,
        /// Distribution of the standardized residuals.
        #[serde(rename = "tails")]
        mixture: ScaleMixture,
    },
    /// Classification.
    Classes {
        /// Weight of the overall class frequencies.
        #[serde(rename = "part")]
        frequency_weight: f64,
        /// Overall frequency of each class.
        #[serde(rename = "whole")]
        frequencies: Vec<f64>,
        /// Power of the mixed probabilities.
        power: f64,
    },
}

/// Mixture of a narrow and a wide Normal distribution with mean zero, in units of the variance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct ScaleMixture {
    /// Weight of the wide component.
    #[serde(rename = "part")]
    wide_weight: f64,
    /// Variance of the narrow component.
    narrow: f64,
    /// Variance of the wide component.
    wide: f64,
}

/// A squared residual in units of its predicted variance.
#[derive(Debug, Clone, Copy)]
struct StandardizedSquare {
    square: f64,
    weight: f64,
}

impl ScaleMixture {
    /// A single Normal distribution: both components have variance one.
    const NORMAL: Self = Self {
        wide_weight: 0.1,
        narrow: 1.0,
        wide: 1.0,
    };

    /// Maximum-likelihood mixture, by expectation maximization.
    fn fit(residuals: &[StandardizedSquare]) -> Self {
        let total: f64 = residuals.iter().map(|residual| residual.weight).sum();
        let mut mixture = Self {
            wide_weight: 0.1,
            narrow: 0.7,
            wide: 4.0,
        };
        for _ in 0..MIXTURE_STEPS {
            let (mut weight, mut squares) = ([0.0; 2], [0.0; 2]);
            for residual in residuals {
                let square = residual.square;
                let log_density = |weight: f64, variance: f64| {
                    weight.ln() - 0.5 * (variance.ln() + square / variance)
                };
                let log_odds = log_density(mixture.wide_weight, mixture.wide)
                    - log_density(1.0 - mixture.wide_weight, mixture.narrow);
                let wide = 1.0 / (1.0 + (-log_odds).exp());
                for (component, probability) in [(0, 1.0 - wide), (1, wide)] {
                    weight[component] += residual.weight * probability;
                    squares[component] += residual.weight * probability * square;
                }
            }
            let variance = |component: usize| {
                let (squares, weight) = (squares[component], weight[component]);
                ((squares + MIXTURE_PRIOR) / (weight + MIXTURE_PRIOR)).clamp(1e-6, 1e6)
            };
            mixture = Self {
                wide_weight: (weight[1] / total).clamp(1e-6, 1.0 - 1e-6),
                narrow: variance(0),
                wide: variance(1),
            };
        }
        mixture
    }
}

/// An out-of-bag row of a regression.
#[derive(Debug, Clone, Copy)]
pub(super) struct Residual {
    /// Squared residual.
    pub(super) square: f64,
    /// Mean variance of the target in the leaves of the row.
    pub(super) within: f64,
    /// Variance of the leaf means over the trees.
    pub(super) between: f64,
    /// Part of the residual variance that is not noise: the variance between the members, and the
    /// error of averaging the out-of-bag trees only.
    pub(super) known: f64,
    pub(super) weight: f64,
}

/// An out-of-bag row of a classification.
#[derive(Debug, Clone)]
pub(super) struct OutOfBagClass {
    /// Mean class frequencies in the leaves of the row.
    pub(super) probabilities: Vec<f64>,
    /// Class of the row.
    pub(super) class: usize,
    pub(super) weight: f64,
}

impl ForestNoise {
    /// The noise of a regression without calibration.
    pub(super) fn plain_number(floor: f64) -> Self {
        Self::Number {
            coefficients: [0.0, 1.0, 1.0],
            floor: floor * floor,
            mixture: ScaleMixture::NORMAL,
        }
    }

    /// Maximum-likelihood noise of a regression. `floor` is the smallest standard deviation;
    /// `has_between` says whether a member has several trees, whose variance can be measured.
    pub(super) fn fit_number(rows: &[Residual], floor: f64, has_between: bool) -> Self {
        let rows = &rows[..rows.len().min(MAX_ROWS)];
        let floor = floor * floor;
        if rows.len() < MIN_ROWS {
            return Self::plain_number(floor.sqrt());
        }
        let total: f64 = rows.iter().map(|row| row.weight).sum();
        let mean = |field: &dyn Fn(&Residual) -> f64| {
            rows.iter().map(|row| row.weight * field(row)).sum::<f64>() / total
        };
        let variance = mean(&|row| row.square).max(floor);
        // each of the three terms starts with a third of the variance
        let start = |size: f64| {
            if size > 0.0 {
                variance / (3.0 * size)
            } else {
                0.0
            }
        };
        let mut coefficients = [
            variance / 3.0,
            start(mean(&|row| row.within)),
            if has_between {
                start(mean(&|row| row.between))
            } else {
                0.0
            },
        ];
        for _ in 0..VARIANCE_STEPS {
            // multiplicative update: the likelihood increases and no coefficient becomes negative
            let (mut up, mut down) = ([0.0; 3], [0.0; 3]);
            for row in rows {
                let terms = [1.0, row.within, row.between];
                let noise: f64 = (0..3).map(|at| coefficients[at] * terms[at]).sum();
                let variance = (noise + row.known).max(floor);
                for at in 0..3 {
                    up[at] += row.weight * terms[at] * row.square / (variance * variance);
                    down[at] += row.weight * terms[at] / variance;
                }
            }
            for at in 0..3 {
                if down[at] > 0.0 {
                    coefficients[at] *= (up[at] / down[at]).sqrt();
                }
            }
        }
        if !coefficients.iter().all(|value| value.is_finite()) {
            return Self::plain_number(floor.sqrt());
        }
        let standardized = rows.iter().map(|row| {
            let [a, b, c] = coefficients;
            let variance = (a + b * row.within + c * row.between + row.known).max(floor);
            StandardizedSquare {
                square: row.square / variance,
                weight: row.weight,
            }
        });
        let mixture = ScaleMixture::fit(&standardized.collect::<Vec<_>>());
        Self::Number {
            coefficients,
            floor,
            mixture,
        }
    }

    /// The noise of a classification without calibration; `weights` has the total weight of each
    /// class. Frequencies are smoothed, so that none is zero.
    pub(super) fn plain_classes(weights: &[f64]) -> Self {
        let total = weights.iter().sum::<f64>() + 0.5 * weights.len() as f64;
        Self::Classes {
            frequency_weight: 0.01,
            frequencies: weights
                .iter()
                .map(|weight| (weight + 0.5) / total)
                .collect(),
            power: 1.0,
        }
    }

    /// Replaces the frequency weight and the power by their maximum-likelihood values.
    pub(super) fn fit_classes(self, rows: &[OutOfBagClass]) -> Self {
        // 108 candidates, so fewer rows than for a regression
        let rows = &rows[..rows.len().min(MAX_ROWS / 5)];
        let Self::Classes { frequencies, .. } = &self else {
            return self;
        };
        if rows.len() < MIN_ROWS {
            return self;
        }
        let mut best = (f64::NEG_INFINITY, self.clone());
        for frequency_weight in FREQUENCY_WEIGHTS {
            for power in POWERS {
                let candidate = Self::Classes {
                    frequency_weight,
                    frequencies: frequencies.clone(),
                    power,
                };
                let mut buffer = vec![0.0; frequencies.len()];
                let mut score = 0.0;
                for row in rows {
                    buffer.copy_from_slice(&row.probabilities);
                    candidate.calibrate(&mut buffer);
                    score += row.weight * buffer[row.class].ln();
                }
                if score > best.0 {
                    best = (score, candidate);
                }
            }
        }
        best.1
    }

    /// Weight and standard deviation of the two Normal components of a member.
    pub(super) fn components(&self, within: f64, between: f64) -> [(f64, f64); 2] {
        match self {
            Self::Number {
                coefficients: [a, b, c],
                floor,
                mixture,
            } => {
                let variance = a + b * within + c * between;
                let sd = |factor: f64| (factor * variance).max(*floor).sqrt();
                [
                    (1.0 - mixture.wide_weight, sd(mixture.narrow)),
                    (mixture.wide_weight, sd(mixture.wide)),
                ]
            }
            Self::Classes { .. } => [(0.5, 1.0); 2],
        }
    }

    /// Turns the mean class frequencies of the trees of a member into its probabilities, in place.
    pub(super) fn calibrate(&self, probabilities: &mut [f64]) {
        let Self::Classes {
            frequency_weight,
            frequencies,
            power,
        } = self
        else {
            return;
        };
        let mut total = 0.0;
        for (p, frequency) in probabilities.iter_mut().zip(frequencies) {
            *p = ((1.0 - frequency_weight) * *p + frequency_weight * frequency).powf(*power);
            total += *p;
        }
        for p in probabilities {
            *p /= total;
        }
    }

    /// Whether the values of a file are possible for so many classes, or for a regression (`None`).
    pub(super) fn is_valid(&self, classes: Option<usize>) -> bool {
        match self {
            Self::Number {
                coefficients,
                floor,
                mixture,
            } => {
                classes.is_none()
                    && mixture.wide_weight > 0.0
                    && mixture.wide_weight < 1.0
                    && mixture.narrow > 0.0
                    && mixture.wide > 0.0
                    && mixture.narrow.max(mixture.wide) <= MAX_STORED
                    && coefficients
                        .iter()
                        .all(|value| (0.0..=MAX_STORED).contains(value))
                    && FLOORS.contains(&floor.sqrt())
            }
            Self::Classes {
                frequency_weight,
                frequencies,
                power,
            } => {
                classes == Some(frequencies.len())
                    && *frequency_weight > 0.0
                    && *frequency_weight <= 1.0
                    && (0.1..=10.0).contains(power)
                    && frequencies
                        .iter()
                        .all(|frequency| *frequency > 0.0 && *frequency <= 1.0)
                    && (0.99..=1.01).contains(&frequencies.iter().sum::<f64>())
            }
        }
    }
}
