//! Time limit of a stretch of Lua: a hook after so many instructions looks at the clock.
//!
//! ```text
//!  Run::poll -> run -> Lua computes ... every so many instructions the hook: is the time over? then an error, and the stretch is spoiled
//!                                       pcall, xpcall, coroutine.resume: in a spoiled stretch they pass every error on
//!            <- it ends, or waits: the stretch is over
//! ```
//!
//! The hook does not make a script yield. mlua resumes a coroutine with as many arguments as its stack has values. After a
//! yield in the middle of an instruction that is wrong, and takes away the arguments of the next call. So a script yields
//! where it calls a function that may wait (`core.yield`, `applet:send`). Otherwise it holds its worker for no longer than
//! a stretch may take.

use crate::run;
use mlua::{HookTriggers, Lua, Value, VmState};
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

thread_local! {
    static BURST: Cell<Burst> = const { Cell::new(Burst { begin: None, deadline: None, expired: false }) };
    /// Place of the script when its time was over.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A stretch of Lua on this thread.
#[derive(Clone, Copy)]
struct Burst {
    begin: Option<Instant>,
    deadline: Option<Instant>,
    /// Whether its time is over.
    expired: bool,
}

/// Time after which a script yields where it can.
const TURN: Duration = Duration::from_millis(1);

/// Runs a stretch; returns its result, and whether its time was over.
pub(crate) fn run<T>(limit: Option<Duration>, stretch: impl FnOnce() -> T) -> (T, bool) {
    let begin = Instant::now();
    let deadline = limit.and_then(|limit| begin.checked_add(limit));
    // A stretch within another, as of a converter that an action calls, has its own limits, and passes none on.
    let before = BURST.replace(Burst { begin: Some(begin), deadline, expired: false });
    let result = stretch();
    (result, BURST.replace(before).expired)
}

/// Installs the hook that watches the state's code.
pub(crate) fn watch(lua: &Lua, instructions: u32) -> mlua::Result<()> {
    lua.set_global_hook(HookTriggers::new().every_nth_instruction(instructions), |_, debug| {
        let mut burst = BURST.get();
        if burst.deadline.is_none_or(|deadline| Instant::now() < deadline) {
            return Ok(VmState::Continue);
        }
        burst.expired = true;
        BURST.set(burst);
        let place = debug.source().source.map(|source| source.trim_start_matches('@').to_owned());
        PLACE.replace(place.zip(debug.current_line()).map(|(source, line)| format!("{source}:{line}: ")));
        Err(mlua::Error::runtime(too_long()))
    })
}

/// Message about a script whose time is over: its place when that was seen.
fn too_long() -> String {
    format!("{}execution timeout", PLACE.with_borrow(|place| place.clone().unwrap_or_default()))
}

/// Whether the stretch has been running for so long that other tasks should run.
pub(crate) fn is_long() -> bool {
    BURST.get().begin.is_some_and(|begin| begin.elapsed() >= TURN)
}

/// Makes the functions that catch errors pass them on once the time is over: a loop of calls that are caught would not end.
/// Nor is a handler of `xpcall` called then: Lua runs it with its hooks off where a hook has failed.
pub(crate) fn install(lua: &Lua) -> mlua::Result<()> {
    let is_over = lua.create_function(|_, ()| Ok(BURST.get().expired))?;
    let over = lua.create_function(|_, ()| match BURST.get().expired {
        true => Err(mlua::Error::runtime(too_long())),
        false => Ok(()),
    })?;
    // Scripts join caught errors to texts, as they do with errors of Lua's own functions.
    let text = lua.create_function(|lua, error: Value| match error {
        Value::Error(error) if !run::is_end(&error) => Ok(Value::String(lua.create_string(run::told(&error))?)),
        other => Ok(other),
    })?;
    lua.load(CATCHERS).set_name("=[pcall]").call((is_over, over, text))
}

const CATCHERS: &str = r#"
local is_over, over, text = ...
local pcall_, xpcall_, resume_ = pcall, xpcall, coroutine.resume
local function caught(ok, first, ...)
  if ok then return ok, first, ... end
  over()
  return ok, text(first), ...
end
-- As many values as there are: a call without any gives none.
local function all(ok, ...)
  if ok then return ok, ... end
  return caught(ok, ...)
end
function pcall(...)
  return all(pcall_(...))
end
function xpcall(f, handler, ...)
  return all(xpcall_(f, function(first, ...)
    if is_over() then return first, ... end
    return handler(text(first), ...)
  end, ...))
end
function coroutine.resume(...)
  return all(resume_(...))
end
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_is_ended() {
        let lua = Lua::new();
        install(&lua).unwrap();
        watch(&lua, 100).unwrap();
        for script in [
            "while true do end",
            "while true do pcall(function() while true do end end) end",
            "while true do xpcall(function() while true do end end, print) end",
            "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
            "table.sort({ 1, 2, 3 }, function() while true do end end)",
            "xpcall(function() while true do end end, function() while true do end end)",
            "xpcall(error, function() while true do end end, 'x')",
        ] {
            let (result, expired) = run(Some(Duration::from_millis(5)), || lua.load(script).exec());
            assert!(expired && result.unwrap_err().to_string().contains("execution timeout"), "{script}");
        }
        // Errors of other stretches are caught as ever.
        let (caught, expired) = run(Some(Duration::from_secs(60)), || lua.load("return pcall(error, 'x')").eval::<bool>());
        assert_eq!((caught.unwrap(), expired), (false, false));
        let handled = "return select(2, xpcall(error, function(said) return said .. ' handled' end, 'x'))";
        let (told, _) = run(Some(Duration::from_secs(60)), || lua.load(handled).eval::<String>());
        assert_eq!(told.unwrap(), "x handled");
        // The error of a function of ours is a text as well.
        let wrong = lua.create_function(|_, ()| -> mlua::Result<()> { Err(mlua::Error::runtime("no such thing")) }).unwrap();
        lua.globals().set("wrong", wrong).unwrap();
        for script in [
            "return 'said: ' .. select(2, pcall(wrong))",
            "return 'said: ' .. select(2, coroutine.resume(coroutine.create(wrong)))",
            "return select(2, xpcall(wrong, function(said) return 'said: ' .. said end))",
        ] {
            let said = lua.load(script).eval::<String>().unwrap();
            assert!(said.starts_with("said: ") && said.ends_with("no such thing"), "{script}: {said}");
        }
        assert_eq!(lua.load("return select('#', pcall(function() end))").eval::<i64>().unwrap(), 1);
    }
}
