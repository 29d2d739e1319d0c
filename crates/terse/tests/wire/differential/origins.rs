//! Debian's nginx and Apache as servers behind terse, with files, tags and ranges of their own; curl as the client.

use super::support::client::{Client, Response};
use super::support::gzip::gunzip;
use super::support::program::{Running, curl, find};
use super::support::proxy::listen;
use super::support::{Terse, until};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

/// A web server with a folder of files.
struct Origin {
    folder: TempDir,
    address: SocketAddr,
    _port: super::support::server::Port,
    _program: Running,
}

impl Origin {
    /// Starts a program with a configuration in which `{folder}` and `{address}` are replaced by its own.
    fn start(name: &str, words: &[&str], configuration: &str) -> Option<Origin> {
        let program = find(name)?;
        let folder = tempfile::Builder::new().prefix("o").tempdir_in("/tmp").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(folder.path().join("files")).unwrap();
        let port = super::support::server::Port::new();
        let address = port.address();
        let at = folder.path().to_str().unwrap();
        let text = configuration.replace("{folder}", at).replace("{address}", &address.to_string());
        let file = folder.path().join("server.conf");
        fs::write(&file, text).unwrap();
        let words: Vec<&str> = words.iter().copied().chain([file.to_str().unwrap()]).collect();
        let running = Running::start(&program, &words, folder.path());
        let origin = Origin { folder, address, _port: port, _program: running };
        origin.write("page.html", &page(1));
        origin.write("image.png", "not compressed, whatever it is".repeat(50).as_bytes());
        until(name, || TcpStream::connect(address).ok());
        Some(origin)
    }

    fn nginx(gzip: &str) -> Option<Origin> {
        let configuration = format!(
            "daemon off; master_process off; pid {{folder}}/pid; error_log {{folder}}/error.log;\nevents {{}}\nhttp {{\n\
             types {{ text/html html; image/png png; }}\n access_log off; client_body_temp_path {{folder}}/t; proxy_temp_path {{folder}}/p;\n\
             fastcgi_temp_path {{folder}}/f; uwsgi_temp_path {{folder}}/u; scgi_temp_path {{folder}}/s;\n {gzip}\n\
             server {{ listen {{address}}; root {{folder}}/files; }}\n}}\n"
        );
        Origin::start("nginx", &["-c"], &configuration)
    }

    fn apache(deflate: &str) -> Option<Origin> {
        let modules = "/usr/lib/apache2/modules";
        let loaded: String = ["mpm_event", "authz_core", "mime", "filter", "deflate"]
            .iter()
            .filter(|name| fs::exists(format!("{modules}/mod_{name}.so")).unwrap_or(false))
            .map(|name| format!("LoadModule {name}_module {modules}/mod_{name}.so\n"))
            .collect();
        let configuration = format!(
            "ServerRoot {{folder}}\nServerName localhost\nListen {{address}}\nPidFile {{folder}}/pid\nErrorLog {{folder}}/error.log\n\
             DefaultRuntimeDir {{folder}}\nMutex pthread default\n{loaded}\nUser www-data\nGroup www-data\n\
             DocumentRoot {{folder}}/files\nTypesConfig /dev/null\nAddType text/html html\nAddType image/png png\nKeepAliveTimeout 1\n{deflate}\n"
        );
        Origin::start("apache2", &["-X", "-f"], &configuration)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.folder.path().join("files").join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }

    fn proxy(&self, lines: &str) -> Terse {
        listen(&format!("compression algo gzip\n compression type text/html\n {lines}\n server one {}", self.address))
    }
}

fn page(version: usize) -> Vec<u8> {
    (0..200).map(|line| format!("<p>version {version}, line {line}</p>\n")).collect::<String>().into_bytes()
}

/// The body, its coding undone.
fn plain(response: &Response) -> Vec<u8> {
    if response.field("content-encoding") == Some("gzip") { gunzip(&response.body) } else { response.body.clone() }
}

