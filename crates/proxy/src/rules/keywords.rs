//! The keywords of rules, and the syntax of their line: `http-request <action> [<arguments>] [if | unless <condition>]`.
//!
//! `tcp-request` and `tcp-response` name the set by a second keyword.

use super::order::{self, Turn};
use super::{ACTIONS, ActionKind, ActionWord, Rule, RuleSet, redirect};
use crate::settings::{ProxySettings, TcpRules};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use terse_config::params::Standing;
use terse_config::reference::plain;
use terse_config::{Args, Fault, Keyword, Kind, Parser, Place, Scope, SectionKind, Sections, near};
use terse_sample::Condition;

/// The table.
pub const KEYWORDS: &[Keyword] = &[
    keyword("http-request", "Judges and edits requests, rule by rule.", |args, scope| rule(args, scope, RuleSet::Request)),
    keyword("http-response", "Judges and edits servers' responses, rule by rule.", |args, scope| {
        rule(args, scope, RuleSet::Response)
    }),
    keyword("http-after-response", "Edits all responses, those that are made here too.", |args, scope| {
        rule(args, scope, RuleSet::AfterResponse)
    }),
    Keyword {
        sections: Sections::FRONT,
        ..keyword("tcp-request connection", "Judges connections as they are accepted.", |args, scope| {
            rule(args, scope, RuleSet::Connection)
        })
    },
    Keyword {
        sections: Sections::FRONT,
        ..keyword(
            "tcp-request session",
            "Judges connections once their first words to us are read, before any stream.",
            |args, scope| rule(args, scope, RuleSet::Session),
        )
    },
    keyword(
        "tcp-request content",
        "Judges the first bytes of a connection, or each request before 'http-request' does.",
        |args, scope| rule(args, scope, RuleSet::Content),
    ),
    Keyword {
        sections: Sections::BACK,
        ..keyword("tcp-response content", "Judges the first bytes of a server's answer.", |args, scope| {
            rule(args, scope, RuleSet::ServerContent)
        })
    },
    Keyword {
        arguments: "<time>",
        ..keyword("tcp-request inspect-delay", "How long 'tcp-request content' rules may wait for bytes.", |args, scope| {
            delay(args, scope, |tcp| &mut tcp.inspect_delay)
        })
    },
    Keyword {
        sections: Sections::BACK,
        arguments: "<time>",
        ..keyword("tcp-response inspect-delay", "How long 'tcp-response content' rules may wait for bytes.", |args, scope| {
            delay(args, scope, |tcp| &mut tcp.server_delay)
        })
    },
    Keyword {
        name: "redirect",
        sections: Sections::PROXY_ONLY,
        arguments: "{location | prefix | scheme} <to> [<option>]... [if | unless <condition>]",
        ..keyword("redirect", "Redirects requests, after all 'http-request' rules of the section.", old_redirect)
    },
];

const fn keyword(name: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    let arguments = "<action> [<argument>]... [if | unless <condition>]";
    Keyword { name, old_names: &[], sections: Sections::PROXY, arguments, summary, kind: Kind::Done(parser) }
}

