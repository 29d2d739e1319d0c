//! `early-hint`: fields of an interim response that goes to the client ahead of the final one (RFC 8297).

use super::{Action, ActionWord, Flow, REQUEST, RuleSet, done, field, rewrite};
use crate::stream::Stream;
use terse_config::{Args, Fault, Scope};
use terse_message::{FieldName, Response, Version};
use terse_sample::{LogFormat, Usage};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[done(
    "early-hint",
    REQUEST,
    "<name> <fmt>",
    "Sends a field in a 103 response ahead; fields of one set of rules go together.",
    parse,
)];

struct Hint {
    name: FieldName,
    value: LogFormat,
}

impl Action for Hint {
    fn run(&self, stream: &mut Stream) -> Flow {
        // Interim responses came with HTTP/1.1 (RFC 9110 section 15.2).
        if stream.facts.version.is_none_or(|version| version < Version::Http11) {
            return Flow::Next;
        }
        let done = rewrite::with_text(&self.value, stream, |stream, value| {
            let limit = rewrite::limit(stream, RuleSet::AfterResponse);
            let hints = stream.facts.changes().hints.get_or_insert_with(|| {
                let mut response = Response::default();
                (response.version, response.status) = (Version::Http11, 103);
                Box::new(response)
            });
            let fits = rewrite::fits(&hints.fields, self.name.bytes().len() + value.len(), limit);
            if fits {
                hints.fields.push_named(&self.name, value);
            }
            fits
        });
        rewrite::outcome(done, stream)
    }
}

fn parse(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let name = field::field_name(args)?;
    // An interim response has no body, so no field may give its end.
    let framing = field::warn_of_framing(args, &name);
    let value = LogFormat::parse(args, scope, set.have(), Usage::Http)?;
    Ok(if framing { Box::new(field::Nothing) } else { Box::new(Hint { name, value }) })
}
