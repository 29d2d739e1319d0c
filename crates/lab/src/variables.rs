//! Many variables: the rules that the change from a list to a tree in HAProxy was measured with.
//!
//! ```sh
//! for i in {0..100}; do
//!     printf "\thttp-request set-var(txn.var%04d) int(%d)" $i $i
//!     for j in {1..10}; do [ $i -lt $j ] || printf ",add(txn.var%04d)" $((i-j)); done
//!     echo
//! done
//! ```

use std::fmt::Write;

/// Output of the generator for `{0..last}`: `last + 1` variables, and about ten look-ups for each.
pub fn rules(last: usize) -> String {
    let mut text = String::new();
    for i in 0..=last {
        let _ = write!(text, "\thttp-request set-var(txn.var{i:04}) int({i})");
        for j in 1..=10.min(i) {
            let _ = write!(text, ",add(txn.var{:04})", i - j);
        }
        text.push('\n');
    }
    text
}

/// A configuration in which the line `# generate 0..100` has become the rules for it.
pub fn fill_in(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| match line.trim().strip_prefix("# generate 0..").map(str::parse) {
        Some(Ok(last)) => rules(last),
        _ => line.to_owned(),
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_generator_prints_it() {
        let text = rules(100);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 101);
        assert_eq!(lines[0], "\thttp-request set-var(txn.var0000) int(0)");
        assert_eq!(lines[2], "\thttp-request set-var(txn.var0002) int(2),add(txn.var0001),add(txn.var0000)");
        assert!(lines[100].ends_with("int(100),add(txn.var0099),add(txn.var0098),add(txn.var0097),add(txn.var0096),add(txn.var0095),add(txn.var0094),add(txn.var0093),add(txn.var0092),add(txn.var0091),add(txn.var0090)"));
        assert_eq!(text.matches(",add(").count(), 955);
        assert_eq!(fill_in("a\n  # generate 0..0\nb"), "a\n\thttp-request set-var(txn.var0000) int(0)\nb");
    }
}
