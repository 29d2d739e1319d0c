//! Bodies to compress: every kind of bytes, and lengths at and around the sizes of windows, blocks and segments.

use std::io::Write;

/// A body to compress.
pub struct Body {
    /// Its description.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Bodies that every level is tried on.
pub fn small() -> Vec<Body> {
    let mut bodies = vec![
        body("nothing", Vec::new()),
        body("a byte", b"x".to_vec()),
        body("a short text", b"hello, hello".to_vec()),
        body("text", text(1, 1000)),
        body("noise", noise(1, 1000)),
        body("zeros", vec![0; 20_000]),
        body("text, zeros, noise", mixed(40_000)),
        body("gzip's output", gzipped(60_000)),
        body("all bytes in turn", (0..5000u32).map(|n| n as u8).collect()),
    ];
    bodies.extend(around("text", 32 << 10, &[0, 1], text));
    bodies
}

/// All bodies: the small ones and larger ones.
pub fn all() -> Vec<Body> {
    let mut bodies = small();
    for edge in [16 << 10, 32 << 10, 64 << 10, 192 << 10] {
        bodies.extend(around("text", edge, &[-273, -1, 0, 1, 258], text));
        bodies.extend(around("zeros", edge, &[-1, 0, 1, 258], |_, length| vec![0; length]));
        bodies.extend(around("noise", edge, &[-1, 0, 1], noise));
    }
    bodies.extend(around("text", 1 << 20, &[-1, 0, 1], text));
    bodies.push(body("a megabyte of zeros", vec![0; 1 << 20]));
    bodies.push(body("noise of two letters", noise(3, 300_000).into_iter().map(|byte| byte & 1).collect()));
    bodies.push(body("the farthest match", noise(5, 32_768).repeat(2)));
    bodies.push(body("a match too far", [noise(5, 32_768), vec![0], noise(5, 32_768)].concat()));
    bodies.push(body("gzip's output, more", gzipped(900_000)));
    bodies
}

fn around(kind: &str, edge: usize, offsets: &[isize], make: fn(u64, usize) -> Vec<u8>) -> Vec<Body> {
    let lengths = offsets.iter().map(|offset| edge.strict_add_signed(*offset));
    lengths.map(|length| body(&format!("{length} of {kind}"), make(length as u64, length))).collect()
}

fn body(name: &str, bytes: Vec<u8>) -> Body {
    Body { name: name.into(), bytes }
}

/// Words of a small language, now and then another byte. The same seed gives the same.
pub fn text(seed: u64, length: usize) -> Vec<u8> {
    const WORDS: [&str; 12] =
        ["function", " ", "return", "(", ");\n", "value", "=", "0x1f", "prototype", "\u{e9}", "        ", "abcabcabcabcabcabc"];
    let (mut dice, mut out) = (Dice::new(seed), Vec::new());
    while out.len() < length {
        match dice.below(16) {
            15 => out.push(dice.below(256) as u8),
            word => out.extend_from_slice(WORDS[word % WORDS.len()].as_bytes()),
        }
    }
    out.truncate(length);
    out
}

/// Bytes without any order.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    (0..length).map(|_| dice.below(256) as u8).collect()
}

/// Text, then zeros, then noise: every kind of block.
pub fn mixed(length: usize) -> Vec<u8> {
    let mut out = text(2, length * 2 / 3);
    out.resize(out.len() + length / 6, 0);
    out.extend(noise(2, length - out.len()));
    out
}

fn gzipped(length: usize) -> Vec<u8> {
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    coder.write_all(&text(3, length)).unwrap();
    coder.finish().unwrap()
}

/// Pseudo-random numbers that are the same for the same seed.
pub struct Dice(u64);

impl Dice {
    /// Numbers of a seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number, below `most`.
    pub fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % most as u64) as usize
    }

    /// Bytes of any kind, up to that length: noise of few or many letters, runs, text, repetitions of it.
    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        let (seed, length) = (self.below(1 << 30) as u64, self.below(most + 1));
        match self.below(4) {
            0 => {
                let letters = 1 + self.below(256) as u16;
                noise(seed, length).into_iter().map(|byte| (u16::from(byte) % letters) as u8).collect()
            }
            1 => vec![seed as u8; length],
            2 => text(seed, length),
            _ => text(seed, 1 + self.below(40)).into_iter().cycle().take(length).collect(),
        }
    }
}
