//! Programs that are not ours, unchanged, with this library in zlib's place.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The library, which cargo puts beside the tests' folder.
fn library() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let folder = tests.ancestors().nth(2).unwrap();
    [folder.join("libterse_z.so"), folder.join("deps/libterse_z.so")]
        .into_iter()
        .find(|file| file.exists())
        .expect("the library was built")
}

/// A program with the library in zlib's place; none: it is not there.
fn program(name: &str) -> Option<Command> {
    let folders = ["/usr/sbin", "/usr/bin", "/bin", "/sbin"];
    let path = folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists())?;
    let mut command = Command::new(path);
    command.env("LD_PRELOAD", library()).env_remove("LD_LIBRARY_PATH");
    Some(command)
}

fn succeeds(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{said}\n{errors}", output.status);
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

fn unzipped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).unwrap();
    out
}

#[test]
fn python() {
    let Some(mut python) = program("python3") else { return };
    let script = "
import gzip, io, sys, zipfile, zlib
assert 'zlib-rs' in zlib.ZLIB_RUNTIME_VERSION, zlib.ZLIB_RUNTIME_VERSION
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
    succeeds(python.args(["-c", script, &page()[..100_000]]));
}

#[test]
fn git() {
    let Some(_) = program("git") else { return };
    let folder = TempDir::new().unwrap();
    let git = |with: bool, words: &[&str]| {
        let mut command = program("git").unwrap();
        if !with {
            command.env_remove("LD_PRELOAD");
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
    succeeds(verify.env_remove("LD_PRELOAD").arg("verify").arg("-q").arg(at("store")));
}

/// Waits until somebody listens there.
fn connect(port: u16, child: &mut Child) -> TcpStream {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
            return stream;
        }
        assert!(child.try_wait().unwrap().is_none(), "the server ended");
        assert!(Instant::now() < until, "nobody listens");
        std::thread::yield_now();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The body of an answer over HTTP/1.0.
fn fetch(stream: &mut TcpStream, path: &str) -> Vec<u8> {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    assert!(head.contains("200 ok") && head.contains("content-encoding: gzip"), "{head}");
    answer.split_off(end + 4)
}

/// Files of several sizes, smaller and larger than what a stream gathers; ends the server that serves them.
fn check_server(folder: &Path, port: u16, mut server: Child) {
    connect(port, &mut server);
    let maps = fs::read_to_string(format!("/proc/{}/maps", server.id())).unwrap();
    assert!(maps.contains("libterse_z.so"));
    for name in ["small", "page", "large"] {
        let expected = fs::read(folder.join(format!("{name}.html"))).unwrap();
        let body = fetch(&mut connect(port, &mut server), &format!("/{name}.html"));
        assert!(unzipped(&body) == expected, "{name}");
        assert!(body.len() < expected.len() / 2, "{name}: {}", body.len());
    }
    assert!(Command::new("sh").args(["-c", &format!("kill {}", server.id())]).status().unwrap().success());
    server.wait().unwrap();
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

#[test]
fn nginx() {
    let Some(mut nginx) = program("nginx") else { return };
    let (folder, port) = (site(), free_port());
    let at = folder.path().display();
    let configuration = format!(
        "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log warn; events {{ }}
         http {{ types {{ text/html html; }} access_log off; client_body_temp_path {at}/a; proxy_temp_path {at}/b; fastcgi_temp_path {at}/c;
         uwsgi_temp_path {at}/d; scgi_temp_path {at}/e; gzip on; gzip_comp_level 6; gzip_http_version 1.0; gzip_min_length 1;
         server {{ listen 127.0.0.1:{port}; root {at}; }} }}"
    );
    let file = folder.path().join("nginx.conf");
    fs::write(&file, configuration).unwrap();
    let server = nginx.args(["-e", "stderr", "-c"]).arg(&file).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    check_server(folder.path(), port, server);
    let log = fs::read_to_string(folder.path().join("error.log")).unwrap();
    assert_eq!(log, "", "its preallocated memory is enough, and its streams end well");
}

#[test]
fn apache() {
    let Some(mut apache) = program("apache2") else { return };
    let (folder, port) = (site(), free_port());
    let at = folder.path().display();
    let modules = "/usr/lib/apache2/modules";
    let configuration = format!(
        "ServerRoot {at}\nServerName a\nPidFile {at}/pid\nErrorLog {at}/error.log\nListen 127.0.0.1:{port}\nDocumentRoot {at}
         LoadModule mpm_event_module {modules}/mod_mpm_event.so\nLoadModule authz_core_module {modules}/mod_authz_core.so
         LoadModule mime_module {modules}/mod_mime.so\nLoadModule filter_module {modules}/mod_filter.so
         LoadModule deflate_module {modules}/mod_deflate.so\nTypesConfig /dev/null\nAddType text/html .html
         SetOutputFilter DEFLATE\nMutex posixsem\n"
    );
    let file = folder.path().join("apache.conf");
    fs::write(&file, configuration).unwrap();
    let server = apache.args(["-X", "-f"]).arg(&file).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    check_server(folder.path(), port, server);
}

#[test]
fn curl() {
    let Some(mut curl) = program("curl") else { return };
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
        let mut command = Command::new(at(name));
        command.env("LD_PRELOAD", library()).current_dir(folder.path());
        command
    };
    let said = succeeds(&mut with("example")).stdout;
    let said = String::from_utf8_lossy(&said);
    for line in ["large_inflate(): OK", "after inflateSync(): hel", "inflate with dictionary: hello, hello!"] {
        assert!(said.contains(line), "{said}");
    }
    fs::write(at("text"), page()).unwrap();
    succeeds(with("minigzip").args(["-9", "text"]));
    assert!(unzipped(&fs::read(at("text.gz")).unwrap()) == page().as_bytes());
    succeeds(with("minigzip").args(["-d", "text.gz"]));
    assert!(fs::read_to_string(at("text")).unwrap() == page());
}
