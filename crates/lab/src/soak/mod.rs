//! Hours of a proxy in minutes: mixed work at a pace, beside HAProxy with the same file. Then the resources that are left are
//! checked.
//!
//! Both proxies get the same visits at the same pace, side by side. Every body is compared with the bytes that the origin must have
//! sent. Then all is quiet, and the resources of the work must be given back: descriptors, sessions, processes, memory.
//!
//! HAProxy's column is for comparison. A failure there fails nothing, but is shown.

mod proxy;
mod report;
mod visit;
mod work;

use crate::bench::raise_descriptor_limit;
use crate::origin::{Options as OriginOptions, Origin};
use crate::secure::Secure;
use anyhow::{Context, Result, bail};
use proxy::{Proxy, Rest};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use visit::Visitor;
use work::{Kind, kinds};

/// Work to run, and its duration.
#[derive(Clone, Debug)]
pub struct Options {
    /// The proxy that is judged.
    pub terse: PathBuf,
    /// The proxy beside it; none: terse alone, and its memory is not judged.
    pub haproxy: Option<PathBuf>,
    /// Duration of the work.
    pub time: Duration,
    /// Time limit after the work until all is given back.
    pub quiet: Duration,
    /// Clients of each kind, times this.
    pub clients: usize,
    /// The beginnings of the names of the kinds of work that are wanted; empty: all.
    pub only: Vec<String>,
}

/// Results of clients of a kind at a proxy.
#[derive(Clone, Default, Debug)]
struct Done {
    answers: u64,
    bytes: u64,
    /// Answers that were compressed.
    coded: u64,
    /// Requests that were sent again: their connection had been in use, and ended before an answer began.
    again: u64,
    faults: u64,
    /// Messages about the first of them.
    words: Vec<String>,
}

/// Work at a proxy, by kind.
type Ledger = Mutex<BTreeMap<&'static str, Done>>;

/// A proxy with the observations of it.
struct Course {
    proxy: Proxy,
    ledger: Ledger,
    before: Rest,
    peak_bytes: AtomicU64,
    after: Rest,
    /// Messages about resources that did not come back; `settled` is the time that the rest took.
    left: Vec<String>,
    settled: Duration,
}

/// Runs it; true if every condition holds.
pub fn run(options: &Options) -> Result<bool> {
    let kinds: Vec<Kind> = kinds().into_iter().filter(|kind| options.wants(kind.name)).collect();
    if kinds.is_empty() {
        let names: Vec<_> = work::kinds().iter().map(|kind| kind.name).collect();
        bail!("no kind's name begins so; there are {}", names.join(", "));
    }
    raise_descriptor_limit();
    let origin = Origin::start(&OriginOptions { seed: SEED, ..OriginOptions::local(2) })?;
    let mut courses = Vec::new();
    for (program, is_terse) in [(Some(&options.terse), true), (options.haproxy.as_ref(), false)] {
        let Some(program) = program else { continue };
        let proxy = Proxy::start(program, is_terse, origin.addresses())?;
        let before = proxy.warm()?;
        courses.push(Course {
            proxy,
            ledger: Ledger::default(),
            before,
            peak_bytes: AtomicU64::new(0),
            after: Rest::all(),
            left: Vec::new(),
            settled: Duration::ZERO,
        });
    }
    println!("{} s of work of {} kinds", options.time.as_secs(), kinds.len());
    let secures = [Secure::new(true)?, Secure::for_http2()?];
    work_at(&courses, &kinds, &secures, options)?;
    rest(&mut courses, options.quiet)?;
    report::print(&courses, &kinds);
    let failures = report::failures(&courses, &kinds);
    failures.iter().for_each(|failure| println!("FAILED: {failure}"));
    if failures.is_empty() {
        println!("All of it holds.");
    }
    Ok(failures.is_empty())
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }
}

