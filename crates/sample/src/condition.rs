//! Conditions: `if` or `unless`, ACLs with `!` before them, side by side for "and", `or` between them.

use crate::acl::Acl;
use crate::compiler::{Compiler, with_hint};
use crate::env::Env;
use crate::near;
use crate::registry::Needs;
use std::cell::Cell;
use std::sync::Arc;
use terse_config::near::nearest;
use terse_config::{Args, Fault, Scope, Word};

/// A compiled condition.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Result when the terms hold: `if` true, `unless` false.
    positive: bool,
    /// Alternatives, each of terms that must all hold.
    suites: Vec<Vec<Term>>,
}

#[derive(Clone, Debug)]
struct Term {
    negated: bool,
    acl: Arc<Acl>,
    /// Data that is there at the place of the condition.
    have: Needs,
}

/// Uncertainty while more bytes may come: the third value of the conditions' logic.
#[derive(Default, Debug)]
pub struct Doubt {
    /// Whether the request's head may still come: until then, terms that need it are in doubt.
    pub head: Cell<bool>,
    raised: Cell<bool>,
}

impl Doubt {
    /// Notes that the value just fetched, or its absence, may change with the bytes that come next.
    pub fn raise(&self) {
        self.raised.set(true);
    }

    /// Returns whether that was noted, and forgets it.
    pub fn take(&self) -> bool {
        self.raised.take()
    }
}

impl Condition {
    /// Reads `if` or `unless` and all words after it; `None` when the next word is neither.
    pub fn parse(args: &mut Args<'_>, scope: &mut Scope<'_>, have: Needs) -> Result<Option<Condition>, Fault> {
        let positive = match args.peek() {
            Some("if") => true,
            Some("unless") => false,
            _ => return Ok(None),
        };
        args.take();
        Condition::parse_terms(args, scope, have, positive).map(Some)
    }

    /// Whether a word that is neither seems to be `if` or `unless`, mistyped: `iff`, `unles`.
    pub fn is_meant_by(word: &str) -> bool {
        !nearest(word, ["if", "unless"]).is_empty()
    }

    /// Reads all words that are left as the terms of a condition; `positive` is its result when they hold.
    pub fn parse_terms(args: &mut Args<'_>, scope: &mut Scope<'_>, have: Needs, positive: bool) -> Result<Condition, Fault> {
        let base = args.position();
        let words = args.take_rest();
        Compiler::new(scope, have).condition(words, base, positive)
    }

    /// Whether it holds.
    pub fn eval(&self, env: &Env<'_>) -> bool {
        self.suites.iter().any(|terms| terms.iter().all(|t| t.acl.eval(env, t.have) != t.negated)) == self.positive
    }

    /// Whether it may hold, where the data of some terms is not the real one: terms with one of these needs are in doubt.
    pub fn may_hold(&self, env: &Env<'_>, doubtful: Needs) -> bool {
        // A term in doubt counts as the result with which the condition holds.
        let passes = |t: &Term| {
            if t.acl.needs().has_any(doubtful) { self.positive } else { t.acl.eval(env, t.have) != t.negated }
        };
        self.suites.iter().any(|terms| terms.iter().all(passes)) == self.positive
    }

    /// Whether it holds, while more bytes may come; `None` when those decide. A term in doubt ends its row as a term that
    /// fails does. The terms after it are not evaluated, so that a hello is waited for whatever the rest of the row is. A
    /// row that holds ends the condition.
    pub fn judge(&self, env: &Env<'_>, doubt: &Doubt) -> Option<bool> {
        let mut certain = true;
        for terms in &self.suites {
            let mut row = Some(true);
            for term in terms {
                match term.acl.judge(env, term.have, doubt).map(|holds| holds != term.negated) {
                    Some(true) => {}
                    Some(false) => {
                        row = Some(false);
                        break;
                    }
                    None => {
                        row = None;
                        break;
                    }
                }
            }
            match row {
                Some(true) => return Some(self.positive),
                Some(false) => {}
                None => certain = false,
            }
        }
        certain.then_some(!self.positive)
    }

    /// Needs of all of its terms.
    pub fn needs(&self) -> Needs {
        self.suites.iter().flatten().fold(Needs::NONE, |all, term| all.or(term.acl.needs()))
    }
}

