//! How servers are checked: `option httpchk`, `http-check`, `option tcp-check`, `tcp-check`, `timeout check`,
//! `option log-health-checks`.

use super::{done, in_back, set, settings, switch};
use crate::check::{Expect, Expectation, HttpRequest, Pattern, Probe, ProbeKind, Step};
use regex::bytes::Regex;
use std::ops::RangeInclusive;
use terse_config::params::{self, Param, ParamKind, ParamParser};
use terse_config::{Args, Fault, Keyword, Scope};

pub(super) const HTTPCHK: Keyword =
    done("option httpchk", "[<method>] [<uri>] [<version> [<host>]]", "Checks servers by an HTTP request.", |args, scope| {
        let request = httpchk(args)?;
        if let Some(probe) = own(scope) {
            (probe.kind, probe.request) = (ProbeKind::Http, request);
        }
        Ok(())
    });

pub(super) const HTTP_CHECK: Keyword = done(
    "http-check",
    "{ send | expect | connect | comment | disable-on-404 } ...",
    "Adds a step to checks by HTTP.",
    |args, scope| step(args, scope, HTTP_STEPS),
);

pub(super) const TCP_CHECK_OPTION: Keyword =
    done("option tcp-check", "", "Checks servers by what 'tcp-check' lines say.", |args, scope| {
        args.end()?;
        if in_back(scope) {
            settings(scope).probe.kind = ProbeKind::Tcp;
        }
        Ok(())
    });

pub(super) const TCP_CHECK: Keyword =
    done("tcp-check", "{ connect | send | send-binary | expect | comment } ...", "Adds a step to checks by TCP.", |args, scope| {
        step(args, scope, TCP_STEPS)
    });

pub(super) const TIMEOUT_CHECK: Keyword =
    done("timeout check", "<time>", "Limits what follows the connecting of a check.", |args, scope| {
        let time = args.time("<time>")?;
        if in_back(scope) {
            settings(scope).check_timeout = Some(time).filter(|time| !time.is_zero());
        }
        Ok(())
    });

pub(super) const LOG_HEALTH_CHECKS: Keyword =
    switch("option log-health-checks", "Logs each change of a check's result.", |args, scope| {
        set(args, scope, |farm| &mut farm.log_health_checks)
    });

/// The section's probe, for a line of its own: what came from the defaults goes, but not what kind of check it is.
fn own<'a>(scope: &'a mut Scope<'_>) -> Option<&'a mut Probe> {
    if !in_back(scope) {
        return None;
    }
    let probe = &mut settings(scope).probe;
    if probe.inherited {
        *probe = Probe { kind: probe.kind, ..Probe::default() };
    }
    Some(probe)
}

/// Reads a line that adds a step; a frontend's adds none.
fn step(args: &mut Args<'_>, scope: &mut Scope<'_>, table: &[Param<Probe>]) -> Result<(), Fault> {
    let mut elsewhere = Probe::default();
    let probe = own(scope).unwrap_or(&mut elsewhere);
    params::apply_one(args, "action", table, probe)
}

fn httpchk(args: &mut Args<'_>) -> Result<HttpRequest, Fault> {
    let mut request = HttpRequest::default();
    let Some(first) = args.take() else { return Ok(request) };
    match args.take() {
        None => request.uri = Some(first.into()),
        Some(uri) => (request.method, request.uri) = (Some(first.into()), Some(uri.into())),
    }
    if let Some(version) = args.take() {
        // Before there was `http-check send`, fields were smuggled in behind the version.
        let (version, fields) = version.split_once("\r\n").unwrap_or((version, ""));
        request.version = Some(checked_version(args, version)?);
        let (fields, body) = fields.split_once("\r\n\r\n").unwrap_or((fields, ""));
        for line in fields.split("\r\n").filter(|line| !line.is_empty()) {
            let Some((name, value)) = line.split_once(':') else { return Err(args.fault(format!("'{line}' is no header field"))) };
            request.fields.push((name.into(), value.trim().into()));
        }
        request.body = Some(body.to_owned()).filter(|body| !body.is_empty());
    }
    if let Some(host) = args.take() {
        request.fields.push(("host".into(), host.into()));
    }
    Ok(request)
}