/// Files on any server.
fn files(origin: &Origin, lines: &str) {
    origin.write("page.html", &page(1));
    let terse = origin.proxy(lines);
    let mut client = terse.client();
    let gzip = ("Accept-Encoding", "gzip");
    let whole = client.get("/page.html", &[]);
    assert_eq!((whole.status, whole.field("content-encoding"), whole.body.as_slice()), (200, None, &page(1)[..]));
    let coded = client.get("/page.html", &[gzip]);
    assert_eq!((coded.status, coded.field("content-encoding")), (200, Some("gzip")), "{lines}");
    assert!(plain(&coded) == page(1) && coded.body.len() < page(1).len() / 5);
    assert!(coded.fields.iter().any(|(name, value)| name.eq_ignore_ascii_case("vary") && value.contains("Accept-Encoding")));
    let image = client.get("/image.png", &[gzip]);
    assert_eq!((image.status, image.field("content-encoding")), (200, None));
    assert_eq!(client.get("/none", &[gzip]).status, 404);

    // The response that either client holds is current, until it is not.
    let tag = |response: &Response| response.field("etag").unwrap().to_owned();
    for (held, accepts) in [(&whole, &[][..]), (&coded, &[gzip])] {
        let mut asked = |name: &str, value: &str| client.get("/page.html", &[accepts, &[(name, value)]].concat());
        let again = asked("If-None-Match", &tag(held));
        assert!(again.status == 304 || again.status == 200 && plain(&again) == page(1), "{again:?}");
        assert_eq!(asked("If-Modified-Since", held.field("last-modified").unwrap()).status, 304);
    }
    let strong = tag(&whole);
    if !strong.starts_with("W/") {
        let part = client.get("/page.html", &[("Range", "bytes=1000-"), ("If-Range", &strong)]);
        assert_eq!((part.status, part.body.as_slice()), (206, &page(1)[1000..]));
    }
    // No client goes on in one coding after it has begun in another.
    let part = client.get("/page.html", &[gzip, ("Range", "bytes=100-"), ("If-Range", &tag(&coded))]);
    let joined = [&coded.body[..100.min(coded.body.len())], &part.body].concat();
    assert!(part.status == 200 && plain(&part) == page(1) || part.status == 206 && joined == coded.body, "{:?}", part.fields);

    origin.write("page.html", &page(20));
    for (held, accepts) in [(&whole, &[][..]), (&coded, &[gzip])] {
        let tag = tag(held);
        let again = client.get("/page.html", &[accepts, &[("If-None-Match", &*tag)]].concat());
        assert_eq!((again.status, plain(&again)), (200, page(20)), "{lines}");
        let rest = client.get("/page.html", &[accepts, &[("Range", "bytes=100-"), ("If-Range", &*tag)]].concat());
        assert_eq!((rest.status, plain(&rest)), (200, page(20)), "{lines}");
    }
    terse.end();
}

#[test]
fn files_of_nginx() {
    for gzip in ["gzip off;", "gzip on; gzip_vary on; gzip_min_length 1;"] {
        let Some(origin) = Origin::nginx(gzip) else { return };
        ["", "compression offload", "compression etag weaken"].into_iter().for_each(|lines| files(&origin, lines));
    }
}

#[test]
fn files_of_apache() {
    for deflate in ["", "AddOutputFilterByType DEFLATE text/html"] {
        let Some(origin) = Origin::apache(deflate) else { return };
        ["", "compression offload", "compression etag weaken"].into_iter().for_each(|lines| files(&origin, lines));
    }
}

/// Apache's own tags of compressed bodies, `"...-gzip"`, are left alone: they come back to it as they were.
#[test]
fn tags_of_apache() {
    let Some(origin) = Origin::apache("AddOutputFilterByType DEFLATE text/html") else { return };
    let terse = origin.proxy("");
    let gzip = ("Accept-Encoding", "gzip");
    let coded = terse.client().get("/page.html", &[gzip]);
    let tag = coded.field("etag").unwrap();
    assert!(tag.ends_with("-gzip\""), "{tag}");
    let direct = Client::connect(origin.address).get("/page.html", &[gzip, ("If-None-Match", tag)]);
    let through = terse.client().get("/page.html", &[gzip, ("If-None-Match", tag)]);
    assert_eq!(through.status, direct.status);
    assert_eq!(through.field("etag"), direct.field("etag"));
    terse.end();
}

