//! A client that keeps what it has got, whole or in part, and goes on from there as RFC 9110 allows (section 15.3.7.3): parts are
//! joined under one strong validator. Now and then it is simple, and goes on at the byte where it was cut off, as `curl -C -` does.

use super::Setting;
use super::exchange::{Connection, coding, is_usable, is_version};
use super::origin::RESOURCES;
use super::support::client::Response;
use std::collections::HashMap;

/// A client.
pub(crate) struct Client {
    connection: Connection,
    stored: HashMap<usize, Stored>,
}

/// Stored response of a resource.
#[derive(Clone, Debug)]
struct Stored {
    bytes: Vec<u8>,
    is_whole: bool,
    coding: Option<String>,
    tag: Option<String>,
    date: Option<String>,
    /// Version that it is of, which only the judge knows.
    version: usize,
}

impl Client {
    pub(crate) fn new(connection: Connection) -> Client {
        Client { connection, stored: HashMap::new() }
    }

    /// Does something.
    pub(crate) fn step(&mut self, setting: &mut Setting) {
        let resource = setting.random.below(RESOURCES);
        let version = setting.world.lock().unwrap().version(resource);
        match (self.stored.get(&resource).cloned(), setting.random.below(20)) {
            (_, 0) => self.head(setting, resource),
            (_, 1) => self.some_range(setting, resource, version),
            (Some(held), 2..14) if held.is_whole => self.revalidate(setting, resource, version, &held),
            (Some(held), 2..18) if !held.is_whole => self.resume(setting, resource, version, &held),
            (_, 2..6) => self.whole(setting, resource, version),
            (_, _) => self.cut(setting, resource, version),
        }
    }

    fn name(&self) -> String {
        format!("client '{}'", self.connection.accepted)
    }

    fn whole(&mut self, setting: &mut Setting, resource: usize, version: usize) {
        setting.tell(format!("{}: GET {resource}, now in version {version}", self.name()));
        let response = self.connection.ask("GET", resource, &[]);
        self.take(setting, resource, version, response);
    }

    /// Takes a 200.
    fn take(&mut self, setting: &mut Setting, resource: usize, version: usize, response: Response) {
        setting.tell(format!("  {} {:?}, {} bytes", response.line, response.fields, response.body.len()));
        setting.demand(response.status == 200, "a whole answer");
        let coding = coding(&response);
        setting.demand(is_usable(self.connection.accepted, coding.as_deref()), "in a coding that the client takes");
        setting.demand(is_version(resource, version, coding.as_deref(), &response.body), "the current version");
        setting.count(match (&coding, response.field("etag")) {
            (None, _) => "plain",
            (Some(_), Some(tag)) if tag.ends_with("-gzip\"") => "coded by the origin",
            (Some(_), _) => "coded",
        });
        self.store(resource, version, &response, true);
    }

    fn store(&mut self, resource: usize, version: usize, response: &Response, is_whole: bool) {
        let field = |name: &str| response.field(name).map(str::to_owned);
        let stored = Stored {
            bytes: response.body.clone(),
            is_whole,
            coding: coding(response),
            tag: field("etag"),
            date: field("last-modified"),
            version,
        };
        self.stored.insert(resource, stored);
    }

    fn cut(&mut self, setting: &mut Setting, resource: usize, version: usize) {
        let most = 1 + setting.random.below(400);
        let response = self.connection.begin(resource, most);
        setting.tell(format!(
            "{}: GET {resource}, now in version {version}, cut off at {most}: {:?}",
            self.name(),
            response.fields
        ));
        setting.demand(response.status == 200, "the beginning of an answer");
        self.store(resource, version, &response, false);
    }

    /// Asks for the rest of a resource of which it has a part.
    fn resume(&mut self, setting: &mut Setting, resource: usize, version: usize, held: &Stored) {
        let from = held.bytes.len();
        let mut fields = vec![("Range", format!("bytes={from}-"))];
        let strong = held.tag.as_deref().filter(|tag| !tag.starts_with("W/"));
        // A date is strong when the answer is a second younger at least, as they all are (section 8.8.2.2), and never beside a tag.
        let date = held.date.as_deref().filter(|_| held.tag.is_none());
        let how = match setting.random.below(6) {
            0..=2 => match (strong, date) {
                (Some(validator), _) | (None, Some(validator)) => {
                    fields.push(("If-Range", validator.to_owned()));
                    if strong.is_some() { "joined by tag" } else { "joined by date" }
                }
                (None, None) => return self.whole(setting, resource, version),
            },
            3 => "compared",
            4 if strong.is_some() => {
                fields.push(("If-Match", strong.unwrap().to_owned()));
                "joined by match"
            }
            4 if date.is_some() => {
                fields.push(("If-Unmodified-Since", date.unwrap().to_owned()));
                "joined by unmodified"
            }
            _ => "simply joined",
        };
        setting
            .tell(format!("{}: GET {resource}, now in version {version}, from {from} of {held:.0?} with {fields:?}", self.name()));
        let response = self.connection.ask("GET", resource, &fields);
        match response.status {
            206 => self.join(setting, resource, version, held, &response, how),
            416 | 412 => drop(self.stored.remove(&resource)),
            _ => self.take(setting, resource, version, response),
        }
    }

