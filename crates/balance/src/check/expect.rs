//! Expectations of an answer (`http-check expect`, `tcp-check expect`): pure functions of the bytes so far.

use super::CheckStatus;
use data_encoding::{HEXLOWER_PERMISSIVE, HEXUPPER};
use regex::bytes::Regex;
use std::borrow::Cow;
use std::ops::RangeInclusive;
use terse_message::{Response, list};
use terse_sample::{Env, Expr, LogFormat, Type, Value};

/// An `expect` line.
#[derive(Clone, Debug)]
pub struct Expect {
    /// Expected property of the answer.
    pub what: Expectation,
    /// `!`: the property must be absent.
    pub negated: bool,
    /// `min-recv`: number of bytes after which a missing match is final.
    pub min_bytes: Option<usize>,
    /// `comment`: text for the log when the expectation fails.
    pub comment: Option<String>,
    /// Report of the check's outcome.
    pub telling: Box<Telling>,
}

/// Report of an `expect` line's outcome, where it differs from the default.
#[derive(Clone, Default, Debug)]
pub struct Telling {
    /// `ok-status`
    pub met: Option<CheckStatus>,
    /// `error-status`
    pub failed: Option<CheckStatus>,
    /// `tout-status`
    pub late: Option<CheckStatus>,
    /// `on-success`
    pub on_success: Option<LogFormat>,
    /// `on-error`
    pub on_error: Option<LogFormat>,
    /// `status-code`
    pub code: Option<Box<Expr>>,
}

impl Telling {
    /// Reported code, if it is not that of the answer.
    pub(super) fn code(&self, env: &Env<'_>) -> Option<u16> {
        match self.code.as_ref()?.eval(env)?.cast(Type::Int)? {
            Value::Int(code) => u16::try_from(code).ok(),
            _ => None,
        }
    }
}

/// Expected property of an answer.
#[derive(Clone, Debug)]
pub enum Expectation {
    /// `status`: one of these.
    Status(Vec<RangeInclusive<u16>>),
    /// `rstatus`
    StatusRegex(Regex),
    /// `hdr`, `fhdr`: a field of that name and, if given, value. `whole`: commas do not separate values.
    Field {
        /// Pattern of the name.
        name: Pattern,
        /// Pattern of the value.
        value: Option<Pattern>,
        /// `fhdr`
        whole: bool,
    },
    /// `string`, `binary`: these bytes, anywhere.
    Bytes(Vec<u8>),
    /// `rstring`
    Regex(Regex),
    /// `rbinary`: matches the bytes as hexadecimal digits, in capitals.
    HexRegex(Regex),
    /// `string-lf`, `binary-lf`: the text of a format, anywhere.
    Format {
        /// The format.
        format: LogFormat,
        /// Whether the text is the hexadecimal digits of bytes.
        hexadecimal: bool,
    },
}

/// A text and its method of comparison (`-m`).
#[derive(Clone, Debug)]
pub enum Pattern {
    /// `str`
    Exact(Vec<u8>),
    /// `beg`
    Begin(Vec<u8>),
    /// `end`
    End(Vec<u8>),
    /// `sub`
    Part(Vec<u8>),
    /// `reg`
    Regex(Regex),
    /// `name-lf`, `value-lf`: the text of a format.
    Format(FormatMatch, LogFormat),
}

/// Comparison with the text of a format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FormatMatch {
    /// `str`
    Exact,
    /// `beg`
    Begin,
    /// `end`
    End,
    /// `sub`
    Part,
}

/// Result of an expectation for an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Judgement {
    /// It is met.
    Met,
    /// It is not met.
    Failed,
    /// More bytes may decide.
    Wait,
}

impl Expect {
    /// Returns the expectation with its formats evaluated now.
    pub(super) fn resolved(&self, env: &Env<'_>) -> Cow<'_, Expect> {
        let what = match &self.what {
            Expectation::Format { format, hexadecimal } => {
                let text = written(format, env);
                Expectation::Bytes(if *hexadecimal { bytes_of(&text).unwrap_or_default() } else { text })
            }
            Expectation::Field { name, value, whole } if name.is_format() || value.as_ref().is_some_and(Pattern::is_format) => {
                let value = value.as_ref().map(|value| value.resolved(env));
                Expectation::Field { name: name.resolved(env), value, whole: *whole }
            }
            _ => return Cow::Borrowed(self),
        };
        Cow::Owned(Expect { what, ..self.clone() })
    }

    /// Judges a response's head; `None` when the body decides.
    pub(super) fn judge_head(&self, response: &Response) -> Option<Judgement> {
        let found = match &self.what {
            Expectation::Status(ranges) => ranges.iter().any(|range| range.contains(&response.status)),
            Expectation::StatusRegex(regex) => regex.is_match(response.status.to_string().as_bytes()),
            Expectation::Field { name, value, whole } => has_field(response, name, value.as_ref(), *whole),
            Expectation::Bytes(_) | Expectation::Regex(_) | Expectation::HexRegex(_) | Expectation::Format { .. } => return None,
        };
        Some(self.decide(found))
    }

    /// Judges content; `last`: no more will come.
    pub(super) fn judge_content(&self, content: &[u8], last: bool) -> Judgement {
        let enough = content.len() >= self.min_bytes.unwrap_or(0);
        let found = match &self.what {
            Expectation::Bytes(bytes) => contains(content, bytes),
            Expectation::Regex(regex) => regex.is_match(content),
            Expectation::HexRegex(regex) => regex.is_match(HEXUPPER.encode(content).as_bytes()),
            _ => false,
        };
        match found {
            _ if last => self.decide(found),
            _ if !enough => Judgement::Wait,
            // Its absence is certain only when all is there, or `min-recv` bytes are.
            false if self.min_bytes.is_none() => Judgement::Wait,
            _ => self.decide(found),
        }
    }

    fn decide(&self, found: bool) -> Judgement {
        if found != self.negated { Judgement::Met } else { Judgement::Failed }
    }

    /// Text for the log: the condition that a script waited for when it broke off.
    pub(super) fn awaited(&self) -> String {
        match &self.what {
            Expectation::Bytes(bytes) => format!("expect string '{}'", String::from_utf8_lossy(bytes)),
            _ => "expect regex".into(),
        }
    }

    /// Text for the log: the pattern that was missing, or found against `!`.
    pub(super) fn described(&self) -> String {
        match &self.what {
            Expectation::Status(_) => "(status codes)".into(),
            Expectation::StatusRegex(_) | Expectation::Regex(_) | Expectation::HexRegex(_) => " (regex)".into(),
            Expectation::Field { .. } => " (header pattern)".into(),
            Expectation::Format { .. } => " (log-format string)".into(),
            Expectation::Bytes(bytes) => format!(" '{}'", String::from_utf8_lossy(bytes)),
        }
    }
}

impl Pattern {
    fn is_format(&self) -> bool {
        matches!(self, Pattern::Format(..))
    }

