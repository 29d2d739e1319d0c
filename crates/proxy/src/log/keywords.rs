//! The keywords of logs: those that HAProxy's manual lists under `log`, `capture` and `unique-id`.

use super::formats::FormatText;
use super::origin::Steps;
use super::settings::{Capture, CookieCapture, HostName, LogLine, LogSettings, TrafficFormat};
use super::target::Target;
use std::sync::Arc;
use terse_config::{Args, Fault, Keyword, Kind, Parser, Place, Scope, SectionKind, Sections};

/// The table.
pub const KEYWORDS: &[Keyword] = &[
    Keyword {
        name: "log",
        old_names: &[],
        sections: Sections::GLOBAL.or(Sections::PROXY).or(Sections::LOG_FORWARD).or(Sections::PEERS),
        arguments: "global | <target> [len <length>] [format <format>] [sample <ranges>:<size>] [profile <name>] <facility> \
                    [<level> [<minlevel>]]",
        summary: "Sends log lines to a syslog server, a socket or a descriptor; 'no log' forgets the lines so far.",
        kind: Kind::Switch(log),
    },
    Keyword {
        name: "log-tag",
        old_names: &[],
        sections: Sections::GLOBAL.or(Sections::PROXY),
        arguments: "<string>",
        summary: "The program's name in log lines.",
        kind: Kind::Done(log_tag),
    },
    Keyword {
        name: "log-send-hostname",
        old_names: &[],
        sections: Sections::GLOBAL,
        arguments: "[<string>]",
        summary: "Puts the host's name, or this one, into log lines.",
        kind: Kind::Done(log_send_hostname),
    },
    proxy("log-format", "<fmt>", "What is logged of each transaction.", log_format),
    proxy("log-format-sd", "<fmt>", "The structured data of log lines in format rfc5424.", log_format_sd),
    proxy("error-log-format", "<fmt>", "What is logged of a connection that fails on the client's side.", error_log_format),
    proxy("unique-id-format", "<fmt>", "Makes an identifier of each request: %ID in logs.", unique_id_format),
    proxy("unique-id-header", "<name>", "Sends each request's identifier to the server in this header.", unique_id_header),
    proxy("option httplog", "[clf]", "Logs each request with its timers, status, termination state and counts.", option_httplog),
    proxy("option tcplog", "[clf]", "Logs each connection with its timers, bytes, termination state and counts.", option_tcplog),
    proxy("option httpslog", "", "Logs each request as 'option httplog' does, and its TLS connection.", |args, scope| {
        args.end()?;
        let place = scope.place.clone();
        set_traffic_format(scope, TrafficFormat::Https { place });
        Ok(())
    }),
    proxy("log-steps", "all | <step>[,<step>]...", "Logs transactions at these steps, instead of once.", log_steps),
    switch("option dontlognull", "Connections on which no byte came are not logged.", dontlognull),
    switch(
        "option dontlog-normal",
        "Only errors, timeouts, retries, redispatches and statuses from 500 are logged.",
        dontlog_normal,
    ),
    switch("option log-separate-errors", "Those are logged at level 'err'.", log_separate_errors),
    switch("option logasap", "Logs when the server's head has come, without waiting for the end.", logasap),
    capture(
        "capture request header",
        "<name> len <length>",
        "Keeps the last value of a request's header for logs.",
        request_header,
    ),
    capture(
        "capture response header",
        "<name> len <length>",
        "Keeps the last value of a response's header for logs.",
        response_header,
    ),
    capture("capture cookie", "<name> len <length>", "Keeps a cookie of the request and of the response for logs.", cookie),
    Keyword {
        sections: Sections::FRONT_ONLY,
        ..capture("declare capture request", "len <length>", "A slot that 'http-request capture ... id' fills.", request_slot)
    },
    Keyword {
        sections: Sections::FRONT_ONLY,
        ..capture("declare capture response", "len <length>", "A slot that 'http-response capture ... id' fills.", response_slot)
    },
];

const fn proxy(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::PROXY, arguments, summary, kind: Kind::Done(parser) }
}

const fn switch(name: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { kind: Kind::Switch(parser), ..proxy(name, "", summary, parser) }
}

