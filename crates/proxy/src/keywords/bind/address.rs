//! Addresses of `bind` lines: lists, ranges of ports, families.

/// Expands a list of addresses, each range of ports into its ports; each is written as
/// [`crate::settings::BindSettings::address`] describes.
pub(super) fn expand(list: &str) -> Result<Vec<String>, String> {
    let mut addresses = Vec::new();
    for address in list.split(',') {
        expand_one(address, &mut addresses)?;
    }
    Ok(addresses)
}

fn expand_one(address: &str, out: &mut Vec<String>) -> Result<(), String> {
    // A listener is of streams anyhow.
    let address = address.strip_prefix("stream+").unwrap_or(address);
    let (family, rest) = match address.split_once('@') {
        Some((family, rest)) if family.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+') => (family, rest),
        _ => ("", address),
    };
    match family {
        "" if address.starts_with('/') => out.push(address.to_owned()),
        "" | "ipv4" | "ipv6" | "tcp" | "tcp4" | "tcp6" => return expand_ports(address, rest, out),
        "unix" | "abns" | "abnsz" | "fd" if rest.is_empty() => return Err(format!("'{address}' names nothing")),
        "unix" | "abns" | "abnsz" => out.push(address.to_owned()),
        "fd" => match rest.parse::<i32>() {
            Ok(0..) => out.push(address.to_owned()),
            _ => return Err(format!("'{rest}' is not the number of a descriptor")),
        },
        _ => {
            let why = match family {
                "udp" | "udp4" | "udp6" => "datagrams are not taken",
                "sockpair" => "sockets are handed over by 'fd@'",
                "rhttp" => "connections are not reversed",
                _ if family.starts_with("quic") => "there is no QUIC yet",
                _ if family.starts_with("mptcp") => "there is no multipath TCP",
                _ => "unknown family of addresses",
            };
            return Err(format!("'{family}@' is not supported: {why}"));
        }
    }
    Ok(())
}

/// `<host>:<port>[-<last>]`, of which the last colon counts.
fn expand_ports(address: &str, rest: &str, out: &mut Vec<String>) -> Result<(), String> {
    if address.is_empty() {
        return Err("an address of the list is empty".into());
    }
    // Only a port may follow the last colon, so that colons inside of brackets are the host's.
    let Some((_, ports)) = rest.rsplit_once(':').filter(|(_, ports)| !ports.contains(']')) else {
        return Err(format!("missing port number in '{address}'"));
    };
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let (Ok(first), Ok(last)) = (first.parse::<u16>(), last.parse::<u16>()) else {
        return Err(format!("'{ports}' is not a port between 0 and 65535, nor a range of ports"));
    };
    if last < first || (first == 0 && last > 0) {
        return Err(format!("'{ports}' is not a range of ports"));
    }
    let host = &address[..address.len() - ports.len()];
    out.extend((first..=last).map(|port| format!("{host}{port}")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_an_address() {
        for address in [":80", "*:80", "127.0.0.1:80", "[::1]:80", "::1:80", "ipv6@:80", "localhost:80", "/run/x,y"] {
            assert!(expand(address).is_ok() || address.contains(','), "{address}");
        }
        for address in ["unix@x.sock", "abns@name", "abnsz@name", "fd@3", "/run/x.sock"] {
            assert_eq!(expand(address), Ok(vec![address.to_owned()]));
        }
        assert_eq!(expand("ipv4@*:80-81,:0").unwrap(), ["ipv4@*:80", "ipv4@*:81", ":0"]);
    }

    #[test]
    fn what_is_none() {
        for address in [
            "",
            "80",
            "[::1]",
            ":",
            ":-1",
            ":1-",
            ":65536",
            ":2-1",
            ":0-1",
            "unix@",
            "fd@-1",
            "abnsz@",
            "quic6@:443",
            "x@:80",
            ",:80",
        ] {
            assert!(expand(address).is_err(), "{address}");
        }
    }
}
