//! Other programs, unchanged, with this library in zlib's place.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Folder of the library, linked as by `scripts/libterse_z`.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        // cargo puts the archive beside the tests' folder.
        let tests = std::env::current_exe().unwrap();
        let built = tests.ancestors().nth(2).unwrap();
        let archives = [built.join("deps/libterse_z.a"), built.join("libterse_z.a")];
        let archive = archives.iter().find(|file| file.exists()).expect("the library was built");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("zlib");
        succeeds(Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/link")).arg(archive).arg(&folder));
        folder
    })
}

/// A program with the library in zlib's place; `None`: it is not installed.
fn program(name: &str) -> Option<Command> {
    let folders = ["/usr/sbin", "/usr/bin", "/bin", "/sbin"];
    let path = folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists())?;
    Some(on_terse(&path))
}

fn on_terse(path: &Path) -> Command {
    let mut command = Command::new(path);
    command.env("LD_LIBRARY_PATH", folder()).env_remove("LD_PRELOAD");
    command
}

fn succeeds(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let is_well = output.status.success() && !errors.contains("no version information available");
    assert!(is_well, "{command:?}: {}\n{said}\n{errors}", output.status);
    output
}

fn page() -> String {
    let mut state = 3u32;
    (0..4000)
        .map(|line| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            format!("function f{line}(a, b) {{ return a.x{} + b[{}]; }}\n", state >> 28, state >> 20)
        })
        .collect()
}

fn decoded(bytes: &[u8], coding: &str) -> Vec<u8> {
    let mut out = Vec::new();
    match coding {
        "gzip" => flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).unwrap(),
        "deflate" => flate2::read::ZlibDecoder::new(bytes).read_to_end(&mut out).unwrap(),
        _ => panic!("{coding}"),
    };
    out
}

/// Exports of a library: names, with their versions.
fn exports(library: &Path) -> BTreeSet<String> {
    let output = succeeds(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().filter_map(|line| line.split_whitespace().nth(2)).map(str::to_owned).collect()
}

#[test]
fn names_and_versions_are_zlib_s() {
    let ours = exports(&folder().join("libz.so.1"));
    let names: Vec<&str> = ours.iter().map(|name| name.split('@').next().unwrap()).collect();
    for line in include_str!("../symbols").lines().filter(|line| !line.starts_with('#')) {
        for name in line.split_whitespace().filter(|word| !word.ends_with(':')) {
            assert!(names.contains(&name), "{name} is not exported");
        }
    }
    let folders = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"].map(PathBuf::from);
    let multiarch = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let systems = folders.into_iter().chain(multiarch).map(|folder| folder.join("libz.so.1"));
    // A machine may have libraries of other architectures beside its own.
    let header = &fs::read(folder().join("libz.so.1")).unwrap()[..20];
    let is_ours = |path: &PathBuf| fs::read(path).is_ok_and(|bytes| bytes.get(..20) == Some(header));
    let Some(system) = systems.into_iter().find(is_ours) else {
        return eprintln!("left out: there is no libz.so.1 to compare with");
    };
    let theirs = exports(&system);
    // Of two releases, each has versions that the other does not know.
    let is_known = |by: &BTreeSet<String>, name: &str| name.split("@@").nth(1).is_none_or(|version| by.contains(version));
    let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
        one.difference(other).filter(|name| !name.starts_with("ZLIB_") && is_known(other, name)).cloned().collect()
    };
    assert_eq!(only(&theirs, &ours), Vec::<String>::new(), "in {} and not here, or otherwise", system.display());
    assert_eq!(only(&ours, &theirs), Vec::<String>::new(), "here and not in {}, or otherwise", system.display());
}

