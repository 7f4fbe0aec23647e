//! `softwood explain`: feature importances, and the rules of a model that is a single tree.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use softwood::explain::{
    Importances, PermutationOptions, StructurePosterior, TreeExport, importances,
};
use softwood::store::atomic::AtomicFile;
use softwood::{Distribution, Error, Key, Model, Pool, Table, load};
use softwood_io::read_table;

use crate::args::ExplainArgs;
use crate::commands::notes;
use crate::commands::path_checks::{
    check_output, check_stdin_used_once, is_stream, read_model_for,
};
use crate::print;
use crate::progress::Bar;

/// The report of `explain`.
#[derive(Debug, Serialize)]
pub(crate) struct ExplainReport {
    pub(crate) model: PathBuf,
    pub(crate) family: String,
    pub(crate) target: String,
    /// Class names; none for regression.
    pub(crate) classes: Option<Vec<String>>,
    pub(crate) data: Option<PathBuf>,
    pub(crate) reference: Option<PathBuf>,
    /// Share of the total gain in training, by column; none for a family that does not split on
    /// single columns.
    pub(crate) gains: Option<Vec<Gain>>,
    /// Permutation importances; none without data.
    pub(crate) importances: Option<Importances>,
    /// The tree; none if the model is not a single tree.
    pub(crate) tree: Option<TreeExport>,
    /// Posterior over the structure of the tree; none for a family without one.
    pub(crate) structure: Option<StructurePosterior>,
    /// The drawing of the tree that was written.
    pub(crate) svg: Option<PathBuf>,
    pub(crate) notes: Vec<String>,
}

/// Gain importance of one column.
#[derive(Debug, Serialize)]
pub(crate) struct Gain {
    pub(crate) column: String,
    pub(crate) gain: f64,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<()> {
    check_stdin_used_once(&inputs(args)[1..])?;
    if let Some(svg) = &args.svg {
        if is_stream(svg) {
            return Err(Error::file(
                svg,
                "a drawing cannot be written to standard output; give a file name",
            )
            .into());
        }
        check_output(svg, &inputs(args))?;
    }
    let model = match &args.data {
        Some(data) => read_model_for(&args.model, data)?,
        None => load(&args.model)?,
    };
    let mut report = model_report(model.as_ref(), args)?;
    if let Some(data) = &args.data {
        report.importances = Some(permutation_importances(
            model.as_ref(),
            data,
            args,
            &mut report.notes,
        )?);
    }
    if let (Some(path), Some(tree)) = (&args.svg, &report.tree) {
        AtomicFile::write(path, tree.svg().as_bytes())?;
    }
    print::emit(args.json, false, &report, || {
        print::explain::text(&report, args.top.into())
    })
}

/// All files that are read, the model first.
fn inputs(args: &ExplainArgs) -> Vec<&Path> {
    let tables = [&args.data, &args.reference].into_iter().flatten();
    let tables = tables.map(PathBuf::as_path);
    [args.model.as_path()].into_iter().chain(tables).collect()
}

/// The parts of the report that need no data.
fn model_report(model: &dyn Model, args: &ExplainArgs) -> softwood::Result<ExplainReport> {
    let family = model.record().family;
    let schema = model.schema();
    let columns = schema.fields.iter().map(|field| field.name.clone());
    let gains = model.gains().map(|gains| {
        let gains = columns.zip(gains);
        gains.map(|(column, gain)| Gain { column, gain }).collect()
    });
    let tree = model.tree_export();
    if let (Some(svg), None) = (&args.svg, &tree) {
        let problem = format!(
            "only a model that is a single tree can be drawn, but {} is a `{family}` model",
            args.model.display()
        );
        return Err(Error::file(svg, problem));
    }
    if gains.is_none() && tree.is_none() && args.data.is_none() {
        return Err(Error::Parameters(vec![format!(
            "a `{family}` model has no gain importances; give a table after the model for permutation importances"
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
        structure: model.structure(),
        tree,
        notes: Vec::new(),
    })
}

/// Permutation importances on the rows of a table.
fn permutation_importances(
    model: &dyn Model,
    data: &Path,
    args: &ExplainArgs,
    notes: &mut Vec<String>,
) -> softwood::Result<Importances> {
    let schema = model.schema();
    let table = read(model, data, args)?;
    let reference = match &args.reference {
        // aligned here as well, so that an error names the reference file
        Some(path) => {
            let table = read(model, path, args)?;
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
            "{} has no column `{}`, so the decrease of the log-likelihood is not reported",
            data.display(),
            schema.target
        ));
    }
    notes.extend(notes::on_members(model));
    let pool = Pool::new(args.run.threads.into())?;
    let bar = Bar::start(false);
    let predictive = Distribution::new(model, &table, &pool).map_err(within)?;
    let options = PermutationOptions {
        repeats: args.repeats.into(),
        key: Key::from_seed(args.run.seed.unwrap_or(0)),
        reference: reference.as_ref(),
    };
    let found = importances(&predictive.observed_by(&bar), target.as_ref(), &options);
    bar.finish()?;
    found.map_err(within)
}

fn read(model: &dyn Model, path: &Path, args: &ExplainArgs) -> softwood::Result<Table> {
    read_table(path, &args.format.read_options(model.schema()))
}