impl Compiler<'_> {
    /// Reads the terms of a condition; `base` is the index of the first word in the line.
    pub fn condition(&mut self, words: &[Word], base: usize, positive: bool) -> Result<Condition, Fault> {
        let mut condition = Condition { positive, suites: vec![Vec::new()] };
        let (mut negated, mut at) = (false, 0);
        while let Some(word) = words.get(at) {
            self.word = base + at;
            at += 1;
            let bangs = word.bytes.iter().take_while(|&&b| b == b'!').count();
            negated ^= bangs % 2 == 1;
            let name = match std::str::from_utf8(&word.bytes[bangs..]) {
                // Exclamation marks may stand alone.
                Ok("") => continue,
                Ok(name) => name,
                Err(_) => return Err(self.fault("not a name of an ACL")),
            };
            if name == "||" || name.eq_ignore_ascii_case("or") {
                condition.suites.push(Vec::new());
                negated = false;
                continue;
            }
            let acl = if name == "{" {
                let Some(len) = words[at..].iter().position(|w| w.bytes == b"}") else {
                    return Err(self.fault("missing closing '}' in condition"));
                };
                let criterion = self.criterion(&words[at..at + len], base + at)?;
                at += len + 1;
                anonymous(criterion)
            } else {
                self.acl(name)?
            };
            self.warn_of_needs(&acl, name);
            if let Some(terms) = condition.suites.last_mut() {
                terms.push(Term { negated, acl, have: self.have });
            }
            negated = false;
        }
        condition.suites.retain(|terms| !terms.is_empty());
        if condition.suites.is_empty() {
            return Err(Fault::new(base.saturating_sub(1), "expects a condition"));
        }
        Ok(condition)
    }

    /// The terms of the fetch `acl(<name>,!<name>)`: all of them must hold.
    ///
    /// # Errors
    /// There is no such ACL.
    pub fn all_of(&mut self, names: &[&str]) -> Result<Condition, String> {
        let mut terms = Vec::new();
        for name in names {
            let bare = name.trim_start_matches('!');
            let negated = (name.len() - bare.len()) % 2 == 1;
            terms.push(Term { negated, acl: self.acl(bare).map_err(|fault| fault.reason)?, have: self.have });
        }
        Ok(Condition { positive: true, suites: vec![terms] })
    }

    /// The ACL of that name, of the section or predefined.
    fn acl(&mut self, name: &str) -> Result<Arc<Acl>, Fault> {
        if let Some(acl) = self.acls.find(name) {
            return Ok(acl.clone());
        }
        let Some((_, words)) = PREDEFINED.iter().find(|(known, _)| *known == name) else {
            let known = PREDEFINED.iter().map(|(known, _)| *known);
            let near = self.acls.near(name).or_else(|| near::hint(name, known));
            let hint = near.or_else(|| Some("an 'acl' line above it, in the same section, makes one".into()));
            return Err(with_hint(self.fault(format!("no such ACL: '{name}'")), hint));
        };
        let words: Vec<_> = words.iter().map(|w| Word { bytes: w.as_bytes().to_vec(), span: 0..0 }).collect();
        let here = self.word;
        let criterion = self.criterion(&words, here).map_err(|fault| Fault { word: here, ..fault });
        self.word = here;
        criterion.map(anonymous)
    }

    fn warn_of_needs(&mut self, acl: &Acl, name: &str) {
        let missing = acl.missing(self.have);
        if !missing.is_none() {
            let what = if name == "{" { "this condition".to_owned() } else { format!("ACL '{name}'") };
            let warning = self.fault(format!("{what} needs {}, which is not available here: it never matches", missing.describe()));
            self.warnings.push(with_hint(warning, self.kept_hint(missing)));
        }
    }
}

fn anonymous(criterion: crate::criterion::Criterion) -> Arc<Acl> {
    let acl = Acl::default();
    acl.push(criterion);
    Arc::new(acl)
}

/// ACLs that need no line.
const PREDEFINED: &[(&str, &[&str])] = &[
    ("TRUE", &["always_true"]),
    ("FALSE", &["always_false"]),
    ("LOCALHOST", &["src", "127.0.0.1/8", "::1"]),
    ("HTTP", &["req.proto_http"]),
    ("HTTP_1.0", &["req.ver", "1.0"]),
    ("HTTP_1.1", &["req.ver", "1.1"]),
    ("HTTP_2.0", &["req.ver", "2.0"]),
    ("HTTP_3.0", &["req.ver", "3.0"]),
    ("METH_CONNECT", &["method", "CONNECT"]),
    ("METH_DELETE", &["method", "DELETE"]),
    ("METH_GET", &["method", "GET", "HEAD"]),
    ("METH_HEAD", &["method", "HEAD"]),
    ("METH_OPTIONS", &["method", "OPTIONS"]),
    ("METH_POST", &["method", "POST"]),
    ("METH_PUT", &["method", "PUT"]),
    ("METH_TRACE", &["method", "TRACE"]),
    ("HTTP_URL_ABS", &["url_reg", "^[^/:]*://"]),
    ("HTTP_URL_SLASH", &["url_beg", "/"]),
    ("HTTP_URL_STAR", &["url", "*"]),
    ("HTTP_CONTENT", &["req.hdr_val(content-length)", "gt", "0"]),
    ("RDP_COOKIE", &["req.rdp_cookie_cnt", "gt", "0"]),
    ("REQ_CONTENT", &["req.len", "gt", "0"]),
    ("WAIT_END", &["wait_end"]),
];

#[cfg(test)]
mod tests {
    use super::Doubt;
    use crate::registry::Needs;
    use crate::testing::Bench;