    fn resolved(&self, env: &Env<'_>) -> Pattern {
        let Pattern::Format(method, format) = self else { return self.clone() };
        let text = written(format, env);
        match method {
            FormatMatch::Exact => Pattern::Exact(text),
            FormatMatch::Begin => Pattern::Begin(text),
            FormatMatch::End => Pattern::End(text),
            FormatMatch::Part => Pattern::Part(text),
        }
    }

    fn matches(&self, text: &[u8]) -> bool {
        match self {
            Pattern::Exact(wanted) => text == wanted,
            Pattern::Begin(wanted) => text.starts_with(wanted),
            Pattern::End(wanted) => text.ends_with(wanted),
            Pattern::Part(wanted) => contains(text, wanted),
            Pattern::Regex(regex) => regex.is_match(text),
            Pattern::Format(..) => false,
        }
    }

    /// Compares without regard to case, as names of fields are; regular expressions on names were compiled so.
    fn matches_name(&self, name: &[u8]) -> bool {
        let lower = |text: &[u8]| text.to_ascii_lowercase();
        match self {
            Pattern::Exact(wanted) => name.eq_ignore_ascii_case(wanted),
            Pattern::Begin(wanted) => lower(name).starts_with(&lower(wanted)),
            Pattern::End(wanted) => lower(name).ends_with(&lower(wanted)),
            Pattern::Part(wanted) => contains(&lower(name), &lower(wanted)),
            Pattern::Regex(regex) => regex.is_match(name),
            Pattern::Format(..) => false,
        }
    }
}

/// Text of a format.
pub(super) fn written(format: &LogFormat, env: &Env<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    format.write(env, &mut text);
    text
}

/// Bytes of these hexadecimal digits; `None` if they are not hexadecimal.
pub(crate) fn bytes_of(digits: &[u8]) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(digits).ok()
}

fn has_field(response: &Response, name: &Pattern, value: Option<&Pattern>, whole: bool) -> bool {
    response.fields.iter().filter(|(field, _)| name.matches_name(field)).any(|(_, text)| match value {
        None => true,
        Some(value) if whole => value.matches(text),
        Some(value) => list::elements(text).any(|element| value.matches(element)),
    })
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    wanted.is_empty() || bytes.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expect(what: Expectation) -> Expect {
        Expect { what, negated: false, min_bytes: None, comment: None, telling: Box::default() }
    }

    #[test]
    fn heads_are_judged_by_status_and_fields() {
        let mut response = Response::default();
        response.status = 202;
        response.fields.push(b"X-Test", b"true, next value");
        let met = |what| expect(what).judge_head(&response) == Some(Judgement::Met);
        assert!(met(Expectation::Status(vec![100..=101, 200..=399])));
        assert!(!met(Expectation::Status(vec![200..=201])));
        assert!(met(Expectation::StatusRegex(Regex::new("^20").unwrap())));
        let field =
            |name: Pattern, value: &str, whole| Expectation::Field { name, value: Some(Pattern::Exact(value.into())), whole };
        assert!(met(field(Pattern::Exact(b"x-test".to_vec()), "true", false)));
        assert!(met(field(Pattern::Begin(b"x-".to_vec()), "true, next value", true)));
        assert!(!met(field(Pattern::End(b"test".to_vec()), "true", true)));
        assert!(met(Expectation::Field { name: Pattern::Part(b"-TE".to_vec()), value: None, whole: false }));
    }

    #[test]
    fn absence_is_certain_only_at_the_end_or_after_enough() {
        let error = || Expectation::Regex(Regex::new("^error").unwrap());
        let negated = Expect { negated: true, ..expect(error()) };
        assert_eq!(negated.judge_content(b"valid", false), Judgement::Wait);
        assert_eq!(negated.judge_content(b"valid", true), Judgement::Met);
        assert_eq!(negated.judge_content(b"error 3", false), Judgement::Failed);
        let enough = Expect { min_bytes: Some(5), ..negated };
        assert_eq!(enough.judge_content(b"vali", false), Judgement::Wait);
        assert_eq!(enough.judge_content(b"valid", false), Judgement::Met);
        assert_eq!(expect(Expectation::Bytes(b"lid".to_vec())).judge_content(b"valid", false), Judgement::Met);
    }
}
