//! Builds a categorical column cell by cell: each category name is stored once, each cell as the
//! code of its category.

use std::collections::BTreeMap;
use std::sync::Arc;

use softwood::Result;
use softwood::data::{MISSING, Values};

use crate::limits;

/// Category names seen so far and the codes of the cells.
#[derive(Debug, Default)]
pub(crate) struct CategoryBuilder {
    /// Code of each name, in order of first appearance.
    code_of: BTreeMap<Box<str>, u32>,
    codes: Vec<u32>,
}

impl CategoryBuilder {
    /// A column that starts with `n_rows` missing cells.
    pub(crate) fn with_missing(n_rows: usize) -> Self {
        Self {
            code_of: BTreeMap::new(),
            codes: vec![MISSING; n_rows],
        }
    }

    /// Appends a cell; `None` is a missing one.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub(crate) fn push(&mut self, name: Option<&str>) -> Result<()> {
        let code = name.map(|name| self.code(name));
        self.push_code(code)
    }

    /// Appends a cell by the code of its name; `None` is a missing one.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub(crate) fn push_code(&mut self, code: Option<u32>) -> Result<()> {
        limits::push(&mut self.codes, code.unwrap_or(MISSING))
    }

    /// The code of a name; a name seen for the first time gets the next free code.
    pub(crate) fn code(&mut self, name: &str) -> u32 {
        if let Some(&code) = self.code_of.get(name) {
            return code;
        }
        let code = self.code_of.len() as u32;
        self.code_of.insert(name.into(), code);
        code
    }

    /// The column, with its levels sorted by name and the codes renumbered to match.
    pub(crate) fn finish(self) -> Values {
        let mut rank = vec![0; self.code_of.len()];
        let mut levels = Vec::with_capacity(self.code_of.len());
        for (at, (name, code)) in self.code_of.into_iter().enumerate() {
            rank[code as usize] = at as u32;
            levels.push(name.into_string());
        }
        let sorted = |code: u32| rank.get(code as usize).copied().unwrap_or(MISSING);
        Values::Categorical {
            codes: self.codes.into_iter().map(sorted).collect(),
            levels: Arc::new(levels),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood::Column;

    #[test]
    fn builds_the_same_column_as_the_list_of_all_texts() {
        let texts = [None, Some("b"), Some("a"), None, Some("b"), Some("c")];
        let mut builder = CategoryBuilder::with_missing(1);
        for text in &texts[1..] {
            builder.push(*text).unwrap();
        }
        assert_eq!(builder.finish(), Column::categorical("x", &texts).values);
    }
}
