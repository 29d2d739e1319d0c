//! Texts that `core` parses: words between separators, networks, and dates of HTTP.

use mlua::{Lua, Table, UserData, Value};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::SystemTime;
use terse_message::date;

/// Puts the functions into a state, after `core`.
pub(crate) fn install(lua: &Lua) -> mlua::Result<()> {
    let core: Table = lua.globals().get("core")?;
    core.set("tokenize", lua.create_function(tokenize)?)?;
    core.set("parse_addr", lua.create_function(|_, text: String| Ok(Network::parse(&text)))?)?;
    core.set("match_addr", lua.create_function(|_, (one, other): (Value, Value)| Ok(meet(&one, &other)))?)?;
    let forms: [(&str, &'static [Form]); 4] = [
        ("http_date", &[date::imf, rfc850, date::asctime]),
        ("imf_date", &[date::imf]),
        ("rfc850_date", &[rfc850]),
        ("asctime_date", &[date::asctime]),
    ];
    for (name, forms) in forms {
        let read = move |_: &Lua, text: mlua::String| {
            let bytes = text.as_bytes();
            let text = std::str::from_utf8(&bytes).ok();
            Ok(text.and_then(|text| forms.iter().find_map(|form| form(text))))
        };
        core.set(name, lua.create_function(read)?)?;
    }
    Ok(())
}

/// The parts of a text between any of the separators; empty ones are left out where a script asks for it.
fn tokenize(lua: &Lua, (text, separators, no_blank): (mlua::String, mlua::String, Option<bool>)) -> mlua::Result<Table> {
    let (text, separators, no_blank) = (text.as_bytes(), separators.as_bytes(), no_blank.unwrap_or(false));
    let parts = lua.create_table()?;
    for part in text.split(|byte| separators.contains(byte)) {
        if !(no_blank && part.is_empty()) {
            parts.raw_push(lua.create_string(part)?)?;
        }
    }
    Ok(parts)
}

/// An address, and the number of its bits that count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Network {
    V4(u32, u32),
    V6(u128, u128),
}

impl UserData for Network {}

impl Network {
    /// `192.0.2.0/24`, `192.0.2.0/255.255.255.0`, `2001:db8::/32`, or an address alone.
    fn parse(text: &str) -> Option<Network> {
        let (address, mask) = text.split_once('/').map_or((text, None), |(address, mask)| (address, Some(mask)));
        match address.parse().ok()? {
            IpAddr::V4(address) => {
                let mask = match mask {
                    None => u32::MAX,
                    Some(mask) => match mask.parse::<Ipv4Addr>() {
                        Ok(mask) => mask.into(),
                        Err(_) => !u32::MAX.checked_shr(bits(mask, 32)?).unwrap_or(0),
                    },
                };
                Some(Network::V4(address.into(), mask))
            }
            IpAddr::V6(address) => {
                let mask = match mask {
                    None => u128::MAX,
                    Some(mask) => !u128::MAX.checked_shr(bits(mask, 128)?).unwrap_or(0),
                };
                Some(Network::V6(Ipv6Addr::into(address), mask))
            }
        }
    }

    /// Whether either network lies in the other.
    fn meets(self, other: Network) -> bool {
        match (self, other) {
            (Network::V4(one, of_one), Network::V4(other, of_other)) => (one ^ other) & of_one & of_other == 0,
            (Network::V6(one, of_one), Network::V6(other, of_other)) => (one ^ other) & of_one & of_other == 0,
            _ => false,
        }
    }
}

fn bits(text: &str, most: u32) -> Option<u32> {
    text.parse().ok().filter(|bits| *bits <= most && text.bytes().all(|byte| byte.is_ascii_digit()))
}

fn meet(one: &Value, other: &Value) -> bool {
    let network = |value: &Value| Some(*value.as_userdata()?.borrow::<Network>().ok()?);
    network(one).zip(network(other)).is_some_and(|(one, other)| one.meets(other))
}

/// Seconds since 1970 of a date, where it has that form.
type Form = fn(&str) -> Option<i64>;

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn rfc850(text: &str) -> Option<i64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs() as i64);
    date::rfc850(text, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_reads_its_form_of_date() {
        let lua = Lua::new();
        lua.globals().set("core", lua.create_table().unwrap()).unwrap();
        install(&lua).unwrap();
        let core: Table = lua.globals().get("core").unwrap();
        let texts = ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "today"];
        for (name, read) in [
            ("http_date", [true, true, true, false]),
            ("imf_date", [true, false, false, false]),
            ("rfc850_date", [false, true, false, false]),
            ("asctime_date", [false, false, true, false]),
        ] {
            let function: mlua::Function = core.get(name).unwrap();
            let seconds = texts.map(|text| function.call::<Option<i64>>(text).unwrap());
            assert_eq!(seconds, read.map(|read| read.then_some(784_111_777)), "{name}");
        }
    }

    #[test]
    fn networks_meet_where_one_lies_in_the_other() {
        let meets = |one: &str, other: &str| Network::parse(one).unwrap().meets(Network::parse(other).unwrap());
        for (one, other, right) in [
            ("127.0.0.1/32", "127.0.0.0/8", true),
            ("127.0.0.0/8", "127.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("10.0.0.1", "0.0.0.0/0", true),
            ("192.0.2.7", "192.0.2.0/255.255.255.0", true),
            ("2001:db8::1", "2001:db8::/32", true),
            ("2001:db9::1", "2001:db8::/32", false),
            ("::1", "::/0", true),
            ("::1", "0.0.0.0/0", false),
        ] {
            assert!(meets(one, other) == right && meets(other, one) == right, "{one} {other}");
        }
        for wrong in ["", "a", "1.2.3.4/33", "1.2.3.4/+8", "::/129", "1.2.3.4/"] {
            assert_eq!(Network::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn words_between_separators() {
        let lua = Lua::new();
        let words = |text: &str, no_blank| {
            let text = (lua.create_string(text).unwrap(), lua.create_string(",. ").unwrap(), no_blank);
            tokenize(&lua, text).unwrap().sequence_values::<String>().map(Result::unwrap).collect::<Vec<_>>()
        };
        assert_eq!(words("a, b.", None), ["a", "", "b", ""]);
        assert_eq!(words("a, b.", Some(true)), ["a", "b"]);
        assert_eq!((words("", None), words("", Some(true))), (vec![String::new()], vec![]));
    }
}
