//! The figures of the papers: one file each, with a [`Figure`] that says what it is and draws it. A
//! further figure is a file and its line in [`FIGURES`].

mod curves;
mod gallery;
mod irsoy_growth;
mod malinin_heart;
mod malinin_spiral;
mod malinin_virtual;
mod rnn_tree_depth;
mod rnn_tree_noise;
mod rnn_tree_parity;
mod rnn_tree_pulse;
mod sweep;
mod toy_rows;
mod uncertainty_maps;
mod vart_effects;
mod vart_leaves;
mod vst_bandit;
mod vst_gap;
mod vst_sweeps;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use softwood::observer::{Event, Observer};
use softwood::store::atomic::AtomicFile;
use softwood::{Dataset, Error, Family, Key, Model, ModelSpec, Pool, Result, Run};

use super::catalogue;
use super::data_files::{self, MissingFile};
use super::published::PublishedTable;
use crate::plot::{Scene, svg};
use crate::progress::Bar;

pub(crate) use gallery::{GalleryEntry, update_gallery};

/// The figures, in the order of the papers.
pub(crate) const FIGURES: &[&Figure] = &[
    &vst_gap::FIGURE,
    &vst_sweeps::RANK,
    &vst_sweeps::DEPTH,
    &vst_sweeps::TREES,
    &vst_bandit::FIGURE,
    &vst_sweeps::SHARPNESS,
    &malinin_heart::FIGURE,
    &malinin_spiral::FIGURE,
    &malinin_virtual::FIGURE,
    &irsoy_growth::FIGURE,
    &vart_effects::LITTLE_OVERLAP,
    &vart_effects::GOOD_OVERLAP,
    &vart_leaves::FIGURE,
    &rnn_tree_noise::FIGURE,
    &rnn_tree_pulse::FIGURE,
    &rnn_tree_depth::FIGURE,
    &rnn_tree_parity::FIGURE,
];

/// A figure of a paper.
pub(crate) struct Figure {
    /// Name on the command line and of the file.
    pub(crate) name: &'static str,
    /// Name of the paper.
    pub(crate) paper: &'static str,
    /// Place in the paper, such as `figure 3`.
    pub(crate) place: &'static str,
    /// What it shows, in a few words that begin with a small letter.
    pub(crate) title: &'static str,
    /// What there is to see, in one or two sentences.
    pub(crate) caption: &'static str,
    /// How we read the paper where it does not say, or we do not know, what its figure shows.
    pub(crate) reading: Option<&'static str>,
    /// The data that it is drawn from; `None` for figures of simulated rows.
    pub(crate) data: Option<FigureData>,
    pub(crate) draw: fn(&Figure, &FigureRun<'_>) -> Result<Scene>,
}

/// Sets of a published table that a figure needs.
pub(crate) struct FigureData {
    pub(crate) table: &'static str,
    pub(crate) sets: &'static [&'static str],
}

impl FigureData {
    /// The table with these sets only.
    pub(crate) fn table(&self) -> PublishedTable {
        let mut tables = catalogue::tables().into_iter();
        let mut table = tables
            .find(|table| table.name == self.table)
            .expect("a test looks for the tables of all figures");
        table.sets.retain(|set| self.sets.contains(&&*set.name));
        table
    }
}

impl Figure {
    /// The figure of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        FIGURES.iter().copied().find(|figure| figure.name == name)
    }

    /// The title with a capital letter.
    pub(crate) fn heading(&self) -> String {
        let mut letters = self.title.chars();
        let first: String = letters
            .next()
            .into_iter()
            .flat_map(char::to_uppercase)
            .collect();
        first + letters.as_str()
    }

    /// The first file that is missing, if any.
    pub(crate) fn missing(&self, data: Option<&Path>) -> Option<MissingFile> {
        let table = self.data.as_ref()?.table();
        let folder = data.unwrap_or(Path::new(""));
        let mut sets = table.sets.iter();
        let of_sets = sets.find_map(|set| data_files::missing(folder, set));
        let other = || {
            let files = &table.ood.as_ref()?.files;
            let is_there = |name: &String| data_files::find(folder, name).is_some();
            (!files.iter().any(is_there)).then(|| MissingFile {
                set: "out-of-domain rows".to_owned(),
                file: files.join(" or "),
                source: None,
            })
        };
        of_sets.or_else(other)
    }
}

