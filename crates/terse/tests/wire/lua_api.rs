//! Objects of the process that Lua scripts see and change: proxies, servers, listeners, stick tables, maps, ACLs, queues,
//! expressions.
//!
//! The right values are those that HAProxy 3.5 gives to the same script, except where docs/lua.md differs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use support::proxy::DEFAULTS;
use support::server::Server;
use support::{Terse, until};

const OTHERS: &str = "
frontend spare
 bind 127.0.0.1:0
listen counted
 bind 127.0.0.1:0 name named
 option socket-stats
 server w 127.0.0.1:9
listen raw
 mode tcp
 bind 127.0.0.1:0
 server r 127.0.0.1:9
backend be
 server a LIVE check inter 1h
 server b [::1]:9 backup
 server c unix@/run/none
 server off 127.0.0.1:9 disabled
backend tr
 server t 127.0.0.1:9 track be/a
backend st
 stick-table type string len 20 size 10 expire 1h store gpc0,http_req_rate(10s)
";

/// Steps of a script that answer with one line each.
const STEPS: &str = r#"
local map = Map.new("DIR/names.map", Map._str)
local nets = Map.new("DIR/nets.map", Map.ip)
local function shown(value)
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for k, v in pairs(value) do parts[#parts + 1] = tostring(k) .. "=" .. tostring(v) end
  table.sort(parts)
  return "{" .. table.concat(parts, ",") .. "}"
end
local function keys(object)
  local all = {}
  for k in pairs(object) do all[#all + 1] = k end
  table.sort(all)
  return table.concat(all, ",")
end
local steps = {}
local function step(f) steps[#steps + 1] = f end
core.register_service("steps", "http", function(applet)
  local out = {}
  for at, f in ipairs(steps) do
    local got = table.pack(pcall(f, applet))
    local parts = {}
    for i = got[1] and 2 or 1, got.n do parts[#parts + 1] = shown(got[i]) end
    out[#out + 1] = at .. ": " .. table.concat(parts, " | ")
  end
  applet:start_response()
  applet:send(table.concat(out, "\n"))
end)
"#;

/// Answers of a list of steps, without the number before each line.
fn answers(steps: &[(&str, &str)], rules: &str) -> Vec<String> {
    let script: String = steps.iter().map(|(step, _)| format!("step(function(applet) {step} end)\n")).collect();
    let global = "global\n nbthread 2\n set-var proc.x str(seven)\n tune.lua.bool-sample-conversion normal\n \
                  lua-load-per-thread \"${dir}/script.lua\"";
    let text = format!(
        "{global}\n{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n{rules}\n http-request deny if {{ path -f \"${{dir}}/acl.lst\" }}\n \
         http-request use-service lua.steps\n{OTHERS}"
    );
    let live = Server::body("ok");
    let text = text.replace("LIVE", &live.address().to_string());
    let terse = Terse::with(&text).file("names.map", "a one\nb two\n").file("nets.map", "10.0.0.0/8 ten\n").file("acl.lst", "/x\n");
    let folder = terse.path("").display().to_string();
    let script = format!("{STEPS}{script}").replace("DIR/", &folder);
    let terse = terse.file("script.lua", script).listen("web").start();
    let response = terse.client().get("/", &[]);
    assert_eq!(response.status, 200, "{}", terse.stderr());
    let text = response.text();
    let lines = text.lines().map(|line| line.split_once(": ").unwrap().1.replace(&folder, "DIR/"));
    let live = live.address().to_string();
    let lines = lines.map(|line| line.replace(&live, "LIVE")).collect();
    terse.end();
    lines
}

#[track_caller]
fn check(steps: &[(&str, &str)]) {
    let got = answers(steps, "");
    assert_eq!(got.len(), steps.len(), "{got:?}");
    for ((step, right), got) in steps.iter().zip(got) {
        assert_eq!(got, *right, "{step}");
    }
}

#[test]
fn proxies_and_servers_are_seen() {
    check(&[
        ("return keys(core.backends)", "be,counted,raw,st,tr"),
        ("return keys(core.frontends)", "counted,raw,spare,web"),
        ("return keys(core.proxies)", "be,counted,raw,spare,st,tr,web"),
        ("return core.backends.none, core.frontends.be, core.backends.be.servers.none", "nil | nil | nil"),
        ("return core.backends.be.name, core.backends.be:get_name(), core.backends.be.servers.a.name", "be | be | a"),
        ("local s = core.backends.be.servers.b return s:get_name(), s.puid, s:get_puid()", "b | 2 | 2"),
        (
            "return core.backends.be:get_cap(), core.proxies.counted:get_cap(), core.frontends.web:get_cap()",
            "backend | proxy | frontend",
        ),
        ("return core.backends.be:get_mode(), core.proxies.raw:get_mode()", "http | tcp"),
        ("return core.backends.be:get_srv_act(), core.backends.be:get_srv_bck()", "2 | 1"),
        ("return keys(core.backends.be.servers), keys(core.frontends.counted.listeners)", "a,b,c,off | named"),
        (
            "local all = core.backends.be.servers return all.a:get_addr(), all.b:get_addr(), all.c:get_addr()",
            "LIVE | [::1]:9 | /run/none",
        ),
        (
            "local s = core.backends.be.servers.b return s:is_backup(), s:is_dynamic(), s:get_cur_sess(), s:get_pend_conn(), s:get_maxconn()",
            "true | false | 0 | 0 | 0",
        ),
        ("return core.backends.be.servers.a:get_proxy():get_name()", "be"),
        (
            "local t = core.backends.tr.servers.t return t:tracking():get_name(), t:tracking():get_trackers()[1]:get_name(), #t:get_trackers()",
            "a | t | 0",
        ),
        ("return core.backends.be.servers.a:tracking(), core.backends.be:get_mailers()", "nil | nil"),
        (
            "local t = core.backends.be.servers.off:get_stats() return t.pxname, t.svname, t.status, math.type(t.scur), t.type",
            "be | off | MAINT | integer | 2",
        ),
        ("return core.backends.be.servers.b:get_stats().status", "no check"),
        ("local t = core.backends.be:get_stats() return t.pxname, t.svname, t.type", "be | BACKEND | 1"),
        ("local t = core.frontends.web:get_stats() return t.svname, t.type, t.status, t.scur", "FRONTEND | 0 | OPEN | 1"),
        ("return core.proxies.counted.listeners.named:get_stats().svname", "named"),
        ("return #keys(core.frontends.spare.listeners['sock-1']:get_stats())", "0"),
        (
            "local i = core.get_info() return i.Nbthread, math.type(i.CurrConns), math.type(i.CumReq), i.Name",
            "2 | integer | integer | terse",
        ),
        ("return core.get_var('proc.x'), core.get_var('proc.none')", "seven | nil"),
        (
            "local ok, reason = pcall(function() core.backends.x = 1 end) return ok, reason:match('[^:]*$'):sub(2)",
            "false | it cannot be changed",
        ),
    ]);
}

#[test]
fn proxies_and_servers_are_changed() {
    check(&[
        (
            "local s = core.backends.be.servers.b s:set_maint() local m = s:get_stats().status s:set_drain() local d = s:get_stats().status \
          local drains = s:is_draining() s:set_ready() return m, d, drains, s:get_stats().status, s:is_draining()",
            "MAINT | DRAIN | true | no check | false",
        ),
        (
            "local s = core.backends.be.servers.b return s:set_weight('7'), s:get_weight(), s:set_weight('500') ~= nil, s:get_weight()",
            "nil | 7 | true | 7",
        ),
        (
            "local s = core.backends.be.servers.b s:set_weight(0) return s:is_draining(), s:set_weight('100%'), s:get_weight()",
            "true | nil | 1",
        ),
        (
            "local s = core.backends.be.servers.b return s:set_maxconn('9'), s:get_maxconn(), s:set_maxconn('x') ~= nil",
            "nil | 9 | true",
        ),
        (
            "local s = core.backends.be.servers.b return s:set_addr('127.0.0.7'), s:get_addr()",
            "IP changed from '::1' to '127.0.0.7' by 'Lua script' | 127.0.0.7:9",
        ),
        (
            "local s = core.backends.be.servers.b s:set_addr('127.0.0.8', 88) return s:get_addr(), s:set_addr('x')",
            "127.0.0.8:88 | Invalid addr 'x'",
        ),
        (
            "local s = core.backends.be.servers.a s:check_force_down() local d = s:get_stats().status s:check_force_up() return d",
            "DOWN",
        ),
        (
            "local s = core.backends.be.servers.a return s:check_disable(), s:check_enable(), s:agent_disable(), s:agent_enable(), \
          s:agent_force_up(), s:agent_force_down(), s:shut_sess(), core.backends.be:shut_bcksess()",
            "nil | nil | nil | nil | nil | nil | nil",
        ),
        (
            "local f = core.frontends.spare f:pause() local p = f:get_stats().status f:resume() local r = f:get_stats().status f:stop() \
          return p, r, f:get_stats().status",
            "PAUSED | OPEN | STOP",
        ),
    ]);
}

#[test]
fn maps_and_acls_are_asked_and_changed() {
    check(&[
        (
            "return map:lookup('a'), map:lookup('zz'), map:slookup('zz') == '', nets:lookup('10.1.2.3'), nets:lookup('11.1.2.3')",
            "one | nil | true | ten | nil",
        ),
        (
            "core.set_map('DIR/names.map', 'a', 'uno') core.set_map('DIR/names.map', 'n', 'new') return map:lookup('a'), map:lookup('n')",
            "uno | new",
        ),
        ("core.del_map('DIR/names.map', 'a') return map:lookup('a')", "nil"),
        (
            "core.add_acl('DIR/acl.lst', '/y') core.add_acl('DIR/acl.lst', '/y') core.del_acl('DIR/acl.lst', '/x') \
          return keys(core.get_patref('DIR/acl.lst')), core.get_patref('DIR/acl.lst'):is_map()",
            "/y | false",
        ),
        (
            "local ok, reason = pcall(core.set_map, 'none', 'a', 'b') return ok, reason:match('[^:]*$')",
            "false |  no ACL and no map reads 'none'",
        ),
        (
            "local r = core.get_patref('DIR/names.map') return r:get_name(), r:is_map(), r.b, r.zz",
            "DIR/names.map | true | two | nil",
        ),
        (
            "local r = core.get_patref('DIR/names.map') return r:add('k', 'v'), (r:set('k', 'w')), (r:set('none', 'w')), r:set('f', 'w', true)",
            "true | true | nil | true",
        ),
        ("return core.get_patref('DIR/names.map'):set('none', 'w')", "nil | entry not found"),
        ("local r = core.get_patref('DIR/names.map') return r:del('k'), r:del('k')", "true | false"),
        (
            "local r = core.get_patref('DIR/names.map') r:prepare() r:add('p', 'q') local before = map:lookup('p') \
          return before, r:commit(), map:lookup('p'), map:lookup('b')",
            "nil | true | q | nil",
        ),
        (
            "local r = core.get_patref('DIR/names.map') r:prepare() r:add('g', 'h') r:giveup() return r:add_bulk({ z = 'zed' })",
            "true",
        ),
        ("local t = {} for k, v in pairs(core.get_patref('DIR/names.map')) do t[k] = v end return t", "{p=q,z=zed}"),
        ("local r = core.get_patref('DIR/names.map') r:purge() return map:lookup('z')", "nil"),
        (
            "local r = core.get_patref('DIR/names.map') local _, reason = pcall(r.event_sub, r) return reason:match('Patref.*$')",
            "Patref.event_sub is not available in terse: events of patterns are not handed to scripts",
        ),
    ]);
}

#[test]
fn stick_tables_are_read() {
    let rules = " http-request track-sc0 str(a\\ key) table st\n http-request sc-inc-gpc0(0)";
    let steps = [
        (
            "local i = core.backends.st.stktable:info() i.data = nil return i",
            "{expire=3600000,length=20,nopurge=false,size=10,type=string,used=1}",
        ),
        ("return core.backends.st.stktable:info().data", "{gpc0=-1,http_req_rate=10000}"),
        (
            "local e = core.backends.st.stktable:lookup('a key') return e.gpc0, e.http_req_rate, e.use, e.expire > 0",
            "1 | 1 | 1 | true",
        ),
        ("return core.backends.st.stktable:lookup('none'), core.backends.be.stktable", "nil | nil"),
        (
            "local t = core.backends.st.stktable return keys(t:dump()), keys(t:dump({{'gpc0', 'gt', 1}})), keys(t:dump({{'gpc0', 'eq', 1}}))",
            "a key |  | a key",
        ),
        ("return (pcall(core.backends.st.stktable.dump, core.backends.st.stktable, {{'none', 'gt', 1}}))", "false"),
    ];
    let got = answers(&steps, rules);
    for ((step, right), got) in steps.iter().zip(got) {
        assert_eq!(got, *right, "{step}");
    }
}

#[test]
fn texts_expressions_and_queues() {
    check(&[
        ("return core.tokenize('one, two.', ',. ', true)", "{1=one,2=two}"),
        (
            "return core.match_addr(core.parse_addr('127.0.0.1/32'), core.parse_addr('127.0.0.0/8')), core.parse_addr('zz'), \
          core.match_addr('a', 'b')",
            "true | nil | false",
        ),
        ("return core.http_date('Sunday, 06-Nov-94 08:49:37 GMT'), core.imf_date('x')", "784111777 | nil"),
        ("local _, r = Regex.new('n(.)', true) return r:match('an')", "false | {}"),
        ("local ok, r = Regex.new('n(.)', true) return ok, r:exec('no'), r:match('xnow')", "true | true | true | {1=no,2=o}"),
        (
            "local q = core.queue() return q:push(1), q:push('b'), q:size(), q:pop(), q:pop(), q:pop(), q:size()",
            "true | true | 2 | 1 | b | nil | 0",
        ),
        ("return (pcall(core.queue().push, core.queue(), nil))", "false"),
        ("local q, got = core.queue(), 0 core.register_task(function() q:push('late') end) return q:pop_wait()", "late"),
        ("local q = core.queue() core.register_task(function() q:push(1) end) q:alarm() core.wait() return q:pop()", "1"),
        ("local before = core.now().sec core.wait(1) return core.now().sec - before < 5", "true"),
        ("local ok, reason = pcall(core.get_patref, 'none') return ok, #('said: ' .. reason) > 40", "false | true"),
    ]);
}

#[test]
fn actions_of_one_name_for_two_sets() {
    let script = r#"
core.register_action("mark", { "http-req" }, function(txn, a, b) txn.http:req_set_header("x-req", a .. b) end, 2)
core.register_action("mark", { "http-res" }, function(txn) txn.http:res_set_header("x-res", txn.http_res:get_stline().code) end, 0)
core.register_action("edit", { "http-req" }, function(txn)
  txn.http:req_rep_header("x-a", "^a(.)c$", "<\\1>")
  txn.http:req_rep_value("x-l", "^b$", "B")
  local bad = txn.http:req_rep_header("x-bad", "x", "\\x0d\\x0aevil: 1")
  txn.http_req:add_header("x-line", txn.http_req:get_stline().method .. txn.http_req:get_stline().uri .. tostring(bad))
  txn:set_priority_class(3)
  txn:set_priority_offset(-4)
  txn:set_tos(8)
  local ok, reason = pcall(txn.http_req.set_eom, txn.http_req)
  txn.http_req:set_header("x-refused", reason)
end, 0)
"#;
    let server = Server::body("ok");
    let lines =
        format!(" http-request lua.mark A B\n http-request lua.edit\n http-response lua.mark\n server s {}", server.address());
    let text = format!(
        "global\n tune.lua.bool-sample-conversion normal\n lua-load \"${{dir}}/s.lua\"\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n{lines}\n"
    );
    let terse = Terse::with(&text).file("s.lua", script).listen("web").start();
    let response = terse.client().get("/p?q", &[("x-a", "abc"), ("x-l", "a, b, c"), ("x-bad", "x")]);
    assert_eq!((response.status, response.field("x-res")), (200, Some("200")));
    let requests = server.requests();
    let field = |name: &str| requests[0].field(name).map(str::to_owned);
    assert_eq!(field("x-req").as_deref(), Some("AB"));
    assert_eq!((field("x-a").as_deref(), field("x-l").as_deref()), (Some("<b>"), Some("a, B, c")));
    assert_eq!((field("x-bad").as_deref().map(str::trim), field("evil")), (Some("evil: 1"), None), "no line is ended");
    assert_eq!(field("x-line").as_deref(), Some("GET/p?qtrue"));
    assert!(field("x-refused").unwrap().contains("HTTPMessage.set_eom is not available in terse"));
    terse.end();
}

#[test]
fn all_of_it_is_there_without_lua_s_libraries() {
    let script = r#"
core.register_init(function()
  for _, server in pairs(core.backends.be.servers) do server:set_weight(5) end
  core.Info("weight " .. core.backends.be.servers.a:get_weight() .. core.backends.be.servers.a:get_stats().status)
end)
"#;
    let text = format!(
        "global\n tune.lua.openlibs none\n lua-load \"${{dir}}/s.lua\"\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n{}",
        OTHERS.replace("LIVE", "127.0.0.1:9")
    );
    let terse = Terse::with(&text).file("s.lua", script).listen("web").start();
    until("the script has spoken", || terse.stderr().contains("weight 5").then_some(()));
    terse.end();
}
