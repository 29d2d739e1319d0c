//! `terse --to ADDRESS`: a configuration from a few arguments, for a first try and for development.
//!
//! The arguments are written as a haproxy.cfg and parsed as such. What `--print` prints is what runs, except for a console that has
//! moved to a free port.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Default address of the console.
pub const CONSOLE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8404);

/// Values of the options.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Quick {
    /// `--to`: servers, each `HOST:PORT` and whether over TLS.
    pub servers: Vec<(String, bool)>,
    /// `--listen`.
    pub listen: Option<String>,
    /// `--tls-dir`: certificates.
    pub certificates: Option<PathBuf>,
    /// `--console`: an address; none: `off`.
    pub console: Option<Option<String>>,
    /// `--log off`.
    pub is_silent: bool,
}

impl Quick {
    /// Adds a server: `3000`, `:3000`, `HOST:PORT`, `http://HOST[:PORT]`, `https://HOST[:PORT]`.
    ///
    /// # Errors
    /// It is none of these.
    pub fn add_server(&mut self, text: &str) -> Result<(), String> {
        let (rest, scheme) = match text.split_once("://") {
            Some(("http", rest)) => (rest, Some(("80", false))),
            Some(("https", rest)) => (rest, Some(("443", true))),
            Some((scheme, _)) => return Err(format!("'{scheme}' is not 'http' or 'https'")),
            None => (text, None),
        };
        let host = rest.strip_suffix('/').unwrap_or(rest);
        if host.contains('/') {
            return Err(format!("'{text}' has a path: requests keep their own"));
        }
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
        let is_port = |text: &str| text.parse::<u16>().is_ok_and(|port| port > 0);
        let address = match (host.rsplit_once(':'), scheme) {
            (None, None) if is_port(host) => format!("127.0.0.1:{host}"),
            (Some(("", port)), _) if is_port(port) => format!("127.0.0.1:{port}"),
            (Some((name, port)), _) if is_port(port) && !name.is_empty() => format!("{name}:{port}"),
            (_, Some((port, _))) if !host.is_empty() && !host.ends_with(':') => format!("{host}:{port}"),
            (Some((_, port)), _) if is_number(port) => return Err(format!("'{port}' is not a port between 1 and 65535")),
            (None, None) if is_number(host) => return Err(format!("'{host}' is not a port between 1 and 65535")),
            _ => return Err(format!("'{text}' has no port")),
        };
        if address.contains(|sign: char| sign.is_whitespace() || sign.is_control()) {
            return Err(format!("'{text}' is no address"));
        }
        self.servers.push((address, scheme.is_some_and(|(_, is_tls)| is_tls)));
        Ok(())
    }

    /// True if an option was given that needs `--to`.
    pub fn wants_a_server(&self) -> bool {
        self.servers.is_empty() && *self != Quick::default()
    }

    /// Returns the haproxy.cfg that the options amount to.
    pub fn file(&self) -> String {
        let mut text = String::from("global\n");
        if !self.is_silent {
            text.push_str("    log stdout format raw local0\n");
        }
        if self.certificates.is_some() {
            // NAME.crt with NAME.key.
            text.push_str("    ssl-load-extra-del-ext\n");
        }
        match &self.console {
            None => _ = writeln!(text, "    console {CONSOLE}"),
            Some(Some(address)) => _ = writeln!(text, "    console {}", quoted(address)),
            Some(None) => {}
        }
        text.push_str("\ndefaults\n    mode http\n");
        if !self.is_silent {
            text.push_str("    log global\n    option httplog\n");
        }
        text.push_str(
            "    option forwardfor\n    option redispatch\n    retries 3\n    timeout connect 5s\n    timeout client 1m\n    timeout server 1m\n    \
             timeout http-request 30s\n    timeout tunnel 1h\n",
        );
        text.push_str("\nfrontend web\n");
        let (usual, secure) = match &self.certificates {
            None => ("127.0.0.1:8080", String::new()),
            Some(folder) => (":443", format!(" ssl crt {}", quoted(&folder.to_string_lossy()))),
        };
        let listen = self.listen.as_deref().unwrap_or(usual);
        let _ = writeln!(text, "    bind {}{secure}", quoted(listen));
        if self.certificates.is_some() && self.listen.is_none() {
            text.push_str("    bind :80\n    http-request redirect scheme https code 301 unless { ssl_fc }\n");
        }
        text.push_str("    compression on\n    default_backend app\n\nbackend app\n    balance leastconn\n");
        let check = if self.servers.len() > 1 { " check" } else { "" };
        for (at, (address, is_tls)) in self.servers.iter().enumerate() {
            let secure = match is_tls {
                true => {
                    let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
                    // An address is no name (RFC 6066 section 3).
                    let is_name = host.trim_matches(['[', ']']).parse::<IpAddr>().is_err();
                    let sni = if is_name { format!(" sni str({host})") } else { String::new() };
                    format!(" ssl verify required ca-file @system-ca{sni}")
                }
                false => String::new(),
            };
            let _ = writeln!(text, "    server s{} {}{secure}{check}", at + 1, quoted(address));
        }
        text
    }
}

/// Quotes an argument of a configuration in which environment variables stay in effect (`fd@${LISTENER}`).
fn quoted(word: &str) -> String {
    let is_plain = word.chars().all(|sign| sign.is_ascii_alphanumeric() || ":.-_/[]@*".contains(sign));
    if is_plain && !word.is_empty() { word.to_owned() } else { format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_in_many_ways() {
        let server = |text: &str| {
            let mut quick = Quick::default();
            quick.add_server(text).map(|()| quick.servers.remove(0))
        };
        for (text, address, is_tls) in [
            ("3000", "127.0.0.1:3000", false),
            (":3000", "127.0.0.1:3000", false),
            ("app:3000", "app:3000", false),
            ("[::1]:3000", "[::1]:3000", false),
            ("http://app/", "app:80", false),
            ("http://app:8000", "app:8000", false),
            ("https://app.example", "app.example:443", true),
        ] {
            assert_eq!(server(text), Ok((address.into(), is_tls)), "{text}");
        }
        for text in ["", "app", "app:", "app:0", "app:70000", "ftp://app", "http://app/path", "http://", "0", "a b:80", "a\n:80"] {
            assert!(server(text).is_err(), "{text}");
        }
    }

    #[test]
    fn words_become_a_file() {
        let mut quick = Quick { listen: Some(":80".into()), console: Some(None), is_silent: true, ..Quick::default() };
        quick.add_server("3000").unwrap();
        quick.add_server("https://b.example").unwrap();
        let file = quick.file();
        assert!(!file.contains("console") && !file.contains("log"), "{file}");
        assert!(
            file.contains("    bind :80\n    compression on\n") && file.contains("    server s1 127.0.0.1:3000 check\n"),
            "{file}"
        );
        assert!(
            file.ends_with("    server s2 b.example:443 ssl verify required ca-file @system-ca sni str(b.example) check\n"),
            "{file}"
        );
    }
}
