//! Settings of a page: `stats ...` lines.

use super::access::AccessRule;
use crate::context::Context;
use crate::guests::Guests;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use terse_config::Setting;
use terse_sample::Condition;

/// Settings of a proxy's page.
#[derive(Clone)]
pub(super) struct PageSettings {
    /// `uri`: prefix of targets.
    pub(super) uri: String,
    /// `auth`: values of the field Authorization after `Basic`, one for each user.
    pub(super) credentials: Vec<String>,
    /// `realm`
    pub(super) realm: Option<String>,
    /// `refresh`
    pub(super) refresh: Option<Duration>,
    /// `show-version`, `hide-version`
    pub(super) version: bool,
    /// `show-node`: a name, or the machine's.
    pub(super) node: Option<Option<String>>,
    /// `show-desc`: a text, or that of `global`.
    pub(super) description: Option<Option<String>>,
    /// `show-legends`
    pub(super) legends: bool,
    /// `scope`: names of shown proxies, `.` for the page's own; none: all.
    pub(super) scope: Vec<String>,
    /// `admin`: when one of these holds, servers may be changed.
    pub(super) admin: Vec<Condition>,
    /// `http-request`, in order.
    pub(super) rules: Vec<Arc<AccessRule>>,
}

impl Default for PageSettings {
    fn default() -> PageSettings {
        PageSettings {
            uri: "/haproxy?stats".into(),
            credentials: Vec::new(),
            realm: None,
            refresh: None,
            version: false,
            node: None,
            description: None,
            legends: false,
            scope: Vec::new(),
            admin: Vec::new(),
            rules: Vec::new(),
        }
    }
}

impl Setting for PageSettings {
    fn inherit(&self) -> PageSettings {
        self.clone()
    }
}

impl PageSettings {
    /// Whether a proxy is shown; `own` is the proxy that the page belongs to.
    pub(super) fn shows(&self, name: &str, own: &str) -> bool {
        self.scope.is_empty() || self.scope.iter().any(|scope| scope == name || (scope == "." && name == own))
    }
}

/// Link from pages to the context of commands: made while the configuration is read, set by [`Context::new`]. Commands of other
/// parts of the program lie beside it.
#[derive(Clone, Default, Debug)]
pub struct Link(Arc<OnceLock<Weak<Context>>>, Arc<Guests>);

impl Link {
    /// Sets the context, once.
    pub(crate) fn lead(&self, context: &Arc<Context>) {
        let _ = self.0.set(Arc::downgrade(context));
    }

    /// The context, as long as it exists.
    pub(crate) fn context(&self) -> Option<Arc<Context>> {
        self.0.get().and_then(Weak::upgrade)
    }

    /// Commands of other parts of the program.
    pub(crate) fn guests(&self) -> &Guests {
        &self.1
    }
}

impl Setting for Link {
    fn inherit(&self) -> Link {
        self.clone()
    }
}
