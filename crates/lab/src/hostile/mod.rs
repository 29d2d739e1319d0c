//! Hostile clients and servers of HTTP/2: what they cost a proxy's memory, and another client's time.
//!
//! Each pattern meets a proxy of its own, and runs for a bounded time over so many connections, while a client of good faith asks for 100
//! bytes over HTTP/1. Memory is the most that was seen meanwhile, less what it was after that client alone. A client that floods and is cut
//! off comes back after a pause: how many connections a proxy takes in a second is another matter. So does a client that asks a hostile
//! server. Each such client has a connection to the server of its own.

pub mod frames;
mod patterns;
mod proxy;
mod server;
mod servers;

pub use patterns::{DRIP_EVERY, Flood, Held, Hold, Outcome, flood_once, floods, holds};
pub use server::{GOOD, Server};
pub use servers::{Misdeed, misdeeds};

use crate::bench::raise_descriptor_limit;
use crate::bench::wrk::{Load, Wrk};
use crate::client::Client;
use crate::origin::{Options as OriginOptions, Origin};
use crate::{cores, tree};
use anyhow::{Context, Result, bail};
use proxy::{Figures, Proxy};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What is run, and how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// The proxy.
    pub terse: PathBuf,
    /// The load generator of the bystander.
    pub wrk: PathBuf,
    /// How long each pattern runs.
    pub time: Duration,
    /// Connections of a pattern.
    pub clients: usize,
    /// How long a client that was cut off stays away.
    pub pause: Duration,
    /// The beginnings of the names of the patterns that are wanted; empty: all.
    pub only: Vec<String>,
}

/// A pattern of any kind.
enum Pattern {
    Flood(Flood),
    Hold(Hold),
    Server(Misdeed),
}

/// What a pattern did.
#[derive(Debug, Default)]
struct Found {
    /// Most memory per connection, beyond what there was before.
    growth_bytes: f64,
    p99_alone: Duration,
    p99: Duration,
    /// What became of connections, and how often.
    ends: BTreeMap<String, u64>,
    changes: Vec<String>,
    /// Lines of the log, by the cause that they name.
    lines: BTreeMap<String, usize>,
}

/// Runs them; true if every bar was held.
pub fn run(options: &Options) -> Result<bool> {
    let patterns: Vec<Pattern> = patterns().into_iter().filter(|pattern| options.wants(pattern.name())).collect();
    if patterns.is_empty() {
        let names: Vec<_> = self::patterns().iter().map(Pattern::name).collect();
        bail!("no pattern's name begins so; there are {}", names.join(", "));
    }
    let cores = cores::available();
    let (Some(&first), Some(&last)) = (cores.first(), cores.last()) else { bail!("no core to run on") };
    raise_descriptor_limit();
    let origin = Origin::start(&OriginOptions { core: Some(last), ..OriginOptions::local(1) })?;
    let server = cores::on_cores(&[last], Server::start)?;
    let servers = [origin.addresses()[0], server.address()];
    let field = Field { options, wrk: Wrk::new(&options.wrk, last)?, servers, cores: [first, last] };
    println!("{:<24} {:>14} {:>12} {:>9} {:<8} ends", "pattern", "KB/connection", "p99 alone ms", "beside ms", "bars");
    let mut holds_all = true;
    for pattern in &patterns {
        let found = field.measure(pattern).with_context(|| pattern.name())?;
        holds_all &= found.print(pattern);
    }
    Ok(holds_all)
}

fn patterns() -> Vec<Pattern> {
    let clients = floods().into_iter().map(Pattern::Flood).chain(holds().into_iter().map(Pattern::Hold));
    clients.chain(misdeeds().into_iter().map(Pattern::Server)).collect()
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }
}

