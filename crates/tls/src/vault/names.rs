//! The names that clients can ask for, listed.

use super::Vault;
use crate::certificate::Certificate;
use crate::names::Name;
use crate::report;
use openssl::asn1::Asn1Time;

impl Vault {
    /// A line for each name of each certificate of each address, of one frontend or of all, under HAProxy's columns.
    /// `until`: only certificates that are over at that time, in seconds since 1970.
    pub fn names(&self, frontend: Option<&str>, until: Option<i64>) -> String {
        let until = until.and_then(|at| Asn1Time::from_unix(at).ok());
        let is_meant = |certificate: &Certificate| until.as_ref().is_none_or(|until| *certificate.leaf.not_after() < **until);
        let mut text = String::from("# Frontend/Bind\tSNI\tNegative Filter\tType\tFilename\tNotAfter\tNotBefore\n");
        let acceptors: Vec<_> = self.held().acceptors().collect();
        for acceptor in acceptors.iter().filter(|acceptor| frontend.is_none_or(|name| acceptor.line().0 == name)) {
            let offer = acceptor.offer();
            let (frontend, place) = acceptor.line();
            // Whole names first, then those after a star; '*' alone stands for all others.
            let mut rows: Vec<(bool, &str, usize)> = Vec::new();
            for (number, line) in offer.lines.iter().enumerate() {
                rows.extend(line.names.iter().filter_map(|name| match name {
                    Name::Whole(name) => Some((false, &**name, number)),
                    Name::Wild(name) => Some((true, &**name, number)),
                    Name::Not(_) | Name::Any => None,
                }));
            }
            if !offer.strict {
                rows.extend(offer.defaults.iter().map(|number| (true, "", *number)));
            }
            rows.sort_unstable();
            for (is_wild, name, number) in rows {
                let line = &offer.lines[number];
                if !is_meant(&line.certificate) {
                    continue;
                }
                let not = line.names.iter().filter_map(|name| if let Name::Not(name) = name { Some(name) } else { None });
                let not: String = not.filter(|_| is_wild).map(|name| format!("!{name} ")).collect();
                let leaf = &line.certificate.leaf;
                let columns = [
                    format!("{frontend}/{}:{}", place.file, place.line),
                    format!("{}{name}", if is_wild { "*" } else { "" }),
                    if not.is_empty() { "-".into() } else { not },
                    report::key_kind(leaf).into(),
                    line.key.to_string(),
                    leaf.not_after().to_string(),
                    leaf.not_before().to_string(),
                ];
                text.push_str(&columns.join("\t"));
                text.push('\n');
            }
        }
        text
    }
}
