//! Axes of a plot: conversion from data to pixels, ticks, grid and labels.

use std::ops::RangeInclusive;

use crate::plot::{Anchor, Colour, Scene, TextLabel};

const GRID: Colour = Colour::hex(0x00e9_ecf1);
const FRAME: Colour = Colour::hex(0x00b8_bfca);
const LABEL: Colour = Colour::hex(0x0055_5f6e);

/// Width of a digit of a tick label, in pixels.
const TICK_LETTER: f32 = 7.3;

/// A plotting area and its data ranges.
#[derive(Debug, Clone)]
pub(crate) struct Axes {
    /// Top left corner, in pixels.
    pub(crate) corner: [f32; 2],
    /// Width and height, in pixels.
    pub(crate) extent: [f32; 2],
    pub(crate) x: RangeInclusive<f64>,
    pub(crate) y: RangeInclusive<f64>,
}

impl Axes {
    /// The pixel of a data point; values outside the ranges are clipped to the edge.
    pub(crate) fn pixel(&self, x: f64, y: f64) -> [f32; 2] {
        let across = fraction(&self.x, x) as f32;
        let up = fraction(&self.y, y) as f32;
        [
            self.corner[0] + across * self.extent[0],
            self.corner[1] + (1.0 - up) * self.extent[1],
        ]
    }

    /// A curve as polylines, interrupted where it leaves the plotting area.
    pub(crate) fn curve(&self, xs: &[f64], ys: &[f64]) -> Vec<Vec<[f32; 2]>> {
        let mut pieces = vec![Vec::new()];
        for (&x, &y) in xs.iter().zip(ys) {
            if self.x.contains(&x) && self.y.contains(&y) {
                if let Some(piece) = pieces.last_mut() {
                    piece.push(self.pixel(x, y));
                }
            } else {
                pieces.push(Vec::new());
            }
        }
        pieces.retain(|piece| piece.len() > 1);
        pieces
    }

    /// The polygon between two curves, clipped to the plotting area.
    pub(crate) fn band(&self, xs: &[f64], lower: &[f64], upper: &[f64]) -> Vec<[f32; 2]> {
        let above = xs.iter().zip(upper).map(|(&x, &y)| self.pixel(x, y));
        let below = xs.iter().zip(lower).rev().map(|(&x, &y)| self.pixel(x, y));
        above.chain(below).collect()
    }

    /// Draws grid lines and tick labels; to be called before the data are drawn.
    pub(crate) fn draw_grid(&self, scene: &mut Scene) {
        self.draw_grid_at(scene, &ticks(&self.x));
    }

    /// As [`Axes::draw_grid`], with given values and labels on the x axis.
    pub(crate) fn draw_grid_at(&self, scene: &mut Scene, x_ticks: &[(f64, String)]) {
        let [left, top] = self.corner;
        let (right, bottom) = (left + self.extent[0], top + self.extent[1]);
        for (value, label) in x_ticks {
            let [x, _] = self.pixel(*value, *self.y.start());
            scene.line(vec![[x, top], [x, bottom]], GRID, 1.0);
            let text = TextLabel::new([x, bottom + 19.0], label, 13.0, LABEL);
            scene.text(text.anchored(Anchor::Middle));
        }
        for (value, label) in ticks(&self.y) {
            let [_, y] = self.pixel(*self.x.start(), value);
            scene.line(vec![[left, y], [right, y]], GRID, 1.0);
            let text = TextLabel::new([left - 9.0, y + 4.5], label, 13.0, LABEL);
            scene.text(text.anchored(Anchor::End));
        }
    }

    /// Draws axis lines and axis names; to be called after the data are drawn.
    pub(crate) fn draw_frame(&self, scene: &mut Scene, x_name: &str, y_name: &str) {
        let [left, top] = self.corner;
        let (right, bottom) = (left + self.extent[0], top + self.extent[1]);
        scene.line(
            vec![[left, top], [left, bottom], [right, bottom]],
            FRAME,
            1.2,
        );
        let x_text = TextLabel::new(
            [f32::midpoint(left, right), bottom + 42.0],
            x_name,
            14.0,
            LABEL,
        );
        scene.text(x_text.anchored(Anchor::Middle));
        let longest = ticks(&self.y).iter().map(|(_, label)| label.len()).max();
        let extra = TICK_LETTER * longest.unwrap_or(0).saturating_sub(3) as f32;
        let y_text = TextLabel::new(
            [left - 42.0 - extra, f32::midpoint(top, bottom)],
            y_name,
            14.0,
            LABEL,
        );
        scene.text(y_text.anchored(Anchor::Middle).upright());
    }
}

/// The position of a value in a range, as a fraction from 0 to 1.
fn fraction(range: &RangeInclusive<f64>, value: f64) -> f64 {
    ((value - range.start()) / (range.end() - range.start())).clamp(0.0, 1.0)
}

/// Between four and nine round tick values inside a range, with their labels.
fn ticks(range: &RangeInclusive<f64>) -> Vec<(f64, String)> {
    let length = range.end() - range.start();
    let power = 10f64.powf((length / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| length / step <= 8.0)
        .unwrap_or(10.0 * power);
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let (first, last) = (
        (range.start() / step).ceil() as i64,
        (range.end() / step).floor() as i64,
    );
    (first..=last)
        .map(|index| index as f64 * step)
        .map(|value| (value, format!("{:.decimals$}", value + 0.0)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes() -> Axes {
        Axes {
            corner: [10.0, 20.0],
            extent: [100.0, 50.0],
            x: 0.0..=10.0,
            y: -1.0..=1.0,
        }
    }

    #[test]
    fn corners_map_to_corners_and_points_outside_to_the_edge() {
        close(axes().pixel(0.0, 1.0), [10.0, 20.0]);
        close(axes().pixel(10.0, -1.0), [110.0, 70.0]);
        close(axes().pixel(99.0, 99.0), [110.0, 20.0]);
    }

    fn close(left: [f32; 2], right: [f32; 2]) {
        assert!(
            (left[0] - right[0]).abs() + (left[1] - right[1]).abs() < 1e-4,
            "{left:?} {right:?}"
        );
    }

    #[test]
    fn tick_values_are_round() {
        let labels = |range| {
            ticks(&range)
                .into_iter()
                .map(|(_, label)| label)
                .collect::<Vec<_>>()
        };
        assert_eq!(labels(0.0..=10.0), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(-0.13..=0.31), ["-0.1", "0.0", "0.1", "0.2", "0.3"]);
    }

    #[test]
    fn curves_are_interrupted_where_they_leave_the_area() {
        let pieces = axes().curve(&[0.0, 1.0, 2.0, 3.0, 4.0], &[0.0, 0.5, 5.0, 0.5, 0.0]);
        assert_eq!(pieces.len(), 2);
    }
}
