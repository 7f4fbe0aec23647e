//! Checks of output paths that come before the work, so that no long fit is lost to a typing mistake.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;

use softwood::{Error, Model, Result, read_model};

/// Whether a path stands for standard input or output.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Refuses to read standard input for two things: the second would find it at its end.
pub(crate) fn check_one_stream(inputs: &[&Path]) -> Result<()> {
    if inputs.iter().filter(|path| is_stream(path)).count() < 2 {
        return Ok(());
    }
    Err(Error::Parameters(vec![
        "`-` is given twice, and standard input can be read only once; name a file for one of them"
            .to_owned(),
    ]))
}

/// What a failure to read a small file means, in words.
pub(crate) fn reading_problem(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => "there is no permission to read it".to_owned(),
        ErrorKind::IsADirectory => "it is a directory; name a file".to_owned(),
        ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
        _ => format!("cannot read it: {error}"),
    }
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

/// What a failure to make a folder means, in words.
pub(crate) fn folder_problem(path: &Path, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            let file = path.ancestors().find(|part| part.is_file()).unwrap_or(path);
            format!("`{}` is a file; name a folder", file.display())
        }
        ErrorKind::PermissionDenied => "there is no permission to make this folder".to_owned(),
        _ => format!("cannot make this folder: {error}"),
    }
}

/// Reads the model that rows of `data` are to meet; says so where the two were given the wrong way round.
pub(crate) fn model_for(model: &Path, data: &Path) -> Result<Box<dyn Model>> {
    read_model(model).map_err(|error| {
        let is_content = matches!(error, Error::In { .. } | Error::Format(_));
        if is_content && !is_stream(data) && read_model(data).is_ok() {
            let problem = format!(
                "it is not a model, but {} is: the model comes first",
                data.display()
            );
            return Error::file(model, problem);
        }
        error
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
