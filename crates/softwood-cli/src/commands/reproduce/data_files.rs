//! The tables of a data set below the data directory.

use std::path::{Path, PathBuf};

use serde::Serialize;
use softwood::{Dataset, Result, Roles, Table};
use softwood_io::{ReadOptions, read_table};

use super::published::PublishedSet;
use crate::args::TaskName;

/// Name of the target column.
const TARGET: &str = "target";

/// Suffixes of tables, in the order in which they are tried.
const SUFFIXES: [&str; 6] = ["parquet", "csv", "csv.gz", "tsv", "arrow", "feather"];

/// A table that is not there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MissingFile {
    pub(crate) set: String,
    /// Path below the data directory, without suffix.
    pub(crate) file: String,
    /// Where a user finds the data.
    pub(crate) source: Option<String>,
}

/// A data set of a table with its splits, or the file that is missing.
pub(crate) enum SetFiles {
    Found {
        data: Dataset,
        splits: Option<Table>,
    },
    Missing(MissingFile),
}

/// The table with this name, with any suffix.
pub(crate) fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let path = |suffix: &&str| folder.join(format!("{name}.{suffix}"));
    SUFFIXES.iter().map(path).find(|path| path.is_file())
}

/// The first missing file of a set; `None` if all are there.
pub(crate) fn missing(folder: &Path, set: &PublishedSet) -> Option<MissingFile> {
    let files = [&set.file, &set.splits].into_iter().flatten();
    let mut absent = files.filter(|name| find(folder, name).is_none());
    absent.next().map(|file| MissingFile {
        set: set.name.clone(),
        file: file.clone(),
        source: set.source.clone(),
    })
}

/// Reads the data and the splits of a set.
pub(crate) fn read(folder: &Path, set: &PublishedSet) -> Result<SetFiles> {
    if let Some(file) = missing(folder, set) {
        return Ok(SetFiles::Missing(file));
    }
    let roles = Roles {
        target: TARGET.to_owned(),
        classify: Some(set.task == TaskName::Classification),
        ..Roles::default()
    };
    let table = |name: &Option<String>| {
        let path = name.as_ref().and_then(|name| find(folder, name));
        path.map(|path| Ok((read_table(&path, &ReadOptions::default())?, path)))
            .transpose()
    };
    let (data, path) = table(&set.file)?.unwrap_or_default();
    let data = Dataset::from_table(data, &roles).map_err(|error| error.within(&path))?;
    let splits = table(&set.splits)?.map(|(splits, _)| splits);
    Ok(SetFiles::Found { data, splits })
}
