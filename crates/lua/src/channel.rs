//! The class `Channel` (`txn.req`, `txn.res`): bytes of a connection in `mode tcp`, as rules on content see them.
//!
//! ```text
//!   side that the rules judge:  | bytes that are to go on already: output | bytes that rules see: input |
//!   the client's side of tcp-request rules: bytes of a script for the client, sent at once
//! ```
//!
//! Functions that need more bytes wait for them as rules do: as long as `inspect-delay` lasts and the buffer has room. In `mode http`
//! messages are whole, and a script has no bytes.

use crate::lent::{self, Seen};
use mlua::{Lua, Table};
use std::cmp::Ordering;
use std::future::poll_fn;
use std::ops::Range;
use std::task::Poll;
use std::time::Duration;
use terse_message::BodyLength;
use terse_proxy::facts::Facts;
use terse_proxy::inspection::{Inspection, Side};
use terse_proxy::settings::Mode;
use terse_proxy::stream::Stream;
use terse_sample::Env;

/// Puts the functions into the class.
pub(crate) fn install(lua: &Lua, class: &Table) -> mlua::Result<()> {
    reading(lua, class)?;
    changing(lua, class)?;
    for name in ["input", "get_in_len"] {
        let length = |_: &Lua, this: Table| Ok(peek(side(&this)?, |bytes, _| bytes.len()).unwrap_or(0));
        class.set(name, lua.create_function(length)?)?;
    }
    for name in ["output", "get_out_len"] {
        let length = |_: &Lua, this: Table| {
            let side = side(&this)?;
            Ok(see(|inspection| inspection.gone(side)).unwrap_or(0))
        };
        class.set(name, lua.create_function(length)?)?;
    }
    let full = |_: &Lua, this: Table| {
        let side = side(&this)?;
        Ok(see(|inspection| inspection.is_full(side)).unwrap_or(false))
    };
    class.set("is_full", lua.create_function(full)?)?;
    let may = |_: &Lua, this: Table| Ok(peek(side(&this)?, |_, open| open).unwrap_or(true));
    class.set("may_recv", lua.create_function(may)?)?;
    class.set("is_resp", lua.create_function(|_, this: Table| Ok(side(&this)? == Side::Response))?)
}

type Part = (Table, Option<i64>, Option<i64>);

fn reading(lua: &Lua, class: &Table) -> mlua::Result<()> {
    for (name, lines) in [("data", false), ("line", true)] {
        let read = move |lua: Lua, (this, offset, length): Part| async move {
            let found = wait(side(&this)?, |bytes| part(bytes, offset, length, lines)).await?;
            found.map(|bytes| lua.create_string(bytes)).transpose()
        };
        class.set(name, lua.create_async_function(read)?)?;
    }
    for (name, takes) in [("dup", false), ("get", true)] {
        let read = move |lua: &Lua, this: Table| {
            let side = side(&this)?;
            bytes_of_mode_tcp()?;
            let found = peek(side, |bytes, open| (open || !bytes.is_empty()).then(|| bytes.to_vec())).flatten();
            let Some(bytes) = found else { return Ok(None) };
            if takes {
                change(side, |inspection, _| Ok(inspection.replace(0..bytes.len(), b"")))?;
            }
            lua.create_string(bytes).map(Some)
        };
        class.set(name, lua.create_function(read)?)?;
    }
    let line = |lua: Lua, this: Table| async move {
        let side = side(&this)?;
        let found = wait(side, |bytes| part(bytes, None, None, true)).await?;
        let Some(bytes) = found else { return Ok(None) };
        change(side, |inspection, _| Ok(inspection.replace(0..bytes.len(), b"")))?;
        lua.create_string(bytes).map(Some)
    };
    class.set("getline", lua.create_async_function(line)?)
}

type Edit = (Table, mlua::String, Option<i64>, Option<i64>);

/// The range of an edit within so many bytes, by its offset and length.
type Place = fn(usize, Option<i64>, Option<i64>) -> Option<Range<usize>>;

