//! `terse-lab`: see the library's description.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(keeper) = terse_lab::breakeven::keeper() {
        return keeper;
    }
    match terse_lab::command::run(std::env::args().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("terse-lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}
