//! Scores of a model against one of its parameters, on the sets of a published table.

use std::collections::BTreeMap;

use softwood::{Error, Result};

use super::{Figure, FigureRun, spec};
use crate::commands::reproduce::cells::CellFile;
use crate::commands::reproduce::folds;
use crate::commands::reproduce::published::PublishedTable;
use crate::commands::reproduce::run::{CellRunner, ReproduceRun, SetRunner};
use crate::plot::Scene;
use crate::plot::chart::{Chart, ChartPanel, PALETTE, Series, SeriesStyle, padded_range};

/// A parameter and the scores that are drawn against it.
pub(super) struct ParameterSweep {
    pub(super) family: &'static str,
    /// Name of the parameter, and of the axis.
    pub(super) param: &'static str,
    pub(super) x_name: &'static str,
    /// Values of the parameter, and those of a quick run.
    pub(super) values: &'static [&'static str],
    pub(super) quick_values: &'static [&'static str],
    /// Further parameters.
    pub(super) fixed: &'static [(&'static str, &'static str)],
    /// Scores and the names of their axes; one panel each.
    pub(super) scores: &'static [(&'static str, &'static str)],
    /// The model in words.
    pub(super) subtitle: &'static str,
}

/// Splits of a set.
const N_SPLITS: usize = 3;
const QUICK_SPLITS: usize = 1;
/// Sets of a quick run.
const QUICK_SETS: usize = 2;

impl ParameterSweep {
    pub(super) fn draw(&self, figure: &Figure, run: &FigureRun<'_>) -> Result<Scene> {
        let mut table = figure
            .data
            .as_ref()
            .map(super::FigureData::table)
            .ok_or_else(|| Error::Table(format!("figure `{}` names no data", figure.name)))?;
        if run.is_quick {
            table.sets.truncate(QUICK_SETS);
        }
        let n_splits = run.choose(QUICK_SPLITS, N_SPLITS);
        let values = run.choose(self.quick_values, self.values);
        let runners = runners(&table, run)?;
        let n_cells = values.len() * n_splits;
        // cells by set, value and split
        let cells = run.each(runners.len() * n_cells, |run, at| {
            let (set, value, split) = (at / n_cells, at % n_cells / n_splits, at % n_splits);
            let own = [(self.param, values[value])];
            let spec = spec(self.family, &[&own[..], self.fixed].concat())?;
            runners[set].run(&spec, split, run.pool, run.observer)
        })?;
        let panels = self.scores.iter().map(|(score, name)| {
            let means = |set: usize| -> Result<Vec<f64>> {
                let own = cells[set * n_cells..][..n_cells].chunks_exact(n_splits);
                own.map(|splits| mean_score(splits, score)).collect()
            };
            let places: Vec<f64> = (0..values.len()).map(|at| at as f64).collect();
            let series = table
                .sets
                .iter()
                .enumerate()
                .map(|(set, one)| {
                    let style = SeriesStyle::DottedLine;
                    let colour = PALETTE[set % PALETTE.len()];
                    let means = means(set)?;
                    Ok(Series::new(&one.name, style, colour, &places, &means))
                })
                .collect::<Result<Vec<Series>>>()?;
            Ok(ChartPanel {
                title: String::new(),
                x_name: self.x_name.to_owned(),
                y_name: (*name).to_owned(),
                x: -0.25..=values.len() as f64 - 0.75,
                y: padded_range(series.iter().flat_map(|one| one.ys.iter().copied()), 0.08),
                x_labels: values.iter().map(|value| (*value).to_owned()).collect(),
                series,
            })
        });
        let panels = panels.collect::<Result<Vec<ChartPanel>>>()?;
        let splits = if n_splits == 1 { "split" } else { "splits" };
        let chart = Chart {
            title: figure.heading(),
            subtitle: vec![format!("{}; mean of {n_splits} {splits}", self.subtitle)],
            n_columns: 2,
            extent: [410.0, 300.0],
            panels,
        };
        Ok(chart.scene())
    }
}

/// The runners of the sets.
fn runners(table: &PublishedTable, run: &FigureRun<'_>) -> Result<Vec<Box<dyn CellRunner>>> {
    let cells = CellFile::in_memory();
    let run = ReproduceRun {
        data: run.data,
        seed: run.seed,
        is_quick: run.is_quick,
        max_splits: None,
        pool: run.pool,
        cells: &cells,
    };
    let runner = |set| match folds::prepare(table, set, &run)? {
        SetRunner::Ready(runner) => Ok(runner),
        SetRunner::Missing(file) => Err(Error::Table(format!(
            "there is no table `{}` in the data directory",
            file.file
        ))),
    };
    table.sets.iter().map(runner).collect()
}

/// The mean of a score over splits, which must all have it.
fn mean_score(splits: &[BTreeMap<String, f64>], score: &str) -> Result<f64> {
    let value = |values: &BTreeMap<String, f64>| {
        let problem = || Error::Table(format!("a split has no score `{score}`"));
        values.get(score).copied().ok_or_else(problem)
    };
    let sum = splits.iter().map(value).sum::<Result<f64>>()?;
    Ok(sum / splits.len() as f64)
}
