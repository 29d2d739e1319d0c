//! The test card for scenarios: its library, its clock, and the results of what is fetched.

use crate::card::keep;
use crate::client::Client;
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A card that knows a body.
#[derive(Debug)]
pub(super) struct Card {
    library: PathBuf,
    folder: tempfile::TempDir,
}

impl Card {
    /// Fetches a body from the origin, and makes its result.
    pub(super) fn new(origin: SocketAddr, path: &str) -> Result<Card> {
        let folder = tempfile::Builder::new().prefix("terse-card-").tempdir()?;
        let body = Client::connect(origin, PATIENCE)?.get(path, &[])?.body;
        keep(folder.path(), &body, LEVEL)?;
        Ok(Card { library: library()?, folder })
    }

    /// Where its library is.
    pub(super) fn library(&self) -> &Path {
        &self.library
    }

    /// What its users are told by their environment.
    pub(super) fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        let folder = self.folder.path();
        vec![("TERSE_TESTCARD_RESULTS", folder.to_owned()), ("TERSE_TESTCARD_CLOCK", folder.join("clock"))]
    }
}

/// The library that was built with this program.
pub(crate) fn library() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().context("this program's folder")?;
    let places = [folder.join(LIBRARY), folder.join("deps").join(LIBRARY)];
    places.into_iter().find(|place| place.exists()).with_context(|| format!("{LIBRARY} is not beside {}", program.display()))
}

const LIBRARY: &str = "libterse_testcard.so";
/// The founding document's, as libdeflate counts.
const LEVEL: i32 = 9;
const PATIENCE: Duration = Duration::from_secs(60);
