//! Which backend a frontend's requests go to.

use super::{done, in_front, settings};
use crate::rules::order::{self, Turn};
use crate::settings::{Switch, SwitchTarget};
use std::sync::Arc;
use terse_config::{Args, Fault, Keyword, Place, Scope, Sections};
use terse_sample::{Condition, LogFormat, Needs, Usage};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    done("default_backend", "<backend>", "The backend of requests that no 'use_backend' takes.", default_backend),
    Keyword {
        sections: Sections::PROXY_ONLY,
        ..done(
            "use_backend",
            "<backend> [if | unless <condition>]",
            "The backend of requests for which the condition holds; the name may hold expressions.",
            use_backend,
        )
    },
    Keyword {
        sections: Sections::BACK_ONLY,
        ..done("be-unpublished", "", "Rules of other proxies pass over this backend, until it is published.", |args, scope| {
            args.end()?;
            settings(scope).unpublished = true;
            Ok(())
        })
    },
    Keyword {
        sections: Sections::FRONT_ONLY,
        ..done(
            "force-be-switch",
            "{if | unless} <condition>",
            "Requests for which the condition holds go to backends that are not published, too.",
            force_switch,
        )
    },
];

fn force_switch(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    match Condition::parse(args, scope, HAVE)? {
        Some(condition) => settings(scope).forced_switches.push(condition),
        None => return Err(args.fault("expects 'if' or 'unless' and a condition")),
    }
    Ok(())
}

fn default_backend(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let place = next_word(args, scope);
    let name = args.need("<backend>")?.to_owned();
    args.end()?;
    if in_front(scope) {
        settings(scope).default_backend = Some((name, place));
    } else {
        settings(scope).idle_targets.push(("default_backend", name, place));
    }
    Ok(())
}

fn use_backend(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let place = next_word(args, scope);
    let format = LogFormat::parse(args, scope, HAVE, Usage::Text)?;
    let target = match format.as_text() {
        Some(name) => SwitchTarget::Name(String::from_utf8_lossy(name).into_owned()),
        None => SwitchTarget::Format(format),
    };
    let condition = Condition::parse(args, scope, HAVE)?;
    if let Some(word) = args.peek() {
        let reason = format!("unexpected keyword '{word}' after switching rule, only 'if' and 'unless' are allowed");
        return Err(Fault::new(args.position(), reason));
    }
    if in_front(scope) {
        order::note(Turn::Backend, scope);
        settings(scope).switches.push(Arc::new(Switch { target, condition, place }));
    } else if let SwitchTarget::Name(name) = target {
        settings(scope).idle_targets.push(("use_backend", name, place));
    }
    Ok(())
}

/// The place of the next argument.
fn next_word(args: &Args<'_>, scope: &Scope<'_>) -> Place {
    args.rest().first().map_or_else(|| scope.place.clone(), |word| scope.place.at(word.span.clone()))
}

/// Data that is there when a backend is chosen: the request, with as much of its body as was waited for.
const HAVE: Needs = Needs::REQUEST.or(Needs::BODY).or(Needs::BYTES);

#[cfg(test)]
mod tests {
    use super::super::tests::{proxy, said_in};
    use super::*;

    #[test]
    fn names_and_expressions() {
        let settings =
            proxy("frontend f\n acl a path /a\n use_backend b if a\n use_backend \"%[hdr(host)]\"\n default_backend c\n");
        let names = settings.switches.iter().map(|switch| match &switch.target {
            SwitchTarget::Name(name) => (name.as_str(), switch.condition.is_some()),
            SwitchTarget::Format(_) => ("format", switch.condition.is_some()),
        });
        assert_eq!(names.collect::<Vec<_>>(), [("b", true), ("format", false)]);
        let (name, place) = settings.default_backend.unwrap();
        assert_eq!((name.as_str(), place.line, &place.text[place.span.clone()]), ("c", 5, "c"));
    }

    #[test]
    fn lines_of_a_defaults_section_are_inherited_but_not_its_switches() {
        let settings = proxy("defaults\n default_backend b\nfrontend f\n");
        assert_eq!(settings.default_backend.unwrap().0, "b");
        let said = said_in("defaults", "use_backend b");
        assert!(said[0].contains("not allowed in 'defaults' section"), "{said:?}");
    }

    #[test]
    fn faults() {
        for line in [
            "default_backend",
            "default_backend a b",
            "use_backend",
            "use_backend b when x",
            "use_backend b if nothing",
            "use_backend %[x]",
        ] {
            let said = said_in("frontend f", line);
            assert!(said.len() == 1 && said[0].starts_with("2!"), "{line}: {said:?}");
        }
    }
}
