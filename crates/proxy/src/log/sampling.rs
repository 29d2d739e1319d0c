//! `sample <ranges>:<size>`: which lines of each `size` a target gets.

use std::ops::RangeInclusive;

/// Ranges of numbers from 1 to `size`: of each `size` lines, those whose number is in a range are sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sampling {
    ranges: Vec<RangeInclusive<u32>>,
    size: u32,
}

impl Sampling {
    /// Reads `1,3-4:5`; the error is the reason.
    pub fn parse(word: &str) -> Result<Sampling, String> {
        let (list, size_word) = word.split_once(':').ok_or("a sample needs its size, as in '1,3:5'")?;
        let size: u32 =
            size_word.parse().ok().filter(|size| *size > 0).ok_or_else(|| format!("'{size_word}' is not a sample size"))?;
        let mut ranges: Vec<RangeInclusive<u32>> = Vec::new();
        for part in list.split(',') {
            let range = range(part).ok_or_else(|| format!("wrong sample range '{part}'"))?;
            if ranges.iter().any(|other| range.start() <= other.end() && other.start() <= range.end()) {
                return Err(format!("sample range '{part}' overlaps another one"));
            }
            if *range.end() > size {
                return Err(format!("sample range '{part}' goes beyond the sample size {size}"));
            }
            ranges.push(range);
        }
        Ok(Sampling { ranges, size })
    }

    /// Whether a target gets a line, by the number of lines counted before it.
    pub fn takes(&self, before: u64) -> bool {
        let number = before % u64::from(self.size) + 1;
        self.ranges.iter().any(|range| (u64::from(*range.start())..=u64::from(*range.end())).contains(&number))
    }
}

/// `3` or `3-5`, from 1, growing.
fn range(part: &str) -> Option<RangeInclusive<u32>> {
    let number = |word: &str| word.parse::<u32>().ok().filter(|n| *n > 0);
    match part.split_once('-') {
        None => number(part).map(|n| n..=n),
        Some((low, high)) => {
            let (low, high) = (number(low)?, number(high)?);
            (low < high).then_some(low..=high)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_by_number() {
        let sampling = Sampling::parse("1,3:5").unwrap();
        let taken: Vec<u64> = (0..11).filter(|n| sampling.takes(*n)).collect();
        assert_eq!(taken, [0, 2, 5, 7, 10]);
        let sampling = Sampling::parse("4,2-3:4").unwrap();
        let taken: Vec<u64> = (0..8).filter(|n| sampling.takes(*n)).collect();
        assert_eq!(taken, [1, 2, 3, 5, 6, 7]);
    }

    #[test]
    fn refuses_what_haproxy_refuses() {
        for word in ["1,3", "0:5", "3-2:5", "3-3:5", "1-3,2:5", "2,1-5:5", "6:5", "1:0", ":5", "1,:5", "x:5", "1:x", "-1:5"] {
            assert!(Sampling::parse(word).is_err(), "{word}");
        }
    }
}
