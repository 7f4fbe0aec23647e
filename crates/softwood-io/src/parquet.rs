//! Reads and writes Parquet files.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use softwood::{Error, Result, Table};

use crate::arrow::TableBuilder;
use crate::arrow_write::{batches_of, schema_of};
use crate::options::ReadOptions;
use crate::parquet_check::{BoundedFile, check_footer, check_pages};
use crate::read::ReadTable;
use crate::source::io_problem;

/// Magic bytes at the beginning and the end of a Parquet file.
const MAGIC: [u8; 4] = *b"PAR1";

/// Reads a table.
pub(crate) fn read(mut file: File, options: &ReadOptions) -> Result<ReadTable> {
    check_magic(&mut file)?;
    let open = || BoundedFile::new(file.try_clone()?);
    let failed = |error: std::io::Error| Error::Table(io_problem(&error, "read"));
    let bounded = open().map_err(failed)?;
    check_footer(&bounded).map_err(|e| damaged(&e))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(open().map_err(failed)?);
    let reader = reader.map_err(|e| damaged(&e))?;
    let mut table = TableBuilder::new(reader.schema(), options)?;
    let n_rows = reader.metadata().file_metadata().num_rows();
    table.check_size(u64::try_from(n_rows).unwrap_or(0))?;
    let projection = ProjectionMask::roots(reader.parquet_schema(), table.projection());
    let leaves = reader.parquet_schema().num_columns();
    let leaves: Vec<usize> = (0..leaves)
        .filter(|leaf| projection.leaf_included(*leaf))
        .collect();
    check_pages(&bounded, reader.metadata(), &leaves, options.limits).map_err(|e| damaged(&e))?;
    let reader = reader.with_projection(projection);
    for batch in reader.build().map_err(|e| damaged(&e))? {
        table.push(&batch.map_err(|e| damaged(&e))?)?;
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
