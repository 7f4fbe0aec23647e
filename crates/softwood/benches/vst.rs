//! Speed of soft trees: a training step relative to its matrix products alone, whole fits, growing
//! soft trees relative to hard trees, and prediction.
//!
//! Steps are timed by wall-clock time, the minimum of many short repeats, which is close to CPU
//! time if a step fits into a time slice of the scheduler. Fits and predictions are timed by the
//! CPU time of the thread. Ratios compare times of one run of this program.

#![allow(clippy::print_stdout, reason = "a bench prints its table")]

use std::hint::black_box;

use softwood::models::{LeafMixing, Rotation, Scaling, SoftTreeParams, TreeParams, VstParams};
use softwood::{
    Column, Dataset, Distribution, Fit, Key, Pool, ProbeShape, ProbeTrees, Roles, Run, StepProbe,
    StructureStepProbe, Table,
};

/// Runs all parts, or those named on the command line:
/// `cargo bench -p softwood --features bench -- steps prediction`.
fn main() {
    let named: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let parts: [(&str, fn()); 5] = [
        ("steps", steps),
        ("structures", structures),
        ("fits", fits),
        ("growth", growth),
        ("prediction", prediction),
    ];
    for (name, part) in parts {
        if named.is_empty() || named.iter().any(|argument| argument == name) {
            part();
            println!();
        }
    }
}

fn steps() {
    println!("a training step, rank 5, 1 draw, linear leaves");
    println!(
        "{:<24} {:>6} {:>4} {:>10} {:>12} {:>6}",
        "trees", "batch", "d", "step", "two GEMMs", "ratio"
    );
    let kinds = [
        ("one, depth 5, mixture", ProbeTrees::One, 5),
        ("boosting, depth 4", ProbeTrees::Added, 4),
        ("joint, 10 of depth 4", ProbeTrees::Together(10), 4),
    ];
    for (name, trees, depth) in kinds {
        for (batch, n_inputs) in [(256, 9), (256, 90), (1024, 90)] {
            let shape = ProbeShape {
                trees,
                n_inputs,
                batch,
                depth,
                rank: 5,
                n_draws: 1,
            };
            time_step(name, shape);
        }
    }
}

/// Times one training step and its matrix products.
fn time_step(name: &str, shape: ProbeShape) {
    let mut probe = StepProbe::new(shape).expect("the generated table is valid");
    let step = min_seconds(clock_seconds, 300, || {
        black_box(probe.step());
    });
    let products = min_seconds(clock_seconds, 300, || {
        black_box(probe.products());
    });
    print_step(name, shape, step, products);
}

/// Prints the times of a step and of its matrix products.
fn print_step(name: &str, shape: ProbeShape, step: f64, products: f64) {
    println!(
        "{name:<24} {:>6} {:>4} {:>7.3} ms {:>9.3} ms {:>6.2}",
        shape.batch,
        shape.n_inputs,
        1e3 * step,
        1e3 * products,
        step / products
    );
}

/// Steps of a tree with a posterior over its structure, by the probability that a node splits: nodes
/// without mass are skipped, so the products of all nodes may take longer than the step.
fn structures() {
    println!("a training step of vart, rank 0, 1 draw, linear leaves, blend");
    println!(
        "{:<24} {:>6} {:>4} {:>10} {:>12} {:>6}",
        "tree", "batch", "d", "step", "two GEMMs", "ratio"
    );
    for (name, depth, logit) in [
        ("depth 5, all split", 5, 6.0),
        ("depth 10, all split", 10, 6.0),
        ("depth 10, half split", 10, 0.0),
    ] {
        for (batch, n_inputs) in [(256, 9), (256, 90)] {
            let shape = ProbeShape {
                trees: ProbeTrees::One,
                n_inputs,
                batch,
                depth,
                rank: 0,
                n_draws: 1,
            };
            let mut probe =
                StructureStepProbe::new(shape, logit).expect("the generated table is valid");
            let step = min_seconds(clock_seconds, 100, || {
                black_box(probe.step());
            });
            let products = min_seconds(clock_seconds, 100, || {
                black_box(probe.products());
            });
            print_step(name, shape, step, products);
        }
    }
}

fn fits() {
    println!("a default fit with model selection, one thread");
    for (n_rows, n_inputs) in [(1000, 8), (10_000, 9)] {
        let data = friedman(n_rows, n_inputs);
        let seconds = min_seconds(cpu_seconds, 1, || {
            black_box(fit(&VstParams::default(), &data));
        });
        println!("{n_rows:>6} x {n_inputs}: {seconds:>6.2} s");
    }
}

