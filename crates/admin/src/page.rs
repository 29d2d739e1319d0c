//! Statistics page: `stats enable` and its like in a proxy.
//!
//! ```text
//! request --takes?--> rules (stats http-request) --> password (stats auth) --> GET: page, CSV, JSON, parts, API
//!                                                                         \--> POST: servers changed, if 'stats admin' holds
//! ```
//!
//! Forms with a row for each server are made in pieces ([`listing`]); all else is small, however many servers there
//! are.
//!
//! It runs on the workers, after the proxy's `http-request` rules. Rates per second are known to the control thread
//! only; the page finds them through a [`Link`].

mod access;
mod advice;
mod api;
mod change;
mod chart;
mod html;
pub(crate) mod keywords;
mod listing;
mod query;
mod settings;

pub use settings::Link;

use crate::halves::Half;
use crate::rows::{Selection, Walk};
use access::{Access, is_allowed_to_change};
use api::View;
use listing::{Csv, Json, Listing, Source, Writer};
use query::{Form, Query};
use serde::Serialize;
use settings::PageSettings;
use std::sync::Arc;
use terse_proxy::phase::judge::Verdict;
use terse_proxy::reply::{Answer, Pieces};
use terse_proxy::service::Service;
use terse_proxy::stream::Stream;

/// Page of a proxy.
pub(crate) struct Page {
    settings: Arc<PageSettings>,
    link: Link,
}

impl Service for Page {
    fn takes(&self, stream: &Stream) -> bool {
        let known = matches!(stream.request.method(), b"GET" | b"HEAD" | b"POST");
        known && stream.request.path_and_query().starts_with(self.settings.uri.as_bytes())
    }

    fn answer(&self, stream: &mut Stream, body: &[u8]) -> Verdict {
        let target = stream.request.path_and_query();
        let query = Query::parse(target.get(self.settings.uri.len()..).unwrap_or_default());
        match self.settings.judge(stream) {
            Access::Granted => {}
            Access::Denied => return Verdict::Deny(Box::new(Answer::error(403))),
            Access::Unknown { realm } => return Verdict::Deny(Box::new(access::challenge(realm))),
        }
        match (stream.request.method(), &query.form) {
            (b"POST", Form::Api(name)) => Verdict::Answer(Box::new(self.order(stream, name, body))),
            (b"POST", _) => Verdict::Answer(Box::new(self.change(stream, &query, body))),
            (_, Form::Api(name)) => Verdict::Answer(Box::new(self.tell(stream, &query, name))),
            _ => self.show(stream, query),
        }
    }
}

impl Page {
    fn show(&self, stream: &Stream, query: Query) -> Verdict {
        let source = self.source(stream);
        let walk = self.walk(stream, &query, ALL);
        let form = query.form.clone();
        let page =
            html::Page { settings: self.settings.clone(), own: self.own(stream), may_change: self.may_change(stream), query };
        let (kind, writer): (&str, Box<dyn Writer>) = match (form, page.query.part.as_deref()) {
            (Form::Csv, _) => ("text/plain", Box::new(Csv)),
            (Form::Json, _) => ("application/json", Box::new(Json::default())),
            (_, Some("top")) => return Verdict::Answer(Box::new(answer(200, HTML, page.part(&source)))),
            (_, Some(_)) => return self.rows(&page, source, walk),
            (_, None) => (HTML, Box::new(html::Whole::new(page))),
        };
        Verdict::Pieces(Box::new(answer(200, kind, String::new())), Box::new(Listing::new(source, walk, writer)))
    }

    /// Some rows of the page, in one answer.
    fn rows(&self, page: &html::Page, source: Source, mut walk: Walk) -> Verdict {
        walk.skip(page.query.from);
        walk.limit(page.query.count);
        let mut listing = Listing::new(source, walk, Box::new(html::Rows::new(page)));
        let mut text = Vec::new();
        loop {
            let before = text.len();
            listing.next(&mut text);
            if text.len() == before {
                break;
            }
        }
        Verdict::Answer(Box::new(answer(200, HTML, String::from_utf8_lossy(&text).into_owned())))
    }

    /// Answers a program with JSON.
    fn tell(&self, stream: &Stream, query: &Query, name: &str) -> Answer {
        let source = self.source(stream);
        let Some(context) = source.context.as_deref() else { return refusal(503, "the process is starting") };
        let own = self.own(stream);
        let shows = |name: &str| self.settings.shows(name, &own);
        let view = View { context, settings: &self.settings, shows: &shows, may_change: self.may_change(stream) };
        match name {
            "summary" => json(&view.summary()),
            "history" if self.settings.scope.is_empty() => json(&context.rates.history.series()),
            "types" if self.settings.scope.is_empty() => json(&api::types(&context.plan)),
            "history" | "types" => refusal(403, "this page shows a part of the process"),
            "servers" => json(&api::servers(&source.sight(), self.walk(stream, query, api::SERVERS), query.from, query.count)),
            "proxies" => json(&api::proxies(&source.sight(), self.walk(stream, query, api::PROXIES), query.from, query.count)),
            _ => refusal(404, "there is no such name: summary, history, types, proxies, servers"),
        }
    }

