//! Dictionaries of RFC 9842: `dictionary` sections, who uses which, and whether an answer may refer to one.
//!
//! ```text
//! dictionary pages
//!     file /etc/terse/pages.dict           <- Draft, one a section; settle reads the file
//!     match /*
//! frontend web
//!     compression dictionary pages         <- Line, which settle gives its Given
//! ```
//!
//! A client that has the bytes says their hash in `Available-Dictionary`. [`read`] looks it up by the request's origin, [`Offer`] keeps it, and
//! [`crate::policy::decide`] has the last word. Each request to such a proxy has one [`Usage`].
//!
//! [`Offer`]: crate::policy::Offer

mod figures;
mod keywords;
pub mod learnable;
pub mod learning;
mod offered;
pub mod store;
mod worth;

pub use figures::{Figures, Held};
pub use keywords::KEYWORDS;
pub use offered::{Offered, hide, read};
pub use worth::Trial;

use crate::named::named;
use crate::settings::Compression;
use learning::Learner;
use std::path::PathBuf;
use std::sync::Arc;
use terse_config::{Diagnostic, Diagnostics, Place, Section, SectionKind, Setting, Settings, Severity};
use terse_dictionary::field::UseAs;
use terse_dictionary::{Dictionary, Index, Limits, MOST_BYTES, Origin, Pattern};

/// The most dictionaries of a process.
pub const MOST_DICTIONARIES: usize = 256;

/// Whether a dictionary of so many bytes is worth reading for a body of so many: that takes 2 ns a byte and more.
pub(crate) fn is_worth(dictionary: usize, bytes: u64) -> bool {
    dictionary <= ALWAYS_WORTH || dictionary as u64 / MOST_TIMES <= bytes
}

/// Bytes of a dictionary that is read for any body.
const ALWAYS_WORTH: usize = 128 << 10;

/// The most times that a larger dictionary may be larger than the body.
const MOST_TIMES: u64 = 16;

/// The most bytes of all that one proxy uses.
const MOST_BYTES_OF_PROXY: usize = 64 << 20;

/// The most bytes of all of a process.
const MOST_BYTES_OF_ALL: usize = 256 << 20;

/// The most hosts of one.
pub const MOST_HOSTS: usize = 64;

/// Under which path a dictionary is published unless `path` says another.
pub const PATH: &str = "/.dictionary/";

named! {
    /// Whether an answer refers to a dictionary, or why it does not: for the log and a sample fetch.
    Usage {
        /// It does.
        Used = "used",
        /// The request has no Available-Dictionary.
        None = "none",
        /// Available-Dictionary is not as RFC 9842 has it.
        Malformed = "malformed",
        /// The hash is of no dictionary of this origin.
        Unknown = "unknown",
        /// The client does not name `dcz`, or wants another coding more.
        Refused = "refused",
        /// The client's hop has no TLS of ours, and no `secure` says that it has another's.
        Insecure = "insecure",
        /// The request is another site's, and may not read the answer.
        Opaque = "opaque",
        /// The answer is a part of a body.
        Partial = "partial",
        /// The answer is not compressed at all: [`crate::Reason`] says why.
        NotCoded = "not-coded",
        /// An earlier answer of the same was not below nine tenths of its ordinary form.
        NotWorth = "not-worth",
        /// It would take a level for which there is no time now.
        Level = "level",
        /// The limit of memory is reached.
        Memory = "memory",
    }
}

/// What one `dictionary` section says.
#[derive(Clone, Default, Debug)]
pub struct Draft {
    /// `file`, and where that stands.
    file: Option<(PathBuf, Place)>,
    /// `match`.
    pattern: Option<Pattern>,
    /// `match-dest`.
    destinations: Vec<String>,
    /// `id`.
    id: String,
    /// `path`.
    path: Option<Box<str>>,
    /// `host`: the origins that it is for; any that reaches its proxies without.
    origins: Vec<Origin>,
}

