//! Rows for a client, a piece at a time. A worker with thousands of servers serves its other clients between two
//! pieces, and a client that reads slowly holds no more than one.

use crate::context::Context;
use crate::figures::{Row, csv, json};
use crate::rows::{Sight, Walk};
use std::sync::Arc;
use std::time::Instant;
use terse_proxy::plan::Plan;
use terse_proxy::reply::Pieces;

/// Source of rows, for as long as the answer is being sent.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) plan: Arc<Plan>,
    /// The process, where it is known.
    pub(super) context: Option<Arc<Context>>,
    pub(super) is_stopping: bool,
    pub(super) legends: bool,
}

impl Source {
    pub(super) fn sight(&self) -> Sight<'_> {
        Sight {
            plan: &self.plan,
            rates: self.context.as_deref().map(|context| &context.rates),
            is_stopping: self.is_stopping,
            legends: self.legends,
            now: Instant::now(),
        }
    }
}

/// A form that rows are written in.
pub(super) trait Writer: Send {
    /// Writes the text before the first row.
    fn begin(&mut self, source: &Source, out: &mut String);

    /// Writes a row.
    fn row(&mut self, source: &Source, row: &Row, out: &mut String);

    /// Writes the text after the last row.
    fn end(&mut self, out: &mut String);
}

/// A body of rows.
pub(super) struct Listing {
    source: Source,
    walk: Walk,
    writer: Box<dyn Writer>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begin,
    Rows,
    Over,
}

impl Listing {
    pub(super) fn new(source: Source, walk: Walk, writer: Box<dyn Writer>) -> Listing {
        Listing { source, walk, writer, stage: Stage::Begin }
    }
}

impl Pieces for Listing {
    fn next(&mut self, out: &mut Vec<u8>) {
        let mut text = String::new();
        while text.len() < PIECE_BYTES && self.stage != Stage::Over {
            if self.stage == Stage::Begin {
                self.writer.begin(&self.source, &mut text);
                self.stage = Stage::Rows;
            }
            match self.walk.next(&self.source.sight()) {
                Some(row) => self.writer.row(&self.source, &row, &mut text),
                None => {
                    self.writer.end(&mut text);
                    self.stage = Stage::Over;
                }
            }
        }
        out.extend_from_slice(text.as_bytes());
    }
}

/// HAProxy's CSV.
pub(super) struct Csv;

impl Writer for Csv {
    fn begin(&mut self, _: &Source, out: &mut String) {
        csv::header(out);
    }

    fn row(&mut self, _: &Source, row: &Row, out: &mut String) {
        csv::line(row, out);
    }

    fn end(&mut self, _: &mut String) {}
}

/// HAProxy's JSON.
#[derive(Default)]
pub(super) struct Json {
    has_rows: bool,
}

impl Writer for Json {
    fn begin(&mut self, _: &Source, out: &mut String) {
        out.push('[');
    }

    fn row(&mut self, _: &Source, row: &Row, out: &mut String) {
        if std::mem::replace(&mut self.has_rows, true) {
            out.push(',');
        }
        json::row(row, out);
    }

    fn end(&mut self, out: &mut String) {
        out.push_str("]\n");
    }
}

/// Size at which a piece is sent: some 30 rows of JSON, or 0.1 ms.
const PIECE_BYTES: usize = 16 << 10;
