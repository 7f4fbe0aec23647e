//! The papers and their tables, from the TOML files that are part of the program.

use std::path::Path;

use serde::Deserialize;
use softwood::{Error, Result};

use super::published::PublishedTable;
use crate::commands::path_checks::read_problem;

/// Embeds the files of the tables under their names.
macro_rules! embedded {
    ($($name:literal),+ $(,)?) => {
        /// Names of the tables.
        pub(crate) const NAMES: &[&str] = &[$($name),+];
        const TABLES: &[&str] = &[$(include_str!(concat!("tables/", $name, ".toml"))),+];
    };
}

embedded![
    "vst-1",
    "vst-2",
    "vst-3",
    "vst-6",
    "malinin-1",
    "malinin-2",
    "malinin-4",
    "malinin-5",
    "malinin-6",
    "malinin-7",
    "irsoy-1",
    "irsoy-2",
    "vart-1",
    "vart-2",
    "vart-a",
    "vart-b",
    "rnn-tree-1",
];

/// The argument that means all tables.
pub(crate) const ALL: &str = "all";

/// The argument that means all figures.
pub(crate) const ALL_FIGURES: &str = "figures";

/// Papers, and their tables without results.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PaperList {
    #[serde(rename = "paper")]
    pub(crate) papers: Vec<Paper>,
    #[serde(rename = "other")]
    pub(crate) others: Vec<OtherItem>,
}

/// A paper.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paper {
    pub(crate) name: String,
    pub(crate) citation: String,
}

/// Tables without results.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OtherItem {
    pub(crate) paper: String,
    pub(crate) place: String,
    pub(crate) title: String,
}

/// The papers.
pub(crate) fn papers() -> PaperList {
    toml::from_str(include_str!("tables/listing.toml")).expect("a test reads the embedded list")
}

/// The citation of a paper of this name.
pub(crate) fn paper_citation(name: &str) -> String {
    let mut papers = papers().papers.into_iter();
    papers
        .find(|paper| paper.name == name)
        .map_or_else(|| name.to_owned(), |paper| paper.citation)
}

/// All tables.
pub(crate) fn tables() -> Vec<PublishedTable> {
    let table = |text: &&str| toml::from_str(text).expect("a test reads the embedded tables");
    TABLES.iter().map(table).collect()
}

/// The tables of these names; [`ALL`] stands for all.
pub(crate) fn named(names: &[String]) -> Vec<PublishedTable> {
    let is_named = |name: &str| names.iter().any(|other| other == name || other == ALL);
    let mut tables = tables();
    tables.retain(|table| is_named(&table.name));
    tables
}

/// A table from a file of the user.
pub(crate) fn read(path: &Path) -> Result<PublishedTable> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| Error::file(path, read_problem(&error)))?;
    toml::from_str(&text).map_err(|error| {
        let problem = format!("not a table of `softwood reproduce`: {error}");
        Error::file(path, problem.trim_end())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::reproduce::models::selected;

    #[test]
    fn every_table_is_named_as_its_file_and_belongs_to_a_paper() {
        let papers = papers();
        let is_paper = |name: &String| papers.papers.iter().any(|paper| paper.name == *name);
        let tables = tables();
        for (table, name) in tables.iter().zip(NAMES) {
            assert_eq!(table.name, *name);
            assert!(is_paper(&table.paper), "{name}");
        }
        assert!(papers.others.iter().all(|item| is_paper(&item.paper)));
    }

    #[test]
    fn figures_belong_to_metrics_sets_and_rows_that_exist() {
        for table in tables() {
            let is_metric = |name: &String| table.metrics.iter().any(|one| one.name == *name);
            let is_set = |name: &String| table.sets.iter().any(|set| set.name == *name);
            for row in &table.rows {
                assert!(
                    row.figures.keys().all(is_metric),
                    "{} {}",
                    table.name,
                    row.name
                );
                let mut sets = row.figures.values().flat_map(|figures| figures.keys());
                assert!(sets.all(is_set), "{} {}", table.name, row.name);
            }
            let is_row = |name: &String| table.rows.iter().any(|row| row.name == *name);
            let mut compared = table.models.iter().flat_map(|model| &model.rows);
            assert!(compared.all(is_row), "{}", table.name);
            assert!(table.kind != super::super::published::TableKind::Ood || table.ood.is_some());
        }
    }

    #[test]
    fn the_parameters_of_all_models_are_valid() {
        for table in &tables() {
            for is_quick in [false, true] {
                let models = selected(table, &[], is_quick).unwrap();
                assert_eq!(models.len(), table.models.len(), "{}", table.name);
            }
        }
    }
}
