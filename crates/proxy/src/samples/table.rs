//! Values of stick tables: of the keys that slots track (`sc_`, `sc0_`, `sc1_`, `sc2_`), of the client's address (`src_`), of
//! any value (converters `table_`).
//!
//! All are made of a single list of queries ([`Ask`]). Where a key has no entry, the answer is 0; where the table does not
//! store the data, there is no value.

use super::facts;
use crate::facts::Facts;
use crate::track::key::{value, with_key};
use crate::track::name::{TableName, Want};
use terse_balance::table::{Data, Entry, Table};
use terse_sample::argument::{Arg, Own, Param, ParamKind, may, need};
use terse_sample::{ArgList, Compiler, Converter, Env, Fetch, Type, Value};

/// A query of an entry, or a change of it.
#[derive(Clone, Copy)]
enum Ask {
    /// A number.
    Number(Data),
    /// A number of bytes, in KiB.
    Kbytes(Data),
    /// A number by its number.
    Numbered(Data),
    /// The number that has a name of its own, or else has this number among its like.
    Named(Data, Data, u32),
    /// Counts, and returns the new number: the counter, and the rate that is counted along.
    Count(Counted),
    /// Sets to 0, and gives the number before.
    Clear(Counted),
    /// Number of streams and sessions that track it.
    Trackers,
    /// Whether there is an entry.
    Exists,
}

/// A general purpose counter.
#[derive(Clone, Copy)]
enum Counted {
    /// By the given number.
    Numbered,
    /// `gpc0`
    First,
    /// `gpc1`
    Second,
}

impl Ask {
    const fn takes_number(self) -> bool {
        matches!(self, Ask::Numbered(_) | Ask::Count(Counted::Numbered) | Ask::Clear(Counted::Numbered))
    }

    /// Whether a key without an entry gets one.
    const fn creates(self) -> bool {
        matches!(self, Ask::Count(_) | Ask::Clear(_))
    }

    const fn output(self) -> Type {
        if matches!(self, Ask::Exists) { Type::Bool } else { Type::Int }
    }

    /// The data that the table must store for it: either of two.
    const fn wants(self) -> Want {
        match self {
            Ask::Number(data) | Ask::Kbytes(data) | Ask::Numbered(data) => Want::Data(data, None),
            Ask::Named(data, array, _) => Want::Data(data, Some(array)),
            Ask::Count(counted) | Ask::Clear(counted) => match counted.kinds() {
                (data, _) if data.is_array() => Want::Data(data, None),
                (data, _) => Want::Data(data, Some(Data::Gpc)),
            },
            Ask::Trackers | Ask::Exists => Want::Table,
        }
    }

    /// The answer of an entry.
    fn of(self, table: &Table, entry: &Entry, number: u32, now_ms: u64) -> Option<u64> {
        match self {
            Ask::Number(data) => table.read(entry, data, 0, now_ms),
            Ask::Kbytes(data) => Some(table.read(entry, data, 0, now_ms)? >> 10),
            Ask::Numbered(data) => table.read(entry, data, number, now_ms),
            Ask::Named(data, array, place) => {
                table.read(entry, data, 0, now_ms).or_else(|| table.read(entry, array, place, now_ms))
            }
            Ask::Count(counted) => {
                let (count, rate) = counted.kinds();
                let counted_one = |kind, array| match table.has(kind) {
                    true => table.add(entry, kind, counted.place(kind, number), 1, now_ms),
                    false => table.add(entry, array, counted.place(array, number), 1, now_ms),
                };
                let rate = counted_one(rate, Data::GpcRate);
                let count = counted_one(count, Data::Gpc);
                if count.or(rate).is_some() {
                    table.touch(entry, now_ms);
                }
                Some(count.or(rate).unwrap_or(0))
            }
            Ask::Clear(counted) => {
                let (count, _) = counted.kinds();
                let kind = if table.has(count) { count } else { Data::Gpc };
                let before = table.set(entry, kind, counted.place(kind, number), 0, now_ms)?;
                table.touch(entry, now_ms);
                Some(before)
            }
            Ask::Trackers => Some(entry.trackers().into()),
            Ask::Exists => Some(1),
        }
    }
}

impl Counted {
    /// The counter, and the rate that is counted along.
    const fn kinds(self) -> (Data, Data) {
        match self {
            Counted::Numbered => (Data::Gpc, Data::GpcRate),
            Counted::First => (Data::Gpc0, Data::Gpc0Rate),
            Counted::Second => (Data::Gpc1, Data::Gpc1Rate),
        }
    }

