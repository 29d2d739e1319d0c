//! A small configuration language over the frame, and the settings that a file in it leaves.

use std::time::Duration;
use terse_config::{Config, Diagnostics, Environment, Keyword, Kind, Loader, Sections, Setting, Settings, Source};

/// Settings of the toy's keywords in a section.
#[derive(Clone, Default, PartialEq, Debug)]
pub(crate) struct Toy {
    pub(crate) binds: Vec<String>,
    pub(crate) mode: Option<String>,
    pub(crate) connect: Option<Duration>,
    pub(crate) httplog: bool,
    pub(crate) log_negated: bool,
    pub(crate) words: Vec<String>,
}

impl Setting for Toy {
    fn inherit(&self) -> Toy {
        Toy { binds: Vec::new(), ..self.clone() }
    }
}

pub(crate) static TABLE: &[Keyword] = &[
    Keyword {
        name: "bind",
        old_names: &[],
        sections: Sections::FRONT_ONLY,
        arguments: "<address>",
        summary: "Listens.",
        kind: Kind::Done(|args, scope| {
            let address = args.need_address("<address>")?.into_owned();
            if address.starts_with("udp@") {
                return Err(args.fault("<address>: UDP is not spoken").hint("write 'ipv4@'"));
            }
            scope.section.settings.entry::<Toy>().binds.push(address);
            Ok(())
        }),
    },
    Keyword {
        name: "mode",
        old_names: &[],
        sections: Sections::PROXY,
        arguments: "{ http | tcp }",
        summary: "Says what is spoken.",
        kind: Kind::Done(|args, scope| {
            scope.section.settings.entry::<Toy>().mode = Some(args.need("<mode>")?.into());
            Ok(())
        }),
    },
    Keyword {
        name: "timeout connect",
        old_names: &["contimeout"],
        sections: Sections::BACK,
        arguments: "<time>",
        summary: "Limits the time to connect.",
        kind: Kind::Done(|args, scope| {
            let time = args.time("<time>")?;
            if time.is_zero() {
                args.warn("zero means forever");
            }
            scope.section.settings.entry::<Toy>().connect = Some(time);
            Ok(())
        }),
    },
    Keyword {
        name: "option httplog",
        old_names: &[],
        sections: Sections::FRONT,
        arguments: "",
        summary: "Logs requests.",
        kind: Kind::Switch(|_, scope| {
            scope.section.settings.entry::<Toy>().httplog = !scope.negated;
            Ok(())
        }),
    },
    Keyword {
        name: "log",
        old_names: &[],
        sections: Sections::PROXY,
        arguments: "[<target>]",
        summary: "Logs.",
        kind: Kind::Switch(|args, scope| {
            args.take_rest();
            scope.section.settings.entry::<Toy>().log_negated = scope.negated;
            Ok(())
        }),
    },
    Keyword {
        name: "log",
        old_names: &[],
        sections: Sections::GLOBAL,
        arguments: "<target>",
        summary: "Logs by default.",
        kind: Kind::Done(|args, scope| {
            scope.section.settings.entry::<Toy>().words.push(args.need("<target>")?.into());
            Ok(())
        }),
    },
    Keyword {
        name: "say",
        old_names: &[],
        sections: Sections::PROXY.or(Sections::GLOBAL).or(Sections::HTTP_ERRORS),
        arguments: "<word>...",
        summary: "Keeps words.",
        kind: Kind::Done(|args, scope| {
            let words = args.take_rest().iter().map(|word| word.display().into_owned());
            scope.section.settings.entry::<Toy>().words.extend(words);
            Ok(())
        }),
    },
    Keyword {
        name: "tune.idle",
        old_names: &[],
        sections: Sections::GLOBAL,
        arguments: "<n>",
        summary: "Tunes.",
        kind: Kind::Accepted("there is no such loop"),
    },
    Keyword {
        name: "option splice-auto",
        old_names: &[],
        sections: Sections::PROXY,
        arguments: "",
        summary: "Splices.",
        kind: Kind::Accepted("the kernel decides"),
    },
    Keyword {
        name: "option transparent",
        old_names: &[],
        sections: Sections::BACK,
        arguments: "",
        summary: "Goes where the client wanted to go.",
        kind: Kind::Refused("it is not built"),
    },
    Keyword {
        name: "reqadd",
        old_names: &[],
        sections: Sections::PROXY,
        arguments: "<string>",
        summary: "Adds a header.",
        kind: Kind::Refused("write 'http-request add-header'"),
    },
];

/// The environment of all tests.
pub(crate) fn environment() -> Environment {
    Environment {
        variables: [("fe".into(), "7".into()), ("HOME".into(), "/root".into())].into(),
        version: "3.5-dev5".into(),
        features: vec!["THREAD".into()],
        ..Environment::default()
    }
}

/// Reads files named `a.cfg`, `b.cfg`, ...
pub(crate) fn load(files: &[&[u8]]) -> (Config, Diagnostics) {
    let loader = Loader { tables: vec![TABLE], environment: environment() };
    let source = |(bytes, name): (&&[u8], char)| Source { name: format!("{name}.cfg"), bytes: bytes.to_vec() };
    let sources: Vec<_> = files.iter().zip('a'..).map(source).collect();
    loader.load(&sources, Settings::default())
}
