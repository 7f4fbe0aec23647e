//! `softwood evaluate`: fit and score models by a protocol.

use anyhow::Result;
use softwood::{Error, Family, ModelSpec, Pool, Protocol, Report, Table, evaluate};
use softwood_io::{ReadOptions, read_table};

use crate::args::EvaluateArgs;
use crate::commands::files::check_one_stream;
use crate::commands::settings::{DEFAULT_MODEL, FitSettings};
use crate::print::{self, text};
use crate::progress::Bar;

pub(crate) fn run(args: &EvaluateArgs) -> Result<()> {
    let settings = FitSettings::gather(&args.columns, None)?;
    let entrants = entrants_of(&names_of(args, &settings), &settings.params)?;
    let protocol = Protocol::parse(&args.protocol)?;
    if let Protocol::Splits(path) = &protocol {
        check_one_stream(&[&args.data, path])?;
    }
    let given = splits_table(&protocol)?;
    let data = settings.dataset(&args.data)?;
    let seed = args.run.seed.or(settings.seed).unwrap_or(0);
    let splits = protocol.splits(&data, seed, given.as_ref())?;
    let pool = Pool::new(args.run.threads.into())?;
    let bar = Bar::start_many(args.show.quiet, entrants.len() * splits.len());
    let models = evaluate(&entrants, &data, &splits, seed, &pool, &bar)
        .map_err(|error| error.within(&args.data))?;
    bar.finish()?;
    let report = Report {
        protocol: args.protocol.clone(),
        n_rows: data.n_rows(),
        seed,
        models,
    };
    print::emit(args.show.json, args.show.quiet, &report, || {
        text::evaluate(&report, args.show.verbose)
    })
}

fn names_of(args: &EvaluateArgs, settings: &FitSettings) -> Vec<String> {
    if !args.model.is_empty() {
        return args.model.clone();
    }
    let names = settings.model.as_deref().unwrap_or(DEFAULT_MODEL);
    names
        .split(',')
        .map(|name| name.trim().to_owned())
        .collect()
}

fn splits_table(protocol: &Protocol) -> softwood::Result<Option<Table>> {
    match protocol {
        Protocol::Splits(path) => read_table(path, &ReadOptions::default()).map(Some),
        _ => Ok(None),
    }
}

/// Each family with its parameters: `KEY=VALUE` holds for all of them, `NAME.KEY=VALUE` for one.
fn entrants_of(names: &[String], pairs: &[(String, String)]) -> softwood::Result<Vec<ModelSpec>> {
    let is_absent = |(key, _): &&(String, String)| {
        let owner = key.split_once('.').map(|(owner, _)| owner);
        owner.is_some_and(|owner| !names.iter().any(|name| name == owner))
    };
    if let Some((key, _)) = pairs.iter().find(is_absent) {
        let problem = format!(
            "parameter `{key}`: that model does not take part; KEY or NAME.KEY is expected"
        );
        return Err(Error::Parameters(vec![problem]));
    }
    let entrant = |name: &String| {
        let family = Family::from_name(name)?;
        let own: Vec<_> = pairs
            .iter()
            .filter_map(|pair| addressed_to(name, pair))
            .collect();
        for note in family.former_names(&own) {
            eprintln!("note: {note}");
        }
        family.params(&own)
    };
    names.iter().map(entrant).collect()
}

/// The pair as family `name` reads it, where it is meant for it.
fn addressed_to(name: &str, (key, value): &(String, String)) -> Option<(String, String)> {
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
    fn parameters_reach_the_model_they_name() {
        let names = ["vst".to_owned()];
        for key in ["max_depth", "vst.depth"] {
            let spec = &entrants_of(&names, &pairs(key)).unwrap()[0];
            assert_eq!(serde_json::to_value(spec).unwrap()["max_depth"], 3);
        }
        let message = entrants_of(&names, &pairs("sgb.depth"))
            .unwrap_err()
            .to_string();
        assert!(message.contains("`sgb.depth`"), "{message}");
    }
}
