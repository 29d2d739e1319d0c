//! Names that are near a wrong one.

/// `did you mean 'x'?`, when one of the names is near enough.
pub(crate) fn hint<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let limit = wrong.len() / 3 + 1;
    names
        .map(|name| (distance(wrong, name), name))
        .filter(|&(distance, name)| distance <= limit && distance < name.len())
        .min()
        .map(|(_, name)| format!("did you mean '{name}'?"))
}

/// How many bytes must be added, removed or replaced to make one of the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        let names = ["lower", "upper", "length", "http_date"];
        assert_eq!(hint("lowr", names.into_iter()).as_deref(), Some("did you mean 'lower'?"));
        assert_eq!(hint("lenght", names.into_iter()).as_deref(), Some("did you mean 'length'?"));
        assert_eq!(hint("zzzzzz", names.into_iter()), None);
        assert_eq!(distance("", "abc"), 3);
    }
}
