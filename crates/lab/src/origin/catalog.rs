//! Catalog of the origin's paths. Bodies are made when they are first asked for.

use super::answer::{Answer, Body, Framing, Pace, head};
use super::validators::Asset;
use crate::content::{Template, page, photo, picture, records, script};
use bytes::Bytes;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

/// A path of the origin.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The path, as a request names it.
    pub path: &'static str,
    /// Description for a person.
    pub about: &'static str,
    make: fn(u64) -> Item,
}

/// Content of a path.
#[derive(Debug)]
pub(super) enum Item {
    /// Differs each time: the variants take turns, and each is stamped with the request's number.
    Fresh(Vec<Answer>),
    /// The same each time; conditions and ranges are heeded.
    Static(Box<Asset>),
    /// Put together for the request.
    Action(Action),
}

/// Action that puts a response together for a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Index,
    Made,
    Echo,
    Sink,
    Tally,
    Raw,
    Upgrade,
}

/// All entries, in the order in which the index page shows them.
pub const ENTRIES: &[Entry] = &[
    Entry {
        path: "/static/page.html",
        about: "a page of 40 KB",
        make: |seed| asset("text/html; charset=utf-8", page::page(seed, 40_000).bytes),
    },
    Entry {
        path: "/static/small.js",
        about: "a script of 8 KB",
        make: |seed| asset(SCRIPT, script::script(seed, SMALL_BYTES, STAMP_EVERY).bytes),
    },
    Entry {
        path: "/static/page.js",
        about: "a script of 132 KB",
        make: |seed| asset(SCRIPT, script::script(seed, PAGE_BYTES, STAMP_EVERY).bytes),
    },
    Entry { path: RELEASES[0], about: "a script of 132 KB, as it was released", make: |seed| asset(SCRIPT, release(seed, 0)) },
    Entry { path: RELEASES[1], about: "its next release", make: |seed| asset(SCRIPT, release(seed, 1)) },
    Entry { path: "/static/records.json", about: "200 records", make: |seed| asset(JSON, records::records(seed, 200).bytes) },
    Entry { path: "/static/photo.jpg", about: "a photo, compressed already", make: |seed| asset("image/jpeg", photo::photo(seed)) },
    Entry {
        path: "/static/picture.bmp",
        about: "a bitmap of 7.3 MB, as in the founding document",
        make: |_| asset(BITMAP, bitmap().bytes),
    },
    Entry { path: "/static/tiny", about: "100 bytes", make: |_| asset("text/plain", vec![b'x'; 100]) },
    Entry { path: "/events", about: "five events, one in 200 ms", make: |_| Item::Fresh(vec![events()]) },
    Entry { path: "/tiny", about: "100 bytes without validators", make: |_| Item::Fresh(vec![tiny()]) },
    Entry {
        path: "/page.html",
        about: "a page, another each time",
        make: |seed| fresh("text/html; charset=utf-8", Framing::Length, [page::page(seed, 40_000)]),
    },
    Entry {
        path: "/records.json",
        about: "records, others each time, chunked",
        make: |seed| fresh(JSON, Framing::Chunks(CHUNK_BYTES), [records::records(seed, 200)]),
    },
    Entry {
        path: "/small.js",
        about: "8 KB, another each time",
        make: |seed| fresh(SCRIPT, Framing::Length, scripts(seed, SMALL_BYTES)),
    },
    Entry {
        path: "/small-chunked.js",
        about: "the same, chunked",
        make: |seed| fresh(SCRIPT, Framing::Chunks(CHUNK_BYTES), scripts(seed, SMALL_BYTES)),
    },
    Entry {
        path: "/page.js",
        about: "132 KB, another each time",
        make: |seed| fresh(SCRIPT, Framing::Length, scripts(seed, PAGE_BYTES)),
    },
    Entry {
        path: "/page-chunked.js",
        about: "the same, chunked",
        make: |seed| fresh(SCRIPT, Framing::Chunks(CHUNK_BYTES), scripts(seed, PAGE_BYTES)),
    },
    Entry {
        path: "/again-chunked.js",
        about: "132 KB, the same each time, chunked, without validators",
        make: |seed| {
            let body = Body::once(script::script(seed, PAGE_BYTES, STAMP_EVERY).bytes);
            Item::Fresh(vec![framed(SCRIPT, Framing::Chunks(CHUNK_BYTES), body)])
        },
    },
    Entry { path: "/bitmap.bmp", about: "the bitmap, another each time", make: |_| fresh(BITMAP, Framing::Length, [bitmap()]) },
    Entry {
        path: "/bitmap-chunked.bmp",
        about: "the same, chunked",
        make: |_| fresh(BITMAP, Framing::Chunks(CHUNK_BYTES), [bitmap()]),
    },
    Entry { path: "/large", about: "64 MB that nothing compresses", make: |seed| Item::Fresh(vec![large(seed)]) },
    Entry {
        path: "/made",
        about: "as asked: ?bytes= chunk= piece= pause_ms= delay_ms= type= kind= stamp= status= header= trailer= cut= reset= mute= hasty= close= length= early=",
        make: |_| Item::Action(Action::Made),
    },
    Entry { path: "/echo", about: "the request's head and body", make: |_| Item::Action(Action::Echo) },
    Entry { path: "/sink", about: "takes a body, answers its length and sum", make: |_| Item::Action(Action::Sink) },
    Entry { path: "/tally", about: "counts: of ?key=, or all of them", make: |_| Item::Action(Action::Tally) },
    Entry { path: "/raw", about: "sends ?bytes= as they are, and closes", make: |_| Item::Action(Action::Raw) },
    Entry { path: "/upgrade", about: "101, then gives back what it gets", make: |_| Item::Action(Action::Upgrade) },
    Entry { path: "/", about: "the index", make: |_| Item::Action(Action::Index) },
];

