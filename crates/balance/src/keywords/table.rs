//! `stick-table`.

use super::done;
use crate::table::{Data, KeyKind, ServerKeyKind, Shape, Stored, TableLine, TableSettings};
use terse_config::params::{self, Param, ParamKind};
use terse_config::words::parse_time;
use terse_config::{Args, Fault, Keyword, Place, Sections};

pub(super) const STICK_TABLE: Keyword = Keyword {
    sections: Sections::PROXY_ONLY,
    ..done(
        "stick-table",
        "type {ip | ipv6 | integer | string [len <n>] | binary [len <n>]} size <n> [<parameter>...]",
        "Keeps what is known of clients, by a key; the section's name is the table's.",
        |args, scope| {
            let settings = read(args, &scope.place)?;
            let line: &mut TableLine = scope.section.settings.entry();
            if line.0.is_some() {
                return Err(Fault::new(0, "may stand once in a section: its name is the table's"));
            }
            line.0 = Some(settings);
            Ok(())
        },
    )
};

/// Parses the parameters of a table, up to the end of the line.
pub fn read(args: &mut Args<'_>, place: &Place) -> Result<TableSettings, Fault> {
    let mut draft = Draft { byte_rate_factor: 1, ..Draft::default() };
    params::apply(args, "parameter", KEYWORDS, &mut draft)?;
    let missing = |what: &str| Fault::new(0, format!("needs '{what}'"));
    Ok(TableSettings {
        key: draft.key.ok_or_else(|| missing("type"))?,
        size: draft.size.ok_or_else(|| missing("size"))?,
        expire_ms: draft.expire_ms,
        no_purge: draft.no_purge,
        server_key: draft.server_key,
        byte_rate_factor: draft.byte_rate_factor,
        store: draft.store,
        write_to: draft.write_to,
        receives_only: draft.receives_only,
        peers: draft.peers,
        place: place.clone(),
    })
}

#[derive(Default, Debug)]
pub(crate) struct Draft {
    key: Option<KeyKind>,
    size: Option<usize>,
    expire_ms: Option<u32>,
    no_purge: bool,
    server_key: ServerKeyKind,
    byte_rate_factor: u32,
    store: Vec<Stored>,
    write_to: Option<String>,
    receives_only: bool,
    peers: Option<String>,
}

/// Parameters of a `stick-table` line.
pub(crate) const KEYWORDS: &[Param<Draft>] = &[
    word("type", "{ip | ipv6 | integer | string [len <n>] | binary [len <n>]}", "What keys are.", |args, draft| {
        draft.key = Some(key_kind(args)?);
        Ok(())
    }),
    word("size", "<n>", "The most entries, with k, m or g.", |args, draft| {
        let size = args.size("<n>")?;
        let size = u32::try_from(size).ok().filter(|size| *size > 0);
        draft.size = Some(size.ok_or_else(|| args.fault("<n>: a table has between 1 and 4294967295 entries"))? as usize);
        Ok(())
    }),
    word("expire", "<time>", "How long an entry that nobody touches lives; without it, until room is needed.", |args, draft| {
        let time = args.time("<time>")?.as_millis();
        let time = u32::try_from(time).ok().filter(|time| *time <= MOST_MS);
        let time = time.ok_or_else(|| args.fault("<time>: the most is 2147483647 ms, about 24.8 days"))?;
        draft.expire_ms = Some(time).filter(|time| *time > 0);
        Ok(())
    }),
    word("nopurge", "", "A full table takes no new entry, rather than to drop the oldest.", |_, draft| {
        draft.no_purge = true;
        Ok(())
    }),
    word("store", "<data>[(<argument>[,<argument>])][,<data>...]", "What entries hold.", store),
    word("srvkey", "{name | addr}", "By what servers are known to 'stick' lines; names are the usual.", |args, draft| {
        draft.server_key = match args.need("{name | addr}")? {
            "name" => ServerKeyKind::Name,
            "addr" => ServerKeyKind::Address,
            other => return Err(args.fault(format!("unknown key of servers '{other}'")).hint("known are name and addr")),
        };
        Ok(())
    }),
    word("brates-factor", "<n>", "Rates of bytes are counted by so many bytes, 1 to 1024.", |args, draft| {
        draft.byte_rate_factor = u32::try_from(args.integer("<n>", 1..=1024)?).unwrap_or(1);
        Ok(())
    }),
    word(
        "write-to",
        "<table>",
        "The table that what peers say is written to as well; it must have the same keys.",
        |args, draft| {
            draft.write_to = Some(args.need("<table>")?.to_owned());
            Ok(())
        },
    ),
    word(
        "recv-only",
        "",
        "Learns from peers how many connections they have now, too: no rule here may count in it.",
        |_, draft| {
            draft.receives_only = true;
            Ok(())
        },
    ),
    word("peers", "<section>", "Shares the table with the peers of that section.", |args, draft| {
        draft.peers = Some(args.need("<section>")?.to_owned());
        Ok(())
    }),
];

