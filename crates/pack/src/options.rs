//! The command line: gzip's options, and a few more.
//!
//! As with gzip, short options may be joined in one argument (`-dck`), and long ones may be shortened as long as they
//! are unambiguous. Options and files may come in any order, and after `--` all arguments are files. Beside those there
//! are `-f=FILE` and `-o=FILE`, the file to read and the file to write, which no option of gzip's looks like.
//!
//! Every option is an entry of [`FLAGS`], which also is the source of the help.

use crate::engine::device::Opened;
use crate::engine::{self, Engine};
use crate::form::Form;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Command by which the program was called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// `terse gzip`.
    Gzip,
    /// `terse gunzip`: the same, but it decompresses.
    Gunzip,
}

impl Command {
    /// Name before messages.
    pub fn name(self) -> &'static str {
        match self {
            Command::Gzip => "gzip",
            Command::Gunzip => "gunzip",
        }
    }
}

/// Action for each file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Compression.
    Compress,
    /// Decompression.
    Decompress,
    /// Decompression without output.
    Test,
    /// Listing of sizes.
    List,
}

/// Options of the command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name before messages.
    pub program: &'static str,
    /// Action for each file.
    pub mode: Mode,
    /// `-c`: to standard output; the input stays.
    pub to_stdout: bool,
    /// `-f`: overwrite, follow links, write to terminals.
    pub force: bool,
    /// `-k`: the input stays.
    pub keep: bool,
    /// `-q`: no warnings.
    pub quiet: bool,
    /// `-v`: names and ratios.
    pub verbose: bool,
    /// `-r`: folders too.
    pub recursive: bool,
    /// `-n`, `-N`: whether name and time of the original are stored and restored. Default: stored, not restored.
    pub names: Option<bool>,
    /// `-S`: suffix of compressed files' names.
    pub suffix: Option<OsString>,
    /// `--zstd`, `--br`: the format. When decompressing, the only accepted format.
    pub form: Option<Form>,
    /// `-1` to `-9`, `--level`.
    pub level: Option<u8>,
    /// `-p`: number of threads that compress.
    pub processes: Option<usize>,
    /// `--engine`.
    pub engine: Option<&'static Engine>,
    /// `--engine` with a name that is not built in: that of a section, or a library's path.
    pub device: Option<OsString>,
    /// Engine of that name, once it is opened.
    pub opened: Option<Opened>,
    /// `--config`: files with `engine` sections.
    pub configuration: Vec<PathBuf>,
    /// `--engines`: the engines are listed, and nothing else is done.
    pub lists_engines: bool,
    /// `-f=FILE`: input file, which stays.
    pub input: Option<PathBuf>,
    /// `-o=FILE`: output file.
    pub output: Option<PathBuf>,
    /// The files. Without any, and for `-`, standard input.
    pub files: Vec<OsString>,
}

/// Request of a command line.
#[derive(Debug)]
pub enum Request {
    /// Work on files.
    Work(Box<Options>),
    /// A text to print: help, version.
    Say(String),
    /// The list of engines, with those of a configuration.
    Engines(Vec<PathBuf>),
}

