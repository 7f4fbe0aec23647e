//! Walks over Thrift data in the compact protocol, as Parquet files store their metadata, without
//! allocating. Every length is compared with the bytes that are left.

/// Deepest nesting that is walked.
const MAX_DEPTH: usize = 64;

/// Types of the compact protocol that are told apart here.
const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Bytes that are left to walk. Functions return `None` for malformed data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThriftBytes<'a>(pub(crate) &'a [u8]);

/// The sizes in a page header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageSizes {
    /// Bytes of the header itself.
    pub header: u64,
    /// Bytes of the decompressed page.
    pub uncompressed: u64,
    /// Bytes of the page in the file.
    pub compressed: u64,
    /// Number of values of a dictionary page; zero for other pages.
    pub n_dictionary_values: u64,
}

/// The sizes in the page header at the beginning of `bytes`.
pub(crate) fn page_sizes(bytes: &[u8]) -> Option<PageSizes> {
    let mut rest = ThriftBytes(bytes);
    let mut sizes = [None, None];
    let mut n_dictionary_values = 0;
    let mut id = 0;
    loop {
        match (rest.field(&mut id)?, id) {
            (STOP, _) => break,
            (4..=6, 2 | 3) => sizes[usize::from(id == 3)] = Some(rest.count()?),
            (STRUCT, 7) => n_dictionary_values = dictionary_values(&mut rest)?,
            (kind, _) => rest.skip(kind, MAX_DEPTH)?,
        }
    }
    let [Some(uncompressed), Some(compressed)] = sizes else {
        return None;
    };
    Some(PageSizes {
        header: (bytes.len() - rest.0.len()) as u64,
        uncompressed,
        compressed,
        n_dictionary_values,
    })
}

/// Walks over a dictionary page header; its first field is the number of values.
fn dictionary_values(rest: &mut ThriftBytes<'_>) -> Option<u64> {
    let (mut id, mut found) = (0, 0);
    loop {
        match (rest.field(&mut id)?, id) {
            (STOP, _) => return Some(found),
            (4..=6, 1) => found = rest.count()?,
            (kind, _) => rest.skip(kind, MAX_DEPTH)?,
        }
    }
}

impl<'a> ThriftBytes<'a> {
    /// Walks over a whole structure.
    pub(crate) fn skip_struct(&mut self) -> Option<()> {
        self.skip(STRUCT, MAX_DEPTH)
    }

    /// The type of the next field of a structure, or [`STOP`] at its end; `id` becomes the field's.
    fn field(&mut self, id: &mut i64) -> Option<u8> {
        let byte = self.byte()?;
        if byte == STOP {
            return Some(STOP);
        }
        *id = match i64::from(byte >> 4) {
            0 => self.zigzag()?,
            delta => id.checked_add(delta)?,
        };
        // a type of zero is no end here, and malformed
        Some(byte & 0x0f).filter(|kind| *kind != STOP)
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            TRUE | FALSE => Some(()),
            BYTE => self.byte().map(drop),
            4..=6 => self.varint().map(drop),
            DOUBLE => self.take(8).map(drop),
            UUID => self.take(16).map(drop),
            BINARY => {
                let len = self.varint()?;
                self.take(len).map(drop)
            }
            LIST | SET => self.skip_list(depth),
            MAP => self.skip_map(depth),
            STRUCT => {
                let mut id = 0;
                loop {
                    match self.field(&mut id)? {
                        STOP => return Some(()),
                        kind => self.skip(kind, depth)?,
                    }
                }
            }
            _ => None,
        }
    }

    fn skip_list(&mut self, depth: usize) -> Option<()> {
        let byte = self.byte()?;
        let len = match u64::from(byte >> 4) {
            15 => self.varint()?,
            len => len,
        };
        let len = self.at_most_left(len)?;
        (0..len).try_for_each(|_| self.skip_element(byte & 0x0f, depth))
    }

    fn skip_map(&mut self, depth: usize) -> Option<()> {
        let len = self.varint()?;
        let len = self.at_most_left(len)?;
        if len == 0 {
            return Some(());
        }
        let kinds = self.byte()?;
        (0..len).try_for_each(|_| {
            self.skip_element(kinds >> 4, depth)?;
            self.skip_element(kinds & 0x0f, depth)
        })
    }

    /// Walks over an element of a list or map, where a boolean takes one byte.
    fn skip_element(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            TRUE | FALSE => self.byte().map(drop),
            _ => self.skip(kind, depth),
        }
    }

    /// The number of elements, each of which takes at least one byte.
    fn at_most_left(&self, len: u64) -> Option<u64> {
        (len <= self.0.len() as u64).then_some(len)
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn take(&mut self, n: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(n).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A signed integer that must not be negative.
    fn count(&mut self) -> Option<u64> {
        u64::try_from(self.zigzag()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_dictionary_page_are_found() {
        // type 2, uncompressed 300, compressed 100, dictionary header {values 37, encoding 0}
        let header = [
            0x15, 4, 0x15, 0xd8, 4, 0x15, 0xc8, 1, 0x4c, 0x15, 74, 0x15, 0, 0, 0, 9,
        ];
        let sizes = page_sizes(&header).unwrap();
        assert_eq!((sizes.uncompressed, sizes.compressed), (300, 100));
        assert_eq!((sizes.n_dictionary_values, sizes.header), (37, 15));
        for len in 0..15 {
            assert_eq!(page_sizes(&header[..len]), None);
        }
    }

    #[test]
    fn lengths_beyond_the_bytes_are_malformed() {
        // a list of 2^31 structures, a binary of 2^40 bytes, a map of 2^31 entries
        for bytes in [
            &[0x19, 0xfc, 0x80, 0x80, 0x80, 0x80, 8, 0][..],
            &[0x18, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0],
            &[0x1b, 0x80, 0x80, 0x80, 0x80, 8, 0x55, 0],
        ] {
            assert!(ThriftBytes(bytes).skip_struct().is_none());
        }
        let deep = [0x1c; 1000];
        assert!(ThriftBytes(&deep).skip_struct().is_none());
    }
}
