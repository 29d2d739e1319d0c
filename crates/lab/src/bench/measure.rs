//! A round of one scenario on one proxy that runs.

use super::bystander::Bystanders;
use super::h2load::{self, H2load};
use super::rival::Running;
use super::sample::Metric;
use super::scenario::{DOWNLOADERS, Scenario, Traffic};
use super::wrk::{Load, Outcome, Wrk};
use crate::client::{Client, Reply};
use crate::program::wait_until;
use crate::secure::Secure;
use crate::{cores, tree};
use anyhow::{Context, Result, bail};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Results of a round.
pub(super) type Numbers = Vec<(Metric, f64)>;

/// The tools of a measurement.
#[derive(Debug)]
pub(super) struct Bench<'a> {
    /// The load generator.
    pub(super) wrk: &'a Wrk,
    /// The same for HTTP/2.
    pub(super) h2load: &'a H2load,
    /// The core that clients stay on.
    pub(super) core: usize,
    /// The origin, for comparison.
    pub(super) origin: SocketAddr,
    /// Duration of a round's load.
    pub(super) time: Duration,
}

impl Bench<'_> {
    /// Checks that the proxy does what the scenario requires, fills its caches, and weighs its answers.
    pub(super) fn check(&self, scenario: &Scenario, config: &str, proxy: &Running) -> Result<Numbers> {
        let mut client = proxy.connect(PATIENCE)?;
        let expected = match scenario.traffic {
            Traffic::Answers(_) => 0,
            _ => Client::connect(self.origin, PATIENCE)?.get(scenario.path, &[])?.body.len(),
        };
        let count = if matches!(scenario.traffic, Traffic::Bulk(_)) { 1 } else { CHECKS };
        let mut wire_bytes = 0;
        for _ in 0..count {
            let reply = client.get(scenario.path, &[scenario.accept()])?;
            check(&reply, expected, scenario.compresses(config))?;
            wire_bytes += reply.wire_bytes;
        }
        if let Traffic::Tail { beside, .. } | Traffic::Bystander(beside) = scenario.traffic {
            let expected = Client::connect(self.origin, PATIENCE)?.get(beside, &[])?.body.len();
            check(&client.get(beside, &[scenario.accept()])?, expected, true)?;
        }
        if let Traffic::Library(_) = scenario.traffic {
            let expected = Client::connect(self.origin, PATIENCE)?.get(SAME_EACH_TIME, &[])?.body;
            if client.get(SAME_EACH_TIME, &[scenario.accept()])?.decoded()? != expected {
                bail!("the answer is another one than the origin's");
            }
        }
        Ok(vec![(Metric::Wire, wire_bytes as f64 / count as f64)])
    }

    /// Measures once.
    pub(super) fn round(&self, scenario: &Scenario, proxy: &Running) -> Result<Numbers> {
        match scenario.traffic {
            Traffic::Requests(connections)
            | Traffic::Answers(connections)
            | Traffic::Scale(connections)
            | Traffic::Library(connections) => self.requests(scenario, proxy, connections, &[scenario.accept()]),
            Traffic::Close(connections) => self.requests(scenario, proxy, connections, &["Connection: close"]),
            Traffic::Bulk(connections) => self.bulk(scenario, proxy, connections),
            Traffic::Downloads => self.downloads(scenario, proxy, 1),
            Traffic::Card(clients) => self.downloads(scenario, proxy, clients),
            Traffic::Tail { connections, beside } => self.tail(scenario, proxy, connections, beside),
            Traffic::Bystander(beside) => Bystanders {
                path: scenario.path,
                beside,
                accept: scenario.accept(),
                core: self.core,
                time: self.time,
                may_go_first: self.wrk.may_go_first(),
            }
            .measure(proxy),
            Traffic::Idle(connections) => idle(scenario, proxy, connections),
            Traffic::Http2 { connections, streams } => self.http2(scenario, proxy, (connections, streams), None),
            Traffic::Grpc { connections, streams } => self.http2(scenario, proxy, (connections, streams), Some(MESSAGE)),
            Traffic::Handshakes { resumed } => self.handshakes(scenario, proxy, resumed),
        }
    }

    fn requests(&self, scenario: &Scenario, proxy: &Running, connections: usize, lines: &[&str]) -> Result<Numbers> {
        let before = tree::cpu_time(proxy.pid());
        let outcome = self.load(scenario.path, proxy, connections, lines, self.time)?;
        let cpu = tree::cpu_time(proxy.pid()).saturating_sub(before);
        let requests = outcome.requests as f64;
        Ok(vec![
            (Metric::Cpu, micros(cpu) / requests),
            (Metric::Rate, requests / outcome.time.as_secs_f64()),
            (Metric::P99, millis(outcome.p99)),
        ])
    }

    fn http2(
        &self,
        scenario: &Scenario,
        proxy: &Running,
        (connections, streams): (usize, usize),
        message: Option<&[u8]>,
    ) -> Result<Numbers> {
        let before = tree::cpu_time(proxy.pid());
        let (address, is_secured) = (proxy.address(), proxy.is_secured());
        let lines = match message {
            Some(_) => &["content-type: application/grpc", "te: trailers"][..],
            None => &[scenario.accept()],
        };
        let outcome = self.h2load.run(&h2load::Load {
            address,
            is_secured,
            path: scenario.path,
            lines,
            message,
            connections,
            streams,
            time: self.time,
        })?;
        let cpu = tree::cpu_time(proxy.pid()).saturating_sub(before);
        let requests = outcome.requests as f64;
        Ok(vec![(Metric::Cpu, micros(cpu) / requests), (Metric::Rate, requests / outcome.time.as_secs_f64())])
    }

    fn bulk(&self, scenario: &Scenario, proxy: &Running, connections: usize) -> Result<Numbers> {
        let before = tree::cpu_time(proxy.pid());
        let outcome = self.load(scenario.path, proxy, connections, &[], self.time)?;
        let cpu = tree::cpu_time(proxy.pid()).saturating_sub(before);
        let answers = outcome.bytes as f64 / BULK_BYTES;
        Ok(vec![(Metric::Cpu, micros(cpu) / answers), (Metric::Rate, answers / outcome.time.as_secs_f64())])
    }

    fn downloads(&self, scenario: &Scenario, proxy: &Running, clients: usize) -> Result<Numbers> {
        let (before, begun) = (tree::cpu_time(proxy.pid()), Instant::now());
        let download = || -> Result<Vec<Duration>> {
            cores::pin_this_thread(self.core)?;
            let mut client = proxy.connect(PATIENCE)?;
            let mut times = Vec::new();
            while begun.elapsed() < self.time || times.len() < DOWNLOADS_LEAST {
                times.push(client.get(scenario.path, &[scenario.accept()])?.time);
            }
            Ok(times)
        };
        let mut times = std::thread::scope(|scope| -> Result<Vec<Duration>> {
            let clients: Vec<_> = (0..clients).map(|_| scope.spawn(download)).collect();
            let times = clients.into_iter().map(|client| client.join().unwrap_or_else(|_| bail!("a client died")));
            Ok(times.collect::<Result<Vec<_>>>()?.concat())
        })?;
        let (cpu, time) = (tree::cpu_time(proxy.pid()).saturating_sub(before), begun.elapsed());
        times.sort();
        let mut numbers = vec![(Metric::Cpu, micros(cpu) / times.len() as f64), (Metric::LoadTime, millis(times[times.len() / 2]))];
        if let Traffic::Card(_) = scenario.traffic {
            numbers.push((Metric::Rate, times.len() as f64 / time.as_secs_f64()));
        }
        Ok(numbers)
    }

    fn handshakes(&self, scenario: &Scenario, proxy: &Running, resumed: bool) -> Result<Numbers> {
        let secure = Secure::new(resumed)?;
        let shake = || -> Result<()> {
            let mut client = Client::connect_secured(proxy.address(), PATIENCE, &secure)?;
            // Sessions of TLS 1.3 come after the handshake: with the answer they are there.
            client.get(scenario.path, &["Connection: close"])?;
            if client.is_resumed() != resumed {
                bail!("a session was {}resumed", if resumed { "not " } else { "" });
            }
            Ok(())
        };
        if resumed {
            // The first one has nothing to resume.
            let _ = shake();
        }
        let shake_on = || -> Result<Numbers> {
            cores::pin_this_thread(self.core)?;
            let (before, begun) = (tree::cpu_time(proxy.pid()), Instant::now());
            let mut count = 0.0;
            while begun.elapsed() < self.time {
                shake()?;
                count += 1.0;
            }
            let cpu = tree::cpu_time(proxy.pid()).saturating_sub(before);
            Ok(vec![(Metric::Cpu, micros(cpu) / count), (Metric::Rate, count / begun.elapsed().as_secs_f64())])
        };
        std::thread::scope(|scope| scope.spawn(shake_on).join().unwrap_or_else(|_| bail!("a client died")))
    }

    fn tail(&self, scenario: &Scenario, proxy: &Running, connections: usize, beside: &str) -> Result<Numbers> {
        let load = Load {
            address: proxy.address(),
            is_secured: proxy.is_secured(),
            path: scenario.path,
            lines: &[],
            connections,
            time: self.time,
            is_timed: true,
        };
        let alone = self.wrk.run(&load)?;
        let (enough, done) = (AtomicBool::new(false), AtomicU64::new(0));
        let download = || -> Result<()> {
            cores::pin_this_thread(self.core)?;
            let mut client = proxy.connect(PATIENCE)?;
            while !enough.load(Ordering::Relaxed) {
                client.get(beside, &[scenario.accept()])?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let (outcome, downloads) = std::thread::scope(|scope| {
            let downloaders: Vec<_> = (0..DOWNLOADERS).map(|_| scope.spawn(download)).collect();
            wait_until(PATIENCE, || done.load(Ordering::Relaxed) > 0 || downloaders.iter().any(|d| d.is_finished()));
            let before = done.load(Ordering::Relaxed);
            let outcome = self.wrk.run(&load);
            let downloads = done.load(Ordering::Relaxed) - before;
            enough.store(true, Ordering::Relaxed);
            for downloader in downloaders {
                downloader.join().unwrap_or_else(|_| bail!("a client died")).context("a download")?;
            }
            Ok::<_, anyhow::Error>((outcome?, downloads))
        })?;
        Ok(vec![
            (Metric::P99Alone, millis(alone.p99)),
            (Metric::P99, millis(outcome.p99)),
            (Metric::Downloads, downloads as f64 / outcome.time.as_secs_f64()),
        ])
    }

    fn load(&self, path: &str, proxy: &Running, connections: usize, lines: &[&str], time: Duration) -> Result<Outcome> {
        let (address, is_secured) = (proxy.address(), proxy.is_secured());
        self.wrk.run(&Load { address, is_secured, path, lines, connections, time, is_timed: false })
    }
}

fn idle(scenario: &Scenario, proxy: &Running, connections: usize) -> Result<Numbers> {
    let ask = |clients: &mut Vec<Client>, count: usize| -> Result<()> {
        for _ in 0..count {
            let mut client = proxy.connect(PATIENCE)?;
            client.get(scenario.path, &[])?;
            clients.push(client);
        }
        Ok(())
    };
    // The first ones bear a cost that is not theirs: tables that grow, an allocator that takes its first arenas.
    let mut clients = Vec::new();
    ask(&mut clients, IDLE_BEFORE)?;
    let before = tree::memory(proxy.pid());
    ask(&mut clients, connections)?;
    let after = tree::memory(proxy.pid());
    let each = |before: u64, after: u64| after.saturating_sub(before) as f64 / connections as f64;
    Ok(vec![
        (Metric::OwnMemory, each(before.own_bytes, after.own_bytes)),
        (Metric::ProportionalMemory, each(before.proportional_bytes, after.proportional_bytes)),
    ])
}

fn check(reply: &Reply, expected: usize, compresses: bool) -> Result<()> {
    if reply.status != 200 {
        bail!("status {}", reply.status);
    }
    if reply.field("content-encoding").is_some() != compresses {
        bail!("content-encoding: {:?}", reply.field("content-encoding"));
    }
    let length = reply.decoded()?.len();
    if length != expected {
        bail!("{length} bytes instead of {expected}");
    }
    Ok(())
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A multiple of the number of variants of a body, so that every proxy weighs the same ones.
const CHECKS: usize = 8;
/// A body of which both the coded form and the origin's own can be had.
const SAME_EACH_TIME: &str = "/static/page.js";
/// A message of gRPC: a flag, its length, 16 bytes.
const MESSAGE: &[u8] = b"\0\0\0\0\x10sixteen bytes...";
const DOWNLOADS_LEAST: usize = 3;
const IDLE_BEFORE: usize = 500;
const BULK_BYTES: f64 = (64 << 20) as f64;
const PATIENCE: Duration = Duration::from_secs(60);
