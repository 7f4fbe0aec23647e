//! Finds the name that a user probably meant, for error messages about unknown names.

/// The name that `name` is probably a misspelling of: equal but for case, blanks, hyphens and
/// underscores, or else the only nearest one within one edit for every three characters.
pub(crate) fn similar_name<'a>(
    name: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let wanted = normalised(name);
    let max_edits = wanted.len() / 3;
    let mut best: Option<(usize, &str)> = None;
    let mut is_tied = false;
    for candidate in names {
        let found = normalised(candidate);
        if found == wanted {
            return Some(candidate);
        }
        if found.len().abs_diff(wanted.len()) > max_edits {
            continue;
        }
        let edits = edit_distance(&wanted, &found);
        match best {
            Some((fewest, _)) if edits > fewest => {}
            Some((fewest, earlier)) if edits == fewest => is_tied |= earlier != candidate,
            _ => (best, is_tied) = (Some((edits, candidate)), false),
        }
    }
    best.filter(|(edits, _)| *edits <= max_edits && !is_tied)
        .map(|(_, candidate)| candidate)
}

/// `; did you mean ...?`, or nothing if no name is similar.
pub(crate) fn did_you_mean(suggested: Option<&str>) -> String {
    suggested.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

fn normalised(name: &str) -> Vec<char> {
    let is_separator = |letter: &char| letter.is_whitespace() || "-_".contains(*letter);
    name.to_lowercase()
        .chars()
        .filter(|c| !is_separator(c))
        .collect()
}

/// Number of insertions, deletions, replacements and swaps of neighbours between two texts.
fn edit_distance(one: &[char], other: &[char]) -> usize {
    let width = other.len() + 1;
    let mut cost: Vec<usize> = vec![0; (one.len() + 1) * width];
    for row in 0..=one.len() {
        for column in 0..width {
            let at = row * width + column;
            if row == 0 || column == 0 {
                cost[at] = row + column;
                continue;
            }
            let differ = usize::from(one[row - 1] != other[column - 1]);
            let mut least = (cost[at - width] + 1).min(cost[at - 1] + 1);
            least = least.min(cost[at - width - 1] + differ);
            let is_swap = row > 1
                && column > 1
                && one[row - 1] == other[column - 2]
                && one[row - 2] == other[column - 1];
            if is_swap {
                least = least.min(cost[at - 2 * width - 2] + 1);
            }
            cost[at] = least;
        }
    }
    cost[cost.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_and_swaps_are_counted() {
        let distance = |one: &str, other: &str| edit_distance(&normalised(one), &normalised(other));
        for (one, other, wanted) in [
            ("", "", 0),
            ("", "abc", 3),
            ("vts", "vst", 1),
            ("kitten", "sitting", 3),
            ("learning-rate", "Learning_Rate", 0),
        ] {
            assert_eq!(distance(one, other), wanted, "{one} {other}");
        }
    }

    #[test]
    fn only_near_and_unambiguous_names_are_suggested() {
        let names = [
            "max_depth",
            "n_estimators",
            "rank",
            "y",
            "vst",
            "sgb",
            "sglb",
        ];
        for (name, wanted) in [
            ("maxdepth", Some("max_depth")),
            ("max_dpeth", Some("max_depth")),
            ("n_estimator", Some("n_estimators")),
            ("Rank ", Some("rank")),
            ("Y", Some("y")),
            ("vts", Some("vst")),
            ("x", None),
            ("sgxb", None),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(similar_name(name, names), wanted, "{name}");
        }
    }
}
