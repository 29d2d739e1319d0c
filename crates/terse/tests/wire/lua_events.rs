//! Events of servers that Lua scripts subscribe to. The right lines are those of HAProxy 3.5 for the same script, but for `rid`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use support::proxy::DEFAULTS;
use support::server::{Server, ok};
use support::{Terse, until};

const SCRIPT: &str = r#"
local function flat(t, prefix, out)
  local keys = {}
  for k in pairs(t) do keys[#keys + 1] = k end
  table.sort(keys)
  for _, k in ipairs(keys) do
    local v = t[k]
    if k == "reference" then out[#out + 1] = "ref=" .. v:get_name()
    elseif type(v) == "table" then flat(v, prefix .. k .. ".", out)
    elseif v ~= false and k ~= "duration" and k ~= "proxy_uuid" and k ~= "rid" then out[#out + 1] = prefix .. k .. "=" .. tostring(v) end
  end
end
local function told(name)
  return function(event, data, sub, when)
    local out = {}
    flat(data, "", out)
    core.Info(name .. " " .. event .. " " .. table.concat(out, " ") .. " " .. math.type(when))
  end
end
core.event_sub({ "SERVER" }, told("all"))
core.register_task(function()
  local sub
  sub = core.backends.be.servers.b:event_sub({ "SERVER_DOWN", "SERVER_UP" }, function(event, data, given)
    core.msleep(1)
    core.Info("only " .. event .. " " .. data.name)
    if event == "SERVER_UP" then given:unsub() end
  end)
  for _, types in ipairs({ {}, { "X" }, { 1 }, { "ACME" } }) do
    local _, reason = pcall(core.event_sub, types, print)
    core.Info("wrong " .. reason:gsub("\n.*", ""))
  end
  core.Info("ready")
end)
"#;

/// Commands, and the lines that follow each.
const STEPS: &[(&str, &[&str])] = &[
    (
        "set server be/b state maint",
        &[
            "all SERVER_ADMIN admin.cause= admin.new_admin.FMAINT=true admin.new_admin.MAINT=true admin.requeued=0 name=b proxy_name=be puid=2 ref=b integer",
            "all SERVER_DOWN name=b proxy_name=be puid=2 ref=b integer",
            "all SERVER_STATE name=b proxy_name=be puid=2 ref=b state.admin=true state.cause= state.new_state=STOPPED state.old_state=RUNNING state.requeued=0 integer",
            "only SERVER_DOWN b",
        ],
    ),
    (
        "set server be/b state ready",
        &[
            "all SERVER_ADMIN admin.cause= admin.old_admin.FMAINT=true admin.old_admin.MAINT=true admin.requeued=0 name=b proxy_name=be puid=2 ref=b integer",
            "all SERVER_UP name=b proxy_name=be puid=2 ref=b integer",
            "all SERVER_STATE name=b proxy_name=be puid=2 ref=b state.admin=true state.cause= state.new_state=RUNNING state.old_state=STOPPED state.requeued=0 integer",
            "only SERVER_UP b",
        ],
    ),
    (
        "set server be/b health stopping",
        &[
            "all SERVER_STATE name=b proxy_name=be puid=2 ref=b state.cause=changed from CLI state.new_state=STOPPING state.old_state=RUNNING state.requeued=0 integer",
        ],
    ),
    (
        "set server be/b health up",
        &[
            "all SERVER_STATE name=b proxy_name=be puid=2 ref=b state.cause=changed from CLI state.new_state=RUNNING state.old_state=STOPPING state.requeued=0 integer",
        ],
    ),
    (
        "set server be/b state drain",
        &[
            "all SERVER_ADMIN admin.cause= admin.new_admin.DRAIN=true admin.new_admin.FDRAIN=true admin.requeued=0 name=b proxy_name=be puid=2 ref=b integer",
        ],
    ),
    ("add server be/n 127.0.0.1:9", &["all SERVER_ADD name=n proxy_name=be puid=4 ref=n integer"]),
    ("del server be/n", &["all SERVER_DEL name=n proxy_name=be puid=4 integer"]),
];

#[test]
fn scripts_hear_of_servers() {
    let is_well = Arc::new(AtomicBool::new(true));
    let well = is_well.clone();
    let server = Server::answering(move |_| match well.load(Relaxed) {
        true => ok(""),
        false => "HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n".to_owned(),
    });
    let text = format!(
        "global\n stats socket fd@${{cli}} level admin\n tune.lua.bool-sample-conversion normal\n lua-load-per-thread \"${{dir}}/s.lua\"\n \
         nbthread 2\n{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n default_backend be\nbackend be\n option httpchk\n \
         server a {} check inter 20ms rise 2 fall 2\n server b 127.0.0.1:9\n server t 127.0.0.1:9 track be/a\n",
        server.address()
    );
    let terse = Terse::with(&text).file("s.lua", SCRIPT).listen("web").listen("cli").start();
    let told = |line: &str| until(line, || terse.stderr().lines().any(|told| told.ends_with(line)).then_some(()));
    let first = "all SERVER_CHECK check.health.cur=3 check.health.fall=2 check.health.rise=2 check.reason.code=200 \
                 check.reason.desc=Layer7 check passed check.reason.short=L7OK check.result=PASSED name=a proxy_name=be puid=1 ref=a integer";
    told(first);
    // The tasks of both workers have subscribed.
    until("tasks are ready", || (terse.stderr().matches(" ready\n").count() == 2).then_some(()));
    for (command, lines) in STEPS {
        terse.command(command);
        lines.iter().for_each(|line| told(line));
    }
    is_well.store(false, Relaxed);
    told(
        "all SERVER_CHECK check.health.cur=2 check.health.fall=2 check.health.rise=2 check.reason.code=503 \
         check.reason.desc=Layer7 wrong status check.reason.short=L7STS check.result=FAILED name=a proxy_name=be puid=1 ref=a integer",
    );
    told("all SERVER_DOWN name=a proxy_name=be puid=1 ref=a integer");
    told(
        "all SERVER_STATE name=a proxy_name=be puid=1 ref=a state.cause= state.check.health.cur=0 state.check.health.fall=2 \
         state.check.health.rise=2 state.check.reason.code=503 state.check.reason.desc=Layer7 wrong status state.check.reason.short=L7STS \
         state.check.result=FAILED state.new_state=STOPPED state.old_state=RUNNING state.requeued=0 integer",
    );
    told(
        "all SERVER_STATE name=t proxy_name=be puid=3 ref=t state.cause= state.new_state=STOPPED state.old_state=RUNNING \
         state.requeued=0 integer",
    );
    terse.command("set server be/b health down");
    told("all SERVER_DOWN name=b proxy_name=be puid=2 ref=b integer");
    let all = terse.stderr();
    assert_eq!(all.matches("only SERVER_DOWN b").count(), 2, "a subscription of each worker, which has ended: {all}");
    assert_eq!(all.matches("all SERVER_ADD").count(), 1, "a file that each worker loads subscribes once: {all}");
    for reason in [
        "event_sub expects a list of events",
        "event_sub: 'X' is no event; events are SERVER, SERVER_ADD",
        "'ACME' is not available in",
    ] {
        assert!(all.contains(reason), "{reason}: {all}");
    }
    terse.end();
}
