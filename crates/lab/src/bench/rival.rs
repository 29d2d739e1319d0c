//! The proxies that are compared, and a running proxy.

use super::card::Card;
use super::scenario::PLAIN;
use crate::client::Client;
use crate::program::{Program, wait_until};
use crate::secure::Secure;
use crate::variables;
use anyhow::{Context, Result, bail};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Kind of a proxy: the configuration that it reads, and the way to start it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Ours.
    Terse,
    /// HAProxy.
    Haproxy,
    /// nginx.
    Nginx,
    /// Caddy.
    Caddy,
    /// This program's forwarder that parses nothing.
    Floor,
}

/// A proxy that takes part.
#[derive(Clone, Debug)]
pub struct Rival {
    /// Name in the tables.
    pub name: String,
    /// Kind of the program.
    pub kind: Kind,
    /// Its program.
    pub program: PathBuf,
}

/// Values that a scenario's file is filled in with.
#[derive(Clone, Debug)]
pub(super) struct Setting<'a> {
    /// The name of the file in the folder of scenarios, without its end.
    pub(super) config: &'a str,
    /// Folder of the files.
    pub(super) folder: &'a Path,
    /// Address of the origin.
    pub(super) origin: SocketAddr,
    /// Worker threads or processes.
    pub(super) workers: usize,
    /// The cores that they stay on.
    pub(super) cores: &'a [usize],
    /// A program to run it under, with its arguments: valgrind, strace.
    pub(super) under: &'a [String],
    /// The test card, where there is one.
    pub(super) card: Option<&'a Card>,
    /// A certificate and its key.
    pub(super) certificate: &'a Path,
    /// A library that is loaded before the program's own.
    pub(super) preloaded: Option<&'a Path>,
}

impl Rival {
    /// The program's own description: its version, how ours was built, and the library that it compresses with.
    pub(super) fn version(&self) -> String {
        if self.kind == Kind::Floor {
            return "`terse-lab floor`, a forwarder that parses nothing".into();
        }
        let text = said(
            &self.program,
            match self.kind {
                Kind::Nginx => "-v",
                Kind::Caddy => "version",
                Kind::Terse | Kind::Haproxy | Kind::Floor => "-vv",
            },
        );
        let first = first_line(&text);
        let mut first = first.split(" - ").next().unwrap_or(first).to_owned();
        if let Some(profile) = text.lines().find_map(|line| line.trim().strip_prefix("PROFILE = ")) {
            first = format!("{first} ({profile})");
        }
        let library = ["zlib version", "libslz"]
            .iter()
            .filter_map(|word| text.lines().find(|line| line.starts_with("Built with") && line.contains(word)));
        library.fold(first, |version, line| format!("{version}; {}", line.to_lowercase()))
    }

    /// True if a scenario has a file for it.
    pub(super) fn takes_part(&self, folder: &Path, config: &str) -> bool {
        if self.kind == Kind::Floor { config == PLAIN } else { self.source(folder, config).exists() }
    }

    /// Starts it on a free port, and waits until it answers.
    pub(super) fn start(&self, setting: &Setting<'_>) -> Result<Running> {
        let folder = tempfile::Builder::new().prefix("terse-bench-").tempdir()?;
        let address = free_port()?;
        let config = match self.kind {
            Kind::Floor => PathBuf::new(),
            _ => self.write_config(setting, folder.path(), address)?,
        };
        let mut words = setting.under.to_vec();
        words.push(self.program.display().to_string());
        match self.kind {
            Kind::Nginx => words.extend(
                ["-p", &folder.path().display().to_string(), "-c", &config.display().to_string(), "-e", "error.log"]
                    .map(String::from),
            ),
            Kind::Floor => {
                words.extend(["floor", "--listen", &address.to_string(), "--to", &setting.origin.to_string()].map(String::from));
            }
            Kind::Caddy => {
                words.extend(["run", "--adapter", "caddyfile", "--config", &config.display().to_string()].map(String::from));
            }
            Kind::Haproxy | Kind::Terse => words.extend(["-db", "-f", &config.display().to_string()].map(String::from)),
        }
        if self.kind == Kind::Nginx && !setting.under.is_empty() {
            // Its master would not wait until a worker's counts are written.
            words.extend(["-g", "master_process off;"].map(String::from));
        }
        let log = fs::File::create(folder.path().join("output"))?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(folder.path()).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        if self.kind == Kind::Caddy {
            // It keeps its state in its user's folder, and takes as many cores as there are.
            command.env("HOME", folder.path()).env("XDG_DATA_HOME", folder.path()).env("XDG_CONFIG_HOME", folder.path());
            command.env("GOMAXPROCS", setting.workers.to_string());
        }
        command.envs(setting.card.map(Card::environment).unwrap_or_default());
        command.envs(setting.preloaded.map(|library| ("LD_PRELOAD", library)));
        let program = Program::start(command, Some(setting.cores))?;
        let speaks_http2 = HTTP2.iter().any(|beginning| setting.config.starts_with(beginning));
        let secure = || if speaks_http2 { Secure::for_http2() } else { Secure::new(false) };
        let secure = setting.config.starts_with(SECURED).then(secure).transpose()?;
        let mut running = Running { program, address, folder, name: self.name.clone(), secure, speaks_http2 };
        running.wait_until_ready()?;
        Ok(running)
    }

