//! The `softwood` program: parses the arguments, runs the command and chooses the exit code.

mod args;
mod commands;
mod plot;
mod print;
mod progress;

use std::any::Any;
use std::borrow::Cow;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::process::ExitCode;

use clap::Parser;

/// Exit code of a failure of the program itself.
const INTERNAL_ERROR: u8 = 1;
/// Exit code of an error that the user can correct.
const USER_ERROR: u8 = 2;
/// Exit code after Ctrl-C: 128 plus the number of the signal.
pub(crate) const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return report_arguments(&error),
    };
    std::panic::set_hook(Box::new(report_panic));
    let outcome = catch_unwind(AssertUnwindSafe(|| commands::run(&cli.command)));
    ExitCode::from(match outcome {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => report_error(&error),
        Err(_) => INTERNAL_ERROR,
    })
}

/// Prints the message of clap about the arguments, or the help that they ask for. A message that
/// quotes control characters is printed without colours, with these characters escaped.
fn report_arguments(error: &clap::Error) -> ExitCode {
    let text = error.to_string();
    if let Cow::Owned(escaped) = print::escape::lines(&text) {
        for line in escaped.lines() {
            print::to_stderr(line);
        }
    } else {
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USER_ERROR))
}

/// Prints one message about the error and returns the exit code. A closed pipe is not an error.
fn report_error(error: &anyhow::Error) -> u8 {
    let is_closed_pipe = |cause: &(dyn std::error::Error + 'static)| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    };
    if error.chain().any(is_closed_pipe) {
        return 0;
    }
    match error.downcast_ref::<softwood::Error>() {
        Some(softwood::Error::Cancelled) => {
            let message = error.to_string();
            let is_plain = message == softwood::Error::Cancelled.to_string();
            print::to_stderr(if is_plain {
                "stopped; nothing was written"
            } else {
                &message
            });
            INTERRUPTED
        }
        found => {
            print::to_stderr(&format!("error: {error:#}"));
            if found.is_some_and(softwood::Error::is_user_error) {
                USER_ERROR
            } else {
                INTERNAL_ERROR
            }
        }
    }
}

/// Prints one message about a panic, which is a bug in this program, without a backtrace. A panic in
/// a reader of Arrow or Parquet data becomes an error about the file instead.
fn report_panic(panic: &PanicHookInfo<'_>) {
    if softwood_io::is_catching_panics() {
        return;
    }
    let place = panic
        .location()
        .map_or_else(String::new, |at| format!(" at {at}"));
    let what = message_of(panic.payload());
    print::to_stderr(&format!(
        "error: internal error{place}: {what}; please report this bug"
    ));
}

fn message_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
