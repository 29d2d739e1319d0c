//! Compression of records (RFC 3749): it applies to all bytes that a connection carries, heads and bodies alike.
//!
//! It is forbidden unless a line allows it. An eavesdropper can find out secrets in a record that also holds bytes of an
//! attacker's choice (CRIME, CVE-2012-4929). TLS 1.3 has none.
//!
//! OpenSSL does it by methods in a list of the process. Debian's is built without zlib, so that the list is empty;
//! [`method`] adds one of ours, which runs [`coder`]. All contexts of a process share the list. So each context but those
//! of lines that have `allow` forbids it, and a handshake needs a [`Hold`] on the memory beside.
//!
//! ```text
//! a line has `allow` --> support(): OpenSSL 3.0? the method added? a connection in memory compresses? --no--> the line is an error
//!                                           | yes
//! a client's hello offers it, a connection to a server begins --> a Hold? --no--> it forbids it for itself
//!                           | yes
//! handshake --> both ends take DEFLATE? --no--> the Hold goes
//!                           | yes
//! a write --> Manner::Deflate, or Manner::Stored where its bytes are compressed already
//! ```

mod coder;
mod method;
mod trial;

use crate::counters::{COUNTERS, bump};
use openssl::ex_data::Index;
use openssl::ssl::{Ssl, SslContextBuilder, SslRef};
use std::any::Any;
use std::cell::Cell;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

pub(crate) use method::{current, forbid, name_sessions};

/// Policy of a line on compression of records: `tls-compression`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Policy {
    /// Records are not compressed.
    #[default]
    Forbid,
    /// Records are not compressed, but the clients that offer it are noted.
    Detect,
    /// Records are compressed, where the other end takes it too and speaks TLS 1.2.
    Allow,
}

impl Policy {
    /// The policy of that name.
    pub(crate) fn of_word(word: &str) -> Option<Policy> {
        match word {
            "forbid" => Some(Policy::Forbid),
            "detect" => Some(Policy::Detect),
            "allow" => Some(Policy::Allow),
            _ => None,
        }
    }
}

/// The right to the memory of one connection's coder and decoder, [`MEMORY_BYTES`]: it ends when it is dropped.
pub type Hold = Box<dyn Any + Send>;

/// Asks for a [`Hold`]; `None` where there is no room.
pub type Ask = Box<dyn FnOnce() -> Option<Hold> + Send>;

/// The most that one connection's coder and decoder hold.
pub const MEMORY_BYTES: usize = coder::PACKER_BYTES + coder::UNPACKER_BYTES;

/// Form in which the bytes of a record travel.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Manner {
    /// The bytes are compressed.
    #[default]
    Deflate,
    /// The bytes travel as they are, in stored blocks: they are compressed already.
    Stored,
}

/// A connection's coder: packs a record into the room, stored if so asked, and returns its length there.
#[cfg(feature = "hostile")]
pub fn packer() -> impl FnMut(&[u8], &mut [u8], bool) -> Option<usize> {
    let mut packer = coder::Packer::new();
    move |record, room, is_stored| packer.pack(record, room, if is_stored { Manner::Stored } else { Manner::Deflate }).ok()
}

/// A connection's decoder: unpacks a record into the room, and returns its length there.
#[cfg(feature = "hostile")]
pub fn unpacker() -> impl FnMut(&[u8], &mut [u8]) -> Option<usize> {
    let mut unpacker = coder::Unpacker::new();
    move |record, room| unpacker.unpack(record, room).ok()
}

thread_local! {
    /// Manner of the records that this thread makes now. OpenSSL calls the coder while it writes, and passes it no
    /// connection.
    static MANNER: Cell<Manner> = const { Cell::new(Manner::Deflate) };
}

/// Makes records in a manner.
pub(crate) fn while_in<R>(manner: Manner, write: impl FnOnce() -> R) -> R {
    MANNER.set(manner);
    let done = write();
    MANNER.set(Manner::Deflate);
    done
}

/// Whether this process can compress records; if not, the reason. It is found out once, by trying a connection in memory.
pub(crate) fn support() -> Result<(), &'static str> {
    FOUND.get_or_init(|| method::register().and_then(|()| trial::run())).as_ref().copied().map_err(String::as_str)
}

/// Whether that was found out, and it can. While connections are made it must not be found out first, since that changes
/// the list that they look at.
pub(crate) fn was_found() -> bool {
    FOUND.get().is_some_and(Result::is_ok)
}

static FOUND: OnceLock<Result<(), String>> = OnceLock::new();

/// Allows a context to compress records.
pub(crate) fn allow(context: &mut SslContextBuilder) {
    method::allow(context);
}

static OFFERED: LazyLock<Option<Index<Ssl, ()>>> = LazyLock::new(|| Ssl::new_ex_index().ok());

/// A client connection's part of a [`Hold`].
#[derive(Default)]
struct Memory {
    ask: Option<Ask>,
    hold: Option<Hold>,
}

static MEMORY: LazyLock<Option<Index<Ssl, Mutex<Memory>>>> = LazyLock::new(|| Ssl::new_ex_index().ok());

/// Makes a client's connection ask for memory once its hello offers DEFLATE: without that offer it holds none.
pub(crate) fn ask_later(ssl: &mut SslRef, ask: Ask) {
    if let Some(index) = *MEMORY {
        ssl.set_ex_data(index, Mutex::new(Memory { ask: Some(ask), hold: None }));
    }
}

/// Asks, where the hello that is being read offers DEFLATE; without memory the connection does not compress.
pub(crate) fn ask_now(ssl: &mut SslRef) {
    let is_offered = offers(ssl);
    let is_held = memory(ssl, |memory| {
        if let Some(ask) = memory.ask.take().filter(|_| is_offered) {
            memory.hold = ask();
            if memory.hold.is_none() {
                bump(&COUNTERS.records_no_room);
            }
        }
        memory.hold.is_some()
    });
    if is_held != Some(true) {
        forbid(ssl);
    }
}

/// Gives back the memory of a connection that does not compress, and forbids compression for it.
pub(crate) fn release(ssl: &SslRef) {
    memory(ssl, std::mem::take);
    forbid(ssl);
}

fn memory<R>(ssl: &SslRef, f: impl FnOnce(&mut Memory) -> R) -> Option<R> {
    let memory = ssl.ex_data((*MEMORY)?)?;
    Some(f(&mut memory.lock().unwrap_or_else(PoisonError::into_inner)))
}

fn offers(ssl: &mut SslRef) -> bool {
    ssl.client_hello_compression_methods().is_some_and(|methods| methods.contains(&DEFLATE))
}

/// Notes whether the client whose hello is being read offers DEFLATE.
pub(crate) fn note_offer(ssl: &mut SslRef) {
    if offers(ssl) {
        bump(&COUNTERS.records_offered);
        if let Some(index) = *OFFERED {
            ssl.set_ex_data(index, ());
        }
    }
}

/// Whether that was noted.
pub(crate) fn was_offered(ssl: &SslRef) -> bool {
    (*OFFERED).is_some_and(|index| ssl.ex_data(index).is_some())
}

/// Warning where compression is allowed.
pub(crate) const WARNING: &str = "'tls-compression allow': who can make a client send bytes of his choice, and sees how long records \
     are, can find out what is secret in them (CRIME): only where no client runs what strangers wrote, such as browsers do";

/// RFC 3749 section 2: its number.
const DEFLATE: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_tried_compresses() {
        match openssl::version::number() as u64 >> 20 {
            0x300 => assert_eq!(support(), Ok(())),
            _ => assert!(support().is_err()),
        }
    }
}