/// A day: bytes, or the end of the wait for them, come before.
pub(crate) const LONGEST: Duration = Duration::from_secs(86_400);

/// Result of an edit that there is no room for.
const NO_ROOM: i64 = -1;

fn changing(lua: &Lua, class: &Table) -> mlua::Result<()> {
    let edit = |name: &'static str, place: Place| {
        lua.create_function(move |_, (this, text, offset, length): Edit| {
            let text = text.as_bytes();
            change(side(&this)?, |inspection, side| {
                if side != inspection.side() {
                    return answer(inspection, side, name, &text);
                }
                let range = place(inspection.bytes(side).len(), offset, length).ok_or_else(out_of_range)?;
                Ok(if inspection.replace(range, &text) { text.len() as i64 } else { NO_ROOM })
            })
        })
    };
    class.set("append", edit("append", |length, _, _| Some(length..length))?)?;
    class.set("prepend", edit("prepend", |_, _, _| Some(0..0))?)?;
    class.set("insert", edit("insert", |length, offset, _| start(length, offset).map(|at| at..at))?)?;
    class.set("set", edit("set", range)?)?;
    let remove = |_: &Lua, (this, offset, length): Part| {
        change(side(&this)?, |inspection, side| {
            if side != inspection.side() {
                return Ok(0);
            }
            let range = range(inspection.bytes(side).len(), offset, length).ok_or_else(out_of_range)?;
            let length = range.len() as i64;
            Ok(if inspection.replace(range, b"") { length } else { 0 })
        })
    };
    class.set("remove", lua.create_function(remove)?)?;
    let send = |_: &Lua, (this, text): (Table, mlua::String)| {
        let text = text.as_bytes();
        change(side(&this)?, |inspection, side| {
            if side != inspection.side() {
                return answer(inspection, side, "send", &text);
            }
            if !inspection.replace(0..0, &text) {
                return Ok(NO_ROOM);
            }
            inspection.let_go(text.len());
            Ok(text.len() as i64)
        })
    };
    class.set("send", lua.create_function(send)?)?;
    let forward = |_: Lua, (this, wanted): (Table, i64)| async move {
        let side = side(&this)?;
        bytes_of_mode_tcp()?;
        let wanted = usize::try_from(wanted).unwrap_or(0);
        let mut left = wanted;
        poll_fn(|_| {
            let gone = change(side, |inspection, side| {
                if side != inspection.side() {
                    return Ok((0, false));
                }
                let bytes = left.min(inspection.bytes(side).len());
                inspection.let_go(bytes);
                let more = bytes < left && inspection.is_open();
                if more {
                    inspection.want(LONGEST);
                }
                Ok((bytes, more))
            });
            let (bytes, more) = match gone {
                Ok(gone) => gone,
                Err(error) => return Poll::Ready(Err(error)),
            };
            left -= bytes;
            if more { Poll::Pending } else { Poll::Ready(Ok(wanted - left)) }
        })
        .await
    };
    class.set("forward", lua.create_async_function(forward)?)
}

/// Bytes for the side that the rules do not judge: those for a client, before any of its server's.
fn answer(inspection: &mut Inspection, side: Side, name: &str, text: &[u8]) -> mlua::Result<i64> {
    if side == Side::Request {
        let reason = format!("Channel.{name} of txn.req is not available in terse in tcp-response rules: the request has gone on");
        return Err(mlua::Error::runtime(reason));
    }
    Ok(if inspection.answer(text) { text.len() as i64 } else { NO_ROOM })
}

fn side(this: &Table) -> mlua::Result<Side> {
    match this.raw_get::<Option<bool>>("is_response")? {
        Some(true) => Ok(Side::Response),
        Some(false) => Ok(Side::Request),
        None => Err(mlua::Error::runtime("expects a channel: txn.req or txn.res")),
    }
}

/// Fails in `mode http`.
fn bytes_of_mode_tcp() -> mlua::Result<()> {
    match lent::see_facts(|facts| facts.frontend().mode == Mode::Http) {
        Some(true) => Err(mlua::Error::runtime("the bytes of a channel are not a script's in mode http")),
        _ => Ok(()),
    }
}

