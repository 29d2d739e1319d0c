//! Answers that are made here: errors, `return`, `deny`, `redirect`.

use crate::stream::Stream;
use std::collections::HashMap;
use std::sync::Arc;
use terse_message::{BodyLength, Response};
use terse_sample::LogFormat;

/// An answer, ready to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// The status that logs and counters show, where it differs: that of the error which a page stands for.
    pub stands_for: Option<u16>,
    /// The reason phrase; empty: the usual phrase.
    pub reason: Arc<str>,
    /// Its fields, without those that say its length.
    pub fields: Vec<(Arc<[u8]>, Vec<u8>)>,
    /// Its body.
    pub body: Arc<[u8]>,
    /// Whether the connection closes after it, whatever the client wants.
    pub close: bool,
}

/// A body that is made as its client takes it, so that however long it is, a piece of it is all the memory and all the time that it takes
/// at once.
pub trait Pieces: Send {
    /// Appends the next piece, some 16 KB of it; appends no bytes at the end.
    fn next(&mut self, out: &mut Vec<u8>);
}

/// Error pages of a configuration, in the place of the built-in ones.
#[derive(Clone, Default, Debug)]
pub struct Pages {
    pages: HashMap<u16, Page>,
}

/// An error page.
#[derive(Clone, Debug)]
pub enum Page {
    /// `errorfile`, `errorloc`: the same bytes for all clients.
    Ready(Arc<Answer>),
    /// `http-error`: made for each request.
    Written(Arc<Reply>),
}

/// An answer as a rule describes it (`return`, `deny`, `tarpit`); each request makes an [`Answer`] of it.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its content.
    pub content: Content,
    /// `hdr`: fields beside those that describe the content.
    pub fields: Vec<(Arc<[u8]>, LogFormat)>,
}

/// Content of an answer.
#[derive(Clone, Debug)]
pub enum Content {
    /// Nothing.
    Empty,
    /// `default-errorfiles`: the proxy's page for the status.
    Default,
    /// `errorfile`: this page.
    Page(Arc<Answer>),
    /// `errorfiles`: the page for the status of the `http-errors` section of that name.
    Set(Arc<str>),
    /// `file`, `string`: these bytes.
    Bytes {
        /// `content-type`; `None` for an empty body.
        kind: Option<Arc<[u8]>>,
        /// The body.
        body: Arc<[u8]>,
    },
    /// `lf-file`, `lf-string`: the text of this format.
    Text {
        /// `content-type`
        kind: Arc<[u8]>,
        /// The body.
        body: LogFormat,
    },
}

impl Answer {
    /// A status with a short page of HTML.
    pub fn error(status: u16) -> Answer {
        let reason = terse_message::status::reason(status);
        let body = format!("<html><body><h1>{status} {reason}</h1>\n{}\n</body></html>\n", explanation(status));
        Answer {
            status,
            stands_for: None,
            reason: Arc::from(""),
            fields: vec![
                (Arc::from(&b"Cache-Control"[..]), b"no-cache".to_vec()),
                (Arc::from(&b"Content-Type"[..]), b"text/html".to_vec()),
            ],
            body: Arc::from(body.into_bytes()),
            // After a request that was not understood, the bytes on the connection would be no request.
            close: matches!(status, 400 | 408),
        }
    }

    /// A status and fields, and nothing else.
    pub fn bare(status: u16, fields: Vec<(Arc<[u8]>, Vec<u8>)>) -> Answer {
        Answer { status, stands_for: None, reason: Arc::from(""), fields, body: Arc::from(&b""[..]), close: false }
    }

    /// A redirect that is not to be remembered.
    pub fn elsewhere(status: u16, location: Vec<u8>) -> Answer {
        Answer::bare(
            status,
            vec![(Arc::from(&b"Cache-Control"[..]), b"no-cache".to_vec()), (Arc::from(&b"Location"[..]), location)],
        )
    }

    /// No answer at all: the connection is closed without a byte, as an empty error file asks for.
    pub fn nothing() -> Answer {
        Answer { close: true, ..Answer::bare(0, Vec::new()) }
    }

    /// Whether it is [`Answer::nothing`].
    pub fn is_nothing(&self) -> bool {
        self.status == 0
    }

    /// The page as an answer that is logged as this error.
    fn standing_for(self, status: u16) -> Answer {
        Answer { stands_for: Some(status), ..self }
    }