    /// Its place among its like.
    const fn place(self, kind: Data, number: u32) -> u32 {
        match self {
            _ if !kind.is_array() => 0,
            Counted::Numbered => number,
            Counted::First => 0,
            Counted::Second => 1,
        }
    }
}

/// The queries of tracked keys, of the client's address and of any value: the name of the fetch, the name of the converter,
/// the query, and the type of the result.
macro_rules! asked {
    ($then:ident!($($head:tt)*)) => {
        $then! {
            ($($head)*)
            "bytes_in_rate" "bytes_in_rate" Ask::Number(Data::BytesInRate), "Bytes from clients in a period";
            "bytes_out_rate" "bytes_out_rate" Ask::Number(Data::BytesOutRate), "Bytes to clients in a period";
            "clr_gpc" "clr_gpc" Ask::Clear(Counted::Numbered), "Sets a general purpose counter to 0, and gives what it was";
            "clr_gpc0" "clr_gpc0" Ask::Clear(Counted::First), "Sets the first general purpose counter to 0, and gives what it was";
            "clr_gpc1" "clr_gpc1" Ask::Clear(Counted::Second), "Sets the second general purpose counter to 0, and gives what it was";
            "conn_cnt" "conn_cnt" Ask::Number(Data::ConnCnt), "How often it began to be tracked";
            "conn_cur" "conn_cur" Ask::Number(Data::ConnCur), "How many connections and requests track it now";
            "conn_rate" "conn_rate" Ask::Number(Data::ConnRate), "How often it began to be tracked in a period";
            "get_gpc" "gpc" Ask::Numbered(Data::Gpc), "A general purpose counter";
            "get_gpc0" "gpc0" Ask::Named(Data::Gpc0, Data::Gpc, 0), "The first general purpose counter";
            "get_gpc1" "gpc1" Ask::Named(Data::Gpc1, Data::Gpc, 1), "The second general purpose counter";
            "get_gpt" "gpt" Ask::Numbered(Data::Gpt), "A tag";
            "get_gpt0" "gpt0" Ask::Named(Data::Gpt0, Data::Gpt, 0), "The first tag";
            "glitch_cnt" "glitch_cnt" Ask::Number(Data::GlitchCnt), "Odd things that clients did within their protocol";
            "glitch_rate" "glitch_rate" Ask::Number(Data::GlitchRate), "Odd things that clients did within their protocol, in a period";
            "gpc_rate" "gpc_rate" Ask::Numbered(Data::GpcRate), "How often a general purpose counter was counted up in a period";
            "gpc0_rate" "gpc0_rate" Ask::Named(Data::Gpc0Rate, Data::GpcRate, 0), "How often the first general purpose counter was counted up in a period";
            "gpc1_rate" "gpc1_rate" Ask::Named(Data::Gpc1Rate, Data::GpcRate, 1), "How often the second general purpose counter was counted up in a period";
            "http_err_cnt" "http_err_cnt" Ask::Number(Data::HttpErrCnt), "Requests that failed by their client's fault";
            "http_err_rate" "http_err_rate" Ask::Number(Data::HttpErrRate), "Requests that failed by their client's fault, in a period";
            "http_fail_cnt" "http_fail_cnt" Ask::Number(Data::HttpFailCnt), "Requests that failed by their server's fault";
            "http_fail_rate" "http_fail_rate" Ask::Number(Data::HttpFailRate), "Requests that failed by their server's fault, in a period";
            "http_req_cnt" "http_req_cnt" Ask::Number(Data::HttpReqCnt), "Requests";
            "http_req_rate" "http_req_rate" Ask::Number(Data::HttpReqRate), "Requests in a period";
            "inc_gpc" "inc_gpc" Ask::Count(Counted::Numbered), "Counts a general purpose counter up, and gives what it is";
            "inc_gpc0" "inc_gpc0" Ask::Count(Counted::First), "Counts the first general purpose counter up, and gives what it is";
            "inc_gpc1" "inc_gpc1" Ask::Count(Counted::Second), "Counts the second general purpose counter up, and gives what it is";
            "kbytes_in" "kbytes_in" Ask::Kbytes(Data::BytesInCnt), "KiB from clients";
            "kbytes_out" "kbytes_out" Ask::Kbytes(Data::BytesOutCnt), "KiB to clients";
            "sess_cnt" "sess_cnt" Ask::Number(Data::SessCnt), "Connections that were accepted";
            "sess_rate" "sess_rate" Ask::Number(Data::SessRate), "Connections that were accepted, in a period";
        }
    };
}

