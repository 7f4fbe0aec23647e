//! Which format a file has: by its suffix, and gzip also by its first bytes.

use std::path::Path;

use softwood::{Error, Result};

/// First bytes of a gzip stream.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

const KNOWN: &str = ".csv, .csv.gz, .tsv, .tsv.gz, .parquet, .pq, .arrow, .ipc, .feather";

/// Format of a table on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileFormat {
    /// Delimited text.
    Text {
        /// Between the cells.
        delimiter: u8,
        /// Whether the suffix promises gzip.
        gzip: bool,
    },
    /// Apache Parquet.
    #[cfg(feature = "parquet")]
    Parquet,
    /// Arrow IPC; reading also takes the stream format.
    #[cfg(feature = "ipc")]
    Ipc,
}

/// CSV on a standard stream.
pub(crate) const PLAIN_CSV: FileFormat = FileFormat::Text {
    delimiter: b',',
    gzip: false,
};

/// Whether the path stands for standard input or output.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

impl FileFormat {
    /// The format the suffix tells, without regard to case; `-` is CSV.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        if is_stream(path) {
            return Ok(PLAIN_CSV);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_ascii_lowercase();
        let (stem, gzip) = match name.strip_suffix(".gz") {
            Some(stem) => (stem, true),
            None => (name.as_str(), false),
        };
        let suffix = stem.rsplit_once('.').map(|(_, suffix)| suffix);
        match (suffix, gzip) {
            (Some("csv"), _) => Ok(Self::Text {
                delimiter: b',',
                gzip,
            }),
            (Some("tsv"), _) => Ok(Self::Text {
                delimiter: b'\t',
                gzip,
            }),
            #[cfg(feature = "parquet")]
            (Some("parquet" | "pq"), false) => Ok(Self::Parquet),
            #[cfg(not(feature = "parquet"))]
            (Some("parquet" | "pq"), false) => Err(left_out(path, "Parquet", "parquet")),
            #[cfg(feature = "ipc")]
            (Some("arrow" | "ipc" | "feather"), false) => Ok(Self::Ipc),
            #[cfg(not(feature = "ipc"))]
            (Some("arrow" | "ipc" | "feather"), false) => Err(left_out(path, "Arrow IPC", "ipc")),
            _ => {
                let problem =
                    format!("the suffix does not tell the format; the known ones are {KNOWN}");
                Err(Error::file(path, problem))
            }
        }
    }
}

/// The answer to a format that this build cannot read or write.
#[cfg(not(all(feature = "parquet", feature = "ipc")))]
fn left_out(path: &Path, format: &str, feature: &str) -> Error {
    let problem = format!(
        "this build leaves {format} out; build softwood-io with its feature `{feature}`, or use a CSV file"
    );
    Error::file(path, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_tell_the_format_in_any_case() {
        let of = |name: &str| FileFormat::of(Path::new(name)).unwrap();
        assert_eq!(of("-"), PLAIN_CSV);
        assert_eq!(of("dir.x/a.b.CSV"), PLAIN_CSV);
        let tsv = FileFormat::Text {
            delimiter: b'\t',
            gzip: true,
        };
        assert_eq!(of("a.Tsv.GZ"), tsv);
        #[cfg(feature = "parquet")]
        for name in ["a.parquet", "a.PQ"] {
            assert_eq!(of(name), FileFormat::Parquet);
        }
        #[cfg(feature = "ipc")]
        for name in ["a.arrow", "a.ipc", "a.Feather"] {
            assert_eq!(of(name), FileFormat::Ipc);
        }
    }

    #[test]
    fn other_suffixes_are_refused_with_the_known_ones() {
        for name in ["a", "a.xlsx", "csv", "a.parquet.gz", "a.gz", ".."] {
            let message = FileFormat::of(Path::new(name)).unwrap_err().to_string();
            assert!(message.contains(".feather"), "{message}");
        }
    }
}
