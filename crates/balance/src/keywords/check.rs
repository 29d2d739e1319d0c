//! Keywords of health checks: `option httpchk`, `http-check`, `option tcp-check`, `tcp-check`, `timeout check`, `option
//! log-health-checks`.

mod expect;

use super::server_words::{other_address, protocol};
use super::{done, in_back, protocol_check, set, settings, switch};
use crate::check::{Assigned, HttpRequest, Probe, ProbeKind, Programs, Step, StepTls, bytes_of};
use crate::settings::Resolver;
use std::sync::Arc;
use terse_config::params::{self, Param, ParamKind, ParamParser};
use terse_config::{Args, Fault, Keyword, Kind, Parser, Place, Scope, Sections};
use terse_sample::vars::VarNames;
use terse_sample::{AclSet, Compiler, Expr, LogFormat, Needs, Registry, Target, Usage};

pub(super) const HTTPCHK: Keyword =
    done("option httpchk", "[<method>] [<uri>] [<version> [<host>]]", "Checks servers by an HTTP request.", |args, scope| {
        let request = httpchk(args)?;
        if let Some(probe) = own(scope) {
            (probe.kind, probe.request) = (ProbeKind::Http, request);
        }
        Ok(())
    });

pub(super) const HTTP_CHECK: Keyword = step_keyword(
    "http-check",
    "{ send | expect | connect | set-var | set-var-fmt | unset-var | comment | disable-on-404 | send-state } ...",
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

pub(super) const TCP_CHECK: Keyword = step_keyword(
    "tcp-check",
    "{ connect | send | send-lf | send-binary | send-binary-lf | expect | set-var | set-var-fmt | unset-var | comment } ...",
    "Adds a step to checks by TCP.",
    |args, scope| step(args, scope, TCP_STEPS),
);

/// A keyword of proxies and of `healthcheck` sections.
const fn step_keyword(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { sections: Sections::PROXY.or(Sections::HEALTH_CHECK), ..done(name, arguments, summary, parser) }
}

pub(super) const TYPE: Keyword = Keyword {
    sections: Sections::HEALTH_CHECK,
    ..done(
        "type",
        "<check> [<argument>]...",
        "Says how servers are checked, by a word that may stand behind 'option'.",
        |args, scope| {
            let word = args.need("<check>")?;
            let mut known = [&HTTPCHK, &TCP_CHECK_OPTION].into_iter().chain(protocol_check::KEYWORDS);
            let found = known.find(|keyword| keyword.name.strip_prefix("option ") == Some(word));
            let parser = found.and_then(|keyword| if let Kind::Done(parser) = keyword.kind { Some(parser) } else { None });
            let fault = || {
                args.fault(format!("unknown check '{word}'"))
                .hint("one of httpchk, tcp-check, redis-check, smtpchk, ldap-check, pgsql-check, mysql-check, spop-check, ssl-hello-chk")
            };
            parser.ok_or_else(fault)?(args, scope)
        },
    )
};

pub(super) const PROGRAMS: Keyword = Keyword {
    sections: Sections::GLOBAL,
    ..done(
        "external-check",
        "[preserve-env]",
        "Lets programs check servers, with the environment of this process or without.",
        |args, scope| {
            let keep_environment = args.accept("preserve-env");
            args.end()?;
            scope.shared.entry::<Programs>().allow(keep_environment);
            Ok(())
        },
    )
};

pub(super) const EXTERNAL_CHECK: Keyword =
    done("option external-check", "", "Checks servers by the program of 'external-check command'.", |args, scope| {
        args.end()?;
        if in_back(scope) {
            let (place, programs) = (scope.place.clone(), scope.shared.entry::<Programs>().clone());
            let probe = &mut settings(scope).probe;
            (probe.kind, probe.program.place, probe.program.programs) = (ProbeKind::Program, Some(place), programs);
        }
        Ok(())
    });

pub(super) const EXTERNAL_CHECK_COMMAND: Keyword =
    done("external-check command", "<file>", "Names the program that checks servers.", |args, scope| {
        let command = args.need("<file>")?.into();
        args.end()?;
        if in_back(scope) {
            settings(scope).probe.program.command = Some(command);
        }
        Ok(())
    });

pub(super) const EXTERNAL_CHECK_PATH: Keyword =
    done("external-check path", "<path>", "Sets PATH for the program that checks servers.", |args, scope| {
        let path = args.need("<path>")?.into();
        args.end()?;
        if in_back(scope) {
            settings(scope).probe.program.path = Some(path);
        }
        Ok(())
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

/// The section's probe, for a line of its own: settings from the defaults are dropped, except for the kind of check.
fn own<'a>(scope: &'a mut Scope<'_>) -> Option<&'a mut Probe> {
    if !in_back(scope) {
        return None;
    }
    let probe = &mut settings(scope).probe;
    if probe.inherited {
        *probe = Probe { kind: probe.kind, program: probe.program.clone(), ..Probe::default() };
    }
    Some(probe)
}

/// A step under construction, with the context of its expressions' compilation.
pub(super) struct Draft {
    probe: Probe,
    registry: Registry,
    acls: AclSet,
    warnings: Vec<Fault>,
    section: Arc<str>,
    place: Place,
    /// Resolver of names.
    resolver: Option<Resolver>,
}

impl Draft {
    fn compile<T>(
        &mut self,
        word: usize,
        have: Needs,
        compile: impl FnOnce(&mut Compiler<'_>) -> Result<(T, Needs), Fault>,
    ) -> Result<T, Fault> {
        let mut compiler = Compiler {
            registry: &mut self.registry,
            acls: &self.acls,
            have,
            warnings: &mut self.warnings,
            word,
            section: self.section.clone(),
            place: self.place.clone(),
        };
        let (compiled, needs) = compile(&mut compiler)?;
        compiler.check_needs(needs, "the expression").map(|()| compiled)
    }

    fn format(&mut self, args: &mut Args<'_>, what: &str, have: Needs) -> Result<LogFormat, Fault> {
        let (word, text) = (args.position(), args.need_bytes(what)?);
        self.compile(word, have, |compiler| compiler.log_format(text, Usage::Text).map(|format| (format.clone(), format.needs())))
    }

    fn names(&mut self) -> &mut VarNames {
        &mut self.registry.names
    }
}

/// Parses a line that adds a step; a frontend's adds none.
fn step(args: &mut Args<'_>, scope: &mut Scope<'_>, table: &[Param<Draft>]) -> Result<(), Fault> {
    let probe = own(scope).map(std::mem::take);
    let is_ours = probe.is_some();
    let mut draft = Draft {
        probe: probe.unwrap_or_default(),
        registry: scope.shared.take().unwrap_or_default(),
        acls: scope.section.settings.take().unwrap_or_default(),
        warnings: Vec::new(),
        section: scope.section.name.clone(),
        place: scope.place.clone(),
        resolver: scope.shared.get::<Resolver>().cloned(),
    };
    let read = params::apply_one(args, "action", table, &mut draft);
    *scope.shared.entry() = draft.registry;
    *scope.section.settings.entry() = draft.acls;
    scope.warnings.append(&mut draft.warnings);
    if is_ours {
        settings(scope).probe = draft.probe;
    }
    read
}

fn httpchk(args: &mut Args<'_>) -> Result<HttpRequest, Fault> {
    let mut request = HttpRequest::default();
    let Some(first) = args.take() else { return Ok(request) };
    match args.take() {
        None => request.uri = Some(LogFormat::text(first.as_bytes())),
        Some(uri) => (request.method, request.uri) = (Some(first.into()), Some(LogFormat::text(uri.as_bytes()))),
    }
    if let Some(version) = args.take() {
        // Before there was `http-check send`, fields were smuggled in after the version.
        let (version, fields) = version.split_once("\r\n").unwrap_or((version, ""));
        request.version = Some(checked_version(args, version)?);
        let (fields, body) = fields.split_once("\r\n\r\n").unwrap_or((fields, ""));
        for line in fields.split("\r\n").filter(|line| !line.is_empty()) {
            let Some((name, value)) = line.split_once(':') else { return Err(args.fault(format!("'{line}' is no header field"))) };
            request.fields.push((name.into(), LogFormat::text(value.trim().as_bytes())));
        }
        request.body = Some(body).filter(|body| !body.is_empty()).map(|body| LogFormat::text(body.as_bytes()));
    }
    if let Some(host) = args.take() {
        request.fields.push(("host".into(), LogFormat::text(host.as_bytes())));
    }
    Ok(request)
}

const CONNECT: &str = "[default] [addr <address>[:<port>]] [port <port>] [send-proxy] [via-socks4] [ssl] [sni <name>] \
     [alpn <protocols>] [proto h1|h2] [linger] [comment <text>]";

/// Actions of `http-check`.
pub(super) const HTTP_STEPS: &[Param<Draft>] = &[
    action(
        "send",
        "[meth <method>] [uri <uri> | uri-lf <format>] [ver <version>] [hdr <name> <format>]* [body <text> | body-lf <format>]",
        "Sends a request.",
        |args, draft| {
            let request = send(args, draft)?;
            behind(args, &draft.probe.http, |step| matches!(step, Step::Connect { .. }), "connect")?;
            draft.probe.http.push(Step::Request(request));
            Ok(())
        },
    ),
    action("expect", expect::ARGUMENTS, "Says what the answer must be.", |args, draft| {
        let expect = expect::http(args, draft)?;
        behind(args, &draft.probe.http, |step| matches!(step, Step::Request(_) | Step::Expect(_)), "send")?;
        draft.probe.http.push(Step::Expect(expect));
        Ok(())
    }),
    action("connect", CONNECT, "Opens a new connection.", |args, draft| {
        let step = connect(args, draft.resolver.as_ref(), true)?;
        behind(args, &draft.probe.http, |step| matches!(step, Step::Expect(_)), "expect")?;
        begins_with_connect(args, &draft.probe.http)?;
        draft.probe.http.push(step);
        Ok(())
    }),
    action("comment", "<text>", "Says something to the reader.", comment),
    action("disable-on-404", "", "Takes a 404 for a server that wants no new clients.", |_, draft| {
        draft.probe.stops_on_404 = true;
        Ok(())
    }),
    action("send-state", "", "Tells the server how it is doing, by the field X-Haproxy-Server-State.", |_, draft| {
        draft.probe.tells_state = true;
        Ok(())
    }),
    action("set-var(", "<name>[,<condition>...]) <expression>", "Sets a variable to a value.", |args, draft| {
        let step = set_var(args, draft)?;
        draft.probe.http.push(step);
        Ok(())
    }),
    action("set-var-fmt(", "<name>[,<condition>...]) <format>", "Sets a variable to a text.", |args, draft| {
        let step = set_var_fmt(args, draft)?;
        draft.probe.http.push(step);
        Ok(())
    }),
    action("unset-var(", "<name>)", "Unsets a variable.", |args, draft| {
        let step = unset_var(args, draft)?;
        draft.probe.http.push(step);
        Ok(())
    }),
];

/// Actions of `tcp-check`.
pub(super) const TCP_STEPS: &[Param<Draft>] = &[
    action("connect", CONNECT, "Opens a new connection.", |args, draft| {
        let step = connect(args, draft.resolver.as_ref(), false)?;
        begins_with_connect(args, &draft.probe.tcp)?;
        draft.probe.tcp.push(step);
        Ok(())
    }),
    action("send", "<text> [comment <text>]", "Sends a text.", |args, draft| {
        let bytes = args.need_bytes("<text>")?.to_vec();
        draft.probe.tcp.push(Step::Send { bytes, comment: trailing_comment(args)? });
        Ok(())
    }),
    action("send-binary", "<hexadecimal> [comment <text>]", "Sends bytes.", |args, draft| {
        let bytes = hexadecimal(args)?;
        draft.probe.tcp.push(Step::Send { bytes, comment: trailing_comment(args)? });
        Ok(())
    }),
    action("expect", expect::ARGUMENTS, "Says what the answer must be.", |args, draft| {
        let expect = expect::tcp(args, draft)?;
        draft.probe.tcp.push(Step::Expect(expect));
        Ok(())
    }),
    action("comment", "<text>", "Says something to the reader.", comment),
    action("send-lf", "<format> [comment <text>]", "Sends what a format says.", |args, draft| {
        let format = draft.format(args, "<format>", Needs::SERVER)?;
        draft.probe.tcp.push(Step::SendFormat { format, hexadecimal: false, comment: trailing_comment(args)? });
        Ok(())
    }),
    action(
        "send-binary-lf",
        "<format> [comment <text>]",
        "Sends the bytes whose hexadecimal digits a format says.",
        |args, draft| {
            let format = draft.format(args, "<format>", Needs::SERVER)?;
            draft.probe.tcp.push(Step::SendFormat { format, hexadecimal: true, comment: trailing_comment(args)? });
            Ok(())
        },
    ),
    action("set-var(", "<name>[,<condition>...]) <expression>", "Sets a variable to a value.", |args, draft| {
        let step = set_var(args, draft)?;
        draft.probe.tcp.push(step);
        Ok(())
    }),
    action("set-var-fmt(", "<name>[,<condition>...]) <format>", "Sets a variable to a text.", |args, draft| {
        let step = set_var_fmt(args, draft)?;
        draft.probe.tcp.push(step);
        Ok(())
    }),
    action("unset-var(", "<name>)", "Unsets a variable.", |args, draft| {
        let step = unset_var(args, draft)?;
        draft.probe.tcp.push(step);
        Ok(())
    }),
];

const fn action(name: &'static str, arguments: &'static str, summary: &'static str, parser: ParamParser<Draft>) -> Param<Draft> {
    Param { name, arguments, summary, kind: ParamKind::Done(parser) }
}

/// Refuses a step of HTTP that is neither first nor directly after a fitting step.
fn behind(args: &Args<'_>, steps: &[Step], fits: fn(&Step) -> bool, missing: &str) -> Result<(), Fault> {
    match steps.iter().rfind(|step| !is_of_variables(step)) {
        Some(last) if !fits(last) => Err(args.fault(format!("a step '{missing}' is missing before this one"))),
        _ => Ok(()),
    }
}

/// If any connection is opened by a step, all must be.
fn begins_with_connect(args: &Args<'_>, steps: &[Step]) -> Result<(), Fault> {
    match steps.iter().find(|step| !is_of_variables(step)) {
        None | Some(Step::Connect { .. }) => Ok(()),
        Some(_) => Err(args.fault("the first step must be a 'connect', too, where there is one")),
    }
}

fn is_of_variables(step: &Step) -> bool {
    matches!(step, Step::SetVar { .. } | Step::UnsetVar(_))
}

fn set_var(args: &mut Args<'_>, draft: &mut Draft) -> Result<Step, Fault> {
    let target = Target::parse(in_parentheses(args)?, draft.names()).map_err(|reason| args.fault(reason))?;
    Ok(Step::SetVar { target, value: Assigned::Value(expression(args, draft)?) })
}

fn set_var_fmt(args: &mut Args<'_>, draft: &mut Draft) -> Result<Step, Fault> {
    let target = Target::parse(in_parentheses(args)?, draft.names()).map_err(|reason| args.fault(reason))?;
    let format = draft.format(args, "<format>", ANSWERED)?;
    Ok(Step::SetVar { target, value: Assigned::Text(format) })
}

fn unset_var(args: &mut Args<'_>, draft: &mut Draft) -> Result<Step, Fault> {
    draft.names().slot(in_parentheses(args)?).map(Step::UnsetVar).map_err(|reason| args.fault(reason))
}

/// Text in the parentheses of the action's name.
fn in_parentheses<'a>(args: &Args<'a>) -> Result<&'a str, Fault> {
    let inside = args.taken().split_once('(').and_then(|(_, inside)| inside.strip_suffix(')'));
    inside.map(str::trim).ok_or_else(|| args.fault(format!("'{}' has no closing parenthesis", args.taken())))
}

fn send(args: &mut Args<'_>, draft: &mut Draft) -> Result<HttpRequest, Fault> {
    let mut request = HttpRequest::default();
    while let Some(word) = args.take() {
        match word {
            "meth" => request.method = Some(args.need("<method>")?.into()),
            "uri" => request.uri = Some(LogFormat::text(args.need_bytes("<uri>")?)),
            "uri-lf" => request.uri = Some(draft.format(args, "<format>", Needs::SERVER)?),
            "ver" => {
                let version = args.need("<version>")?;
                request.version = Some(checked_version(args, version)?);
            }
            "hdr" => {
                let name = args.need("<name>")?.to_owned();
                request.fields.push((name, draft.format(args, "<format>", Needs::SERVER)?));
            }
            "body" => request.body = Some(LogFormat::text(args.need_bytes("<text>")?)),
            "body-lf" => request.body = Some(draft.format(args, "<format>", Needs::SERVER)?),
            "comment" => drop(args.need("<text>")?),
            _ => return Err(args.fault(format!("unknown word '{word}'")).hint("known are meth, uri, ver, hdr, body and comment")),
        }
    }
    Ok(request)
}

fn connect(args: &mut Args<'_>, resolver: Option<&Resolver>, http: bool) -> Result<Step, Fault> {
    let (mut address, mut port, mut comment) = (None, None, None);
    let (mut default, mut tls, mut name, mut protocols) = (false, false, None, Vec::new());
    let (mut announces, mut via_socks4, mut proto) = (false, false, None);
    while let Some(word) = args.take() {
        match word {
            "default" => default = true,
            "linger" => args.changes_nothing("a check's connection always ends by a reset"),
            "addr" => address = Some(other_address(args, resolver)?),
            "port" => port = Some(args.integer("<port>", 1..=65535)? as u16),
            "comment" => comment = Some(args.need("<text>")?.to_owned()),
            "send-proxy" => announces = true,
            "via-socks4" => via_socks4 = true,
            "proto" => proto = Some(protocol(args)?),
            "ssl" => tls = true,
            "sni" => name = Some(args.need("<name>")?.to_owned()),
            "alpn" => {
                protocols = terse_tls::protocols(args.need("<protocols>")?).map_err(|reason| args.fault(reason))?;
                if let Some(name) = protocols.iter().find(|name| http && !terse_tls::is_http_protocol(name)) {
                    args.warn(format!("'{name}' is not spoken to servers, so it is not offered to them"));
                }
            }
            _ => {
                return Err(args
                    .fault(format!("unknown word '{word}'"))
                    .hint("known are default, addr, port, send-proxy, via-socks4, ssl, sni, alpn, proto, linger and comment"));
            }
        }
    }
    let port = port.or(address.and_then(|(_, port)| port));
    let address = address.map(|(ip, _)| ip);
    let tls = tls.then_some(StepTls { name, protocols });
    Ok(Step::Connect { address, port, announces, via_socks4, protocol: proto, tls, default, comment })
}

fn expression(args: &mut Args<'_>, draft: &mut Draft) -> Result<Box<Expr>, Fault> {
    let (word, text) = (args.position(), args.need_bytes("<expression>")?);
    let compiled = draft
        .compile(word, ANSWERED, |compiler| compiler.expression(text).map(|expression| (expression.clone(), expression.needs())));
    compiled.map(Box::new)
}

fn hexadecimal(args: &mut Args<'_>) -> Result<Vec<u8>, Fault> {
    let text = args.need("<hexadecimal>")?;
    bytes_of(text.as_bytes()).ok_or_else(|| args.fault(format!("'{text}' is not made of pairs of hexadecimal digits")))
}

fn comment(args: &mut Args<'_>, _: &mut Draft) -> Result<(), Fault> {
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

/// Data that expressions see once there is an answer.
const ANSWERED: Needs = Needs::RESPONSE.or(Needs::SERVER);
