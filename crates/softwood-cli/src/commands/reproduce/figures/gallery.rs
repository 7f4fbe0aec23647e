//! The gallery of an output directory: the figures in it and the runs that drew them. It is kept as
//! JSON, so that a later run adds its figures, and written as Markdown.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use softwood::store::atomic::AtomicFile;
use softwood::{Error, Result};

use super::{FIGURES, Figure};
use crate::commands::path_checks::read_problem;
use crate::print;

/// File with the entries, and the page.
const ENTRIES: &str = "gallery.json";
const PAGE: &str = "gallery.md";

/// A figure of a gallery and the run that drew it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct GalleryEntry {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Day of the run, as `YYYY-MM-DD`.
    pub(crate) date: String,
    pub(crate) machine: String,
    pub(crate) seed: u64,
    pub(crate) quick: bool,
    /// Time of the drawing with all fits.
    pub(crate) seconds: f64,
}

/// Adds an entry to the gallery of a folder, in place of an earlier one of the same figure, and writes
/// its page; returns the path of the page.
pub(crate) fn update_gallery(folder: &Path, new: GalleryEntry) -> anyhow::Result<PathBuf> {
    let entries = merged(read(&folder.join(ENTRIES))?, new);
    let json = serde_json::to_string_pretty(&entries)? + "\n";
    AtomicFile::write(&folder.join(ENTRIES), json.as_bytes())?;
    let page = folder.join(PAGE);
    AtomicFile::write(&page, print::gallery::markdown(&entries).as_bytes())?;
    Ok(page)
}

/// The entries of an earlier run, if there are any.
fn read(path: &Path) -> Result<Vec<GalleryEntry>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).map_err(|error| Error::file(path, read_problem(&error)))?;
    serde_json::from_str(&text).map_err(|error| {
        let problem = format!("not the gallery of an earlier run ({error}); remove it");
        Error::file(path, problem)
    })
}

/// All entries in the order of the figures; figures that the program no longer draws are left out.
fn merged(mut entries: Vec<GalleryEntry>, new: GalleryEntry) -> Vec<GalleryEntry> {
    entries.insert(0, new);
    let of = |figure: &&Figure| {
        let mut all = entries.iter();
        all.find(|entry| entry.name == figure.name).cloned()
    };
    FIGURES.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, date: &str) -> GalleryEntry {
        GalleryEntry {
            name: name.to_owned(),
            version: "0".to_owned(),
            date: date.to_owned(),
            machine: "1 core".to_owned(),
            seed: 0,
            quick: true,
            seconds: 1.0,
        }
    }

    #[test]
    fn new_entries_replace_earlier_ones_and_stand_in_the_order_of_the_figures() {
        let earlier = vec![
            entry("rnn-tree-figure-3", "early"),
            entry("malinin-spiral", "early"),
            entry("no-figure", "early"),
        ];
        let expected = [
            entry("malinin-spiral", "late"),
            entry("rnn-tree-figure-3", "early"),
        ];
        assert_eq!(merged(earlier, entry("malinin-spiral", "late")), expected);
    }
}
