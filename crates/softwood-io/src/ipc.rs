//! Reads and writes Arrow IPC (Feather version 2): writes the file format, reads the file and the
//! stream format.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::FileWriter;
use arrow_schema::ArrowError;
use softwood::{Error, Result, Table};

use crate::arrow::TableBuilder;
use crate::arrow_write::{batches_of, schema_of};
use crate::ipc_check::{check_file, check_stream};
use crate::options::ReadOptions;
use crate::read::ReadTable;
use crate::source::io_problem;

/// Magic bytes at the beginning and the end of the file format.
const MAGIC: &[u8; 6] = b"ARROW1";

/// Reads a table; the first bytes decide between the file and the stream format.
pub(crate) fn read(file: File, options: &ReadOptions) -> Result<ReadTable> {
    let mut file = BufReader::new(file);
    let (head, tail) = ends(&mut file).map_err(|e| Error::Table(io_problem(&e, "read")))?;
    if head.starts_with(MAGIC) {
        if tail != *MAGIC {
            let problem = "the Arrow file is truncated: it does not end with `ARROW1`";
            return Err(Error::Table(problem.to_owned()));
        }
        check_file(&mut file, options.limits).map_err(damaged)?;
        let schema = FileReader::try_new(&mut file, None)
            .map_err(damaged)?
            .schema();
        let table = TableBuilder::new(&schema, options)?;
        let projection = Some(table.projection());
        let reader = FileReader::try_new(file, projection).map_err(damaged)?;
        read_batches(table, reader)
    } else {
        check_stream_start(&head)?;
        check_stream(&mut file, options.limits).map_err(damaged)?;
        let schema = StreamReader::try_new(&mut file, None)
            .map_err(damaged)?
            .schema();
        let table = TableBuilder::new(&schema, options)?;
        file.rewind()
            .map_err(|e| Error::Table(io_problem(&e, "read")))?;
        let projection = Some(table.projection());
        let reader = StreamReader::try_new(file, projection).map_err(damaged)?;
        read_batches(table, reader)
    }
}

fn read_batches(
    mut table: TableBuilder,
    batches: impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>>,
) -> Result<ReadTable> {
    for batch in batches {
        table.push(&batch.map_err(damaged)?)?;
    }
    table.finish()
}

/// First eight and last six bytes. Leaves the reader at the beginning.
fn ends(file: &mut (impl Read + Seek)) -> io::Result<(Vec<u8>, [u8; 6])> {
    let mut head = Vec::new();
    file.by_ref().take(8).read_to_end(&mut head)?;
    let mut tail = [0; 6];
    if head.len() == 8 {
        file.seek(SeekFrom::End(-6))?;
        file.read_exact(&mut tail)?;
    }
    file.rewind()?;
    Ok((head, tail))
}

/// Rejects a file that is not an IPC stream. A stream begins with the continuation marker, or,
/// before format version 5, with the length of its schema, which is far below a megabyte.
fn check_stream_start(head: &[u8]) -> Result<()> {
    let old_stream = head.len() == 8 && head[2..4] == [0; 2] && head[..2] != [0; 2];
    let problem = if head.is_empty() {
        "the file is empty"
    } else if head.starts_with(b"FEA1") {
        "Feather version 1 is not supported; save the file as Feather version 2"
    } else if !head.starts_with(&[0xff; 4]) && !old_stream {
        "not an Arrow IPC file: it begins neither with `ARROW1` nor with the marker of a stream"
    } else {
        return Ok(());
    };
    Err(Error::Table(problem.to_owned()))
}

#[allow(clippy::needless_pass_by_value)] // passed to `map_err` by name
fn damaged(error: ArrowError) -> Error {
    Error::Table(format!("the Arrow data is damaged or truncated: {error}"))
}

/// Writes a table as an IPC file.
pub(crate) fn write(out: &mut dyn Write, table: &Table) -> io::Result<()> {
    let schema = schema_of(table);
    let mut writer = FileWriter::try_new(out, &schema).map_err(io_error)?;
    for batch in batches_of(table, &schema) {
        writer.write(&batch.map_err(io_error)?).map_err(io_error)?;
    }
    writer.finish().map_err(io_error)
}

fn io_error(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::NullArray;
    use arrow_ipc::CompressionType;
    use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
    use softwood::Column;

    fn table() -> Table {
        let texts: Vec<Option<String>> = (0..300)
            .map(|n| (n % 4 > 0).then(|| format!("t{}", n % 7)))
            .collect();
        let columns = vec![
            Column::numeric("a", (0..300).map(|n| f64::from(n % 9)).collect()),
            Column::categorical("b", &texts),
        ];
        Table::new(columns).unwrap()
    }

    fn stream() -> Vec<u8> {
        let schema = schema_of(&table());
        let mut writer = StreamWriter::try_new(Vec::new(), &schema).unwrap();
        for batch in batches_of(&table(), &schema) {
            writer.write(&batch.unwrap()).unwrap();
        }
        writer.into_inner().unwrap()
    }

    fn compressed_file(codec: CompressionType) -> Vec<u8> {
        let schema = schema_of(&table());
        let options = IpcWriteOptions::default()
            .try_with_compression(Some(codec))
            .unwrap();
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
        for batch in batches_of(&table(), &schema) {
            writer.write(&batch.unwrap()).unwrap();
        }
        writer.into_inner().unwrap()
    }

    fn read_bytes(bytes: &[u8]) -> Result<Table> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        let read = || Ok(read(file, &ReadOptions::default())?.table);
        crate::catch_panic::catch_panic("Arrow", read)
    }

    #[test]
    fn streams_and_compressed_files_are_read() {
        let files = [CompressionType::LZ4_FRAME, CompressionType::ZSTD].map(compressed_file);
        for bytes in files.iter().chain([&stream()]) {
            assert_eq!(read_bytes(bytes).unwrap(), table());
        }
    }

    #[test]
    fn a_file_that_claims_more_rows_than_the_limits_allow_is_rejected() {
        let nothing: arrow_array::ArrayRef = std::sync::Arc::new(NullArray::new(1 << 40));
        let batch = RecordBatch::try_from_iter([("a", nothing)]).unwrap();
        let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        let bytes = writer.into_inner().unwrap();
        let message = read_bytes(&bytes).unwrap_err().to_string();
        assert!(message.contains("claims 1099511627776 rows"), "{message}");
        assert!(message.contains("--no-size-limits"), "{message}");
    }

    #[test]
    fn a_stream_truncated_inside_a_message_is_rejected() {
        let bytes = stream();
        let message = read_bytes(&bytes[..bytes.len() / 2]).unwrap_err();
        assert!(message.to_string().contains("truncated"), "{message}");
    }

    #[test]
    fn damaged_streams_and_compressed_files_do_not_panic() {
        for mut bytes in [stream(), compressed_file(CompressionType::LZ4_FRAME)] {
            for at in (0..bytes.len()).step_by(3) {
                bytes[at] ^= 0xff;
                let _ = read_bytes(&bytes);
                bytes[at] ^= 0xff;
            }
        }
    }
}
