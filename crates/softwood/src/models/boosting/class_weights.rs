//! Weights of classes, which multiply those of the rows.

use crate::data::dataset::Dataset;
use crate::data::dedup::Deduplicated;
use crate::data::target::Target;
use crate::error::{Error, Result};
use crate::params::{ClassWeight, WeightRule};

/// A weight for each class of the schema; none where all are one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClassWeights(Option<Vec<f64>>);

impl ClassWeights {
    /// What was used_thresholds for, in the order of the classes.
    ///
    /// # Errors
    /// When the target is a number, a class is unknown, or fewer than two classes keep a weight.
    pub(super) fn new(
        given: Option<&ClassWeight>,
        data: &Dataset,
        dedup: &Deduplicated,
    ) -> Result<Self> {
        let Some(given) = given else {
            return Ok(Self(None));
        };
        let (Some(classes), Target::Classes(codes)) = (data.schema().classes(), data.target())
        else {
            return Err(broken(format!(
                "`class_weight` weighs classes, but the target `{}` is a number; give each row a weight instead",
                data.schema().target
            )));
        };
        let counts = counts(codes, dedup, classes.len());
        let weights = match given {
            ClassWeight::Rule(WeightRule::Balanced) => balanced(&counts),
            ClassWeight::Given(named) => {
                let mut weights = vec![1.0; classes.len()];
                for (name, &weight) in named {
                    let at = classes.iter().position(|class| class == name);
                    let at = at.ok_or_else(|| {
                        let known = classes.join(", ");
                        broken(format!(
                            "`class_weight`: `{name}` is not a class of the target; there are {known}"
                        ))
                    })?;
                    weights[at] = weight;
                }
                weights
            }
        };
        let n_left = weights.iter().zip(&counts);
        let n_left = n_left.filter(|(weight, count)| **weight * **count > 0.0);
        if n_left.count() < 2 {
            return Err(broken(
                "`class_weight` leaves fewer than two classes with a weight above 0".to_owned(),
            ));
        }
        Ok(Self(Some(weights)))
    }

    /// The dedup rows of a table with their class's weight; those left with none are dropped.
    pub(super) fn weigh(&self, data: &Dataset, dedup: Deduplicated) -> Deduplicated {
        let (Some(of_class), Target::Classes(codes)) = (&self.0, data.target()) else {
            return dedup;
        };
        let rows = dedup.rows.iter().zip(&dedup.weights);
        let weighed =
            rows.map(|(&row, &weight)| (row, weight * of_class[codes[row as usize] as usize]));
        let (rows, weights) = weighed.filter(|&(_, weight)| weight > 0.0).unzip();
        Deduplicated { rows, weights }
    }
}

/// Weight of the rows of each class, added up in the order of the dedup rows: that of the table does not matter.
fn counts(codes: &[u32], dedup: &Deduplicated, n_classes: usize) -> Vec<f64> {
    let mut counts = vec![0.0; n_classes];
    for (&row, &weight) in dedup.rows.iter().zip(&dedup.weights) {
        counts[codes[row as usize] as usize] += weight;
    }
    counts
}

/// `n / (k n_c)`, over the `k` classes that have rows: the rows of each then weigh `n / k` together.
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

fn broken(problem: String) -> Error {
    Error::Parameters(vec![problem])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_classes_weigh_the_same_together() {
        assert_eq!(balanced(&[2.0, 6.0, 0.0]), [2.0, 8.0 / 12.0, 1.0]);
        let dedup = Deduplicated {
            rows: vec![0, 2, 1],
            weights: vec![2.0, 0.5, 3.0],
        };
        assert_eq!(counts(&[1, 0, 1], &dedup, 2), [3.0, 2.5]);
    }
}
