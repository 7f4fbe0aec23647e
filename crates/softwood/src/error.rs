//! The one error type, and whose mistake each variant is. No exit codes here: the program knows those.

use std::path::PathBuf;

/// What can go wrong, in words a user can act on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// One or more parameters break their rules; every broken rule is listed.
    #[error("{}", .0.join("; "))]
    Parameters(Vec<String>),
    /// A cell that cannot be used. `row` counts data rows from 1, the header apart.
    #[error("column `{column}`, row {row}: {problem}")]
    Cell {
        /// Name of the column.
        column: String,
        /// Data row, counted from 1.
        row: usize,
        /// What was found and what would be right.
        problem: String,
    },
    /// A column that is absent, doubled or of the wrong kind.
    #[error("column `{column}`: {problem}")]
    Column {
        /// Name of the column.
        column: String,
        /// What was found and what would be right.
        problem: String,
    },
    /// A table that cannot be used as a whole.
    #[error("{0}")]
    Table(String),
    /// A file that cannot be read or written.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was found and what would be right.
        problem: String,
    },
    /// Bytes that are not a model this version can read.
    #[error("not a readable model: {0}")]
    Format(String),
    /// Any error about the content of a file, with the file's name in front.
    #[error("{}: {inner}", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// What is wrong with its content.
        inner: Box<Error>,
    },
    /// The caller asked to stop before there was a result.
    #[error("stopped before there was a result")]
    Cancelled,
    /// An iteration left the finite numbers.
    #[error("training diverged at step {step}: {what}")]
    Diverged {
        /// Step at which it was seen.
        step: usize,
        /// What was no longer finite.
        what: String,
    },
}

/// Result with Softwood's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A message about one column.
    pub fn column(column: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Column {
            column: column.into(),
            problem: problem.into(),
        }
    }

    /// A message about one cell; `row` counts data rows from 1.
    pub fn cell(column: impl Into<String>, row: usize, problem: impl Into<String>) -> Self {
        Self::Cell {
            column: column.into(),
            row,
            problem: problem.into(),
        }
    }

    /// A message about one file.
    pub fn file(path: impl Into<PathBuf>, problem: impl Into<String>) -> Self {
        Self::File {
            path: path.into(),
            problem: problem.into(),
        }
    }

    /// The same error with the name of the file it was found in.
    #[must_use]
    pub fn within(self, path: impl Into<PathBuf>) -> Self {
        match self {
            Self::File { .. } | Self::In { .. } | Self::Parameters(_) | Self::Cancelled => self,
            other => Self::In {
                path: path.into(),
                inner: Box::new(other),
            },
        }
    }

    /// Whether the user can mend it; a diverged training is the only failure that is ours.
    pub fn is_user_error(&self) -> bool {
        match self {
            Self::Diverged { .. } => false,
            Self::In { inner, .. } => inner.is_user_error(),
            _ => true,
        }
    }
}
