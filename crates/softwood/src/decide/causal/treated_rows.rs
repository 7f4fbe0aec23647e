//! The rows of a table for the estimation of effects: covariates, which rows are treated, outcomes.

use crate::data::column::{Column, Values};
use crate::data::dataset::{Dataset, Roles};
use crate::data::table::Table;
use crate::decide::causal::config::CausalRoles;
use crate::error::{Error, Result};

/// Smallest number of rows of an arm: two folds need two rows of it each.
pub(super) const MIN_ARM_ROWS: usize = 4;

/// Covariates, treatment and outcome of the rows that are treated or control.
#[derive(Debug, Clone)]
pub(super) struct TreatedRows {
    pub(super) roles: CausalRoles,
    /// Level that counts as treated, and level that counts as control.
    pub(super) levels: (String, String),
    pub(super) covariates: Table,
    pub(super) is_treated: Vec<bool>,
    pub(super) outcome: Vec<f64>,
    /// Positions of the rows in the table; rows of other levels of the treatment are left out.
    pub(super) kept: Vec<usize>,
    pub(super) n_left_out: usize,
}

impl TreatedRows {
    /// Splits a table by the roles of its columns.
    ///
    /// # Errors
    /// When a column is absent or has two roles, the treatment has a missing cell or not two levels,
    /// an arm has too few rows, the outcome is not a number in every row, or no covariate is left.
    pub(super) fn from_table(table: &Table, roles: &CausalRoles) -> Result<Self> {
        check_roles(table, roles)?;
        let texts = cell_texts(table.column(&roles.treatment)?)?;
        let outcome = numbers(table.column(&roles.outcome)?)?;
        let (treated, control) = levels_of(&texts, roles)?;
        let kept: Vec<usize> = (0..texts.len())
            .filter(|&row| texts[row] == treated || texts[row] == control)
            .collect();
        if let Some(&row) = kept.iter().find(|&&row| outcome[row].is_nan()) {
            let problem = "the outcome is missing; drop the row or fill the cell";
            return Err(Error::cell(&roles.outcome, row + 1, problem));
        }
        let mut others: Vec<&str> = roles.ignore.iter().map(String::as_str).collect();
        others.extend([roles.treatment.as_str(), roles.outcome.as_str()]);
        let covariates = table.without(&others);
        if covariates.columns().is_empty() {
            return Err(Error::Table(
                "the table has no covariates besides treatment and outcome; effects need at least one column that \
                 describes the rows"
                    .to_owned(),
            ));
        }
        let rows = Self {
            roles: roles.clone(),
            covariates: covariates.take(&kept),
            is_treated: kept.iter().map(|&row| texts[row] == treated).collect(),
            outcome: kept.iter().map(|&row| outcome[row]).collect(),
            n_left_out: texts.len() - kept.len(),
            kept,
            levels: (treated, control),
        };
        rows.check_arms()?;
        Ok(rows)
    }

    fn check_arms(&self) -> Result<()> {
        for (is_treated, level) in [(true, &self.levels.0), (false, &self.levels.1)] {
            let n = self.arm(is_treated).len();
            if n < MIN_ARM_ROWS {
                let problem = format!(
                    "only {n} rows have the level `{level}`; an effect needs at least {MIN_ARM_ROWS} rows of each level"
                );
                return Err(Error::column(&self.roles.treatment, problem));
            }
        }
        Ok(())
    }

    pub(super) fn n_rows(&self) -> usize {
        self.outcome.len()
    }

    /// The rows of one arm.
    pub(super) fn arm(&self, is_treated: bool) -> Vec<usize> {
        (0..self.n_rows())
            .filter(|&row| self.is_treated[row] == is_treated)
            .collect()
    }

    /// The outcomes of some rows with their covariates.
    pub(super) fn outcomes_at(&self, rows: &[usize]) -> Result<Dataset> {
        let features = self.covariates.take(rows);
        let outcome = rows.iter().map(|&row| self.outcome[row]).collect();
        dataset(features, Column::numeric(&self.roles.outcome, outcome))
    }

    /// As [`TreatedRows::outcomes_at`], with the treatment as one more column.
    pub(super) fn outcomes_with_treatment_at(&self, rows: &[usize]) -> Result<Dataset> {
        let treatment = self
            .roles
            .column(rows.iter().map(|&row| self.is_treated[row]));
        let features = self.covariates.take(rows).with_column(treatment)?;
        let outcome = rows.iter().map(|&row| self.outcome[row]).collect();
        dataset(features, Column::numeric(&self.roles.outcome, outcome))
    }

