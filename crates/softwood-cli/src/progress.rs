//! Progress bars on a terminal, and Ctrl-C: the program's side of `Watch`.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use softwood::{Progress, Watch};

/// Set by the first Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);

/// One bar on standard error; invisible where that is not a terminal.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    stage: Mutex<String>,
}

impl Bar {
    /// Shows progress unless `quiet`, and takes over Ctrl-C: once asks to stop, twice ends the program.
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
        let style =
            ProgressStyle::with_template("{prefix:<18} {bar:28} {pos}/{len} {msg}  {eta} left");
        bar.set_style(style.expect("the template is fixed").progress_chars("━╸─"));
        Self {
            bar,
            stage: Mutex::default(),
        }
    }

    /// Takes the bar away; an error when Ctrl-C came too late for the fit to notice.
    pub(crate) fn finish(&self) -> softwood::Result<()> {
        self.bar.finish_and_clear();
        if STOP.load(Ordering::SeqCst) {
            Err(softwood::Error::Cancelled)
        } else {
            Ok(())
        }
    }

    /// A new stage starts a new count, so that the time left is that of the stage.
    fn enter(&self, stage: &str) {
        let Ok(mut current) = self.stage.lock() else {
            return;
        };
        if *current != stage {
            stage.clone_into(&mut current);
            self.bar.set_prefix(stage.to_owned());
            self.bar.set_position(0);
            self.bar.reset();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Bar {
    fn step(&self, progress: &Progress<'_>) -> ControlFlow<()> {
        if !self.bar.is_hidden() {
            self.enter(progress.stage);
            self.bar.set_length(progress.total as u64);
            self.bar.set_position(progress.done as u64);
            self.bar.set_message(describe(progress));
        }
        if STOP.load(Ordering::SeqCst) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

fn describe(progress: &Progress<'_>) -> String {
    let part = |name: &str, value: Option<f64>| {
        value.map_or_else(String::new, |value| format!("  {name} {value:.4}"))
    };
    part("ELBO", progress.elbo) + &part("held-out", progress.held_out)
}
