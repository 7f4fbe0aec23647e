//! Behaviour that every model family has: one suite over all families.

use crate::problems::FitJson as _;
use crate::problems::{
    categories, classifiers, fit, mixed, normals, numbers, prediction_bits, quick, replaced,
    targets_of, uniforms, with_target,
};
use softwood::observer::{NoObserver, Observer};
use softwood::{
    Column, Dataset, Distribution, Error, Family, Key, Model, Pool, Roles, Run, Table, from_bytes,
    load,
};

/// Checks each family on each target of the mixed table.
fn for_each_family_and_target(check: impl Fn(Family, &str)) {
    for &family in Family::ALL {
        for &target in targets_of(family) {
            check(family, target);
        }
    }
}

fn quick_fit(family: Family, data: &Dataset) -> Box<dyn Model> {
    fit(family, &quick(family), data, 0)
}

/// As [`quick_fit`], but returns the error.
fn try_fit(family: Family, data: &Dataset, observer: &dyn Observer) -> Result<(), Error> {
    let pool = Pool::new(2).unwrap();
    let run = Run::new(Key::from_seed(0), &pool).observer(observer);
    family.fit_with(&quick(family), data, &run).map(|_| ())
}

fn roles(target: &str) -> Roles {
    Roles {
        target: target.to_owned(),
        ..Roles::default()
    }
}

#[test]
fn a_model_read_from_its_file_predicts_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    for_each_family_and_target(|family, target| {
        let table = mixed(1, 120);
        let model = quick_fit(family, &with_target(&table, target));
        let path = folder.path().join(format!("{target}.softwood"));
        model.save(&path).unwrap();
        let read = load(&path).unwrap();
        assert_eq!(
            prediction_bits(&*read, &table),
            prediction_bits(&*model, &table)
        );
        assert_eq!(read.schema(), model.schema());
        assert_eq!(read.training(), model.training());
    });
}

#[test]
fn missing_cells_are_accepted_in_training_and_prediction() {
    for_each_family_and_target(|family, target| {
        let full = mixed(2, 120);
        let mut a = numbers(&full, "a");
        let mut c = categories(Key::from_seed(3), a.len(), &["oak", "pine", "yew"]);
        for row in (0..a.len()).step_by(3) {
            a[row] = f64::NAN;
            c[(row + 1) % a.len()] = None;
        }
        let holes = replaced(&full, Column::numeric("a", a));
        let holes = replaced(&holes, Column::categorical("c", &c));
        // `prediction_bits` checks that all predictions are finite
        for training in [&full, &holes] {
            let model = quick_fit(family, &with_target(training, target));
            prediction_bits(&*model, &full);
            prediction_bits(&*model, &holes);
        }
    });
}

#[test]
fn a_column_without_any_cell_is_accepted() {
    for_each_family_and_target(|family, target| {
        let table = mixed(4, 80);
        let empty = Column::numeric("empty", vec![f64::NAN; table.n_rows()]);
        let nameless = Column::categorical("nameless", &vec![None::<&str>; table.n_rows()]);
        let wide = replaced(&replaced(&table, empty), nameless);
        let model = quick_fit(family, &with_target(&wide, target));
        prediction_bits(&*model, &wide);
        // cells in a column that was empty in training
        let filled = Column::numeric("empty", vec![7.0; table.n_rows()]);
        prediction_bits(&*model, &replaced(&wide, filled));
        // only missing cells: the model predicts the marginal distribution
        let bare = wide.without(&["a", "b", "c"]);
        let model = quick_fit(family, &with_target(&bare, target));
        prediction_bits(&*model, &bare);
    });
}

#[test]
fn constant_columns_are_accepted() {
    for_each_family_and_target(|family, target| {
        let table = mixed(5, 80);
        let table = replaced(&table, Column::numeric("a", vec![3.0; 80]));
        let table = replaced(&table, Column::categorical("c", &[Some("oak"); 80]));
        prediction_bits(&*quick_fit(family, &with_target(&table, target)), &table);
    });
}

