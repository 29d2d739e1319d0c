//! Answers instead of the server's: `return`, `deny`, `tarpit`, `auth`.

use super::{Action, ActionWord, BOTH, Flow, REQUEST, RuleSet, done, field};
use crate::keywords::pages;
use crate::reply::{self, Answer, Content, Page, Reply};
use crate::settings::{ErrorSetUse, ErrorSetUses, ErrorSource};
use crate::stream::Stream;
use crate::track;
use std::sync::Arc;
use terse_config::{Args, Fault, Scope};
use terse_message::Known;
use terse_sample::{Compiler, Condition, LogFormat, Usage};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    done("return", BOTH, REPLY, "Answers with this.", |args, scope, set| {
        Ok(Box::new(Send { reply: parse(args, scope, set, 200)?, how: How::Answer }))
    }),
    done("deny", BOTH, REPLY, "Refuses with an error page or with this.", |args, scope, set| {
        let status = if set == RuleSet::Request { 403 } else { 502 };
        Ok(Box::new(Send { reply: parse_denial(args, scope, set, status)?, how: How::Deny }))
    }),
    done("tarpit", REQUEST, REPLY, "Refuses after 'timeout tarpit'.", |args, scope, set| {
        Ok(Box::new(Send { reply: parse_denial(args, scope, set, 500)?, how: How::Tarpit }))
    }),
    done("auth", REQUEST, "[realm <realm>]", "Asks for a user and a password.", auth),
];

const REPLY: &str = "[{status | deny_status} <code>] [content-type <type>] [default-errorfiles | errorfile <file> | errorfiles <name> | \
     file <file> | lf-file <file> | string <text> | lf-string <fmt>] [hdr <name> <fmt>]...";

struct Send {
    reply: Reply,
    how: How,
}

#[derive(Clone, Copy)]
enum How {
    Answer,
    Deny,
    Tarpit,
}

impl Action for Send {
    fn run(&self, stream: &mut Stream) -> Flow {
        let answer = Box::new(self.reply.answer(stream));
        match self.how {
            How::Answer => Flow::Answer(answer),
            How::Deny => Flow::Deny(answer),
            How::Tarpit => Flow::Tarpit(answer),
        }
    }

    fn is_final(&self) -> bool {
        true
    }
}

/// `auth`
struct Auth {
    /// The section's name when the line gives none.
    realm: Box<[u8]>,
}

impl Action for Auth {
    fn run(&self, stream: &mut Stream) -> Flow {
        stream.facts.count_tracked(track::ERRORS, 1);
        // For a request that is meant for a proxy, the proxy itself is the challenger (RFC 9110 section 11.7.1).
        let to_proxy = stream.request.to_proxy;
        let (status, name) = if to_proxy { (407, &b"Proxy-Authenticate"[..]) } else { (401, &b"WWW-Authenticate"[..]) };
        let mut answer = reply::page(stream, status);
        answer.fields.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        answer.fields.push((Arc::from(name), [b"Basic realm=\"", &*self.realm, b"\""].concat()));
        Flow::Answer(Box::new(answer))
    }

    fn is_final(&self) -> bool {
        true
    }
}

fn auth(args: &mut Args<'_>, scope: &mut Scope<'_>, _: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let realm = match args.accept("realm") {
        true => args.need_bytes("<realm>")?,
        false => scope.section.name.as_bytes(),
    };
    // A quoted string (RFC 9110 section 5.6.4).
    let realm = realm.iter().flat_map(|&b| if matches!(b, b'"' | b'\\') { vec![b'\\', b] } else { vec![b] }).collect();
    Ok(Box::new(Auth { realm }))
}

/// `deny` and `tarpit` send the proxy's page when they say nothing, or a status by its old name.
fn parse_denial(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet, status: u16) -> Result<Reply, Fault> {
    let page = |status| Reply { status, content: Content::Default, fields: Vec::new() };
    if is_end(args) {
        return Ok(page(status));
    }
    if !args.accept("deny_status") {
        return parse(args, scope, set, status);
    }
    let status = self::status(args)?;
    if !is_end(args) {
        return parse(args, scope, set, status);
    }
    with_page(args, status)?;
    Ok(page(status))
}