impl Pattern {
    fn name(&self) -> &'static str {
        match self {
            Pattern::Flood(flood) => flood.name,
            Pattern::Hold(hold) => hold.name,
            Pattern::Server(misdeed) => misdeed.name,
        }
    }

    /// The cause that the log has to name.
    fn cause(&self) -> Option<&'static str> {
        match self {
            // Where a stream's error may be the connection's, too, either is named.
            Pattern::Flood(flood) if flood.codes.len() > 1 => None,
            Pattern::Flood(flood) => flood.limit.map(|glitch| glitch.name()),
            Pattern::Hold(_) => None,
            Pattern::Server(misdeed) => misdeed.cause,
        }
    }

    /// What its connection may cost.
    fn most_bytes(&self) -> f64 {
        match self {
            Pattern::Server(misdeed) => misdeed.most_bytes,
            Pattern::Flood(_) | Pattern::Hold(_) => MOST_GROWTH_BYTES,
        }
    }

    /// Runs over so many connections until it is told to stop; says what became of them.
    fn run(&self, server: SocketAddr, options: &Options, is_over: &AtomicBool) -> Result<BTreeMap<String, u64>> {
        let clients = options.clients;
        let ends = Mutex::new(BTreeMap::new());
        let count = |words: String, times: u64| {
            if let Ok(mut ends) = ends.lock() {
                *ends.entry(words).or_default() += times;
            }
        };
        // A client that comes back after a pause.
        let again = |run: &(dyn Fn() -> String + Sync)| {
            std::thread::scope(|scope| {
                let client = || {
                    while !is_over.load(Relaxed) {
                        count(run(), 1);
                        std::thread::park_timeout(options.pause);
                    }
                };
                (0..clients).for_each(|_| drop(scope.spawn(client)));
            });
        };
        let hold = match self {
            Pattern::Flood(flood) => {
                again(&|| flood_once(server, flood).end());
                None
            }
            Pattern::Hold(hold) => Some(hold.clone()),
            Pattern::Server(misdeed) => {
                let hold = misdeed.hold();
                if hold.is_none() {
                    again(&|| ask_once(server, misdeed));
                }
                hold
            }
        };
        if let Some(hold) = hold {
            let mut held = Held::begin(server, &hold, clients)?;
            let mut dripped = Instant::now();
            while !is_over.load(Relaxed) {
                let is_time = dripped.elapsed() >= DRIP_EVERY;
                held.turn(if is_time { &hold.drip } else { &[] });
                if is_time {
                    dripped = Instant::now();
                }
                std::thread::park_timeout(TURN);
            }
            count("kept".into(), held.count() as u64);
            count("closed".into(), (clients - held.count()) as u64);
        }
        let mut ends = ends.into_inner().unwrap_or_default();
        ends.retain(|_, times| *times > 0);
        Ok(ends)
    }
}

/// Asks a hostile server through the proxy, and says what came of it.
fn ask_once(proxy: SocketAddr, misdeed: &Misdeed) -> String {
    let asked = Client::connect(proxy, PATIENCE).and_then(|mut client| client.get(&misdeed.path(), &[]));
    asked.map_or_else(|_| "broke off".into(), |reply| format!("answered {}", reply.status))
}

impl Outcome {
    /// How it ended, in a few words.
    fn end(&self) -> String {
        match (self.code, &self.error) {
            (Some(code), _) => format!("{} {}", code.name(), self.words).trim_end().to_owned(),
            (None, _) if self.is_closed => "closed".into(),
            (None, Some(error)) => error.clone(),
            (None, None) if self.resets > 0 => "borne, streams reset".into(),
            (None, None) => "borne".into(),
        }
    }
}

/// All that a pattern meets.
struct Field<'a> {
    options: &'a Options,
    wrk: Wrk,
    /// The good one, and the hostile one.
    servers: [SocketAddr; 2],
    /// The proxy's, and everybody else's.
    cores: [usize; 2],
}

