//! Fields of Protocol Buffers messages, by their numbers: `protobuf`, and `ungrpc` for a message inside gRPC's frames.
//!
//! A path of numbers (`1.3.2`) leads through messages that lie in each other. Every step goes forward in the text, so that no
//! message takes longer than its length.

use crate::argument::{Arg, ArgList, Param, ParamKind, may, need};
use crate::compiler::Compiler;
use crate::octets::Octets;
use crate::registry::Converter;
use crate::value::{Type, Value};
use std::ops::Range;

const FIELD: &[Param] = &[need(ParamKind::Str), may(ParamKind::Str)];

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new(
        "protobuf",
        Type::Bin,
        Type::Any,
        "A field of a Protocol Buffers message, by its number or by a path of them: its bytes, or a number of that type.",
        |value, args, _| {
            let message = value.into_bytes()?;
            let whole = 0..message.len();
            find(&message, whole, args.own(0)?)?.value(message, args)
        },
    )
    .params(FIELD)
    .check(check),
    Converter::new(
        "ungrpc",
        Type::Bin,
        Type::Any,
        "The same of the first message in gRPC's frames that has it.",
        |value, args, _| {
            let frames = value.into_bytes()?;
            let mut at = 0;
            loop {
                let header = frames.get(at..at + FRAME_HEADER)?;
                let start = at + FRAME_HEADER;
                let end = start.checked_add(u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize)?;
                frames.get(start..end)?;
                if let Some(field) = find(&frames, start..end, args.own(0)?) {
                    return field.value(frames, args);
                }
                at = end;
            }
        },
    )
    .params(FIELD)
    .check(check),
];

/// Header of each message of gRPC: a flag and a length of 32 bits.
const FRAME_HEADER: usize = 5;

/// Interpretation of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Bytes,
    /// A varint without a sign.
    Varint,
    /// A varint with the sign in its lowest bit.
    Zigzag,
    Fixed64,
    Double,
    Fixed32,
    Signed32,
    Float,
}

const KINDS: &[(&str, Kind)] = &[
    ("int32", Kind::Varint),
    ("uint32", Kind::Varint),
    ("int64", Kind::Varint),
    ("uint64", Kind::Varint),
    ("bool", Kind::Varint),
    ("enum", Kind::Varint),
    ("sint32", Kind::Zigzag),
    ("sint64", Kind::Zigzag),
    ("fixed64", Kind::Fixed64),
    ("sfixed64", Kind::Fixed64),
    ("double", Kind::Double),
    ("fixed32", Kind::Fixed32),
    ("sfixed32", Kind::Signed32),
    ("float", Kind::Float),
];

/// Encoding of a field in the message; groups are not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wire {
    Varint,
    Bits64,
    Delimited,
    Bits32,
}

struct Field {
    wire: Wire,
    place: Range<usize>,
}

impl Field {
    fn value<'a>(self, message: Octets<'a>, args: &ArgList) -> Option<Value<'a>> {
        let kind = *args.own::<Kind>(1)?;
        let bytes = message.get(self.place.clone())?;
        Some(Value::Int(match (kind, self.wire) {
            (Kind::Bytes, _) => return Some(Value::Bin(message.slice(self.place))),
            (Kind::Varint, Wire::Varint) => varint(bytes)?.0 as i64,
            (Kind::Zigzag, Wire::Varint) => {
                let n = varint(bytes)?.0;
                (n >> 1) as i64 ^ -((n & 1) as i64)
            }
            (Kind::Fixed64, Wire::Bits64) => i64::from_le_bytes(bytes.try_into().ok()?),
            (Kind::Double, Wire::Bits64) => f64::from_le_bytes(bytes.try_into().ok()?) as i64,
            (Kind::Fixed32, Wire::Bits32) => u32::from_le_bytes(bytes.try_into().ok()?).into(),
            (Kind::Signed32, Wire::Bits32) => i32::from_le_bytes(bytes.try_into().ok()?).into(),
            (Kind::Float, Wire::Bits32) => f32::from_le_bytes(bytes.try_into().ok()?) as i64,
            _ => return None,
        }))
    }
}

