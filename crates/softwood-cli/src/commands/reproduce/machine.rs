//! The machine of a run, in a few words.

use std::env::consts::{ARCH, OS};
use std::thread::available_parallelism;

/// Number of cores, architecture and operating system, such as `8 cores, x86_64, linux`.
pub(crate) fn machine() -> String {
    let cores = match available_parallelism().map_or(1, usize::from) {
        1 => "1 core".to_owned(),
        n => format!("{n} cores"),
    };
    format!("{cores}, {ARCH}, {OS}")
}
