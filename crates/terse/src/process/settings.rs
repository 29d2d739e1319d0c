//! Settings of the process from `global`.

use rustix::thread::CapabilitySet;
use std::time::Duration;
use terse_config::{Place, Setting};

/// Settings of the process from `global`. `None`: not set.
#[derive(Clone, Default, Debug)]
pub struct ProcessSettings {
    /// `user`, `uid`.
    pub user: Option<Account>,
    /// `group`, `gid`.
    pub group: Option<Account>,
    /// `chroot`: a folder, or `auto`.
    pub chroot: Option<String>,
    /// `daemon`.
    pub daemon: bool,
    /// `master-worker`.
    pub master: bool,
    /// `mworker-max-reloads`.
    pub most_reloads: Option<u32>,
    /// `quiet`.
    pub quiet: bool,
    /// `zero-warning`.
    pub zero_warning: bool,
    /// `pidfile`.
    pub pidfile: Option<String>,
    /// `maxconn`: connections of the process.
    pub maxconn: Option<u32>,
    /// `ulimit-n`: descriptors of the process.
    pub descriptors: Option<u64>,
    /// `fd-hard-limit`: the most descriptors when nothing else sets a limit.
    pub descriptors_most: Option<u64>,
    /// `maxpipes`: pipes of the process.
    pub pipes: Option<u32>,
    /// `nosplice`: there are none.
    pub no_splice: bool,
    /// `tune.pipesize`: bytes that a pipe holds.
    pub pipe_bytes: Option<usize>,
    /// `tune.bufsize`: bytes of a buffer, and so of a head.
    pub buffer_bytes: Option<usize>,
    /// `tune.maxrewrite`: bytes of a buffer that bodies leave to rules' edits of heads.
    pub rewrite_bytes: Option<usize>,
    /// `tune.h2.*`: HTTP/2 with clients.
    pub http2: terse_proxy::connection::settings::Http2Settings,
    /// `tune.h2.be.*`
    pub http2_servers: terse_proxy::connection::settings::Http2Settings,
    /// `tune.memory.buffers`: bytes that may wait in the process.
    pub memory_bytes: Option<usize>,
    /// `strict-limits`: a limit that cannot be raised ends the start.
    pub strict_limits: bool,
    /// `nbthread`: workers.
    pub workers: Option<usize>,
    /// `thread-hard-limit`: the most workers when nothing else sets their number.
    pub workers_most: Option<usize>,
    /// `thread-groups`: number of groups in which `cpu-map` counts workers.
    pub groups: Option<usize>,
    /// `cpu-map` lines, in order.
    pub processors: Vec<super::workers::ProcessorMap>,
    /// `grace`: the time between the signal and the drain.
    pub grace: Duration,
    /// `hard-stop-after`: the longest drain.
    pub hard_stop_after: Option<Duration>,
    /// `set-dumpable`.
    pub dumpable: bool,
    /// `insecure-setuid-wanted`: programs that it starts may gain rights.
    pub may_gain_rights: bool,
    /// `setcap`: the rights of root that are kept when the process becomes another user.
    pub capabilities: Option<CapabilitySet>,
    /// `tune.renice.startup`, `tune.renice.runtime`: nice values.
    pub nice: Nice,
    /// `noreuseport`: one socket for all workers.
    pub shared_sockets: bool,
    /// `localpeer`.
    pub localpeer: Option<String>,
    /// `description`: a text for people, in statistics.
    pub description: Option<String>,
    /// `node`: this machine's name in statistics.
    pub node: Option<String>,
    /// `server-state-base`: the folder of files of servers' states.
    pub states_folder: Option<String>,
    /// `server-state-file`: the file for all backends that ask for it.
    pub states_file: Option<String>,
    /// `unix-bind`: defaults of unix sockets of `bind` lines.
    pub unix: UnixDefaults,
}

/// A user or a group, and where it is named.
#[derive(Clone, Debug)]
pub struct Account {
    /// Its name or number.
    pub who: Who,
    /// Place in the configuration.
    pub place: Place,
}

/// A user's or group's name or number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Who {
    /// A name, to be found in the system's database.
    Name(String),
    /// A number, used as it is.
    Number(u32),
}

impl From<&str> for Who {
    /// A number where it is one.
    fn from(word: &str) -> Who {
        word.parse().map_or_else(|_| Who::Name(word.to_owned()), Who::Number)
    }
}

/// Nice values, from -20 (first) to 19 (last).
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Nice {
    /// While the configuration is read and sockets are opened.
    pub start: Option<i32>,
    /// From then on.
    pub run: Option<i32>,
}

/// Defaults of unix sockets of `bind` lines.
#[derive(Clone, Default, Debug)]
pub struct UnixDefaults {
    /// Prefix of their paths.
    pub prefix: Option<String>,
    /// Their permissions.
    pub mode: Option<u32>,
    /// Their owner.
    pub user: Option<Account>,
    /// Their group.
    pub group: Option<Account>,
}

impl Setting for ProcessSettings {
    fn inherit(&self) -> ProcessSettings {
        self.clone()
    }
}
