//! Class weights, which multiply the weights of the rows.

use crate::data::dataset::Dataset;
use crate::data::dedup::Deduplicated;
use crate::data::target::Target;
use crate::error::{Error, Result};
use crate::params::{ClassWeight, WeightRule};

/// A weight for each class of the schema; `None` if all weights are one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClassWeights(Option<Vec<f64>>);

impl ClassWeights {
    /// The weights of the parameter `class_weight`, in the order of the classes.
    ///
    /// # Errors
    /// When the target is numeric, a class is unknown, or fewer than two classes have a positive
    /// weight.
    pub(super) fn new(
        class_weight: Option<&ClassWeight>,
        data: &Dataset,
        dedup: &Deduplicated,
    ) -> Result<Self> {
        let Some(class_weight) = class_weight else {
            return Ok(Self(None));
        };
        let (Some(classes), Target::Classes(codes)) = (data.schema().classes(), data.target())
        else {
            return Err(invalid(format!(
                "`class_weight` needs a classification target, but the target `{}` is a number; use row weights instead",
                data.schema().target
            )));
        };
        let counts = counts(codes, dedup, classes.len());
        let weights = match class_weight {
            ClassWeight::Rule(WeightRule::Balanced) => balanced(&counts),
            ClassWeight::Given(named) => {
                let mut weights = vec![1.0; classes.len()];
                for (name, &weight) in named {
                    let at = classes.iter().position(|class| class == name);
                    let at = at.ok_or_else(|| {
                        let known = classes.join(", ");
                        invalid(format!(
                            "`class_weight`: `{name}` is not a class of the target; there are {known}"
                        ))
                    })?;
                    weights[at] = weight;
                }
                weights
            }
        };
        let positive = weights.iter().zip(&counts);
        let positive = positive.filter(|(weight, count)| **weight * **count > 0.0);
        if positive.count() < 2 {
            return Err(invalid(
                "`class_weight` leaves fewer than two classes with a weight above 0; give at least two classes a positive weight".to_owned(),
            ));
        }
        Ok(Self(Some(weights)))
    }

    /// Multiplies the weights of the rows by the weights of their classes; drops rows of weight
    /// zero.
    pub(super) fn weigh(&self, data: &Dataset, dedup: Deduplicated) -> Deduplicated {
        let (Some(class_weights), Target::Classes(codes)) = (&self.0, data.target()) else {
            return dedup;
        };
        let rows = dedup.rows.iter().zip(&dedup.weights);
        let weighed =
            rows.map(|(&row, &weight)| (row, weight * class_weights[codes[row as usize] as usize]));
        let (rows, weights) = weighed.filter(|&(_, weight)| weight > 0.0).unzip();
        Deduplicated { rows, weights }
    }
}

/// Total row weight of each class. The sum runs over the deduplicated rows in their order, so that
/// it does not depend on the order of the table.
fn counts(codes: &[u32], dedup: &Deduplicated, n_classes: usize) -> Vec<f64> {
    let mut counts = vec![0.0; n_classes];
    for (&row, &weight) in dedup.rows.iter().zip(&dedup.weights) {
        counts[codes[row as usize] as usize] += weight;
    }
    counts
}

/// `n / (k n_c)` for total weight `n`, weight `n_c` of class `c`, and `k` classes that have rows:
/// each class then has the total weight `n / k`.
fn balanced(counts: &[f64]) -> Vec<f64> {
    let total: f64 = counts.iter().sum();
    let n_classes = counts.iter().filter(|count| **count > 0.0).count() as f64;
    let weight = |&count: &f64| {
        if count > 0.0 {
            total / (n_classes * count)
        } else {
            1.0
        }
    };
    counts.iter().map(weight).collect()
}

fn invalid(problem: String) -> Error {
    Error::Parameters(vec![problem])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_classes_have_equal_total_weights() {
        assert_eq!(balanced(&[2.0, 6.0, 0.0]), [2.0, 8.0 / 12.0, 1.0]);
        let dedup = Deduplicated {
            rows: vec![0, 2, 1],
            weights: vec![2.0, 0.5, 3.0],
        };
        assert_eq!(counts(&[1, 0, 1], &dedup, 2), [3.0, 2.5]);
    }
}
