//! A request's way, one phase a file, in the order of the files below.

pub mod accept;
pub mod announce;
pub mod answer;
pub mod assign;
pub mod body;
pub mod coding;
pub mod converse;
pub mod decoding;
pub mod finish;
pub mod guise;
pub mod handshake;
pub mod inspect;
pub mod judge;
pub mod lease;
pub mod linger;
pub mod observe;
pub mod perform;
pub mod persist;
pub mod prepare;
pub mod read;
pub mod record;
pub mod respond;
pub mod retry;
pub mod route;
pub mod stored;
pub mod transfer;
pub mod waiting;

use crate::io::{Buffer, Timer, Transport};
use terse_message::Abort;

/// The client's end of a session.
pub struct Client {
    /// The socket.
    pub io: Transport,
    /// What has been read from it and not yet gone on.
    pub buffer: Buffer,
    /// Its time-outs.
    pub timer: Timer,
}

/// What follows a request and its response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Another request may come.
    Request,
    /// The connection ends.
    Close,
    /// The connection ends, but bytes of the client's are still on their way: they are [read and dropped](linger), or the kernel would
    /// answer them with a reset that could overtake our answer (RFC 9112 section 9.6).
    Linger,
    /// The connection is reset: a body that only its end would have ended broke off (RFC 9112 section 8).
    Reset,
}

/// How a request ended whose answer is complete. An answer alone ends no upload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Its server has all of it.
    Whole,
    /// Its server has closed or takes no more, which `Some` tells; or nobody waits for the rest any more.
    Unread(Option<Abort>),
    /// Its client broke off.
    Broken(Abort),
}