/// Fetches of the key in a slot.
macro_rules! of_slot {
    (($prefix:literal, $slot:expr, $where:literal) $($fetch:literal $converter:literal $ask:expr, $what:literal;)*) => {
        &[
            $(Fetch::one(concat!($prefix, $fetch), Type::Int, concat!($what, ": ", $where), |args, env| ask_slot(args, env, $ask))
                .params(slot_params($ask.takes_number(), $slot.is_none()))
                .check(|args, compiler| settle_slot(args, compiler, $ask, $slot)),)*
            Fetch::one(concat!($prefix, "key"), Type::Any, concat!("The key: ", $where), |args, env| slot_key(args, env))
                .params(slot_params(false, $slot.is_none()))
                .check(|args, compiler| settle_slot(args, compiler, Ask::Exists, $slot)),
            Fetch::one(concat!($prefix, "tracked"), Type::Bool, concat!("Whether there is one: ", $where), |args, env| {
                Some(Value::Bool(ask_slot(args, env, Ask::Exists).is_some()))
            })
            .params(slot_params(false, $slot.is_none()))
            .check(|args, compiler| settle_slot(args, compiler, Ask::Exists, $slot)),
            Fetch::one(concat!($prefix, "trackers"), Type::Int, concat!("How many track it: ", $where), |args, env| {
                ask_slot(args, env, Ask::Trackers)
            })
            .params(slot_params(false, $slot.is_none()))
            .check(|args, compiler| settle_slot(args, compiler, Ask::Trackers, $slot)),
        ]
    };
}

/// Fetches of the client's address.
macro_rules! of_client {
    (() $($fetch:literal $converter:literal $ask:expr, $what:literal;)*) => {
        &[
            $(Fetch::one(concat!("src_", $fetch), Type::Int, concat!($what, ": of the client's address."), |args, env| {
                ask_client(args, env, $ask)
            })
            .params(table_params($ask.takes_number()))
            .check(|args, compiler| settle_table(args, compiler, $ask)),)*
            Fetch::one(
                "src_updt_conn_cnt",
                Type::Int,
                "Counts a connection of the client's address, and gives how many there were.",
                update_connections,
            )
            .params(table_params(false))
            .check(|args, compiler| settle_table(args, compiler, Ask::Number(Data::ConnCnt))),
        ]
    };
}

/// Converters of any value.
macro_rules! of_value {
    (() $($fetch:literal $converter:literal $ask:expr, $what:literal;)*) => {
        &[
            $(Converter::new(
                concat!("table_", $converter),
                Type::Any,
                Type::Int,
                concat!($what, ": of the value as a key."),
                |value, args, env| ask_value(value, args, env, $ask),
            )
            .params(table_params($ask.takes_number()))
            .check(|args, compiler| settle_table(args, compiler, $ask)),)*
            Converter::new("in_table", Type::Any, Type::Bool, "Whether the value is a key of the table.", |value, args, env| {
                Some(Value::Bool(find(value, args, env, false).is_some()))
            })
            .params(table_params(false))
            .check(|args, compiler| settle_table(args, compiler, Ask::Exists)),
            Converter::new(
                "table_trackers",
                Type::Any,
                Type::Int,
                "How many streams and sessions track the value as a key.",
                |value, args, env| ask_value(value, args, env, Ask::Trackers),
            )
            .params(table_params(false))
            .check(|args, compiler| settle_table(args, compiler, Ask::Trackers)),
            Converter::new(
                "table_server_id",
                Type::Any,
                Type::Int,
                "The number of the server that served the value as a key.",
                |value, args, env| ask_value(value, args, env, Ask::Number(Data::ServerId)),
            )
            .params(table_params(false))
            .check(|args, compiler| settle_table(args, compiler, Ask::Number(Data::ServerId))),
        ]
    };
}

/// The tables, one for each way to a key.
pub(super) const ANY_SLOT: &[Fetch] = asked!(of_slot!("sc_", None::<u32>, "of the entry that the slot of that number tracks."));
pub(super) const SLOT_0: &[Fetch] = asked!(of_slot!("sc0_", Some(0), "of the entry that slot 0 tracks."));
pub(super) const SLOT_1: &[Fetch] = asked!(of_slot!("sc1_", Some(1), "of the entry that slot 1 tracks."));
pub(super) const SLOT_2: &[Fetch] = asked!(of_slot!("sc2_", Some(2), "of the entry that slot 2 tracks."));
pub(super) const OF_CLIENT: &[Fetch] = asked!(of_client!());
pub(super) const CONVERTERS: &[Converter] = asked!(of_value!());

