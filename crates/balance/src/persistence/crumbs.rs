//! Parts of a Cookie field.
//!
//! RFC 6265 separates cookies by `;`, older versions by `,` too, and values may be quoted. Browsers send almost
//! anything. So a field is cut at the separators outside of quotes and not parsed further: the parts that are not
//! edited stay as they came.

use std::ops::Range;

/// A `name=value`, as ranges in the field. Blanks round both are left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Crumb {
    pub(super) name: Range<usize>,
    pub(super) value: Range<usize>,
}

impl Crumb {
    pub(super) fn name<'f>(&self, field: &'f [u8]) -> &'f [u8] {
        &field[self.name.clone()]
    }

    pub(super) fn value<'f>(&self, field: &'f [u8]) -> &'f [u8] {
        &field[self.value.clone()]
    }

    /// The cookie in a piece of the field. `$Path` and its like are attributes of the cookie before them (RFC 2109),
    /// and a piece without `=` is no cookie.
    fn in_piece(field: &[u8], piece: Range<usize>) -> Option<Crumb> {
        let equals = piece.start + field[piece.clone()].iter().position(|byte| *byte == b'=')?;
        let crumb = Crumb { name: trimmed(field, piece.start..equals), value: trimmed(field, equals + 1..piece.end) };
        (field.get(crumb.name.start) != Some(&b'$')).then_some(crumb)
    }
}

/// The cookies of a Cookie field.
pub(super) struct Crumbs<'f> {
    field: &'f [u8],
    pieces: Pieces<'f>,
}

impl<'f> Crumbs<'f> {
    pub(super) fn of(field: &'f [u8]) -> Crumbs<'f> {
        Crumbs { field, pieces: Pieces { field, at: 0 } }
    }
}

impl Iterator for Crumbs<'_> {
    type Item = Crumb;

    fn next(&mut self) -> Option<Crumb> {
        self.pieces.by_ref().find_map(|piece| Crumb::in_piece(self.field, piece))
    }
}

/// The cookie of a Set-Cookie field; attributes follow it.
pub(super) fn first_of_set_cookie(field: &[u8]) -> Option<Crumb> {
    let end = field.iter().position(|byte| *byte == b';').unwrap_or(field.len());
    Crumb::in_piece(field, 0..end)
}

/// The field without the cookies of that name and their attributes; `None` when there are none.
pub(super) fn without(field: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let mut kept = Vec::with_capacity(field.len());
    let (mut removed, mut removing, mut first) = (false, false, true);
    for piece in (Pieces { field, at: 0 }) {
        removing = match Crumb::in_piece(field, piece.clone()) {
            Some(crumb) => crumb.name(field) == name,
            // An attribute goes with its cookie.
            None => removing && field.get(trimmed(field, piece.clone()).start) == Some(&b'$'),
        };
        removed |= removing;
        if removing {
            continue;
        }
        if first {
            // The blank that followed a separator would begin the field.
            let start = if removed { trimmed(field, piece.clone()).start } else { piece.start };
            kept.extend_from_slice(&field[start..piece.end]);
        } else {
            kept.extend_from_slice(&field[piece.start - 1..piece.end]);
        }
        first = false;
    }
    removed.then(|| if kept.trim_ascii().is_empty() { Vec::new() } else { kept })
}

/// The field without the prefix up to `~` in the values of cookies of that name; `None` when there is nothing to cut.
pub(super) fn without_prefix(field: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let (mut edited, mut copied) = (Vec::new(), 0);
    for crumb in Crumbs::of(field).filter(|crumb| crumb.name(field) == name) {
        if let Some(prefix) = crumb.value(field).iter().position(|byte| *byte == super::PREFIX_DELIMITER) {
            edited.extend_from_slice(&field[copied..crumb.value.start]);
            copied = crumb.value.start + prefix + 1;
        }
    }
    (copied != 0).then(|| {
        edited.extend_from_slice(&field[copied..]);
        edited
    })
}

/// Pieces between separators, without them. There is always at least one piece.
struct Pieces<'f> {
    field: &'f [u8],
    /// Offset of the next piece; past the end and one more, when there is none.
    at: usize,
}

impl Iterator for Pieces<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let rest = self.field.get(self.at..)?;
        let (mut quoted, mut escaped) = (false, false);
        let length = rest.iter().position(|byte| {
            let escapes = quoted && !escaped && *byte == b'\\';
            if *byte == b'"' && !escaped {
                quoted = !quoted;
            }
            escaped = escapes;
            !quoted && matches!(byte, b';' | b',')
        });
        let piece = self.at..self.at + length.unwrap_or(rest.len());
        self.at = piece.end + 1;
        Some(piece)
    }
}

/// A range without the blanks at its ends.
fn trimmed(field: &[u8], place: Range<usize>) -> Range<usize> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let bytes = &field[place.clone()];
    match bytes.iter().position(|byte| !is_blank(byte)) {
        Some(first) => place.start + first..place.end - bytes.iter().rev().take_while(|byte| is_blank(byte)).count(),
        None => place.end..place.end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(field: &str) -> Option<String> {
        without(field.as_bytes(), b"S").map(|value| String::from_utf8(value).unwrap())
    }

    #[test]
    fn one_cookie_goes_and_the_others_stay() {
        for (before, after) in [
            ("S=1", Some("")),
            ("S=1; a=2", Some("a=2")),
            ("a=2; S=1", Some("a=2")),
            ("a=2; S=1; b=3", Some("a=2; b=3")),
            ("a=2;S = 1 ;b=3", Some("a=2;b=3")),
            ("S=1; S=2;", Some("")),
            ("S=1; $Path=/; a=2; $Path=/x", Some("a=2; $Path=/x")),
            (r#"a="x; S=1"; S=2"#, Some(r#"a="x; S=1""#)),
            (r#"a="\"; S=1"; b"#, None),
            ("flag; S=1", Some("flag")),
            ("s=1; SS=2; S", None),
            ("", None),
        ] {
            assert_eq!(cut(before).as_deref(), after, "{before}");
        }
    }

    #[test]
    fn a_prefix_goes_and_the_value_stays() {
        let cut = |field: &str| without_prefix(field.as_bytes(), b"S").map(|value| String::from_utf8(value).unwrap());
        assert_eq!(cut("a=x~y; S=s1~own~er; b=3").as_deref(), Some("a=x~y; S=own~er; b=3"));
        assert_eq!(cut("S=s1; a=2"), None);
        assert_eq!(cut("S=~; S=q~1").as_deref(), Some("S=; S=1"));
    }

    #[test]
    fn set_cookie_has_one_cookie() {
        let field = b" S = a b ; Expires=Thu, 01-Jan-1970; S=no";
        let crumb = first_of_set_cookie(field).unwrap();
        assert_eq!((crumb.name(field), crumb.value(field)), (&b"S"[..], &b"a b"[..]));
    }

    proptest! {
        #[test]
        fn any_field_can_be_cut(field in prop::collection::vec(any::<u8>(), 0..60)) {
            let kept = without(&field, b"S").unwrap_or(field.clone());
            prop_assert!(Crumbs::of(&kept).all(|crumb| crumb.name(&kept) != b"S"));
            without_prefix(&field, b"S");
        }

        #[test]
        fn other_cookies_stay_byte_for_byte(others in prop::collection::vec("[a-z]=[a-z= ]{0,3}[a-z]", 0..5), at in 0usize..6) {
            let mut with = others.clone();
            with.insert(at.min(others.len()), "S=x".into());
            prop_assert_eq!(cut(&with.join("; ")), Some(others.join("; ")));
        }
    }
}
