//! Model files: round trips, damaged files, and failed writes.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use crate::problems::FitJson as _;
use crate::problems::{meta_of, with_meta};
use proptest::prelude::*;
use serde_json::{Value, json};
use softwood::store::Record;
use softwood::{
    Column, Dataset, Distribution, Error, Family, Key, Model, Pool, Roles, Run, Table, from_bytes,
    load,
};

fn features() -> Table {
    let x = (0..40).map(|row| f64::from(row) / 40.0).collect();
    let colour: Vec<_> = (0..40)
        .map(|row| Some(["red", "green", "blue"][row % 3]))
        .collect();
    Table::new(vec![
        Column::numeric("x", x),
        Column::categorical("colour", &colour),
    ])
    .unwrap()
}

fn labelled(classify: bool) -> Dataset {
    let mut columns = features().columns().to_vec();
    columns.push(if classify {
        let y: Vec<_> = (0..40)
            .map(|row| Some(["no", "yes"][usize::from(row * 7 % 10 > 4)]))
            .collect();
        Column::categorical("y", &y)
    } else {
        Column::numeric(
            "y",
            (0..40)
                .map(|row| (f64::from(row) / 7.0).sin() + f64::from(row % 5) / 10.0)
                .collect(),
        )
    });
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(Table::new(columns).unwrap(), &roles).unwrap()
}

/// A small fitted model of a family.
fn fitted(family: Family, classify: bool) -> Box<dyn Model> {
    let pool = Pool::new(1).unwrap();
    let run = Run::new(Key::from_seed(5), &pool);
    family
        .fit_with(&quick(family), &labelled(classify), &run)
        .unwrap()
}

/// Parameters for a short fit.
fn quick(family: Family) -> Value {
    if family == Family::Vst {
        return json!({"max_depth": 1, "leaf_mixing": "mixture", "n_epochs": 2, "n_members": 3,
                      "scaling": "standard", "rotation": "none", "squares": true});
    }
    if family == Family::Vsgbm {
        return json!({"max_depth": 1, "leaf_mixing": "blend", "n_epochs": 2, "n_members": 3, "n_estimators": 2, "n_fits": 2,
                      "noise": "constant", "joint_training": false, "scaling": "standard", "rotation": "none", "squares": false});
    }
    if family == Family::Forest {
        return json!({"n_estimators": 4, "n_members": 2});
    }
    if family == Family::SoftTree {
        return json!({"max_leaf_nodes": 3, "n_epochs": 2, "n_members": 3, "posterior": "hmc"});
    }
    if family == Family::Gp {
        return json!({"max_iterations": 2, "n_members": 4});
    }
    if family == Family::GpRnnTree {
        return json!({"max_iterations": 2, "n_members": 4, "n_steps": 5, "n_tree_restarts": 1, "max_depth": 2});
    }
    if family == Family::Vart {
        return json!({"start_depth": 1, "n_epochs": 2, "n_fits": 1, "n_members": 3});
    }
    json!({})
}

/// A Gaussian process with inducing points.
fn sparse_process() -> Box<dyn Model> {
    let pool = Pool::new(1).unwrap();
    let run = Run::new(Key::from_seed(5), &pool);
    let params = json!({"n_inducing": 5, "n_epochs": 1, "max_iterations": 2, "n_members": 4});
    Family::Gp
        .fit_with(&params, &labelled(false), &run)
        .unwrap()
}

fn model_bytes() -> Vec<u8> {
    fitted(Family::Vst, false).to_bytes()
}

/// The bits of some predictions.
fn prediction_bits(model: &dyn Model) -> Vec<u64> {
    let pool = Pool::new(1).unwrap();
    let distribution = Distribution::new(model, &features(), &pool).unwrap();
    let parts = distribution.uncertainty().unwrap();
    let mut numbers = distribution.sample(2, Key::from_seed(1)).unwrap();
    numbers.extend(parts.total.iter().chain(&parts.knowledge));
    numbers.into_iter().map(f64::to_bits).collect()
}

