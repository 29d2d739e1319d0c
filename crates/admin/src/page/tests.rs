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
        self.says_to("localhost", head, body)
    }

    /// The same with another Host.
    fn says_to(&self, host: &str, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        write!(stream, "{head}\r\nHost: {host}\r\nConnection: close\r\n{length}\r\n{body}").unwrap();
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
    assert!(html.starts_with("HTTP/1.1 200 OK\r\n") && html.contains("\r\nTransfer-Encoding: chunked\r\n"), "{html}");
    assert!(html.contains("<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>"), "{html}");
    assert!(html.contains("<h1>terse 0.9.0 on here</h1>") && html.contains("<h2>&lt;b2&gt; <small>backend, mode http"), "{html}");
    assert!(
        html.contains("Nothing was sent yet.") && !html.contains("<form") && html.ends_with("</html>\n\r\n0\r\n\r\n"),
        "{html}"
    );
    assert!(!site.get("/stats;norefresh").contains("http-equiv=\"refresh\""));
    assert!(site.get("/stats;columns").contains("<th colspan=\"2\" scope=\"colgroup\">Denied</th>"));
    let csv = site.get("/stats?;csv;scope=b1");
    assert!(csv.contains("\r\nContent-Type: text/plain\r\n") && csv.contains("\r\n# pxname,svname,"), "{csv}");
    assert!(csv.contains("\nb1,BACKEND,") && !csv.contains("b2"), "{csv}");
    let json = site.get("/stats;json");
    assert!(json.contains("[[{\"objType\":\"Frontend\"") && json.ends_with("]\n\r\n0\r\n\r\n"), "{json}");
    assert!(site.get("/other").starts_with("HTTP/1.1 503 "));
    let head = site.says("HEAD /stats HTTP/1.1", "");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
}

/// A browser that knows the policy runs the page's own script, and no other.
#[test]
fn the_policy_names_what_is_on_the_page() {
    let site = Site::new(" stats uri /stats");
    let html = site.get("/stats");
    let policy = html.lines().find_map(|line| line.strip_prefix("Content-Security-Policy: ")).unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-") && policy.contains("frame-ancestors 'self'"), "{policy}");
    assert_eq!((html.matches("<script>").count(), html.matches("<style>").count(), html.matches(" style=").count()), (1, 1, 0));
    assert!(!html.contains("src=\"http") && !html.contains(" onclick"), "nothing is fetched, nothing runs from an attribute");
}

