//! Parameters of model families. A family declares each field once, with default, range and
//! description, in a `params!` table; the struct, its serde implementation, the checks, the help
//! texts and the Python signatures all come from that table. Rows that families share stand in a
//! `param_group!`.

mod macros;
mod named;
mod read;
mod spec;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

pub(crate) use macros::{choices, param_group, params, with_groups};
pub use named::{ClassWeight, Directions, WeightRule};
pub(crate) use read::{former_names, from_json, from_record, from_texts, updated};
pub use spec::{ParamKind, ParamSpec, ParamValue};
pub(crate) use spec::{Setting, out_of_range};

/// The parameters of a model family, declared by `params!`.
pub trait Params: Clone + Default + Serialize + DeserializeOwned + Send + Sync {
    /// Specifications of all parameters, in field order.
    fn table() -> Vec<ParamSpec>;
    /// Error messages of fields outside their range.
    fn broken_ranges(&self) -> Vec<String>;
    /// Error message of a violated rule that involves several fields.
    fn across(&self) -> Option<String> {
        None
    }
    /// Checks all rules.
    ///
    /// # Errors
    /// [`Error::Parameters`] lists all violated rules.
    fn check(self) -> Result<Checked<Self>> {
        let mut violations = self.broken_ranges();
        violations.extend(self.across());
        if violations.is_empty() {
            Ok(Checked(self))
        } else {
            Err(Error::Parameters(violations))
        }
    }
}

/// Parameters that passed [`Params::check`].
#[derive(Debug, Clone)]
pub struct Checked<P>(P);

impl<P> std::ops::Deref for Checked<P> {
    type Target = P;
    fn deref(&self) -> &P {
        &self.0
    }
}

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

    param_group! {
        /// Rows of two families.
        shared_rows {
            /// How often.
            times ("repeats"): usize = 2, [1, 9];
            /// How wide.
            width: f64 = 0.5, [0.0, 1.0];
        }
    }

    params! {
        /// Parameters with a group between other rows.
        Wide, across = |_: &Wide| None, {
            /// First.
            first: bool = true;
            use shared_rows { width = 0.75 };
            /// Last.
            last: Option<Colour> = None;
        }
    }

    params! {
        /// Parameters of nothing.
        Toy, across = |toy: &Toy| (toy.count == 7 && toy.flag).then(|| "seven and flag exclude each other".to_owned()), {
            /// How many.
            count ("number"): usize = 3, [1, 10];
            /// How fast.
            rate: Option<f64> = None, [0.0, 1.0];
            /// Which.
            colour: Colour = Colour::Red;
            /// Whether.
            flag: bool = false;
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
    fn rows_of_a_group_keep_their_place_and_may_have_other_defaults() {
        #[derive(Debug, PartialEq)]
        struct Sheet {
            times: usize,
            width: f64,
            height: f64,
        }
        let table = Wide::table();
        let names: Vec<_> = table.iter().map(|spec| spec.name).collect();
        assert_eq!(names, ["first", "times", "width", "last"]);
        assert_eq!((table[1].doc, table[2].doc), ("How often.", "How wide."));
        assert_eq!(table[1].former_names, ["repeats"]);
        assert_eq!(table[2].default, ParamValue::Float(0.75));
        let given = Wide {
            width: 2.0,
            ..Wide::default()
        };
        let message = given.clone().check().unwrap_err().to_string();
        assert!(message.contains("`width` = 2.0"), "{message}");
        let sheet = with_groups!(given, [shared_rows] => Sheet { height: 1.0 });
        let expected = Sheet {
            times: 2,
            width: 2.0,
            height: 1.0,
        };
        assert_eq!(sheet, expected);
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
        let expected = Toy {
            count: 7,
            colour: Colour::Blue,
            ..Toy::default()
        };
        assert_eq!(toy, expected);
        // rules that involve several fields see the earlier values as well
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
    fn every_violated_rule_is_named() {
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
    fn errors_in_a_map_are_named() {
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
