//! States of coders, kept for the next body.
//!
//! A new state of zlib-rs costs 53 µs and a new state of libdeflate 45 µs, mostly in fresh pages; a state from here 7 µs and
//! nothing. A worker has its own pool, so that its lock is free: only a coder that went to the offload queue takes from it or
//! gives to it from elsewhere.
//!
//! At most [`MAX_IDLE`] states of each kind and level wait here, and those that were not needed from one [`Pool::trim`] to the next go.

use crate::idle::Idle;
use crate::settings::Process;
use libdeflater::{CompressionLvl, Compressor};
use mbrotli::EncoderConfig;
use std::sync::{Mutex, PoisonError};
use terse_deflate::{Encoder, Lists, Room, Stock, Table};
use zlib_rs::{Deflate, DeflateConfig};
use zstd_safe::CCtx;

/// Parameters of the deflate family's incremental coder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// `tune.zlib.windowsize`, 8 to 15.
    pub window_bits: u8,
    /// `tune.zlib.memlevel`, 1 to 9.
    pub memory_level: u8,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning { window_bits: 15, memory_level: crate::settings::MEMORY_LEVEL }
    }
}

impl Tuning {
    /// Settings of `global`.
    pub fn of(process: &Process) -> Tuning {
        Tuning { window_bits: process.window_bits, memory_level: process.memory_level }
    }
}

impl Tuning {
    /// The largest tables for a stream of our own coder, which have the whole window: a smaller window means less memory.
    pub(super) fn table(self) -> usize {
        match self.window_bits {
            0..=11 => 0,
            12 | 13 => 1,
            _ => Table::SIZES - 1,
        }
    }
}

/// States that wait at most, of each kind and level.
const MAX_IDLE: usize = 8;

/// Coders' states, by kind and level.
pub struct Pool {
    tuning: Tuning,
    streams: [Shelf<Deflate>; 10],
    wholes: [Shelf<Compressor>; 13],
    /// Of our own coder.
    owns: [Shelf<Encoder>; 1 + *terse_deflate::LEVELS.end() as usize],
    /// What streams of our own coder borrow, by kind.
    tables: [Shelf<Table>; Table::KINDS],
    lists: Shelf<Lists>,
    rooms: Shelf<Room>,
    /// Of any level: a state is given its level when it is taken.
    zstds: Shelf<CCtx<'static>>,
    brotlis: [Shelf<mbrotli::Compressor>; 12],
}

impl Pool {
    /// An empty pool.
    pub fn new(tuning: Tuning) -> Pool {
        // zlib has no raw stream with a window of 256 bytes.
        let tuning = Tuning { window_bits: tuning.window_bits.clamp(9, 15), memory_level: tuning.memory_level.clamp(1, 9) };
        Pool {
            tuning,
            streams: Default::default(),
            wholes: Default::default(),
            owns: Default::default(),
            tables: Default::default(),
            lists: Shelf::default(),
            rooms: Shelf::default(),
            zstds: Shelf::default(),
            brotlis: Default::default(),
        }
    }

    pub(super) fn tuning(&self) -> Tuning {
        self.tuning
    }

    /// A state of zlib-rs, at the beginning of a raw stream. Levels are 0 to 9.
    pub(super) fn take_stream(&self, level: u8) -> Deflate {
        match self.streams.get(usize::from(level)).and_then(Shelf::take) {
            Some(mut state) => {
                state.reset();
                state
            }
            None => Deflate::new_with_config(DeflateConfig {
                level: i32::from(level),
                window_bits: -i32::from(self.tuning.window_bits),
                mem_level: i32::from(self.tuning.memory_level),
                ..DeflateConfig::default()
            }),
        }
    }

    pub(super) fn give_stream(&self, level: u8, state: Deflate) {
        if let Some(shelf) = self.streams.get(usize::from(level)) {
            shelf.give(state);
        }
    }

    /// A state of libdeflate; `None` when there is no such level. Levels are 0 to 12.
    pub(super) fn take_whole(&self, level: u8) -> Option<Compressor> {
        let kept = self.wholes.get(usize::from(level)).and_then(Shelf::take);
        kept.or_else(|| CompressionLvl::new(i32::from(level)).ok().map(Compressor::new))
    }

    /// A state of our own coder.
    pub(super) fn take_own(&self, level: u8) -> Encoder {
        self.owns.get(usize::from(level)).and_then(Shelf::take).unwrap_or_else(|| Encoder::new(level))
    }

