//! Every question that a loaded model can be asked. The fuzz target in `fuzz/` includes this file.

use std::sync::Arc;

use softwood::data::{FieldKind, Schema, Target, Values};
use softwood::evaluate::{ood, score};
use softwood::explain::{PermutationOptions, importances};
use softwood::{Column, Distribution, Key, Model, Pool, Result, Table, from_bytes};

/// Rows of the table that the questions are about.
const N_ROWS: usize = 6;

/// Asks the model every question about rows of its own schema.
///
/// # Errors
/// The name of a question whose answer is not finite; an error as the answer is fine.
pub(crate) fn ask_all(model: &dyn Model, pool: &Pool) -> std::result::Result<(), String> {
    let _ = (model.params_json(), model.training().clone());
    if let Some(gains) = model.gains() {
        all_finite("gains", &gains)?;
    }
    if let Some(n_nodes) = model.n_nodes() {
        all_finite("number of nodes", &[n_nodes])?;
    }
    if let Some(structure) = model.structure() {
        let text = serde_json::to_string(&structure).map_err(|error| error.to_string())?;
        if text.contains("null") {
            return Err("posterior over structures".to_owned());
        }
    }
    if let Some(tree) = model.tree_export() {
        let text = serde_json::to_string(&tree).map_err(|error| error.to_string())?;
        // a number that is not finite is null in JSON
        let numbers = [
            "mean",
            "sd",
            "gain",
            "weight",
            "threshold",
            "share",
            "if_missing",
        ];
        let is_null = |name: &&str| text.contains(&format!("{name}\":null"));
        if numbers.iter().any(is_null) {
            return Err("tree export".to_owned());
        }
        let _ = (tree.text(), tree.svg());
    }
    let bytes = model.to_bytes();
    match from_bytes(&bytes) {
        Ok(again) if again.to_bytes() == bytes => {}
        Ok(_) => return Err("saving again changes bytes".to_owned()),
        Err(error) => return Err(format!("saving again: {error}")),
    }
    let Ok([table, other]) = tables_of(model.schema()) else {
        return Ok(());
    };
    let (Ok(dist), Ok(other)) = (
        Distribution::new(model, &table, pool),
        Distribution::new(model, &other, pool),
    ) else {
        return Ok(());
    };
    ask_any(&dist, &other)?;
    if model.schema().classes().is_some() {
        ask_classes(&dist)
    } else {
        ask_numbers(&dist)
    }
}

/// Questions to models of both tasks.
fn ask_any(dist: &Distribution<'_>, other: &Distribution<'_>) -> std::result::Result<(), String> {
    if let Ok(parts) = dist.uncertainty() {
        all_finite("total uncertainty", &parts.total)?;
        all_finite("data uncertainty", &parts.data)?;
        all_finite("knowledge uncertainty", &parts.knowledge)?;
    }
    finite("sample", dist.sample(3, Key::from_seed(1)))?;
    finite("functions", dist.sample_functions(2, Key::from_seed(2)))?;
    finite("members", dist.members())?;
    if let Ok(Some(joint)) = dist.joint() {
        all_finite("joint mean", &joint.mean)?;
        all_finite("joint covariance", &joint.covariance)?;
    }
    if let Ok(contrast) = dist.contrast(other, &[0.1, 0.9]) {
        all_finite("contrast mean", &contrast.mean)?;
        all_finite("contrast std", &contrast.std)?;
        all_finite("contrast quantiles", &contrast.quantiles)?;
        all_finite("contrast members", &contrast.member_means)?;
    }
    if let Ok(found) = ood(dist, other) {
        let text = serde_json::to_string(&found).map_err(|error| error.to_string())?;
        // where all rows have the same uncertainty there is no threshold
        if text.replace("\"threshold\":null", "").contains("null") {
            return Err(format!("out-of-domain detection: {text}"));
        }
    }
    let options = PermutationOptions {
        repeats: 2,
        key: Key::from_seed(3),
        reference: None,
    };
    let target = target_of(dist);
    if let Ok(scores) = score(dist, &target, Some(1.0)) {
        let values: Vec<f64> = scores.values.values().copied().collect();
        all_finite("scores", &values)?;
    }
    for target in [None, Some(&target)] {
        let Ok(found) = importances(dist, target, &options) else {
            continue;
        };
        all_finite("importances", &[found.knowledge])?;
        let text = serde_json::to_string(&found.columns).map_err(|error| error.to_string())?;
        if text.contains("\"mean\":null") {
            return Err("importances of columns".to_owned());
        }
    }
    Ok(())
}

