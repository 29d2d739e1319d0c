//! Dates: from numbers to text and back.

use crate::argument::{Arg, ArgList, Param, ParamKind, may, need};
use crate::cast::decimal;
use crate::compiler::Compiler;
use crate::env::Env;
use crate::octets::{Buffer, Octets};
use crate::registry::Converter;
use crate::value::{Type, Value};
use terse_message::date;

const FORMAT: &[Param] = &[need(ParamKind::Str), may(ParamKind::Int)];

/// A converter of a time in so many parts of a second, in the local time zone or not.
macro_rules! formatted {
    ($name:literal, $summary:literal, $per_second:literal, $local:literal) => {
        Converter::new($name, Type::Int, Type::Str, $summary, |value, args, env| format(value, args, env, $per_second, $local))
            .params(FORMAT)
    };
}

pub(crate) const CONVERTERS: &[Converter] = &[
    formatted!("ltime", "A time in seconds by a format of strftime, in local time.", 1, true),
    formatted!("ms_ltime", "A time in milliseconds by a format of strftime, in local time; %N is the fraction.", 1_000, true),
    formatted!("us_ltime", "A time in microseconds by a format of strftime, in local time; %N is the fraction.", 1_000_000, true),
    formatted!("utime", "A time in seconds by a format of strftime, in UTC.", 1, false),
    formatted!("ms_utime", "A time in milliseconds by a format of strftime, in UTC; %N is the fraction.", 1_000, false),
    formatted!("us_utime", "A time in microseconds by a format of strftime, in UTC; %N is the fraction.", 1_000_000, false),
    Converter::new("http_date", Type::Int, Type::Str, "A time as fields of HTTP write it (RFC 9110 section 5.6.7).", http_date)
        .params(&[may(ParamKind::Int), may(ParamKind::Str)])
        .check(check_unit),
    Converter::new("date", Type::Str, Type::Int, "The seconds since 1970 of a date of HTTP.", |value, _, env| {
        date::parse(&value.into_octets()?, env.world.now().seconds).map(Value::Int)
    }),
];

/// Turns the second argument, a unit, into the number of units in a second.
pub(crate) fn check_unit(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let per_second = match args.get(1) {
        None | Some(Arg::None) => return Ok(()),
        Some(Arg::Str(word)) => match &**word {
            b"" | b"s" => 1,
            b"ms" => 1_000,
            b"us" => 1_000_000,
            other => return Err(format!("expects 's', 'ms' or 'us', not '{}'", other.escape_ascii())),
        },
        _ => return Err("expects 's', 'ms' or 'us'".into()),
    };
    args[1] = Arg::Int(per_second);
    Ok(())
}

/// A second of the calendar.
#[derive(Clone, Copy, Debug)]
struct Civil {
    year: i64,
    month: u8,
    day: u8,
    weekday: u8,
    day_of_year: u16,
    hour: u8,
    minute: u8,
    second: u8,
}

/// Last second that the calendar is asked for. The year 292 thousand million would be far enough away, but years must stay
/// numbers that a format can hold.
const LAST_SECOND: i64 = 253_402_300_799;

impl Civil {
    /// The calendar's second for seconds since 1970-01-01, held between the years 0 and 9999.
    fn of(seconds: i64) -> Civil {
        let seconds = seconds.clamp(-62_167_219_200, LAST_SECOND);
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        // Years that begin in March put the leap day at their end; 719,468 days lie between 0000-03-01 and 1970-01-01.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_march_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_march_year + 2) / 153;
        let day = day_of_march_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        Civil {
            year,
            month: month as u8,
            day: day as u8,
            weekday: (days + 4).rem_euclid(7) as u8,
            day_of_year: (days - days_to(year, 1, 1) + 1) as u16,
            hour: (second / 3_600) as u8,
            minute: (second / 60 % 60) as u8,
            second: (second % 60) as u8,
        }
    }

    fn weekday_name(&self) -> &'static str {
        WEEKDAYS.get(usize::from(self.weekday)).copied().unwrap_or_default()
    }

    fn month_name(&self) -> &'static str {
        MONTHS.get(usize::from(self.month).wrapping_sub(1)).copied().unwrap_or_default()
    }

    /// The week of the year, from 0, where weeks begin with this day of theirs (0: Sunday).
    fn week(&self, first: u8) -> u8 {
        let since = (self.weekday + 7 - first) % 7;
        ((self.day_of_year + 6 - u16::from(since)) / 7) as u8
    }

    /// The year and the week by ISO 8601: a week belongs to the year of its Thursday.
    fn iso_week(&self) -> (i64, i64) {
        let weeks = |year: i64| {
            let last = |year: i64| (year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400)).rem_euclid(7);
            if last(year) == 4 || last(year - 1) == 3 { 53 } else { 52 }
        };
        let since_monday = i64::from((self.weekday + 6) % 7);
        match (i64::from(self.day_of_year) - since_monday + 9) / 7 {
            0 => (self.year - 1, weeks(self.year - 1)),
            week if week > weeks(self.year) => (self.year + 1, 1),
            week => (self.year, week),
        }
    }

    fn hour12(&self) -> u8 {
        if self.hour.is_multiple_of(12) { 12 } else { self.hour % 12 }
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
pub fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

fn format<'a>(value: Value<'a>, args: &'a ArgList, env: &Env<'a>, per_second: i64, local: bool) -> Option<Value<'a>> {
    let time = value.into_int()?;
    let seconds = time.div_euclid(per_second).saturating_add(args.int(1).unwrap_or(0));
    let nanos = time.rem_euclid(per_second) * (1_000_000_000 / per_second);
    let offset = if local { env.world.utc_offset(seconds) } else { 0 };
    let mut out = Buffer::new();
    Stamp { civil: Civil::of(seconds.saturating_add(offset.into())), seconds, nanos, offset, local, fractions: per_second > 1 }
        .write(args.str(0)?, &mut out);
    Some(Value::Str(Octets::from(out)))
}

