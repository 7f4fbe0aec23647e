//! `softwood causal`: the effect of a treatment, on average and for every row.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use softwood::data::Values;
use softwood::decide::causal::{
    CausalConfig, CausalMethod, CausalRoles, ConditionalEffects, EffectEstimate, EffectModel,
    EffectScope, OverlapReport, TreatmentPolicy, TreatmentPolicyValue, estimate,
};
use softwood::{Column, Error, Family, Key, ModelSpec, Pool, Run, Table};
use softwood_io::{ReadOptions, read_table_detailed, write_table};

use crate::args::CausalArgs;
use crate::commands::data_notes;
use crate::commands::path_checks::{check_output, is_stream};
use crate::print;
use crate::progress::Bar;

/// The report of `causal`.
#[derive(Debug, Serialize)]
pub(crate) struct CausalReport {
    pub(crate) data: PathBuf,
    pub(crate) treatment: String,
    pub(crate) outcome: String,
    pub(crate) treated: String,
    pub(crate) control: String,
    pub(crate) n_rows: usize,
    /// Rows of other levels of the treatment.
    pub(crate) n_left_out: usize,
    pub(crate) method: CausalMethod,
    pub(crate) model: &'static str,
    pub(crate) params: ModelSpec,
    pub(crate) propensity_model: &'static str,
    pub(crate) n_folds: usize,
    pub(crate) scope: EffectScope,
    /// Difference of the mean outcomes of the arms.
    pub(crate) naive_difference: f64,
    pub(crate) average_effect: EffectEstimate,
    pub(crate) effect_on_treated: EffectEstimate,
    pub(crate) rows: RowEffects,
    pub(crate) policy: TreatmentPolicyValue,
    /// Whether the policy is a column of the table.
    pub(crate) policy_column: Option<String>,
    pub(crate) overlap: OverlapReport,
    pub(crate) file: Option<PathBuf>,
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    pub(crate) notes: Vec<String>,
}

/// The effects of single rows in a few numbers.
#[derive(Debug, Serialize)]
pub(crate) struct RowEffects {
    pub(crate) n_rows: usize,
    /// Rows whose interval lies above zero.
    pub(crate) n_positive: usize,
    /// Rows whose interval lies below zero.
    pub(crate) n_negative: usize,
    pub(crate) share_positive: f64,
    pub(crate) share_negative: f64,
    pub(crate) smallest: f64,
    pub(crate) largest: f64,
}

pub(crate) fn run(args: &CausalArgs) -> Result<()> {
    let config = config_of(args)?;
    if let Some(output) = args.output.as_deref() {
        check_where_to_write(args, output)?;
    }
    let (table, notes) = read(args)?;
    let decisions = args
        .policy
        .as_deref()
        .map(|name| decisions_of(&table, name))
        .transpose()
        .map_err(|error| error.within(&args.data))?;
    let roles = roles_of(args);
    let seed = args.run.seed.unwrap_or(0);
    let pool = Pool::new(args.run.threads.into())?;
    let start = Instant::now();
    let bar = Bar::start_many(args.quiet, 2);
    let run = Run::new(Key::from_seed(seed), &pool).observer(&bar);
    let model =
        estimate(&table, &roles, &config, &run).map_err(|error| error.within(&args.data))?;
    let effects = model.conditional_effects_observed(&table, args.level, &pool, &bar)?;
    bar.finish()?;
    let policy = match decisions {
        None => TreatmentPolicy::EffectAbove,
        Some(all) => TreatmentPolicy::Given(model.row_indices().iter().map(|&r| all[r]).collect()),
    };
    let (treated, control) = model.levels();
    let report = CausalReport {
        data: args.data.clone(),
        treatment: args.treatment.clone(),
        outcome: args.outcome.clone(),
        treated: treated.to_owned(),
        control: control.to_owned(),
        n_rows: model.is_treated().len(),
        n_left_out: model.n_left_out(),
        method: config.method,
        model: config.outcome.family().name(),
        propensity_model: config.propensity.family().name(),
        n_folds: model.n_folds(),
        scope: config.scope,
        naive_difference: model.naive_difference(),
        average_effect: model.average_effect(args.level, &pool)?,
        effect_on_treated: model.effect_on_treated(args.level, &pool)?,
        rows: RowEffects::of(&effects),
        policy: model.policy_value(&policy, args.policy_cost, args.level, &pool)?,
        policy_column: args.policy.clone(),
        overlap: model.overlap().clone(),
        file: args.output.clone().filter(|path| !is_stream(path)),
        seed,
        seconds: start.elapsed().as_secs_f64(),
        params: config.outcome,
        notes,
    };
    if let Some(output) = &args.output {
        write_table(output, &effects_table(&model, effects, table.n_rows())?)?;
    }
    let is_silent = args.quiet || args.output.as_deref().is_some_and(is_stream);
    print::emit(args.json, is_silent, &report, || {
        print::causal::text(&report)
    })
}

