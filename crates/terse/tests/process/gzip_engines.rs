//! `terse gzip` with engines that are libraries: the output is right whatever they do, and the work that software did for them is
//! reported.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The test card, which cargo has built beside this program.
fn card() -> PathBuf {
    let path = std::env::current_exe().unwrap().with_file_name("libterse_testcard.so");
    assert!(path.exists(), "{} is not there", path.display());
    path
}

struct Bench(TempDir);

impl Bench {
    fn new() -> Bench {
        let bench = Bench(TempDir::new().unwrap());
        let words = (0..400_000u32).flat_map(|n| format!("{} ", n.wrapping_mul(2_654_435_761) >> 14).into_bytes());
        fs::write(bench.path("body"), words.collect::<Vec<u8>>()).unwrap();
        let section = "engine card\n library CARD\n jobs 3\n largest 512k\n deadline 10s\n inter 10ms\n verify full\nengine other\n library /lib/other.so\n";
        fs::write(bench.path("engines.cfg"), section.replace("CARD", &card().display().to_string())).unwrap();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn terse(&self, words: &[&str], faults: Option<&Path>) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_terse"));
        command.arg("gzip").args(words).current_dir(self.0.path());
        command.envs(faults.map(|file| ("TERSE_TESTCARD_FAULTS", file)));
        command.output().unwrap()
    }

    /// Compresses a file with `words`; returns its content, decompressed again, the exit code and the messages.
    fn packed(&self, words: &[&str], faults: Option<&Path>) -> (Vec<u8>, Option<i32>, String) {
        let _ = fs::remove_file(self.path("out.gz"));
        let output = self.terse(&[words, &["-f=body", "-o=out.gz"]].concat(), faults);
        let read = Command::new("gzip").args(["-dc", "out.gz"]).current_dir(self.0.path()).output().unwrap();
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        (read.stdout, output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[test]
fn a_section_or_a_library_makes_what_gzip_reads() {
    let bench = Bench::new();
    let body = fs::read(bench.path("body")).unwrap();
    let card = card().display().to_string();
    let mut engines =
        vec![vec!["--engine=card", "--config=engines.cfg"], vec!["--engine", &card], vec!["-9", "-p1", "--engine", &card]];
    let zlib = ["/lib/x86_64-linux-gnu/libz.so.1", "/usr/lib/libz.so.1"].into_iter().find(|path| Path::new(path).exists());
    engines.extend(zlib.map(|zlib| vec!["--engine", zlib]));
    for words in engines {
        let (read, code, said) = bench.packed(&words, None);
        assert!(read == body, "{words:?}");
        assert_eq!((code, &*said), (Some(0), ""), "{words:?}");
    }
}

#[test]
#[ignore = "needs libisal.so.2: make test fetches it and runs this"]
fn isal_makes_what_gzip_reads_and_level_1_where_nobody_chooses() {
    let bench = Bench::new();
    let body = fs::read(bench.path("body")).unwrap();
    let listed = bench.terse(&["--engines"], None);
    assert!(String::from_utf8_lossy(&listed.stdout).lines().any(|line| line.starts_with("isal ")), "{listed:?}");
    let packed = |words: &[&str]| {
        let (read, code, said) = bench.packed(words, None);
        assert!(read == body && code == Some(0) && said.is_empty(), "{words:?}: {code:?} {said}");
        fs::read(bench.path("out.gz")).unwrap()
    };
    let first = packed(&["-1", "--engine=isal"]);
    assert!(packed(&["-1"]) == first, "it is what -1 is made with");
    packed(&["-9", "-p1", "--engine=isal"]);
    assert!(packed(&["-2"]) != first && packed(&["-1", "--engine=libdeflate"]) != first);
    let gzip = Command::new("gzip").args(["-1c", "body"]).current_dir(bench.0.path()).output().unwrap().stdout;
    assert!(first.len() <= gzip.len(), "{} beside {}", first.len(), gzip.len());
}

#[test]
fn what_an_engine_fails_at_is_software_s_and_told() {
    let bench = Bench::new();
    let body = fs::read(bench.path("body")).unwrap();
    let faults = bench.path("faults");
    for text in ["error 1", "garbage 1", "noise 1", "abort 1", "seed 5\nerror 0.2\ngarbage 0.2\nnoise 0.1\nabort 0.1\ndie 0.1"] {
        fs::write(&faults, text).unwrap();
        let (read, code, said) = bench.packed(&["--engine=card", "--config=engines.cfg"], Some(&faults));
        assert!(read == body, "{text}");
        assert!(code == Some(2) && said.starts_with("gzip: engine card: software did "), "{text}: {code:?} {said}");
        let (_, code, said) = bench.packed(&["-q", "--engine=card", "--config=engines.cfg"], Some(&faults));
        assert_eq!((code, &*said), (Some(2), ""));
    }
}

#[test]
fn engines_are_listed_and_missing_ones_are_named() {
    let bench = Bench::new();
    let listed = bench.terse(&["--engines", "--config", "engines.cfg"], None);
    let text = String::from_utf8(listed.stdout).unwrap();
    assert!(text.contains("libdeflate") && text.contains("card") && text.contains("/lib/other.so, verified: checksum"), "{text}");
    for (words, said) in [
        (&["--engine=abacus", "--config=engines.cfg", "body"][..], "no engine 'abacus'; there are deflate, libdeflate"),
        (&["--engine=abacus", "--config=none.cfg", "body"], "none.cfg"),
        (&["--engine=other", "--config=engines.cfg", "body"], "engine other: /lib/other.so cannot be loaded"),
        (&["--engine=./body", "body"], "cannot be loaded"),
        (&["--engine=card", "--zstd", "--config=engines.cfg", "body"], "it makes gzip, not zstd"),
    ] {
        let output = bench.terse(words, None);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && text.contains(said), "{words:?}: {text}");
        assert!(bench.path("body").exists() && !bench.path("body.gz").exists());
    }
    fs::write(bench.path("wrong.cfg"), "engine card\n libary x\n").unwrap();
    let output = bench.terse(&["--engine=card", "--config=wrong.cfg", "body"], None);
    assert!(String::from_utf8_lossy(&output.stderr).contains("wrong.cfg:2]"), "{output:?}");
}
