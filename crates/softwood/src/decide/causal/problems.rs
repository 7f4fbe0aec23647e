//! Problems with known effects: the one-dimensional toy problems of Salazar (2023), and outcomes
//! simulated on the covariates of the Infant Health and Development Program (IHDP; Hill 2011).

use rand_core::Rng;
use rand_distr::{Distribution as _, StandardNormal};

use crate::data::column::{Column, Values};
use crate::data::table::Table;
use crate::decide::causal::config::CausalRoles;
use crate::error::{Error, Result};
use crate::rng::{Key, uniform};

/// Name of the treatment column of a drawn table.
pub const TREATMENT: &str = "treatment";
/// Name of the outcome column of a drawn table.
pub const OUTCOME: &str = "outcome";
/// Average effect of the IHDP surfaces.
pub const IHDP_EFFECT: f64 = 4.0;

/// Random streams of a problem.
const ASSIGNMENT: u64 = 1;
const COVARIATES: u64 = 2;
const COEFFICIENTS: u64 = 3;
const NOISE: u64 = 4;

/// A table with a treatment and an outcome, and the effects that it was drawn with.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CausalProblem {
    /// Covariates, [`TREATMENT`] (0 or 1) and [`OUTCOME`].
    pub table: Table,
    /// Average over the rows of the expected outcome with treatment minus that without (sample
    /// average effect).
    pub true_effect: f64,
    /// The same average over the treated rows.
    pub true_effect_on_treated: f64,
    /// Expected outcome with treatment minus that without, of each row.
    pub true_cate: Vec<f64>,
}

impl CausalProblem {
    /// The roles of the columns of the table.
    pub fn roles(&self) -> CausalRoles {
        CausalRoles::new(TREATMENT, OUTCOME)
    }

    /// A problem of rows with these expected outcomes and noise of standard deviation 1.
    fn new(covariates: &Table, is_treated: &[bool], means: &Surfaces, key: Key) -> Result<Self> {
        let mut rng = key.child(NOISE).rng();
        let mut y = Vec::with_capacity(is_treated.len());
        for (row, &treated) in is_treated.iter().enumerate() {
            let noise: f64 = StandardNormal.sample(&mut rng);
            let mean = if treated {
                means.treated[row]
            } else {
                means.control[row]
            };
            y.push(mean + noise);
        }
        let cate: Vec<f64> = (means.treated.iter().zip(&means.control))
            .map(|(treated, control)| treated - control)
            .collect();
        let on_treated: Vec<f64> = (cate.iter().zip(is_treated))
            .filter(|(_, treated)| **treated)
            .map(|(effect, _)| *effect)
            .collect();
        let treatment = is_treated
            .iter()
            .map(|&treated| f64::from(u8::from(treated)));
        Ok(Self {
            table: covariates
                .clone()
                .with_column(Column::numeric(TREATMENT, treatment.collect()))?
                .with_column(Column::numeric(OUTCOME, y))?,
            true_effect: mean(&cate),
            true_effect_on_treated: mean(&on_treated),
            true_cate: cate,
        })
    }
}

/// Expected outcomes of the rows.
struct Surfaces {
    treated: Vec<f64>,
    control: Vec<f64>,
}

/// The toy problems: `a` is 0 or 1 with equal probability, `x` is Normal with standard deviation 10
/// and a mean that depends on `a`, drawn again while it is negative (the published text does not
/// say what happens to negative numbers, of which there is no square root); the outcome is
/// `90 + exp(0.06 x)` with treatment and `72 + 3 sqrt(x)` without, plus standard Normal noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CausalToy {
    /// Means 40 (treated) and 20 (control) of `x`: the arms overlap little.
    LittleOverlap,
    /// Means 30 (treated) and 40 (control) of `x`: the arms overlap well.
    GoodOverlap,
}

/// Expected outcomes of a toy problem at `x`: without and with treatment.
fn toy_means(x: f64) -> [f64; 2] {
    [72.0 + 3.0 * x.sqrt(), 90.0 + (0.06 * x).exp()]
}

impl CausalToy {
    /// The true effect at `x`.
    pub fn effect(self, x: f64) -> f64 {
        let [control, treated] = toy_means(x);
        treated - control
    }