fn rule(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<(), Fault> {
    in_a_named_section(scope)?;
    let name = args.need("<action>")?;
    let word = find(name, set).ok_or_else(|| unknown(args, name, set))?;
    let parser = match word.kind {
        ActionKind::Done(parser) => parser,
        ActionKind::Refused(reason) => return Err(args.fault(format!("action '{name}' is not supported: {reason}"))),
    };
    let action = parser(args, scope, set)?;
    if args.peek().is_some_and(|word| !matches!(word, "if" | "unless")) {
        let word = args.take().unwrap_or_default();
        if Condition::is_meant_by(word) {
            return Err(args.fault(format!("expects 'if' or 'unless' and a condition, not '{word}'")));
        }
        return Err(args.fault(format!("'{name}' takes no argument '{word}' here")).hint(usage(word_of(name), set)));
    }
    let condition = Condition::parse(args, scope, set.have())?;
    let rule = Arc::new(Rule { action, condition, place: scope.place.clone() });
    order::note_rule(set, scope);
    let settings: &mut ProxySettings = scope.section.settings.entry();
    let rules = match set {
        RuleSet::Request => &mut settings.request_rules,
        RuleSet::Response => &mut settings.response_rules,
        RuleSet::AfterResponse => &mut settings.after_rules,
        RuleSet::Connection => &mut settings.tcp.connection,
        RuleSet::Session => &mut settings.tcp.session,
        RuleSet::Content => &mut settings.tcp.content,
        RuleSet::ServerContent => &mut settings.tcp.server_content,
    };
    let at = rules.partition_point(|rule| !rule.action.is_last());
    let unreached = unreached(&rules[..at], &scope.section.place);
    rules.insert(at, rule);
    scope.warnings.extend(unreached);
    Ok(())
}

/// The warning about a rule after these, if it never runs. It is given for the first such rule alone, and not where a rule
/// that comes from `defaults` ends the set: that is how a set is switched off.
fn unreached(rules: &[Arc<Rule>], section: &Place) -> Option<Fault> {
    let is_end = |rule: &Rule| rule.action.is_final() && rule.condition.is_none();
    let (last, before) = rules.split_last()?;
    if !is_end(last) || before.iter().any(|rule| is_end(rule)) {
        return None;
    }
    let place = &last.place;
    if place.file != section.file || place.line < section.line {
        return None;
    }
    let reason = format!("is never reached: '{}' at {}:{} ends its set and has no condition", shown(last), place.file, place.line);
    Some(Fault::new(0, reason).hint("put it before that line, or write a condition there"))
}

/// A rule's keyword and its next argument, as they stand in its line.
fn shown(rule: &Rule) -> String {
    let Place { text, span, .. } = &rule.place;
    let (keyword, rest) = (&text[span.clone()], &text[span.end..]);
    match rest.split_ascii_whitespace().next() {
        Some(action) => format!("{keyword} {action}"),
        None => keyword.to_owned(),
    }
}

/// `tcp-request inspect-delay`, `tcp-response inspect-delay`; 0 is none.
fn delay(args: &mut Args<'_>, scope: &mut Scope<'_>, of: fn(&mut TcpRules) -> &mut Option<Duration>) -> Result<(), Fault> {
    in_a_named_section(scope)?;
    let delay = args.time("<time>")?;
    args.end()?;
    *of(&mut scope.section.settings.entry::<ProxySettings>().tcp) = Some(delay).filter(|delay| !delay.is_zero());
    Ok(())
}

/// Rules do not pass from a `defaults` section that cannot be named: their origin would not be visible.
fn in_a_named_section(scope: &Scope<'_>) -> Result<(), Fault> {
    match scope.section.kind {
        SectionKind::Defaults if scope.section.name.is_empty() => {
            Err(Fault::new(0, "is not allowed in a 'defaults' section without a name"))
        }
        _ => Ok(()),
    }
}

/// `redirect ...`: the old line, whose texts are no formats.
fn old_redirect(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let action = redirect::parse_old(args, scope)?;
    let condition = Condition::parse(args, scope, RuleSet::Request.have())?;
    let rule = Arc::new(Rule { action, condition, place: scope.place.clone() });
    order::note(Turn::Redirect, scope);
    let rules = &mut scope.section.settings.entry::<ProxySettings>().request_rules;
    let unreached = unreached(rules, &scope.section.place);
    rules.push(rule);
    scope.warnings.extend(unreached);
    Ok(())
}

/// Markdown: all actions with the sets that have them, for the manual.
pub fn reference() -> String {
    let mut words: Vec<_> = ACTIONS.iter().copied().flatten().collect();
    words.sort_by_key(|word| word.name);
    let mut out = String::from("### Actions of rules\n\n");
    for word in words {
        let sets = RuleSet::ALL.into_iter().filter(|set| word.sets & *set as u16 != 0);
        let sets: Vec<_> = sets.map(|set| format!("`{}`", set.name())).collect();
        let closing = if word.name.ends_with('(') && !word.arguments.contains(')') { "...)" } else { "" };
        let blank = if closing.is_empty() && word.name.ends_with(['(', '.']) { "" } else { " " };
        let reason =
            if let ActionKind::Refused(reason) = word.kind { format!(" Refused: {}.", plain(reason)) } else { String::new() };
        let syntax = match word.kind {
            ActionKind::Done(_) => format!("{}{closing}{blank}{}", word.name, word.arguments),
            ActionKind::Refused(_) => format!("{}{closing}", word.name),
        };
        let _ = writeln!(out, "* `{}` ({}): {}{reason}", syntax.trim_end(), sets.join(", "), plain(word.summary));
    }
    out
}

/// State of an action of a set of rules: `http-request`, `add-header`. An action whose name stands for others is known by its
/// beginning.
pub fn standing(set: &str, action: &str) -> Option<Standing> {
    let set = RuleSet::ALL.into_iter().find(|known| known.name() == set)?;
    let stem = |name: &'static str| name.strip_suffix("<n>").unwrap_or(name).trim_end_matches('(');
    let word = words(set).find(|word| word.is(action) || stem(word.name) == action)?;
    Some(match word.kind {
        ActionKind::Done(_) => Standing { name: word.name, kind: "done", reason: None },
        ActionKind::Refused(reason) => Standing { name: word.name, kind: "refused", reason: Some(reason) },
    })
}

/// The action of that name that a set has.
fn find(name: &str, set: RuleSet) -> Option<&'static ActionWord> {
    words(set).find(|word| word.is(name))
}

fn words(set: RuleSet) -> impl Iterator<Item = &'static ActionWord> {
    ACTIONS.iter().copied().flatten().filter(move |word| word.sets & set as u16 != 0)
}

