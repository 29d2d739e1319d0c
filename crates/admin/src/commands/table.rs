//! Stick tables: shown, set, cleared.

use crate::answer::{Answer, Message, Outcome, Pieces};
use crate::command::{Call, Command};
use crate::settings::Level;
use crate::words::Word;
use data_encoding::HEXUPPER;
use std::cmp::Ordering;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;
use terse_balance::table::{Data, Entry, KeyKind, Shape, Stored, Table};
use terse_proxy::track::key::{value, with_key};
use terse_sample::{Value, cast};

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "show table",
        usage: "show table [<table> [key <key> | ptr <pointer> | data.<type> <operator> <value>...]]",
        summary: "list the stick tables, or show one's entries",
        level: Level::User,
        run: show,
    },
    Command {
        name: "set table",
        usage: "set table <table> {key <key> | ptr <pointer>} [data.<type> <value>]...",
        summary: "make an entry of a stick table, or set what it holds",
        level: Level::Operator,
        run: |call| act(call, Act::Set),
    },
    Command {
        name: "clear table",
        usage: "clear table <table> [key <key> | ptr <pointer> | data.<type> <operator> <value>...]",
        summary: "remove entries of a stick table",
        level: Level::Operator,
        run: |call| act(call, Act::Clear),
    },
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Show,
    Set,
    Clear,
}

fn show(call: &mut Call<'_>) -> Outcome {
    if !call.args.is_empty() {
        return act(call, Act::Show);
    }
    let now_ms = call.context.plan.table_ms(Instant::now());
    // The last one first, as HAProxy has it.
    Ok(Answer::Text(call.context.plan.tables.iter().rev().map(|table| head(table, now_ms)).collect()))
}

fn act(call: &mut Call<'_>, act: Act) -> Outcome {
    let now_ms = call.context.plan.table_ms(Instant::now());
    let Some((name, rest)) = call.args.split_first() else { return Err(wrong(act)) };
    let table = call.context.plan.tables.iter().find(|table| **table.name() == **name);
    let table = table.ok_or_else(|| Message::error("No such table"))?;
    match rest {
        [] if act == Act::Set => Err(wrong(act)),
        [] => several(call, table, Vec::new(), act, now_ms),
        [word, behind @ ..] if word == "key" => {
            let entry = by_key(table, behind.first(), act, now_ms)?;
            one(call, table, entry, behind.get(1..).unwrap_or_default(), act, now_ms)
        }
        [word, behind @ ..] if word == "ptr" => {
            let entry = by_pointer(table, behind.first(), now_ms)?;
            one(call, table, Some(entry), behind.get(1..).unwrap_or_default(), act, now_ms)
        }
        [word, ..] if word.starts_with("data.") => match act {
            Act::Set => Err(Message::error("content-based lookup is only supported with the \"show\" and \"clear\" actions")),
            Act::Show | Act::Clear => several(call, table, filters(table, rest)?, act, now_ms),
        },
        _ => Err(wrong(act)),
    }
}

fn wrong(act: Act) -> Message {
    Message::error(match act {
        Act::Show => "Optional argument only supports \"data.<store_data_type>\" <operator> <value> or key <key> or ptr <ptr>",
        Act::Clear => {
            "Required arguments: <table> \"data.<store_data_type>\" <operator> <value> or <table> key <key> or <table> ptr <ptr>"
        }
        Act::Set => {
            "Required arguments: <table> key <key> [data.<store_data_type> <value>]* or <table> ptr <ptr> \
             [data.<store_data_type> <value>]*"
        }
    })
}

/// Shows or removes all entries that pass the filters.
fn several(call: &mut Call<'_>, table: &Arc<Table>, filters: Vec<Filter>, act: Act, now_ms: u64) -> Outcome {
    if act != Act::Show {
        // Tracked entries stay.
        let clear = |_: &mut String, table: &Table, entry: &Arc<Entry>| _ = table.remove(entry);
        call.client.pieces = Some(walk(table.clone(), String::new(), filters, now_ms, clear));
        return Ok(Answer::Done);
    }
    let head = head(table, now_ms);
    if call.client.level < Level::Operator {
        return Ok(Answer::Text(head + "# contents not dumped due to insufficient privileges\n"));
    }
    call.client.pieces = Some(walk(table.clone(), head, filters, now_ms, move |text, table, entry| {
        write_entry(text, table, entry, now_ms);
    }));
    Ok(Answer::Done)
}

