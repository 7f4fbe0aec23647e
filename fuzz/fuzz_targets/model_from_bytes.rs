//! Any bytes end in a model or an error: run with `cargo +nightly fuzz run model_from_bytes`.
//!
//! Half of the inputs get a right start and checksum, so that the fuzzer reaches what lies behind them.

#![no_main]

use libfuzzer_sys::fuzz_target;

/// CRC-32 (IEEE), bit by bit: slow is fast enough here, and the target needs no crate for it.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

fuzz_target!(|bytes: &[u8]| {
    let _ = softwood::from_bytes(bytes);
    let mut sealed = b"SOFTWOOD\x01\0\0\0".to_vec();
    sealed.extend(crc32(bytes).to_le_bytes());
    sealed.extend(bytes);
    let _ = softwood::from_bytes(&sealed);
});