    fn write_config(&self, setting: &Setting<'_>, folder: &Path, address: SocketAddr) -> Result<PathBuf> {
        let source = self.source(setting.folder, setting.config);
        let text = fs::read_to_string(&source).with_context(|| source.display().to_string())?;
        let text = variables::fill_in(&text)
            .replace("${LISTEN}", &address.to_string())
            .replace("${ORIGIN}", &setting.origin.to_string())
            .replace("${SCENARIOS}", &fs::canonicalize(setting.folder)?.display().to_string())
            .replace("${WORKERS}", &setting.workers.to_string())
            .replace("${BROTLI_MODULE}", &brotli_module().map(|file| file.display().to_string()).unwrap_or_default())
            .replace("${CERTIFICATE}", &setting.certificate.display().to_string())
            .replace("${CARD}", &setting.card.map(|card| card.library().display().to_string()).unwrap_or_default());
        let config = folder.join(match self.kind {
            Kind::Nginx => NGINX,
            Kind::Caddy => CADDY,
            Kind::Terse | Kind::Haproxy | Kind::Floor => HAPROXY,
        });
        fs::write(&config, text)?;
        Ok(config)
    }

    /// terse reads HAProxy's files, where it has none of its own; nginx has no coding but gzip, and br where its module is there, for those that compare it.
    fn source(&self, folder: &Path, config: &str) -> PathBuf {
        let config = match (self.kind, config) {
            (Kind::Nginx, "br-6" | "br-9") if brotli_module().is_some() => config,
            (Kind::Nginx, "zstd" | "br" | "br-6" | "br-9") => "gzip-6",
            (Kind::Nginx | Kind::Haproxy, "tls-h2-zstd" | "tls-h2-br") => "tls-h2-gzip-6",
            _ => config,
        };
        let ends = match self.kind {
            Kind::Nginx => [NGINX, NGINX],
            Kind::Caddy => [CADDY, CADDY],
            Kind::Haproxy | Kind::Floor => [HAPROXY, HAPROXY],
            Kind::Terse => [TERSE, HAPROXY],
        };
        let [own, other] = ends.map(|end| folder.join(format!("{config}.{end}")));
        if own.exists() { own } else { other }
    }
}

/// The file of nginx's module for br: Debian has it in libnginx-mod-http-brotli-filter.
fn brotli_module() -> Option<PathBuf> {
    let file = std::env::var_os("NGINX_BROTLI").map_or_else(|| PathBuf::from(BROTLI_MODULE), PathBuf::from);
    file.exists().then_some(file)
}

/// The first line of a program's version.
pub(super) fn version(program: &Path) -> String {
    first_line(&said(program, "--version")).to_owned()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("says no version")
}

/// Output of a program with an argument.
fn said(program: &Path, argument: &str) -> String {
    match Command::new(program).arg(argument).stdin(Stdio::null()).output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
        Err(_) => "does not run".into(),
    }
}

const BROTLI_MODULE: &str = "/usr/lib/nginx/modules/ngx_http_brotli_filter_module.so";
/// The beginning of the names of files of proxies that speak TLS.
const SECURED: &str = "tls";
/// The same of those that speak HTTP/2.
const HTTP2: [&str; 2] = ["h2", "tls-h2"];
/// The ends of files' names.
const HAPROXY: &str = "haproxy.cfg";
const NGINX: &str = "nginx.conf";
const TERSE: &str = "terse.cfg";
const CADDY: &str = "Caddyfile";

/// A proxy at work. Dropping it stops it and removes its files.
#[derive(Debug)]
pub(super) struct Running {
    program: Program,
    address: SocketAddr,
    folder: tempfile::TempDir,
    name: String,
    /// For clients, where it speaks TLS.
    secure: Option<Secure>,
    /// Clients speak HTTP/2.
    speaks_http2: bool,
}

impl Running {
    /// Address that it listens on.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// True if it speaks TLS.
    pub(super) fn is_secured(&self) -> bool {
        self.secure.is_some()
    }

    /// A connection to it.
    pub(super) fn connect(&self, patience: Duration) -> Result<Client> {
        match &self.secure {
            secure if self.speaks_http2 => Client::connect_http2(self.address, patience, secure.as_ref()),
            None => Client::connect(self.address, patience),
            Some(secure) => Client::connect_secured(self.address, patience, secure),
        }
    }

    /// The process that was started.
    pub(super) fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// Stops it, and waits for its end.
    pub(super) fn stop(&mut self) {
        self.program.stop();
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let ready = wait_until(START_PATIENCE, || {
            let answer = self.connect(Duration::from_secs(5)).and_then(|mut client| client.get("/tiny", &["Connection: close"]));
            answer.is_ok_and(|reply| reply.status == 200) || self.program.ended().is_some()
        });
        if !ready || self.program.ended().is_some() {
            let read = |name: &str| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
            bail!("{} does not serve: {}{}", self.name, read("output").trim(), read("error.log").trim());
        }
        Ok(())
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> Result<SocketAddr> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Under valgrind a start takes seconds.
const START_PATIENCE: Duration = Duration::from_secs(30);