/// What may follow `http-check`.
pub(super) const HTTP_STEPS: &[Param<Probe>] = &[
    action(
        "send",
        "[meth <method>] [uri <uri>] [ver <version>] [hdr <name> <value>]* [body <text>]",
        "Sends a request.",
        |args, probe| {
            probe.http.push(Step::Request(send(args)?));
            Ok(())
        },
    ),
    action("expect", "[min-recv <n>] [comment <text>] [!] <match> <pattern>", "Says what the answer must be.", |args, probe| {
        probe.http.push(Step::Expect(expect(args, http_expectation)?));
        Ok(())
    }),
    action("connect", "[port <port>] [comment <text>]", "Opens a new connection.", |args, probe| {
        probe.http.push(connect(args)?);
        Ok(())
    }),
    action("comment", "<text>", "Says something to the reader.", comment),
    action("disable-on-404", "", "Takes a 404 for a server that wants no new clients.", |_, probe| {
        probe.stops_on_404 = true;
        Ok(())
    }),
    later("send-state", "", "Tells the server how it is doing."),
    later("set-var(", "<expression>", "Sets a variable."),
    later("set-var-fmt(", "<format>", "Sets a variable by a format."),
    later("unset-var(", "", "Forgets a variable."),
];

/// What may follow `tcp-check`.
pub(super) const TCP_STEPS: &[Param<Probe>] = &[
    action("connect", "[port <port>] [comment <text>]", "Opens a new connection.", |args, probe| {
        probe.tcp.push(connect(args)?);
        Ok(())
    }),
    action("send", "<text> [comment <text>]", "Sends a text.", |args, probe| {
        let bytes = args.need_bytes("<text>")?.to_vec();
        probe.tcp.push(Step::Send { bytes, comment: trailing_comment(args)? });
        Ok(())
    }),
    action("send-binary", "<hexadecimal> [comment <text>]", "Sends bytes.", |args, probe| {
        let bytes = hexadecimal(args)?;
        probe.tcp.push(Step::Send { bytes, comment: trailing_comment(args)? });
        Ok(())
    }),
    action("expect", "[min-recv <n>] [comment <text>] [!] <match> <pattern>", "Says what the answer must be.", |args, probe| {
        probe.tcp.push(Step::Expect(expect(args, tcp_expectation)?));
        Ok(())
    }),
    action("comment", "<text>", "Says something to the reader.", comment),
    later("send-lf", "<format>", "Sends a text by a format."),
    later("send-binary-lf", "<format>", "Sends bytes by a format."),
    later("set-var(", "<expression>", "Sets a variable."),
    later("set-var-fmt(", "<format>", "Sets a variable by a format."),
    later("unset-var(", "", "Forgets a variable."),
];

const fn action(name: &'static str, arguments: &'static str, summary: &'static str, parser: ParamParser<Probe>) -> Param<Probe> {
    Param { name, arguments, summary, kind: ParamKind::Done(parser) }
}

const fn later(name: &'static str, arguments: &'static str, summary: &'static str) -> Param<Probe> {
    Param { name, arguments, summary, kind: ParamKind::Refused(LATER) }
}

fn send(args: &mut Args<'_>) -> Result<HttpRequest, Fault> {
    let mut request = HttpRequest::default();
    while let Some(word) = args.take() {
        match word {
            "meth" => request.method = Some(args.need("<method>")?.into()),
            "uri" => request.uri = Some(args.need("<uri>")?.into()),
            "ver" => {
                let version = args.need("<version>")?;
                request.version = Some(checked_version(args, version)?);
            }
            "hdr" => {
                let name = args.need("<name>")?.to_owned();
                request.fields.push((name, plain(args, "<value>")?));
            }
            "body" => request.body = Some(args.need("<text>")?.into()),
            "comment" => drop(args.need("<text>")?),
            "uri-lf" | "body-lf" => return Err(args.fault(format!("'{word}' is not supported: {LATER}"))),
            _ => return Err(args.fault(format!("unknown word '{word}'")).hint("known are meth, uri, ver, hdr, body and comment")),
        }
    }
    Ok(request)
}

fn connect(args: &mut Args<'_>) -> Result<Step, Fault> {
    let (mut port, mut comment) = (None, None);
    while let Some(word) = args.take() {
        match word {
            "default" => {}
            "linger" => args.changes_nothing("a check's connection always ends by a reset"),
            "port" => port = Some(args.integer("<port>", 1..=65535)? as u16),
            "comment" => comment = Some(args.need("<text>")?.to_owned()),
            "addr" | "send-proxy" | "via-socks4" | "proto" => {
                return Err(args.fault(format!("'{word}' is not supported: it comes later")));
            }
            "ssl" | "sni" | "alpn" => return Err(args.fault(format!("'{word}' is not supported: TLS comes later"))),
            _ => return Err(args.fault(format!("unknown word '{word}'")).hint("known are default, port, linger and comment")),
        }
    }
    Ok(Step::Connect { port, comment })
}

