//! SVG picture of a tree: the root at the left, a box for every node with the rule that leads to
//! it, its value and its number of rows. Leaves are stacked vertically, so that text is horizontal
//! and boxes do not overlap in trees of any size.

use std::fmt::Write as _;

use crate::explain::tree_export::format::{
    by_probability, number, or_missing, rows, side, subject,
};
use crate::explain::tree_export::svg_layout::{NodePosition, child_of, positions};
use crate::explain::tree_export::svg_text::{
    SvgPoint, escape, text_element, text_width, truncated,
};
use crate::explain::tree_export::{ExportNode, ExportSplit, LeafValue, TreeExport};

const FONTS: &str = "Inter, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif";
const MARGIN: f64 = 20.0;
const BOX_WIDTH: f64 = 260.0;
const BOX_HEIGHT: f64 = 46.0;
/// Horizontal and vertical gaps between neighbouring boxes.
const COLUMN_GAP: f64 = 44.0;
const ROW_GAP: f64 = 12.0;
/// Padding inside a box.
const PADDING: f64 = 9.0;
/// Font sizes.
const TITLE_SIZE: f64 = 16.0;
const RULE_SIZE: f64 = 12.0;
const VALUE_SIZE: f64 = 11.0;
/// Font size for the width of the bold text of a rule.
const BOLD_SIZE: f64 = 1.1 * RULE_SIZE;
/// Line height of the legend.
const LEGEND_LINE: f64 = 20.0;
/// Width of a colour square in the legend with its gap.
const SQUARE: f64 = 16.0;
/// Width of the bar at the bottom of a box.
const BAR: f64 = BOX_WIDTH - 2.0 * PADDING;

/// Colours of the classes by decreasing probability; the remaining classes share the last one.
const COLOURS: [&str; 8] = [
    "#3b6fb6", "#e0803a", "#4a9d62", "#8c6bb1", "#c8a530", "#4fb3bf", "#b5566b", "#a3abb3",
];
const INK: &str = "#1f2933";
const SECONDARY_INK: &str = "#5d6975";

/// The branch that leads to a node: one side of a split.
#[derive(Debug, Clone, Copy)]
struct ExportBranch<'a> {
    split: &'a ExportSplit,
    right: bool,
}

pub(super) fn write(export: &TreeExport) -> String {
    let positions = positions(export);
    let depth = (positions.iter().flatten()).map(|position| position.depth);
    let n_leaves = positions
        .iter()
        .flatten()
        .fold(0.0_f64, |max, position| max.max(position.height + 1.0));
    let columns = depth.max().map_or(0, |depth| depth + 1) as f64;
    let width = 2.0 * MARGIN + columns.max(2.0) * (BOX_WIDTH + COLUMN_GAP) - COLUMN_GAP;
    let picture = Picture::new(export, width);
    let height = picture.top + n_leaves * (BOX_HEIGHT + ROW_GAP) - ROW_GAP + MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"{FONTS}\" role=\"img\">\n\
         <title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        escape(&format!("A tree that predicts {}", export.target))
    );
    out += &picture.head;
    for node in 0..export.nodes.len() {
        picture.edges(&mut out, &positions, node);
    }
    let branches = branches(export, &positions);
    for ((node, position), branch) in export.nodes.iter().zip(positions).zip(branches) {
        if let Some(position) = position {
            picture.node(&mut out, position, node, branch);
        }
    }
    out.push_str("</svg>\n");
    out
}

/// The branch that leads to each node; `None` for the root.
fn branches<'a>(
    export: &'a TreeExport,
    positions: &[Option<NodePosition>],
) -> Vec<Option<ExportBranch<'a>>> {
    let mut branches = vec![None; export.nodes.len()];
    for (index, node) in export.nodes.iter().enumerate() {
        let (Some(position), Some(split)) = (positions[index], &node.split) else {
            continue;
        };
        for right in [false, true] {
            if let Some(child) = child_of(export, index, right)
                && positions[child].is_some_and(|child| child.depth == position.depth + 1)
            {
                branches[child] = Some(ExportBranch { split, right });
            }
        }
    }
    branches
}

/// Settings that all boxes share.
struct Picture<'a> {
    export: &'a TreeExport,
    /// Title and legend.
    head: String,
    /// Top of the first box.
    top: f64,
    /// Smallest and largest number on the bars (regression).
    range: [f64; 2],
    /// Colour index of each class.
    colours: Vec<usize>,
}

impl<'a> Picture<'a> {
    fn new(export: &'a TreeExport, width: f64) -> Self {
        let mut picture = Self {
            export,
            head: String::new(),
            top: MARGIN + 1.25 * TITLE_SIZE,
            range: range(&export.nodes),
            colours: colours(export),
        };
        let title = truncated(&export.target, width - 2.0 * MARGIN, TITLE_SIZE);
        let mut head = text_element(
            SvgPoint {
                x: MARGIN,
                y: MARGIN + 13.0,
            },
            TITLE_SIZE,
            INK,
            " font-weight=\"600\"",
            &title,
        );
        let mut x = MARGIN;
        picture.top += LEGEND_LINE;
        for (colour, label) in picture.legend() {
            let label = truncated(&label, width - 2.0 * MARGIN - SQUARE, VALUE_SIZE);
            let needed = SQUARE + text_width(&label, VALUE_SIZE);
            if x > MARGIN && x + needed > width - MARGIN {
                x = MARGIN;
                picture.top += LEGEND_LINE;
            }
            let position = SvgPoint { x, y: picture.top };
            head += &legend_entry(position, colour, &label);
            x += needed + 12.0;
        }
        picture.top += 14.0;
        picture.head = head;
        picture
    }

