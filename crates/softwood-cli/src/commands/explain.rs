//! `softwood explain`: what columns are worth to a model, and the model itself where it is a single tree.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use softwood::{
    Distribution, Error, Importances, Key, Model, PermutationOptions, Pool, Table, TreeExport,
    importances, read_model,
};
use softwood_io::{ReadOptions, read_table};

use crate::args::ExplainArgs;
use crate::commands::files::{check_one_stream, check_output, is_stream, model_for};
use crate::commands::notes;
use crate::print;
use crate::progress::Bar;

/// What can be said of a model.
#[derive(Debug, Serialize)]
pub(crate) struct ExplainReport {
    pub(crate) model: PathBuf,
    pub(crate) family: String,
    pub(crate) target: String,
    /// Class names; none for regression.
    pub(crate) classes: Option<Vec<String>>,
    pub(crate) data: Option<PathBuf>,
    pub(crate) reference: Option<PathBuf>,
    /// Part of all gains in training, by column; none for a family that does not split on columns.
    pub(crate) gains: Option<Vec<Gain>>,
    /// None without data.
    pub(crate) importances: Option<Importances>,
    /// None where the model is not a single tree.
    pub(crate) tree: Option<TreeExport>,
    /// The picture that was written.
    pub(crate) svg: Option<PathBuf>,
    pub(crate) notes: Vec<String>,
}

/// What the splits on one column gained.
#[derive(Debug, Serialize)]
pub(crate) struct Gain {
    pub(crate) column: String,
    pub(crate) gain: f64,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<()> {
    check_one_stream(&inputs(args)[1..])?;
    if let Some(svg) = &args.svg {
        if is_stream(svg) {
            return Err(Error::file(svg, "a picture goes to a file; give it a name").into());
        }
        check_output(svg, &inputs(args))?;
    }
    let posterior = match &args.data {
        Some(data) => model_for(&args.model, data)?,
        None => read_model(&args.model)?,
    };
    let mut report = about(posterior.as_ref(), args)?;
    if let Some(data) = &args.data {
        report.importances = Some(shuffled(posterior.as_ref(), data, args, &mut report.notes)?);
    }
    if let (Some(path), Some(tree)) = (&args.svg, &report.tree) {
        std::fs::write(path, tree.svg()).map_err(|error| Error::file(path, error.to_string()))?;
    }
    print::emit(args.json, false, &report, || {
        print::explain::text(&report, args.top.into())
    })
}

/// Every file that is read.
fn inputs(args: &ExplainArgs) -> Vec<&Path> {
    let tables = [&args.data, &args.reference].into_iter().flatten();
    let tables = tables.map(PathBuf::as_path);
    [args.model.as_path()].into_iter().chain(tables).collect()
}

/// What the model says of itself, without data.
fn about(posterior: &dyn Model, args: &ExplainArgs) -> softwood::Result<ExplainReport> {
    let family = posterior.record().family;
    let schema = posterior.schema();
    let columns = schema.fields.iter().map(|field| field.name.clone());
    let gains = posterior.gains().map(|gains| {
        let gains = columns.zip(gains);
        gains.map(|(column, gain)| Gain { column, gain }).collect()
    });
    let tree = posterior.tree_export();
    if let (Some(svg), None) = (&args.svg, &tree) {
        let problem = format!(
            "only a single tree can be drawn, and {} is a `{family}` model",
            args.model.display()
        );
        return Err(Error::file(svg, problem));
    }
    if gains.is_none() && tree.is_none() && args.data.is_none() {
        return Err(Error::Parameters(vec![format!(
            "a `{family}` model does not split on columns, so that it shows what they are worth only on rows: give a table \
             after the model"
        )]));
    }
    Ok(ExplainReport {
        model: args.model.clone(),
        family,
        target: schema.target.clone(),
        classes: schema.classes().map(<[String]>::to_vec),
        data: args.data.clone(),
        reference: args.reference.clone(),
        gains,
        importances: None,
        svg: args.svg.clone(),
        tree,
        notes: Vec::new(),
    })
}

fn shuffled(
    posterior: &dyn Model,
    data: &Path,
    args: &ExplainArgs,
    notes: &mut Vec<String>,
) -> softwood::Result<Importances> {
    let schema = posterior.schema();
    let table = read(posterior, data, args)?;
    let reference = match &args.reference {
        // matched here too, so that a problem is told with the file's name
        Some(path) => {
            let table = read(posterior, path, args)?;
            Some(schema.align(&table).map_err(|error| error.within(path))?)
        }
        None => None,
    };
    let within = |error: Error| error.within(data);
    let is_labelled = table.names().any(|name| name == schema.target);
    let target = is_labelled.then(|| schema.target_of(&table)).transpose();
    let target = target.map_err(within)?;
    if target.is_none() {
        notes.push(format!(
            "{} has no column `{}`, so that nothing could be scored",
            data.display(),
            schema.target
        ));
    }
    notes.extend(notes::on_members(posterior));
    let pool = Pool::new(args.run.threads.into())?;
    let bar = Bar::start(false);
    let answer = Distribution::new(posterior, &table, &pool).map_err(within)?;
    let shuffling = PermutationOptions {
        repeats: args.repeats.into(),
        key: Key::from_seed(args.run.seed.unwrap_or(0)),
        reference: reference.as_ref(),
    };
    let found = importances(&answer.observed_by(&bar), target.as_ref(), &shuffling);
    bar.finish()?;
    found.map_err(within)
}

fn read(posterior: &dyn Model, path: &Path, args: &ExplainArgs) -> softwood::Result<Table> {
    let read = ReadOptions {
        delimiter: args.format.delimiter,
        ..ReadOptions::for_schema(posterior.schema())
    };
    read_table(path, &read)
}