#[test]
fn categorical_columns_alone_are_enough() {
    for_each_family_and_target(|family, target| {
        let table = mixed(6, 80).without(&["a", "b"]);
        prediction_bits(&*quick_fit(family, &with_target(&table, target)), &table);
    });
}

/// Rows of four kinds of tree, whose heights differ by five times the noise.
fn tree_heights(n: usize) -> Table {
    let key = Key::from_seed(7);
    let names = ["ash", "elm", "oak", "yew"];
    let tree = categories(key.child(1), n, &names);
    let (age, noise) = (normals(key.child(2), n), normals(key.child(3), n));
    let level = |row: usize| {
        names
            .iter()
            .position(|name| tree[row].as_deref() == Some(name))
    };
    let height = (0..n)
        .map(|row| 2.5 * level(row).unwrap() as f64 + age[row] + 0.5 * noise[row])
        .collect();
    Table::new(vec![
        Column::numeric("age", age),
        Column::categorical("tree", &tree),
        Column::numeric("height", height),
    ])
    .unwrap()
}

/// Mean knowledge uncertainty of the rows of `table` with the category `kind` in every row.
fn knowledge(model: &dyn Model, table: &Table, kind: &str) -> f64 {
    let kinds = vec![Some(kind); table.n_rows()];
    let rows = replaced(table, Column::categorical("tree", &kinds));
    let pool = Pool::new(2).unwrap();
    let dist = Distribution::new(model, &rows, &pool).unwrap();
    dist.uncertainty().unwrap().knowledge.iter().sum::<f64>() / table.n_rows() as f64
}

#[test]
fn an_unseen_category_raises_knowledge_uncertainty() {
    for &family in Family::ALL {
        let table = tree_heights(400);
        let heights = numbers(&table, "height").into_iter();
        let tall: Vec<_> = heights
            .map(|h| Some(if h > 4.0 { "yes" } else { "no" }))
            .collect();
        let classes = replaced(
            &table.without(&["height"]),
            Column::categorical("tall", &tall),
        );
        for (table, target) in [(&table, "height"), (&classes, "tall")] {
            if target == "tall" && !family.supports_classes() {
                continue;
            }
            let data = Dataset::from_table(table, &roles(target)).unwrap();
            let model = quick_fit(family, &data);
            let unseen = knowledge(&*model, table, "baobab");
            for kind in ["ash", "elm", "oak", "yew"] {
                let seen = knowledge(&*model, table, kind);
                assert!(unseen > 2.0 * seen, "{target}: {unseen}, {kind} {seen}");
            }
        }
    }
}

/// Three times `x` with little noise, as a number or as two classes, and a second input without effect.
fn steep(x: Option<&[f64]>, is_class: bool) -> (Table, Vec<f64>) {
    let key = Key::from_seed(11);
    let draws = uniforms(key.child(0), 300);
    let own: Vec<f64> = draws.iter().map(|u| 4.0 * u - 2.0).collect();
    let noise = normals(key.child(1), 300);
    let pairs = own.iter().zip(noise);
    let target: Vec<f64> = pairs.map(|(x, noise)| 3.0 * x + 0.1 * noise).collect();
    let class = |y: &f64| Some(if *y > 0.0 { "high" } else { "low" });
    let classes: Vec<_> = target.iter().map(class).collect();
    let columns = vec![
        Column::numeric("x", x.unwrap_or(&own).to_vec()),
        Column::numeric("other", uniforms(key.child(2), 300)),
        if is_class {
            Column::categorical("target", &classes)
        } else {
            Column::numeric("target", target.clone())
        },
    ];
    (Table::new(columns).unwrap(), target)
}

