//! The parameter table: a family declares each field once, with default, range and explanation, and
//! everything else (struct, serde, checks, help texts, Python signatures) is read from that table.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{Error, Result};

mod named;

pub use named::{ClassWeight, Directions, WeightRule};

/// What values a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ParamKind {
    /// A real number between `min` and `max`, both included.
    Float {
        /// Least value.
        min: f64,
        /// Greatest value.
        max: f64,
    },
    /// A whole number between `min` and `max`, both included.
    Int {
        /// Least value.
        min: f64,
        /// Greatest value.
        max: f64,
    },
    /// `true` or `false`.
    Bool,
    /// One of a few names.
    Choice {
        /// The names.
        names: &'static [&'static str],
        /// Former names and those that replace them.
        #[serde(skip)]
        former: &'static [(&'static str, &'static str)],
    },
    /// A number between `min` and `max` for each of some names.
    Map {
        /// What the names are of: `column` or `class`.
        keys: &'static str,
        /// How it is written, as a user reads it.
        form: &'static str,
        /// Words that may stand for a whole map.
        words: &'static [&'static str],
        /// Least value.
        min: f64,
        /// Greatest value.
        max: f64,
    },
}

impl ParamKind {
    /// The range as a user reads it.
    pub fn describe(&self) -> String {
        match self {
            Self::Float { min, max } => format!("a number from {min} to {max}"),
            Self::Int { min, max } => format!("a whole number from {min} to {max}"),
            Self::Bool => "true or false".to_owned(),
            Self::Choice { names, .. } => format!("one of {}", names.join(", ")),
            Self::Map { form, .. } => (*form).to_owned(),
        }
    }

    /// The word for a value that is left open (JSON `null`, Python `None`).
    pub fn unset(&self) -> &'static str {
        match self {
            Self::Map { .. } => "none",
            _ => "auto",
        }
    }
}

/// One parameter of a family, as `softwood models NAME` and the Python docstrings show it.
#[derive(Debug, Clone, Serialize)]
pub struct ParamSpec {
    /// Name, as typed by the user.
    pub name: &'static str,
    /// One line of explanation.
    pub doc: &'static str,
    /// Accepted values.
    pub kind: ParamKind,
    /// Whether `auto` (of a map: `none`; JSON `null`, Python `None`) is accepted.
    pub auto: bool,
    /// Default value.
    pub default: ParamValue,
    /// Former names, which are still read.
    pub former_names: &'static [&'static str],
}

