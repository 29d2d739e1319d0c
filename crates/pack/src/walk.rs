//! The operands, one after the other.

use crate::listing::Listing;
use crate::operand;
use crate::options::{Mode, Options};
use crate::report::{Report, write_error};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Carries out the options; returns the exit code.
pub(crate) fn walk(options: &Options) -> ExitCode {
    let mut run = Run { options, report: Report::new(options), listing: Listing::default() };
    let operands = match &options.input {
        Some(input) => vec![input.as_os_str()],
        None if options.files.is_empty() => vec![OsStr::new("-")],
        None => options.files.iter().map(|file| file.as_os_str()).collect(),
    };
    for operand in operands {
        if run.report.is_unread() {
            break;
        }
        if operand == "-" && options.input.is_none() {
            run.standard_input();
        } else {
            operand::file(&mut run, Path::new(operand));
        }
    }
    if let Some(remark) = options.opened.as_ref().and_then(|opened| opened.remark()) {
        run.report.warning(remark);
    }
    if let Err(error) = run.listing.end(options) {
        run.report.error(crate::fault::plain(&error));
    }
    run.report.exit_code()
}

/// State that operands share.
pub(crate) struct Run<'a> {
    pub(crate) options: &'a Options,
    pub(crate) report: Report,
    pub(crate) listing: Listing,
}

impl Run<'_> {
    fn standard_input(&mut self) {
        if self.options.mode != Mode::Compress && !self.options.force && io::stdin().is_terminal() {
            self.report.error("compressed data not read from a terminal. Use -f to force decompression.");
            self.hint();
            return;
        }
        if self.options.output.is_none() && !self.may_write_to_stdout() {
            return;
        }
        match standard(rustix::stdio::stdin()) {
            Ok(source) => operand::standard_input(self, source),
            Err(error) => self.report.error(format_args!("stdin: {}", crate::fault::plain(&error))),
        }
    }

    /// Whether output may go to standard output; if not, that was reported.
    pub(crate) fn may_write_to_stdout(&mut self) -> bool {
        let fits = self.options.mode != Mode::Compress || self.options.force || !io::stdout().is_terminal();
        if !fits {
            self.report.error("compressed data not written to a terminal. Use -f to force compression.");
            self.hint();
        }
        fits
    }

    fn hint(&self) {
        let program = self.options.program;
        write_error(&format!("{program}: For help, type: terse {program} -h\n"));
    }

    /// The files in a folder, and those in folders in it.
    pub(crate) fn folder(&mut self, folder: &Path) {
        let mut names: Vec<PathBuf> = match std::fs::read_dir(folder) {
            Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
            Err(error) => {
                self.report.error(format_args!("{}: {}", folder.display(), crate::fault::plain(&error)));
                return;
            }
        };
        names.sort();
        for name in names {
            if self.report.is_unread() {
                return;
            }
            operand::file(self, &name);
        }
    }
}

/// A standard descriptor, without Rust's buffer.
pub(crate) fn standard(descriptor: BorrowedFd<'_>) -> io::Result<File> {
    Ok(File::from(descriptor.try_clone_to_owned()?))
}
