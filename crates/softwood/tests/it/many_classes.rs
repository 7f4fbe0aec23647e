//! More classes than one tree updates.

use crate::problems::FitJson as _;
use crate::problems::prediction_bits;
use serde_json::{Value, json};
use softwood::evaluate::score;
use softwood::store::Array;
use softwood::{
    Column, Dataset, Distribution, Family, Key, Model, Pool, Roles, Run, Table, from_bytes,
};

const FAMILIES: [Family; 2] = [Family::Sgb, Family::Sglb];

/// Each cell of a `side` x `side` grid is a class; a tenth of the rows has a random class.
fn table(n: usize, seed: u64, side: usize) -> Table {
    let column = |number: u64| Key::from_seed(seed).child(number).uniforms(n);
    let (a, b, flip, other) = (column(1), column(2), column(3), column(4));
    let cell = |x: f64| (x * side as f64) as usize;
    let classes: Vec<Option<String>> = (0..n)
        .map(|row| {
            let cell_class = side * cell(a[row]) + cell(b[row]);
            let random = (other[row] * (side * side) as f64) as usize;
            let class = if flip[row] < 0.1 { random } else { cell_class };
            Some(format!("{class:03}"))
        })
        .collect();
    Table::new(vec![
        Column::numeric("a", a),
        Column::numeric("b", b),
        Column::categorical("target", &classes),
    ])
    .unwrap()
}

fn dataset(table: &Table) -> Dataset {
    let roles = Roles {
        target: "target".into(),
        ..Roles::default()
    };
    Dataset::from_table(table, &roles).unwrap()
}

fn fit_on(threads: usize, family: Family, n_trees: usize, data: &Dataset) -> Box<dyn Model> {
    let pool = Pool::new(threads).unwrap();
    let run = Run::new(Key::from_seed(7), &pool);
    family.fit_with(&params(n_trees), data, &run).unwrap()
}

fn params(n_trees: usize) -> Value {
    json!({ "n_members": 2, "n_estimators": n_trees, "learning_rate": 0.2, "max_depth": 6 })
}

#[test]
fn many_classes_are_learned_and_restored() {
    let (train, test) = (table(4000, 1, 8), table(1000, 2, 8));
    let data = dataset(&train);
    let truth = Dataset::aligned(data.schema(), &test, None).unwrap();
    let pool = Pool::new(2).unwrap();
    for family in FAMILIES {
        let model = fit_on(2, family, 150, &data);
        let found = Distribution::new(model.as_ref(), &test, &pool).unwrap();
        let scores = score(&found, truth.target(), None).unwrap().values;
        // the best possible error rate is about 0.1; that of a constant is 0.98
        assert!(scores["error"] < 0.2, "{} {scores:?}", family.name());
        assert!(scores["nll"] < 1.5, "{} {scores:?}", family.name());
        let restored = from_bytes(&model.to_bytes()).unwrap();
        assert_eq!(
            prediction_bits(model.as_ref(), &test),
            prediction_bits(restored.as_ref(), &test)
        );
        let single_thread = fit_on(1, family, 150, &data);
        assert_eq!(
            prediction_bits(model.as_ref(), &test),
            prediction_bits(single_thread.as_ref(), &test)
        );
    }
}

#[test]
fn a_warm_start_on_the_same_rows_equals_one_long_fit() {
    let data = dataset(&table(1500, 1, 6));
    let test = table(300, 2, 6);
    let pool = Pool::new(2).unwrap();
    for family in FAMILIES {
        let half = fit_on(2, family, 20, &data);
        let run = Run::new(Key::from_seed(7), &pool).warm_start(half.as_ref());
        let resumed = family.fit_with(&params(20), &data, &run).unwrap();
        let long = fit_on(2, family, 40, &data);
        let probabilities = |model: &dyn Model| {
            let found = Distribution::new(model, &test, &pool).unwrap();
            found.probabilities().unwrap()
        };
        let (a, b) = (
            probabilities(resumed.as_ref()),
            probabilities(long.as_ref()),
        );
        let difference: f64 = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).sum();
        // the warm start rounds the raw outputs once more, which may change a close split
        assert!(difference / 300.0 < 0.02, "{} {difference}", family.name());
    }
}

#[test]
fn files_with_impossible_output_indices_are_refused() {
    let data = dataset(&table(800, 1, 6));
    let record = fit_on(1, Family::Sgb, 3, &data).record();
    let damage: [fn(&mut Vec<u32>); 4] = [
        |outputs| outputs[30] = 36,
        |outputs| outputs[1] = outputs[0],
        |outputs| outputs.truncate(40),
        Vec::clear,
    ];
    for damage in damage {
        let mut damaged = record.clone();
        for (name, numbers) in &mut damaged.arrays {
            if let (true, Array::U32(outputs)) = (name == "chain0.outputs", numbers) {
                damage(outputs);
            }
        }
        assert!(damaged != record);
        assert!(from_bytes(&damaged.to_bytes()).is_err());
    }
    let mut damaged = record.clone();
    damaged.arrays.retain(|(name, _)| name != "chain0.outputs");
    assert!(from_bytes(&damaged.to_bytes()).is_err());
}
