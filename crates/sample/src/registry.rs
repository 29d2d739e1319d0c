//! Tables of fetches, converters and aliases, joined; names of variables; data of the process for parsers.

use crate::argument::{Arg, ArgList, Param, ParamKind, need};
use crate::compiler::Compiler;
use crate::env::Env;
use crate::pattern::{Matching, References, Use, Way};
use crate::scripted::Functions;
use crate::value::{Type, Value};
use crate::vars::VarNames;
use crate::{convert, fetch, logformat, near};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use terse_config::{Place, Setting};

/// A source of values: an entry of a table. HAProxy calls it a sample fetch method.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    /// Its name: `req.hdr`.
    pub name: &'static str,
    /// Other names that mean the same.
    pub also: &'static [&'static str],
    /// Its parameters.
    pub params: &'static [Param],
    /// The type of its values, as far as it is known at load.
    pub output: Type,
    /// Data that it needs.
    pub needs: Needs,
    /// Description of its values, one sentence.
    pub summary: &'static str,
    /// Its implementation.
    pub kind: FetchKind,
    /// Checks the arguments when they are read, and may replace them by those that [`FetchRun`] expects.
    pub check: Option<Check>,
}

/// Implementation of a fetch.
#[derive(Clone, Copy, Debug)]
pub enum FetchKind {
    /// A single value or none.
    One(FetchRun),
    /// Several values: an ACL tries each of them, other users take the single value.
    Each(FetchRun, FetchEach),
    /// Understood and not built: an error with this reason.
    Refused(&'static str),
}

/// Function that returns the value.
pub type FetchRun = for<'a> fn(&'a ArgList, &Env<'a>) -> Option<Value<'a>>;

/// Function that visits the values one after the other until the visitor returns `true`; returns whether it did.
pub type FetchEach = for<'a> fn(&'a ArgList, &Env<'a>, &mut dyn FnMut(Value<'a>) -> bool) -> bool;

