//! Commands of the stats socket that Lua scripts answer.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use support::client::Client;
use support::proxy::DEFAULTS;
use support::{Terse, until};

const SCRIPT: &str = r#"
core.register_cli({ "show", "mine" }, "Shows what is mine.", function(applet, ...)
  applet:send("words " .. table.concat({ ... }, "|") .. "\n")
  core.msleep(1)
  for name in pairs(core.backends) do applet:send("backend " .. name .. "\n") end
end)
core.register_cli({ "show", "mine", "much" }, "Shows much.", function(applet)
  for i = 1, 20000 do applet:send(("%09d\n"):format(i)) end
end)
core.register_cli({ "show", "mine", "twice" }, "Replaced.", function(applet) applet:send("once\n") end)
core.register_cli({ "show", "mine", "twice" }, "The last counts.", function(applet) applet:send("twice\n") end)
core.register_cli({ "break" }, "Fails.", function(applet)
  applet:send("before\n")
  error("broken here")
end)
core.register_task(function()
  core.msleep(1)
  local ok, reason = pcall(core.register_cli, { "late" }, "x", print)
  core.Info("late: " .. reason)
end)
"#;

fn start(load: &str) -> Terse {
    let global = format!(
        "global\n nbthread 2\n stats socket fd@${{cli}} level user\n tune.lua.bool-sample-conversion normal\n {load} \"${{dir}}/s.lua\""
    );
    let text =
        format!("{global}\n{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n default_backend be\nbackend be\n server s 127.0.0.1:9\n");
    Terse::with(&text).file("s.lua", SCRIPT).listen("web").listen("cli").start()
}

#[test]
fn scripts_answer_commands() {
    for load in ["lua-load", "lua-load-per-thread"] {
        let terse = start(load);
        assert_eq!(terse.command("show mine"), "words show|mine\nbackend be\n\n");
        assert_eq!(terse.command("show mine a\\ b c"), "words show|mine|a b|c\nbackend be\n\n");
        assert_eq!(terse.command("show mine twice"), "twice\n\n");
        assert_eq!(terse.command("show mine;show mine twice"), "words show|mine\nbackend be\n\ntwice\n\n");
        let much = terse.command("show mine much");
        assert!(much.len() == 200_001 && much.ends_with("000020000\n\n"), "{} bytes", much.len());
        assert_eq!(terse.command("break"), "before\n\n");
        until("the error is told", || terse.stderr().contains("Lua command 'break': runtime error: ").then_some(()));
        assert!(terse.stderr().contains("s.lua:14: broken here"), "{}", terse.stderr());
        let help = terse.command("help show mine");
        assert!(help.contains("  show mine twice                         : The last counts.\n"), "{help}");
        until("the script has told", || {
            terse.stderr().contains("commands are registered while the script is loaded").then_some(())
        });
        // Commands that are not taken by a script are as before.
        assert!(terse.command("show nothing").starts_with("Unknown command: 'show'"));
        terse.end();
    }
}

#[test]
fn a_conversation_goes_on_after_a_script_has_answered() {
    let terse = start("lua-load");
    let mut client = Client::connect(terse.address("cli"));
    client.send("prompt i\nshow mine twice\nshow mine twice\nquit\n");
    assert_eq!(String::from_utf8(client.rest()).unwrap(), "\ntwice\n\ntwice\n\n");
    terse.end();
}
