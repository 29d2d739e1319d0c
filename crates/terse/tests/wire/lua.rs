//! Scripts in Lua: services, and the messages about wrong scripts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

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
core.register_service("caught", "http", function(applet)
  while true do pcall(function() while true do end end) end
end)
core.register_service("sorted", "http", function(applet)
  table.sort({ 1, 2, 3 }, function() while true do end end)
end)
"#;
    let rules = ["wrong", "silent", "late", "endless", "caught", "sorted"]
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
        ("caught", "script.lua:15: execution timeout"),
        ("sorted", "script.lua:18: execution timeout"),
    ] {
        assert_eq!(terse.client().get(&format!("/{name}"), &[]).status, 500, "{name}");
        until(name, || terse.stderr().contains(said).then_some(()));
    }
    // A response that has begun breaks off.
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
        ("error('one\\ntwo\\n\\tthree')", "", "script.lua:1: one; two; three\n"),
        (
            "require('none.such')",
            "",
            "script.lua:1: module 'none.such' not found: no field package.preload['none.such']; no file '",
        ),
        ("core.sleep(1)", "", "script.lua:1: nothing can wait while the script is loaded"),
        ("core.tcp():connect('127.0.0.1', 1)", "", "nothing can wait while the script is loaded"),
        ("core.tcp():send('x')", "", "nothing can wait while the script is loaded"),
        ("core.httpclient():get{ url = 'http://127.0.0.1:1/' }", "", "nothing can wait while the script is loaded"),
        ("core.register_service('x', 'udp', print)", "", "register_service expects the mode 'http' or 'tcp'"),
        (
            "\ncore.register_cli({'show', 'stat', 'x'}, 'x', print)",
            "",
            "script.lua:2: core.register_cli: 'show stat' is a command of",
        ),
        ("core.register_cli({'a b'}, 'x', print)", "", "core.register_cli: a command has 1 to 5 words without blanks"),
        ("core.register_filter('x', {}, print)", "", "script.lua:1: core.register_filter is not available in terse: filters"),
        ("core.event_sub({'ACME_DEPLOY'}, print)", "", "script.lua:1: event_sub: 'ACME_DEPLOY' is not available in terse"),
        ("local x = filter.CONTINUE", "", "filter.CONTINUE is not available in terse: filters cannot be written in Lua"),
        ("CertCache.set({})", "", "CertCache.set: expects the field 'filename'"),
        ("CertCache.set({ filename = 'a.pem' })", "", "CertCache.set: there is nothing to change"),
        ("CertCache.set({ filename = 'a.pem', crl = 'x' })", "", "CertCache.set: 'crl' is no field; fields are filename, crt,"),
        ("CertCache.set({ filename = 'a.pem', crt = 'x' })", "", "CertCache.set: the process does not serve yet"),
        (
            "\nfunction later() ACME.challenge_ready('a', 'b') end",
            "",
            "script.lua:2: ACME.challenge_ready is not available in terse",
        ),
        ("ACME.challenge_ready('a', 'b')", "", "script.lua:1: ACME.challenge_ready is not available in terse: certificates"),
        ("local x = core.backends['be']", "", "script.lua:1: the configuration is still being read"),
        ("core.set_map('x', 'a', 'b')", "", "the configuration is still being read"),
        ("Map.new('${dir}/none.map', Map._str)", "", "Map.new: "),
        ("core.nothing()", "", "field 'nothing'"),
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
    assert!(none.contains("no Lua script is loaded; load one with 'lua-load'"), "{none}");
    let wrong = check("oops(", "frontend f\n http-request lua.x\n");
    assert!(wrong.contains("no Lua script is loaded; the script that was to be loaded above has a fault"), "{wrong}");
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

