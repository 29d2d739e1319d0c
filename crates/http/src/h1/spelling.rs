//! Names of fields, spelled as a recipient wants them: for programs that look for them with regard to case, against RFC
//! 9110 section 5.1.

use std::collections::HashMap;

/// Spellings of names.
#[derive(Clone, Default, Debug)]
pub struct Spellings {
    /// Names by their length, since most names differ in it already.
    names: HashMap<usize, Vec<Box<[u8]>>>,
}

impl Spellings {
    /// Adds a name and its spelling.
    ///
    /// # Errors
    /// The reason why they are invalid.
    pub fn add(&mut self, from: &[u8], to: &[u8]) -> Result<(), String> {
        let shown = String::from_utf8_lossy(from);
        if from.is_empty() || !from.eq_ignore_ascii_case(to) {
            return Err(format!("'{shown}' and '{}' must not differ except in case", String::from_utf8_lossy(to)));
        }
        if self.find(from).is_some() {
            return Err(format!("duplicate entry '{shown}'"));
        }
        self.names.entry(to.len()).or_default().push(to.into());
        Ok(())
    }

    /// Adds the names of a file: two words a line, `#` begins a comment.
    ///
    /// # Errors
    /// The number of the invalid line, and the reason.
    pub fn read(&mut self, text: &[u8]) -> Result<(), (usize, String)> {
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
            let (from, to) = line.split_at(end);
            self.add(from, to.trim_ascii()).map_err(|reason| (number, reason))?;
        }
        Ok(())
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Spells the names of a head, first line included, as it is to be sent.
    pub fn apply(&self, head: &mut [u8]) {
        for line in head.split_mut(|byte| *byte == b'\n').skip(1) {
            let Some(end) = line.iter().position(|byte| *byte == b':') else { continue };
            let name = &mut line[..end];
            if let Some(spelled) = self.find(name) {
                name.copy_from_slice(spelled);
            }
        }
    }

    fn find(&self, name: &[u8]) -> Option<&[u8]> {
        let names = self.names.get(&name.len())?;
        names.iter().find(|known| known.eq_ignore_ascii_case(name)).map(|known| &**known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_alone_are_spelled() {
        let mut spellings = Spellings::default();
        spellings.add(b"x-id", b"X-ID").unwrap();
        spellings.read(b"# comment\n\n\tconnection \t CONNECTION \r\nhost HOST").unwrap();
        let mut head = b"GET /x-id: HTTP/1.1\r\nhost: host\r\nX-Id: x-id: 1\r\nx-idx: 1\r\nConnection: close\r\n\r\n".to_vec();
        spellings.apply(&mut head);
        let spelled = b"GET /x-id: HTTP/1.1\r\nHOST: host\r\nX-ID: x-id: 1\r\nx-idx: 1\r\nCONNECTION: close\r\n\r\n";
        assert_eq!(head, spelled, "{}", String::from_utf8_lossy(&head));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let mut spellings = Spellings::default();
        assert!(spellings.add(b"a", b"b").unwrap_err().contains("must not differ except in case"));
        assert!(spellings.add(b"", b"").is_err() && spellings.is_empty());
        let (line, reason) = spellings.read(b"a A\n\n a A\n").unwrap_err();
        assert_eq!((line, reason.as_str()), (3, "duplicate entry 'a'"));
        assert_eq!(spellings.read(b"b").unwrap_err().0, 1);
    }
}
