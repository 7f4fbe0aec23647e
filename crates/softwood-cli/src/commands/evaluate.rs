//! `softwood evaluate`: fit and score models by a protocol.

use anyhow::Result;
use softwood::evaluate::{Protocol, Report, evaluate};
use softwood::{Error, Family, ModelSpec, Pool, Table};
use softwood_io::{ReadOptions, read_table};

use crate::args::{EvaluateArgs, FormatArgs};
use crate::commands::path_checks::check_stdin_used_once;
use crate::commands::settings::{DEFAULT_MODEL, FitSettings};
use crate::print::{self, text};
use crate::progress::Bar;

pub(crate) fn run(args: &EvaluateArgs) -> Result<()> {
    let settings = FitSettings::gather(&args.columns, None)?;
    let specs = model_specs(&model_names(args, &settings), &settings.params)?;
    let protocol = Protocol::parse(&args.protocol)?;
    if let Protocol::Splits(path) = &protocol {
        check_stdin_used_once(&[&args.data, path])?;
    }
    let given = splits_table(&protocol, &args.columns.format)?;
    let (data, notes) = settings.dataset(&args.data)?;
    if !args.show.quiet {
        for note in &notes {
            print::note(note);
        }
    }
    let seed = args.run.seed.or(settings.seed).unwrap_or(0);
    let splits = protocol.splits(&data, seed, given.as_ref())?;
    let pool = Pool::new(args.run.threads.into())?;
    let bar = Bar::start_many(args.show.quiet, specs.len() * splits.len());
    let models = evaluate(&specs, &data, &splits, seed, &pool, &bar)
        .map_err(|error| error.within(&args.data))?;
    bar.finish()?;
    let report = Report::new(args.protocol.clone(), data.n_rows(), seed, models);
    print::emit(args.show.json, args.show.quiet, &report, || {
        text::evaluate(&report, args.show.verbose)
    })
}

fn model_names(args: &EvaluateArgs, settings: &FitSettings) -> Vec<String> {
    if !args.model.is_empty() {
        return args.model.clone();
    }
    let names = settings.model.as_deref().unwrap_or(DEFAULT_MODEL);
    names
        .split(',')
        .map(|name| name.trim().to_owned())
        .collect()
}

fn splits_table(protocol: &Protocol, format: &FormatArgs) -> softwood::Result<Option<Table>> {
    let read = ReadOptions {
        limits: format.limits(),
        ..ReadOptions::default()
    };
    match protocol {
        Protocol::Splits(path) => read_table(path, &read).map(Some),
        _ => Ok(None),
    }
}

/// The models with their parameters: `KEY=VALUE` applies to all models, `NAME.KEY=VALUE` to one.
fn model_specs(names: &[String], pairs: &[(String, String)]) -> softwood::Result<Vec<ModelSpec>> {
    let is_unknown = |(key, _): &&(String, String)| {
        let owner = key.split_once('.').map(|(owner, _)| owner);
        owner.is_some_and(|owner| !names.iter().any(|name| name == owner))
    };
    if let Some((key, _)) = pairs.iter().find(is_unknown) {
        let problem = format!(
            "parameter `{key}`: the name before the dot is not one of the evaluated models ({}); use KEY=VALUE or \
             NAME.KEY=VALUE",
            names.join(", ")
        );
        return Err(Error::Parameters(vec![problem]));
    }
    let spec = |name: &String| {
        let family = Family::from_name(name)?;
        let own: Vec<_> = pairs
            .iter()
            .filter_map(|pair| parameter_of(name, pair))
            .collect();
        for note in family.former_names(&own) {
            print::note(&note);
        }
        family.params(&own)
    };
    names.iter().map(spec).collect()
}

/// The parameter without a model name, if it applies to the model `name`.
pub(crate) fn parameter_of(
    name: &str,
    (key, value): &(String, String),
) -> Option<(String, String)> {
    match key.split_once('.') {
        None => Some((key.clone(), value.clone())),
        Some((owner, key)) if owner == name => Some((key.to_owned(), value.clone())),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(key: &str) -> Vec<(String, String)> {
        vec![(key.to_owned(), "3".to_owned())]
    }

    #[test]
    fn parameters_apply_to_the_model_they_name() {
        let names = ["vst".to_owned()];
        for key in ["max_depth", "vst.depth"] {
            let spec = &model_specs(&names, &pairs(key)).unwrap()[0];
            assert_eq!(serde_json::to_value(spec).unwrap()["max_depth"], 3);
        }
        let message = model_specs(&names, &pairs("sgb.depth"))
            .unwrap_err()
            .to_string();
        assert!(message.contains("`sgb.depth`"), "{message}");
    }
}
