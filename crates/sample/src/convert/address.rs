//! Addresses: `ipmask`.

use crate::argument::{ArgList, ParamKind, may, need};
use crate::env::Env;
use crate::registry::Converter;
use crate::value::{Type, Value};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) const CONVERTERS: &[Converter] = &[Converter::new(
    "ipmask",
    Type::Addr,
    Type::Addr,
    "The address under an IPv4 mask, or under an IPv6 mask when it holds no IPv4 address.",
    ipmask,
)
.params(&[need(ParamKind::Mask4), may(ParamKind::Mask6)])];

fn ipmask<'a>(value: Value<'a>, args: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    let value = value.clone().cast(Type::Ipv4).unwrap_or(value);
    let masked: IpAddr = match (value.into_addr()?, args.addr(0), args.addr(1)) {
        (IpAddr::V4(a), Some(IpAddr::V4(mask)), _) => Ipv4Addr::from(u32::from(a) & u32::from(mask)).into(),
        (IpAddr::V6(a), _, Some(IpAddr::V6(mask))) => Ipv6Addr::from(u128::from(a) & u128::from(mask)).into(),
        _ => return None,
    };
    Some(Value::Addr(masked))
}