/// A time with all that a format can ask for.
struct Stamp {
    civil: Civil,
    seconds: i64,
    nanos: i64,
    offset: i32,
    local: bool,
    fractions: bool,
}

impl Stamp {
    /// Writes a format with the conversions of strftime in the C locale; an unknown conversion is written unchanged.
    fn write(&self, format: &[u8], out: &mut Buffer) {
        let mut rest = format;
        while let Some((&first, after)) = rest.split_first() {
            rest = after;
            if first != b'%' {
                out.push(first);
                continue;
            }
            if self.fractions
                && let Some(after) = self.fraction(after, out)
            {
                rest = after;
                continue;
            }
            match after.split_first() {
                Some((&conversion, after)) if self.convert(conversion, out) => rest = after,
                _ => out.push(b'%'),
            }
        }
    }

    /// `%N`, or `%3N` for so many digits.
    fn fraction<'f>(&self, text: &'f [u8], out: &mut Buffer) -> Option<&'f [u8]> {
        let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
        let after = text[digits..].strip_prefix(b"N")?;
        let width = std::str::from_utf8(&text[..digits]).ok()?.parse().unwrap_or(9usize).min(9);
        out.extend_from_slice(&format!("{:09}", self.nanos).as_bytes()[..width]);
        Some(after)
    }

    fn convert(&self, conversion: u8, out: &mut Buffer) -> bool {
        let c = &self.civil;
        let mut two = |n: u8| out.extend_from_slice(format!("{n:02}").as_bytes());
        match conversion {
            b'd' => two(c.day),
            b'm' => two(c.month),
            b'H' => two(c.hour),
            b'I' => two(c.hour12()),
            b'M' => two(c.minute),
            b'S' => two(c.second),
            b'y' => two(c.year.rem_euclid(100) as u8),
            b'C' => two(c.year.div_euclid(100) as u8),
            b'e' => out.extend_from_slice(format!("{:2}", c.day).as_bytes()),
            b'k' => out.extend_from_slice(format!("{:2}", c.hour).as_bytes()),
            b'l' => out.extend_from_slice(format!("{:2}", c.hour12()).as_bytes()),
            b'j' => out.extend_from_slice(format!("{:03}", c.day_of_year).as_bytes()),
            b'Y' => out.extend_from_slice(&decimal(c.year)),
            b's' => out.extend_from_slice(&decimal(self.seconds)),
            b'u' => out.extend_from_slice(&decimal(if c.weekday == 0 { 7 } else { c.weekday.into() })),
            b'w' => out.extend_from_slice(&decimal(c.weekday.into())),
            b'a' => out.extend_from_slice(&c.weekday_name().as_bytes()[..3]),
            b'A' => out.extend_from_slice(c.weekday_name().as_bytes()),
            b'b' | b'h' => out.extend_from_slice(&c.month_name().as_bytes()[..3]),
            b'B' => out.extend_from_slice(c.month_name().as_bytes()),
            b'p' => out.extend_from_slice(if c.hour < 12 { b"AM" } else { b"PM" }),
            b'P' => out.extend_from_slice(if c.hour < 12 { b"am" } else { b"pm" }),
            b'U' => two(c.week(0)),
            b'W' => two(c.week(1)),
            b'V' => two(c.iso_week().1 as u8),
            b'g' => two(c.iso_week().0.rem_euclid(100) as u8),
            b'G' => out.extend_from_slice(&decimal(c.iso_week().0)),
            b'z' => {
                let (sign, minutes) = (if self.offset < 0 { '-' } else { '+' }, self.offset.unsigned_abs() / 60);
                out.extend_from_slice(format!("{sign}{:02}{:02}", minutes / 60, minutes % 60).as_bytes());
            }
            b'Z' if !self.local || self.offset == 0 => out.extend_from_slice(if self.local { b"UTC" } else { b"GMT" }),
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'%' => out.push(b'%'),
            b'T' => self.write(b"%H:%M:%S", out),
            b'R' => self.write(b"%H:%M", out),
            b'r' => self.write(b"%I:%M:%S %p", out),
            b'F' => self.write(b"%Y-%m-%d", out),
            b'D' | b'x' => self.write(b"%m/%d/%y", out),
            b'X' => self.write(b"%H:%M:%S", out),
            b'c' => self.write(b"%a %b %e %H:%M:%S %Y", out),
            _ => return false,
        }
        true
    }
}

fn http_date<'a>(value: Value<'a>, args: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    let time = value.into_int()?.saturating_add(args.int(0).unwrap_or(0));
    let per_second = args.int(1).unwrap_or(1);
    let mut text = date::write(time.div_euclid(per_second))?;
    if per_second > 1 {
        text.insert_str(text.len() - " GMT".len(), &format!(".{}", time.rem_euclid(per_second)));
    }
    Some(Value::Str(Octets::copy(text.as_bytes())))
}
