//! Engines of compression beside the software: looked at when a configuration is read, begun before rights and paths are given up,
//! opened when threads may run.
//!
//! ```text
//! configuration -> examine: each library, in a process that ends after it
//! start         -> prepare: keepers are started, trusted libraries loaded, while the process has its rights, paths and one thread
//! service       -> open: devices, and their threads
//! ```

use crate::configuration;
use crate::master::lifeline;
use crate::process::identity::Identity;
use crate::service::Voice;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use terse_card::keeper::{self, Keeper, Launch};
use terse_card::local::Local;
use terse_card::remote::Remote;
use terse_card::zlib::Library;
use terse_card::{isal, probe};
use terse_compress::engine::Source;
use terse_compress::offload::Standing;
use terse_compress::{Device, EngineSettings, Limit, Queue, coder};
use terse_config::Diagnostics;
use terse_pack::Devices;
use terse_proxy::log::Level;
use terse_proxy::plan::Plan;

/// Runs the part of this process, if it has been started for an engine: keeper of an engine, or examiner of a library.
pub fn part(words: &[OsString]) -> Option<ExitCode> {
    match words.split_first_chunk()? {
        ([_, word], rest) if word == keeper::WORD => Some(keeper::keep(rest)),
        ([_, word], rest) if word == probe::WORD => Some(probe::answer(rest)),
        _ => None,
    }
}

/// Makes the machine's quick code for low levels known, if it has any.
pub fn find_fast_code() {
    if let Ok(isal) = isal::load() {
        coder::fast::install(Box::new(isal));
    }
}

/// Examines libraries and devices, in processes of their own. Faults are reported at the places that name them.
pub fn examine(engines: &[EngineSettings], identity: &Identity, diagnostics: &mut Diagnostics) {
    for engine in engines.iter().filter(|engine| engine.source != Source::Unsaid) {
        let Err(reason) = probe::examine(&launch(identity, true), &engine.source) else { continue };
        let reason = format!("engine '{}': {} {reason}", engine.name, engine.source);
        match engine.source {
            // A file may serve machines with and without the device, and a device may come back.
            Source::Cuda(_) => diagnostics.warn(&engine.source_place, format!("{reason}; software does its work")),
            _ => diagnostics.alert(&engine.source_place, reason),
        }
    }
}

/// An engine that can be opened later, without rights or paths.
pub enum Prepared {
    /// Its library runs in a process of its own.
    Apart(Keeper),
    /// Its library is loaded.
    Within(Library),
}

/// Prepares what needs rights and paths. To be called while one thread runs.
///
/// # Errors
/// The system cannot start a process, or a library has changed since it was examined.
pub fn prepare(engines: &[EngineSettings], identity: &Identity, quiet: bool) -> io::Result<Vec<Prepared>> {
    find_fast_code();
    let prepare = |engine: &EngineSettings| {
        let prepared = match engine.in_process {
            true => match &engine.source {
                Source::Library(path) => Library::open(path).map(Prepared::Within).map_err(|unfit| unfit.to_string()),
                other => Err(format!("'{other}' is not loaded into this process")),
            },
            false => Keeper::start(&launch(identity, quiet), engine).map(Prepared::Apart).map_err(|error| error.to_string()),
        };
        prepared.map_err(|reason| io::Error::other(format!("engine '{}': {reason}", engine.name)))
    };
    engines.iter().map(prepare).collect()
}

/// Opens them, in the same order. Memory that they lend for bodies counts against `limit`.
///
/// # Errors
/// The system has no thread to give.
pub fn open(
    prepared: Vec<Prepared>,
    engines: &[EngineSettings],
    limit: &Arc<Limit>,
) -> io::Result<Vec<(EngineSettings, Arc<dyn Device>)>> {
    let open = |(prepared, settings): (Prepared, &EngineSettings)| {
        let device: Arc<dyn Device> = match prepared {
            Prepared::Apart(keeper) => Arc::new(Remote::open(keeper, settings, limit.clone())?),
            Prepared::Within(library) => Arc::new(Local::open(library, settings)?),
        };
        Ok((settings.clone(), device))
    };
    prepared.into_iter().zip(engines).map(open).collect()
}

/// Engines for `terse gzip`: sections of a configuration of which nothing else is used, opened with the user's own rights.
pub struct ForFiles;

impl Devices for ForFiles {
    fn sections(&self, files: &[PathBuf]) -> Result<Vec<EngineSettings>, String> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        configuration::engines(files)
    }

    fn open(&self, settings: &EngineSettings) -> Result<Arc<dyn Device>, String> {
        let identity = Identity { user: None, group: None };
        let source = &settings.source;
        probe::examine(&launch(&identity, true), source).map_err(|reason| format!("{source} {reason}"))?;
        let one = std::slice::from_ref(settings);
        let limit = Arc::new(Limit::new(usize::MAX));
        let opened = prepare(one, &identity, false).and_then(|prepared| open(prepared, one, &limit));
        let opened = opened.map_err(|error| error.to_string())?;
        opened.into_iter().next().map(|(_, device)| device).ok_or_else(|| "it is not there".into())
    }
}

/// Logs when an engine is lost and when it comes back; it is looked at once a second.
pub async fn watch(queue: Arc<Queue>, plan: Arc<Plan>, mut voice: Voice) {
    let mut told: Vec<_> = queue.engines().iter().map(|_| (Standing::Starting, 0)).collect();
    let mut tick = tokio::time::interval(WATCH_INTERVAL);
    loop {
        tick.tick().await;
        for (lane, told) in queue.engines().iter().zip(&mut told) {
            let now = (settled(lane.standing()), lane.numbers().falls.load(Relaxed));
            let before = std::mem::replace(told, now);
            let (level, text) = match now {
                _ if now == before => continue,
                (Standing::Up, falls) if before.0 == Standing::Up && falls > before.1 => (Level::Notice, "was DOWN and is UP"),
                (Standing::Up, _) => (Level::Notice, "is UP"),
                (standing, _) if standing == before.0 => continue,
                _ => (Level::Warning, "is DOWN: software does its work"),
            };
            let trouble = lane.status().trouble.filter(|_| level == Level::Warning).map(|trouble| format!(" ({trouble})"));
            let name = &lane.settings().name;
            voice.say(&plan.journal, level, &format!("Engine {name} {text}.{}", trouble.unwrap_or_default()));
        }
    }
}

/// Probes come and go.
fn settled(standing: Standing) -> Standing {
    if standing == Standing::Probing { Standing::Down } else { standing }
}

fn launch(identity: &Identity, quiet: bool) -> Launch<'static> {
    let Identity { user, group } = *identity;
    Launch { program: Path::new(PROGRAM), user, group, forget: &[lifeline::VARIABLE, "NOTIFY_SOCKET"], quiet }
}

/// Interval between looks at the engines.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// This program, also when its file has been replaced.
const PROGRAM: &str = "/proc/self/exe";