/// Age and remaining lifetime of entries: `<table>[,<default>]`.
pub(super) const AGES: &[Converter] = &[
    Converter::new(
        "table_expire",
        Type::Any,
        Type::Int,
        "In how many milliseconds the value's entry expires.",
        |value, args, env| age(value, args, env, |table, entry, now_ms| table.remaining_ms(entry, now_ms)),
    )
    .params(TABLE_AND_DEFAULT)
    .check(settle_age),
    Converter::new(
        "table_idle",
        Type::Any,
        Type::Int,
        "For how many milliseconds the value's entry was not touched.",
        |value, args, env| {
            age(value, args, env, |table, entry, now_ms| {
                let lifetime = table.settings().expire_ms.map_or(0, u64::from);
                lifetime.saturating_sub(table.remaining_ms(entry, now_ms))
            })
        },
    )
    .params(TABLE_AND_DEFAULT)
    .check(settle_age),
];

/// Fetches of tables themselves.
pub(super) const TABLES: &[Fetch] = &[
    Fetch::one("table_avl", Type::Int, "How many entries a table has room for.", |args, env| {
        let (table, now_ms) = (args.own::<TableName>(TABLE)?.table()?, facts(env)?.now_ms());
        Some(number(table.size().saturating_sub(table.used(now_ms)) as u64))
    })
    .params(table_params(false))
    .check(|args, compiler| settle_table(args, compiler, Ask::Exists)),
    Fetch::one("table_cnt", Type::Int, "How many entries a table has.", |args, env| {
        Some(number(args.own::<TableName>(TABLE)?.table()?.used(facts(env)?.now_ms()) as u64))
    })
    .params(table_params(false))
    .check(|args, compiler| settle_table(args, compiler, Ask::Exists)),
];

const SLOT_AND_TABLE: &[Param] = &[need(ParamKind::Int), may(ParamKind::Str)];
const NUMBER_SLOT_AND_TABLE: &[Param] = &[need(ParamKind::Int), need(ParamKind::Int), may(ParamKind::Str)];
const NUMBER_AND_TABLE: &[Param] = &[need(ParamKind::Int), may(ParamKind::Str)];
const ONLY_TABLE: &[Param] = &[may(ParamKind::Str)];
const TABLE_AND_DEFAULT: &[Param] = &[may(ParamKind::Str), may(ParamKind::Int)];

const fn slot_params(takes_number: bool, takes_slot: bool) -> &'static [Param] {
    match (takes_number, takes_slot) {
        (true, true) => NUMBER_SLOT_AND_TABLE,
        (false, true) => SLOT_AND_TABLE,
        (true, false) => NUMBER_AND_TABLE,
        (false, false) => ONLY_TABLE,
    }
}

const fn table_params(takes_number: bool) -> &'static [Param] {
    if takes_number { NUMBER_AND_TABLE } else { ONLY_TABLE }
}

/// Indices of the settled arguments, whatever was given.
const NUMBER: usize = 0;
const SLOT: usize = 1;
const TABLE: usize = 2;
const DEFAULT: usize = 3;

/// Settles the arguments of a fetch of a slot. Without a table's name, it is the table that the slot tracks in.
fn settle_slot(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>, ask: Ask, slot: Option<u32>) -> Result<(), String> {
    let mut given = std::mem::take(args).into_iter();
    let number = if ask.takes_number() { natural(given.next())? } else { 0 };
    let slot = match slot {
        Some(slot) => slot,
        None => natural(given.next())?,
    };
    let table = match given.next() {
        Some(Arg::Str(name)) if !name.is_empty() => name_of(Some(&name), Want::Table, compiler),
        _ => Arg::None,
    };
    *args = vec![Arg::Int(number.into()), Arg::Int(slot.into()), table];
    Ok(())
}

/// Settles the arguments of a query of a table. Without a table's name, it is the section's own.
fn settle_table(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>, ask: Ask) -> Result<(), String> {
    let mut given = std::mem::take(args).into_iter();
    let number = if ask.takes_number() { natural(given.next())? } else { 0 };
    let name = given.next();
    *args = vec![Arg::Int(number.into()), Arg::None, table_of(name, ask.wants(), compiler)];
    Ok(())
}

fn settle_age(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
    let mut given = std::mem::take(args).into_iter();
    let table = table_of(given.next(), Want::Table, compiler);
    *args = vec![Arg::None, Arg::None, table, given.next().unwrap_or_default()];
    Ok(())
}

