//! Typed lines: one figure a line, `<what>:<marks>:<type>:<value>`.

use super::{Figure, Row};
use std::fmt::Write;

/// Lines of a row; with `texts` each ends in its description.
pub(crate) fn row(row: &Row, texts: bool, out: &mut String) {
    for (column, figure) in row.cells() {
        let Some(figure) = figure else { continue };
        let _ = write!(out, "{}.{}.{}.", row.kind.letter(), row.proxy, row.id);
        line(column as usize, column.name(), figure, texts.then(|| column.text()), out);
    }
}

/// A line: `<place>.<name>.1:<marks>:<type>:<value>[:"<text>"]`; the 1 is the process's number.
pub(crate) fn line(place: usize, name: &str, figure: &Figure, text: Option<&str>, out: &mut String) {
    let _ = write!(out, "{place}.{name}.1:{}:{}:{}", figure.marks.0, figure.value.kind(), figure.value);
    if let Some(text) = text {
        let _ = write!(out, ":\"{text}\"");
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Column, Kind};

    #[test]
    fn lines_as_programs_know_them() {
        let mut all = Row::new(Kind::Server, 4, 2);
        all.set(Column::Service, Figure::name("s2"));
        all.set(Column::Sessions, Figure::counter(9));
        let mut out = String::new();
        row(&all, false, &mut out);
        assert!(out.starts_with("S.4.2.1.svname.1:KNSV:str:s2\nS.4.2.7.stot.1:MCPV:u64:9\n"), "{out}");
        let mut out = String::new();
        line(7, "stot", &Figure::counter(9), Some("Sessions"), &mut out);
        assert_eq!(out, "7.stot.1:MCPV:u64:9:\"Sessions\"\n");
    }
}