    fn join(&mut self, setting: &mut Setting, resource: usize, version: usize, held: &Stored, part: &Response, how: &'static str) {
        setting.tell(format!("  {} {:?}, {} bytes", part.line, part.fields, part.body.len()));
        setting.demand(is_part(resource, version, part), "a part is one of the current version");
        let (tag, date) = (part.field("etag"), part.field("last-modified"));
        let same_strong = held.tag.as_deref() == tag && tag.is_some_and(|tag| !tag.starts_with("W/"));
        let same_date = held.tag.is_none() && tag.is_none() && held.date.is_some() && held.date.as_deref() == date;
        let joins = match how {
            "compared" => same_strong || same_date,
            // A response to a conditional request is of the same, unless it tells otherwise.
            "joined by tag" | "joined by match" => tag.is_none_or(|_| same_strong),
            "joined by date" | "joined by unmodified" => tag.is_none(),
            // A client that compares nothing can only be right while nothing changes.
            _ => held.version == version,
        };
        let starts = part.field("content-range").is_some_and(|range| range.starts_with(&format!("bytes {}-", held.bytes.len())));
        if !joins || !starts {
            setting.count("not joined");
            self.stored.remove(&resource);
            return;
        }
        let joined = [&held.bytes[..], &part.body].concat();
        let is_one = is_version(resource, version, held.coding.as_deref(), &joined);
        setting.demand(is_one, &format!("{how}: bytes of two representations"));
        setting.count(how);
        let stored = Stored { bytes: joined, is_whole: true, version, ..held.clone() };
        self.stored.insert(resource, stored);
    }

    fn revalidate(&mut self, setting: &mut Setting, resource: usize, version: usize, held: &Stored) {
        let mut fields = Vec::new();
        let with = setting.random.below(3);
        if let Some(tag) = held.tag.as_ref().filter(|_| with != 1) {
            fields.push(("If-None-Match", tag.clone()));
        }
        // A date alone is for a client without a tag: another representation may have the same.
        if let Some(date) = held.date.as_ref().filter(|_| with != 0 && (with == 2 || held.tag.is_none())) {
            fields.push(("If-Modified-Since", date.clone()));
        }
        setting.tell(format!("{}: GET {resource}, now in version {version}, holds {held:.0?}, with {fields:?}", self.name()));
        let response = self.connection.ask("GET", resource, &fields);
        if response.status != 304 {
            return self.take(setting, resource, version, response);
        }
        setting.tell(format!("  {} {:?}", response.line, response.fields));
        setting.demand(!fields.is_empty(), "a 304 for nothing");
        setting.demand(held.version == version, "a false 304");
        setting.count("not modified");
        if setting.random.one_in(3) {
            self.stored.remove(&resource);
        } else if let Some(tag) = response.field("etag") {
            // The 304 renews the stored response (RFC 9111 section 3.2).
            if let Some(stored) = self.stored.get_mut(&resource) {
                stored.tag = Some(tag.to_owned());
            }
        }
    }

    fn head(&mut self, setting: &mut Setting, resource: usize) {
        let response = self.connection.ask("HEAD", resource, &[]);
        setting.tell(format!("{}: HEAD {resource}: {} {:?}", self.name(), response.line, response.fields));
        setting.demand(response.status == 200, "an answer to HEAD");
        setting.count("head");
    }

    /// A range of which nothing is held: it is never joined, but its bytes must be those of its Content-Range.
    fn some_range(&mut self, setting: &mut Setting, resource: usize, version: usize) {
        let (first, length) = (setting.random.below(500), setting.random.below(300));
        let range = match setting.random.below(4) {
            0 => format!("bytes={first}-{}", first + length),
            1 => format!("bytes=-{}", length + 1),
            2 => format!("bytes=0-{length}"),
            _ => format!("bytes=0-{length},{}-", first + 400),
        };
        setting.tell(format!("{}: GET {resource}, now in version {version}, {range}", self.name()));
        let response = self.connection.ask("GET", resource, &[("Range", range)]);
        setting.tell(format!("  {} {:?}, {} bytes", response.line, response.fields, response.body.len()));
        match response.status {
            206 => {
                setting.demand(is_part(resource, version, &response), "a part is one of the current version");
                setting.count("part");
            }
            416 => {}
            _ => self.take(setting, resource, version, response),
        }
    }
}

/// True if a 206 holds the bytes that its Content-Range names.
fn is_part(resource: usize, version: usize, part: &Response) -> bool {
    let Some((first, _)) = part.field("content-range").and_then(|range| range.strip_prefix("bytes ")?.split_once('-')) else {
        return false;
    };
    let first: usize = first.parse().unwrap();
    // Parts of the origin's own gzip are of a body that only it knows: they are judged once they are joined.
    coding(part).is_some()
        || super::origin::content(resource, version).get(first..first + part.body.len()).is_some_and(|bytes| bytes == part.body)
}