impl Setting for Draft {
    fn inherit(&self) -> Draft {
        self.clone()
    }
}

/// What `compression dictionary` says.
#[derive(Clone, Debug)]
pub struct Line {
    /// `secure`: TLS toward clients ends before this program.
    pub is_secure: bool,
    /// Names, and where they stand.
    pub names: Vec<(Arc<str>, Place)>,
    /// What they name, once that is known.
    pub given: Arc<Given>,
    /// `auto`: dictionaries are learned, too.
    pub is_auto: bool,
    /// What learns them, once that is known.
    pub learner: Option<Arc<Learner>>,
}

impl Line {
    /// Whether it asks for any; `off` does not.
    pub(crate) fn is_on(&self) -> bool {
        self.is_auto || !self.names.is_empty()
    }
}

/// The dictionaries of a proxy.
#[derive(Debug)]
pub struct Given {
    /// By origin and hash.
    pub(crate) index: Index,
    /// In the order of the line, with the origins of each.
    pub(crate) list: Vec<(Arc<Dictionary>, Arc<[Origin]>)>,
}

impl Default for Given {
    fn default() -> Given {
        Given { index: Index::new(Limits { entries: MOST_DICTIONARIES, bytes: MOST_BYTES_OF_PROXY }), list: Vec::new() }
    }
}

impl Given {
    /// Those that a client of that origin may be told of.
    pub(crate) fn of(&self, origin: &Origin) -> impl Iterator<Item = &Arc<Dictionary>> {
        let is_for = |origins: &[Origin]| origins.is_empty() || origins.contains(origin);
        self.list.iter().filter(move |(_, origins)| is_for(origins)).map(|(dictionary, _)| dictionary)
    }

    /// The one that is published under that path of that origin.
    pub fn published(&self, host: &[u8], path: &[u8]) -> Option<&Arc<Dictionary>> {
        let is_asked = |dictionary: &&(Arc<Dictionary>, Arc<[Origin]>)| dictionary.0.path.as_bytes() == path;
        self.list.iter().find(is_asked)?;
        let origin = Origin::of(host, true)?;
        self.of(&origin).find(|dictionary| dictionary.path.as_bytes() == path)
    }
}

/// The dictionaries of a process: each with the origins that it is for.
#[derive(Clone, Default, Debug)]
pub struct Stock {
    made: Vec<(Arc<Dictionary>, Arc<[Origin]>)>,
    /// Names of those that could not be made, of which enough was said.
    faulty: Vec<Arc<str>>,
    /// Those that are learned, of all proxies that want them.
    learner: Arc<Learner>,
}

impl Stock {
    /// All of them, in the order of their sections.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Dictionary>> {
        self.made.iter().map(|(dictionary, _)| dictionary)
    }

    /// Those that are learned.
    pub fn learner(&self) -> &Arc<Learner> {
        &self.learner
    }
}

/// Reads the bytes of a file that has at most so many.
pub type ReadFile<'r> = &'r dyn Fn(&str, u64) -> Result<Vec<u8>, String>;

/// Takes what the sections say of dictionaries, reads their files, and gives each proxy those that it names. What is wrong is said.
pub fn settle(sections: &mut [Section], read: ReadFile<'_>, diagnostics: &mut Diagnostics) -> Stock {
    let (mut stock, mut bytes) = (Stock::default(), 0);
    for section in sections.iter_mut().filter(|section| section.kind == SectionKind::Dictionary) {
        let draft: Draft = section.settings.take().unwrap_or_default();
        if stock.made.len() == MOST_DICTIONARIES {
            diagnostics.alert(&section.place, format!("there are more than {MOST_DICTIONARIES} dictionaries"));
            break;
        }
        match make(section, draft, read, diagnostics) {
            Some(made) => {
                bytes += made.0.bytes().len();
                if bytes > MOST_BYTES_OF_ALL {
                    let most = MOST_BYTES_OF_ALL >> 20;
                    diagnostics.alert(&section.place, format!("the dictionaries of this process have more than {most} MB"));
                    break;
                }
                stock.made.push(made);
            }
            None => stock.faulty.push(section.name.clone()),
        }
    }
    for section in sections.iter_mut().filter(|section| section.kind.is_proxy()) {
        find(&mut section.settings, &stock, diagnostics);
    }
    stock
}

