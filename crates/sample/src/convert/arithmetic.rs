//! Numbers: sums, bits, truth. Results that do not fit stay at the ends of 64 bits.

use crate::argument::ArgList;
use crate::env::Env;
use crate::registry::Converter;
use crate::value::{Type, Value};

/// A converter of a number.
macro_rules! unary {
    ($name:literal, $output:ident, $summary:literal, $operation:expr) => {
        Converter::new($name, Type::Int, Type::$output, $summary, |value, _, _| {
            let operation: fn(i64) -> _ = $operation;
            Some(Value::$output(operation(value.into_int()?)))
        })
    };
}

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::arithmetic("add", "The sum with a number.", i64::saturating_add),
    Converter::arithmetic("sub", "The difference from a number.", i64::saturating_sub),
    Converter::arithmetic("mul", "The product with a number.", i64::saturating_mul),
    Converter::arithmetic("div", "The quotient by a number; the largest number by 0.", |a, b| {
        if b == 0 { i64::MAX } else { a.saturating_div(b) }
    }),
    Converter::arithmetic("mod", "The remainder of the division by a number; 0 by 0.", |a, b| a.checked_rem(b).unwrap_or(0)),
    Converter::arithmetic("and", "The bits that are set in both.", |a, b| a & b),
    Converter::arithmetic("or", "The bits that are set in one or both.", |a, b| a | b),
    Converter::arithmetic("xor", "The bits that are set in one of both.", |a, b| a ^ b),
    unary!("cpl", Int, "All bits the other way.", |n| !n),
    unary!("neg", Int, "The number with the other sign.", i64::saturating_neg),
    unary!("bool", Bool, "Whether the number is not 0.", |n| n != 0),
    unary!("not", Bool, "Whether the number is 0.", |n| n == 0),
    unary!("odd", Bool, "Whether the number is odd.", |n| n & 1 == 1),
    unary!("even", Bool, "Whether the number is even.", |n| n & 1 == 0),
];

/// A number of the configuration, or of a variable.
pub(super) fn operand(args: &ArgList, i: usize, env: &Env<'_>) -> Option<i64> {
    match args.int(i) {
        Some(n) => Some(n),
        None => env.vars.get(args.var(i)?)?.into_int(),
    }
}
