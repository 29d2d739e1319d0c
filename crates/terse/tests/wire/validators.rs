//! A fuzzer of caches and ranges. Clients do all that RFC 9110 and 9111 allow with the responses that they hold, against a terse
//! that compresses in front of an origin whose content changes.
//!
//! Two things must never happen. A client must not join bytes of two representations, nor get 304 for something that is not
//! current, or that it cannot use. Contents name their resource and version in each line, so that any body can be identified.
//!
//! The same clients talk to the origin itself first: their actions must be right there, or the model is wrong. `TERSE_SEED` gives
//! other dice, `TERSE_STEPS` more of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cache;
mod download;
mod exchange;
mod flows;
mod origin;

use crate::support;
use exchange::Connection;
use origin::World;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use support::proxy::listen;
use support::random::Random;
use support::server::Server;

/// Accept-Encoding of clients.
const ACCEPTED: [&str; 7] = ["", "gzip", "identity", "gzip, deflate", "deflate", "gzip;q=0, *", "br, gzip;q=0.5"];

/// Number of occurrences of each event: a fuzzer to which nothing happens tests nothing.
type Tally = BTreeMap<&'static str, usize>;

/// State that a step needs.
struct Setting {
    world: Arc<Mutex<World>>,
    random: Random,
    tally: Tally,
    /// The steps before, for the report of a failure.
    story: Vec<String>,
}

impl Setting {
    fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    fn tell(&mut self, what: String) {
        self.story.push(what);
    }

    #[track_caller]
    fn demand(&self, holds: bool, what: &str) {
        assert!(holds, "{what}\n{}", self.story[self.story.len().saturating_sub(30)..].join("\n"));
    }
}

fn fuzz(address: SocketAddr, world: &Arc<Mutex<World>>, seed: u64, steps: usize) -> Tally {
    let mut setting = Setting { world: Arc::clone(world), random: Random::new(seed), tally: Tally::new(), story: Vec::new() };
    let mut clients: Vec<download::Client> =
        ACCEPTED.iter().map(|accepted| download::Client::new(Connection::new(address, accepted))).collect();
    let mut cache = cache::Cache::new(address);
    for _ in 0..steps {
        if setting.random.one_in(10) {
            let resource = setting.random.below(origin::RESOURCES);
            world.lock().unwrap().change(resource);
            setting.tell(format!("resource {resource} changes"));
        }
        if setting.random.one_in(4) {
            cache.step(&mut setting);
        } else {
            let chosen = setting.random.below(clients.len());
            clients[chosen].step(&mut setting);
        }
    }
    setting.tally
}

#[test]
fn nothing_is_joined_that_is_not_one() {
    let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let (seed, steps) = (number("TERSE_SEED", 1), number("TERSE_STEPS", 3_000) as usize);
    println!("TERSE_SEED={seed} TERSE_STEPS={steps}");
    let world: Arc<Mutex<World>> = Arc::default();
    let there = Arc::clone(&world);
    let server = Server::answering(move |request| there.lock().unwrap().answer(request));
    let direct = fuzz(server.address(), &world, seed, steps);
    println!("the origin itself: {direct:?}");
    for lines in [
        "compression algo gzip deflate",
        "compression algo gzip deflate\n compression offload",
        "compression algo gzip deflate\n compression minsize-res 2500",
        "compression algo gzip deflate\n decompression response on\n decompression accept gzip",
        "compression algo gzip deflate\n compression etag weaken",
        "compression algo gzip\n compression etag weaken\n compression offload",
    ] {
        let terse = listen(&format!("{lines}\n compression type text/html\n server one {}", server.address()));
        let tally = fuzz(terse.address("web"), &world, seed, steps);
        println!("{}: {tally:?}", lines.replace("\n ", "; "));
        for what in
            ["coded", "plain", "part", "joined by tag", "joined by match", "not modified", "cache: given", "cache: selected"]
        {
            assert!(tally.contains_key(what), "never {what}: {tally:?}");
        }
        terse.end();
    }
}
