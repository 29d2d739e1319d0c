//! Engines that misbehave, of which a client sees nothing. The engine is the test card, which fails when it is told to.
//!
//! `TERSE_FULL=1` asks for 10,000 responses through a card that fails in every way, `TERSE_SEED` for other dice.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use support::client::Client;
use support::gzip::gunzip;
use support::origin::Origin;
use support::random::Random;
use support::{Terse, until};

/// The test card, which cargo has built beside this program.
fn card() -> PathBuf {
    let path = std::env::current_exe().unwrap().with_file_name("libterse_testcard.so");
    assert!(path.exists(), "{} is not there", path.display());
    path
}

/// A proxy in front of an origin, with the test card as its engine.
struct Site {
    terse: Terse,
    _origin: Origin,
}

impl Site {
    /// With these lines in the engine's section.
    fn start(lines: &str) -> Site {
        let origin = Origin::start(|request, stream| {
            let number = request.line.split(' ').nth(1).and_then(|path| path.trim_start_matches('/').parse().ok()).unwrap_or(0);
            let body = body(number);
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n");
            if number < LARGE || number % 2 == 0 {
                let _ = write!(stream, "Content-Length: {}\r\n\r\n", body.len());
                let _ = stream.write_all(&body);
                return;
            }
            let mut chunks = b"Transfer-Encoding: chunked\r\n\r\n".to_vec();
            for chunk in body.chunks(150_000) {
                let _ = write!(chunks, "{:x}\r\n", chunk.len());
                chunks.extend_from_slice(chunk);
                chunks.extend_from_slice(b"\r\n");
            }
            chunks.extend_from_slice(b"0\r\n\r\n");
            let _ = stream.write_all(&chunks);
        });
        let text = format!(
            "global\n nbthread 2\n tune.comp.threads 2\n stats socket ${{dir}}/stats level admin\n{}\nengine card\n library {}\n smallest 1k\n{lines}\n\
             listen web\n bind fd@${{web}}\n compression algo gzip\n compression memory off\n compression engine card\n server s {}\n\
             listen software\n bind fd@${{software}}\n compression algo gzip\n compression memory off\n server s {}\n",
            support::proxy::DEFAULTS,
            card().display(),
            origin.address(),
            origin.address(),
        );
        let terse = Terse::with(&text).file("faults", "").listen("web").listen("software");
        let (clock, faults) = (terse.path("clock"), terse.path("faults"));
        let terse = terse.env("TERSE_TESTCARD_CLOCK", clock.to_str().unwrap());
        let terse = terse.env("TERSE_TESTCARD_FAULTS", faults.to_str().unwrap()).start();
        let site = Site { terse, _origin: origin };
        site.wait("UP");
        site
    }

    /// Has the card fail in this way from now on.
    fn fail(&self, how: &str) {
        self.terse.rewrite("faults", how);
    }

    /// Returns the value that `show engines` has for the card in a column.
    fn figure(&self, column: &str) -> String {
        self.terse.engine(column)
    }

    fn number(&self, column: &str) -> u64 {
        self.figure(column).parse().unwrap()
    }

    fn wait(&self, state: &str) {
        until(state, || (self.figure("state") == state).then_some(()));
    }

    /// Asks for a body, which must be right; returns how long that took.
    fn ask(&self, client: &mut Client, number: u64) -> Duration {
        let since = Instant::now();
        let response = client.get(&format!("/{number}"), &[("Accept-Encoding", "gzip")]);
        let took = since.elapsed();
        assert_eq!((response.status, response.field("content-encoding")), (200, Some("gzip")), "{number}");
        assert!(gunzip(&response.body) == body(number), "{number}: another body");
        took
    }
}

/// The body of a number: 20 to 120 KB, from [`LARGE`] on 1 to 1.5 MB, and those of odd numbers in chunks. No two are alike.
fn body(number: u64) -> Vec<u8> {
    let mut random = Random::new(number);
    let words = if number < LARGE { 4_000 + random.below(20_000) } else { 200_000 + random.below(100_000) };
    let mut body = format!("{number}: ").into_bytes();
    while body.len() < words * 5 {
        body.extend_from_slice(random.pick(&["lorem ", "ipsum ", "dolor ", "sit ", "amet, ", "7919 ", "\n"]).as_bytes());
    }
    body
}

