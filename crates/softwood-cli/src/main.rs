//! The `softwood` program: parse, run, exit code.

mod args;
mod commands;
mod plot;
mod print;
mod progress;

use std::any::Any;
use std::io::{ErrorKind, Write};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::process::ExitCode;

use clap::Parser;

/// Our own failure.
const INTERNAL_ERROR: u8 = 1;
/// What the user can mend.
const USERS: u8 = 2;
/// Ended by Ctrl-C, as shells count it.
pub(crate) const STOPPED: u8 = 130;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    std::panic::set_hook(Box::new(report_panic));
    let outcome = catch_unwind(AssertUnwindSafe(|| commands::run(&cli.command)));
    ExitCode::from(match outcome {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => explain(&error),
        Err(_) => INTERNAL_ERROR,
    })
}

/// Says what went wrong in one message; returns whose mistake it was.
fn explain(error: &anyhow::Error) -> u8 {
    let closed = |cause: &(dyn std::error::Error + 'static)| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    };
    if error.chain().any(closed) {
        return 0;
    }
    match error.downcast_ref::<softwood::Error>() {
        Some(softwood::Error::Cancelled) => {
            say("stopped; nothing was written");
            STOPPED
        }
        found => {
            say(&format!("error: {error:#}"));
            if found.is_some_and(softwood::Error::is_user_error) {
                USERS
            } else {
                INTERNAL_ERROR
            }
        }
    }
}

/// A panic is our mistake: one message, no backtrace.
fn report_panic(panic: &PanicHookInfo<'_>) {
    let place = panic
        .location()
        .map_or_else(String::new, |at| format!(" at {at}"));
    let what = message_of(panic.payload());
    say(&format!(
        "error: a fault of softwood itself{place}: {what}; please report it"
    ));
}

fn message_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// One line on standard error; a closed one is nobody's mistake.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
