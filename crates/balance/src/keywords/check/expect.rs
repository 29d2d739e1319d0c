//! Expectations of an answer to a check: the arguments of `expect`.

use super::{ANSWERED, Draft, expression, hexadecimal};
use crate::check::{CheckStatus, Expect, Expectation, FormatMatch, Pattern, Telling};
use regex::bytes::{Regex, RegexBuilder};
use std::ops::RangeInclusive;
use terse_config::{Args, Fault};
use terse_sample::Needs;

/// Possible arguments.
pub(super) const ARGUMENTS: &str = "[!] <match> <pattern> [min-recv <n>] [comment <text>] [ok-status <status>] [error-status <status>] \
     [tout-status <status>] [on-success <format>] [on-error <format>] [status-code <expression>]";

/// Parses the arguments of `http-check expect`.
pub(super) fn http(args: &mut Args<'_>, draft: &mut Draft) -> Result<Expect, Fault> {
    expect(args, draft, http_expectation)
}

/// Parses the arguments of `tcp-check expect`.
pub(super) fn tcp(args: &mut Args<'_>, draft: &mut Draft) -> Result<Expect, Fault> {
    expect(args, draft, tcp_expectation)
}

/// Parser of a kind of match and its pattern, by the table of the protocol.
type Read = fn(&str, &mut Args<'_>, &mut Draft) -> Result<Expectation, Fault>;

/// Parses an `expect`: one match, with other arguments before and after it.
fn expect(args: &mut Args<'_>, draft: &mut Draft, read: Read) -> Result<Expect, Fault> {
    let (mut what, mut negated, mut min_bytes, mut comment) = (None, false, None, None);
    let mut telling = Box::<Telling>::default();
    while let Some(word) = args.take() {
        match word {
            "ok-status" => telling.met = Some(status(args, MET)?),
            "error-status" => telling.failed = Some(status(args, FAILED)?),
            "tout-status" => telling.late = Some(status(args, LATE)?),
            "on-success" => telling.on_success = Some(draft.format(args, "<format>", ANSWERED)?),
            "on-error" => telling.on_error = Some(draft.format(args, "<format>", ANSWERED)?),
            "status-code" => telling.code = Some(expression(args, draft)?),
            "min-recv" => min_bytes = usize::try_from(args.integer("<n>", -1..=i64::from(i32::MAX))?).ok(),
            "comment" => comment = Some(args.need("<text>")?.to_owned()),
            _ if what.is_some() => {
                return Err(args
                    .fault(format!("'{word}' stands behind the match"))
                    .hint("one match is expected, and words such as min-recv, comment, ok-status and on-error"));
            }
            "!" => negated = true,
            _ => {
                let (without, mark) = word.strip_prefix('!').map_or((word, false), |word| (word, true));
                what = Some(read(without, args, draft)?);
                negated |= mark;
            }
        }
    }
    let what = what.ok_or_else(|| args.fault("expects <match>"))?;
    Ok(Expect { what, negated, min_bytes, comment, telling })
}

/// A status by its name in `show stat`.
fn status(args: &mut Args<'_>, known: &[CheckStatus]) -> Result<CheckStatus, Fault> {
    let word = args.need("<status>")?;
    let found = known.iter().find(|status| status.code() == word);
    found.copied().ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|status| status.code()).collect();
        args.fault(format!("unknown status '{word}'")).hint(format!("one of {}", names.join(", ")))
    })
}

fn http_expectation(kind: &str, args: &mut Args<'_>, draft: &mut Draft) -> Result<Expectation, Fault> {
    match kind {
        "status" => statuses(args).map(Expectation::Status),
        "rstatus" => regex(args).map(Expectation::StatusRegex),
        "string" => Ok(Expectation::Bytes(args.need_bytes("<text>")?.to_vec())),
        "rstring" => regex(args).map(Expectation::Regex),
        "hdr" | "fhdr" => {
            let name = match args.take() {
                Some("name") => name_pattern(args)?,
                Some("name-lf") => format_pattern(args, draft)?,
                _ => return Err(args.fault("expects 'name' or 'name-lf', and a name")),
            };
            let value = match args.peek() {
                Some("value") => {
                    args.take();
                    Some(pattern(args, "<value>")?)
                }
                Some("value-lf") => {
                    args.take();
                    Some(format_pattern(args, draft)?)
                }
                _ => None,
            };
            Ok(Expectation::Field { name, value, whole: kind == "fhdr" })
        }
        "string-lf" => draft.format(args, "<format>", ANSWERED).map(|format| Expectation::Format { format, hexadecimal: false }),
        _ => Err(args
            .fault(format!("unknown match '{kind}'"))
            .hint("known are status, rstatus, hdr, fhdr, string, string-lf and rstring")),
    }
}

