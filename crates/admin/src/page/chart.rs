//! Chart of the last ten minutes as two lines: bytes without compression, and bytes sent.

use crate::history::Series;
use crate::numbers;
use std::fmt::Write;

/// Draws them, 600 by 100 units; nothing if nothing was sent.
pub(super) fn draw(series: &Series, out: &mut String) {
    let most = series.before.iter().chain(&series.after).copied().max().unwrap_or(0);
    if most == 0 {
        return;
    }
    let _ = write!(
        out,
        "<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"Bytes a second in the last ten minutes: at most {}\">",
        numbers::bytes(most)
    );
    for (class, values) in [("before", &series.before), ("after", &series.after)] {
        let _ = write!(out, "<polygon class=\"{class}\" points=\"{},{HEIGHT}", x(values.len(), 0));
        for (at, value) in values.iter().enumerate() {
            let height = (u128::from(*value) * HEIGHT as u128 / u128::from(most)) as usize;
            let _ = write!(out, " {},{}", x(values.len(), at), HEIGHT - height);
        }
        let _ = write!(out, " {WIDTH},{HEIGHT}\"/>");
    }
    let now = |values: &[u64]| values.last().copied().unwrap_or(0);
    let _ = write!(
        out,
        "</svg><figcaption>Ten minutes, at most {}/s. Now <span class=\"key after\">sent {}/s</span> \
         <span class=\"key before\">instead of {}/s</span></figcaption></figure>",
        numbers::bytes(most),
        numbers::bytes(now(&series.after)),
        numbers::bytes(now(&series.before)),
    );
}

/// Position of a second: the newest is at the right.
fn x(seconds: usize, at: usize) -> usize {
    WIDTH.saturating_sub(seconds) + at
}

const WIDTH: usize = 600;
const HEIGHT: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn series(before: &[u64], after: &[u64]) -> Series {
        let zeros = vec![0; before.len()];
        Series {
            step_s: 1,
            start_ms: 0,
            before: before.to_vec(),
            after: after.to_vec(),
            requests: zeros,
            busy_permille: vec![0; before.len()],
        }
    }

    #[test]
    fn the_newest_second_is_at_the_right() {
        let mut out = String::new();
        draw(&series(&[0, 200, 1000], &[0, 100, 500]), &mut out);
        assert!(out.contains("points=\"597,100 597,100 598,80 599,0 600,100\""), "{out}");
        assert!(out.contains("points=\"597,100 597,100 598,90 599,50 600,100\"") && out.contains("sent 500 B/s"), "{out}");
        let mut nothing = String::new();
        draw(&series(&[0, 0], &[0, 0]), &mut nothing);
        assert_eq!(nothing, "");
    }
}
