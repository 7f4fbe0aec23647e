//! Two groups of the classes of a node, by an exchange heuristic: from the two classes whose means
//! are farthest apart, one class at a time changes its group while the split gains by it.

use crate::models::ldt::rows::InputRows;
use crate::stop::is_cancelled;

/// Largest number of passes over the classes.
const MAX_PASSES: usize = 10;

/// Improves the groups of the classes. `gain` evaluates the split of groups (for each class,
/// whether it is in the right group); it returns the best one found with its gain.
pub(super) fn exchange<S>(
    mut groups: Vec<bool>,
    present: &[usize],
    mut evaluate: impl FnMut(&[bool]) -> Option<(f64, S)>,
) -> Option<S> {
    let mut best = evaluate(&groups);
    if present.len() <= 2 {
        return best.map(|(_, split)| split);
    }
    for _ in 0..MAX_PASSES {
        let mut has_improved = false;
        for &class in present {
            groups[class] = !groups[class];
            let has_both = present
                .iter()
                .any(|&class| groups[class] != groups[present[0]]);
            let found = if has_both && !is_cancelled() {
                evaluate(&groups)
            } else {
                None
            };
            let gain_of = |split: &Option<(f64, S)>| split.as_ref().map_or(0.0, |split| split.0);
            if gain_of(&found) > gain_of(&best) {
                best = found;
                has_improved = true;
            } else {
                groups[class] = !groups[class];
            }
        }
        if !has_improved {
            break;
        }
    }
    best.map(|(_, split)| split)
}

/// For each class whether it starts in the right group: the two classes whose means are farthest
/// apart start the groups, and each other class joins the nearer one. `present` lists the classes
/// of the rows.
pub(super) fn farthest_classes(
    data: &InputRows,
    rows: &[u32],
    n_classes: usize,
    present: &[usize],
) -> Vec<bool> {
    let mut groups = vec![false; n_classes];
    if let [_, second] = present {
        groups[*second] = true;
        return groups;
    }
    let means = class_means(data, rows, n_classes);
    let distance = |a: usize, b: usize| {
        let pairs = means[a].iter().zip(&means[b]);
        pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>()
    };
    let mut farthest = (present[0], present[0], 0.0);
    for (at, &a) in present.iter().enumerate() {
        for &b in &present[at + 1..] {
            let distance = distance(a, b);
            if distance > farthest.2 {
                farthest = (a, b, distance);
            }
        }
    }
    let (left, right, _) = farthest;
    for &class in present {
        groups[class] = distance(class, right) < distance(class, left);
    }
    groups
}

/// Mean of the inputs of each class; zero for classes without rows.
fn class_means(data: &InputRows, rows: &[u32], n_classes: usize) -> Vec<Vec<f64>> {
    let mut sums = vec![vec![0.0; data.n_inputs]; n_classes];
    let mut weights = vec![0.0; n_classes];
    for row in rows.iter().map(|&row| row as usize) {
        let (class, weight) = (data.target[row] as usize, data.weight[row]);
        weights[class] += weight;
        for (sum, &x) in sums[class].iter_mut().zip(data.row(row)) {
            *sum += weight * f64::from(x);
        }
    }
    for (sums, weight) in sums.iter_mut().zip(weights) {
        for sum in sums {
            *sum /= f64::max(weight, f64::MIN_POSITIVE);
        }
    }
    sums
}
