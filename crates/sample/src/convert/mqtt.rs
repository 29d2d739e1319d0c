//! The first packets of MQTT 3.1, 3.1.1 and 5.0: CONNECT of a client, CONNACK of a server. `mqtt_is_valid`, `mqtt_field_value`.
//!
//! A packet is read in one pass that notes its fields by name. Properties of 5.0 are noted by their number (OASIS MQTT 5.0
//! sections 2.2.2, 3.1, 3.2).

use crate::argument::{Arg, ArgList, ParamKind, need};
use crate::cast;
use crate::compiler::Compiler;
use crate::env::Env;
use crate::near;
use crate::octets::Octets;
use crate::registry::Converter;
use crate::value::{Type, Value};
use smallvec::SmallVec;
use std::ops::Range;

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new(
        "mqtt_is_valid",
        Type::Bin,
        Type::Bool,
        "Whether it is a CONNECT or CONNACK packet of MQTT.",
        |value, _, env| {
            let valid = match Packet::parse(&value.into_bytes()?) {
                Ok(_) => true,
                Err(Broken::Invalid) => false,
                Err(Broken::Unfinished) => return None,
            };
            env.settle();
            Some(Value::Bool(valid))
        },
    ),
    Converter::new(
        "mqtt_field_value",
        Type::Bin,
        Type::Str,
        "The value of a field of an MQTT packet of that type (connect, connack), by its name or by the number of a property.",
        field_value,
    )
    .params(&[need(ParamKind::Str), need(ParamKind::Str)])
    .check(check),
];

const CONNECT: u8 = 1;
const CONNACK: u8 = 2;
const PUBLISH: u8 = 3;
const PUBREL: u8 = 6;
const SUBSCRIBE: u8 = 8;
const UNSUBSCRIBE: u8 = 10;

/// Encoding of a property's value.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// A number of so many bytes, with the least and the greatest value that is allowed.
    Number(usize, u32, u32),
    /// Bytes after a length of 16 bits.
    Text,
    /// The same, and never empty.
    Name,
}

/// A field of a packet: fields before 5.0 have negative numbers, properties their own.
type Id = i16;

const FLAGS: Id = -1;
const REASON_CODE: Id = -2;
const PROTOCOL_NAME: Id = -3;
const PROTOCOL_VERSION: Id = -4;
const CLIENT_IDENTIFIER: Id = -5;
const WILL_TOPIC: Id = -6;
const WILL_PAYLOAD: Id = -7;
const USERNAME: Id = -8;
const PASSWORD: Id = -9;
const KEEPALIVE: Id = -10;
const AUTHENTICATION_METHOD: Id = 21;
const AUTHENTICATION_DATA: Id = 22;
/// Most bytes of a packet's length.
const LENGTH_BYTES: usize = 4;
/// The only property that may come again; its value is a pair.
const USER_PROPERTY: u8 = 38;

const CONNECT_FIELDS: &[(&str, Id)] = &[
    ("flags", FLAGS),
    ("protocol_name", PROTOCOL_NAME),
    ("protocol_version", PROTOCOL_VERSION),
    ("client_identifier", CLIENT_IDENTIFIER),
    ("will_topic", WILL_TOPIC),
    ("will_payload", WILL_PAYLOAD),
    ("username", USERNAME),
    ("password", PASSWORD),
    ("keepalive", KEEPALIVE),
];
const CONNACK_FIELDS: &[(&str, Id)] = &[("flags", FLAGS), ("reason_code", REASON_CODE), ("protocol_version", PROTOCOL_VERSION)];

type Properties = &'static [(Id, Form)];

const BOOLEAN: Form = Form::Number(1, 0, 1);
const SHORT: Form = Form::Number(2, 0, u32::MAX);
const SHORT_NOT_ZERO: Form = Form::Number(2, 1, u32::MAX);
const LONG: Form = Form::Number(4, 0, u32::MAX);
const LONG_NOT_ZERO: Form = Form::Number(4, 1, u32::MAX);

