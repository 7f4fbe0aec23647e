//! Chains as arrays of a record, and back with every index checked.
//!
//! `chainN.tests` (u32): for each tree its kind (0 symmetric, 1 general), the number of tests, the tests (column; 0 or 1 for a
//! threshold with missing cells left or right, 2 for a set; the bin, or eight words of the set) and, for a general tree, two
//! children per test. `chainN.values` and `chainN.gains` (f32): leaf values and gains, tree after tree. `chainN.start` (f64):
//! start values, then the shrinkage per tree.

use crate::boost::chain::{Chain, Tree};
use crate::data::binned::Cuts;
use crate::error::{Error, Result};
use crate::hard::skeleton::Skeleton;
use crate::hard::test::{Rule, Test};
use crate::store::record::{Numbers, Record};

pub(super) fn encode(chain: &Chain, at: usize) -> Vec<(String, Numbers)> {
    let mut words = vec![chain.trees.len() as u32];
    for tree in &chain.trees {
        let tests = tree.skeleton.tests();
        words.push(u32::from(matches!(tree.skeleton, Skeleton::General { .. })));
        words.push(tests.len() as u32);
        for test in tests {
            push_test(test, &mut words);
        }
        if let Skeleton::General { children, .. } = &tree.skeleton {
            words.extend(children.iter().flatten().map(|&child| child as u32));
        }
    }
    let gather = |part: fn(&Tree) -> &Vec<f32>| {
        Numbers::F32(
            chain
                .trees
                .iter()
                .flat_map(|tree| part(tree).iter().copied())
                .collect(),
        )
    };
    let mut start = chain.start.clone();
    start.push(chain.shrinkage);
    vec![
        (format!("chain{at}.start"), Numbers::F64(start)),
        (format!("chain{at}.tests"), Numbers::U32(words)),
        (format!("chain{at}.values"), gather(|tree| &tree.values)),
        (format!("chain{at}.gains"), gather(|tree| &tree.gains)),
    ]
}

fn push_test(test: &Test, words: &mut Vec<u32>) {
    words.push(test.column as u32);
    match test.rule {
        Rule::Above { bin, missing_right } => {
            words.extend([u32::from(missing_right), u32::from(bin)]);
        }
        Rule::In(set) => {
            words.push(2);
            words.extend(
                set.iter()
                    .flat_map(|&word| [word as u32, (word >> 32) as u32]),
            );
        }
    }
}

/// A reader of words that fails at the end.
struct Words<'a>(std::slice::Iter<'a, u32>);

impl Words<'_> {
    fn next(&mut self) -> Result<u32> {
        self.0
            .next()
            .copied()
            .ok_or_else(|| Error::Format("a list of trees ends too early".to_owned()))
    }

    /// A count that cannot exceed what is left.
    fn count(&mut self) -> Result<usize> {
        let count = self.next()? as usize;
        if count > self.0.len() {
            return Err(Error::Format(
                "a list of trees is longer than its array".to_owned(),
            ));
        }
        Ok(count)
    }
}

pub(super) fn decode(record: &Record, at: usize, n_outputs: usize, cuts: &Cuts) -> Result<Chain> {
    let start = record.f64s(&format!("chain{at}.start"), n_outputs + 1)?;
    let shrinkage = start[n_outputs];
    if !start.iter().all(|value| value.is_finite())
        || !(0.0..=1.0).contains(&shrinkage)
        || shrinkage <= 0.0
    {
        return Err(Error::Format(format!("chain {at} has an impossible start")));
    }
    let mut words = Words(record.u32s(&format!("chain{at}.tests"))?.iter());
    let mut values = record.all_f32s(&format!("chain{at}.values"))?.iter();
    let mut gains = record.all_f32s(&format!("chain{at}.gains"))?.iter();
    let n_trees = words.count()?;
    let mut trees = Vec::with_capacity(n_trees);
    for _ in 0..n_trees {
        let skeleton = read_skeleton(&mut words, cuts)?;
        let n_values = skeleton.n_leaves() * n_outputs;
        let tree = Tree {
            values: values.by_ref().take(n_values).copied().collect(),
            gains: gains
                .by_ref()
                .take(skeleton.tests().len())
                .copied()
                .collect(),
            skeleton,
        };
        if tree.values.len() != n_values || tree.gains.len() != tree.skeleton.tests().len() {
            return Err(Error::Format(format!("chain {at} lacks leaf values")));
        }
        if !tree
            .values
            .iter()
            .chain(&tree.gains)
            .all(|value| value.is_finite())
        {
            return Err(Error::Format(format!(
                "chain {at} has values that are not finite"
            )));
        }
        trees.push(tree);
    }
    if trees.is_empty() || words.0.len() + values.len() + gains.len() > 0 {
        return Err(Error::Format(format!(
            "the arrays of chain {at} do not fit together"
        )));
    }
    Ok(Chain {
        start: start[..n_outputs].to_vec(),
        trees,
        shrinkage,
    })
}

fn read_skeleton(words: &mut Words<'_>, cuts: &Cuts) -> Result<Skeleton> {
    let is_general = words.next()? == 1;
    let n_tests = words.count()?;
    let tests = (0..n_tests)
        .map(|_| read_test(words, cuts))
        .collect::<Result<Vec<_>>>()?;
    if !is_general {
        if n_tests > 16 {
            return Err(Error::Format("a symmetric tree is too deep".to_owned()));
        }
        return Ok(Skeleton::Symmetric(tests));
    }
    let mut children = Vec::with_capacity(n_tests);
    let mut n_leaves = 0;
    let mut has_parent = vec![false; n_tests];
    for node in 0..n_tests {
        let mut pair = [0; 2];
        for child in &mut pair {
            *child = words.next()? as i32;
            let is_sound = if *child >= 0 {
                let place = *child as usize;
                // a child stands after its parent and has no other: no walk goes round in circles
                place > node
                    && has_parent
                        .get_mut(place)
                        .is_some_and(|taken| !std::mem::replace(taken, true))
            } else {
                n_leaves += 1;
                !*child == n_leaves - 1
            };
            if !is_sound {
                return Err(Error::Format(
                    "the nodes of a tree do not form one".to_owned(),
                ));
            }
        }
        children.push(pair);
    }
    if n_tests > 0 && n_leaves as usize != n_tests + 1 {
        return Err(Error::Format(
            "the nodes of a tree do not form one".to_owned(),
        ));
    }
    Ok(Skeleton::General { tests, children })
}

fn read_test(words: &mut Words<'_>, cuts: &Cuts) -> Result<Test> {
    let column = words.next()? as usize;
    let kind = words.next()?;
    let cut = cuts.columns.get(column);
    let rule = match (kind, cut) {
        (0 | 1, Some(cut)) => {
            let bin = words.next()?;
            if bin == 0 || bin as usize >= cut.n_bins().max(2) {
                return Err(Error::Format(
                    "a threshold lies outside its column".to_owned(),
                ));
            }
            Rule::Above {
                bin: bin as u8,
                missing_right: kind == 1,
            }
        }
        (2, Some(_)) => {
            let mut set = [0; 4];
            for word in &mut set {
                *word = u64::from(words.next()?) | u64::from(words.next()?) << 32;
            }
            Rule::In(set)
        }
        _ => {
            return Err(Error::Format(
                "a tree asks for a column that is not there".to_owned(),
            ));
        }
    };
    Ok(Test { column, rule })
}
