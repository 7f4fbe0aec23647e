//! The macros that declare parameters and their choices.

/// Declares an enum whose variants are the values of a parameter. Former names, which are still
/// read, follow the name in parentheses.
macro_rules! choices {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$vmeta:meta])* $variant:ident = $text:literal $(($($former:literal),+))?),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[non_exhaustive]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $text $($(, alias = $former)+)?)] $variant),+ }

        impl $crate::params::Setting for $name {
            type Bounds = ();
            fn kind((): ()) -> $crate::params::ParamKind {
                $crate::params::ParamKind::Choice {
                    names: &[$($text),+],
                    former: &[$($($(($former, $text),)+)?)+],
                }
            }
            fn is_within(&self, (): ()) -> bool {
                true
            }
        }
    };
}

/// Declares the parameters of a family: struct, defaults, serde and checks from one table.
///
/// A row is `name ("former", "names"): type = default, [min, max];` under its doc comment. Former
/// names, which are still read, may be absent; switches and choices have no range.
/// `use group;` stands for the rows of a [`param_group!`], and `use group { name = default };`
/// replaces defaults of that group. The fields of the struct are in the order of the rows.
macro_rules! params {
    ($(#[$meta:meta])* $name:ident, across = $across:expr, { $($body:tt)+ }) => {
        $crate::params::params! { @collect { [$(#[$meta])* $name, $across] [] [] } $($body)+ }
    };

    // rows are collected one by one, because groups may stand between them
    (@collect { $header:tt $rows:tt [$($defaults:tt)*] }
        use $group:ident { $($field:ident = $default:expr),+ $(,)? }; $($rest:tt)*
    ) => {
        $group! { params { $header $rows [$($defaults)* $($field = $default;)+] } $($rest)* }
    };
    (@collect $state:tt use $group:ident; $($rest:tt)*) => {
        $group! { params $state $($rest)* }
    };
    (@collect { $header:tt [$($rows:tt)*] $defaults:tt }
        $(#[doc = $doc:literal])+ $field:ident $(($($former:literal),+))? : $ty:ty = $default:expr
            $(, [$min:expr, $max:expr])?;
        $($rest:tt)*
    ) => {
        $crate::params::params! { @collect {
            $header
            [$($rows)*
                $(#[doc = $doc])+ $field [$($($former),+)?] $ty = $default, ($($min as f64, $max as f64)?);
            ]
            $defaults
        } $($rest)* }
    };

    (@collect {
        [$(#[$meta:meta])* $name:ident, $across:expr]
        [$($(#[doc = $doc:literal])+ $field:ident [$($former:literal),*] $ty:ty = $default:expr, $bounds:expr;)+]
        [$($replaced:ident = $replacement:expr;)*]
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $( $(#[doc = $doc])+ $(#[serde(alias = $former)])* pub $field: $ty ),+ }

        impl Default for $name {
            fn default() -> Self {
                #[allow(unused_mut, reason = "few families replace defaults of a group")]
                let mut params = Self { $( $field: $default ),+ };
                $( params.$replaced = $replacement; )*
                params
            }
        }

        impl $crate::params::Params for $name {
            fn table() -> Vec<$crate::params::ParamSpec> {
                let defaults = Self::default();
                vec![$( $crate::params::ParamSpec {
                    name: stringify!($field),
                    doc: concat!($($doc),+).trim_ascii(),
                    kind: <$ty as $crate::params::Setting>::kind($bounds),
                    auto: <$ty as $crate::params::Setting>::AUTO,
                    default: $crate::params::ParamValue::of(&defaults.$field),
                    former_names: &[$($former),*],
                } ),+]
            }
            fn broken_ranges(&self) -> Vec<String> {
                let mut messages = Vec::new();
                $( messages.extend($crate::params::out_of_range(
                    stringify!($field), &self.$field, $bounds)); )+
                messages
            }
            fn across(&self) -> Option<String> {
                let rule: fn(&Self) -> Option<String> = $across;
                rule(self)
            }
        }
    };
}

/// Declares rows that several families share, for `use` in [`params!`] and for [`with_groups!`].
/// Rows name their types by full paths, because they are expanded in the files of the families.
macro_rules! param_group {
    ($(#[doc = $doc:literal])+ $name:ident { $($rows:tt)+ }) => {
        $crate::params::param_group! { @define ($) $name { $($rows)+ } }
    };
    // `$d` is a dollar sign, for the variables of the macro that is declared here
    (@define ($d:tt) $name:ident { $($rows:tt)+ }) => {
        macro_rules! $name {
            ($d callback:ident $d state:tt $d($d rest:tt)*) => {
                $crate::params::$d callback! { @collect $d state $($rows)+ $d($d rest)* }
            };
        }
        #[allow(unused_imports, reason = "a group may be used in its own file alone")]
        pub(crate) use $name;
    };
}

/// Makes a struct from parameters: fields of the same names as the rows of groups are copied, the
/// others are given.
macro_rules! with_groups {
    ($params:ident, [$($group:ident),+] => $type:ident { $($fields:tt)* }) => {
        $crate::params::with_groups! { @collect { $params $type { $($fields)* } [] } $(use $group;)+ }
    };
    (@collect $state:tt use $group:ident; $($rest:tt)*) => {
        $group! { with_groups $state $($rest)* }
    };
    (@collect { $params:ident $type:ident $fields:tt [$($copied:ident)*] }
        $(#[doc = $doc:literal])+ $field:ident $(($($former:literal),+))? : $ty:ty = $default:expr
            $(, [$min:expr, $max:expr])?;
        $($rest:tt)*
    ) => {
        $crate::params::with_groups! {
            @collect { $params $type $fields [$($copied)* $field] } $($rest)*
        }
    };
    (@collect { $params:ident $type:ident { $($fields:tt)* } [$($copied:ident)*] }) => {
        $type { $($copied: $params.$copied.clone(),)* $($fields)* }
    };
}

pub(crate) use {choices, param_group, params, with_groups};
