//! Texts that `core` parses: words between separators, networks, and the three forms of dates in HTTP (RFC 9110 section
//! 5.6.7).

use mlua::{Lua, Table, UserData, Value};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::SystemTime;
use terse_sample::date;

/// Puts the functions into a state, after `core`.
pub(crate) fn install(lua: &Lua) -> mlua::Result<()> {
    let core: Table = lua.globals().get("core")?;
    core.set("tokenize", lua.create_function(tokenize)?)?;
    core.set("parse_addr", lua.create_function(|_, text: String| Ok(Network::parse(&text)))?)?;
    core.set("match_addr", lua.create_function(|_, (one, other): (Value, Value)| Ok(meet(&one, &other)))?)?;
    let forms: [(&str, &'static [Form]); 4] =
        [("http_date", &[imf, rfc850, asctime]), ("imf_date", &[imf]), ("rfc850_date", &[rfc850]), ("asctime_date", &[asctime])];
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

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn imf(text: &str) -> Option<i64> {
    let (day_name, rest) = text.split_once(", ")?;
    let [day, month, year, time, "GMT"] = words(rest)? else { return None };
    is_short_day(day_name).then_some(())?;
    seconds(number(year, 4)?, month, number(day, 2)?, time)
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`: a year that seems more than 50 years ahead lies in the last century.
fn rfc850(text: &str) -> Option<i64> {
    let (day_name, rest) = text.split_once(", ")?;
    DAYS.contains(&day_name).then_some(())?;
    let [date, time, "GMT"] = words(rest)? else { return None };
    let mut date = date.split('-');
    let [Some(day), Some(month), Some(year), None] = [date.next(), date.next(), date.next(), date.next()] else { return None };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs() as i64);
    let this_year = 1970 + now / 31_556_952;
    let year = this_year - this_year % 100 + number(year, 2)?;
    let year = if year > this_year + 50 { year - 100 } else { year };
    seconds(year, month, number(day, 2)?, time)
}

/// `Sun Nov  6 08:49:37 1994`
fn asctime(text: &str) -> Option<i64> {
    let (head, tail) = (text.get(..10)?, text.get(10..)?);
    let (day_name, month, day) = (head.get(..3)?, head.get(4..7)?, head.get(8..)?);
    (is_short_day(day_name) && head.get(3..4) == Some(" ") && head.get(7..8) == Some(" ")).then_some(())?;
    let day = day.strip_prefix(' ').map_or_else(|| number(day, 2), |day| number(day, 1))?;
    let ["", time, year] = words(tail)? else { return None };
    seconds(number(year, 4)?, month, day, time)
}

/// Words with a single blank between two.
fn words<const N: usize>(text: &str) -> Option<[&str; N]> {
    let mut words = text.split(' ');
    let mut all = [""; N];
    for word in &mut all {
        *word = words.next()?;
    }
    words.next().is_none().then_some(all)
}

fn is_short_day(name: &str) -> bool {
    DAYS.iter().any(|day| name.len() == 3 && day.starts_with(name))
}

fn number(text: &str, digits: usize) -> Option<i64> {
    (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

fn seconds(year: i64, month: &str, day: i64, time: &str) -> Option<i64> {
    let month = MONTHS.iter().position(|known| *known == month)? as i64 + 1;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let (hours, rest) = time.split_once(':')?;
    let (minutes, second) = rest.split_once(':')?;
    let (hours, minutes, second) = (number(hours, 2)?, number(minutes, 2)?, number(second, 2)?);
    // 60 is a leap second.
    (hours < 24 && minutes < 60 && second <= 60 && (1..=longest).contains(&day)).then_some(())?;
    Some(date::days_to(year, month, day) * 86_400 + hours * 3600 + minutes * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_three_forms() {
        let date = 784_111_777;
        assert_eq!(imf("Sun, 06 Nov 1994 08:49:37 GMT"), Some(date));
        assert_eq!(rfc850("Sunday, 06-Nov-94 08:49:37 GMT"), Some(date));
        assert_eq!(asctime("Sun Nov  6 08:49:37 1994"), Some(date));
        assert_eq!(asctime("Wed Nov 16 08:49:37 1994"), Some(date + 10 * 86_400));
        assert_eq!(imf("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(imf("Tue, 29 Feb 2000 00:00:00 GMT"), Some(951_782_400));
        for wrong in [
            "",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 29 Feb 1900 08:49:37 GMT",
            "Sun, 06 Nov 1994  08:49:37 GMT",
            "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}",
        ] {
            assert!(imf(wrong).is_none() && rfc850(wrong).is_none() && asctime(wrong).is_none(), "{wrong}");
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
