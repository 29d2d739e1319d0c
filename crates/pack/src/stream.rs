//! A stream from a source to a sink.

use crate::fault::Fault;
use crate::form::Form;
use crate::header::{self, Header};
use crate::line::{self, Plan, Totals};
use crate::progress::Progress;
use std::io::{Read, Write};

/// Compresses all of `source` to `sink`; the total of the output includes gzip's head and tail.
pub(crate) fn compress(
    source: &mut (dyn Read + Send),
    sink: &mut (dyn Write + Send),
    plan: &Plan,
    header: &Header,
    progress: &Progress,
) -> Result<Totals, Fault> {
    if plan.engine.form != Form::Gzip {
        return line::compress(source, sink, plan, progress);
    }
    let mut head = Vec::new();
    header.write(plan.level, &mut head);
    sink.write_all(&head).map_err(Fault::Write)?;
    let mut totals = line::compress(source, sink, plan, progress)?;
    let tail = header::tail(totals.checksum, totals.taken);
    sink.write_all(&tail).map_err(Fault::Write)?;
    totals.frame = (head.len() + tail.len()) as u64;
    totals.given += totals.frame;
    Ok(totals)
}
