//! A boosted sum of trees, and the sub-models that it contains.
//!
//! After tree `t` the raw outputs are `F_t = q F_{t-1} + v_t`, `q` being the shrinkage of a Langevin chain (1 without). Values
//! are stored as they count at the end, `v_t q^(T - t)`, so `F_T` is a plain sum and `F_t = q^(t - T) (sum up to t)`.

use crate::trees::structure::TreeStructure;

/// A tree with its leaf values (leaves x outputs that it moves).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BoostedTree {
    pub(crate) structure: TreeStructure,
    pub(crate) values: Vec<f32>,
    /// Outputs that it moves, ascending; empty for all.
    pub(crate) outputs: Vec<u16>,
    /// What each condition gained.
    pub(crate) gains: Vec<f32>,
}

/// Start values and trees.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chain {
    /// Raw outputs before the first tree, as they count at the end.
    pub(crate) start: Vec<f64>,
    pub(crate) trees: Vec<BoostedTree>,
    /// Shrinkage per tree.
    pub(crate) shrinkage: f64,
}

impl Chain {
    pub(crate) fn new(start: Vec<f64>, shrinkage: f64) -> Self {
        Self {
            start,
            trees: Vec::new(),
            shrinkage,
        }
    }

    pub(crate) fn n_outputs(&self) -> usize {
        self.start.len()
    }

    /// Adds constants to the raw outputs of the whole.
    pub(crate) fn shift(&mut self, by: &[f64]) {
        for (start, by) in self.start.iter_mut().zip(by) {
            *start += by;
        }
    }

    /// Factor of the sum up to tree `t` that makes it the model after `t` trees.
    pub(crate) fn factor(&self, t: usize) -> f64 {
        self.shrinkage.powi(t as i32 - self.trees.len() as i32)
    }

    /// Turns values as they counted when their tree was added into values as they count at the end; of the first `settled` trees
    /// and the start as they counted after those.
    pub(crate) fn settle(&mut self, settled: usize) {
        let n = self.trees.len() as i32;
        let last = self.shrinkage.powi(n - settled as i32);
        for start in &mut self.start {
            *start *= last;
        }
        for (t, tree) in self.trees.iter_mut().enumerate() {
            let t = t.max(settled.saturating_sub(1));
            let factor = self.shrinkage.powi(n - 1 - t as i32) as f32;
            for value in &mut tree.values {
                *value *= factor;
            }
        }
    }
}
