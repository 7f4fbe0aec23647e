//! `softwood predict`: writes a table of predictions for the rows of a table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;
use softwood::data::Values;
use softwood::{Column, Distribution, Error, Key, Model, Pool, Table};
use softwood_io::{ReadOptions, read_table, write_table};

use crate::args::PredictArgs;
use crate::commands::path_checks::{check_output, is_stream, read_model_for};
use crate::print;
use crate::progress::end_on_interrupt;

/// The JSON report of `predict`.
#[derive(Debug, Serialize)]
struct PredictReport {
    model: PathBuf,
    data: PathBuf,
    n_rows: usize,
    /// The file that was written; none if the predictions are in `predictions`.
    file: Option<PathBuf>,
    columns: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predictions: Option<BTreeMap<String, Vec<Value>>>,
}

/// Quantile levels if none are given.
const DEFAULT_QUANTILES: [f64; 3] = [0.05, 0.5, 0.95];

pub(crate) fn run(args: &PredictArgs) -> Result<()> {
    check_levels(&args.quantiles)?;
    let output = args.output.as_deref().unwrap_or(Path::new("-"));
    if !is_stream(output) {
        end_on_interrupt();
        check_output(output, &[&args.model, &args.data])?;
    }
    let model = read_model_for(&args.model, &args.data)?;
    if let Some(classes) = model.schema().classes() {
        check_classification(args, classes)?;
    }
    let read = ReadOptions {
        delimiter: args.format.delimiter,
        ..ReadOptions::for_schema(model.schema())
    };
    let table = read_table(&args.data, &read)?;
    let predictions =
        predictions_of(model.as_ref(), &table, args).map_err(|error| error.within(&args.data))?;
    if !args.json || !is_stream(output) {
        write_table(output, &predictions)?;
    }
    if args.json {
        print::json(&report_of(args, output, &predictions))
    } else {
        Ok(())
    }
}

/// Rejects a level that is given twice: each level makes a column, and column names are unique.
fn check_levels(levels: &[f64]) -> softwood::Result<()> {
    let is_duplicate = |at: &usize| {
        levels[..*at]
            .iter()
            .any(|other| other.total_cmp(&levels[*at]).is_eq())
    };
    match (0..levels.len()).find(is_duplicate) {
        Some(at) => Err(Error::Parameters(vec![format!(
            "--quantiles: the level {} is given twice; give each level once",
            levels[at]
        )])),
        None => Ok(()),
    }
}

/// Rejects options that apply only to regression.
fn check_classification(args: &PredictArgs, classes: &[String]) -> softwood::Result<()> {
    let flag = if args.samples > 0 {
        "--samples"
    } else if !args.quantiles.is_empty() {
        "--quantiles"
    } else {
        return Ok(());
    };
    Err(Error::Parameters(vec![format!(
        "{flag} applies only to regression, but {} predicts classes ({}); omit {flag}: the columns p_CLASS are \
         the full predictive distribution",
        args.model.display(),
        classes.join(", ")
    )]))
}

fn predictions_of(model: &dyn Model, table: &Table, args: &PredictArgs) -> softwood::Result<Table> {
    let pool = Pool::new(args.run.threads.into())?;
    let distribution = Distribution::new(model, table, &pool)?;
    let found = match model.schema().classes() {
        None => regression(&distribution, args)?,
        Some(classes) => classification(&distribution, classes)?,
    };
    if !args.keep {
        return Table::new(found);
    }
    if let Some(duplicate) = found
        .iter()
        .find(|column| table.names().any(|name| name == column.name))
    {
        let problem =
            "both the table and the predictions have this column; rename it or omit --keep";
        return Err(Error::column(&duplicate.name, problem));
    }
    Table::new(table.columns().iter().cloned().chain(found).collect())
}

fn regression(
    distribution: &Distribution<'_>,
    args: &PredictArgs,
) -> softwood::Result<Vec<Column>> {
    let levels = if args.quantiles.is_empty() {
        &DEFAULT_QUANTILES[..]
    } else {
        &args.quantiles
    };
    let summary = distribution.summary(levels)?;
    let moments = summary.moments;
    let mut columns = vec![
        Column::numeric("mean", moments.mean),
        Column::numeric("sd", moments.std),
        Column::numeric("data_sd", moments.data_std),
        Column::numeric("knowledge_sd", moments.knowledge_std),
    ];
    let names = levels.iter().map(|level| quantile_name(*level));
    columns.extend(columns_of(&summary.quantiles, names.collect()));
    if args.samples > 0 {
        let n = args.samples as usize;
        let draws = distribution.sample(n, Key::from_seed(args.run.seed.unwrap_or(0)))?;
        columns.extend(columns_of(
            &draws,
            (1..=n).map(|draw| format!("sample_{draw}")).collect(),
        ));
    }
    Ok(columns)
}

fn classification(
    distribution: &Distribution<'_>,
    classes: &[String],
) -> softwood::Result<Vec<Column>> {
    let summary = distribution.class_summary()?;
    let names: Vec<_> = summary
        .labels
        .iter()
        .map(|label| classes.get(*label as usize))
        .collect();
    let mut columns = vec![Column::categorical("label", &names)];
    columns.extend(columns_of(
        &summary.probabilities,
        classes.iter().map(|class| format!("p_{class}")).collect(),
    ));
    let uncertainty = summary.uncertainty;
    columns.push(Column::numeric("total", uncertainty.total));
    columns.push(Column::numeric("data", uncertainty.data));
    columns.push(Column::numeric("knowledge", uncertainty.knowledge));
    Ok(columns)
}

/// The columns of a row-major matrix `[n_rows, names.len()]`.
fn columns_of(values: &[f64], names: Vec<String>) -> Vec<Column> {
    let width = names.len();
    let column = |(at, name)| {
        Column::numeric(
            name,
            values.iter().skip(at).step_by(width).copied().collect(),
        )
    };
    names.into_iter().enumerate().map(column).collect()
}

/// `q05` for 0.05, `q50` for 0.5, `q975` for 0.975: the decimals, at least two of them.
fn quantile_name(level: f64) -> String {
    let text = level.to_string();
    format!("q{:0<2}", text.trim_start_matches("0."))
}

fn report_of(args: &PredictArgs, output: &Path, predictions: &Table) -> PredictReport {
    let file = (!is_stream(output)).then(|| output.to_owned());
    let cells = || {
        predictions
            .columns()
            .iter()
            .map(|column| (column.name.clone(), cells_of(&column.values)))
    };
    PredictReport {
        model: args.model.clone(),
        data: args.data.clone(),
        n_rows: predictions.n_rows(),
        columns: predictions.names().map(str::to_owned).collect(),
        predictions: file.is_none().then(|| cells().collect()),
        file,
    }
}

fn cells_of(values: &Values) -> Vec<Value> {
    match values {
        Values::Numeric(numbers) => numbers.iter().map(|number| Value::from(*number)).collect(),
        Values::Categorical { codes, levels } => codes
            .iter()
            .map(|code| levels.get(*code as usize).cloned().into())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_columns_have_distinct_names() {
        let names = [0.05, 0.5, 0.95, 0.025, 0.25, 0.975, 0.001].map(quantile_name);
        assert_eq!(names, ["q05", "q50", "q95", "q025", "q25", "q975", "q001"]);
    }

    #[test]
    fn columns_of_a_matrix_are_extracted() {
        let columns = columns_of(&[1.0, 2.0, 3.0, 4.0], vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(columns[1], Column::numeric("b", vec![2.0, 4.0]));
    }
}