/// Function that checks or replaces arguments at load; an error is the reason why they are invalid.
pub type Check = fn(&mut Vec<Arg>, &mut Compiler<'_>) -> Result<(), String>;

/// A conversion of a value into another: an entry of a table.
#[derive(Clone, Copy, Debug)]
pub struct Converter {
    /// Its name.
    pub name: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// Type of its input; the value is cast to it.
    pub input: Type,
    /// Type of its output. [`Type::Any`] is known only at run time; with an input of [`Type::Any`] too, it is the type of
    /// the input.
    pub output: Type,
    /// Description of its effect, one sentence.
    pub summary: &'static str,
    /// Its implementation.
    pub kind: ConverterKind,
    /// Looks at the arguments when they are read.
    pub check: Option<Check>,
}

/// Implementation of a converter.
#[derive(Clone, Copy, Debug)]
pub enum ConverterKind {
    /// A function from value to value.
    Done(ConverterRun),
    /// An operation on a number and the only argument, which is a number or a variable that holds one.
    Arithmetic(Operation),
    /// Understood and not built: an error with this reason.
    Refused(&'static str),
}

/// Operation that makes a number of two.
pub type Operation = fn(i64, i64) -> i64;

/// Function that makes the new value, or none.
pub type ConverterRun = for<'a> fn(Value<'a>, &'a ArgList, &Env<'a>) -> Option<Value<'a>>;

/// A short name in log formats: `%ci`.
#[derive(Clone, Copy, Debug)]
pub struct Alias {
    /// Its name, without the percent sign.
    pub name: &'static str,
    /// Data that it needs.
    pub needs: Needs,
    /// Description of its text, one sentence.
    pub summary: &'static str,
    /// Its implementation.
    pub kind: AliasKind,
}

/// Implementation of an alias.
#[derive(Clone, Copy, Debug)]
pub enum AliasKind {
    /// Text or an address: quoted with `+Q`, escaped with `+E`, `-` when there is none.
    Text(AliasRun),
    /// A number, never quoted; with `+X` in at least so many hexadecimal digits, if that is not 0.
    Number(AliasRun, u8),
    /// A date or a state, which no flag changes.
    Plain(AliasRun),
    /// Captures in one piece, whose bytes are encoded already; an empty text when there are none.
    Block(AliasRun),
    /// Several values, with blanks between them; an empty text when there are none. Bytes are encoded already.
    List(AliasEach),
    /// A part of the request's first line: bytes that could break a log's line as `#XX` ([`crate::logformat::encode`]), `<BADREQ>`
    /// when there is none.
    Line(AliasRun),
    /// Understood and not built: an error with this reason.
    Refused(&'static str),
}

/// Function that returns the value to write.
pub type AliasRun = for<'a> fn(&Env<'a>) -> Option<Value<'a>>;

/// Function that visits the values to write one after the other.
pub type AliasEach = for<'a> fn(&Env<'a>, &mut dyn FnMut(Option<Value<'a>>));

/// Set of data that a fetch needs, or that is there at an expression's place.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Needs(pub u16);

/// Constants of the process, for parsers.
#[derive(Clone, Default, Debug)]
pub struct Constants {
    /// The machine's name (`hostname`).
    pub hostname: String,
    /// Variables of the environment (`env(NAME)`).
    pub environment: HashMap<String, String>,
    /// The process's id (`pid`, `%pid`).
    pub pid: u32,
    /// The number of worker threads, when it is known (`nbthread`).
    pub threads: u32,
}

/// Files of patterns (`acl ... -f FILE`), read by the caller.
pub trait PatternFiles: Send + Sync {
    /// The bytes of a file; an error is the reason why there are none.
    fn read(&self, name: &str) -> Result<Vec<u8>, String>;

    /// The same of a file that has at most so many bytes.
    fn read_at_most(&self, name: &str, most: u64) -> Result<Vec<u8>, String> {
        let bytes = self.read(name)?;
        if bytes.len() as u64 > most { Err(format!("it has more than {most} bytes")) } else { Ok(bytes) }
    }

    /// The address of a host that a pattern of `ip` names; `None` where names are not looked up.
    fn resolve(&self, _host: &str) -> Option<Ipv4Addr> {
        None
    }
}

/// All tables, names and constants: the setting that every parser of expressions finds in [`terse_config::Scope::shared`].
#[derive(Clone)]
pub struct Registry {
    fetches: HashMap<&'static str, &'static Fetch>,
    converters: HashMap<&'static str, &'static Converter>,
    aliases: HashMap<&'static str, &'static Alias>,
    /// The names of variables in the configuration so far.
    pub names: VarNames,
    /// Constants of the process.
    pub constants: Arc<Constants>,
    /// Functions that scripts have registered, once a script is loaded.
    pub scripts: Option<Arc<dyn Functions>>,
    /// Reader of files of patterns; without it `-f` is an error.
    pub files: Option<Arc<dyn PatternFiles>>,
    /// Patterns that values are compared with: files and lines of patterns, and maps.
    pub patterns: References,
    /// State that other crates keep from one expression to the next.
    own: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    /// Objects that expressions and rules name, and other sections declare.
    pub references: Vec<Reference>,
}

/// An object that an expression or a rule names, and that a section further down may declare: a stick table. The crate of
/// the fetch, converter or action finds it, once the configuration is complete.
#[derive(Clone)]
pub struct Reference {
    /// The object, which is in the arguments as well, and is filled when the name is found.
    pub to: Arc<dyn Any + Send + Sync>,
    /// Place of the name.
    pub place: Place,
    /// Check once the configuration is complete, if its own crate can do it alone.
    pub problem: Option<Problem>,
}

/// Function that returns the fault of a named object, if it has one.
pub type Problem = fn(&(dyn Any + Send + Sync)) -> Option<String>;

impl Default for Registry {
    /// A registry with this crate's own tables.
    fn default() -> Registry {
        let mut registry = Registry {
            fetches: HashMap::new(),
            converters: HashMap::new(),
            aliases: HashMap::new(),
            names: VarNames::default(),
            constants: Arc::default(),
            scripts: None,
            files: None,
            own: HashMap::new(),
            references: Vec::new(),
            patterns: References::default(),
        };
        for table in fetch::TABLES {
            registry.add_fetches(table);
        }
        for table in convert::TABLES {
            registry.add_converters(table);
        }
        registry.add_aliases(logformat::ALIASES);
        registry
    }
}

impl Setting for Registry {
    fn inherit(&self) -> Registry {
        self.clone()
    }
}

impl Registry {
    /// Adds a table; a later entry takes an earlier one's place.
    pub fn add_fetches(&mut self, table: &'static [Fetch]) {
        for fetch in table {
            for name in fetch.also.iter().chain([&fetch.name]) {
                self.fetches.insert(name, fetch);
            }
        }
    }

    /// Adds a table; a later entry takes an earlier one's place.
    pub fn add_converters(&mut self, table: &'static [Converter]) {
        self.converters.extend(table.iter().map(|c| (c.name, c)));
    }

    /// Adds a table; a later entry takes an earlier one's place.
    pub fn add_aliases(&mut self, table: &'static [Alias]) {
        self.aliases.extend(table.iter().map(|a| (a.name, a)));
    }

    /// State that a crate keeps from one expression to the next, such as keys that were read; made when it is first asked
    /// for.
    pub fn own<T: Any + Send + Sync + Default>(&mut self) -> Arc<T> {
        let kept = self.own.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        kept.clone().downcast().unwrap_or_default()
    }

    /// The fetch of that name.
    pub fn fetch(&self, name: &str) -> Option<&'static Fetch> {
        self.fetches.get(name).copied()
    }

    /// The converter of that name.
    pub fn converter(&self, name: &str) -> Option<&'static Converter> {
        self.converters.get(name).copied()
    }

    /// Notes a named object, to be found once the configuration is complete.
    pub fn refer(&mut self, to: Arc<dyn Any + Send + Sync>, place: Place) {
        self.references.push(Reference { to, place, problem: None });
    }

    /// The same, with a check of its own crate: a list of users.
    pub fn refer_checked(&mut self, to: Arc<dyn Any + Send + Sync>, place: Place, problem: Problem) {
        self.references.push(Reference { to, place, problem: Some(problem) });
    }

    /// The alias of that name.
    pub fn alias(&self, name: &str) -> Option<&'static Alias> {
        self.aliases.get(name).copied()
    }

    /// All fetches by name, each once, for the manual and the support matrix.
    pub fn fetches(&self) -> Vec<&'static Fetch> {
        let mut all: Vec<_> = self.fetches.iter().filter(|(name, f)| **name == f.name).map(|(_, f)| *f).collect();
        all.sort_by_key(|f| f.name);
        all
    }

    /// All converters by name.
    pub fn converters(&self) -> Vec<&'static Converter> {
        let mut all: Vec<_> = self.converters.values().copied().collect();
        all.sort_by_key(|c| c.name);
        all
    }

    /// All aliases by name.
    pub fn aliases(&self) -> Vec<&'static Alias> {
        let mut all: Vec<_> = self.aliases.values().copied().collect();
        all.sort_by_key(|a| a.name);
        all
    }

    /// The way of matching the entries of a file; the first use reads it.
    pub(crate) fn pattern_file(&self, name: &str, usage: &Use<'_>) -> Result<Arc<Way>, String> {
        let read = |name: &str| match &self.files {
            Some(files) => files.read(name),
            None => Err("files of patterns cannot be read here".into()),
        };
        self.patterns.of_file(name, usage, read)
    }

    pub(crate) fn fetch_near(&self, name: &str) -> Option<String> {
        near::hint(name, self.fetches.keys().copied())
    }

    /// The same for the first word of a criterion, whose fetch may carry a matching method: `path_beg`.
    pub(crate) fn criterion_near(&self, name: &str, is_text: fn(Type) -> bool) -> Option<String> {
        let texts = self.fetches.iter().filter(|(_, fetch)| is_text(fetch.output));
        let names: Vec<_> =
            texts.flat_map(|(name, _)| Matching::names().map(move |matching| format!("{name}_{matching}"))).collect();
        near::hint(name, names.iter().map(String::as_str))
    }

    pub(crate) fn converter_near(&self, name: &str) -> Option<String> {
        near::hint(name, self.converters.keys().copied())
    }

    pub(crate) fn alias_near(&self, name: &str) -> Option<String> {
        near::hint(name, self.aliases.keys().copied())
    }
}

