//! What became of clients' dictionaries at a proxy, and what dictionaries it holds.

use super::{Given, Usage};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use terse_dictionary::Dictionary;

/// Counters of a proxy.
#[derive(Debug)]
pub struct Figures {
    /// Answers that named a dictionary to their clients.
    pub announced: AtomicU64,
    usages: [AtomicU64; Usage::ALL.len()],
}

impl Default for Figures {
    fn default() -> Figures {
        Figures { announced: AtomicU64::new(0), usages: [const { AtomicU64::new(0) }; Usage::ALL.len()] }
    }
}

impl Figures {
    /// Counts what became of a client's dictionary.
    pub fn count(&self, usage: Usage) {
        self.usages[usage as usize].fetch_add(1, Relaxed);
    }

    /// Number of answers of which that became.
    pub fn of(&self, usage: Usage) -> u64 {
        self.usages[usage as usize].load(Relaxed)
    }

    /// Number of requests whose clients had a dictionary of the proxy.
    pub fn offered(&self) -> u64 {
        Usage::ALL.iter().filter(|usage| usage.has_ours()).map(|usage| self.of(*usage)).sum()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &AtomicU64> {
        std::iter::once(&self.announced).chain(&self.usages)
    }
}

impl Usage {
    /// Whether the client had a dictionary of the proxy, that was looked for.
    fn has_ours(self) -> bool {
        !matches!(self, Usage::None | Usage::Malformed | Usage::Unknown | Usage::Insecure)
    }
}

/// Dictionaries that are held.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Held {
    /// Their number.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the oldest was taken in, in seconds since 1970; 0 without any.
    pub since_s: u64,
}

impl Held {
    /// Those of a list.
    pub fn of<'d>(dictionaries: impl Iterator<Item = &'d Dictionary>) -> Held {
        dictionaries.fold(Held::default(), |held, dictionary| {
            let since_s = dictionary.since_s.load(Relaxed);
            Held {
                count: held.count + 1,
                bytes: held.bytes + dictionary.bytes().len() as u64,
                since_s: if held.count == 0 { since_s } else { held.since_s.min(since_s) },
            }
        })
    }

    /// Age of the oldest at that time, in seconds; nothing without any.
    pub fn oldest_s(&self, now_s: u64) -> Option<u64> {
        (self.count > 0).then(|| now_s.saturating_sub(self.since_s))
    }
}

impl Given {
    /// What it holds.
    pub fn held(&self) -> Held {
        Held::of(self.list.iter().map(|(dictionary, _)| &**dictionary))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use terse_dictionary::Pattern;
    use terse_dictionary::field::UseAs;

    #[test]
    fn the_oldest_counts() {
        let dictionary = |bytes: usize, since_s| {
            let made = Dictionary::new("d".into(), UseAs::of(Pattern::new("/*").unwrap()), "/", vec![1; bytes]);
            made.since_s.store(since_s, Relaxed);
            made
        };
        let all = [dictionary(10, 70), dictionary(5, 30), dictionary(1, 50)];
        let held = Held::of(all.iter());
        assert_eq!((held.count, held.bytes, held.oldest_s(100), held.oldest_s(20)), (3, 16, Some(70), Some(0)));
        assert_eq!(Held::of([].into_iter()).oldest_s(100), None);
    }

    #[test]
    fn an_offer_is_of_a_dictionary_of_ours() {
        let figures = Figures::default();
        Usage::ALL.iter().for_each(|usage| figures.count(*usage));
        assert_eq!(figures.offered(), Usage::ALL.len() as u64 - 4);
    }
}
