//! How long Lua may run: a hook after so many instructions looks at the clock.
//!
//! ```text
//!  Run::poll -> begin -> Lua runs ... every so many instructions the hook:
//!                          - the burst is over its time: an error, where Lua cannot stop; else a yield, behind which it is not resumed
//!                          - the code runs in the coroutine of the call: a yield, so that others get their turn
//!                          - it runs in a coroutine of the script's own, or in a call from C: it goes on
//!            <- end
//! ```

use mlua::{HookTriggers, Lua, VmState};
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

thread_local! {
    static BURST: Cell<Burst> = const { Cell::new(Burst { deadline: None, may_yield: false, depth: 0, expired: false, made_way: false, stopping: false }) };
}

thread_local! {
    /// Where a script stood when its time was over.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// One stretch of Lua on this thread.
#[derive(Clone, Copy)]
pub(crate) struct Burst {
    deadline: Option<Instant>,
    /// Whether whoever runs it can come back later.
    may_yield: bool,
    /// In how many coroutines of the script's own the code runs.
    depth: u32,
    /// Whether its time is over.
    pub(crate) expired: bool,
    /// Whether it was made to make way for others, and would go on at once.
    pub(crate) made_way: bool,
    /// Whether it was told to yield for good. If it still runs, it cannot: it stands in a call from C, such as a comparison of a sort.
    stopping: bool,
}

/// Runs a stretch, and says how it went.
pub(crate) fn run<T>(limit: Option<Duration>, stretch: impl FnOnce() -> T) -> (T, Burst) {
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    // A stretch within another, as of a converter that an action calls, has its own limits, and hands none on.
    let before = BURST.replace(Burst { deadline, may_yield: true, depth: 0, expired: false, made_way: false, stopping: false });
    let result = stretch();
    (result, BURST.replace(before))
}

/// Has the state's code looked after.
pub(crate) fn watch(lua: &Lua, instructions: u32) -> mlua::Result<()> {
    lua.set_global_hook(HookTriggers::new().every_nth_instruction(instructions), |_, debug| {
        let mut burst = BURST.get();
        burst.expired |= burst.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if burst.expired {
            let place = debug.source().source.map(|source| source.trim_start_matches('@').to_owned());
            PLACE.replace(place.zip(debug.current_line()).map(|(source, line)| format!("{source}:{line}: ")));
        }
        let yields = burst.may_yield && burst.depth == 0;
        burst.made_way |= yields;
        let stuck = burst.expired && (burst.stopping || !yields);
        burst.stopping |= burst.expired && yields;
        BURST.set(burst);
        match (stuck, yields) {
            (true, _) => Err(mlua::Error::runtime(too_long())),
            (false, true) => Ok(VmState::Yield),
            (false, false) => Ok(VmState::Continue),
        }
    })
}

/// What is said of a script whose time is over: where it stood when that was seen.
pub(crate) fn too_long() -> String {
    format!("{}execution timeout", PLACE.take().unwrap_or_default())
}

/// Code of a coroutine of the script's own begins, or ends.
pub(crate) fn nest(deeper: bool) {
    let mut burst = BURST.get();
    burst.depth = if deeper { burst.depth.saturating_add(1) } else { burst.depth.saturating_sub(1) };
    BURST.set(burst);
}
