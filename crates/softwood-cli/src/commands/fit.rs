//! `softwood fit`: a table in, a model file out.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;
use softwood::{
    Dataset, Error, Family, FieldKind, Key, Pool, Posterior, Run, Training, write_model,
};

use crate::args::FitArgs;
use crate::commands::files::{check_one_stream, check_output, is_stream};
use crate::commands::notes;
use crate::commands::settings::{DEFAULT_MODEL, Settings};
use crate::print::{self, text};
use crate::progress::Bar;

/// What a fit came to.
#[derive(Debug, Serialize)]
pub(crate) struct FitReport {
    pub(crate) model: &'static str,
    pub(crate) file: PathBuf,
    pub(crate) target: String,
    /// Class names; none for regression.
    pub(crate) classes: Option<Vec<String>>,
    pub(crate) n_rows: usize,
    pub(crate) n_held_out_rows: Option<usize>,
    pub(crate) n_numeric: usize,
    pub(crate) n_categorical: usize,
    pub(crate) n_members: usize,
    pub(crate) params: Value,
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    pub(crate) training: Training,
    /// What may not have been meant.
    pub(crate) notes: Vec<String>,
}

pub(crate) fn run(args: &FitArgs) -> Result<()> {
    let settings = Settings::gather(&args.columns)?;
    let name = args.model.as_ref().or(settings.model.as_ref());
    let family = Family::from_name(name.map_or(DEFAULT_MODEL, String::as_str))?;
    let params = family.params_from_texts(&settings.params)?;
    if is_stream(&args.output) {
        return Err(Error::file(&args.output, "a model goes to a file; give it a name").into());
    }
    check_output(&args.output, &inputs(args))?;
    check_one_stream(&inputs(args))?;
    let data = settings.dataset(&args.data)?;
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
        watch: &bar,
        held_out: held_out.as_ref(),
        base: None,
    };
    let posterior = family
        .fit(&params, &data, &run)
        .map_err(|error| error.within(&args.data))?;
    bar.finish()?;
    write_model(&args.output, &posterior.record())?;
    let mut report = FitReport::new(family, &data, posterior.as_ref());
    report.file.clone_from(&args.output);
    report.n_held_out_rows = held_out.as_ref().map(Dataset::n_rows);
    (report.params, report.seed, report.seconds) = (params, seed, start.elapsed().as_secs_f64());
    print::emit(args.show.json, args.show.quiet, &report, || {
        text::fit(&report, args.show.verbose)
    })
}

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
    pub(crate) fn new(family: Family, data: &Dataset, posterior: &dyn Posterior) -> Self {
        let schema = posterior.schema();
        let n_numeric = schema
            .fields
            .iter()
            .filter(|field| field.kind == FieldKind::Numeric)
            .count();
        Self {
            model: family.name(),
            file: PathBuf::new(),
            target: schema.target.clone(),
            classes: schema.classes().map(<[String]>::to_vec),
            n_rows: data.n_rows(),
            n_held_out_rows: None,
            n_numeric,
            n_categorical: schema.fields.len() - n_numeric,
            n_members: posterior.n_members(),
            params: Value::Null,
            seed: 0,
            seconds: 0.0,
            training: posterior.training().clone(),
            notes: notes::of(data, posterior.training()),
        }
    }
}
