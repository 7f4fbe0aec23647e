//! Model files on disk: written under a temporary name and then renamed, so that no reader sees a
//! partial file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::store::container;

/// Writes `bytes` to `path`, completely or not at all.
///
/// # Errors
/// [`Error::File`] when the folder is absent or the file cannot be written; no temporary file
/// remains.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if path.is_dir() {
        return Err(Error::file(path, "this is a folder; give a file name"));
    }
    let temporary = temporary_name(path)?;
    let written = write_new(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        // the file may not exist; only the first error is reported
        let _ = fs::remove_file(&temporary);
        Error::file(path, write_problem(path, &error))
    })
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A file name in the same folder that no other running process uses.
fn temporary_name(path: &Path) -> Result<PathBuf> {
    let name = path
        .file_name()
        .ok_or_else(|| Error::file(path, "this is not the name of a file"))?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.tmp", std::process::id()));
    Ok(path.with_file_name(temporary))
}

fn write_problem(path: &Path, error: &io::Error) -> String {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    match error.kind() {
        ErrorKind::NotFound if !folder.exists() => format!(
            "cannot be written: the folder {} does not exist; make it first",
            folder.display()
        ),
        ErrorKind::PermissionDenied => format!(
            "cannot be written: no permission to write in the folder {}",
            folder.display()
        ),
        _ => format!("cannot be written: {error}"),
    }
}

/// Reads a model file. A file that does not begin like one is rejected before the rest is read.
///
/// # Errors
/// [`Error::File`] when the file cannot be read; [`Error::In`] when it does not begin like a model
/// file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    if path.is_dir() {
        return Err(Error::file(path, "this is a folder, not a model file"));
    }
    let problem = |error: io::Error| Error::file(path, read_problem(&error));
    let mut file = File::open(path).map_err(problem)?;
    let mut bytes = Vec::new();
    Read::by_ref(&mut file)
        .take(container::MAGIC.len() as u64)
        .read_to_end(&mut bytes)
        .map_err(problem)?;
    container::check_start(&bytes).map_err(|error| error.within(path))?;
    file.read_to_end(&mut bytes).map_err(problem)?;
    Ok(bytes)
}

fn read_problem(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => "no permission to read it".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}
