//! Reads and writes Parquet files.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use softwood::{Error, Result, Table};

use crate::arrow::{TableBuilder, batches_of, schema_of};
use crate::options::ReadOptions;
use crate::source::io_problem;

/// Magic bytes at the beginning and the end of a Parquet file.
const MAGIC: [u8; 4] = *b"PAR1";

/// Reads a table.
pub(crate) fn read(mut file: File, options: &ReadOptions) -> Result<Table> {
    check_magic(&mut file)?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| damaged(&e))?;
    let mut table = TableBuilder::new(reader.schema(), options)?;
    for batch in reader.build().map_err(|e| damaged(&e))? {
        let batch = batch.map_err(|e| damaged(&e))?;
        table.push(&batch)?;
    }
    table.finish()
}

/// Checks that the file begins and ends with the magic bytes; a truncated file lacks the second.
fn check_magic(file: &mut File) -> Result<()> {
    let (head, tail, len) = ends(file).map_err(|error| Error::Table(io_problem(&error, "read")))?;
    let problem = if len == 0 {
        "the file is empty"
    } else if head != MAGIC {
        "not a Parquet file: it does not begin with `PAR1`"
    } else if tail == *b"PARE" {
        "the Parquet file is encrypted; encrypted files are not supported"
    } else if tail != MAGIC || len < 12 {
        "the Parquet file is truncated: it does not end with `PAR1`"
    } else {
        return Ok(());
    };
    Err(Error::Table(problem.to_owned()))
}

/// First and last four bytes (zeros if the file is shorter), and the length.
fn ends(file: &mut File) -> std::io::Result<([u8; 4], [u8; 4], u64)> {
    let (mut head, mut tail) = ([0; 4], [0; 4]);
    let len = file.seek(SeekFrom::End(0))?;
    if len >= 4 {
        file.seek(SeekFrom::End(-4))?;
        file.read_exact(&mut tail)?;
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(&mut head)?;
    }
    Ok((head, tail, len))
}

fn damaged(error: &dyn std::error::Error) -> Error {
    Error::Table(format!("the Parquet file is damaged or truncated: {error}"))
}

/// Writes a table with zstd compression.
pub(crate) fn write(out: &mut (dyn Write + Send), table: &Table) -> std::io::Result<()> {
    let schema = schema_of(table);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let failed = |error: ParquetError| std::io::Error::other(error);
    let mut writer = ArrowWriter::try_new(out, schema.clone(), Some(properties)).map_err(failed)?;
    for batch in batches_of(table, &schema) {
        writer
            .write(&batch.map_err(std::io::Error::other)?)
            .map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    Ok(())
}
