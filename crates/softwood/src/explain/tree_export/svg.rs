//! A tree as a picture: the root at the left, a box for every node with the rule that leads to it,
//! its answer and its rows. Leaves stand below each other, so that texts lie flat and boxes never
//! meet, however large the tree is.

use std::fmt::Write as _;

use crate::explain::tree_export::letters::{escape, letters, shortened, width_of};
use crate::explain::tree_export::words::{likeliest, number, or_missing, rows, side};
use crate::explain::tree_export::{ExportNode, ExportSplit, LeafValue, TreeExport};

const FONTS: &str = "Inter, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif";
const MARGIN: f64 = 20.0;
/// Size of a box, and the room between it and the next ones.
const BOX: [f64; 2] = [260.0, 46.0];
const GAP: [f64; 2] = [44.0, 12.0];
/// Room at the sides of a box.
const PAD: f64 = 9.0;
/// Sizes of the letters: the tree's title, rules, answers.
const SIZES: [f64; 3] = [16.0, 12.0, 11.0];
/// Size by which the width of a rule's bold letters is counted.
const BOLD: f64 = 1.1 * SIZES[1];
/// Height of a line of the legend.
const LEGEND: f64 = 20.0;
/// Room for a class's colour in the legend.
const SQUARE: f64 = 16.0;
/// Width of the bar at the foot of a box.
const BAR: f64 = BOX[0] - 2.0 * PAD;

/// Colours of the classes, likeliest first; the rest share the last.
const COLOURS: [&str; 8] = [
    "#3b6fb6", "#e0803a", "#4a9d62", "#8c6bb1", "#c8a530", "#4fb3bf", "#b5566b", "#a3abb3",
];
const INK: &str = "#1f2933";
const PALE_INK: &str = "#5d6975";

/// Where a node's box stands.
#[derive(Debug, Clone, Copy)]
struct NodePlace {
    depth: usize,
    /// Middle of the box, counted in leaves from the top.
    height: f64,
}

pub(super) fn write(export: &TreeExport) -> String {
    let places = places(export);
    let depth = places.iter().flatten().map(|place| place.depth).max();
    let n_leaves = places
        .iter()
        .flatten()
        .fold(0.0_f64, |most, place| most.max(place.height + 1.0));
    let columns = depth.map_or(0, |depth| depth + 1) as f64;
    let width = 2.0 * MARGIN + columns.max(2.0) * (BOX[0] + GAP[0]) - GAP[0];
    let picture = Picture::new(export, width);
    let height = picture.top + n_leaves * (BOX[1] + GAP[1]) - GAP[1] + MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"{FONTS}\" role=\"img\">\n\
         <title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        escape(&format!("A tree that predicts {}", export.target))
    );
    out += &picture.head;
    for (at, node) in export.nodes.iter().enumerate() {
        picture.edges(&mut out, &places, at, node);
    }
    let mut rules = vec![None; export.nodes.len()];
    for (at, node) in export.nodes.iter().enumerate() {
        if let (Some(place), Some(split)) = (places[at], &node.split) {
            for right in [false, true] {
                if let Some(child) = reached(export, at, right)
                    && places[child].is_some_and(|child| child.depth == place.depth + 1)
                {
                    rules[child] = Some((split, right));
                }
            }
        }
        if let Some(place) = places[at] {
            picture.node(&mut out, place, node, rules[at]);
        }
    }
    out.push_str("</svg>\n");
    out
}

/// A child that stands after its parent, as it should.
fn reached(export: &TreeExport, at: usize, right: bool) -> Option<usize> {
    let split = export.nodes.get(at)?.split.as_ref()?;
    let child = split.children[usize::from(right)];
    (child > at && child < export.nodes.len()).then_some(child)
}

/// Leaves from top to bottom, left children first; a parent in the middle of its children. None for
/// what no path reaches.
fn places(export: &TreeExport) -> Vec<Option<NodePlace>> {
    let mut places = vec![None; export.nodes.len()];
    let mut next = 0.0;
    let mut open = if export.nodes.is_empty() {
        vec![]
    } else {
        vec![(0, 0)]
    };
    while let Some((at, depth)) = open.pop() {
        let children = [true, false].map(|right| reached(export, at, right));
        let mut height = f64::NAN;
        if children == [None, None] {
            height = next;
            next += 1.0;
        }
        places[at] = Some(NodePlace { depth, height });
        open.extend(
            children
                .into_iter()
                .flatten()
                .map(|child| (child, depth + 1)),
        );
    }
    for at in (0..export.nodes.len()).rev() {
        let children = [false, true].map(|right| reached(export, at, right));
        let heights: Vec<f64> = children
            .into_iter()
            .flatten()
            .filter_map(|child| places[child].map(|place| place.height))
            .collect();
        if let (Some(place), false) = (&mut places[at], heights.is_empty()) {
            place.height = heights.iter().sum::<f64>() / heights.len() as f64;
        }
    }
    places
}

