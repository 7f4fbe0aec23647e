//! Settings of `fit` and `evaluate`, merged from flags and the configuration file: target, column
//! roles and parameters.

use std::path::Path;

use serde::Deserialize;
use softwood::data::Schema;
use softwood::{Dataset, Error, Result, Roles};
use softwood_io::{ReadOptions, ReadTable, read_table, read_table_detailed};

use crate::args::{ColumnArgs, TaskName, delimiter};
use crate::commands::data_notes;
use crate::commands::path_checks::read_problem;

/// The model family if none is given.
pub(crate) const DEFAULT_MODEL: &str = "vst";

/// The content of a configuration file.
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

/// Flags merged with the configuration file; flags override the file.
#[derive(Debug)]
pub(crate) struct FitSettings {
    /// Model families in the file, separated by commas.
    pub(crate) model: Option<String>,
    pub(crate) seed: Option<u64>,
    /// Parameters as `KEY=VALUE` pairs, with distinct keys.
    pub(crate) params: Vec<(String, String)>,
    roles: Roles,
    read: ReadOptions,
}

impl FitSettings {
    /// Merges flags and file; `resumed_target` is the target of the model given with --resume.
    pub(crate) fn gather(args: &ColumnArgs, resumed_target: Option<&str>) -> Result<Self> {
        let config = args
            .config
            .as_deref()
            .map(read_config)
            .transpose()?
            .unwrap_or_default();
        let task = args.task.or(config.task);
        let roles = Roles {
            target: target_of(args.target.clone().or(config.target), resumed_target)?,
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
                numeric: numeric_columns(&roles, either(&args.numeric, config.numeric)),
                ignore: roles.ignore.clone(),
                lenient: false,
                limits: args.format.limits(),
            },
            roles,
        })
    }

    /// Reads a table and splits it into features, target and weights. Also returns notes on the
    /// columns.
    pub(crate) fn dataset(&self, path: &Path) -> Result<(Dataset, Vec<String>)> {
        let found = read_table_detailed(path, &self.read)?;
        let left_out = self.unused_index_columns(&found);
        let mut roles = self.roles.clone();
        roles.ignore.extend(left_out.iter().cloned());
        let named = self.read.check_names(&found.table);
        let data = named
            .and_then(|()| Dataset::from_table(found.table, &roles))
            .map_err(|error| error.within(path))?;
        let mut notes = data_notes::on_index(&left_out);
        notes.extend(data_notes::on_target(&data, roles.classify.is_some()));
        notes.extend(data_notes::on_inexact(&found.inexact, &data));
        notes.extend(data_notes::on_features(&data, &found.date_columns));
        Ok((data, notes))
    }

    /// Index columns of a pandas frame that the user has not named, if other features remain.
    fn unused_index_columns(&self, found: &ReadTable) -> Vec<String> {
        let Self { read, roles, .. } = self;
        let is_named = |name: &String| {
            let named = [&read.categorical, &read.numeric, &read.ignore];
            *name == roles.target
                || roles.weight.as_ref() == Some(name)
                || named.iter().any(|names| names.contains(name))
        };
        let index = found.index_columns.iter();
        let unused: Vec<String> = index.filter(|name| !is_named(name)).cloned().collect();
        let is_feature = |name: &str| {
            name != roles.target
                && roles.weight.as_deref() != Some(name)
                && !roles
                    .ignore
                    .iter()
                    .chain(&unused)
                    .any(|other| other == name)
        };
        if found.table.names().any(is_feature) {
            unused
        } else {
            Vec::new()
        }
    }

    /// Reads a table that must match the schema of earlier data: a validation set or further rows.
    pub(crate) fn matching_dataset(&self, path: &Path, schema: &Schema) -> Result<Dataset> {
        let mut read = ReadOptions::for_schema(schema);
        read.delimiter = self.read.delimiter;
        read.limits = self.read.limits;
        let table = read_table(path, &read)?;
        Dataset::aligned(schema, &table, self.roles.weight.as_deref())
            .map_err(|error| error.within(path))
    }
}

/// The target given by the user or that of the model given with --resume; an error if they differ.
fn target_of(given: Option<String>, resumed: Option<&str>) -> Result<String> {
    match (given, resumed) {
        (Some(given), Some(resumed)) if given != resumed => Err(parameter(&format!(
            "the model given with --resume predicts `{resumed}`, not `{given}`; omit the target"
        ))),
        (Some(given), _) => Ok(given),
        (None, Some(resumed)) => Ok(resumed.to_owned()),
        (None, None) => Err(parameter(
            "no target: give --target COL, or `target` in the configuration file",
        )),
    }
}

/// Adds the weights and the target of a regression to the numeric columns, so that the reader can
/// name a cell that is not a number.
fn numeric_columns(roles: &Roles, mut numeric: Vec<String>) -> Vec<String> {
    let target = (roles.classify == Some(false)).then_some(&roles.target);
    for name in target.into_iter().chain(&roles.weight) {
        if !numeric.contains(name) {
            numeric.push(name.clone());
        }
    }
    numeric
}

fn read_config(path: &Path) -> Result<Config> {
    let text =
        std::fs::read_to_string(path).map_err(|error| Error::file(path, read_problem(&error)))?;
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

/// Parameters of the file as the texts that a user would type.
pub(crate) fn texts_of(params: &toml::Table) -> Vec<(String, String)> {
    let text = |value: &toml::Value| match value {
        toml::Value::String(text) => text.clone(),
        // a parameter that is a map is also parsed from JSON
        toml::Value::Table(table) => serde_json::to_string(table).unwrap_or_default(),
        other => other.to_string(),
    };
    params
        .iter()
        .map(|(key, value)| (key.clone(), text(value)))
        .collect()
}

/// The pairs of both lists; a later value of a key replaces an earlier one.
pub(crate) fn merge(
    mut pairs: Vec<(String, String)>,
    later: &[(String, String)],
) -> Vec<(String, String)> {
    for (key, value) in later {
        pairs.retain(|(earlier, _)| earlier != key);
        pairs.push((key.clone(), value.clone()));
    }
    pairs
}

/// The names given by flags or, if there are none, those of the file.
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
    fn flags_override_the_file() {
        let config: Config = toml::from_str(
            "[params]\nmax_depth = 3\nleaf_model = \"linear\"\nbeta = 1.5\nmonotonic_cst = { a = 1 }\n",
        )
        .unwrap();
        let typed = [("max_depth".to_owned(), "4".to_owned())];
        let mut merged = merge(texts_of(&config.params), &typed);
        merged.sort();
        let expected = [
            ("beta", "1.5"),
            ("leaf_model", "linear"),
            ("max_depth", "4"),
            ("monotonic_cst", r#"{"a":1}"#),
        ];
        assert_eq!(
            merged,
            expected.map(|(key, value)| (key.to_owned(), value.to_owned()))
        );
    }

    #[test]
    fn unknown_keys_are_rejected() {
        assert!(toml::from_str::<Config>("targte = \"y\"").is_err());
    }
}
