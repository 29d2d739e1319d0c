//! What a request says of dictionaries.

use super::learning::{Asked, Learner};
use super::{Line, Trial, Usage, worth};
use crate::accept::{Admission, weight};
use crate::coding::{Coding, Level};
use crate::pace::Pace;
use crate::policy::has_prefix;
use crate::settings::Effective;
use std::sync::Arc;
use terse_dictionary::{Dictionary, Origin, field, is_coding};
use terse_message::{Fields, Known, Request, Response, list};

/// What a request to a proxy with dictionaries says of them.
#[derive(Clone, Debug)]
pub struct Offered {
    /// The client's dictionary, if an answer may refer to it as far as the request tells, or why not.
    dictionary: Result<Arc<Dictionary>, Usage>,
    /// The dictionary of ours whose hash it is: then the server has nothing to do with it.
    found: Option<Arc<Dictionary>>,
    /// What is asked for, if its answers can be told apart.
    subject: Option<u64>,
    /// The origin that must be allowed to read the answer; none where that is no question.
    reader: Option<Box<[u8]>>,
    /// Whether the choice hangs on the field: not where nobody looks at it.
    varies: bool,
    /// The dictionary that the client is to be told of.
    news: Option<Arc<Dictionary>>,
    /// What may learn from its answer.
    learner: Option<Arc<Learner>>,
}

/// Reads a request for a proxy with dictionaries. `asked`: what the client asked for, where they are learned. `is_secure`: its hop has TLS of
/// ours. `other` is the coding that the client gets without.
pub fn read(
    request: &Request,
    asked: Option<&Asked>,
    line: &Line,
    is_secure: bool,
    admission: &Admission,
    other: Option<Coding>,
) -> Offered {
    // Browsers name `dcz` only beside a dictionary. A client that cannot read zstd will never name it.
    let may_take = || admission.admits(Coding::Zstd) || admission.admits(Coding::Dcz);
    let learner = || line.learner.clone().filter(|learner| learner.is_wanted() && may_take());
    let nothing = |usage, varies| {
        let learner = if varies { learner() } else { None };
        Offered { dictionary: Err(usage), found: None, subject: None, reader: None, varies, news: None, learner }
    };
    let fields = &request.fields;
    if !is_secure && !line.is_secure {
        let usage = if fields.has(Known::AvailableDictionary) { Usage::Insecure } else { Usage::None };
        return nothing(usage, false);
    }
    // Whoever ends TLS before this program does so for clients: their scheme is https.
    let origin = fields.first(Known::Host).and_then(|host| Origin::of(host, true));
    let news = || {
        let path = request.path_and_query();
        let takes = |dictionary: &&Arc<Dictionary>| dictionary.use_as.pattern.takes(path);
        if request.method() != b"GET" {
            return None;
        }
        // A dictionary for parts of pages is told to every page: no request of a part would bring the browser to fetch it.
        let is_for_parts = |dictionary: &&Arc<Dictionary>| {
            let destinations = &dictionary.use_as.destinations;
            !destinations.is_empty() && !destinations.iter().any(|kind| kind.is_empty() || kind == "document")
        };
        let origin = origin.as_ref()?;
        line.given.of(origin).find(takes).or_else(|| line.given.of(origin).find(is_for_parts)).cloned()
    };
    if !fields.has(Known::AvailableDictionary) {
        return Offered { news: news(), ..nothing(Usage::None, true) };
    }
    let Ok(hash) = field::available(fields.every(Known::AvailableDictionary)) else { return nothing(Usage::Malformed, true) };
    let given = |origin: &Origin| line.given.index.find(origin, &hash).cloned();
    // Whose clients had it is what clients ask for, whatever rules make of Host.
    let learned = || line.learner.as_ref()?.find(asked?.origin.as_ref()?, &hash);
    let found = origin.as_ref().and_then(given).or_else(learned);
    let Some(dictionary) = found else { return Offered { news: news(), ..nothing(Usage::Unknown, true) } };
    let ours = |usable: Result<(), Usage>, reader| {
        let found = dictionary.clone();
        let subject = usable.ok().and_then(|()| worth::subject(request));
        Offered {
            dictionary: usable.map(|()| found.clone()),
            found: Some(found),
            subject,
            reader,
            varies: true,
            news: None,
            learner: learner(),
        }
    };
    if !admission.prefers(Coding::Dcz, other) {
        return ours(Err(Usage::Refused), None);
    }
    match reader(fields) {
        Reader::Same => ours(Ok(()), None),
        Reader::Other(origin) => ours(Ok(()), Some(origin)),
        Reader::Opaque => ours(Err(Usage::Opaque), None),
    }
}