/// Visits the entries that pass the filters, some at a time: all at once could be much, and take long even if none
/// passes.
fn walk(
    table: Arc<Table>,
    head: String,
    filters: Vec<Filter>,
    now_ms: u64,
    visit: impl Fn(&mut String, &Table, &Arc<Entry>) + Send + Sync + 'static,
) -> Pieces {
    let (mut head, mut shard, mut entries) = (Some(head), 0, Vec::new().into_iter());
    Pieces::new(move || {
        let mut text = head.take().unwrap_or_default();
        for _ in 0..PIECE_ENTRIES {
            let Some(entry) = entries.next() else {
                if shard == table.shards() {
                    return (!text.is_empty()).then_some(text);
                }
                entries = table.entries(shard, now_ms).into_iter();
                shard += 1;
                continue;
            };
            if filters.iter().all(|filter| filter.passes(&table, &entry, now_ms)) {
                visit(&mut text, &table, &entry);
            }
        }
        Some(text)
    })
}

/// Number of entries that are visited at a time.
const PIECE_ENTRIES: usize = 256;

/// Shows, sets or removes an entry; a missing entry is no mistake.
fn one(call: &Call<'_>, table: &Table, entry: Option<Arc<Entry>>, rest: &[Word], act: Act, now_ms: u64) -> Outcome {
    if matches!(table.settings().key, KeyKind::Binary(_)) {
        let doing = match act {
            Act::Show => "Showing keys from",
            Act::Clear => "Removing keys from",
            Act::Set => "Inserting keys into",
        };
        let of = "tables of type other than ip, ipv6, string and integer is not supported";
        return Err(Message::error(format!("{doing} {of}")));
    }
    call.require(Level::Operator)?;
    let Some(entry) = entry else { return Ok(Answer::Done) };
    match act {
        Act::Show => {
            let mut text = head(table, now_ms);
            write_entry(&mut text, table, &entry, now_ms);
            Ok(Answer::Text(text))
        }
        Act::Clear if table.remove(&entry) => Ok(Answer::Done),
        Act::Clear => Err(Message::error("Entry currently in use, cannot remove")),
        Act::Set => {
            let answer = set(table, &entry, rest, now_ms);
            table.touch(&entry, now_ms);
            answer
        }
    }
}

/// `data.<type> <value>`, any number of them.
fn set(table: &Table, entry: &Entry, words: &[Word], now_ms: u64) -> Outcome {
    for pair in words.chunks(2) {
        let name = pair.first().and_then(|word| word.strip_prefix("data."));
        let name = name.ok_or_else(|| Message::error("\"data.<type>\" followed by a value expected"))?;
        let (data, element) = stored(table, name).map_err(Message::error)?;
        if data.shape() == Shape::Name {
            return Err(Message::error("The server of a key is learnt, not set"));
        }
        let number: i64 = pair
            .get(1)
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| Message::error("Require a valid integer value to store"))?;
        table
            .set(entry, data, element, number as u64, now_ms)
            .ok_or_else(|| Message::error("index out of range in this data array"))?;
    }
    Ok(Answer::Done)
}

/// Kind of data of that name, which the table must store; counters by number go by their own names as well.
fn stored(table: &Table, name: &str) -> Result<(Data, u32), &'static str> {
    let (data, element) = Data::numbered(name).ok_or("Unknown data type")?;
    let named = match data {
        Data::Gpt0 => (Data::Gpt, 0),
        Data::Gpc0 => (Data::Gpc, 0),
        Data::Gpc1 => (Data::Gpc, 1),
        Data::Gpc0Rate => (Data::GpcRate, 0),
        Data::Gpc1Rate => (Data::GpcRate, 1),
        _ => (data, element),
    };
    let choices = [(data, element), named];
    choices.into_iter().find(|(data, _)| table.has(*data)).ok_or("Data type not stored in this table")
}

