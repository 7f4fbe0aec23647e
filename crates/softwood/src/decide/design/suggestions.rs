//! The next candidates to try: Bayesian optimisation over the rows of a table.

use serde::Serialize;

use crate::decide::design::member_rows::part;
use crate::decide::design::shortlist::random_order;
use crate::decide::design::{check_count, from_name, improvement, thompson};
use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::predictive::block::Head;
use crate::rng::Key;
use crate::stop;

/// How candidates are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SuggestionCriterion {
    /// Thompson sampling: the best candidate of a random member, and for a batch of several members.
    /// A candidate is chosen as often as it is the best one under the model's knowledge.
    #[default]
    Thompson,
    /// The largest expected improvement on the best value so far, over the members.
    ExpectedImprovement,
}

impl SuggestionCriterion {
    /// All criteria.
    pub const ALL: &'static [Self] = &[Self::Thompson, Self::ExpectedImprovement];

    /// Name of the criterion.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thompson => "thompson",
            Self::ExpectedImprovement => "expected_improvement",
        }
    }

    /// The criterion of this name.
    ///
    /// # Errors
    /// When there is no such criterion; the message lists all names.
    pub fn from_name(name: &str) -> Result<Self> {
        from_name(name, Self::ALL, Self::name)
    }
}

/// How many candidates are chosen, and how.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SuggestOptions {
    /// Number of candidates.
    pub n: usize,
    /// Whether a large target is good; false: a small one.
    pub maximize: bool,
    /// How candidates are chosen.
    pub criterion: SuggestionCriterion,
    /// Candidates that are not to be chosen, such as those that were tried: empty, or one entry per
    /// row.
    pub excluded: Vec<bool>,
    /// Best value so far, for [`SuggestionCriterion::ExpectedImprovement`]; `None`: the best
    /// predicted mean of the excluded rows, which noise affects less than the best observation.
    pub best: Option<f64>,
    /// For a classification model, the index of the class whose probability is the target.
    pub class: Option<usize>,
    /// Key of everything random.
    pub key: Key,
}

impl SuggestOptions {
    /// `n` candidates with a large target by Thompson sampling.
    pub fn new(n: usize, key: Key) -> Self {
        Self {
            n,
            maximize: true,
            criterion: SuggestionCriterion::default(),
            excluded: Vec::new(),
            best: None,
            class: None,
            key,
        }
    }

    /// Sets whether a large target is good.
    #[must_use]
    pub fn maximize(self, maximize: bool) -> Self {
        Self { maximize, ..self }
    }

    /// Sets the criterion.
    #[must_use]
    pub fn criterion(self, criterion: SuggestionCriterion) -> Self {
        Self { criterion, ..self }
    }

    /// Sets the candidates that are not to be chosen, one entry per row.
    #[must_use]
    pub fn excluded(self, excluded: Vec<bool>) -> Self {
        Self { excluded, ..self }
    }

    /// Sets the best value so far.
    #[must_use]
    pub fn best(self, best: f64) -> Self {
        Self {
            best: Some(best),
            ..self
        }
    }

    /// Sets the class whose probability is the target.
    #[must_use]
    pub fn class(self, class: usize) -> Self {
        Self {
            class: Some(class),
            ..self
        }
    }
}

/// The chosen candidates, in the order of the choice.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Suggestions {
    /// Indices of the rows.
    pub rows: Vec<usize>,
    /// Predicted mean of the target, or of the probability of the class.
    pub mean: Vec<f64>,
    /// Knowledge (epistemic) uncertainty of that mean, as a standard deviation.
    pub knowledge_sd: Vec<f64>,
}

/// Suggests which rows of a table of candidates to try next, to find one with a large (or small)
/// target in few trials: try a suggestion, fit the model again with its result, ask again.
///
/// ```
/// use softwood::decide::design::{SuggestOptions, suggest};
/// use softwood::models::GpParams;
/// use softwood::{Column, Dataset, Fit, Key, Model, Roles, Table};
///
/// let x = vec![0.0, 0.1, 0.35, 0.6, 0.8, 1.0];
/// let y = x.iter().map(|x| -(x - 0.4) * (x - 0.4)).collect();
/// let tried = Table::new(vec![Column::numeric("x", x), Column::numeric("y", y)])?;
/// let roles = Roles { target: "y".to_owned(), ..Roles::default() };
/// let model = GpParams::default().fit(&Dataset::from_table(&tried, &roles)?)?;
///
/// let grid: Vec<f64> = (0..=100).map(|row| f64::from(row) / 100.0).collect();
/// let candidates = Table::new(vec![Column::numeric("x", grid.clone())])?;
/// let next = suggest(&model.predict(&candidates)?, &SuggestOptions::new(1, Key::from_seed(0)))?;
/// assert!((grid[next.rows[0]] - 0.4).abs() < 0.1);
/// # Ok::<(), softwood::Error>(())
/// ```
///
/// # Errors
/// When fewer candidates are left than asked for, `excluded` has another length than the table,
/// `class` does not fit the task, the best value so far is neither given nor known, or the model
/// cannot predict.
pub fn suggest(candidates: &Distribution<'_>, options: &SuggestOptions) -> Result<Suggestions> {
    let objective = MemberObjective::new(candidates, options)?;
    let is_excluded = |row: usize| options.excluded.get(row).is_some_and(|&excluded| excluded);
    let (excluded, open): (Vec<usize>, Vec<usize>) = random_order(candidates.n_rows(), options.key)
        .into_iter()
        .partition(|&row| is_excluded(row));
    let what = if excluded.is_empty() {
        "candidates"
    } else {
        "candidates that are not excluded"
    };
    check_count(options.n, open.len(), what)?;
    stop::cancellable(candidates.observer().cancel_tokens(), || {
        let chosen = match options.criterion {
            SuggestionCriterion::Thompson => thompson::choose(&objective, &open, options.n)?,
            SuggestionCriterion::ExpectedImprovement => {
                let best = match options.best {
                    Some(best) => objective.sign * best,
                    None => objective.best_mean(&excluded)?,
                };
                improvement::choose(&objective, &open, best, options.n)?
            }
        };
        let rows: Vec<usize> = chosen.into_iter().map(|position| open[position]).collect();
        let (mean, knowledge_sd) = objective.moments(&rows)?;
        Ok(Suggestions {
            rows,
            mean,
            knowledge_sd,
        })
    })
}