/// Who reads the answer, as far as browsers say (RFC 9842 section 9.3).
enum Reader {
    /// Its own site, or a person.
    Same,
    /// This origin, if it is allowed to.
    Other(Box<[u8]>),
    /// Another site, to which the answer's length must not tell anything.
    Opaque,
}

fn reader(fields: &Fields) -> Reader {
    let is_one_of = |value: Option<&[u8]>, words: &[&[u8]]| value.is_some_and(|value| words.contains(&value));
    let (site, mode) = (fields.get(b"Sec-Fetch-Site"), fields.get(b"Sec-Fetch-Mode"));
    if site.is_none() || is_one_of(site, &[b"same-origin", b"none"]) || is_one_of(mode, &[b"navigate", b"same-origin"]) {
        return Reader::Same;
    }
    match fields.get(b"Origin") {
        Some(origin) if is_one_of(mode, &[b"cors"]) => Reader::Other(origin.into()),
        _ => Reader::Opaque,
    }
}

impl Offered {
    /// The same where nothing of the answer is compressed for this client.
    pub(crate) fn declined(self) -> Offered {
        Offered { dictionary: self.dictionary.and(Err(Usage::NotCoded)), ..self }
    }

    /// The dictionary, and the level that goes with it, for an answer of that length.
    ///
    /// # Errors
    /// Why the answer does not refer to it.
    pub fn settle(
        &self,
        response: &Response,
        bytes: Option<u64>,
        settings: &Effective<'_>,
        pace: Pace,
    ) -> Result<(&Arc<Dictionary>, Level), Usage> {
        let dictionary = self.dictionary.as_ref().map_err(|usage| *usage)?;
        if let Some(reader) = &self.reader {
            let allowed = response.fields.get(b"Access-Control-Allow-Origin");
            if !allowed.is_some_and(|allowed| allowed == b"*" || *allowed == **reader) {
                return Err(Usage::Opaque);
            }
        }
        if !dictionary.notes.is_empty() && self.pair(response).is_some_and(|pair| dictionary.notes.has(pair)) {
            return Err(Usage::NotWorth);
        }
        let level = settings.dictionary_level(dictionary.bytes().len(), bytes, pace).ok_or(Usage::Level)?;
        Ok((dictionary, level))
    }

    /// The pair of that answer and the client's dictionary, if its answers can be told apart.
    pub fn pair(&self, response: &Response) -> Option<u64> {
        self.subject.map(|subject| worth::pair(subject, response))
    }

    /// What that answer is to be compared with: the ordinary form that the client would get.
    pub fn trial(&self, response: &Response, (coding, level): (Coding, Level)) -> Option<Trial> {
        self.pair(response).map(|pair| Trial { pair, coding, level })
    }

    /// The client's dictionary, if the request alone decides.
    pub fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.dictionary.as_ref().ok()
    }

    /// Whether the hash is that of a dictionary of ours.
    pub fn is_ours(&self) -> bool {
        self.found.is_some()
    }

    /// The dictionary of ours that the client has, whether an answer refers to it or not.
    pub fn found(&self) -> Option<&Arc<Dictionary>> {
        self.found.as_ref()
    }

    /// What may learn from the answer; nothing where the client's hop is not secure.
    pub fn learner(&self) -> Option<&Arc<Learner>> {
        self.learner.as_ref()
    }

    /// Whether the choice of the answer hangs on the field.
    pub fn varies(&self) -> bool {
        self.varies
    }

    /// The dictionary that the client is to be told of with that answer: a page.
    pub fn news(&self, response: &Response) -> Option<&Arc<Dictionary>> {
        let news = self.news.as_ref()?;
        let is_page = |kind: &[u8]| has_prefix(kind, b"text/html");
        let is_one = response.status == 200 && response.fields.first(Known::ContentType).is_some_and(is_page);
        is_one.then_some(news)
    }
}

/// Takes from a request to the server what it says of a dictionary of ours.
pub fn hide(fields: &mut Fields) {
    fields.remove_known(Known::AvailableDictionary);
    fields.remove(b"Dictionary-ID");
    let named = |element: &[u8]| list::parameters(element).next().is_some_and(is_coding);
    if !fields.every(Known::AcceptEncoding).flat_map(list::elements).any(named) {
        return;
    }
    let kept: Vec<&[u8]> = fields.every(Known::AcceptEncoding).flat_map(list::elements).filter(|element| !named(element)).collect();
    // A request without the field would take anything, and one that takes nothing else would get nothing.
    let takes_other = |element: &&[u8]| weight(list::parameters(element).skip(1)) > 0;
    let kept = if kept.iter().any(takes_other) { kept.join(&b", "[..]) } else { b"identity".to_vec() };
    fields.set(Known::AcceptEncoding.name().as_bytes(), &kept);
}