#[test]
fn models_of_every_family_are_restored_with_the_same_predictions_and_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for &family in Family::ALL {
        for classify in [false, true] {
            if classify && !family.supports_classes() {
                continue;
            }
            let model = fitted(family, classify);
            let path = folder.path().join(format!("{}.softwood", family.name()));
            model.save(&path).unwrap();
            let back = load(&path).unwrap();
            assert_eq!(
                prediction_bits(back.as_ref()),
                prediction_bits(model.as_ref())
            );
            assert_eq!(back.schema(), model.schema());
            assert_eq!(back.training(), model.training());
            assert_eq!(back.to_bytes(), fs::read(&path).unwrap());
        }
    }
    assert_eq!(
        names_in(folder.path()).len(),
        Family::ALL.len(),
        "no temporary file is left"
    );
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn writing_replaces_an_existing_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.softwood");
    fs::write(&path, "something else").unwrap();
    fitted(Family::Vst, false).save(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), model_bytes());
}

#[test]
fn a_failed_write_names_the_folder_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let model = fitted(Family::Vst, false);
    let absent = folder.path().join("absent/model.softwood");
    let error = model.save(&absent).unwrap_err();
    assert!(matches!(error, Error::File { .. }) && error.is_user_error());
    assert!(
        error
            .to_string()
            .contains("does not exist; create it first"),
        "{error}"
    );
    let error = model.save(folder.path()).unwrap_err();
    assert!(error.to_string().contains("directory"), "{error}");
    assert!(names_in(folder.path()).is_empty());
}

#[test]
fn unreadable_files_are_named_with_their_problem() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let bytes = model_bytes();
    fs::write(at("short"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(at("csv"), "a,b\n1,2\n").unwrap();
    fs::write(at("empty"), "").unwrap();
    for (name, expected) in [
        ("short", "checksum does not match"),
        ("csv", "does not begin like a model"),
        ("empty", "the file is empty"),
        ("absent", "there is no such file"),
        ("", "this is a directory"),
    ] {
        let error = load(&at(name)).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains(expected) && message.contains(&at(name).display().to_string()),
            "{message}"
        );
        assert!(error.is_user_error());
    }
}

#[test]
fn an_unknown_family_is_named() {
    let mut record = fitted(Family::Vst, false).record();
    record.family = "oak".to_owned();
    let message = from_bytes(&record.to_bytes()).unwrap_err().to_string();
    assert!(
        message.contains("`oak`") && message.contains("vst"),
        "{message}"
    );
}

/// The bytes with a corrected checksum, as an attacker would write them.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32fast::hash(&bytes[16..]);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn every_flipped_bit_of_a_model_is_detected() {
    let bytes = model_bytes();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(
            matches!(from_bytes(&damaged), Err(Error::Format(_))),
            "byte {at}"
        );
    }
}

#[test]
fn absent_arrays_are_errors() {
    for record in MODELS.iter() {
        for at in 0..record.arrays.len() {
            let mut damaged = record.clone();
            damaged.arrays.remove(at);
            assert!(matches!(
                from_bytes(&damaged.to_bytes()),
                Err(Error::Format(_))
            ));
        }
    }
}

/// Copies of `meta` in which one part each is replaced by `value`.
fn replaced_everywhere(meta: &Value, value: &Value) -> Vec<Value> {
    let mut all = vec![value.clone()];
    match meta {
        Value::Object(parts) => {
            for (name, part) in parts {
                for inner in replaced_everywhere(part, value) {
                    let mut damaged = meta.clone();
                    damaged[name] = inner;
                    all.push(damaged);
                }
            }
        }
        Value::Array(parts) => {
            for (at, part) in parts.iter().enumerate() {
                for inner in replaced_everywhere(part, value) {
                    let mut damaged = meta.clone();
                    damaged[at] = inner;
                    all.push(damaged);
                }
            }
        }
        _ => {}
    }
    all
}

#[test]
fn no_part_of_the_metadata_can_make_reading_panic() {
    for record in MODELS.iter() {
        for value in [
            json!(null),
            json!(-1),
            json!(0),
            json!(1_000_000_000_000_000_u64),
            json!(u64::MAX),
            json!(1e300),
            json!("x"),
            json!([]),
            json!({}),
        ] {
            for meta in replaced_everywhere(&meta_of(record), &value) {
                let damaged = with_meta(record, &meta);
                // some values are valid; the others must give a format error
                if let Err(error) = from_bytes(&damaged.to_bytes()) {
                    assert!(matches!(error, Error::Format(_)), "{error:?}");
                }
            }
        }
    }
}

