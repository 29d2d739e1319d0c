//! Settings of `global` for Lua.

use mlua::StdLib;
use std::time::Duration;

/// The settings, with HAProxy's defaults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    /// `tune.lua.forced-yield`: number of instructions between two looks at the clock. `None`: ten thousand, or for the
    /// state that workers share as many fewer as there are workers.
    pub(crate) forced_yield: Option<u32>,
    /// `tune.lua.burst-timeout`: the longest time that a script may compute without waiting or yielding.
    pub(crate) burst: Option<Duration>,
    /// `tune.lua.session-timeout`: the longest time that an action, a fetch or a converter may run, without the time in
    /// which it waits.
    pub(crate) session: Option<Duration>,
    /// `tune.lua.service-timeout`: the same for a service.
    pub(crate) service: Option<Duration>,
    /// `tune.lua.task-timeout`: the same for a task.
    pub(crate) task: Option<Duration>,
    /// `tune.lua.maxmem`, in bytes; 0: any.
    pub(crate) memory_bytes: usize,
    /// `tune.lua.openlibs`
    pub(crate) libraries: StdLib,
    /// `tune.lua.bool-sample-conversion normal`: a boolean is a boolean in Lua, not a number.
    pub(crate) booleans: bool,
    /// `tune.lua.log.loggers`
    pub(crate) to_loggers: bool,
    /// `tune.lua.log.stderr`; `None`: `auto`.
    pub(crate) to_stderr: Option<bool>,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            forced_yield: None,
            burst: Some(Duration::from_millis(1000)),
            session: Some(Duration::from_secs(4)),
            service: Some(Duration::from_secs(4)),
            task: None,
            memory_bytes: 0,
            libraries: StdLib::ALL_SAFE,
            booleans: false,
            to_loggers: true,
            to_stderr: None,
        }
    }
}

/// Instructions between two looks at the clock.
const FORCED_YIELD: u32 = 10_000;
const LEAST_FORCED_YIELD: u32 = 500;

impl Tuning {
    /// Instructions between two looks at the clock in a state that so many workers share.
    pub(crate) fn instructions(&self, sharing: usize) -> u32 {
        let sharing = u32::try_from(sharing.max(1)).unwrap_or(u32::MAX);
        self.forced_yield.unwrap_or((FORCED_YIELD / sharing).max(LEAST_FORCED_YIELD)).max(1)
    }
}
