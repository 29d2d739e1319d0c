//! Log profiles: the formats of a target's lines, step by step, in place of the proxy's own formats.
//!
//! ```text
//!   log-profile section -> ProfileSettings -> (the plan compiles) -> Profile
//!                                                                      ^
//!   log <target> ... profile NAME, do-log profile NAME ----------------+
//! ```

use super::formats::FormatText;
use super::keywords::{format_text, settings};
use super::origin::Origin;
use std::sync::{Arc, OnceLock};
use terse_config::{Args, Fault, Keyword, Kind, Place, Scope, Sections, Setting, near};
use terse_sample::LogFormat;

/// A `log-profile` section, as it was written.
#[derive(Clone, Default, Debug)]
pub struct ProfileSettings {
    /// `on`, in order: of two lines for a step the later adds to the earlier.
    pub steps: Vec<(Step, StepSettings)>,
}

impl Setting for ProfileSettings {
    fn inherit(&self) -> ProfileSettings {
        self.clone()
    }
}

/// The step of an `on` line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// `any`: every step that has no line of its own.
    Any,
    /// The step of this origin.
    One(Origin),
}

/// Settings of an `on` line.
#[derive(Clone, Default, Debug)]
pub struct StepSettings {
    /// `format`: instead of the proxy's format.
    pub format: Option<FormatText>,
    /// `sd`: instead of the proxy's structured data.
    pub structured_data: Option<FormatText>,
    /// `drop`: no line at all.
    pub drop: bool,
}

/// A profile, compiled.
#[derive(Debug)]
pub struct Profile {
    /// Its name.
    pub name: Arc<str>,
    /// `log-tag`.
    pub(super) tag: Option<Box<str>>,
    steps: Box<[(Step, StepFormats)]>,
}

/// Formats of a step's lines.
#[derive(Debug)]
pub(crate) struct StepFormats {
    pub(crate) format: Option<LogFormat>,
    pub(crate) structured_data: Option<LogFormat>,
    pub(crate) drop: bool,
}

impl Profile {
    /// Creates a profile with the texts compiled by `compile`, which reports those that it cannot compile; these are left
    /// out.
    pub fn new(
        name: Arc<str>,
        tag: Option<&str>,
        settings: &ProfileSettings,
        compile: &mut dyn FnMut(&FormatText) -> Option<LogFormat>,
    ) -> Profile {
        let mut of = |text: &Option<FormatText>| text.as_ref().and_then(&mut *compile);
        let steps = settings.steps.iter().map(|(step, said)| {
            let formats = StepFormats { format: of(&said.format), structured_data: of(&said.structured_data), drop: said.drop };
            (*step, formats)
        });
        Profile { name, tag: tag.map(Into::into), steps: steps.collect() }
    }

    /// Formats of a step; `None`: the proxy's own formats hold.
    pub(crate) fn of(&self, origin: Origin) -> Option<&StepFormats> {
        let find = |wanted| self.steps.iter().find(|(step, _)| *step == wanted).map(|(_, formats)| formats);
        find(Step::One(origin)).or_else(|| find(Step::Any))
    }
}

/// Uses of profiles by rules (`do-log profile`), in the shared settings: the plan reports those that do not exist.
#[derive(Clone, Default, Debug)]
pub struct ProfileUses {
    /// All of them.
    pub uses: Vec<ProfileUse>,
}

/// A profile that a rule names.
#[derive(Clone, Debug)]
pub struct ProfileUse {
    /// Its name.
    pub name: Arc<str>,
    /// Place of its name in the configuration.
    pub place: Place,
    /// The profile, once the plan has found it.
    pub found: Arc<OnceLock<Arc<Profile>>>,
}

impl Setting for ProfileUses {
    fn inherit(&self) -> ProfileUses {
        self.clone()
    }
}

