//! `console` in `global`: a statistics page on an address of its own, in one line.
//!
//! It is short for a few lines of a `listen` section, which [`Consoles::lines`] writes and the program reads after its
//! files. So there is only one implementation of the page.

use std::fmt::Write;
use std::net::SocketAddr;
use terse_config::{Args, Fault, Scope, Setting};

/// Lines of `console`, an entry each.
#[derive(Clone, Default, Debug)]
pub struct Consoles(Vec<Console>);

#[derive(Clone, Debug)]
struct Console {
    address: String,
    /// `<user>:<password>`.
    user: Option<String>,
    /// Accepted host names, beside `localhost` and addresses.
    hosts: Vec<String>,
}

impl Setting for Consoles {
    fn inherit(&self) -> Consoles {
        self.clone()
    }
}

impl Consoles {
    /// Sections that the lines stand for; `None` without lines.
    pub fn lines(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        // The settings of a file's own `defaults` are not for these.
        let mut text = String::from(
            "defaults console\n    mode http\n    timeout connect 5s\n    timeout client 30s\n    timeout server 30s\n",
        );
        for (at, console) in self.0.iter().enumerate() {
            let number = if at == 0 { String::new() } else { (at + 1).to_string() };
            let _ = writeln!(text, "listen console{number} from console\n    bind {}", quoted(&console.address));
            text.push_str("    stats enable\n    stats uri /\n    stats show-version\n    stats show-node\n");
            match &console.user {
                Some(user) => {
                    let _ = writeln!(text, "    stats auth {}\n    stats show-legends\n    stats admin if TRUE", quoted(user));
                }
                // A stranger's page whose name resolves to this address must not read this page (DNS rebinding).
                None => {
                    let hosts: String = console.hosts.iter().map(|host| format!(" {}", quoted(host))).collect();
                    let _ = writeln!(
                        text,
                        "    acl named req.hdr(host),host_only -i localhost{hosts}\n    acl named req.hdr(host),host_only -m ip 0.0.0.0/0 ::/0\n    \
                         http-request deny deny_status 403 unless named"
                    );
                }
            }
        }
        Some(text)
    }
}

/// `console <address> [user <user>:<password>] [host <name>]...`
pub(crate) fn parse(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let address = args.need_address("<address>")?.into_owned();
    let place = args.fault("");
    let mut console = Console { address, user: None, hosts: Vec::new() };
    while let Some(word) = args.take() {
        match word {
            "user" => {
                let user = args.need("<user>:<password>")?;
                if !user.contains(':') {
                    return Err(args.fault("expects '<user>:<password>'"));
                }
                console.user = Some(user.to_owned());
            }
            "host" => console.hosts.push(args.need("<name>")?.to_owned()),
            other => return Err(args.fault(format!("'{other}' is not 'user' or 'host'"))),
        }
    }
    if console.user.is_none() && !is_local(&console.address) {
        let reason = "others than this machine would see it: without 'user' it listens on loopback addresses alone";
        return Err(Fault { reason: reason.into(), ..place }.hint("write 127.0.0.1:8404, or add 'user <user>:<password>'"));
    }
    scope.section.settings.entry::<Consoles>().0.push(console);
    Ok(())
}

/// Whether only this machine can reach an address.
fn is_local(address: &str) -> bool {
    // A descriptor's meaning is up to the starter of the program.
    let is_file = ["/", "unix@", "abns@", "abnsz@", "fd@", "sockpair@"].iter().any(|family| address.starts_with(family));
    let bare = address.strip_prefix("ipv4@").or_else(|| address.strip_prefix("ipv6@")).unwrap_or(address);
    let is_loopback = bare.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback());
    is_file || is_loopback || bare.starts_with("localhost:")
}

/// A word quoted for the configuration.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use terse_config::{Environment, Loader, Settings, Source};

    fn load(line: &str) -> (Option<String>, Vec<String>) {
        let source = Source { name: "f".into(), bytes: format!("global\n {line}\n").into_bytes() };
        let loader = Loader { tables: crate::KEYWORDS.to_vec(), environment: Environment::default() };
        let (config, said) = loader.load(&[source], Settings::default());
        let lines = config.global.settings.get::<Consoles>().and_then(Consoles::lines);
        (lines, said.iter().map(|diagnostic| diagnostic.reason.clone()).collect())
    }

    #[test]
    fn a_line_stands_for_a_section() {
        let (lines, said) = load("console 127.0.0.1:8404 host my.machine");
        let lines = lines.unwrap();
        assert_eq!(said, [""; 0]);
        assert!(
            lines.contains("listen console from console\n    bind '127.0.0.1:8404'\n")
                && lines.contains("-i localhost 'my.machine'\n"),
            "{lines}"
        );
        assert!(!lines.contains("stats admin"), "{lines}");
        let (lines, said) = load("console :8404 user \"admin:it's secret\"");
        assert_eq!(said, [""; 0]);
        assert!(lines.unwrap().contains("    stats auth 'admin:it'\\''s secret'\n"));
    }

    #[test]
    fn strangers_see_nothing_without_a_password() {
        for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "ipv4@127.0.0.1:1", "localhost:1", "unix@/run/a", "/run/a"] {
            assert_eq!(load(&format!("console {address}")).1, [""; 0], "{address}");
        }
        for address in [":8404", "0.0.0.0:1", "*:1", "192.0.2.1:1", "[::]:1", "localhost.evil.example:1"] {
            let (lines, said) = load(&format!("console {address}"));
            assert!(lines.is_none() && said[0].contains("loopback addresses alone"), "{address}: {said:?}");
        }
        assert!(load("console 127.0.0.1:1 user me").1[0].contains("expects '<user>:<password>'"));
        assert!(load("console 127.0.0.1:1 with it").1[0].contains("'with' is not 'user' or 'host'"));
    }
}
