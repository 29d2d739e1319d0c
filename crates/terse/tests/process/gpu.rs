//! `device cuda` end to end, with an emulation of a GPU and its driver in place of both. Clients see nothing of it but their
//! responses; the view of operators is tested too.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::client::Client;
use support::gzip::gunzip;
use support::origin::Origin;
use support::random::Random;
use support::{Terse, until};
use tempfile::TempDir;

/// A folder where the loader finds the emulation, which cargo has built beside this program, as CUDA's driver.
fn driver() -> TempDir {
    let emulation = std::env::current_exe().unwrap().with_file_name("libterse_testcuda.so");
    assert!(emulation.exists(), "{} is not there", emulation.display());
    let folder = TempDir::new().unwrap();
    std::os::unix::fs::symlink(emulation, folder.path().join("libcuda.so.1")).unwrap();
    folder
}

/// 20 to 60 KB; no two are alike.
fn body(number: u64) -> Vec<u8> {
    let mut random = Random::new(number);
    let size = 20_000 + random.below(40_000);
    let mut body = format!("{number}: ").into_bytes();
    while body.len() < size {
        body.extend_from_slice(random.pick(&["lorem ", "ipsum ", "dolor ", "sit ", "amet, ", "7919 ", "\n"]).as_bytes());
    }
    body
}

struct Site {
    terse: Terse,
    _origin: Origin,
    _driver: TempDir,
}

impl Site {
    /// With these lines in the engine's section, and a driver that misbehaves in this way.
    fn start(lines: &str, faults: &str) -> Site {
        let origin = Origin::start(|request, stream| {
            let number = request.line.split(' ').nth(1).and_then(|path| path.trim_start_matches('/').parse().ok()).unwrap_or(0);
            let body = body(number);
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(&body);
        });
        let text = format!(
            "global\n stats socket ${{dir}}/stats level admin\n{}\nengine gpu\n device cuda\n smallest 1k\n{lines}\n\
             listen web\n bind fd@${{web}}\n compression algo gzip\n compression level gzip 6\n compression memory off\n\
             compression engine gpu\n server s {}\n",
            support::proxy::DEFAULTS,
            origin.address(),
        );
        let driver = driver();
        let terse = Terse::with(&text).file("faults", faults).listen("web");
        let faults = terse.path("faults");
        let terse = terse.env("LD_LIBRARY_PATH", driver.path().to_str().unwrap());
        let terse = terse.env("TERSE_TESTCUDA_FAULTS", faults.to_str().unwrap()).start();
        Site { terse, _origin: origin, _driver: driver }
    }

    fn fail(&self, how: &str) {
        self.terse.rewrite("faults", how);
    }

    fn figure(&self, column: &str) -> String {
        self.terse.engine(column)
    }

    fn number(&self, column: &str) -> u64 {
        self.figure(column).parse().unwrap()
    }

    fn wait(&self, state: &str) {
        until(state, || (self.figure("state") == state).then_some(()));
    }

    /// Asks for a body, which must be right.
    fn ask(&self, client: &mut Client, number: u64) {
        let response = client.get(&format!("/{number}"), &[("Accept-Encoding", "gzip")]);
        assert_eq!((response.status, response.field("content-encoding")), (200, Some("gzip")), "{number}");
        assert!(gunzip(&response.body) == body(number), "{number}: another body");
    }

    /// Sends requests until a figure has grown: a body whose server pauses, as happens on a busy machine, becomes a stream, which
    /// no engine gets.
    fn ask_until(&self, client: &mut Client, column: &str) {
        let (before, mut number) = (self.number(column), 0);
        until(column, || {
            number += 1;
            self.ask(client, number);
            (self.number(column) > before).then_some(())
        });
    }
}

#[test]
fn bodies_go_through_the_gpu() {
    let site = Site::start("verify full\n deadline 20s\n", "");
    site.wait("UP");
    let mut client = site.terse.client();
    site.ask_until(&mut client, "jobs");
    assert_eq!((site.figure("version"), site.figure("library")), ("Emulated_GPU/CUDA-13.0".to_owned(), "cuda:0".to_owned()));
    assert_eq!((site.number("lied"), site.number("error")), (0, 0));
    site.terse.end();
}