fn by_key(table: &Table, word: Option<&Word>, act: Act, now_ms: u64) -> Result<Option<Arc<Entry>>, Message> {
    let word = word.ok_or_else(|| Message::error("Key value expected"))?;
    let kind = table.settings().key;
    let key = match kind {
        // Either family is accepted, and converted to the table's; text after an address is not ignored, unlike in
        // traffic.
        KeyKind::Ip | KeyKind::Ipv6 => cast::whole_addr(word.bytes()).map(Value::Addr),
        _ => Some(Value::str(word.bytes())),
    };
    let entry = key.and_then(|key| {
        with_key(kind, key, |key| match act {
            Act::Set => table.obtain(key, now_ms).map(Some),
            _ => Some(table.find(key, now_ms)),
        })
    });
    entry.ok_or_else(|| Message::error("Invalid key"))?.ok_or_else(|| Message::error("Unable to allocate a new entry"))
}

/// Entry that a dump has shown under this number.
fn by_pointer(table: &Table, word: Option<&Word>, now_ms: u64) -> Result<Arc<Entry>, Message> {
    let digits = word.and_then(|word| word.strip_prefix("0x"));
    let digits = digits.ok_or_else(|| Message::error("Pointer expected (0xffff notation)"))?;
    let pointer = usize::from_str_radix(digits, 16).map_err(|_| Message::error("Malformed ptr."))?;
    let found = (0..table.shards())
        .find_map(|shard| table.entries(shard, now_ms).into_iter().find(|entry| Arc::as_ptr(entry).addr() == pointer));
    found.ok_or_else(|| Message::error("No entry can be found matching ptr."))
}

/// `data.<type> <operator> <value>`
struct Filter {
    data: Data,
    element: u32,
    allowed: Allowed,
    value: i64,
}

impl Filter {
    fn passes(&self, table: &Table, entry: &Entry, now_ms: u64) -> bool {
        let Some(number) = table.read(entry, self.data, self.element, now_ms) else { return false };
        (self.allowed)(i64::try_from(number).unwrap_or(i64::MAX).cmp(&self.value))
    }
}

fn filters(table: &Table, words: &[Word]) -> Result<Vec<Filter>, Message> {
    let wrong = |at: usize, what: &str| Message::error(format!("Filter entry #{}: {what}", at + 1));
    let mut filters = Vec::new();
    for (at, words) in words.chunks(3).enumerate() {
        if at == MOST_FILTERS {
            return Err(Message::error("Detected extra data in filter"));
        }
        let name = words.first().and_then(|word| word.strip_prefix("data.")).unwrap_or_default();
        let (data, element) = stored(table, name).map_err(|what| wrong(at, what))?;
        let operator = words.get(1).map_or("", Word::as_str);
        let allowed = OPERATORS
            .iter()
            .find(|(word, _)| *word == operator)
            .map(|(_, allowed)| *allowed)
            .ok_or_else(|| wrong(at, "Require and operator among \"eq\", \"ne\", \"le\", \"ge\", \"lt\", \"gt\""))?;
        let value = words.get(2).and_then(|word| word.parse().ok());
        let value = value.ok_or_else(|| wrong(at, "Require a valid integer value to compare against"))?;
        filters.push(Filter { data, element, allowed, value });
    }
    Ok(filters)
}

type Allowed = fn(Ordering) -> bool;

const OPERATORS: &[(&str, Allowed)] = &[
    ("eq", Ordering::is_eq),
    ("ne", Ordering::is_ne),
    ("le", Ordering::is_le),
    ("ge", Ordering::is_ge),
    ("lt", Ordering::is_lt),
    ("gt", Ordering::is_gt),
];

/// HAProxy's limit.
const MOST_FILTERS: usize = 4;

fn head(table: &Table, now_ms: u64) -> String {
    let (name, kind) = (table.name(), table.settings().key.name());
    format!("# table: {name}, type: {kind}, size:{}, used:{}\n", table.size(), table.used(now_ms))
}

fn write_entry(text: &mut String, table: &Table, entry: &Arc<Entry>, now_ms: u64) {
    let _ = write!(text, "{:#x}: key=", Arc::as_ptr(entry).addr());
    write_key(text, table.settings().key, entry.key());
    let _ = write!(text, " use={} exp={} shard=0", entry.trackers(), table.remaining_ms(entry, now_ms));
    for Stored { data, elements, period_ms } in table.layout().stored() {
        for element in 0..elements {
            text.push(' ');
            // The number comes before the rest of the name: `gpc3_rate`.
            match (data.is_array(), data.name().split_once('_')) {
                (false, _) => text.push_str(data.name()),
                (true, None) => text.push_str(&format!("{data}{element}")),
                (true, Some((first, rest))) => text.push_str(&format!("{first}{element}_{rest}")),
            }
            if data.shape() == Shape::Rate {
                let _ = write!(text, "({period_ms})");
            }
            let number = table.read(entry, data, element, now_ms).unwrap_or_default();
            let _ = match data.shape() {
                Shape::Name => write!(text, "={}", shown_name(table.name_of(entry, data).as_deref().unwrap_or("-"))),
                Shape::Signed => write!(text, "={}", number as i32),
                Shape::Count | Shape::Bytes | Shape::Rate => write!(text, "={number}"),
            };
        }
    }
    text.push('\n');
}

