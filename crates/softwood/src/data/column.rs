//! One named column of numbers or of categories, with missing cells.

use std::sync::Arc;

/// Code of a missing category.
pub const MISSING: u32 = u32::MAX;
/// Code of a category that is not in the schema.
pub const UNSEEN: u32 = u32::MAX - 1;

/// The cells of a column. The enum is exhaustive, so that everything that reads or writes tables has
/// to handle every kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Numbers; NaN is a missing cell.
    Numeric(Vec<f64>),
    /// Categories: `levels[code]`, or [`MISSING`], or [`UNSEEN`].
    Categorical {
        /// One code per row.
        codes: Vec<u32>,
        /// Names of the categories.
        levels: Arc<Vec<String>>,
    },
}

impl Values {
    /// Number of cells.
    pub fn len(&self) -> usize {
        match self {
            Self::Numeric(values) => values.len(),
            Self::Categorical { codes, .. } => codes.len(),
        }
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name, unique in its table.
    pub name: String,
    /// Cells.
    pub values: Values,
}

impl Column {
    /// A column of numbers; NaN is a missing cell.
    pub fn numeric(name: impl Into<String>, values: Vec<f64>) -> Self {
        Self {
            name: name.into(),
            values: Values::Numeric(values),
        }
    }

    /// A column of categories from texts; `None` is a missing cell. Categories are sorted by name.
    pub fn categorical<S: AsRef<str>>(name: impl Into<String>, texts: &[Option<S>]) -> Self {
        let mut levels: Vec<&str> = texts.iter().flatten().map(AsRef::as_ref).collect();
        levels.sort_unstable();
        levels.dedup();
        let code = |text: &S| {
            levels
                .binary_search(&text.as_ref())
                .map_or(MISSING, |level| level as u32)
        };
        let codes = texts
            .iter()
            .map(|text| text.as_ref().map_or(MISSING, code))
            .collect();
        let levels = Arc::new(levels.into_iter().map(str::to_owned).collect());
        Self {
            name: name.into(),
            values: Values::Categorical { codes, levels },
        }
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cells at `rows`, in that order.
    #[must_use]
    pub fn take(&self, rows: &[usize]) -> Self {
        let values = match &self.values {
            Values::Numeric(values) => {
                Values::Numeric(rows.iter().map(|&row| values[row]).collect())
            }
            Values::Categorical { codes, levels } => Values::Categorical {
                codes: rows.iter().map(|&row| codes[row]).collect(),
                levels: Arc::clone(levels),
            },
        };
        Self {
            name: self.name.clone(),
            values,
        }
    }
}
