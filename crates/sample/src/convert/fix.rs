//! Messages of FIX, the Financial Information eXchange protocol: `fix_is_valid`, `fix_tag_value`.
//!
//! A message is a row of `tag=value` with a byte of 1 after each. It begins with BeginString, BodyLength and MsgType, and
//! ends with CheckSum.

use crate::argument::{Arg, ParamKind, need};
use crate::near;
use crate::registry::Converter;
use crate::value::{Type, Value};
use std::ops::Range;

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new("fix_is_valid", Type::Bin, Type::Bool, "Whether it is a message of FIX.", |value, _, env| {
        let valid = match validate(&value.into_bytes()?) {
            Message::Valid => true,
            Message::Invalid => false,
            Message::Unfinished => return None,
        };
        env.settle();
        Some(Value::Bool(valid))
    }),
    Converter::new(
        "fix_tag_value",
        Type::Bin,
        Type::Bin,
        "The value of a tag of a FIX message, by its number or as BeginString, BodyLength, MsgType, SenderCompID, TargetCompID, CheckSum.",
        |value, args, _| {
            let message = value.into_bytes()?;
            let place = Fields::of(&message).map_while(Result::ok).find(|field| Some(i64::from(field.tag)) == args.int(0))?.value;
            Some(Value::Bin(message.slice(place)))
        },
    )
    .params(&[need(ParamKind::Str)])
    .check(|args, _| {
        let Some(Arg::Str(word)) = args.first() else { return Err("expects a tag".into()) };
        let word = String::from_utf8_lossy(word);
        let named = NAMES.iter().find(|(name, _)| *name == word).map(|(_, tag)| *tag);
        let tag = named.or_else(|| word.parse().ok().filter(|tag| *tag > 0)).ok_or_else(|| {
            let hint = near::hint(&word, NAMES.iter().map(|(name, _)| *name)).map(|hint| format!("; {hint}")).unwrap_or_default();
            format!("unknown tag '{word}', expects a number or a name such as MsgType{hint}")
        })?;
        args[0] = Arg::Int(i64::from(tag));
        Ok(())
    }),
];

const NAMES: &[(&str, u32)] = &[
    ("BeginString", BEGIN_STRING),
    ("BodyLength", BODY_LENGTH),
    ("CheckSum", CHECK_SUM),
    ("MsgType", MESSAGE_TYPE),
    ("SenderCompID", 49),
    ("TargetCompID", 56),
];

const BEGIN_STRING: u32 = 8;
const BODY_LENGTH: u32 = 9;
const CHECK_SUM: u32 = 10;
const MESSAGE_TYPE: u32 = 35;

/// The highest tag of each version; tags from 10,000 to 19,999 are free for private use.
const VERSIONS: &[(&[u8], u32)] =
    &[(b"FIX.4.0", 140), (b"FIX.4.1", 211), (b"FIX.4.2", 446), (b"FIX.4.3", 659), (b"FIX.4.4", 956), (b"FIXT.1.1", 1621)];

/// Least bytes of a message: the three tags at the start and the one at the end.
const SHORTEST: usize = 26;

enum Message {
    Valid,
    Invalid,
    /// The bytes so far are right.
    Unfinished,
}

struct Field {
    tag: u32,
    /// Offset of the field, tag included.
    start: usize,
    value: Range<usize>,
}

/// The fields of a message, as far as they are whole; [`Broken`] for bytes that are no field.
struct Fields<'a> {
    text: &'a [u8],
    at: usize,
}

struct Broken;

impl<'a> Fields<'a> {
    fn of(text: &'a [u8]) -> Fields<'a> {
        Fields { text, at: 0 }
    }
}

impl Iterator for Fields<'_> {
    type Item = Result<Field, Broken>;

    fn next(&mut self) -> Option<Result<Field, Broken>> {
        let start = self.at;
        let rest = self.text.get(start..)?;
        let end = memchr::memchr(DELIMITER, rest)?;
        self.at = start + end + 1;
        let field = memchr::memchr(b'=', &rest[..end]).filter(|equals| equals + 1 < end).and_then(|equals| {
            Some(Field { tag: number(&rest[..equals]).filter(|tag| *tag > 0)?, start, value: start + equals + 1..start + end })
        });
        Some(field.ok_or(Broken))
    }
}

const DELIMITER: u8 = 1;

fn validate(text: &[u8]) -> Message {
    if text.len() < SHORTEST {
        return Message::Unfinished;
    }
    let (mut highest, mut body) = (0, 0..0);
    for (i, field) in Fields::of(text).enumerate() {
        let Ok(field) = field else { return Message::Invalid };
        let value = &text[field.value.clone()];
        let is_right = match i {
            0 => {
                highest = VERSIONS.iter().find(|(name, _)| *name == value).map_or(0, |(_, highest)| *highest);
                field.tag == BEGIN_STRING && highest > 0
            }
            1 => {
                let start = field.value.end + 1;
                body = start..start.saturating_add(number(value).unwrap_or(0) as usize);
                field.tag == BODY_LENGTH && !body.is_empty()
            }
            2 => field.tag == MESSAGE_TYPE,
            _ if field.tag == CHECK_SUM => {
                let sum = text[..field.start].iter().fold(0u8, |sum, b| sum.wrapping_add(*b));
                let is_right = field.start == body.end && value.len() == 3 && number(value) == Some(sum.into());
                return if is_right { Message::Valid } else { Message::Invalid };
            }
            _ => field.tag <= highest || (10_000..20_000).contains(&field.tag),
        };
        if !is_right {
            return Message::Invalid;
        }
    }
    Message::Unfinished
}

fn number(digits: &[u8]) -> Option<u32> {
    std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::Value;
    use crate::testing::Bench;

    const LOGON: &str = "8=FIX.4.4|9=79|35=A|34=1|49=EXECUTOR|52=20201029-13:02:44.535360|56=CLIENT1|98=0|108=30|141=Y|10=038|";

    #[test]
    fn messages_are_checked_and_read() {
        let mut bench = Bench::new();
        for (text, expected) in [
            (LOGON.to_owned(), Some("1")),
            (LOGON.replace("038", "039"), Some("0")),
            (LOGON.replace("9=79", "9=78"), Some("0")),
            (LOGON.replace("FIX.4.4", "FIX.4.9"), Some("0")),
            (LOGON.replace("98=0", "=0"), Some("0")),
            (LOGON.replace("98=0", "98="), Some("0")),
            (LOGON.replace("98=0", "957=0"), Some("0")),
            (LOGON[..60].to_owned(), None),
            (String::new(), None),
        ] {
            bench.set("txn.fix", Value::str(text.replace('|', "\x01").as_bytes()));
            assert_eq!(bench.eval("var(txn.fix),fix_is_valid").as_deref(), expected, "{text}");
        }
        bench.set("txn.fix", Value::str(LOGON.replace('|', "\x01").as_bytes()));
        for (tag, expected) in [("MsgType", Some("A")), ("49", Some("EXECUTOR")), ("CheckSum", Some("038")), ("7", None)] {
            assert_eq!(bench.eval(&format!("var(txn.fix),fix_tag_value({tag})")).as_deref(), expected, "{tag}");
        }
        let fault = bench.expr("str(x),fix_tag_value(MsgTyp)").expect_err("a tag that is none");
        assert!(fault.reason.contains("'MsgTyp'") && fault.reason.contains("did you mean 'MsgType'?"), "{}", fault.reason);
    }
}
