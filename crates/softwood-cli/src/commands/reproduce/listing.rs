//! The list of all tables and figures, and the data that each needs.

use std::path::Path;

use serde::Serialize;

use super::catalogue::{papers, tables};
use super::data_files;
use super::figures::{FIGURES, Figure};
use super::published::PublishedTable;

/// The tables and figures of the papers.
#[derive(Debug, Serialize)]
pub(crate) struct Listing {
    /// Whether a data directory was looked at.
    pub(crate) has_data: bool,
    pub(crate) papers: Vec<ListedPaper>,
}

/// A paper.
#[derive(Debug, Serialize)]
pub(crate) struct ListedPaper {
    pub(crate) citation: String,
    pub(crate) items: Vec<ListedItem>,
}

/// A table or a figure.
#[derive(Debug, Serialize)]
pub(crate) struct ListedItem {
    /// Name on the command line; absent for what cannot be run.
    pub(crate) name: Option<String>,
    pub(crate) place: String,
    pub(crate) title: String,
    /// Data folders and sets, such as `gal: boston, energy`.
    pub(crate) needs: Vec<String>,
    /// Number of sets of the table or figure, and of those whose files are there.
    pub(crate) n_sets: usize,
    pub(crate) n_found: Option<usize>,
    /// How a figure differs from the paper's.
    pub(crate) reading: Option<&'static str>,
}

impl Listing {
    /// The list; with a data directory it says which sets are there.
    pub(crate) fn new(data: Option<&Path>) -> Self {
        let (list, tables) = (papers(), tables());
        let papers = list.papers.iter().map(|paper| {
            let own = tables.iter().filter(|table| table.paper == paper.name);
            let mut items: Vec<ListedItem> = own.map(|table| of_table(table, data)).collect();
            let others = list.others.iter().filter(|item| item.paper == paper.name);
            items.extend(others.map(|item| ListedItem {
                name: None,
                place: item.place.clone(),
                title: item.title.clone(),
                needs: Vec::new(),
                n_sets: 0,
                n_found: None,
                reading: None,
            }));
            let figures = FIGURES.iter().filter(|figure| figure.paper == paper.name);
            items.extend(figures.map(|figure| of_figure(figure, data)));
            ListedPaper {
                citation: paper.citation.clone(),
                items,
            }
        });
        Self {
            has_data: data.is_some(),
            papers: papers.collect(),
        }
    }
}

fn of_table(table: &PublishedTable, data: Option<&Path>) -> ListedItem {
    let is_there = |folder: &Path| {
        let sets = table.sets.iter();
        sets.filter(|set| data_files::missing(folder, set).is_none())
            .count()
    };
    ListedItem {
        name: Some(table.name.clone()),
        place: table.place.clone(),
        title: table.title.clone(),
        needs: needs(table),
        n_sets: table.sets.len(),
        n_found: data.map(is_there),
        reading: None,
    }
}

fn of_figure(figure: &Figure, data: Option<&Path>) -> ListedItem {
    let title = figure.title.to_owned();
    let (name, place) = (Some(figure.name.to_owned()), figure.place.to_owned());
    match &figure.data {
        Some(needed) => ListedItem {
            name,
            place,
            title,
            reading: figure.reading,
            ..of_table(&needed.table(), data)
        },
        None => ListedItem {
            name,
            place,
            title,
            needs: Vec::new(),
            n_sets: 0,
            n_found: None,
            reading: figure.reading,
        },
    }
}

/// The files of the sets, by folder.
fn needs(table: &PublishedTable) -> Vec<String> {
    let mut folders: Vec<(&str, Vec<&str>)> = Vec::new();
    let own = table.sets.iter().filter_map(|set| set.file.as_deref());
    let other = table.ood.iter().filter_map(|origin| origin.files.last());
    for file in own.chain(other.map(String::as_str)) {
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
        match folders.iter_mut().find(|(known, _)| *known == folder) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => folders.push((folder, vec![name])),
        }
    }
    let line = |(folder, names): (&str, Vec<&str>)| format!("{folder}: {}", names.join(", "));
    folders.into_iter().map(line).collect()
}
