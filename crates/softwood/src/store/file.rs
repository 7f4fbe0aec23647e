//! Model files on disk: written atomically and compared with what was to be written.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::store::atomic::AtomicFile;
use crate::store::container;

/// Bytes that are compared at once.
const CHUNK: usize = 1 << 16;

/// Writes `bytes` to `path`, completely or not at all. The written file is read back and compared
/// before it replaces an earlier one.
///
/// # Errors
/// [`Error::File`] when the path is not that of a regular file, the directory is absent or the file
/// cannot be written; no temporary file remains.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    let written = file.write_all(bytes).and_then(|()| file.flush());
    match written.and_then(|()| holds(file.temporary(), bytes)) {
        Ok(true) => file.commit(),
        Ok(false) => Err(Error::file(
            path,
            "not written: the disk returned other bytes than were written to it; use another disk",
        )),
        Err(error) => Err(file.failed(&error)),
    }
}

/// Whether a file has exactly this content.
fn holds(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let mut found = vec![0; CHUNK.min(bytes.len())];
    for expected in bytes.chunks(CHUNK) {
        let found = &mut found[..expected.len()];
        match file.read_exact(found) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            read => read?,
        }
        if found != expected {
            return Ok(false);
        }
    }
    Ok(file.read(&mut [0])? == 0)
}

/// Reads a model file. A file that does not begin like one is rejected before the rest is read, and
/// what is not a regular file before it is opened: a pipe would wait for its writer.
///
/// # Errors
/// [`Error::File`] when the file cannot be read; [`Error::In`] when it does not begin like a model
/// file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let problem = |error: io::Error| Error::file(path, read_problem(&error));
    let metadata = fs::metadata(path).map_err(problem)?;
    if metadata.is_dir() {
        return Err(Error::file(path, "this is a directory, not a model file"));
    }
    if !metadata.is_file() {
        return Err(Error::file(
            path,
            "not a regular file, but a device, a pipe or a socket; copy the model to a file first",
        ));
    }
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
