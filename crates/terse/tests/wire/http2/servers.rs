//! Servers of HTTP/2 behind terse: real ones, scripted ones, many requests over few connections, gRPC, servers that come and go.

mod answers;
mod asked;
mod cold;
mod connections;
mod grpc;
mod hostile;
mod lost;
mod peer;
mod real;
mod unread;
mod websocket;

use super::certificates::{Kind, Pair, authority, signed};
use super::support::Terse;
use super::support::program::{Running, find};
use super::support::proxy::DEFAULTS;
use super::support::server::Port;
use super::support::until;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// A running process of one thread whose backend `servers` has these lines, and the files for TLS with [`Secret`].
fn proxy(lines: &str, secret: &Secret) -> Terse {
    let text = format!(
        "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n bind fd@${{secure}} \
         ssl crt a.pem\n http-after-response set-header X-Back %[bc_http_major]\n default_backend servers\nbackend servers\n{lines}\n"
    );
    let terse = Terse::with(&text).file("a.pem", &secret.pem).file("root.pem", &secret.root);
    terse.listen("web").listen("secure").listen("cli").start()
}

/// A column of `show stat` for the server `one`.
fn figure(terse: &Terse, column: &str) -> u64 {
    let text = terse.command("show stat");
    let at = text.lines().next().and_then(|line| line.split(',').position(|name| name == column)).expect("the column");
    let row = text.lines().find(|line| line.starts_with("servers,one,")).expect("the server");
    row.split(',').nth(at).unwrap().parse().unwrap()
}

/// A certificate for `localhost`, with its key, and the one of its authority.
pub(crate) struct Secret {
    pub(crate) pem: Vec<u8>,
    root: Vec<u8>,
}

impl Secret {
    pub(crate) fn new() -> Secret {
        let root: Pair = authority("root");
        Secret { pem: signed(Kind::Ecdsa, &["localhost"], &root).pem(), root: root.certificate_pem() }
    }
}

/// Arguments of a `server` line that speaks TLS with [`Secret`].
const TLS: &str = "ssl ca-file root.pem sni str(localhost) alpn h2,http/1.1";

/// A real server with a folder of its own.
pub(crate) struct Program {
    folder: TempDir,
    pub(crate) address: SocketAddr,
    _port: Port,
    _program: Running,
}

impl Program {
    /// Starts a program with a configuration in which `{folder}` and `{address}` are replaced by its own. `a.pem` is in the folder,
    /// `big` in `files` below it.
    pub(crate) fn start(name: &str, words: &[&str], configuration: &str, secret: &Secret, big: &[u8]) -> Option<Program> {
        let program = find(name)?;
        let place = Place::new(secret);
        let files = place.folder.path().join("files");
        fs::create_dir(&files).unwrap();
        fs::write(files.join("big"), big).unwrap();
        for (path, mode) in [(place.folder.path(), 0o755), (&files, 0o755), (&files.join("big"), 0o644)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::write(place.folder.path().join("server.conf"), place.fill(configuration)).unwrap();
        Some(place.run(name, &program, &[words, &["{folder}/server.conf"]].concat()))
    }

    /// Starts a program with these arguments in a folder that has `a.pem`.
    fn run(name: &str, program: &Path, words: &[&str], secret: &Secret) -> Program {
        Place::new(secret).run(name, program, words)
    }

    /// Content of a file of its folder.
    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

/// Folder and address of a program that will run.
struct Place {
    folder: TempDir,
    port: Port,
}

impl Place {
    fn new(secret: &Secret) -> Place {
        let folder = tempfile::Builder::new().prefix("p").tempdir_in("/tmp").unwrap();
        fs::write(folder.path().join("a.pem"), &secret.pem).unwrap();
        Place { folder, port: Port::new() }
    }

    fn fill(&self, text: &str) -> String {
        let folder = self.folder.path().to_str().unwrap();
        text.replace("{folder}", folder).replace("{address}", &self.port.address().to_string())
    }

    fn run(self, name: &str, program: &Path, words: &[&str]) -> Program {
        let words: Vec<String> = words.iter().map(|word| self.fill(word)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let running = Running::start(program, &words, self.folder.path());
        let address = self.port.address();
        until(name, || TcpStream::connect(address).ok());
        Program { folder: self.folder, address, _port: self.port, _program: running }
    }
}
