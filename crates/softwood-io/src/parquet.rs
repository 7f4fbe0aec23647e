//! Parquet files, in and out.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use softwood::{Error, Result, Table};

use crate::arrow::{TableGatherer, batches_of, schema_of};
use crate::options::ReadOptions;
use crate::source::problem_of;

const MARK: [u8; 4] = *b"PAR1";

/// Reads a table.
pub(crate) fn read(mut file: File, options: &ReadOptions) -> Result<Table> {
    check_marks(&mut file)?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| damaged(&e))?;
    let mut gather = TableGatherer::new(builder.schema(), options)?;
    for batch in builder.build().map_err(|e| damaged(&e))? {
        let batch = batch.map_err(|e| damaged(&e))?;
        gather.push(&batch)?;
    }
    gather.finish()
}

/// A Parquet file begins and ends with its mark; one cut short lacks the second.
fn check_marks(file: &mut File) -> Result<()> {
    let (head, tail, len) = ends(file).map_err(|error| Error::Table(problem_of(&error, "read")))?;
    let problem = if len == 0 {
        "the file is empty"
    } else if head != MARK {
        "it is not a Parquet file: it does not begin with `PAR1`"
    } else if tail == *b"PARE" {
        "it is an encrypted Parquet file, which cannot be read"
    } else if tail != MARK || len < 12 {
        "the Parquet file is truncated: it does not end with `PAR1`"
    } else {
        return Ok(());
    };
    Err(Error::Table(problem.to_owned()))
}

/// First and last four bytes, and the length; zeros where there are fewer.
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

/// Writes a table, packed by zstd.
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
