//! Categorical heads: probabilities, labels and entropies.
//!
//! With the class probabilities `p_s` of member `s` and their mean `p`: total = `H(p)`, data
//! (aleatoric) = mean of `H(p_s)`, knowledge (epistemic) = total - data, the mutual information of
//! label and member.

use crate::predictive::block::Block;

/// Mean probabilities of each row (row-major, rows x classes).
pub(crate) fn probabilities(block: &Block, out: &mut [f64]) {
    let classes = block.n_components();
    let share = 1.0 / block.n_members as f64;
    out.fill(0.0);
    for member in 0..block.n_members {
        for class in 0..classes {
            let rows = &block.weight[block.at(member, class)..][..block.n_rows];
            for (row, probability) in rows.iter().enumerate() {
                out[row * classes + class] += share * probability;
            }
        }
    }
}

/// Class probabilities of the given members on each row (row-major, rows x members x classes).
pub(crate) fn member_probabilities(block: &Block, members: &[usize], out: &mut [f64]) {
    let classes = block.n_components();
    for (index, &member) in members.iter().enumerate() {
        for class in 0..classes {
            let rows = &block.weight[block.at(member, class)..][..block.n_rows];
            for (row, probability) in rows.iter().enumerate() {
                out[(row * members.len() + index) * classes + class] = *probability;
            }
        }
    }
}

/// Data and knowledge uncertainty of each row, in nats (row-major, rows x 2).
pub(crate) fn entropies(block: &Block, out: &mut [f64]) {
    let classes = block.n_components();
    let mut mean = vec![0.0; block.n_rows * classes];
    probabilities(block, &mut mean);
    let mut expected = vec![0.0; block.n_rows];
    for values in block.weight.chunks_exact(block.stride) {
        for (sum, &probability) in expected.iter_mut().zip(values) {
            *sum += entropy_term(probability);
        }
    }
    for (row, out) in out.chunks_exact_mut(2).enumerate() {
        let data = expected[row] / block.n_members as f64;
        let total: f64 = mean[row * classes..][..classes]
            .iter()
            .map(|&probability| entropy_term(probability))
            .sum();
        out[0] = data;
        // by rounding, the mean entropy may exceed the entropy of the mean
        out[1] = (total - data).max(0.0);
    }
}

/// `-p ln p`, zero at zero.
fn entropy_term(probability: f64) -> f64 {
    if probability > 0.0 {
        -probability * probability.ln()
    } else {
        0.0
    }
}

/// The most probable class; the first one among equals.
pub(crate) fn most_probable(probabilities: &[f64]) -> u32 {
    let mut best = 0;
    for (class, probability) in probabilities.iter().enumerate() {
        if *probability > probabilities[best] {
            best = class;
        }
    }
    best as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predictive::block::Head;
    use softwood_testkit::close;

    #[test]
    fn members_that_disagree_have_only_knowledge_uncertainty() {
        let mut block = Block::new(Head::Categorical { classes: 2 }, 2, 1);
        for (member, class) in [(0, 0), (1, 1)] {
            let at = block.at(member, class);
            block.weight[at] = 1.0;
        }
        let mut out = [0.0; 2];
        entropies(&block, &mut out);
        close(&out, &[0.0, 2.0_f64.ln()], 1e-15);
        let mut mean = [0.0; 2];
        probabilities(&block, &mut mean);
        close(&mean, &[0.5, 0.5], 1e-15);
        assert_eq!(most_probable(&mean), 0);
    }

    #[test]
    fn members_that_agree_have_only_data_uncertainty() {
        let mut block = Block::new(Head::Categorical { classes: 2 }, 3, 1);
        for member in 0..3 {
            for (class, probability) in [0.1, 0.9].into_iter().enumerate() {
                let at = block.at(member, class);
                block.weight[at] = probability;
            }
        }
        let mut out = [0.0; 2];
        entropies(&block, &mut out);
        close(&out, &[0.325_082_973_391_448_2, 0.0], 1e-15);
    }
}
