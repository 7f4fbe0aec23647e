//! Mutated CSV, Parquet and Arrow files end in a table or in an error, and a model answers every
//! table or rejects it: no panic, no abort, no memory beyond the size of the file.
//!
//! `SOFTWOOD_MUTATIONS=100000 cargo test --release -p softwood-io --test mutated_tables` reads that
//! many mutants of each format, prints the counts, and fails on a mutant that takes ten seconds.
#![allow(clippy::unwrap_used)] // helper functions of tests may panic

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Once;
use std::time::{Duration, Instant};

use softwood::{Column, Dataset, Distribution, Family, Key, Model, Pool, Roles, Table};
use softwood_io::{ReadOptions, is_catching_panics, read_table, write_table};

/// Mutants of each format in a normal run.
const N_MUTATIONS: usize = 10_000;
/// Memory that all mutants of a format may take beyond the memory at the start, in bytes.
const MAX_MEMORY: u64 = 1 << 30;

/// Numbers that are likely to be taken for lengths, counts or offsets.
const WORDS: [u64; 12] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
    1 << 40,
    1 << 62,
];

/// Pieces of text that readers treat in a special way.
const TOKENS: [&str; 24] = [
    ",",
    "\n",
    "\r\n",
    "\"",
    "\"\"",
    "\t",
    "",
    "NA",
    "NaT",
    "inf",
    "-inf",
    "1e999",
    "-0",
    "nan",
    "2024-01-31",
    "2024-02-30T25:00",
    "9007199254740993",
    "\u{feff}",
    "true",
    "$1,5",
    "\0",
    "é",
    "y",
    "=1+1",
];

/// Small random numbers, from one seed per test.
struct Mutator(u64);

impl Mutator {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// Changes one to four places.
    fn mutate(&mut self, bytes: &mut Vec<u8>, is_text: bool) {
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            match self.below(if is_text { 8 } else { 6 }) {
                _ if bytes.is_empty() => bytes.push(self.next() as u8),
                0 => bytes[at] = self.next() as u8,
                1 => bytes[at] ^= 1 << self.below(8),
                2 => self.overwrite_word(bytes, at),
                3 => bytes.truncate(at),
                4 => {
                    let end = (at + self.below(32)).min(bytes.len());
                    bytes.drain(at..end);
                }
                5 => {
                    let end = (at + self.below(64)).min(bytes.len());
                    let copy = bytes[at..end].to_vec();
                    let to = self.below(bytes.len());
                    bytes.splice(to..to, copy);
                }
                _ => {
                    let token = TOKENS[self.below(TOKENS.len())];
                    let end = (at + self.below(4)).min(bytes.len());
                    bytes.splice(at..end, token.bytes());
                }
            }
        }
    }

    fn overwrite_word(&mut self, bytes: &mut [u8], at: usize) {
        let word = WORDS[self.below(WORDS.len())].to_le_bytes();
        let width = [1, 2, 4, 8][self.below(4)];
        for (byte, new) in bytes[at..].iter_mut().zip(&word[..width]) {
            *byte = *new;
        }
    }
}

/// A table with numbers, dates, texts, missing cells and a target.
fn table() -> Table {
    let texts: Vec<Option<String>> = (0..40)
        .map(|n| (n % 5 > 0).then(|| format!("t{}", n % 4)))
        .collect();
    let number = |n: u32| {
        if n.is_multiple_of(7) {
            f64::NAN
        } else {
            f64::from(n * 37 % 11)
        }
    };
    Table::new(vec![
        Column::numeric("a", (0..40).map(number).collect()),
        Column::categorical("b", &texts),
        Column::numeric("when", (0..40).map(|n| f64::from(n) * 86_400.0).collect()),
        Column::numeric("y", (0..40).map(|n| f64::from(n * 3 % 17)).collect()),
    ])
    .unwrap()
}

fn roles() -> Roles {
    Roles {
        target: "y".to_owned(),
        ..Roles::default()
    }
}

/// A field of `/proc/self/status` in bytes; zero where there is none.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    1024 * kilobytes.unwrap_or(0)
}