fn table_of(name: Option<Arg>, want: Want, compiler: &mut Compiler<'_>) -> Arg {
    match name {
        Some(Arg::Str(name)) if !name.is_empty() => name_of(Some(&name), want, compiler),
        _ => name_of(None, want, compiler),
    }
}

fn name_of(name: Option<&[u8]>, want: Want, compiler: &mut Compiler<'_>) -> Arg {
    let name = name.map(String::from_utf8_lossy);
    Arg::Own(Own(TableName::note(name.as_deref(), &compiler.section, want, &compiler.place, compiler.registry)))
}

fn natural(arg: Option<Arg>) -> Result<u32, String> {
    match arg {
        Some(Arg::Int(n)) => u32::try_from(n).map_err(|_| format!("'{n}' is not a number from 0 on")),
        _ => Err("expects a number".into()),
    }
}

/// Queries the entry that a slot tracks, or the entry of the same key in another table.
fn ask_slot<'a>(args: &'a ArgList, env: &Env<'a>, ask: Ask) -> Option<Value<'a>> {
    let facts = facts(env)?;
    let (number, slot) = (numbered(args), usize::try_from(args.int(SLOT)?).ok()?);
    facts.tracked(slot, |tracked| {
        let Some(other) = args.own::<TableName>(TABLE) else {
            return answer(ask, tracked.table(), tracked.entry(), number, facts);
        };
        let table = other.table()?;
        if table.settings().key != tracked.table().settings().key {
            return None;
        }
        match table.find(tracked.entry().key(), facts.now_ms()) {
            Some(entry) => answer(ask, table, &entry, number, facts),
            None => Some(nothing(ask)),
        }
    })?
}

fn slot_key<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let slot = usize::try_from(args.int(SLOT)?).ok()?;
    facts(env)?.tracked(slot, |tracked| value(tracked.table().settings().key, tracked.entry().key()))?
}

fn ask_client<'a>(args: &'a ArgList, env: &Env<'a>, ask: Ask) -> Option<Value<'a>> {
    let client = Value::Addr(env.client?.ip());
    ask_value(client, args, env, ask)
}

/// Asks the entry of a value, as far as it can be a key.
fn ask_value<'a>(value: Value<'_>, args: &'a ArgList, env: &Env<'a>, ask: Ask) -> Option<Value<'a>> {
    let (facts, table) = (facts(env)?, args.own::<TableName>(TABLE)?.table()?);
    match find(value, args, env, ask.creates()) {
        Some(entry) => answer(ask, table, &entry, numbered(args), facts),
        None => Some(nothing(ask)),
    }
}

/// The entry of a value, made if it shall be.
fn find<'a>(value: Value<'_>, args: &'a ArgList, env: &Env<'a>, creates: bool) -> Option<std::sync::Arc<Entry>> {
    let (now_ms, table) = (facts(env)?.now_ms(), args.own::<TableName>(TABLE)?.table()?);
    with_key(table.settings().key, value, |key| if creates { table.obtain(key, now_ms) } else { table.find(key, now_ms) })?
}

fn update_connections<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let (now_ms, table) = (facts(env)?.now_ms(), args.own::<TableName>(TABLE)?.table()?);
    let entry = find(Value::Addr(env.client?.ip()), args, env, true)?;
    let count = table.add(&entry, Data::ConnCnt, 0, 1, now_ms)?;
    table.touch(&entry, now_ms);
    Some(number(count))
}

fn age<'a>(value: Value<'_>, args: &'a ArgList, env: &Env<'a>, of: fn(&Table, &Entry, u64) -> u64) -> Option<Value<'a>> {
    let (now_ms, table) = (facts(env)?.now_ms(), args.own::<TableName>(TABLE)?.table()?);
    match find(value, args, env, false) {
        Some(entry) => Some(number(of(table, &entry, now_ms))),
        None => args.int(DEFAULT).map(Value::Int),
    }
}

fn answer(ask: Ask, table: &Table, entry: &Entry, element: u32, facts: &Facts) -> Option<Value<'static>> {
    let answer = ask.of(table, entry, element, facts.now_ms())?;
    Some(if ask.output() == Type::Bool { Value::Bool(answer != 0) } else { number(answer) })
}

/// The answer where a key has no entry.
fn nothing(ask: Ask) -> Value<'static> {
    if ask.output() == Type::Bool { Value::Bool(false) } else { Value::Int(0) }
}

fn numbered(args: &ArgList) -> u32 {
    args.int(NUMBER).and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
}

fn number(n: u64) -> Value<'static> {
    Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
}