const fn word(
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    parser: params::ParamParser<Draft>,
) -> Param<Draft> {
    Param { name, arguments, summary, kind: ParamKind::Done(parser) }
}

fn key_kind(args: &mut Args<'_>) -> Result<KeyKind, Fault> {
    let word = args.need("<type>")?;
    let known = "known are ip, ipv6, integer, string and binary";
    let of: fn(usize) -> KeyKind = match word {
        "ip" | "ipv4" => return Ok(KeyKind::Ip),
        "ipv6" => return Ok(KeyKind::Ipv6),
        "integer" => return Ok(KeyKind::Integer),
        "string" => KeyKind::Text,
        "binary" => KeyKind::Binary,
        other => return Err(args.fault(format!("unknown type '{other}'")).hint(known)),
    };
    let usual = if word == "string" { USUAL_KEY - 1 } else { USUAL_KEY };
    let len = if args.accept("len") { args.integer("<len>", 1..=LONGEST_KEY)? } else { usual };
    Ok(of(usize::try_from(len).unwrap_or_default()))
}

/// `gpc0,conn_rate(10s),gpc(3),gpc_rate(3,10s)`: kinds of data, each once.
fn store(args: &mut Args<'_>, draft: &mut Draft) -> Result<(), Fault> {
    let mut rest = args.need("<data>")?;
    while !rest.is_empty() {
        let end = rest.find([',', '(']).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let (inside, behind) = match behind.strip_prefix('(') {
            Some(inside) => match inside.split_once(')') {
                Some((inside, behind)) => (Some(inside), behind),
                None => return Err(args.fault(format!("missing closing parenthesis behind '{name}'"))),
            },
            None => (None, behind),
        };
        rest = match behind.strip_prefix(',') {
            Some(next) => next,
            None if behind.is_empty() => behind,
            None => return Err(args.fault(format!("expects ',' before '{behind}'"))),
        };
        let Some(data) = Data::of(name) else {
            let near = terse_config::near::nearest(name, Data::ALL.iter().map(|data| data.name()));
            let fault = args.fault(format!("unknown kind of data '{name}'"));
            return Err(match near.first() {
                Some(near) => fault.hint(format!("did you mean '{near}'?")),
                None => fault,
            });
        };
        let stored = stored(data, inside).map_err(|reason| args.fault(reason))?;
        if draft.store.iter().any(|known| known.data == data) {
            args.warn(format!("'{name}' stands twice; the second is ignored"));
        } else {
            draft.store.push(stored);
        }
    }
    for (whole, parts) in
        [(Data::Gpt, &[Data::Gpt0][..]), (Data::Gpc, &[Data::Gpc0, Data::Gpc1]), (Data::GpcRate, &[Data::Gpc0Rate, Data::Gpc1Rate])]
    {
        let has = |data: Data| draft.store.iter().any(|stored| stored.data == data);
        if let Some(part) = parts.iter().find(|part| has(whole) && has(**part)) {
            return Err(args.fault(format!("'{whole}' and '{part}' cannot be in one table: '{part}' means the same")));
        }
    }
    Ok(())
}

/// Parses the text in the parentheses: the number of elements, the period.
fn stored(data: Data, inside: Option<&str>) -> Result<Stored, String> {
    let mut given = inside.map(|inside| inside.split(',').map(str::trim)).into_iter().flatten();
    let mut next = |what: &str| given.next().filter(|word| !word.is_empty()).ok_or_else(|| format!("'{data}' needs {what}"));
    let elements = match data.is_array() {
        false => 1,
        true => {
            let word = next("a number in parentheses")?;
            let number = word.parse().ok().filter(|number| (1..=MOST_ELEMENTS).contains(number));
            number.ok_or_else(|| format!("'{data}': '{word}' is not a number between 1 and {MOST_ELEMENTS}"))?
        }
    };
    let period_ms = match data.shape() {
        Shape::Rate => {
            let word = next("a period in parentheses")?;
            let time = parse_time(word).map_err(|reason| format!("'{data}': {reason}"))?.as_millis();
            let time = u32::try_from(time).ok().filter(|time| (1..=MOST_MS).contains(time));
            time.ok_or_else(|| format!("'{data}': a period is between 1 ms and 2147483647 ms"))?
        }
        _ => 0,
    };
    match given.next() {
        Some(extra) => Err(format!("'{data}' takes no argument '{extra}'")),
        None => Ok(Stored { data, elements, period_ms }),
    }
}