const CONNECT_PROPERTIES: Properties = &[
    (17, LONG),
    (33, SHORT_NOT_ZERO),
    (39, LONG_NOT_ZERO),
    (34, SHORT),
    (25, BOOLEAN),
    (23, BOOLEAN),
    (AUTHENTICATION_METHOD, Form::Text),
    (AUTHENTICATION_DATA, Form::Text),
];
const WILL_PROPERTIES: Properties = &[(24, LONG), (1, BOOLEAN), (2, LONG), (3, Form::Text), (8, Form::Text), (9, Form::Text)];
const CONNACK_PROPERTIES: Properties = &[
    (17, LONG),
    (33, SHORT_NOT_ZERO),
    (36, BOOLEAN),
    (37, BOOLEAN),
    (39, LONG_NOT_ZERO),
    (18, Form::Name),
    (34, SHORT),
    (31, Form::Text),
    (40, BOOLEAN),
    (41, BOOLEAN),
    (42, BOOLEAN),
    (19, SHORT),
    (26, Form::Text),
    (28, Form::Text),
    (AUTHENTICATION_METHOD, Form::Text),
    (AUTHENTICATION_DATA, Form::Text),
];

enum Broken {
    Invalid,
    /// The bytes so far are right.
    Unfinished,
}

enum Found {
    Number(u32),
    Place(Range<usize>),
}

struct Packet {
    kind: u8,
    version: u8,
    has_will: bool,
    fields: SmallVec<[(Id, Found); 16]>,
}

impl Packet {
    fn parse(text: &[u8]) -> Result<Packet, Broken> {
        let &[first, _, ..] = text else { return Err(Broken::Unfinished) };
        let kind = first >> 4;
        // Of PUBLISH alone all flags may be there (OASIS MQTT 5.0 section 2.1.3).
        let flags = if matches!(kind, PUBREL | SUBSCRIBE | UNSUBSCRIBE) { 2 } else { 0 };
        if kind == 0 || kind != PUBLISH && first & 0xf != flags {
            return Err(Broken::Invalid);
        }
        let mut reader = Reader { text, at: 1, end: text.len() };
        let Some(length) = reader.varint() else {
            let is_cut = reader.at == text.len() && reader.at <= LENGTH_BYTES;
            return Err(if is_cut { Broken::Unfinished } else { Broken::Invalid });
        };
        if text.len() - reader.at < length {
            return Err(Broken::Unfinished);
        }
        if !matches!(kind, CONNECT | CONNACK) {
            return Err(Broken::Invalid);
        }
        // The bytes after it are another packet's.
        reader.end = reader.at + length;
        let mut packet = Packet { kind, version: 0, has_will: false, fields: SmallVec::new() };
        let read = match kind {
            CONNECT => packet.connect(&mut reader),
            _ => packet.connack(&mut reader, length),
        };
        let is_whole = read.is_some() && reader.at == reader.end;
        if is_whole { Ok(packet) } else { Err(Broken::Invalid) }
    }

    fn connect(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        const RESERVED: u32 = 1;
        const WILL: u32 = 4;
        const WILL_QOS_AND_RETAIN: u32 = 0x38;
        const HAS_PASSWORD: u32 = 0x40;
        const HAS_USERNAME: u32 = 0x80;
        let name = reader.string()?;
        if ![&b"MQTT"[..], b"MQIsdp"].iter().any(|known| known.eq_ignore_ascii_case(&reader.text[name.clone()])) {
            return None;
        }
        self.note(PROTOCOL_NAME, Found::Place(name));
        self.version = reader.number(1)? as u8;
        if !matches!(self.version, 3..=5) {
            return None;
        }
        self.note(PROTOCOL_VERSION, Found::Number(self.version.into()));
        let flags = reader.number(1)?;
        self.has_will = flags & WILL != 0;
        if flags & RESERVED != 0 || !self.has_will && flags & WILL_QOS_AND_RETAIN != 0 {
            return None;
        }
        self.note(FLAGS, Found::Number(flags));
        let keepalive = reader.number(2)?;
        self.note(KEEPALIVE, Found::Number(keepalive));
        self.properties(reader, CONNECT_PROPERTIES)?;
        let client = reader.string()?;
        self.note(CLIENT_IDENTIFIER, Found::Place(client));
        if self.has_will {
            self.properties(reader, WILL_PROPERTIES)?;
        }
        for (id, flag) in [(WILL_TOPIC, WILL), (WILL_PAYLOAD, WILL), (USERNAME, HAS_USERNAME), (PASSWORD, HAS_PASSWORD)] {
            if flags & flag != 0 {
                let place = reader.string()?;
                self.note(id, Found::Place(place));
            }
        }
        Some(())
    }

    fn connack(&mut self, reader: &mut Reader<'_>, length: usize) -> Option<()> {
        self.version = if length == 2 { 4 } else { 5 };
        self.note(PROTOCOL_VERSION, Found::Number(self.version.into()));
        let flags = reader.number(1).filter(|flags| *flags <= 1)?;
        self.note(FLAGS, Found::Number(flags));
        let reason = reader.number(1)?;
        self.note(REASON_CODE, Found::Number(reason));
        self.properties(reader, CONNACK_PROPERTIES)
    }

