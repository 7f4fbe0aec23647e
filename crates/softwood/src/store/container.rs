//! Records as bytes and back. Every byte sequence gives a record or an error, never a panic.
//!
//! Layout; all numbers are little-endian, and every part is padded with zeros to a multiple of 8
//! bytes:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | the letters `SOFTWOOD` |
//! | 4 | format version |
//! | 4 | CRC-32 of everything after this field |
//! | 8 | length of the header |
//! | | header: JSON with the family, its metadata, and name, type and length of each array |
//! | | the arrays, in the order of the header |

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::store::record::{Array, Record};

/// First bytes of every model file.
pub(crate) const MAGIC: [u8; 8] = *b"SOFTWOOD";
/// Format version that is written; all earlier ones can be read.
const VERSION: u32 = 1;
/// Bytes before the header.
const PREFIX: usize = 24;
/// Start of the bytes that the checksum covers.
const CHECKED_FROM: usize = 16;
const ALIGN: usize = 8;
/// Numbers that are converted to bytes at once.
const WORDS_AT_ONCE: usize = 512;

#[derive(Serialize)]
struct FileHeaderOut<'a> {
    family: &'a str,
    meta: &'a Value,
    arrays: Vec<Section>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileHeader {
    family: String,
    meta: Value,
    arrays: Vec<Section>,
}

/// Entry of an array in the header.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    name: String,
    #[serde(rename = "type")]
    kind: ArrayKind,
    len: u64,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ArrayKind {
    F32,
    F64,
    U32,
}

impl ArrayKind {
    fn bytes(self) -> u64 {
        match self {
            Self::F32 | Self::U32 => 4,
            Self::F64 => 8,
        }
    }
}

impl Record {
    /// The bytes of a model file.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(self)
    }
}

/// The bytes of a model file.
pub(crate) fn to_bytes(record: &Record) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PREFIX);
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend([0; 4]);
    let parts = FileParts::of(record);
    bytes.reserve_exact(parts.n_bytes());
    parts.for_each(|part| bytes.extend_from_slice(part));
    let checksum = crc32fast::hash(&bytes[CHECKED_FROM..]);
    bytes[12..CHECKED_FROM].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Whether the bytes of a model file, whose checksum is right, are those of this record. Needs no
/// second copy of them.
pub(crate) fn is_content(bytes: &[u8], record: &Record) -> bool {
    let mut rest = bytes.get(CHECKED_FROM..).unwrap_or_default();
    let mut is_equal = true;
    FileParts::of(record).for_each(|part| match rest.strip_prefix(part) {
        Some(after) => rest = after,
        None => is_equal = false,
    });
    is_equal && rest.is_empty()
}

/// The parts of a file after its checksum.
struct FileParts<'a> {
    header: Vec<u8>,
    arrays: &'a [(String, Array)],
}

impl<'a> FileParts<'a> {
    fn of(record: &'a Record) -> Self {
        let header = FileHeaderOut {
            family: &record.family,
            meta: &record.meta,
            arrays: (record.arrays.iter())
                .map(|(name, array)| section_of(name, array))
                .collect(),
        };
        let header = serde_json::to_vec(&header)
            .expect("names, lengths and JSON values can always be written");
        Self {
            header,
            arrays: &record.arrays,
        }
    }

    /// Bytes of all parts.
    fn n_bytes(&self) -> usize {
        let arrays = self.arrays.iter().map(|(_, array)| match array {
            Array::F32(values) => size_of_val(&values[..]),
            Array::F64(values) => size_of_val(&values[..]),
            Array::U32(values) => size_of_val(&values[..]),
        });
        let parts = std::iter::once(self.header.len()).chain(arrays);
        8 + parts.map(|n| n.next_multiple_of(ALIGN)).sum::<usize>()
    }

    /// Calls `f` with the parts, piece by piece.
    fn for_each(&self, mut f: impl FnMut(&[u8])) {
        f(&(self.header.len() as u64).to_le_bytes());
        f(&self.header);
        f(padding(self.header.len()));
        for (_, array) in self.arrays {
            let n_bytes = match array {
                Array::F32(values) => words_of(values, f32::to_le_bytes, &mut f),
                Array::F64(values) => words_of(values, f64::to_le_bytes, &mut f),
                Array::U32(values) => words_of(values, u32::to_le_bytes, &mut f),
            };
            f(padding(n_bytes));
        }
    }
}