/// The field at the end of the path, within a part of the text.
fn find(text: &[u8], within: Range<usize>, path: &Vec<u64>) -> Option<Field> {
    let Range { start: mut at, mut end } = within;
    let mut path = path.iter();
    let mut wanted = *path.next()?;
    while at < end {
        let (key, length) = varint(text.get(at..end)?)?;
        at += length;
        let left = text.get(at..end)?;
        let (wire, skip) = match key & 7 {
            0 => (Wire::Varint, varint(left)?.1),
            1 => (Wire::Bits64, 8),
            2 => {
                let (size, length) = varint(left)?;
                at += length;
                (Wire::Delimited, usize::try_from(size).ok()?)
            }
            5 => (Wire::Bits32, 4),
            _ => return None,
        };
        let stop = at.checked_add(skip).filter(|stop| *stop <= end)?;
        if key >> 3 != wanted {
            at = stop;
            continue;
        }
        match (path.next(), wire) {
            (None, wire) => return Some(Field { wire, place: at..stop }),
            (Some(next), Wire::Delimited) => (wanted, end) = (*next, stop),
            (Some(_), _) => return None,
        }
    }
    None
}

/// A number in groups of seven bits, the lowest first, and its length in bytes: ten at most.
fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut n = 0;
    for (i, &b) in bytes.iter().enumerate().take(10) {
        n |= u64::from(b & 0x7f).wrapping_shl(7 * i as u32);
        if b & 0x80 == 0 {
            return Some((n, i + 1));
        }
    }
    None
}

fn check(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let Some(Arg::Str(path)) = args.first() else { return Err("expects the number of a field".into()) };
    let text = String::from_utf8_lossy(path);
    let number = |word: &str| word.parse().ok().filter(|n| (1..=MAX_NUMBER).contains(n));
    let path: Option<Vec<u64>> = text.split('.').map(number).collect();
    let path = path.ok_or_else(|| format!("'{text}' is not a number of a field, or several with dots between them"))?;
    let kind = match args.get(1) {
        None | Some(Arg::None) => Kind::Bytes,
        Some(Arg::Str(word)) if word.is_empty() => Kind::Bytes,
        Some(Arg::Str(word)) => {
            let word = String::from_utf8_lossy(word);
            let known = KINDS.iter().find(|(name, _)| *name == word);
            known.map(|(_, kind)| *kind).ok_or_else(|| {
                let all: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
                format!("unknown type of a field '{word}', expects one of {}", all.join(", "))
            })?
        }
        _ => return Err("expects the type of a field".into()),
    };
    *args = vec![Arg::own(path), Arg::own(kind)];
    Ok(())
}

/// Numbers of fields have 29 bits.
const MAX_NUMBER: u64 = (1 << 29) - 1;

#[cfg(test)]
mod tests {
    use crate::testing::Bench;

    #[test]
    fn fields_by_number_and_path() {
        let mut bench = Bench::new();
        // 1: 150, 2: "testing", 3: { 1: 150 }, 4: -2 in zigzag, 5: 1.5f, 6: -1 in 32 bits, 7: 2.0
        let message = "089601120774657374696e671a0308960120032d0000c03f35ffffffff390000000000000040";
        for (expression, expected) in [
            ("protobuf(1,int32)", Some("150")),
            ("protobuf(1),hex", Some("9601")),
            ("protobuf(2)", Some("testing")),
            ("protobuf(3.1,uint64)", Some("150")),
            ("protobuf(4,sint64)", Some("-2")),
            ("protobuf(5,float)", Some("1")),
            ("protobuf(6,sfixed32)", Some("-1")),
            ("protobuf(6,fixed32)", Some("4294967295")),
            ("protobuf(7,double)", Some("2")),
            ("protobuf(1,fixed32)", None),
            ("protobuf(2,int32)", None),
            ("protobuf(1.1,int32)", None),
            ("protobuf(8)", None),
        ] {
            assert_eq!(bench.eval(&format!("bin({message}),{expression}")).as_deref(), expected, "{expression}");
        }
        assert_eq!(bench.eval("bin(0000000002080100000000020802),ungrpc(1,int32)").as_deref(), Some("1"));
        assert_eq!(bench.eval("bin(0000000002100100000000020802),ungrpc(1,int32)").as_deref(), Some("2"));
        for broken in [
            "bin(00ffffffff0801),ungrpc(1)",
            "bin(08),protobuf(1)",
            "bin(12ff),protobuf(2)",
            "bin(0b),protobuf(1)",
            "bin(ffffffffffffffffffffff01),protobuf(1)",
        ] {
            assert_eq!(bench.eval(broken), None, "{broken}");
        }
        for (wrong, said) in
            [("protobuf(x)", "'x'"), ("protobuf(0)", "'0'"), ("protobuf(1.)", "'1.'"), ("protobuf(1,int)", "'int'")]
        {
            let fault = bench.expr(&format!("bin(00),{wrong}")).expect_err(wrong);
            assert!(fault.reason.contains(said), "{wrong}: {}", fault.reason);
        }
    }
}
