//! Keywords within a line: parameters of `bind` and `server`, actions of `http-request`, and their like.
//!
//! They are entries of tables as keywords are, with the same three kinds, and fill a draft of the line's type `T`.

use crate::args::{Args, Fault};
use crate::near;
use std::collections::HashSet;

/// A parameter of a line.
///
/// A name that ends in `(` stands for every word that begins with it, such as `set-var(` for `set-var(txn.a)`. The parser
/// finds the whole word as [`Args::taken`].
#[derive(Debug)]
pub struct Param<T: 'static> {
    /// Its keyword.
    pub name: &'static str,
    /// Its arguments as the manual writes them. A parameter that is merely accepted skips as many words as this has.
    pub arguments: &'static str,
    /// Its effect, one sentence.
    pub summary: &'static str,
    /// Done, accepted or refused.
    pub kind: ParamKind<T>,
}

/// The three kinds of parameter; there is no fourth.
#[derive(Debug)]
pub enum ParamKind<T> {
    /// Implemented, by this parser.
    Done(ParamParser<T>),
    /// Accepted without effect, for this reason.
    Accepted(&'static str),
    /// Understood and not built: an error, with this reason or the name of a replacement.
    Refused(&'static str),
}

/// Function that reads the parameter's arguments and fills the draft. The parameter itself has been taken.
pub type ParamParser<T> = fn(&mut Args<'_>, &mut T) -> Result<(), Fault>;

/// Support state of a keyword, for the matrix of supported keywords.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The keyword.
    pub name: &'static str,
    /// `done`, `accepted` or `refused`.
    pub kind: &'static str,
    /// The reason why it is accepted or refused.
    pub reason: Option<&'static str>,
}

/// Support states of the keywords of a table.
pub fn standings<T>(table: &[Param<T>]) -> Vec<Standing> {
    let standing = |param: &Param<T>| {
        let (kind, reason) = match param.kind {
            ParamKind::Done(_) => ("done", None),
            ParamKind::Accepted(reason) => ("accepted", Some(reason)),
            ParamKind::Refused(reason) => ("refused", Some(reason)),
        };
        Standing { name: param.name, kind, reason }
    };
    table.iter().map(standing).collect()
}

/// Reads `name [arguments]` until the words end; `what` is the kind of the names: `parameter`.
pub fn apply<T>(args: &mut Args<'_>, what: &str, table: &[Param<T>], draft: &mut T) -> Result<(), Fault> {
    while args.peek().is_some() {
        apply_one(args, what, table, draft)?;
    }
    Ok(())
}

/// Reads a single `name [arguments]`, and leaves the words after it.
pub fn apply_one<T>(args: &mut Args<'_>, what: &str, table: &[Param<T>], draft: &mut T) -> Result<(), Fault> {
    apply_one_of(args, what, table, draft, || standings(table))
}

/// The same for a line with several tables: `all` has the words of each, for the hint about a word that none knows.
pub fn apply_one_of<T>(
    args: &mut Args<'_>,
    what: &str,
    table: &[Param<T>],
    draft: &mut T,
    all: impl FnOnce() -> Vec<Standing>,
) -> Result<(), Fault> {
    let name = args.need(&format!("<{what}>"))?;
    let Some(param) = table.iter().find(|param| param.is(name)) else {
        let fault = args.fault(format!("unknown {what} '{name}'"));
        return Err(near::hinted(fault, name, all().into_iter().map(|standing| standing.name)));
    };
    match param.kind {
        ParamKind::Done(parser) => parser(args, draft),
        ParamKind::Accepted(why) => {
            args.changes_nothing(why);
            param.arguments.split_whitespace().try_for_each(|argument| args.need_bytes(argument).map(|_| ()))
        }
        ParamKind::Refused(reason) => Err(args.fault(format!("'{name}' is not supported: {reason}"))),
    }
}

impl<T> Param<T> {
    /// Whether a word of the line is this parameter.
    pub fn is(&self, word: &str) -> bool {
        match self.name.ends_with('(') {
            true => word.starts_with(self.name),
            false => word == self.name,
        }
    }
}

/// The faults of a table: names twice, texts left empty, skipped arguments that cannot be counted.
pub fn table_is_sound<T>(table: &[Param<T>]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = HashSet::new();
    for Param { name, arguments, summary, kind } in table {
        if !seen.insert(name) {
            problems.push(format!("'{name}' stands twice"));
        }
        if name.is_empty() || name.contains(' ') {
            problems.push(format!("no word is '{name}'"));
        }
        if !summary.ends_with('.') {
            problems.push(format!("the summary of '{name}' is no sentence"));
        }
        if matches!(kind, ParamKind::Accepted("") | ParamKind::Refused("")) {
            problems.push(format!("'{name}' has no reason"));
        }
        if matches!(kind, ParamKind::Accepted(_)) && arguments.contains(['[', '{', '|', '.']) {
            problems.push(format!("the arguments of '{name}' cannot be counted"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Debug, PartialEq)]
    struct Draft {
        weight: i64,
        name: String,
    }

    const TABLE: &[Param<Draft>] = &[
        Param {
            name: "weight",
            arguments: "<n>",
            summary: "Sets the weight.",
            kind: ParamKind::Done(|args, draft| {
                draft.weight = args.integer("<n>", 0..=256)?;
                Ok(())
            }),
        },
        Param {
            name: "set-name(",
            arguments: "",
            summary: "Sets the name.",
            kind: ParamKind::Done(|args, draft| {
                draft.name = args.taken().into();
                Ok(())
            }),
        },
        Param { name: "nice", arguments: "<n>", summary: "Does nothing.", kind: ParamKind::Accepted("tasks have no priority") },
        Param { name: "quic", arguments: "", summary: "Does not exist.", kind: ParamKind::Refused("there is no QUIC") },
    ];

    fn read(line: &str) -> (Result<(), Fault>, Draft, usize) {
        let words = crate::words::split(line.as_bytes(), &|_| None).unwrap().words;
        let (mut args, mut draft) = (Args::new(&words, 1), Draft::default());
        let outcome = apply(&mut args, "parameter", TABLE, &mut draft);
        (outcome, draft, args.into_remarks().accepted.len())
    }

    #[test]
    fn names_and_arguments_until_the_end() {
        let (outcome, draft, accepted) = read("server weight 4 nice 3 set-name(x)");
        assert_eq!((outcome, accepted), (Ok(()), 1));
        assert_eq!(draft, Draft { weight: 4, name: "set-name(x)".into() });
    }

    #[test]
    fn unsound_tables_are_told() {
        const BAD: &[Param<Draft>] = &[
            Param { name: "a", arguments: "[<n>]", summary: "Does.", kind: ParamKind::Accepted("so") },
            Param { name: "a", arguments: "", summary: "", kind: ParamKind::Refused("") },
        ];
        assert_eq!(table_is_sound(TABLE), [""; 0]);
        assert_eq!(
            table_is_sound(BAD),
            [
                "the arguments of 'a' cannot be counted",
                "'a' stands twice",
                "the summary of 'a' is no sentence",
                "'a' has no reason"
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_said_at_its_word() {
        assert_eq!(read("server wieght 4").0, Err(Fault::new(1, "unknown parameter 'wieght'").hint("did you mean 'weight'?")));
        assert_eq!(read("server weight 4 quic").0, Err(Fault::new(3, "'quic' is not supported: there is no QUIC")));
        assert_eq!(read("server weight 400").0.unwrap_err().word, 2);
        assert_eq!(read("server nice").0, Err(Fault::new(1, "expects <n> as argument")));
    }
}