const fn capture(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { sections: Sections::PROXY_ONLY, ..proxy(name, arguments, summary, parser) }
}

fn log(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let in_global = scope.section.kind == SectionKind::Global;
    if scope.negated {
        args.end()?;
        settings(scope).lines.clear();
        return Ok(());
    }
    if let [only] = args.rest()
        && only.as_str() == "global"
    {
        args.take();
        if in_global {
            return Err(args.fault("'global' means the log lines of this very section").hint("write a target and a facility"));
        }
        settings(scope).lines.push(LogLine::Global);
        return Ok(());
    }
    let target = Target::parse(args, here(args, scope))?;
    settings(scope).lines.push(LogLine::Target(Arc::new(target)));
    Ok(())
}

fn log_tag(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).tag = Some(args.need("<string>")?.into());
    args.end()
}

fn log_send_hostname(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let name = args.take().map_or(HostName::System, |name| HostName::Named(name.into()));
    args.end()?;
    if settings(scope).host_name.is_some() {
        return Err(Fault::new(0, "was already specified"));
    }
    settings(scope).host_name = Some(name);
    Ok(())
}

fn log_format(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let text = only_format(args, scope)?;
    set_traffic_format(scope, TrafficFormat::Custom(text));
    Ok(())
}

fn log_format_sd(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let text = only_format(args, scope)?;
    if in_front(scope) {
        settings(scope).structured_data = Some(text);
    }
    Ok(())
}

fn error_log_format(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let text = only_format(args, scope)?;
    if !in_front(scope) {
        return Ok(());
    }
    if settings(scope).error_format.replace(text).is_some() && scope.section.kind == SectionKind::Defaults {
        scope.warn(0, "overrides the one before it in this 'defaults' section");
    }
    Ok(())
}

fn unique_id_format(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let text = only_format(args, scope)?;
    settings(scope).unique_id_format = Some(text);
    Ok(())
}

fn unique_id_header(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let name = args.need("<name>")?;
    if !is_token(name) {
        return Err(args.fault(format!("'{name}' is not a header's name")));
    }
    settings(scope).unique_id_header = Some(name.into());
    args.end()
}

fn option_httplog(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let (place, clf) = (scope.place.clone(), args.accept("clf"));
    args.end()?;
    set_traffic_format(scope, TrafficFormat::Http { clf, place });
    Ok(())
}

fn option_tcplog(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let (place, clf) = (scope.place.clone(), args.accept("clf"));
    args.end()?;
    set_traffic_format(scope, TrafficFormat::Tcp { clf, place });
    Ok(())
}

fn log_steps(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let list = args.need("<steps>")?;
    let steps = Steps::parse(list).map_err(|word| {
        let fault = args.fault(format!("'{word}' is no step of a transaction"));
        fault.hint("write 'all', or some of accept, request, connect, response and close, with commas between them")
    })?;
    args.end()?;
    if in_front(scope) {
        settings(scope).steps = Some(steps);
    }
    Ok(())
}

fn dontlognull(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    set_switch(args, scope, |settings| &mut settings.dont_log_null)
}

fn dontlog_normal(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    set_switch(args, scope, |settings| &mut settings.dont_log_normal)
}

fn log_separate_errors(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    set_switch(args, scope, |settings| &mut settings.separate_errors)
}

fn logasap(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    set_switch(args, scope, |settings| &mut settings.as_soon_as_possible)
}

fn request_header(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let capture = header_capture(args)?;
    add_capture(scope, capture, |settings| &mut settings.request_captures);
    Ok(())
}

fn response_header(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let capture = header_capture(args)?;
    add_capture(scope, capture, |settings| &mut settings.response_captures);
    Ok(())
}

fn request_slot(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let capture = Capture { header: None, len: length(args)? };
    add_capture(scope, capture, |settings| &mut settings.request_captures);
    Ok(())
}

fn response_slot(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let capture = Capture { header: None, len: length(args)? };
    add_capture(scope, capture, |settings| &mut settings.response_captures);
    Ok(())
}