/// The dictionary of a section.
fn make(
    section: &Section,
    draft: Draft,
    read: ReadFile<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<(Arc<Dictionary>, Arc<[Origin]>)> {
    let name = &section.name;
    if RESERVED.contains(&&**name) {
        let reason = format!("a dictionary cannot be called '{name}', which 'compression dictionary' takes for its own word");
        diagnostics.alert(&section.place, reason);
    }
    let mut lacks = |what: &str, hint: &str| {
        let reason = format!("dictionary '{name}' has no '{what}'");
        diagnostics.push(Diagnostic::new(Severity::Alert, &section.place, reason).hint(Some(hint)));
    };
    if draft.pattern.is_none() && !section.doubtful {
        lacks("match", "such as 'match /app/*': the requests that it is for");
    }
    let Some((path, place)) = draft.file else {
        if !section.doubtful {
            lacks("file", "'file PATH' names its bytes");
        }
        return None;
    };
    let path = path.to_string_lossy();
    let bytes = match read(&path, MOST_BYTES) {
        Ok(bytes) if bytes.is_empty() => Err(format!("'{path}' is empty")),
        Ok(bytes) => Ok(bytes),
        Err(reason) => Err(format!("cannot read the dictionary '{path}': {reason}")),
    };
    let bytes = bytes.map_err(|reason| diagnostics.alert(&place, reason)).ok()?;
    let use_as = UseAs { destinations: draft.destinations, id: draft.id, ..UseAs::of(draft.pattern?) };
    let dictionary = Dictionary::new(name.clone(), use_as, draft.path.as_deref().unwrap_or(PATH), bytes);
    Some((Arc::new(dictionary), draft.origins.into()))
}

/// Words that `compression dictionary` takes for its own, now or later.
pub(crate) const RESERVED: [&str; 3] = ["off", "secure", "auto"];

/// Gives a proxy the dictionaries that it names; one that is not there is said.
pub fn find(settings: &mut Settings, stock: &Stock, diagnostics: &mut Diagnostics) {
    if settings.get::<Compression>().is_none_or(|compression| compression.dictionary.is_none()) {
        return;
    }
    let Some(line) = &mut settings.entry::<Compression>().dictionary else { return };
    let mut given = Given::default();
    for (name, place) in &line.names {
        if stock.faulty.contains(name) {
            continue;
        }
        let Some((dictionary, origins)) = stock.made.iter().find(|(dictionary, _)| dictionary.name == *name) else {
            let known: Vec<&str> = stock.all().map(|dictionary| &*dictionary.name).collect();
            let hint = match known.is_empty() {
                true => "a 'dictionary' section makes one".into(),
                false => format!("one of {}", known.join(", ")),
            };
            let reason = format!("there is no dictionary '{name}'");
            diagnostics.push(Diagnostic::new(Severity::Alert, place, reason).hint(Some(hint)));
            continue;
        };
        let origins_of_index = match origins.is_empty() {
            true => vec![None],
            false => origins.iter().cloned().map(Some).collect(),
        };
        for origin in origins_of_index {
            if let Err(full) = given.index.add(origin, dictionary) {
                diagnostics.alert(place, full.to_string());
                return;
            }
        }
        given.list.push((dictionary.clone(), origins.clone()));
    }
    line.given = Arc::new(given);
    if line.is_auto {
        stock.learner.want();
        line.learner = Some(stock.learner.clone());
    }
}

#[cfg(test)]
mod tests;
