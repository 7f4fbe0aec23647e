//! Atomic files: written under a temporary name in the folder of their target, synced, and renamed.
//! Readers see the earlier file or the complete new one. Model files and tables share this writer.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::error::{Error, Result};

/// Age from which a temporary file is one that a killed process left behind.
const STALE_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// Links that are followed from one path, as in Linux.
const MAX_LINKS: usize = 40;
/// Random names that are tried before the write fails.
const MAX_NAMES: usize = 100;
/// Bytes of the target's name in a temporary name. File systems allow 255 in all.
const MAX_NAME_BYTES: usize = 200;
/// End of every temporary name.
const SUFFIX: &str = ".tmp";

/// Temporary files of this process. The lock is held while a file is created or renamed, so that
/// [`remove_unfinished`] finds either a temporary file or a complete one.
static UNFINISHED: Mutex<Unfinished> = Mutex::new(Unfinished {
    paths: Vec::new(),
    is_closed: false,
});

#[derive(Debug)]
struct Unfinished {
    paths: Vec<PathBuf>,
    /// Whether the process is about to end and creates no more files.
    is_closed: bool,
}

fn unfinished() -> MutexGuard<'static, Unfinished> {
    // every change of the list is a single call, so a panic leaves it valid
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files of this process and refuses new ones: for a signal handler thread
/// that ends the process afterwards.
pub fn remove_unfinished() {
    let mut unfinished = unfinished();
    unfinished.is_closed = true;
    for path in unfinished.paths.drain(..) {
        // nobody is left to hear of a failure
        let _ = fs::remove_file(path);
    }
}

/// A file that replaces its target when it is committed; dropped before, it leaves no trace.
#[derive(Debug)]
pub struct AtomicFile {
    /// The path as the user gave it, for error messages.
    path: PathBuf,
    /// The file to replace: `path` with links followed.
    target: PathBuf,
    temporary: PathBuf,
    file: File,
}

impl AtomicFile {
    /// Creates a temporary file beside the file that `path` names. A symbolic link is followed and
    /// stays a link. The new file has the permissions of the one that it replaces.
    ///
    /// # Errors
    /// [`Error::File`] when the path is a directory, a device, a pipe or a socket, its directory
    /// does not exist, or no file can be created there.
    pub fn create(path: &Path) -> Result<Self> {
        let OutputTarget {
            target,
            permissions,
        } = OutputTarget::of(path)?;
        let name = target
            .file_name()
            .ok_or_else(|| Error::file(path, "this is not the name of a file"))?;
        remove_stale(folder_of(&target), name);
        let failed = |error: io::Error| Error::file(path, write_problem(&target, &error));
        let (temporary, file) = create_new(&target, name).map_err(failed)?;
        let created = Self {
            path: path.to_owned(),
            temporary,
            file,
            target: target.clone(),
        };
        if let Some(permissions) = permissions {
            created.file.set_permissions(permissions).map_err(failed)?;
        }
        Ok(created)
    }

    /// Writes a file with this content.
    ///
    /// # Errors
    /// As [`AtomicFile::create`], and when the disk is full or fails; the target is unchanged then.
    pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
        let mut file = Self::create(path)?;
        file.write_all(bytes).map_err(|error| file.failed(&error))?;
        file.commit()
    }

    /// The written part, for a check before [`AtomicFile::commit`].
    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Syncs the file, renames it to its target and syncs the folder.
    ///
    /// # Errors
    /// [`Error::File`] when the system fails to; the target is unchanged then.
    pub fn commit(mut self) -> Result<()> {
        let synced = self.file.flush().and_then(|()| self.file.sync_all());
        synced
            .and_then(|()| self.rename())
            .map_err(|error| self.failed(&error))?;
        sync_folder(folder_of(&self.target));
        Ok(())
    }

    fn rename(&self) -> io::Result<()> {
        let mut unfinished = unfinished();
        if !unfinished.paths.contains(&self.temporary) {
            return Err(interrupted());
        }
        fs::rename(&self.temporary, &self.target)?;
        unfinished.paths.retain(|path| *path != self.temporary);
        Ok(())
    }

    /// The error of a failed write to this file.
    pub fn failed(&self, error: &io::Error) -> Error {
        Error::file(&self.path, write_problem(&self.target, error))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        let mut unfinished = unfinished();
        let n_before = unfinished.paths.len();
        unfinished.paths.retain(|path| *path != self.temporary);
        if unfinished.paths.len() < n_before {
            // the error that led here is the one to report
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// The regular file that a path names, or a new name.
struct OutputTarget {
    target: PathBuf,
    /// Permissions of the file that exists there.
    permissions: Option<Permissions>,
}

impl OutputTarget {
    fn of(path: &Path) -> Result<Self> {
        if let Ok(metadata) = fs::metadata(path) {
            let problem = if is_open_file(path) {
                "this names an open file of the process, not a path; give the path of a file"
            } else if metadata.is_dir() {
                "this is a directory; give the path of a file"
            } else if !metadata.is_file() {
                "not a regular file, but a device, a pipe or a socket; give another path"
            } else {
                return Ok(Self {
                    target: fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
                    permissions: Some(metadata.permissions()),
                });
            };
            return Err(Error::file(path, problem));
        }
        let target = follow_links(path)?;
        check_folder(path, folder_of(&target))?;
        Ok(Self {
            target,
            permissions: None,
        })
    }
}

/// Whether a path leads over a link such as `/dev/stdout`, behind which there may be any file.
fn is_open_file(path: &Path) -> bool {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&target) else {
            return false;
        };
        if target.starts_with("/proc") || target.starts_with("/dev/fd") {
            return true;
        }
        // an absolute link replaces the folder
        target = folder_of(&target).join(next);
    }
    false
}