/// Looks at the bytes that have come; `None` where no rules look at any.
fn see<R>(look: impl FnOnce(&Inspection) -> R) -> Option<R> {
    lent::see_facts(|facts| facts.inspection.as_deref().map(look)).flatten()
}

/// The same for a side's bytes in `mode tcp`, and whether more may come before the rules decide.
fn peek<R>(side: Side, look: impl FnOnce(&[u8], bool) -> R) -> Option<R> {
    bytes_of_mode_tcp().ok()?;
    see(|inspection| look(inspection.bytes(side), inspection.side() == side && inspection.is_open()))
}

/// Changes bytes.
fn change<R>(side: Side, run: impl FnOnce(&mut Inspection, Side) -> mlua::Result<R>) -> mlua::Result<R> {
    bytes_of_mode_tcp()?;
    let of = |stream: &mut Stream| match stream.facts.inspection.as_deref_mut() {
        Some(inspection) => run(inspection, side),
        None => Err(mlua::Error::runtime("there are no bytes: rules on content alone look at them")),
    };
    lent::see(|seen| match seen {
        Seen::Stream(stream) => of(stream),
        _ => Err(mlua::Error::runtime("the bytes of a channel can be changed by an action alone")),
    })
}

/// A part of the bytes, once enough of them are there.
#[derive(PartialEq, Eq, Debug)]
enum Found {
    /// These.
    Bytes(Range<usize>),
    /// These, unless more come.
    SoFar(Range<usize>),
}

/// Waits for a part of a side's bytes, as long as more may come; `None` where there are none.
async fn wait(side: Side, find: impl Fn(&[u8]) -> mlua::Result<Found>) -> mlua::Result<Option<Vec<u8>>> {
    bytes_of_mode_tcp()?;
    poll_fn(|_| {
        let polled = peek(side, |bytes, open| match find(bytes) {
            Ok(Found::Bytes(range)) => Poll::Ready(Ok(bytes.get(range).map(<[u8]>::to_vec))),
            Ok(Found::SoFar(_)) if open => Poll::Pending,
            Ok(Found::SoFar(_)) if bytes.is_empty() => Poll::Ready(Ok(None)),
            Ok(Found::SoFar(range)) => Poll::Ready(Ok(bytes.get(range).map(<[u8]>::to_vec))),
            Err(error) => Poll::Ready(Err(error)),
        });
        if let Some(Poll::Pending) = polled {
            // An expression is not waited for; nor is it open.
            let _ = change(side, |inspection, _| {
                inspection.want(LONGEST);
                Ok(())
            });
        }
        polled.unwrap_or(Poll::Ready(Ok(None)))
    })
    .await
}

/// The part of the bytes that an offset and a length give, or its first line. An offset below 0 counts from the end, and a
/// length of -1 is as much as can come.
fn part(bytes: &[u8], offset: Option<i64>, length: Option<i64>, lines: bool) -> mlua::Result<Found> {
    let from = from_end(bytes.len(), offset.unwrap_or(0));
    let rest = bytes.get(from..).unwrap_or_default();
    let here = from.min(bytes.len());
    let length = match length {
        None => None,
        Some(-1) => Some(usize::MAX),
        Some(length) => Some(usize::try_from(length).map_err(|_| out_of_range())?),
    };
    if length == Some(0) {
        return Ok(Found::Bytes(here..here));
    }
    let within = &rest[..length.unwrap_or(usize::MAX).min(rest.len())];
    if lines && let Some(end) = within.iter().position(|byte| *byte == b'\n') {
        return Ok(Found::Bytes(from..from + end + 1));
    }
    let is_enough = match length {
        Some(length) => rest.len() >= length,
        None => !lines && !rest.is_empty(),
    };
    let range = here..here + within.len();
    Ok(if is_enough { Found::Bytes(range) } else { Found::SoFar(range) })
}