impl ParamSpec {
    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.former_names.contains(&name)
    }
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ParamValue {
    /// Left to the model: `auto`, or `none` for a map.
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

    fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// A type that a parameter field can have.
pub(crate) trait Setting: Clone + Serialize + DeserializeOwned {
    /// Whether the type accepts `auto`.
    const AUTO: bool = false;
    /// Accepted values, given the declared bounds.
    fn kind(min: f64, max: f64) -> ParamKind;
    /// Whether the value lies within the declared bounds.
    fn is_within(&self, min: f64, max: f64) -> bool;
}

impl Setting for f64 {
    fn kind(min: f64, max: f64) -> ParamKind {
        ParamKind::Float { min, max }
    }
    fn is_within(&self, min: f64, max: f64) -> bool {
        (min..=max).contains(self)
    }
}

impl Setting for usize {
    fn kind(min: f64, max: f64) -> ParamKind {
        ParamKind::Int { min, max }
    }
    fn is_within(&self, min: f64, max: f64) -> bool {
        (min..=max).contains(&(*self as f64))
    }
}

impl Setting for bool {
    fn kind(_: f64, _: f64) -> ParamKind {
        ParamKind::Bool
    }
    fn is_within(&self, _: f64, _: f64) -> bool {
        true
    }
}

impl<T: Setting> Setting for Option<T> {
    const AUTO: bool = true;
    fn kind(min: f64, max: f64) -> ParamKind {
        T::kind(min, max)
    }
    fn is_within(&self, min: f64, max: f64) -> bool {
        self.as_ref().is_none_or(|value| value.is_within(min, max))
    }
}

/// The parameters of one family. Made by `params!`.
pub trait Params: Clone + Default + Serialize + DeserializeOwned + Send + Sync {
    /// The table, in field order.
    fn table() -> Vec<ParamSpec>;
    /// Messages about fields that lie outside their range.
    fn broken_ranges(&self) -> Vec<String>;
    /// A rule that ties fields together, as the message shown when it is broken.
    fn across(&self) -> Option<String> {
        None
    }
    /// Proof that all rules hold, or an error that names every broken one.
    ///
    /// # Errors
    /// [`Error::Parameters`] lists all broken rules.
    fn check(self) -> Result<Checked<Self>> {
        let mut broken = self.broken_ranges();
        broken.extend(self.across());
        if broken.is_empty() {
            Ok(Checked(self))
        } else {
            Err(Error::Parameters(broken))
        }
    }
}

/// Parameters whose rules hold.
#[derive(Debug, Clone)]
pub struct Checked<P>(P);

impl<P> std::ops::Deref for Checked<P> {
    type Target = P;
    fn deref(&self) -> &P {
        &self.0
    }
}

/// Makes parameters from `KEY=VALUE` texts; absent names keep their defaults.
///
/// # Errors
/// [`Error::Parameters`] lists every unknown name, unreadable value and broken rule.
pub(crate) fn from_texts<P: Params>(pairs: &[(String, String)]) -> Result<P> {
    texts_over(None, pairs)
}

/// Makes parameters from `KEY=VALUE` texts; absent names keep the values of `earlier`.
///
/// # Errors
/// As [`from_texts`].
pub(crate) fn updated<P: Params>(earlier: &P, pairs: &[(String, String)]) -> Result<P> {
    let earlier = serde_json::to_value(earlier).unwrap_or_default();
    texts_over(earlier.as_object(), pairs)
}

/// The parameters that a model file holds, by former names too.
///
/// # Errors
/// [`Error::Format`] when they are absent, unreadable or break a rule.
pub(crate) fn from_record<P: Params>(object: &Value) -> Result<P> {
    from_json(object).map_err(|error| Error::Format(error.to_string()))
}

fn texts_over<P: Params>(
    earlier: Option<&Map<String, Value>>,
    pairs: &[(String, String)],
) -> Result<P> {
    let pairs = pairs.iter().map(|(name, text)| (name.as_str(), text));
    gather(earlier, pairs, |spec, text| {
        let text = text.trim();
        match spec.kind {
            ParamKind::Map { .. } if !is_unset(spec, text) => named::from_text(spec, text),
            _ => read_text(spec, text).ok_or_else(|| unreadable(spec, text)),
        }
    })
}

/// Makes parameters from a JSON object; absent names keep their defaults.
///
/// # Errors
/// [`Error::Parameters`] lists every unknown name, value of the wrong type and broken rule.
pub(crate) fn from_json<P: Params>(object: &Value) -> Result<P> {
    let Value::Object(given) = object else {
        return Err(Error::Parameters(vec![
            "parameters must be an object of names and values".to_owned(),
        ]));
    };
    let pairs = given.iter().map(|(name, value)| (name.as_str(), value));
    gather(None, pairs, |spec, value| match spec.kind {
        ParamKind::Map { .. } if !value.is_null() => match value.as_str() {
            Some(text) if is_unset(spec, text) => Ok(Value::Null),
            _ => named::from_json(spec, value),
        },
        _ => read_json(spec, value).ok_or_else(|| unreadable(spec, &value.to_string())),
    })
}

/// Reads what was given over earlier values, or over the defaults. Rules that tie fields together
/// are judged only where every field was read: in place of a field that was not, its default would
/// be judged.
fn gather<'a, P: Params, V: 'a>(
    earlier: Option<&Map<String, Value>>,
    given: impl Iterator<Item = (&'a str, V)>,
    read: impl Fn(&ParamSpec, V) -> std::result::Result<Value, String>,
) -> Result<P> {
    let table = P::table();
    let mut full: Map<_, _> = table
        .iter()
        .map(|spec| {
            let earlier = earlier.and_then(|earlier| earlier.get(spec.name));
            let value = earlier.map_or_else(|| spec.default.to_json(), Value::clone);
            (spec.name.to_owned(), value)
        })
        .collect();
    let mut broken = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (name, value) in given {
        let Some(spec) = table.iter().find(|spec| spec.is_called(name)) else {
            broken.push(unknown(name, &table));
            continue;
        };
        if seen.contains(&spec.name) {
            broken.push(format!(
                "parameter `{}` is given twice, once by a former name; give `{}` alone",
                spec.name, spec.name
            ));
        }
        seen.push(spec.name);
        match read(spec, value) {
            Ok(value) => {
                full.insert(spec.name.to_owned(), value);
            }
            Err(problem) => broken.push(problem),
        }
    }
    let params: P = serde_json::from_value(Value::Object(full))
        .map_err(|error| Error::Parameters(vec![error.to_string()]))?;
    if broken.is_empty() {
        return Ok(params.check()?.0);
    }
    broken.extend(params.broken_ranges());
    Err(Error::Parameters(broken))
}

/// What to say of former names among those given: each names its replacement.
pub(crate) fn former_names<P: Params>(given: &[(String, String)]) -> Vec<String> {
    let table = P::table();
    let mut notes = Vec::new();
    for (name, value) in given {
        let Some(spec) = table.iter().find(|spec| spec.is_called(name)) else {
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

fn unknown(name: &str, table: &[ParamSpec]) -> String {
    let names: Vec<_> = table.iter().map(|spec| spec.name).collect();
    format!(
        "no parameter is called `{name}`; there are {}",
        names.join(", ")
    )
}

fn unreadable(spec: &ParamSpec, found: &str) -> String {
    let auto = or_unset(spec.auto, &spec.kind);
    format!(
        "parameter `{}` = {found}: expected {}{auto}",
        spec.name,
        spec.kind.describe()
    )
}

fn or_unset(auto: bool, kind: &ParamKind) -> String {
    if auto {
        format!(" or {}", kind.unset())
    } else {
        String::new()
    }
}

/// Whether a text leaves the parameter open.
fn is_unset(spec: &ParamSpec, text: &str) -> bool {
    spec.auto && (text == "auto" || text == spec.kind.unset())
}

fn read_text(spec: &ParamSpec, text: &str) -> Option<Value> {
    if is_unset(spec, text) {
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

/// A whole number may arrive as `3.0` (NumPy, TOML): it is taken where it is whole.
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

/// Message for a value outside its range; used by `params!`.
pub(crate) fn out_of_range<T: Setting>(
    name: &str,
    value: &T,
    min: f64,
    max: f64,
) -> Option<String> {
    if value.is_within(min, max) {
        return None;
    }
    let found = serde_json::to_string(value).unwrap_or_default();
    let kind = T::kind(min, max);
    let auto = or_unset(T::AUTO, &kind);
    Some(format!(
        "parameter `{name}` = {found}: expected {}{auto}",
        kind.describe()
    ))
}

/// Declares an enum whose variants are the values of a parameter. A former name stands in brackets
/// behind the new one.
macro_rules! choices {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$vmeta:meta])* $variant:ident = $text:literal $(($($former:literal),+))?),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $text $($(, alias = $former)+)?)] $variant),+ }

        impl $crate::params::Setting for $name {
            fn kind(_: f64, _: f64) -> $crate::params::ParamKind {
                $crate::params::ParamKind::Choice {
                    names: &[$($text),+],
                    former: &[$($($(($former, $text),)+)?)+],
                }
            }
            fn is_within(&self, _: f64, _: f64) -> bool {
                true
            }
        }
    };
}

