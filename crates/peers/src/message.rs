//! Messages: a class, a type, and for types from 128 on a length and so many bytes.

use crate::integer;

/// A message that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Message<'a> {
    /// The peer asks for all entries.
    ResyncRequest,
    /// All entries were sent, and the sender knew all.
    ResyncFinished,
    /// All entries were sent, but there may be more.
    ResyncPartial,
    /// The end of a lesson was received.
    ResyncConfirm,
    /// The peer is alive.
    Heartbeat,
    /// The peer has received a malformed message, and closes.
    Failure,
    /// Description of the entries that follow.
    Definition(&'a [u8]),
    /// Switch to another table that was described.
    Switch(&'a [u8]),
    /// Number of the last update that was received.
    Acknowledgement(&'a [u8]),
    /// An entry.
    Update {
        /// Whether the number is included; otherwise it is the next one.
        numbered: bool,
        /// Whether the expiry is included.
        timed: bool,
        /// The rest.
        body: &'a [u8],
    },
    /// A message of a later version.
    Unknown,
}

/// Result of parsing the first message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Read<'a> {
    /// A message of so many bytes.
    Whole(Message<'a>, usize),
    /// More is needed.
    Partial,
    /// No message, or one that is too long.
    Wrong,
}

/// Parses the first message.
pub(crate) fn read(bytes: &[u8]) -> Read<'_> {
    let [class, kind, rest @ ..] = bytes else { return Read::Partial };
    if *kind < VARIABLE {
        let message = match (*class, *kind) {
            (CONTROL, 0) => Message::ResyncRequest,
            (CONTROL, 1) => Message::ResyncFinished,
            (CONTROL, 2) => Message::ResyncPartial,
            (CONTROL, 3) => Message::ResyncConfirm,
            (CONTROL, 4) => Message::Heartbeat,
            (ERROR, _) => Message::Failure,
            _ => Message::Unknown,
        };
        return Read::Whole(message, 2);
    }
    let mut behind = rest;
    let Some(length) = integer::take(&mut behind) else {
        return if rest.len() > MOST_LENGTH_BYTES { Read::Wrong } else { Read::Partial };
    };
    let Some(length) = usize::try_from(length).ok().filter(|length| *length <= MOST_BYTES) else { return Read::Wrong };
    let Some(body) = behind.get(..length) else { return Read::Partial };
    let update = |numbered, timed| Message::Update { numbered, timed, body };
    let message = match (*class, *kind) {
        (TABLES, UPDATE) => update(true, false),
        (TABLES, NEXT_UPDATE) => update(false, false),
        (TABLES, DEFINITION) => Message::Definition(body),
        (TABLES, SWITCH) => Message::Switch(body),
        (TABLES, ACKNOWLEDGEMENT) => Message::Acknowledgement(body),
        (TABLES, TIMED_UPDATE) => update(true, true),
        (TABLES, NEXT_TIMED_UPDATE) => update(false, true),
        _ => Message::Unknown,
    };
    Read::Whole(message, bytes.len() - behind.len() + length)
}

/// A message without a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Short {
    ResyncRequest = 0,
    ResyncFinished = 1,
    ResyncPartial = 2,
    ResyncConfirm = 3,
    Heartbeat = 4,
}

impl Short {
    pub(crate) fn write(self, to: &mut Vec<u8>) {
        to.extend([CONTROL, self as u8]);
    }
}

/// Reports a malformed message.
pub(crate) fn write_failure(to: &mut Vec<u8>) {
    to.extend([ERROR, 0]);
}

/// Appends a message about tables.
pub(crate) fn write(kind: u8, body: &[u8], to: &mut Vec<u8>) {
    to.extend([TABLES, kind]);
    integer::put(body.len() as u64, to);
    to.extend_from_slice(body);
}

/// The type of an update.
pub(crate) const fn update(numbered: bool, timed: bool) -> u8 {
    match (numbered, timed) {
        (true, false) => UPDATE,
        (false, false) => NEXT_UPDATE,
        (true, true) => TIMED_UPDATE,
        (false, true) => NEXT_TIMED_UPDATE,
    }
}

const CONTROL: u8 = 0;
const ERROR: u8 = 1;
const TABLES: u8 = 10;
const VARIABLE: u8 = 128;
const UPDATE: u8 = 128;
const NEXT_UPDATE: u8 = 129;
pub(crate) const DEFINITION: u8 = 130;
const SWITCH: u8 = 131;
pub(crate) const ACKNOWLEDGEMENT: u8 = 132;
const TIMED_UPDATE: u8 = 133;
const NEXT_TIMED_UPDATE: u8 = 134;
/// A key of the longest kind, and all that an entry may hold.
pub(crate) const MOST_BYTES: usize = 128 * 1024;
/// Length of an integer of 64 bits.
const MOST_LENGTH_BYTES: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_are_told_apart() {
        let mut bytes = Vec::new();
        Short::Heartbeat.write(&mut bytes);
        write(update(false, true), b"abc", &mut bytes);
        assert_eq!(read(&bytes), Read::Whole(Message::Heartbeat, 2));
        let update = Message::Update { numbered: false, timed: true, body: b"abc" };
        assert_eq!(read(&bytes[2..]), Read::Whole(update, 6));
        (2..6).for_each(|end| assert_eq!(read(&bytes[2..2 + end - 1]), Read::Partial, "{end}"));
        assert_eq!(read(&[10, 200, 1, 7]), Read::Whole(Message::Unknown, 4));
        assert_eq!(read(&[10, 128, 0xff, 0xff, 0xff, 0xff, 0x7f]), Read::Wrong);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            if let Read::Whole(_, used) = read(&bytes) {
                prop_assert!(used >= 2 && used <= bytes.len());
            }
        }
    }
}