#[test]
fn python() {
    let Some(mut python) = program("python3") else { return };
    let script = "
import gzip, io, sys, zipfile, zlib
assert sys.argv[2] in open('/proc/self/maps').read()
assert tuple(map(int, zlib.ZLIB_RUNTIME_VERSION.split('.'))) >= (1, 3), zlib.ZLIB_RUNTIME_VERSION
text = sys.argv[1].encode() * 30
for level in range(-1, 10):
    assert zlib.decompress(zlib.compress(text, level)) == text
assert gzip.decompress(gzip.compress(text)) == text
packer, unpacker, seen = zlib.compressobj(6, zlib.DEFLATED, -15), zlib.decompressobj(-15), b''
for at in range(0, len(text), 70001):
    seen += unpacker.decompress(packer.compress(text[at:at + 70001]) + packer.flush(zlib.Z_SYNC_FLUSH))
    assert seen == text[:at + 70001]
copy = packer.copy()
assert packer.flush() == copy.flush()
packer, unpacker = zlib.compressobj(9, zdict=text[:1000]), zlib.decompressobj(zdict=text[:1000])
assert unpacker.decompress(packer.compress(text[:900]) + packer.flush()) == text[:900]
box = io.BytesIO()
with zipfile.ZipFile(box, 'w', zipfile.ZIP_DEFLATED) as file:
    file.writestr('a', text)
assert zipfile.ZipFile(box).testzip() is None
try:
    zlib.decompress(zlib.compress(text)[:-5])
    assert False
except zlib.error as error:
    assert 'incomplete or truncated' in str(error)
";
    succeeds(python.args(["-c", script, &page()[..100_000]]).arg(folder()));
}

/// CPython's tests of modules over zlib, where a Python is installed with them.
#[test]
fn pythons_own_tests() {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let pythons = std::env::split_paths(&paths).chain(["/usr/bin".into()]).map(|folder| folder.join("python3"));
    let check = "import sys, zlib, test.test_zlib, test.test_gzip, test.test_zipfile, test.test_tarfile
sys.exit(sys.argv[1] not in open('/proc/self/maps').read())";
    let fits = |python: &PathBuf| {
        let tried = python.exists().then(|| on_terse(python).args(["-c", check]).arg(folder()).stdin(Stdio::null()).output());
        tried.is_some_and(|output| output.is_ok_and(|output| output.status.success()))
    };
    let Some(python) = pythons.into_iter().find(fits) else {
        return eprintln!("left out: no python3 has CPython's own tests and loads libz.so.1");
    };
    let folder = TempDir::new().unwrap();
    let tests = ["test_zlib", "test_gzip", "test_zipfile", "test_tarfile"];
    succeeds(on_terse(&python).current_dir(folder.path()).args(["-m", "test"]).args(tests));
}

#[test]
fn git() {
    let Some(_) = program("git") else { return };
    let folder = TempDir::new().unwrap();
    let git = |with: bool, words: &[&str]| {
        let mut command = program("git").unwrap();
        if !with {
            command.env_remove("LD_LIBRARY_PATH");
        }
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"];
        command.current_dir(folder.path()).env("HOME", folder.path()).env("GIT_CONFIG_NOSYSTEM", "1").args(identity).args(words);
        succeeds(&mut command);
    };
    git(true, &["init", "-q", "one"]);
    let page = page();
    for (number, part) in page.as_bytes().chunks(page.len() / 7).enumerate() {
        fs::write(folder.path().join(format!("one/{number}")), part).unwrap();
        git(true, &["-C", "one", "add", "."]);
        git(true, &["-C", "one", "commit", "-q", "-m", "part"]);
    }
    git(false, &["-C", "one", "fsck", "--full", "--strict"]);
    git(true, &["-C", "one", "gc", "-q"]);
    git(false, &["-C", "one", "fsck", "--full", "--strict"]);
    git(true, &["clone", "-q", "--no-local", "one", "two"]);
    git(false, &["-C", "two", "fsck", "--full", "--strict"]);
}

#[test]
fn subversion() {
    let (Some(mut admin), Some(_)) = (program("svnadmin"), program("svn")) else { return };
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    succeeds(admin.arg("create").arg(at("store")));
    let url = format!("file://{}", at("store").display());
    let svn = |words: &[&str]| {
        let mut command = program("svn").unwrap();
        succeeds(command.current_dir(folder.path()).env("HOME", folder.path()).arg("--non-interactive").args(words))
    };
    fs::create_dir(at("tree")).unwrap();
    fs::write(at("tree/page"), page()).unwrap();
    svn(&["import", "-q", "-m", "a page", "tree", &url]);
    svn(&["checkout", "-q", &url, "out"]);
    assert!(fs::read_to_string(at("out/page")).unwrap() == page());
    let mut verify = program("svnadmin").unwrap();
    succeeds(verify.env_remove("LD_LIBRARY_PATH").arg("verify").arg("-q").arg(at("store")));
}