/// The place that an offset gives; below 0 it counts from the end.
fn from_end(length: usize, offset: i64) -> usize {
    match usize::try_from(offset) {
        Ok(offset) => offset,
        Err(_) => length.saturating_sub(usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX)),
    }
}

/// The same within the bytes.
fn start(length: usize, offset: Option<i64>) -> Option<usize> {
    Some(from_end(length, offset.unwrap_or(0))).filter(|at| *at <= length)
}

/// The range of an offset and a length within the bytes; -1 is the rest.
fn range(length: usize, offset: Option<i64>, count: Option<i64>) -> Option<Range<usize>> {
    let from = start(length, offset)?;
    let count = match count.map(|count| (count.cmp(&-1), count)) {
        None | Some((Ordering::Equal, _)) => length - from,
        Some((_, count)) => usize::try_from(count).ok()?,
    };
    let to = from.checked_add(count).filter(|to| *to <= length)?;
    Some(from..to)
}

fn out_of_range() -> mlua::Error {
    mlua::Error::runtime("the offset or the length is out of range")
}

/// Whether a side's message is whole, and the number of bytes of its body that have come.
pub(crate) fn body_at_hand(side: Side) -> (bool, usize) {
    let found = lent::see_env(|env| {
        let length = body_length(env, side)?;
        let inspection = env.facts::<Facts>().and_then(|facts| facts.inspection.as_deref());
        let body = inspection.and_then(|inspection| inspection.body(side, length));
        Some(body.map_or((matches!(length, BodyLength::None | BodyLength::Exact(0)), 0), |body| (body.whole, body.bytes.len())))
    });
    found.flatten().unwrap_or((false, 0))
}

/// The length of a side's body, where it is known.
pub(crate) fn exact_length(side: Side) -> Option<u64> {
    match lent::see_env(|env| body_length(env, side)).flatten()? {
        BodyLength::None => Some(0),
        BodyLength::Exact(length) => Some(length),
        BodyLength::Framed | BodyLength::UntilClose => None,
    }
}

fn body_length(env: &Env<'_>, side: Side) -> Option<BodyLength> {
    match side {
        Side::Request => env.request.map(|request| request.body),
        Side::Response => env.response.map(|response| response.body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_there_or_waited_for() {
        let found = |offset, length, lines| part(b"ab\ncd", offset, length, lines).unwrap();
        assert_eq!(found(None, None, false), Found::Bytes(0..5));
        assert_eq!(found(Some(1), Some(2), false), Found::Bytes(1..3));
        assert_eq!(found(Some(-2), None, false), Found::Bytes(3..5));
        assert_eq!(found(Some(-9), Some(1), false), Found::Bytes(0..1));
        assert_eq!(found(Some(5), None, false), Found::SoFar(5..5));
        assert_eq!(found(Some(9), Some(1), false), Found::SoFar(5..5));
        assert_eq!(found(Some(3), Some(-1), false), Found::SoFar(3..5));
        assert_eq!(found(Some(9), Some(0), false), Found::Bytes(5..5));
        assert_eq!((found(None, None, true), found(Some(1), None, true)), (Found::Bytes(0..3), Found::Bytes(1..3)));
        assert_eq!((found(Some(3), None, true), found(Some(3), Some(2), true)), (Found::SoFar(3..5), Found::Bytes(3..5)));
        assert!(part(b"ab", None, Some(-2), false).is_err());
    }

    #[test]
    fn ranges_lie_within_the_bytes() {
        assert_eq!(range(5, None, None), Some(0..5));
        assert_eq!((range(5, Some(2), Some(-1)), range(5, Some(-2), Some(1))), (Some(2..5), Some(3..4)));
        assert_eq!((range(5, Some(6), None), range(5, Some(2), Some(4)), range(5, None, Some(-2))), (None, None, None));
        assert_eq!((start(5, Some(5)), start(5, Some(6)), start(5, Some(-9))), (Some(5), None, Some(0)));
        assert_eq!(range(5, Some(i64::MAX), Some(i64::MAX)), None);
    }
}
