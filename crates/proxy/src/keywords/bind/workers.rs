//! Which workers accept on an address: `thread 1-4`, `thread 1/odd`, `process all`.

/// The workers of a set as bits, the first worker the lowest; 0 means all of them.
pub(super) fn parse(set: &str) -> Result<u64, String> {
    let mut workers = 0;
    for part in set.split(',') {
        match parse_part(part)? {
            0 => return Ok(0),
            bits => workers |= bits,
        }
    }
    Ok(workers)
}

fn parse_part(part: &str) -> Result<u64, String> {
    let numbers = match part.split_once('/') {
        Some(("1" | "all", numbers)) => numbers,
        Some(_) => return Err(format!("'{part}': workers are not grouped; there is only the first group")),
        None => part,
    };
    match numbers {
        "all" => return Ok(0),
        "odd" => return Ok(ODD),
        "even" => return Ok(!ODD),
        _ => {}
    }
    let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
    let last = if last.is_empty() { "64" } else { last };
    match (first.parse::<u32>(), last.parse::<u32>()) {
        (Ok(first @ 1..=MOST), Ok(last @ 1..=MOST)) if first <= last => Ok((u64::MAX >> (MOST - last)) & (u64::MAX << (first - 1))),
        _ => Err(format!("'{part}' is not a set of workers such as 'all', 'odd', 'even', '3' or '1-4', of numbers up to {MOST}")),
    }
}

/// Bits of the first worker and every second worker after it.
const ODD: u64 = 0x5555_5555_5555_5555;

/// Number of bits in the set.
const MOST: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets() {
        for (set, bits) in [
            ("all", 0),
            ("1/all", 0),
            ("1", 1),
            ("64", 1 << 63),
            ("1-4", 0b1111),
            ("3-4,1", 0b1101),
            ("1/2-3", 0b110),
            ("63-", 0b11 << 62),
            ("1-64", u64::MAX),
            ("odd", ODD),
            ("1,all", 0),
        ] {
            assert_eq!(parse(set), Ok(bits), "{set}");
        }
        for set in ["", "0", "65", "2-1", "x", "2/1", "1-x", "1,"] {
            assert!(parse(set).is_err(), "{set}");
        }
    }
}
