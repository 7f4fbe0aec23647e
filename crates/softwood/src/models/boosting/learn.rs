//! Fitting: distinct rows, bins, a choice of step size and depth on held-out rows, then the chains of all members.

use serde_json::Value;

use crate::boost::chain::Chain;
use crate::boost::learner::{Ground, Learned, Look, Sample, Sampling, best_look};
use crate::data::binned::{Binned, Cuts};
use crate::data::dataset::{Dataset, Target};
use crate::data::distinct::Distinct;
use crate::data::standardise::{Standard, resolution};
use crate::error::{Error, Result};
use crate::fit::{Fit, Progress, Run};
use crate::hard::candidate::Columns;
use crate::models::boosting::head::Law;
use crate::models::boosting::params::{RegressionHead, SgbParams, SglbParams};
use crate::models::boosting::posterior::Boosted;
use crate::models::boosting::recipe::Recipe;
use crate::par::Pool;
use crate::params::Checked;
use crate::posterior::{CurvePoint, Training, Trial};

/// Least standard deviation in units of the target's, where the target is no grid.
const LEAST_SCALE: f64 = 1e-3;
/// Fewest rows of which a part is held out.
const LEAST_ROWS_TO_SPLIT: usize = 40;
/// Step sizes and depths that are tried.
const RATES: [f64; 2] = [0.03, 0.1];
const DEPTHS: [usize; 3] = [3, 4, 6];
/// Where nothing is held out to choose by.
const SAFE: (f64, usize) = (0.03, 4);

impl Fit for SgbParams {
    type Model = Boosted;

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Boosted> {
        let json = serde_json::to_value(&**params).unwrap_or_default();
        fit(&Recipe::from(&**params), json, data, run)
    }
}

impl Fit for SglbParams {
    type Model = Boosted;

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Boosted> {
        let json = serde_json::to_value(&**params).unwrap_or_default();
        fit(&Recipe::from(&**params), json, data, run)
    }
}

/// Rows in bins, ready for boosting.
#[derive(Debug)]
struct Prepared {
    binned: Binned,
    target: Vec<f32>,
    weight: Vec<f32>,
}

impl Prepared {
    fn new(
        data: &Dataset,
        rows: &[u32],
        weights: &[f64],
        cuts: &Cuts,
        standard: &Standard,
    ) -> Self {
        let target = match data.target() {
            Target::Numeric(values) => rows
                .iter()
                .map(|&row| standard.apply(values[row as usize]) as f32)
                .collect(),
            Target::Classes(codes) => rows.iter().map(|&row| codes[row as usize] as f32).collect(),
        };
        Self {
            binned: cuts.bin_rows(data.features(), rows),
            target,
            weight: weights.iter().map(|&weight| weight as f32).collect(),
        }
    }

    fn sample(&self) -> Sample<'_> {
        Sample {
            binned: &self.binned,
            target: &self.target,
            weight: &self.weight,
        }
    }

    fn total_weight(&self) -> f64 {
        self.weight.iter().map(|&weight| f64::from(weight)).sum()
    }
}

