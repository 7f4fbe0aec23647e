//! Fitting: merge equal rows, set rows aside, choose a shape, train the winner.

use crate::data::dataset::{Dataset, Target};
use crate::data::encode::Encoder;
use crate::error::{Error, Result};
use crate::fit::{Fit, Progress, Run};
use crate::models::vst::choose::{Ground, Ranked, choose};
use crate::models::vst::params::VstParams;
use crate::models::vst::posterior::{Tree, Vst, draws_key, members_of};
use crate::models::vst::problem::Scale;
use crate::models::vst::train::{Plan, Trained, train};
use crate::params::Checked;
use crate::posterior::Training;
use crate::rng::{Key, shuffle};

/// Fewest rows of which a part is held out.
const LEAST_ROWS_TO_SPLIT: usize = 40;
/// Most copies of one row that are set aside one by one.
const MOST_COPIES: usize = 64;
/// Steps of a full run, unless epochs are given.
const N_STEPS: usize = 12_000;
/// Fewest and most passes over the rows, unless given.
const EPOCHS: (usize, usize) = (40, 1500);

/// Rows from which the noise of the minibatches, not of the draws, rules a step.
const MANY_ROWS: usize = 3000;

impl Fit for VstParams {
    type Model = Vst;

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Vst> {
        let whole = data.merged();
        let split = if run.held_out.is_none() {
            set_aside(&whole, params, run.key.child(1))
        } else {
            None
        };
        let (train_rows, spare) = match &split {
            Some((train_rows, spare)) => (train_rows, Some(spare)),
            None => (&whole, run.held_out),
        };
        let ground = Ground {
            params,
            data: train_rows,
            held_out: spare,
            n_rows: rows_before_merging(train_rows),
            scale: Scale::of(train_rows, params),
            plan: full_plan(params, train_rows),
            run,
        };
        fit(&ground, data)
    }
}

fn fit(ground: &Ground<'_>, data: &Dataset) -> Result<Vst> {
    let (params, run) = (ground.params, ground.run);
    let (ranking, trials) = choose(ground)?;
    let n_fits = params.n_fits.min(params.n_members);
    let fits = run.pool.map(n_fits, |at| {
        let ranked = &ranking[at % ranking.len()];
        let candidate = &ranked.candidate;
        let problem = ground.problem(candidate.encoding);
        let plan = ground.plan(candidate, 1.0);
        let trained = train(
            &problem,
            params,
            &plan,
            run.key.child(20).child(at as u64),
            &mut |epoch, point| {
                let (done, total) = (at * plan.n_epochs + epoch, n_fits * plan.n_epochs);
                run.watch.step(&Progress {
                    stage: "fitting",
                    done,
                    total,
                    elbo: Some(point.elbo).filter(|elbo| elbo.is_finite()),
                    held_out: point.held_out,
                })
            },
        )?;
        // a given number of epochs is kept to; repeats of one candidate must differ
        let may_be_short = params.early_stopping && params.n_epochs.is_none() && at < ranking.len();
        let trained = if may_be_short {
            ranked.better(trained)
        } else {
            trained
        };
        Ok((problem.encoder, trained))
    });
    let fits = converged(fits)?;
    let n_fits = fits.len();
    let target_sd = match data.target() {
        Target::Numeric(_) => Some(ground.scale.standard.scale),
        Target::Classes(_) => None,
    };
    let training = Training {
        curve: fits[0].1.curve.clone(),
        trials,
        chosen: describe(&ranking, n_fits),
        target_sd,
        ..Training::default()
    };
    let key = run.key.child(30);
    let tree = |(at, (encoder, fit)): (usize, (Encoder, Trained))| {
        let n_draws = members_of(params.n_members, n_fits, at);
        Tree::new(
            encoder,
            fit.pass,
            fit.posterior,
            n_draws,
            draws_key(key, at),
        )
    };
    Ok(Vst {
        schema: data.schema().clone(),
        params: params.clone(),
        training,
        standard: ground.scale.standard,
        key,
        trees: fits.into_iter().enumerate().map(tree).collect(),
    })
}

/// The fits that did not diverge; an error where all did, or where one was stopped.
fn converged(fits: Vec<Result<(Encoder, Trained)>>) -> Result<Vec<(Encoder, Trained)>> {
    let mut kept = Vec::with_capacity(fits.len());
    let mut failure = None;
    for fit in fits {
        match fit {
            Ok(fit) => kept.push(fit),
            Err(error @ Error::Diverged { .. }) => failure = Some(error),
            Err(error) => return Err(error),
        }
    }
    match failure {
        Some(error) if kept.is_empty() => Err(error),
        _ => Ok(kept),
    }
}