/// Calls `f` with the bytes of some numbers, piece by piece, and returns their number.
fn words_of<T: Copy, const N: usize>(
    values: &[T],
    to_bytes: impl Fn(T) -> [u8; N],
    f: &mut impl FnMut(&[u8]),
) -> usize {
    let mut words = [[0; N]; WORDS_AT_ONCE];
    for values in values.chunks(WORDS_AT_ONCE) {
        for (word, &value) in words.iter_mut().zip(values) {
            *word = to_bytes(value);
        }
        f(words[..values.len()].as_flattened());
    }
    N * values.len()
}

/// The zeros after a part of this length.
fn padding(n_bytes: usize) -> &'static [u8] {
    &[0; ALIGN][..n_bytes.next_multiple_of(ALIGN) - n_bytes]
}

fn section_of(name: &str, array: &Array) -> Section {
    let (kind, len) = match array {
        Array::F32(values) => (ArrayKind::F32, values.len()),
        Array::F64(values) => (ArrayKind::F64, values.len()),
        Array::U32(values) => (ArrayKind::U32, values.len()),
    };
    Section {
        name: name.to_owned(),
        kind,
        len: len as u64,
    }
}

/// Reads the record from the bytes of a model file.
///
/// # Errors
/// [`Error::Format`] when the bytes are no complete, undamaged model file of a known version.
pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Record> {
    check_start(bytes)?;
    let prefix = bytes.get(..PREFIX).ok_or_else(cut_short)?;
    let version = u32_at(prefix, 8);
    if version != VERSION {
        return Err(format_error(format!(
            "it has format version {version}, and this program reads version {VERSION}; use a newer Softwood"
        )));
    }
    if crc32fast::hash(&bytes[CHECKED_FROM..]) != u32_at(prefix, 12) {
        return Err(format_error(
            "the checksum does not match: the file is damaged or was cut short; copy or fit it again",
        ));
    }
    let mut reader = ByteReader(&bytes[PREFIX..]);
    let header_len = u64::from_le_bytes(prefix[16..24].try_into().expect("eight bytes"));
    let header: FileHeader = serde_json::from_slice(reader.take(header_len)?)
        .map_err(|error| format_error(format!("its header cannot be read: {error}")))?;
    let arrays = header
        .arrays
        .into_iter()
        .map(|section| reader.array(section))
        .collect::<Result<_>>()?;
    if !reader.0.is_empty() {
        return Err(format_error(format!(
            "{} bytes follow where it should end",
            reader.0.len()
        )));
    }
    Ok(Record {
        family: header.family,
        meta: header.meta,
        arrays,
    })
}

/// Returns an error unless the bytes begin like a model file.
pub(crate) fn check_start(bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() {
        return Err(format_error("the file is empty"));
    }
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] {
        return Err(format_error(
            "it does not begin like a model written by `softwood fit`",
        ));
    }
    Ok(())
}

/// Bytes not yet read.
struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    /// The next `len` bytes and their padding, which must be zeros.
    fn take(&mut self, len: u64) -> Result<&'a [u8]> {
        let len = usize::try_from(len).map_err(|_| cut_short())?;
        let padded = len
            .checked_next_multiple_of(ALIGN)
            .filter(|&padded| padded <= self.0.len())
            .ok_or_else(cut_short)?;
        let (taken, rest) = self.0.split_at(padded);
        let (content, padding) = taken.split_at(len);
        if padding.iter().any(|&byte| byte != 0) {
            return Err(format_error("bytes between its parts are not zero"));
        }
        self.0 = rest;
        Ok(content)
    }

    fn array(&mut self, section: Section) -> Result<(String, Array)> {
        let n_bytes = section
            .len
            .checked_mul(section.kind.bytes())
            .ok_or_else(cut_short)?;
        let bytes = self.take(n_bytes)?;
        let array = match section.kind {
            ArrayKind::F32 => Array::F32(words(bytes).map(f32::from_le_bytes).collect()),
            ArrayKind::F64 => Array::F64(words(bytes).map(f64::from_le_bytes).collect()),
            ArrayKind::U32 => Array::U32(words(bytes).map(u32::from_le_bytes).collect()),
        };
        Ok((section.name, array))
    }
}

fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
    bytes.as_chunks::<N>().0.iter().copied()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn format_error(problem: impl Into<String>) -> Error {
    Error::Format(problem.into())
}

fn cut_short() -> Error {
    format_error("it ends before all of its parts: the file was cut short; copy or fit it again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn record() -> Record {
        Record {
            family: "vst".to_owned(),
            meta: json!({"a": [1, 2.5, null], "b": "ü"}),
            arrays: vec![
                ("w".to_owned(), Array::F32(vec![1.5, -0.0, f32::INFINITY])),
                ("v".to_owned(), Array::F64(vec![1e300, 0.1])),
                ("n".to_owned(), Array::U32(vec![7])),
                ("none".to_owned(), Array::F64(Vec::new())),
            ],
        }
    }

    /// The bytes with a valid checksum.
    fn with_valid_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
        let checksum = crc32fast::hash(&bytes[CHECKED_FROM..]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn with_header(header: &str) -> Vec<u8> {
        let mut bytes = to_bytes(&record())[..16].to_vec();
        bytes.extend((header.len() as u64).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(padding(header.len()));
        with_valid_checksum(bytes)
    }

    #[test]
    fn round_trip_keeps_every_bit() {
        assert_eq!(from_bytes(&to_bytes(&record())).unwrap(), record());
    }

    #[test]
    fn the_content_of_a_record_is_compared_to_the_last_bit() {
        let bytes = to_bytes(&record());
        assert!(is_content(&bytes, &record()));
        assert!(!is_content(&bytes[..bytes.len() - 8], &record()));
        assert!(!is_content(&[&bytes[..], &[0; 8]].concat(), &record()));
        assert!(!is_content(&[], &record()));
        let mut other = record();
        other.arrays[0].1 = Array::F32(vec![1.5, 0.0, f32::INFINITY]);
        assert!(!is_content(&bytes, &other));
        other = record();
        other.meta = json!({"a": [1, 2.5, null], "b": "u"});
        assert!(!is_content(&bytes, &other));
    }

    #[test]
    fn lengths_beyond_the_file_are_rejected_before_allocation() {
        for len in [1_u64 << 40, 1 << 62, u64::MAX, u64::MAX / 8 + 1] {
            let header = format!(
                r#"{{"family":"vst","meta":null,"arrays":[{{"name":"w","type":"f64","len":{len}}}]}}"#
            );
            let message = from_bytes(&with_header(&header)).unwrap_err().to_string();
            assert!(message.contains("cut short"), "{message}");
        }
        let mut bytes = to_bytes(&record());
        bytes[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(from_bytes(&with_valid_checksum(bytes)).is_err());
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let header = format!(r#"{{"family":"vst","meta":{deep},"arrays":[]}}"#);
        assert!(from_bytes(&with_header(&header)).is_err());
    }

    #[test]
    fn messages_name_what_is_wrong() {
        let good = to_bytes(&record());
        let mut newer = good.clone();
        newer[8] = 9;
        let mut longer = good.clone();
        longer.extend([0; 8]);
        for (bytes, expected) in [
            (Vec::new(), "empty"),
            (b"PAR1 and more".to_vec(), "does not begin"),
            (newer, "version 9"),
            (longer.clone(), "checksum"),
            (with_valid_checksum(longer), "8 bytes follow"),
            (good[..12].to_vec(), "cut short"),
        ] {
            let message = from_bytes(&bytes).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    proptest! {
        #[test]
        fn a_flipped_bit_is_detected(at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let mut bytes = to_bytes(&record());
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(matches!(from_bytes(&bytes), Err(Error::Format(_))));
        }

        #[test]
        fn a_truncated_file_is_detected(at in any::<prop::sample::Index>()) {
            let bytes = to_bytes(&record());
            prop_assert!(matches!(from_bytes(&bytes[..at.index(bytes.len())]), Err(Error::Format(_))));
        }

        #[test]
        fn flipped_bits_with_a_valid_checksum_never_panic(
            flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u8), 1..8),
        ) {
            let mut bytes = to_bytes(&record());
            for (at, bit) in flips {
                let at = at.index(bytes.len() - CHECKED_FROM) + CHECKED_FROM;
                bytes[at] ^= 1 << bit;
            }
            let _ = from_bytes(&with_valid_checksum(bytes));
        }

        #[test]
        fn random_bytes_are_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(from_bytes(&bytes).is_err());
        }
    }
}