fn fit(recipe: &Recipe, params: Value, data: &Dataset, run: &Run<'_>) -> Result<Boosted> {
    let distinct = Distinct::of(data);
    let standard = standard(data, &distinct);
    let law = law(recipe, data, &distinct, &standard);
    let cuts = Cuts::fit(
        data.features(),
        &distinct.rows,
        &distinct.weights,
        recipe.max_bins,
    );
    let whole = Prepared::new(data, &distinct.rows, &distinct.weights, &cuts, &standard);
    let columns = Columns::new(&cuts, &whole.binned);
    let given = run.held_out.map(|rows| {
        let distinct = Distinct::of(rows);
        Prepared::new(rows, &distinct.rows, &distinct.weights, &cuts, &standard)
    });
    let mut training = Training {
        target_sd: data.schema().classes().is_none().then_some(standard.scale),
        ..Training::default()
    };
    let choosing =
        recipe.learning_rate.is_none() || recipe.max_depth.is_none() || recipe.patience.is_some();
    let split =
        (choosing && given.is_none() && distinct.rows.len() >= LEAST_ROWS_TO_SPLIT).then(|| {
            // distinct rows are shuffled: a leading part is a random sample
            let n_spare =
                ((distinct.rows.len() as f64 * recipe.validation_fraction).round() as usize).max(1);
            let part = |range: std::ops::Range<usize>| {
                Prepared::new(
                    data,
                    &distinct.rows[range.clone()],
                    &distinct.weights[range],
                    &cuts,
                    &standard,
                )
            };
            (part(n_spare..distinct.rows.len()), part(0..n_spare))
        });
    let (train, held_out) = match (&split, &given) {
        (Some((train, held_out)), _) => (train, Some(held_out)),
        (None, Some(given)) => (&whole, Some(given)),
        (None, None) => (&whole, None),
    };
    let ground = Ground {
        train: train.sample(),
        held_out: held_out.map(Prepared::sample),
        columns: &columns,
        pool: run.pool,
    };
    let chosen = choose(
        recipe,
        law,
        &ground,
        train.total_weight(),
        run,
        &mut training,
    )?;
    // what only the choice needed is not kept through the longest part
    drop((distinct, split, given));
    let ground = Ground {
        train: whole.sample(),
        held_out: None,
        columns: &columns,
        pool: run.pool,
    };
    let (mut chains, dispersion) =
        chains(recipe, law, &ground, &chosen, whole.total_weight(), run)?;
    if recipe.sampling == Sampling::Off {
        // no noise accounts for what was learned by heart
        for chain in &mut chains {
            chain.shift(&chosen.widening);
        }
    }
    let law = match law {
        // held-out residuals where there are some: those of the training rows are too small
        Law::Squared { .. } => Law::Squared {
            sd: chosen
                .held_out
                .map_or(dispersion, |score| -2.0 * score)
                .sqrt()
                .max(LEAST_SCALE),
        },
        other => other,
    };
    training.chosen = format!(
        "{} trees of depth {}, learning rate {}",
        chosen.n_trees, chosen.max_depth, chosen.learning_rate
    );
    Ok(Boosted::new(
        recipe.family,
        (data.schema().clone(), params, training),
        (standard, law, cuts),
        recipe.members,
        chains,
    ))
}

fn standard(data: &Dataset, distinct: &Distinct) -> Standard {
    match data.target() {
        Target::Numeric(values) => {
            let values: Vec<f64> = distinct
                .rows
                .iter()
                .map(|&row| values[row as usize])
                .collect();
            Standard::fit(&values, Some(&distinct.weights))
        }
        Target::Classes(_) => Standard {
            shift: 0.0,
            scale: 1.0,
        },
    }
}

fn law(recipe: &Recipe, data: &Dataset, distinct: &Distinct, standard: &Standard) -> Law {
    match (
        data.target(),
        data.schema().classes().map_or(0, <[String]>::len),
    ) {
        (Target::Classes(_), 2) => Law::Binary,
        (Target::Classes(_), classes) => Law::Multiclass { classes },
        (Target::Numeric(_), _) if recipe.head == RegressionHead::Squared => {
            Law::Squared { sd: 1.0 }
        }
        (Target::Numeric(values), _) => {
            let values: Vec<f64> = distinct
                .rows
                .iter()
                .map(|&row| values[row as usize])
                .collect();
            let half_step = resolution(&values, Some(&distinct.weights))
                .map_or(0.0, |step| 0.5 * step / standard.scale);
            Law::Normal {
                floor: recipe.min_scale.unwrap_or(LEAST_SCALE.max(half_step)),
            }
        }
    }
}

/// Step size, depth and length of every chain.
#[derive(Debug, Clone)]
struct Chosen {
    learning_rate: f64,
    max_depth: usize,
    n_trees: usize,
    /// Mean held-out log-likelihood, where it was looked at.
    held_out: Option<f64>,
    /// What held-out rows ask to be added to each raw output.
    widening: Vec<f64>,
}

