//! Arrow IPC (Feather version 2), in and out. Files are written; files and streams are read.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, SchemaRef};
use softwood::{Error, Result, Table};

use crate::arrow::{TableGatherer, batches_of, schema_of};
use crate::ipc_check::{check_file, check_stream};
use crate::options::ReadOptions;
use crate::source::problem_of;

const MARK: &[u8; 6] = b"ARROW1";

/// Reads a table, from a file or a stream as the first bytes say.
pub(crate) fn read(file: File, options: &ReadOptions) -> Result<Table> {
    let mut file = BufReader::new(file);
    let (head, tail) = ends(&mut file).map_err(|e| Error::Table(problem_of(&e, "read")))?;
    if head.starts_with(MARK) {
        if tail != *MARK {
            let problem = "the Arrow file is truncated: it does not end with `ARROW1`";
            return Err(Error::Table(problem.to_owned()));
        }
        check_file(&mut file).map_err(damaged)?;
        let reader = FileReader::try_new(file, None).map_err(damaged)?;
        gather(&reader.schema(), reader, options)
    } else {
        refuse_others(&head)?;
        check_stream(&mut file).map_err(damaged)?;
        let reader = StreamReader::try_new(file, None).map_err(damaged)?;
        gather(&reader.schema(), reader, options)
    }
}

fn gather(
    schema: &SchemaRef,
    batches: impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>>,
    options: &ReadOptions,
) -> Result<Table> {
    let mut gather = TableGatherer::new(schema, options)?;
    for batch in batches {
        gather.push(&batch.map_err(damaged)?)?;
    }
    gather.finish()
}

/// First eight and last six bytes; the reader is left at the beginning.
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

/// A stream begins with a continuation mark, or, before format version 5, with the length of its schema, which is far
/// below a megabyte.
fn refuse_others(head: &[u8]) -> Result<()> {
    let old_stream = head.len() == 8 && head[2..4] == [0; 2] && head[..2] != [0; 2];
    let problem = if head.is_empty() {
        "the file is empty"
    } else if head.starts_with(b"FEA1") {
        "it is a Feather file of version 1, which cannot be read; write it again as version 2"
    } else if !head.starts_with(&[0xff; 4]) && !old_stream {
        "it is not an Arrow IPC file: it begins neither with `ARROW1` nor with a stream's mark"
    } else {
        return Ok(());
    };
    Err(Error::Table(problem.to_owned()))
}

#[allow(clippy::needless_pass_by_value)] // it stands in `map_err`
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

    fn packed(codec: CompressionType) -> Vec<u8> {
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
        crate::guard::guarded(|| read(file, &ReadOptions::default()))
    }

    #[test]
    fn streams_and_packed_files_are_read() {
        let packed = [CompressionType::LZ4_FRAME, CompressionType::ZSTD].map(packed);
        for bytes in packed.iter().chain([&stream()]) {
            assert_eq!(read_bytes(bytes).unwrap(), table());
        }
    }

    #[test]
    fn a_cut_stream_is_refused_inside_a_message() {
        let bytes = stream();
        let message = read_bytes(&bytes[..bytes.len() / 2]).unwrap_err();
        assert!(message.to_string().contains("truncated"), "{message}");
    }

    #[test]
    fn damaged_streams_and_packed_files_do_no_harm() {
        for mut bytes in [stream(), packed(CompressionType::LZ4_FRAME)] {
            for at in (0..bytes.len()).step_by(3) {
                bytes[at] ^= 0xff;
                let _ = read_bytes(&bytes);
                bytes[at] ^= 0xff;
            }
        }
    }
}
