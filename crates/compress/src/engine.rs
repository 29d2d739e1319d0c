//! `engine` sections: engines beside the software, and who uses which.
//!
//! ```text
//! engine card                      <- EngineSettings, one a section, numbered by settle
//!     library /usr/lib/libaha.so
//! backend b
//!     compression engine card      <- Choice, which settle turns into an EngineId
//! ```

mod keywords;

pub use keywords::KEYWORDS;

use crate::settings::Compression;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use terse_config::{Diagnostic, Diagnostics, Place, Section, SectionKind, Setting, Settings, Severity};

/// An engine's place in the list of all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EngineId(pub u8);

/// What `compression engine` says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Choice {
    /// `none`: software, whatever `defaults` says.
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

/// What one `engine` section says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineSettings {
    /// Its name.
    pub name: Arc<str>,
    /// Where the section begins.
    pub place: Place,
    /// `library`: a shared library with zlib's API.
    pub library: PathBuf,
    /// Where that stands.
    pub library_place: Place,
    /// `in-process`: whether the library is loaded into this process.
    pub in_process: bool,
    /// `threads`: jobs that the library is given at a time.
    pub threads: usize,
    /// `jobs`: jobs handed over and not done.
    pub jobs: usize,
    /// `maxqueue`: jobs that wait to be handed over.
    pub max_queue: usize,
    /// `deadline`: from the moment that a body is whole until the engine must be done with it.
    pub deadline: Duration,
    /// `smallest`: bytes of the smallest job.
    pub smallest: usize,
    /// `largest`: bytes of the largest job.
    pub largest: usize,
    /// `verify`.
    pub verify: Verify,
    /// `fallback`: the level of software in its place; none: the response's.
    pub fallback: Option<u8>,
    /// `fall`: failures in a row that take it out.
    pub fall: u32,
    /// `rise`: probes in a row that it has to pass to come back.
    pub rise: u32,
    /// `inter`: the pause before the first probe; each that fails doubles it.
    pub inter: Duration,
}

/// What is looked at of a result.
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
    /// The configuration's word.
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
            library: PathBuf::new(),
            library_place: Place::nowhere(),
            in_process: false,
            threads: 4,
            jobs: 4,
            max_queue: 64,
            deadline: Duration::from_secs(1),
            // A job for another process costs 60 to 70 µs of processor time at this size (`bench/breakeven.md`), as much as software's level 6.
            smallest: 16 << 10,
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

/// Takes what the sections say of engines, and tells each proxy which number its engine has. What is wrong is said.
pub fn settle(sections: &mut [Section], diagnostics: &mut Diagnostics) -> Arc<[EngineSettings]> {
    let mut engines = Vec::new();
    for section in sections.iter_mut().filter(|section| section.kind == SectionKind::Engine) {
        let mut engine: EngineSettings = section.settings.take().unwrap_or_default();
        (engine.name, engine.place) = (section.name.clone(), section.place.clone());
        if engine.library.as_os_str().is_empty() {
            diagnostics.alert(&section.place, format!("engine '{}' has no 'library'", section.name));
        }
        if engine.smallest > engine.largest {
            let reason =
                format!("engine '{}': 'smallest' ({}) is above 'largest' ({})", engine.name, engine.smallest, engine.largest);
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

/// Tells a proxy which number its engine has; one that is not there is said.
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
