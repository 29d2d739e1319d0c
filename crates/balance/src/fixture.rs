//! Farms for tests, from the lines of a backend.

use crate::farm::{Farm, FarmContext, Journal, Level};
use crate::settings::FarmSettings;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use terse_config::{Environment, Loader, Settings, Source};
use tokio::sync::Notify;

/// A backend called `be` with these lines.
pub(crate) fn farm(lines: &str) -> Arc<Farm> {
    logged(lines).0
}

/// The same, with the lines of its journal.
pub(crate) fn logged(lines: &str) -> (Arc<Farm>, Lines) {
    let loader = Loader { tables: vec![crate::KEYWORDS], environment: Environment::default() };
    let source = Source { name: "test".into(), bytes: format!("backend be\n{lines}\n").into() };
    let (mut config, diagnostics) = loader.load(&[source], Settings::default());
    let said: Vec<_> = diagnostics.iter().map(|diagnostic| &diagnostic.reason).collect();
    assert!(said.is_empty(), "{said:?}");
    let settings: FarmSettings = config.sections[0].settings.take().unwrap_or_default();
    let log = Lines::default();
    let written = log.clone();
    let journal: Journal = Arc::new(move |level: Level, line: &str| written.write(level, line));
    let context = FarmContext {
        id: 3,
        has_own_id: false,
        name: "be".into(),
        kind: "backend",
        connect_timeout: Some(Duration::from_secs(5)),
        journal,
        started: Instant::now(),
        wardens: Arc::default(),
        ends: Arc::new(|_, _| {}),
    };
    (Farm::new(context, settings), log)
}

/// Lines of a log.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Log>);

#[derive(Default)]
struct Log {
    lines: Mutex<Vec<(Level, String)>>,
    more: Notify,
}

impl Lines {
    fn write(&self, level: Level, line: &str) {
        self.0.lines.lock().unwrap().push((level, line.to_owned()));
        self.0.more.notify_one();
    }

    /// Takes the written lines.
    pub(crate) fn take(&self) -> Vec<(Level, String)> {
        std::mem::take(&mut self.0.lines.lock().unwrap())
    }

    /// Takes the written lines, without their levels.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.take().into_iter().map(|(_, text)| text).collect()
    }

    /// Waits until a line with that text was written, and drops all lines up to it.
    pub(crate) async fn written(&self, text: &str) {
        while !self.texts().iter().any(|line| line.contains(text)) {
            self.0.more.notified().await;
        }
    }
}

/// Surroundings without variables and without time.
pub(crate) struct Nowhere;

impl terse_sample::World for Nowhere {
    fn now(&self) -> terse_sample::Now {
        terse_sample::Now::default()
    }

    fn random(&self) -> u64 {
        4
    }
}

impl crate::check::Surroundings for Nowhere {
    fn variables(&self) -> &terse_sample::ProcessStore {
        static VARIABLES: std::sync::OnceLock<terse_sample::ProcessStore> = std::sync::OnceLock::new();
        VARIABLES.get_or_init(Default::default)
    }

    fn world(&self) -> &dyn terse_sample::World {
        self
    }
}
