//! Initial settings of a server's line (`from`): those of a `default-server`, with a name or without, or of another
//! server.

use super::{done, settings_of};
use crate::farm::Farm;
use crate::settings::{FarmSettings, ServerSettings};
use terse_config::{Args, Fault, Keyword, Scope, Sections, Setting};

pub(super) const PURGE: Keyword = Keyword {
    sections: Sections::GLOBAL,
    ..done(
        "tune.defaults.purge",
        "[all | none | { proxies | servers }[,...]]",
        "Forgets 'defaults' sections, or what 'default-server' says, once the configuration is read.",
        |args, scope| {
            let mut purge = Purge::default();
            for word in args.take().unwrap_or("proxies").split(',') {
                match word {
                    "all" => purge = Purge { servers: true, proxies: true },
                    "servers" => purge.servers = true,
                    "proxies" => purge.proxies = true,
                    "none" => {}
                    other => {
                        return Err(args
                            .fault(format!("unknown element '{other}'"))
                            .hint("known are all, none, proxies and servers"));
                    }
                }
            }
            *scope.shared.entry() = purge;
            Ok(())
        },
    )
};

/// `tune.defaults.purge`, in the shared settings.
#[derive(Clone, Copy, Default, Debug)]
pub struct Purge {
    /// Whether the settings of `default-server` are dropped once the configuration is read.
    pub servers: bool,
    /// Whether `defaults` sections are dropped.
    pub proxies: bool,
}

impl Setting for Purge {
    fn inherit(&self) -> Purge {
        *self
    }
}

/// Argument of `from`. Without the name of a backend it is that of the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base<'a> {
    /// `none`: the built-in defaults.
    Nothing,
    /// `be:[<backend>]`: its `default-server` without a name.
    Backend(Option<&'a str>),
    /// `srv:[<backend>/]<name>`: a server, or a `default-server` of that name.
    Named(Option<&'a str>, &'a str),
}

impl<'a> Base<'a> {
    /// Parses it, where the next argument is `from`.
    pub(super) fn read(args: &mut Args<'a>) -> Result<Option<Base<'a>>, Fault> {
        if !args.accept("from") {
            return Ok(None);
        }
        let word = args.need("<base>")?;
        let base = match word.split_once(':') {
            None if word == "none" => Some(Base::Nothing),
            Some(("be", backend)) => Some(Base::Backend(Some(backend).filter(|backend| !backend.is_empty()))),
            Some(("srv", named)) => match named.split_once('/') {
                Some((backend, name)) => Some(Base::Named(Some(backend), name)),
                None => Some(Base::Named(None, named)),
            },
            _ => None,
        };
        let known = "known are none, be:[<backend>] and srv:[<backend>/]<server>";
        let base = base.ok_or_else(|| args.fault(format!("invalid '{word}' value for 'from'")).hint(known))?;
        if args.peek() == Some("from") {
            return Err(args.fault("'from' can only be specified once"));
        }
        Ok(Some(base))
    }

    /// Backend that it names.
    pub fn backend(self) -> Option<&'a str> {
        match self {
            Base::Nothing => None,
            Base::Backend(backend) | Base::Named(backend, _) => backend,
        }
    }

    /// Looks it up in the sections read so far.
    pub(super) fn among(self, scope: &Scope<'_>) -> Result<ServerSettings, String> {
        let own = &*scope.section;
        let section = match self.backend() {
            Some(name) if *name != *own.name => {
                scope.earlier.iter().find(|section| section.kind.is_back() && *section.name == *name)
            }
            _ => Some(own),
        };
        let section = section.ok_or_else(|| self.no_backend())?;
        let none = FarmSettings::default();
        let farm = if std::ptr::eq(section, own) { settings_of(scope) } else { section.settings.get() };
        let farm = farm.unwrap_or(&none);
        self.in_lines(farm, |name| farm.servers.iter().find(|server| *server.name == *name).cloned(), &section.name)
    }

    /// Looks it up in a farm, which is that of the named backend.
    ///
    /// # Errors
    /// It is not there.
    pub fn of(self, farm: &Farm) -> Result<ServerSettings, String> {
        let server = |name: &str| farm.find_server(name).map(|server| server.settings().clone());
        self.in_lines(farm.settings(), server, farm.name())
    }

    /// Message for an unknown backend.
    pub fn no_backend(self) -> String {
        format!("'from': unknown backend '{}'", self.backend().unwrap_or_default())
    }