#[test]
fn parts_of_the_page_are_told_alone() {
    let site = Site::new(" stats uri /stats");
    let top = site.get("/stats;part=top");
    assert!(
        top.contains("\r\n\r\n<div data-run=\"") && top.contains(" data-title=\"terse\">") && !top.contains("<table>\n"),
        "{top}"
    );
    let rows = site.get("/stats;part=rows;from=2;count=2");
    let keys: Vec<_> = rows.split("data-k=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(keys, ["b1/srv2", "b1/BACKEND"], "{rows}");
    assert!(rows.contains("<tr data-n=\"2\" data-k=\"b1/srv2\">"), "{rows}");
}

fn body(answer: &str) -> serde_json::Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

#[test]
fn programs_are_told_figures() {
    let site = Site::new(" stats uri /stats\n compression algo gzip");
    let summary = body(&site.get("/stats;api=summary"));
    assert_eq!((&summary["v"], &summary["rights"], &summary["servers"]["unchecked"]), (&1.into(), &"look".into(), &3.into()));
    assert_eq!((&summary["codings"][0]["name"], &summary["version"]), (&"gzip".into(), &serde_json::Value::Null));
    let history = body(&site.get("/stats;api=history"));
    assert_eq!(history["step_s"], 1);
    let servers = body(&site.get("/stats;api=servers;from=1;count=1"));
    assert_eq!(
        (&servers["servers"][0]["name"], &servers["servers"][0]["state"], &servers["next"]),
        (&"srv2".into(), &"no check".into(), &2.into())
    );
    let rest = body(&site.get("/stats;api=servers;from=2"));
    assert_eq!((&rest["servers"][0]["backend"], &rest["next"]), (&"<b2>".into(), &serde_json::Value::Null));
    assert_eq!(rest["servers"].as_array().unwrap().len(), 1);
    let proxies = body(&site.get("/stats;api=proxies;scope=b"));
    let names: Vec<_> = proxies["proxies"].as_array().unwrap().iter().map(|proxy| proxy["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["b1", "<b2>"]);
    let none = site.get("/stats;api=nothing");
    assert!(none.starts_with("HTTP/1.1 404 ") && none.contains("{\"error\":\"there is no such name"), "{none}");
}

#[test]
fn programs_change_servers_where_that_is_allowed() {
    let site = Site::new(" stats uri /stats\n stats admin if { hdr(x) y }");
    let post =
        |host: &str, fields: &str, order: &str| site.says_to(host, &format!("POST /stats;api=server HTTP/1.1\r\n{fields}"), order);
    let json = "X: y\r\nContent-Type: application/json";
    let order = r#"{"backend":"b1","servers":["srv1"],"action":"drain"}"#;
    assert!(post("localhost", "Content-Type: application/json", order).starts_with("HTTP/1.1 403 "));
    assert!(post("evil.example", json, order).starts_with("HTTP/1.1 403 "), "a name that leads here");
    assert!(post("localhost", &format!("{json}\r\nOrigin: http://elsewhere"), order).starts_with("HTTP/1.1 403 "));
    assert!(post("localhost", "X: y\r\nContent-Type: text/plain", order).starts_with("HTTP/1.1 415 "));
    assert_eq!(site.status(0, 0), "no check");
    assert_eq!(body(&post("localhost", json, order))["changed"], 1);
    assert_eq!((site.status(0, 0), site.status(0, 1)), ("DRAIN".into(), "no check".into()));
    let weight = r#"{"backend":"b1","servers":["srv2"],"action":"weight","weight":7}"#;
    assert_eq!(body(&post("127.0.0.1", json, weight))["changed"], 1);
    assert_eq!(site.context.plan.backends.now()[0].farm.servers()[1].weight(), 7);
    for (order, status) in [
        (r#"{"backend":"b1","servers":["srv2","none"],"action":"drain"}"#, "404"),
        (r#"{"backend":"b1","servers":[],"action":"drain"}"#, "400"),
        (r#"{"backend":"no","servers":["srv1"],"action":"drain"}"#, "404"),
        (r#"{"backend":"b1","servers":["srv1"],"action":"explode"}"#, "400"),
        (r#"{"backend":"b1","servers":["srv1"],"action":"weight","weight":257}"#, "400"),
        (r#"{"backend":"b1","servers":"srv1","action":"drain"}"#, "400"),
        ("[", "400"),
    ] {
        let answer = post("localhost", json, order);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains("{\"error\":\""), "{order}: {answer}");
    }
    assert_eq!(site.status(0, 1), "no check", "all named servers are changed, or none");
    let unknown = post("localhost", json, r#"{"backend":"b1","servers":["none"],"action":"drain"}"#);
    assert!(unknown.contains("backend 'b1' has no server 'none'"), "{unknown}");
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
    write!(stream, "{chunked}\r\nHost: localhost\r\nConnection: close\r\n\r\n{body}").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.contains(";st=DONE"), "{text}");
    assert_eq!(site.status(0, 0), "DRAIN");
    assert!(post("/ HTTP/1.1", "s=srv1&action=ready&b=b1").contains(";st=DENY"));
    assert!(post("/admin HTTP/1.1\r\nOrigin: http://elsewhere", "s=srv1&action=ready&b=b1").contains(";st=DENY"));
    assert!(post("/admin HTTP/1.1\r\nOrigin: http://localhost", "s=srv1&action=ready&b=b1").contains(";st=DONE"));
    let by_name = |host: &str| site.says_to(host, "POST /admin HTTP/1.1", "s=srv1&action=ready&b=b1");
    assert!(by_name("evil.example").contains(";st=DENY") && by_name("127.0.0.1:8404").contains(";st=DONE"));
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
    assert!(page.contains("<h2>b1 ") && page.contains("<h2>fe ") && !page.contains("&lt;b2"), "{page}");
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
