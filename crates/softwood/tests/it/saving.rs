//! Saving a model: what may be replaced, what stays, and what a failed save leaves.

use std::fs::{self, File};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use crate::problems::{fit, mixed, with_target};
use serde_json::json;
use softwood::data::{Rows, Schema};
use softwood::distribution::{Block, Head};
use softwood::model::Training;
use softwood::store::Record;
use softwood::store::atomic::AtomicFile;
use softwood::{Error, Family, Model, Result, load};

static MODELS: LazyLock<Vec<Box<dyn Model>>> = LazyLock::new(|| {
    let data = with_target(&mixed(1, 60), "y");
    let params = json!({"n_members": 2});
    (0..4)
        .map(|seed| fit(Family::Tree, &params, &data, seed))
        .collect()
});

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn many_threads_can_save_to_one_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.softwood");
    std::thread::scope(|scope| {
        for model in MODELS.iter() {
            scope.spawn(|| (0..25).for_each(|_| model.save(&path).unwrap()));
        }
    });
    let found = fs::read(&path).unwrap();
    assert!(MODELS.iter().any(|model| model.to_bytes() == found));
    assert_eq!(names_in(folder.path()), ["model.softwood"]);
}

#[test]
fn left_over_temporary_files_do_no_harm_and_old_ones_of_the_same_name_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let process = std::process::id();
    let recent = [
        format!(".model.softwood.{process}.tmp"),
        ".model.softwood.00000000000000aa.tmp".to_owned(),
    ];
    let old = [
        ".model.softwood.4711.tmp",
        ".model.softwood.00000000000000ab.tmp",
    ];
    let others = [
        ".other.softwood.4711.tmp",
        ".model.softwood.notes.tmp",
        "model.softwood.tmp",
    ];
    let two_days_ago = SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60);
    for name in &recent {
        fs::write(at(name), "left over").unwrap();
    }
    for name in old.iter().chain(&others) {
        let file = File::create(at(name)).unwrap();
        file.set_modified(two_days_ago).unwrap();
    }
    MODELS[0].save(&at("model.softwood")).unwrap();
    assert!(load(&at("model.softwood")).is_ok());
    let mut expected: Vec<String> = recent.to_vec();
    expected.extend(others.map(str::to_owned));
    expected.push("model.softwood".to_owned());
    expected.sort();
    assert_eq!(names_in(folder.path()), expected);
}

#[test]
fn a_dropped_file_leaves_the_earlier_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "earlier").unwrap();
    drop(AtomicFile::create(&path).unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"earlier");
    assert_eq!(names_in(folder.path()), ["a"]);
}

/// A model whose file cannot be read back, or has other bytes after it was read.
#[derive(Debug)]
struct Unreadable {
    is_restored: bool,
}

impl Model for Unreadable {
    fn family(&self) -> &'static str {
        "tree"
    }
    fn schema(&self) -> &Schema {
        MODELS[0].schema()
    }
    fn head(&self) -> Head {
        MODELS[0].head()
    }
    fn n_members(&self) -> usize {
        1
    }
    fn members(&self, _rows: &Rows<'_>, _out: &mut Block) -> Result<()> {
        Ok(())
    }
    fn training(&self) -> &Training {
        MODELS[0].training()
    }
    fn restored(&self, record: &Record) -> Result<Box<dyn Model>> {
        if self.is_restored {
            return softwood::from_bytes(&MODELS[1].to_bytes());
        }
        Err(Error::Format(format!("no `{}`", record.family)))
    }
    fn record(&self) -> Record {
        MODELS[0].record()
    }
}

#[test]
fn a_model_that_cannot_be_read_back_replaces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.softwood");
    MODELS[0].save(&path).unwrap();
    for (is_restored, expected) in [(false, "no `tree`"), (true, "bytes differ")] {
        let message = Unreadable { is_restored }
            .save(&path)
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("not written") && message.contains(expected),
            "{message}"
        );
        assert_eq!(fs::read(&path).unwrap(), MODELS[0].to_bytes());
        assert_eq!(names_in(folder.path()), ["model.softwood"]);
    }
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    use std::process::Command;

    use super::*;

    fn fifo(path: &Path) {
        let made = Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }

    #[test]
    fn devices_pipes_and_directories_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fifo(&at("pipe"));
        symlink("/dev/null", at("null")).unwrap();
        fs::create_dir(at("directory")).unwrap();
        symlink("directory", at("link")).unwrap();
        for (name, expected) in [
            ("pipe", "not a regular file"),
            ("null", "not a regular file"),
            ("directory", "this is a directory"),
            ("link", "this is a directory"),
        ] {
            let message = MODELS[0].save(&at(name)).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        let kind = |name: &str| fs::symlink_metadata(at(name)).unwrap().file_type();
        assert!(kind("pipe").is_fifo() && kind("null").is_symlink() && kind("link").is_symlink());
        assert!(names_in(&at("directory")).is_empty());
        assert_eq!(
            names_in(folder.path()),
            ["directory", "link", "null", "pipe"]
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_file_behind_a_redirected_output_is_not_replaced() {
        use std::os::fd::AsRawFd;

        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, "earlier").unwrap();
        let open = File::open(&log).unwrap();
        let link = folder.path().join("link");
        let descriptor = format!("/proc/self/fd/{}", open.as_raw_fd());
        symlink(&descriptor, &link).unwrap();
        for path in [descriptor.as_ref(), link.as_path()] {
            let message = MODELS[0].save(path).unwrap_err().to_string();
            assert!(message.contains("an open file"), "{message}");
        }
        assert_eq!(fs::read(&log).unwrap(), b"earlier");
    }

    #[test]
    fn a_pipe_is_refused_as_a_model_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        fifo(&path);
        let message = load(&path).unwrap_err().to_string();
        assert!(message.contains("not a regular file"), "{message}");
        let message = load(Path::new("/dev/null")).unwrap_err().to_string();
        assert!(message.contains("not a regular file"), "{message}");
    }

    #[test]
    fn links_are_followed_to_the_folder_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("models")).unwrap();
        fs::write(at("models/old"), "earlier").unwrap();
        symlink("models/old", at("to_old")).unwrap();
        symlink("to_old", at("chain")).unwrap();
        // no file yet
        symlink("models/new", at("to_new")).unwrap();
        symlink(at("models/absolute"), at("to_absolute")).unwrap();
        for (link, name) in [
            ("chain", "old"),
            ("to_new", "new"),
            ("to_absolute", "absolute"),
        ] {
            MODELS[0].save(&at(link)).unwrap();
            assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink());
            let written = at("models").join(name);
            assert!(fs::symlink_metadata(&written).unwrap().is_file());
            assert_eq!(fs::read(written).unwrap(), MODELS[0].to_bytes());
        }
        assert_eq!(names_in(&at("models")), ["absolute", "new", "old"]);
        symlink("circle", at("circle")).unwrap();
        let message = MODELS[0].save(&at("circle")).unwrap_err().to_string();
        assert!(message.contains("circle"), "{message}");
        symlink("absent/model", at("to_absent")).unwrap();
        let message = MODELS[0].save(&at("to_absent")).unwrap_err().to_string();
        assert!(message.contains("does not exist"), "{message}");
    }

    #[test]
    fn a_replaced_file_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.softwood");
        for mode in [0o600, 0o640, 0o664] {
            fs::write(&path, "earlier").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            MODELS[0].save(&path).unwrap();
            let found = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{found:o}");
        }
    }
}