    /// Puts the head into `response`.
    pub fn write_head(&self, response: &mut Response) {
        response.clear();
        response.status = self.status;
        if !self.reason.is_empty() {
            response.set_reason(self.reason.as_bytes());
        }
        let bodyless = matches!(self.status, 100..=199 | 204 | 304);
        if !bodyless {
            response.fields.push(b"Content-Length", self.body.len().to_string().as_bytes());
        }
        for (name, value) in &self.fields {
            response.fields.push(name, value);
        }
        response.body = if bodyless { BodyLength::None } else { BodyLength::Exact(self.body.len() as u64) };
    }
}

impl Pages {
    /// Sets a page in the place of the built-in one.
    pub fn set(&mut self, status: u16, page: Page) {
        self.pages.insert(status, page);
    }

    /// Takes the page for a status back.
    pub fn unset(&mut self, status: u16) {
        self.pages.remove(&status);
    }

    /// All pages by the status that they stand for, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &Page)> {
        self.pages.iter().map(|(status, page)| (*status, page))
    }

    /// The page for a status, if the configuration has one.
    pub fn get(&self, status: u16) -> Option<&Page> {
        self.pages.get(&status)
    }
}

impl Page {
    /// The answer that it is for a stream.
    pub fn answer(&self, stream: &Stream) -> Answer {
        match self {
            Page::Ready(answer) => Answer::clone(answer),
            Page::Written(reply) => reply.answer(stream),
        }
    }
}

/// The page for a status: the backend's, the frontend's, or the built-in one.
pub fn page(stream: &Stream, status: u16) -> Answer {
    let facts = &stream.facts;
    let configured = facts.backend().and_then(|b| b.pages.get(status)).or_else(|| facts.frontend().pages.get(status));
    configured.map_or_else(|| Answer::error(status), |page| page.answer(stream).standing_for(status))
}

impl Reply {
    /// The answer for a stream.
    pub fn answer(&self, stream: &Stream) -> Answer {
        let (kind, body) = match &self.content {
            Content::Empty => (None, Arc::from(&b""[..])),
            Content::Default => return page(stream, self.status),
            Content::Page(page) => return Answer::clone(page).standing_for(self.status),
            Content::Set(name) => {
                let set = stream.facts.plan().error_sets.get(name);
                return match set.and_then(|set| set.get(self.status)) {
                    Some(page) => page.answer(stream).standing_for(self.status),
                    None => page(stream, self.status),
                };
            }
            Content::Bytes { kind, body } => (kind.clone(), body.clone()),
            Content::Text { kind, body } => (Some(kind.clone()), Arc::from(self.written(body, stream))),
        };
        let mut fields = Vec::with_capacity(self.fields.len() + 1);
        if let Some(kind) = kind {
            fields.push((Arc::from(&b"Content-Type"[..]), kind.to_vec()));
        }
        for (name, format) in &self.fields {
            let value = self.written(format, stream);
            // A field with an empty value is left out, as in HAProxy.
            if !value.is_empty() {
                fields.push((name.clone(), value));
            }
        }
        Answer { status: self.status, stands_for: None, reason: Arc::from(""), fields, body, close: false }
    }

    /// A text of the answer, in which `%ST` is the answer's status.
    fn written(&self, format: &LogFormat, stream: &Stream) -> Vec<u8> {
        let mut text = Vec::new();
        stream.facts.answering.set(self.status);
        format.write(&stream.env(), &mut text);
        stream.facts.answering.set(0);
        text
    }
}

/// A single sentence for a person who sees the page.
fn explanation(status: u16) -> &'static str {
    match status {
        400 => "Your browser sent an invalid request.",
        401 | 407 => "You need a valid user and password to access this content.",
        403 => "Request forbidden by administrative rules.",
        404 => "Nothing was found here.",
        405 => "The method is not one that this resource knows.",
        408 => "Your browser didn't send a complete request in time.",
        410 => "What was here is gone for good.",
        413 => "The request is larger than the server is willing to process.",
        414 => "The address is longer than the server is willing to process.",
        425 => "The request came too early to be trusted.",
        429 => "You have sent too many requests in a given amount of time.",
        431 => "The request's header fields are larger than the server is willing to process.",
        500 => "An internal server error occurred.",
        501 => "The server does not support what the request needs.",
        502 => "The server returned an invalid or incomplete response.",
        503 => "No server is available to handle this request.",
        504 => "The server didn't respond in time.",
        _ => "",
    }
}
