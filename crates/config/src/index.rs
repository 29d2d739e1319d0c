//! Keywords by their words.

use crate::keyword::{self, Keyword};
use crate::near;
use crate::section::{SectionKind, Sections};
use crate::words::Word;
use std::collections::HashMap;

/// The keywords of all tables, by their first word.
pub(crate) struct Index {
    by_first_word: HashMap<&'static str, Vec<Entry>>,
}

/// A name of a keyword, a current or an old one.
struct Entry {
    words: Vec<&'static str>,
    name: &'static str,
    keyword: &'static Keyword,
}

/// Meaning of a line's words in a section.
pub(crate) enum Found {
    /// A keyword, the name that was written, and the number of its words.
    Here { keyword: &'static Keyword, name: &'static str, length: usize },
    /// A keyword of other sections.
    Elsewhere { sections: Sections, name: &'static str, length: usize },
    /// No keyword.
    Nothing,
}

impl Index {
    /// All keywords of the tables.
    pub(crate) fn new(tables: &[&'static [Keyword]]) -> Index {
        let mut by_first_word: HashMap<_, Vec<Entry>> = HashMap::new();
        for keyword in keyword::all(tables) {
            for name in std::iter::once(keyword.name).chain(keyword.old_names.iter().copied()) {
                let words: Vec<_> = name.split(' ').collect();
                let first = words.first().copied().unwrap_or_default();
                by_first_word.entry(first).or_default().push(Entry { words, name, keyword });
            }
        }
        // The longest name wins. The sort is stable: of equals, the first table's.
        by_first_word.values_mut().for_each(|entries| entries.sort_by_key(|entry| std::cmp::Reverse(entry.words.len())));
        Index { by_first_word }
    }

    /// The keyword that a line begins with: the longest of this section's, else the longest of any.
    pub(crate) fn find(&self, line: &[Word], section: SectionKind) -> Found {
        let entries = line.first().and_then(|first| self.by_first_word.get(first.as_str())).map_or(&[][..], Vec::as_slice);
        let matching = || entries.iter().filter(|entry| entry.begins(line));
        if let Some(entry) = matching().find(|entry| entry.keyword.sections.has(section)) {
            return Found::Here { keyword: entry.keyword, name: entry.name, length: entry.words.len() };
        }
        let Some(longest) = matching().next() else { return Found::Nothing };
        let same = matching().filter(|entry| entry.words.len() == longest.words.len());
        let sections = same.fold(Sections(0), |sections, entry| sections.or(entry.keyword.sections));
        Found::Elsewhere { sections, name: longest.name, length: longest.words.len() }
    }

    /// Description of a line that begins with no keyword.
    pub(crate) fn unknown(&self, line: &[Word], section: SectionKind) -> Unknown {
        let first = line.first().map(Word::display).unwrap_or_default();
        let family = self.family(&first, section);
        let length = if family.is_empty() { 1 } else { line.len().min(2) };
        let hint = near::question(&self.near(line, section)).or_else(|| {
            let short = (1..=MAX_FAMILY).contains(&family.len());
            short.then(|| format!("'{first}' is followed by {}", family.join(", ")))
        });
        Unknown { name: joined(line, length), length, hint }
    }

    /// Words that may follow a word in this section's keywords.
    fn family(&self, first: &str, section: SectionKind) -> Vec<&'static str> {
        let entries = self.by_first_word.get(first).map_or(&[][..], Vec::as_slice);
        let mut seconds: Vec<_> = entries
            .iter()
            .filter(|entry| entry.keyword.sections.has(section))
            .filter_map(|entry| entry.words.get(1).copied())
            .collect();
        seconds.sort_unstable();
        seconds.dedup();
        seconds
    }

    /// The section's keywords that look like the line's first words.
    fn near(&self, line: &[Word], section: SectionKind) -> Vec<&'static str> {
        let here = self.by_first_word.values().flatten().filter(|entry| entry.keyword.sections.has(section));
        let longest = here.clone().map(|entry| entry.words.len()).max().unwrap_or(0).min(line.len());
        let of_length = |count: usize| {
            let names = here.clone().filter(move |entry| entry.words.len() == count).map(|entry| entry.name);
            near::nearest(&joined(line, count), names)
        };
        (1..=longest).rev().map(of_length).find(|near| !near.is_empty()).unwrap_or_default()
    }
}

/// An unknown keyword.
pub(crate) struct Unknown {
    /// Its name in messages.
    pub(crate) name: String,
    /// Number of the line's words in that name.
    pub(crate) length: usize,
    /// A suggestion of the intended keyword.
    pub(crate) hint: Option<String>,
}

/// A line's first words as one text.
fn joined(line: &[Word], count: usize) -> String {
    line.iter().take(count).map(Word::display).collect::<Vec<_>>().join(" ")
}

impl Entry {
    fn begins(&self, line: &[Word]) -> bool {
        line.len() >= self.words.len() && self.words.iter().zip(line).all(|(ours, theirs)| *ours == theirs.as_str())
    }
}

/// Longer lists of words that may follow are for the manual.
const MAX_FAMILY: usize = 12;