#[test]
fn bodies_go_through_the_card() {
    let site = Site::start("verify none\n deadline 20s\n");
    let mut client = site.terse.client();
    // A body whose server pauses, as happens on a busy machine, becomes a stream, which no engine gets.
    let asked = (0..).filter(|number| body(*number).len() > 60_000).take(100);
    let done = asked.map(|number| site.ask(&mut client, number)).find(|_| site.number("jobs") == 20);
    assert!(done.is_some(), "{} jobs of 100 bodies", site.number("jobs"));
    assert_eq!(site.figure("version"), "1.3-testcard");
    site.terse.end();
}

const LARGE: u64 = 1_000_000;

#[test]
fn large_bodies_are_received_where_the_card_reads_them() {
    let site = Site::start("verify full\n deadline 2s\n inter 30ms\n jobs 2\nglobal\n set-dumpable\n");
    let mut client = site.terse.client();
    let mut number = LARGE;
    for fault in ["", "error 0.5", "garbage 0.5", "die 0.5", "abort 0.5", ""] {
        site.fail(fault);
        let before = site.number("jobs");
        for _ in 0..6 {
            site.ask(&mut client, number);
            number += 1;
        }
        // A body whose server pauses, as happens on a busy machine, becomes a stream, which no engine gets.
        until("a job that the card does", || {
            site.ask(&mut client, number);
            number += 1;
            (site.number("jobs") > before).then_some(())
        });
    }
    let files = std::fs::read_dir(format!("/proc/{}/fd", site.terse.pid().as_raw_nonzero())).unwrap();
    let links = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    let segments = links.filter(|link| link.to_string_lossy().contains("memfd:terse-body")).count();
    assert!((1..=6).contains(&segments), "{segments} segments for two jobs");
    site.terse.end();
}

#[test]
fn a_trusted_library_runs_within_and_its_errors_are_softwares() {
    let site = Site::start("in-process\n deadline 500ms\n inter 30ms\n verify full\n");
    let mut client = site.terse.client();
    until("a job that the card does", || {
        site.ask(&mut client, 1);
        (site.number("jobs") > 0).then_some(())
    });
    assert_eq!((site.figure("state"), site.figure("process")), ("UP".to_owned(), site.terse.pid().as_raw_nonzero().to_string()));
    for fault in ["error", "garbage", "hang"] {
        site.fail(&format!("{fault} 1"));
        for number in 2..6 {
            site.ask(&mut client, number);
        }
    }
    assert!(site.number("error") > 0);
    site.terse.end();
}

#[test]
fn each_failure_is_softwares_and_the_card_comes_back() {
    for (fault, verify, cause) in [
        ("error", "none", "error"),
        ("abort", "none", "died"),
        ("die", "none", "died"),
        ("hang", "none", "late"),
        ("noise", "none", "lied"),
        ("garbage", "full", "lied"),
    ] {
        let site = Site::start(&format!("verify {verify}\n deadline 150ms\n inter 30ms\n fall 2\n"));
        let mut client = site.terse.client();
        site.fail(&format!("{fault} 1"));
        for number in 0..6 {
            site.ask(&mut client, number);
        }
        assert!(site.number(cause) >= 2, "{fault}: {cause} {}", site.number(cause));
        assert!(site.number("falls") >= 1 && site.number("down") >= 1, "{fault}");
        if fault == "error" {
            until("what is said of it", || site.terse.stderr().contains("Engine card is DOWN").then_some(()));
        }
        if matches!(fault, "abort" | "die" | "hang") {
            assert!(site.number("starts") >= 2 && site.figure("trouble") != "-", "{fault}: {}", site.figure("trouble"));
        }
        site.fail("");
        site.wait("UP");
        let (before, mut number) = (site.number("jobs"), 100);
        until("a job that the card does", || {
            number += 1;
            site.ask(&mut client, number);
            (site.number("jobs") > before).then_some(())
        });
        site.terse.end();
    }
}

#[test]
fn what_the_card_fails_at_is_done_at_the_level_of_fallback() {
    let length_with = |fallback: &str| {
        let site = Site::start(&format!("verify none\n deadline 20s\n {fallback}\n fall 1000\n"));
        let mut client = site.terse.client();
        site.fail("error 1");
        // A body whose server pauses, as happens on a busy machine, becomes a stream, which no engine gets.
        let coded = until("a body that the card fails at", || {
            let before = site.number("error");
            let response = client.get("/3", &[("Accept-Encoding", "gzip")]);
            assert!(gunzip(&response.body) == body(3), "{fallback}");
            (site.number("error") > before).then_some(response.body)
        });
        site.terse.end();
        coded.len()
    };
    let (stored, first, own) = (length_with("fallback 0"), length_with("fallback 1"), length_with(""));
    assert!(stored > body(3).len() && first < stored / 2 && own < first, "{stored}, {first}, {own} of {}", body(3).len());
}

