//! Where bytes come from: a file, or memory where a stream cannot be read twice. Turns failures of the system into words.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use softwood::{Error, Result};

use crate::sniff::{GZIP, is_stream};

/// The mark some programs put before UTF-8 text.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Bytes that can be read more than once.
#[derive(Debug)]
pub(crate) enum InputSource<'a> {
    /// A regular file.
    File(&'a Path),
    /// All the bytes.
    Memory(Cow<'a, [u8]>),
}

/// The name under which errors speak of a path.
pub(crate) fn input_name(path: &Path) -> PathBuf {
    if is_stream(path) {
        PathBuf::from("standard input")
    } else {
        path.to_owned()
    }
}

/// What an input failure means, for a message.
pub(crate) fn problem_of(error: &io::Error, act: &str) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => format!("there is no permission to {act} it"),
        ErrorKind::IsADirectory => "it is a directory; name a file".to_owned(),
        _ => format!("cannot {act} it: {error}"),
    }
}

/// What a failure to read text means, packed or not.
pub(crate) fn reading_problem(error: &io::Error, gzip: bool) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof if gzip => {
            "the gzip data ends early; the file is truncated".to_owned()
        }
        ErrorKind::InvalidData | ErrorKind::InvalidInput if gzip => {
            format!("the gzip data is damaged: {error}")
        }
        _ => problem_of(error, "read"),
    }
}

/// Opens a file that must be there and not be a directory.
pub(crate) fn open(path: &Path) -> Result<File> {
    let told = |error: &io::Error| Error::file(path, problem_of(error, "read"));
    let file = File::open(path).map_err(|error| told(&error))?;
    let about = file.metadata().map_err(|error| told(&error))?;
    if about.is_dir() {
        return Err(told(&ErrorKind::IsADirectory.into()));
    }
    Ok(file)
}

impl<'a> InputSource<'a> {
    /// The source a path names. Pipes and standard input are read into memory.
    pub(crate) fn at(path: &'a Path) -> Result<Self> {
        let told = |error: &io::Error| Error::file(input_name(path), problem_of(error, "read"));
        let mut bytes = Vec::new();
        if is_stream(path) {
            let mut input = io::stdin().lock();
            input
                .read_to_end(&mut bytes)
                .map_err(|error| told(&error))?;
            return Ok(Self::Memory(bytes.into()));
        }
        let mut file = open(path)?;
        if file.metadata().is_ok_and(|about| about.is_file()) {
            return Ok(Self::File(path));
        }
        file.read_to_end(&mut bytes).map_err(|error| told(&error))?;
        Ok(Self::Memory(bytes.into()))
    }

    /// A reader from the beginning, unpacked where the bytes are gzip.
    pub(crate) fn text(&self) -> Result<TextSource<'_>> {
        let mut raw: Box<dyn Read + '_> = match self {
            Self::File(path) => Box::new(BufReader::with_capacity(1 << 16, open(path)?)),
            Self::Memory(bytes) => Box::new(&bytes[..]),
        };
        let told = |error: &io::Error, gzip| Error::Table(reading_problem(error, gzip));
        let head = peek(&mut raw, GZIP.len()).map_err(|error| told(&error, false))?;
        let gzip = head.starts_with(&GZIP);
        let is_empty = head.is_empty();
        let whole = Cursor::new(head).chain(raw);
        let mut reader: Box<dyn Read + '_> = if gzip {
            Box::new(MultiGzDecoder::new(whole))
        } else {
            Box::new(whole)
        };
        let mut start = peek(&mut reader, BYTE_ORDER_MARK.len()).map_err(|e| told(&e, gzip))?;
        if start == BYTE_ORDER_MARK {
            start.clear();
        }
        let reader = Box::new(Cursor::new(start).chain(reader));
        Ok(TextSource {
            reader,
            gzip,
            is_empty,
        })
    }
}

/// Text to be parsed.
pub(crate) struct TextSource<'a> {
    /// The unpacked bytes, without a byte order mark.
    pub reader: Box<dyn Read + 'a>,
    /// Whether they were packed by gzip.
    pub gzip: bool,
    /// Whether there are no bytes at all.
    pub is_empty: bool,
}

/// The first bytes: `n` of them, or fewer where the input ends.
fn peek(reader: &mut dyn Read, n: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(n);
    reader.take(n as u64).read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_the_system_are_put_in_words() {
        let told = |kind: ErrorKind| problem_of(&kind.into(), "read");
        assert_eq!(told(ErrorKind::NotFound), "there is no such file");
        assert_eq!(
            told(ErrorKind::PermissionDenied),
            "there is no permission to read it"
        );
        assert!(told(ErrorKind::IsADirectory).contains("directory"));
        assert!(told(ErrorKind::TimedOut).starts_with("cannot read it: "));
    }
}