#[test]
fn curl_as_the_client() {
    let (Some(curl), Some(origin)) = (curl(), Origin::nginx("gzip off;")) else { return };
    let terse = origin.proxy("");
    let url = format!("http://{}/page.html", terse.address("web"));
    let path = |name: &str| terse.path(name).to_str().unwrap().to_owned();
    let (out, tag) = (path("out"), path("tag"));
    let got = |words: &[&str]| {
        let said = curl(&[&["-s", "-o", &out, "-w", "%{http_code} %{size_download}"], words, &[&url]].concat());
        assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
        (said.stdout, fs::read(&out).unwrap_or_default())
    };
    let length = page(1).len();
    assert_eq!(got(&[]), (format!("200 {length}"), page(1)));
    assert_eq!(got(&["--http1.0"]), (format!("200 {length}"), page(1)));
    let (said, body) = got(&["--compressed"]);
    assert!(body == page(1) && said.starts_with("200 ") && said != format!("200 {length}"), "{said}");
    assert_eq!(got(&["--compressed", "--etag-save", &tag]).1, page(1));
    let tags = fs::read_to_string(&tag).unwrap();
    assert!(tags.starts_with("W/\""), "{tags}");
    assert!(got(&["-r", "100-199"]) == ("206 100".to_owned(), page(1)[100..200].to_vec()));
    // A download that was cut off goes on where it was, and is whole.
    fs::write(&out, &page(1)[..1000]).unwrap();
    assert_eq!(got(&["-C", "-"]).1, page(1));
    assert_eq!(got(&["--etag-save", &tag]).1, page(1));
    fs::remove_file(&out).unwrap();
    assert_eq!(got(&["--etag-compare", &tag]).0, "304 0");
    origin.write("page.html", &page(30));
    assert_eq!(got(&["--etag-compare", &tag]).1, page(30));
    let head = curl(&["-sI", "--compressed", &url]);
    assert!(head.stdout.starts_with("HTTP/1.1 200 OK\r\n"), "{head:?}");
    terse.end();
}

/// curl sends that it takes all it can, gzip first; the operator's order decides.
#[test]
fn curl_takes_zstd_and_brotli() {
    let (Some(curl), Some(origin)) = (curl(), Origin::nginx("gzip off;")) else { return };
    origin.write("page.html", &page(1));
    for (coding, wanted) in [("zstd br gzip", "zstd"), ("br zstd gzip", "br"), ("zstd", "zstd"), ("br", "br")] {
        let lines = format!("compression algo {coding}\n server one {}", origin.address);
        let terse = listen(&lines);
        let url = format!("http://{}/page.html", terse.address("web"));
        let got = curl(&["-s", "--compressed", "-D", "-", &url]);
        assert!(got.stdout.contains(&format!("Content-Encoding: {wanted}\r\n")), "{coding}: {got:?}");
        let body = got.stdout.split_once("\r\n\r\n").map(|(_, body)| body.as_bytes());
        assert_eq!(body, Some(&page(1)[..]), "{coding}");
        terse.end();
    }
}

/// Servers that close idle connections by themselves do not cost requests.
#[test]
fn a_server_that_closes_when_idle() {
    let Some(origin) = Origin::apache("KeepAliveTimeout 100ms\nMaxKeepAliveRequests 3") else { return };
    let terse = origin.proxy("http-reuse always");
    let mut client = terse.client();
    for round in 0..30 {
        assert_eq!(client.get("/image.png", &[]).status, 200, "{round}");
        if round % 10 == 9 {
            super::support::readable(client.stream(), std::time::Duration::from_millis(150));
        }
    }
    terse.end();
}
