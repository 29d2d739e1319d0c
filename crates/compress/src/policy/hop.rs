//! One compressor a hop.
//!
//! A hop is the way between two neighbours: client and terse, terse and server. What travels it can be compressed by two layers, TLS
//! records and content coding, and bytes that went through one gain nothing in the other. [`hop`] says which one it is.
//!
//! ```text
//!                       the link compresses records?
//!  http-compression     no                       yes
//!  auto                 content coding           records; what comes coded already: stored records
//!  off                  nothing                  nothing: stored records
//!  force                content coding           both, for experiments
//! ```
//!
//! Where the records do it, or nobody shall, the codings that terse knows are not asked for on the hop: [`narrow`] takes them from
//! Accept-Encoding. Others stay, such as Subversion's `svndiff1`: they are the application's own.

use crate::accept;
use crate::named::named;
use crate::reason::Reason;
use terse_config::Setting;
use terse_message::{Fields, Known};

/// What is known of a hop before anything travels it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Link {
    /// It compresses all that it carries (TLS record compression).
    pub compresses: bool,
    /// What the configuration says of it.
    pub mode: Mode,
    /// It has TLS of ours.
    pub is_secure: bool,
}

/// `http-compression`: of a frontend about the hop to clients, of a backend about that to servers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mode {
    /// One layer compresses: records where they do, content coding elsewhere.
    #[default]
    Auto,
    /// Neither does.
    Off,
    /// Each does, as if it were alone: what was measured before this was thought of.
    Force,
}

impl Setting for Mode {
    fn inherit(&self) -> Mode {
        *self
    }
}

/// A body that is to travel a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body {
    /// It is not coded.
    Plain,
    /// It has a content coding, whoever applied it.
    Coded,
}

/// What becomes of what travels a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// Who compresses the body.
    pub layer: Layer,
    /// Whether codings may be asked for there, and applied.
    pub codes: bool,
    /// Whether the body travels in stored records.
    pub stores: bool,
}

named! {
    /// Who compresses a body on a hop, and why nobody else does.
    Layer {
        /// Nobody: there is no coding, and the link does not compress.
        None = "none",
        /// The link's records.
        Records = "records",
        /// A content coding; the link does not compress.
        Content = "content",
        /// A content coding that the body came with; the link would compress, and carries it in stored records.
        Stored = "stored",
        /// Nobody: `http-compression off`.
        Off = "off",
        /// A content coding and the link's records: `http-compression force`.
        Both = "both",
    }
}

impl Layer {
    /// How many compressors the body's bytes go through.
    pub const fn compressors(self) -> usize {
        match self {
            Layer::None | Layer::Off => 0,
            Layer::Records | Layer::Content | Layer::Stored => 1,
            Layer::Both => 2,
        }
    }
}

/// Decides for a hop and a body.
pub const fn hop(link: Link, body: Body) -> Hop {
    let codes = link.may_code().is_ok();
    let (layer, stores) = match (link.mode, link.compresses, body) {
        (Mode::Off, compresses, Body::Plain) => (Layer::Off, compresses),
        (Mode::Force, true, Body::Coded) => (Layer::Both, false),
        (_, true, Body::Coded) => (Layer::Stored, true),
        (_, true, Body::Plain) => (Layer::Records, false),
        (_, false, Body::Coded) => (Layer::Content, false),
        (_, false, Body::Plain) => (Layer::None, false),
    };
    Hop { layer, codes, stores }
}

impl Link {
    /// Whether bodies may be coded for the hop.
    pub const fn may_code(self) -> Result<(), Reason> {
        match (self.mode, self.compresses) {
            (Mode::Off, _) => Err(Reason::SwitchedOff),
            (Mode::Auto, true) => Err(Reason::LinkCompresses),
            (Mode::Auto, false) | (Mode::Force, _) => Ok(()),
        }
    }
}

/// Takes from Accept-Encoding what is not to be asked for on a hop where bodies are not coded. Where nothing is left, `identity` is: a
/// request without the field takes anything (RFC 9110 section 12.5.3). A request that refuses plain bodies is left as it is.
pub fn narrow(fields: &mut Fields) {
    if let Some(value) = accept::without_ours(fields.every(Known::AcceptEncoding)) {
        fields.set(Known::AcceptEncoding.name().as_bytes(), &value);
    }
}

#[cfg(test)]
mod tests;