#[test]
fn a_gpu_that_fails_is_not_seen_and_comes_back() {
    for (fault, cause) in [("error", "error"), ("garbage", "lied"), ("abort", "died"), ("hang", "late")] {
        let site = Site::start("verify full\n deadline 2s\n inter 30ms\n fall 2\n", "");
        site.wait("UP");
        let mut client = site.terse.client();
        site.fail(&format!("{fault} 1"));
        site.ask_until(&mut client, cause);
        if fault == "error" {
            // The state that a kernel's fault leaves is of no use: another process begins anew.
            until("another process", || (site.number("starts") >= 2).then_some(()));
        }
        site.fail("");
        site.wait("UP");
        site.ask_until(&mut client, "jobs");
        site.terse.end();
    }
}

#[test]
fn without_a_gpu_software_does_the_work_and_that_is_told() {
    for (faults, said) in [("absent\n", "CUDA_ERROR_NO_DEVICE"), ("full\n", "CUDA_ERROR_OUT_OF_MEMORY")] {
        let site = Site::start("inter 30ms\n", faults);
        let mut client = site.terse.client();
        for number in 0..4 {
            site.ask(&mut client, number);
        }
        until("its trouble", || site.figure("trouble").contains(said).then_some(()));
        assert_eq!(site.number("jobs"), 0);
        // It is looked for again and again.
        site.fail("");
        site.wait("UP");
        site.terse.end();
    }
}

#[test]
fn a_configuration_is_good_where_its_gpu_is_not() {
    let text = "engine e\n device cuda 7\nlisten l\n mode http\n bind 127.0.0.1:0\n";
    let (present, absent) = (driver(), TempDir::new().unwrap());
    fs::write(absent.path().join("libcuda.so.1"), "none").unwrap();
    for (folder, reason) in [(&present, "cuda:7 is not there: this machine has 1"), (&absent, "NVIDIA's driver is not there")] {
        let checked = Terse::with(text).env("LD_LIBRARY_PATH", folder.path().to_str().unwrap()).arg(&["-c"]).run();
        assert_eq!(checked.status.code(), Some(0), "{}", checked.stderr);
        let warning = checked.stderr.lines().find(|line| line.contains("[WARNING]") && line.contains("terse.cfg:2]"));
        assert!(warning.is_some_and(|line| line.contains(reason) && line.contains("software does")), "{}", checked.stderr);
    }
}

#[test]
fn files_are_compressed_by_the_gpu() {
    let (driver, folder) = (driver(), TempDir::new().unwrap());
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let input: Vec<u8> = (0..8).flat_map(body).collect();
    fs::write(path("body"), &input).unwrap();
    let packed = |words: &[&str], faults: Option<&Path>| {
        let _ = fs::remove_file(path("out.gz"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_terse"));
        command.args(["gzip", "-n"]).args(words).args(["-f=body", "-o=out.gz"]).current_dir(folder.path());
        command.env("LD_LIBRARY_PATH", driver.path()).envs(faults.map(|file| ("TERSE_TESTCUDA_FAULTS", file)));
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for words in [["--engine=cuda"], ["--engine=cuda:0"]] {
        assert_eq!(packed(&words, None), (Some(0), String::new()), "{words:?}");
        assert!(gunzip(&fs::read(path("out.gz")).unwrap()) == input, "{words:?}");
    }
    fs::write(path("faults"), "error 1\n").unwrap();
    let (code, said) = packed(&["--engine=cuda"], Some(&path("faults")));
    assert!(code == Some(2) && said.contains("gzip: engine cuda: software did"), "{code:?} {said}");
    assert!(gunzip(&fs::read(path("out.gz")).unwrap()) == input);
    // A section of that name goes first.
    fs::write(path("engines.cfg"), "engine cuda\n library /no/such.so\n").unwrap();
    let (code, said) = packed(&["--engine=cuda", "--config=engines.cfg"], None);
    assert!(code == Some(1) && said.contains("/no/such.so cannot be loaded"), "{code:?} {said}");
    let (code, said) = packed(&["--engine=cuda:3"], None);
    assert!(code == Some(1) && said.contains("cuda:3 is not there: this machine has 1"), "{code:?} {said}");
}
