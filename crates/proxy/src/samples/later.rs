//! Fetches that are understood and not built.

use terse_sample::Fetch;

/// Entries of one summary and one reason.
macro_rules! refused {
    ($summary:literal, $reason:literal: $($name:literal)*) => {
        &[$(Fetch::refused($name, $summary, $reason)),*]
    };
}

/// The tables.
pub(super) const SOCKETS: &[Fetch] = refused!("The packet that opened the client's connection.", "the kernel is not asked to keep it ('tcp-ss')":
    "fc_saved_syn");

pub(super) const INSIDE: &[Fetch] = refused!("A state inside HAProxy, for those who look for its bugs.", "it has no counterpart here":
    "fs.debug_str" "bs.debug_str" "term_events" "internal.htx.data" "internal.htx.free" "internal.htx.free_data"
    "internal.htx.has_eom" "internal.htx.nbblks" "internal.htx.size" "internal.htx.used" "internal.htx_blk.data"
    "internal.htx_blk.hdrname" "internal.htx_blk.hdrval" "internal.htx_blk.size" "internal.htx_blk.start_line"
    "internal.htx_blk.type" "internal.strm.is_htx");

pub(super) const TASKS: &[Fetch] = refused!("How much a stream or a thread computes and waits.", "it is not measured for each stream":
    "cpu_calls" "cpu_ns_avg" "cpu_ns_tot" "cpu_usage_grp" "cpu_usage_proc" "cpu_usage_thr" "lat_ns_avg" "lat_ns_tot");

pub(super) const WAITING: &[Fetch] = refused!("What a rule or a filter waits for.", "it is not noted": "waiting_entity");

pub(super) const SENT: &[Fetch] = refused!("Bytes that the server was sent.", "they are not counted; 'req.bytes_in' has what the client sent":
    "req.bytes_out");

pub(super) const GATEWAYS: &[Fetch] =
    refused!("What a FastCGI application is told.", "FastCGI is not spoken": "fcgi.docroot" "fcgi.index");

pub(super) const AGENTS: &[Fetch] =
    refused!("The engine of a stream processing agent.", "agents (SPOE) are not spoken to": "spoe.engine-id");

pub(super) const DEVICES: &[Fetch] = refused!("What a database says of the client's device.", "databases of devices are not read":
    "51d.all" "da-csv-fetch" "wurfl-get" "wurfl-get-all");

pub(super) const CACHES: &[Fetch] = refused!("What a cache did.", "caches come later": "res.cache_hit" "res.cache_name");