/// A server, which ends with the test.
struct Server(Child);

impl Server {
    fn start(command: &mut Command) -> Server {
        // Apache ends its whole process group.
        Server(command.process_group(0).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Waits until a process listens there.
    fn connect(&mut self, port: u16) -> TcpStream {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
                return stream;
            }
            assert!(self.0.try_wait().unwrap().is_none(), "the server ended");
            assert!(Instant::now() < until, "nobody listens");
            std::thread::yield_now();
        }
    }

    /// Its process and its child processes.
    fn processes(&self) -> Vec<u32> {
        let own = self.0.id();
        let all = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        all.filter(|&id: &u32| {
            // The parent comes after the name, which is in brackets and may hold anything, and the state.
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
            id == own || parent == Some(own)
        })
        .collect()
    }

    /// Ends it as its operator would, with its child processes.
    fn stop(&mut self) {
        let id = self.0.id().to_string();
        let _ = Command::new("sh").args(["-c", &format!("kill {id}")]).status();
        self.0.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.0.try_wait().is_ok_and(|status| status.is_none()) {
            self.stop();
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Body of an answer with that coding.
fn fetch(stream: &mut TcpStream, path: &str, coding: &str) -> Vec<u8> {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {coding}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    assert!(head.contains("200 ok") && head.contains(&format!("content-encoding: {coding}")), "{head}");
    if !head.contains("transfer-encoding: chunked") {
        return answer.split_off(end + 4);
    }
    let (mut left, mut body) = (&answer[end + 4..], Vec::new());
    loop {
        let line = left.windows(2).position(|two| two == b"\r\n").expect("a chunk");
        let length = usize::from_str_radix(str::from_utf8(&left[..line]).unwrap(), 16).unwrap();
        body.extend_from_slice(&left[line + 2..][..length]);
        left = &left[line + 2 + length + 2..];
        if length == 0 {
            assert!(left.is_empty());
            return body;
        }
    }
}

/// Requests files of several sizes, smaller and larger than a stream's gathered input, several at the same time; then
/// ends the server. It has at least so many processes, and answers in that coding.
fn check_server(folder: &Path, port: u16, mut server: Server, processes: usize, coding: &str) {
    server.connect(port);
    let until = Instant::now() + Duration::from_secs(60);
    while server.processes().len() < processes {
        assert!(Instant::now() < until, "it starts no others");
        std::thread::yield_now();
    }
    for id in server.processes() {
        let maps = fs::read_to_string(format!("/proc/{id}/maps")).unwrap();
        assert!(maps.contains("libterse_z.so") && !maps.contains("/libz.so"), "{maps}");
    }
    let fetch_all = || {
        for name in ["small", "page", "large"] {
            let expected = fs::read(folder.join(format!("{name}.html"))).unwrap();
            let body = fetch(&mut TcpStream::connect(("127.0.0.1", port)).unwrap(), &format!("/{name}.html"), coding);
            assert!(decoded(&body, coding) == expected, "{name}");
            assert!(body.len() < expected.len() / 2, "{name}: {}", body.len());
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(fetch_all);
        }
    });
    server.stop();
}

fn site() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let page = page();
    for (name, text) in [("small", page[..600].to_owned()), ("page", page.clone()), ("large", page.repeat(9))] {
        fs::write(folder.path().join(format!("{name}.html")), text).unwrap();
    }
    folder
}

/// nginx, whose configuration begins in that way.
fn nginx(processes: usize, beginning: &str) {
    let Some(mut nginx) = program("nginx") else { return };
    let (folder, port) = (site(), free_port());
    let at = folder.path().display();
    let configuration = format!(
        "daemon off; {beginning} pid {at}/pid; error_log {at}/error.log warn; events {{ }}
         http {{ types {{ text/html html; }} access_log off; client_body_temp_path {at}/a; proxy_temp_path {at}/b; fastcgi_temp_path {at}/c;
         uwsgi_temp_path {at}/d; scgi_temp_path {at}/e; gzip on; gzip_comp_level 6; gzip_min_length 1;
         server {{ listen 127.0.0.1:{port}; root {at}; }} }}"
    );
    let file = folder.path().join("nginx.conf");
    fs::write(&file, configuration).unwrap();
    let server = Server::start(nginx.args(["-e", "stderr", "-c"]).arg(&file));
    check_server(folder.path(), port, server, processes, "gzip");
    let log = fs::read_to_string(folder.path().join("error.log")).unwrap();
    assert_eq!(log, "", "its preallocated memory is enough, and its streams end well");
}

#[test]
fn nginx_in_one_process() {
    nginx(1, "master_process off;");
}

#[test]
fn nginx_s_workers() {
    nginx(3, "worker_processes 2;");
}

/// Apache with one of its models of processes and threads.
fn apache(processes: usize, options: &[&str], way: &str) {
    let Some(mut apache) = program("apache2") else { return };
    let (folder, port) = (site(), free_port());
    let at = folder.path().display();
    let modules = "/usr/lib/apache2/modules";
    let configuration = format!(
        "ServerRoot {at}\nServerName a\nPidFile {at}/pid\nErrorLog {at}/error.log\nListen 127.0.0.1:{port}\nDocumentRoot {at}
         User #65534\nGroup #65534\nLoadModule mpm_{way}_module {modules}/mod_mpm_{way}.so\nStartServers 2
         LoadModule authz_core_module {modules}/mod_authz_core.so\nLoadModule mime_module {modules}/mod_mime.so
         LoadModule filter_module {modules}/mod_filter.so\nLoadModule deflate_module {modules}/mod_deflate.so
         TypesConfig /dev/null\nAddType text/html .html\nSetOutputFilter DEFLATE\nMutex posixsem\n"
    );
    let file = folder.path().join("apache.conf");
    fs::write(&file, configuration).unwrap();
    let server = Server::start(apache.args(options).arg("-f").arg(&file));
    check_server(folder.path(), port, server, processes, "gzip");
}

#[test]
fn apache_in_one_process() {
    apache(1, &["-X"], "event");
}

#[test]
fn apache_s_children() {
    apache(3, &["-D", "FOREGROUND"], "event");
    apache(3, &["-D", "FOREGROUND"], "prefork");
}

/// haproxy, where HAPROXY_ZLIB names a build with zlib, as `scripts/haproxy-with-zlib` fetches it: Debian 12's has a
/// compressor of its own and loads no libz.
#[test]
fn haproxy() {
    let Some(path) = std::env::var_os("HAPROXY_ZLIB").filter(|path| !path.is_empty()).map(PathBuf::from) else {
        return eprintln!("left out: HAPROXY_ZLIB names no haproxy that was built with zlib");
    };
    for (coding, level) in [("gzip", 1), ("gzip", 6), ("deflate", 1), ("deflate", 6)] {
        let (folder, port, origin) = (site(), free_port(), TcpListener::bind("127.0.0.1:0").unwrap());
        let configuration = format!(
            "global\n  nbthread 2\n  tune.comp.maxlevel {level}\ndefaults\n  mode http\n  timeout connect 60s\n  timeout client 60s
             timeout server 60s\nfrontend f\n  bind 127.0.0.1:{port}\n  compression algo {coding}\n  default_backend b
             backend b\n  server s {}\n",
            origin.local_addr().unwrap()
        );
        let file = folder.path().join("haproxy.cfg");
        fs::write(&file, configuration).unwrap();
        let root = folder.path().to_owned();
        std::thread::spawn(move || {
            for stream in origin.incoming().flatten() {
                let root = root.clone();
                std::thread::spawn(move || answer(stream, &root));
            }
        });
        check_server(folder.path(), port, Server::start(on_terse(&path).arg("-f").arg(&file)), 1, coding);
    }
}

/// Answers a request with the file of that name.
fn answer(mut stream: TcpStream, root: &Path) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read_exact(&mut byte).is_err() {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let name = head.split_whitespace().nth(1).unwrap().trim_start_matches('/');
    let body = fs::read(root.join(name)).unwrap();
    let length = body.len();
    let fields = format!("Content-Type: text/html\r\nContent-Length: {length}\r\nConnection: close");
    let _ = write!(stream, "HTTP/1.1 200 OK\r\n{fields}\r\n\r\n").and_then(|()| stream.write_all(&body));
}

#[test]
fn curl() {
    let Some(mut curl) = program("curl") else { return };
    // The manual's other way.
    curl.env_remove("LD_LIBRARY_PATH").env("LD_PRELOAD", folder().join("libterse_z.so"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        let length = stream.read(&mut head).unwrap();
        assert!(String::from_utf8_lossy(&head[..length]).contains("gzip"));
        let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        coder.write_all(page().as_bytes()).unwrap();
        let body = coder.finish().unwrap();
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len()).unwrap();
        stream.write_all(&body).unwrap();
    });
    let output = succeeds(curl.args(["-s", "--compressed", "--max-time", "20"]).arg(format!("http://127.0.0.1:{port}/")));
    server.join().unwrap();
    assert!(output.stdout == page().as_bytes());
}