    fn in_lines(
        self,
        farm: &FarmSettings,
        server: impl Fn(&str) -> Option<ServerSettings>,
        backend: &str,
    ) -> Result<ServerSettings, String> {
        match self {
            Base::Nothing => Ok(ServerSettings::default()),
            Base::Backend(_) => Ok(farm.template.clone()),
            Base::Named(_, name) => {
                let found = farm.named_templates.get(name).cloned().or_else(|| server(name));
                let found = found.ok_or_else(|| format!("'from': unknown server '{name}' in backend '{backend}'"))?;
                // Settings of that server alone.
                Ok(ServerSettings { id: None, guid: None, name_in_dns: None, ..found })
            }
        }
    }
}

impl FarmSettings {
    /// Drops the settings that only later servers could use.
    pub fn purge(&mut self) {
        self.template = ServerSettings::default();
        self.named_templates.clear();
    }

    /// Names for `from` except servers: `None` is the `default-server` without a name, where it sets anything.
    pub fn templates(&self) -> impl Iterator<Item = Option<&str>> {
        let unnamed = (self.template != ServerSettings::default()).then_some(None);
        unnamed.into_iter().chain(self.named_templates.keys().map(|name| Some(&**name)))
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::farm;
    use crate::keywords::tests::{load, said_of};

    #[test]
    fn servers_begin_with_what_they_ask_for() {
        let lines = "backend other\ndefault-server weight 7\nserver o 10.0.0.1:80 weight 9 id 4 guid g\n\
            backend be\ndefault-server weight 10\ndefault-server inter 5s\nserver a 10.0.0.1:80\nserver b 10.0.0.1:80 from none\n\
            default-server from none\nserver c 10.0.0.1:80\ndefault-server weight 10\n\
            default-server name x\nserver d 10.0.0.1:80 from srv:x\n\
            default-server name x from be:\nserver e 10.0.0.1:80 from srv:x\n\
            default-server name x from none\nserver f 10.0.0.1:80 from srv:x\n\
            default-server name x weight 5\nserver g 10.0.0.1:80 from srv:be/x backup\n\
            server h 10.0.0.1:80 from be:other\nserver i 10.0.0.1:80 from srv:other/o\nserver-template t 2 10.0.0.1:80 from srv:g\n";
        let (farm, said) = load(lines);
        assert_eq!(said, [""; 0]);
        let weights: Vec<_> = farm.servers.iter().map(|server| (&*server.name, server.weight)).collect();
        let expected =
            [("a", 10), ("b", 1), ("c", 1), ("d", 1), ("e", 10), ("f", 1), ("g", 5), ("h", 7), ("i", 9), ("t1", 5), ("t2", 5)];
        assert_eq!(weights, expected);
        assert_eq!((farm.servers[0].check.inter.as_secs(), farm.servers[1].check.inter.as_secs()), (5, 2));
        assert!(farm.servers[9].backup && farm.servers[8].id.is_none() && farm.servers[8].guid.is_none());
        assert_eq!(farm.templates().collect::<Vec<_>>(), [None, Some("x")]);
    }

    #[test]
    fn what_is_not_there_is_said() {
        for (line, said) in [
            ("server a 10.0.0.1:80 from", "expects <base>"),
            ("server a 10.0.0.1:80 from x", "invalid 'x' value for 'from'"),
            ("server a 10.0.0.1:80 from be:x", "unknown backend 'x'"),
            ("server a 10.0.0.1:80 from srv:x", "unknown server 'x' in backend 'b'"),
            ("server a 10.0.0.1:80 from none from none", "only be specified once"),
            ("server a 10.0.0.1:80 weight 1 from none", "'from'"),
            ("default-server name", "expects <name>"),
            ("server a 10.0.0.1:80\ndefault-server name a", "'a' is a server's name"),
            ("default-server name a\nserver a 10.0.0.1:80", "'a' is the name of a 'default-server'"),
        ] {
            assert!(said_of(line).contains(said), "{line}: {}", said_of(line));
        }
    }

    #[test]
    fn what_says_nothing_is_forgotten() {
        assert_eq!(farm("default-server check\ndefault-server from none").settings().templates().count(), 0);
        let (mut lines, _) = load("backend b\ndefault-server check\ndefault-server name x");
        lines.purge();
        assert_eq!(lines.templates().count(), 0);
    }
}
