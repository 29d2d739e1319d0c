//! Content of JSON Web Tokens, whether it is true or not (RFC 7515 section 7.1, RFC 7516 section 7.1).

use super::base64;
use super::json_query;
use crate::argument::{Arg, ArgList, Param, ParamKind, may};
use crate::compiler::Compiler;
use crate::octets::Octets;
use crate::registry::Converter;
use crate::value::{Type, Value};

const QUERY: &[Param] = &[may(ParamKind::Str), may(ParamKind::Str)];

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new(
        "jwt_header_query",
        Type::Bin,
        Type::Any,
        "The header of a JSON Web Token, or the value at a path of it, as by `json_query`.",
        |value, args, _| part(&value.into_bytes()?, 0, args),
    )
    .params(QUERY)
    .check(check),
    Converter::new(
        "jwt_payload_query",
        Type::Bin,
        Type::Any,
        "The payload of a signed JSON Web Token, or the value at a path of it, as by `json_query`.",
        |value, args, _| part(&value.into_bytes()?, 1, args),
    )
    .params(QUERY)
    .check(check),
];

/// A part of a token. The header comes first in any text that was meant as a token, so it can be read even of a refused
/// one. Only a signed token, of three parts, has a payload: the second part of an encrypted one is its key.
fn part(token: &[u8], number: usize, args: &ArgList) -> Option<Value<'static>> {
    if number > 0 && token.split(|b| *b == b'.').count() != 3 {
        return None;
    }
    let text = base64::decode_exact(token.split(|b| *b == b'.').nth(number)?)?;
    if args.is_empty() {
        return Some(Value::Str(text));
    }
    json_query::query(Value::Str(Octets::copy(&text)), args)
}

fn check(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
    if args.is_empty() { Ok(()) } else { json_query::check(args, compiler) }
}

#[cfg(test)]
mod tests {
    use crate::Value;
    use crate::testing::Bench;

    #[test]
    fn parts_of_tokens() {
        let mut bench = Bench::new();
        // {"alg":"HS256","typ":"JWT"} and {"sub":"me","n":3}
        let token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJtZSIsIm4iOjN9.c2ln";
        for (token, expression, expected) in [
            (token, "jwt_header_query", Some(r#"{"alg":"HS256","typ":"JWT"}"#)),
            (token, "jwt_header_query('$.alg')", Some("HS256")),
            (token, "jwt_payload_query('$.sub')", Some("me")),
            (token, "jwt_payload_query('$.n','int'),add(1)", Some("4")),
            (token, "jwt_payload_query('$.x')", None),
            ("eyJhbGciOiJkaXIifQ....", "jwt_header_query('$.alg')", Some("dir")),
            ("eyJhbGciOiJkaXIifQ....", "jwt_payload_query", None),
            ("eyJhbGciOiJkaXIifQ.e30", "jwt_header_query('$.alg')", Some("dir")),
            ("eyJhbGciOiJkaXIifQ.e30.AA.AA", "jwt_header_query('$.alg')", Some("dir")),
            ("eyJhbGciOiJkaXIifQ", "jwt_header_query('$.alg')", Some("dir")),
            ("e30.e30", "jwt_payload_query", None),
            ("e30.e30.AA.AA", "jwt_payload_query", None),
            ("", "jwt_header_query('$.alg')", None),
            ("e.e", "jwt_header_query", None),
            ("*.e30.e", "jwt_header_query", None),
            ("e30=.e30.e", "jwt_header_query", None),
            ("e31.e30.e", "jwt_header_query", None),
            ("e30.e30.e", "jwt_header_query", Some("{}")),
        ] {
            bench.set("txn.t", Value::str(token.as_bytes()));
            assert_eq!(bench.eval(&format!("var(txn.t),{expression}")).as_deref(), expected, "{token} {expression}");
        }
        assert!(bench.expr("str(x),jwt_header_query(alg)").is_err());
    }
}
