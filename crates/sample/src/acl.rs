//! ACLs: named tests of a section, `acl <name> <criterion> [flags] [operator] <value>...`.

use crate::compiler::{Compiler, split_name};
use crate::condition::Doubt;
use crate::criterion::Criterion;
use crate::env::Env;
use crate::near;
use crate::registry::Needs;
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use terse_config::{Args, Fault, Keyword, Kind, Scope, SectionKind, Sections, Setting};

/// A named test. Lines of the same name are alternatives, and those that follow a rule count for that rule too. So a
/// condition holds the ACL, and the ACL a list that only grows while the configuration loads.
#[derive(Default)]
pub struct Acl {
    first: OnceLock<Box<Line>>,
}

struct Line {
    criterion: Criterion,
    next: OnceLock<Box<Line>>,
}

/// The ACLs of a section by name, and the needs of its expressions. A section does not see the ACLs of its defaults.
#[derive(Default)]
pub struct AclSet {
    by_name: HashMap<String, Arc<Acl>>,
    needs: Cell<Needs>,
}

/// This crate's keywords.
pub const KEYWORDS: &[Keyword] = &[Keyword {
    name: "acl",
    old_names: &[],
    sections: Sections::PROXY,
    arguments: "<name> <criterion> [-i] [-n] [-m <method>] [-M] [-f <file>]... [-u <id>] [--] [<operator>] <pattern>...",
    summary: "Names a test; several lines of one name are alternatives.",
    kind: Kind::Done(parse_acl),
}];

impl Acl {
    /// Adds an alternative.
    pub fn push(&self, criterion: Criterion) {
        let mut line = Box::new(Line { criterion, next: OnceLock::new() });
        let mut end = &self.first;
        while let Err(back) = end.set(line) {
            line = back;
            match end.get() {
                Some(full) => end = &full.next,
                None => return,
            }
        }
    }

    /// Whether an alternative holds with the data in `have`; alternatives that need more never match.
    pub fn eval(&self, env: &Env<'_>, have: Needs) -> bool {
        self.criteria().any(|criterion| criterion.needs().missing(have).is_none() && criterion.eval(env))
    }

    /// The same, while more bytes may come; `None` when those decide.
    pub fn judge(&self, env: &Env<'_>, have: Needs, doubt: &Doubt) -> Option<bool> {
        let mut certain = true;
        for criterion in self.criteria().filter(|criterion| criterion.needs().missing(have).is_none()) {
            doubt.take();
            if criterion.eval(env) {
                return Some(true);
            }
            let headless = doubt.head.get() && env.request.is_none() && criterion.needs().has(Needs::REQUEST);
            certain &= !doubt.take() && !headless;
        }
        certain.then_some(false)
    }

    /// The needs of its alternatives that `have` lacks.
    pub(crate) fn missing(&self, have: Needs) -> Needs {
        self.criteria().fold(Needs::NONE, |all, criterion| all.or(criterion.needs().missing(have)))
    }

    /// Needs of all its alternatives together.
    pub fn needs(&self) -> Needs {
        self.criteria().fold(Needs::NONE, |all, criterion| all.or(criterion.needs()))
    }

    fn criteria(&self) -> impl Iterator<Item = &Criterion> {
        std::iter::successors(self.first.get(), |line| line.next.get()).map(|line| &line.criterion)
    }
}

impl Drop for Acl {
    /// Alternatives are dropped one after the other: a long list must not use the stack.
    fn drop(&mut self) {
        let mut next = self.first.take();
        while let Some(mut line) = next {
            next = line.next.take();
        }
    }
}

impl fmt::Debug for Acl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.criteria()).finish()
    }
}

impl AclSet {
    /// The ACL of that name.
    pub fn find(&self, name: &str) -> Option<&Arc<Acl>> {
        self.by_name.get(name)
    }

    /// Needs of all expressions of the section, or of the defaults that it begins with.
    pub fn needs(&self) -> Needs {
        self.needs.get()
    }

    /// Notes that an expression of the section needs this.
    pub(crate) fn note(&self, needs: Needs) {
        self.needs.set(self.needs.get().or(needs));
    }

    pub(crate) fn add(&mut self, name: &str, criterion: Criterion) {
        self.by_name.entry(name.to_owned()).or_default().push(criterion);
    }

    /// Notes the name of an ACL whose line was refused: conditions that use it need not be.
    fn declare(&mut self, name: &str) {
        self.by_name.entry(name.to_owned()).or_default();
    }

    pub(crate) fn near(&self, name: &str) -> Option<String> {
        near::hint(name, self.by_name.keys().map(String::as_str))
    }
}

impl Setting for AclSet {
    fn inherit(&self) -> AclSet {
        AclSet { by_name: HashMap::new(), needs: self.needs.clone() }
    }
}