/// Paths of two releases of one script.
pub const RELEASES: [&str; 2] = ["/static/app.5f1e2d3c.js", "/static/app.9b8a7c6d.js"];

/// Lines of which a release changes one.
const CHANGED: usize = 60;

/// The entries of one origin with the responses made for them.
#[derive(Debug)]
pub struct Catalog {
    seed: u64,
    places: HashMap<&'static str, usize>,
    made: Vec<OnceCell<Item>>,
}

impl Catalog {
    pub(super) fn new(seed: u64) -> Catalog {
        let places = ENTRIES.iter().enumerate().map(|(i, entry)| (entry.path, i)).collect();
        Catalog { seed, places, made: ENTRIES.iter().map(|_| OnceCell::new()).collect() }
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn find(&self, path: &str) -> Option<&Item> {
        let place = *self.places.get(path)?;
        Some(self.made.get(place)?.get_or_init(|| (ENTRIES[place].make)(self.seed)))
    }
}

fn asset(kind: &'static str, bytes: Vec<u8>) -> Item {
    Item::Static(Box::new(Asset::new(kind, bytes.into())))
}

fn fresh(kind: &str, framing: Framing, templates: impl IntoIterator<Item = Template>) -> Item {
    Item::Fresh(
        templates
            .into_iter()
            .map(|template| {
                let body = Body { stamps: template.stamps.into(), ..Body::once(template.bytes) };
                framed(kind, framing, body)
            })
            .collect(),
    )
}

fn framed(kind: &str, framing: Framing, body: Body) -> Answer {
    let length = body.bytes.to_string();
    let frame = match framing {
        Framing::Length => ("Content-Length", length.as_str()),
        _ => ("Transfer-Encoding", "chunked"),
    };
    let head = head(200, &[("Content-Type", kind), frame]).into();
    Answer { head, body, framing, pace: Pace::default(), trailers: String::new() }
}

/// Several scripts that share no line.
fn scripts(seed: u64, bytes: usize) -> [Template; 4] {
    std::array::from_fn(|i| script::script(seed.wrapping_add(1000 * i as u64), bytes, STAMP_EVERY))
}

/// A release of a script: each changes a line in [`CHANGED`] of the one before.
fn release(seed: u64, number: usize) -> Vec<u8> {
    let text = |seed| String::from_utf8_lossy(&script::script(seed, PAGE_BYTES, PAGE_BYTES).bytes).into_owned();
    let (first, other) = (text(seed.wrapping_add(7)), text(seed.wrapping_add(8)));
    let lines = first.lines().zip(other.lines()).enumerate();
    let line =
        |(i, (first, other)): (usize, (&str, &str))| format!("{}\n", if number > 0 && i % CHANGED == 7 { other } else { first });
    format!("// release {number}\n{}", lines.map(line).collect::<String>()).into_bytes()
}

fn bitmap() -> Template {
    picture::Picture::city(BITMAP_SEED, BITMAP_WIDTH, BITMAP_HEIGHT).bitmap(BITMAP_STAMP_EVERY)
}

fn tiny() -> Answer {
    framed("text/plain", Framing::Length, Body::once(vec![b'x'; 100]))
}

fn large(seed: u64) -> Answer {
    let body = Body { bytes: LARGE_BYTES, ..Body::once(noise(seed)) };
    framed("application/octet-stream", Framing::Length, body)
}

fn events() -> Answer {
    let mut text = String::new();
    let mut event_bytes = 0;
    for id in 1..=5 {
        let before = text.len();
        text.push_str(&format!(
            "id: {id}\nevent: tick\ndata: {{\"id\":{id},\"text\":\"the same words again and again, as events are\"}}\n\n"
        ));
        event_bytes = text.len() - before;
    }
    let mut answer = framed("text/event-stream", Framing::Chunks(event_bytes), Body::once(text));
    answer.pace.pause = Duration::from_millis(200);
    answer
}

/// A block of bytes that no coding makes smaller.
pub(super) fn noise(seed: u64) -> Bytes {
    let mut rng = crate::content::rng::Rng::new(seed);
    (0..NOISE_BYTES / 8).flat_map(|_| rng.number().to_le_bytes()).collect::<Vec<u8>>().into()
}

/// A block of text for bodies of any length.
pub(super) fn text(seed: u64) -> (Bytes, Rc<[usize]>) {
    let template = script::script(seed, PAGE_BYTES, STAMP_EVERY);
    (template.bytes.into(), template.stamps.into())
}

const SCRIPT: &str = "application/javascript";
const JSON: &str = "application/json";
const BITMAP: &str = "image/bmp";

/// Size of the script that the first measurements were made with.
const PAGE_BYTES: usize = 131_882;
const SMALL_BYTES: usize = 8192;

/// Bytes that application servers write at once, about.
const CHUNK_BYTES: usize = 8192;

/// Dense enough that no 4 KB of two bodies are the same.
const STAMP_EVERY: usize = 2048;

/// 54 bytes of heads and 1,800 x 1,352 pixels: 7,300,854 bytes, which zlib at level 9 brings to 181 KB with this seed.
const BITMAP_SEED: u64 = 1;
const BITMAP_WIDTH: usize = 1800;
const BITMAP_HEIGHT: usize = 1352;

/// Each stamp costs 16 bytes that do not compress: the whole must stay at the founding document's size.
const BITMAP_STAMP_EVERY: usize = 256 * 1024;

const NOISE_BYTES: usize = 256 * 1024;
const LARGE_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use zlib_rs::{Deflate, DeflateFlush, Status};

    fn compressed_bytes(bytes: &[u8], level: i32) -> u64 {
        let mut deflate = Deflate::new(level, true, 31);
        let mut out = vec![0; bytes.len() + bytes.len() / 8];
        assert_eq!(deflate.compress(bytes, &mut out, DeflateFlush::Finish), Ok(Status::StreamEnd));
        deflate.total_out()
    }

    #[test]
    fn bodies_shrink_as_real_ones_do() {
        let bitmap = bitmap().bytes;
        assert_eq!((bitmap.len(), bitmap.starts_with(b"BM")), (7_300_854, true));
        let bitmap = compressed_bytes(&bitmap, 9);
        assert!((174_000..182_300).contains(&bitmap), "{bitmap}");
        let page = compressed_bytes(&script::script(1, PAGE_BYTES, STAMP_EVERY).bytes, 6);
        assert!((40_000..46_000).contains(&page), "{page}");
        let photo = photo::photo(1);
        assert!(photo.starts_with(b"\xff\xd8\xff") && compressed_bytes(&photo, 1) > photo.len() as u64 * 97 / 100);
    }
}
