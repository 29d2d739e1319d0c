//! An origin as RFC 9110 wants it, with resources of every kind: tags strong, weak or none, dates or none, ranges or none, some in
//! gzip by its own hand with tags of their own, as Apache's.

use super::support::server::Request;
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

/// Number of resources.
pub(crate) const RESOURCES: usize = 24;

/// The resources, and how often each has changed.
#[derive(Default)]
pub(crate) struct World {
    versions: [usize; RESOURCES],
}

/// Traits of a resource. Each number means another combination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    tag: Tag,
    dated: bool,
    ranges: bool,
    /// The origin compresses it for clients that take gzip.
    codes: bool,
    chunked: bool,
    compressible: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Tag {
    Strong,
    Weak,
    None,
}

/// A representation, whole.
struct Representation {
    bytes: Vec<u8>,
    coded: bool,
    tag: Option<String>,
    seconds: usize,
}

impl Traits {
    /// Traits of that resource.
    pub(crate) fn of(resource: usize) -> Traits {
        Traits {
            tag: [Tag::Strong, Tag::Strong, Tag::Weak, Tag::None][resource % 4],
            dated: resource % 4 == 3 || !resource.is_multiple_of(3),
            ranges: resource % 8 != 5,
            codes: resource / 4 % 3 == 1,
            chunked: resource.is_multiple_of(5),
            compressible: resource % 11 != 10,
        }
    }
}

impl World {
    /// The version that a resource is in.
    pub(crate) fn version(&self, resource: usize) -> usize {
        self.versions[resource]
    }

    /// Changes a resource.
    pub(crate) fn change(&mut self, resource: usize) {
        self.versions[resource] += 1;
    }

    /// The answer to a request, from status line to body.
    pub(crate) fn answer(&self, request: &Request) -> Vec<u8> {
        let resource: usize = request.target[1..].parse().unwrap();
        let traits = Traits::of(resource);
        let found = self.representation(resource, traits, request);
        let mut head = String::from("Date: Tue, 02 Jan 2024 12:00:00 GMT\r\n");
        if let Some(tag) = &found.tag {
            head += &format!("ETag: {tag}\r\n");
        }
        if traits.dated {
            head += &format!("Last-Modified: {}\r\n", date(found.seconds));
        }
        if traits.codes {
            head += "Vary: Accept-Encoding\r\n";
        }
        match precondition(request, &found, traits) {
            Some(304) => return format!("HTTP/1.1 304 Not Modified\r\n{head}\r\n").into_bytes(),
            Some(status) => return format!("HTTP/1.1 {status} Failed\r\nContent-Length: 0\r\n\r\n").into_bytes(),
            None => {}
        }
        head += if traits.compressible { "Content-Type: text/html\r\n" } else { "Content-Type: image/png\r\n" };
        if found.coded {
            head += "Content-Encoding: gzip\r\n";
        }
        if traits.ranges {
            head += "Accept-Ranges: bytes\r\n";
        }
        let total = found.bytes.len();
        match range(request, &found, traits) {
            Some(Err(())) => format!("HTTP/1.1 416 No\r\nContent-Range: bytes */{total}\r\nContent-Length: 0\r\n\r\n").into_bytes(),
            Some(Ok((first, last))) => {
                head += &format!("Content-Range: bytes {first}-{last}/{total}\r\n");
                message(request, "206 Partial Content", head, &found.bytes[first..=last], false)
            }
            None => message(request, "200 OK", head, &found.bytes, traits.chunked),
        }
    }

    fn representation(&self, resource: usize, traits: Traits, request: &Request) -> Representation {
        let version = self.versions[resource];
        let coded = traits.codes && takes(request.field("accept-encoding").unwrap_or_default(), "gzip");
        let suffix = if coded { "-gzip" } else { "" };
        let tag = match traits.tag {
            Tag::Strong => Some(format!("\"{resource}-{version}{suffix}\"")),
            Tag::Weak => Some(format!("W/\"{resource}-{version}{suffix}\"")),
            Tag::None => None,
        };
        let plain = content(resource, version);
        let bytes = if coded { gzip(&plain) } else { plain };
        Representation { bytes, coded, tag, seconds: version }
    }
}

