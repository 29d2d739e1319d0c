//! The demonstration: three made-up servers, terse in front of them, a table of the results of each coding, two releases of a script, and
//! the console for the browser.

mod releases;

use crate::client::{Client, Reply};
use crate::origin::{Options as OriginOptions, Origin};
use crate::program::{Program, wait_until};
use crate::secure::write_certificate;
use anyhow::{Context, Result, bail};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Settings of the demonstration.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program.
    pub terse: PathBuf,
    /// Its configuration: it reads `PORT`, `CONSOLE` and `ORIGIN1` to `ORIGIN3` from the environment.
    pub config: PathBuf,
    /// Port on which terse listens.
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
    let (console, secure) = (usual_or_free(CONSOLE_PORT)?, usual_or_free(TLS_PORT)?);
    let folder = tempfile::tempdir()?;
    let certificate = folder.path().join("demo.pem");
    write_certificate(&certificate)?;
    let mut command = Command::new(&options.terse);
    command.env("CONSOLE", console.to_string()).env("TLS_PORT", secure.port().to_string()).env("CERTIFICATE", &certificate);
    command.arg("-db").arg("-f").arg(&options.config).stdin(Stdio::null()).env("PORT", options.port.to_string());
    for (number, server) in origin.addresses().iter().enumerate() {
        command.env(format!("ORIGIN{}", number + 1), server.to_string());
    }
    let mut terse = Program::start(command, None)?;
    wait_until(PATIENCE, || Client::connect(address, PATIENCE).is_ok() || terse.ended().is_some());
    if let Some(status) = terse.ended() {
        bail!("terse ended: {status}");
    }
    let whole = table(address)? & releases::show(secure)?;
    if !options.once {
        println!("\nServers: {}", origin.addresses().iter().map(|a| format!("http://{a}/")).collect::<Vec<_>>().join("  "));
        println!("terse:   http://{address}/");
        println!(
            "HTTP/2:  https://localhost:{}/   (its certificate is made up: the browser asks once, and takes br and zstd there)",
            secure.port()
        );
        println!("console: http://{console}/   (open it in a browser; Ctrl-C ends)");
        wait_for_the_end(&mut terse)?;
    }
    terse.stop();
    Ok(whole)
}

/// An address with its usual port, or with a free one.
fn usual_or_free(port: u16) -> Result<SocketAddr> {
    let usual = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    Ok(usual.or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?.local_addr()?)
}

/// Fetches everything in each coding and prints the results.
fn table(address: SocketAddr) -> Result<bool> {
    println!(
        "\n{:<21} {:<24} {:>9} {:>9} {:>9} {:>9}  {:>6}  not compressed because",
        "path", "type", "bytes", "gzip", "br", "zstd", "saved"
    );
    let mut whole = true;
    for path in PATHS {
        let plain = fetch(address, path, &[])?;
        let (mut sizes, mut least, mut reason) = (Vec::new(), plain.body.len(), "?".to_owned());
        for coding in CODINGS {
            let coded = fetch(address, path, &[&format!("Accept-Encoding: {coding}")])?;
            whole &= plain.status == 200 && coded.status == 200 && coded.decoded()?.len() == plain.body.len();
            let is_compressed = coded.field("content-encoding") == Some(coding);
            sizes.push(if is_compressed { coded.body.len().to_string() } else { "-".into() });
            least = least.min(coded.body.len());
            reason = coded.field("x-terse-reason").unwrap_or_default().to_owned();
        }
        println!(
            "{path:<21} {:<24} {:>9} {:>9} {:>9} {:>9}  {:>4} %  {reason}",
            plain.field("content-type").unwrap_or("-"),
            plain.body.len(),
            sizes[0],
            sizes[1],
            sizes[2],
            (plain.body.len() - least) * 100 / plain.body.len().max(1),
        );
    }
    remembered(address)?;
    Ok(whole)
}

/// Shows that a repeated response is not compressed again.
fn remembered(address: SocketAddr) -> Result<()> {
    println!("\nThe same page again and again, in ms:");
    for coding in CODINGS {
        let line = format!("Accept-Encoding: {coding}");
        let mut times = Vec::new();
        for _ in 0..AGAIN {
            times.push(fetch(address, REPEATED, &[&line])?.time.as_secs_f64() * 1e3);
        }
        let times: Vec<_> = times.iter().map(|ms| format!("{ms:.1}")).collect();
        println!("  {coding:<5} {}", times.join("  "));
    }
    Ok(())
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

/// Paths of the table.
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

/// Path that is fetched again: from the third time on it comes from memory.
const REPEATED: &str = "/static/page.js";
const AGAIN: usize = 5;

/// In the order of the table's columns.
const CODINGS: [&str; 3] = ["gzip", "br", "zstd"];

/// Port of the console; `terse --to` has it there, too.
const CONSOLE_PORT: u16 = 8404;
/// Port of HTTP/2 over TLS.
const TLS_PORT: u16 = 8443;

/// Number of servers, as many as the configuration names.
const SERVERS: usize = 3;

const PATIENCE: Duration = Duration::from_secs(30);