impl Options {
    /// Parses the arguments after the command's name.
    ///
    /// # Errors
    /// A sentence about the wrong argument.
    pub fn parse(command: Command, words: impl IntoIterator<Item = OsString>) -> Result<Request, String> {
        let mut options = Options::new(command);
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let bytes = word.as_bytes();
            let asked = match bytes {
                b"--" => {
                    options.files.extend(words.by_ref());
                    None
                }
                [b'-', b'-', long @ ..] => options.long(long, &mut words)?,
                [b'-', b'f', b'=', file @ ..] => options.set_file(true, file).map(|()| None)?,
                [b'-', b'o', b'=', file @ ..] => options.set_file(false, file).map(|()| None)?,
                [b'-', shorts @ ..] if !shorts.is_empty() => options.shorts(shorts, &mut words)?,
                _ => {
                    options.files.push(word);
                    None
                }
            };
            if let Some(text) = asked {
                return Ok(Request::Say(text));
            }
        }
        if options.lists_engines {
            return Ok(Request::Engines(options.configuration));
        }
        options.check()?;
        Ok(Request::Work(Box::new(options)))
    }

    /// Format of the output.
    pub fn written_form(&self) -> Form {
        self.form.unwrap_or(Form::Gzip)
    }

    /// Level of the output.
    pub fn written_level(&self) -> u8 {
        self.level.unwrap_or(self.written_form().default_level())
    }

    /// Number of threads that compress: one for each core by default.
    pub fn workers(&self) -> usize {
        let engines = || self.opened.as_ref().map(|opened| opened.workers);
        self.processes.or_else(engines).unwrap_or_else(Options::cores).min(MAX_PROCESSES)
    }

    /// Number of the machine's cores.
    pub(crate) fn cores() -> usize {
        std::thread::available_parallelism().map_or(1, |cores| cores.get())
    }

    fn new(command: Command) -> Options {
        Options {
            program: command.name(),
            mode: if command == Command::Gunzip { Mode::Decompress } else { Mode::Compress },
            to_stdout: false,
            force: false,
            keep: false,
            quiet: false,
            verbose: false,
            recursive: false,
            names: None,
            suffix: None,
            form: None,
            level: None,
            processes: None,
            engine: None,
            device: None,
            opened: None,
            configuration: Vec::new(),
            lists_engines: false,
            input: None,
            output: None,
            files: Vec::new(),
        }
    }

    fn decompress(&mut self) {
        if self.mode == Mode::Compress {
            self.mode = Mode::Decompress;
        }
    }

    fn set_file(&mut self, is_input: bool, file: &[u8]) -> Result<(), String> {
        if file.is_empty() {
            return Err(format!("option '-{}=' expects a file", if is_input { 'f' } else { 'o' }));
        }
        let file = PathBuf::from(OsStr::from_bytes(file));
        *(if is_input { &mut self.input } else { &mut self.output }) = Some(file);
        Ok(())
    }

    fn shorts(&mut self, mut shorts: &[u8], words: &mut dyn Iterator<Item = OsString>) -> Result<Option<String>, String> {
        while let Some((&letter, rest)) = shorts.split_first() {
            shorts = rest;
            if letter.is_ascii_digit() && letter != b'0' {
                self.level = Some(letter - b'0');
                continue;
            }
            let flag = FLAGS.iter().find(|flag| flag.short == Some(char::from(letter)));
            let flag = flag.ok_or_else(|| format!("invalid option -- '{}'", char::from(letter).escape_default()))?;
            let name = || format!("option requires an argument -- '{}'", char::from(letter));
            let value = match flag.effect {
                Effect::Value(..) if !shorts.is_empty() => OsString::from_vec(std::mem::take(&mut shorts).to_vec()),
                Effect::Value(..) => words.next().ok_or_else(name)?,
                _ => OsString::new(),
            };
            if let Some(text) = flag.act(self, value)? {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    fn long(&mut self, word: &[u8], words: &mut dyn Iterator<Item = OsString>) -> Result<Option<String>, String> {
        let mut parts = word.splitn(2, |&byte| byte == b'=');
        let name = &*String::from_utf8_lossy(parts.next().unwrap_or_default());
        let glued = parts.next().map(|value| OsString::from_vec(value.to_vec()));
        let meant: Vec<&Flag> = match FLAGS.iter().find(|flag| flag.long == name) {
            Some(flag) => vec![flag],
            None => FLAGS.iter().filter(|flag| !name.is_empty() && flag.long.starts_with(name)).collect(),
        };
        let flag = match *meant {
            [flag] => flag,
            [] => return Err(format!("unrecognized option '--{name}'")),
            _ => {
                let all: Vec<String> = meant.iter().map(|flag| format!("'--{}'", flag.long)).collect();
                return Err(format!("option '--{name}' is ambiguous; possibilities: {}", all.join(" ")));
            }
        };
        let value = match (&flag.effect, glued) {
            (Effect::Value(..), Some(value)) => value,
            (Effect::Value(..), None) => words.next().ok_or_else(|| format!("option '--{}' requires an argument", flag.long))?,
            (_, Some(_)) => return Err(format!("option '--{}' doesn't allow an argument", flag.long)),
            (_, None) => OsString::new(),
        };
        flag.act(self, value)
    }

    /// Checks combinations of options.
    fn check(&self) -> Result<(), String> {
        if let Some(input) = &self.input
            && !self.files.is_empty()
        {
            return Err(format!("-f={}: no other files beside it", input.display()));
        }
        if let Some(output) = &self.output {
            let output = output.display();
            if self.input.iter().count() + self.files.len() > 1 {
                return Err(format!("-o={output}: one file in, one file out"));
            }
            if self.to_stdout || self.recursive || !matches!(self.mode, Mode::Compress | Mode::Decompress) {
                return Err(format!("-o={output}: not with -c, -l, -r or -t"));
            }
        }
        if self.mode != Mode::Compress {
            return Ok(());
        }
        let form = self.written_form();
        if let Some(level) = self.level
            && !form.levels().contains(&level)
        {
            let (least, most) = (form.levels().start().to_owned(), form.levels().end().to_owned());
            return Err(format!("level {level}: {} has {least} to {most}", form.name()));
        }
        if let Some(engine) = self.engine
            && engine.form != form
        {
            return Err(format!("engine {}: it makes {}, not {}", engine.name, engine.form.name(), form.name()));
        }
        if let Some(name) = &self.device
            && form != Form::Gzip
        {
            return Err(format!("engine {}: it makes gzip, not {}", name.display(), form.name()));
        }
        Ok(())
    }
}

/// Limit of threads that compress.
pub const MAX_PROCESSES: usize = 256;

/// An option.
pub struct Flag {
    /// Letter.
    pub short: Option<char>,
    /// Long name.
    pub long: &'static str,
    /// Effect.
    pub effect: Effect,
    /// Text of the help; empty for a synonym of another option.
    pub help: &'static str,
}

/// Effect of an option.
pub enum Effect {
    /// Changes an option.
    Set(fn(&mut Options)),
    /// Takes a value of this name in the help.
    Value(&'static str, fn(&mut Options, OsString) -> Result<(), String>),
    /// Prints a text.
    Say(fn() -> String),
    /// No effect here; the help gives the reason.
    Accept,
    /// An error; the help gives the reason.
    Refuse,
}

impl Flag {
    /// Applies the option; returns a text if it prints one.
    fn act(&self, options: &mut Options, value: OsString) -> Result<Option<String>, String> {
        match self.effect {
            Effect::Set(set) => set(options),
            Effect::Value(_, take) => take(options, value)?,
            Effect::Say(text) => return Ok(Some(text())),
            Effect::Accept => {}
            Effect::Refuse => return Err(format!("option '--{}' is refused: {}", self.long, self.help)),
        }
        Ok(None)
    }
}

use Effect::{Accept, Refuse, Say, Set, Value};

/// The options, in the order of the help.
pub const FLAGS: &[Flag] = &[
    flag(Some('c'), "stdout", Set(|o| o.to_stdout = true), "write on standard output, keep the files"),
    flag(None, "to-stdout", Set(|o| o.to_stdout = true), ""),
    flag(Some('d'), "decompress", Set(Options::decompress), "decompress"),
    flag(None, "uncompress", Set(Options::decompress), ""),
    flag(
        Some('f'),
        "force",
        Set(|o| o.force = true),
        "overwrite, follow links, write to terminals; with -dc pass on what is not compressed",
    ),
    flag(Some('h'), "help", Say(help), "print this"),
    flag(Some('k'), "keep", Set(|o| o.keep = true), "keep the files"),
    flag(Some('l'), "list", Set(|o| o.mode = Mode::List), "tell sizes and names of compressed files"),
    flag(Some('L'), "license", Say(|| LICENCE.to_owned()), "print the licence"),
    flag(Some('n'), "no-name", Set(|o| o.names = Some(false)), "neither store nor restore name and time"),
    flag(Some('N'), "name", Set(|o| o.names = Some(true)), "store name and time, and restore them"),
    flag(Some('q'), "quiet", Set(|o| (o.quiet, o.verbose) = (true, false)), "no warnings, no progress"),
    flag(Some('r'), "recursive", Set(|o| o.recursive = true), "folders too"),
    flag(Some('S'), "suffix", Value("SUF", set_suffix), "compressed files end with SUF instead of .gz, .zst or .br"),
    flag(Some('t'), "test", Set(|o| o.mode = Mode::Test), "decompress, check, write nothing"),
    flag(Some('v'), "verbose", Set(|o| (o.verbose, o.quiet) = (true, false)), "tell names and ratios"),
    flag(Some('V'), "version", Say(version), "print the version"),
    flag(None, "fast", Set(|o| o.level = Some(1)), "-1, of -1 to -9"),
    flag(None, "best", Set(|o| o.level = Some(9)), "-9"),
    flag(None, "level", Value("N", set_level), "1 to 9 are -1 to -9; gzip has up to 12, zstd 19, brotli 11"),
    flag(Some('p'), "processes", Value("N", set_processes), "threads that compress; unless said, one for each core"),
    flag(None, "gzip", Set(|o| o.form = Some(Form::Gzip)), "the format gzip; decompressing, no other"),
    flag(None, "zstd", Set(|o| o.form = Some(Form::Zstd)), "the format zstd"),
    flag(None, "br", Set(|o| o.form = Some(Form::Brotli)), "the format brotli, which only this and the suffix .br tell"),
    flag(
        None,
        "engine",
        Value("NAME", set_engine),
        "who compresses; also an engine section of --config, or a library with zlib's API",
    ),
    flag(None, "engines", Set(|o| o.lists_engines = true), "list the engines, those of --config too"),
    flag(None, "config", Value("FILE", add_configuration), "a configuration with engine sections"),
    flag(None, "input", Value("FILE", |o, file| o.set_file(true, file.as_bytes())), "-f=FILE: read FILE, and keep it"),
    flag(None, "output", Value("FILE", |o, file| o.set_file(false, file.as_bytes())), "-o=FILE: write FILE, and keep what is read"),
    flag(Some('a'), "ascii", Accept, "accepted: line ends are what they are here"),
    flag(None, "synchronous", Accept, "accepted: always so"),
    flag(None, "rsyncable", Refuse, "pieces have a fixed size, and do not meet again after an insertion"),
    flag(Some('Z'), "lzw", Refuse, "the format of compress(1) is not written"),
    flag(Some('b'), "bits", Refuse, "the format of compress(1) is not written"),
];

const fn flag(short: Option<char>, long: &'static str, effect: Effect, help: &'static str) -> Flag {
    Flag { short, long, effect, help }
}

fn set_suffix(options: &mut Options, value: OsString) -> Result<(), String> {
    if value.is_empty() || value.as_bytes().contains(&b'/') {
        return Err(format!("invalid suffix '{}'", value.display()));
    }
    options.suffix = Some(value);
    Ok(())
}

fn set_level(options: &mut Options, value: OsString) -> Result<(), String> {
    options.level = Some(number(&value, "level")?);
    Ok(())
}

fn set_processes(options: &mut Options, value: OsString) -> Result<(), String> {
    options.processes = Some(number::<std::num::NonZeroUsize>(&value, "number of processes")?.get());
    Ok(())
}

fn set_engine(options: &mut Options, value: OsString) -> Result<(), String> {
    options.engine = value.to_str().and_then(engine::find);
    options.device = options.engine.is_none().then_some(value);
    Ok(())
}

fn add_configuration(options: &mut Options, value: OsString) -> Result<(), String> {
    options.configuration.push(value.into());
    Ok(())
}

fn number<N: std::str::FromStr>(value: &OsStr, what: &str) -> Result<N, String> {
    value.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| format!("invalid {what} '{}'", value.display()))
}

fn help() -> String {
    let mut text = String::from(
        "Usage: terse gzip [OPTION]... [FILE]...\n       terse gunzip [OPTION]... [FILE]...\n\
         Compresses files, or decompresses them, in their place; without a file, or for -, standard input to standard output.\n\n",
    );
    for flag in FLAGS.iter().filter(|flag| !flag.help.is_empty() && !matches!(flag.effect, Refuse)) {
        let short = flag.short.map_or_else(|| "   ".into(), |letter| format!("-{letter},"));
        let value = if let Value(value, _) = flag.effect { format!("={value}") } else { String::new() };
        text += &format!("  {short} {:<18} {}\n", format!("--{}{value}", flag.long), flag.help);
    }
    text
}

fn version() -> String {
    format!("terse gzip {}\n", env!("CARGO_PKG_VERSION"))
}

const LICENCE: &str = "MIT or Apache 2.0, as you like. There is no warranty.\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let words = line.split(' ').filter(|word| !word.is_empty()).map(OsString::from);
        match Options::parse(Command::Gzip, words)? {
            Request::Work(options) => Ok(*options),
            Request::Say(text) => Err(text),
            Request::Engines(files) => Err(format!("{files:?}")),
        }
    }

    #[test]
    fn letters_stand_in_one_word_and_in_any_order() {
        let o = parse("file -9cvk -S.x -p 3 other -- -d").unwrap();
        assert_eq!((o.level, o.to_stdout, o.verbose, o.keep, o.processes), (Some(9), true, true, true, Some(3)));
        assert_eq!((o.suffix.as_deref(), o.mode), (Some(".x".as_ref()), Mode::Compress));
        assert_eq!(o.files, ["file", "other", "-d"]);
        assert_eq!(parse("-kp2").unwrap().processes, Some(2));
    }

    #[test]
    fn long_names_may_be_shortened_to_what_is_meant() {
        assert!(parse("--dec").unwrap().mode == Mode::Decompress);
        assert_eq!(parse("--level 12").unwrap().level, Some(12));
        assert_eq!(parse("--no").unwrap().names, Some(false));
        assert!(parse("--re").unwrap().recursive);
        assert!(parse("--f").unwrap_err().contains("'--force' '--fast'"));
        assert!(parse("--engine=zstd").unwrap_err().contains("it makes zstd, not gzip"), "a whole name is no beginning of another");
        assert!(parse("--stdout=yes").unwrap_err().contains("doesn't allow an argument"));
    }

    #[test]
    fn the_files_of_a_card_s_tool_are_no_letters() {
        let o = parse("-f=/usr/src/file31.iso -o=/usr/src/compressed.gz").unwrap();
        assert_eq!(o.input.unwrap(), PathBuf::from("/usr/src/file31.iso"));
        assert_eq!(o.output.unwrap(), PathBuf::from("/usr/src/compressed.gz"));
        assert!(!o.force);
        for bad in ["-f= x", "-f=a b", "-o=a b c", "-o=a -c b", "-o=a -t b"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn wrong_words_are_named() {
        for (line, word) in [
            ("-x", "'x'"),
            ("--nonsense", "'--nonsense'"),
            ("--level=13", "level 13"),
            ("--br --level 12", "level 12"),
            ("-p 0", "'0'"),
            ("-p", "'p'"),
            ("--br --engine card", "engine card"),
            ("--rsyncable", "pieces"),
            ("-S a/b", "'a/b'"),
        ] {
            assert!(parse(line).unwrap_err().contains(word), "{line}");
        }
    }
}
