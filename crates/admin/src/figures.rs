//! Figures: named values with marks for their kind, and their printed forms.
//!
//! `show stat` prints a [`Row`] for each proxy and server, whose cells are [`Column`]s; `show info` prints a list. Both
//! come as plain text, as typed lines and as JSON, in the shapes that programs have learnt from HAProxy.

pub(crate) mod column;
pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod row;
pub(crate) mod typed;

pub(crate) use column::Column;
pub(crate) use row::{Kind, Row};

use std::fmt;

/// A value and its kind.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Figure {
    /// Marks of its kind.
    pub(crate) marks: Marks,
    /// The value.
    pub(crate) value: Value,
}

/// Four letters: a figure's origin, its nature, its scope, and whether it outlives a reload. The manual of HAProxy
/// names them in "Typed output format".
///
/// * Origin: `M`etric, `S`tatus, `K`ey, `C`onfiguration, `P`roduct.
/// * Nature: `A`ge, `a`verage, `C`ounter, `D`uration, `G`auge, `L`imit, `M`aximum, `N`ame, `O`utput, `R`ate.
/// * Scope: `P`rocess, `S`ervice.
/// * All figures here are `V`olatile: a new process counts from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Marks(pub(crate) &'static str);

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    /// A number that fits into 32 bits; larger ones show as the largest.
    Small(u64),
    /// A number.
    Large(u64),
    /// A text.
    Text(String),
}

impl Figure {
    /// A number that goes up and down.
    pub(crate) fn gauge(n: impl TryInto<u64>) -> Figure {
        Figure::small("MGPV", n)
    }

    /// Highest value of a gauge.
    pub(crate) fn maximum(n: impl TryInto<u64>) -> Figure {
        Figure::small("MMPV", n)
    }

    /// A number that only grows.
    pub(crate) fn counter(n: u64) -> Figure {
        Figure { marks: Marks("MCPV"), value: Value::Large(n) }
    }

    /// Events a second.
    pub(crate) fn rate(n: impl TryInto<u64>) -> Figure {
        Figure::small("MRPV", n)
    }

    /// A configured limit.
    pub(crate) fn limit(n: impl TryInto<u64>) -> Figure {
        Figure::small("CLPV", n)
    }

    /// Seconds since an event.
    pub(crate) fn age(n: impl TryInto<u64>) -> Figure {
        Figure::small("MAPV", n)
    }

    /// A name as a key.
    pub(crate) fn name(text: impl Into<String>) -> Figure {
        Figure::text("KNSV", text)
    }

    /// A number, marked.
    pub(crate) fn small(marks: &'static str, n: impl TryInto<u64>) -> Figure {
        Figure { marks: Marks(marks), value: Value::Small(n.try_into().unwrap_or(u64::MAX)) }
    }

    /// A text, marked. Line ends in it become blanks.
    pub(crate) fn text(marks: &'static str, text: impl Into<String>) -> Figure {
        let text: String = text.into();
        let text = if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text };
        Figure { marks: Marks(marks), value: Value::Text(text) }
    }
}

impl Marks {
    /// Words of JSON for the first three letters.
    pub(crate) fn words(self) -> (&'static str, &'static str, &'static str) {
        let mut letters = self.0.chars();
        let origin = match letters.next() {
            Some('S') => "Status",
            Some('K') => "Key",
            Some('C') => "Config",
            Some('P') => "Product",
            _ => "Metric",
        };
        let nature = match letters.next() {
            Some('A') => "Age",
            Some('a') => "Avg",
            Some('C') => "Counter",
            Some('D') => "Duration",
            Some('L') => "Limit",
            Some('M') => "Max",
            Some('N') => "Name",
            Some('O') => "Output",
            Some('R') => "Rate",
            _ => "Gauge",
        };
        let scope = if letters.next() == Some('S') { "Service" } else { "Process" };
        (origin, nature, scope)
    }
}

impl Value {
    /// The type's name in typed lines and JSON.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Small(_) => "u32",
            Value::Large(_) => "u64",
            Value::Text(_) => "str",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Small(n) => (*n).min(u64::from(u32::MAX)).fmt(f),
            Value::Large(n) => n.fmt(f),
            Value::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fit_their_type() {
        assert_eq!(Figure::gauge(u64::MAX).value.to_string(), "4294967295");
        assert_eq!(Figure::gauge(-1).value.to_string(), "4294967295");
        assert_eq!(Figure::counter(u64::MAX).value.to_string(), "18446744073709551615");
        assert_eq!(Figure::text("MOPV", "a\r\nb").value, Value::Text("a  b".into()));
    }

    #[test]
    fn marks_have_words() {
        assert_eq!(Marks("MGPV").words(), ("Metric", "Gauge", "Process"));
        assert_eq!(Marks("KNSV").words(), ("Key", "Name", "Service"));
    }
}
