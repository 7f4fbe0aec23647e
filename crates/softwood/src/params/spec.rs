//! Specification of a parameter: its name, kind, range, default and former names.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The kind of a parameter: its type and range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum ParamKind {
    /// A real number from `min` to `max`, inclusive.
    Float {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// An integer from `min` to `max`, inclusive.
    Int {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// `true` or `false`.
    Bool,
    /// One of a few names.
    Choice {
        /// Names of the choices.
        names: &'static [&'static str],
        /// Former names and their replacements.
        #[serde(skip)]
        former: &'static [(&'static str, &'static str)],
    },
    /// A number from `min` to `max` for each of some names.
    Map {
        /// Kind of the names: `column` or `class`.
        keys: &'static str,
        /// Form of the values, as shown to users.
        form: &'static str,
        /// Words that stand for a whole map.
        words: &'static [&'static str],
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
}

impl ParamKind {
    /// The accepted values, as shown to users.
    pub fn describe(&self) -> String {
        match self {
            Self::Float { min, max } => format!("a number from {min} to {max}"),
            Self::Int { min, max } => format!("a whole number from {min} to {max}"),
            Self::Bool => "true or false".to_owned(),
            Self::Choice { names, .. } => format!("one of {}", names.join(", ")),
            Self::Map { form, .. } => (*form).to_owned(),
        }
    }

    /// The word for a value that is not set (JSON `null`, Python `None`).
    pub fn unset(&self) -> &'static str {
        match self {
            Self::Map { .. } => "none",
            _ => "auto",
        }
    }
}

/// A parameter of a family, as `softwood models NAME` and the Python docstrings show it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ParamSpec {
    /// Name.
    pub name: &'static str,
    /// One line of description.
    pub doc: &'static str,
    /// Accepted values.
    pub kind: ParamKind,
    /// Whether `auto` (`none` for maps; JSON `null`, Python `None`) is accepted.
    pub auto: bool,
    /// Default value.
    pub default: ParamValue,
    /// Former names, which are still read.
    pub former_names: &'static [&'static str],
}

impl ParamSpec {
    /// Whether this is the present name or a former name of the parameter.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.name == name || self.former_names.contains(&name)
    }

    /// Whether a text stands for a value that is not set.
    pub(super) fn is_unset(&self, text: &str) -> bool {
        self.auto && (text == "auto" || text == self.kind.unset())
    }

    /// Error message for a value that cannot be read.
    pub(super) fn invalid_value(&self, found: &str) -> String {
        invalid_value(self.name, found, &self.kind, self.auto)
    }
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ParamValue {
    /// Not set: `auto`, or `none` for a map.
    Unset,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A real number.
    Float(f64),
    /// The name of a choice, or the word for a whole map.
    Text(String),
    /// A number for each of some names.
    Map(BTreeMap<String, f64>),
}

impl ParamValue {
    /// The value of a field.
    pub(crate) fn of(value: &impl Serialize) -> Self {
        match serde_json::to_value(value).unwrap_or_default() {
            Value::Bool(flag) => Self::Bool(flag),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => Self::Int(whole),
                None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Self::Text(text),
            Value::Object(map) => Self::Map(
                map.into_iter()
                    .map(|(name, value)| (name, value.as_f64().unwrap_or(f64::NAN)))
                    .collect(),
            ),
            Value::Null | Value::Array(_) => Self::Unset,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// A type of a parameter field.
pub(crate) trait Setting: Clone + Serialize + DeserializeOwned {
    /// Whether the type accepts `auto`.
    const AUTO: bool = false;
    /// Bounds that a row declares: smallest and largest value, or nothing.
    type Bounds: Copy;
    /// Accepted values, given the declared bounds.
    fn kind(bounds: Self::Bounds) -> ParamKind;
    /// Whether the value lies within the declared bounds.
    fn is_within(&self, bounds: Self::Bounds) -> bool;
}

impl Setting for f64 {
    type Bounds = (f64, f64);
    fn kind((min, max): (f64, f64)) -> ParamKind {
        ParamKind::Float { min, max }
    }
    fn is_within(&self, (min, max): (f64, f64)) -> bool {
        (min..=max).contains(self)
    }
}

impl Setting for usize {
    type Bounds = (f64, f64);
    fn kind((min, max): (f64, f64)) -> ParamKind {
        ParamKind::Int { min, max }
    }
    fn is_within(&self, (min, max): (f64, f64)) -> bool {
        (min..=max).contains(&(*self as f64))
    }
}

impl Setting for bool {
    type Bounds = ();
    fn kind((): ()) -> ParamKind {
        ParamKind::Bool
    }
    fn is_within(&self, (): ()) -> bool {
        true
    }
}

impl<T: Setting> Setting for Option<T> {
    const AUTO: bool = true;
    type Bounds = T::Bounds;
    fn kind(bounds: T::Bounds) -> ParamKind {
        T::kind(bounds)
    }
    fn is_within(&self, bounds: T::Bounds) -> bool {
        self.as_ref().is_none_or(|value| value.is_within(bounds))
    }
}

/// Error message for a value outside its range, for `params!`; `None` if the value is in range.
pub(crate) fn out_of_range<T: Setting>(name: &str, value: &T, bounds: T::Bounds) -> Option<String> {
    if value.is_within(bounds) {
        return None;
    }
    let found = serde_json::to_string(value).unwrap_or_default();
    Some(invalid_value(name, &found, &T::kind(bounds), T::AUTO))
}

fn invalid_value(name: &str, found: &str, kind: &ParamKind, accepts_unset: bool) -> String {
    let unset = if accepts_unset {
        format!(" or {}", kind.unset())
    } else {
        String::new()
    };
    format!(
        "parameter `{name}` = {found}: expected {}{unset}",
        kind.describe()
    )
}