    /// The properties of 5.0: their length, then each with its number before it.
    fn properties(&mut self, reader: &mut Reader<'_>, known: Properties) -> Option<()> {
        if self.version < 5 {
            return Some(());
        }
        let length = reader.varint()?;
        let end = reader.at.checked_add(length).filter(|end| *end <= reader.end)?;
        let mut inner = Reader { text: reader.text, at: reader.at, end };
        while inner.at < end {
            let id = inner.number(1)? as u8;
            if id == USER_PROPERTY {
                inner.string()?;
                inner.string()?;
                continue;
            }
            let (id, form) = *known.iter().find(|(known, _)| *known == Id::from(id))?;
            if self.found(id).is_some() {
                return None;
            }
            let value = match form {
                Form::Number(size, least, most) => Found::Number(inner.number(size).filter(|n| (least..=most).contains(n))?),
                Form::Text => Found::Place(inner.string()?),
                Form::Name => Found::Place(inner.string().filter(|place| !place.is_empty())?),
            };
            self.note(id, value);
        }
        let has = |id| matches!(self.found(id), Some(Found::Place(place)) if !place.is_empty());
        if has(AUTHENTICATION_DATA) && !has(AUTHENTICATION_METHOD) {
            return None;
        }
        reader.at = end;
        Some(())
    }

    fn note(&mut self, id: Id, value: Found) {
        self.fields.push((id, value));
    }

    fn found(&self, id: Id) -> Option<&Found> {
        self.fields.iter().find(|(known, _)| *known == id).map(|(_, value)| value)
    }
}

struct Reader<'p> {
    text: &'p [u8],
    at: usize,
    end: usize,
}

impl Reader<'_> {
    fn take(&mut self, size: usize) -> Option<Range<usize>> {
        let stop = self.at.checked_add(size).filter(|stop| *stop <= self.end)?;
        let place = self.at..stop;
        self.at = stop;
        Some(place)
    }

    fn number(&mut self, size: usize) -> Option<u32> {
        let place = self.take(size)?;
        Some(self.text[place].iter().fold(0, |n, b| n << 8 | u32::from(*b)))
    }

    fn string(&mut self) -> Option<Range<usize>> {
        let length = self.number(2)?;
        self.take(length as usize)
    }

    /// A varint: four bytes at most, the lowest seven bits first.
    fn varint(&mut self) -> Option<usize> {
        let mut n = 0;
        for shift in [0, 7, 14, 21] {
            let b = self.number(1)?;
            n |= ((b & 0x7f) as usize) << shift;
            if b & 0x80 == 0 {
                return Some(n);
            }
        }
        None
    }
}

fn field_value<'a>(value: Value<'a>, args: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    let text = value.into_bytes()?;
    let packet = Packet::parse(&text).ok().filter(|packet| Some(i64::from(packet.kind)) == args.int(0))?;
    let id = Id::try_from(args.int(1)?).ok()?;
    Some(Value::Str(match packet.found(id) {
        Some(Found::Number(n)) => cast::decimal(i64::from(*n)),
        Some(Found::Place(place)) if place.is_empty() => return None,
        Some(Found::Place(place)) => {
            let place = place.clone();
            text.slice(place)
        }
        // A number that 5.0 could have given is 0 when it is missing.
        None if packet.version == 5 && is_number(packet.kind, packet.has_will, id) => Octets::from("0"),
        None => return None,
    }))
}

fn is_number(kind: u8, has_will: bool, id: Id) -> bool {
    let is_in = |known: Properties| known.iter().any(|(known, form)| *known == id && matches!(form, Form::Number(..)));
    match kind {
        CONNECT => is_in(CONNECT_PROPERTIES) || has_will && is_in(WILL_PROPERTIES),
        _ => is_in(CONNACK_PROPERTIES),
    }
}