    /// Entries of the legend: colour index, if any, and text.
    fn legend(&self) -> Vec<(Option<usize>, String)> {
        if self.export.classes.is_none() {
            let [low, high] = self.range.map(|end| number(end, 4));
            let label = format!("mean ± sd of the training rows; bars from {low} to {high}");
            return vec![(None, label)];
        }
        let classes_of =
            |colour: usize| (0..self.colours.len()).filter(move |&at| self.colours[at] == colour);
        let entry = |colour: usize| match classes_of(colour).count() {
            0 => None,
            1 => {
                let class = classes_of(colour).next()?;
                Some((Some(colour), self.export.class_name(class).to_owned()))
            }
            n_classes => Some((Some(colour), format!("{n_classes} more classes"))),
        };
        (0..COLOURS.len()).filter_map(entry).collect()
    }

    /// Top left corner of the box of a node.
    fn corner(&self, position: NodePosition) -> SvgPoint {
        SvgPoint {
            x: MARGIN + position.depth as f64 * (BOX_WIDTH + COLUMN_GAP),
            y: self.top + position.height * (BOX_HEIGHT + ROW_GAP),
        }
    }

    /// Draws curves to the children of a node; the width grows with the share of rows.
    fn edges(&self, out: &mut String, positions: &[Option<NodePosition>], node: usize) {
        let Some(position) = positions[node] else {
            return;
        };
        let corner = self.corner(position);
        let (start_x, start_y) = (corner.x + BOX_WIDTH, corner.y + 0.5 * BOX_HEIGHT);
        let nodes = &self.export.nodes;
        for right in [false, true] {
            let child = child_of(self.export, node, right);
            let Some((child, position)) = child.and_then(|child| Some((child, positions[child]?)))
            else {
                continue;
            };
            let corner = self.corner(position);
            let (end_x, end_y) = (corner.x, corner.y + 0.5 * BOX_HEIGHT);
            let share = (nodes[child].weight / nodes[0].weight).clamp(0.0, 1.0);
            let middle = 0.5 * (start_x + end_x);
            let width = if nodes[node].weight > 0.0 {
                1.0 + 5.0 * share
            } else {
                1.0
            };
            let _ = writeln!(
                out,
                "<path d=\"M{start_x:.1} {start_y:.1}C{middle:.1} {start_y:.1} {middle:.1} {end_y:.1} \
                 {end_x:.1} {end_y:.1}\" fill=\"none\" stroke=\"#c3ccd5\" stroke-width=\"{width:.1}\"/>"
            );
        }
    }

    /// Draws the box of a node.
    fn node(
        &self,
        out: &mut String,
        position: NodePosition,
        node: &ExportNode,
        branch: Option<ExportBranch<'_>>,
    ) {
        let SvgPoint { x, y } = self.corner(position);
        let (fill, edge) = match node.split {
            Some(_) => ("#ffffff", "#aeb8c2"),
            None => ("#f1f6f2", "#8fb39b"),
        };
        let rule = branch.map_or_else(
            || "all rows".to_owned(),
            |ExportBranch { split, right }| {
                format!(
                    "{}{}",
                    subject(split),
                    side(split, right, |text| text.len() < 400)
                )
            },
        );
        let value = self.export.value_text(&node.answer, 3);
        let count = rows(node.weight);
        let _ = writeln!(
            out,
            "<g>\n<title>{}</title>\n<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{BOX_WIDTH}\" \
             height=\"{BOX_HEIGHT}\" rx=\"5\" fill=\"{fill}\" stroke=\"{edge}\"/>",
            escape(&format!("{rule}: {value}, {count}")),
        );
        let left = x + PADDING;
        let line = |y: f64| SvgPoint { x: left, y };
        out.push_str(&rule_element(line(y + 17.0), branch));
        let max_width = BAR - text_width(&count, VALUE_SIZE) - 8.0;
        let value = self.export.value_text(&node.answer, 1);
        let value = truncated(&value, max_width, VALUE_SIZE);
        let value = text_element(line(y + 32.0), VALUE_SIZE, SECONDARY_INK, "", &value);
        out.push_str(&value);
        let end = SvgPoint {
            x: x + BOX_WIDTH - PADDING,
            y: y + 32.0,
        };
        let anchor = " text-anchor=\"end\"";
        let count = text_element(end, VALUE_SIZE, SECONDARY_INK, anchor, &count);
        out.push_str(&count);
        self.bar(out, line(y + BOX_HEIGHT - 8.0), &node.answer);
        out.push_str("</g>\n");
    }

