//! Categories gathered cell by cell: each name is kept once, each cell as a code.

use std::collections::BTreeMap;
use std::sync::Arc;

use softwood::{MISSING, Values};

/// Names met so far and the codes of the cells.
#[derive(Debug, Default)]
pub(crate) struct Levels {
    known: BTreeMap<Box<str>, u32>,
    codes: Vec<u32>,
}

impl Levels {
    /// Begins with cells that are missing.
    pub(crate) fn after_missing(n_rows: usize) -> Self {
        Self {
            known: BTreeMap::new(),
            codes: vec![MISSING; n_rows],
        }
    }

    /// Adds a cell.
    pub(crate) fn push(&mut self, name: Option<&str>) {
        let code = name.map_or(MISSING, |name| self.code(name));
        self.codes.push(code);
    }

    /// The code of a name, a new one where it has not been met.
    fn code(&mut self, name: &str) -> u32 {
        if let Some(&code) = self.known.get(name) {
            return code;
        }
        let code = self.known.len() as u32;
        self.known.insert(name.into(), code);
        code
    }

    /// The cells, with levels sorted by name.
    pub(crate) fn finish(self) -> Values {
        let mut rank = vec![0; self.known.len()];
        let mut levels = Vec::with_capacity(self.known.len());
        for (at, (name, code)) in self.known.into_iter().enumerate() {
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
    fn gathers_what_the_column_of_all_texts_would_hold() {
        let texts = [None, Some("b"), Some("a"), None, Some("b"), Some("c")];
        let mut levels = Levels::after_missing(1);
        for text in &texts[1..] {
            levels.push(*text);
        }
        assert_eq!(levels.finish(), Column::categorical("x", &texts).values);
    }
}