/// What the figures of a run share.
#[derive(Clone, Copy)]
pub(crate) struct FigureRun<'a> {
    /// Data directory; empty if there is none.
    pub(crate) data: &'a Path,
    pub(crate) seed: u64,
    pub(crate) is_quick: bool,
    pub(crate) pool: &'a Pool,
    pub(crate) observer: &'a dyn Observer,
}

impl FigureRun<'_> {
    /// The key of a random stream.
    pub(crate) fn key(&self, stream: u64) -> Key {
        Key::from_seed(self.seed).child(stream)
    }

    /// The value for a quick run, or the other one.
    pub(crate) fn choose<T>(&self, quick: T, full: T) -> T {
        if self.is_quick { quick } else { full }
    }

    /// Fits a model.
    pub(crate) fn fit(&self, spec: &ModelSpec, data: &Dataset, key: Key) -> Result<Box<dyn Model>> {
        let run = Run::new(key, self.pool).observer(self.observer);
        spec.fit_with(data, &run)
    }

    /// Does `n` independent pieces of work side by side, with one thread each; results in order.
    pub(crate) fn each<T: Send>(
        &self,
        n: usize,
        work: impl Fn(&FigureRun<'_>, usize) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let bar = Bar::start_many(false, n);
        let single_thread = Pool::new(1)?;
        let n_done = AtomicUsize::new(0);
        let results = self.pool.map(n, |at| {
            let own = FigureRun {
                pool: &single_thread,
                observer: &bar,
                ..*self
            };
            let result = work(&own, at);
            let done = n_done.fetch_add(1, Ordering::Relaxed) + 1;
            match bar.on_event(&Event::new("folds", done, n)) {
                ControlFlow::Break(_) => Err(Error::Cancelled),
                ControlFlow::Continue(()) => result,
            }
        });
        let results = results.into_iter().collect::<Result<Vec<T>>>()?;
        bar.finish()?;
        Ok(results)
    }
}

/// A family with these parameters.
pub(crate) fn spec(family: &str, params: &[(&str, &str)]) -> Result<ModelSpec> {
    let pairs: Vec<(String, String)> = params
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    Family::from_name(family)?.params(&pairs)
}

/// Draws a figure into a folder; returns its file and the time that it took, in seconds.
pub(crate) fn write(
    figure: &Figure,
    run: &FigureRun<'_>,
    folder: &Path,
) -> anyhow::Result<(PathBuf, f64)> {
    let start = Instant::now();
    let scene = (figure.draw)(figure, run)?;
    fs::create_dir_all(folder)?;
    let file = folder.join(format!("{}.svg", figure.name));
    AtomicFile::write(&file, svg::write(&scene, &figure.heading()).as_bytes())?;
    Ok((file, start.elapsed().as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_names_of_their_own_and_belong_to_papers_and_sets_that_exist() {
        let papers = catalogue::papers().papers;
        for (at, figure) in FIGURES.iter().enumerate() {
            let name = figure.name;
            assert!(!catalogue::NAMES.contains(&name), "{name}");
            let is_first = FIGURES[..at].iter().all(|other| other.name != name);
            assert!(is_first, "{name}");
            assert!(
                papers.iter().any(|paper| paper.name == figure.paper),
                "{name}"
            );
            if let Some(data) = &figure.data {
                assert_eq!(data.table().sets.len(), data.sets.len(), "{name}");
            }
        }
    }
}
