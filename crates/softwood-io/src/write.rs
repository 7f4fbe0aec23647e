//! Writes a table in the format of its suffix, atomically.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use softwood::store::atomic::AtomicFile;
use softwood::{Error, Result, Table};

use crate::csv;
use crate::file_format::{FileFormat, is_stream};
#[cfg(feature = "ipc")]
use crate::ipc;
#[cfg(feature = "parquet")]
use crate::parquet;
use crate::source::io_problem;

/// Writes the table to `path`: CSV, TSV, Parquet or Arrow IPC by suffix, text compressed by gzip if
/// the suffix ends in `.gz`; `-` is CSV on standard output, where a closed pipe is not an error.
/// Writing is atomic: the file appears complete or not at all. A symbolic link is followed, and a
/// replaced file keeps its permissions.
///
/// Missing cells and unseen categories ([`softwood::data::UNSEEN`]) are empty in text and null elsewhere.
///
/// # Errors
/// When the suffix is unknown, the folder does not exist, the path is a directory, a device or a
/// pipe, or the system fails to write. Messages name the file.
pub fn write_table(path: &Path, table: &Table) -> Result<()> {
    let format = FileFormat::of(path)?;
    if table.columns().is_empty() {
        return Err(Error::file(path, "there are no columns to write"));
    }
    if is_stream(path) {
        let mut out = io::stdout();
        return ignore_closed_pipe(write_format(&mut out, format, table))
            .map_err(|error| Error::file("standard output", io_problem(&error, "write")));
    }
    let mut file = AtomicFile::create(path)?;
    let mut out = BufWriter::new(&mut file);
    let written = write_format(&mut out, format, table);
    drop(out);
    written.map_err(|error| file.failed(&error))?;
    file.commit()
}

/// Treats a closed pipe as success: a reader such as `head` stops before the end of the output.
fn ignore_closed_pipe(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn write_format(out: &mut (dyn Write + Send), format: FileFormat, table: &Table) -> io::Result<()> {
    match format {
        #[cfg(feature = "parquet")]
        FileFormat::Parquet => parquet::write(out, table)?,
        #[cfg(feature = "ipc")]
        FileFormat::Ipc => ipc::write(out, table)?,
        FileFormat::Text {
            delimiter,
            gzip: false,
        } => csv::write(out, delimiter, table)?,
        FileFormat::Text {
            delimiter,
            gzip: true,
        } => {
            let mut encoder = GzEncoder::new(&mut *out, Compression::default());
            csv::write(&mut encoder, delimiter, table)?;
            encoder.finish()?;
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood::Column;

    /// Accepts a given number of bytes, then fails.
    struct Failing(ErrorKind, usize);

    impl Write for Failing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.1 == 0 {
                return Err(self.0.into());
            }
            let taken = bytes.len().min(self.1);
            self.1 -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_success_and_a_full_disk_is_not() {
        let format = FileFormat::of(Path::new("-")).unwrap();
        // with few rows the flush fails, with many a write
        for n_rows in [100, 100_000] {
            let table = Table::new(vec![Column::numeric("a", vec![1.0; n_rows])]).unwrap();
            let closed = write_format(&mut Failing(ErrorKind::BrokenPipe, 10), format, &table);
            assert!(ignore_closed_pipe(closed).is_ok());
            let full = write_format(&mut Failing(ErrorKind::StorageFull, 10), format, &table);
            assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);
        }
    }

    #[cfg(all(feature = "parquet", feature = "ipc"))]
    #[test]
    fn every_format_reports_a_full_disk() {
        let table = Table::new(vec![Column::numeric("a", vec![1.0; 100])]).unwrap();
        for name in ["a.csv", "a.tsv.gz", "a.parquet", "a.arrow"] {
            let format = FileFormat::of(Path::new(name)).unwrap();
            let written = write_format(&mut Failing(ErrorKind::StorageFull, 3), format, &table);
            assert!(written.is_err(), "{name}");
        }
    }
}
