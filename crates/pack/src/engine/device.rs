//! Pieces by engines beside the software: libraries with zlib's API, such as a card's driver, and GPUs. They are named
//! by an `engine` section's name, by a path, or as `cuda`.
//!
//! A piece goes the way of the proxy's bodies ([`terse_compress::offload`]): handed over, watched, judged, and coded by
//! software when the engine fails at it. The output is opened at its end, as libdeflate's streams are.
//!
//! Invariant: no piece is written that was not verified, at least by its checksum, whatever the section sets: a file is
//! kept longer than a response.

use super::{Coder, Engine, Piece, deflate};
use crate::fault::Fault;
use crate::form::Form;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};
use terse_compress::engine::{Source, Verify};
use terse_compress::offload::{Cause, Standing};
use terse_compress::{Coding, Compressor, Device, EngineId, EngineSettings, Level, Limit, Plan, Pool, Queue, Tuning, Workplace};
use terse_deflate::splice_streams;

/// Access to such engines.
pub trait Devices {
    /// The `engine` sections of the files of a configuration.
    ///
    /// # Errors
    /// The fault of the files.
    fn sections(&self, files: &[PathBuf]) -> Result<Vec<EngineSettings>, String>;

    /// Makes a device ready for jobs. To be called while one thread runs.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    fn open(&self, settings: &EngineSettings) -> Result<Arc<dyn Device>, String>;
}

/// An opened engine.
#[derive(Clone)]
pub struct Opened {
    queue: Arc<Queue>,
    /// Engine entry of this device. It lives as long as the program, which does one thing.
    pub(crate) engine: &'static Engine,
    /// Number of threads that keep it busy: one for each job that it may have, and one that reads and writes meanwhile.
    pub(crate) workers: usize,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.engine.name)
    }
}

/// Opens the engine of a name: a section's of those files, a library's path, or `cuda`.
///
/// # Errors
/// A sentence.
pub(crate) fn open(name: &OsStr, files: &[PathBuf], threads: usize, devices: &dyn Devices) -> Result<Opened, String> {
    let mut settings = find(name, files, devices)?;
    if settings.verify == Verify::None {
        settings.verify = Verify::Checksum;
    }
    let name = settings.name.clone();
    let problem = |reason: String| format!("engine {name}: {reason}");
    let device = devices.open(&settings).map_err(problem)?;
    let (workers, piece_bytes) = (settings.jobs() + 1, settings.largest.min(MAX_PIECE_BYTES));
    let queue = Queue::with_engines(threads, 0, workers, vec![(settings, device)]).map_err(|error| problem(error.to_string()))?;
    let queue = Arc::new(queue);
    wait_until_up(&queue);
    let place = Arc::new(Workplace {
        pool: Arc::new(Pool::new(Tuning::default())),
        queue: Some(queue.clone()),
        budget: Arc::new(Limit::new(usize::MAX)),
        in_place_ns: 0,
        meter: None,
        brake: None,
    });
    let make = move |level: u8| -> Result<Box<dyn Coder>, Fault> {
        let software = deflate::whole(level)?;
        Ok(Box::new(Pieces { place: place.clone(), level: Level(level.min(MAX_LEVEL)), software }))
    };
    let engine = Engine {
        name: name.to_string().leak(),
        form: Form::Gzip,
        about: "a library or a device",
        piece_bytes,
        make: Box::leak(Box::new(make)),
    };
    Ok(Opened { queue, engine: Box::leak(Box::new(engine)), workers })
}

