//! Text, as fields and first lines have it (RFC 9110 section 5.5): no controls but the tab.

/// Index of the first control that is no tab. DEL is a control; bytes beyond ASCII are none.
///
/// Eight bytes are checked in one step, since nearly all text is long and has none.
#[inline]
pub fn control_at(text: &[u8]) -> Option<usize> {
    let (words, rest) = text.as_chunks();
    for (i, word) in words.iter().enumerate() {
        let controls = controls(u64::from_le_bytes(*word));
        if controls != 0 {
            let first = controls.trailing_zeros() as usize / 8;
            // A tab counts as a control until here.
            if let Some(at) = word.iter().skip(first).position(is_control) {
                return Some(i * WORD + first + at);
            }
        }
    }
    let last = match text.last_chunk() {
        // Some of its bytes were checked before.
        Some(word) => u64::from_le_bytes(*word),
        None => word_of_few(text),
    };
    let certain = rest.is_empty() || controls(last) == 0;
    if certain { None } else { rest.iter().position(is_control).map(|at| words.len() * WORD + at) }
}

/// The bytes of a text that is shorter than a word, some of them twice, and blanks.
fn word_of_few(text: &[u8]) -> u64 {
    const BLANKS: u64 = ONES * b' ' as u64;
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
    }
    match *text {
        [] => BLANKS,
        [a] => BLANKS << 8 | u64::from(a),
        [a, b] => BLANKS << 16 | u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, ..] => BLANKS << 24 | u64::from(u32::from_le_bytes([a, b, c, 0])),
    }
}

const WORD: usize = size_of::<u64>();

fn is_control(b: &u8) -> bool {
    *b < b' ' && *b != b'\t' || *b == DEL
}

const DEL: u8 = 0x7f;
const ONES: u64 = u64::MAX / 0xff;

/// The highest bit of each byte that is below the blank or DEL: of a difference that is below 0, where the byte itself is
/// below 128. A bit above another may be there for nothing, since differences borrow from the bytes above them; the lowest
/// never is.
const fn controls(word: u64) -> u64 {
    let low = word.wrapping_sub(ONES * b' ' as u64) & !word;
    let off_del = word ^ (ONES * DEL as u64);
    let del = off_del.wrapping_sub(ONES) & !off_del;
    (low | del) & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_found_wherever_they_stand() {
        for control in (0..=255).filter(|b| !matches!(b, b'\t' | b' '..=b'~' | 0x80..)) {
            for len in 0..40 {
                let text: Vec<u8> = (0..len).map(|i| [b'a', b'\t', 0xff, b' ', 0x80, b'~'][i % 6]).collect();
                assert_eq!(control_at(&text), None);
                for at in 0..len {
                    let mut text = text.clone();
                    text[at] = control;
                    assert_eq!(control_at(&text), Some(at), "{control:#x} at {at} of {len}");
                    text[len - 1] = b'\n';
                    assert_eq!(control_at(&text), Some(at));
                }
            }
        }
    }
}
