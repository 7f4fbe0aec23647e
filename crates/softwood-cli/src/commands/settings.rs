//! What flags and configuration file say together: the target, the columns' parts and the parameters.

use std::path::Path;

use serde::Deserialize;
use softwood::{Dataset, Error, Result, Roles, Schema};
use softwood_io::{ReadOptions, read_table};

use crate::args::{ColumnArgs, TaskName, delimiter};
use crate::commands::files::reading_problem;

/// The family fitted where none is named.
pub(crate) const DEFAULT_MODEL: &str = "vst";

/// A configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Config {
    target: Option<String>,
    model: Option<String>,
    categorical: Vec<String>,
    numeric: Vec<String>,
    ignore: Vec<String>,
    weight: Option<String>,
    task: Option<TaskName>,
    delimiter: Option<String>,
    seed: Option<u64>,
    params: toml::Table,
}

/// Flags and file, merged; flags win.
#[derive(Debug)]
pub(crate) struct FitSettings {
    /// Model families named in the file, separated by commas.
    pub(crate) model: Option<String>,
    pub(crate) seed: Option<u64>,
    /// `KEY=VALUE` pairs, each key once.
    pub(crate) params: Vec<(String, String)>,
    roles: Roles,
    read: ReadOptions,
}

impl FitSettings {
    /// `known` is the target of a model to go on from.
    pub(crate) fn gather(args: &ColumnArgs, known: Option<&str>) -> Result<Self> {
        let config = args
            .config
            .as_deref()
            .map(read_config)
            .transpose()?
            .unwrap_or_default();
        let task = args.task.or(config.task);
        let roles = Roles {
            target: target_of(args.target.clone().or(config.target), known)?,
            weight: args.weight.clone().or(config.weight),
            ignore: either(&args.ignore, config.ignore),
            classify: task.map(|task| task == TaskName::Classification),
        };
        let from_file = config.delimiter.as_deref().map(delimiter).transpose();
        let from_file = from_file.map_err(|problem| parameter(&format!("delimiter: {problem}")))?;
        Ok(Self {
            model: config.model,
            seed: config.seed,
            params: merge(texts_of(&config.params), &args.params),
            read: ReadOptions {
                delimiter: args.format.delimiter.or(from_file),
                categorical: either(&args.categorical, config.categorical),
                numeric: numbers_among(&roles, either(&args.numeric, config.numeric)),
                ignore: roles.ignore.clone(),
                lenient: false,
            },
            roles,
        })
    }

    /// Reads the table and takes it apart.
    pub(crate) fn dataset(&self, path: &Path) -> Result<Dataset> {
        let table = read_table(path, &self.read)?;
        let named = self.read.check_names(&table);
        named
            .and_then(|()| Dataset::from_table(&table, &self.roles))
            .map_err(|error| error.within(path))
    }

    /// Reads further rows of the same kind.
    pub(crate) fn more_rows(&self, path: &Path, schema: &Schema) -> Result<Dataset> {
        let mut read = ReadOptions::for_schema(schema);
        read.delimiter = self.read.delimiter;
        let table = read_table(path, &read)?;
        Dataset::aligned(schema, &table, self.roles.weight.as_deref())
            .map_err(|error| error.within(path))
    }
}

/// The target that was named, or that of a model to go on from; never two of them.
fn target_of(named: Option<String>, known: Option<&str>) -> Result<String> {
    match (named, known) {
        (Some(named), Some(known)) if named != known => Err(parameter(&format!(
            "the model to go on from predicts `{known}`, not `{named}`; leave the target out"
        ))),
        (Some(named), _) => Ok(named),
        (None, Some(known)) => Ok(known.to_owned()),
        (None, None) => Err(parameter(
            "no target: give --target COL, or `target` in the configuration file",
        )),
    }
}

/// A regression's target and the weights can only be numbers: saying so to the reader lets it name the cell.
fn numbers_among(roles: &Roles, mut numeric: Vec<String>) -> Vec<String> {
    let target = (roles.classify == Some(false)).then_some(&roles.target);
    for name in target.into_iter().chain(&roles.weight) {
        if !numeric.contains(name) {
            numeric.push(name.clone());
        }
    }
    numeric
}

fn read_config(path: &Path) -> Result<Config> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::file(path, reading_problem(&error)))?;
    toml::from_str(&text).map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        Error::file(
            path,
            format!("line {line}: {}", error.message().replace('\n', " ")),
        )
    })
}

/// Parameters of the file as they would be typed.
fn texts_of(params: &toml::Table) -> Vec<(String, String)> {
    let text = |value: &toml::Value| match value {
        toml::Value::String(text) => text.clone(),
        // a parameter that is a map reads JSON where its names would not go into a list of pairs
        toml::Value::Table(table) => serde_json::to_string(table).unwrap_or_default(),
        other => other.to_string(),
    };
    params
        .iter()
        .map(|(key, value)| (key.clone(), text(value)))
        .collect()
}

/// The last value given to each key.
fn merge(mut pairs: Vec<(String, String)>, later: &[(String, String)]) -> Vec<(String, String)> {
    for (key, value) in later {
        pairs.retain(|(earlier, _)| earlier != key);
        pairs.push((key.clone(), value.clone()));
    }
    pairs
}

fn either(typed: &[String], from_file: Vec<String>) -> Vec<String> {
    if typed.is_empty() {
        from_file
    } else {
        typed.to_vec()
    }
}

fn parameter(problem: &str) -> Error {
    Error::Parameters(vec![problem.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_over_the_file() {
        let config: Config = toml::from_str(
            "[params]\ndepth = 3\nleaf = \"linear\"\nbeta = 1.5\nmonotone = { a = 1 }\n",
        )
        .unwrap();
        let typed = [("depth".to_owned(), "4".to_owned())];
        let mut merged = merge(texts_of(&config.params), &typed);
        merged.sort();
        let expected = [
            ("beta", "1.5"),
            ("depth", "4"),
            ("leaf", "linear"),
            ("monotone", r#"{"a":1}"#),
        ];
        assert_eq!(
            merged,
            expected.map(|(key, value)| (key.to_owned(), value.to_owned()))
        );
    }

    #[test]
    fn unknown_keys_are_refused() {
        assert!(toml::from_str::<Config>("targte = \"y\"").is_err());
    }
}