impl Fetch {
    /// A fetch of a single value, without parameters, that can be used anywhere.
    pub const fn one(name: &'static str, output: Type, summary: &'static str, run: FetchRun) -> Fetch {
        Fetch::new(name, output, summary, FetchKind::One(run))
    }

    /// A fetch of several values.
    pub const fn each(name: &'static str, output: Type, summary: &'static str, run: FetchRun, each: FetchEach) -> Fetch {
        Fetch::new(name, output, summary, FetchKind::Each(run, each))
    }

    /// A fetch that is understood and not built.
    pub const fn refused(name: &'static str, summary: &'static str, reason: &'static str) -> Fetch {
        Fetch::new(name, Type::Any, summary, FetchKind::Refused(reason))
    }

    const fn new(name: &'static str, output: Type, summary: &'static str, kind: FetchKind) -> Fetch {
        Fetch { name, also: &[], params: &[], output, needs: Needs::NONE, summary, kind, check: None }
    }

    /// The same with other names.
    pub const fn also(mut self, names: &'static [&'static str]) -> Fetch {
        self.also = names;
        self
    }

    /// The same with parameters.
    pub const fn params(mut self, params: &'static [Param]) -> Fetch {
        self.params = params;
        self
    }

    /// The same, with the data that it needs.
    pub const fn needs(mut self, needs: Needs) -> Fetch {
        self.needs = needs;
        self
    }

    /// The same with a check of its arguments.
    pub const fn check(mut self, check: Check) -> Fetch {
        self.check = Some(check);
        self
    }
}