/// The table.
pub const KEYWORDS: &[Keyword] = &[
    Keyword {
        name: "log-tag",
        old_names: &[],
        sections: Sections::LOG_PROFILE,
        arguments: "<string>",
        summary: "The program's name in the lines of targets that have this profile.",
        kind: Kind::Done(log_tag),
    },
    Keyword {
        name: "on",
        old_names: &[],
        sections: Sections::LOG_PROFILE,
        arguments: "<step> [drop] [format <fmt>] [sd <fmt>]",
        summary: "What the lines of a step look like, or that there are none: accept, request, connect, response, close, error, any, \
                  or the rules that a 'do-log' stands in.",
        kind: Kind::Done(on),
    },
];

fn log_tag(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).tag = Some(args.need("<string>")?.into());
    args.end()
}

fn on(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let step = match args.need("<step>")? {
        "any" => Step::Any,
        word => match Origin::parse(word) {
            Some(origin) => Step::One(origin),
            None => {
                let fault = args.fault(format!("'{word}' is no step of a log"));
                let fault = near::hinted(fault, word, Origin::words().chain(["any"]));
                let all = || format!("one of {} any", Origin::words().collect::<Vec<_>>().join(" "));
                return Err(Fault { hint: fault.hint.clone().or_else(|| Some(all())), ..fault });
            }
        },
    };
    let mut said = StepSettings::default();
    let mut words = 0;
    while let Some(word) = args.take() {
        match word {
            "drop" if words == 0 => said.drop = true,
            "format" => (said.format, said.drop) = (Some(format_text(args, scope)?), false),
            "sd" => (said.structured_data, said.drop) = (Some(format_text(args, scope)?), false),
            other => return Err(args.fault(format!("expects 'drop', 'format' or 'sd', not '{other}'"))),
        }
        words += 1;
    }
    if words == 0 {
        return Err(args.fault("expects 'drop', 'format' or 'sd' behind the step"));
    }
    let steps = &mut scope.section.settings.entry::<ProfileSettings>().steps;
    match steps.iter_mut().find(|(known, _)| *known == step) {
        Some((_, known)) => {
            *known = StepSettings {
                format: said.format.or(known.format.take()),
                structured_data: said.structured_data.or(known.structured_data.take()),
                drop: said.drop,
            };
        }
        None => steps.push((step, said)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keywords::tests::{last, said_in};

    fn profile(lines: &str) -> Profile {
        let mut section = last(&format!("log-profile p\n{lines}\n"));
        let said = section.settings.take::<ProfileSettings>().unwrap_or_default();
        Profile::new("p".into(), None, &said, &mut |text| Some(LogFormat::text(&text.text)))
    }

    #[test]
    fn a_steps_own_line_comes_before_any() {
        let profile = profile(" on close format closed\n on any drop\n on close sd data\n");
        let close = profile.of(Origin::Close).unwrap();
        assert_eq!(close.format.as_ref().and_then(LogFormat::as_text), Some(&b"closed"[..]));
        assert!(close.structured_data.is_some() && !close.drop);
        assert!(profile.of(Origin::Error).unwrap().drop && profile.of(Origin::HttpRequest).unwrap().drop);
        assert!(self::profile(" on close drop").of(Origin::Error).is_none());
    }

    #[test]
    fn faults_name_their_word() {
        for (line, reason) in [
            ("on", "2! 'on' expects <step> as argument"),
            ("on closed drop", "2! 'on' : 'closed' is no step of a log"),
            ("on close", "2! 'on' expects 'drop', 'format' or 'sd' behind the step"),
            ("on close format", "2! 'on' expects <fmt> as argument"),
            ("on close format x drop", "2! 'on' expects 'drop', 'format' or 'sd', not 'drop'"),
            ("log-format x", "2! keyword 'log-format' is not allowed"),
        ] {
            let said = said_in("log-profile p", line);
            assert!(said.len() == 1 && said[0].starts_with(reason), "{line}: {said:?}");
        }
    }
}
