//! Settings of a `peers` section.

use std::sync::Arc;
use terse_balance::ServerSettings;
use terse_balance::table::TableSettings;
use terse_config::{Place, Setting};

/// A `peers` section, without its listening addresses.
#[derive(Clone, Default, Debug)]
pub struct PeersSettings {
    /// `peer` and `server` lines.
    pub peers: Vec<PeerLine>,
    /// `table` lines, by name.
    pub tables: Vec<(Arc<str>, TableSettings)>,
    /// `disabled`
    pub disabled: bool,
    /// `shards`: number of peers among which tables are divided; 0: each has all.
    pub shards: u32,
}

/// A `peer` or `server` line.
#[derive(Clone, Debug)]
pub struct PeerLine {
    /// Name.
    pub name: Arc<str>,
    /// Address and connection settings: the line of this process need not have them.
    pub server: Option<Box<ServerSettings>>,
    /// Place in the configuration.
    pub place: Place,
}

impl Setting for PeersSettings {
    fn inherit(&self) -> PeersSettings {
        self.clone()
    }
}
