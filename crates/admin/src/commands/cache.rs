//! Caches.

use crate::answer::{Answer, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use terse_cache::Cache;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "show cache",
    usage: "show cache",
    summary: "list the caches, and what they hold",
    level: Level::Admin,
    run: show,
}];

fn show(call: &mut Call<'_>) -> Outcome {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    Ok(Answer::Text(call.context.plan.caches.iter().map(|cache| lines(cache, now_ms)).collect()))
}

/// A line of the cache, and one for each response in it, in HAProxy's form. HAProxy's blocks are of a kilobyte; here
/// bytes are counted.
fn lines(cache: &Arc<Cache>, now_ms: i64) -> String {
    let pointer = Arc::as_ptr(cache).addr();
    let mut text = format!("{pointer:#x}: {} (shctx:{pointer:#x}, available blocks:{})\n", cache.name, cache.free_bytes() / 1024);
    for listed in cache.list() {
        let entry = &listed.entry;
        let size = entry.size_bytes();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:#x} hash:{} vary:0x{} type:full size:{size} ({} blocks), refcount:{}, expire:{}",
            Arc::as_ptr(entry).addr(),
            listed.key.short(),
            entry.selector_text(),
            size.div_ceil(1024),
            // The list's own reference does not count.
            Arc::strong_count(entry) - 1,
            entry.fresh_s(now_ms)
        );
    }
    for (key, size) in cache.list_hints() {
        let (hash, blocks) = (key.short(), size / 1024);
        let _ = writeln!(text, "0x0 hash:{hash} vary:0x0 type:hints size:{size} ({blocks} blocks), refcount:0, expire:0");
    }
    text
}
