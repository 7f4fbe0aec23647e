//! Checks of output paths that come before the work, so that no long fit is lost to a typing mistake.

use std::fs::{self, OpenOptions};
use std::path::Path;

use softwood::{Error, Result};

/// Whether a path stands for standard input or output.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Refuses an output whose folder is absent or closed to us, a folder, and one of the inputs.
pub(crate) fn check_output(path: &Path, inputs: &[&Path]) -> Result<()> {
    if path.is_dir() {
        return Err(Error::file(path, "it is a directory; name a file"));
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        let problem = format!(
            "the folder `{}` does not exist; make it, or choose another",
            folder.display()
        );
        return Err(Error::file(path, problem));
    }
    if inputs.iter().any(|input| is_same(input, path)) {
        return Err(Error::file(
            path,
            "would overwrite an input; choose another name",
        ));
    }
    check_writable(folder).map_err(|error| {
        let problem = format!(
            "cannot write into the folder `{}`: {error}",
            folder.display()
        );
        Error::file(path, problem)
    })
}

/// The folder a file stands in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// Permissions, quotas and read-only disks are asked in the one way that cannot be wrong: by writing.
fn check_writable(folder: &Path) -> std::io::Result<()> {
    let trial = folder.join(format!(".softwood-{}.trial", std::process::id()));
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&trial)?;
    fs::remove_file(trial)
}
