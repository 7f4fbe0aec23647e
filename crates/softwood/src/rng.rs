//! Random streams. A `Key` is an address, not a state: one seed is the root of a tree of streams,
//! and the same address always gives the same numbers.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Address of a random stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Key(u64);

impl Key {
    /// The root of the streams of one seed.
    pub fn from_seed(seed: u64) -> Self {
        Self(mix(seed ^ 0x5057_4f4f_4457_4f4f))
    }

    /// The child stream with this label.
    #[must_use]
    pub fn child(self, label: u64) -> Self {
        Self(mix(self.0 ^ mix(label.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    /// `n` uniform draws from [0, 1).
    pub fn uniforms(self, n: usize) -> Vec<f64> {
        let mut rng = self.rng();
        (0..n).map(|_| uniform(&mut rng)).collect()
    }

    /// The address as a number, for counter-based hashing without a generator.
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    /// The generator of this stream.
    pub(crate) fn rng(self) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(self.0)
    }
}

/// The finaliser of `SplitMix64`: a bijection whose output bits each depend on all input bits.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A uniform draw from [0, 1) with 53 bits.
pub(crate) fn uniform(rng: &mut impl rand_core::Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A uniform draw from `0..n`; the bias is below 2^-32 for any table that fits in memory.
pub(crate) fn below(rng: &mut impl rand_core::Rng, n: usize) -> usize {
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

/// Shuffles in place (Fisher and Yates).
pub(crate) fn shuffle<T>(rng: &mut impl rand_core::Rng, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(rng, last + 1));
    }
}

/// A random permutation of `0..n` without fixed points (Sattolo's algorithm). For `n = 1` there is
/// none: it returns the identity.
pub(crate) fn cycle(rng: &mut impl rand_core::Rng, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        order.swap(last, below(rng, last));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::Rng;

    #[test]
    fn first_numbers_are_pinned() {
        let key = Key::from_seed(0);
        let firsts = [
            key.rng().next_u64(),
            key.child(1).rng().next_u64(),
            key.child(1).child(2).rng().next_u64(),
        ];
        assert_eq!(
            firsts,
            [
                720_550_500_887_582_465,
                7_330_651_210_193_595_037,
                9_537_662_557_853_453_955
            ]
        );
    }

    #[test]
    fn siblings_differ_and_addresses_repeat() {
        let key = Key::from_seed(7);
        assert_eq!(key.child(3), key.child(3));
        assert_ne!(key.child(3), key.child(4));
        assert_ne!(key.child(3).child(4), key.child(4).child(3));
    }

    #[test]
    fn shuffle_is_a_permutation() {
        let mut items: Vec<usize> = (0..100).collect();
        shuffle(&mut Key::from_seed(1).rng(), &mut items);
        let mut sorted = items.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        assert_ne!(items, sorted);
    }
}