fn config_of(args: &CausalArgs) -> softwood::Result<CausalConfig> {
    let family = Family::from_name(&args.model)?;
    for note in family.former_names(&args.params) {
        print::note(&note);
    }
    let mut config = CausalConfig::new(family.params(&args.params)?)
        .method(args.method)
        .scope(args.scope);
    if let Some(name) = &args.propensity {
        config = config.propensity(Family::from_name(name)?.params(&[])?);
    }
    config.n_folds = args.folds.into();
    Ok(config)
}

fn check_where_to_write(args: &CausalArgs, output: &Path) -> softwood::Result<()> {
    if !is_stream(output) {
        return check_output(output, &[&args.data]);
    }
    if args.json {
        return Err(Error::Parameters(vec![
            "--json and -o - both write to standard output; give a file for the effects".to_owned(),
        ]));
    }
    Ok(())
}

fn roles_of(args: &CausalArgs) -> CausalRoles {
    let mut roles = CausalRoles::new(&args.treatment, &args.outcome);
    roles.treated.clone_from(&args.treated);
    roles.control.clone_from(&args.control);
    roles.ignore.extend(args.policy.clone());
    roles
}

/// The table without columns that are left out, and notes on it. The column of decisions stays and
/// becomes no covariate.
fn read(args: &CausalArgs) -> softwood::Result<(Table, Vec<String>)> {
    let mut numeric = args.numeric.clone();
    numeric.push(args.outcome.clone());
    let read = ReadOptions {
        delimiter: args.format.delimiter,
        categorical: args.categorical.clone(),
        numeric,
        ignore: args.ignore.clone(),
        limits: args.format.limits(),
        ..ReadOptions::default()
    };
    let found = read_table_detailed(&args.data, &read)?;
    read.check_names(&found.table)
        .map_err(|error| error.within(&args.data))?;
    let is_named = |name: &String| {
        let roles = [&args.treatment, &args.outcome];
        let named = [&args.categorical, &args.numeric, &args.ignore];
        roles.contains(&name) || named.iter().any(|names| names.contains(name))
    };
    let index: Vec<String> = (found.index_columns.into_iter())
        .filter(|name| !is_named(name))
        .collect();
    let left_out = args.ignore.iter().chain(&index);
    let left_out: Vec<&str> = left_out.map(String::as_str).collect();
    for name in &args.ignore {
        found
            .table
            .column(name)
            .map_err(|error| error.within(&args.data))?;
    }
    Ok((found.table.without(&left_out), data_notes::on_index(&index)))
}

/// The decisions of a column of ones and zeros, or of booleans.
fn decisions_of(table: &Table, name: &str) -> softwood::Result<Vec<bool>> {
    let column = table.column(name)?;
    let decision = |row: usize| {
        let found = match &column.values {
            Values::Numeric(values) => match values[row].to_string().as_str() {
                "1" => Some(true),
                "0" | "-0" => Some(false),
                _ => None,
            },
            Values::Categorical { codes, levels } => {
                let level = levels.get(codes[row] as usize);
                level.and_then(|level| level.parse().ok())
            }
        };
        found.ok_or_else(|| {
            Error::cell(
                name,
                row + 1,
                "a decision must be 1 (treat) or 0 (do not treat)",
            )
        })
    };
    (0..table.n_rows()).map(decision).collect()
}

/// One row of output for each row of the table.
fn effects_table(
    model: &EffectModel,
    effects: ConditionalEffects,
    n_rows: usize,
) -> softwood::Result<Table> {
    let mut propensity = vec![f64::NAN; n_rows];
    for (&row, &value) in model.row_indices().iter().zip(&model.overlap().propensity) {
        propensity[row] = value;
    }
    Table::new(vec![
        Column::numeric("effect", effects.mean),
        Column::numeric("sd", effects.std),
        Column::numeric("lower", effects.lower),
        Column::numeric("upper", effects.upper),
        Column::numeric("propensity", propensity),
    ])
}

impl RowEffects {
    fn of(effects: &ConditionalEffects) -> Self {
        let n_rows = effects.mean.len();
        let share = |count: usize| count as f64 / n_rows.max(1) as f64;
        let (n_positive, n_negative) = (effects.n_positive(), effects.n_negative());
        Self {
            n_rows,
            n_positive,
            n_negative,
            share_positive: share(n_positive),
            share_negative: share(n_negative),
            smallest: effects.mean.iter().copied().fold(f64::INFINITY, f64::min),
            largest: (effects.mean.iter().copied()).fold(f64::NEG_INFINITY, f64::max),
        }
    }
}
