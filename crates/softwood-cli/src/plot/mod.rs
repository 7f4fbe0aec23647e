//! Plots: a scene of simple shapes, written as SVG.

pub(crate) mod axes;
pub(crate) mod chart;
pub(crate) mod heat_map;
pub(crate) mod svg;

/// Red, green and blue, and the opacity from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Colour {
    pub(crate) rgb: [u8; 3],
    pub(crate) opacity: f32,
}

impl Colour {
    /// An opaque colour from `0xRRGGBB`.
    pub(crate) const fn hex(code: u32) -> Self {
        Self {
            rgb: [(code >> 16) as u8, (code >> 8) as u8, code as u8],
            opacity: 1.0,
        }
    }

    /// This colour with another opacity.
    #[must_use]
    pub(crate) const fn with_opacity(self, opacity: f32) -> Self {
        Self {
            rgb: self.rgb,
            opacity,
        }
    }
}

/// Alignment of a text relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A line of text; `at` is a point on its baseline.
#[derive(Debug, Clone)]
pub(crate) struct TextLabel {
    pub(crate) at: [f32; 2],
    pub(crate) content: String,
    /// Font size in pixels.
    pub(crate) size: f32,
    pub(crate) colour: Colour,
    pub(crate) anchor: Anchor,
    pub(crate) bold: bool,
    /// Whether the text is rotated to read upwards.
    pub(crate) upright: bool,
}

/// A shape; coordinates are pixels from the top left corner.
#[derive(Debug, Clone)]
pub(crate) enum SceneShape {
    Polygon {
        points: Vec<[f32; 2]>,
        fill: Colour,
    },
    /// Rectangles of one colour: left, top, width and height of each.
    Rectangles {
        rectangles: Vec<[f32; 4]>,
        fill: Colour,
    },
    Line {
        points: Vec<[f32; 2]>,
        colour: Colour,
        width: f32,
        /// Lengths of dash and gap; `None` for a solid line.
        dash: Option<[f32; 2]>,
    },
    Circle {
        centre: [f32; 2],
        radius: f32,
        fill: Colour,
    },
    TextLabel(TextLabel),
}

/// Shapes on a white background, drawn in order.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) width: f32,
    pub(crate) height: f32,
    pub(crate) shapes: Vec<SceneShape>,
}

impl Scene {
    pub(crate) fn new(width: f32, height: f32) -> Self {
        Self {
            width,
            height,
            shapes: Vec::new(),
        }
    }

    pub(crate) fn polygon(&mut self, points: Vec<[f32; 2]>, fill: Colour) {
        self.shapes.push(SceneShape::Polygon { points, fill });
    }

    pub(crate) fn rectangle(
        &mut self,
        [left, top]: [f32; 2],
        [width, height]: [f32; 2],
        fill: Colour,
    ) {
        let (right, bottom) = (left + width, top + height);
        self.polygon(
            vec![[left, top], [right, top], [right, bottom], [left, bottom]],
            fill,
        );
    }

    pub(crate) fn rectangles(&mut self, rectangles: Vec<[f32; 4]>, fill: Colour) {
        self.shapes
            .push(SceneShape::Rectangles { rectangles, fill });
    }

    pub(crate) fn line(&mut self, points: Vec<[f32; 2]>, colour: Colour, width: f32) {
        self.shapes.push(SceneShape::Line {
            points,
            colour,
            width,
            dash: None,
        });
    }

    pub(crate) fn dashed(&mut self, points: Vec<[f32; 2]>, colour: Colour, width: f32) {
        self.shapes.push(SceneShape::Line {
            points,
            colour,
            width,
            dash: Some([width * 3.5, width * 3.0]),
        });
    }

    pub(crate) fn circle(&mut self, centre: [f32; 2], radius: f32, fill: Colour) {
        self.shapes.push(SceneShape::Circle {
            centre,
            radius,
            fill,
        });
    }

    pub(crate) fn text(&mut self, text: TextLabel) {
        self.shapes.push(SceneShape::TextLabel(text));
    }
}

impl TextLabel {
    /// A regular text that starts at a point; the methods below change alignment and style.
    pub(crate) fn new(at: [f32; 2], content: impl Into<String>, size: f32, colour: Colour) -> Self {
        Self {
            at,
            content: content.into(),
            size,
            colour,
            anchor: Anchor::Start,
            bold: false,
            upright: false,
        }
    }

    #[must_use]
    pub(crate) fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    #[must_use]
    pub(crate) fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    #[must_use]
    pub(crate) fn upright(self) -> Self {
        Self {
            upright: true,
            ..self
        }
    }
}
