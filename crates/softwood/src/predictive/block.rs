//! The distributions of all members on a block of rows: the prediction of every model family.
//!
//! Arrays have the shape members x components x rows. Rows are contiguous and padded to a multiple
//! of [`LANES`], so that every computation is a loop over rows that vectorises.

use multiversion::multiversion;

use crate::error::{Error, Result};

/// Rows are padded to a multiple of this number.
pub const LANES: usize = 16;

/// Bound of a standard Normal number: beyond it densities and tail probabilities are zero.
const MAX_SCORE: f64 = 40.0;
/// Standard deviations of a prediction are above this one: squares of its inverse are finite.
const MIN_SD: f64 = 1e-100;

/// Message of a request for Normal parameters that a block does not have.
const NOT_NORMAL: &str = "the components of this block are not Normal";

/// The shape of one member's conditional distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Head {
    /// A mixture of this many Normal components (1: a single Normal).
    Normal {
        /// Components per member.
        components: usize,
    },
    /// A categorical distribution over this many classes.
    Categorical {
        /// Classes.
        classes: usize,
    },
}

impl Head {
    /// Number of components or classes per member.
    pub fn n_components(self) -> usize {
        match self {
            Self::Normal { components } => components,
            Self::Categorical { classes } => classes,
        }
    }
}

/// The distribution of every member on a block of rows.
///
/// Component `c` of member `m` on row `r` is at index `(m * n_components + c) * stride + r` of each
/// array. Normal heads: `weight` sums to one over components; means and standard deviations are in
/// units of the standardised target `z`, with `y = shift + scale * z`. Categorical heads: `weight`
/// holds the class probabilities.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Block {
    /// Shape of each member.
    pub head: Head,
    /// Members.
    pub n_members: usize,
    /// Number of rows without padding.
    pub n_rows: usize,
    /// Distance between components: `n_rows` rounded up to a multiple of [`LANES`].
    pub stride: usize,
    /// Component weights or class probabilities.
    pub weight: Vec<f64>,
    /// Parameters of the components.
    pub parameters: ComponentParameters,
    /// Target value at standardised value 0.
    pub shift: f64,
    /// Target units per standardised unit, positive.
    pub scale: f64,
    /// Knowledge variance that the components contain; `None` if the means of the components have all of
    /// it.
    pub added: Option<AddedVariance>,
}

/// The parameters of the components of a block besides their weights, by kind of distribution.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ComponentParameters {
    /// Normal components.
    Normal(NormalParameters),
    /// Classes have probabilities only.
    Categorical,
}

/// Means and standard deviations of the components of a block, in standardised units.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NormalParameters {
    /// Means.
    pub mean: Vec<f64>,
    /// Standard deviations, positive.
    pub sd: Vec<f64>,
}

impl ComponentParameters {
    /// Zeros; `len` is the length of an array.
    fn new(head: Head, len: usize) -> Self {
        match head {
            Head::Normal { .. } => Self::Normal(NormalParameters {
                mean: vec![0.0; len],
                sd: vec![0.0; len],
            }),
            Head::Categorical { .. } => Self::Categorical,
        }
    }

    fn arrays_mut(&mut self) -> Vec<&mut Vec<f64>> {
        match self {
            Self::Normal(NormalParameters { mean, sd }) => vec![mean, sd],
            Self::Categorical => Vec::new(),
        }
    }
}

/// Knowledge variance that was added to the components of a block, in standardised units.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AddedVariance {
    /// Mean of each row. The mean of the components equals it up to rounding.
    pub mean: Vec<f64>,
    /// Added variance of each row: the mean of what its members got.
    pub variance: Vec<f64>,
    /// Data variance of each row, without what was added.
    pub data: Vec<f64>,
    /// Distance of each member, as a function, from the mean of its components (members x rows). The
    /// variance of the shifted means over the members is the knowledge variance, unless the members must
    /// stay as they are or there is a single one. Densities contain the variance and not the shifts.
    pub member_shift: Vec<f64>,
}

impl Block {
    /// A block of zeros with this shape.
    pub fn new(head: Head, n_members: usize, n_rows: usize) -> Self {
        let stride = n_rows.next_multiple_of(LANES);
        let len = n_members * head.n_components() * stride;
        Self {
            head,
            n_members,
            n_rows,
            stride,
            weight: vec![0.0; len],
            parameters: ComponentParameters::new(head, len),
            shift: 0.0,
            scale: 1.0,
            added: None,
        }
    }

    /// Number of components or classes per member.
    pub fn n_components(&self) -> usize {
        self.head.n_components()
    }

    /// Parameters of Normal components.
    ///
    /// # Panics
    /// If the head is not Normal.
    pub fn normal(&self) -> &NormalParameters {
        match &self.parameters {
            ComponentParameters::Normal(parameters) => parameters,
            ComponentParameters::Categorical => panic!("{NOT_NORMAL}"),
        }
    }

