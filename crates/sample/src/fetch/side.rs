//! Requests and responses, for fetches that both have.

use crate::argument::{Arg, ArgList};
use crate::compiler::Compiler;
use crate::env::Env;
use crate::registry::Needs;
use terse_message::{Fields, Known};

/// Side of the message that a fetch reads.
pub(super) trait Side {
    /// The fields of the message's head.
    fn fields<'a>(args: &ArgList, env: &Env<'a>) -> Option<&'a Fields>;

    /// Whether that is a response.
    fn is_response(args: &ArgList) -> bool;

    /// The field that holds cookies.
    fn cookie_field(args: &ArgList) -> Known {
        if Self::is_response(args) { Known::SetCookie } else { Known::Cookie }
    }
}

/// The request.
pub(super) struct Req;

/// The response.
pub(super) struct Res;

/// The message that is processed at the expression's place; [`direction`] has noted it after the arguments.
pub(super) struct Current;

impl Side for Req {
    #[inline]
    fn fields<'a>(_: &ArgList, env: &Env<'a>) -> Option<&'a Fields> {
        env.request.map(|r| &r.fields)
    }

    fn is_response(_: &ArgList) -> bool {
        false
    }
}

impl Side for Res {
    #[inline]
    fn fields<'a>(_: &ArgList, env: &Env<'a>) -> Option<&'a Fields> {
        env.response.map(|r| &r.fields)
    }

    fn is_response(_: &ArgList) -> bool {
        true
    }
}

impl Side for Current {
    fn fields<'a>(args: &ArgList, env: &Env<'a>) -> Option<&'a Fields> {
        if Self::is_response(args) { Res::fields(args, env) } else { Req::fields(args, env) }
    }

    fn is_response(args: &ArgList) -> bool {
        args.int(DIRECTION) == Some(1)
    }
}

/// Index of the argument where [`direction`] leaves its note.
const DIRECTION: usize = 2;

/// Notes after the arguments whether the expression is evaluated for a response. In a log, which has both, HAProxy takes
/// the request.
pub(super) fn direction(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
    let response = compiler.have.has(Needs::RESPONSE) && !compiler.have.has(Needs::END);
    args.resize(DIRECTION, Arg::None);
    args.push(Arg::Int(i64::from(response)));
    Ok(())
}
