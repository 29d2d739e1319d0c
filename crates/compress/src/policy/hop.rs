//! A single compressor on each hop.
//!
//! A hop is the way between two neighbours: client and terse, terse and server. Bytes on it can be compressed by two layers,
//! TLS records and content coding, and bytes that went through one gain nothing in the other. [`hop`] decides the layer.
//!
//! ```text
//!                       the link compresses records?
//!  http-compression     no                       yes
//!  auto                 content coding           records; what comes coded already: stored records
//!  off                  nothing                  nothing: stored records
//!  force                content coding           both, for experiments
//! ```
//!
//! If the records do it, or compression is off, the codings that terse knows are not asked for on the hop: [`narrow`]
//! takes them from Accept-Encoding. Others stay, such as Subversion's `svndiff1`: they are the application's own.

use crate::accept;
use crate::named::named;
use crate::reason::Reason;
use terse_config::Setting;
use terse_message::{Fields, Known};

/// Facts of a hop before any body.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Link {
    /// It compresses all that it carries (TLS record compression).
    pub compresses: bool,
    /// Its setting in the configuration.
    pub mode: Mode,
    /// It has TLS of ours.
    pub is_secure: bool,
}

/// `http-compression`: of a frontend about the hop to clients, of a backend about that to servers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mode {
    /// A single layer compresses: records where they do, content coding elsewhere.
    #[default]
    Auto,
    /// Neither does.
    Off,
    /// Each layer does, as if it were alone: as in measurements from before this setting.
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
    /// It has a content coding, of the server or of terse.
    Coded,
}

/// The decision for a body on a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The layer that compresses the body.
    pub layer: Layer,
    /// Whether codings may be asked for there, and applied.
    pub codes: bool,
    /// Whether the body travels in stored records.
    pub stores: bool,
}

named! {
    /// The layer that compresses a body on a hop, or the reason why none does.
    Layer {
        /// None: there is no coding, and the link does not compress.
        None = "none",
        /// The link's records.
        Records = "records",
        /// A content coding; the link does not compress.
        Content = "content",
        /// A content coding that the body came with; the link would compress, and carries it in stored records.
        Stored = "stored",
        /// None: `http-compression off`.
        Off = "off",
        /// A content coding and the link's records: `http-compression force`.
        Both = "both",
    }
}

impl Layer {
    /// Number of compressors that the body's bytes go through.
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

/// Takes from Accept-Encoding the codings that are not to be asked for on a hop where bodies are not coded. Where none is
/// left, `identity` is set: a request without the field takes anything (RFC 9110 section 12.5.3). A request that refuses
/// plain bodies is left as it is.
pub fn narrow(fields: &mut Fields) {
    if let Some(value) = accept::without_ours(fields.every(Known::AcceptEncoding)) {
        fields.set(Known::AcceptEncoding.name().as_bytes(), &value);
    }
}

#[cfg(test)]
mod tests;