/// A place beyond what 32 bits can count, reached by `gzseek` while writing and while reading.
#[test]
fn files_of_more_than_four_gigabytes() {
    if std::env::var_os("TERSE_FULL").is_none() || !Path::new("/usr/include/zlib.h").exists() {
        return eprintln!("left out: TERSE_FULL=1 packs and unpacks four gigabytes");
    }
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let source = "
#define _FILE_OFFSET_BITS 64
#include <string.h>
#include <zlib.h>
int main(void)
{
    const z_off_t place = (4LL << 30) + 12345;
    char end[9] = {0};
    gzFile file = gzopen(\"large.gz\", \"wb1\");
    if (gzseek(file, place, SEEK_SET) != place || gzputs(file, \"end\") != 3 || gzclose(file) != Z_OK) return 1;
    file = gzopen(\"large.gz\", \"rb\");
    if (gzseek(file, place, SEEK_SET) != place || gzread(file, end, 9) != 3 || strcmp(end, \"end\") != 0) return 2;
    if (gztell(file) != place + 3 || !gzeof(file) || gzclose(file) != Z_OK) return 3;
    return 0;
}";
    fs::write(at("large.c"), source).unwrap();
    succeeds(Command::new("cc").arg("-o").arg(at("large")).arg(at("large.c")).arg("-lz"));
    succeeds(on_terse(&at("large")).current_dir(folder.path()));
    let mut gzip = Command::new("sh");
    let said =
        succeeds(gzip.current_dir(folder.path()).args(["-c", "gzip -dc large.gz | tail -c 3; gzip -dc large.gz | wc -c"])).stdout;
    assert_eq!(String::from_utf8_lossy(&said).trim(), format!("end{}", (4u64 << 30) + 12_348));
}

/// zlib's own test programs, which Debian has among zlib1g-dev's examples.
#[test]
fn zlib_s_own_programs() {
    let sources = Path::new("/usr/share/doc/zlib1g-dev/examples");
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["example", "minigzip"] {
        let source = sources.join(format!("{name}.c"));
        if !source.exists() {
            return;
        }
        succeeds(Command::new("cc").arg("-w").arg("-o").arg(at(name)).arg(source).arg("-lz"));
    }
    let with = |name: &str| {
        let mut command = on_terse(&at(name));
        command.current_dir(folder.path());
        command
    };
    let said = succeeds(&mut with("example")).stdout;
    let said = String::from_utf8_lossy(&said);
    for line in ["large_inflate(): OK", "after inflateSync(): hel", "inflate with dictionary: hello, hello!"] {
        assert!(said.contains(line), "{said}");
    }
    fs::write(at("text"), page()).unwrap();
    succeeds(with("minigzip").args(["-9", "text"]));
    assert!(decoded(&fs::read(at("text.gz")).unwrap(), "gzip") == page().as_bytes());
    succeeds(with("minigzip").args(["-d", "text.gz"]));
    assert!(fs::read_to_string(at("text")).unwrap() == page());
}