/// What all boxes share.
struct Picture<'a> {
    export: &'a TreeExport,
    /// Title and legend.
    head: String,
    /// Top of the first box.
    top: f64,
    /// Least and greatest number on the bars (regression).
    range: [f64; 2],
    /// Colour of each class.
    colours: Vec<usize>,
}

impl<'a> Picture<'a> {
    fn new(export: &'a TreeExport, width: f64) -> Self {
        let mut picture = Self {
            export,
            head: String::new(),
            top: MARGIN + 1.25 * SIZES[0],
            range: range(&export.nodes),
            colours: colours(export),
        };
        let title = shortened(&export.target, width - 2.0 * MARGIN, SIZES[0]);
        let mut head = letters(
            [MARGIN, MARGIN + 13.0],
            SIZES[0],
            INK,
            " font-weight=\"600\"",
            &title,
        );
        let mut x = MARGIN;
        picture.top += LEGEND;
        for (colour, words) in picture.legend() {
            let words = shortened(&words, width - 2.0 * MARGIN - SQUARE, SIZES[2]);
            let needed = SQUARE + width_of(&words, SIZES[2]);
            if x > MARGIN && x + needed > width - MARGIN {
                x = MARGIN;
                picture.top += LEGEND;
            }
            head += &entry_of_legend([x, picture.top], colour, &words);
            x += needed + 12.0;
        }
        picture.top += 14.0;
        picture.head = head;
        picture
    }

    /// Entries of the legend: colour, if any, and words.
    fn legend(&self) -> Vec<(Option<usize>, String)> {
        if self.export.classes.is_none() {
            let [least, most] = self.range.map(|end| number(end, 4));
            let words = format!("mean ± sd of the training rows; bars from {least} to {most}");
            return vec![(None, words)];
        }
        let last = COLOURS.len() - 1;
        let of =
            |colour: usize| (0..self.colours.len()).filter(move |&at| self.colours[at] == colour);
        let entry = |colour: usize| match of(colour).count() {
            0 => None,
            1 => Some((
                Some(colour),
                self.export.class(of(colour).next()?).to_owned(),
            )),
            more => Some((Some(colour), format!("{more} more classes"))),
        };
        (0..=last).filter_map(entry).collect()
    }

    fn corner(&self, place: NodePlace) -> [f64; 2] {
        [
            MARGIN + place.depth as f64 * (BOX[0] + GAP[0]),
            self.top + place.height * (BOX[1] + GAP[1]),
        ]
    }

    /// Curves to the children, the wider the more rows go there.
    fn edges(&self, out: &mut String, places: &[Option<NodePlace>], at: usize, node: &ExportNode) {
        let Some(from) = places[at] else { return };
        let [x, y] = self.corner(from);
        let start = [x + BOX[0], y + 0.5 * BOX[1]];
        let whole = self.export.nodes[0].weight;
        for right in [false, true] {
            let Some(child) = reached(self.export, at, right) else {
                continue;
            };
            let Some(to) = places[child] else { continue };
            let [x, y] = self.corner(to);
            let end = [x, y + 0.5 * BOX[1]];
            let share = (self.export.nodes[child].weight / whole).clamp(0.0, 1.0);
            let middle = 0.5 * (start[0] + end[0]);
            let width = if node.weight > 0.0 {
                1.0 + 5.0 * share
            } else {
                1.0
            };
            let _ = writeln!(
                out,
                "<path d=\"M{:.1} {:.1}C{middle:.1} {:.1} {middle:.1} {:.1} {:.1} {:.1}\" fill=\"none\" \
                 stroke=\"#c3ccd5\" stroke-width=\"{width:.1}\"/>",
                start[0], start[1], start[1], end[1], end[0], end[1]
            );
        }
    }

    fn node(
        &self,
        out: &mut String,
        place: NodePlace,
        node: &ExportNode,
        rule: Option<(&ExportSplit, bool)>,
    ) {
        let [x, y] = self.corner(place);
        let (fill, edge) = match node.split {
            Some(_) => ("#ffffff", "#aeb8c2"),
            None => ("#f1f6f2", "#8fb39b"),
        };
        let words = rule.map_or_else(
            || "all rows".to_owned(),
            |(split, right)| split.column.clone() + &side(split, right, |text| text.len() < 400),
        );
        let answer = self.export.answer(&node.answer, 3);
        let count = rows(node.weight);
        let _ = writeln!(
            out,
            "<g>\n<title>{}</title>\n<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{}\" height=\"{}\" rx=\"5\" fill=\"{fill}\" \
             stroke=\"{edge}\"/>",
            escape(&format!("{words}: {answer}, {count}")),
            BOX[0],
            BOX[1]
        );
        let left = x + PAD;
        out.push_str(&rule_of([left, y + 17.0], rule));
        let room = BAR - width_of(&count, SIZES[2]) - 8.0;
        let answer = shortened(&self.export.answer(&node.answer, 1), room, SIZES[2]);
        out.push_str(&letters([left, y + 32.0], SIZES[2], PALE_INK, "", &answer));
        let end = [x + BOX[0] - PAD, y + 32.0];
        out.push_str(&letters(
            end,
            SIZES[2],
            PALE_INK,
            " text-anchor=\"end\"",
            &count,
        ));
        self.bar(out, [left, y + BOX[1] - 8.0], &node.answer);
        out.push_str("</g>\n");
    }