    /// Carries out a change for a program.
    fn order(&self, stream: &Stream, name: &str, body: &[u8]) -> Answer {
        if name != "server" {
            return refusal(404, "there is no such name: server");
        }
        // A form of another site cannot send JSON's type without a preflight (Fetch, CORS-safelisted fields).
        let kind = stream.request.fields.get(b"content-type").unwrap_or_default();
        if !kind.to_ascii_lowercase().starts_with(b"application/json") {
            return refusal(415, "the body has to be application/json");
        }
        if !self.may_change(stream) || !is_allowed_to_change(stream, &self.settings) {
            return refusal(403, "servers are not changed here");
        }
        let own = self.own(stream);
        match api::change(stream.facts.plan(), body, &|name| self.settings.shows(name, &own)) {
            Ok(changed) => json(&Changed { v: 1, changed }),
            Err((status, reason)) => refusal(status, &reason),
        }
    }

    fn change(&self, stream: &Stream, query: &Query, body: &[u8]) -> Answer {
        let outcome = match self.may_change(stream) && is_allowed_to_change(stream, &self.settings) {
            true => {
                let own = self.own(stream);
                change::apply(stream.facts.plan(), body, |name| self.settings.shows(name, &own))
            }
            false => change::Outcome::Denied,
        };
        let location = format!("{}{}", self.settings.uri, query.link(Some(outcome.code())));
        let mut answer = answer(303, "text/plain", String::new());
        answer.fields.push((Arc::from(&b"Location"[..]), location.into_bytes()));
        answer
    }

    fn source(&self, stream: &Stream) -> Source {
        let worker = &stream.facts.session.worker;
        Source {
            plan: worker.plan.clone(),
            context: self.link.context(),
            is_stopping: !worker.is_running(),
            legends: self.settings.legends,
        }
    }

    /// Rows of these kinds that a query selects.
    fn walk(&self, stream: &Stream, query: &Query, kinds: i64) -> Walk {
        let own = self.own(stream);
        let proxies =
            |half: Half<'_>| self.settings.shows(half.name(), &own) && query.scope.as_ref().is_none_or(|s| half.name().contains(s));
        let selection = Selection { proxies: &proxies, kinds, server: None, up: query.up, no_maint: query.no_maint };
        Walk::new(stream.facts.plan(), &selection)
    }

    fn may_change(&self, stream: &Stream) -> bool {
        self.settings.admin.iter().any(|condition| condition.eval(&stream.env()))
    }

    /// Proxy that the request came to: the meaning of `stats scope .`.
    fn own(&self, stream: &Stream) -> Arc<str> {
        match stream.facts.backend() {
            Some(backend) => backend.name.clone(),
            None => stream.facts.frontend().name.clone(),
        }
    }
}

/// Number of servers that a program has changed.
#[derive(Serialize)]
struct Changed {
    v: u8,
    changed: usize,
}

/// Reason of a refusal, for a program.
#[derive(Serialize)]
struct Refusal<'a> {
    error: &'a str,
}

fn json(value: &impl Serialize) -> Answer {
    match serde_json::to_string(value) {
        Ok(text) => answer(200, "application/json", text + "\n"),
        Err(error) => refusal(500, &error.to_string()),
    }
}

fn refusal(status: u16, error: &str) -> Answer {
    let text = serde_json::to_string(&Refusal { error }).unwrap_or_default();
    answer(status, "application/json", text + "\n")
}

fn answer(status: u16, kind: &str, body: String) -> Answer {
    let field = |name: &str, value: &str| (Arc::from(name.as_bytes()), value.as_bytes().to_vec());
    let mut fields = vec![
        field("Cache-Control", "no-store"),
        field("Content-Type", kind),
        field("X-Content-Type-Options", "nosniff"),
        // The page has buttons: no other page may embed it.
        field("X-Frame-Options", "SAMEORIGIN"),
    ];
    if kind == HTML {
        fields.push(field("Content-Security-Policy", &html::POLICY));
        // Without a referrer a form's Origin would be null.
        fields.push(field("Referrer-Policy", "same-origin"));
    }
    Answer { status, stands_for: None, reason: Arc::from(""), fields, body: Arc::from(body.into_bytes()), close: false }
}

const HTML: &str = "text/html; charset=utf-8";

/// All kinds of rows.
const ALL: i64 = -1;

#[cfg(test)]
mod tests;