#[test]
fn a_missing_cell_of_a_complete_column_leaves_the_target_uncertain() {
    for &family in Family::ALL {
        let (table, target) = steep(None, false);
        let (missing, _) = steep(Some(&[f64::NAN; 300]), false);
        let data = Dataset::from_table(&table, &roles("target")).unwrap();
        let model = quick_fit(family, &data);
        let interval = model.predict(&missing).unwrap().interval(0.9).unwrap();
        let pairs = target.iter().zip(interval.chunks_exact(2));
        let is_inside = |(y, ends): &(&f64, &[f64])| (ends[0]..=ends[1]).contains(y);
        let covered = pairs.filter(is_inside).count();
        assert!(covered >= 200, "{family:?}: {covered} of 300");
        let knowledge = |table: &Table| {
            let parts = model.predict(table).unwrap().uncertainty().unwrap();
            parts.knowledge[0]
        };
        let (known, unknown) = (knowledge(&table), knowledge(&missing));
        assert!(unknown > 10.0 * known, "{family:?}: {unknown}, {known}");
        if family.supports_classes() {
            let data = steep(None, true).0;
            let data = Dataset::from_table(&data, &roles("target")).unwrap();
            let model = quick_fit(family, &data);
            let probabilities = model.predict(&missing).unwrap().probabilities().unwrap();
            let found = probabilities[0];
            assert!((0.1..0.9).contains(&found), "{family:?}: {found}");
        }
    }
}

/// One row of twenty has the value 1, and a target that is larger by 6: the mean without this column is about
/// 0.3 larger. An average over the two values would be larger by 3.
#[test]
fn a_missing_cell_counts_each_value_as_often_as_training_did() {
    let n = 300;
    let rare: Vec<f64> = (0..n)
        .map(|row| f64::from(u8::from(row % 20 == 0)))
        .collect();
    let noise = normals(Key::from_seed(12), n);
    let target = rare.iter().zip(&noise).map(|(x, z)| 6.0 * x + 0.1 * z);
    let table = |rare: Vec<f64>| {
        let columns = vec![
            Column::numeric("rare", rare),
            Column::numeric("other", uniforms(Key::from_seed(13), n)),
            Column::numeric("target", target.clone().collect()),
        ];
        Table::new(columns).unwrap()
    };
    let data = Dataset::from_table(table(rare.clone()), &roles("target")).unwrap();
    for &family in Family::ALL {
        let model = quick_fit(family, &data);
        let missing = table(vec![f64::NAN; n]);
        let mean = model.predict(&missing).unwrap().mean().unwrap()[0];
        assert!((-0.5..2.0).contains(&mean), "{family:?}: {mean}");
        let read = from_bytes(&model.to_bytes()).unwrap();
        assert!(prediction_bits(&*read, &missing) == prediction_bits(&*model, &missing));
    }
}

/// The inputs of [`steep`], the first one in three categories if asked for, with some of its cells missing.
fn with_missing(is_category: bool, is_missing: impl Fn(usize) -> bool) -> Table {
    let table = steep(None, false).0;
    let own = numbers(&table, "x").into_iter().enumerate();
    if !is_category {
        let x = own.map(|(row, x)| if is_missing(row) { f64::NAN } else { x });
        return replaced(&table, Column::numeric("x", x.collect()));
    }
    let name = |x: f64| ["low", "middle", "high"][((x + 2.0) * 0.75) as usize];
    let names = own.map(|(row, x)| (!is_missing(row)).then(|| name(x)));
    replaced(&table, Column::categorical("x", &names.collect::<Vec<_>>()))
}

/// Rows without the cell are the rows in the middle, so that its absence tells the target.
#[test]
fn a_warm_start_learns_missing_cells() {
    let pool = Pool::new(2).unwrap();
    let x = numbers(&steep(None, false).0, "x");
    for is_category in [false, true] {
        let dataset = |table: Table| Dataset::from_table(table, &roles("target")).unwrap();
        let data = dataset(with_missing(is_category, |_| false));
        let new = dataset(with_missing(is_category, |row| x[row].abs() < 0.6));
        let missing = with_missing(is_category, |_| true);
        for &family in Family::ALL {
            if !family.supports_warm_start() {
                continue;
            }
            let model = quick_fit(family, &data);
            let run = Run::new(Key::from_seed(2), &pool).warm_start(model.as_ref());
            let resumed = family.fit_with(&quick(family), &new, &run).unwrap();
            let knowledge = |model: &dyn Model| {
                let parts = model.predict(&missing).unwrap().uncertainty().unwrap();
                parts.knowledge[0]
            };
            let (before, after) = (knowledge(&*model), knowledge(&*resumed));
            assert!(
                after < 0.3 * before,
                "{family:?} {is_category}: {before} {after}"
            );
        }
    }
}

