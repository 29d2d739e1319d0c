//! `terse gzip` and `terse gunzip` beside the system's gzip: the same files, messages and exit codes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TERSE: &str = env!("CARGO_BIN_EXE_terse");

fn run(folder: &Path, program: &str, words: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(program);
    command.args(words).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // A program that refuses its input does not read it.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn terse(folder: &Path, line: &str, input: &[u8]) -> Output {
    run(folder, TERSE, &line.split(' ').collect::<Vec<_>>(), input)
}

fn succeeds(output: Output) -> Vec<u8> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    output.stdout
}

fn body(length: usize) -> Vec<u8> {
    let mut state = 1u32;
    (0..length)
        .map(|at| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if (at / 100_000) % 5 == 4 { (state >> 24) as u8 } else { b"the quick brown fox, jumping by\n"[(state >> 27) as usize] }
        })
        .collect()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn gzip_reads_ours_and_we_read_gzip_s() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    for length in [0, 1, 5000, 3_000_000] {
        let text = body(length);
        for words in ["gzip", "gzip -1 -p 1", "gzip -9 -p 3", "gzip --engine zlib-rs -p 2"] {
            let packed = succeeds(terse(at, words, &text));
            assert!(succeeds(run(at, "gzip", &["-dc"], &packed)) == text, "{words} {length}");
            assert!(succeeds(terse(at, "gunzip", &packed)) == text);
        }
        let theirs = succeeds(run(at, "gzip", &["-c"], &text));
        assert!(succeeds(terse(at, "gzip -d", &[&theirs[..], &theirs].concat())) == [&text[..], &text].concat());
        let ours = succeeds(terse(at, "gzip", &text));
        assert!(ours.len() <= theirs.len() + 18, "{length}: {} {}", ours.len(), theirs.len());
    }
}

#[test]
fn other_formats_are_their_programs_own() {
    let folder = TempDir::new().unwrap();
    let text = body(9_000_000);
    for (option, program) in [("--zstd", "zstd"), ("--br", "brotli")] {
        let packed = succeeds(terse(folder.path(), &format!("gzip {option} -p 2"), &text));
        assert!(succeeds(terse(folder.path(), &format!("gunzip {option}"), &packed)) == text);
        if Command::new(program).arg("--version").output().is_ok() {
            assert!(succeeds(run(folder.path(), program, &["-dc"], &packed)) == text, "{program}");
            let theirs = succeeds(run(folder.path(), program, &["-c", "-5"], &text));
            assert!(succeeds(terse(folder.path(), &format!("gunzip {option}"), &theirs)) == text, "{program}");
        }
    }
}

#[test]
fn a_file_takes_the_other_s_place_with_its_mode_and_time() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("file"), body(200_000)).unwrap();
    fs::set_permissions(at.join("file"), PermissionsExt::from_mode(0o640)).unwrap();
    let touched = Command::new("touch").args(["-d", "2001-02-03 04:05:06 UTC"]).arg(at.join("file")).status().unwrap();
    assert!(touched.success());
    let before = at.join("file").metadata().unwrap();
    succeeds(terse(at, "gzip file", b""));
    assert_eq!(names(at), ["file.gz"]);
    succeeds(run(at, "gzip", &["-t", "file.gz"], b""));
    succeeds(terse(at, "gunzip file", b""));
    assert_eq!(names(at), ["file"]);
    let after = at.join("file").metadata().unwrap();
    assert_eq!((before.mode(), before.mtime()), (after.mode(), after.mtime()));
    assert!(fs::read(at.join("file")).unwrap() == body(200_000));

    succeeds(terse(at, "gzip -k file", b""));
    assert_eq!(names(at), ["file", "file.gz"]);
    succeeds(terse(at, "gzip -f=file -o=card.gz", b""));
    assert_eq!(names(at), ["card.gz", "file", "file.gz"]);
    fs::rename(at.join("card.gz"), at.join("other.gz")).unwrap();
    succeeds(terse(at, "gunzip -N -f other.gz", b""));
    assert_eq!(names(at), ["file", "file.gz"], "the name in the head");
    succeeds(terse(at, "gzip -r -f -S .z9 .", b""));
    assert_eq!(names(at), ["file.gz.z9", "file.z9"]);
}

