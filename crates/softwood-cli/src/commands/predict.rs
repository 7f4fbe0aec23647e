//! `softwood predict`: writes a table of predictions for the rows of a table.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use softwood::data::Values;
use softwood::{Column, Distribution, Error, Key, Model, Pool, Table};
use softwood_io::{read_table, write_table};

use crate::args::PredictArgs;
use crate::commands::path_checks::{check_output, is_stream, read_model_for};
use crate::commands::safe_csv::{is_text_format, without_formulas};
use crate::print;
use crate::progress::end_on_interrupt;

/// The JSON report of `predict`.
#[derive(Debug, Serialize)]
struct PredictReport<'a> {
    model: &'a Path,
    data: &'a Path,
    n_rows: usize,
    /// The file that was written; none if the predictions are in `predictions`.
    file: Option<&'a Path>,
    columns: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predictions: Option<BTreeMap<&'a str, JsonCells<'a>>>,
}

/// Cells as a JSON list; missing cells and numbers that are not finite are `null`. The cells are not
/// copied, because there may be many.
#[derive(Debug)]
struct JsonCells<'a>(&'a Values);

impl Serialize for JsonCells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0 {
            Values::Numeric(numbers) => numbers.serialize(serializer),
            Values::Categorical { codes, levels } => {
                let mut cells = serializer.serialize_seq(Some(codes.len()))?;
                for code in codes {
                    cells.serialize_element(&levels.get(*code as usize))?;
                }
                cells.end()
            }
        }
    }
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
    let table = read_table(&args.data, &args.format.read_options(model.schema()))?;
    let predictions =
        predictions_of(model.as_ref(), &table, args).map_err(|error| error.within(&args.data))?;
    if !args.json || !is_stream(output) {
        if args.safe_csv && is_text_format(output) {
            write_table(output, &without_formulas(&predictions)?)?;
        } else {
            write_table(output, &predictions)?;
        }
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
    columns.extend(columns_of(&summary.quantiles, names.collect())?);
    if args.samples > 0 {
        let n = args.samples as usize;
        let draws = distribution.sample(n, Key::from_seed(args.run.seed.unwrap_or(0)))?;
        columns.extend(columns_of(
            &draws,
            (1..=n).map(|draw| format!("sample_{draw}")).collect(),
        )?);
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
    )?);
    let uncertainty = summary.uncertainty;
    columns.push(Column::numeric("total", uncertainty.total));
    columns.push(Column::numeric("data", uncertainty.data));
    columns.push(Column::numeric("knowledge", uncertainty.knowledge));
    Ok(columns)
}

/// The columns of a row-major matrix `[n_rows, names.len()]`; an error if there is not enough memory
/// for them.
fn columns_of(values: &[f64], names: Vec<String>) -> softwood::Result<Vec<Column>> {
    let width = names.len();
    let column = |(at, name)| {
        let mut cells = Vec::new();
        let n_rows = values.len().div_ceil(width.max(1));
        cells.try_reserve_exact(n_rows).map_err(|_| {
            Error::Table(format!(
                "not enough memory for {width} columns of {n_rows} rows; ask for fewer samples or quantiles, or \
                 predict fewer rows at a time"
            ))
        })?;
        cells.extend(values.iter().skip(at).step_by(width));
        Ok(Column::numeric(name, cells))
    };
    names.into_iter().enumerate().map(column).collect()
}

/// `q05` for 0.05, `q50` for 0.5, `q975` for 0.975: the decimals, at least two of them.
fn quantile_name(level: f64) -> String {
    let text = level.to_string();
    format!("q{:0<2}", text.trim_start_matches("0."))
}

fn report_of<'a>(
    args: &'a PredictArgs,
    output: &'a Path,
    predictions: &'a Table,
) -> PredictReport<'a> {
    let file = (!is_stream(output)).then_some(output);
    let columns = predictions.columns().iter();
    let cells = columns.map(|column| (column.name.as_str(), JsonCells(&column.values)));
    PredictReport {
        model: &args.model,
        data: &args.data,
        n_rows: predictions.n_rows(),
        columns: predictions.names().collect(),
        predictions: file.is_none().then(|| cells.collect()),
        file,
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
        assert_eq!(columns.unwrap()[1], Column::numeric("b", vec![2.0, 4.0]));
    }
}
