//! The configuration of decoding: a [`Decompression`] for each section, joined for a request as [`Effective`].
//!
//! A request passes a frontend and a backend, and both may set `decompression`. The backend's setting goes first, setting by
//! setting.

use super::body::Limits;
use crate::coding::Coding;
use terse_config::Setting;

/// Largest ratio of output to input, without a line.
///
/// Twice what Envoy allows, and what httpd does. Ordinary bodies stay below: pages come to 3 to 6, lines of logs to 13 with
/// gzip and 58 with zstd's level 19, and a bitmap of 7.3 MB, the barest of the bodies that terse is measured with, to 40 with
/// gzip and 58 with br at its best. Bombs are near deflate's own limit of 1032, or far beyond it. Output below
/// [`super::body::FREE_BYTES`] has no limit.
pub const DEFAULT_MAX_RATIO: u32 = 200;

/// Limit of a request body's decoded size, without a line: more than servers commonly take. Any client can send requests;
/// responses come from configured servers, and have no limit without a line.
pub const DEFAULT_REQUEST_MAX_BYTES: u64 = 128 << 20;

/// Settings of a section for decoding.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Decompression {
    /// `response on|off|recode`.
    pub response: Option<Responses>,
    /// `request <coding>...|off`: codings that servers cannot take; empty: they take all.
    pub request: Option<Vec<Coding>>,
    /// `accept <coding>...|off`: codings that servers may send whatever the client takes.
    pub accept: Option<Vec<Coding>>,
    /// `max-size`, `max-size-res`: bytes of a response; 0: any number.
    pub response_max_bytes: Option<u64>,
    /// `max-size`, `max-size-req`: bytes of a request's body; 0: any number.
    pub request_max_bytes: Option<u64>,
    /// `max-ratio`; 0: any.
    pub max_ratio: Option<u32>,
}

/// Which responses are decoded.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Responses {
    /// No response.
    #[default]
    Off,
    /// Responses whose client cannot take them.
    On,
    /// Also responses that compression would then code in a way that their client likes better.
    Recode,
}

impl Setting for Decompression {
    fn inherit(&self) -> Decompression {
        self.clone()
    }
}

/// The settings for a request: of its frontend and its backend.
#[derive(Clone, Copy, Debug)]
pub struct Effective<'a> {
    front: Option<&'a Decompression>,
    back: Option<&'a Decompression>,
}

impl<'a> Effective<'a> {
    /// Joins them. For a `listen` section both are the same.
    pub fn new(front: Option<&'a Decompression>, back: Option<&'a Decompression>) -> Effective<'a> {
        Effective { front, back }
    }

    /// Which responses are decoded.
    pub fn responses(&self) -> Responses {
        self.first(|d| d.response).unwrap_or_default()
    }

    /// The codings that are undone in requests' bodies.
    pub fn request_codings(&self) -> &'a [Coding] {
        self.first(|d| d.request.as_deref()).unwrap_or_default()
    }

    /// The codings that servers are asked for whatever the client takes.
    pub fn accepted_codings(&self) -> &'a [Coding] {
        self.first(|d| d.accept.as_deref()).unwrap_or_default()
    }

    /// The limits of a response's body.
    pub fn response_limits(&self) -> Limits {
        Limits { max_bytes: self.first(|d| d.response_max_bytes).unwrap_or(0), max_ratio: self.max_ratio(), strict: false }
    }

    /// The limits of a request's body.
    pub fn request_limits(&self) -> Limits {
        let max_bytes = self.first(|d| d.request_max_bytes).unwrap_or(DEFAULT_REQUEST_MAX_BYTES);
        Limits { max_bytes, max_ratio: self.max_ratio(), strict: true }
    }

    fn max_ratio(&self) -> u32 {
        self.first(|d| d.max_ratio).unwrap_or(DEFAULT_MAX_RATIO)
    }

    fn first<T>(&self, said: impl Fn(&'a Decompression) -> Option<T>) -> Option<T> {
        self.back.into_iter().chain(self.front).find_map(said)
    }
}
