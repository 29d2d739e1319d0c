//! Scripts in Lua: services, and what is said of scripts that are wrong.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use support::client::Client;
use support::gzip::gunzip;
use support::proxy::DEFAULTS;
use support::server::{Server, ok};
use support::{Terse, until};

/// A process that has loaded the script, whose only proxy has these lines.
fn scripted(script: &str, lines: &str) -> Terse {
    loaded("lua-load", 1, script, lines)
}

fn loaded(keyword: &str, workers: usize, script: &str, lines: &str) -> Terse {
    let global =
        format!("global\n nbthread {workers}\n tune.lua.bool-sample-conversion normal\n {keyword} \"${{dir}}/script.lua\"");
    let text = format!("{global}\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n{lines}\n");
    Terse::with(&text).file("script.lua", script).listen("web").start()
}

const HELLO: &str = r#"
core.register_service("hello", "http", function(applet)
  local text = "Hello " .. applet.qs
  applet:set_status(201, "Made")
  applet:add_header("Content-Length", #text)
  applet:add_header("X-Two", "a")
  applet:add_header("X-Two", "b")
  applet:start_response()
  applet:send(text)
end)
"#;

#[test]
fn a_service_answers() {
    let terse = scripted(HELLO, "http-response set-header seen %[status]\n http-request use-service lua.hello");
    let mut client = terse.client();
    // The connection goes on.
    for name in ["world", "again"] {
        let response = client.get(&format!("/?{name}"), &[]);
        assert_eq!((response.line.as_str(), response.text()), ("HTTP/1.1 201 Made", format!("Hello {name}")));
        assert_eq!(response.fields.iter().filter(|(name, _)| name == "X-Two").count(), 2);
        assert_eq!(response.field("seen"), Some("201"), "rules on responses see it");
    }
    client.send("HEAD /?you HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = client.response("HEAD");
    assert_eq!((head.status, head.field("content-length")), (201, Some("9")));
    assert_eq!(client.get("/?last", &[]).text(), "Hello last");
    terse.end();
}

#[test]
fn a_service_sees_its_request() {
    let script = r#"
core.register_service("echo", "http", function(applet)
  applet:start_response()
  applet:send(table.concat({ applet.method, applet.path, applet.qs, applet.version, applet.length, applet.headers["x-a"][0],
    applet.headers["x-a"][1], applet.sf:src(), applet.c:upper("up"), applet:get_var("txn.before"),
    tostring(applet:set_var("txn.after", 7)), tostring(applet:get_var("txn.none")) }, " "))
  applet:send("\n" .. applet:getline() .. applet:receive(3) .. "|" .. applet:receive())
end)
"#;
    let rules = "http-request set-var(txn.before) str(first)\n http-request use-service lua.echo\n \
                 http-after-response set-header after %[var(txn.after)]";
    let terse = scripted(script, rules);
    let mut client = terse.client();
    client.send("POST /p?q HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 12\r\n\r\nline\n1234567");
    let response = client.response("POST");
    assert_eq!(response.text(), "POST /p q HTTP/1.1 12 1 2 127.0.0.1 UP first true nil\nline\n123|4567");
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nX-A: 2\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n4\r\ncdef\r\n0\r\n\r\n",
    );
    assert!(client.response("POST").text().ends_with("\na\nbcd|ef"));
    let old = terse.client().with_old("/");
    assert!(old.ends_with("|") && old.starts_with("HTTP/1.1 200"), "{old}");
    terse.end();
}

impl Client {
    /// All that a client of HTTP/1.0 gets.
    fn with_old(mut self, path: &str) -> String {
        self.send(format!("GET {path} HTTP/1.0\r\nX-A: 1\r\nX-A: 2\r\n\r\n"));
        String::from_utf8(self.rest()).unwrap()
    }
}

const LONG: &str = r#"
local piece = string.rep("0123456789abcdef", 4096)
local sent = 0
core.register_service("long", "http", function(applet)
  applet:add_header("Content-Type", "text/plain")
  applet:start_response()
  for i = 1, tonumber(applet.qs) do
    applet:send(piece)
    sent = sent + 1
  end
end)
core.register_service("sent", "http", function(applet)
  applet:start_response()
  applet:send(tostring(sent))
end)
"#;

#[test]
fn what_a_service_sends_is_compressed() {
    let rules = "compression algo gzip\n compression type text/plain\n http-request use-service lua.long";
    let terse = scripted(LONG, rules);
    let response = terse.client().get("/?20", &[("Accept-Encoding", "gzip")]);
    assert_eq!(response.field("content-encoding"), Some("gzip"));
    assert!(gunzip(&response.body) == b"0123456789abcdef".repeat(4096 * 20));
    terse.end();
}

/// A client that reads nothing makes the script wait, so that little is held for it.
#[test]
fn a_slow_client_holds_its_script_back() {
    const PIECES: usize = 1024;
    let rules = "http-request use-service lua.sent if { path /sent }\n http-request use-service lua.long";
    let terse = scripted(LONG, rules);
    let mut slow = terse.client();
    slow.send(format!("GET /?{PIECES} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let head = slow.head();
    let mut asking = terse.client();
    let (mut before, mut same) = (0, 0);
    let sent = until("the script to wait", || {
        let sent: usize = asking.get("/sent", &[]).text().parse().unwrap();
        same = if sent == before { same + 1 } else { 0 };
        before = sent;
        (same == 50).then_some(sent)
    });
    assert!(sent < PIECES / 2, "{sent} of {PIECES} pieces are sent");
    let response = slow.with_body(head, "GET");
    assert_eq!(response.body.len(), PIECES << 16);
    terse.end();
}

#[test]
fn services_that_fail_are_told() {
    let script = r#"
core.register_service("wrong", "http", function(applet)
  applet.none.of_it()
end)
core.register_service("silent", "http", function(applet) end)
core.register_service("late", "http", function(applet)
  applet:start_response()
  applet:send(string.rep("some", 1000000))
  error("it broke")
end)
core.register_service("endless", "http", function(applet)
  while true do end
end)
core.register_service("sorted", "http", function(applet)
  table.sort({ 1, 2, 3 }, function() while true do end end)
end)
"#;
    let rules = ["wrong", "silent", "late", "endless", "sorted"]
        .map(|name| format!("http-request use-service lua.{name} if {{ path /{name} }}"))
        .join("\n ");
    let text = format!(
        "global\n nbthread 1\n tune.lua.bool-sample-conversion normal\n tune.lua.service-timeout 100\n tune.lua.burst-timeout 200\n \
         lua-load \"${{dir}}/script.lua\"\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n {rules}\n http-request return status 204\n"
    );
    let terse = Terse::with(&text).file("script.lua", script).listen("web").start();
    for (name, said) in [
        ("wrong", "script.lua:3: attempt to index a nil value (field 'none')"),
        ("silent", "Lua applet 'silent'"),
        ("endless", "script.lua:12: execution timeout"),
        ("sorted", "script.lua:15: execution timeout"),
    ] {
        assert_eq!(terse.client().get(&format!("/{name}"), &[]).status, 500, "{name}");
        until(name, || terse.stderr().contains(said).then_some(()));
    }
    // What has begun breaks off.
    let mut client = terse.client();
    client.send("GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    let rest = String::from_utf8(client.rest()).unwrap();
    assert!(rest.starts_with("HTTP/1.1 200") && !rest.ends_with("0\r\n\r\n"), "{rest}");
    // Others are served as before.
    assert_eq!(terse.client().get("/other", &[]).status, 204);
    terse.end();
}

#[test]
fn each_worker_may_have_its_own_scripts() {
    let script = "local count = 0\ncore.register_service('count', 'http', function(applet)\n count = count + 1\n \
                  applet:start_response()\n applet:send(core.thread .. ' ' .. count)\nend)\n";
    let shared = loaded("lua-load", 2, script, "http-request use-service lua.count");
    let answers: Vec<_> = (1..=20).map(|_| shared.client().get("/", &[]).text()).collect();
    assert_eq!(answers, (1..=20).map(|n| format!("0 {n}")).collect::<Vec<_>>());
    shared.end();
    let own = loaded("lua-load-per-thread", 2, script, "http-request use-service lua.count");
    let mut counts = [0, 0];
    for _ in 0..20 {
        let answer = own.client().get("/", &[]).text();
        let (thread, count) = answer.split_once(' ').unwrap();
        let known = &mut counts[thread.parse::<usize>().unwrap() - 1];
        *known += 1;
        assert_eq!(count.parse(), Ok(*known));
    }
    own.end();
}

#[test]
fn scripts_that_are_wrong_are_problems_of_the_file() {
    let check = |script: &str, lines: &str| {
        let text = format!("global\n tune.lua.bool-sample-conversion normal\n lua-load \"${{dir}}/script.lua\" one two\n{lines}\n");
        Terse::with(&text).file("script.lua", script).arg(&["-c"]).run().stderr
    };
    for (script, lines, said) in [
        ("\nlocal = 3", "", "script.lua:2: <name> expected near '='"),
        ("\n\nerror('no')", "", "script.lua:3: no"),
        ("core.sleep(1)", "", "script.lua:1: nothing can wait while the script is loaded"),
        ("core.register_service('x', 'udp', print)", "", "register_service expects the mode 'http' or 'tcp'"),
        ("core.tcp()", "", "core.tcp is not built"),
        ("", "frontend f\n http-request use-service lua.x", "unknown service 'lua.x'"),
        ("", "frontend f\n http-request lua.x", "unknown action 'lua.x'"),
        ("", "frontend f\n http-request set-header a %[lua.x]", "unknown fetch method 'lua.x'"),
        ("local a = {...}\nerror(a[1] .. a[2], 0)", "", "onetwo"),
        ("", "global\n tune.lua.openlibs none", "comes too late"),
    ] {
        let stderr = check(script, lines);
        assert!(stderr.contains(said), "{said}: {stderr}");
    }
    let missing = Terse::with("global\n lua-load \"${dir}/none.lua\"\n").arg(&["-c"]).run().stderr;
    assert!(missing.contains("terse.cfg:2]") && missing.contains("none.lua': No such file"), "{missing}");
    let none = Terse::with("frontend f\n http-request lua.x\n").arg(&["-c"]).run().stderr;
    assert!(none.contains("no Lua script is loaded"), "{none}");
}

#[test]
fn memory_and_libraries_are_limited() {
    let script = "core.register_service('hog', 'http', function(applet)\n local all = {}\n \
                  for i = 1, 1e9 do all[i] = string.rep('x', 1000) .. i end\nend)\n\
                  core.register_service('libraries', 'http', function(applet)\n applet:start_response()\n \
                  applet:send(tostring(io) .. type(string) .. type(debug.traceback))\nend)\n";
    let text = format!(
        "global\n nbthread 1\n tune.lua.bool-sample-conversion normal\n tune.lua.maxmem 4\n tune.lua.openlibs string,table\n \
         lua-load \"${{dir}}/script.lua\"\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n http-request use-service lua.hog if {{ path /hog }}\n \
         http-request use-service lua.libraries\n"
    );
    let terse = Terse::with(&text).file("script.lua", script).listen("web").start();
    assert_eq!(terse.client().get("/hog", &[]).status, 500);
    until("the complaint", || terse.stderr().contains("not enough memory").then_some(()));
    assert_eq!(terse.client().get("/", &[]).text(), "niltablefunction");
    terse.end();
}

#[test]
fn a_service_stands_beside_servers() {
    let server = Server::answering(|_| ok("from the server"));
    let rules = format!("http-request use-service lua.hello if {{ path /hello }}\n server s {}", server.address());
    let terse = scripted(HELLO, &rules);
    let mut client = terse.client();
    assert_eq!(client.get("/", &[]).text(), "from the server");
    assert_eq!(client.get("/hello?x", &[]).text(), "Hello x");
    assert_eq!(client.get("/", &[]).text(), "from the server");
    terse.end();
}
