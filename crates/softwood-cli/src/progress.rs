//! Progress bars on a terminal, and Ctrl-C: the program's side of `Observer`.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use softwood::{Error, Observer, Progress, Result};

/// Set by the first Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);

/// The stage in which an evaluation counts its finished folds.
const FOLDS: &str = "folds";

/// One bar on standard error; invisible where that is not a terminal.
#[derive(Debug)]
pub(crate) struct Bar {
    line: ProgressBar,
    /// The stage that the bar counts.
    stage: Mutex<String>,
    /// Folds that run side by side share the bar: it counts them, and tells of the epochs in words.
    counts_folds: bool,
}

impl Bar {
    /// Shows the epochs of one fit unless `quiet`, and takes over Ctrl-C: once asks to stop, twice ends the program.
    pub(crate) fn start(quiet: bool) -> Self {
        // a refused handler leaves the system's own, which ends the program at once: good enough
        let _ = ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::SeqCst) {
                std::process::exit(i32::from(crate::STOPPED));
            }
        });
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(8)
        };
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("{prefix} {bar:24} {pos}/{len}{msg}  {eta} left");
        bar.set_style(style.expect("the template is fixed").progress_chars("━╸─"));
        Self {
            line: bar,
            stage: Mutex::default(),
            counts_folds: false,
        }
    }

    /// As [`Bar::start`], for `n` fits side by side.
    pub(crate) fn start_many(quiet: bool, n: usize) -> Self {
        let mut bar = Self::start(quiet);
        if n > 1 {
            bar.counts_folds = true;
            bar.line.set_prefix(FOLDS);
            bar.line.set_length(n as u64);
        }
        bar
    }

    /// Takes the bar away; an error when Ctrl-C came too late for the fit to notice.
    pub(crate) fn finish(&self) -> Result<()> {
        self.line.finish_and_clear();
        if is_stopped() {
            return Err(Error::Cancelled);
        }
        Ok(())
    }

    fn show(&self, progress: &Progress<'_>) {
        if !self.counts_folds {
            self.enter(progress.stage);
        }
        if !self.counts_folds || progress.stage == FOLDS {
            self.line.set_length(progress.total as u64);
            self.line.set_position(progress.done as u64);
        }
        self.line.set_message(self.describe(progress));
    }

    /// A new stage starts a new count, so that the time left is that of the stage.
    fn enter(&self, stage: &str) {
        let Ok(mut current) = self.stage.lock() else {
            return;
        };
        if *current != stage {
            stage.clone_into(&mut current);
            self.line.set_prefix(stage.to_owned());
            self.line.reset();
        }
    }

    fn describe(&self, progress: &Progress<'_>) -> String {
        let part = |name: &str, value: Option<f64>| {
            value.map_or_else(String::new, |value| format!("  {name} {value:.4}"))
        };
        let stage = if self.counts_folds && progress.stage != FOLDS {
            format!("  {} {}/{}", progress.stage, progress.done, progress.total)
        } else {
            String::new()
        };
        stage + &part("ELBO", progress.elbo) + &part("held-out", progress.held_out)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.line.finish_and_clear();
    }
}

impl Observer for Bar {
    fn step(&self, progress: &Progress<'_>) -> ControlFlow<()> {
        if !self.line.is_hidden() {
            self.show(progress);
        }
        if is_stopped() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

fn is_stopped() -> bool {
    STOP.load(Ordering::SeqCst)
}
