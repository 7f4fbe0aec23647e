//! Seeded mutations of model files: numbers and parts of the header, bytes, numbers, lengths and
//! types of the arrays. Every mutant has a right checksum, so that it reaches the checks behind it.

use serde_json::{Map, Number, Value, json};

/// Bytes before the header: magic bytes, version, checksum, length of the header.
const PREFIX: usize = 24;
/// Start of the bytes that the checksum covers.
const CHECKED_FROM: usize = 16;

/// `SplitMix64`: small, seeded, and independent of the library.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is at least one.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// A model file in parts.
#[derive(Debug, Clone)]
pub(crate) struct ModelParts {
    header: Value,
    /// Bytes of the arrays, without padding.
    arrays: Vec<Vec<u8>>,
}

impl ModelParts {
    /// Takes a valid model file apart.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let len = u64::from_le_bytes(bytes[16..PREFIX].try_into().unwrap()) as usize;
        let header: Value = serde_json::from_slice(&bytes[PREFIX..PREFIX + len]).unwrap();
        let mut at = PREFIX + len.next_multiple_of(8);
        let entries = header["arrays"].as_array().unwrap();
        let arrays = entries.iter().map(|entry| {
            let n = entry["len"].as_u64().unwrap() as usize * width(entry);
            let array = bytes[at..at + n].to_vec();
            at += n.next_multiple_of(8);
            array
        });
        Self {
            arrays: arrays.collect(),
            header: header.clone(),
        }
    }

    /// The file with a right checksum. `header` replaces the text of the header.
    fn assemble(&self, header: &[u8]) -> Vec<u8> {
        let mut bytes = b"SOFTWOOD\x01\0\0\0\0\0\0\0".to_vec();
        bytes.extend((header.len() as u64).to_le_bytes());
        bytes.extend(header);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        for array in &self.arrays {
            bytes.extend(array);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        let checksum = crc32fast::hash(&bytes[CHECKED_FROM..]);
        bytes[12..CHECKED_FROM].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// A file with one to three mutations.
    pub(crate) fn mutant(&self, random: &mut Random) -> Vec<u8> {
        let mut parts = self.clone();
        for _ in 0..=random.below(3).min(random.below(3)) {
            // an earlier mutation may have removed the metadata
            let meta = parts.header.get_mut("meta");
            match (random.below(10), meta) {
                (0..=3, Some(meta)) => change_number(meta, random),
                (4, Some(meta)) => change_part(meta, random),
                (5, Some(meta)) => change_members(meta, random),
                (6 | 7, _) => parts.change_array_numbers(random),
                (8, _) => parts.change_array_shape(random),
                _ => change_part(&mut parts.header, random),
            }
        }
        let mut header = serde_json::to_vec(&parts.header).unwrap();
        if random.below(20) == 0 {
            let at = random.below(header.len());
            header[at] ^= 1 << random.below(8);
        }
        parts.assemble(&header)
    }

    /// Replaces some numbers of an array, or flips some of its bits.
    fn change_array_numbers(&mut self, random: &mut Random) {
        let at = random.below(self.arrays.len().max(1));
        let entry = self.header["arrays"].get(at).cloned().unwrap_or_default();
        let (kind, width) = (entry["type"].as_str().unwrap_or("f32"), width(&entry));
        let Some(array) = self.arrays.get_mut(at).filter(|array| array.len() >= width) else {
            return;
        };
        for _ in 0..=random.below(4) {
            let start = random.below(array.len() / width) * width;
            let number = &mut array[start..start + width];
            if random.below(3) == 0 {
                number[random.below(width)] ^= 1 << random.below(8);
                continue;
            }
            match kind {
                "u32" => number.copy_from_slice(&extreme_word(number, random).to_le_bytes()),
                "f64" => {
                    let old = f64::from_le_bytes(number.try_into().unwrap());
                    number.copy_from_slice(&extreme_float(old, random).to_le_bytes());
                }
                _ => {
                    let old = f32::from_le_bytes(number[..4].try_into().unwrap());
                    let new = extreme_float(old.into(), random) as f32;
                    number[..4].copy_from_slice(&new.to_le_bytes());
                }
            }
        }
    }

    /// Changes the length, the type or the place of an array, sometimes without its entry.
    fn change_array_shape(&mut self, random: &mut Random) {
        let n = self.arrays.len();
        let entries = self.header.get_mut("arrays");
        let Some(entries) = entries.and_then(Value::as_array_mut) else {
            return;
        };
        if n == 0 || entries.len() != n || !entries.iter().all(Value::is_object) {
            return;
        }
        let (at, other) = (random.below(n), random.below(n));
        let width = width(&entries[at]);
        match random.below(6) {
            0 => self.arrays.swap(at, other),
            1 => entries.swap(at, other),
            2 => {
                let name = entries[other]["name"].clone();
                entries[at]["name"] = name;
            }
            3 => entries[at]["type"] = json!(*random.pick(&["f32", "f64", "u32"])),
            4 => {
                let len = random.below(self.arrays[at].len() / width + 1);
                self.arrays[at].truncate(len * width);
                entries[at]["len"] = json!(len);
            }
            _ => {
                let len = self.arrays[at].len() / width + 1 + random.below(3);
                let byte = *random.pick(&[0, 1, 0x3f, 0x7f, 0xff]);
                self.arrays[at].resize(len * width, byte);
                entries[at]["len"] = json!(len);
            }
        }
    }
}

/// Bytes of a number of an array.
fn width(entry: &Value) -> usize {
    if entry["type"] == "f64" { 8 } else { 4 }
}

/// A random part of a document: from the root to a child, and on to its children.
fn descend<'a>(mut value: &'a mut Value, random: &mut Random, to_leaf: bool) -> &'a mut Value {
    loop {
        let n = match &*value {
            Value::Array(items) => items.len(),
            Value::Object(items) => items.len(),
            _ => 0,
        };
        if n == 0 || (!to_leaf && random.below(4) == 0) {
            return value;
        }
        let at = random.below(n);
        value = match value {
            Value::Array(items) => &mut items[at],
            Value::Object(items) => items.values_mut().nth(at).expect("there are n items"),
            leaf => leaf,
        };
    }
}

