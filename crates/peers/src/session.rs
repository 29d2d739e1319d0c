//! A connection to another process, without its socket: bytes and the time go in, bytes come out.

use crate::definition::{self, Definition};
use crate::group::{Group, SharedTable};
use crate::integer;
use crate::lesson::Stage;
use crate::message::{self, ACKNOWLEDGEMENT, DEFINITION, Message, Read, Short};
use crate::update::{self, KnownNames, SentNames};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use terse_balance::table::Entry;

/// Role of the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum With {
    /// A peer, by its index.
    Peer(usize),
    /// The process that this one replaces.
    Predecessor,
    /// The process that replaces this one.
    Successor,
}

/// The other end has sent a malformed message, or gives up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Broken;

/// A connection, once both ends are identified.
pub(crate) struct Session {
    group: Arc<Group>,
    with: With,
    /// Whether the other end wants the expiry of entries.
    timed: bool,
    /// Tables of the other end, by its numbers.
    theirs: HashMap<u64, Theirs>,
    current: Option<u64>,
    known_names: KnownNames,
    sent_names: SentNames,
    /// Number of the last update sent of each table.
    sent: Vec<u64>,
    /// Table that was described last, and the number of its last update.
    described: Option<(usize, Option<u32>)>,
    teaching: Option<Teaching>,
    /// Whether the end of a lesson is to be confirmed: once, however often it was sent.
    confirms: bool,
    /// Whether the other end has received the whole lesson.
    taught: bool,
}

/// A table of the other end.
struct Theirs {
    definition: Definition,
    /// Index of the table here; `None` where none fits.
    ours: Option<usize>,
    /// Number of its last update.
    last: u32,
    /// Whether that is still to be acknowledged.
    due: bool,
}

/// Progress of sending all tables, one after the other.
struct Teaching {
    table: usize,
    shard: usize,
    entries: std::vec::IntoIter<Arc<Entry>>,
}

/// Limits of one call: an entry that is gone, or not for the other end, has no bytes and takes time.
struct Budget {
    /// Length that the output may reach.
    bytes: usize,
    /// Number of entries that may still be examined.
    entries: usize,
}

impl Session {
    /// Begins a session: a peer is sent what it has not acknowledged.
    pub(crate) fn new(group: Arc<Group>, with: With, timed: bool) -> Session {
        let tables = 0..group.tables.len();
        let sent = match with {
            With::Peer(peer) => tables.map(|table| group.peers.get(peer).map_or(0, |peer| peer.heard_of(table))).collect(),
            // The lesson covers all.
            With::Successor | With::Predecessor => tables.map(|_| u64::MAX).collect(),
        };
        let teaching = (with == With::Successor).then(Teaching::begin);
        Session {
            group,
            with,
            timed,
            theirs: HashMap::new(),
            current: None,
            known_names: KnownNames::default(),
            sent_names: SentNames::default(),
            sent,
            described: None,
            teaching,
            confirms: false,
            taught: false,
        }
    }

    /// Whether the connection has served its purpose: the process that replaces this one has heard all.
    pub(crate) fn is_done(&self) -> bool {
        self.taught && self.with == With::Successor
    }

