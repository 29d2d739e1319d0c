//! Parameters of queries and forms: `name=value`, with `&` or `;` between them.

/// The values of all parameters of a name, or of any name.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a> {
    rest: &'a [u8],
    name: &'a [u8],
    delimiter: u8,
    ignore_case: bool,
}

impl<'a> Parameters<'a> {
    /// The parameters of a text that begins with them. An empty name is any; `delimiter` ends a parameter too.
    pub fn of(text: &'a [u8], name: &'a [u8], delimiter: u8, ignore_case: bool) -> Parameters<'a> {
        Parameters { rest: text, name, delimiter, ignore_case }
    }

    fn is_wanted(&self, name: &[u8]) -> bool {
        self.name.is_empty() || name == self.name || self.ignore_case && name.eq_ignore_ascii_case(self.name)
    }
}

impl<'a> Iterator for Parameters<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.rest.is_empty() {
            let end = memchr::memchr3(b'&', b';', self.delimiter, self.rest).unwrap_or(self.rest.len());
            let pair = &self.rest[..end];
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'=', pair)
                && self.is_wanted(&pair[..at])
            {
                return Some(&pair[at + 1..]);
            }
        }
        None
    }
}
