//! Verdict on a rival: whether a level of ours answers each of its points.

use super::Point;
use super::program::OURS;

/// A rival's point beside ours.
#[derive(Clone, Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) rival: &'a Point,
    /// The cheapest of ours that has no more bytes; none if all have more.
    pub(crate) ours: Option<&'a Point>,
}

/// All answers.
pub(crate) struct Verdict<'a> {
    pub(crate) answers: Vec<Answer<'a>>,
}

/// The bytes of ours that still count as no more.
const NO_MORE: f64 = 1.0005;

/// The time of ours over the rival's, at most.
const LESS: f64 = 0.95;

/// The same where the same library does the work.
const THE_SAME: f64 = 1.02;

/// The part of points that may be exceptions.
const EXCEPTIONS: f64 = 0.03;

/// Libraries that we use ourselves for the same thing.
const SHARED: [(&str, &str); 2] = [("gzip", "libdeflate"), ("zstd", "libzstd")];

impl Answer<'_> {
    /// Our time over the rival's.
    pub(crate) fn ratio(&self) -> Option<f64> {
        Some(self.ours?.cpu_us / self.rival.cpu_us.max(1e-3))
    }

    /// The most that the ratio may be.
    pub(crate) fn bar(&self) -> f64 {
        let is_shared = SHARED.iter().any(|(coding, name)| self.rival.coding == *coding && self.rival.program.starts_with(name));
        if is_shared { THE_SAME } else { LESS }
    }

    pub(crate) fn holds(&self) -> bool {
        self.ratio().is_some_and(|ratio| ratio <= self.bar())
    }
}

impl Verdict<'_> {
    pub(crate) fn exceptions(&self) -> impl Iterator<Item = &Answer<'_>> {
        self.answers.iter().filter(|answer| !answer.holds())
    }

    /// True if no more points than are allowed lie ahead of ours.
    pub(crate) fn holds(&self) -> bool {
        self.exceptions().count() as f64 <= EXCEPTIONS * self.answers.len() as f64
    }
}

/// Compares all points.
pub(crate) fn of(points: &[Point]) -> Verdict<'_> {
    let rivals = points.iter().filter(|point| point.program != OURS);
    Verdict { answers: rivals.map(|rival| Answer { rival, ours: cheapest(points, rival) }).collect() }
}

fn cheapest<'a>(points: &'a [Point], rival: &Point) -> Option<&'a Point> {
    let alike = |point: &&Point| {
        (point.kind, point.size, point.mode) == (rival.kind, rival.size, rival.mode)
            && point.coding == rival.coding
            && point.program == OURS
    };
    let small = points.iter().filter(alike).filter(|point| point.bytes <= NO_MORE * rival.bytes);
    small.min_by(|a, b| a.cpu_us.total_cmp(&b.cpu_us))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::frontier::Mode;

    pub(crate) fn point(program: &str, level: i32, bytes: f64, cpu_us: f64) -> Point {
        let (coding, program) = ("gzip".into(), program.into());
        Point { kind: "js", size: 1024, mode: Mode::Whole, coding, program, level, bytes, cpu_us }
    }

    #[test]
    fn a_point_is_answered_by_the_cheapest_level_with_no_more_bytes() {
        let points = [
            point(OURS, 1, 500.0, 10.0),
            point(OURS, 6, 400.0, 30.0),
            point("zlib-1", 1, 499.9, 11.0),
            point("zlib-1", 6, 450.0, 31.0),
            point("libdeflate-1", 6, 450.0, 30.0),
            point("zlib-1", 9, 399.0, 900.0),
            Point { size: 2048, ..point("zlib-1", 1, 600.0, 90.0) },
        ];
        let verdict = of(&points);
        let levels: Vec<_> = verdict.answers.iter().map(|a| (a.ours.map(|p| p.level), a.holds())).collect();
        assert_eq!(levels, [(Some(1), true), (Some(6), false), (Some(6), true), (None, false), (None, false)]);
        assert!(!verdict.holds() && verdict.exceptions().count() == 3);
        assert!(of(&points[..3]).holds());
    }
}