/// `http-error`: an error page in the syntax of `return`.
pub(crate) fn error_page(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<ErrorSource, Fault> {
    let mut draft = Draft::read(args, scope, RuleSet::Request, NO_STATUS)?;
    let status = draft.status;
    if status == NO_STATUS {
        return Err(args.fault("expects 'status' and the status of the error"));
    }
    with_page(args, status)?;
    // The section is looked for when the pages of the proxy are put together, not once more for a rule.
    let mut set = None;
    draft.source = draft.source.take().map(|(word, source)| match source {
        Source::Set(one) => {
            set = Some(ErrorSetUse { statuses: vec![status], ..one });
            (word, Source::Default)
        }
        other => (word, other),
    });
    let reply = draft.finish(args, scope)?;
    Ok(match (set, reply.content) {
        (Some(set), _) => ErrorSource::Set(set),
        (None, Content::Default) => ErrorSource::BuiltIn(status),
        (None, Content::Page(page)) => ErrorSource::Page(status, Page::Ready(page)),
        (None, content) => ErrorSource::Page(status, Page::Written(Arc::new(Reply { content, ..reply }))),
    })
}

fn is_end(args: &Args<'_>) -> bool {
    matches!(args.peek(), None | Some("if" | "unless"))
}

fn parse(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet, status: u16) -> Result<Reply, Fault> {
    Draft::read(args, scope, set, status)?.finish(args, scope)
}

/// An answer as it is read.
struct Draft {
    status: u16,
    kind: Option<Arc<[u8]>>,
    /// Source of the content, and its keyword.
    source: Option<(String, Source)>,
    fields: Vec<(Arc<[u8]>, LogFormat)>,
}

enum Source {
    Default,
    Page(Answer),
    Set(ErrorSetUse),
    Bytes(Vec<u8>),
    Text(LogFormat),
}

impl Source {
    fn parse(word: &str, args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Source, Fault> {
        Ok(match word {
            "default-errorfiles" => Source::Default,
            "errorfile" => Source::Page(pages::read_page(args, scope)?),
            "errorfiles" => {
                let place = args.place(&scope.place);
                let name = args.need("<name>")?.to_owned();
                Source::Set(ErrorSetUse { name, statuses: Vec::new(), place })
            }
            "file" => Source::Bytes(pages::read_file(args, scope)?),
            "string" => Source::Bytes(args.need_bytes("<text>")?.to_vec()),
            "lf-file" => {
                let word = args.position();
                let text = pages::read_file(args, scope)?;
                let mut compiler = Compiler::new(scope, set.have());
                compiler.word = word;
                Source::Text(compiler.log_format(&text, Usage::Text)?)
            }
            _ => Source::Text(LogFormat::parse(args, scope, set.have(), Usage::Text)?),
        })
    }
}

impl Draft {
    fn read(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet, status: u16) -> Result<Draft, Fault> {
        let mut draft = Draft { status, kind: None, source: None, fields: Vec::new() };
        while !is_end(args) {
            let word = args.take().unwrap_or_default();
            match word {
                "status" => draft.status = self::status(args)?,
                "content-type" => draft.kind = Some(args.need_bytes("<type>")?.into()),
                "hdr" => {
                    let name = field::field_name(args)?;
                    let framing = field::is_framing(name.bytes()) || name.known() == Known::ContentType;
                    if framing {
                        args.warn(format!("header '{}' is always ignored here", name.bytes().escape_ascii()));
                    }
                    let value = LogFormat::parse(args, scope, set.have(), Usage::Http)?;
                    if !framing {
                        draft.fields.push((Arc::from(name.bytes()), value));
                    }
                }
                "default-errorfiles" | "errorfile" | "errorfiles" | "file" | "lf-file" | "string" | "lf-string" => {
                    if let Some((before, _)) = &draft.source {
                        return Err(args.fault(format!("unexpected '{word}' argument, '{before}' already defined")));
                    }
                    let source = Source::parse(word, args, scope, set)?;
                    draft.source = Some((word.to_owned(), source));
                }
                other if Condition::is_meant_by(other) => {
                    return Err(args.fault(format!("expects 'if' or 'unless' and a condition, not '{other}'")));
                }
                other => {
                    let hint = "one of status, content-type, default-errorfiles, errorfile, errorfiles, file, lf-file, string, lf-string, hdr";
                    return Err(args.fault(format!("unknown argument '{other}' of an answer")).hint(hint));
                }
            }
        }
        Ok(draft)
    }

    fn finish(self, args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<Reply, Fault> {
        let Draft { status, kind, source, fields } = self;
        let unused_kind = |args: &mut Args<'_>, kind: &Option<Arc<[u8]>>, why: &str| {
            if let Some(kind) = kind {
                args.warn(format!("content-type '{}' is ignored: {why}", kind.escape_ascii()));
            }
        };
        let has_no_body = matches!(status, 204 | 304);
        let content = match source.map(|(_, source)| source) {
            None => {
                unused_kind(args, &kind, "there is no content");
                Content::Empty
            }
            Some(source @ (Source::Default | Source::Page(_) | Source::Set(_))) => {
                unused_kind(args, &kind, "error files bring their own");
                if !fields.is_empty() {
                    args.warn("'hdr' is ignored: error files bring their own fields");
                }
                let content = match source {
                    Source::Page(page) => Content::Page(Arc::new(page)),
                    Source::Set(mut set) => {
                        with_page(args, status)?;
                        let name = Arc::from(set.name.as_str());
                        set.statuses.push(status);
                        scope.shared.entry::<ErrorSetUses>().uses.push(set);
                        Content::Set(name)
                    }
                    _ => {
                        with_page(args, status)?;
                        Content::Default
                    }
                };
                return Ok(Reply { status, content, fields: Vec::new() });
            }
            Some(Source::Bytes(body)) if body.is_empty() => {
                unused_kind(args, &kind, "there is no content");
                Content::Bytes { kind: None, body: Arc::from(body) }
            }
            Some(Source::Bytes(_) | Source::Text(_)) if has_no_body => {
                return Err(args.fault(format!("a response with status {status} has no body")));
            }
            Some(Source::Bytes(body)) => {
                let kind = kind.ok_or_else(|| args.fault("expects 'content-type' beside a content that is not empty"))?;
                Content::Bytes { kind: Some(kind), body: Arc::from(body) }
            }
            Some(Source::Text(body)) => {
                let kind = kind.ok_or_else(|| args.fault("expects 'content-type' beside a content that is a format"))?;
                Content::Text { kind, body }
            }
        };
        Ok(Reply { status, content, fields })
    }
}

/// Placeholder where the line gives no status.
const NO_STATUS: u16 = 0;

fn status(args: &mut Args<'_>) -> Result<u16, Fault> {
    Ok(u16::try_from(args.integer("<code>", 200..=599)?).unwrap_or(200))
}

/// Refuses a status that has no error page.
fn with_page(args: &Args<'_>, status: u16) -> Result<(), Fault> {
    match pages::STATUSES.contains(&status) {
        true => Ok(()),
        false => Err(args.fault(format!("status code '{status}' has no error page")).hint(format!("one of {:?}", pages::STATUSES))),
    }
}
