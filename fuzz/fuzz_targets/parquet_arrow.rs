//! Any bytes end in a table or an error: run with `cargo +nightly fuzz run parquet_arrow`. The first
//! byte chooses between Parquet and Arrow IPC.
//!
//! The readers of those crates panic on some files, and the panic becomes an error. The fuzzer's own
//! hook ends the process at a panic, so the hook of this target ignores those that are caught.

#![no_main]

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use softwood_io::{ReadOptions, is_catching_panics, read_table};

static QUIET_HOOK: Once = Once::new();

thread_local! {
    static FOLDER: OnceCell<PathBuf> = const { OnceCell::new() };
}

/// A folder for the files of this process.
fn folder() -> PathBuf {
    FOLDER.with(|folder| {
        folder
            .get_or_init(|| {
                let name = format!("softwood-fuzz-{}", std::process::id());
                let path = std::env::temp_dir().join(name);
                std::fs::create_dir_all(&path).expect("the folder for temporary files is writable");
                path
            })
            .clone()
    })
}

fuzz_target!(|bytes: &[u8]| {
    QUIET_HOOK.call_once(|| {
        let fuzzer_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !is_catching_panics() {
                fuzzer_hook(panic);
            }
        }));
    });
    let Some((&choice, content)) = bytes.split_first() else {
        return;
    };
    let suffix = if choice & 1 == 0 { "parquet" } else { "arrow" };
    let path = folder().join(format!("input.{suffix}"));
    std::fs::write(&path, content).expect("the folder for temporary files is writable");
    let options = ReadOptions {
        lenient: choice & 2 != 0,
        ..ReadOptions::default()
    };
    let _ = read_table(&path, &options);
});
