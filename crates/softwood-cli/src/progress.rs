//! Progress bar and Ctrl-C handling: the `Observer` of the program.

use std::ops::ControlFlow;
use std::sync::{LazyLock, Mutex};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use softwood::observer::{CancelToken, Event, Observer, Stop};
use softwood::store::atomic::remove_unfinished;
use softwood::{Error, Result};

use crate::print;

/// Cancelled by the first Ctrl-C.
static STOP: LazyLock<CancelToken> = LazyLock::new(CancelToken::new);

/// Name of the stage in which an evaluation counts its finished folds.
const FOLDS: &str = "folds";

/// A progress bar on standard error; hidden if standard error is not a terminal.
#[derive(Debug)]
pub(crate) struct Bar {
    line: ProgressBar,
    /// Name of the current stage.
    stage: Mutex<String>,
    /// Whether the bar counts folds, which run in parallel; the progress inside a fold is shown as
    /// text.
    counts_folds: bool,
}

impl Bar {
    /// A bar for one fit, hidden if `quiet`. Installs the Ctrl-C handler: the first Ctrl-C requests
    /// a stop, the second ends the program.
    pub(crate) fn start(quiet: bool) -> Self {
        // without our handler Ctrl-C ends the program at once, which is acceptable
        let _ = ctrlc::set_handler(|| {
            if is_stopped() {
                end_program();
            }
            STOP.cancel();
        });
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(8)
        };
        let bar = ProgressBar::with_draw_target(None, target);
        let bar = Self {
            line: bar,
            stage: Mutex::default(),
            counts_folds: false,
        };
        bar.set_template("{prefix} {bar:24} {pos}/{len}{msg}  {eta} left in this stage");
        bar
    }

    /// Like [`Bar::start`], for `n` fits that run in parallel.
    pub(crate) fn start_many(quiet: bool, n: usize) -> Self {
        let mut bar = Self::start(quiet);
        if n > 1 {
            bar.counts_folds = true;
            bar.set_template("{prefix} {bar:24} {pos}/{len}{msg}  {eta} left");
            bar.line.set_prefix(FOLDS);
            bar.line.set_length(n as u64);
        }
        bar
    }

    fn set_template(&self, template: &str) {
        let style = ProgressStyle::with_template(template).expect("the template is valid");
        self.line.set_style(style.progress_chars("━╸─"));
    }

    /// Removes the bar. Fails if Ctrl-C was pressed after the fit last checked for it.
    pub(crate) fn finish(&self) -> Result<()> {
        self.line.finish_and_clear();
        if is_stopped() {
            return Err(Error::Cancelled);
        }
        Ok(())
    }

    fn show(&self, event: &Event<'_>) {
        if !self.counts_folds {
            self.enter_stage(event.stage);
        }
        if !self.counts_folds || event.stage == FOLDS {
            self.line.set_length(event.total as u64);
            self.line.set_position(event.done as u64);
        }
        self.line.set_message(self.describe(event));
    }

    /// Restarts the bar if a new stage begins: the count and the remaining time are those of a
    /// stage.
    fn enter_stage(&self, stage: &str) {
        let Ok(mut current) = self.stage.lock() else {
            return;
        };
        if *current != stage {
            stage.clone_into(&mut current);
            self.line.set_prefix(stage.to_owned());
            self.line.reset();
        }
    }

    fn describe(&self, event: &Event<'_>) -> String {
        let part = |name: &str, value: Option<f64>| {
            value.map_or_else(String::new, |value| format!("  {name} {value:.4}"))
        };
        let stage = if self.counts_folds && event.stage != FOLDS {
            format!("  {} {}/{}", event.stage, event.done, event.total)
        } else {
            String::new()
        };
        stage + &part("ELBO", event.elbo) + &part("validation", event.held_out)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.line.finish_and_clear();
    }
}

impl Observer for Bar {
    fn on_event(&self, event: &Event<'_>) -> ControlFlow<Stop> {
        if !self.line.is_hidden() {
            self.show(event);
        }
        if is_stopped() {
            return ControlFlow::Break(Stop::Discard);
        }
        ControlFlow::Continue(())
    }

    fn cancel_tokens(&self) -> Vec<CancelToken> {
        vec![STOP.clone()]
    }
}

/// Makes Ctrl-C end the program at once, without partial files: for work that has no observer.
pub(crate) fn end_on_interrupt() {
    // without our handler Ctrl-C ends the program too, but may leave a temporary file
    let _ = ctrlc::set_handler(|| {
        print::to_stderr("stopped; nothing was written");
        end_program();
    });
}

/// Removes temporary files and ends the program with the exit code of Ctrl-C.
fn end_program() {
    remove_unfinished();
    std::process::exit(i32::from(crate::INTERRUPTED));
}

fn is_stopped() -> bool {
    STOP.is_cancelled()
}
