//! Batches of rows for the training of a network: all rows, or random ones without replacement
//! within an epoch, and the noise of their decisions.

use crate::error::Result;
use crate::recurrent::objective::BatchRows;
use crate::recurrent::unroll::BLOCK;
use crate::reserve;
use crate::rng::{shuffle, uniform};

/// Encoded rows; their number is a multiple of [`BLOCK`], padding rows have weight 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouteInputs<'a> {
    /// Inputs x rows.
    pub(crate) scores: &'a [f32],
    pub(crate) weight: &'a [f32],
    /// Number of rows without padding.
    pub(crate) n_rows: usize,
}

/// The rows of one step.
#[derive(Debug)]
pub(crate) struct RouteBatches<'a> {
    all: RouteInputs<'a>,
    /// Order of the rows in this epoch; empty if a batch is all rows.
    order: Vec<u32>,
    next: usize,
    scores: Vec<f32>,
    weight: Vec<f32>,
    noise: Vec<f32>,
}

impl<'a> RouteBatches<'a> {
    /// Batches of at most `size` rows for a tree of this depth.
    ///
    /// # Errors
    /// When a batch does not fit into memory.
    pub(crate) fn new(all: RouteInputs<'a>, size: usize, depth: usize) -> Result<Self> {
        let n_padded = all.weight.len();
        let n_inputs = all.scores.len() / n_padded.max(1);
        if size >= all.n_rows {
            return Ok(Self {
                all,
                order: Vec::new(),
                next: 0,
                scores: Vec::new(),
                weight: Vec::new(),
                noise: reserve::zeros(n_padded, depth)?,
            });
        }
        let n_batch = size.next_multiple_of(BLOCK);
        Ok(Self {
            all,
            order: (0..all.n_rows as u32).collect(),
            next: all.n_rows,
            scores: reserve::zeros(n_inputs, n_batch)?,
            weight: vec![0.0; n_batch],
            noise: reserve::zeros(n_batch, depth)?,
        })
    }

    /// Draws the rows and the noise of the next step, and returns the rows; none if a batch is all
    /// rows.
    pub(crate) fn draw(&mut self, rng: &mut impl rand_core::Rng) -> &[u32] {
        for noise in &mut self.noise {
            *noise = uniform(rng) as f32 - 0.5;
        }
        if self.order.is_empty() {
            return &[];
        }
        let n_batch = self.weight.len();
        if self.next + n_batch > self.order.len() {
            shuffle(rng, &mut self.order);
            self.next = 0;
        }
        // the last rows of an epoch that do not fill a batch wait for the next shuffle
        let chosen = &self.order[self.next..(self.next + n_batch).min(self.order.len())];
        self.next += n_batch;
        let n_padded = self.all.weight.len();
        for (input, scores) in self.scores.chunks_exact_mut(n_batch).enumerate() {
            let from = &self.all.scores[input * n_padded..(input + 1) * n_padded];
            gather(from, chosen, scores);
        }
        self.weight.fill(0.0);
        gather(self.all.weight, chosen, &mut self.weight);
        chosen
    }

    /// The batch.
    pub(crate) fn rows(&self) -> BatchRows<'_, f32> {
        let is_whole = self.order.is_empty();
        BatchRows {
            inputs: if is_whole {
                self.all.scores
            } else {
                &self.scores
            },
            weight: if is_whole {
                self.all.weight
            } else {
                &self.weight
            },
            noise: &self.noise,
        }
    }
}

/// Copies the values of the chosen rows to the front of `out`.
pub(crate) fn gather(values: &[f32], chosen: &[u32], out: &mut [f32]) {
    for (out, &row) in out.iter_mut().zip(chosen) {
        *out = values[row as usize];
    }
}