/// Messages and exit codes are those of gzip.
#[test]
fn messages_and_codes_are_gzip_s() {
    let prepare = |at: &Path| {
        fs::write(at.join("text"), body(5000)).unwrap();
        fs::create_dir(at.join("folder")).unwrap();
        let packed = succeeds(run(at, "gzip", &["-nc", "text"], b""));
        let write = |name: &str, bytes: &[u8]| fs::write(at.join(name), bytes).unwrap();
        write("whole.gz", &packed);
        write("cut.gz", &packed[..packed.len() / 2]);
        write("headless.gz", &packed[..5]);
        write("empty.gz", b"");
        write("text.gz", b"something else");
        write("garbage.gz", &[&packed[..], b"garbage"].concat());
        write("padded.gz", &[&packed[..], &[0; 512]].concat());
        write("more.gz", &[&packed[..], b"\0\0more", &packed].concat());
        write("byte.gz", &[&packed[..], b"\x1f"].concat());
        let named = |name: usize, comment: usize| {
            let head =
                [&[0x1f, 0x8b, 8, 0x18, 0, 0, 0, 0, 0, 3][..], &vec![b'n'; name], b"\0", &vec![b'c'; comment], b"\0"].concat();
            [&head[..], &packed[10..]].concat()
        };
        write("named.gz", &named(5000, 70_000));
        write("nameless.gz", &named(5000, 70_000)[..60_000]);
        for (name, from_end) in [("crc.gz", 8), ("length.gz", 1)] {
            let mut changed = packed.clone();
            let place = changed.len() - from_end;
            changed[place] ^= 0x40;
            write(name, &changed);
        }
        write("linked", b"two names");
        fs::hard_link(at.join("linked"), at.join("other-name")).unwrap();
        symlink("text", at.join("link")).unwrap();
        write("known.tgz", b"a");
    };
    for line in [
        "missing",
        "folder",
        "whole.gz",
        "known.tgz",
        "text",
        "linked",
        "link",
        "-c link",
        "/dev/null",
        "-d text",
        "-d missing",
        "-dc cut.gz",
        "-d cut.gz",
        "-t headless.gz",
        "-t empty.gz",
        "-dc text.gz",
        "-t crc.gz",
        "-t length.gz",
        "-t garbage.gz",
        "-dc padded.gz",
        "-tv whole.gz",
        "-dkv whole.gz",
        "-l whole.gz",
        "-lq whole.gz",
        "-q folder",
        "-dcf text",
        "-dcf garbage.gz",
        "-dcf padded.gz",
        "-dcf more.gz",
        "-dcf byte.gz whole.gz",
        "-dcf empty.gz text",
        "-dc more.gz",
        "-dc named.gz",
        "-d named.gz",
        "-dkN named.gz",
        "-t named.gz",
        "-t nameless.gz",
        "-t missing whole.gz folder",
        "-dc whole.gz garbage.gz missing",
    ] {
        let (ours, theirs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        prepare(ours.path());
        prepare(theirs.path());
        let words: Vec<&str> = line.split(' ').collect();
        let said = run(ours.path(), TERSE, &[&["gzip"], &words[..]].concat(), b"");
        let expected = run(theirs.path(), "gzip", &words, b"");
        let errors = |output: &Output| {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(errors(&said), errors(&expected), "{line}");
        assert_eq!(said.status.code(), expected.status.code(), "{line}");
        assert_eq!(names(ours.path()), names(theirs.path()), "{line}");
        if !line.contains("-c link") {
            assert!(said.stdout == expected.stdout, "{line}: {}", String::from_utf8_lossy(&said.stdout));
        }
    }
}

#[test]
fn what_cannot_be_written_is_told_by_its_name() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("text"), body(200_000)).unwrap();
    fs::write(at.join("packed.gz"), succeeds(run(at, "gzip", &["-c", "text"], b""))).unwrap();
    for line in ["-c text", "-dc packed.gz", "-dcf text"] {
        let [said, expected] = [(TERSE, "gzip "), ("gzip", "")].map(|(program, first)| {
            let full = fs::File::create("/dev/full").unwrap();
            let words: Vec<String> = format!("{first}{line}").split(' ').map(str::to_owned).collect();
            let output = Command::new(program).args(words).current_dir(at).stdin(Stdio::null()).stdout(full).output().unwrap();
            (output.status.code(), String::from_utf8_lossy(&output.stderr).trim().to_owned())
        });
        assert_eq!(said, expected, "{line}");
        assert_eq!(said.1, "gzip: stdout: No space left on device");
    }
    let output = terse(at, "gzip -f=text -o=missing/text.gz", b"");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "gzip: missing/text.gz: No such file or directory\n");
}

