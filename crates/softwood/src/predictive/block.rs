//! The distributions of all members on a block of rows: the prediction of every model family.
//!
//! Arrays have the shape members x components x rows. Rows are contiguous and padded to a multiple
//! of [`LANES`], so that every computation is a loop over rows that vectorises.

use crate::error::{Error, Result};

/// Rows are padded to a multiple of this number.
pub const LANES: usize = 16;

/// Bound of a standard Normal number: beyond it densities and tail probabilities are zero.
const MAX_SCORE: f64 = 40.0;
/// Standard deviations of a prediction are above this one: squares of its inverse are finite.
const MIN_SD: f64 = 1e-100;

/// Smallest and largest magnitude of some values; the largest is not finite unless all are.
struct Extremes {
    smallest: f64,
    largest: f64,
}

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
        let [weight, mean, sd] =
            [&self.weight, &self.mean, &self.sd].map(|values| self.extremes(values));
        let farthest = self.shift.abs() + self.scale * (mean.largest + MAX_SCORE * sd.largest);
        if weight.largest.is_finite() && farthest.is_finite() && sd.smallest > MIN_SD {
            return Ok(());
        }
        Err(Error::Table(
            "the model has no finite prediction for some rows; its file is damaged, or its target is too large"
                .to_owned(),
        ))
    }

    /// Extremes of the magnitudes in an array, without its padding.
    fn extremes(&self, values: &[f64]) -> Extremes {
        let mut smallest = [f64::INFINITY; LANES];
        let mut largest = [0.0; LANES];
        // zero as long as all values are finite, then NaN
        let mut not_finite = [0.0; LANES];
        for rows in values.chunks_exact(self.stride.max(1)) {
            for rows in rows[..self.n_rows].chunks(LANES) {
                for (lane, value) in rows.iter().enumerate() {
                    let size = value.abs();
                    smallest[lane] = if size < smallest[lane] {
                        size
                    } else {
                        smallest[lane]
                    };
                    largest[lane] = if size > largest[lane] {
                        size
                    } else {
                        largest[lane]
                    };
                    not_finite[lane] += 0.0 * value;
                }
            }
        }
        Extremes {
            smallest: smallest.into_iter().fold(f64::INFINITY, f64::min),
            largest: largest.into_iter().fold(0.0, f64::max) + not_finite.iter().sum::<f64>(),
        }
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