fn unknown(args: &Args<'_>, name: &str, set: RuleSet) -> Fault {
    let elsewhere: Vec<_> =
        RuleSet::ALL.into_iter().filter(|other| find(name, *other).is_some()).map(|other| format!("'{}'", other.name())).collect();
    if !elsewhere.is_empty() {
        return args.fault(format!("action '{name}' is one of {} only", elsewhere.join(" and ")));
    }
    if let Some(word) = words(set).find(|word| word.name.strip_suffix('(') == Some(name)) {
        return args.fault(format!("action '{name}' expects something in parentheses")).hint(usage(word.name, set));
    }
    let fault = args.fault(format!("unknown action '{name}'"));
    match near::nearest(word_of(name), words(set).map(ActionWord::bare)).as_slice() {
        [] => {
            let done = words(set).filter(|word| matches!(word.kind, ActionKind::Done(_)));
            let names: Vec<_> = done.map(ActionWord::bare).collect();
            fault.hint(format!("one of {}", names.join(", ")))
        }
        names => fault.hint(format!("did you mean '{}'?", names.join("' or '"))),
    }
}

/// Syntax of an action.
fn usage(name: &str, set: RuleSet) -> String {
    let arguments = words(set).find(|word| word.bare() == name || word.is(name)).map_or("", |word| word.arguments);
    let blank = if name.ends_with('(') { "" } else { " " };
    format!("write '{}'", format!("{} {name}{blank}{arguments}", set.name()).trim_end())
}

/// A keyword without its parentheses.
fn word_of(name: &str) -> &str {
    name.split('(').next().unwrap_or_default()
}

impl ActionWord {
    /// Whether a keyword of the line is this action.
    fn is(&self, word: &str) -> bool {
        if let Some(number) = self.name.strip_suffix("<n>").and_then(|name| word.strip_prefix(name)) {
            return !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        }
        match self.name.ends_with(['(', '.']) {
            true => word.starts_with(self.name),
            false => word == self.name,
        }
    }

    fn bare(&self) -> &'static str {
        self.name.trim_end_matches(['(', '.']).trim_end_matches("<n>")
    }
}
