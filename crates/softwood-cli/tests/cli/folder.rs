//! A temporary folder for each test, and the program run inside it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Parameters that make a fit fast.
pub(crate) const QUICK: [&str; 16] = [
    "-p",
    "max_depth=1",
    "-p",
    "leaf_mixing=blend",
    "-p",
    "n_epochs=3",
    "-p",
    "n_members=5",
    "-p",
    "scaling=standard",
    "-p",
    "rotation=none",
    "-p",
    "squares=false",
    "-p",
    "rank=1",
];

pub(crate) struct Folder(TempDir);

/// Exit code and output of a run.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Names of all files and folders inside, including hidden ones.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_softwood"));
        command.args(args).current_dir(self.0.path());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }

    /// Runs the program, checks that it succeeds, and parses standard output as one JSON document.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out))
    }

    /// Runs the program and checks that it reports a user error: exit code 2, one message that
    /// contains all of `parts`, no new file.
    pub(crate) fn assert_rejected(&self, args: &[&str], parts: &[&str]) {
        let before = self.names();
        let ran = self.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {} {}", ran.out, ran.err);
        assert_eq!(ran.out, "", "{args:?}");
        assert!(ran.err.starts_with("error: "), "{}", ran.err);
        for part in parts {
            assert!(ran.err.contains(part), "`{part}` is not in: {}", ran.err);
        }
        assert!(
            !ran.err.contains("panicked") && !ran.err.contains("backtrace"),
            "{}",
            ran.err
        );
        assert_eq!(self.names(), before, "{args:?}");
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
