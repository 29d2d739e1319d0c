//! An operand: its checks, the name of its output, and its processing.

use crate::draft::{Attributes, Draft};
use crate::engine;
use crate::fault::{Fault, plain};
use crate::form::Form;
use crate::header::Header;
use crate::line::{Plan, Totals};
use crate::options::{Mode, Options};
use crate::progress::Progress;
use crate::report::{percent, write_error};
use crate::stream;
use crate::suffix;
use crate::unpack::{self, Input, Unpacked};
use crate::walk::{Run, standard};
use rustix::fs::OFlags;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, ErrorKind, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Processes standard input, to standard output unless `-o` names a file.
pub(crate) fn standard_input(run: &mut Run<'_>, file: File) {
    let metadata = file.metadata().ok().filter(Metadata::is_file);
    let operand = Operand { name: PathBuf::from("stdin"), is_stdin: true, file, metadata, made: PathBuf::from("stdout") };
    operand.work(run, None);
}

/// Processes a named file.
pub(crate) fn file(run: &mut Run<'_>, name: &Path) {
    let (name, file) = match open(name, run.options) {
        Ok(found) => found,
        Err((name, error)) => return run.report.error(format_args!("{}: {}", name.display(), plain(&error))),
    };
    let shown = name.display();
    let metadata = match file.metadata() {
        Ok(metadata) => metadata,
        Err(error) => return run.report.error(format_args!("{shown}: {}", plain(&error))),
    };
    if metadata.is_dir() {
        if run.options.recursive {
            return run.folder(&name);
        }
        return run.report.warning(format_args!("{shown} is a directory -- ignored"));
    }
    let options = run.options;
    let is_in_place = !options.to_stdout && options.output.is_none() && matches!(options.mode, Mode::Compress | Mode::Decompress);
    if is_in_place && let Some(reason) = objection(&metadata, options) {
        return run.report.warning(format_args!("{shown} {reason}"));
    }
    let own = options.suffix.as_deref();
    let mut promised = None;
    let target = match options.mode {
        Mode::Compress => {
            if options.output.is_none()
                && !options.force
                && !options.to_stdout
                && let Some(suffix) = suffix::present(&name, own)
            {
                if !options.recursive {
                    run.report.note(format_args!("{shown} already has {} suffix -- unchanged", suffix.display()));
                }
                return;
            }
            Some(suffix::added(&name, options.written_form(), own))
        }
        _ => match suffix::stripped(&name, own) {
            Some((stripped, form)) => {
                promised = form;
                Some(stripped)
            }
            None => None,
        },
    };
    let target = if is_in_place { target } else { None };
    if is_in_place && target.is_none() {
        if !options.recursive {
            run.report.warning(format_args!("{shown}: unknown suffix -- ignored"));
        }
        return;
    }
    if options.to_stdout && !run.may_write_to_stdout() {
        return;
    }
    let operand = Operand { name, is_stdin: false, file, metadata: Some(metadata), made: PathBuf::from("stdout") };
    operand.work(run, target.map(|target| Target { name: target, promised }).or(Some(Target { name: PathBuf::new(), promised })));
}

/// Opens a file, or, to decompress, one whose name has a suffix after this name. An error comes with the name of the
/// missing file.
fn open(name: &Path, options: &Options) -> Result<(PathBuf, File), (PathBuf, io::Error)> {
    let follows = options.to_stdout || options.force || options.output.is_some() || options.mode != Mode::Compress;
    // A pipe without a writer must not block before it is refused.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
    let try_open = |name: &Path| rustix::fs::open(name, flags, rustix::fs::Mode::empty()).map(File::from);
    let error = match try_open(name) {
        Ok(file) => return Ok((name.to_owned(), file)),
        Err(error) => io::Error::from(error),
    };
    if error.kind() == ErrorKind::NotFound && options.mode != Mode::Compress && suffix::present(name, None).is_none() {
        for form in Form::ALL {
            let longer = suffix::added(name, form, options.suffix.as_deref());
            if let Ok(file) = try_open(&longer) {
                return Ok((longer, file));
            }
        }
        return Err((suffix::added(name, options.form.unwrap_or(Form::Gzip), options.suffix.as_deref()), error));
    }
    Err((name.to_owned(), error))
}

/// Reason why a file is not replaced.
fn objection(metadata: &Metadata, options: &Options) -> Option<String> {
    if !metadata.is_file() {
        return Some("is not a directory or a regular file - ignored".into());
    }
    if options.force {
        return None;
    }
    let special = [(0o4000, "set-user-ID"), (0o2000, "set-group-ID")];
    if let Some((_, what)) = special.iter().find(|(bit, _)| metadata.mode() & bit != 0) {
        return Some(format!("is {what} on execution - ignored"));
    }
    if metadata.mode() & 0o1000 != 0 {
        return Some("has the sticky bit set - file ignored".into());
    }
    match metadata.nlink() - 1.min(metadata.nlink()) {
        0 => None,
        others => (!options.keep && options.input.is_none())
            .then(|| format!("has {others} other link{} -- file ignored", if others == 1 { "" } else { "s" })),
    }
}