#[test]
fn the_prediction_of_a_row_does_not_depend_on_other_rows() {
    for_each_family_and_target(|family, target| {
        let table = mixed(8, 120);
        let model = quick_fit(family, &with_target(&table, target));
        let all = prediction_bits(&*model, &table);
        for row in [0, 17, 119] {
            let one = prediction_bits(&*model, &table.take(&[row]));
            // the mean, or the probability of the first class
            let width = model.schema().classes().map_or(1, <[String]>::len);
            assert_eq!(one[0], all[row * width]);
        }
    });
}

#[test]
fn two_rows_are_enough_and_one_is_not() {
    for_each_family_and_target(|family, target| {
        let table = mixed(9, 60);
        let data = with_target(&table, target);
        let other = (1..60).find(|&row| {
            let pair = data.take(&[0, row]);
            pair.check_fit().is_ok()
        });
        let pair = with_target(&table.take(&[0, other.unwrap()]), target);
        prediction_bits(&*quick_fit(family, &pair), &table);
        let one = with_target(&table.take(&[0]), target);
        assert!(matches!(
            try_fit(family, &one, &NoObserver),
            Err(Error::Table(_))
        ));
    });
}

#[test]
fn a_constant_target_is_refused_by_name() {
    for &family in Family::ALL {
        let table = replaced(&mixed(10, 50), Column::numeric("y", vec![2.5; 50]));
        let error = try_fit(family, &with_target(&table, "y"), &NoObserver).unwrap_err();
        assert!(error.to_string().contains("`y`"), "{error}");
        if !family.supports_classes() {
            continue;
        }
        let table = replaced(&table, Column::categorical("two", &[Some("no"); 50]));
        let error = try_fit(family, &with_target(&table, "two"), &NoObserver).unwrap_err();
        assert!(error.to_string().contains("`two`"), "{error}");
    }
}

/// The dataset with target `target` and row weights.
fn weighted(table: &Table, weights: Vec<f64>, target: &str) -> Dataset {
    let data = with_target(table, target);
    Dataset::new(
        data.schema().clone(),
        data.features().clone(),
        data.target().clone(),
        Some(weights),
    )
    .unwrap()
}

#[test]
fn a_weight_equals_a_repetition() {
    for_each_family_and_target(|family, target| {
        let table = mixed(11, 90);
        let count = |row: usize| 1 + row % 3;
        let rows: Vec<usize> = (0..90).flat_map(|row| vec![row; count(row)]).collect();
        let repeated = with_target(&table, target).take(&rows);
        let weights = (0..90).map(|row| count(row) as f64).collect();
        let weighted = weighted(&table, weights, target);
        assert_eq!(
            prediction_bits(&*quick_fit(family, &repeated), &table),
            prediction_bits(&*quick_fit(family, &weighted), &table)
        );
    });
}

#[test]
fn rows_of_weight_zero_are_ignored() {
    for_each_family_and_target(|family, target| {
        let table = mixed(12, 90);
        let weights = (0..90).map(|row| f64::from(u8::from(row < 60))).collect();
        let kept: Vec<usize> = (0..60).collect();
        let (weighted, kept) = (
            weighted(&table, weights, target),
            with_target(&table, target).take(&kept),
        );
        assert_eq!(
            prediction_bits(&*quick_fit(family, &weighted), &table),
            prediction_bits(&*quick_fit(family, &kept), &table)
        );
    });
}

#[test]
fn target_values_of_rows_with_weight_zero_are_ignored() {
    for &family in Family::ALL {
        let table = mixed(13, 50);
        let mut y = vec![1.0; 50];
        y[49] = 2.0;
        let table = replaced(&table, Column::numeric("y", y));
        let mut weights = vec![1.0; 50];
        weights[49] = 0.0;
        let error = try_fit(family, &weighted(&table, weights, "y"), &NoObserver).unwrap_err();
        assert!(error.to_string().contains("`y`"), "{error}");
        let mut weights = vec![0.0; 50];
        weights[49] = 1.0;
        let error = try_fit(family, &weighted(&table, weights, "y"), &NoObserver).unwrap_err();
        assert!(matches!(error, Error::Table(_)), "{error}");
    }
}