    /// Takes whole messages off the front, and returns their length in bytes.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        let mut used = 0;
        loop {
            match message::read(bytes.get(used..).unwrap_or_default()) {
                Read::Partial => return Ok(used),
                Read::Wrong => return Err(Broken),
                Read::Whole(message, length) => {
                    self.take(message)?;
                    used += length;
                }
            }
        }
    }

    fn take(&mut self, message: Message<'_>) -> Result<(), Broken> {
        match message {
            Message::Heartbeat | Message::Unknown => {}
            Message::Failure => return Err(Broken),
            // A peer that asks again before the end gets everything once.
            Message::ResyncRequest => drop(self.teaching.get_or_insert_with(Teaching::begin)),
            Message::ResyncFinished | Message::ResyncPartial => {
                self.group.told(self.peer(), message == Message::ResyncFinished, Instant::now());
                self.confirms = true;
            }
            Message::ResyncConfirm => self.taught = true,
            Message::Definition(body) => self.define(definition::read(body).ok_or(Broken)?)?,
            Message::Switch(mut body) => {
                self.current = integer::take(&mut body).filter(|number| self.theirs.contains_key(number));
            }
            Message::Acknowledgement(mut body) => {
                let table = integer::take(&mut body).ok_or(Broken)?;
                let number = body.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)).ok_or(Broken)?;
                let table = usize::try_from(table).ok().and_then(|table| table.checked_sub(1));
                if let (With::Peer(peer), Some(table)) = (self.with, table) {
                    self.group.acknowledge(peer, table, number);
                }
            }
            Message::Update { numbered, timed, body } => self.learn(body, (numbered, timed))?,
        }
        Ok(())
    }

    fn define(&mut self, definition: Definition) -> Result<(), Broken> {
        let fits = |shared: &SharedTable| shared.name == definition.name && update::fits(&definition, &shared.table);
        let ours = self.group.tables.iter().position(fits);
        self.current = Some(definition.number);
        // The count of updates goes on where a table is described again.
        let count = self.theirs.len();
        match self.theirs.get_mut(&definition.number) {
            Some(theirs) => (theirs.ours, theirs.definition) = (ours, definition),
            None if count >= MOST_TABLES => return Err(Broken),
            None => drop(self.theirs.insert(definition.number, Theirs { definition, ours, last: 0, due: false })),
        }
        Ok(())
    }

    fn learn(&mut self, body: &[u8], form: (bool, bool)) -> Result<(), Broken> {
        // A table that was never described is not known here.
        let Some(theirs) = self.current.and_then(|number| self.theirs.get_mut(&number)) else { return Ok(()) };
        let update = update::read(body, form, &theirs.definition, &mut self.known_names).ok_or(Broken)?;
        theirs.last = update.number.unwrap_or_else(|| theirs.last.wrapping_add(1));
        theirs.due = true;
        if let Some(shared) = theirs.ours.and_then(|ours| self.group.tables.get(ours)) {
            let now_ms = self.group.now_ms();
            update.learn(&shared.table, false, now_ms);
            if let Some(aside) = &shared.aside {
                update.learn(aside, true, now_ms);
            }
        }
        Ok(())
    }

    /// Appends pending messages, up to about `most` bytes, and examines a limited number of entries. True if there may
    /// be more to send, though `most` was not reached: other tasks have their turn before.
    pub(crate) fn send(&mut self, most: usize, to: &mut Vec<u8>) -> bool {
        if let With::Peer(peer) = self.with
            && self.group.asks(peer, Instant::now())
        {
            Short::ResyncRequest.write(to);
        }
        if std::mem::take(&mut self.confirms) {
            Short::ResyncConfirm.write(to);
        }
        self.acknowledge(to);
        let now_ms = self.group.now_ms();
        let mut budget = Budget { bytes: most, entries: ENTRIES_AT_ONCE };
        self.teach(&mut budget, to, now_ms);
        self.tell(&mut budget, to, now_ms);
        budget.entries == 0 && to.len() < most
    }

    /// Appends acknowledgements of updates. The teacher of this process gets none until the end is confirmed.
    fn acknowledge(&mut self, to: &mut Vec<u8>) {
        if self.is_taught_by_them() {
            return;
        }
        for (number, theirs) in self.theirs.iter_mut().filter(|(_, theirs)| theirs.due) {
            theirs.due = false;
            let mut body = Vec::new();
            integer::put(*number, &mut body);
            body.extend(theirs.last.to_be_bytes());
            message::write(ACKNOWLEDGEMENT, &body, to);
        }
    }

    fn is_taught_by_them(&self) -> bool {
        self.peer().is_some_and(|peer| self.group.stage() == Stage::Asked(peer))
    }

    /// Goes on with the lesson of all tables.
    fn teach(&mut self, budget: &mut Budget, to: &mut Vec<u8>, now_ms: u64) {
        while self.teaching.is_some() && budget.take(to) {
            let Some(teaching) = &mut self.teaching else { return };
            let Some(shared) = self.group.tables.get(teaching.table) else {
                self.teaching = None;
                let complete = self.with == With::Successor || self.group.stage() == Stage::Complete;
                if complete { Short::ResyncFinished } else { Short::ResyncPartial }.write(to);
                return;
            };
            let Some(entry) = teaching.entries.next() else {
                if teaching.shard == shared.table.shards() {
                    (teaching.table, teaching.shard) = (teaching.table + 1, 0);
                } else {
                    let entries = shared.table.entries(teaching.shard, now_ms);
                    budget.entries = budget.entries.saturating_sub(entries.len());
                    teaching.entries = entries.into_iter();
                    teaching.shard += 1;
                }
                continue;
            };
            let table = teaching.table;
            if self.is_for_them(shared, &entry) {
                // It is no change: its acknowledgement changes nothing.
                let heard = self.peer().and_then(|peer| self.group.peers.get(peer)).map_or(0, |peer| peer.heard_of(table));
                self.write(table, &entry, heard as u32, to, now_ms);
            }
        }
    }

    /// Goes on with changes.
    fn tell(&mut self, budget: &mut Budget, to: &mut Vec<u8>, now_ms: u64) {
        for table in 0..self.sent.len() {
            loop {
                let (Some(sent), Some(shared)) = (self.sent.get(table).copied(), self.group.tables.get(table)) else { return };
                let next = if sent == u64::MAX { None } else { shared.recent().after(sent) };
                let Some((number, entry)) = next else { break };
                if !budget.take(to) {
                    return;
                }
                // An entry that is gone by now would come to life again.
                if self.is_for_them(shared, &entry) && shared.table.has_entry(&entry, now_ms) {
                    self.write(table, &entry, number as u32, to, now_ms);
                }
                if let Some(sent) = self.sent.get_mut(table) {
                    *sent = number;
                }
            }
        }
    }

    fn is_for_them(&self, shared: &SharedTable, entry: &Entry) -> bool {
        match self.with {
            With::Peer(peer) => {
                self.group.peers.get(peer).is_some_and(|peer| peer.has_share(shared, entry.key(), self.group.shards))
            }
            With::Successor | With::Predecessor => true,
        }
    }

    fn write(&mut self, table: usize, entry: &Entry, number: u32, to: &mut Vec<u8>, now_ms: u64) {
        let Some(shared) = self.group.tables.get(table) else { return };
        let last = match self.described {
            Some((described, last)) if described == table => last,
            _ => {
                let mut body = Vec::new();
                definition::write(table as u64 + 1, &shared.name, &shared.table, &mut body);
                message::write(DEFINITION, &body, to);
                None
            }
        };
        let is_next = last.is_some_and(|last| last.wrapping_add(1) == number);
        self.described = Some((table, Some(number)));
        let mut body = Vec::new();
        let form = ((!is_next).then_some(number), self.timed);
        update::write(&shared.table, entry, form, &mut self.sent_names, now_ms, &mut body);
        message::write(message::update(!is_next, self.timed), &body, to);
    }

    /// Notifies the section that the connection has ended.
    pub(crate) fn end(&self) {
        if self.with != With::Successor {
            self.group.lost(self.peer(), Instant::now());
        }
    }

    fn peer(&self) -> Option<usize> {
        match self.with {
            With::Peer(peer) => Some(peer),
            With::Predecessor | With::Successor => None,
        }
    }
}

impl Budget {
    /// Takes an entry's part of it; false when it is spent.
    fn take(&mut self, to: &[u8]) -> bool {
        let has_room = to.len() < self.bytes && self.entries > 0;
        self.entries -= usize::from(has_room);
        has_room
    }
}

impl Teaching {
    fn begin() -> Teaching {
        Teaching { table: 0, shard: 0, entries: Vec::new().into_iter() }
    }
}

/// Entries that are examined without a pause: for less than a millisecond.
const ENTRIES_AT_ONCE: usize = 1000;
/// Limit of a peer's tables.
const MOST_TABLES: usize = 1024;

#[cfg(test)]
mod tests;