/// The new name at the end of a chain of links, the last of which may point to no file.
fn follow_links(path: &Path) -> Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            // an absolute link replaces the folder
            Ok(next) => target = folder_of(&target).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(Error::file(
        path,
        "the symbolic links of this path lead in a circle; give another path",
    ))
}

fn check_folder(path: &Path, folder: &Path) -> Result<()> {
    let problem = match fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(_) => format!("`{}` is not a directory", folder.display()),
        Err(error) if error.kind() == ErrorKind::NotFound => format!(
            "the directory `{}` does not exist; create it first",
            folder.display()
        ),
        Err(error) => write_problem(path, &error),
    };
    Err(Error::file(path, problem))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn write_problem(target: &Path, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => format!(
            "no permission to write this file in the directory `{}`",
            folder_of(target).display()
        ),
        _ => format!("cannot write: {error}"),
    }
}

fn interrupted() -> io::Error {
    io::Error::new(ErrorKind::Interrupted, "the program was interrupted")
}

/// A file that did not exist before, under a random name.
fn create_new(target: &Path, name: &OsStr) -> io::Result<(PathBuf, File)> {
    let mut unfinished = unfinished();
    if unfinished.is_closed {
        return Err(interrupted());
    }
    let mut result = Err(ErrorKind::AlreadyExists.into());
    for _ in 0..MAX_NAMES {
        let temporary = target.with_file_name(temporary_name(name, random_word()));
        let mut options = OpenOptions::new();
        result = options.write(true).create_new(true).open(&temporary);
        match &result {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(_) => break,
            Ok(_) => {
                unfinished.paths.push(temporary.clone());
                return result.map(|file| (temporary, file));
            }
        }
    }
    result.map(|file| (PathBuf::new(), file))
}

/// A number from the operating system's generator, with which the standard library seeds its hash
/// functions. Names of temporary files are no part of any result.
fn random_word() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// `.NAME.0123456789abcdef.tmp`.
fn temporary_name(name: &OsStr, word: u64) -> OsString {
    let mut temporary = prefix_of(name);
    temporary.push(format!("{word:016x}{SUFFIX}"));
    temporary
}

/// The part of a temporary name before its random word. Of a long name the beginning is used.
fn prefix_of(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    if name.len() <= MAX_NAME_BYTES {
        prefix.push(name);
    } else {
        let text = name.to_string_lossy();
        let end = (0..=MAX_NAME_BYTES)
            .rev()
            .find(|&end| text.is_char_boundary(end));
        prefix.push(&text[..end.unwrap_or(0)]);
    }
    prefix.push(".");
    prefix
}

/// Whether `found` is a temporary name of the file `name`: of this version, or of one that named
/// temporary files by the process.
fn is_temporary(found: &OsStr, name: &OsStr) -> bool {
    let prefix = prefix_of(name);
    let word = (found.as_encoded_bytes())
        .strip_prefix(prefix.as_encoded_bytes())
        .and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    word.is_some_and(|word| {
        (1..=16).contains(&word.len()) && word.iter().all(u8::is_ascii_hexdigit)
    })
}

/// Removes old temporary files of this target, which processes left that were killed. A failure is
/// no reason not to write.
fn remove_stale(folder: &Path, name: &OsStr) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let now = SystemTime::now();
    for entry in entries.flatten() {
        if !is_temporary(&entry.file_name(), name) {
            continue;
        }
        let is_stale = entry.metadata().is_ok_and(|metadata| {
            let age = metadata.modified().map(|at| now.duration_since(at));
            metadata.is_file() && matches!(age, Ok(Ok(age)) if age > STALE_AFTER)
        });
        if is_stale {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Syncs the entry of a renamed file. The file is complete and in place, and some file systems
/// cannot sync a folder, so a failure is not an error.
fn sync_folder(folder: &Path) {
    if cfg!(unix)
        && let Ok(folder) = File::open(folder)
    {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_belong_to_one_target() {
        let name = OsStr::new("a.softwood");
        let temporary = temporary_name(name, 0xab);
        assert_eq!(temporary, ".a.softwood.00000000000000ab.tmp");
        assert!(is_temporary(&temporary, name));
        assert!(is_temporary(OsStr::new(".a.softwood.4711.tmp"), name));
        for other in [
            "a.softwood",
            ".a.softwood.tmp",
            ".a.softwood..tmp",
            ".a.softwood.notes.tmp",
            ".a.softwood.12345678901234567.tmp",
            ".b.a.softwood.4711.tmp",
            ".a.softwood.4711.tmp.old",
        ] {
            assert!(!is_temporary(OsStr::new(other), name), "{other}");
        }
    }

    #[test]
    fn temporary_names_of_long_names_are_short_enough() {
        let long = OsString::from("é".repeat(127));
        let temporary = temporary_name(&long, u64::MAX);
        assert!(temporary.len() <= 255 && is_temporary(&temporary, &long));
    }

    #[test]
    fn random_words_differ() {
        let mut words: Vec<u64> = (0..100).map(|_| random_word()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 100);
    }
}