    pub(super) fn give_own(&self, level: u8, state: Encoder) {
        if let Some(shelf) = self.owns.get(usize::from(level)) {
            shelf.give(state);
        }
    }

    /// A state of zstd, with whatever parameters it had; `None` when there is no memory.
    pub(super) fn take_zstd(&self) -> Option<CCtx<'static>> {
        self.zstds.take().or_else(CCtx::try_create)
    }

    pub(super) fn give_zstd(&self, state: CCtx<'static>) {
        if state.sizeof() <= MAX_IDLE_ZSTD_BYTES {
            self.zstds.give(state);
        }
    }

    /// Drops the states that were not needed since the last time.
    pub fn trim(&self) {
        self.streams.iter().for_each(Shelf::trim);
        self.wholes.iter().for_each(Shelf::trim);
        self.owns.iter().for_each(Shelf::trim);
        self.tables.iter().for_each(Shelf::trim);
        self.lists.trim();
        self.rooms.trim();
        self.zstds.trim();
        self.brotlis.iter().for_each(Shelf::trim);
    }

    /// A state of brotli; `None` when the library refuses it. Levels are 0 to 11.
    pub(super) fn take_brotli(&self, level: u8, config: EncoderConfig) -> Option<mbrotli::Compressor> {
        if let Some(mut state) = self.brotlis.get(usize::from(level)).and_then(Shelf::take)
            && state.reconfigure(config).is_ok()
        {
            return Some(state);
        }
        mbrotli::Compressor::new(config).ok()
    }

    pub(super) fn give_brotli(&self, level: u8, state: mbrotli::Compressor) {
        if let Some(shelf) = self.brotlis.get(usize::from(level))
            && state.retained_bytes() <= MAX_IDLE_BROTLI_BYTES
        {
            shelf.give(state);
        }
    }

    pub(super) fn give_whole(&self, level: u8, state: Compressor) {
        if let Some(shelf) = self.wholes.get(usize::from(level)) {
            shelf.give(state);
        }
    }
}

impl Stock for Pool {
    fn take_lists(&self) -> Option<Lists> {
        self.lists.take()
    }

    fn give_lists(&self, lists: Lists) {
        self.lists.give(lists);
    }

    fn take_room(&self) -> Option<Room> {
        self.rooms.take()
    }

    fn give_room(&self, room: Room) {
        self.rooms.give(room);
    }

    fn take_table(&self, kind: usize) -> Option<Table> {
        self.tables.get(kind).and_then(Shelf::take)
    }

    fn give_table(&self, table: Table) {
        if let Some(shelf) = self.tables.get(table.kind()) {
            shelf.give(table);
        }
    }
}

/// A state of zstd that is larger is not kept: it has been at a high level.
const MAX_IDLE_ZSTD_BYTES: usize = 4 << 20;

/// The same for brotli: it has had a long window, or been at one of the levels that few bodies see.
const MAX_IDLE_BROTLI_BYTES: usize = 4 << 20;

/// Bytes of a state of zlib-rs: its tables, the window and its chains, the symbols of a block.
pub(super) const fn stream_memory(tuning: Tuning) -> usize {
    134_272 + (4 << tuning.window_bits) + (7 << (tuning.memory_level + 6))
}

struct Shelf<T>(Mutex<Idle<T>>);

impl<T> Default for Shelf<T> {
    fn default() -> Shelf<T> {
        Shelf(Mutex::default())
    }
}

impl<T> Shelf<T> {
    fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn give(&self, state: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).give(MAX_IDLE, state);
    }

    fn trim(&self) {
        let unneeded = self.0.lock().unwrap_or_else(PoisonError::into_inner).trim();
        // The lock is free by now.
        drop(unneeded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_kept_up_to_the_limit() {
        let pool = Pool::new(Tuning { window_bits: 8, memory_level: 0 });
        assert_eq!(pool.tuning(), Tuning { window_bits: 9, memory_level: 1 });
        let states: Vec<_> = (0..MAX_IDLE + 3).map(|_| pool.take_stream(1)).collect();
        for state in states {
            pool.give_stream(1, state);
        }
        let kept = || pool.streams[1].0.lock().unwrap().len();
        assert_eq!(kept(), MAX_IDLE);
        pool.trim();
        pool.give_stream(1, pool.take_stream(1));
        pool.trim();
        assert_eq!(kept(), 1, "those that were not needed go");
        assert!(pool.take_whole(12).is_some() && pool.take_whole(13).is_none());
    }
}