    /// The answer as a bar: where mean and sd lie, or the shares of the classes.
    fn bar(&self, out: &mut String, [x, y]: [f64; 2], answer: &LeafValue) {
        let mut rect = |x: f64, y: f64, width: f64, height: f64, colour: &str| {
            let _ = writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{colour}\"/>"
            );
        };
        match answer {
            LeafValue::Number { mean, sd } => {
                let [least, most] = self.range;
                // halves first, so that no difference leaves the range of numbers
                let span = 0.5 * most - 0.5 * least;
                let at = |value: f64| {
                    let share = (0.5 * value - 0.5 * least) / span;
                    BAR * if share.is_finite() {
                        share.clamp(0.0, 1.0)
                    } else {
                        0.5
                    }
                };
                rect(x, y + 1.5, BAR, 1.0, "#d8dee4");
                let (low, high) = (at(mean - sd), at(mean + sd));
                rect(x + low, y + 0.5, (high - low).max(0.5), 3.0, "#a9c3e3");
                rect(x + at(*mean) - 1.5, y - 1.0, 3.0, 6.0, COLOURS[0]);
            }
            LeafValue::Classes(shares) => {
                let total: f64 = shares.iter().sum();
                let mut shown = vec![0.0; COLOURS.len()];
                for (&colour, share) in self.colours.iter().zip(shares) {
                    shown[colour] += share / total;
                }
                let mut left = x;
                for (width, colour) in shown.iter().map(|share| share * BAR).zip(COLOURS) {
                    if width > 0.05 {
                        rect(left, y, width, 4.0, colour);
                        left += width;
                    }
                }
            }
        }
    }
}

/// The rule that leads to a node, in one line: the column gives way before the threshold does.
fn rule_of([x, y]: [f64; 2], rule: Option<(&ExportSplit, bool)>) -> String {
    let Some((split, right)) = rule else {
        return letters([x, y], SIZES[1], INK, " font-weight=\"600\"", "all rows");
    };
    let missing = or_missing(split, right);
    let room = BAR - width_of(missing, SIZES[2]);
    let room = room - width_of(&split.column, BOLD).min(0.4 * room);
    let side = side(split, right, |text| width_of(text, SIZES[1]) <= room);
    let side = shortened(&side, room, SIZES[1]);
    let room = BAR - width_of(missing, SIZES[2]) - width_of(&side, SIZES[1]);
    let column = shortened(&split.column, room, BOLD);
    let rest = format!(
        "<tspan font-weight=\"400\">{}<tspan font-size=\"{}\" fill=\"{PALE_INK}\">{missing}</tspan></tspan>",
        escape(&side.replace("<=", "≤")),
        SIZES[2]
    );
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{}\" fill=\"{INK}\" font-weight=\"600\" \
             xml:space=\"preserve\">{}{rest}</text>\n",
        SIZES[1],
        escape(&column)
    )
}

/// Least and greatest of what the nodes answer, one sd around.
fn range(nodes: &[ExportNode]) -> [f64; 2] {
    let ends = nodes.iter().filter_map(|node| match node.answer {
        LeafValue::Number { mean, sd } => Some([mean - sd, mean + sd]),
        LeafValue::Classes(_) => None,
    });
    ends.fold(
        [f64::INFINITY, f64::NEG_INFINITY],
        |[least, most], [low, high]| [least.min(low), most.max(high)],
    )
}

/// The colour of each class, by how likely it is at the root.
fn colours(export: &TreeExport) -> Vec<usize> {
    let n_classes = export.classes.as_ref().map_or(0, Vec::len);
    let mut colours = vec![COLOURS.len() - 1; n_classes];
    let Some(LeafValue::Classes(shares)) = export.nodes.first().map(|node| &node.answer) else {
        return colours;
    };
    // one class more needs no grouping
    let n_own = if n_classes == COLOURS.len() {
        n_classes
    } else {
        COLOURS.len() - 1
    };
    for (colour, class) in likeliest(shares).into_iter().take(n_own).enumerate() {
        if let Some(own) = colours.get_mut(class) {
            *own = colour;
        }
    }
    colours
}

fn entry_of_legend([x, y]: [f64; 2], colour: Option<usize>, words: &str) -> String {
    let Some(colour) = colour else {
        return letters([x, y], SIZES[2], PALE_INK, "", words);
    };
    let square = format!(
        "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{}\"/>\n",
        y - 9.0,
        COLOURS[colour]
    );
    square + &letters([x + SQUARE, y], SIZES[2], PALE_INK, "", words)
}
