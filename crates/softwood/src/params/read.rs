//! Reads parameters from `KEY=VALUE` texts, JSON objects and model files.

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::params::{ParamKind, ParamSpec, Params, named};
use crate::suggestion::{did_you_mean, similar_name};

/// Parameters from `KEY=VALUE` texts; names that are not given keep their defaults.
///
/// # Errors
/// [`Error::Parameters`] lists every unknown name, unreadable value and violated rule.
pub(crate) fn from_texts<P: Params>(pairs: &[(String, String)]) -> Result<P> {
    read_texts(None, pairs)
}

/// Parameters from `KEY=VALUE` texts; names that are not given keep the values of `earlier`.
///
/// # Errors
/// As [`from_texts`].
pub(crate) fn updated<P: Params>(earlier: &P, pairs: &[(String, String)]) -> Result<P> {
    let earlier = serde_json::to_value(earlier).unwrap_or_default();
    read_texts(earlier.as_object(), pairs)
}

/// The parameters in a model file, which may use former names.
///
/// # Errors
/// [`Error::Format`] when the parameters are absent, unreadable or violate a rule.
pub(crate) fn from_record<P: Params>(object: &Value) -> Result<P> {
    from_json(object).map_err(|error| Error::Format(error.to_string()))
}

fn read_texts<P: Params>(
    earlier: Option<&Map<String, Value>>,
    pairs: &[(String, String)],
) -> Result<P> {
    let pairs = pairs.iter().map(|(name, text)| (name.as_str(), text));
    read_all(earlier, pairs, |spec, text| {
        let text = text.trim();
        match spec.kind {
            ParamKind::Map { .. } if !spec.is_unset(text) => named::from_text(spec, text),
            _ => read_text(spec, text).ok_or_else(|| spec.invalid_value(text)),
        }
    })
}

/// Parameters from a JSON object; names that are not given keep their defaults.
///
/// # Errors
/// [`Error::Parameters`] lists every unknown name, value of the wrong type and violated rule.
pub(crate) fn from_json<P: Params>(object: &Value) -> Result<P> {
    let Value::Object(given) = object else {
        return Err(Error::Parameters(vec![
            "parameters must be an object of names and values".to_owned(),
        ]));
    };
    let pairs = given.iter().map(|(name, value)| (name.as_str(), value));
    read_all(None, pairs, |spec, value| match spec.kind {
        ParamKind::Map { .. } if !value.is_null() => match value.as_str() {
            Some(text) if spec.is_unset(text) => Ok(Value::Null),
            _ => named::from_json(spec, value),
        },
        _ => read_json(spec, value).ok_or_else(|| spec.invalid_value(&value.to_string())),
    })
}