/// Lets clients work at all proxies for the time; reloads in the first half of it.
fn work_at(courses: &[Course], kinds: &[Kind], secures: &[Secure; 2], options: &Options) -> Result<()> {
    let is_over = AtomicBool::new(false);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let spawn = || {
            for course in courses {
                for kind in kinds.iter().filter(|kind| course.proxy.is_terse() || !kind.is_terse_only) {
                    for number in 0..kind.clients * options.clients {
                        let (proxy, ledger, is_over) = (&course.proxy, &course.ledger, &is_over);
                        let work = move || {
                            keep_visiting(Visitor::new(proxy, secures, SEED ^ number as u64), kind, ledger, is_over);
                        };
                        std::thread::Builder::new().name(kind.name.into()).spawn_scoped(scope, work)?;
                    }
                }
            }
            Ok::<_, std::io::Error>(())
        };
        let result = spawn().context("a client's thread").and_then(|()| watch(courses, begun, options.time));
        is_over.store(true, Relaxed);
        result
    })
}

/// Visits at the kind's pace until all is over. A visit that was begun is ended.
fn keep_visiting(mut visitor: Visitor<'_>, kind: &Kind, ledger: &Ledger, is_over: &AtomicBool) {
    while !is_over.load(Relaxed) {
        let begun = Instant::now();
        let result = (kind.visit)(&mut visitor);
        if let Ok(mut ledger) = ledger.lock() {
            let done = ledger.entry(kind.name).or_default();
            visitor.note_in(done);
            if let Err(error) = result {
                visitor.leave();
                done.faults += 1;
                if done.words.len() < MOST_WORDS {
                    done.words.push(format!("{error:#}"));
                }
            }
        }
        while !is_over.load(Relaxed) && begun.elapsed() < kind.every {
            std::thread::park_timeout(kind.every.saturating_sub(begun.elapsed()).min(LOOK));
        }
    }
}

/// Weighs the proxies while there is work, and reloads them.
fn watch(courses: &[Course], begun: Instant, time: Duration) -> Result<()> {
    // The last one early enough for the resources that a process gathers in half of the time.
    let mut reloads: Vec<Duration> = (1..=RELOADS).rev().map(|n| time * n / (2 * RELOADS)).collect();
    while begun.elapsed() < time {
        for course in courses {
            course.peak_bytes.fetch_max(course.proxy.resident_bytes(), Relaxed);
        }
        if reloads.last().is_some_and(|at| begun.elapsed() >= *at) {
            reloads.pop();
            for course in courses {
                course.proxy.reload().with_context(|| format!("a reload of {}", course.proxy.name()))?;
            }
        }
        std::thread::park_timeout(LOOK);
    }
    Ok(())
}

/// Waits until the resources of the work are given back, for the time at most.
fn rest(courses: &mut [Course], quiet: Duration) -> Result<()> {
    let begun = Instant::now();
    loop {
        let mut rests = courses.iter().map(|course| course.proxy.rest()).collect::<Result<Vec<_>>>()?;
        let beside = rests.get(1).map(|rest| rest.resident_bytes);
        let mut is_settled = true;
        for (course, mut rest) in courses.iter_mut().zip(rests.drain(..)) {
            rest.at_most(&course.after);
            let most = if course.proxy.is_terse() { beside } else { None };
            course.left = rest.left_over(&course.before, most);
            if course.left.is_empty() && course.settled.is_zero() {
                course.settled = begun.elapsed();
            }
            is_settled &= course.left.is_empty() || !course.proxy.is_terse();
            course.after = rest;
        }
        if is_settled || begun.elapsed() >= quiet {
            return Ok(());
        }
        std::thread::park_timeout(LOOK);
    }
}

/// Seed of the origin's bodies.
const SEED: u64 = 1;

/// Interval between looks.
const LOOK: Duration = Duration::from_millis(100);

/// Reloads in the first half of the time.
const RELOADS: u32 = 3;

/// Faults of a kind whose messages are kept.
const MOST_WORDS: usize = 3;