    /// As [`Self::normal`], to be written.
    ///
    /// # Panics
    /// If the head is not Normal.
    pub fn normal_mut(&mut self) -> &mut NormalParameters {
        match &mut self.parameters {
            ComponentParameters::Normal(parameters) => parameters,
            ComponentParameters::Categorical => panic!("{NOT_NORMAL}"),
        }
    }

    /// Index of the first row of a component in each array.
    pub fn at(&self, member: usize, component: usize) -> usize {
        (member * self.n_components() + component) * self.stride
    }

    /// Returns an error unless every number that can be computed from these distributions in the
    /// units of the target is finite. Only a damaged model, or one whose target is close to the
    /// largest number, has other distributions.
    pub(crate) fn check(&self) -> Result<()> {
        // a quarter of the largest number each, so that their sum and the shift are finite too
        let scale = 4.0 * self.scale;
        let are_valid = match &self.parameters {
            ComponentParameters::Normal(NormalParameters { mean, sd }) => {
                let mut sds = self.rows_of(sd);
                are_finite(mean, scale) && sds.all(|sd| are_valid_sds(sd, scale * MAX_SCORE))
            }
            ComponentParameters::Categorical => true,
        };
        let is_valid = are_finite(&self.weight, 1.0) && are_valid;
        if is_valid {
            Ok(())
        } else {
            Err(no_finite_prediction())
        }
    }

    /// The rows of each component without their padding, or all values at once if there is none.
    fn rows_of<'a>(&'a self, values: &'a [f64]) -> impl Iterator<Item = &'a [f64]> {
        let (width, n_rows) = if self.n_rows == self.stride {
            (values.len(), values.len())
        } else {
            (self.stride, self.n_rows)
        };
        values
            .chunks_exact(width.max(1))
            .map(move |rows| &rows[..n_rows])
    }

    /// Fills the padding with copies of the last row, so that every lane holds a valid
    /// distribution.
    pub(crate) fn pad(&mut self) {
        let (n_rows, stride) = (self.n_rows, self.stride);
        if n_rows == stride || n_rows == 0 {
            return;
        }
        let mut arrays = self.parameters.arrays_mut();
        arrays.push(&mut self.weight);
        for array in arrays {
            for rows in array.chunks_exact_mut(stride) {
                let last = rows[n_rows - 1];
                rows[n_rows..].fill(last);
            }
        }
    }
}

/// The error of a prediction that is not finite.
pub(crate) fn no_finite_prediction() -> Error {
    Error::Table(
        "the model has no finite prediction for some rows; its file is damaged, or its target is too large"
            .to_owned(),
    )
}

/// Whether `factor` times each value is finite.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn are_finite(values: &[f64], factor: f64) -> bool {
    // zero as long as all products are finite, then NaN
    let mut sums = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            sums[lane] += 0.0 * (factor * chunk[lane]);
        }
    }
    let is_finite = |value: &f64| (factor * value).is_finite();
    !sums.iter().sum::<f64>().is_nan() && rest.iter().all(is_finite)
}

/// Whether each standard deviation is above [`MIN_SD`], and `factor` times each is finite.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn are_valid_sds(values: &[f64], factor: f64) -> bool {
    let (mut sums, mut smallest) = ([0.0; LANES], [f64::INFINITY; LANES]);
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            let sd = chunk[lane];
            sums[lane] += 0.0 * (factor * sd);
            smallest[lane] = if sd < smallest[lane] {
                sd
            } else {
                smallest[lane]
            };
        }
    }
    let is_valid = |sd: &f64| *sd > MIN_SD && (factor * sd).is_finite();
    !sums.iter().sum::<f64>().is_nan()
        && smallest.iter().all(|&sd| sd > MIN_SD)
        && rest.iter().all(is_valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_checked_in_every_row_and_not_in_the_padding() {
        for n_rows in [1, 5, 16, 33, 48] {
            let filled = |scale: f64| {
                let mut block = Block::new(Head::Normal { components: 3 }, 2, n_rows);
                block.weight.fill(1.0 / 3.0);
                block.normal_mut().mean.fill(-1.0);
                block.scale = scale;
                let stride = block.stride;
                for sd in block.normal_mut().sd.chunks_exact_mut(stride) {
                    sd[..n_rows].fill(0.5);
                }
                block
            };
            assert!(filled(1.0).check().is_ok(), "{n_rows} rows");
            assert!(filled(1e306).check().is_ok(), "{n_rows} rows");
            let last = filled(1.0).at(1, 2) + n_rows - 1;
            for at in [0, last] {
                for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                    let mut blocks = [0, 1, 2].map(|_| filled(1.0));
                    blocks[0].weight[at] = value;
                    blocks[1].normal_mut().mean[at] = value;
                    blocks[2].normal_mut().sd[at] = value;
                    assert!(blocks.iter().all(|block| block.check().is_err()));
                }
                for (mean, sd) in [(1e303, 0.5), (0.0, 1e302), (0.0, 0.0), (0.0, -1.0)] {
                    let mut block = filled(1e6);
                    let normal = block.normal_mut();
                    (normal.mean[at], normal.sd[at]) = (mean, sd);
                    assert!(block.check().is_err(), "mean {mean}, sd {sd}");
                }
            }
        }
    }
}