fn choose(
    recipe: &Recipe,
    law: Law,
    ground: &Ground<'_>,
    total_weight: f64,
    run: &Run<'_>,
    training: &mut Training,
) -> Result<Chosen> {
    let rates = recipe
        .learning_rate
        .map_or(RATES.to_vec(), |rate| vec![rate]);
    let depths = recipe
        .max_depth
        .map_or(DEPTHS.to_vec(), |depth| vec![depth]);
    let candidates: Vec<(f64, usize)> = rates
        .iter()
        .flat_map(|&rate| depths.iter().map(move |&depth| (rate, depth)))
        .collect();
    let plain = |(learning_rate, max_depth): (f64, usize)| Chosen {
        learning_rate,
        max_depth,
        n_trees: recipe.n_estimators,
        held_out: None,
        widening: Vec::new(),
    };
    if let [only] = candidates[..]
        && recipe.patience.is_none()
    {
        return Ok(plain(only));
    }
    if ground.held_out.is_none() {
        let (rate, depth) = SAFE;
        return Ok(plain((
            recipe.learning_rate.unwrap_or(rate),
            recipe.max_depth.unwrap_or(depth),
        )));
    }
    let n = candidates.len();
    let alone = Pool::new(1)?;
    let runs = run.pool.map(n, |at| {
        let (rate, depth) = candidates[at];
        let ground = Ground {
            pool: if n > 1 { &alone } else { ground.pool },
            ..*ground
        };
        let settings = recipe.settings(rate, depth, total_weight);
        law.grow(
            &ground,
            &settings,
            run.key.child(10),
            &mut |done, held_out| {
                run.watch.step(&Progress {
                    stage: "choosing",
                    done: at * settings.n_trees + done,
                    total: n * settings.n_trees,
                    elbo: None,
                    held_out,
                })
            },
        )
    });
    let mut best: Option<(f64, Chosen)> = None;
    for (&candidate, run) in candidates.iter().zip(runs) {
        let Learned { curve, .. } = match run {
            Err(Error::Diverged { .. }) => continue,
            other => other?,
        };
        let Some(look) = best_look(&curve) else {
            continue;
        };
        training.trials.push(Trial {
            what: format!(
                "depth {}, learning rate {}, {} trees",
                candidate.1, candidate.0, look.n_trees
            ),
            held_out: look.held_out,
        });
        if best
            .as_ref()
            .is_none_or(|(least, _)| look.held_out > *least)
        {
            training.curve = curve.iter().map(point).collect();
            let chosen = Chosen {
                n_trees: look.n_trees,
                held_out: Some(look.held_out),
                widening: look.widening,
                ..plain(candidate)
            };
            best = Some((look.held_out, chosen));
        }
    }
    best.map(|(_, chosen)| chosen).ok_or(Error::Diverged {
        step: 0,
        what: "every combination of step size and depth".to_owned(),
    })
}

fn point(look: &Look) -> CurvePoint {
    CurvePoint {
        epoch: look.n_trees,
        elbo: look.train,
        held_out: Some(look.held_out),
    }
}

fn chains(
    recipe: &Recipe,
    law: Law,
    ground: &Ground<'_>,
    chosen: &Chosen,
    total_weight: f64,
    run: &Run<'_>,
) -> Result<(Vec<Chain>, f64)> {
    let n = recipe.members.chains;
    let mut settings = recipe.settings(chosen.learning_rate, chosen.max_depth, total_weight);
    settings.n_trees = chosen.n_trees;
    settings.patience = None;
    let alone = Pool::new(1)?;
    let chains = run.pool.map(n, |at| {
        let ground = Ground {
            pool: if n > 1 { &alone } else { ground.pool },
            ..*ground
        };
        let key = run.key.child(20).child(at as u64);
        law.grow(&ground, &settings, key, &mut |done, held_out| {
            run.watch.step(&Progress {
                stage: "fitting",
                done: at * settings.n_trees + done,
                total: n * settings.n_trees,
                elbo: None,
                held_out,
            })
        })
    });
    let learned = chains.into_iter().collect::<Result<Vec<Learned>>>()?;
    let dispersion = learned
        .iter()
        .map(|learned| learned.dispersion)
        .sum::<f64>()
        / n as f64;
    Ok((
        learned.into_iter().map(|learned| learned.chain).collect(),
        dispersion,
    ))
}
