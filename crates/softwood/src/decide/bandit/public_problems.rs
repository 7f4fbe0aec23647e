//! Public bandit problems: those of Riquelme et al. 2018 that Cinquin et al. 2023 compare agents on, with
//! rewards on their scale where it is known.

use crate::data::column::{Column, Values};
use crate::data::table::Table;
use crate::decide::bandit::problem::BanditProblem;
use crate::error::{Error, Result};
use crate::numerics::gaussian::normals;
use crate::numerics::real::sigmoid;
use crate::rng::{Key, shuffle};
use crate::suggestion::{did_you_mean, similar_name};

/// Number of portfolios of the financial problem.
const N_PORTFOLIOS: usize = 8;
/// Standard deviation of the noise of the first portfolio; that of portfolio `a` is `a + 1` times as large.
const PORTFOLIO_NOISE: f64 = 0.01;
/// Arms, half-width and steepness of the exploration problem: 20 arms tile the interval from -1 to 1, each
/// with a reward of 1 on its tile. With these numbers random choices have the published regret.
const N_TILES: usize = 20;
const TILE_HALF_WIDTH: f64 = 0.05;
const TILE_STEEPNESS: f64 = 2900.0;
const TILE_NOISE: f64 = 0.01;
/// Largest number of steps of the exploration problem.
const MAX_STEPS: usize = 1_000_000;
/// Rewards of the mushroom problem are divided by this.
const MUSHROOM_UNIT: f64 = 20.0;
const SAFE_REWARD: f64 = 5.0;
const POISON_REWARD: f64 = -35.0;
/// Columns of the jester problem that are arms; the others are the context.
const N_JOKES: usize = 8;
/// The column with the class of mushrooms and shuttle rows.
const CLASS_COLUMN: &str = "target";

/// Random streams of a problem.
mod streams {
    pub(super) const ORDER: u64 = 0;
    pub(super) const ARMS: u64 = 1;
    pub(super) const NOISE: u64 = 2;
    pub(super) const CONTEXTS: u64 = 3;
}

/// A public problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublicProblem {
    /// Daily changes of 21 stocks; arms are eight random portfolios.
    Financial,
    /// One number; each of 20 arms pays on its own twentieth of the interval.
    Exploration,
    /// Attributes of mushrooms; eat or pass.
    Mushroom,
    /// Ratings of 32 jokes; arms are eight other jokes.
    Jester,
    /// Sensors of the space shuttle; arms are the seven classes.
    StatlogShuttle,
}

impl PublicProblem {
    /// All problems.
    pub const ALL: &'static [Self] = &[
        Self::Financial,
        Self::Exploration,
        Self::Mushroom,
        Self::Jester,
        Self::StatlogShuttle,
    ];

    /// Name of the problem and of its table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Financial => "financial",
            Self::Exploration => "exploration",
            Self::Mushroom => "mushroom",
            Self::Jester => "jester",
            Self::StatlogShuttle => "statlog_shuttle",
        }
    }

    /// The problem of this name.
    ///
    /// # Errors
    /// When there is none; the message lists the names.
    pub fn from_name(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|problem| problem.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|problem| problem.name()).collect();
            let meant = similar_name(name, names.iter().copied());
            Error::Parameters(vec![format!(
                "no problem is called `{name}`; there are {}{}",
                names.join(", "),
                did_you_mean(meant)
            )])
        })
    }

    /// Whether the problem needs a table of contexts.
    pub fn needs_table(self) -> bool {
        self != Self::Exploration
    }

    /// Number of steps of the published comparison; `None` means all rows of the table.
    pub fn published_steps(self) -> Option<usize> {
        match self {
            Self::Financial | Self::Jester | Self::StatlogShuttle => None,
            Self::Exploration => Some(20_000),
            Self::Mushroom => Some(7310),
        }
    }

    /// Draws arms, order of the contexts and rewards; at most `n_steps` steps (`None`: as published).
    ///
    /// # Errors
    /// When the table is absent or has not the columns of the problem.
    pub fn draw(
        self,
        table: Option<&Table>,
        n_steps: Option<usize>,
        key: Key,
    ) -> Result<BanditProblem> {
        let n_steps = n_steps.or(self.published_steps()).unwrap_or(usize::MAX);
        if self == Self::Exploration {
            return exploration(n_steps, key);
        }
        let table = table.ok_or_else(|| {
            Error::Table(format!(
                "the problem `{}` needs its table of contexts",
                self.name()
            ))
        })?;
        let problem = match self {
            Self::Financial => financial(table, key)?,
            Self::Mushroom => mushroom(table, key)?,
            Self::Jester => jester(table, key)?,
            Self::StatlogShuttle | Self::Exploration => {
                BanditProblem::from_classes(self.name(), table, CLASS_COLUMN)?
            }
        };
        Ok(problem.shuffled(n_steps, key.child(streams::ORDER)))
    }
}

