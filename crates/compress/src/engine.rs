//! `engine` sections: engines beside the software, and the proxies that use them.
//!
//! ```text
//! engine card                      <- EngineSettings, one a section, numbered by settle
//!     library /usr/lib/libaha.so   <- Source
//! backend b
//!     compression engine card      <- Choice, which settle turns into an EngineId
//! ```

mod keywords;

pub use keywords::KEYWORDS;

use crate::settings::Compression;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use terse_config::{Diagnostic, Diagnostics, Place, Section, SectionKind, Setting, Settings, Severity};

/// An engine's place in the list of all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EngineId(pub u8);

/// Setting of `compression engine`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Choice {
    /// `none`: software, whatever `defaults` sets.
    Software,
    /// A name, and where it stands.
    Named(Arc<str>, Place),
    /// The engine of that name.
    Found {
        /// Which.
        id: EngineId,
        /// The largest job that it takes, in bytes.
        largest: usize,
    },
}

/// Settings of an `engine` section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineSettings {
    /// Its name.
    pub name: Arc<str>,
    /// Place of the section in the configuration.
    pub place: Place,
    /// `library` or `device`.
    pub source: Source,
    /// Place of that keyword.
    pub source_place: Place,
    /// `in-process`: whether the library is loaded into this process.
    pub in_process: bool,
    /// `threads`: jobs that the library is given at a time, or batches that a GPU is given.
    pub threads: usize,
    /// `jobs`, if it is set. [`EngineSettings::jobs`] has the number.
    pub said_jobs: Option<usize>,
    /// `maxqueue`: jobs that wait to be handed over.
    pub max_queue: usize,
    /// `deadline`: from the moment that a body is whole until the engine must be done with it.
    pub deadline: Duration,
    /// `smallest`, if it is set. [`EngineSettings::smallest`] has the number.
    pub said_smallest: Option<usize>,
    /// `largest`: bytes of the largest job.
    pub largest: usize,
    /// `verify`.
    pub verify: Verify,
    /// `fallback`: the level of software in its place; `None`: the response's.
    pub fallback: Option<u8>,
    /// `fall`: failures in a row that take it out.
    pub fall: u32,
    /// `rise`: probes in a row that it has to pass to come back.
    pub rise: u32,
    /// `inter`: the pause before the first probe; each that fails doubles it.
    pub inter: Duration,
}

/// Library or device that does an engine's work.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Source {
    /// Neither line stands in the section.
    #[default]
    Unsaid,
    /// `library`: a shared library with zlib's API.
    Library(PathBuf),
    /// `device cuda`: a GPU of NVIDIA's, by the number that CUDA gives it.
    Cuda(u32),
}

impl Source {
    /// The source of an argument: `cuda`, `cuda:N`, or a library's path.
    pub fn of(word: &OsStr) -> Source {
        let number = match word.as_bytes() {
            b"cuda" => Some(0),
            _ => word.to_str().and_then(|word| word.strip_prefix("cuda:")).and_then(|number| number.parse().ok()),
        };
        number.map_or_else(|| Source::Library(PathBuf::from(word)), Source::Cuda)
    }

    /// The argument for it.
    pub fn word(&self) -> OsString {
        match self {
            Source::Unsaid => OsString::new(),
            Source::Library(path) => path.clone().into_os_string(),
            Source::Cuda(number) => format!("cuda:{number}").into(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.word().display().fmt(f)
    }
}

impl EngineSettings {
    /// Jobs handed over and not done. A GPU wants many: it does them side by side.
    pub fn jobs(&self) -> usize {
        self.said_jobs.unwrap_or(if self.is_device() { CUDA_JOBS } else { LIBRARY_JOBS })
    }

    /// Bytes of the smallest job, never more than those of the largest.
    pub fn smallest(&self) -> usize {
        let unsaid = if self.is_device() { CUDA_SMALLEST } else { LIBRARY_SMALLEST };
        self.said_smallest.unwrap_or(unsaid.min(self.largest))
    }

    fn is_device(&self) -> bool {
        matches!(self.source, Source::Cuda(_))
    }
}

/// A job for another process costs 60 to 70 µs of processor time at this size (`bench/breakeven.md`), as much as software's level 6.
const LIBRARY_SMALLEST: usize = 16 << 10;
/// A GPU costs 0.2 to 0.4 ms for a job that it has alone (`bench/gpu.md`): software's level 1 costs that between 64 and 256 KB.
const CUDA_SMALLEST: usize = 128 << 10;
const LIBRARY_JOBS: usize = 4;
const CUDA_JOBS: usize = 32;

/// Checks of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verify {
    /// Its first bytes and the length that it states.
    None,
    /// The checksum that it states, too: the engine has read the right body.
    Checksum,
    /// It is decompressed and compared.
    Full,
}

impl Verify {
    /// The configuration's keyword.
    pub const fn word(self) -> &'static str {
        match self {
            Verify::None => "none",
            Verify::Checksum => "checksum",
            Verify::Full => "full",
        }
    }
}

