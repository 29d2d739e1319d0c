//! Names that look like a mistyped one.

use crate::args::Fault;

/// The names nearest to a word, best first, at most three; empty when no name is near.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let length = word.chars().count();
    let allowed = (length / 3).clamp(1, MAX_DISTANCE);
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        // Each surplus character is a step: most names need no closer look.
        .filter(|name| name.chars().count().abs_diff(length) <= allowed)
        .map(|name| (distance(word, name), name))
        .filter(|(distance, _)| *distance <= allowed)
        .collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(SUGGESTIONS);
    near.into_iter().map(|(_, name)| name).collect()
}

/// The fault with a hint that names the nearest of these names.
pub fn hinted<'a>(fault: Fault, word: &str, names: impl IntoIterator<Item = &'a str>) -> Fault {
    match question(&nearest(word, names)) {
        Some(question) => fault.hint(question),
        None => fault,
    }
}

/// The question whether one of these names was meant.
pub fn question(names: &[&str]) -> Option<String> {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    (!quoted.is_empty()).then(|| format!("did you mean {}?", quoted.join(" or ")))
}

/// The number of characters to insert, remove, replace or swap with their neighbour to make one word the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(MAX_CHARS).collect(), b.chars().take(MAX_CHARS).collect());
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let same = a[i - 1] == b[j - 1];
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + usize::from(!same));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// Most names in a suggestion: more do not help.
const SUGGESTIONS: usize = 3;

/// Largest distance: names farther away are other words, not mistyped ones.
const MAX_DISTANCE: usize = 3;

/// Most characters that are compared: no keyword is longer, and a long word costs no more than this.
const MAX_CHARS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in [("", "", 0), ("bind", "bnid", 1), ("bind", "bid", 1), ("", "abc", 3), ("balance", "ballance", 1)] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn near_names_come_best_first() {
        let names = ["timeout client", "timeout connect", "timeout check", "balance"];
        assert_eq!(nearest("timeout chekc", names), ["timeout check"]);
        assert_eq!(nearest("zzz", names), [""; 0]);
        assert_eq!(nearest("", names), [""; 0]);
    }
}
