//! Writing by suffix: whole or not at all.

use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use softwood::{Error, Result, Table};
use tempfile::NamedTempFile;

use crate::csv;
#[cfg(feature = "ipc")]
use crate::ipc;
#[cfg(feature = "parquet")]
use crate::parquet;
use crate::sniff::{FileFormat, is_stream};
use crate::source::problem_of;

/// Writes the table to `path`: CSV, TSV, Parquet or Arrow IPC by suffix, text packed by gzip where it ends in `.gz`;
/// `-` is CSV on standard output, where a reader that has seen enough is no error. A file appears whole or not at all.
///
/// Missing cells are empty in text and null elsewhere; so are categories without a name ([`softwood::UNSEEN`]).
///
/// # Errors
/// When the suffix is unknown, the folder is not there, the target is a directory, or the system refuses. Messages name
/// the file.
pub fn write_table(path: &Path, table: &Table) -> Result<()> {
    let format = FileFormat::of(path)?;
    if table.columns().is_empty() {
        return Err(Error::file(path, "there are no columns to write"));
    }
    if is_stream(path) {
        let mut out = io::stdout();
        return forgive_closed(put(&mut out, format, table))
            .map_err(|error| Error::file("standard output", problem_of(&error, "write")));
    }
    let target = target_of(path)?;
    let told = |error: &io::Error| Error::file(path, problem_of(error, "write"));
    let file = temporary_beside(&target).map_err(|error| told(&error))?;
    let mut out = BufWriter::new(file);
    put(&mut out, format, table).map_err(|error| told(&error))?;
    let file = out.into_inner().map_err(|error| told(error.error()))?;
    file.persist(&target).map_err(|error| told(&error.error))?;
    Ok(())
}

/// Someone who reads only the beginning of our output, as `head` does, has what he wants.
fn forgive_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn put(out: &mut (dyn Write + Send), format: FileFormat, table: &Table) -> io::Result<()> {
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
            let mut packed = GzEncoder::new(&mut *out, Compression::default());
            csv::write(&mut packed, delimiter, table)?;
            packed.finish()?;
        }
    }
    out.flush()
}

/// The file to replace: a link is followed, so that it stays a link.
fn target_of(path: &Path) -> Result<PathBuf> {
    if let Ok(about) = fs::metadata(path) {
        let problem = if about.is_dir() {
            "it is a directory; name a file"
        } else if !about.is_file() {
            "it is not a regular file"
        } else {
            return Ok(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
        };
        return Err(Error::file(path, problem));
    }
    let folder = folder_of(path);
    match fs::metadata(folder) {
        Ok(about) if about.is_dir() => Ok(path.to_owned()),
        Ok(_) => {
            let problem = format!("`{}` is not a folder", folder.display());
            Err(Error::file(path, problem))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let problem = format!(
                "the folder `{}` does not exist; make it first",
                folder.display()
            );
            Err(Error::file(path, problem))
        }
        Err(error) => Err(Error::file(path, problem_of(&error, "write"))),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file under a name of its own in the same folder, with the permissions of the file it will replace, or those that
/// any new file gets. It is removed when dropped.
fn temporary_beside(target: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".softwood-");
    let before = fs::metadata(target).map(|about| about.permissions());
    #[cfg(unix)]
    if before.is_err() {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder_of(target))?;
    if let Ok(permissions) = before {
        file.as_file().set_permissions(permissions)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood::Column;

    /// Takes a few bytes, then fails.
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
        // few rows fail when the buffer is flushed, many while it is filled
        for n_rows in [100, 100_000] {
            let table = Table::new(vec![Column::numeric("a", vec![1.0; n_rows])]).unwrap();
            let closed = put(&mut Failing(ErrorKind::BrokenPipe, 10), format, &table);
            assert!(forgive_closed(closed).is_ok());
            let full = put(&mut Failing(ErrorKind::StorageFull, 10), format, &table);
            assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);
        }
    }

    #[cfg(all(feature = "parquet", feature = "ipc"))]
    #[test]
    fn every_format_tells_a_failing_disk() {
        let table = Table::new(vec![Column::numeric("a", vec![1.0; 100])]).unwrap();
        for name in ["a.csv", "a.tsv.gz", "a.parquet", "a.arrow"] {
            let format = FileFormat::of(Path::new(name)).unwrap();
            let written = put(&mut Failing(ErrorKind::StorageFull, 3), format, &table);
            assert!(written.is_err(), "{name}");
        }
    }
}
