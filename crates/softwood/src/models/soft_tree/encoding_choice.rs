//! Choice of the encoding of the inputs: plain inputs unless another encoding is clearly better on
//! the validation rows, in a tree of two leaves.

use crate::data::encoding::{Encoder, Encoding, Rotation, Scaling};
use crate::error::Result;
use crate::models::soft_tree::growth::{Grown, GrowthOptions};
use crate::models::soft_tree::streams;
use crate::models::soft_tree::train::SoftTreeFit;
use crate::variational::encoded_rows::EncodedSplit;

/// Changes of an encoding that are tried, one after the other.
const CHANGES: [fn(Encoding) -> Encoding; 2] = [
    |encoding| Encoding {
        scaling: Scaling::Quantile,
        ..encoding
    },
    |encoding| Encoding {
        squares: true,
        ..encoding
    },
];

/// The rows in the chosen encoding, and the small tree of the comparison if the observer stopped the
/// fit meanwhile.
pub(super) struct EncodingChoice {
    pub(super) split: EncodedSplit,
    pub(super) stopped: Option<Grown>,
}

/// An encoding and its tree.
struct EncodingTrial {
    encoding: Encoding,
    split: EncodedSplit,
    grown: Grown,
}

impl SoftTreeFit<'_> {
    /// The rows in the encoding that the parameters give or the validation rows prefer.
    ///
    /// # Errors
    /// When the observer discards the fit or the work is cancelled.
    pub(super) fn choose_encoding(&self) -> Result<EncodingChoice> {
        let params = self.params;
        let plain = Encoding {
            scaling: params.scaling.unwrap_or(Scaling::Standard),
            rotation: params.rotation.unwrap_or(Rotation::None),
            squares: params.squares.unwrap_or(false),
            max_categories: params.max_categories,
        };
        let is_free = !params.is_published()
            && self.rows.validation().is_some()
            && Encoder::can_square(self.rows.train().features());
        let is_open =
            [params.scaling.is_none(), params.squares.is_none()].map(|open| open && is_free);
        if is_open == [false, false] {
            return Ok(EncodingChoice {
                split: self.encode(plain),
                stopped: None,
            });
        }
        let mut best = self.encoding_trial(plain)?;
        let mut is_stopped = best.grown.is_stopped;
        for (change, _) in CHANGES.iter().zip(is_open).filter(|(_, is_open)| *is_open) {
            if is_stopped {
                break;
            }
            let next = self.encoding_trial(change(best.encoding))?;
            is_stopped = next.grown.is_stopped;
            if next.is_clearly_better_than(&best) {
                best = next;
            }
        }
        Ok(EncodingChoice {
            split: best.split,
            stopped: is_stopped.then_some(best.grown),
        })
    }

    fn encoding_trial(&self, encoding: Encoding) -> Result<EncodingTrial> {
        let split = self.encode(encoding);
        let options = GrowthOptions {
            max_leaves: 2,
            min_gain: 0.0,
            refines: false,
            prunes: false,
            ..self.params.growth_options()
        };
        let key = self.run.key.child(streams::run::ENCODINGS);
        let grown = self.grow(&split, &split.train, options, key)?;
        Ok(EncodingTrial {
            encoding,
            split,
            grown,
        })
    }
}

impl EncodingTrial {
    /// Whether the validation rows are more likely by more than one standard error.
    fn is_clearly_better_than(&self, other: &Self) -> bool {
        let rows = self.split.validation.as_ref();
        rows.is_some_and(|rows| {
            let gain = rows.mean_gain(&other.grown.row_scores, &self.grown.row_scores);
            gain.mean > gain.standard_error
        })
    }
}
