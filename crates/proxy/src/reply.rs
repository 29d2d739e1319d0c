//! Answers that are made here: errors, `return`, `deny`, `redirect`.

use std::collections::HashMap;
use std::sync::Arc;
use terse_http::h1::encode;
use terse_message::{BodyLength, Response};

/// An answer, ready to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// The reason phrase; empty: the usual one.
    pub reason: Arc<str>,
    /// Its fields, without those that say its length.
    pub fields: Vec<(Arc<[u8]>, Vec<u8>)>,
    /// Its body.
    pub body: Arc<[u8]>,
    /// Whether the connection closes behind it, whatever the client wants.
    pub close: bool,
}

/// Error pages: what a configuration puts in the place of the built-in ones.
#[derive(Clone, Default, Debug)]
pub struct Pages {
    pages: HashMap<u16, Arc<Answer>>,
}

impl Answer {
    /// A status with a short page of HTML.
    pub fn error(status: u16) -> Answer {
        let reason = encode::reason(status);
        let body = format!("<html><body><h1>{status} {reason}</h1>\n{}\n</body></html>\n", explanation(status));
        Answer {
            status,
            reason: Arc::from(""),
            fields: vec![
                (Arc::from(&b"Cache-Control"[..]), b"no-cache".to_vec()),
                (Arc::from(&b"Content-Type"[..]), b"text/html".to_vec()),
            ],
            body: Arc::from(body.into_bytes()),
            // HAProxy keeps the connection only where the request was read to its end.
            close: !matches!(status, 200 | 401 | 403 | 404 | 407 | 410 | 413 | 421 | 422 | 425 | 429),
        }
    }

    /// No answer at all: the connection is closed without a word, as an empty error file asks for.
    pub fn nothing() -> Answer {
        Answer { status: 0, reason: Arc::from(""), fields: Vec::new(), body: Arc::from(&b""[..]), close: true }
    }

    /// Whether it is [`Answer::nothing`].
    pub fn is_nothing(&self) -> bool {
        self.status == 0
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
    /// Puts a page in the place of the built-in one.
    pub fn set(&mut self, status: u16, page: Answer) {
        self.pages.insert(status, Arc::new(page));
    }

    /// All pages by the status that they stand for, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &Arc<Answer>)> {
        self.pages.iter().map(|(status, page)| (*status, page))
    }

    /// The page for a status, if the configuration has one.
    pub fn get(&self, status: u16) -> Option<&Arc<Answer>> {
        self.pages.get(&status)
    }
}

/// One sentence for a person who sees the page.
fn explanation(status: u16) -> &'static str {
    match status {
        400 => "Your browser sent an invalid request.",
        403 => "Request forbidden by administrative rules.",
        408 => "Your browser didn't send a complete request in time.",
        413 => "The request is larger than the server is willing to process.",
        429 => "You have sent too many requests in a given amount of time.",
        500 => "An internal server error occurred.",
        501 => "The server does not support what the request needs.",
        502 => "The server returned an invalid or incomplete response.",
        503 => "No server is available to handle this request.",
        504 => "The server didn't respond in time.",
        _ => "",
    }
}
