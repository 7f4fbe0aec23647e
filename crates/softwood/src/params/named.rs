//! Parameters that map names to numbers: columns to directions, classes to weights.
//!
//! As text they are `name:number` pairs separated by commas, or a JSON object for names with a
//! comma; elsewhere they are objects. The last colon of a pair separates the name from the number.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::params::{ParamKind, ParamSpec, Setting};

/// Monotonic directions by column name: 1 if the prediction must not decrease as the column
/// increases, -1 if it must not increase.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Directions(pub BTreeMap<String, i8>);

impl Setting for Directions {
    type Bounds = (f64, f64);
    fn kind((min, max): (f64, f64)) -> ParamKind {
        ParamKind::Map {
            keys: "column",
            form: "columns with +1 (rising) or -1 (falling), as age:+1,price:-1",
            words: &[],
            min,
            max,
        }
    }
    fn is_within(&self, (min, max): (f64, f64)) -> bool {
        let is_valid =
            |&direction: &i8| direction != 0 && (min..=max).contains(&f64::from(direction));
        self.0.values().all(is_valid)
    }
}

/// A rule for class weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum WeightRule {
    /// All classes have the same total weight.
    Balanced,
}

/// Class weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ClassWeight {
    /// By a rule.
    Rule(WeightRule),
    /// By class name; the weight of a class that is not named is 1.
    Given(BTreeMap<String, f64>),
}

impl Setting for ClassWeight {
    type Bounds = (f64, f64);
    fn kind((min, max): (f64, f64)) -> ParamKind {
        ParamKind::Map {
            keys: "class",
            form: "balanced, or classes with their weights, as yes:5,no:1",
            words: &["balanced"],
            min,
            max,
        }
    }
    fn is_within(&self, (min, max): (f64, f64)) -> bool {
        match self {
            Self::Rule(_) => true,
            Self::Given(weights) => weights.values().all(|weight| (min..=max).contains(weight)),
        }
    }
}

/// Reads a text: a word, pairs, or a JSON object.
pub(super) fn from_text(spec: &ParamSpec, text: &str) -> Result<Value, String> {
    if is_word(spec, text) {
        return Ok(Value::from(text));
    }
    if text.starts_with('{') {
        let object = serde_json::from_str(text).map_err(|_| spec.invalid_value(text))?;
        return from_json(spec, &object);
    }
    let mut found = Map::new();
    for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, number) = pair
            .rsplit_once(':')
            .ok_or_else(|| spec.invalid_value(text))?;
        let name = name.trim().to_owned();
        let parsed: Option<f64> = number.trim().parse().ok();
        let number = parsed.map_or_else(|| Value::from(number.trim()), Value::from);
        if found.contains_key(&name) {
            let ParamSpec {
                name: parameter,
                kind,
                ..
            } = spec;
            let key_kind = keys_of(kind);
            return Err(format!(
                "parameter `{parameter}`: the {key_kind} `{name}` is given twice"
            ));
        }
        found.insert(name, number);
    }
    from_json(spec, &Value::Object(found))
}

/// Reads a JSON value: a word, or an object of numbers.
pub(super) fn from_json(spec: &ParamSpec, value: &Value) -> Result<Value, String> {
    if let Value::String(text) = value {
        return from_text(spec, text.trim());
    }
    let Value::Object(given) = value else {
        return Err(spec.invalid_value(&value.to_string()));
    };
    let mut found = Map::new();
    for (name, value) in given {
        found.insert(name.clone(), number(spec, name, value)?);
    }
    Ok(Value::Object(found))
}

/// Reads the number of one name: an integer for a direction, a real number for a weight.
fn number(spec: &ParamSpec, name: &str, value: &Value) -> Result<Value, String> {
    let ParamKind::Map { keys, min, max, .. } = spec.kind else {
        return Err(spec.invalid_value(&value.to_string()));
    };
    let number = value.as_f64().filter(|x| (min..=max).contains(x));
    let (number, expected) = if keys == "column" {
        let number = number.filter(|x| x.fract() == 0.0 && *x != 0.0);
        (
            number.map(|x| Value::from(x as i8)),
            "+1 (rising) or -1 (falling)".to_owned(),
        )
    } else {
        (
            number.map(Value::from),
            format!("a number from {min} to {max}"),
        )
    };
    number.ok_or_else(|| {
        format!(
            "parameter `{}`: the {keys} `{name}` has {value}; expected {expected}",
            spec.name
        )
    })
}

fn is_word(spec: &ParamSpec, text: &str) -> bool {
    matches!(spec.kind, ParamKind::Map { words, .. } if words.contains(&text))
}

fn keys_of(kind: &ParamKind) -> &'static str {
    match kind {
        ParamKind::Map { keys, .. } => keys,
        _ => "name",
    }
}