fn cookie(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let prefix = args.need("<name>")?.to_owned();
    let len = length(args)?;
    if in_front(scope) {
        settings(scope).cookie_capture = Some(CookieCapture { prefix, len });
    }
    Ok(())
}

fn header_capture(args: &mut Args<'_>) -> Result<Capture, Fault> {
    let name = args.need("<name>")?;
    if !is_token(name) {
        return Err(args.fault(format!("'{name}' is not a header's name")));
    }
    Ok(Capture { header: Some(name.to_ascii_lowercase()), len: length(args)? })
}

/// `len <length>`, and the end of the line.
fn length(args: &mut Args<'_>) -> Result<usize, Fault> {
    if args.need("'len'")? != "len" {
        return Err(args.fault("expects 'len' and the most bytes to keep here"));
    }
    let len = args.integer("<length>", 1..=CAPTURE_LIMIT)?;
    args.end()?;
    Ok(usize::try_from(len).unwrap_or_default())
}

fn add_capture(scope: &mut Scope<'_>, capture: Capture, list: fn(&mut LogSettings) -> &mut Vec<Capture>) {
    if in_front(scope) {
        list(settings(scope)).push(capture);
    }
}

fn set_switch(args: &mut Args<'_>, scope: &mut Scope<'_>, of: fn(&mut LogSettings) -> &mut bool) -> Result<(), Fault> {
    args.end()?;
    if in_front(scope) {
        *of(settings(scope)) = !scope.negated;
    }
    Ok(())
}

fn set_traffic_format(scope: &mut Scope<'_>, format: TrafficFormat) {
    if !in_front(scope) {
        return;
    }
    let before = settings(scope).format.replace(format);
    if let (Some(before), SectionKind::Defaults) = (before, scope.section.kind) {
        scope.warn(0, format!("overrides '{}' before it in this 'defaults' section", before.name()));
    }
}

/// The sole argument of a format, at the end of the line.
fn only_format(args: &mut Args<'_>, scope: &Scope<'_>) -> Result<FormatText, Fault> {
    let text = format_text(args, scope)?;
    match args.take() {
        None => Ok(text),
        Some(_) => Err(args.fault("expects only one argument").hint("put the format between quotes, or escape its blanks")),
    }
}

/// The next word, a format.
pub(super) fn format_text(args: &mut Args<'_>, scope: &Scope<'_>) -> Result<FormatText, Fault> {
    let place = here(args, scope);
    Ok(FormatText { text: args.need_bytes("<fmt>")?.to_vec(), place })
}

/// Whether the section has listeners; for a section without listeners, a remark is made that the line has no effect there.
fn in_front(scope: &mut Scope<'_>) -> bool {
    let front = scope.section.kind != SectionKind::Backend;
    if !front {
        scope.warn(0, "is ignored in backends: it is the frontend that logs");
    }
    front
}

/// The place of the next word.
pub(super) fn here(args: &Args<'_>, scope: &Scope<'_>) -> Place {
    let mut place = scope.place.clone();
    if let Some(word) = args.rest().first() {
        place.span = word.span.clone();
    }
    place
}

pub(super) fn settings<'a>(scope: &'a mut Scope<'_>) -> &'a mut LogSettings {
    scope.section.settings.entry()
}

/// RFC 9110 section 5.6.2.
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Longer than any head may be.
const CAPTURE_LIMIT: i64 = i32::MAX as i64;

#[cfg(test)]
mod tests {
    use super::*;
    use terse_config::{Config, Environment, Loader, Settings, Severity, Source};

    fn load(text: &str) -> (Config, Vec<String>) {
        let variables = [("S_addr".to_owned(), "127.0.0.1".to_owned())].into();
        let loader = Loader { tables: vec![KEYWORDS], environment: Environment { variables, ..Environment::default() } };
        let source = Source { name: "test".into(), bytes: text.into() };
        let (config, diagnostics) = loader.load(&[source], Settings::default());
        let said = diagnostics.iter().map(|d| {
            let line = d.place.as_ref().map_or(0, |place| place.line);
            let mark = if d.severity == Severity::Alert { '!' } else { '?' };
            format!("{line}{mark} {}", d.reason)
        });
        (config, said.collect())
    }