#[test]
fn actions_read_and_edit() {
    let script = r#"
core.register_action("edit", { "http-req" }, function(txn, name, value)
  local headers = txn.http:req_get_headers()
  txn.http:req_add_header("X-Seen", headers["host"][0] .. "," .. headers["x-a"][0] .. headers["x-a"][1])
  txn.http:req_del_header("x-a")
  txn.http:req_set_header(name, value)
  txn.http:req_set_method("PUT")
  txn.http:req_set_path("/new")
  txn.http:req_set_query("q=" .. txn.f:req_fhdr("host"))
  txn:set_var("txn.mine", txn.sf:path() .. txn.c:add(40, 2))
  if txn.http:req_add_header("bad\nname", "x") then txn.http:req_add_header("X-Bad", "1") end
  txn:set_priv({ "kept" })
end, 2)
core.register_action("answer", { "http-res", "http-after-res" }, function(txn)
  txn.http:res_set_status(299, "Fine")
  txn.http:res_add_header("X-Res", txn.http:res_get_headers()["content-length"][0] .. tostring(txn:get_priv()[1]))
end)
core.register_action("slow", { "http-req", "http-res" }, function(txn)
  core.msleep(5)
  core.yield()
  txn:set_var("txn.slow", (txn:get_var("txn.slow") or 0) + 1)
end)
core.register_fetches("pair", function(txn, a, b)
  return txn:get_var("txn.mine") .. a .. b
end)
core.register_fetches("number", function(txn) return 41 end)
core.register_converters("twice", function(text, between) return text .. (between or "") .. text end)
"#;
    let server = Server::answering(|request| {
        let fields = ["x-seen", "x-a", "x-new", "x-bad", "x-pair"];
        ok(&fields.map(|name| request.field(name).unwrap_or("-")).join(" "))
    });
    let rules = format!(
        "http-request lua.slow\n http-request lua.edit X-New there\n http-request set-header x-pair %[lua.pair(one,two),lua.twice(+)]\n \
         http-response lua.slow\n http-response lua.answer\n http-response set-header sum %[lua.number,add(1)]\n \
         http-response set-header slow %[var(txn.slow)]\n http-after-response lua.answer\n \
         http-response set-header beg yes if {{ lua.pair(a,b) -m beg /old }}\n server s {}",
        server.address()
    );
    let terse = scripted(script, &rules);
    let response = terse.client().get("/old", &[("X-A", "1"), ("X-A", "2")]);
    assert_eq!(response.text(), "test,12 - there - /new42onetwo+/new42onetwo");
    assert_eq!(response.line, "HTTP/1.1 299 Fine");
    let shown: Vec<_> = ["sum", "slow", "beg"].map(|name| response.field(name).unwrap_or("-")).to_vec();
    assert_eq!(shown, ["42", "2", "-"]);
    assert_eq!(response.fields.iter().filter(|(name, value)| name == "X-Res" && value.ends_with("kept")).count(), 2);
    let seen = server.requests();
    assert_eq!((seen[0].method.as_str(), seen[0].target.as_str()), ("PUT", "/new?q=test"));
    terse.end();
}

#[test]
fn actions_decide() {
    let script = r#"
for name, code in pairs(act) do
  core.register_action(name, { "http-req" }, function(txn) return code end)
end
core.register_action("done", { "http-req" }, function(txn)
  local reply = txn:reply{ status = 418, headers = { ["x-a"] = { "1", "2" } } }
  reply:add_header("x-b", "3")
  reply:set_body("tea")
  txn:done(reply)
end)
core.register_action("over", { "http-req" }, function(txn) txn:done() end)
core.register_action("broken", { "http-req" }, function(txn) error({}) end)
core.register_action("loop", { "http-req" }, function(txn) while true do end end)
core.register_action("later", { "http-req" }, function(txn) core.done(act.DENY) end)
core.register_fetches("waits", function(txn) core.sleep(1) return "x" end)
"#;
    let names = ["CONTINUE", "STOP", "ERROR", "DONE", "DENY", "ABORT", "INVALID", "done", "over", "broken", "loop", "later"];
    let rules = names.map(|name| format!("http-request lua.{name} if {{ path /{name} }}")).join("\n ");
    let text = format!(
        "global\n nbthread 1\n tune.lua.bool-sample-conversion normal\n tune.lua.session-timeout 100\n \
         lua-load \"${{dir}}/script.lua\"\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n {rules}\n \
         http-request return status 202 if {{ lua.waits -m found }}\n http-request return status 200\n"
    );
    let terse = Terse::with(&text).file("script.lua", script).listen("web").start();
    let status = |name: &str| terse.client().get(&format!("/{name}"), &[]).status;
    // After a rule that stops its set there is no server.
    let expected = [200, 503, 500, 503, 403, 0, 400, 418, 0, 200, 200, 403];
    assert_eq!(names.map(status), expected);
    let tea = terse.client().get("/done", &[]);
    assert_eq!((tea.text().as_str(), tea.fields.iter().filter(|(name, _)| name == "x-a").count()), ("tea", 2));
    assert_eq!(tea.field("x-b"), Some("3"));
    for said in ["Lua function 'loop': runtime error: ", "Lua sample-fetch 'waits': runtime error: it waits where nothing can wait"]
    {
        until(said, || terse.stderr().contains(said).then_some(()));
    }
    terse.end();
}

