//! Parameters that give a number to each of some names: columns with a direction, classes with a
//! weight.
//!
//! As text they are `name:number` pairs separated by commas, or a JSON object where a name holds a
//! comma; elsewhere they are objects. A name's last colon parts it from its number.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::params::{ParamKind, ParamSpec, Setting};

/// Columns by name with a direction: 1 where the prediction may not fall as the column rises, -1
/// where it may not rise.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Directions(pub BTreeMap<String, i8>);

impl Setting for Directions {
    fn kind(min: f64, max: f64) -> ParamKind {
        ParamKind::Map {
            keys: "column",
            form: "columns with +1 (rising) or -1 (falling), as age:+1,price:-1",
            words: &[],
            min,
            max,
        }
    }
    fn is_within(&self, min: f64, max: f64) -> bool {
        let is_sound =
            |&direction: &i8| direction != 0 && (min..=max).contains(&f64::from(direction));
        self.0.values().all(is_sound)
    }
}

/// A rule that gives every class a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WeightRule {
    /// Every class counts the same altogether.
    Balanced,
}

/// How much the rows of a class count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ClassWeight {
    /// By a rule.
    Rule(WeightRule),
    /// By class; one that is not named counts once.
    Given(BTreeMap<String, f64>),
}

impl Setting for ClassWeight {
    fn kind(min: f64, max: f64) -> ParamKind {
        ParamKind::Map {
            keys: "class",
            form: "balanced, or classes with their weights, as yes:5,no:1",
            words: &["balanced"],
            min,
            max,
        }
    }
    fn is_within(&self, min: f64, max: f64) -> bool {
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
        let object = serde_json::from_str(text).map_err(|_| wrong(spec, text))?;
        return from_json(spec, &object);
    }
    let mut found = Map::new();
    for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, number) = pair.rsplit_once(':').ok_or_else(|| wrong(spec, text))?;
        let name = name.trim().to_owned();
        let parsed: Option<f64> = number.trim().parse().ok();
        let number = parsed.map_or_else(|| Value::from(number.trim()), Value::from);
        if found.contains_key(&name) {
            let ParamSpec {
                name: parameter,
                kind,
                ..
            } = spec;
            let what = keys_of(kind);
            return Err(format!(
                "parameter `{parameter}`: the {what} `{name}` is given twice"
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
        return Err(wrong(spec, &value.to_string()));
    };
    let mut found = Map::new();
    for (name, value) in given {
        found.insert(name.clone(), number(spec, name, value)?);
    }
    Ok(Value::Object(found))
}

/// The number of one name: a direction as a whole number, a weight as it is.
fn number(spec: &ParamSpec, name: &str, value: &Value) -> Result<Value, String> {
    let ParamKind::Map { keys, min, max, .. } = spec.kind else {
        return Err(wrong(spec, &value.to_string()));
    };
    let number = value.as_f64().filter(|x| (min..=max).contains(x));
    let (number, right) = if keys == "column" {
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
            "parameter `{}`: the {keys} `{name}` has {value}; expected {right}",
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

fn wrong(spec: &ParamSpec, found: &str) -> String {
    super::unreadable(spec, found)
}