/// The candidates that are fitted, as a user reads them.
fn describe(ranking: &[Ranked], n_fits: usize) -> String {
    let names: Vec<String> = ranking
        .iter()
        .take(n_fits)
        .map(|ranked| ranked.candidate.describe())
        .collect();
    names.join("; ")
}

/// Splits off the held-out part; `None` where there are too few rows to spare any, or nothing to use it for.
fn set_aside(data: &Dataset, params: &VstParams, key: Key) -> Option<(Dataset, Dataset)> {
    let n_rows = data.n_rows();
    let nothing_to_choose = !params.early_stopping
        && params.depth.is_some()
        && params.leaf_mixing.is_some()
        && params.scaling.is_some()
        && params.rotation.is_some()
        && params.squares.is_some();
    if rows_before_merging(data) < LEAST_ROWS_TO_SPLIT || nothing_to_choose {
        return None;
    }
    let copies = copies_of(data);
    let mut order = copies.clone();
    shuffle(&mut key.rng(), &mut order);
    let n_spare = ((order.len() as f64 * params.validation_fraction).round() as usize)
        .clamp(1, order.len() - 1);
    let (spare, kept) = order.split_at(n_spare);
    let mut n_copies = vec![0; n_rows];
    for &row in &copies {
        n_copies[row] += 1;
    }
    let (train_rows, spare) = (part(data, kept, &n_copies)?, part(data, spare, &n_copies)?);
    train_rows.check_fit().ok()?;
    Some((train_rows, spare))
}

/// Rows before equal ones were merged: a weight counts as that many rows, but no row as less than one.
fn rows_before_merging(data: &Dataset) -> usize {
    let total: f64 = data.weights().map_or(0.0, |weights| weights.iter().sum());
    data.n_rows().max(total as usize)
}

/// What is shuffled to set rows aside: the rows, or where few differ each row as often as it was merged, for of a few
/// rows that stand for many none can be spared whole.
fn copies_of(data: &Dataset) -> Vec<usize> {
    let n_rows = data.n_rows();
    let Some(weights) = data.weights().filter(|_| n_rows < LEAST_ROWS_TO_SPLIT) else {
        return (0..n_rows).collect();
    };
    let times = |row: usize| (weights[row] as usize).clamp(1, MOST_COPIES);
    (0..n_rows)
        .flat_map(|row| std::iter::repeat_n(row, times(row)))
        .collect()
}

/// The part of the data that some of its copies make up; each has an equal share of its row's weight.
fn part(data: &Dataset, chosen: &[usize], n_copies: &[usize]) -> Option<Dataset> {
    let mut counts = vec![0_u32; n_copies.len()];
    for &row in chosen {
        counts[row] += 1;
    }
    let rows: Vec<usize> = (0..counts.len()).filter(|&row| counts[row] > 0).collect();
    let part = data.take(&rows);
    let share =
        |(&row, weight): (&usize, &f64)| weight * f64::from(counts[row]) / n_copies[row] as f64;
    let weights = (part.weights()).map(|weights| rows.iter().zip(weights).map(share).collect());
    let (schema, features) = (part.schema().clone(), part.features().clone());
    Dataset::new(schema, features, part.target().clone(), weights).ok()
}

fn full_plan(params: &VstParams, data: &Dataset) -> Plan {
    let n_rows = data.n_rows();
    let learning_rate = match data.target() {
        Target::Numeric(_) => 0.01,
        Target::Classes(_) => 0.02,
    };
    let batch_size = params.batch_size.unwrap_or(match n_rows {
        ..2_000 => 64,
        2_000..10_000 => 128,
        _ => 256,
    });
    let steps_per_epoch = n_rows.div_ceil(batch_size);
    let n_epochs = params
        .n_epochs
        .unwrap_or((N_STEPS / steps_per_epoch).clamp(EPOCHS.0, EPOCHS.1));
    Plan {
        depth: 0,
        mixing_levels: 0,
        is_linear: true,
        n_epochs,
        batch_size,
        n_draws: params
            .n_draws
            .unwrap_or(if n_rows < MANY_ROWS { 4 } else { 2 }),
        learning_rate: params.learning_rate.unwrap_or(learning_rate),
    }
}
