//! A limit of bandwidth that streams share: the rate of bytes of an entry in a stick table.
//!
//! Each stream is held to the limit by itself, and all of them together by the count of the entry for the last period.

use super::Quota;
use super::bandwidth::{Limiter, SLICE};
use crate::plan::Plan;
use crate::stream::Stream;
use crate::track::key;
use crate::track::name::TableName;
use std::sync::Arc;
use std::time::{Duration, Instant};
use terse_balance::table::{Data, Held, Table};
use terse_sample::Expr;

/// `limit <bytes> key <expression> [table <name>]`
#[derive(Clone, Debug)]
pub struct Share {
    /// Bytes in the period of the table's `bytes_in_rate` or `bytes_out_rate`; more than 0.
    pub bytes: u64,
    /// Key of the entry.
    pub key: Arc<Expr>,
    /// Its table.
    pub table: Arc<TableName>,
    /// Which of the two rates.
    pub data: Data,
}

/// A stream's part of a shared limit.
#[derive(Clone)]
pub struct SharedLimiter {
    plan: Arc<Plan>,
    table: Arc<Table>,
    /// Held: an entry that is in use is neither purged nor dropped for another entry.
    entry: Arc<Held>,
    data: Data,
    bytes: u64,
    own: Limiter,
}

impl Share {
    /// The part of a stream, when its key can be found, and the table has room for it.
    pub fn limiter(&self, stream: &Stream, least_bytes: usize) -> Option<SharedLimiter> {
        let plan = stream.facts.session.worker.plan.clone();
        let table = self.table.table()?.clone();
        let value = self.key.eval(&stream.env())?;
        let now_ms = plan.table_ms(Instant::now());
        let entry = key::with_key(table.settings().key, value, |key| table.hold(key, now_ms))??.into();
        let period_ms = table.layout().stored().find(|stored| stored.data == self.data)?.period_ms;
        let own = Limiter::new(self.bytes, Duration::from_millis(period_ms.into()), least_bytes);
        Some(SharedLimiter { plan, table, entry, data: self.data, bytes: self.bytes, own })
    }
}

impl SharedLimiter {
    pub(super) fn quota(&self, bytes: usize, now: Instant) -> Quota {
        match self.own.quota(bytes, now) {
            Quota::Bytes(bytes) => {
                let gone = self.table.read(&self.entry, self.data, 0, self.plan.table_ms(now)).unwrap_or(0);
                match usize::try_from(self.bytes.saturating_sub(gone)).unwrap_or(usize::MAX) {
                    0 => Quota::Wait(SLICE),
                    left => Quota::Bytes(bytes.min(left)),
                }
            }
            wait => wait,
        }
    }

    pub(super) fn take(&mut self, bytes: usize, now: Instant) {
        let now_ms = self.plan.table_ms(now);
        self.own.take(bytes, now);
        self.table.add(&self.entry, self.data, 0, bytes as u64, now_ms);
        self.table.touch(&self.entry, now_ms);
    }
}