/// Portfolios with random weights of length 1 on standardised columns.
fn financial(table: &Table, key: Key) -> Result<BanditProblem> {
    let columns = table
        .columns()
        .iter()
        .map(standardised)
        .collect::<Result<Vec<_>>>()?;
    let (n, d) = (table.n_rows(), columns.len());
    let uniforms = key.child(streams::ARMS).uniforms(N_PORTFOLIOS * d);
    let portfolios: Vec<Vec<f64>> = uniforms
        .chunks_exact(d.max(1))
        .map(|uniforms| {
            let weights: Vec<f64> = uniforms.iter().map(|u| 2.0 * u - 1.0).collect();
            let length = weights.iter().map(|w| w * w).sum::<f64>().sqrt();
            weights.into_iter().map(|w| w / length).collect()
        })
        .collect();
    let noise = normals(key.child(streams::NOISE), n * N_PORTFOLIOS);
    let mut expected = Vec::with_capacity(n * N_PORTFOLIOS);
    let mut rewards = Vec::with_capacity(n * N_PORTFOLIOS);
    for row in 0..n {
        for (arm, weights) in portfolios.iter().enumerate() {
            let terms = weights.iter().zip(&columns);
            let mean: f64 = terms.map(|(weight, column)| weight * column[row]).sum();
            expected.push(mean);
            let sd = PORTFOLIO_NOISE * (arm + 1) as f64;
            rewards.push(mean + sd * noise[row * N_PORTFOLIOS + arm]);
        }
    }
    let names = table.names().map(str::to_owned);
    let contexts = names
        .zip(columns)
        .map(|(name, values)| Column::numeric(name, values));
    let arms = (1..=N_PORTFOLIOS).map(|arm| format!("portfolio {arm}"));
    BanditProblem::new(
        "financial",
        arms.collect(),
        Table::new(contexts.collect())?,
        rewards,
    )?
    .with_expected(expected)
}

/// Values of a numeric column with mean 0 and standard deviation 1.
fn standardised(column: &Column) -> Result<Vec<f64>> {
    let Values::Numeric(values) = &column.values else {
        return Err(Error::column(
            &column.name,
            "this problem needs numbers, and the column has texts",
        ));
    };
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    let sd = variance.sqrt().max(f64::MIN_POSITIVE);
    Ok(values.iter().map(|v| (v - mean) / sd).collect())
}

/// Contexts from -1 to 1 and one smooth indicator of a tile for each arm.
fn exploration(n_steps: usize, key: Key) -> Result<BanditProblem> {
    if n_steps > MAX_STEPS {
        return Err(Error::Parameters(vec![format!(
            "{n_steps} steps; the problem `exploration` has at most {MAX_STEPS}"
        )]));
    }
    let uniforms = key.child(streams::CONTEXTS).uniforms(n_steps);
    let x: Vec<f64> = uniforms.into_iter().map(|u| 2.0 * u - 1.0).collect();
    let noise = normals(key.child(streams::NOISE), n_steps * N_TILES);
    let tile = |x: f64, arm: usize| {
        let centre = -1.0 + (2 * arm + 1) as f64 / N_TILES as f64;
        let rise = TILE_STEEPNESS * (x + TILE_HALF_WIDTH - centre);
        let fall = TILE_STEEPNESS * (x - TILE_HALF_WIDTH - centre);
        sigmoid(rise) - sigmoid(fall)
    };
    let expected: Vec<f64> = x
        .iter()
        .flat_map(|&x| (0..N_TILES).map(move |arm| tile(x, arm)))
        .collect();
    let rewards = expected
        .iter()
        .zip(&noise)
        .map(|(mean, z)| mean + TILE_NOISE * z);
    let arms = (1..=N_TILES).map(|arm| format!("tile {arm}"));
    let contexts = Table::new(vec![Column::numeric("x", x)])?;
    BanditProblem::new("exploration", arms.collect(), contexts, rewards.collect())?
        .with_expected(expected)
}

