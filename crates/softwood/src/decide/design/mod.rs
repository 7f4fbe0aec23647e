//! Active learning and experimental design with any fitted model: which rows of a pool to label next
//! ([`select_rows`]), and which candidate to try next ([`suggest`]).
//!
//! Both use the members of the model as draws of functions. With the means `f_m(i)` of the members
//! `m = 1, ..., M` on row `i`, their mean `f(i)`, and the data (noise) variance `s_i²`, the scaled
//! deviations are
//!
//! ```text
//! a_im = (f_m(i) - f(i)) / (√M s_i),        K_ij = s_i s_j Σ_m a_im a_jm
//! ```
//!
//! where `K` is the covariance of the members. For classes every class is an output of its own, with
//! the variance `p` of the averaged probability `p` in place of `s²`.

mod deviations;
mod improvement;
mod information;
mod member_posterior;
mod member_rows;
mod rows;
mod shortlist;
mod suggestions;
mod thompson;
mod variance;
mod variance_reduction;

pub use rows::{RowCriterion, RowOptions, RowSelection, select_rows};
pub use suggestions::{SuggestOptions, SuggestionCriterion, Suggestions, suggest};

use crate::error::{Error, Result};
use crate::suggestion::{did_you_mean, similar_name};

/// Random streams of this module, below the key of a call.
mod streams {
    /// Order of the rows, which decides between equal scores.
    pub(super) const ORDER: u64 = 1;
    /// Rows that are drawn into a shortlist.
    pub(super) const SHORTLIST: u64 = 2;
    /// Members, where not all of them are used, and the draws of Thompson sampling.
    pub(super) const MEMBERS: u64 = 3;
}

/// Members that are used at most, except for Thompson sampling: a random choice where a model has
/// more.
const MAX_MEMBERS: usize = 256;

/// Returns an error unless `n` rows can be chosen out of `n_rows`; `what` names the rows.
fn check_count(n: usize, n_rows: usize, what: &str) -> Result<()> {
    if (1..=n_rows).contains(&n) {
        return Ok(());
    }
    let problem = if n_rows == 0 {
        format!("n = {n}: there are no {what}; add some")
    } else {
        format!("n = {n}: there are {n_rows} {what}; expected a whole number from 1 to {n_rows}")
    };
    Err(Error::Parameters(vec![problem]))
}

/// The item of `all` that has this name.
fn from_name<T: Copy>(name: &str, all: &[T], name_of: impl Fn(T) -> &'static str) -> Result<T> {
    let names = || all.iter().map(|&item| name_of(item));
    if let Some(at) = names().position(|known| known == name) {
        return Ok(all[at]);
    }
    let known: Vec<&str> = names().collect();
    Err(Error::Parameters(vec![format!(
        "criterion = `{name}`: expected one of {}{}",
        known.join(", "),
        did_you_mean(similar_name(name, names()))
    )]))
}