/// A regression and a classification model of families with different file contents.
static MODELS: LazyLock<Vec<Record>> = LazyLock::new(|| {
    let families = [
        Family::Vst,
        Family::Forest,
        Family::Tree,
        Family::Ldt,
        Family::SoftTree,
        Family::Vart,
    ];
    let both = |family| [false, true].map(|classify| fitted(family, classify).record());
    let processes = [
        fitted(Family::Gp, false).record(),
        sparse_process().record(),
    ];
    families
        .into_iter()
        .flat_map(both)
        .chain(processes)
        .collect()
});

/// JSON pointers of all parts of a document.
fn paths_of(meta: &Value) -> Vec<String> {
    let below = |name: String, part: &Value| -> Vec<String> {
        let paths = paths_of(part).into_iter();
        paths.map(|path| format!("/{name}{path}")).collect()
    };
    let mut all = vec![String::new()];
    match meta {
        Value::Object(parts) => all.extend(
            parts
                .iter()
                .flat_map(|(name, part)| below(name.clone(), part)),
        ),
        Value::Array(parts) => {
            all.extend(
                parts
                    .iter()
                    .enumerate()
                    .flat_map(|(at, part)| below(at.to_string(), part)),
            );
        }
        _ => {}
    }
    all
}

proptest! {
    #[test]
    fn truncated_models_are_refused(at in any::<prop::sample::Index>()) {
        let bytes = model_bytes();
        let cut = at.index(bytes.len());
        prop_assert!(matches!(from_bytes(&bytes[..cut]), Err(Error::Format(_))));
    }

    #[test]
    fn flipped_bits_with_a_correct_checksum_never_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u8), 1..6),
    ) {
        let mut bytes = model_bytes();
        for (at, bit) in flips {
            let at = 16 + at.index(bytes.len() - 16);
            bytes[at] ^= 1 << bit;
        }
        if let Err(error) = from_bytes(&with_checksum(bytes)) {
            prop_assert!(matches!(error, Error::Format(_)), "{error:?}");
        }
    }

    #[test]
    fn predictions_of_damaged_models_never_panic(
        swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..3),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u8), 0..4),
        which in any::<prop::sample::Index>(),
    ) {
        let mut record = which.get(&MODELS).clone();
        for (to, from) in swaps {
            let mut meta = meta_of(&record);
            let paths = paths_of(&meta);
            let value = meta.pointer(&paths[from.index(paths.len())]).cloned();
            let place = meta.pointer_mut(&paths[to.index(paths.len())]);
            *place.unwrap() = value.unwrap();
            record = with_meta(&record, &meta);
        }
        let mut bytes = record.to_bytes();
        for (at, bit) in flips {
            let at = 16 + at.index(bytes.len() - 16);
            bytes[at] ^= 1 << bit;
        }
        match from_bytes(&with_checksum(bytes)) {
            Err(error) => prop_assert!(matches!(error, Error::Format(_)), "{error:?}"),
            // a model with other columns refuses the table; no prediction may panic
            Ok(model) => {
                let pool = Pool::new(1).unwrap();
                if let Ok(distribution) = Distribution::new(model.as_ref(), &features(), &pool) {
                    let _ = distribution.uncertainty();
                    let _ = distribution.quantile(&[0.1, 0.9]);
                    let _ = distribution.crps(&[0.5; 40]);
                    let _ = distribution.probabilities();
                    let _ = distribution.sample(2, Key::from_seed(1));
                    let _ = (model.gains(), model.tree_export());
                }
            }
        }
    }

    #[test]
    fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(matches!(from_bytes(&bytes), Err(Error::Format(_))));
        let mut headed = b"SOFTWOOD\x01\0\0\0\0\0\0\0".to_vec();
        headed.extend(bytes);
        prop_assert!(matches!(from_bytes(&with_checksum(headed)), Err(Error::Format(_))));
    }
}