impl Converter {
    /// A converter without parameters.
    pub const fn new(name: &'static str, input: Type, output: Type, summary: &'static str, run: ConverterRun) -> Converter {
        Converter { name, params: &[], input, output, summary, kind: ConverterKind::Done(run), check: None }
    }

    /// A converter of two numbers.
    pub const fn arithmetic(name: &'static str, summary: &'static str, run: Operation) -> Converter {
        let kind = ConverterKind::Arithmetic(run);
        Converter { name, params: OPERAND, input: Type::Int, output: Type::Int, summary, kind, check: None }
    }

    /// A converter that is understood and not built.
    pub const fn refused(name: &'static str, summary: &'static str, reason: &'static str) -> Converter {
        let kind = ConverterKind::Refused(reason);
        Converter { name, params: &[], input: Type::Any, output: Type::Any, summary, kind, check: None }
    }

    /// The same with parameters.
    pub const fn params(mut self, params: &'static [Param]) -> Converter {
        self.params = params;
        self
    }

    /// The same with a check of its arguments.
    pub const fn check(mut self, check: Check) -> Converter {
        self.check = Some(check);
        self
    }
}

const OPERAND: &[Param] = &[need(ParamKind::IntOrVar)];

impl Alias {
    /// An alias for text or an address.
    pub const fn text(name: &'static str, summary: &'static str, run: AliasRun) -> Alias {
        Alias::new(name, summary, AliasKind::Text(run))
    }

    /// An alias for a number.
    pub const fn number(name: &'static str, summary: &'static str, run: AliasRun) -> Alias {
        Alias::new(name, summary, AliasKind::Number(run, 0))
    }

    /// An alias for a date or a state.
    pub const fn plain(name: &'static str, summary: &'static str, run: AliasRun) -> Alias {
        Alias::new(name, summary, AliasKind::Plain(run))
    }

    /// An alias for captures in one piece.
    pub const fn block(name: &'static str, summary: &'static str, run: AliasRun) -> Alias {
        Alias::new(name, summary, AliasKind::Block(run))
    }

    /// An alias of any number of values.
    pub const fn list(name: &'static str, summary: &'static str, each: AliasEach) -> Alias {
        Alias::new(name, summary, AliasKind::List(each))
    }