/// Limit of HAProxy's times.
const MOST_MS: u32 = i32::MAX as u32;
/// HAProxy's limit of counters by number.
const MOST_ELEMENTS: u32 = 100;
/// Default number of bytes of binary keys; text has one less, as with HAProxy, whose text ends with a NUL.
const USUAL_KEY: i64 = 32;
/// A key comes out of a head, and a head fits a buffer.
const LONGEST_KEY: i64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::super::tests::load_as;
    use super::*;

    fn line(text: &str) -> TableSettings {
        let (line, said) = load_as::<TableLine>(&format!("backend b\n{text}\n"));
        assert_eq!(said.into_iter().filter(|said| !said.contains('?')).collect::<Vec<_>>(), [""; 0], "{text}");
        line.0.unwrap()
    }

    fn problems(lines: &str) -> Vec<String> {
        load_as::<TableLine>(&format!("backend b\n{lines}\n")).1
    }

    #[test]
    fn a_line_with_everything() {
        let table = line(
            "stick-table type string len 9 size 1m expire 30s nopurge srvkey addr brates-factor 4 recv-only write-to other \
             store gpc(3),gpc_rate(3,10s) store conn_cur,conn_rate(5)",
        );
        assert_eq!((table.key, table.size, table.expire_ms), (KeyKind::Text(9), 1 << 20, Some(30_000)));
        assert_eq!((table.no_purge, table.server_key, table.byte_rate_factor), (true, ServerKeyKind::Address, 4));
        assert_eq!(table.write_to.as_deref(), Some("other"));
        let store: Vec<_> = table.store.iter().map(|stored| (stored.data, stored.elements, stored.period_ms)).collect();
        let expected = [(Data::Gpc, 3, 0), (Data::GpcRate, 3, 10_000), (Data::ConnCur, 1, 0), (Data::ConnRate, 1, 5)];
        assert_eq!(store, expected);
    }

    #[test]
    fn kinds_of_keys() {
        for (words, kind) in [
            ("ip", KeyKind::Ip),
            ("ipv4", KeyKind::Ip),
            ("ipv6", KeyKind::Ipv6),
            ("integer", KeyKind::Integer),
            ("string", KeyKind::Text(31)),
            ("binary len 20", KeyKind::Binary(20)),
        ] {
            assert_eq!(line(&format!("stick-table type {words} size 1")).key, kind, "{words}");
        }
        assert_eq!(line("stick-table type ip size 1 expire 0").expire_ms, None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (words, said) in [
            ("size 1", "needs 'type'"),
            ("type ip", "needs 'size'"),
            ("type ip size 0", "between 1 and"),
            ("type ip size 1x", "<n>"),
            ("type foo size 1", "unknown type 'foo'"),
            ("type string len 0 size 1", "<len>"),
            ("type ip size 1 expire 30d", "24.8 days"),
            ("type ip size 1 store gpc", "needs a number"),
            ("type ip size 1 store gpc(101)", "between 1 and 100"),
            ("type ip size 1 store conn_rate", "needs a period"),
            ("type ip size 1 store conn_rate(x)", "'conn_rate'"),
            ("type ip size 1 store conn_cnt(1)", "takes no argument '1'"),
            ("type ip size 1 store conn_cont", "unknown kind of data 'conn_cont'"),
            ("type ip size 1 store gpc0(", "missing closing parenthesis"),
            ("type ip size 1 store gpc0)", "unknown kind"),
            ("type ip size 1 store gpc(2),gpc1", "cannot be in one table"),
            ("type ip size 1 srvkey x", "unknown key of servers"),
            ("type ip size 1 peers", "<section>"),
            ("type ip size 1 brates-factor 0", "<n>"),
            ("type ip size 1 expir 1s", "unknown parameter 'expir'"),
        ] {
            let problems = problems(&format!("stick-table {words}"));
            assert!(problems.len() == 1 && problems[0].contains(said), "{words}: {problems:?}");
        }
        let twice = problems("stick-table type ip size 1\nstick-table type ip size 1");
        assert!(twice.len() == 1 && twice[0].contains("once"), "{twice:?}");
    }
}
