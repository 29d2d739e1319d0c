//! A page of text: headings, paragraphs and a list, as a site's articles are.

use super::rng::Rng;
use super::words::{NOUNS, PROSE, VERBS};
use super::{STAMP_BYTES, Template};
use std::fmt::Write;

/// A page of at least so many bytes, with a stamp at each heading.
pub fn page(seed: u64, bytes: usize) -> Template {
    let mut rng = Rng::new(seed);
    let mut out = String::with_capacity(bytes + 2048);
    let mut stamps = Vec::new();
    out.push_str(HEAD);
    while out.len() < bytes {
        out.push_str("<section id=\"s-");
        stamps.push(out.len());
        let _ = writeln!(out, "{}\">\n<h2>{}</h2>", "0".repeat(STAMP_BYTES), sentence(&mut rng, 3));
        for _ in 0..2 + rng.below(3) {
            out.push_str("<p>");
            for _ in 0..3 + rng.below(4) {
                let words = 6 + rng.below(12);
                let _ = write!(out, "{}. ", sentence(&mut rng, words));
            }
            out.push_str("</p>\n");
        }
        if rng.percent(40) {
            out.push_str("<ul>\n");
            for _ in 0..3 + rng.below(4) {
                let (noun, words) = (rng.pick(NOUNS), 3 + rng.below(5));
                let _ = writeln!(out, "<li><a href=\"#{noun}\">{noun}</a>: {}</li>", sentence(&mut rng, words));
            }
            out.push_str("</ul>\n");
        }
        out.push_str("</section>\n");
    }
    out.push_str("</main>\n</body>\n</html>\n");
    Template { bytes: out.into_bytes(), stamps }
}

fn sentence(rng: &mut Rng, words: usize) -> String {
    let mut out = String::new();
    for i in 0..words {
        let word = match rng.below(10) {
            0..=4 => rng.common(PROSE),
            5..=7 => rng.common(NOUNS),
            _ => rng.common(VERBS),
        };
        match i {
            0 => out.extend(word.chars().take(1).map(|c| c.to_ascii_uppercase()).chain(word.chars().skip(1))),
            _ => {
                out.push(' ');
                out.push_str(word);
            }
        }
    }
    out
}

const HEAD: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>An article about nothing</title>
<style>body { max-width: 44em; margin: 2em auto; padding: 0 1em; font: 16px/1.5 serif } h2 { font-family: sans-serif }</style>
</head>
<body>
<main>
<p><a href="/">Back</a></p>
"#;
