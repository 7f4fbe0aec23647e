//! Checks of input and output paths before a long computation starts, and messages about files and
//! directories that cannot be used.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use softwood::store::atomic::AtomicFile;
use softwood::{Error, Model, Result, load};

/// Whether the path is `-`: standard input or output.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Rejects two inputs from standard input, which can be read only once.
pub(crate) fn check_stdin_used_once(inputs: &[&Path]) -> Result<()> {
    if inputs.iter().filter(|path| is_stream(path)).count() < 2 {
        return Ok(());
    }
    Err(Error::Parameters(vec![
        "`-` is given twice, but standard input can be read only once; give a file for one of the two"
            .to_owned(),
    ]))
}

/// The message for a configuration file that cannot be read.
pub(crate) fn read_problem(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => "no permission to read this file".to_owned(),
        ErrorKind::IsADirectory => "this is a directory; give the path of a file".to_owned(),
        ErrorKind::InvalidData => "the file is not UTF-8 text".to_owned(),
        _ => format!("cannot read: {error}"),
    }
}

/// Rejects an output path that is not a regular file or is an input file, or whose directory does
/// not exist or cannot be written.
pub(crate) fn check_output(path: &Path, inputs: &[&Path]) -> Result<()> {
    if path.is_dir() {
        return Err(Error::file(
            path,
            "this is a directory; give the path of a file",
        ));
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        let problem = format!(
            "the directory `{}` does not exist; create it or choose another",
            folder.display()
        );
        return Err(Error::file(path, problem));
    }
    if inputs.iter().any(|input| is_same(input, path)) {
        return Err(Error::file(
            path,
            "this would overwrite an input file; choose another name",
        ));
    }
    // creates and removes a file: the only check that covers permissions, quotas and read-only disks
    AtomicFile::create(path).map(drop)
}

/// The message for a directory that cannot be created.
pub(crate) fn create_dir_problem(path: &Path, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            let file = path.ancestors().find(|part| part.is_file()).unwrap_or(path);
            format!("`{}` is a file; give a directory", file.display())
        }
        ErrorKind::PermissionDenied => "no permission to create this directory".to_owned(),
        _ => format!("cannot create this directory: {error}"),
    }
}

/// Reads the model file of a command that also takes a table. If the two are swapped, the error
/// says so.
pub(crate) fn read_model_for(model: &Path, data: &Path) -> Result<Box<dyn Model>> {
    load(model).map_err(|error| {
        let is_content_error = matches!(error, Error::In { .. } | Error::Format(_));
        if is_content_error && !is_stream(data) && load(data).is_ok() {
            let problem = format!(
                "this is not a model, but {} is: the model comes first",
                data.display()
            );
            return Error::file(model, problem);
        }
        error
    })
}

/// The directory of a file.
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
