//! `softwood fit`: a table in, a model file out.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use softwood::{
    Dataset, Error, Family, FieldKind, Key, Model, ModelSpec, Pool, Record, Run, Schema, Training,
    read_model, write_model,
};

use crate::args::FitArgs;
use crate::commands::files::{check_one_stream, check_output, is_stream};
use crate::commands::notes;
use crate::commands::settings::{DEFAULT_MODEL, FitSettings};
use crate::print::{self, text};
use crate::progress::Bar;

/// What a fit came to.
#[derive(Debug, Serialize)]
pub(crate) struct FitReport {
    pub(crate) model: &'static str,
    pub(crate) file: PathBuf,
    /// The model file that training went on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resumed: Option<PathBuf>,
    pub(crate) target: String,
    /// Class names; none for regression.
    pub(crate) classes: Option<Vec<String>>,
    pub(crate) n_rows: usize,
    pub(crate) n_held_out_rows: Option<usize>,
    pub(crate) n_numeric: usize,
    pub(crate) n_categorical: usize,
    pub(crate) n_members: usize,
    pub(crate) params: ModelSpec,
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    pub(crate) training: Training,
    /// What may not have been meant.
    pub(crate) notes: Vec<String>,
}

pub(crate) fn run(args: &FitArgs) -> Result<()> {
    let base = args.resume.as_deref().map(read_base).transpose()?;
    let known = base.as_ref().map(|base| base.schema.target.as_str());
    let settings = FitSettings::gather(&args.columns, known)?;
    let name = args.model.as_ref().or(settings.model.as_ref());
    let family = family_of(name, base.as_ref())?;
    let spec = match &base {
        None => family.params(&settings.params)?,
        Some(base) => family
            .params_from_json(&base.params)?
            .updated(&settings.params)?,
    };
    if is_stream(&args.output) {
        return Err(Error::file(&args.output, "a model goes to a file; give it a name").into());
    }
    check_output(&args.output, &inputs(args))?;
    check_one_stream(&inputs(args))?;
    let data = match &base {
        None => settings.dataset(&args.data)?,
        Some(base) => settings.more_rows(&args.data, &base.schema)?,
    };
    let held_out = match &args.valid {
        Some(path) => Some(settings.more_rows(path, data.schema())?),
        None => None,
    };
    let seed = args.run.seed.or(settings.seed).unwrap_or(0);
    let pool = Pool::new(args.run.threads.into())?;
    let start = Instant::now();
    let bar = Bar::start(args.show.quiet);
    let run = Run {
        key: Key::from_seed(seed),
        pool: &pool,
        observer: &bar,
        held_out: held_out.as_ref(),
        warm_start: base.as_ref().map(|base| &base.record),
    };
    let posterior = spec
        .fit(&data, &run)
        .map_err(|error| error.within(&args.data))?;
    bar.finish()?;
    write_model(&args.output, &posterior.record())?;
    let mut report = FitReport::new(spec, &data, posterior.as_ref());
    report.notes.extend(family.former_names(&settings.params));
    report.file.clone_from(&args.output);
    report.resumed.clone_from(&args.resume);
    report.n_held_out_rows = held_out.as_ref().map(Dataset::n_rows);
    (report.seed, report.seconds) = (seed, start.elapsed().as_secs_f64());
    print::emit(args.show.json, args.show.quiet, &report, || {
        text::fit(&report, args.show.verbose)
    })
}

/// A model to go on from.
struct WarmStartModel {
    record: Record,
    schema: Schema,
    /// The parameters that it was fitted with, as JSON.
    params: String,
}

fn read_base(path: &Path) -> softwood::Result<WarmStartModel> {
    let posterior = read_model(path)?;
    Ok(WarmStartModel {
        record: posterior.record(),
        schema: posterior.schema().clone(),
        params: posterior.params_json(),
    })
}

/// The family that was named, or that of the model to go on from; a model does not change its family.
fn family_of(name: Option<&String>, base: Option<&WarmStartModel>) -> softwood::Result<Family> {
    let Some(base) = base else {
        return Family::from_name(name.map_or(DEFAULT_MODEL, String::as_str));
    };
    let family = Family::from_name(&base.record.family)?;
    match name {
        Some(name) if *name != base.record.family => Err(Error::Parameters(vec![format!(
            "the model to go on from is a `{}`, not a `{name}`; leave --model out",
            base.record.family
        )])),
        _ => {
            family.check_warm_start()?;
            Ok(family)
        }
    }
}

/// What is read, and must not be written over. A model to go on from may be: it is read before, and written whole or not
/// at all.
fn inputs(args: &FitArgs) -> Vec<&Path> {
    [
        Some(&args.data),
        args.valid.as_ref(),
        args.columns.config.as_ref(),
    ]
    .into_iter()
    .flatten()
    .map(PathBuf::as_path)
    .collect()
}

impl FitReport {
    /// What data and model say; the rest is filled in by the caller.
    pub(crate) fn new(params: ModelSpec, data: &Dataset, posterior: &dyn Model) -> Self {
        let schema = posterior.schema();
        let n_numeric = schema
            .fields
            .iter()
            .filter(|field| field.kind == FieldKind::Numeric)
            .count();
        Self {
            model: params.family().name(),
            file: PathBuf::new(),
            resumed: None,
            target: schema.target.clone(),
            classes: schema.classes().map(<[String]>::to_vec),
            n_rows: data.n_rows(),
            n_held_out_rows: None,
            n_numeric,
            n_categorical: schema.fields.len() - n_numeric,
            n_members: posterior.n_members(),
            params,
            seed: 0,
            seconds: 0.0,
            training: posterior.training().clone(),
            notes: notes::of(data, posterior.training()),
        }
    }
}