/// Declares a family's parameters: struct, defaults, serde and checks from one table. Former names
/// of a field, which are still read, stand in brackets behind its name.
macro_rules! params {
    ($(#[$meta:meta])* $name:ident, across = $across:expr, {
        $( $(#[doc = $doc:literal])+ $field:ident $(($($former:literal),+))? : $ty:ty = $default:expr, [$min:expr, $max:expr] );+ $(;)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $( $(#[doc = $doc])+ $( #[serde($(alias = $former),+)] )? pub $field: $ty ),+ }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default ),+ }
            }
        }

        impl $crate::params::Params for $name {
            fn table() -> Vec<$crate::params::ParamSpec> {
                let defaults = Self::default();
                vec![$( $crate::params::ParamSpec {
                    name: stringify!($field),
                    doc: concat!($($doc),+).trim_ascii(),
                    kind: <$ty as $crate::params::Setting>::kind($min as f64, $max as f64),
                    auto: <$ty as $crate::params::Setting>::AUTO,
                    default: $crate::params::ParamValue::of(&defaults.$field),
                    former_names: &[$($($former),+)?],
                } ),+]
            }
            fn broken_ranges(&self) -> Vec<String> {
                let mut broken = Vec::new();
                $( broken.extend($crate::params::out_of_range(
                    stringify!($field), &self.$field, $min as f64, $max as f64)); )+
                broken
            }
            fn across(&self) -> Option<String> {
                let rule: fn(&Self) -> Option<String> = $across;
                rule(self)
            }
        }
    };
}

pub(crate) use {choices, params};

#[cfg(test)]
#[allow(
    unreachable_pub,
    reason = "the macros make public types, here inside a test"
)]
mod tests {
    use super::*;

