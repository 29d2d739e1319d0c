//! A `log` line: its address, the form of its lines, and their selection.

use super::address::Address;
use super::header::Form;
use super::level::{Facility, Level};
use super::sampling::Sampling;
use terse_config::{Args, Fault, Place};

/// A target of a `log` line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Destination of the lines.
    pub address: Address,
    /// The most bytes of a line, its header and line feed included.
    pub len: usize,
    /// Form of the header; `None`: [`Form::Local`], and [`Form::Rfc3164`] under `log-send-hostname`.
    pub form: Option<Form>,
    /// Which lines it gets; without it, all.
    pub sampling: Option<Sampling>,
    /// `profile`: the name of the section with the formats of its lines, and the place of the name.
    pub profile: Option<(String, Place)>,
    /// The facility that lines carry.
    pub facility: Facility,
    /// Lines of milder levels than this are not sent.
    pub max_level: Level,
    /// Lines of worse levels than this are sent as this level.
    pub min_level: Level,
    /// Place of the line in the configuration.
    pub place: Place,
}

impl Target {
    /// Parses the arguments of `log`: `<target> [len <n>] [format <form>] [sample <ranges>:<size>] [profile <name>]
    /// <facility> [<level> [<minlevel>]]`.
    pub fn parse(args: &mut Args<'_>, place: Place) -> Result<Target, Fault> {
        let address = args.need_address("<target>")?;
        let address = Address::parse(&address, args.position().saturating_sub(1))?;
        let (mut len, mut form, mut sampling, mut profile) = (DEFAULT_LEN, None, None, None);
        loop {
            if args.accept("len") {
                len = usize::try_from(args.integer("<length>", 80..=65535)?).unwrap_or(DEFAULT_LEN);
            } else if args.accept("format") {
                form = Some(named(args, "<format>", "log format", Form::parse, &Form::NAMES)?);
            } else if args.accept("sample") {
                sampling = Some(Sampling::parse(args.need("<ranges>:<size>")?).map_err(|reason| args.fault(reason))?);
            } else if args.accept("profile") {
                let at = args.place(&place);
                profile = Some((args.need("<name>")?.to_owned(), at));
            } else {
                break;
            }
        }
        let facility = named(args, "<facility>", "log facility", Facility::parse, &Facility::NAMES)?;
        let max_level = optional_level(args)?.unwrap_or(Level::Debug);
        let min_level = optional_level(args)?.unwrap_or(Level::Emergency);
        args.end()?;
        Ok(Target { address, len, form, sampling, profile, facility, max_level, min_level, place })
    }
}

fn optional_level(args: &mut Args<'_>) -> Result<Option<Level>, Fault> {
    match args.peek() {
        None => Ok(None),
        Some(_) => named(args, "<level>", "log level", Level::parse, &Level::NAMES).map(Some),
    }
}

/// Takes an argument that must be among a few names.
fn named<T>(args: &mut Args<'_>, what: &str, noun: &str, parse: fn(&str) -> Option<T>, names: &[&str]) -> Result<T, Fault> {
    let word = args.need(what)?;
    parse(word).ok_or_else(|| args.fault(format!("unknown {noun} '{word}'")).hint(format!("one of {}", names.join(" "))))
}

/// Length that every syslog server takes (RFC 3164 section 4.1).
const DEFAULT_LEN: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use terse_config::Word;

    fn parse(line: &str) -> Result<Target, Fault> {
        let words: Vec<Word> = line.split(' ').map(|word| Word { bytes: word.into(), span: 0..word.len() }).collect();
        Target::parse(&mut Args::new(&words, 1), Place { file: "test".into(), line: 1, text: line.into(), span: 0..0 })
    }

    #[test]
    fn shortest_and_longest() {
        let target = parse("log 127.0.0.1 local0").unwrap();
        assert_eq!(target.address.to_string(), "udp@127.0.0.1:514");
        assert_eq!((target.len, target.form, &target.sampling), (1024, None, &None));
        assert_eq!((target.max_level, target.min_level), (Level::Debug, Level::Emergency));
        let target = parse("log ring@r profile p sample 1:2 len 80 local0").unwrap();
        assert_eq!((target.address, target.len), (Address::Ring("r".into()), 80));
        assert_eq!(target.profile.map(|(name, _)| name).as_deref(), Some("p"));
        let target = parse("log stderr len 2048 format rfc5424 sample 1,3:5 daemon notice err").unwrap();
        assert_eq!(target.address, Address::Descriptor(2));
        assert_eq!((target.len, target.form), (2048, Some(Form::Rfc5424)));
        assert!(target.sampling.is_some());
        assert_eq!((target.max_level, target.min_level), (Level::Notice, Level::Error));
    }

    #[test]
    fn faults_name_their_word() {
        for (line, word, reason) in [
            ("log", 0, "expects <target> as argument"),
            ("log 127.0.0.1", 1, "expects <facility> as argument"),
            ("log 127.0.0.1 local9", 2, "unknown log facility 'local9'"),
            ("log 127.0.0.1 local0 information", 3, "unknown log level 'information'"),
            ("log 127.0.0.1 local0 info error", 4, "unknown log level 'error'"),
            ("log 127.0.0.1 local0 info err x", 5, "cannot handle unexpected argument 'x'"),
            ("log 127.0.0.1 len 79 local0", 3, "<length>: 79 is not between 80 and 65535"),
            ("log 127.0.0.1 format bsd local0", 3, "unknown log format 'bsd'"),
            ("log 127.0.0.1 sample 1 local0", 3, "a sample needs its size, as in '1,3:5'"),
            ("log 127.0.0.1 profile", 2, "expects <name> as argument"),
            ("log ring@ local0", 1, "the name is empty"),
        ] {
            let fault = parse(line).unwrap_err();
            assert_eq!((fault.word, fault.reason.as_str()), (word, reason), "{line}");
        }
        assert!(parse("log 127.0.0.1 local0 warn").unwrap_err().hint.unwrap().contains("warning"));
    }
}