/// Targets near zero, or the first two classes in turn.
fn target_of(dist: &Distribution<'_>) -> Target {
    let n_rows = dist.n_rows();
    match dist.schema().classes() {
        Some(_) => Target::Classes((0..n_rows as u32).map(|row| row % 2).collect()),
        None => Target::Numeric((0..n_rows).map(|row| row as f64 / 4.0 - 0.5).collect()),
    }
}

fn ask_numbers(dist: &Distribution<'_>) -> std::result::Result<(), String> {
    let levels = [1e-9, 0.05, 0.5, 0.95, 1.0 - 1e-9];
    if let Ok(summary) = dist.summary(&levels) {
        all_finite("summary", &summary.quantiles)?;
    }
    finite("quantiles", dist.quantile(&levels))?;
    finite("interval", dist.interval(0.9))?;
    let Ok(moments) = dist.moments() else {
        return Ok(());
    };
    all_finite("mean", &moments.mean)?;
    all_finite("std", &moments.std)?;
    all_finite("data std", &moments.data_std)?;
    all_finite("knowledge std", &moments.knowledge_std)?;
    let Ok(medians) = dist.quantile(&[0.5]) else {
        return Ok(());
    };
    ask_at(dist, &medians)?;
    for distance in [0.0, -3.0, 10.0] {
        let near = moments.mean.iter().zip(&moments.std);
        let y = near.map(|(mean, std)| mean + distance * std);
        ask_at(dist, &y.collect::<Vec<_>>())?;
    }
    for far in [0.0, 1e10, -1e100, 1e300] {
        ask_at(dist, &vec![far; dist.n_rows()])?;
    }
    Ok(())
}

/// Scores of given targets.
fn ask_at(dist: &Distribution<'_>, y: &[f64]) -> std::result::Result<(), String> {
    if y.iter().any(|y| !y.is_finite()) {
        return Ok(());
    }
    finite("cdf", dist.cdf(y))?;
    finite("logpdf", dist.logpdf(y))?;
    finite("crps", dist.crps(y))
}

fn ask_classes(dist: &Distribution<'_>) -> std::result::Result<(), String> {
    let Ok(summary) = dist.class_summary() else {
        return Ok(());
    };
    all_finite("probabilities", &summary.probabilities)?;
    let n_classes = summary.probabilities.len() / dist.n_rows().max(1);
    for row in summary.probabilities.chunks_exact(n_classes.max(1)) {
        let is_sound = row.iter().all(|p| (0.0..=1.0 + 1e-6).contains(p));
        if !is_sound || (row.iter().sum::<f64>() - 1.0).abs() > 1e-3 {
            return Err(format!("probabilities {row:?}"));
        }
    }
    finite("probabilities", dist.probabilities())?;
    let _ = dist.labels();
    Ok(())
}

fn finite(what: &str, answer: Result<Vec<f64>>) -> std::result::Result<(), String> {
    answer.map_or(Ok(()), |values| all_finite(what, &values))
}

fn all_finite(what: &str, values: &[f64]) -> std::result::Result<(), String> {
    match values.iter().find(|value| !value.is_finite()) {
        None => Ok(()),
        Some(value) => Err(format!("{what}: {value}")),
    }
}

/// A table with the columns of a schema: usual, missing, unseen and extreme cells; and one with
/// other numbers.
fn tables_of(schema: &Schema) -> Result<[Table; 2]> {
    let table = table_of(schema, [0.3, -1.2, f64::NAN, 1e300, -1e300, 0.0])?;
    Ok([table, table_of(schema, [0.7, 0.1, 0.2, 0.3, -5.0, 1.0])?])
}

fn table_of(schema: &Schema, numbers: [f64; N_ROWS]) -> Result<Table> {
    let columns = schema.fields.iter().map(|field| match &field.kind {
        FieldKind::Categorical { levels } if !levels.is_empty() => {
            let codes = (0..N_ROWS as u32).map(|row| match row {
                2 => softwood::data::MISSING,
                3 => softwood::data::UNSEEN,
                row => row % levels.len() as u32,
            });
            Column {
                name: field.name.clone(),
                values: Values::Categorical {
                    codes: codes.collect(),
                    levels: Arc::clone(levels),
                },
            }
        }
        FieldKind::Categorical { .. } => Column::categorical(&field.name, &[Some("new"); N_ROWS]),
        _ => Column::numeric(&field.name, numbers.to_vec()),
    });
    Table::new(columns.collect())
}