#[test]
fn tasks_run_beside_traffic() {
    let script = r#"
local count, started = 0, {}
core.register_init(function() started[#started + 1] = "init" end)
core.register_task(function(...)
  started[#started + 1] = table.concat({ ... }, "")
  while true do
    count = count + 1
    core.msleep(1)
  end
end, "a", 1)
core.register_service("count", "http", function(applet)
  core.register_task(function() started[#started + 1] = "late" end)
  applet:start_response()
  applet:send(count .. " " .. table.concat(started, " "))
end)
core.register_service("coroutines", "http", function(applet)
  local each = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)
  local sum = 0
  for n = 1, 200000 do sum = sum + n end
  applet:start_response()
  applet:send(each() .. each() .. each() .. " " .. sum .. " " .. tostring(select(2, pcall(error, "told", 0))))
end)
"#;
    let rules = "http-request use-service lua.coroutines if { path /coroutines }\n http-request use-service lua.count";
    let terse = scripted(script, rules);
    let mut client = terse.client();
    let first = client.get("/", &[]).text();
    assert!(first.ends_with(" init a1"), "{first}");
    until("the task to go on, and the other to begin", || {
        let now = client.get("/", &[]).text();
        let count = |text: &str| text.split(' ').next().unwrap().parse::<u32>().unwrap();
        (count(&now) > count(&first) && now.contains("late")).then_some(())
    });
    assert_eq!(client.get("/coroutines", &[]).text(), "123 20000100000 told");
    terse.end();
}

#[test]
fn scripts_write_to_the_log() {
    let script = r#"
core.register_action("say", { "http-req" }, function(txn)
  txn:Info("a line\nof the stream")
  txn:Warning("another")
  core.log(core.err, "third")
end)
"#;
    let text = format!(
        "global\n nbthread 1\n tune.lua.bool-sample-conversion normal\n lua-load \"${{dir}}/script.lua\"\n{DEFAULTS}\n\
         listen web\n bind fd@${{web}}\n log stdout format short daemon\n http-request lua.say\n \
         http-request return status 200\n"
    );
    let terse = Terse::with(&text).file("script.lua", script).listen("web").start();
    assert_eq!(terse.client().get("/", &[]).status, 200);
    for said in ["<6>a line of the stream\n", "<4>another\n", "<3>third\n"] {
        until(said, || terse.stdout().contains(said).then_some(()));
    }
    terse.end();
}

const TCP: &str = r#"
core.register_service("lines", "tcp", function(applet)
  applet:set_var("txn.lines", 0)
  applet:send("220 " .. applet.sf:src() .. "\n")
  while true do
    local line = applet:getline()
    if line == "" or line == "quit\n" then break end
    applet:set_var("txn.lines", applet:get_var("txn.lines") + 1)
    applet:send("got " .. line)
  end
  applet:send("three: " .. applet:receive(3) .. " " .. tostring(applet:receive(10, 1)) .. "\n")
end)
"#;

#[test]
fn a_service_serves_a_connection() {
    let text = format!(
        "global\n nbthread 1\n tune.lua.bool-sample-conversion normal\n lua-load \"${{dir}}/script.lua\"\n{DEFAULTS}\n\
         listen web\n mode tcp\n bind fd@${{web}}\n log stdout format raw daemon\n log-format \"%s %ts %B lines=%[var(txn.lines)] Td=%Td\"\n \
         tcp-request content use-service lua.lines\n"
    );
    let terse = Terse::with(&text).file("script.lua", TCP).listen("web").start();
    let mut client = terse.client();
    client.send("one\ntwo\nquit\nabc");
    let said = String::from_utf8(client.rest()).unwrap();
    assert_eq!(said, "220 127.0.0.1\ngot one\ngot two\nthree: abc nil\n");
    drop(client);
    let line = until("the line", || terse.stdout().lines().find(|line| line.contains("lines=2")).map(str::to_owned));
    assert!(line.starts_with("<lua.lines> LR 45 ") && !line.ends_with("Td=-1"), "{line}");
    terse.end();
}

#[test]
fn services_fit_their_mode() {
    let check = |lines: &str| {
        let text =
            format!("global\n tune.lua.bool-sample-conversion normal\n lua-load \"${{dir}}/script.lua\"\n{DEFAULTS}\n{lines}\n");
        Terse::with(&text).file("script.lua", [HELLO, TCP].concat()).arg(&["-c"]).run().stderr
    };
    let http = check("frontend f\n mode http\n bind :1\n tcp-request content use-service lua.lines");
    assert!(http.contains("services cannot take over the connections of frontend 'f'"), "{http}");
    let mixed = check("frontend f\n mode http\n http-request use-service lua.lines\n tcp-request content use-service lua.hello");
    assert!(mixed.contains("'lua.lines' is of mode tcp") && mixed.contains("'lua.hello' is of mode http"), "{mixed}");
}

#[test]
fn scripts_connect_to_servers() {
    let script = r#"
core.register_service("ask", "http", function(applet)
  local socket = core.tcp()
  socket:settimeout(10)
  local made, reason = socket:connect(applet.headers["to"][0], tonumber(applet.headers["port"][0]))
  local out = tostring(made) .. tostring(reason) .. "\n"
  if made then
    socket:send("xxGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nxx", 3, -3)
    out = out .. socket:receive("*l", "line ") .. "\n" .. socket:receive(7) .. "\n"
    repeat until socket:receive() == ""
    out = out .. socket:receive(4) .. "\n"
    socket:settimeout(0.02)
    out = out .. select(2, socket:receive(1)) .. " " .. socket:getpeername()
    socket:close()
  end
  applet:start_response()
  applet:send(out)
end)
"#;
    let server = Server::answering(|_| "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody");
    let terse = scripted(script, "http-request use-service lua.ask");
    let port = server.address().port().to_string();
    let answer = terse.client().get("/", &[("to", "127.0.0.1"), ("port", &port)]).text();
    assert_eq!(answer, format!("1nil\nline HTTP/1.1 200 OK\nContent\nbody\ntimeout 127.0.0.1:{port}"));
    let closed = support::free_address();
    let answer = terse.client().get("/", &[("to", "127.0.0.1"), ("port", &closed.port().to_string())]).text();
    assert!(answer.starts_with("nil") && answer.contains("refused"), "{answer}");
    terse.end();
}

#[test]
fn scripts_ask_servers() {
    let script = r#"
core.register_service("ask", "http", function(applet)
  local client = core.httpclient()
  local url = applet.headers["url"][0]
  local first = client:post{ url = url .. "/a?b", body = string.rep("x", 100000), headers = { ["X-A"] = { "1", "2" } } }
  local second = client:get{ url = url, dst = applet.headers["none"][0] }
  local third = client:head{ url = url }
  applet:start_response()
  applet:send(first.status .. first.reason .. first.headers["x-b"][0] .. first.body .. " " .. second.status .. " " .. third.status .. third.body)
end)
"#;
    let server = Server::answering(|request| {
        let seen = format!("{} {} {} {}", request.method, request.target, request.body.len(), request.every("x-a").count());
        format!("HTTP/1.1 203 Fine\r\nX-B: b\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{seen}\r\n0\r\n\r\n", seen.len())
    });
    let terse = scripted(script, "http-request use-service lua.ask");
    let none = support::free_address().to_string();
    let answer = terse.client().get("/", &[("url", &format!("http://{}", server.address())), ("none", &none)]).text();
    assert_eq!(answer, "203FinebPOST /a?b 100000 2 503 203");
    terse.end();
}

/// A script cannot move a message's end.
#[test]
fn actions_leave_framing_alone() {
    let script = r#"
core.register_action("break", { "http-req" }, function(txn)
  local http = txn.http
  txn:set_var("txn.done", table.concat({
    tostring(http:req_del_header("content-length")),
    tostring(http:req_set_header("Content-Length", "3")),
    tostring(http:req_add_header("Transfer-Encoding", "chunked")),
    tostring(http:req_del_header("TRANSFER-ENCODING")),
  }, " "))
end)
core.register_action("host", { "http-req" }, function(txn)
  txn.http:req_set_header("host", "there")
end)
core.register_action("shorten", { "http-res" }, function(txn)
  txn.http:res_set_header("Content-Length", "2")
  txn.http:res_add_header("transfer-encoding", "chunked")
end)
"#;
    let server = Server::answering(|request| {
        let every = |name| request.every(name).collect::<Vec<_>>().join(",");
        let seen = [every("content-length"), every("transfer-encoding"), every("host"), request.target.clone()];
        ok(&format!("{} {}", request.body.len(), seen.join(" ")))
    });
    let rules = format!(
        "http-request lua.break\n http-request lua.host if {{ path /host }}\n http-response lua.shorten\n \
         http-response set-header done %[var(txn.done)]\n server s {}",
        server.address()
    );
    let terse = scripted(script, &rules);
    let mut client = terse.client();
    let within = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    client.send(format!("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{within}", within.len()));
    let response = client.response("POST");
    assert_eq!(response.text(), format!("{0} {0}  a /a", within.len()));
    assert_eq!(response.field("done"), Some("false false false false"));
    client.send("POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
    assert_eq!(client.response("POST").text(), "2  chunked a /b");
    // A target that names an authority follows the field.
    client.send("GET http://a/host HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response("GET").text(), "0   there http://there/host");
    let targets: Vec<_> = server.requests().iter().map(|request| request.target.clone()).collect();
    assert_eq!(targets, ["/a", "/b", "http://there/host"]);
    terse.end();
}
