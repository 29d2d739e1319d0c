//! The configuration of a cache, and its name in rules.

use super::Cache;
use std::sync::{Arc, OnceLock};
use terse_config::{Args, Fault, Scope, Setting};
use terse_sample::Registry;

/// A `cache` section, as it was written.
#[derive(Clone, Default, Debug)]
pub struct CacheSettings {
    /// `total-max-size`: megabytes.
    pub total_mbytes: Option<u32>,
    /// `max-object-size`: bytes.
    pub max_object_bytes: Option<usize>,
    /// `max-age`: seconds.
    pub max_age: Option<u64>,
    /// `process-vary`
    pub vary: bool,
    /// `max-secondary-entries`
    pub max_variants: Option<usize>,
    /// `early-hints`
    pub early_hints: EarlyHints,
    /// `ratio`: percentage of the cache that may hold hints without their response.
    pub hint_percent: Option<usize>,
}

/// Treatment of hints in responses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum EarlyHints {
    /// Nothing.
    #[default]
    Off,
    /// They are sent to clients whose response is not stored.
    On,
    /// The same, and no responses are kept.
    Only,
}

impl Setting for CacheSettings {
    fn inherit(&self) -> CacheSettings {
        self.clone()
    }
}

impl CacheSettings {
    pub(super) fn total_bytes(&self) -> usize {
        (self.total_mbytes.unwrap_or(0) as usize) << 20
    }

    /// The most bytes of a response, head and body.
    pub(super) fn object_bytes(&self) -> usize {
        self.max_object_bytes.filter(|bytes| *bytes > 0).unwrap_or(self.total_bytes() / 256)
    }

    pub(super) fn max_age(&self) -> u64 {
        self.max_age.unwrap_or(60)
    }

    /// Bytes that hints without their response may take.
    pub(super) fn hint_bytes(&self) -> usize {
        self.total_bytes() / 100 * self.hint_percent.unwrap_or(25)
    }

    pub(super) fn variants(&self) -> usize {
        self.max_variants.unwrap_or(10)
    }

    /// Reason why the section is no valid cache; `None` when it is valid.
    pub fn problem(&self) -> Option<String> {
        match self.total_mbytes {
            None | Some(0) => Some("says no 'total-max-size'".into()),
            Some(_) if self.object_bytes() > self.total_bytes() / 2 => {
                Some("'max-object-size' is more than a half of 'total-max-size'".into())
            }
            Some(_) => None,
        }
    }
}

/// A cache that a rule or a filter names; found when the configuration is complete.
#[derive(Debug)]
pub struct CacheName {
    /// Its name.
    pub name: Box<str>,
    found: OnceLock<Arc<Cache>>,
}

impl CacheName {
    /// Reads a name, to be found.
    pub fn parse(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<Arc<CacheName>, Fault> {
        if args.peek().is_none_or(|word| matches!(word, "if" | "unless")) {
            return Err(Fault::new(args.position(), "expects the name of a cache"));
        }
        let name = Arc::new(CacheName { name: args.need("<cache>")?.into(), found: OnceLock::new() });
        let place = args.place(&scope.place);
        scope.shared.entry::<Registry>().refer(name.clone(), place);
        Ok(name)
    }

    /// The cache. It is set wherever a plan was made.
    pub fn cache(&self) -> Option<&Arc<Cache>> {
        self.found.get()
    }

    /// Sets the cache.
    pub fn settle(&self, cache: &Arc<Cache>) {
        self.found.get_or_init(|| cache.clone());
    }
}