    choices! {
        /// A colour.
        Colour { /// Red.
            Red = "red", /// Blue.
            Blue = "blue" ("azure") }
    }

    params! {
        /// Parameters of nothing.
        Toy, across = |toy: &Toy| (toy.count == 7 && toy.flag).then(|| "seven and flag exclude each other".to_owned()), {
            /// How many.
            count ("number"): usize = 3, [1, 10];
            /// How fast.
            rate: Option<f64> = None, [0.0, 1.0];
            /// Which.
            colour: Colour = Colour::Red, [0, 0];
            /// Whether.
            flag: bool = false, [0, 0];
            /// Which way.
            way: Option<Directions> = None, [-1, 1];
            /// How much.
            much: Option<ClassWeight> = None, [0.0, 100.0];
        }
    }

    fn texts(pairs: &[(&str, &str)]) -> Result<Toy> {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        from_texts(&pairs)
    }

    #[test]
    fn texts_are_read_and_defaults_kept() {
        let toy = texts(&[("count", "5"), ("rate", "0.25"), ("colour", "blue")]).unwrap();
        assert_eq!(
            toy,
            Toy {
                count: 5,
                rate: Some(0.25),
                colour: Colour::Blue,
                ..Toy::default()
            }
        );
        assert_eq!(texts(&[("rate", "auto")]).unwrap(), Toy::default());
        assert!(texts(&[("rate", "inf")]).is_err() && texts(&[("rate", "nan")]).is_err());
    }

    #[test]
    fn earlier_values_are_kept_where_nothing_is_given() {
        let earlier = Toy {
            count: 7,
            colour: Colour::Blue,
            rate: Some(0.5),
            ..Toy::default()
        };
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let toy = updated(&earlier, &[pair("rate", "auto")]).unwrap();
        let wanted = Toy {
            count: 7,
            colour: Colour::Blue,
            ..Toy::default()
        };
        assert_eq!(toy, wanted);
        // rules that tie fields together are judged by both
        let message = updated(&earlier, &[pair("flag", "true")])
            .unwrap_err()
            .to_string();
        assert!(message.contains("seven and flag"), "{message}");
    }

    #[test]
    fn former_names_are_read_and_noted() {
        let pairs = [("number", "5"), ("colour", "azure")];
        let toy = texts(&pairs).unwrap();
        assert_eq!((toy.count, toy.colour), (5, Colour::Blue));
        let stored = serde_json::json!({"number": 5, "colour": "azure"});
        assert_eq!(from_record::<Toy>(&stored).unwrap(), toy);
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let notes = former_names::<Toy>(&pairs).join("; ");
        assert!(notes.contains("`number` is now called `count`"), "{notes}");
        assert!(notes.contains("`azure` is now called `blue`"), "{notes}");
        let twice = texts(&[("number", "5"), ("count", "6")])
            .unwrap_err()
            .to_string();
        assert!(twice.contains("`count` is given twice"), "{twice}");
    }

