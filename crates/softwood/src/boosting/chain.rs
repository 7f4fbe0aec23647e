//! A boosted sum of trees, whose prefixes are models too.
//!
//! After tree `t` the raw outputs are `F_t = q F_{t-1} + v_t`, with the shrinkage `q` of a Langevin
//! chain (1 without noise). Leaf values are stored with their final factor, `v_t q^(T - t)`, so
//! that `F_T` is a plain sum and `F_t = q^(t - T) (sum up to t)`.

use crate::trees::structure::TreeStructure;

/// A tree with its leaf values (leaves x updated outputs).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BoostedTree {
    pub(crate) structure: TreeStructure,
    pub(crate) values: Vec<f32>,
    /// Outputs that the tree updates, ascending; empty for all.
    pub(crate) outputs: Vec<u16>,
    /// Gain of each condition.
    pub(crate) gains: Vec<f32>,
}

/// A constant and trees, whose sum is the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chain {
    /// Raw outputs before the first tree, with their final factor `q^T`.
    pub(crate) start: Vec<f64>,
    pub(crate) trees: Vec<BoostedTree>,
    /// Factor `q` that multiplies the raw outputs before each tree.
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

    /// Adds a constant to each raw output of the whole chain.
    pub(crate) fn shift(&mut self, by: &[f64]) {
        for (start, by) in self.start.iter_mut().zip(by) {
            *start += by;
        }
    }

    /// `q^(t - T)`: turns the sum of the first `t` trees into the model `F_t`.
    pub(crate) fn factor(&self, t: usize) -> f64 {
        self.shrinkage.powi(t as i32 - self.trees.len() as i32)
    }

    /// Keeps the first `t` trees: the model `F_t`.
    pub(crate) fn truncate(&mut self, t: usize) {
        let factor = self.factor(t);
        self.trees.truncate(t);
        for start in &mut self.start {
            *start *= factor;
        }
        for value in self.trees.iter_mut().flat_map(|tree| &mut tree.values) {
            *value *= factor as f32;
        }
    }

    /// Multiplies all values by their final factors, after training.
    ///
    /// The first `n_earlier` trees come from a fitted chain: they and the start already carry the
    /// factors of a chain of that length.
    pub(crate) fn apply_shrinkage(&mut self, n_earlier: usize) {
        let n = self.trees.len() as i32;
        let factor = self.shrinkage.powi(n - n_earlier as i32);
        for start in &mut self.start {
            *start *= factor;
        }
        for (t, tree) in self.trees.iter_mut().enumerate() {
            let t = t.max(n_earlier.saturating_sub(1));
            let factor = self.shrinkage.powi(n - 1 - t as i32) as f32;
            for value in &mut tree.values {
                *value *= factor;
            }
        }
    }
}
