//! What a `peers` section says.

use std::sync::Arc;
use terse_balance::ServerSettings;
use terse_balance::table::TableSettings;
use terse_config::{Place, Setting};

/// A `peers` section, but where it listens.
#[derive(Clone, Default, Debug)]
pub struct PeersSettings {
    /// `peer` and `server` lines.
    pub peers: Vec<PeerLine>,
    /// `table` lines, by name.
    pub tables: Vec<(Arc<str>, TableSettings)>,
    /// `disabled`
    pub disabled: bool,
    /// `shards`: among how many peers tables are dealt out; 0: each has all.
    pub shards: u32,
}

/// A `peer` or `server` line.
#[derive(Clone, Debug)]
pub struct PeerLine {
    /// Its name.
    pub name: Arc<str>,
    /// Where it is, and how it is reached: the one of this process need not say it.
    pub server: Option<Box<ServerSettings>>,
    /// Where the line stands.
    pub place: Place,
}

impl Setting for PeersSettings {
    fn inherit(&self) -> PeersSettings {
        self.clone()
    }
}
