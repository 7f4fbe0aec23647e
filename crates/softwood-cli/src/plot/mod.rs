//! Drawing without a drawing library's fonts: a scene of simple shapes, and two ways to write it down.

pub(crate) mod axes;
mod font;
pub(crate) mod png;
pub(crate) mod svg;

/// Red, green, blue, and how opaque.
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

    /// The same colour, see-through.
    #[must_use]
    pub(crate) const fn with_opacity(self, opacity: f32) -> Self {
        Self {
            rgb: self.rgb,
            opacity,
        }
    }
}

/// Where a text stands relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A line of text; `at` lies on its baseline.
#[derive(Debug, Clone)]
pub(crate) struct TextLabel {
    pub(crate) at: [f32; 2],
    pub(crate) content: String,
    /// Height of the letters' square, in pixels.
    pub(crate) size: f32,
    pub(crate) colour: Colour,
    pub(crate) anchor: Anchor,
    pub(crate) bold: bool,
    /// Whether it reads upwards.
    pub(crate) upright: bool,
}

/// Something to draw, in pixels from the top left corner.
#[derive(Debug, Clone)]
pub(crate) enum SceneShape {
    Polygon {
        points: Vec<[f32; 2]>,
        fill: Colour,
    },
    Line {
        points: Vec<[f32; 2]>,
        colour: Colour,
        width: f32,
        /// Lengths of dash and gap; solid where `None`.
        dash: Option<[f32; 2]>,
    },
    Circle {
        centre: [f32; 2],
        radius: f32,
        fill: Colour,
    },
    TextLabel(TextLabel),
}

/// Shapes on a white page, drawn in order.
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
    /// A text that starts at a point, to be changed by the methods below.
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