/// More than gzip's tail can count (RFC 1952 section 2.3.1: the length is taken modulo 2^32).
#[test]
fn files_of_more_than_four_gigabytes_come_back() {
    if std::env::var_os("TERSE_FULL").is_none() {
        return eprintln!("left out: TERSE_FULL=1 packs and unpacks four gigabytes");
    }
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let length = (4u64 << 30) + 12_345;
    let file = fs::File::create(at.join("large")).unwrap();
    file.set_len(length).unwrap();
    file.write_all_at(b"begin", 0).unwrap();
    file.write_all_at(b"end", length - 3).unwrap();
    for form in ["gzip", "zstd"] {
        succeeds(terse(at, &format!("gzip --{form} -f=large -o=packed"), b""));
        // Another program, or our own, where there is none: length and both ends.
        for words in [&[TERSE, "gunzip", "-c"][..], &[form, "-dc"]] {
            let packed = fs::File::open(at.join("packed")).unwrap();
            let mut child = Command::new(words[0]).args(&words[1..]).stdin(packed).stdout(Stdio::piped()).spawn().unwrap();
            let (mut out, mut part, mut first, mut last) = (child.stdout.take().unwrap(), vec![0; 1 << 20], Vec::new(), Vec::new());
            let mut count = 0u64;
            loop {
                let got = out.read(&mut part).unwrap();
                if got == 0 {
                    break;
                }
                if first.len() < 5 {
                    first.extend_from_slice(&part[..got]);
                }
                last.extend_from_slice(&part[got.saturating_sub(3)..got]);
                last.drain(..last.len().saturating_sub(3));
                count += got as u64;
            }
            assert!(child.wait().unwrap().success(), "{words:?}");
            assert_eq!((count, &first[..5], &last[..]), (length, &b"begin"[..], &b"end"[..]), "{words:?}");
        }
        fs::remove_file(at.join("packed")).unwrap();
    }
    succeeds(terse(at, "gzip -k large", b""));
    let listed = String::from_utf8(succeeds(terse(at, "gzip -l large.gz", b""))).unwrap();
    assert!(listed.contains(&length.to_string()), "{listed}");
}

#[test]
fn wrong_words_end_with_a_hint() {
    let folder = TempDir::new().unwrap();
    for line in ["gzip --nonsense", "gzip -x", "gzip --level 44", "gunzip --rsyncable", "gzip --engine abacus"] {
        let output = terse(folder.path(), line, b"");
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("--help' for more information"), "{line}");
    }
    for (line, text) in [("gzip --help", "--processes=N"), ("gzip --engines", "libdeflate"), ("gunzip -V", "terse gzip")] {
        assert!(String::from_utf8_lossy(&succeeds(terse(folder.path(), line, b""))).contains(text), "{line}");
    }
}