    /// The log settings of the last section.
    fn last(text: &str) -> LogSettings {
        let (config, said) = load(text);
        assert_eq!(said, [""; 0]);
        config.sections.last().and_then(|section| section.settings.get::<LogSettings>()).cloned().unwrap_or_default()
    }

    #[test]
    fn a_frontend_adds_its_lines_to_those_of_its_defaults() {
        let text =
            "global\n log stderr local0\ndefaults\n log global\n log-tag all\n option logasap\nfrontend f\n log stdout local1\n";
        let settings = last(text);
        assert!(matches!(settings.lines[..], [LogLine::Global, LogLine::Target(_)]));
        assert_eq!(settings.tag.as_deref(), Some("all"));
        assert!(settings.as_soon_as_possible);
        let settings = last(&format!("{text} no log\n log-tag own\n no option logasap\n"));
        assert!(settings.lines.is_empty());
        assert_eq!(settings.tag.as_deref(), Some("own"));
        assert!(!settings.as_soon_as_possible);
    }

    #[test]
    fn addresses_may_hold_variables() {
        let settings = last("frontend f\n log ${S_addr}:1514 local0\n");
        let [LogLine::Target(target)] = &settings.lines[..] else { panic!("{:?}", settings.lines) };
        assert_eq!(target.address.to_string(), "udp@127.0.0.1:1514");
        assert_eq!(&target.place.text[target.place.span.clone()], "${S_addr}:1514");
    }

    #[test]
    fn formats_keep_their_place() {
        let text =
            last("frontend f\n log-format \"%ci %ST\"\n unique-id-format %pid\n unique-id-header X-Id\n option dontlognull\n");
        let Some(TrafficFormat::Custom(format)) = &text.format else { panic!("{:?}", text.format) };
        assert_eq!(format.text, b"%ci %ST");
        assert_eq!((format.place.line, &format.place.text[format.place.span.clone()]), (2, "\"%ci %ST\""));
        assert_eq!(text.unique_id_format.unwrap().text, b"%pid");
        assert_eq!(text.unique_id_header.as_deref(), Some("X-Id"));
        assert!(text.dont_log_null);
    }

    #[test]
    fn captures_are_numbered_in_order() {
        let settings = last(
            "frontend f\n capture request header Host len 15\n declare capture request len 8\n capture response header ETag len 9\n \
             capture cookie SID= len 32\n",
        );
        let host = Capture { header: Some("host".into()), len: 15 };
        assert_eq!(settings.request_captures, [host, Capture { header: None, len: 8 }]);
        assert_eq!(settings.response_captures, [Capture { header: Some("etag".into()), len: 9 }]);
        assert_eq!(settings.cookie_capture, Some(CookieCapture { prefix: "SID=".into(), len: 32 }));
    }

    #[test]
    fn what_does_nothing_is_said() {
        let (_, said) = load("defaults\n option httplog\n option tcplog\nbackend b\n option httplog\n capture cookie A len 99\n");
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said.iter().all(|line| line.contains('?')), "{said:?}");
        assert!(said[0].starts_with("3?") && said[0].contains("overrides 'option httplog'"), "{said:?}");
    }

    #[test]
    fn faults() {
        for line in [
            "log",
            "log 127.0.0.1",
            "log 127.0.0.1 local0 info err x",
            "no log global",
            "log-tag",
            "log-format",
            "log-format a b",
            "option httplog x",
            "option httpslog x",
            "log-steps error",
            "unique-id-header a:b",
            "capture cookie A 32",
            "capture request header a len 0",
            "capture request header a:b len 9",
            "capture response header a len 9 x",
            "declare capture request 8",
        ] {
            let (_, said) = load(&format!("frontend f\n {line}\n"));
            assert!(said.len() == 1 && said[0].starts_with("2!"), "{line}: {said:?}");
        }
        for text in
            ["global\n log global\n", "global\n log-send-hostname\n log-send-hostname a\n", "defaults\n capture cookie A len 9\n"]
        {
            let (_, said) = load(text);
            assert!(said.len() == 1 && said[0].contains('!'), "{text}: {said:?}");
        }
    }
}