/// Reads the given values over earlier values or defaults. Rules that involve several fields are
/// checked only if every field was read, because an unread field would be checked with its default.
fn read_all<'a, P: Params, V: 'a>(
    earlier: Option<&Map<String, Value>>,
    given: impl Iterator<Item = (&'a str, V)>,
    read: impl Fn(&ParamSpec, V) -> std::result::Result<Value, String>,
) -> Result<P> {
    let table = P::table();
    let mut values: Map<_, _> = table
        .iter()
        .map(|spec| {
            let earlier = earlier.and_then(|earlier| earlier.get(spec.name));
            let value = earlier.map_or_else(|| spec.default.to_json(), Value::clone);
            (spec.name.to_owned(), value)
        })
        .collect();
    let mut problems = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (name, value) in given {
        let Some(spec) = table.iter().find(|spec| spec.has_name(name)) else {
            problems.push(unknown_name(name, &table));
            continue;
        };
        if seen.contains(&spec.name) {
            problems.push(format!(
                "parameter `{}` is given twice, once by a former name; give `{}` alone",
                spec.name, spec.name
            ));
        }
        seen.push(spec.name);
        match read(spec, value) {
            Ok(value) => {
                values.insert(spec.name.to_owned(), value);
            }
            Err(problem) => problems.push(problem),
        }
    }
    let params: P = serde_json::from_value(Value::Object(values))
        .map_err(|error| Error::Parameters(vec![error.to_string()]))?;
    if problems.is_empty() {
        return Ok(params.check()?.0);
    }
    problems.extend(params.broken_ranges());
    Err(Error::Parameters(problems))
}

/// Notes about former names among the given ones, each with its replacement.
pub(crate) fn former_names<P: Params>(given: &[(String, String)]) -> Vec<String> {
    let table = P::table();
    let mut notes = Vec::new();
    for (name, value) in given {
        let Some(spec) = table.iter().find(|spec| spec.has_name(name)) else {
            continue;
        };
        if spec.name != name {
            notes.push(format!("parameter `{name}` is now called `{}`", spec.name));
        }
        if let ParamKind::Choice { former, .. } = spec.kind
            && let Some((old, new)) = former.iter().find(|(old, _)| old == value)
        {
            notes.push(format!(
                "`{old}` is now called `{new}` (parameter `{}`)",
                spec.name
            ));
        }
    }
    notes
}

/// Names of the same parameter in other libraries.
const SYNONYMS: &[&[&str]] = &[
    &[
        "n_estimators",
        "n_trees",
        "num_trees",
        "ntrees",
        "n_rounds",
        "num_boost_round",
        "num_iterations",
        "iterations",
        "max_iter",
    ],
    &["n_epochs", "epochs", "max_epochs", "max_iter", "n_iter"],
    &["learning_rate", "shrinkage", "lr", "eta", "step_size"],
    &["max_depth", "depth", "tree_depth"],
    &["max_leaf_nodes", "num_leaves", "n_leaves", "max_leaves"],
    &[
        "l2_regularization",
        "lambda",
        "reg_lambda",
        "lambda_l2",
        "l2_leaf_reg",
        "alpha",
    ],
    &[
        "min_child_weight",
        "min_samples_leaf",
        "min_child_samples",
        "min_data_in_leaf",
    ],
    &["subsample", "bagging_fraction", "sample_rate"],
    &[
        "colsample_bytree",
        "max_features",
        "feature_fraction",
        "rsm",
        "mtry",
    ],
    &["max_bins", "max_bin", "n_bins", "border_count"],
    &[
        "monotonic_cst",
        "monotone_constraints",
        "monotonic_constraints",
    ],
    &["class_weight", "class_weights", "scale_pos_weight"],
    &[
        "early_stopping_rounds",
        "patience",
        "n_iter_no_change",
        "od_wait",
    ],
    &[
        "n_members",
        "n_models",
        "ensemble_size",
        "n_samples",
        "n_draws",
    ],
];

fn unknown_name(name: &str, table: &[ParamSpec]) -> String {
    let names: Vec<_> = table.iter().map(|spec| spec.name).collect();
    format!(
        "no parameter is called `{name}`; there are {}{}",
        names.join(", "),
        did_you_mean(suggestion(name, table))
    )
}

/// The parameter that the user probably meant: one that another library calls so, or a similar
/// present or former name.
fn suggestion(name: &str, table: &[ParamSpec]) -> Option<&'static str> {
    let is_known = |other: &&&str| table.iter().any(|spec| spec.name == **other);
    let groups = SYNONYMS.iter().filter(|group| group.contains(&name));
    if let Some(found) = groups.flat_map(|group| group.iter()).find(is_known) {
        return Some(found);
    }
    let former = table.iter().flat_map(|spec| spec.former_names);
    let names = table.iter().map(|spec| spec.name).chain(former.copied());
    let found = similar_name(name, names)?;
    let spec = table.iter().find(|spec| spec.has_name(found))?;
    Some(spec.name)
}

fn read_text(spec: &ParamSpec, text: &str) -> Option<Value> {
    if spec.is_unset(text) {
        return Some(Value::Null);
    }
    match spec.kind {
        ParamKind::Map { .. } => None,
        ParamKind::Bool => text.parse::<bool>().ok().map(Value::from),
        ParamKind::Choice { .. } => read_json(spec, &Value::from(text)),
        ParamKind::Int { .. } | ParamKind::Float { .. } => read_json(
            spec,
            &Value::from(text.parse::<f64>().ok().filter(|x| x.is_finite())?),
        ),
    }
}

/// An integer may arrive as `3.0` (NumPy, TOML).
fn read_json(spec: &ParamSpec, value: &Value) -> Option<Value> {
    if value.is_null() || (spec.auto && value.as_str() == Some("auto")) {
        return spec.auto.then_some(Value::Null);
    }
    match spec.kind {
        ParamKind::Map { .. } => None,
        ParamKind::Bool => value.as_bool().map(Value::from),
        ParamKind::Choice { names, former } => {
            let text = value.as_str()?;
            let renamed = former.iter().find(|(old, _)| *old == text);
            let text = renamed.map_or(text, |(_, new)| new);
            names.contains(&text).then(|| Value::from(text))
        }
        ParamKind::Float { .. } => value.as_f64().map(Value::from),
        ParamKind::Int { .. } => {
            let number = value.as_f64()?;
            (number.fract() == 0.0 && (0.0..=1e15).contains(&number))
                .then(|| Value::from(number as u64))
        }
    }
}
