//! Encoded rows that several training runs share.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::data::encoding::Encoding;
use crate::variational::encoded_rows::EncodedSplit;

/// Number of bytes of encoded rows that a cache keeps while no run uses them.
const MAX_KEPT_BYTES: usize = 256 << 20;

/// The training and validation rows of a fit in the encodings that its training runs use.
///
/// Runs that use an encoding at the same time share one copy. Encodings that are not in use are
/// kept up to [`MAX_KEPT_BYTES`] and encoded anew beyond: for large tables, five encodings in
/// memory would cost more than they save.
#[derive(Debug, Default)]
pub(crate) struct EncodingCache {
    entries: Mutex<Vec<Arc<CacheEntry>>>,
    kept: Mutex<KeptSplits>,
}

#[derive(Debug)]
struct CacheEntry {
    encoding: Encoding,
    split: Mutex<Weak<EncodedSplit>>,
}

#[derive(Debug, Default)]
struct KeptSplits {
    splits: Vec<Arc<EncodedSplit>>,
    n_bytes: usize,
}

impl EncodingCache {
    /// The rows in an encoding; calls `encode` if they are not in the cache. All calls must encode
    /// the same rows.
    pub(crate) fn get(
        &self,
        encoding: Encoding,
        encode: impl FnOnce() -> EncodedSplit,
    ) -> Arc<EncodedSplit> {
        let entry = self.entry(encoding);
        // a second run that needs this encoding waits for the first one to encode
        let mut slot = entry.split.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(split) = slot.upgrade() {
            return split;
        }
        let split = Arc::new(encode());
        *slot = Arc::downgrade(&split);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let n_bytes = kept.n_bytes + split.n_bytes();
        if n_bytes <= MAX_KEPT_BYTES {
            kept.n_bytes = n_bytes;
            kept.splits.push(Arc::clone(&split));
        }
        split
    }

    fn entry(&self, encoding: Encoding) -> Arc<CacheEntry> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.iter().find(|entry| entry.encoding == encoding) {
            return Arc::clone(entry);
        }
        let entry = Arc::new(CacheEntry {
            encoding,
            split: Mutex::default(),
        });
        entries.push(Arc::clone(&entry));
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::column::Column;
    use crate::data::dataset::Dataset;
    use crate::data::encoding::{Rotation, Scaling};
    use crate::data::schema::{Schema, Task};
    use crate::data::table::Table;
    use crate::data::target::{Target, TargetUnits};
    use crate::likelihood::soft::SoftLikelihood;
    use crate::variational::encoded_rows::TargetScale;

    #[test]
    fn equal_encodings_are_computed_once() {
        let features = Table::new(vec![Column::numeric("x", vec![1.0, 2.0, 4.0])]).unwrap();
        let schema = Schema::of(&features, "y", Task::Regression);
        let target = Target::Numeric(vec![0.0, 1.0, 2.0]);
        let data = Dataset::new(schema, features, target, None).unwrap();
        let scale = TargetScale {
            standard: TargetUnits {
                shift: 0.0,
                scale: 1.0,
            },
            likelihood: SoftLikelihood::KnownNoise { sd: 1.0 },
            n_channels: 1,
        };
        let plain = Encoding {
            scaling: Scaling::Standard,
            rotation: Rotation::None,
            squares: false,
            max_categories: 1,
        };
        let squares = Encoding {
            squares: true,
            ..plain
        };
        let cache = EncodingCache::default();
        let mut n_encoded = 0;
        let mut encoded = |encoding: Encoding| {
            cache.get(encoding, || {
                n_encoded += 1;
                EncodedSplit::new(&data, None, scale, encoding)
            })
        };
        let first = encoded(plain);
        let second = encoded(squares);
        assert!(Arc::ptr_eq(&first, &encoded(plain)));
        assert!(Arc::ptr_eq(&second, &encoded(squares)));
        assert_ne!(first.train.inputs.len(), second.train.inputs.len());
        drop((first, second));
        encoded(plain);
        assert_eq!(n_encoded, 2);
    }
}
