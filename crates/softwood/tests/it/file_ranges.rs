//! Numbers of model files: what a fit writes can be read, and what is out of range is refused.

use crate::problems::FitJson as _;
use crate::problems::{fit, meta_of, mixed, numbers, quick, replaced, with_meta, with_target};
use serde_json::json;
use softwood::{
    Column, Dataset, Distribution, Error, Family, Key, Pool, Roles, Run, Table, from_bytes, load,
};

#[test]
fn targets_of_any_magnitude_are_saved_and_answered_or_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.softwood");
    let table = mixed(1, 60);
    let y = numbers(&table, "y");
    let pool = Pool::new(2).unwrap();
    let run = Run::new(Key::from_seed(0), &pool);
    for &family in Family::ALL {
        for scale in [1e-310, 1e-300, 1e-155, 1e154, 1e200, 1e300, 3e304, 1e307] {
            let scaled: Vec<f64> = y.iter().map(|y| scale * y).collect();
            let table = replaced(&table, Column::numeric("y", scaled.clone()));
            let model = match family.fit_with(&quick(family), &with_target(&table, "y"), &run) {
                Ok(model) => model,
                Err(error) => {
                    let is_extreme = !(1e-301..1e305).contains(&scale);
                    assert!(is_extreme && error.to_string().contains("`y`"), "{error}");
                    continue;
                }
            };
            model.save(&path).unwrap();
            let read = load(&path).unwrap();
            assert_eq!(read.to_bytes(), model.to_bytes(), "{family:?}, {scale:e}");
            let dist = Distribution::new(&*read, &table, &pool).unwrap();
            let parts = dist.uncertainty().unwrap();
            let answers = [
                dist.mean().unwrap(),
                dist.std().unwrap(),
                parts.total,
                parts.data,
                parts.knowledge,
                dist.interval(0.9).unwrap(),
                dist.logpdf(&scaled).unwrap(),
                dist.crps(&scaled).unwrap(),
            ];
            let are_finite = answers.iter().flatten().all(|number| number.is_finite());
            assert!(are_finite, "{family:?}, {scale:e}");
        }
    }
}

/// Half a step of the target is far more than its standard deviation.
#[test]
fn a_rare_target_value_leaves_a_model_that_can_be_read() {
    let n = 40;
    let at = |row: usize| if row == 7 { 1.0 } else { 0.0 };
    let weight = |row: usize| if row == 7 { 1.0 } else { 1e8 };
    let table = Table::new(vec![
        Column::numeric("a", (0..n).map(|row| row as f64).collect()),
        Column::numeric("y", (0..n).map(at).collect()),
        Column::numeric("w", (0..n).map(weight).collect()),
    ]);
    let roles = Roles {
        target: "y".to_owned(),
        weight: Some("w".to_owned()),
        ..Roles::default()
    };
    let data = Dataset::from_table(table.unwrap(), &roles).unwrap();
    for &family in Family::ALL {
        let model = fit(family, &quick(family), &data, 0);
        assert!(from_bytes(&model.to_bytes()).is_ok(), "{family:?}");
    }
}