/// Reads an `expect` up to the kind of match, and that by the table of the protocol.
fn expect(args: &mut Args<'_>, what: fn(&str, &mut Args<'_>) -> Result<Expectation, Fault>) -> Result<Expect, Fault> {
    let (mut negated, mut min_bytes, mut comment) = (false, None, None);
    loop {
        let word = args.need("<match>")?;
        match word {
            "min-recv" => min_bytes = usize::try_from(args.integer("<n>", -1..=i64::from(i32::MAX))?).ok(),
            "comment" => comment = Some(args.need("<text>")?.to_owned()),
            "ok-status" | "error-status" | "tout-status" | "on-success" | "on-error" | "status-code" => {
                return Err(args.fault(format!("'{word}' is not supported: it comes later")));
            }
            "!" => negated = true,
            _ => {
                let (without, mark) = word.strip_prefix('!').map_or((word, false), |word| (word, true));
                let what = what(without, args)?;
                return Ok(Expect { what, negated: negated || mark, min_bytes, comment });
            }
        }
    }
}

fn http_expectation(kind: &str, args: &mut Args<'_>) -> Result<Expectation, Fault> {
    match kind {
        "status" => statuses(args).map(Expectation::Status),
        "rstatus" => regex(args).map(Expectation::StatusRegex),
        "string" => Ok(Expectation::Bytes(args.need_bytes("<text>")?.to_vec())),
        "rstring" => regex(args).map(Expectation::Regex),
        "hdr" | "fhdr" => {
            if !args.accept("name") {
                return Err(args.fault("expects 'name' and a name").hint("'name-lf' comes later"));
            }
            let name = pattern(args, "<name>")?;
            let value = if args.accept("value") { Some(pattern(args, "<value>")?) } else { None };
            Ok(Expectation::Field { name, value, whole: kind == "fhdr" })
        }
        "string-lf" => Err(args.fault(format!("'{kind}' is not supported: {LATER}"))),
        _ => Err(args.fault(format!("unknown match '{kind}'")).hint("known are status, rstatus, hdr, fhdr, string and rstring")),
    }
}

fn tcp_expectation(kind: &str, args: &mut Args<'_>) -> Result<Expectation, Fault> {
    match kind {
        "string" => Ok(Expectation::Bytes(args.need_bytes("<text>")?.to_vec())),
        "rstring" => regex(args).map(Expectation::Regex),
        "binary" => hexadecimal(args).map(Expectation::Bytes),
        "rbinary" | "string-lf" | "binary-lf" => Err(args.fault(format!("'{kind}' is not supported: {LATER}"))),
        _ => Err(args.fault(format!("unknown match '{kind}'")).hint("known are string, rstring and binary")),
    }
}

/// A text and, before it, how it is compared.
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

fn hexadecimal(args: &mut Args<'_>) -> Result<Vec<u8>, Fault> {
    let text = args.need("<hexadecimal>")?;
    let digit = |byte: u8| (byte as char).to_digit(16);
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some((digit(*high)? << 4 | digit(*low)?) as u8),
        _ => None,
    });
    pairs.collect::<Option<Vec<u8>>>().ok_or_else(|| args.fault(format!("'{text}' is not made of pairs of hexadecimal digits")))
}

fn comment(args: &mut Args<'_>, _: &mut Probe) -> Result<(), Fault> {
    args.need("<text>").map(|_| ())
}

fn trailing_comment(args: &mut Args<'_>) -> Result<Option<String>, Fault> {
    if !args.accept("comment") {
        return Ok(None);
    }
    args.need("<text>").map(|text| Some(text.to_owned()))
}

fn checked_version(args: &Args<'_>, version: &str) -> Result<String, Fault> {
    match version {
        "HTTP/1.0" | "HTTP/1.1" => Ok(version.to_owned()),
        "HTTP/2" | "HTTP/2.0" => Err(args.fault(format!("'{version}' is not supported: HTTP/2 comes later"))),
        _ => Err(args.fault(format!("'{version}' is not a version of HTTP"))),
    }
}

/// A text that HAProxy reads as a format: here only one without variables.
fn plain(args: &mut Args<'_>, what: &str) -> Result<String, Fault> {
    let text = args.need(what)?;
    match text.replace("%%", "").contains('%') {
        true => Err(args.fault(format!("'{text}' is not supported: {LATER}"))),
        false => Ok(text.replace("%%", "%")),
    }
}

const LATER: &str = "variables and formats in checks come later";