impl Opened {
    /// Message for the user: the work done by software, and the reason.
    pub(crate) fn remark(&self) -> Option<String> {
        let lane = self.queue.engines().first()?;
        let (numbers, name) = (lane.numbers(), self.engine.name);
        let fallen: Vec<(Cause, u64)> =
            Cause::ALL.iter().map(|cause| (*cause, numbers.fallen(*cause))).filter(|(_, count)| *count > 0).collect();
        let all: u64 = fallen.iter().map(|(_, count)| count).sum();
        if all == 0 {
            return None;
        }
        let causes: Vec<String> = fallen.iter().map(|(cause, count)| format!("{} {count}", cause.word())).collect();
        let done = numbers.jobs.load(Relaxed);
        let trouble = lane.status().trouble.map(|trouble| format!(": {trouble}")).unwrap_or_default();
        Some(format!("engine {name}: software did {all} of {} pieces ({}){trouble}", all + done, causes.join(", ")))
    }
}

/// A line for each section of those files, in the form of [`super::list`].
pub(crate) fn list(files: &[PathBuf], devices: &dyn Devices) -> Result<String, String> {
    let line = |s: &EngineSettings| format!("{:<12} {:<7} {}, verified: {}\n", s.name, "gzip", s.source, s.verify.word());
    Ok(devices.sections(files)?.iter().map(line).collect())
}

fn find(name: &OsStr, files: &[PathBuf], devices: &dyn Devices) -> Result<EngineSettings, String> {
    let sections = devices.sections(files)?;
    if let Some(section) = sections.iter().find(|section| OsStr::new(&*section.name) == name) {
        return Ok(section.clone());
    }
    let source = match Source::of(name) {
        Source::Library(path) if path.components().count() > 1 => {
            Some(Source::Library(std::path::absolute(&path).map_err(|error| error.to_string())?))
        }
        source @ Source::Cuda(_) => Some(source),
        Source::Library(_) | Source::Unsaid => None,
    };
    if let Some(source) = source {
        let name = name.display().to_string().into();
        let (verify, deadline) = (Verify::Full, FILE_DEADLINE);
        return Ok(EngineSettings { name, source, verify, deadline, ..EngineSettings::default() });
    }
    let known: Vec<&str> = sections.iter().map(|section| &*section.name).collect();
    let known = if known.is_empty() { String::new() } else { format!(", {}", known.join(", ")) };
    Err(format!(
        "no engine '{}'; there are {}{known}, those of --config, a GPU as 'cuda' or 'cuda:N', and libraries by their paths",
        name.display(),
        super::names()
    ))
}

/// Waits for the engine; one that does not pass its first probe in this time may come up later.
fn wait_until_up(queue: &Queue) {
    let begun = Instant::now();
    let is_up = || queue.engines().iter().all(|lane| lane.standing() == Standing::Up);
    while !is_up() && begun.elapsed() < START_PATIENCE {
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

struct Pieces {
    place: Arc<Workplace>,
    level: Level,
    /// Coder for streams that cannot be opened.
    software: Box<dyn Coder>,
}

impl Coder for Pieces {
    fn code(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let start = out.len();
        let plan = Plan { coding: Coding::RawDeflate, level: self.level };
        let mut coder = Compressor::new(plan, Some(piece.bytes.len() as u64), piece.bytes.len(), &self.place);
        coder.prefer(Some(EngineId(0)));
        let fault = |_| Fault::Engine;
        let fed = coder.feed(piece.bytes).map_err(fault)?;
        wait(coder.settle(fed)).map_err(fault)?;
        let finished = coder.finish().map_err(fault)?;
        wait(coder.settle(finished)).map_err(fault)?;
        out.extend_from_slice(&coder.take_output());
        if !piece.is_last && splice_streams::open(out, start).is_none() {
            out.truncate(start);
            return self.software.code(piece, out);
        }
        Ok(())
    }
}

/// Runs a future on this thread.
fn wait<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Limit of a piece: as the largest of other engines.
const MAX_PIECE_BYTES: usize = 4 << 20;
/// zlib's highest level.
const MAX_LEVEL: u8 = 9;
/// Deadline of a library by its path. It is to end calls that hang; no client waits.
const FILE_DEADLINE: Duration = Duration::from_secs(30);
const START_PATIENCE: Duration = Duration::from_secs(2);
