//! The programs of the experiment: Apache with a repository, and for each scenario two proxies, the line between them, and svn.

use super::relay::Relay;
use super::scenario::{Measured, Scenario};
use super::{Options, repository};
use crate::program::{Program, wait_until};
use crate::tree;
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// State that all scenarios share.
pub(super) struct Setting {
    folder: TempDir,
    apache: SocketAddr,
    _server: Program,
    /// Number of files, and their bytes.
    pub(super) files: usize,
    pub(super) bytes: u64,
}

const PATIENCE: Duration = Duration::from_secs(20);
/// Fast enough for parts that are not measured.
const UNLIMITED: u64 = 1 << 40;

impl Setting {
    pub(super) fn new(options: &Options) -> Result<Setting> {
        let folder = tempfile::tempdir()?;
        // Apache reads it under another name.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
        let tree = folder.path().join("tree");
        let bytes = repository::write(&tree, options.files)?;
        let repository = folder.path().join("repository");
        run(Command::new("svnadmin").arg("create").arg(&repository))?;
        let url = format!("file://{}/trunk", repository.display());
        run(Command::new("svn").args(["import", "-q", "--non-interactive", "-m", "all of it"]).arg(&tree).arg(url))?;
        run(Command::new("chmod").args(["-R", "a+rX"]).arg(&repository))?;
        let (pem, key) = (folder.path().join("line.pem"), folder.path().join("line.pem.key"));
        run(Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-subj",
                "/CN=line",
                "-days",
                "7",
            ])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&pem))?;
        let apache = free_address()?;
        let server = start_apache(folder.path(), &repository, apache)?;
        let setting = Setting { folder, apache, _server: server, files: options.files, bytes };
        // The bytes that it reads are in the kernel's memory from here on, for each scenario alike.
        setting.check_out(apache, false)?;
        Ok(setting)
    }

    /// Runs a scenario.
    pub(super) fn measure(&self, scenario: &Scenario, options: &Options) -> Result<Measured> {
        let (near_server, near_svn) = (free_address()?, free_address()?);
        let line = Relay::to(near_server, options.kilobits * 125)?;
        let fast = Relay::to(near_server, UNLIMITED)?;
        let b = format!(
            "{DEFAULTS}\nfrontend line\n bind {near_server} ssl crt line.pem {}\n{} default_backend apache\nbackend apache\n \
             server apache {}\n",
            scenario.tls, scenario.near_server, self.apache
        );
        let a = |relay: SocketAddr| {
            format!(
                "{DEFAULTS}\nfrontend svn\n bind {near_svn}\n default_backend line\nbackend line\n{} server line {relay} ssl verify \
                 none {}\n",
                scenario.near_svn, scenario.tls
            )
        };
        let b = self.proxy(options, "b.cfg", &b, near_server)?;
        for _ in 0..scenario.before {
            let a = self.proxy(options, "a.cfg", &a(fast.address), near_svn)?;
            self.check_out(near_svn, scenario.svn_asks)?;
            drop(a);
        }
        let a = self.proxy(options, "a.cfg", &a(line.address), near_svn)?;
        let cpu = || tree::cpu_time(a.pid()) + tree::cpu_time(b.pid());
        let before = cpu();
        let time = self.check_out(near_svn, scenario.svn_asks)?;
        let cpu = cpu() - before;
        let memory_bytes = tree::memory(a.pid()).own_bytes + tree::memory(b.pid()).own_bytes;
        let [bytes_written, bytes_read] = line.carried();
        Ok(Measured { bytes_read, bytes_written, time, cpu, memory_bytes })
    }

    fn proxy(&self, options: &Options, name: &str, config: &str, address: SocketAddr) -> Result<Program> {
        let path = self.folder.path().join(name);
        std::fs::write(&path, config)?;
        let log = std::fs::File::create(path.with_extension("log"))?;
        let mut command = Command::new(&options.terse);
        command.arg("-db").arg("-f").arg(name).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        started(command, address)
    }

    /// Checks out into a folder that is not there yet; returns the time that it took.
    fn check_out(&self, address: SocketAddr, asks: bool) -> Result<Duration> {
        let copy = self.folder.path().join("copy");
        if copy.exists() {
            std::fs::remove_dir_all(&copy)?;
        }
        let asks = format!("servers:global:http-compression={}", if asks { "yes" } else { "no" });
        let mut svn = Command::new("svn");
        svn.args(["checkout", "-q", "--non-interactive", "--config-option", &asks]).arg("--config-dir");
        svn.arg(self.folder.path().join("settings")).arg(format!("http://{address}/svn/trunk")).arg(&copy);
        let begun = Instant::now();
        run(&mut svn)?;
        let time = begun.elapsed();
        run(Command::new("diff").args(["-rq", "-x", ".svn"]).arg(self.folder.path().join("tree")).arg(&copy))
            .context("what was checked out is not what was checked in")?;
        Ok(time)
    }
}

const DEFAULTS: &str = "global
 nbthread 1
defaults
 mode http
 timeout client 60s
 timeout server 60s
 timeout connect 10s";

fn start_apache(folder: &Path, repository: &Path, address: SocketAddr) -> Result<Program> {
    let mut text = String::new();
    for module in ["mpm_event", "authz_core", "dav", "dav_svn"] {
        let _ = writeln!(text, "LoadModule {module}_module {MODULES}/mod_{module}.so");
    }
    let at = |name: &str| folder.join(name).display().to_string();
    let _ = write!(
        text,
        "ServerName localhost\nListen {address}\nPidFile {}\nErrorLog {}\nKeepAlive On\nMaxKeepAliveRequests 0\n\
         <Location /svn>\nDAV svn\nSVNPath {}\nRequire all granted\n</Location>\n",
        at("apache.pid"),
        at("apache.log"),
        repository.display()
    );
    if rustix::process::getuid().is_root() {
        text.push_str("User www-data\nGroup www-data\n");
    }
    let config = folder.join("apache.conf");
    std::fs::write(&config, text)?;
    let mut command = Command::new(apache_program());
    command.args(["-DFOREGROUND", "-f"]).arg(config).stdin(Stdio::null()).stdout(Stdio::null());
    started(command, address)
}

/// Debian's.
const MODULES: &str = "/usr/lib/apache2/modules";

fn apache_program() -> PathBuf {
    std::env::var_os("APACHE").map_or_else(|| PathBuf::from("/usr/sbin/apache2"), PathBuf::from)
}

/// Starts a program and waits until it listens.
fn started(command: Command, address: SocketAddr) -> Result<Program> {
    let name = command.get_program().display().to_string();
    let mut program = Program::start(command, None)?;
    let listens = wait_until(PATIENCE, || TcpStream::connect(address).is_ok() || program.ended().is_some());
    if !listens || program.ended().is_some() {
        bail!("{name} does not listen on {address}");
    }
    Ok(program)
}

fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().display().to_string();
    let output = command.stdin(Stdio::null()).output().with_context(|| name.clone())?;
    if !output.status.success() {
        bail!("{name}: {}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    }
    Ok(())
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
