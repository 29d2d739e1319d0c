//! Fetches that are understood and not built.

use terse_sample::Fetch;

/// Entries with the same summary and the same reason.
macro_rules! refused {
    ($summary:literal, $reason:literal: $($name:literal)*) => {
        &[$(Fetch::refused($name, $summary, $reason)),*]
    };
}

/// The tables.
pub(super) const INSIDE: &[Fetch] = refused!("A part of HAProxy's form of messages, for those who look for its bugs.", "heads are kept as they came here, not as blocks":
    "internal.htx.data" "internal.htx.free" "internal.htx.free_data" "internal.htx.has_eom" "internal.htx.nbblks" "internal.htx.size"
    "internal.htx.used" "internal.htx_blk.data" "internal.htx_blk.hdrname" "internal.htx_blk.hdrval" "internal.htx_blk.size"
    "internal.htx_blk.start_line" "internal.htx_blk.type");

pub(super) const GATEWAYS: &[Fetch] =
    refused!("What a FastCGI application is told.", "FastCGI is not spoken": "fcgi.docroot" "fcgi.index");

pub(super) const AGENTS: &[Fetch] =
    refused!("The engine of a stream processing agent.", "agents (SPOE) are not spoken to": "spoe.engine-id");

pub(super) const DEVICES: &[Fetch] = refused!("What a database says of the client's device.", "databases of devices are not read":
    "51d.all" "da-csv-fetch" "wurfl-get" "wurfl-get-all");
