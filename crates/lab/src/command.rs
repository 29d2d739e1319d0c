//! The sub-commands.

use crate::arguments::Arguments;
use crate::origin::{Options, Origin};
use anyhow::{Result, bail};
use std::net::SocketAddr;

/// Runs a command line, without the program's name; true if it went well.
pub fn run(mut words: impl Iterator<Item = String>) -> Result<bool> {
    let name = words.next().unwrap_or_default();
    let arguments = Arguments::new(words);
    match name.as_str() {
        "origin" => origin(arguments),
        "-h" | "--help" | "help" => {
            print!("{HELP}");
            Ok(true)
        }
        other => bail!("{other:?} is no sub-command\n{HELP}"),
    }
}

fn origin(mut arguments: Arguments) -> Result<bool> {
    let mut options = Options { listen: Vec::new(), seed: 1, core: None };
    while let Some(address) = arguments.value::<SocketAddr>("--listen")? {
        options.listen.push(address);
    }
    if let Some(seed) = arguments.value("--seed")? {
        options.seed = seed;
    }
    options.core = arguments.value("--core")?;
    arguments.end()?;
    if options.listen.is_empty() {
        options.listen.push(SocketAddr::from(([127, 0, 0, 1], 9080)));
    }
    let origin = Origin::start(&options)?;
    for address in origin.addresses() {
        println!("listening on http://{address}/");
    }
    origin.wait();
    Ok(true)
}

const HELP: &str = "usage: terse-lab origin [--listen ADDRESS:PORT]... [--seed N] [--core N]
";
