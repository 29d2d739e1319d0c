//! The test card for scenarios: its library, its clock, and the results for its jobs.

use crate::card::keep;
use crate::client::Client;
use crate::program::beside_this_one;
use anyhow::Result;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A card that knows the bodies of its jobs, or learns them.
#[derive(Debug)]
pub(super) struct Card {
    library: PathBuf,
    folder: tempfile::TempDir,
    learns: bool,
}

impl Card {
    /// Fetches a body from the origin, and makes its result.
    pub(super) fn of_body(origin: SocketAddr, path: &str) -> Result<Card> {
        let card = Card::new()?;
        let body = Client::connect(origin, PATIENCE)?.get(path, &[])?.body;
        keep(card.folder.path(), &body, LEVEL)?;
        Ok(card)
    }

    /// Returns a card that knows nothing, and learns: it need not compute the same job a second time.
    pub(super) fn learning() -> Result<Card> {
        Ok(Card { learns: true, ..Card::new()? })
    }

    fn new() -> Result<Card> {
        let folder = tempfile::Builder::new().prefix("terse-card-").tempdir()?;
        Ok(Card { library: library()?, folder, learns: false })
    }

    /// Path of its library.
    pub(super) fn library(&self) -> &Path {
        &self.library
    }

    /// Environment variables of its users.
    pub(super) fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        let folder = self.folder.path();
        let variables = [("TERSE_TESTCARD_RESULTS", folder.to_owned()), ("TERSE_TESTCARD_CLOCK", folder.join("clock"))];
        variables.into_iter().chain(self.learns.then(|| ("TERSE_TESTCARD_LEARN", "yes".into()))).collect()
    }
}

/// The library that was built with this program.
pub(crate) fn library() -> Result<PathBuf> {
    beside_this_one(&LIBRARIES)
}

const LIBRARIES: [&str; 2] = ["libterse_testcard.so", "deps/libterse_testcard.so"];
/// The founding document's, as libdeflate counts.
const LEVEL: i32 = 9;
const PATIENCE: Duration = Duration::from_secs(60);