#[test]
fn numbers_out_of_range_are_refused_by_name() {
    let data = with_target(&mixed(2, 60), "y");
    let cases: [(_, _, f64, _); 32] = [
        (Family::Sgb, "/law/floor", 3e3, "`law.floor`"),
        (Family::Sgb, "/law/floor", 0.0, "`law.floor`"),
        (Family::Sglb, "/law/floor", -1.0, "`law.floor`"),
        (
            Family::Vst,
            "/trees/0/law/Normal/floor",
            -9e18,
            "`law.floor`",
        ),
        (
            Family::Vst,
            "/trees/0/law/Normal/floor",
            -5.0,
            "`law.floor`",
        ),
        (Family::Vst, "/trees/0/beta", 1e9, "`beta`"),
        (Family::Vsgbm, "/spread", 0.0, "`spread`"),
        (Family::Vart, "/spread", 0.0, "`spread`"),
        (Family::Vart, "/fits/0/rank", 1e5, "header"),
        (Family::Vart, "/fits/0/beta", 1e9, "`beta`"),
        (
            Family::Vart,
            "/fits/0/law/Normal/floor",
            -1.0,
            "`law.floor`",
        ),
        (Family::Vsgbm, "/standard/scale", 1e308, "`standard.scale`"),
        (Family::Tree, "/standard/scale", -1.0, "`standard.scale`"),
        (Family::Tree, "/standard/shift", -1e307, "`standard.shift`"),
        (Family::Tree, "/smoothing/floor", 1e-40, "the leaves"),
        (Family::Tree, "/smoothing/factor", -1.0, "the leaves"),
        (Family::Ldt, "/standard/scale", -1.0, "`standard.scale`"),
        (Family::Ldt, "/smoothing/factor", -1.0, "the leaves"),
        (Family::Ldt, "/encoder/numbers/0/sd", 0.0, "the encoder"),
        (
            Family::SoftTree,
            "/summaries/0/leaves/0",
            -1.0,
            "`summaries`",
        ),
        (Family::SoftTree, "/trees/0/beta", 1e9, "`beta`"),
        (Family::Forest, "/noise/floor", 0.0, "the noise"),
        (Family::Forest, "/noise/tails/part", 1.5, "the noise"),
        (Family::Forest, "/n_members", 0.0, "members"),
        (Family::Gp, "/n_members", 0.0, "`n_members`"),
        (Family::Gp, "/noise_sd", 0.0, "`noise_sd`"),
        (Family::Gp, "/log_signal", 30.0, "`log_signal`"),
        (Family::Gp, "/n_points", 7.0, "`alpha`"),
        (Family::GpRnnTree, "/n_members", 0.0, "`n_members`"),
        (Family::GpRnnTree, "/log_signal", 30.0, "`log_signal`"),
        (
            Family::RnnTree,
            "/smoothing/0/factor",
            -1.0,
            "members of a tree",
        ),
        (
            Family::RnnTree,
            "/smoothing/0/floor",
            -5.0,
            "members of a tree",
        ),
    ];
    for (family, pointer, value, expected) in cases {
        let record = fit(family, &quick(family), &data, 0).record();
        let mut meta = meta_of(&record);
        let place = meta.pointer_mut(pointer);
        let place = place.unwrap_or_else(|| panic!("{family:?} has no {pointer}"));
        *place = if place.is_u64() {
            json!(value as u64)
        } else {
            json!(value)
        };
        let error = from_bytes(&with_meta(&record, &meta).to_bytes()).unwrap_err();
        assert!(matches!(error, Error::Format(_)), "{error:?}");
        assert!(error.to_string().contains(expected), "{pointer}: {error}");
    }
}

#[test]
fn a_shrink_rate_under_which_early_members_vanish_is_refused() {
    let data = with_target(&mixed(3, 60), "y");
    let pool = Pool::new(1).unwrap();
    let run = Run::new(Key::from_seed(0), &pool);
    let mut params = json!({"model_shrink_rate": 1.0, "learning_rate": 1.0, "n_estimators": 50,
                            "n_members": 5, "max_depth": 2});
    for virtual_ensemble in [false, true] {
        params["virtual_ensemble"] = json!(virtual_ensemble);
        let error = Family::Sglb.fit_with(&params, &data, &run).unwrap_err();
        assert!(error.to_string().contains("`model_shrink_rate`"), "{error}");
    }
    params["model_shrink_rate"] = json!(0.5);
    params["learning_rate"] = json!(0.1);
    let model = Family::Sglb.fit_with(&params, &data, &run).unwrap();
    assert!(from_bytes(&model.to_bytes()).is_ok());
}

#[test]
fn a_parameter_of_zero_that_another_rule_divides_by_is_refused() {
    let params = r#"{"n_chains": 0, "virtual_ensemble": true}"#;
    let error = Family::Sglb.params_from_json(params).unwrap_err();
    assert!(error.to_string().contains("n_chains"), "{error}");
}
