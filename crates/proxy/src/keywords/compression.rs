//! Conditions of `compression`. Its other keywords are `terse-compress`'s, which knows no conditions.

use super::{done, settings};
use crate::rules::RuleSet;
use terse_config::{Args, Fault, Keyword, Parser, Scope, Sections};
use terse_sample::{Condition, Needs};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    word(
        "compression if",
        "Compresses the responses for which the condition holds. Each such line must allow it.",
        |args, scope| response(args, scope, true),
    ),
    word("compression if-res", "The same as `compression if`.", |args, scope| response(args, scope, true)),
    word("compression unless", "Leaves alone the responses for which the condition holds.", |args, scope| {
        response(args, scope, false)
    }),
    word("compression unless-res", "The same as `compression unless`.", |args, scope| response(args, scope, false)),
    word(
        "compression if-req",
        "Compresses the bodies of requests for which the condition holds. Each such line must allow it.",
        |args, scope| request(args, scope, true),
    ),
    word("compression unless-req", "Leaves alone the bodies of requests for which the condition holds.", |args, scope| {
        request(args, scope, false)
    }),
];

const fn word(name: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { sections: Sections::PROXY_ONLY, ..done(name, "<condition>", summary, parser) }
}

fn response(args: &mut Args<'_>, scope: &mut Scope<'_>, positive: bool) -> Result<(), Fault> {
    // The condition sees the request as it was sent to the server, and the response as `http-response` has left it.
    let condition = Condition::parse_terms(args, scope, RuleSet::AfterResponse.have().or(Needs::REQUEST), positive)?;
    settings(scope).compression.response.push(condition);
    Ok(())
}

fn request(args: &mut Args<'_>, scope: &mut Scope<'_>, positive: bool) -> Result<(), Fault> {
    let condition = Condition::parse_terms(args, scope, Needs::REQUEST, positive)?;
    settings(scope).compression.request.push(condition);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{proxy, said_in};

    #[test]
    fn lines_of_a_proxy() {
        let settings = proxy(
            "listen l\n acl old path_beg /old\n compression if { path_end .js } or { path_end .css }\n compression unless old\n \
             compression if-res TRUE\n compression unless-res { res.hdr(x) y }\n compression unless-req { method PUT }\n",
        );
        assert_eq!((settings.compression.response.len(), settings.compression.request.len()), (4, 1));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, said) in [
            ("compression if", "expects a condition"),
            ("compression unless { path /a", "missing closing '}'"),
            ("compression if jpeg", "no such ACL: 'jpeg'"),
            ("compression if-req { res.hdr(x) y }", "needs the response's head"),
        ] {
            let problems = said_in("listen l", line);
            assert!(problems.len() == 1 && problems[0].contains(said), "{line}: {problems:?}");
        }
        let said = said_in("defaults", "compression if TRUE");
        assert!(said.len() == 1 && said[0].contains("not allowed in 'defaults'"), "{said:?}");
    }
}