impl Field<'_> {
    fn measure(&self, pattern: &Pattern) -> Result<Found> {
        let (clients, time) = (self.options.clients, self.options.time);
        let proxy = Proxy::start(&self.options.terse, self.cores[0], self.servers)?;
        let start = proxy.figures()?;
        let p99_alone = self.bystander(&proxy, time)?;
        let before = proxy.figures()?;
        let memory = tree::memory(proxy.pid()).proportional_bytes;
        let is_over = AtomicBool::new(false);
        let (ends, p99, most) = std::thread::scope(|scope| {
            let hostile = || {
                cores::pin_this_thread(self.cores[1])?;
                pattern.run(proxy.hostile(), self.options, &is_over)
            };
            let hostile = scope.spawn(hostile);
            let weigh = || {
                let mut most = 0;
                // Where that is refused it disturbs the proxy a little.
                let _ = cores::pin_this_thread(self.cores[1]);
                while !is_over.load(Relaxed) {
                    most = most.max(tree::memory(proxy.pid()).proportional_bytes);
                    std::thread::park_timeout(WEIGH_EVERY);
                }
                most
            };
            let weigh = scope.spawn(weigh);
            let p99 = self.bystander(&proxy, time);
            is_over.store(true, Relaxed);
            let mut ends = hostile.join().unwrap_or_else(|_| bail!("a client died"))?;
            // Who is answered nothing waits all the time.
            let p99 = p99.unwrap_or_else(|error| {
                ends.insert(format!("{error:#}"), 1);
                time
            });
            Ok::<_, anyhow::Error>((ends, p99, weigh.join().unwrap_or_default()))
        })?;
        let after = proxy.figures()?;
        Ok(Found {
            growth_bytes: most.saturating_sub(memory) as f64 / clients as f64,
            p99_alone,
            p99,
            ends,
            changes: changes(&start, &before, &after),
            lines: proxy.causes()?,
        })
    }

    /// A client of good faith.
    fn bystander(&self, proxy: &Proxy, time: Duration) -> Result<Duration> {
        let address = proxy.friendly();
        let load = Load { address, is_secured: false, path: "/tiny", lines: &[], connections: BYSTANDERS, time, is_timed: true };
        Ok(self.wrk.run(&load).context("the bystander")?.p99)
    }
}

/// Figures that changed between the second and the third look, but not between the first two, when only the bystander was there.
fn changes(start: &Figures, before: &Figures, after: &Figures) -> Vec<String> {
    let changed = after.iter().filter(|(name, value)| before.get(*name) != Some(*value));
    let by_hostile = changed.filter(|(name, _)| start.get(*name) == before.get(*name));
    by_hostile.map(|(name, value)| format!("{name}: {} -> {value}", before.get(name).map_or("-", String::as_str))).collect()
}

impl Found {
    /// Prints a row, and below it what moved; true if its bars were held.
    fn print(&self, pattern: &Pattern) -> bool {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let is_named = pattern.cause().is_none_or(|cause| self.lines.contains_key(cause));
        let most = self.p99_alone.mul_f64(MOST_SLOWER).max(LEAST_NOTICED);
        let broken = [(self.growth_bytes <= pattern.most_bytes(), "MEMORY"), (self.p99 <= most, "P99"), (is_named, "NO-LINE")];
        let broken: Vec<_> = broken.into_iter().filter(|(is_held, _)| !is_held).map(|(_, bar)| bar).collect();
        let bars = if broken.is_empty() { "held".into() } else { broken.join(",") };
        let ends: Vec<_> = self.ends.iter().map(|(words, times)| format!("{times} {words}")).collect();
        println!(
            "{:<24} {:>14.1} {:>12.2} {:>9.2} {:<8} {}",
            pattern.name(),
            self.growth_bytes / 1024.0,
            millis(self.p99_alone),
            millis(self.p99),
            bars,
            ends.join(", ")
        );
        for (cause, count) in &self.lines {
            println!("    log: {count} lines name {cause:?}");
        }
        self.changes.iter().for_each(|change| println!("    {change}"));
        broken.is_empty()
    }
}

/// What a connection may cost: the budget of what it sends, and as much again as it is sent.
const MOST_GROWTH_BYTES: f64 = 1.1e6;
/// How much longer the bystander's slowest of a hundred may take.
const MOST_SLOWER: f64 = 2.0;
/// What another program on the machine makes of any figure: below it nobody is said to have noticed.
const LEAST_NOTICED: Duration = Duration::from_millis(3);
/// Connections of the bystander.
const BYSTANDERS: usize = 4;
const WEIGH_EVERY: Duration = Duration::from_millis(200);
const TURN: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_bystander_changes_is_not_the_hostile_clients_doing() {
        let figures = |values: [&str; 3]| -> Figures {
            ["Requests", "Glitches", "Maxconn"].iter().zip(values).map(|(name, value)| ((*name).into(), value.into())).collect()
        };
        let (start, before, after) = (figures(["1", "0", "9"]), figures(["5", "0", "9"]), figures(["8", "3", "9"]));
        assert_eq!(changes(&start, &before, &after), ["Glitches: 0 -> 3"]);
    }
}
