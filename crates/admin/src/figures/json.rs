//! JSON (RFC 8259) in HAProxy's shape: an object for each figure, all in one line.

use super::{Figure, Row, Value};
use std::fmt::Write;

/// A list of rows, each a list of figures.
pub(crate) fn rows<'a>(rows: impl Iterator<Item = &'a Row>, out: &mut String) {
    list(rows, out, row);
    out.push('\n');
}

/// A row: a list of figures.
pub(crate) fn row(row: &Row, out: &mut String) {
    let known = row.cells().filter_map(|(column, figure)| Some((column, figure?)));
    list(known, out, |(column, figure), out| {
        let _ = write!(out, "{{\"objType\":\"{}\",\"proxyId\":{},\"id\":{},", row.kind.name(), row.proxy, row.id);
        body(column as usize, column.name(), figure, out);
    });
}

/// A list of such lists.
pub(crate) fn lists<'a, F>(lists: impl Iterator<Item = F>, out: &mut String)
where
    F: Iterator<Item = (usize, &'a str, &'a Figure)>,
{
    list(lists, out, |figures, out| list(figures, out, named));
    out.push('\n');
}

/// A list of figures with their places and names.
pub(crate) fn figures<'a>(figures: impl Iterator<Item = (usize, &'a str, &'a Figure)>, out: &mut String) {
    list(figures, out, named);
    out.push('\n');
}

fn named((place, name, figure): (usize, &str, &Figure), out: &mut String) {
    out.push('{');
    body(place, name, figure, out);
}

fn list<T>(items: impl Iterator<Item = T>, out: &mut String, mut write: impl FnMut(T, &mut String)) {
    out.push('[');
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(']');
}

/// Rest of a figure's object, after its beginning.
fn body(place: usize, name: &str, figure: &Figure, out: &mut String) {
    let (origin, nature, scope) = figure.marks.words();
    let _ = write!(out, "\"field\":{{\"pos\":{place},\"name\":\"{name}\"}},\"processNum\":1,\"tags\":{{\"origin\":\"{origin}\",");
    let _ =
        write!(out, "\"nature\":\"{nature}\",\"scope\":\"{scope}\"}},\"value\":{{\"type\":\"{}\",\"value\":", figure.value.kind());
    match &figure.value {
        Value::Text(text) => string(text, out),
        value => drop(write!(out, "{value}")),
    }
    out.push_str("}}");
}

/// A text in quotes.
pub(crate) fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Column, Kind};

    #[test]
    fn figures_as_programs_know_them() {
        let mut row = Row::new(Kind::Server, 4, 2);
        row.set(Column::Proxy, Figure::name("a\"b\\\u{1}"));
        let mut out = String::new();
        rows([&row, &row].into_iter(), &mut out);
        let first = "[[{\"objType\":\"Server\",\"proxyId\":4,\"id\":2,\"field\":{\"pos\":0,\"name\":\"pxname\"},\"processNum\":1,\
                     \"tags\":{\"origin\":\"Key\",\"nature\":\"Name\",\"scope\":\"Service\"},\"value\":{\"type\":\"str\",\
                     \"value\":\"a\\\"b\\\\\\u0001\"}},{";
        assert!(out.starts_with(first), "{out}");
        assert!(out.ends_with("\"value\":2}}]]\n"), "{out}");
        let mut out = String::new();
        figures([(3, "Nbthread", &Figure::small("CGSV", 4))].into_iter(), &mut out);
        assert!(out.starts_with("[{\"field\":{\"pos\":3,\"name\":\"Nbthread\"},") && out.ends_with("\"value\":4}}]\n"), "{out}");
    }
}
