//! The version of this program, the version of HAProxy's language that it reads, and the features that are built in.

use crate::args::VersionPart;
use std::fmt::Write;
use terse_card::isal;
use terse_compress::coder::{Fast, names};

/// The program's own version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of HAProxy whose configuration language is read; `version_atleast()` compares with it.
pub const LANGUAGE: &str = "3.5-dev5";

/// Both versions in one argument, where HAProxy shows its version with that of its package.
pub fn in_lists() -> String {
    format!("{LANGUAGE}-terse{VERSION}")
}

/// The day of this version, as statistics show it.
pub const RELEASE_DATE: &str = "2026/11/21";

/// Features that `feature()` knows, and whether they are built in. The names are HAProxy's.
pub const FEATURES: &[(&str, bool)] = &[
    ("ACCEPT4", true),
    ("BACKTRACE", true),
    ("CPU_AFFINITY", true),
    ("DEVICEATLAS", false),
    ("ECH", false),
    ("EPOLL", true),
    ("GETADDRINFO", true),
    ("HAVE_WORKING_TCP_MD5SIG", true),
    ("KQUEUE", false),
    ("KTLS", false),
    ("LINUX_SPLICE", true),
    ("LUA", true),
    ("NS", false),
    ("OPENSSL", true),
    ("PCRE", true),
    ("PCRE2", false),
    ("PRCTL", true),
    ("PROMEX", true),
    ("QUIC", false),
    ("SLZ", false),
    ("TFO", true),
    ("THREAD", true),
    ("TPROXY", true),
    ("WURFL", false),
    ("ZLIB", true),
];

/// Build profile; `scripts/release` sets `profiled`.
const PROFILE: &str = match option_env!("TERSE_PROFILE") {
    Some(profile) => profile,
    None if cfg!(debug_assertions) => "debug",
    None => "release",
};

/// Returns the answer to `-v` and, with `long`, to `-vv`.
///
/// Started under the name `haproxy` the program stands in for it, so the first line is the one that scripts look for in HAProxy's
/// answer. It still names this program.
pub fn text(program: &str, long: bool) -> String {
    let mut text = match program {
        "haproxy" => format!("HAProxy version {LANGUAGE} {RELEASE_DATE} - terse {VERSION}\n"),
        _ => format!("terse {VERSION}\nReads the configuration language of HAProxy version {LANGUAGE}\n"),
    };
    let system = rustix::system::uname();
    for part in [system.sysname(), system.release(), system.version(), system.machine()] {
        let lead = if std::ptr::eq(part, system.sysname()) { "Running on: " } else { " " };
        let _ = write!(text, "{lead}{}", part.to_string_lossy());
    }
    text.push('\n');
    if long {
        text.push_str(&built_in());
    }
    text
}

/// The version as scripts want it: of the language, because they ask in HAProxy's name.
pub fn bare(part: VersionPart) -> &'static str {
    match part {
        VersionPart::Whole => LANGUAGE,
        VersionPart::Short => LANGUAGE.split('-').next().unwrap_or(LANGUAGE),
        VersionPart::Branch => branch(),
    }
}

/// The first two numbers of the language's version.
pub fn branch() -> &'static str {
    let short = LANGUAGE.split('-').next().unwrap_or(LANGUAGE);
    let end = short.match_indices('.').nth(1).map_or(short.len(), |(at, _)| at);
    &short[..end]
}

/// The features that are built in, by name.
pub fn features() -> impl Iterator<Item = &'static str> {
    FEATURES.iter().filter(|(_, built_in)| *built_in).map(|(name, _)| *name)
}

fn built_in() -> String {
    let mut text = String::from("Build options :\n  TARGET  = linux-glibc\n");
    let _ = writeln!(text, "  PROFILE = {PROFILE}\n");
    text.push_str("Feature list :");
    for (name, built_in) in FEATURES {
        let _ = write!(text, " {}{name}", if *built_in { '+' } else { '-' });
    }
    let _ =
        writeln!(text, "\n\nWorkers: one a processor that the process may use, {} here.", crate::process::workers::default_count());
    text.push_str(
        "\nAvailable polling systems :\n      epoll : pref=300,  test result OK\nTotal: 1 (1 usable), will use epoll.\n\n\
         Available services : prometheus-exporter\nAvailable filters :\n\t[BWLIM] bwlim-in\n\t[BWLIM] bwlim-out\n\t[COMP] compression\n\t[COMP] decompression\n\t[TRACE] trace\n",
    );
    text.push_str("\nCompression engines :\n");
    for name in names::all() {
        let _ = writeln!(text, "  {:<12} streams: {}, whole bodies: {}", name.coding.word(), name.stream, name.whole);
    }
    let _ = match isal::load() {
        Ok(isal) => writeln!(text, "  {}: found, used for whole bodies of the deflate family at levels 1 and 2", isal.name()),
        Err(unfit) => writeln!(text, "  {}: absent: {unfit}", isal::NAME),
    };
    text.push_str("  and libraries with zlib's API that `engine` sections name (`show engines` on the stats socket)\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_find_the_version_under_haproxys_name() {
        let text = text("haproxy", true);
        let first = text.lines().next().unwrap();
        assert!(first.starts_with("HAProxy version 3.5-dev5 ") && first.ends_with(&format!(" - terse {VERSION}")), "{first}");
        assert!(text.lines().any(|line| line.trim() == "TARGET  = linux-glibc"));
        assert!(text.contains("Feature list : +ACCEPT4"));
    }

    #[test]
    fn under_its_own_name_it_says_its_own_version_first() {
        assert!(text("terse", false).starts_with(&format!("terse {VERSION}\n")));
        assert_eq!((bare(VersionPart::Whole), bare(VersionPart::Short), bare(VersionPart::Branch)), ("3.5-dev5", "3.5", "3.5"));
    }
}
