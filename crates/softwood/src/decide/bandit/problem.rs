//! A bandit problem whose rewards are known for every arm, so that regret can be computed.

use crate::data::column::{Column, Values};
use crate::data::table::Table;
use crate::error::{Error, Result};
use crate::rng::{Key, shuffle};

/// Largest number of classes that are arms.
const MAX_CLASSES: usize = 1000;

/// Contexts and the rewards of every arm.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BanditProblem {
    /// Name, for reports.
    pub name: String,
    /// Names of the arms.
    pub arms: Vec<String>,
    /// One row per step.
    pub contexts: Table,
    /// The reward that each arm pays (row-major, steps x arms).
    pub rewards: Vec<f64>,
    /// The expected reward of each arm given the context (row-major, steps x arms).
    pub expected: Vec<f64>,
}

impl BanditProblem {
    /// A problem whose expected rewards are the rewards themselves (row-major, steps x arms).
    ///
    /// # Errors
    /// When there are fewer than two arms, no steps, or rewards that are not finite or not as many
    /// as steps times arms.
    pub fn new(
        name: impl Into<String>,
        arms: Vec<String>,
        contexts: Table,
        rewards: Vec<f64>,
    ) -> Result<Self> {
        if arms.len() < 2 {
            return Err(Error::Table(format!(
                "a bandit needs at least two arms, and there are {}",
                arms.len()
            )));
        }
        if contexts.n_rows() == 0 || contexts.columns().is_empty() {
            return Err(Error::Table(
                "a bandit needs contexts: a table with at least one row and one column".to_owned(),
            ));
        }
        if rewards.len() != contexts.n_rows() * arms.len() {
            return Err(Error::Table(format!(
                "{} rewards for {} contexts and {} arms; expected one for each pair",
                rewards.len(),
                contexts.n_rows(),
                arms.len()
            )));
        }
        if let Some(at) = rewards.iter().position(|reward| !reward.is_finite()) {
            let arm = &arms[at % arms.len()];
            return Err(Error::cell(
                arm,
                at / arms.len() + 1,
                "the reward is missing or not finite; every arm needs a reward in every row",
            ));
        }
        Ok(Self {
            name: name.into(),
            arms,
            contexts,
            expected: rewards.clone(),
            rewards,
        })
    }

    /// A problem from a table whose columns `reward_columns` are the rewards of the arms; the other
    /// columns are the context.
    ///
    /// # Errors
    /// As [`BanditProblem::new`], and when a column is absent or not numeric.
    pub fn from_rewards(
        name: impl Into<String>,
        table: &Table,
        reward_columns: &[String],
    ) -> Result<Self> {
        let columns = reward_columns
            .iter()
            .map(|name| numbers(table.column(name)?))
            .collect::<Result<Vec<_>>>()?;
        let names: Vec<&str> = reward_columns.iter().map(String::as_str).collect();
        let contexts = table.without(&names);
        let rows = 0..table.n_rows();
        let rewards = rows.flat_map(|row| columns.iter().map(move |column| column[row]));
        let rewards = rewards.collect();
        Self::new(name, reward_columns.to_vec(), contexts, rewards)
    }

    /// A problem whose arms are the classes of a column: the right class pays 1, the others 0.
    ///
    /// # Errors
    /// As [`BanditProblem::new`], and when the column is absent or has missing cells.
    pub fn from_classes(name: impl Into<String>, table: &Table, column: &str) -> Result<Self> {
        let (arms, codes) = classes_of(table.column(column)?)?;
        let n_arms = arms.len();
        if n_arms > MAX_CLASSES {
            let problem = format!(
                "{n_arms} different classes; a bandit has at most {MAX_CLASSES} arms of this kind"
            );
            return Err(Error::column(column, problem));
        }
        let mut rewards = vec![0.0; table.n_rows() * n_arms];
        for (row, code) in codes.into_iter().enumerate() {
            rewards[row * n_arms + code] = 1.0;
        }
        Self::new(name, arms, table.without(&[column]), rewards)
    }

    /// The problem with expected rewards that differ from the paid ones (row-major, steps x arms).
    ///
    /// # Errors
    /// When there are not as many as rewards.
    pub fn with_expected(self, expected: Vec<f64>) -> Result<Self> {
        if expected.len() != self.rewards.len() {
            return Err(Error::Table(format!(
                "{} expected rewards for {} rewards",
                expected.len(),
                self.rewards.len()
            )));
        }
        Ok(Self { expected, ..self })
    }

    /// Number of steps.
    pub fn n_steps(&self) -> usize {
        self.contexts.n_rows()
    }

    /// Number of arms.
    pub fn n_arms(&self) -> usize {
        self.arms.len()
    }