    /// Draws the value as a bar: mean and sd, or the class probabilities.
    fn bar(&self, out: &mut String, position: SvgPoint, value: &LeafValue) {
        let SvgPoint { x, y } = position;
        let mut rect = |x: f64, y: f64, width: f64, height: f64, colour: &str| {
            let _ = writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{colour}\"/>"
            );
        };
        if let Some([mean, sd]) = interval(value) {
            let [min, max] = self.range;
            // halved before subtraction, so that no difference overflows
            let half_range = 0.5 * max - 0.5 * min;
            let offset = |value: f64| {
                let share = (0.5 * value - 0.5 * min) / half_range;
                BAR * if share.is_finite() {
                    share.clamp(0.0, 1.0)
                } else {
                    0.5
                }
            };
            rect(x, y + 1.5, BAR, 1.0, "#d8dee4");
            let (low, high) = (offset(mean - sd), offset(mean + sd));
            rect(x + low, y + 0.5, (high - low).max(0.5), 3.0, "#a9c3e3");
            rect(x + offset(mean) - 1.5, y - 1.0, 3.0, 6.0, COLOURS[0]);
        }
        if let LeafValue::Classes(probabilities) = value {
            let total: f64 = probabilities.iter().sum();
            let mut shares = vec![0.0; COLOURS.len()];
            for (&colour, probability) in self.colours.iter().zip(probabilities) {
                shares[colour] += probability / total;
            }
            let mut left = x;
            for (width, colour) in shares.iter().map(|share| share * BAR).zip(COLOURS) {
                if width > 0.05 {
                    rect(left, y, width, 4.0, colour);
                    left += width;
                }
            }
        }
    }
}

/// Mean and standard deviation of a number; the mean of a noise is zero.
fn interval(value: &LeafValue) -> Option<[f64; 2]> {
    match value {
        LeafValue::Number { mean, sd } => Some([*mean, *sd]),
        LeafValue::Noise { sd } => Some([0.0, *sd]),
        LeafValue::Classes(_) => None,
    }
}

/// The rule that leads to a node in one line; its subject is truncated before the threshold.
fn rule_element(position: SvgPoint, branch: Option<ExportBranch<'_>>) -> String {
    let Some(ExportBranch { split, right }) = branch else {
        let weight = " font-weight=\"600\"";
        return text_element(position, RULE_SIZE, INK, weight, "all rows");
    };
    let missing = or_missing(split, right);
    let line_width = BAR - text_width(missing, VALUE_SIZE);
    let subject = subject(split);
    let max_width = line_width - text_width(&subject, BOLD_SIZE).min(0.4 * line_width);
    let side = side(split, right, |text| {
        text_width(text, RULE_SIZE) <= max_width
    });
    let side = truncated(&side, max_width, RULE_SIZE);
    let max_width = BAR - text_width(missing, VALUE_SIZE) - text_width(&side, RULE_SIZE);
    let subject = truncated(&subject, max_width, BOLD_SIZE);
    let condition = format!(
        "<tspan font-weight=\"400\">{}<tspan font-size=\"{}\" fill=\"{SECONDARY_INK}\">{missing}</tspan></tspan>",
        escape(&side.replace("<=", "≤")),
        VALUE_SIZE
    );
    let SvgPoint { x, y } = position;
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{}\" fill=\"{INK}\" font-weight=\"600\" \
             xml:space=\"preserve\">{}{condition}</text>\n",
        RULE_SIZE,
        escape(&subject)
    )
}

/// Smallest and largest of mean ± sd over all nodes.
fn range(nodes: &[ExportNode]) -> [f64; 2] {
    let ends = nodes.iter().filter_map(|node| {
        let [mean, sd] = interval(&node.answer)?;
        Some([mean - sd, mean + sd])
    });
    ends.fold(
        [f64::INFINITY, f64::NEG_INFINITY],
        |[min, max], [low, high]| [min.min(low), max.max(high)],
    )
}

/// Colour index of each class, by decreasing probability at the root.
fn colours(export: &TreeExport) -> Vec<usize> {
    let n_classes = export.classes.as_ref().map_or(0, Vec::len);
    let mut colours = vec![COLOURS.len() - 1; n_classes];
    let Some(LeafValue::Classes(shares)) = export.nodes.first().map(|node| &node.answer) else {
        return colours;
    };
    // with as many classes as colours, no classes need to share one
    let n_own = if n_classes == COLOURS.len() {
        n_classes
    } else {
        COLOURS.len() - 1
    };
    for (colour, class) in by_probability(shares).into_iter().take(n_own).enumerate() {
        if let Some(own) = colours.get_mut(class) {
            *own = colour;
        }
    }
    colours
}

fn legend_entry(position: SvgPoint, colour: Option<usize>, label: &str) -> String {
    let Some(colour) = colour else {
        return text_element(position, VALUE_SIZE, SECONDARY_INK, "", label);
    };
    let SvgPoint { x, y } = position;
    let square = format!(
        "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{}\"/>\n",
        y - 9.0,
        COLOURS[colour]
    );
    let position = SvgPoint { x: x + SQUARE, y };
    square + &text_element(position, VALUE_SIZE, SECONDARY_INK, "", label)
}