#[test]
fn the_cards_process_cannot_write_to_the_memory_of_terse() {
    use std::os::unix::fs::MetadataExt;
    // The kernel gives the files of a process that cannot be dumped to root, whose own they are anyway where root runs this.
    let owner =
        |site: &Site, file: &str| std::fs::metadata(format!("/proc/{}/{file}", site.terse.pid().as_raw_nonzero())).unwrap().uid();
    let own = rustix::process::getuid().as_raw();
    for (lines, expected) in [("", 0), ("in-process\n", own), ("global\n set-dumpable\n", own)] {
        let site = Site::start(lines);
        assert_eq!(owner(&site, "mem"), expected, "{lines}");
        site.terse.end();
    }
}

#[test]
fn the_cards_process_has_nothing_of_terse_and_ends_with_it() {
    let site = Site::start("");
    let card = site.figure("process");
    let open: Vec<String> = std::fs::read_dir(format!("/proc/{card}/fd"))
        .unwrap()
        .filter_map(|entry| Some(std::fs::read_link(entry.ok()?.path()).ok()?.display().to_string()))
        .collect();
    // Standard streams, the jobs' socket, the shared memory.
    let sockets = open.iter().filter(|what| what.starts_with("socket:")).count();
    assert!(sockets == 1 && open.len() == 5, "{open:?}");
    let keeper = std::fs::read_to_string(format!("/proc/{card}/stat")).unwrap();
    let keeper = keeper.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().to_owned();
    site.terse.signal(rustix::process::Signal::KILL);
    for process in [card, keeper] {
        let folder = PathBuf::from(format!("/proc/{process}/task/{process}/children"));
        until("the end of the card's processes", || (!folder.exists() || is_dead(&process)).then_some(()));
    }
}

/// True if only the number is left of a process, for the parent that is to read its status.
fn is_dead(process: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat"))
        .is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
}

#[test]
fn thousands_of_responses_through_a_card_that_fails_in_every_way() {
    let _machine = crate::alone();
    let is_full = std::env::var_os("TERSE_FULL").is_some();
    let seed: u64 = std::env::var("TERSE_SEED").map_or(1, |seed| seed.parse().unwrap());
    let responses = if is_full { 10_000 } else { 600 };
    let deadline = Duration::from_millis(200);
    let site = Site::start("verify full\n deadline 200ms\n inter 10ms\n fall 3\n");
    site.fail(&format!("seed {seed}\nerror 0.02\nhang 0.01\ngarbage 0.02\nnoise 0.02\nabort 0.01\ndie 0.01\n"));
    // Dice leave a fault out now and then: that does not go on for many rounds.
    let mut missing = vec!["error", "died", "late", "lied", "falls"];
    let mut waited = Duration::ZERO;
    for round in 1..=ROUNDS {
        // At the same time, so that a busy machine is as busy for both.
        let done = AtomicBool::new(false);
        let (through_the_card, by_software) = std::thread::scope(|scope| {
            let software = scope.spawn(|| clients(&site, "software", 2, |_| !done.load(Relaxed)));
            let through_the_card = clients(&site, "web", CLIENTS, |number| number < responses);
            done.store(true, Relaxed);
            (through_the_card, software.join().unwrap())
        });
        let columns = [
            "jobs",
            "error",
            "died",
            "swept",
            "refused",
            "late",
            "lied",
            "full",
            "down",
            "falls",
            "starts",
            "mean_late_us",
            "max_late_us",
        ];
        let figures: Vec<String> = columns.iter().map(|column| format!("{column} {}", site.number(column))).collect();
        println!("round {round}, {responses} responses, TERSE_SEED={seed}: {}", figures.join(", "));
        let software = by_software.iter().map(|answer| answer.took).max().unwrap();
        let longest = through_the_card.iter().max_by_key(|answer| answer.took).unwrap();
        let in_time = |answer: &&Answer| answer.took <= deadline + software;
        println!(
            "the longest: {longest:?}; by software alone, of {}: {software:?}; {} within the deadline and that",
            by_software.len(),
            through_the_card.iter().filter(in_time).count()
        );
        for answer in &through_the_card {
            let allowed = deadline + software + answer.waited + UNMEASURED;
            assert!(answer.took <= allowed, "{answer:?}: later than {allowed:?}");
        }
        // The figure is the largest since the process began, and so are the waits.
        waited = through_the_card.iter().map(|answer| answer.waited).fold(waited, Duration::max);
        let late = Duration::from_micros(site.number("max_late_us"));
        assert!(late <= waited + UNMEASURED, "software had a job only {late:?} behind its deadline");
        missing.retain(|cause| site.number(cause) == 0);
        if missing.is_empty() {
            break;
        }
    }
    assert!(missing.is_empty(), "no {missing:?}");
    let jobs = site.number("jobs");
    assert!(jobs >= responses as u64 / 10, "the card did {jobs}");
    site.fail("");
    site.wait("UP");
    site.terse.end();
}