    /// The first `n_steps` contexts of a random order; all of them if there are fewer.
    #[must_use]
    pub fn shuffled(&self, n_steps: usize, key: Key) -> Self {
        let mut rows: Vec<usize> = (0..self.n_steps()).collect();
        shuffle(&mut key.rng(), &mut rows);
        rows.truncate(n_steps);
        let n_arms = self.n_arms();
        let take = |values: &[f64]| {
            rows.iter()
                .flat_map(|&row| values[row * n_arms..(row + 1) * n_arms].iter().copied())
                .collect()
        };
        Self {
            name: self.name.clone(),
            arms: self.arms.clone(),
            contexts: self.contexts.take(&rows),
            rewards: take(&self.rewards),
            expected: take(&self.expected),
        }
    }

    /// The expected cumulative regret of random choices.
    pub fn uniform_regret(&self) -> f64 {
        let n_arms = self.n_arms();
        let regret = |step: usize| {
            let arms = 0..n_arms;
            arms.map(|arm| self.regret(step, arm)).sum::<f64>() / n_arms as f64
        };
        (0..self.n_steps()).map(regret).sum()
    }

    /// The regret of an arm at a step: the largest expected reward minus that of the arm.
    pub(super) fn regret(&self, step: usize, arm: usize) -> f64 {
        let expected = &self.expected[step * self.n_arms()..(step + 1) * self.n_arms()];
        let best = expected.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        best - expected[arm]
    }
}

/// The numbers of a column of rewards.
fn numbers(column: &Column) -> Result<&[f64]> {
    match &column.values {
        Values::Numeric(values) => Ok(values),
        Values::Categorical { .. } => Err(Error::column(
            &column.name,
            "rewards are numbers, and this column has texts",
        )),
    }
}

/// The classes of a column, in order, and the index of each row's class.
fn classes_of(column: &Column) -> Result<(Vec<String>, Vec<usize>)> {
    let missing = |row: usize| Error::cell(&column.name, row + 1, "the class is missing");
    match &column.values {
        Values::Numeric(values) => {
            if let Some(row) = values.iter().position(|value| value.is_nan()) {
                return Err(missing(row));
            }
            let mut classes = values.clone();
            classes.sort_by(f64::total_cmp);
            classes.dedup();
            let code = |value: &f64| classes.partition_point(|class| class < value);
            let codes = values.iter().map(code).collect();
            Ok((classes.iter().map(f64::to_string).collect(), codes))
        }
        Values::Categorical { codes, levels } => {
            let in_range = |&code: &u32| (code as usize) < levels.len();
            if let Some(row) = codes.iter().position(|code| !in_range(code)) {
                return Err(missing(row));
            }
            let codes = codes.iter().map(|&code| code as usize).collect();
            Ok((levels.to_vec(), codes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::new(vec![
            Column::numeric("x", vec![0.0, 1.0, 2.0]),
            Column::categorical("kind", &[Some("b"), Some("a"), Some("b")]),
            Column::numeric("left", vec![1.0, 2.0, 3.0]),
            Column::numeric("right", vec![2.0, 1.0, 0.0]),
        ])
        .unwrap()
    }

    #[test]
    fn rewards_come_from_columns_or_classes() {
        let names = ["left".to_owned(), "right".to_owned()];
        let problem = BanditProblem::from_rewards("own", &table(), &names).unwrap();
        assert_eq!(problem.rewards, [1.0, 2.0, 2.0, 1.0, 3.0, 0.0]);
        assert_eq!(problem.contexts.names().collect::<Vec<_>>(), ["x", "kind"]);
        assert!((problem.regret(2, 1) - 3.0).abs() < 1e-12);

        let problem = BanditProblem::from_classes("own", &table(), "kind").unwrap();
        assert_eq!(problem.arms, ["a", "b"]);
        assert_eq!(problem.rewards, [0.0, 1.0, 1.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn shuffled_steps_keep_their_rewards() {
        let names = ["left".to_owned(), "right".to_owned()];
        let problem = BanditProblem::from_rewards("own", &table(), &names).unwrap();
        let shuffled = problem.shuffled(2, Key::from_seed(3));
        assert_eq!(shuffled.n_steps(), 2);
        let Values::Numeric(x) = &shuffled.contexts.column("x").unwrap().values else {
            panic!("x is numeric");
        };
        for (step, x) in x.iter().enumerate() {
            assert!((shuffled.rewards[2 * step] - (x + 1.0)).abs() < 1e-12);
        }
    }

    #[test]
    fn a_missing_reward_is_named() {
        let table = table().with_column(Column::numeric("left", vec![1.0, f64::NAN, 0.0]));
        let names = ["left".to_owned(), "right".to_owned()];
        let error = BanditProblem::from_rewards("own", &table.unwrap(), &names).unwrap_err();
        assert!(
            error.to_string().contains("column `left`, row 2"),
            "{error}"
        );
    }
}