/// Pass, or eat: a poisonous mushroom harms in half of the cases.
fn mushroom(table: &Table, key: Key) -> Result<BanditProblem> {
    let classes = BanditProblem::from_classes("mushroom", table, CLASS_COLUMN)?;
    if classes.n_arms() != 2 {
        return Err(Error::column(
            CLASS_COLUMN,
            "expected two classes, of which the first is edible",
        ));
    }
    let coins = key.child(streams::NOISE).uniforms(classes.n_steps());
    let mut rewards = Vec::with_capacity(2 * coins.len());
    let mut expected = Vec::with_capacity(2 * coins.len());
    for (row, coin) in coins.iter().enumerate() {
        let is_edible = classes.rewards[2 * row] > 0.5;
        let (paid, mean) = match (is_edible, *coin < 0.5) {
            (true, _) => (SAFE_REWARD, SAFE_REWARD),
            (false, true) => (POISON_REWARD, 0.5 * (SAFE_REWARD + POISON_REWARD)),
            (false, false) => (SAFE_REWARD, 0.5 * (SAFE_REWARD + POISON_REWARD)),
        };
        rewards.extend([0.0, paid / MUSHROOM_UNIT]);
        expected.extend([0.0, mean / MUSHROOM_UNIT]);
    }
    let arms = vec!["pass".to_owned(), "eat".to_owned()];
    BanditProblem::new("mushroom", arms, classes.contexts, rewards)?.with_expected(expected)
}

/// Eight random jokes are the arms, the ratings of the others the context.
fn jester(table: &Table, key: Key) -> Result<BanditProblem> {
    let mut names: Vec<String> = table.names().map(str::to_owned).collect();
    if names.len() <= N_JOKES {
        return Err(Error::Table(format!(
            "the problem `jester` needs more than {N_JOKES} columns of ratings"
        )));
    }
    shuffle(&mut key.child(streams::ARMS).rng(), &mut names);
    names.truncate(N_JOKES);
    let mut problem = BanditProblem::from_rewards("jester", table, &names)?;
    // every seed has other jokes, so that their own names would not fit the mean over seeds
    problem.arms = (1..=N_JOKES).map(|arm| format!("joke {arm}")).collect();
    Ok(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_choices_on_the_exploration_problem_have_the_published_regret() {
        let problem = exploration(20_000, Key::from_seed(0)).unwrap();
        let regret = problem.uniform_regret();
        // published: 18904.95 with standard deviation 24 over seeds
        assert!((regret - 18_905.0).abs() < 60.0, "{regret}");
    }

    #[test]
    fn poisonous_mushrooms_lose_on_average() {
        let classes: Vec<f64> = (0..1000).map(|row| f64::from(row % 2)).collect();
        let table = Table::new(vec![
            Column::numeric("x", classes.clone()),
            Column::numeric(CLASS_COLUMN, classes),
        ])
        .unwrap();
        let problem = mushroom(&table, Key::from_seed(1)).unwrap();
        assert!((problem.expected[1] - 0.25).abs() < 1e-12);
        assert!((problem.expected[3] + 0.75).abs() < 1e-12);
        let paid: f64 = (0..500).map(|at| problem.rewards[4 * at + 3]).sum::<f64>() / 500.0;
        // standard error 0.045
        assert!((paid + 0.75).abs() < 0.25, "{paid}");
        assert!((problem.regret(1, 1) - 0.75).abs() < 1e-12);
    }

    #[test]
    fn portfolios_are_linear_in_the_contexts() {
        let key = Key::from_seed(5);
        let columns =
            (0..3).map(|at| Column::numeric(format!("s{at}"), normals(key.child(at), 200)));
        let table = Table::new(columns.collect()).unwrap();
        let problem = PublicProblem::Financial
            .draw(Some(&table), Some(100), key)
            .unwrap();
        assert_eq!((problem.n_steps(), problem.n_arms()), (100, N_PORTFOLIOS));
        // expected rewards of an arm have at most the variance of a vector of length 1
        let arm: Vec<f64> = problem
            .expected
            .iter()
            .step_by(N_PORTFOLIOS)
            .copied()
            .collect();
        assert!(arm.iter().map(|v| v * v).sum::<f64>() / 100.0 < 3.0);
        assert!(PublicProblem::Jester.draw(Some(&table), None, key).is_err());
        assert!(PublicProblem::Mushroom.draw(None, None, key).is_err());
    }
}
