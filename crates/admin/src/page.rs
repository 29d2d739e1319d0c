//! The statistics page: `stats enable` and its like in a proxy.
//!
//! ```text
//! request --takes?--> rules (stats http-request) --> password (stats auth) --> GET: figures as HTML, CSV, JSON
//!                                                                         \--> POST: servers changed, if 'stats admin' holds
//! ```
//!
//! It runs on the workers, behind the proxy's `http-request` rules. What happens in a second is known to the control thread only; the
//! page finds it through a [`Link`].

mod access;
mod change;
mod html;
pub(crate) mod keywords;
mod query;
mod settings;

pub use settings::Link;

use crate::figures::{csv, json};
use crate::halves::Half;
use crate::rows::{Selection, Sight};
use access::{Access, is_same_site};
use query::{Form, Query};
use settings::PageSettings;
use std::sync::Arc;
use std::time::Instant;
use terse_proxy::phase::judge::Verdict;
use terse_proxy::reply::Answer;
use terse_proxy::service::Service;
use terse_proxy::stream::Stream;

/// The page of one proxy.
pub(crate) struct Page {
    settings: PageSettings,
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
        let answer = match stream.request.method() {
            b"POST" => self.change(stream, &query, body),
            _ => self.show(stream, &query),
        };
        Verdict::Answer(Box::new(answer))
    }
}

impl Page {
    fn show(&self, stream: &Stream, query: &Query) -> Answer {
        let plan = stream.facts.plan();
        let context = self.link.context();
        let sight = Sight {
            plan,
            rates: context.as_deref().map(|context| &context.rates),
            is_stopping: !stream.facts.session.worker.is_running(),
            legends: self.settings.legends,
            now: Instant::now(),
        };
        let own = self.own(stream);
        let proxies =
            |half: Half<'_>| self.settings.shows(half.name(), &own) && query.scope.as_ref().is_none_or(|s| half.name().contains(s));
        let rows = sight.rows(&Selection { proxies: &proxies, kinds: -1, server: None, up: query.up, no_maint: query.no_maint });
        let (kind, body) = match query.form {
            Form::Csv => {
                let mut text = String::new();
                csv::header(&mut text);
                rows.iter().for_each(|row| csv::line(row, &mut text));
                ("text/plain", text)
            }
            Form::Json => {
                let mut text = String::new();
                json::rows(rows.iter(), &mut text);
                ("application/json", text)
            }
            Form::Html => {
                let head = html::Head {
                    settings: &self.settings,
                    context: context.as_deref(),
                    query,
                    may_change: self.may_change(stream),
                };
                ("text/html; charset=utf-8", html::page(&head, &rows))
            }
        };
        let mut answer = answer(200, kind, body);
        if let Some(refresh) = self.settings.refresh.filter(|_| query.refresh && query.form == Form::Html) {
            answer.fields.push((Arc::from(&b"Refresh"[..]), refresh.as_secs().to_string().into_bytes()));
        }
        answer
    }

    fn change(&self, stream: &Stream, query: &Query, body: &[u8]) -> Answer {
        let outcome = match self.may_change(stream) && is_same_site(&stream.request) {
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

    fn may_change(&self, stream: &Stream) -> bool {
        self.settings.admin.iter().any(|condition| condition.eval(&stream.env()))
    }

    /// The proxy that the request came to: what `stats scope .` means.
    fn own(&self, stream: &Stream) -> Arc<str> {
        match stream.facts.backend() {
            Some(backend) => backend.name.clone(),
            None => stream.facts.frontend().name.clone(),
        }
    }
}

fn answer(status: u16, kind: &str, body: String) -> Answer {
    let field = |name: &str, value: &str| (Arc::from(name.as_bytes()), value.as_bytes().to_vec());
    Answer {
        status,
        stands_for: None,
        reason: Arc::from(""),
        fields: vec![
            field("Cache-Control", "no-cache"),
            field("Content-Type", kind),
            // The page has buttons: no other page may show it inside of itself.
            field("X-Frame-Options", "SAMEORIGIN"),
        ],
        body: Arc::from(body.into_bytes()),
        close: false,
    }
}

#[cfg(test)]
mod tests;
