//! The macros that declare parameters and their choices.

/// Declares an enum whose variants are the values of a parameter. Former names, which are still
/// read, follow the name in parentheses.
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

/// Declares the parameters of a family: struct, defaults, serde and checks from one table. Former
/// names of a field, which are still read, follow its name in parentheses.
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
                let mut messages = Vec::new();
                $( messages.extend($crate::params::out_of_range(
                    stringify!($field), &self.$field, $min as f64, $max as f64)); )+
                messages
            }
            fn across(&self) -> Option<String> {
                let rule: fn(&Self) -> Option<String> = $across;
                rule(self)
            }
        }
    };
}

pub(crate) use {choices, params};
