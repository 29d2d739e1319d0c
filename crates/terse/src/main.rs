//! `terse`: see the library beside this file.

use std::process::ExitCode;

fn main() -> ExitCode {
    terse::life::live(std::env::args_os())
}