    /// The treatments of some rows, as classes, with their covariates.
    pub(super) fn treatments_at(&self, rows: &[usize]) -> Result<Dataset> {
        let treatment = self
            .roles
            .column(rows.iter().map(|&row| self.is_treated[row]));
        let table = self.covariates.take(rows).with_column(treatment)?;
        let roles = Roles {
            target: self.roles.treatment.clone(),
            classify: Some(true),
            ..Roles::default()
        };
        Dataset::from_table(table, &roles)
    }
}

/// A dataset of features and a numeric target.
pub(super) fn dataset(features: Table, target: Column) -> Result<Dataset> {
    let roles = Roles {
        target: target.name.clone(),
        classify: Some(false),
        ..Roles::default()
    };
    Dataset::from_table(features.with_column(target)?, &roles)
}

fn check_roles(table: &Table, roles: &CausalRoles) -> Result<()> {
    if roles.treatment == roles.outcome {
        let problem =
            "it is both the treatment and the outcome; choose another column for one of them";
        return Err(Error::column(&roles.treatment, problem));
    }
    for (role, name) in [("treatment", &roles.treatment), ("outcome", &roles.outcome)] {
        table.column(name)?;
        if roles.ignore.contains(name) {
            let problem = format!("it is both the {role} and to be ignored; choose one");
            return Err(Error::column(name, problem));
        }
    }
    for name in &roles.ignore {
        table.column(name)?;
    }
    if table.n_rows() == 0 {
        return Err(Error::Table("the table has no rows".to_owned()));
    }
    Ok(())
}

/// The cells of the treatment as texts.
fn cell_texts(column: &Column) -> Result<Vec<String>> {
    let missing = |row: usize| {
        let problem = "the treatment is missing; drop the row or fill the cell";
        Error::cell(&column.name, row + 1, problem)
    };
    let text = |row: usize| match &column.values {
        Values::Numeric(values) if values[row].is_nan() => Err(missing(row)),
        // adding zero makes -0 and 0 equal
        Values::Numeric(values) => Ok((values[row] + 0.0).to_string()),
        Values::Categorical { codes, levels } => levels
            .get(codes[row] as usize)
            .cloned()
            .ok_or_else(|| missing(row)),
    };
    (0..column.len()).map(text).collect()
}

fn numbers(column: &Column) -> Result<&[f64]> {
    match &column.values {
        Values::Numeric(values) => Ok(values),
        Values::Categorical { .. } => Err(Error::column(
            &column.name,
            "the outcome holds texts; it must be a number, such as 1 and 0 for yes and no",
        )),
    }
}

/// The treated and the control level.
fn levels_of(texts: &[String], roles: &CausalRoles) -> Result<(String, String)> {
    let mut levels: Vec<&String> = texts.iter().collect();
    levels.sort_unstable();
    levels.dedup();
    let name = &roles.treatment;
    let shown = some_of(&levels);
    for level in [&roles.treated, &roles.control].into_iter().flatten() {
        if !levels.contains(&level) {
            let problem = format!("no row has the level `{level}`; there are {shown}");
            return Err(Error::column(name, problem));
        }
    }
    if let (Some(treated), Some(control)) = (&roles.treated, &roles.control) {
        if treated == control {
            let problem =
                format!("`{treated}` is both the treated and the control level; name two");
            return Err(Error::column(name, problem));
        }
        return Ok((treated.clone(), control.clone()));
    }
    let (first, second) = match levels[..] {
        [first, second] => (first.clone(), second.clone()),
        [only] => {
            let problem = format!(
                "all rows have the level `{only}`; an effect needs rows with and rows without the treatment"
            );
            return Err(Error::column(name, problem));
        }
        _ => {
            let problem = format!(
                "it has {} levels ({shown}); name the treated and the control level to compare",
                levels.len()
            );
            return Err(Error::column(name, problem));
        }
    };
    let is_descending = match (first.parse::<f64>(), second.parse::<f64>()) {
        (Ok(first), Ok(second)) => first > second,
        _ => false,
    };
    let second_is_control = roles.control.as_ref() == Some(&second);
    let first_is_treated = roles.treated.as_ref() == Some(&first);
    let is_named = roles.treated.is_some() || roles.control.is_some();
    if first_is_treated || second_is_control || (is_descending && !is_named) {
        Ok((first, second))
    } else {
        Ok((second, first))
    }
}

/// The first levels, with an ellipsis where there are more.
fn some_of(levels: &[&String]) -> String {
    let mut shown: Vec<&str> = levels.iter().take(10).map(|level| level.as_str()).collect();
    if levels.len() > shown.len() {
        shown.push("...");
    }
    shown.join(", ")
}
