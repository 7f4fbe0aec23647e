//! Any bytes end in an error or in a model that answers every question with finite numbers or an
//! error: run with `cargo +nightly fuzz run model_from_bytes`.
//!
//! Every input is also tried with a right start and checksum, so that the fuzzer reaches what lies behind
//! them.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use softwood::{Pool, from_bytes};

#[path = "../../crates/softwood/tests/mutants/questions.rs"]
mod questions;

static POOL: LazyLock<Pool> = LazyLock::new(|| Pool::new(1).expect("one thread can be started"));

/// CRC-32 (IEEE), bit by bit: slow is fast enough here, and the target needs no crate for it.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

fn load_and_ask(bytes: &[u8]) {
    if let Ok(model) = from_bytes(bytes) {
        questions::ask_all(&*model, &POOL).expect("every answer is finite or an error");
    }
}

fuzz_target!(|bytes: &[u8]| {
    load_and_ask(bytes);
    let mut sealed = b"SOFTWOOD\x01\0\0\0".to_vec();
    sealed.extend(crc32(bytes).to_le_bytes());
    sealed.extend(bytes);
    load_and_ask(&sealed);
});
