//! Pages over real connections: a worker on a thread of its own.

use crate::commands::fixture::context;
use crate::context::Context;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use terse_balance::report;
use terse_proxy::access::{Access, Listener};
use terse_proxy::worker::{Control, Shared, run};
use tokio::sync::watch;

/// A worker that serves a frontend with these lines and two backends.
struct Site {
    context: Arc<Context>,
    address: SocketAddr,
    control: watch::Sender<Control>,
    worker: Option<JoinHandle<std::io::Result<()>>>,
}

impl Site {
    fn new(lines: &str) -> Site {
        let text = format!(
            "defaults\n mode http\n timeout client 5s\n timeout server 5s\n timeout connect 1s\nfrontend fe\n bind 127.0.0.1:80\n{lines}\n\
             backend b1\n server srv1 127.0.0.1:1\n server srv2 127.0.0.1:2\nbackend <b2>\n server srv1 127.0.0.1:1\n"
        );
        let context = context(&text);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (control, orders) = watch::channel(Control::Running);
        let shared = Shared {
            control: orders,
            connections: Arc::default(),
            queue: None,
            lends_hands: false,
            raiser: None,
            compression_rate: Arc::default(),
        };
        let plan = context.plan.clone();
        let worker = std::thread::spawn(move || run(plan, 0, vec![(0, Access::Own(Listener::Tcp(listener)))], shared));
        Site { context, address, control, worker: Some(worker) }
    }

    /// The whole answer to a request.
    fn says(&self, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        write!(stream, "{head}\r\nHost: h\r\nConnection: close\r\n{length}\r\n{body}").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn get(&self, target: &str) -> String {
        self.says(&format!("GET {target} HTTP/1.1"), "")
    }

    fn status(&self, backend: usize, server: usize) -> String {
        report::status(&self.context.plan.backends.now()[backend].farm.servers()[server])
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.control.send(Control::Stopping);
        self.worker.take().map(JoinHandle::join);
    }
}

#[test]
fn figures_are_shown_in_every_form() {
    let site = Site::new(" stats uri /stats\n stats refresh 5s\n stats show-version\n stats show-node");
    let html = site.get("/stats");
    assert!(html.starts_with("HTTP/1.1 200 OK\r\n") && html.contains("\r\nRefresh: 5\r\n"), "{html}");
    assert!(html.contains("<h1>Statistics of terse 3.5-dev5 on here</h1>") && html.contains("<h2>&lt;b2&gt;</h2>"), "{html}");
    assert!(!html.contains("<form") && html.ends_with("</html>\n"), "{html}");
    assert!(!site.get("/stats;norefresh").contains("\r\nRefresh"));
    let csv = site.get("/stats?;csv;scope=b1");
    assert!(csv.contains("\r\nContent-Type: text/plain\r\n") && csv.contains("\r\n\r\n# pxname,svname,"), "{csv}");
    assert!(csv.contains("\nb1,BACKEND,") && !csv.contains("b2"), "{csv}");
    assert!(site.get("/stats;json").contains("\r\n\r\n[[{\"objType\":\"Frontend\""));
    assert!(site.get("/other").starts_with("HTTP/1.1 503 "));
    let head = site.says("HEAD /stats HTTP/1.1", "");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn forms_change_servers_where_that_is_allowed() {
    let site = Site::new(" stats uri /\n stats admin if { path_beg /admin }");
    let post = |head: &str, body: &str| site.says(&format!("POST {head}"), body);
    let moved = post("/admin HTTP/1.1", "s=srv1&s=srv2&action=maint&b=%233");
    assert!(moved.starts_with("HTTP/1.1 303 See Other\r\n") && moved.contains("\r\nLocation: /;st=DONE\r\n"), "{moved}");
    assert_eq!((site.status(0, 0), site.status(0, 1)), ("MAINT".into(), "MAINT".into()));
    let chunked = "POST /admin HTTP/1.1\r\nTransfer-Encoding: chunked";
    let body = "6\r\ns=srv1\r\n14\r\n&action=drain&b=%233\r\n0\r\n\r\n";
    let mut stream = TcpStream::connect(site.address).unwrap();
    write!(stream, "{chunked}\r\nHost: h\r\nConnection: close\r\n\r\n{body}").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.contains(";st=DONE"), "{text}");
    assert_eq!(site.status(0, 0), "DRAIN");
    assert!(post("/ HTTP/1.1", "s=srv1&action=ready&b=b1").contains(";st=DENY"));
    assert!(post("/admin HTTP/1.1\r\nOrigin: http://elsewhere", "s=srv1&action=ready&b=b1").contains(";st=DENY"));
    assert!(post("/admin HTTP/1.1\r\nOrigin: http://h", "s=srv1&action=ready&b=b1").contains(";st=DONE"));
    assert_eq!(site.status(0, 0), "no check");
    let page = site.get("/admin;st=DONE");
    assert!(
        page.contains("The servers were changed.") && page.contains("<input type=\"checkbox\" name=\"s\" value=\"srv1\">"),
        "{page}"
    );
}

#[test]
fn a_scope_limits_what_is_shown_and_changed() {
    let site = Site::new(" stats enable\n stats scope b1\n stats scope .\n stats admin unless { path /never }");
    let page = site.get("/haproxy?stats");
    assert!(page.contains("<h2>b1</h2>") && page.contains("<h2>fe</h2>") && !page.contains("b2"), "{page}");
    assert!(site.says("POST /haproxy?stats HTTP/1.1", "s=srv1&action=maint&b=%234").contains(";st=DENY"));
    assert!(site.says("POST /haproxy?stats HTTP/1.1", "s=srv1&action=maint&b=%233").contains("Location: /haproxy?stats;st=DONE"));
}

#[test]
fn passwords_and_rules_decide_who_may_look() {
    let site = Site::new(" stats auth Aladdin:open\\ sesame\n stats realm say\\ it");
    let asked = site.get("/haproxy?stats");
    assert!(asked.starts_with("HTTP/1.1 401 ") && asked.contains("\r\nWWW-Authenticate: Basic realm=\"say it\"\r\n"), "{asked}");
    let with = |value: &str| site.says(&format!("GET /haproxy?stats HTTP/1.1\r\nAuthorization: {value}"), "");
    assert!(with("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==").starts_with("HTTP/1.1 200 "));
    assert!(with("basic  QWxhZGRpbjpvcGVuIHNlc2FtZQ==").starts_with("HTTP/1.1 200 "));
    assert!(with("Basic QWxhZGRpbjpvcGVu").starts_with("HTTP/1.1 401 "));
    assert!(with("Basic").starts_with("HTTP/1.1 401 "));
    let site = Site::new(
        " stats http-request deny if { hdr(x) no }\n stats http-request auth if { hdr(x) who }\n stats auth a:b\n stats http-request allow",
    );
    let with = |value: &str| site.says(&format!("GET /haproxy?stats HTTP/1.1\r\nX: {value}"), "");
    assert!(
        with("no").starts_with("HTTP/1.1 403 ")
            && with("who").starts_with("HTTP/1.1 401 ")
            && with("yes").starts_with("HTTP/1.1 200 ")
    );
}