    #[test]
    fn terms_and_alternatives() {
        let mut bench = Bench::new();
        bench.acl("yes", "path_beg /dir").unwrap();
        bench.acl("no", "path_beg /none").unwrap();
        for (text, expected) in [
            ("yes", true),
            ("no", false),
            ("!no", true),
            ("! no", true),
            ("!!yes", true),
            ("yes no", false),
            ("yes !no", true),
            ("no or yes", true),
            ("no || yes", true),
            ("no OR yes !no", true),
            ("yes no or no", false),
            ("{ path_end .html }", true),
            ("!{ path_end .html } or no", false),
            ("METH_GET", true),
            ("METH_POST", false),
            ("HTTP_1.1 !HTTP_1.0 HTTP_URL_SLASH TRUE !FALSE", true),
            ("LOCALHOST", false),
            ("{ path, lower, length eq 0 }", false),
        ] {
            assert_eq!(bench.holds(text), expected, "{text}");
        }
    }

    #[test]
    fn unless_is_the_opposite() {
        let mut bench = Bench::new();
        let words = crate::testing::words("FALSE");
        let condition = bench.compiler().condition(&words, 0, false).unwrap();
        assert!(condition.eval(&bench.env()));
    }

    #[test]
    fn what_is_in_doubt_may_hold() {
        let mut bench = Bench::new();
        bench.acl("found", "status 200").unwrap();
        bench.acl("here", "path_beg /dir").unwrap();
        for (text, as_if, as_unless) in [
            ("found", true, true),
            ("!found", true, true),
            ("{ res.hdr(Content-Range) -m found }", true, true),
            ("here", true, false),
            ("!here", false, true),
            ("here found", true, true),
            ("found !here", false, true),
            ("found or here", true, false),
            ("found or !here", true, true),
        ] {
            let words = crate::testing::words(text);
            for (positive, expected) in [(true, as_if), (false, as_unless)] {
                let condition = bench.compiler().condition(&words, 0, positive).unwrap();
                assert_eq!(condition.may_hold(&bench.env(), Needs::RESPONSE), expected, "{text}: {positive}");
                assert_eq!(condition.may_hold(&bench.env(), Needs::NONE), condition.eval(&bench.env()), "{text}: {positive}");
            }
        }
    }

    #[test]
    fn a_line_that_follows_counts_for_rules_before_it() {
        let mut bench = Bench::new();
        bench.acl("late", "path_beg /none").unwrap();
        let condition = bench.condition("late").unwrap();
        assert!(!condition.eval(&bench.env()));
        bench.acl("late", "path_beg /dir").unwrap();
        assert!(condition.eval(&bench.env()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut bench = Bench::new();
        bench.acl("images", "path_end .png").unwrap();
        for (text, word, said) in [
            ("", 0, "expects a condition"),
            ("or", 0, "expects a condition"),
            ("images imags", 1, "no such ACL: 'imags'"),
            ("images { path /x", 1, "missing closing '}'"),
            ("{ }", 0, "expects a criterion"),
            ("images { pth /x }", 2, "unknown fetch method 'pth'"),
            ("{ src 1.2.3.4/40 }", 2, "'1.2.3.4/40' is not a valid IPv4 or IPv6 address"),
        ] {
            let fault = bench.condition(text).expect_err(text);
            assert!(fault.reason.contains(said), "{text}: {}", fault.reason);
            assert_eq!(fault.word, word, "{text}");
        }
        assert_eq!(bench.condition("imags").unwrap_err().hint.as_deref(), Some("did you mean 'images'?"));
    }

    #[test]
    fn what_is_not_there_never_matches() {
        let mut bench = Bench::new();
        bench.acl("either", "path_beg /dir").unwrap();
        bench.acl("either", "status 500").unwrap();
        bench.have = Needs::RESPONSE;
        for (text, expected, warnings) in [
            ("{ path_beg /dir }", false, 1),
            ("!{ path_beg /dir }", true, 1),
            ("either", false, 1),
            ("{ path_beg /dir } or { status 404 }", true, 1),
            ("{ method GET }", true, 0),
            ("METH_GET", true, 0),
            ("{ req.proto_http }", true, 0),
            ("{ status 404 }", true, 0),
        ] {
            bench.warnings.clear();
            let condition = bench.condition(text).unwrap();
            assert_eq!(condition.eval(&bench.env()), expected, "{text}");
            assert_eq!(condition.judge(&bench.env(), &Doubt::default()), Some(expected), "{text}");
            assert_eq!(bench.warnings.len(), warnings, "{text}: {:?}", bench.warnings);
        }
        bench.acl("either", "status 404").unwrap();
        assert!(bench.holds("either"));
        assert!(bench.warnings[0].hint.as_deref().unwrap().contains("set-var"));
        bench.have = Needs::NONE;
        assert!(!bench.holds("{ method GET }"));
    }

    #[test]
    fn what_is_not_there_is_warned_of() {
        let mut bench = Bench::new();
        bench.have = Needs::REQUEST;
        bench.condition("{ status 200 }").unwrap();
        assert!(bench.warnings[0].reason.contains("the response's head"), "{:?}", bench.warnings);
    }
}
