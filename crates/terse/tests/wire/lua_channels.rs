//! Bytes of connections in `mode tcp` that Lua scripts read, change and send; actions that are called again.
//!
//! The right values are those that HAProxy 3.5 gives to the same script, but for `append`, which adds before all bytes there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use support::proxy::DEFAULTS;
use support::server::Server;
use support::{Terse, until};

/// A script's start: `try` notes a call and what it gives.
const TRY: &str = r#"
local function shown(v) return (tostring(v):gsub("\n", "/")) end
local notes = {}
local function try(name, object, ...)
  local got = table.pack(pcall(object[name], object, ...))
  local parts = {}
  for i = 2, got.n do parts[#parts + 1] = shown(got[i]) end
  notes[#notes + 1] = name .. "=" .. (got[1] and table.concat(parts, ",") or "error")
end
local function tell(name)
  core.Info(name .. " " .. table.concat(notes, " ") .. ".")
  notes = {}
end
"#;

/// A server that answers what it gets, behind `srv:`.
fn echo() -> Server {
    Server::start(|connection| {
        let mut room = [0; 4096];
        loop {
            match connection.some(&mut room) {
                0 => return,
                n => connection.send([b"srv:", &room[..n]].concat()),
            };
        }
    })
}

/// A proxy in mode tcp with a script and rules.
fn start(script: &str, rules: &str, server: &Server) -> Terse {
    let text = format!(
        "global\n tune.lua.bool-sample-conversion normal\n lua-load \"${{dir}}/s.lua\"\n{DEFAULTS}\nlisten web\n mode tcp\n bind fd@${{web}}\n \
         tcp-request inspect-delay 20s\n tcp-response inspect-delay 20s\n{rules}\n server s {}\n",
        server.address()
    );
    Terse::with(&text).file("s.lua", format!("{TRY}{script}")).listen("web").start()
}

#[track_caller]
fn check_told(terse: &Terse, right: &str) {
    let name = right.split_once(' ').unwrap().0;
    let told = until("the script has told", || {
        let all = terse.stderr();
        let line = all.lines().find_map(|line| line.split_once(&format!("{name} ")).map(|(_, rest)| rest.to_owned()));
        line.filter(|line| line.ends_with('.'))
    });
    assert_eq!(format!("{name} {told}"), right);
}

#[test]
fn bytes_are_read_and_changed() {
    let script = r#"
core.register_action("edit", { "tcp-req" }, function(txn)
  local c = txn.req
  for _, args in ipairs({ {}, { 1 }, { -2 }, { -99 }, { 0, 2 }, { 1, 0 }, { 0, -2 } }) do try("data", c, table.unpack(args)) end
  for _, args in ipairs({ {}, { 1 }, { 0, 2 }, { 0, 0 } }) do try("line", c, table.unpack(args)) end
  for _, name in ipairs({ "dup", "input", "output", "get_in_len", "get_out_len", "is_resp", "is_full", "may_recv" }) do try(name, c) end
  tell("read")
  try("prepend", c, "P") try("insert", c, "I", 2) try("insert", c, "J", -1) try("insert", c, "J", 999) try("insert", c, "K") try("dup", c)
  try("remove", c, 0, 1) try("remove", c, 1, 2) try("remove", c, -1) try("remove", c, 0, 0) try("remove", c, 0, 99) try("dup", c)
  try("set", c, "xyz", 1, 2) try("dup", c) try("set", c, "new\nbytes") try("set", c, "ins", 3, 0) try("dup", c)
  try("set", c, ("x"):rep(1000000)) try("append", c, "END\n") try("dup", c)
  tell("changed")
  try("forward", c, 2) try("output", c) try("dup", c) try("input", c)
  try("send", c, "[sent]") try("output", c) try("dup", c) try("prepend", c, "<") try("dup", c)
  try("getline", c) try("dup", c) try("get", c) try("set", c, "bye\n")
  tell("sent")
end)
"#;
    let server = echo();
    let rules = " tcp-request content lua.edit if { req.len ge 8 }\n tcp-request content accept if { req.len ge 1 }";
    let terse = start(script, rules, &server);
    let mut client = terse.client();
    client.send("ab\ncdef\n");
    check_told(
        &terse,
        "read data=ab/cdef/ data=b/cdef/ data=f/ data=ab/cdef/ data=ab data= data=error line=ab/ line=b/ line=ab line= \
         dup=ab/cdef/ input=8 output=0 get_in_len=8 get_out_len=0 is_resp=false is_full=false may_recv=true.",
    );
    check_told(
        &terse,
        "changed prepend=1 insert=1 insert=1 insert=error insert=1 dup=KPaIb/cdefJ/ remove=1 remove=2 remove=1 remove=0 remove=error \
         dup=Pb/cdefJ set=3 dup=PxyzcdefJ set=9 set=3 dup=newins/bytes set=-1 append=4 dup=newins/bytesEND/.",
    );
    check_told(
        &terse,
        "sent forward=2 output=2 dup=wins/bytesEND/ input=14 send=6 output=8 dup=wins/bytesEND/ prepend=1 dup=<wins/bytesEND/ \
         getline=<wins/ dup=bytesEND/ get=bytesEND/ set=4.",
    );
    let mut room = [0; 16];
    client.read(&mut room);
    assert_eq!(&room, b"srv:ne[sent]bye\n");
    terse.end();
}

#[test]
fn bytes_are_waited_for() {
    let script = r#"
core.register_action("wait", { "tcp-req" }, function(txn)
  try("line", txn.req) try("data", txn.req, 0, 12) try("getline", txn.req) try("forward", txn.req, 9) try("getline", txn.req)
  try("prepend", txn.req, "done\n")
  tell("waited")
end)
"#;
    let server = echo();
    let rules = " tcp-request content lua.wait if { req.len ge 2 }\n tcp-request content accept if { req.len ge 1 }";
    let terse = start(script, rules, &server);
    let mut client = terse.client();
    for part in ["ab", "c\n", "01234", "56789\nrest"] {
        client.send(part);
        std::thread::yield_now();
    }
    check_told(&terse, "waited line=abc/ data=abc/01234567 getline=abc/ forward=9 getline=9/ prepend=5.");
    let mut room = [0; 18];
    client.read(&mut room);
    assert_eq!(&room, b"srv:012345678done\n");
    terse.end();
}

#[test]
fn a_script_speaks_before_the_server() {
    let script = r#"
core.register_action("greet", { "tcp-req" }, function(txn)
  try("send", txn.res, "220 hello\n") try("line", txn.req) try("append", txn.res, "250 ok\n") try("remove", txn.res)
  tell("greeted")
end)
core.register_action("answer", { "tcp-res" }, function(txn)
  try("line", txn.res) try("is_resp", txn.res) try("get", txn.res) try("append", txn.res, "second\n") try("send", txn.res, "first\n")
  try("dup", txn.res) try("send", txn.req, "x") try("input", txn.req)
  tell("answered")
end)
"#;
    let server = echo();
    let rules = " tcp-request content lua.greet\n tcp-response content lua.answer if { res.len ge 9 }";
    let terse = start(script, rules, &server);
    let mut client = terse.client();
    let mut room = [0; 10];
    client.read(&mut room);
    assert_eq!(&room, b"220 hello\n");
    client.send("line\n");
    check_told(&terse, "greeted send=10 line=line/ append=7 remove=0.");
    check_told(&terse, "answered line=srv:line/ is_resp=true get=srv:line/ append=7 send=6 dup=second/ send=error input=0.");
    let mut room = [0; 20];
    client.read(&mut room);
    assert_eq!(&room, b"250 ok\nfirst\nsecond\n");
    terse.end();
}

#[test]
fn actions_that_yield_are_called_again() {
    let script = r#"
core.register_action("more", { "tcp-req" }, function(txn)
  if txn.req:input() < 8 then return act.YIELD end
  try("dup", txn.req) tell("more")
end)
core.register_action("times", { "tcp-req" }, function(txn)
  local count = (txn:get_priv() or 0) + 1
  txn:set_priv(count)
  if count < 3 then
    act.wake_time(1)
    return act.YIELD
  end
  act:wake_time(1)
  try("get_priv", txn) tell("times")
end)
core.register_action("late", { "tcp-req" }, function(txn)
  act.wake_time(1)
  if txn.req:input() < 10 then return act.YIELD end
  try("input", txn.req) tell("late")
end)
"#;
    let server = echo();
    let rules = " tcp-request content lua.more\n tcp-request content lua.times\n tcp-request content lua.late";
    let terse = start(script, rules, &server);
    let mut client = terse.client();
    client.send("abcd");
    client.send("efgh");
    check_told(&terse, "more dup=abcdefgh.");
    check_told(&terse, "times get_priv=3.");
    client.send("ij");
    check_told(&terse, "late input=10.");
    let mut room = [0; 14];
    client.read(&mut room);
    assert_eq!(&room, b"srv:abcdefghij");
    terse.end();
}

#[test]
fn messages_have_no_bytes_but_replies_are_complete() {
    let script = r#"
local calls = 0
core.register_action("again", { "http-req" }, function(txn)
  calls = calls + 1
  if calls < 3 then return act.YIELD end
end)
core.register_action("see", { "http-req" }, function(txn)
  for _, name in ipairs({ "data", "line", "dup", "get", "getline", "remove" }) do try(name, txn.req) end
  for _, name in ipairs({ "append", "prepend", "insert", "set", "send", "forward" }) do try(name, txn.req, 1) end
  for _, name in ipairs({ "is_resp", "is_full", "input", "output" }) do try(name, txn.res) end
  for _, name in ipairs({ "eom", "may_recv", "is_full", "output" }) do try(name, txn.http_req) end
  try("set_body_len", txn.http_req, "chunked") try("set_body_len", txn.http_req, 4) try("set_body_len", txn.http_req, 5)
  try("set_nice", { set_nice = function(_, n) return core.set_nice(n) end }, 5)
  local function told(reply) notes[#notes + 1] = shown(reply.status) .. "," .. shown(reply.reason) .. "," .. shown(reply.body) end
  told(txn:reply())
  local reply = txn:reply{ status = 404, body = "b", headers = { ["x-a"] = { "1", "2" }, ["x-b"] = "3", ["x-c"] = true } }
  told(reply)
  notes[#notes + 1] = reply.headers["x-a"][2] .. reply.headers["x-b"][1] .. tostring(reply.headers["x-c"])
  reply:set_status(418) told(reply)
  reply:set_status(201, "Made") told(reply)
  reply:add_header("x-a", "4") reply:del_header("x-b") reply:set_body("c") told(reply)
  tell("seen")
  reply:add_header("x-calls", calls)
  txn:done(reply)
end)
"#;
    let rules = " mode http\n http-request lua.again\n http-request lua.see";
    let server = echo();
    let terse = start(script, rules, &server);
    let mut client = terse.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
    let response = client.response("POST");
    assert_eq!((response.status, response.field("x-calls"), response.text()), (201, Some("3"), "c".to_owned()));
    let told = terse.stderr();
    let line = told.lines().find_map(|line| Some(line.split_once("seen ")?.1.to_owned())).unwrap();
    let (bytes, rest) = line.split_once("is_resp").unwrap();
    assert!(bytes.split_whitespace().count() == 12 && bytes.split_whitespace().all(|one| one.ends_with("=error")), "{bytes}");
    assert_eq!(
        rest,
        "=true is_full=false input=0 output=0 eom=false may_recv=true is_full=false output=0 set_body_len=true set_body_len=true \
         set_body_len=error set_nice= 200,OK,nil 404,Not Found,b 23nil 418,I'm a teapot,b 201,Made,b 201,Made,c."
    );
    terse.end();
}
