//! Checks the lengths stated in Parquet files before they are read: the reader of the `parquet`
//! crate allocates by some of them, and a failed allocation ends the process.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{ChunkReader, Length};

use crate::limits::{ReadLimits, exceeded, size_text};
use crate::thrift::{PageSizes, ThriftBytes, page_sizes};

type ParquetChecked<T> = std::result::Result<T, ParquetError>;

/// Bytes at the end of the file: the length of the footer and the magic bytes.
const TAIL: u64 = 8;
/// Bytes that are first read of a page header; it is longer if it has long statistics.
const HEADER_BYTES: u64 = 1 << 12;
/// Largest compression ratio of gzip.
const MAX_GZIP_RATIO: u64 = 1040;
/// Compressed pages that could decompress to more than this are decompressed to check their length.
const MAX_UNCHECKED_GZIP: u64 = 1 << 30;

/// A file whose reader never allocates more than the file is long.
#[derive(Debug)]
pub(crate) struct BoundedFile {
    file: File,
    len: u64,
}

impl BoundedFile {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file, len })
    }

    fn reader_at(&self, start: u64) -> io::Result<File> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        Ok(file)
    }

    /// Bytes from `start` on, fewer than `n` at the end of the file.
    fn some_bytes(&self, start: u64, n: u64) -> io::Result<Vec<u8>> {
        let n = n.min(self.len.saturating_sub(start));
        let mut bytes = Vec::with_capacity(n as usize);
        self.reader_at(start)?.take(n).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Length for BoundedFile {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for BoundedFile {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> ParquetChecked<Self::T> {
        Ok(BufReader::new(self.reader_at(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetChecked<Bytes> {
        let bytes = self.some_bytes(start, length as u64)?;
        if bytes.len() < length {
            return Err(malformed("a part of the file ends beyond the file"));
        }
        Ok(bytes.into())
    }
}

fn malformed(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

/// Checks the lengths inside the footer.
pub(crate) fn check_footer(file: &BoundedFile) -> ParquetChecked<()> {
    let tail = file.some_bytes(file.len.saturating_sub(TAIL), TAIL)?;
    let footer_len = tail
        .first_chunk()
        .map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
    let start = footer_len.and_then(|len| file.len.checked_sub(TAIL)?.checked_sub(len));
    let (Some(len), Some(start)) = (footer_len, start) else {
        return Err(malformed("the footer is longer than the file"));
    };
    let bytes = file.some_bytes(start, len)?;
    ThriftBytes(&bytes)
        .skip_struct()
        .ok_or_else(|| malformed("the footer is malformed"))
}

/// Checks the lengths in the page headers of the columns at `projection`.
pub(crate) fn check_pages(
    file: &BoundedFile,
    metadata: &ParquetMetaData,
    projection: &[usize],
    limits: ReadLimits,
) -> ParquetChecked<()> {
    let mut left = limits.table_bytes;
    for group in metadata.row_groups() {
        for column in projection.iter().filter_map(|at| group.columns().get(*at)) {
            let found = check_chunk(file, column, left)?;
            left = left.checked_sub(found).ok_or_else(|| {
                let size = size_text(limits.table_bytes);
                malformed(&exceeded(&format!("the table has more than {size}")).to_string())
            })?;
        }
    }
    Ok(())
}

/// Checks the pages of a column chunk; returns the sum of their decompressed lengths, or a number
/// above `limit` as soon as the sum exceeds it. A page header that cannot be parsed is left to the
/// reader, which reports it.
fn check_chunk(
    file: &BoundedFile,
    column: &ColumnChunkMetaData,
    limit: u64,
) -> ParquetChecked<u64> {
    let (start, len) = column.byte_range();
    let end = start.saturating_add(len).min(file.len);
    let (mut at, mut total) = (start, 0_u64);
    while at < end && total <= limit {
        let Some(page) = page_at(file, at, end)? else {
            break;
        };
        check_page(file, at, page, column.compression())?;
        total = total.saturating_add(page.uncompressed);
        at = at
            .saturating_add(page.header)
            .saturating_add(page.compressed);
    }
    Ok(total)
}

fn page_at(file: &BoundedFile, at: u64, end: u64) -> io::Result<Option<PageSizes>> {
    let mut n = HEADER_BYTES;
    loop {
        let bytes = file.some_bytes(at, n.min(end - at))?;
        match page_sizes(&bytes) {
            None if n < end - at => n = n.saturating_mul(8),
            found => return Ok(found),
        }
    }
}

/// Checks that a page can decompress to its stated length, and that there is memory for it.
fn check_page(
    file: &BoundedFile,
    at: u64,
    page: PageSizes,
    compression: Compression,
) -> ParquetChecked<()> {
    let max_ratio = match compression {
        Compression::UNCOMPRESSED => 1,
        Compression::SNAPPY => 64,
        Compression::LZ4 | Compression::LZ4_RAW => 256,
        Compression::GZIP(_) => MAX_GZIP_RATIO,
        _ => 1 << 16,
    };
    // a few bytes more, for tiny pages
    let longest = page
        .compressed
        .saturating_mul(max_ratio)
        .saturating_add(1024);
    if page.uncompressed > longest {
        return Err(malformed("a page has an impossible decompressed length"));
    }
    // a value of a dictionary takes at least one byte
    if page.n_dictionary_values > page.uncompressed {
        return Err(malformed("a dictionary has an impossible number of values"));
    }
    let memory = Vec::<u8>::new().try_reserve_exact(page.uncompressed as usize);
    memory.map_err(|_| malformed("not enough memory for a page"))?;
    let could_be = page.compressed.saturating_mul(MAX_GZIP_RATIO);
    if matches!(compression, Compression::GZIP(_)) && could_be > MAX_UNCHECKED_GZIP {
        let body = file.reader_at(at + page.header)?.take(page.compressed);
        let text = MultiGzDecoder::new(BufReader::new(body)).take(page.uncompressed + 1);
        if io::copy(&mut BufReader::new(text), &mut io::sink())? > page.uncompressed {
            return Err(malformed("a page is longer than its header says"));
        }
    }
    Ok(())
}
