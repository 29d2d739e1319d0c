//! Local time for logs.
//!
//! The zone is read once, when the process starts: a worker in a chroot still knows it. A worker makes the texts of a second once.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use std::io::Write;
use std::time::Duration;

/// The zone that log lines tell the time in.
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

/// A moment as the clock on the wall shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalTime {
    /// 2026
    pub year: i16,
    /// 1 to 12
    pub month: u8,
    /// 1 to 31
    pub day: u8,
    /// 0 to 23
    pub hour: u8,
    /// 0 to 59
    pub minute: u8,
    /// 0 to 59
    pub second: u8,
    /// Seconds that local time is ahead of UTC; negative in America.
    pub offset_s: i32,
}

impl Zone {
    /// The system's: the variable `TZ`, else `/etc/localtime`, else UTC.
    pub fn system() -> Zone {
        Zone(TimeZone::system())
    }

    /// UTC.
    pub fn utc() -> Zone {
        Zone(TimeZone::UTC)
    }

    /// Local time, `unix_s` seconds after 1970 began in UTC. Moments beyond the calendar (the years -9999 to 9999) show as 1970.
    pub fn at(&self, unix_s: i64) -> LocalTime {
        let moment = Timestamp::from_second(unix_s).unwrap_or(Timestamp::UNIX_EPOCH);
        let offset: Offset = self.0.to_offset(moment);
        let wall = offset.to_datetime(moment);
        LocalTime {
            year: wall.year(),
            month: wall.month().unsigned_abs(),
            day: wall.day().unsigned_abs(),
            hour: wall.hour().unsigned_abs(),
            minute: wall.minute().unsigned_abs(),
            second: wall.second().unsigned_abs(),
            offset_s: offset.seconds(),
        }
    }
}

impl LocalTime {
    /// The month's name in three letters.
    pub fn month_name(&self) -> &'static str {
        MONTHS.get(usize::from(self.month).wrapping_sub(1)).copied().unwrap_or("Jan")
    }
}

/// The two texts of the current moment that headers are made of.
#[derive(Debug)]
pub(super) struct Stamp {
    zone: Zone,
    /// The second that the texts show.
    second: Option<u64>,
    legacy: Vec<u8>,
    iso: Vec<u8>,
}

impl Stamp {
    /// Texts in a zone.
    pub(super) fn new(zone: Zone) -> Stamp {
        Stamp { zone, second: None, legacy: Vec::with_capacity(16), iso: Vec::with_capacity(32) }
    }

    /// Moves to a moment, counted since 1970 began in UTC.
    pub(super) fn turn_to(&mut self, now: Duration) {
        if self.second != Some(now.as_secs()) {
            self.second = Some(now.as_secs());
            self.write(self.zone.at(i64::try_from(now.as_secs()).unwrap_or(i64::MAX)));
        }
        let mut micros = now.subsec_micros();
        if let Some(digits) = self.iso.get_mut(FRACTION) {
            for digit in digits.iter_mut().rev() {
                *digit = b'0' + (micros % 10) as u8;
                micros /= 10;
            }
        }
    }

    /// The year, and the month from 1.
    pub(super) fn year_and_month(&self) -> (u16, u8) {
        let number =
            |range| self.iso.get(range).and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|digits| digits.parse().ok());
        (number(0..4).unwrap_or(1970), number(5..7).map_or(1, |month| month.min(12) as u8))
    }

    /// `Feb  6 12:14:14 ` (RFC 3164 section 4.1.2).
    pub(super) fn legacy(&self) -> &[u8] {
        &self.legacy
    }

    /// `2009-02-06T12:14:14.655123+01:00 ` (RFC 5424 section 6.2.3).
    pub(super) fn iso(&self) -> &[u8] {
        &self.iso
    }

    fn write(&mut self, t: LocalTime) {
        self.legacy.clear();
        self.iso.clear();
        let sign = if t.offset_s < 0 { '-' } else { '+' };
        let offset_min = t.offset_s.unsigned_abs() / 60;
        // Writing into a vector cannot fail.
        let _ = write!(self.legacy, "{} {:2} {:02}:{:02}:{:02} ", t.month_name(), t.day, t.hour, t.minute, t.second);
        let _ = write!(
            self.iso,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.000000{sign}{:02}:{:02} ",
            t.year,
            t.month,
            t.day,
            t.hour,
            t.minute,
            t.second,
            offset_min / 60,
            offset_min % 60
        );
    }
}

/// The months in three letters.
pub(super) const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Range of the fraction, `.` and microseconds, in the ISO text.
const FRACTION: std::ops::Range<usize> = 20..26;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps() {
        let mut stamp = Stamp::new(Zone::utc());
        stamp.turn_to(Duration::new(1_233_922_454, 655_123_900));
        assert_eq!(stamp.legacy(), b"Feb  6 12:14:14 ");
        assert_eq!(stamp.iso(), b"2009-02-06T12:14:14.655123+00:00 ");
        stamp.turn_to(Duration::new(1_233_922_454, 7_000));
        assert_eq!(stamp.iso(), b"2009-02-06T12:14:14.000007+00:00 ");
        stamp.turn_to(Duration::new(1_261_094_399, 0));
        assert_eq!(stamp.legacy(), b"Dec 17 23:59:59 ");
    }

    #[test]
    fn zones_change_with_the_season() {
        let zone = Zone(TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap());
        let winter = zone.at(1_233_922_454);
        assert_eq!((winter.hour, winter.offset_s), (13, 3600));
        let summer = zone.at(1_250_000_000);
        assert_eq!((summer.month_name(), summer.offset_s), ("Aug", 7200));
        let mut stamp = Stamp::new(Zone(TimeZone::posix("<-0330>3:30").unwrap()));
        stamp.turn_to(Duration::from_secs(1_233_922_454));
        assert_eq!(stamp.iso(), b"2009-02-06T08:44:14.000000-03:30 ");
    }

    #[test]
    fn moments_beyond_the_calendar() {
        assert_eq!(Zone::utc().at(i64::MAX).year, 1970);
        Stamp::new(Zone::utc()).turn_to(Duration::MAX);
    }
}