/// Replaces a number of the document by an extreme one; other leaves by another type.
fn change_number(document: &mut Value, random: &mut Random) {
    for _ in 0..8 {
        let leaf = descend(document, random, true);
        if let Some(old) = leaf.as_f64() {
            *leaf = extreme_number(old, random);
            return;
        }
    }
    change_part(document, random);
}

/// Replaces a part of the document by a value of any type, or by another part.
fn change_part(document: &mut Value, random: &mut Random) {
    let copied = descend(document, random, false).clone();
    let place = descend(document, random, false);
    *place = match random.below(8) {
        0 => Value::Null,
        1 => json!(random.below(2) == 0),
        2 => json!("x"),
        3 => json!([]),
        4 => json!({}),
        5 => extreme_number(1.0, random),
        _ => copied,
    };
}

/// Removes, repeats or swaps members of a list or an object.
fn change_members(document: &mut Value, random: &mut Random) {
    for _ in 0..8 {
        match descend(document, random, false) {
            Value::Array(items) if !items.is_empty() => {
                return change_items(items, random);
            }
            Value::Object(items) if !items.is_empty() => return change_entries(items, random),
            _ => {}
        }
    }
}

fn change_items(items: &mut Vec<Value>, random: &mut Random) {
    let (at, other) = (random.below(items.len()), random.below(items.len()));
    match random.below(4) {
        0 => drop(items.remove(at)),
        1 => items.insert(other, items[at].clone()),
        2 => items.swap(at, other),
        _ => items.truncate(at),
    }
}

fn change_entries(items: &mut Map<String, Value>, random: &mut Random) {
    let names: Vec<String> = items.keys().cloned().collect();
    let (at, other) = (random.pick(&names).clone(), random.pick(&names).clone());
    match random.below(3) {
        0 => drop(items.remove(&at)),
        1 => {
            let value = items[&at].clone();
            items.insert(other, value);
        }
        _ => {
            let value = items[&at].clone();
            items.insert(format!("{at}x"), value);
        }
    }
}

/// Numbers at which a check or an operation may fail.
const EXTREMES: [f64; 26] = [
    0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -5.0, 17.0, 255.0, 256.0, 1e3, 3e3, 65_536.0, 1e9, 1e15, -9e18,
    1.8e19, 1e30, 1e60, 1e154, 1e200, 1e300, -1e300, 1e308, 1e-300, 5e-324,
];

fn extreme_float(old: f64, random: &mut Random) -> f64 {
    match random.below(9) {
        0 => -old,
        1 => 2.0 * old,
        2 => old * 10_f64.powi(random.below(80) as i32 - 40),
        3 => *random.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
        4 => old.next_up(),
        _ => *random.pick(&EXTREMES),
    }
}

fn extreme_number(old: f64, random: &mut Random) -> Value {
    let whole = old as i64;
    match random.below(4) {
        0 => json!(whole.saturating_add(random.below(5) as i64 - 2)),
        1 => json!(*random.pick(&[
            0,
            1,
            2,
            3,
            7,
            8,
            15,
            16,
            31,
            32,
            63,
            64,
            255,
            256,
            999,
            1000,
            1001,
            10_000,
            1 << 20,
            1 << 31,
            1 << 32,
            1 << 53,
            u64::MAX / 8,
            u64::MAX,
        ])),
        _ => Number::from_f64(extreme_float(old, random)).map_or(Value::Null, Value::Number),
    }
}

fn extreme_word(old: &[u8], random: &mut Random) -> u32 {
    let old = u32::from_le_bytes(old.try_into().unwrap_or_default());
    match random.below(4) {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => random.below(12) as u32,
        _ => *random.pick(&[0, 1, 2, 254, 255, 256, 1 << 16, 1 << 31, u32::MAX]),
    }
}
