//! `tune.h2.*`: settings of HTTP/2 with clients.

use crate::plan::ProcessPlan;
use terse_http::h1::Reading;
use terse_http::h2::Limits;

/// Settings of `global` for HTTP/2 with clients.
#[derive(Clone, Copy, Debug)]
pub struct Http2Settings {
    /// `tune.h2.fe.max-concurrent-streams`
    pub concurrent_streams: u32,
    /// `tune.h2.fe.initial-window-size`, in bytes; `None` for the default, which servers have of their own.
    pub window_bytes: Option<u32>,
    /// `tune.h2.fe.rxbuf`: the budget of a connection, in bytes.
    pub budget_bytes: u32,
    /// `tune.h2.fe.glitches-threshold`: 0 for none.
    pub most_glitches: u64,
    /// `tune.h2.fe.max-total-streams`: 0 for any number.
    pub most_streams: u64,
    /// `tune.h2.log-errors`: whether connections that end for an error are logged.
    pub logs_connection_errors: bool,
    /// `tune.h2.log-errors`: whether requests that are malformed are logged.
    pub logs_stream_errors: bool,
    /// Whether WebSocket over HTTP/2 is offered: not with `h2-workaround-bogus-websocket-clients`.
    pub offers_websocket: bool,
}

/// The bytes of a body that a client may send before it has heard of its stream: the size of a first flight.
const FIRST_WINDOW: u32 = 16 * 1024;

impl Default for Http2Settings {
    fn default() -> Http2Settings {
        let limits = Limits::default();
        Http2Settings {
            concurrent_streams: limits.concurrent_streams,
            window_bytes: None,
            budget_bytes: limits.receive_budget,
            most_glitches: 0,
            most_streams: 0,
            logs_connection_errors: true,
            logs_stream_errors: true,
            offers_websocket: true,
        }
    }
}

impl Http2Settings {
    /// The limits of a connection.
    pub fn limits(&self, process: &ProcessPlan, reading: Reading) -> Limits {
        let usual = Limits::default();
        let window = self.window_bytes.unwrap_or(FIRST_WINDOW);
        Limits {
            concurrent_streams: self.concurrent_streams,
            stream_window: window,
            widest_window: (self.budget_bytes / 2).max(window),
            connection_window: usual.connection_window.min(self.budget_bytes / 2).max(65_535),
            receive_budget: self.budget_bytes,
            head_bytes: process.buffer_bytes,
            block_bytes: process.buffer_bytes,
            extended_connect: self.offers_websocket,
            reading,
            ..usual
        }
    }
}
