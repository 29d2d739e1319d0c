//! `http-conformance`: whether requests are read as the RFC or as HAProxy reads them, where HAProxy does not keep to the RFC
//! or takes messages that the RFC lets be refused.

use super::{Keyword, Kind, Sections};
use terse_config::Setting;
use terse_message::Conformance;

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[Keyword {
    name: "http-conformance",
    old_names: &[],
    sections: Sections::GLOBAL,
    arguments: "{ rfc | haproxy }",
    summary: "Reads requests, names compressed representations and selects cached ones as RFC 9110 to 9112 want it, or as HAProxy does.",
    kind: Kind::Done(|args, scope| {
        let conformance = match args.need("<reading>")? {
            "rfc" => Conformance::Rfc,
            "haproxy" => Conformance::HAProxy,
            other => return Err(args.fault(format!("'{other}' is neither 'rfc' nor 'haproxy'"))),
        };
        scope.section.settings.entry::<ConformanceSettings>().0 = conformance;
        args.end()
    }),
}];

/// Setting of `global`.
#[derive(Clone, Default, Debug)]
pub(crate) struct ConformanceSettings(pub Conformance);

impl Setting for ConformanceSettings {
    fn inherit(&self) -> ConformanceSettings {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use crate::keywords::tests::said_in;

    #[test]
    fn there_are_two_readings() {
        assert_eq!(said_in("global", "http-conformance rfc"), [""; 0]);
        assert_eq!(said_in("global", "http-conformance haproxy"), [""; 0]);
        assert!(said_in("global", "http-conformance nginx")[0].contains("neither 'rfc' nor 'haproxy'"));
        assert_eq!(said_in("defaults", "http-conformance rfc").len(), 1);
    }
}