fn write_key(text: &mut String, kind: KeyKind, key: &[u8]) {
    match kind {
        KeyKind::Binary(_) => text.push_str(&HEXUPPER.encode(key)),
        KeyKind::Text(_) => write_text(text, key),
        _ => {
            let shown = value(kind, key).and_then(|value| value.into_octets());
            text.push_str(&String::from_utf8_lossy(shown.as_deref().unwrap_or_default()));
        }
    }
}

/// A name without control characters.
fn shown_name(name: &str) -> String {
    let mut shown = String::new();
    for character in name.chars() {
        match character.is_control() {
            true => write_text(&mut shown, character.encode_utf8(&mut [0; 4]).as_bytes()),
            false => shown.push(character),
        }
    }
    shown
}

/// Text without bytes that could end a line or a word.
fn write_text(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            b' ' | b'\\' | b'=' => text.extend(['\\', char::from(*byte)]),
            b'\t' => text.push_str("\\t"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            0x1b => text.push_str("\\e"),
            byte if byte.is_ascii_graphic() => text.push(char::from(*byte)),
            byte => text.push_str(&format!("\\x{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::fixture::Talk;

    const TABLES: &str = "backend ips\n stick-table type ip size 1k expire 1h store gpc0,gpt0,conn_rate(10s)\n\
        backend texts\n stick-table type string len 9 size 10 store gpc(2),gpc_rate(2,10s),server_key\n\
        backend bytes\n stick-table type binary len 2 size 10\n";

    /// An answer without what changes from run to run.
    fn says(talk: &mut Talk, command: &str) -> String {
        let answer = talk.says(command);
        let lines = answer.lines().map(|line| match line.strip_prefix("0x").and_then(|line| line.split_once(':')) {
            Some((_, rest)) => {
                format!("0x:{}", rest.split(' ').filter(|word| !word.starts_with("exp=")).collect::<Vec<_>>().join(" "))
            }
            None => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    #[test]
    fn tables_are_listed_the_last_first() {
        let mut talk = Talk::new(TABLES);
        assert_eq!(
            says(&mut talk, "show table"),
            "# table: bytes, type: binary, size:10, used:0\n# table: texts, type: string, size:10, used:0\n\
             # table: ips, type: ip, size:1024, used:0"
        );
    }

    #[test]
    fn entries_are_set_shown_and_cleared() {
        let mut talk = Talk::new(TABLES);
        assert_eq!(talk.says("set table ips key 10.0.0.1 data.gpc0 7 data.gpt0 3 data.conn_rate 5"), "\n");
        assert_eq!(talk.says("set table ips key ::ffff:10.0.0.2"), "\n");
        let first = "0x: key=10.0.0.1 use=0 shard=0 gpt0=3 gpc0=7 conn_rate(10000)=5";
        let second = "0x: key=10.0.0.2 use=0 shard=0 gpt0=0 gpc0=0 conn_rate(10000)=0";
        let head = |used: u32| format!("# table: ips, type: ip, size:1024, used:{used}");
        let all = says(&mut talk, "show table ips");
        assert!(all.starts_with(&head(2)) && all.contains(first) && all.contains(second), "{all}");
        assert_eq!(says(&mut talk, "show table ips key 10.0.0.1"), format!("{}\n{first}", head(2)));
        assert_eq!(says(&mut talk, "show table ips data.gpc0 gt 0 data.gpt0 le 3"), format!("{}\n{first}", head(2)));
        assert_eq!(talk.says("show table ips key 10.0.0.9"), "\n");
        let pointer = talk.says("show table ips key 10.0.0.1");
        let pointer = pointer.lines().nth(1).and_then(|line| line.split(':').next()).unwrap().to_owned();
        assert_eq!(says(&mut talk, &format!("show table ips ptr {pointer}")), format!("{}\n{first}", head(2)));
        assert_eq!(talk.says("clear table ips data.gpc0 ne 7"), "\n");
        assert_eq!(says(&mut talk, "show table ips"), format!("{}\n{first}", head(1)));
        assert_eq!(talk.says("clear table ips key 10.0.0.1"), "\n");
        assert_eq!(says(&mut talk, "show table ips"), head(0));
    }

    #[test]
    fn control_characters_of_names_are_escaped() {
        assert_eq!(shown_name("a=1.\u{e9}\n\u{1b}[2J\u{85}"), "a=1.\u{e9}\\n\\e[2J\\xC2\\x85");
    }

    #[test]
    fn many_entries_are_visited_some_at_a_time() {
        let mut talk = Talk::new(TABLES);
        let table = talk.context.plan.tables[0].clone();
        let now_ms = talk.context.plan.table_ms(Instant::now());
        for n in 0..1000u32 {
            table.obtain(&n.to_be_bytes(), now_ms).unwrap();
        }
        let filters = || filters(&table, &["data.gpc0", "gt", "0"].map(Word::from)).unwrap();
        let mut none = walk(table.clone(), String::new(), filters(), now_ms, |_, _, _| panic!("none passes"));
        let pieces: Vec<_> = std::iter::from_fn(|| none.next()).collect();
        assert!(pieces.len() >= 3 && pieces.iter().all(Vec::is_empty), "{pieces:?}");
        assert_eq!(says(&mut talk, "show table ips").lines().count(), 1001);
        assert_eq!((talk.says("clear table ips"), table.used(now_ms)), ("\n".into(), 0));
    }

    #[test]
    fn numbers_and_names() {
        let mut talk = Talk::new(TABLES);
        talk.says("set table texts key a\\ b data.gpc1 5 data.gpc0_rate 6");
        let line = "0x: key=a\\ b use=0 shard=0 server_key=- gpc0=0 gpc1=5 gpc0_rate(10000)=6 gpc1_rate(10000)=0";
        assert_eq!(says(&mut talk, "show table texts"), format!("# table: texts, type: string, size:10, used:1\n{line}"));
        assert!(says(&mut talk, "show table texts data.gpc[1] eq 5 data.gpc eq 0").ends_with(line));
        assert_eq!(talk.says("set table texts key a\\ b data.gpc[0] 8 data.gpc_rate[0] 6"), "\n");
        assert!(says(&mut talk, "show table texts").contains(" gpc0=8 gpc1=5 gpc0_rate(10000)=6"));
        talk.says("clear table texts");
        assert_eq!(says(&mut talk, "show table texts"), "# table: texts, type: string, size:10, used:0");
    }

    #[test]
    fn what_is_wrong_is_said_in_haproxys_words() {
        let mut talk = Talk::new(TABLES);
        for (command, said) in [
            ("show table nope", "No such table"),
            ("clear table", "Required arguments: <table> \"data."),
            ("set table ips", "Required arguments: <table> key <key>"),
            ("show table ips foo", "Optional argument only supports"),
            ("show table ips key", "Key value expected"),
            ("show table ips key x", "Invalid key"),
            ("clear table ips key 10.0.0.0/8", "Invalid key"),
            ("set table ips key 10.0.0.1x data.gpc0 1", "Invalid key"),
            ("show table ips ptr 12", "Pointer expected"),
            ("show table ips ptr 0xzz", "Malformed ptr."),
            ("show table ips ptr 0x12", "No entry can be found"),
            ("show table ips data.foo gt 1", "Filter entry #1: Unknown data type"),
            ("show table ips data.gpc1 gt 1", "Filter entry #1: Data type not stored"),
            ("show table ips data.gpc0 gt 1 data.gpc0 x 1", "Filter entry #2: Require and operator"),
            ("show table ips data.gpc0 gt x", "Filter entry #1: Require a valid integer"),
            ("set table ips key 10.0.0.1 gpc0 1", "\"data.<type>\" followed by a value expected"),
            ("set table ips key 10.0.0.1 data.gpc0", "Require a valid integer"),
            ("set table texts key a data.gpc2 1", "index out of range"),
            ("set table bytes key a", "Inserting keys into tables of type other"),
            ("set table ips data.gpc0 gt 1", "content-based lookup"),
        ] {
            assert!(talk.says(command).starts_with(said), "{command}: {}", talk.says(command));
        }
    }
}