#[test]
fn a_dataset_with_appended_rows_fits_like_the_whole_table() {
    for_each_family_and_target(|family, target| {
        let table = mixed(27, 120);
        let part = |rows: std::ops::Range<usize>| {
            let rows: Vec<usize> = rows.collect();
            Dataset::from_table(table.take(&rows), &roles(target)).unwrap()
        };
        let whole = Dataset::from_table(&table, &roles(target)).unwrap();
        let mut appended = part(0..70);
        appended.append(&part(70..120)).unwrap();
        assert!(quick_fit(family, &appended).to_bytes() == quick_fit(family, &whole).to_bytes());
    });
}

#[test]
fn class_probabilities_sum_to_one_and_the_label_is_the_largest() {
    for family in classifiers() {
        for target in ["two", "three"] {
            let table = mixed(15, 150);
            let model = quick_fit(family, &with_target(&table, target));
            let pool = Pool::new(1).unwrap();
            let dist = Distribution::new(&*model, &table, &pool).unwrap();
            let n_classes = model.schema().classes().unwrap().len();
            let (probabilities, labels) = (dist.probabilities().unwrap(), dist.labels().unwrap());
            for (row, label) in probabilities.chunks_exact(n_classes).zip(labels) {
                assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{row:?}");
                assert!(row.iter().all(|&p| (0.0..=1.0).contains(&p)), "{row:?}");
                assert!(row.iter().all(|&p| p <= row[label as usize]), "{row:?}");
            }
        }
    }
}

#[test]
fn a_class_with_one_row_is_kept() {
    for family in classifiers() {
        let table = mixed(16, 100);
        let mut classes: Vec<_> = (0..100).map(|row| Some(["no", "yes"][row % 2])).collect();
        classes[40] = Some("rare");
        let table = replaced(&table, Column::categorical("three", &classes));
        let model = quick_fit(family, &with_target(&table, "three"));
        assert_eq!(model.schema().classes().unwrap(), ["no", "rare", "yes"]);
        prediction_bits(&*model, &table);
    }
}

#[test]
fn numbers_can_be_classes() {
    for family in classifiers() {
        let table = mixed(17, 80);
        let digits = (0..80).map(|row| f64::from(row % 3)).collect();
        let table = replaced(&table, Column::numeric("y", digits)).without(&["two", "three"]);
        let roles = Roles {
            classify: Some(true),
            ..roles("y")
        };
        let model = quick_fit(family, &Dataset::from_table(&table, &roles).unwrap());
        assert_eq!(model.schema().classes().unwrap(), ["0", "1", "2"]);
        prediction_bits(&*model, &table);
    }
}

#[test]
fn targets_of_any_scale_and_offset_are_accepted() {
    for &family in Family::ALL {
        let table = mixed(18, 100);
        let y = numbers(&table, "y");
        for (shift, scale) in [(0.0, 1e300), (0.0, 1e-300), (1e9, 1e-3), (-1e9, 1.0)] {
            let moved: Vec<f64> = y.iter().map(|y| shift + scale * y).collect();
            let table = replaced(&table, Column::numeric("y", moved.clone()));
            let model = quick_fit(family, &with_target(&table, "y"));
            let pool = Pool::new(1).unwrap();
            let dist = Distribution::new(&*model, &table, &pool).unwrap();
            let low = moved.iter().copied().fold(f64::INFINITY, f64::min);
            let high = moved.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let width = high - low;
            for mean in dist.mean().unwrap() {
                assert!(mean > low - width && mean < high + width, "{scale}: {mean}");
            }
            for sd in dist.std().unwrap() {
                assert!(sd > 1e-4 * width && sd < 2.0 * width, "{scale}: {sd}");
            }
            for pair in dist.interval(0.9).unwrap().chunks_exact(2) {
                assert!(low - width < pair[0] && pair[0] < pair[1] && pair[1] < high + width);
            }
            let scores = [
                dist.logpdf(&moved).unwrap(),
                dist.crps(&moved).unwrap(),
                dist.cdf(&moved).unwrap(),
            ];
            assert!(
                scores.iter().flatten().all(|number| number.is_finite()),
                "{scale}"
            );
        }
    }
}