    /// A problem of `n` rows.
    ///
    /// # Errors
    /// When there are no rows.
    pub fn draw(self, n: usize, key: Key) -> Result<CausalProblem> {
        let (treated_mean, control_mean) = match self {
            Self::LittleOverlap => (40.0, 20.0),
            Self::GoodOverlap => (30.0, 40.0),
        };
        let draws = key.child(ASSIGNMENT).uniforms(n);
        let is_treated: Vec<bool> = draws.into_iter().map(|draw| draw < 0.5).collect();
        let mut rng = key.child(COVARIATES).rng();
        let draw = |treated: &bool| {
            let mean = if *treated { treated_mean } else { control_mean };
            loop {
                let z: f64 = StandardNormal.sample(&mut rng);
                let x = mean + 10.0 * z;
                if x >= 0.0 {
                    return x;
                }
            }
        };
        let x: Vec<f64> = is_treated.iter().map(draw).collect();
        let means = Surfaces {
            treated: x.iter().map(|&x| toy_means(x)[1]).collect(),
            control: x.iter().map(|&x| toy_means(x)[0]).collect(),
        };
        let covariates = Table::new(vec![Column::numeric("x", x)])?;
        CausalProblem::new(&covariates, &is_treated, &means, key)
    }
}

/// Outcome surfaces on the covariates of the IHDP data, with noise of standard deviation 1 and an
/// average effect of 4 over all rows.
///
/// The effect of the linear surface is 4 for every row. That of the nonlinear one differs between
/// rows: the text of Salazar (2023) says that it is constant, which is impossible for an
/// exponential and a linear surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum IhdpSurface {
    /// `x b` without and `x b + 4` with treatment; coefficients 0, 1, 2, 3, 4 with probabilities 0.5,
    /// 0.2, 0.15, 0.1, 0.05.
    Linear,
    /// `exp((x + 1/2) b)` without and `x b - omega` with treatment; coefficients 0, 0.1, 0.2, 0.3, 0.4
    /// with probabilities 0.6, 0.1, 0.1, 0.1, 0.1. `omega` makes the average effect over all rows 4;
    /// in Hill (2011) it is the average over the treated rows.
    Nonlinear,
}

impl IhdpSurface {
    /// Both surfaces.
    pub const ALL: [Self; 2] = [Self::Linear, Self::Nonlinear];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Nonlinear => "nonlinear",
        }
    }

    /// Outcomes for rows of numeric covariates; `is_treated` has one entry per row.
    ///
    /// # Errors
    /// When a covariate is not numeric or has a missing cell, or lengths differ.
    pub fn draw(self, covariates: &Table, is_treated: &[bool], key: Key) -> Result<CausalProblem> {
        if is_treated.len() != covariates.n_rows() || is_treated.is_empty() {
            return Err(Error::Table(format!(
                "{} treatments for {} rows of covariates: expected one for each row",
                is_treated.len(),
                covariates.n_rows()
            )));
        }
        let mut rng = key.child(COEFFICIENTS).rng();
        let mut linear = vec![0.0; covariates.n_rows()];
        let mut offset = 0.0;
        for column in covariates.columns() {
            let b = self.coefficient(&mut rng);
            offset += 0.5 * b;
            for (sum, x) in linear.iter_mut().zip(cells(column)?) {
                *sum += b * x;
            }
        }
        let means = match self {
            Self::Linear => Surfaces {
                treated: linear.iter().map(|value| value + IHDP_EFFECT).collect(),
                control: linear,
            },
            Self::Nonlinear => {
                let control: Vec<f64> = linear.iter().map(|value| (value + offset).exp()).collect();
                let omega = mean(&linear) - mean(&control) - IHDP_EFFECT;
                Surfaces {
                    treated: linear.iter().map(|value| value - omega).collect(),
                    control,
                }
            }
        };
        CausalProblem::new(covariates, is_treated, &means, key)
    }

    fn coefficient(self, rng: &mut impl Rng) -> f64 {
        let (step, cumulative) = match self {
            Self::Linear => (1.0, [0.5, 0.7, 0.85, 0.95]),
            Self::Nonlinear => (0.1, [0.6, 0.7, 0.8, 0.9]),
        };
        let draw = uniform(rng);
        step * cumulative.iter().filter(|&&bound| draw >= bound).count() as f64
    }
}

/// The numbers of a covariate without missing cells.
fn cells(column: &Column) -> Result<&[f64]> {
    let Values::Numeric(values) = &column.values else {
        let problem = "the simulated outcomes need numeric covariates";
        return Err(Error::column(&column.name, problem));
    };
    match values.iter().position(|value| value.is_nan()) {
        None => Ok(values),
        Some(row) => Err(Error::cell(
            &column.name,
            row + 1,
            "the simulated outcomes need covariates without missing cells",
        )),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
