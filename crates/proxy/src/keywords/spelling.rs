//! Spelling of field names for clients and servers that match them with regard to case.

use super::options::{back, front};
use super::pages::read_file;
use super::{Keyword, Parser, Sections, done, switch};
use std::sync::Arc;
use terse_config::{Args, Diagnostic, Diagnostics, Fault, Place, Scope, Setting, Severity};
use terse_http::h1::Spellings;

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    global(
        "h1-case-adjust",
        "<from> <to>",
        "How a field's name is spelled, for 'option h1-case-adjust-bogus-client' and 'option h1-case-adjust-bogus-server'.",
        |args, scope| {
            let (from, to) = (args.need("<from>")?, args.need("<to>")?);
            let added = settings_of_process(scope).own.add(from.as_bytes(), to.as_bytes());
            added.map_err(|reason| args.fault(reason))
        },
    ),
    global(
        "h1-case-adjust-file",
        "<file>",
        "The same, in a file: two words a line, '#' begins a comment. Of several lines the last one counts.",
        file,
    ),
    switch(
        "option h1-case-adjust-bogus-client",
        "Names of fields are spelled as 'h1-case-adjust' has them when they are sent to clients.",
        |args, scope| front(args, scope, |o| &mut o.spells_for_clients),
    ),
    switch(
        "option h1-case-adjust-bogus-server",
        "Names of fields are spelled as 'h1-case-adjust' has them when they are sent to servers.",
        |args, scope| back(args, scope, |o| &mut o.spells_for_servers),
    ),
];

const fn global(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { sections: Sections::GLOBAL, ..done(name, arguments, summary, parser) }
}

fn file(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let text = read_file(args, scope)?;
    let mut alone = Spellings::default();
    alone.read(&text).map_err(|(line, reason)| args.fault(format!("'{}': {reason} at line {line}", args.taken())))?;
    let place = scope.place.clone();
    settings_of_process(scope).file = Some((text, place));
    Ok(())
}

fn settings_of_process<'a>(scope: &'a mut Scope<'_>) -> &'a mut SpellingSettings {
    scope.section.settings.entry()
}

/// Settings of `global`.
#[derive(Clone, Default, Debug)]
pub(crate) struct SpellingSettings {
    own: Spellings,
    /// The content of a file, and the line that names it.
    file: Option<(Vec<u8>, Place)>,
}

impl SpellingSettings {
    /// The spellings of both sources; `None` where there are none.
    pub(crate) fn settle(self, diagnostics: &mut Diagnostics) -> Option<Arc<Spellings>> {
        let SpellingSettings { own: mut all, file } = self;
        if let Some((text, place)) = file
            && let Err((line, reason)) = all.read(&text)
        {
            diagnostics.push(Diagnostic::new(Severity::Alert, &place, format!("'h1-case-adjust-file': {reason} at line {line}")));
        }
        Some(all).filter(|all| !all.is_empty()).map(Arc::new)
    }
}

impl Setting for SpellingSettings {
    fn inherit(&self) -> SpellingSettings {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{proxy, said_in};

    #[test]
    fn switches_and_faults() {
        let options =
            proxy("defaults\n option h1-case-adjust-bogus-client\nlisten l\n option h1-case-adjust-bogus-server\n").options;
        assert!(options.spells_for_clients && options.spells_for_servers);
        let options =
            proxy("defaults\n option h1-case-adjust-bogus-client\nlisten l\n no option h1-case-adjust-bogus-client\n").options;
        assert!(!options.spells_for_clients && !options.spells_for_servers);
        for line in
            ["h1-case-adjust", "h1-case-adjust a", "h1-case-adjust a b", "h1-case-adjust a A A", "h1-case-adjust-file /nonexistent"]
        {
            let said = said_in("global", line);
            assert!(said.len() == 1 && said[0].starts_with("2!"), "{line}: {said:?}");
        }
    }
}