/// The most engines.
pub const MAX_ENGINES: usize = 64;

impl Default for EngineSettings {
    fn default() -> EngineSettings {
        EngineSettings {
            name: "".into(),
            place: Place::nowhere(),
            source: Source::Unsaid,
            source_place: Place::nowhere(),
            in_process: false,
            threads: 4,
            said_jobs: None,
            max_queue: 64,
            deadline: Duration::from_secs(1),
            said_smallest: None,
            largest: 8 << 20,
            verify: Verify::Checksum,
            fallback: None,
            fall: 3,
            rise: 1,
            inter: Duration::from_secs(1),
        }
    }
}

impl Setting for EngineSettings {
    fn inherit(&self) -> EngineSettings {
        self.clone()
    }
}

/// Takes the sections' settings of engines, and gives each proxy the number of its engine. Faults are reported.
pub fn settle(sections: &mut [Section], diagnostics: &mut Diagnostics) -> Arc<[EngineSettings]> {
    let mut engines = Vec::new();
    for section in sections.iter_mut().filter(|section| section.kind == SectionKind::Engine) {
        let mut engine: EngineSettings = section.settings.take().unwrap_or_default();
        (engine.name, engine.place) = (section.name.clone(), section.place.clone());
        match engine.source {
            Source::Unsaid => {
                diagnostics.alert(&section.place, format!("engine '{}' has no 'library' and no 'device'", section.name))
            }
            Source::Cuda(_) if engine.in_process => {
                let reason = format!("engine '{}': a 'device' runs in a process of its own, not 'in-process'", section.name);
                diagnostics.alert(&section.place, reason);
            }
            Source::Cuda(_) | Source::Library(_) => {}
        }
        if engine.smallest() > engine.largest {
            let reason =
                format!("engine '{}': 'smallest' ({}) is above 'largest' ({})", engine.name, engine.smallest(), engine.largest);
            diagnostics.alert(&section.place, reason);
        }
        if engines.len() == MAX_ENGINES {
            diagnostics.alert(&section.place, format!("there are more than {MAX_ENGINES} engines"));
            break;
        }
        engines.push(engine);
    }
    for section in sections.iter_mut().filter(|section| section.kind.is_proxy()) {
        find(&mut section.settings, &engines, diagnostics);
    }
    engines.into()
}

/// Gives a proxy the number of its engine; an engine that is not there is reported.
pub fn find(settings: &mut Settings, engines: &[EngineSettings], diagnostics: &mut Diagnostics) {
    if settings.get::<Compression>().is_none_or(|compression| compression.engine.is_none()) {
        return;
    }
    let compression = settings.entry::<Compression>();
    let Some(Choice::Named(name, place)) = &compression.engine else { return };
    match engines.iter().position(|engine| engine.name == *name) {
        Some(at) => {
            let largest = engines[at].largest;
            compression.engine = Some(Choice::Found { id: EngineId(at as u8), largest });
        }
        None => {
            let known: Vec<&str> = engines.iter().map(|engine| &*engine.name).collect();
            let hint =
                if known.is_empty() { "an 'engine' section makes one".into() } else { format!("one of {}", known.join(", ")) };
            let reason = format!("there is no engine '{name}'");
            diagnostics.push(Diagnostic::new(Severity::Alert, place, reason).hint(Some(hint)));
        }
    }
}

#[cfg(test)]
mod tests;
