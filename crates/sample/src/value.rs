//! Values and their types.

use crate::cast;
use crate::octets::Octets;
use std::net::IpAddr;

/// Value that a fetch finds or a converter makes. HAProxy calls it a sample.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value<'a> {
    /// True or false; as a string `1` or `0`.
    Bool(bool),
    /// A signed 64-bit number.
    Int(i64),
    /// An IPv4 or IPv6 address.
    Addr(IpAddr),
    /// Text, of any bytes.
    Str(Octets<'a>),
    /// Bytes that are no text; a cast to text cuts them at the first NUL.
    Bin(Octets<'a>),
    /// A method of HTTP.
    Method(Octets<'a>),
}

/// Type of a value, and of the values that a parameter or a converter accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// Any type: known only when the value is there.
    Any,
    /// [`Value::Bool`]
    Bool,
    /// [`Value::Int`]
    Int,
    /// [`Value::Addr`] of either family
    Addr,
    /// [`Value::Addr`] of IPv4
    Ipv4,
    /// [`Value::Addr`] of IPv6
    Ipv6,
    /// [`Value::Str`]
    Str,
    /// [`Value::Bin`]
    Bin,
    /// [`Value::Method`]
    Method,
}

impl<'a> Value<'a> {
    /// A borrowed string.
    pub fn str(bytes: &'a [u8]) -> Value<'a> {
        Value::Str(Octets::from(bytes))
    }

    /// Its type.
    pub fn kind(&self) -> Type {
        match self {
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Addr(IpAddr::V4(_)) => Type::Ipv4,
            Value::Addr(IpAddr::V6(_)) => Type::Ipv6,
            Value::Str(_) => Type::Str,
            Value::Bin(_) => Type::Bin,
            Value::Method(_) => Type::Method,
        }
    }

    /// The same value without a borrow, as variables keep it.
    #[inline]
    pub fn store(self) -> Value<'static> {
        match self {
            Value::Bool(b) => Value::Bool(b),
            Value::Int(n) => Value::Int(n),
            Value::Addr(a) => Value::Addr(a),
            Value::Str(s) => Value::Str(s.store()),
            Value::Bin(s) => Value::Bin(s.store()),
            Value::Method(s) => Value::Method(s.store()),
        }
    }

    /// Cast to another type, when HAProxy has such a cast and this value allows it.
    pub fn cast(self, to: Type) -> Option<Value<'a>> {
        cast::cast(self, to)
    }

    /// Cast to a number.
    #[inline]
    pub fn into_int(self) -> Option<i64> {
        let number = match &self {
            Value::Int(n) => *n,
            Value::Bool(b) => i64::from(*b),
            _ => return self.parse_int(),
        };
        // A scalar owns no memory: `forget` spares the check of a drop.
        std::mem::forget(self);
        Some(number)
    }

    /// A function of its own, so that a value which is a number already costs nothing.
    #[inline(never)]
    fn parse_int(self) -> Option<i64> {
        match cast::cast(self, Type::Int)? {
            Value::Int(n) => Some(n),
            _ => None,
        }
    }

    /// Cast to a boolean: numbers other than 0 are true.
    pub fn into_bool(self) -> Option<bool> {
        self.into_int().map(|n| n != 0)
    }

    /// Cast to an address.
    pub fn into_addr(self) -> Option<IpAddr> {
        match cast::cast(self, Type::Addr)? {
            Value::Addr(a) => Some(a),
            _ => None,
        }
    }

    /// Cast to text.
    pub fn into_octets(self) -> Option<Octets<'a>> {
        match cast::cast(self, Type::Str)? {
            Value::Str(s) | Value::Bin(s) | Value::Method(s) => Some(s),
            _ => None,
        }
    }

    /// The bytes as they are: of a string, a binary value or a method; other types are cast to text.
    pub fn into_bytes(self) -> Option<Octets<'a>> {
        match self {
            Value::Str(s) | Value::Bin(s) | Value::Method(s) => Some(s),
            other => other.into_octets(),
        }
    }

    /// Whether it has a length that is 0; scalars are never empty.
    pub fn is_empty(&self) -> bool {
        matches!(self, Value::Str(s) | Value::Bin(s) | Value::Method(s) if s.is_empty())
    }
}

impl From<bool> for Value<'_> {
    fn from(b: bool) -> Self {
        Value::Bool(b)
    }
}

impl From<i64> for Value<'_> {
    fn from(n: i64) -> Self {
        Value::Int(n)
    }
}

impl From<IpAddr> for Value<'_> {
    fn from(a: IpAddr) -> Self {
        Value::Addr(a)
    }
}

impl Type {
    /// The type's name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Type::Any => "any",
            Type::Bool => "bool",
            Type::Int => "integer",
            Type::Addr => "address",
            Type::Ipv4 => "ipv4",
            Type::Ipv6 => "ipv6",
            Type::Str => "string",
            Type::Bin => "binary",
            Type::Method => "method",
        }
    }
}
