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
/// array. Normal heads: `weight` sums to one over components; `mean` and `sd` are in units of the
/// standardised target `z`, with `y = shift + scale * z`. Categorical heads: `weight` holds the
/// class probabilities; `mean` and `sd` are empty.
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
    /// Component means, in standardised units.
    pub mean: Vec<f64>,
    /// Component standard deviations, in standardised units, positive.
    pub sd: Vec<f64>,
    /// Target value at standardised value 0.
    pub shift: f64,
    /// Target units per standardised unit, positive.
    pub scale: f64,
}

impl Block {
    /// A block of zeros with this shape.
    pub fn new(head: Head, n_members: usize, n_rows: usize) -> Self {
        let stride = n_rows.next_multiple_of(LANES);
        let len = n_members * head.n_components() * stride;
        let moments = if matches!(head, Head::Normal { .. }) {
            len
        } else {
            0
        };
        Self {
            head,
            n_members,
            n_rows,
            stride,
            weight: vec![0.0; len],
            mean: vec![0.0; moments],
            sd: vec![0.0; moments],
            shift: 0.0,
            scale: 1.0,
        }
    }

    /// Number of components or classes per member.
    pub fn n_components(&self) -> usize {
        self.head.n_components()
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
        let is_finite = are_finite(&self.weight, 1.0)
            && are_finite(&self.mean, scale)
            && are_finite(&self.sd, scale * MAX_SCORE);
        if is_finite && are_above(&self.sd, self.stride.max(1), self.n_rows) {
            return Ok(());
        }
        Err(Error::Table(
            "the model has no finite prediction for some rows; its file is damaged, or its target is too large"
                .to_owned(),
        ))
    }

    /// Fills the padding with copies of the last row, so that every lane holds a valid
    /// distribution.
    pub(crate) fn pad(&mut self) {
        let (n_rows, stride) = (self.n_rows, self.stride);
        if n_rows == stride || n_rows == 0 {
            return;
        }
        for array in [&mut self.weight, &mut self.mean, &mut self.sd] {
            for rows in array.chunks_exact_mut(stride) {
                let last = rows[n_rows - 1];
                rows[n_rows..].fill(last);
            }
        }
    }
}

/// Whether `factor` times each value is finite. The padding is checked too: it holds copies or
/// zeros.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn are_finite(values: &[f64], factor: f64) -> bool {
    // zero as long as all products are finite, then NaN
    let mut sums = [0.0; LANES];
    for chunk in values.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            sums[lane] += 0.0 * (factor * chunk[lane]);
        }
    }
    !sums.iter().sum::<f64>().is_nan()
}

/// Whether each standard deviation, without the padding, is above [`MIN_SD`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn are_above(sd: &[f64], stride: usize, n_rows: usize) -> bool {
    let mut n_small = [0.0; LANES];
    for rows in sd.chunks_exact(stride) {
        let (chunks, rest) = rows[..n_rows].as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                n_small[lane] += if chunk[lane] > MIN_SD { 0.0 } else { 1.0 };
            }
        }
        if !rest.iter().all(|&sd| sd > MIN_SD) {
            return false;
        }
    }
    n_small.iter().sum::<f64>() < 0.5
}