/// Content of a resource in a version.
pub(crate) fn content(resource: usize, version: usize) -> Vec<u8> {
    // Lengths differ, and so do the first bytes and all others.
    let lines = 20 + (resource * 7 + version * 5) % 60;
    (0..lines)
        .map(|line| format!("<p>resource {resource}, version {version}, line {line} of {lines}</p>\n"))
        .collect::<String>()
        .into_bytes()
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut coder = GzEncoder::new(Vec::new(), Compression::default());
    coder.write_all(plain).unwrap();
    coder.finish().unwrap()
}

/// True if an Accept-Encoding takes a coding.
pub(crate) fn takes(accepted: &str, coding: &str) -> bool {
    let mut any = false;
    for element in accepted.split(',').map(str::trim) {
        let (name, quality) = element.split_once(";q=").unwrap_or((element, "1"));
        let taken = quality.parse::<f32>().unwrap() > 0.0;
        if name == coding {
            return taken;
        }
        any |= name == "*" && taken;
    }
    any
}

fn message(request: &Request, status: &str, head: String, body: &[u8], chunked: bool) -> Vec<u8> {
    let framing = if chunked { "Transfer-Encoding: chunked".to_owned() } else { format!("Content-Length: {}", body.len()) };
    let mut bytes = format!("HTTP/1.1 {status}\r\n{head}{framing}\r\n\r\n").into_bytes();
    if request.method == "HEAD" {
        return bytes;
    }
    if chunked {
        for part in body.chunks(700) {
            bytes.extend([format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat());
        }
        bytes.extend(b"0\r\n\r\n");
    } else {
        bytes.extend(body);
    }
    bytes
}

/// RFC 9110 section 13.2.2.
fn precondition(request: &Request, found: &Representation, traits: Traits) -> Option<u16> {
    let any = |list: &str, same: &dyn Fn(&str) -> bool| list.split(',').map(str::trim).any(same);
    let changed_since = |date: &str| traits.dated && found.seconds > seconds(date);
    if let Some(list) = request.field("if-match") {
        if !any(list, &|tag| tag == "*" || found.tag.as_deref() == Some(tag) && !tag.starts_with("W/")) {
            return Some(412);
        }
    } else if request.field("if-unmodified-since").is_some_and(changed_since) {
        return Some(412);
    }
    if let Some(list) = request.field("if-none-match") {
        let opaque = found.tag.as_deref().map(|tag| tag.trim_start_matches("W/"));
        return any(list, &|tag| tag == "*" || opaque == Some(tag.trim_start_matches("W/"))).then_some(304);
    }
    request.field("if-modified-since").filter(|date| traits.dated && !changed_since(date)).map(|_| 304)
}

/// RFC 9110 sections 13.1.5 and 14.2; several ranges are answered with the whole, as a server may.
fn range(request: &Request, found: &Representation, traits: Traits) -> Option<Result<(usize, usize), ()>> {
    let set = request.field("range").filter(|_| traits.ranges && request.method == "GET")?.strip_prefix("bytes=")?;
    if let Some(condition) = request.field("if-range") {
        let is_same = match condition.contains('"') {
            true => found.tag.as_deref() == Some(condition) && !condition.starts_with("W/"),
            false => traits.dated && date(found.seconds) == condition,
        };
        if !is_same {
            return None;
        }
    }
    let total = found.bytes.len();
    let (first, last) = set.split_once('-').filter(|(_, last)| !last.contains(','))?;
    Some(match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(first), _) if first >= total => Err(()),
        (Ok(first), Ok(last)) => Ok((first, last.min(total - 1))),
        (Ok(first), Err(_)) => Ok((first, total - 1)),
        (Err(_), Ok(suffix)) => Ok((total.saturating_sub(suffix), total - 1)),
        _ => return None,
    })
}

/// A second of the first of January: each version has its own, a day before it is asked for.
fn date(seconds: usize) -> String {
    format!("Mon, 01 Jan 2024 {:02}:{:02}:{:02} GMT", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn seconds(date: &str) -> usize {
    let part = |at: usize| date[at..at + 2].parse::<usize>().unwrap();
    part(17) * 3600 + part(20) * 60 + part(23)
}
