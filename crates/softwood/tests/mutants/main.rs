//! Mutated model files with a right checksum: each is refused, or loads and answers every question
//! with finite numbers or an error. A test binary of its own, since its allocator counts.
//!
//! The long run is
//! `SOFTWOOD_MUTANTS=1000000 cargo test --release -p softwood --test mutants -- --ignored --nocapture`;
//! `SOFTWOOD_MUTANT_FILE=PATH` writes the first of its mutants to a file.

// a failed unwrap fails the test, in helper functions too
#![allow(clippy::unwrap_used)]

mod agents;
mod allocator;
mod corpus;
mod engine;
mod questions;

use std::any::Any;
use std::cell::RefCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use corpus::files;
use engine::{ModelParts, Random};
use questions::ask_all;
use softwood::{Error, Pool, from_bytes};

/// Mutants in `make test`.
const N_QUICK: u64 = 10_000;
/// Seeds that one thread takes at once.
const CHUNK: u64 = 100;
/// Failures that are shown.
const MAX_SHOWN: usize = 60;
/// Processor time after which a mutant counts as hanging, in the long run.
const MAX_TIME: Duration = Duration::from_secs(10);

static FILES: LazyLock<Vec<(String, ModelParts)>> = LazyLock::new(files);

thread_local! {
    /// Message and place of the last panic of this thread.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What a range of seeds gave.
#[derive(Debug, Default)]
struct Outcome {
    n_loaded: u64,
    failures: Vec<String>,
    /// Processor time of the slowest mutant.
    slowest: Duration,
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.n_loaded += other.n_loaded;
        self.failures.extend(other.failures);
        self.slowest = self.slowest.max(other.slowest);
    }
}

/// Keeps the messages of panics, which are caught, instead of printing them.
fn keep_panic_messages() {
    set_hook(Box::new(|info| {
        let text = |payload: &dyn Any| {
            let text = payload
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned());
            text.or_else(|| payload.downcast_ref::<String>().cloned())
        };
        let message = text(info.payload()).unwrap_or_default();
        let place = info
            .location()
            .map_or_else(String::new, ToString::to_string);
        PANIC.with_borrow_mut(|last| *last = format!("{message} at {place}"));
    }));
}

/// Writes the mutant of a seed to a file.
fn write_mutant(seed: u64, path: &str) {
    let mut random = Random::new(seed);
    let (name, parts) = &FILES[random.below(FILES.len())];
    std::fs::write(path, parts.mutant(&mut random)).unwrap();
    eprintln!("seed {seed}: a mutant of {name}");
}

/// Loads the mutant of a seed and asks it; `Ok(true)` if it could be loaded.
fn try_mutant(seed: u64, pool: &Pool) -> Result<bool, String> {
    let mut random = Random::new(seed);
    let (name, parts) = &FILES[random.below(FILES.len())];
    let tried = catch_unwind(AssertUnwindSafe(|| {
        match from_bytes(&parts.mutant(&mut random)) {
            Err(Error::Format(_) | Error::Memory { .. }) => Ok(false),
            Err(error) => Err(format!("not a format error: {error}")),
            Ok(model) => ask_all(&*model, pool).map(|()| true),
        }
    }));
    let problem = match tried {
        Ok(Ok(is_loaded)) => return Ok(is_loaded),
        Ok(Err(problem)) => problem,
        Err(_) => PANIC.with_borrow(|message| format!("panic: {message}")),
    };
    Err(format!("seed {seed}, {name}: {problem}"))
}

/// Processor time of this thread on Linux, which other processes do not change; zero elsewhere.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text
        .split_whitespace()
        .next()
        .and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

fn try_all(seeds: Range<u64>, pool: &Pool) -> Outcome {
    let mut outcome = Outcome::default();
    for seed in seeds {
        allocator::set_seed(seed);
        let start = processor_time();
        match try_mutant(seed, pool) {
            Ok(is_loaded) => outcome.n_loaded += u64::from(is_loaded),
            Err(failure) => outcome.failures.push(failure),
        }
        outcome.slowest = outcome.slowest.max(processor_time().saturating_sub(start));
    }
    outcome
}

/// Tries all seeds on some threads. `report` is called after each chunk with the number of seeds so
/// far.
fn run(seeds: Range<u64>, n_threads: usize, report: impl Fn(u64) + Sync) -> Outcome {
    LazyLock::force(&FILES);
    keep_panic_messages();
    let (next, done) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let work = || {
        let pool = Pool::new(1).unwrap();
        let mut outcome = Outcome::default();
        loop {
            let first = next.fetch_add(CHUNK, Ordering::Relaxed);
            if first >= seeds.end {
                return outcome;
            }
            let chunk = first..(first + CHUNK).min(seeds.end);
            let n = chunk.end - chunk.start;
            outcome.add(try_all(chunk, &pool));
            report(done.fetch_add(n, Ordering::Relaxed) + n);
        }
    };
    let mut all = Outcome::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            all.add(thread.join().unwrap());
        }
    });
    drop(take_hook());
    all
}

fn shown(failures: &[String]) -> String {
    let shown: Vec<&str> = failures
        .iter()
        .take(MAX_SHOWN)
        .map(String::as_str)
        .collect();
    format!("{} failures\n{}", failures.len(), shown.join("\n"))
}

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn mutated_models_are_refused_or_answer_every_question() {
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let outcome = run(0..N_QUICK, n_threads, |_| {});
    assert!(outcome.failures.is_empty(), "{}", shown(&outcome.failures));
    // the mutations are of use only if many mutants pass the checks
    assert!(outcome.n_loaded > N_QUICK / 20, "{}", outcome.n_loaded);
}

/// Prints a line if a seed takes long on the clock, since a hanging mutant would end no chunk.
fn watch(is_done: &AtomicBool) {
    let mut reported = None;
    while !is_done.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(500));
        for (seed, elapsed) in allocator::running() {
            if elapsed > MAX_TIME && reported != Some(seed) {
                reported = Some(seed);
                eprintln!("seed {seed} has been running for {MAX_TIME:?}");
            }
        }
    }
}

#[test]
#[ignore = "minutes: SOFTWOOD_MUTANTS mutants (1000000) from seed SOFTWOOD_MUTANTS_FROM (0) on"]
fn many_mutated_models_are_refused_or_answer_every_question() {
    let first = setting("SOFTWOOD_MUTANTS_FROM", 0);
    let n = setting("SOFTWOOD_MUTANTS", 1_000_000);
    let default_threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let n_threads = setting("SOFTWOOD_MUTANTS_THREADS", default_threads) as usize;
    if let Ok(path) = std::env::var("SOFTWOOD_MUTANT_FILE") {
        write_mutant(first, &path);
    }
    let start = Instant::now();
    let report = |done: u64| {
        if done.is_multiple_of(20_000) {
            eprintln!("{done} mutants, {:.0} s", start.elapsed().as_secs_f64());
        }
    };
    let is_done = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| watch(&is_done));
        let outcome = run(first..first + n, n_threads, report);
        is_done.store(true, Ordering::Relaxed);
        outcome
    });
    eprintln!(
        "{n} mutants in {:.0} s: {} loaded and answered, {} failed; slowest {:.2} processor seconds, \
         largest allocation {} bytes",
        start.elapsed().as_secs_f64(),
        outcome.n_loaded,
        outcome.failures.len(),
        outcome.slowest.as_secs_f64(),
        allocator::largest(),
    );
    assert!(outcome.failures.is_empty(), "{}", shown(&outcome.failures));
    assert!(outcome.slowest <= MAX_TIME, "{:?}", outcome.slowest);
}