/// An input.
struct Operand {
    name: PathBuf,
    is_stdin: bool,
    file: File,
    /// Metadata of a regular file.
    metadata: Option<Metadata>,
    /// Path of the output.
    made: PathBuf,
}

/// Destination of the output.
struct Target {
    /// Path of the file that is made; empty: none.
    name: PathBuf,
    /// Format of the suffix.
    promised: Option<Form>,
}

/// Outcome of an operand.
struct Outcome {
    taken: u64,
    given: u64,
    /// Bytes of the compressed side that are no data: gzip's head and tail.
    frame: u64,
    /// Head of the input, when decompressing.
    header: Option<Header>,
    has_garbage: bool,
}

impl Operand {
    fn work(mut self, run: &mut Run<'_>, target: Option<Target>) {
        if let Err(fault) = self.try_work(run, target) {
            if fault.is_broken_pipe() {
                run.report.unread();
            } else {
                let name = if matches!(fault, Fault::Write(_)) { &self.made } else { &self.name };
                run.report.error(format_args!("{}: {fault}", name.display()));
            }
        }
    }

    fn try_work(&mut self, run: &mut Run<'_>, target: Option<Target>) -> Result<(), Fault> {
        let options = run.options;
        let promised = target.as_ref().and_then(|target| target.promised);
        match options.mode {
            Mode::List => {
                let (form, unpacked, taken) = self.read(options, promised, &mut io::sink())?;
                let listed = run.listing.add(options, &self.name, self.is_stdin, self.metadata.as_ref(), form, &unpacked, taken);
                self.mind_garbage(run, unpacked.has_garbage);
                return listed.map_err(Fault::Write);
            }
            Mode::Test => {
                let (_, unpacked, _) = self.read(options, promised, &mut io::sink())?;
                if options.verbose {
                    run.report.remark(format_args!("{}:\t OK", self.name.display()));
                }
                self.mind_garbage(run, unpacked.has_garbage);
                return Ok(());
            }
            Mode::Compress | Mode::Decompress => {}
        }
        let made = options.output.clone().or(target.map(|target| target.name).filter(|name| !name.as_os_str().is_empty()));
        let Some(made) = made else {
            let mut sink = standard(rustix::stdio::stdout()).map_err(Fault::Write)?;
            let outcome = self.transform(options, promised, &mut sink)?;
            self.tell(run, &outcome, None);
            self.mind_garbage(run, outcome.has_garbage);
            return Ok(());
        };
        self.make(run, promised, made)
    }

    /// Writes the output to a file.
    fn make(&mut self, run: &mut Run<'_>, promised: Option<Form>, mut made: PathBuf) -> Result<(), Fault> {
        let options = run.options;
        let mut overwrites = options.force;
        // The name in the head, when it is to be restored, must be known before a name is taken; so the head is read
        // first.
        let restores = options.mode == Mode::Decompress && options.names == Some(true) && options.output.is_none();
        if restores && let Some(name) = self.stored_name()? {
            made = made.with_file_name(name);
        }
        if !overwrites && made.symlink_metadata().is_ok() {
            if !agrees(run, &made) {
                run.report.warned();
                return Ok(());
            }
            overwrites = true;
        }
        self.made.clone_from(&made);
        let mut draft = Draft::new(&made).map_err(Fault::Write)?;
        let outcome = self.transform(options, promised, draft.file())?;
        let attributes = self.metadata.as_ref().map(Attributes::of);
        let time = outcome.header.as_ref().map_or(0, |header| header.time);
        let attributes = match attributes {
            Some(attributes) if restores && time != 0 => Some(attributes.with_time(time)),
            other => other,
        };
        draft.publish(attributes.as_ref(), overwrites).map_err(Fault::Write)?;
        self.tell(run, &outcome, Some(&made));
        self.mind_garbage(run, outcome.has_garbage);
        let stays = options.keep || self.is_stdin || options.input.is_some() || options.output.is_some();
        if !stays && let Err(error) = std::fs::remove_file(&self.name) {
            run.report.warning(format_args!("{}: {}", self.name.display(), plain(&error)));
        }
        Ok(())
    }

    /// Compresses or decompresses.
    fn transform(&mut self, options: &Options, promised: Option<Form>, sink: &mut File) -> Result<Outcome, Fault> {
        if options.mode == Mode::Compress {
            let form = options.written_form();
            let opened = options.opened.as_ref().map(|opened| opened.engine);
            let engine = opened.or(options.engine).unwrap_or_else(|| engine::of(form, options.written_level()));
            let input_bytes = self.metadata.as_ref().map(Metadata::len);
            let plan = Plan { engine, level: options.written_level(), workers: options.workers(), input_bytes };
            let header = self.header(options);
            let progress = self.progress(options);
            let totals = stream::compress(&mut self.file, sink, &plan, &header, &progress)?;
            let Totals { taken, given, frame, .. } = totals;
            return Ok(Outcome { taken, given, frame, header: None, has_garbage: false });
        }
        let (_, unpacked, taken) = self.read(options, promised, sink)?;
        let Unpacked { bytes, frame, header, has_garbage, .. } = unpacked;
        Ok(Outcome { taken, given: bytes, frame, header: Some(header), has_garbage })
    }