#[test]
fn features_of_any_scale_are_accepted() {
    for_each_family_and_target(|family, target| {
        let table = mixed(19, 80);
        let stretched = |scale: f64| {
            let a = numbers(&table, "a").iter().map(|a| scale * a).collect();
            replaced(&table, Column::numeric("a", a))
        };
        for scale in [1e300, 1e-300] {
            let table = stretched(scale);
            prediction_bits(&*quick_fit(family, &with_target(&table, target)), &table);
        }
        // far outside the range of the training rows
        let model = quick_fit(family, &with_target(&table, target));
        prediction_bits(&*model, &stretched(1e300));
    });
}

#[test]
fn an_extreme_validation_set_leaves_a_model_that_can_be_read() {
    let table = mixed(9, 120);
    let data = with_target(&table, "y");
    let far = replaced(&table, Column::numeric("y", vec![1e25; 120]));
    let held_out = with_target(&far, "y");
    let pool = Pool::new(1).unwrap();
    let run = Run::new(Key::from_seed(0), &pool).held_out(&held_out);
    for &family in Family::ALL {
        let model = family.fit_with(&quick(family), &data, &run).unwrap();
        let bytes = model.to_bytes();
        let read = softwood::from_bytes(&bytes).unwrap();
        assert_eq!(
            prediction_bits(&*read, &table),
            prediction_bits(&*model, &table)
        );
    }
}

#[test]
fn weights_with_an_extreme_total_are_refused() {
    let table = mixed(10, 60);
    for weight in [1e-30, 1e30] {
        let column = Column::numeric("w", vec![weight; 60]);
        let mut columns = table.columns().to_vec();
        columns.push(column);
        let weighted = Table::new(columns).unwrap();
        let roles = Roles {
            weight: Some("w".to_owned()),
            ..roles("y")
        };
        let message = Dataset::from_table(&weighted, &roles)
            .unwrap_err()
            .to_string();
        assert!(message.contains("add up to"), "{message}");
    }
}

#[test]
fn a_class_for_every_row_is_refused_with_a_remedy() {
    for_each_family_and_target(|family, target| {
        if target != "two" {
            return;
        }
        let table = mixed(31, 60);
        let names: Vec<_> = (0..60).map(|row| Some(format!("row {row}"))).collect();
        let data = with_target(&replaced(&table, Column::categorical("two", &names)), "two");
        let message = try_fit(family, &data, &NoObserver).unwrap_err().to_string();
        assert!(
            message.contains("`two`") && message.contains("values repeat"),
            "{message}"
        );
    });
}

#[test]
fn a_family_for_regression_refuses_classes_and_names_others() {
    for &family in Family::ALL {
        if family.supports_classes() {
            continue;
        }
        let data = with_target(&mixed(32, 60), "two");
        let message = try_fit(family, &data, &NoObserver).unwrap_err().to_string();
        for word in ["`two`", family.name(), "`vst`", "`sglb`"] {
            assert!(message.contains(word), "{message}");
        }
    }
}

#[test]
fn repeated_rows_count_towards_the_size_of_the_validation_set() {
    let x: Vec<f64> = (0..400).map(|row| f64::from(row % 8)).collect();
    let y = x
        .iter()
        .zip(0..)
        .map(|(x, row)| x.sin() + f64::from(row / 8 % 2));
    let table = Table::new(vec![
        Column::numeric("y", y.collect()),
        Column::numeric("x", x),
    ])
    .unwrap();
    let data = Dataset::from_table(&table, &roles("y")).unwrap();
    let model = quick_fit(Family::Vst, &data);
    // sixteen distinct rows, but four hundred rows for the selection of the tree shape
    assert!(model.training().trials.len() > 5);
}