fn tcp_expectation(kind: &str, args: &mut Args<'_>, draft: &mut Draft) -> Result<Expectation, Fault> {
    match kind {
        "string" => Ok(Expectation::Bytes(args.need_bytes("<text>")?.to_vec())),
        "rstring" => regex(args).map(Expectation::Regex),
        "binary" => hexadecimal(args).map(Expectation::Bytes),
        "string-lf" | "binary-lf" => {
            let format = draft.format(args, "<format>", Needs::SERVER)?;
            Ok(Expectation::Format { format, hexadecimal: kind == "binary-lf" })
        }
        "rbinary" => regex(args).map(Expectation::HexRegex),
        _ => Err(args
            .fault(format!("unknown match '{kind}'"))
            .hint("known are string, string-lf, rstring, binary, binary-lf and rbinary")),
    }
}

/// A text and, before it, its method of comparison.
fn pattern(args: &mut Args<'_>, what: &str) -> Result<Pattern, Fault> {
    if !args.accept("-m") {
        return Ok(Pattern::Exact(args.need_bytes(what)?.to_vec()));
    }
    let method = args.need("<method>")?;
    match method {
        "reg" => return regex(args).map(Pattern::Regex),
        "str" | "beg" | "end" | "sub" => {}
        _ => return Err(args.fault(format!("unknown method '{method}'")).hint("known are str, beg, end, sub and reg")),
    }
    let text = args.need_bytes(what)?.to_vec();
    Ok(match method {
        "beg" => Pattern::Begin(text),
        "end" => Pattern::End(text),
        "sub" => Pattern::Part(text),
        _ => Pattern::Exact(text),
    })
}

/// The same for names of fields, which are compared without regard to case.
fn name_pattern(args: &mut Args<'_>) -> Result<Pattern, Fault> {
    match pattern(args, "<name>")? {
        Pattern::Regex(regex) => {
            let regex = RegexBuilder::new(regex.as_str()).case_insensitive(true).build();
            regex.map(Pattern::Regex).map_err(|error| args.fault(format!("is not a regular expression: {error}")))
        }
        pattern => Ok(pattern),
    }
}

/// A format and, before it, the method of comparison with its text.
fn format_pattern(args: &mut Args<'_>, draft: &mut Draft) -> Result<Pattern, Fault> {
    let mut method = FormatMatch::Exact;
    if args.accept("-m") {
        method = match args.need("<method>")? {
            "str" => FormatMatch::Exact,
            "beg" => FormatMatch::Begin,
            "end" => FormatMatch::End,
            "sub" => FormatMatch::Part,
            other => {
                return Err(args.fault(format!("method '{other}' is not for formats")).hint("known are str, beg, end and sub"));
            }
        };
    }
    draft.format(args, "<format>", ANSWERED).map(|format| Pattern::Format(method, format))
}

/// `200,204,300-399`
fn statuses(args: &mut Args<'_>) -> Result<Vec<RangeInclusive<u16>>, Fault> {
    let list = args.need("<statuses>")?;
    let range = |text: &str| {
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        let (from, to) = (from.parse::<u16>().ok()?, to.parse::<u16>().ok()?);
        (100..=999).contains(&from).then_some(from..=to).filter(|range| !range.is_empty() && to <= 999)
    };
    list.split(',')
        .map(|text| range(text).ok_or_else(|| args.fault(format!("'{text}' is neither a status nor a range of them"))))
        .collect()
}

fn regex(args: &mut Args<'_>) -> Result<Regex, Fault> {
    let text = args.need("<regular expression>")?;
    Regex::new(text).map_err(|error| args.fault(format!("'{text}' is not a regular expression: {error}")))
}

const MET: &[CheckStatus] = &[CheckStatus::L7Ok, CheckStatus::L7OkStopping, CheckStatus::L6Ok, CheckStatus::L4Ok];
const FAILED: &[CheckStatus] = &[
    CheckStatus::L7OkStopping,
    CheckStatus::L7Response,
    CheckStatus::L7Status,
    CheckStatus::L6Response,
    CheckStatus::L4Connection,
];
const LATE: &[CheckStatus] = &[CheckStatus::L7Timeout, CheckStatus::L6Timeout, CheckStatus::L4Timeout];
