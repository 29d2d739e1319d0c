//! From files to a [`Config`].

use crate::diagnostic::Diagnostics;
use crate::keyword::Keyword;
use crate::section::Config;
use crate::settings::Settings;
use std::collections::HashMap;

/// One file, read by the caller.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name, for diagnostics.
    pub name: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// What a file may ask about the process that reads it.
#[derive(Clone, Default, Debug)]
pub struct Environment {
    /// Variables of the environment.
    pub variables: HashMap<String, String>,
    /// The version that `version_atleast()` compares with.
    pub version: String,
    /// What `feature()` knows: names in capitals.
    pub features: Vec<String>,
    /// What `enabled()` knows: names in capitals.
    pub enabled: Vec<String>,
}

/// Reads configurations by tables of keywords.
pub struct Loader {
    /// The tables, joined by the program.
    pub tables: Vec<&'static [Keyword]>,
    /// What files may ask about.
    pub environment: Environment,
}

impl Loader {
    /// Reads the files as one configuration, in order. `shared` holds what parsers find in [`crate::Scope::shared`].
    pub fn load(&self, _sources: &[Source], _shared: Settings) -> (Config, Diagnostics) {
        unreachable!("not built yet")
    }
}
