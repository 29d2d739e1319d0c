//! Certificates that a server name of a client's (RFC 6066 section 3) asks for.
//!
//! Names of lines are sorted once into two tables: whole names, and names after a wildcard, which stands for one label.
//! Whole names go first. After them stand the wildcards that fit, for kinds of keys that no whole name has. A name that a
//! line excludes takes the line's wildcards away for it. So such a name becomes a whole one, with the lines that are left.

use std::collections::HashMap;

/// A name of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Name {
    /// `www.example.org`
    Whole(Box<str>),
    /// `*.example.org`: the part after the star.
    Wild(Box<str>),
    /// `!www.example.org`
    Not(Box<str>),
    /// `*`
    Any,
}

impl Name {
    /// A name as it stands in a certificate or in a list.
    pub(crate) fn parse(text: &str) -> Name {
        let text = text.to_ascii_lowercase();
        match text.strip_prefix('!') {
            Some(name) => Name::Not(name.into()),
            None if text == "*" => Name::Any,
            None => match text.strip_prefix('*') {
                Some(rest) if rest.starts_with('.') => Name::Wild(rest.into()),
                _ => Name::Whole(text.into()),
            },
        }
    }
}

/// The lines of each name: `T` is made of them, in their order.
#[derive(Debug)]
pub(crate) struct Names<T> {
    whole: HashMap<Box<str>, T>,
    wild: HashMap<Box<str>, T>,
}

/// Sorts the names of lines. `make` gets the numbers of those that a name asks for, which may be none: of a name that all exclude.
pub(crate) fn sort<T>(lines: &[Vec<Name>], mut make: impl FnMut(&[usize]) -> T) -> Names<T> {
    let mut whole: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut wild: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut not: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, names) in lines.iter().enumerate() {
        for name in names {
            let (table, name) = match name {
                Name::Whole(name) => (&mut whole, name),
                Name::Wild(name) => (&mut wild, name),
                Name::Not(name) => (&mut not, name),
                Name::Any => continue,
            };
            let numbers = table.entry(name).or_default();
            if numbers.last() != Some(&number) {
                numbers.push(number);
            }
        }
    }
    for name in not.keys() {
        whole.entry(name).or_default();
    }
    for (name, numbers) in &mut whole {
        let behind = label_end(name).and_then(|at| wild.get(&name[at..])).into_iter().flatten();
        let excluding = not.get(name).map(Vec::as_slice).unwrap_or_default();
        for number in behind.filter(|number| !excluding.contains(number)) {
            if !numbers.contains(number) {
                numbers.push(*number);
            }
        }
    }
    let mut made = |table: HashMap<&str, Vec<usize>>| table.into_iter().map(|(name, lines)| (name.into(), make(&lines))).collect();
    Names { whole: made(whole), wild: made(wild) }
}

impl<T> Names<T> {
    /// The value for a name, if any line has it.
    pub(crate) fn find(&self, name: &str) -> Option<&T> {
        let name = name.to_ascii_lowercase();
        self.whole.get(&*name).or_else(|| self.wild.get(&name[label_end(&name)?..]))
    }
}

/// Offset of the end of a name's first label.
fn label_end(name: &str) -> Option<usize> {
    name.find('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(lines: &[&[&str]]) -> Names<Vec<usize>> {
        let lines: Vec<Vec<Name>> = lines.iter().map(|names| names.iter().map(|name| Name::parse(name)).collect()).collect();
        sort(&lines, <[usize]>::to_vec)
    }

    #[test]
    fn whole_names_go_before_wildcards_of_one_label() {
        let names = names(&[&["a.test"], &["*.a.test", "b.test"], &["www.a.test"], &["*.a.test"]]);
        for (name, lines) in [
            ("a.test", Some(vec![0])),
            ("A.Test", Some(vec![0])),
            ("www.a.test", Some(vec![2, 1, 3])),
            ("ftp.a.test", Some(vec![1, 3])),
            ("x.www.a.test", None),
            ("b.test", Some(vec![1])),
            ("c.test", None),
            ("", None),
            (".a.test", Some(vec![1, 3])),
            ("test", None),
        ] {
            assert_eq!(names.find(name).cloned(), lines, "{name}");
        }
    }

    #[test]
    fn excluded_names_lose_the_wildcards_of_their_line() {
        let names = names(&[&["*.a.test", "!www.a.test", "!ftp.a.test"], &["*.a.test"], &["*", "ftp.a.test"]]);
        assert_eq!(names.find("www.a.test"), Some(&vec![1]));
        assert_eq!(names.find("ftp.a.test"), Some(&vec![2, 1]));
        assert_eq!(names.find("x.a.test"), Some(&vec![0, 1]));
    }
}