fn check(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let [Arg::Str(kind), Arg::Str(field)] = args.as_slice() else { return Err("expects a packet's type and a field".into()) };
    let (kind, field) = (String::from_utf8_lossy(kind), String::from_utf8_lossy(field));
    let (number, names, properties) = match kind.to_ascii_lowercase().as_str() {
        "connect" | "1" => (CONNECT, CONNECT_FIELDS, [CONNECT_PROPERTIES, WILL_PROPERTIES]),
        "connack" | "2" => (CONNACK, CONNACK_FIELDS, [CONNACK_PROPERTIES, &[]]),
        _ => return Err(format!("unknown type of a packet '{kind}', expects connect (1) or connack (2)")),
    };
    let named = names.iter().find(|(name, _)| name.eq_ignore_ascii_case(&field)).map(|(_, id)| *id);
    let property = || field.parse::<Id>().ok().filter(|id| properties.concat().iter().any(|(known, _)| known == id));
    let id = named.or_else(property).ok_or_else(|| {
        let hint = near::hint(&field, names.iter().map(|(name, _)| *name)).map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("unknown field '{field}' of a packet of type '{kind}', expects a name or the number of a property{hint}")
    })?;
    *args = vec![Arg::Int(number.into()), Arg::Int(id.into())];
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;

    /// 3.1.1, client `id`, user `me`, password `pw`, 60 seconds.
    const CONNECT: &str = "10 16 0004 4d515454 04 c2 003c 0002 6964 0002 6d65 0002 7077";
    /// 5.0, receive maximum 32767, reason string `ok`.
    const CONNACK: &str = "20 0b 00 00 08 21 7fff 1f 0002 6f6b";

    #[test]
    fn packets_are_checked_and_read() {
        let mut bench = Bench::new();
        for (packet, expression, expected) in [
            (CONNECT, "mqtt_is_valid", Some("1")),
            (CONNECT, "mqtt_field_value(connect,username)", Some("me")),
            (CONNECT, "mqtt_field_value(1,password)", Some("pw")),
            (CONNECT, "mqtt_field_value(CONNECT,Client_Identifier)", Some("id")),
            (CONNECT, "mqtt_field_value(connect,protocol_name)", Some("MQTT")),
            (CONNECT, "mqtt_field_value(connect,protocol_version)", Some("4")),
            (CONNECT, "mqtt_field_value(connect,keepalive)", Some("60")),
            (CONNECT, "mqtt_field_value(connect,flags)", Some("194")),
            (CONNECT, "mqtt_field_value(connect,will_topic)", None),
            (CONNECT, "mqtt_field_value(connect,17)", None),
            (CONNECT, "mqtt_field_value(connack,flags)", None),
            (CONNACK, "mqtt_is_valid", Some("1")),
            (CONNACK, "mqtt_field_value(connack,33)", Some("32767")),
            (CONNACK, "mqtt_field_value(connack,31)", Some("ok")),
            (CONNACK, "mqtt_field_value(connack,17)", Some("0")),
            (CONNACK, "mqtt_field_value(connack,reason_code)", Some("0")),
            ("20 02 00 00", "mqtt_field_value(connack,protocol_version)", Some("4")),
            ("20 02 00 00 c0 00", "mqtt_is_valid", Some("1")),
            ("20 02 02 00", "mqtt_is_valid", Some("0")),
            ("21 02 00 00", "mqtt_is_valid", Some("0")),
            ("c0 00", "mqtt_is_valid", Some("0")),
            ("20 03 00 00", "mqtt_is_valid", None),
            ("10 14 0004 4d515454 04 c2 003c 0002 6964 0002 6d65 0002 7077", "mqtt_is_valid", Some("0")),
            ("20 ff ff ff ff 01", "mqtt_is_valid", Some("0")),
            ("20 08 00 00 05 21 0001 21 0001", "mqtt_is_valid", Some("0")),
            ("20", "mqtt_is_valid", None),
            ("10 87", "mqtt_is_valid", None),
            ("10 80 80 80", "mqtt_is_valid", None),
            ("10 80 80 80 80", "mqtt_is_valid", Some("0")),
            ("c0 80", "mqtt_is_valid", None),
            ("12 1f", "mqtt_is_valid", Some("0")),
            ("c0 7f", "mqtt_is_valid", None),
            ("c3 a4", "mqtt_is_valid", Some("0")),
            ("3f 05", "mqtt_is_valid", None),
            ("62 05", "mqtt_is_valid", None),
            ("60 05", "mqtt_is_valid", Some("0")),
            ("00 05", "mqtt_is_valid", Some("0")),
        ] {
            let packet = packet.replace(' ', "");
            assert_eq!(bench.eval(&format!("bin({packet}),{expression}")).as_deref(), expected, "{packet} {expression}");
        }
        for (wrong, said) in
            [("publish,flags", "'publish'"), ("connect,usrname", "did you mean 'username'?"), ("connack,24", "'24'")]
        {
            let fault = bench.expr(&format!("bin(00),mqtt_field_value({wrong})")).expect_err(wrong);
            assert!(fault.reason.contains(said), "{wrong}: {}", fault.reason);
        }
    }
}