/// What is to be made large: the predictions of the members with a sign.
pub(super) struct MemberObjective<'a> {
    pub(super) distribution: &'a Distribution<'a>,
    /// 1, or -1 if a small target is good.
    pub(super) sign: f64,
    /// Index of the output among those of a member.
    output: usize,
    pub(super) key: Key,
}

impl<'a> MemberObjective<'a> {
    fn new(distribution: &'a Distribution<'a>, options: &SuggestOptions) -> Result<Self> {
        let (n_rows, n_entries) = (distribution.n_rows(), options.excluded.len());
        if n_entries != 0 && n_entries != n_rows {
            return Err(Error::Parameters(vec![format!(
                "excluded has {n_entries} entries for {n_rows} candidates; expected one for each"
            )]));
        }
        if let Some(best) = options.best.filter(|best| !best.is_finite()) {
            return Err(Error::Parameters(vec![format!(
                "best = {best}: expected a finite number"
            )]));
        }
        Ok(Self {
            distribution,
            sign: if options.maximize { 1.0 } else { -1.0 },
            output: output_of(distribution, options.class)?,
            key: options.key,
        })
    }

    /// The values of the members, to be made large, from their outputs (members x outputs).
    pub(super) fn values<'b>(&self, outputs: &'b [f64]) -> impl Iterator<Item = f64> + use<'b> {
        let (sign, n_outputs) = (self.sign, self.distribution.n_outputs());
        let of_members = outputs.iter().skip(self.output).step_by(n_outputs);
        of_members.map(move |value| sign * value)
    }

    /// The best predicted mean of the rows that were tried.
    fn best_mean(&self, tried: &[usize]) -> Result<f64> {
        if tried.is_empty() {
            return Err(Error::Parameters(vec![
                "expected improvement needs the best value so far; give `best`, or exclude the rows that were tried"
                    .to_owned(),
            ]));
        }
        let means = self.moments(tried)?.0.into_iter();
        Ok(means
            .map(|mean| self.sign * mean)
            .fold(f64::NEG_INFINITY, f64::max))
    }

    /// Mean and knowledge standard deviation of some rows.
    fn moments(&self, rows: &[usize]) -> Result<(Vec<f64>, Vec<f64>)> {
        let part = part(self.distribution, rows)?;
        if matches!(part.head(), Head::Normal { .. }) {
            let moments = part.moments()?;
            return Ok((moments.mean, moments.knowledge_std));
        }
        let n_outputs = part.n_outputs();
        let n_members = part.n_members() as f64;
        let output = self.output;
        let found = part.ask(2, |block, rows, out| {
            for (row, out) in out.chunks_exact_mut(2).enumerate().take(rows.len()) {
                let of_member = |member: usize| {
                    block.weight[(member * n_outputs + output) * block.stride + row]
                };
                let members = || (0..block.n_members).map(of_member);
                out[0] = members().sum::<f64>() / n_members;
                let squares = members().map(|value| (value - out[0]).powi(2));
                out[1] = (squares.sum::<f64>() / n_members).sqrt();
            }
        })?;
        Ok(found.chunks_exact(2).map(|row| (row[0], row[1])).unzip())
    }
}

/// The output of a member that is the target.
fn output_of(distribution: &Distribution<'_>, class: Option<usize>) -> Result<usize> {
    let problem = match (distribution.head(), class) {
        (Head::Normal { .. }, None) => return Ok(0),
        (Head::Categorical { classes }, Some(class)) if class < classes => return Ok(class),
        (Head::Normal { .. }, Some(_)) => {
            "class is given, but the model predicts numbers; leave it out".to_owned()
        }
        (Head::Categorical { classes }, Some(class)) => {
            format!("class = {class}: the model has {classes} classes, the first of which is 0")
        }
        (Head::Categorical { .. }, None) => {
            "the model predicts classes; give the class whose probability is to be large or small"
                .to_owned()
        }
    };
    Err(Error::Parameters(vec![problem]))
}