    /// An alias for a part of the request's first line.
    pub const fn line(name: &'static str, summary: &'static str, run: AliasRun) -> Alias {
        Alias::new(name, summary, AliasKind::Line(run))
    }

    /// An alias that is understood and not built.
    pub const fn refused(name: &'static str, summary: &'static str, reason: &'static str) -> Alias {
        Alias::new(name, summary, AliasKind::Refused(reason))
    }

    const fn new(name: &'static str, summary: &'static str, kind: AliasKind) -> Alias {
        Alias { name, needs: Needs::NONE, summary, kind }
    }

    /// The same, with the data that it needs.
    pub const fn needs(mut self, needs: Needs) -> Alias {
        self.needs = needs;
        self
    }

    /// The same number, which `+X` writes in at least so many hexadecimal digits.
    pub const fn digits(mut self, digits: u8) -> Alias {
        if let AliasKind::Number(run, _) = self.kind {
            self.kind = AliasKind::Number(run, digits);
        }
        self
    }
}

impl Needs {
    /// No data.
    pub const NONE: Needs = Needs(0);
    /// The request's head.
    pub const REQUEST: Needs = Needs(1);
    /// The response's head.
    pub const RESPONSE: Needs = Needs(2);
    /// The request's body, as far as a rule has waited for it.
    pub const BODY: Needs = Needs(4);
    /// The server was chosen.
    pub const SERVER: Needs = Needs(8);
    /// The stream has ended: times, counts of bytes, termination state.
    pub const END: Needs = Needs(16);
    /// The bytes that a peer has sent and that have not yet gone on.
    pub const BYTES: Needs = Needs(32);
    /// The response's body, as far as a rule has waited for it.
    pub const RESPONSE_BODY: Needs = Needs(64);
    /// Perhaps some time: a value that takes long to find ([`crate::World::defer`]). It is available everywhere; users that
    /// cannot wait are held up.
    pub const TIME: Needs = Needs(128);
    /// Beside [`Needs::REQUEST`]: the parts of the request's head that the proxy remembers once the request has gone, such
    /// as its method.
    pub const KEPT: Needs = Needs(256);
    /// Beside [`Needs::BYTES`]: the client's, which have gone when rules on responses run.
    pub const CLIENT: Needs = Needs(512);
    /// All data that there may be: a log line.
    pub const ALL: Needs = Needs(127);

    /// The union of both sets.
    pub const fn or(self, other: Needs) -> Needs {
        Needs(self.0 | other.0)
    }

    /// The needs in this set and not in the other.
    pub const fn without(self, other: Needs) -> Needs {
        Needs(self.0 & !other.0)
    }

    /// The needs of this set that `have` does not provide.
    pub const fn missing(self, have: Needs) -> Needs {
        let keeps = self.has(Needs::KEPT) && have.has(Needs::RESPONSE);
        let have = if keeps { have.or(Needs::REQUEST) } else { have };
        let answers = have.has(Needs::RESPONSE) && !have.has(Needs::REQUEST);
        let have = if answers { have } else { have.or(Needs::CLIENT) };
        self.without(have.or(Needs::TIME).or(Needs::KEPT))
    }

    /// Whether all needs of the other set are in this set.
    pub const fn has(self, other: Needs) -> bool {
        other.0 & !self.0 == 0
    }

    /// Whether any need of the other set is in this set.
    pub const fn has_any(self, other: Needs) -> bool {
        other.0 & self.0 != 0
    }

    /// Whether the set is empty.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Description of the first need, for messages.
    pub const fn describe(self) -> &'static str {
        match self {
            Needs(0) => "nothing",
            Needs(n) if n & 1 != 0 => "the request's head",
            Needs(n) if n & 2 != 0 => "the response's head",
            Needs(n) if n & 4 != 0 => "the request's body",
            Needs(n) if n & 8 != 0 => "the server",
            Needs(n) if n & 32 != 0 => "the bytes of a connection",
            Needs(n) if n & 64 != 0 => "the response's body",
            Needs(n) if n & 512 != 0 => "what the client has sent",
            Needs(_) => "the stream's end",
        }
    }
}
