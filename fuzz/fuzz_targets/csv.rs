//! Any bytes end in a table or an error: run with `cargo +nightly fuzz run csv`. The first byte
//! chooses the delimiter and the rules for the kinds of columns; gzip is decompressed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use softwood::{Dataset, Roles};
use softwood_io::{ReadOptions, read_csv};

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, text)) = bytes.split_first() else {
        return;
    };
    let options = ReadOptions {
        delimiter: Some(b",\t;|"[usize::from(choice & 3)]),
        categorical: if choice & 4 == 0 { Vec::new() } else { vec!["a".to_owned()] },
        numeric: if choice & 8 == 0 { Vec::new() } else { vec!["b".to_owned()] },
        lenient: choice & 16 != 0,
        ..ReadOptions::default()
    };
    if let Ok(table) = read_csv(text, &options) {
        let roles = Roles {
            target: "y".to_owned(),
            ..Roles::default()
        };
        let _ = Dataset::from_table(table, &roles);
    }
});
