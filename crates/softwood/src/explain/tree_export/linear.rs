//! Linear conditions: weights of encoded inputs become weights per unit of the columns.

use serde::Serialize;

use crate::data::encoding::input::{EncodedInput, InputValue};
use crate::data::schema::Schema;
use crate::data::target::TargetUnits;
use crate::explain::tree_export::Condition;
use crate::explain::tree_export::nodes::NodeCondition;

/// One term of a linear condition: a weight times a value of the row.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LinearTerm {
    /// Name of the column; `None` for a value that combines several columns.
    pub column: Option<String>,
    /// The value of a row.
    pub value: TermValue,
    /// Weight per unit of the value.
    pub weight: f64,
    /// Magnitude of the weight times the standard deviation of the value over the training rows, as
    /// a share of the sum over all terms.
    pub share: f64,
}

impl LinearTerm {
    /// A weight times a value; `share` is that of the spread of all terms.
    pub fn new(column: Option<String>, value: TermValue, weight: f64, share: f64) -> Self {
        Self {
            column,
            value,
            weight,
            share,
        }
    }
}

/// A linear function of a row, in the units of the target.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LinearFunction {
    /// Value if all terms are zero.
    pub intercept: f64,
    /// The terms, by decreasing share of the spread.
    pub terms: Vec<LinearTerm>,
}

/// The value of a row in a term of a linear condition.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TermValue {
    /// The number in the column.
    Number {
        /// Replaces a missing cell.
        if_missing: f64,
    },
    /// One if the category is one of these, zero otherwise.
    Among(Vec<String>),
    /// One if the cell is missing, zero otherwise.
    Missing,
    /// An input of the model that is not a linear function of one column, with its name.
    Derived(String),
}

impl LinearTerm {
    /// The value as text: `age`, `(city = Bonn)`, `(age is missing)`.
    pub(super) fn value_text(&self) -> String {
        let column = self.column.as_deref().unwrap_or("?");
        match &self.value {
            TermValue::Number { .. } => column.to_owned(),
            TermValue::Among(levels) => match levels.as_slice() {
                [level] => format!("({column} = {level})"),
                levels => format!("({column} is one of {})", levels.len()),
            },
            TermValue::Missing => format!("({column} is missing)"),
            TermValue::Derived(name) => name.clone(),
        }
    }
}

/// A condition on encoded inputs: their weighted sum is above the threshold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EncodedCondition<'a> {
    /// One weight per input.
    pub(crate) weights: &'a [f32],
    pub(crate) threshold: f64,
    /// Slope of a soft gate; `None` for a hard split.
    pub(crate) steepness: Option<f64>,
}

/// The inputs of an encoder and their standard deviations over the training rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DescribedInputs<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) inputs: &'a [EncodedInput],
    pub(crate) sd: &'a [f32],
}

impl DescribedInputs<'_> {
    /// Share of each column of the schema in the spread of a weighted sum of the inputs; inputs
    /// without a column are left out.
    pub(crate) fn column_shares(&self, weights: &[f32]) -> Vec<f64> {
        let mut shares = vec![0.0; self.schema.fields.len()];
        for (input, share) in self.inputs.iter().zip(self.shares(weights)) {
            if let Some(sum) = input.column.and_then(|column| shares.get_mut(column)) {
                *sum += share;
            }
        }
        shares
    }

    /// Share of each input in the spread of a weighted sum of the inputs.
    fn shares(&self, weights: &[f32]) -> Vec<f64> {
        let spread = |(weight, sd): (&f32, &f32)| f64::from(weight.abs()) * f64::from(*sd);
        let spreads: Vec<f64> = weights.iter().zip(self.sd).map(spread).collect();
        let total: f64 = spreads.iter().sum();
        let unit = if total > 0.0 { total } else { 1.0 };
        spreads.iter().map(|spread| spread / unit).collect()
    }

    /// The function `shift + scale (weights . inputs + bias)` in the units of the table.
    pub(crate) fn function(
        &self,
        weights: &[f32],
        bias: f32,
        units: TargetUnits,
    ) -> LinearFunction {
        let exported = self.export(EncodedCondition {
            weights,
            threshold: -f64::from(bias),
            steepness: None,
        });
        let (mut terms, threshold) = match exported.condition {
            Condition::Linear {
                terms, threshold, ..
            } => (terms, threshold),
            _ => (Vec::new(), 0.0),
        };
        for term in &mut terms {
            term.weight = finite(term.weight * units.scale);
        }
        LinearFunction {
            intercept: finite(units.shift - units.scale * threshold),
            terms,
        }
    }

    /// The condition in the units of the table; its column is the one with the largest share.
    pub(crate) fn export(&self, condition: EncodedCondition<'_>) -> NodeCondition {
        let mut threshold = condition.threshold;
        let mut sum_if_missing = 0.0;
        let mut terms = Vec::new();
        let weights = condition.weights.iter().map(|&weight| f64::from(weight));
        let inputs = self.inputs.iter().zip(self.shares(condition.weights));
        for ((input, share), encoded_weight) in inputs.zip(weights) {
            if encoded_weight == 0.0 {
                continue;
            }
            let mut weight = encoded_weight;
            let value = match &input.value {
                InputValue::Standardised { mean, sd } => {
                    weight = finite(weight / sd);
                    threshold = finite(threshold + weight * mean);
                    TermValue::Number { if_missing: *mean }
                }
                InputValue::Levels(levels) => TermValue::Among(levels.clone()),
                InputValue::Missing => {
                    sum_if_missing += weight;
                    TermValue::Missing
                }
                InputValue::Derived { label } => TermValue::Derived(label.clone()),
            };
            let field = input
                .column
                .and_then(|column| self.schema.fields.get(column));
            terms.push(LinearTerm {
                column: field.map(|field| field.name.clone()),
                value,
                weight,
                share,
            });
        }
        terms.sort_by(|a, b| b.share.total_cmp(&a.share));
        NodeCondition {
            column: self.main_column(condition.weights, &terms),
            missing_right: sum_if_missing > condition.threshold,
            condition: Condition::Linear {
                terms,
                threshold,
                steepness: condition.steepness,
            },
        }
    }

    /// Name of the column with the largest share; of the largest term, if no term has a column.
    fn main_column(&self, weights: &[f32], terms: &[LinearTerm]) -> String {
        let shares = self.column_shares(weights);
        let best =
            (0..shares.len()).reduce(|best, at| if shares[at] > shares[best] { at } else { best });
        match (best.filter(|&best| shares[best] > 0.0), terms.first()) {
            (Some(best), _) => self.schema.fields[best].name.clone(),
            (None, Some(term)) => term.value_text(),
            (None, None) => String::new(),
        }
    }
}

/// The nearest finite number: a column of tiny or huge numbers has weights beyond all numbers.
fn finite(value: f64) -> f64 {
    value.clamp(f64::MIN, f64::MAX)
}
