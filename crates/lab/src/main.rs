//! `terse-lab`: see the library's description.

use std::process::ExitCode;

fn main() -> ExitCode {
    match terse_lab::command::run(std::env::args().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("terse-lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}
