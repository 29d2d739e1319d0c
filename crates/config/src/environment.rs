//! Facts of the process that a file may ask for, and the keywords that change them for the lines after them.

use crate::args::{Args, Fault};
use crate::keyword::{Keyword, Kind, Scope};
use crate::section::Sections;
use std::borrow::Cow;
use std::collections::HashMap;

/// Facts of the reading process that a file may ask for.
#[derive(Clone, Default, Debug)]
pub struct Environment {
    /// Variables of the environment.
    pub variables: HashMap<String, String>,
    /// The version that `version_atleast()` compares with.
    pub version: String,
    /// Names that `feature()` knows, in capitals.
    pub features: Vec<String>,
    /// Names that `enabled()` knows, in capitals.
    pub enabled: Vec<String>,
    /// The TLS library in use, if there is one.
    pub tls: Option<TlsLibrary>,
    /// Whether `.diag` lines are reported (`-dD`).
    pub diagnostic: bool,
}

/// Facts of the TLS library that conditions may ask for.
#[derive(Clone, Default, Debug)]
pub struct TlsLibrary {
    /// Its own name: `OpenSSL 3.0.15 3 Sep 2024`.
    pub name: String,
    /// The version of OpenSSL's interface that it offers: `3.0.15`.
    pub version: String,
    /// Whether it runs in FIPS mode.
    pub fips: bool,
    /// The number of AWS-LC's interface, when it is AWS-LC.
    pub awslc_api: Option<i64>,
}

impl Environment {
    /// A text with `$VAR` and `${VAR}` replaced; variables that are not set become empty.
    pub fn expand<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some((before, mut rest)) = text.split_once('$') else { return Cow::Borrowed(text) };
        let mut out = String::from(before);
        loop {
            let braced = rest.strip_prefix('{');
            let body = braced.unwrap_or(rest);
            let length = body.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
            let (name, after) = body.split_at(length);
            out.push_str(self.variables.get(name).map_or("", String::as_str));
            let after = braced.and_then(|_| after.strip_prefix('}')).unwrap_or(after);
            match after.split_once('$') {
                Some((text, next)) => {
                    out.push_str(text);
                    rest = next;
                }
                None => {
                    out.push_str(after);
                    return Cow::Owned(out);
                }
            }
        }
    }
}

/// A change that a line makes to the variables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// `setenv`.
    Set(String, String),
    /// `presetenv`: only where it is not set.
    Preset(String, String),
    /// `unsetenv`.
    Unset(Vec<String>),
    /// `resetenv`: all but these are removed.
    Keep(Vec<String>),
}

impl Change {
    /// Applies the change.
    pub(crate) fn apply(self, variables: &mut HashMap<String, String>) {
        match self {
            Change::Set(name, value) => drop(variables.insert(name, value)),
            Change::Preset(name, value) => drop(variables.entry(name).or_insert(value)),
            Change::Unset(names) => names.iter().for_each(|name| drop(variables.remove(name))),
            Change::Keep(names) => variables.retain(|name, _| names.contains(name)),
        }
    }
}

/// The keywords of this crate itself: they act on the reading of the file.
pub(crate) static KEYWORDS: &[Keyword] = &[
    Keyword {
        name: "setenv",
        old_names: &[],
        sections: Sections::GLOBAL,
        arguments: "<name> <value>",
        summary: "Sets a variable of the environment for the lines that follow.",
        kind: Kind::Done(|args, scope| {
            let (name, value) = assignment(args)?;
            scope.change_environment(Change::Set(name, value));
            Ok(())
        }),
    },
    Keyword {
        name: "presetenv",
        old_names: &[],
        sections: Sections::GLOBAL,
        arguments: "<name> <value>",
        summary: "Sets a variable of the environment for the lines that follow, unless it is set.",
        kind: Kind::Done(|args, scope| {
            let (name, value) = assignment(args)?;
            scope.change_environment(Change::Preset(name, value));
            Ok(())
        }),
    },
    Keyword {
        name: "unsetenv",
        old_names: &[],
        sections: Sections::GLOBAL,
        arguments: "<name>...",
        summary: "Removes variables of the environment for the lines that follow.",
        kind: Kind::Done(|args, scope| {
            let mut gone = vec![variable(args)?];
            gone.extend(names(args)?);
            scope.change_environment(Change::Unset(gone));
            Ok(())
        }),
    },
    Keyword {
        name: "resetenv",
        old_names: &[],
        sections: Sections::GLOBAL,
        arguments: "[<name>...]",
        summary: "Removes all variables of the environment but these for the lines that follow.",
        kind: Kind::Done(|args, scope| {
            let kept = names(args)?;
            scope.change_environment(Change::Keep(kept));
            Ok(())
        }),
    },
];

fn assignment(args: &mut Args<'_>) -> Result<(String, String), Fault> {
    Ok((variable(args)?, args.need("<value>")?.to_owned()))
}

fn names(args: &mut Args<'_>) -> Result<Vec<String>, Fault> {
    let mut names = Vec::new();
    while args.peek().is_some() {
        names.push(variable(args)?);
    }
    Ok(names)
}

fn variable(args: &mut Args<'_>) -> Result<String, Fault> {
    let name = args.need("<name>")?;
    match name.is_empty() || name.contains(['=', '\0']) {
        true => Err(args.fault(format!("'{name}' is not the name of a variable"))),
        false => Ok(name.to_owned()),
    }
}

impl Scope<'_> {
    /// Requests a change of the variables before the next line is read.
    fn change_environment(&mut self, change: Change) {
        self.changes.push(change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_without_quotes() {
        let environment =
            Environment { variables: [("a".into(), "1".into()), ("b_2".into(), "x$a".into())].into(), ..Environment::default() };
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("$a", "1"),
            ("${a}", "1"),
            ("<${a}$b_2.$a>", "<1x$a.1>"),
            ("${a", "1"),
            ("$a}", "1}"),
            ("$", ""),
            ("$$a", "1"),
            ("${none}:80", ":80"),
            ("\u{e9}$a\u{e9}", "\u{e9}1\u{e9}"),
        ] {
            assert_eq!(environment.expand(text), expected, "{text}");
        }
    }
}
