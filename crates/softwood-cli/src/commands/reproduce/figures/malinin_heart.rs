//! The heart of Malinin et al. 2021: a regression on two categorical columns, without rows for the
//! categories inside a heart, and maps of the uncertainty of `sglb`.

use std::ops::RangeInclusive;

use softwood::{Column, Dataset, Distribution, Key, Result, Table};

use super::toy_rows::{TARGET, dataset, normals};
use super::uncertainty_maps::{MapRow, UncertaintyMap};
use super::{Figure, FigureRun, spec};
use crate::plot::axes::Axes;
use crate::plot::chart::INK;
use crate::plot::{Colour, Scene};

pub(crate) const FIGURE: Figure = Figure {
    name: "malinin-heart",
    paper: "malinin",
    place: "figures 2 to 4",
    title: "uncertainty of an sglb ensemble around a heart without rows",
    caption: "Every cell is a pair of categories; those inside the heart have no rows. Data uncertainty finds the \
              cells with the larger noise, and knowledge uncertainty finds the heart.",
    reading: None,
    data: None,
    draw,
};

/// Categories of each column.
const SIDE: usize = 9;
/// Rows of cells from the top; `#` has no training rows.
const HEART: [&str; SIDE] = [
    ".........",
    ".........",
    "..#...#..",
    ".###.###.",
    "..#####..",
    "...###...",
    "....#....",
    ".........",
    ".........",
];
/// Standard deviations of the noise: variances 0.01 and 0.04.
const NOISES: [f64; 2] = [0.1, 0.2];

/// Random streams.
mod streams {
    pub(super) const MEANS: u64 = 1;
    pub(super) const NOISES: u64 = 2;
    pub(super) const ROWS: u64 = 3;
    pub(super) const FIT: u64 = 4;
}

const RANGE: RangeInclusive<f64> = 0.5..=9.5;
const LARGE_NOISE: Colour = Colour::hex(0x00d9_5f02);

/// The true distribution of the target in each cell, row by row from the lowest.
struct HeartCells {
    means: Vec<f64>,
    sds: Vec<f64>,
}

impl HeartCells {
    fn draw(run: &FigureRun<'_>) -> Self {
        let noise = |draw: f64| NOISES[usize::from(draw < 0.5)];
        let draws = run.key(streams::NOISES).uniforms(SIDE * SIDE);
        Self {
            means: run.key(streams::MEANS).uniforms(SIDE * SIDE),
            sds: draws.into_iter().map(noise).collect(),
        }
    }

    /// `n` rows for each cell outside the heart.
    fn rows(&self, n: usize, key: Key) -> Result<Dataset> {
        let cells = (0..SIDE * SIDE).filter(|&cell| !is_empty(cell));
        let rows: Vec<usize> = cells.flat_map(|cell| vec![cell; n]).collect();
        let noise = normals(key, rows.len());
        let ys = rows.iter().zip(noise);
        let ys = ys.map(|(&cell, noise)| self.means[cell] + self.sds[cell] * noise);
        dataset(
            columns(&rows)?,
            Column::numeric(TARGET, ys.collect()),
            false,
        )
    }
}

fn draw(figure: &Figure, run: &FigureRun<'_>) -> Result<Scene> {
    let cells = HeartCells::draw(run);
    let n_rows = run.choose(100, 1000);
    let data = cells.rows(n_rows, run.key(streams::ROWS))?;
    let params = [
        ("learning_rate", "0.3"),
        ("max_depth", "6"),
        ("n_members", run.choose("4", "10")),
        ("n_estimators", run.choose("200", "1000")),
    ];
    let model = run.fit(&spec("sglb", &params)?, &data, run.key(streams::FIT))?;
    let all: Vec<usize> = (0..SIDE * SIDE).collect();
    let parts = Distribution::new(model.as_ref(), &columns(&all)?, run.pool)?.uncertainty()?;
    let map = |title: &str, variances: Vec<f64>| UncertaintyMap {
        title: title.to_owned(),
        values: variances.into_iter().map(f64::sqrt).collect(),
    };
    let row = MapRow {
        title: figure.heading(),
        subtitle: vec![format!(
            "{n_rows} rows for each pair of categories outside the heart (outlined: no rows; orange dot: noise of 0.2 \
             instead of 0.1). Standard deviations."
        )],
        range: RANGE,
        n_cells: SIDE,
        names: [
            "category of the first column",
            "category of the second column",
        ],
        maps: vec![
            map("total uncertainty", parts.total),
            map("data uncertainty", parts.data),
            map("knowledge uncertainty", parts.knowledge),
        ],
    };
    Ok(row.scene(|scene, axes, _| outline(scene, axes, &cells)))
}

/// Marks the cells without rows and those with the larger noise.
fn outline(scene: &mut Scene, axes: &Axes, cells: &HeartCells) {
    for cell in 0..SIDE * SIDE {
        let centre = |at: usize| 1.0 + at as f64;
        let (x, y) = (centre(cell % SIDE), centre(cell / SIDE));
        if is_empty(cell) {
            let corners = [(-0.46, -0.46), (0.46, -0.46), (0.46, 0.46), (-0.46, 0.46)];
            let mut line: Vec<[f32; 2]> = corners
                .iter()
                .map(|(right, up)| axes.pixel(x + right, y + up))
                .collect();
            line.push(line[0]);
            scene.line(line, INK, 1.2);
        } else if cells.sds[cell] > NOISES[0] {
            scene.circle(axes.pixel(x, y), 2.6, LARGE_NOISE);
        }
    }
}

/// Whether a cell has no training rows.
fn is_empty(cell: usize) -> bool {
    let line = HEART[SIDE - 1 - cell / SIDE].as_bytes();
    line[cell % SIDE] == b'#'
}

/// The two categorical columns of some cells.
fn columns(cells: &[usize]) -> Result<Table> {
    let column = |name: &str, category: fn(usize) -> usize| {
        let texts: Vec<Option<String>> = cells
            .iter()
            .map(|&cell| Some(category(cell).to_string()))
            .collect();
        Column::categorical(name, &texts)
    };
    Table::new(vec![
        column("first", |cell| cell % SIDE),
        column("second", |cell| cell / SIDE),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heart_has_seventeen_cells() {
        let n_empty = (0..SIDE * SIDE).filter(|&cell| is_empty(cell)).count();
        assert_eq!(n_empty, 17);
        // symmetric, and its tip is below
        assert!((0..SIDE * SIDE).all(|cell| {
            let mirrored = cell - cell % SIDE + SIDE - 1 - cell % SIDE;
            is_empty(cell) == is_empty(mirrored)
        }));
        assert!(is_empty(2 * SIDE + 4) && !is_empty(6 * SIDE + 4));
    }
}
