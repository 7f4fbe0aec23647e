//! The seed and the data determine every byte of a model, for any number of threads.

use crate::problems::FitJson as _;
use crate::problems::{mixed, quick, targets_of, with_target};
use softwood::{Distribution, Family, Key, Pool, Run, Table};

/// The model file of a quick fit.
fn bytes(family: Family, table: &Table, target: &str, seed: u64, threads: usize) -> Vec<u8> {
    let pool = Pool::new(threads).unwrap();
    let run = Run::new(Key::from_seed(seed), &pool);
    let data = with_target(table, target);
    family
        .fit_with(&quick(family), &data, &run)
        .unwrap()
        .to_bytes()
}

#[test]
fn models_do_not_depend_on_the_number_of_threads() {
    for &family in Family::ALL {
        for &target in targets_of(family) {
            let table = mixed(1, 200);
            let one = bytes(family, &table, target, 0, 1);
            for threads in [2, 3, 7] {
                let many = bytes(family, &table, target, 0, threads);
                assert!(
                    one == many,
                    "{}: {target} with {threads} threads",
                    family.name()
                );
            }
        }
    }
}

#[test]
fn the_seed_determines_every_byte() {
    for &family in Family::ALL {
        for &target in targets_of(family) {
            let table = mixed(2, 200);
            let first = bytes(family, &table, target, 5, 2);
            assert!(first == bytes(family, &table, target, 5, 2));
            assert!(first != bytes(family, &table, target, 6, 2));
        }
    }
}

#[test]
fn predictions_do_not_depend_on_the_number_of_threads() {
    for &family in Family::ALL {
        let table = mixed(3, 700);
        let data = with_target(&table, "y");
        let model = crate::problems::fit(family, &quick(family), &data, 0);
        let predict = |threads: usize| {
            let pool = Pool::new(threads).unwrap();
            let dist = Distribution::new(&*model, &table, &pool).unwrap();
            let mut numbers = dist.mean().unwrap();
            numbers.extend(dist.interval(0.9).unwrap());
            numbers.extend(dist.sample(3, Key::from_seed(1)).unwrap());
            numbers.extend(dist.sample_functions(3, Key::from_seed(1)).unwrap());
            numbers.into_iter().map(f64::to_bits).collect::<Vec<_>>()
        };
        let one = predict(1);
        for threads in [2, 3, 7] {
            assert!(
                one == predict(threads),
                "{} with {threads} threads",
                family.name()
            );
        }
    }
}
