//! The demonstration: three made-up servers, terse in front of them, a table of what compression did, and a page for the browser.

use crate::client::{Client, Reply};
use crate::origin::{Options as OriginOptions, Origin};
use crate::program::{Program, wait_until};
use anyhow::{Context, Result, bail};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How it is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program.
    pub terse: PathBuf,
    /// Its configuration: it reads `PORT` and `ORIGIN1` to `ORIGIN3` from the environment.
    pub config: PathBuf,
    /// Where terse listens.
    pub port: u16,
    /// Ends when the table is printed.
    pub once: bool,
}

/// Runs it; true if everything came whole.
pub fn run(options: &Options) -> Result<bool> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
    if let Err(error) = TcpListener::bind(address) {
        bail!("cannot listen on {address}: {error}. Another port: make demo PORT=8081");
    }
    let origin = Origin::start(&OriginOptions::local(SERVERS))?;
    let mut command = Command::new(&options.terse);
    command.arg("-db").arg("-f").arg(&options.config).stdin(Stdio::null()).env("PORT", options.port.to_string());
    for (number, server) in origin.addresses().iter().enumerate() {
        command.env(format!("ORIGIN{}", number + 1), server.to_string());
    }
    let mut terse = Program::start(command, None)?;
    wait_until(PATIENCE, || Client::connect(address, PATIENCE).is_ok() || terse.ended().is_some());
    if let Some(status) = terse.ended() {
        bail!("terse ended: {status}");
    }
    let whole = table(address)?;
    if !options.once {
        println!("\nServers: {}", origin.addresses().iter().map(|a| format!("http://{a}/")).collect::<Vec<_>>().join("  "));
        println!("terse:   http://{address}/   (open it in a browser; Ctrl-C ends)");
        wait_for_the_end(&mut terse)?;
    }
    terse.stop();
    Ok(whole)
}

/// Fetches everything twice and prints what came.
fn table(address: SocketAddr) -> Result<bool> {
    println!(
        "\n{:<22} {:<24} {:>10} {:>10} {:>7} {:>8}  {:<6}  not compressed because",
        "path", "type", "bytes", "compressed", "ratio", "ms", "server"
    );
    let mut whole = true;
    for path in PATHS {
        let plain = fetch(address, path, &[])?;
        let coded = fetch(address, path, &["Accept-Encoding: gzip"])?;
        whole &= plain.status == 200 && coded.status == 200 && coded.decoded()?.len() == plain.body.len();
        let compressed = coded.field("content-encoding").is_some();
        let reason = coded.field("x-terse-reason").filter(|reason| !reason.is_empty());
        println!(
            "{path:<22} {:<24} {:>10} {:>10} {:>7} {:>8.1}  {:<6}  {}",
            coded.field("content-type").unwrap_or("-"),
            plain.body.len(),
            if compressed { coded.body.len().to_string() } else { "-".into() },
            if compressed { format!("{:.2}", plain.body.len() as f64 / coded.body.len() as f64) } else { "-".into() },
            coded.time.as_secs_f64() * 1e3,
            coded.field("x-origin").unwrap_or("-"),
            if compressed { "" } else { reason.unwrap_or("?") },
        );
    }
    Ok(whole)
}

fn fetch(address: SocketAddr, path: &str, lines: &[&str]) -> Result<Reply> {
    Client::connect(address, PATIENCE)?.get(path, lines).with_context(|| path.to_owned())
}

/// Waits for Ctrl-C, or for the end of terse.
fn wait_for_the_end(terse: &mut Program) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        let mut every_second = tokio::time::interval(Duration::from_secs(1));
        let interrupted = tokio::signal::ctrl_c();
        tokio::pin!(interrupted);
        loop {
            tokio::select! {
                _ = &mut interrupted => return Ok(()),
                _ = terminate.recv() => return Ok(()),
                _ = every_second.tick() => if let Some(status) = terse.ended() {
                    bail!("terse ended: {status}");
                },
            }
        }
    })
}

/// What the table shows.
const PATHS: &[&str] = &[
    "/static/page.html",
    "/static/small.js",
    "/static/page.js",
    "/page-chunked.js",
    "/static/records.json",
    "/events",
    "/static/photo.jpg",
    "/static/picture.bmp",
    "/static/tiny",
];

/// As many as the configuration names.
const SERVERS: usize = 3;

const PATIENCE: Duration = Duration::from_secs(30);