    #[test]
    fn every_broken_rule_is_named() {
        let message = texts(&[("cuont", "5"), ("colour", "green"), ("count", "2.5")])
            .unwrap_err()
            .to_string();
        for part in [
            "`cuont`",
            "there are count, rate",
            "one of red, blue",
            "whole number from 1 to 10",
        ] {
            assert!(message.contains(part), "{message}");
        }
        let message = texts(&[("count", "77"), ("flag", "maybe"), ("rate", "2")])
            .unwrap_err()
            .to_string();
        for part in ["`flag` = maybe", "`count` = 77", "`rate` = 2"] {
            assert!(message.contains(part), "{message}");
        }
        let toy = Toy {
            count: 77,
            rate: Some(2.0),
            ..Toy::default()
        };
        let message = toy.check().unwrap_err().to_string();
        assert!(
            message.contains("`count` = 77") && message.contains("`rate` = 2.0"),
            "{message}"
        );
    }

    #[test]
    fn rules_across_fields_hold() {
        let toy = Toy {
            count: 7,
            flag: true,
            ..Toy::default()
        };
        assert!(toy.check().unwrap_err().to_string().contains("exclude"));
    }

    #[test]
    fn whole_numbers_arrive_as_floats_and_null_only_where_auto() {
        let toy: Toy = from_json(&serde_json::json!({"count": 4.0, "rate": null})).unwrap();
        assert_eq!(toy.count, 4);
        assert!(from_json::<Toy>(&serde_json::json!({"count": null})).is_err());
    }

    #[test]
    fn maps_are_read_from_texts_and_objects() {
        let toy = texts(&[("way", "age:+1, a:b:-1"), ("much", "yes:5,no:0.5")]).unwrap();
        let ways = [("a:b".to_owned(), -1), ("age".to_owned(), 1)];
        assert_eq!(toy.way, Some(Directions(ways.into())));
        let weights = [("no".to_owned(), 0.5), ("yes".to_owned(), 5.0)];
        assert_eq!(toy.much, Some(ClassWeight::Given(weights.into())));
        let object =
            serde_json::json!({"way": {"a:b": -1, "age": 1.0}, "much": {"no": 0.5, "yes": 5}});
        assert_eq!(from_json::<Toy>(&object).unwrap(), toy);
        assert_eq!(
            texts(&[("way", r#"{"age": 1, "a:b": -1}"#)]).unwrap().way,
            toy.way
        );
        let balanced = Some(ClassWeight::Rule(WeightRule::Balanced));
        assert_eq!(texts(&[("much", "balanced")]).unwrap().much, balanced);
        for unset in ["none", "auto"] {
            assert_eq!(
                texts(&[("way", unset), ("much", unset)]).unwrap(),
                Toy::default()
            );
        }
        assert_eq!(
            texts(&[("way", "")]).unwrap().way,
            Some(Directions::default())
        );
        let again: Toy = serde_json::from_value(serde_json::to_value(&toy).unwrap()).unwrap();
        assert_eq!(again, toy);
    }

    #[test]
    fn what_is_wrong_in_a_map_is_named() {
        for (name, text, part) in [
            ("way", "age:2", "column `age` has 2.0; expected +1"),
            ("way", "age:0", "column `age` has 0.0; expected +1"),
            ("way", "age:up", "column `age` has \"up\"; expected +1"),
            ("way", "age", "`way` = age: expected columns with +1"),
            ("way", "age:1,age:-1", "column `age` is given twice"),
            (
                "much",
                "yes:-1",
                "class `yes` has -1.0; expected a number from 0 to 100",
            ),
            (
                "much",
                "equal",
                "`much` = equal: expected balanced, or classes",
            ),
        ] {
            let message = texts(&[(name, text)]).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        let toy = Toy {
            way: Some(Directions([("age".to_owned(), 3)].into())),
            ..Toy::default()
        };
        assert!(
            toy.check()
                .unwrap_err()
                .to_string()
                .contains("`way` = {\"age\":3}")
        );
    }
}