    /// Decompresses; returns the format, the outcome, and the number of bytes read.
    fn read(&mut self, options: &Options, promised: Option<Form>, sink: &mut dyn Write) -> Result<(Form, Unpacked, u64), Fault> {
        let progress = self.progress(options);
        let mut input = Input::new(&mut self.file).with_progress(&progress);
        let wanted = options.form.or(promised.filter(|form| *form == Form::Brotli));
        // Passes an input that is no member through, like cat.
        let passes = options.force && options.to_stdout && options.mode == Mode::Decompress;
        match unpack::detect(&mut input, wanted) {
            Ok(form) if passes => {
                let mut unpacked = unpack::members(form, &mut input, sink)?;
                unpacked.bytes += copy(&mut input, sink)?;
                Ok((form, unpacked, input.taken()))
            }
            Ok(form) => {
                let unpacked = unpack::unpack(form, &mut input, sink)?;
                Ok((form, unpacked, input.taken()))
            }
            Err(Fault::Format(_) | Fault::End) if passes => {
                let bytes = copy(&mut input, sink)?;
                Ok((Form::Gzip, Unpacked { bytes, ..Unpacked::default() }, bytes))
            }
            Err(fault) => Err(fault),
        }
    }

    fn progress(&self, options: &Options) -> Progress {
        Progress::new(&self.name.to_string_lossy(), self.metadata.as_ref().map(Metadata::len), options.quiet)
    }

    /// Head of the output: name and time unless `-n` is given.
    fn header(&self, options: &Options) -> Header {
        let Some(metadata) = self.metadata.as_ref().filter(|_| options.names != Some(false)) else {
            return Header::default();
        };
        let name = self.name.file_name().filter(|_| !self.is_stdin).map(|name| name.as_bytes().to_vec());
        Header { name, time: u32::try_from(metadata.mtime()).unwrap_or(0), ..Header::default() }
    }

    /// Name in the head, if it can be a file's in the same folder. Leaves the file at its beginning.
    ///
    /// # Errors
    /// A name that is too long for a file. Other flaws of the head are found again when it is read for its body.
    fn stored_name(&mut self) -> Result<Option<PathBuf>, Fault> {
        use std::io::Seek;
        let header = {
            let mut input = Input::new(&mut self.file);
            let is_gzip = unpack::detect(&mut input, Some(Form::Gzip)).is_ok();
            is_gzip.then(|| Header::read(&mut input).ok()).flatten()
        };
        self.file.rewind().map_err(Fault::Read)?;
        let Some(header) = header else { return Ok(None) };
        if header.has_long_name {
            return Err(Fault::LongName);
        }
        let name = header.name.unwrap_or_default();
        let last = name.rsplit(|&byte| byte == b'/').next().filter(|last| !matches!(*last, b"" | b"." | b".."));
        Ok(last.map(|last| PathBuf::from(std::ffi::OsStr::from_bytes(last))))
    }

    fn mind_garbage(&self, run: &mut Run<'_>, has_garbage: bool) {
        if has_garbage {
            run.report.warning(format_args!("{}: decompression OK, trailing garbage ignored", self.name.display()));
        }
    }

    /// Prints the ratio and the new name, with `-v`.
    fn tell(&self, run: &Run<'_>, outcome: &Outcome, made: Option<&Path>) {
        if !run.options.verbose {
            return;
        }
        let (small, large) = match run.options.mode {
            Mode::Compress => (outcome.given, outcome.taken),
            _ => (outcome.taken, outcome.given),
        };
        let ratio = percent(i128::from(large) - i128::from(small) + i128::from(outcome.frame), large);
        let ends = match made {
            Some(made) => {
                let stays = run.options.keep || self.is_stdin || run.options.input.is_some() || run.options.output.is_some();
                format!(" -- {} {}", if stays { "created" } else { "replaced with" }, made.display())
            }
            None => String::new(),
        };
        run.report.remark(format_args!("{}:\t{ratio}{ends}", self.name.display()));
    }
}

/// Asks whether a file may be overwritten, if there is a terminal to ask.
fn agrees(run: &Run<'_>, made: &Path) -> bool {
    let mut text = format!("{}: {} already exists;", run.options.program, made.display());
    let mut answer = String::new();
    if io::stdin().is_terminal() {
        text += " do you wish to overwrite (y or n)? ";
        write_error(&text);
        let read = io::stdin().lock().read_line(&mut answer);
        if read.is_ok() && answer.trim_start().starts_with(['y', 'Y']) {
            return true;
        }
        text.clear();
    }
    write_error(&format!("{text}\tnot overwritten\n"));
    false
}

/// Copies the rest of the input; returns the number of bytes.
fn copy(input: &mut Input<'_>, sink: &mut dyn Write) -> Result<u64, Fault> {
    let begin = input.taken();
    loop {
        let bytes = input.fill()?;
        if bytes.is_empty() {
            return Ok(input.taken() - begin);
        }
        sink.write_all(bytes).map_err(Fault::Write)?;
        let length = bytes.len();
        input.consume(length);
    }
}