fn growth() {
    println!("default fits of a growing soft tree and of a hard tree, one thread");
    println!(
        "{:>6} {:>3} {:>10} {:>8} {:>6}",
        "rows", "d", "soft-tree", "tree", "ratio"
    );
    for (n_rows, n_inputs) in [(1000, 8), (20_000, 9)] {
        let data = friedman(n_rows, n_inputs);
        let soft = min_seconds(cpu_seconds, 1, || {
            black_box(fit(&SoftTreeParams::default(), &data));
        });
        let hard = min_seconds(cpu_seconds, 3, || {
            black_box(fit(&TreeParams::default(), &data));
        });
        println!(
            "{n_rows:>6} {n_inputs:>3} {soft:>8.2} s {hard:>6.2} s {:>6.1}",
            soft / hard
        );
    }
}

fn prediction() {
    let data = friedman(10_000, 9);
    let params = VstParams {
        max_depth: Some(5),
        leaf_mixing: Some(LeafMixing::Mixture),
        rotation: Some(Rotation::None),
        squares: Some(false),
        scaling: Some(Scaling::Standard),
        n_epochs: Some(1),
        n_fits: 1,
        n_members: 100,
        ..VstParams::default()
    };
    let model = fit(&params, &data);
    let pool = Pool::new(1).expect("one thread needs no system call");
    let distribution =
        Distribution::new(&model, data.features(), &pool).expect("the table is the training table");
    println!("prediction of 10000 rows, 100 draws of a depth-5 mixture, d = 9, one thread");
    let moments = min_seconds(cpu_seconds, 20, || {
        black_box(distribution.moments().expect("rows fit the schema"));
    });
    println!("mean, sd and uncertainty:     {moments:.3} s");
    let quantiles = min_seconds(cpu_seconds, 3, || {
        black_box(
            distribution
                .quantile(&[0.05, 0.5, 0.95])
                .expect("rows fit the schema"),
        );
    });
    println!("three quantiles:              {quantiles:.3} s");
}

fn fit<P: Fit>(params: &P, data: &Dataset) -> P::Fitted {
    let pool = Pool::new(1).expect("one thread needs no system call");
    let run = Run::new(Key::from_seed(0), &pool);
    params
        .fit_with(data, &run)
        .expect("the generated table can be fitted")
}

/// Friedman's first function with noise on a low-discrepancy design.
fn friedman(n_rows: usize, n_inputs: usize) -> Dataset {
    let design = |row: usize, input: usize| {
        let step = (0.5 + (input as f64 + 2.0).sqrt() * 1.37).fract();
        (step * (row + 1) as f64).fract()
    };
    let mut columns: Vec<Column> = (0..n_inputs)
        .map(|input| {
            Column::numeric(
                format!("x{input}"),
                (0..n_rows).map(|row| design(row, input)).collect(),
            )
        })
        .collect();
    let target = (0..n_rows).map(|row| {
        let x = |input: usize| design(row, input);
        let noise = (design(row, 50) + design(row, 51) + design(row, 52) - 1.5) * 2.0;
        10.0 * (std::f64::consts::PI * x(0) * x(1)).sin()
            + 20.0 * (x(2) - 0.5).powi(2)
            + 10.0 * x(3)
            + 5.0 * x(4)
            + noise
    });
    columns.push(Column::numeric("y", target.collect()));
    let table = Table::new(columns).expect("the design is finite");
    Dataset::from_table(
        &table,
        &Roles {
            target: "y".to_owned(),
            ..Roles::default()
        },
    )
    .expect("the roles are there")
}

/// Minimum seconds of one call.
fn min_seconds(now: fn() -> f64, repeats: usize, mut work: impl FnMut()) -> f64 {
    let mut seconds = f64::INFINITY;
    for _ in 0..repeats {
        let start = now();
        work();
        seconds = seconds.min(now() - start);
    }
    seconds
}

fn clock_seconds() -> f64 {
    static START: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed().as_secs_f64()
}

/// CPU time of this thread on Linux, wall-clock time elsewhere.
fn cpu_seconds() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = schedstat.and_then(|text| {
        text.split_whitespace()
            .next()
            .and_then(|field| field.parse::<f64>().ok())
    });
    nanoseconds.map_or_else(clock_seconds, |nanoseconds| 1e-9 * nanoseconds)
}
