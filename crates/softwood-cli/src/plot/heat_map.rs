//! Heat maps: values on a grid as coloured cells.

use crate::plot::axes::Axes;
use crate::plot::{Colour, Scene};

/// Number of colours; neighbours of one colour are one rectangle.
const N_LEVELS: usize = 32;

/// Colours of low, middle and high values: they differ in lightness too.
const SCALE: [[f64; 3]; 3] = [
    [247.0, 249.0, 252.0],
    [109.0, 163.0, 211.0],
    [18.0, 52.0, 96.0],
];

/// Cells reach this many pixels over their right and lower neighbours, so that no seam is visible.
const OVERLAP: f32 = 0.4;

/// Draws `values` (row-major from the lowest `y`, `n_columns` per row) over the whole plotting area,
/// from the smallest value (light) to the largest (dark).
pub(crate) fn draw(scene: &mut Scene, axes: &Axes, values: &[f64], n_columns: usize) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let level = |value: &f64| {
        let share = (value - least) / (most - least).max(f64::MIN_POSITIVE);
        ((share * N_LEVELS as f64) as usize).min(N_LEVELS - 1)
    };
    let n_rows = values.len() / n_columns.max(1);
    let size = [
        axes.extent[0] / n_columns as f32,
        axes.extent[1] / n_rows as f32,
    ];
    let mut by_level = vec![Vec::new(); N_LEVELS];
    for (row, cells) in values.chunks_exact(n_columns).enumerate() {
        let top = axes.corner[1] + (n_rows - 1 - row) as f32 * size[1];
        let levels: Vec<usize> = cells.iter().map(level).collect();
        let mut first = 0;
        for run in levels.chunk_by(|a, b| a == b) {
            let left = axes.corner[0] + first as f32 * size[0];
            let width = run.len() as f32 * size[0] + OVERLAP;
            by_level[run[0]].push([left, top, width, size[1] + OVERLAP]);
            first += run.len();
        }
    }
    for (level, rectangles) in by_level.into_iter().enumerate() {
        if !rectangles.is_empty() {
            scene.rectangles(rectangles, colour(level));
        }
    }
}

/// The colour of a level.
fn colour(level: usize) -> Colour {
    let place = 2.0 * level as f64 / (N_LEVELS - 1) as f64;
    let lower = (place as usize).min(1);
    let share = place - lower as f64;
    let mix = |at: usize| SCALE[lower][at] + share * (SCALE[lower + 1][at] - SCALE[lower][at]);
    Colour {
        rgb: [0, 1, 2].map(|at| mix(at) as u8),
        opacity: 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::SceneShape;

    #[test]
    fn equal_neighbours_are_one_rectangle_and_rows_start_at_the_bottom() {
        let axes = Axes {
            corner: [0.0, 0.0],
            extent: [40.0, 20.0],
            x: 0.0..=1.0,
            y: 0.0..=1.0,
        };
        let mut scene = Scene::new(40.0, 20.0);
        draw(
            &mut scene,
            &axes,
            &[0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0],
            4,
        );
        let tops: Vec<(Vec<f32>, [u8; 3])> = scene
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                SceneShape::Rectangles { rectangles, fill } => {
                    Some((rectangles.iter().map(|one| one[1]).collect(), fill.rgb))
                }
                _ => None,
            })
            .collect();
        let (light, dark) = (colour(0).rgb, colour(N_LEVELS - 1).rgb);
        assert_eq!(tops, [(vec![10.0], light), (vec![10.0, 0.0], dark)]);
    }
}
