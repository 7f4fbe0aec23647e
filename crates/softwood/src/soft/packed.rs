//! Packed weights for prediction. A block has too few rows to repay the packing step of a general
//! matrix product, while the weights of a draw do not change between blocks: they are packed once.

use multiversion::multiversion;

use crate::numerics::real::{LANES, Lanes, both};
use crate::soft::layout::{Layout, TreeLayout};

/// Rows of weights in one tile: enough independent sums to hide the latency of an addition.
const TILE: usize = 8;

/// The weights of several draws. Each draw holds the rows of its matrix product in tiles
/// (`tile x input x row of the tile`, the last tile padded with zeros), then its constant leaves.
#[derive(Debug, Clone)]
pub(crate) struct PackedWeights<L = Layout> {
    layout: L,
    values: Vec<f32>,
}

impl<L: TreeLayout> PackedWeights<L> {
    /// Packs draws that are stored one after the other, `n_weights` values each.
    pub(crate) fn new(layout: L, draws: &[f32]) -> Self {
        let size = draw_size(&layout);
        let width = layout.width();
        let n_draws = draws.len() / layout.n_weights();
        let mut values = vec![0.0; n_draws * size];
        for (draw, packed) in draws
            .chunks_exact(layout.n_weights())
            .zip(values.chunks_exact_mut(size))
        {
            let (products, constants) = draw.split_at(layout.n_products() * width);
            for (at, &weight) in products.iter().enumerate() {
                packed[packed_index(width, at / width, at % width)] = weight;
            }
            packed[size - constants.len()..].copy_from_slice(constants);
        }
        Self { layout, values }
    }

    /// Layout of the tree.
    pub(crate) fn layout(&self) -> &L {
        &self.layout
    }

    pub(crate) fn n_draws(&self) -> usize {
        self.values.len() / draw_size(&self.layout)
    }

    /// Weight of an input in one row of the matrix product of a draw.
    pub(crate) fn weight(&self, draw: usize, product: usize, input: usize) -> f32 {
        let start = draw * draw_size(&self.layout);
        self.values[start + packed_index(self.layout.width(), product, input)]
    }

    /// Activations of one draw (`n_activations x n_rows`) from inputs made by [`transpose`].
    pub(crate) fn activate(&self, draw: usize, inputs: &[Lanes<f32>], out: &mut [f32]) {
        let size = draw_size(&self.layout);
        let (width, n_products) = (self.layout.width(), self.layout.n_products());
        let n_rows = inputs.len() / width * LANES;
        let n_tiled = n_products.next_multiple_of(TILE) * width;
        let (tiles, constants) = self.values[draw * size..(draw + 1) * size].split_at(n_tiled);
        let (products, constants_out) = out.split_at_mut(n_products * n_rows);
        multiply(tiles, inputs, width, products);
        for (row, constant) in constants_out.chunks_exact_mut(n_rows).zip(constants) {
            row.fill(*constant);
        }
    }
}

/// Length of a packed draw.
fn draw_size<L: TreeLayout>(layout: &L) -> usize {
    let n_products = layout.n_products();
    layout.n_weights() + (n_products.next_multiple_of(TILE) - n_products) * layout.width()
}

/// Index of a weight within a packed draw.
fn packed_index(width: usize, product: usize, input: usize) -> usize {
    (product / TILE * width + input) * TILE + product % TILE
}

/// Transposes inputs so that lanes are rows: one [`Lanes`] per input, chunk after chunk of rows.
/// `rows` is row-major with `width` values each; the last chunk is padded with zero rows.
pub(crate) fn transpose(rows: &[f32], width: usize) -> Vec<Lanes<f32>> {
    let n_chunks = (rows.len() / width).div_ceil(LANES);
    let mut out = vec![Lanes::of(0.0); n_chunks * width];
    for (row, values) in rows.chunks_exact(width).enumerate() {
        for (input, &value) in values.iter().enumerate() {
            out[row / LANES * width + input][row % LANES] = value;
        }
    }
    out
}

/// The matrix product of all tiles with all chunks of rows; `out` is products x rows.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn multiply(tiles: &[f32], inputs: &[Lanes<f32>], width: usize, out: &mut [f32]) {
    let n_rows = inputs.len() / width * LANES;
    for (tile, out) in tiles
        .chunks_exact(TILE * width)
        .zip(out.chunks_mut(TILE * n_rows))
    {
        for (chunk, inputs) in inputs.chunks_exact(width).enumerate() {
            let sums = tile_sums(tile, inputs);
            // the last tile may have fewer rows than sums
            for (row, sums) in out.chunks_exact_mut(n_rows).zip(&sums) {
                row[chunk * LANES..][..LANES].copy_from_slice(&sums[..]);
            }
        }
    }
}

/// The products of one tile with one chunk of rows. The sums are written out one by one: in a loop
/// over them the compiler vectorises over the sums instead of the rows.
#[inline(always)]
fn tile_sums(tile: &[f32], inputs: &[Lanes<f32>]) -> [Lanes<f32>; TILE] {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = [Lanes::of(0.0); TILE];
    for (values, weights) in inputs.iter().zip(tile.as_chunks::<TILE>().0) {
        let add =
            |sum: Lanes<f32>, weight: f32| both(*values, sum, |x, sum| weight.mul_add(x, sum));
        a = add(a, weights[0]);
        b = add(b, weights[1]);
        c = add(c, weights[2]);
        d = add(d, weights[3]);
        e = add(e, weights[4]);
        f = add(f, weights[5]);
        g = add(g, weights[6]);
        h = add(h, weights[7]);
    }
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn activations_agree_with_the_definition() {
        for is_linear in [false, true] {
            let layout = Layout {
                n_inputs: 4,
                depth: 3,
                mixing_levels: 1,
                n_channels: 3,
                is_linear,
            };
            let (width, n_weights, n_rows) = (layout.width(), layout.n_weights(), 2 * LANES);
            let draws: Vec<f32> = (0..2 * n_weights).map(|at| (at as f32).sin()).collect();
            let rows: Vec<f32> = (0..21 * width).map(|at| (at as f32).cos()).collect();
            let packed = PackedWeights::new(layout, &draws);
            assert_eq!(packed.n_draws(), 2);
            let mut out = vec![0.0; layout.n_activations() * n_rows];
            packed.activate(1, &transpose(&rows, width), &mut out);
            let weights = &draws[n_weights..];
            for activation in 0..layout.n_activations() {
                for (row, inputs) in rows.chunks_exact(width).enumerate() {
                    let expected = if activation < layout.n_products() {
                        let weights = &weights[activation * width..(activation + 1) * width];
                        let pairs = weights.iter().zip(inputs);
                        pairs.map(|(&w, &x)| f64::from(w) * f64::from(x)).sum()
                    } else {
                        f64::from(
                            weights[layout.n_products() * width + activation - layout.n_products()],
                        )
                    };
                    close(&[out[activation * n_rows + row].into()], &[expected], 1e-5);
                }
            }
            assert!((packed.weight(1, 6, 2) - weights[6 * width + 2]).abs() <= 0.0);
        }
    }
}