fn parse_acl(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    if scope.section.kind == SectionKind::Defaults && scope.section.name.is_empty() {
        return Err(Fault::new(0, "cannot stand in a 'defaults' section without a name"));
    }
    let name = args.need("<name>")?;
    if name.is_empty() || split_name(name.as_bytes()).0 != name || name.contains('+') {
        return Err(args.fault(format!("invalid ACL name '{name}': only letters, digits, '.', ':', '_' and '-' may be in it")));
    }
    if name.eq_ignore_ascii_case("or") {
        return Err(args.fault("'or' cannot be the name of an ACL: it joins conditions"));
    }
    let base = args.position();
    let words = args.take_rest();
    let criterion = Compiler::new(scope, Needs::ALL).criterion(words, base);
    let acls: &mut AclSet = scope.section.settings.entry();
    match criterion {
        Ok(criterion) => acls.add(name, criterion),
        Err(fault) => {
            acls.declare(name);
            return Err(fault);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::PatternFiles;
    use crate::testing::Bench;
    use crate::value::Value;

    #[test]
    fn a_range_that_is_no_text_is_refused() {
        let mut bench = Bench::new();
        let mut words = crate::testing::words("req.hdr_cnt(x) 80 -9");
        words[2].bytes = b"-\xff".to_vec();
        assert!(bench.compiler().criterion(&words, 0).is_err());
        assert!(bench.warnings.iter().any(|w| w.reason.contains("the range up to \\xff")), "{:?}", bench.warnings);
    }

    #[test]
    fn criteria() {
        let mut bench = Bench::new();
        bench.set("txn.x", Value::str(b"x"));
        for (text, expected) in [
            ("path /dir/file.html", true),
            ("path /dir", false),
            ("path_beg -i /DIR", true),
            ("path_dir dir", true),
            ("path_reg ^/d.r/", true),
            ("path_len gt 10", true),
            ("path_sub file", true),
            ("path -m sub file", true),
            ("url_end C=4", true),
            ("url_param(a) 3", true),
            ("hdr(x-list) three", true),
            ("hdr(x-list) nine", false),
            ("req.hdr(x-list,1) four", false),
            ("hdr_beg(host) Example", true),
            ("hdr_dom(host) -i example.com", true),
            ("hdr_cnt(x-list) 5", true),
            ("hdr_ip(x-addr) 192.0.2.0/24", true),
            ("hdr_val(x-num) 12", true),
            ("hdr(x-empty) -m found", true),
            ("hdr(x-none) -m found", false),
            ("cook(c1) v1", true),
            ("cook_beg(c1) v", true),
            ("method GET POST", true),
            ("method PUT", false),
            ("status ge 400 lt 300", true),
            ("status 200:299", false),
            ("src 198.51.100.0/24", true),
            ("src_port gt 1024", true),
            ("always_true", true),
            ("always_false", false),
            ("src_port -m bool", true),
            ("var(txn.x) -m str x", true),
            ("var(txn.x) -m found", true),
            ("var(txn.none) -m found", false),
            ("path,field(2,/) dir", true),
            ("path_beg,field(2,/) dir", true),
            ("path -- /dir/file.html", true),
            ("str(-i) -- -i", true),
            ("path,length gt 5", true),
            ("bin(00ff) -m bin 00FF", true),
        ] {
            assert_eq!(bench.holds(&format!("{{ {text} }}")), expected, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut bench = Bench::new();
        for (text, said) in [
            ("var(txn.x) x", "'-m'"),
            ("path -m sup x", "unknown matching method 'sup'"),
            ("src -m reg", ""),
            ("path", ""),
            ("always_true -m ip 1.2.3.4", "cannot be used"),
            ("path -m", "expects an argument"),
            ("path -m str -m beg x", "once"),
            ("path -z x", "'-z' is no flag"),
            ("path_reg (", "unclosed"),
            ("status abc", "'abc' is not a number"),
            ("path -f list", "cannot be read"),
            ("path -u x", "whole number"),
        ] {
            match bench.acl("a", text) {
                Ok(()) => assert_eq!(said, "", "{text}"),
                Err(fault) => assert!(!said.is_empty() && fault.reason.contains(said), "{text}: {}", fault.reason),
            }
        }
        assert!(bench.warnings.iter().any(|w| w.reason.contains("never matches")));
    }

    #[test]
    fn what_was_perhaps_meant_is_named() {
        let mut bench = Bench::new();
        for (text, hint) in [
            ("path_begg /x", "did you mean 'path_beg'?"),
            ("url_paramm(a) x", "did you mean 'url_param'?"),
            ("pth_end .png", "did you mean 'path_end'?"),
            ("req.hdr_cnt(x) ne 3", "operators before numbers are eq, ge, gt, le and lt"),
            ("path_len ge x", "operators before numbers are eq, ge, gt, le and lt"),
        ] {
            let fault = bench.acl("a", text).expect_err(text);
            assert_eq!(fault.hint.as_deref(), Some(hint), "{text}: {}", fault.reason);
        }
        assert_eq!(bench.acl("a", "zzzzzzz x").unwrap_err().hint, None);
    }

    struct One;

    impl PatternFiles for One {
        fn read(&self, name: &str) -> Result<Vec<u8>, String> {
            if name == "list" { Ok(b"# comment\n\n /none \n/dir/file.html\n".to_vec()) } else { Err("no such file".into()) }
        }
    }

    #[test]
    fn patterns_of_files() {
        let mut bench = Bench::new();
        bench.registry.files = Some(Arc::new(One));
        assert!(bench.holds("{ path -f list }"));
        assert!(bench.holds("{ path -i -f list /x }"));
        assert!(bench.acl("a", "path -f other").unwrap_err().reason.contains("no such file"));
        assert!(bench.acl("a", "path -f list -m beg").is_err());
    }

    #[test]
    fn long_lists_do_not_use_the_stack() {
        let mut bench = Bench::new();
        let criterion = bench.compiler().criterion(&crate::testing::words("always_false"), 0).unwrap();
        let acl = Acl::default();
        // Each push walks the list, so the list is built from its end.
        let mut first = OnceLock::new();
        for _ in 0..100_000 {
            let line = Box::new(Line { criterion: criterion.clone(), next: first });
            first = OnceLock::from(line);
        }
        if let Some(line) = first.take() {
            assert!(acl.first.set(line).is_ok());
        }
        assert!(!acl.eval(&bench.env(), Needs::ALL));
    }
}
