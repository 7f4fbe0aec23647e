//! `softwood fit`: fits a model to a table and writes a model file.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use softwood::data::FieldKind;
use softwood::model::Training;
use softwood::observer::{Observer, Observers, TimeLimit};
use softwood::{Dataset, Error, Family, Key, Model, ModelSpec, Pool, Run, load};

use crate::args::FitArgs;
use crate::commands::notes;
use crate::commands::path_checks::{check_output, check_stdin_used_once, is_stream};
use crate::commands::settings::{DEFAULT_MODEL, FitSettings};
use crate::print::{self, text};
use crate::progress::Bar;

/// The report of `fit`.
#[derive(Debug, Serialize)]
pub(crate) struct FitReport {
    pub(crate) model: &'static str,
    pub(crate) file: PathBuf,
    /// The model file given with --resume.
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
    /// Warnings about the data and the members.
    pub(crate) notes: Vec<String>,
}

pub(crate) fn run(args: &FitArgs) -> Result<()> {
    let resumed = args.resume.as_deref().map(load).transpose()?;
    let resumed_target = resumed.as_ref().map(|model| model.schema().target.as_str());
    let settings = FitSettings::gather(&args.columns, resumed_target)?;
    let name = args.model.as_ref().or(settings.model.as_ref());
    let family = family_of(name, resumed.as_deref())?;
    let spec = match &resumed {
        None => family.params(&settings.params)?,
        Some(resumed) => family
            .params_from_json(&resumed.params_json())?
            .updated(&settings.params)?,
    };
    if is_stream(&args.output) {
        return Err(Error::file(
            &args.output,
            "a model cannot be written to standard output; give a file name",
        )
        .into());
    }
    check_output(&args.output, &inputs(args))?;
    check_stdin_used_once(&inputs(args))?;
    let (data, data_notes) = match &resumed {
        None => settings.dataset(&args.data)?,
        Some(resumed) => {
            let data = settings.matching_dataset(&args.data, resumed.schema())?;
            (data, Vec::new())
        }
    };
    let validation = match &args.valid {
        Some(path) => Some(settings.matching_dataset(path, data.schema())?),
        None => None,
    };
    let seed = args.run.seed.or(settings.seed).unwrap_or(0);
    let pool = Pool::new(args.run.threads.into())?;
    let start = Instant::now();
    let bar = Bar::start(args.show.quiet);
    let limit = args.time_limit.map(TimeLimit::new);
    let observers: Vec<&dyn Observer> = std::iter::once(&bar as &dyn Observer)
        .chain(limit.as_ref().map(|limit| limit as &dyn Observer))
        .collect();
    let observers = Observers(observers);
    let mut run = Run::new(Key::from_seed(seed), &pool).observer(&observers);
    run.held_out = validation.as_ref();
    run.warm_start = resumed.as_deref();
    let model = spec
        .fit_with(&data, &run)
        .map_err(|error| error.within(&args.data))?;
    bar.finish()?;
    model.save(&args.output)?;
    let mut report = FitReport::new(spec, &data, model.as_ref());
    report.notes.splice(..0, data_notes);
    report.notes.extend(family.former_names(&settings.params));
    report.file.clone_from(&args.output);
    report.resumed.clone_from(&args.resume);
    report.n_held_out_rows = validation.as_ref().map(Dataset::n_rows);
    (report.seed, report.seconds) = (seed, start.elapsed().as_secs_f64());
    print::emit(args.show.json, args.show.quiet, &report, || {
        text::fit(&report, args.show.verbose)
    })
}

/// The family to fit: that of the model given with --resume, or else the one named by the user. An
/// error if both are given and differ.
fn family_of(name: Option<&String>, resumed: Option<&dyn Model>) -> softwood::Result<Family> {
    let Some(resumed) = resumed else {
        return Family::from_name(name.map_or(DEFAULT_MODEL, String::as_str));
    };
    let family = Family::from_name(resumed.family())?;
    match name {
        Some(name) if name != resumed.family() => Err(Error::Parameters(vec![format!(
            "the model given with --resume is a `{}`, not a `{name}`; omit --model",
            resumed.family()
        )])),
        _ => {
            family.check_warm_start()?;
            Ok(family)
        }
    }
}

/// Input files that must not be overwritten. The model given with --resume may be: it is read
/// before, and model files are written atomically.
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
    /// A report with the fields that data and model determine; the caller fills in the others.
    pub(crate) fn new(params: ModelSpec, data: &Dataset, model: &dyn Model) -> Self {
        let schema = model.schema();
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
            n_members: model.n_members(),
            params,
            seed: 0,
            seconds: 0.0,
            training: model.training().clone(),
            notes: notes::on_training(model.training()),
        }
    }
}
