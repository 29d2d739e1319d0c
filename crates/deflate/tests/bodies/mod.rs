//! Bodies that tests are made of.

/// Numbers that look like chance, the same ones for a seed.
pub(crate) fn noise(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Words of a small language, some of them repeated at a distance.
pub(crate) fn text(seed: u64, bytes: usize) -> Vec<u8> {
    const WORDS: [&str; 12] =
        ["function", " ", "return", "(", ");\n", "value", "=", "0x1f", "prototype", "\u{e9}", "        ", "abcabcabcabcabcabc"];
    let (mut next, mut out) = (noise(seed), Vec::new());
    while out.len() < bytes {
        match next() % 16 {
            15 => out.push(next() as u8),
            word => out.extend_from_slice(WORDS[word as usize % WORDS.len()].as_bytes()),
        }
    }
    out.truncate(bytes);
    out
}