/// Time of a response, and the time that threads of terse and of this program have waited for a processor meanwhile, all together.
/// Each wait that delayed the response is counted, but so are those of threads that had nothing to do with it. So the bound on a
/// response is strict on a quiet machine only, and proves little on a busy one.
#[derive(Debug)]
struct Answer {
    took: Duration,
    waited: Duration,
}

/// So many clients ask as long as the number of the request allows it.
fn clients(site: &Site, listener: &str, count: usize, goes_on: impl Fn(usize) -> bool + Sync) -> Vec<Answer> {
    let next = AtomicUsize::new(0);
    let processes = [site.terse.pid().as_raw_nonzero().get(), std::process::id() as i32];
    let client = || {
        let mut client = Client::connect(site.terse.address(listener));
        let mut answers = Vec::new();
        loop {
            let number = next.fetch_add(1, Relaxed);
            if !goes_on(number) {
                return answers;
            }
            let before = Waits::of(&processes);
            let took = site.ask(&mut client, number as u64);
            answers.push(Answer { took, waited: Waits::of(&processes).since(&before) });
        }
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..count).map(|_| scope.spawn(client)).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    })
}

const CLIENTS: usize = 6;

/// Limit of the rounds in which the responses are requested.
const ROUNDS: usize = 8;

/// Delays that no counter of the system shows: ticks of 10 ms that a host has taken away, timers, pages that are fetched.
const UNMEASURED: Duration = Duration::from_millis(100);

/// Time that threads have waited for a processor so far.
struct Waits {
    threads: HashMap<PathBuf, Duration>,
    /// Time that a host has taken from all processors.
    stolen: Duration,
}

impl Waits {
    /// Of these processes.
    fn of(processes: &[i32]) -> Waits {
        let folders = processes.iter().filter_map(|process| std::fs::read_dir(format!("/proc/{process}/task")).ok());
        let threads = folders.flatten().filter_map(|thread| {
            let path = thread.ok()?.path();
            // Time on a processor, time in front of one, turns.
            let waited = std::fs::read_to_string(path.join("schedstat")).ok()?.split(' ').nth(1)?.parse().ok()?;
            Some((path, Duration::from_nanos(waited)))
        });
        let statistics = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let ticks = statistics.split_ascii_whitespace().nth(8).and_then(|ticks| ticks.parse().ok()).unwrap_or(0);
        Waits { threads: threads.collect(), stolen: Duration::from_millis(10 * ticks) }
    }

    fn since(&self, before: &Waits) -> Duration {
        let waited =
            |(thread, now): (&PathBuf, &Duration)| now.saturating_sub(before.threads.get(thread).copied().unwrap_or_default());
        self.threads.iter().map(waited).sum::<Duration>() + (self.stolen.saturating_sub(before.stolen))
    }
}

#[test]
fn what_is_no_engine_is_said_where_it_stands() {
    for (library, reason) in [
        ("/no/such.so", "/no/such.so cannot be loaded: /no/such.so: cannot open shared object file"),
        ("/etc/passwd", "/etc/passwd cannot be loaded: /etc/passwd: invalid ELF header"),
    ] {
        let text = format!("engine e\n library {library}\nlisten l\n mode http\n bind 127.0.0.1:0\n");
        let ended = Terse::with(&text).arg(&["-c"]).run();
        assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains("terse.cfg:2]") && ended.stderr.contains(reason), "{}", ended.stderr);
    }
}
