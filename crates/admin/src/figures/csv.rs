//! Lines of fields between commas (RFC 4180): a text with a comma, a quote or a line end is quoted, quotes in it are
//! doubled.

use super::{Column, Row};
use std::fmt::Write;

/// The line with the columns' names.
pub(crate) fn header(out: &mut String) {
    out.push_str("# ");
    for column in Column::ALL {
        out.push_str(column.name());
        out.push(',');
    }
    out.push('\n');
}

/// Line of a row. Every field, the last too, has a comma after it.
pub(crate) fn line(row: &Row, out: &mut String) {
    for (column, figure) in row.cells() {
        match figure {
            Some(figure) => field(&figure.value.to_string(), out),
            None if column == Column::End => out.push('-'),
            None => {}
        }
        out.push(',');
    }
    out.push('\n');
}

fn field(text: &str, out: &mut String) {
    if text.contains(['"', ',', '\n', '\r']) {
        let _ = write!(out, "\"{}\"", text.replace('"', "\"\""));
    } else {
        out.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Figure, Kind};
    use proptest::prelude::*;

    /// Fields of a line, as another reader of the format parses it.
    fn fields(line: &str) -> Vec<String> {
        let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(std::mem::take(&mut field)),
                c => field.push(c),
            }
        }
        fields
    }

    proptest! {
        #[test]
        fn every_line_has_as_many_fields_as_the_header(name in "(?s).*", check in "(?s).*", n in any::<u64>()) {
            let mut row = Row::new(Kind::Server, 2, 1);
            row.set(Column::Proxy, Figure::name(&*name));
            row.set(Column::LastCheck, Figure::text("MOPV", &*check));
            row.set(Column::Sessions, Figure::counter(n));
            let (mut head, mut text) = (String::new(), String::new());
            header(&mut head);
            line(&row, &mut text);
            prop_assert_eq!(text.matches('\n').count(), 1);
            let all = fields(text.trim_end_matches('\n'));
            prop_assert_eq!(all.len(), fields(head.trim_end_matches('\n')).len());
            prop_assert_eq!(&all[0], &name.replace(['\n', '\r'], " "));
            prop_assert_eq!(&all[7], &n.to_string());
        }
    }
}
