//! `terse top`: a running process in a terminal, by the API of its console.
//!
//! ```text
//! keys ──> State ──> view::draw ──> terminal
//!            ^  └──> an order to servers ──> Console
//!            └── answers of the console, every two seconds <── Console (a thread)
//! ```
//!
//! Invariants:
//! * A request of the console never holds keys up: it is made on a thread of its own.
//! * What comes from the network has no control characters when it is drawn.
//! * The terminal is as it was, however the program ends.

mod api;
mod plain;
mod state;
mod terminal;
mod view;

use api::Console;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// Shows a process until the user leaves, or once with `--once` or if the output is no terminal. Returns 0, 1 where the
/// console does not answer, and 2 where the arguments are wrong.
pub fn run(words: impl Iterator<Item = String>) -> ExitCode {
    let (mut once, mut url) = (false, None);
    for word in words {
        match word.as_str() {
            "--once" => once = true,
            "-h" | "--help" => {
                return print(&format!("{USAGE}\n"));
            }
            word if word.starts_with('-') => return failure(2, &format!("{word}: unknown option\n{USAGE}")),
            _ if url.is_some() => return failure(2, &format!("expects one URL\n{USAGE}")),
            _ => url = Some(word),
        }
    }
    let url = url.or_else(|| std::env::var("TERSE_CONSOLE").ok());
    let console = match Console::new(url.as_deref().unwrap_or(api::USUAL)) {
        Ok(console) => console,
        Err(reason) => return failure(2, &reason.to_string()),
    };
    let shown = match once || !std::io::stdout().is_terminal() {
        true => console.look().map(|seen| print(&plain::text(&seen))),
        false => terminal::show(console).map(|()| ExitCode::SUCCESS),
    };
    shown.unwrap_or_else(|reason| failure(1, &reason.to_string()))
}

fn print(text: &str) -> ExitCode {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A reader that has seen enough is no failure.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => failure(1, &format!("the output: {error}")),
        _ => ExitCode::SUCCESS,
    }
}

fn failure(code: u8, reason: &str) -> ExitCode {
    eprintln!("terse top: {reason}");
    ExitCode::from(code)
}

const USAGE: &str =
    "usage: terse top [--once] [http://[USER:PASSWORD@]HOST:PORT/]   (without a URL: $TERSE_CONSOLE, or http://127.0.0.1:8404/)";
