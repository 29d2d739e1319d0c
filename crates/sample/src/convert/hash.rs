//! Hashes of 32 and 64 bits, for spreading; none of them is fit for secrets.

use crate::argument::{ArgList, Param, ParamKind, may};
use crate::registry::Converter;
use crate::value::{Type, Value};

const AVALANCHE: &[Param] = &[may(ParamKind::Int)];

/// A hash of 32 bits; with the argument 1 its bits are spread once more.
macro_rules! short {
    ($name:literal, $summary:literal, $hash:expr) => {
        Converter::new($name, Type::Bin, Type::Int, $summary, |value, args, _| {
            let hash: u32 = $hash(&value.into_bytes()?);
            let hash = if args.int(0).unwrap_or(0) != 0 { avalanche(hash) } else { hash };
            Some(Value::Int(hash.into()))
        })
        .params(AVALANCHE)
    };
}

pub(crate) const CONVERTERS: &[Converter] = &[
    short!("crc32", "The CRC of Ethernet (IEEE 802.3).", |bytes: &[u8]| crc(bytes, &IEEE)),
    short!("crc32c", "The CRC of SCTP (Castagnoli).", |bytes: &[u8]| crc(bytes, &CASTAGNOLI)),
    short!("djb2", "Bernstein's hash.", djb2),
    short!("sdbm", "The hash of sdbm.", |bytes: &[u8]| sdbm(bytes)),
    short!("wt6", "Tarreau's hash with rotations.", wt6),
    Converter::new("xxh32", Type::Bin, Type::Int, "xxHash of 32 bits, under a seed.", |value, args, _| {
        Some(Value::Int(xxhash_rust::xxh32::xxh32(&value.into_bytes()?, seed(args) as u32).into()))
    })
    .params(AVALANCHE),
    Converter::new("xxh64", Type::Bin, Type::Int, "xxHash of 64 bits, under a seed.", |value, args, _| {
        Some(Value::Int(xxhash_rust::xxh64::xxh64(&value.into_bytes()?, seed(args)) as i64))
    })
    .params(AVALANCHE),
    Converter::new("xxh3", Type::Bin, Type::Int, "XXH3 of 64 bits, under a seed.", |value, args, _| {
        Some(Value::Int(xxhash_rust::xxh3::xxh3_64_with_seed(&value.into_bytes()?, seed(args)) as i64))
    })
    .params(AVALANCHE),
];

fn seed(args: &ArgList) -> u64 {
    args.int(0).unwrap_or(0) as u64
}

/// The sdbm hash.
pub(crate) fn sdbm(bytes: &[u8]) -> u32 {
    sdbm_on(0, bytes)
}

/// The sdbm hash, continued from another.
pub(crate) fn sdbm_on(hash: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(hash, |hash, &b| u32::from(b).wrapping_add(hash << 6).wrapping_add(hash << 16).wrapping_sub(hash))
}

fn djb2(bytes: &[u8]) -> u32 {
    bytes.iter().fold(5381, |hash: u32, &b| hash.wrapping_mul(33).wrapping_add(b.into()))
}

/// Two halves that are turned by amounts which they themselves give. Its constants are HAProxy's.
pub fn wt6(bytes: &[u8]) -> u32 {
    let (mut low, mut high) = (0xa53c_965a_u32, 0x5ca6_953a_u32);
    let (mut first, mut second) = (6, 18);
    for &b in bytes {
        let turned = (!high.wrapping_add(b.into())).rotate_left(first);
        high = (!(low ^ u32::from(b))).rotate_left(second);
        low = turned;
        let steps = (low >> 16 ^ high) & 0xffff;
        (first, second) = (steps & 31, steps >> 11);
    }
    low ^ high
}

/// Jenkins's integer hash in six shifts: every bit of the input moves half of the output's.
pub(crate) fn avalanche(n: u32) -> u32 {
    let n = n.wrapping_add(0x7ed5_5d16).wrapping_add(n << 12);
    let n = n ^ 0xc761_c23c ^ n >> 19;
    let n = n.wrapping_add(0x1656_67b1).wrapping_add(n << 5);
    let n = n.wrapping_add(0xd3a2_646c) ^ n << 9;
    let n = n.wrapping_add(0xfd70_46c5).wrapping_add(n << 3);
    let n = n ^ 0xb55a_4f09 ^ n >> 16;
    // HAProxy multiplies once more, so that near numbers land far from each other.
    n.wrapping_mul(3_221_225_473)
}

fn crc(bytes: &[u8], table: &[u32; 256]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, &b| crc >> 8 ^ table[usize::from(crc as u8 ^ b)])
}

static IEEE: [u32; 256] = crc_table(0xedb8_8320);
static CASTAGNOLI: [u32; 256] = crc_table(0x82f6_3b78);

const fn crc_table(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { polynomial } else { 0 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
}