#[test]
fn what_is_interrupted_leaves_nothing() {
    // A process that is started in the background of a script ignores the keyboard's interrupt, and so do its children.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignores_interrupts = u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 << (Signal::INT.as_raw() - 1) != 0;
    for signal in [Signal::TERM, Signal::INT, Signal::KILL] {
        if signal == Signal::INT && ignores_interrupts {
            eprintln!("Left out: interrupts are ignored here.");
            continue;
        }
        let folder = TempDir::new().unwrap();
        let at = folder.path();
        let mut child = Command::new(TERSE)
            .args(["gzip", "-p", "2", "-o=out.gz"])
            .current_dir(at)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // When so much was taken, pieces are being written.
        let mut input = child.stdin.take().unwrap();
        input.write_all(&body(6_000_000)).unwrap();
        assert!(!at.join("out.gz").exists());
        kill_process(Pid::from_child(&child), signal).unwrap();
        // The input stays open: its end would let the work come to its own.
        assert!(!child.wait().unwrap().success());
        drop(input);
        assert_eq!(names(at), [""; 0], "{signal:?}");
    }
}

#[test]
fn a_reader_that_goes_ends_it_quietly() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("noise"), body(4_000_000)).unwrap();
    let line =
        format!("{TERSE} gzip -1 -c noise | head -c 10 | wc -c; {TERSE} gzip -kq noise; {TERSE} gunzip -c noise.gz | head -c 5");
    let output = run(folder.path(), "sh", &["-c", &line], b"");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), format!("10\n{}", String::from_utf8_lossy(&body(5))).trim());
}

#[test]
fn progress_is_shown_on_a_terminal_and_taken_away() {
    let folder = TempDir::new().unwrap();
    let begin = |words: &str, has_terminal: bool, out: &str| {
        let (reader, writer) = std::io::pipe().unwrap();
        let source = format!("/proc/{}/fd/{}", std::process::id(), reader.as_raw_fd());
        let line = format!("{TERSE} gzip -1 -c {words} <{source} >{out}");
        // script gives a command a terminal, and writes what that shows.
        let mut command = Command::new(if has_terminal { "script" } else { "sh" });
        command.args(if has_terminal { vec!["-qefc", &line, "/dev/null"] } else { vec!["-c", &line] });
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        std::thread::spawn(move || feed(writer));
        (child, reader)
    };
    let runs = [("", true), ("-q", true), ("", false)];
    let begun: Vec<_> = runs.iter().enumerate().map(|(at, (words, terminal))| begin(words, *terminal, &at.to_string())).collect();
    let ended = begun.into_iter().map(|(child, _reader)| child.wait_with_output().unwrap());
    let shown: Vec<String> = ended
        .map(|output| {
            assert!(output.status.success(), "{output:?}");
            String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
        })
        .collect();
    assert!(shown[0].contains(" MB/s"), "{:?}", shown[0]);
    assert!(shown[0].starts_with("\r") && shown[0].ends_with("\r\x1b[K"), "taken away: {:?}", shown[0]);
    assert_eq!(shown[1..], ["", ""]);
    for out in ["0", "1", "2"] {
        assert!(Command::new("gzip").arg("-t").stdin(File::open(folder.path().join(out)).unwrap()).status().unwrap().success());
    }
}

/// Text for longer than it takes until a line is shown, and some more, so that pieces are done after that.
fn feed(mut writer: impl Write) {
    let megabyte = body(1 << 20);
    writer.write_all(&megabyte).unwrap();
    // More than a pipe holds was taken: by now it reads.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(1) {
        writer.write_all(&megabyte).unwrap();
    }
    for _ in 0..8 {
        writer.write_all(&megabyte).unwrap();
    }
}

#[test]
fn terminals_are_not_written_to() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("text"), "text").unwrap();
    let line = format!("{TERSE} gzip -c text; echo code $?");
    // script(1) gives the program a terminal.
    let Ok(output) =
        Command::new("script").args(["-qec", &line, "/dev/null"]).current_dir(folder.path()).stdin(Stdio::null()).output()
    else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("compressed data not written to a terminal") && said.contains("code 1"), "{said}");
}