/// Prints nothing for panics that the readers turn into errors, as a program does.
fn hide_caught_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !is_catching_panics() {
                usual(panic);
            }
        }));
    });
}

/// Reads mutants of the seed files, all with the suffix `suffix`, and asks a model about the tables
/// that result.
fn read_mutants(suffix: &str, seeds: &[Vec<u8>], is_text: bool) {
    hide_caught_panics();
    let asked = std::env::var("SOFTWOOD_MUTATIONS").ok();
    let n_mutations = asked.as_ref().map_or(N_MUTATIONS, |n| n.parse().unwrap());
    let data = Dataset::from_table(table(), &roles()).unwrap();
    let model = Family::Tree.params(&[]).unwrap().fit(&data).unwrap();
    let pool = Pool::new(1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("mutant.{suffix}"));
    let mut mutator = Mutator(suffix.bytes().fold(0x9e37_79b9, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(u64::from(byte))
    }));
    let memory = status("VmRSS");
    let (mut n_tables, mut slowest) = (0, Duration::ZERO);
    for _ in 0..n_mutations {
        let mut bytes = seeds[mutator.below(seeds.len())].clone();
        mutator.mutate(&mut bytes, is_text);
        if suffix == "csv.gz" && mutator.below(2) == 0 {
            bytes = gzip(&bytes);
        }
        fs::write(&path, &bytes).unwrap();
        let start = Instant::now();
        n_tables += usize::from(read_and_ask(&path, model.as_ref(), &pool));
        slowest = slowest.max(start.elapsed());
    }
    let used = status("VmHWM").saturating_sub(memory);
    assert!(used < MAX_MEMORY, "{suffix}: {used} bytes");
    assert!(n_tables > 0, "{suffix}: no mutant is a table");
    if asked.is_some() {
        eprintln!(
            "{suffix}: {n_mutations} mutants, {n_tables} tables, slowest {slowest:?}, {} MB",
            used >> 20
        );
        assert!(slowest < Duration::from_secs(10), "{suffix}: {slowest:?}");
    }
}

/// Reads a file as training data and as rows to predict; whether it is a table.
fn read_and_ask(path: &Path, model: &dyn Model, pool: &Pool) -> bool {
    let fresh = read_table(path, &ReadOptions::default());
    let is_table = fresh.is_ok();
    if let Ok(fresh) = fresh {
        let _ = Dataset::from_table(fresh, &roles());
    }
    let Ok(rows) = read_table(path, &ReadOptions::for_schema(model.schema())) else {
        return is_table;
    };
    let _ = Dataset::aligned(model.schema(), &rows, None);
    if let Ok(found) = Distribution::new(model, &rows, pool) {
        let _ = found.summary(&[0.1, 0.9]);
        let _ = found.sample(2, Key::from_seed(0));
    }
    is_table
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The table as a file of this suffix.
fn written(suffix: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("seed.{suffix}"));
    write_table(&path, &table()).unwrap();
    fs::read(path).unwrap()
}

fn csv_seeds() -> Vec<Vec<u8>> {
    let plain = written("csv");
    let dates =
        b"when,b,a,y\r\n2024-01-31,\"x, \"\"y\"\"\",1,2\r\n2024-02-01T10:00Z,z,NA,3\r\n".to_vec();
    vec![plain, dates]
}

#[test]
fn mutated_csv_files_give_a_table_or_an_error() {
    read_mutants("csv", &csv_seeds(), true);
}

#[test]
fn mutated_tsv_files_give_a_table_or_an_error() {
    read_mutants("tsv", &[written("tsv")], true);
}

#[test]
fn mutated_gzip_files_give_a_table_or_an_error() {
    // half of the mutants are compressed after the mutation, so that the text behind is reached
    let mut seeds = csv_seeds();
    seeds.push(gzip(&seeds[0]));
    read_mutants("csv.gz", &seeds, true);
}

#[test]
fn mutated_parquet_files_give_a_table_or_an_error() {
    read_mutants("parquet", &[written("parquet")], false);
}

#[test]
fn mutated_arrow_files_give_a_table_or_an_error() {
    read_mutants("arrow", &[written("arrow")], false);
}
