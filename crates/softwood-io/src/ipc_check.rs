//! Checks the lengths stated in Arrow IPC files before they are read: the reader of the `arrow-ipc`
//! crate allocates and slices by those lengths, so each is first compared with the size of the
//! file.

use std::io::{Read, Seek, SeekFrom};

use arrow_ipc::reader::read_footer_length;
use arrow_ipc::{Block, Message, root_as_footer, root_as_message};
use arrow_schema::ArrowError;

use crate::limits::{ReadLimits, exceeded, size_text};

type IpcChecked<T> = std::result::Result<T, ArrowError>;

const CONTINUATION: [u8; 4] = [0xff; 4];
/// Upper bound of the compression ratio of zstd and LZ4.
const MAX_COMPRESSION_RATIO: u64 = 1 << 16;

fn malformed(what: &str) -> ArrowError {
    ArrowError::IpcError(what.to_owned())
}

/// Checks the lengths in the footer and the blocks of the file format. Leaves the reader at the
/// beginning.
pub(crate) fn check_file(file: &mut (impl Read + Seek), limits: ReadLimits) -> IpcChecked<()> {
    let len = file.seek(SeekFrom::End(0))?;
    let mut end = [0; 10];
    if len < end.len() as u64 {
        return Err(malformed("the footer is missing"));
    }
    file.seek(SeekFrom::End(-10))?;
    file.read_exact(&mut end)?;
    let footer_len = read_footer_length(end)? as u64;
    let start = (len - 10)
        .checked_sub(footer_len)
        .ok_or_else(|| malformed("the footer is longer than the file"))?;
    let bytes = bytes_at(file, start, footer_len)?;
    let footer = root_as_footer(&bytes).map_err(|error| malformed(&format!("footer: {error}")))?;
    if footer.schema().is_none() {
        return Err(malformed("the footer has no schema"));
    }
    let mut uncompressed = 0_u64;
    let blocks = footer.dictionaries().into_iter().flatten();
    for block in blocks.chain(footer.recordBatches().into_iter().flatten()) {
        uncompressed = uncompressed.saturating_add(check_block(file, block, len)?);
        check_total(uncompressed, limits)?;
    }
    file.rewind()?;
    Ok(())
}

/// Checks one block; returns the bytes of its uncompressed buffers.
fn check_block(file: &mut (impl Read + Seek), block: &Block, len: u64) -> IpcChecked<u64> {
    let stated = (
        u64::try_from(block.offset()),
        u64::try_from(block.metaDataLength()),
        u64::try_from(block.bodyLength()),
    );
    let (Ok(offset), Ok(meta_len @ 8..), Ok(body_len)) = stated else {
        return Err(malformed("a block has an impossible length"));
    };
    let body = offset.saturating_add(meta_len);
    if body.saturating_add(body_len) > len {
        return Err(malformed("a block ends beyond the file"));
    }
    let bytes = bytes_at(file, offset, meta_len)?;
    let skip = if bytes[..4] == CONTINUATION { 8 } else { 4 };
    let message = message_of(&bytes[skip..])?;
    check_buffers(file, &message, body, body_len)
}

/// Checks the lengths in the messages of the stream format. Leaves the reader at the beginning.
pub(crate) fn check_stream(file: &mut (impl Read + Seek), limits: ReadLimits) -> IpcChecked<()> {
    let len = file.seek(SeekFrom::End(0))?;
    let (mut at, mut uncompressed) = (0, 0_u64);
    while at + 4 <= len {
        let mut word: [u8; 4] = word_at(file, at)?;
        at += 4;
        if word == CONTINUATION {
            word = word_at(file, at)?;
            at += 4;
        }
        let meta_len = u64::try_from(i32::from_le_bytes(word))
            .map_err(|_| malformed("a message has a negative length"))?;
        if meta_len == 0 {
            break;
        }
        if meta_len > len - at {
            return Err(malformed("a message ends beyond the file"));
        }
        let bytes = bytes_at(file, at, meta_len)?;
        at += meta_len;
        let message = message_of(&bytes)?;
        let body_len = u64::try_from(message.bodyLength()).unwrap_or(u64::MAX);
        if body_len > len - at {
            return Err(malformed("a message ends beyond the file"));
        }
        let found = check_buffers(file, &message, at, body_len)?;
        uncompressed = uncompressed.saturating_add(found);
        check_total(uncompressed, limits)?;
        at += body_len;
    }
    file.rewind()?;
    Ok(())
}

/// Rejects a file whose buffers are too large together once they are decompressed.
fn check_total(uncompressed: u64, limits: ReadLimits) -> IpcChecked<()> {
    if uncompressed <= limits.table_bytes {
        return Ok(());
    }
    let problem = format!("the table has more than {}", size_text(limits.table_bytes));
    Err(malformed(&exceeded(&problem).to_string()))
}

/// Checks that every buffer lies inside the body of its message and has a plausible uncompressed
/// length; returns the sum of these lengths.
fn check_buffers(
    file: &mut (impl Read + Seek),
    message: &Message<'_>,
    body: u64,
    body_len: u64,
) -> IpcChecked<u64> {
    let dictionary = message.header_as_dictionary_batch();
    let batch = message
        .header_as_record_batch()
        .or_else(|| dictionary.and_then(|dictionary| dictionary.data()));
    let Some(batch) = batch else { return Ok(0) };
    let mut total = 0_u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let (Ok(offset), Ok(len)) = (
            u64::try_from(buffer.offset()),
            u64::try_from(buffer.length()),
        ) else {
            return Err(malformed("a buffer has a negative length"));
        };
        if offset.saturating_add(len) > body_len {
            return Err(malformed("a buffer ends beyond its message"));
        }
        let uncompressed = if batch.compression().is_some() && len > 0 {
            uncompressed_length(file, body + offset, len)?
        } else {
            len
        };
        total = total.saturating_add(uncompressed);
    }
    Ok(total)
}

/// The uncompressed length at the start of a compressed buffer; -1 marks a buffer that is stored
/// uncompressed. Memory for it is reserved and released, because the reader would abort.
fn uncompressed_length(file: &mut (impl Read + Seek), at: u64, len: u64) -> IpcChecked<u64> {
    if len < 8 {
        return Err(malformed("a compressed buffer lacks its length"));
    }
    let stated = i64::from_le_bytes(word_at(file, at)?);
    if stated == -1 {
        return Ok(len - 8);
    }
    let longest = MAX_COMPRESSION_RATIO.saturating_mul(len);
    let stated = u64::try_from(stated).unwrap_or(u64::MAX);
    if stated > longest {
        return Err(malformed("a compressed buffer has an impossible length"));
    }
    let memory = Vec::<u8>::new().try_reserve_exact(stated as usize);
    memory.map_err(|_| malformed("not enough memory for a compressed buffer"))?;
    Ok(stated)
}

fn message_of(bytes: &[u8]) -> IpcChecked<Message<'_>> {
    root_as_message(bytes).map_err(|error| malformed(&format!("message: {error}")))
}

fn word_at<const N: usize>(file: &mut (impl Read + Seek), at: u64) -> IpcChecked<[u8; N]> {
    let mut word = [0; N];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut word)?;
    Ok(word)
}

/// Reads `len` bytes at `at`; the caller has checked `len` against the size of the file.
fn bytes_at(file: &mut (impl Read + Seek), at: u64, len: u64) -> IpcChecked<Vec<u8>> {
    let mut bytes = vec![0; len as usize];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}
