//! Libraries with zlib's API, called as they are, by threads of this process and in a process of their own, through the cases that all
//! engines pass. The libraries are the system's zlib and the test card.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;
use support::{PATIENCE, until};
use terse_card::keeper::{Keeper, Launch};
use terse_card::local::Local;
use terse_card::remote::Remote;
use terse_card::zlib::Library;
use terse_compress::device::{Coded, Device, Failure, Order, Piece, Pieces, Wrapper, room_for};
use terse_compress::engine::Source;
use terse_compress::{EngineSettings, Level, Limit};
use terse_trial::{Form, Whole, whole};

const WRAPPERS: [Wrapper; 2] = [Wrapper::Gzip, Wrapper::Zlib];

fn libraries() -> [PathBuf; 2] {
    // Cargo has built the card beside this program.
    let card = std::env::current_exe().unwrap().with_file_name("libterse_testcard.so");
    assert!(card.exists(), "{} is not there", card.display());
    [card, PathBuf::from("libz.so.1")]
}

fn form(wrapper: Wrapper) -> Form {
    match wrapper {
        Wrapper::Gzip => Form::Gzip,
        Wrapper::Zlib => Form::Zlib,
    }
}

/// A library, given room that ends.
struct Called {
    name: String,
    library: Library,
    wrapper: Wrapper,
}

impl Whole for Called {
    fn name(&self) -> String {
        format!("{}, called, {:?}", self.name, self.wrapper)
    }

    fn form(&self) -> Form {
        form(self.wrapper)
    }

    fn levels(&self) -> Vec<u8> {
        (1..=9).collect()
    }

    fn code(&self, body: &[u8], level: u8, out: &mut Vec<u8>) -> Result<(), String> {
        let mut room = vec![0; self.bound(body.len())];
        let given = self.code_into(body, level, &mut room).unwrap()?;
        out.extend_from_slice(&room[..given]);
        Ok(())
    }

    fn bound(&self, bytes: usize) -> usize {
        room_for(bytes)
    }

    fn code_into(&self, body: &[u8], level: u8, room: &mut [u8]) -> Option<Result<usize, String>> {
        let coded = self.library.code(body.chunks(7777), self.wrapper, Level(level), room);
        Some(coded.map_err(|code| format!("zlib's {code}")))
    }
}

/// A device that is given orders.
struct Ordered {
    name: String,
    device: Box<dyn Device>,
    wrapper: Wrapper,
    levels: Vec<u8>,
    tickets: AtomicU64,
    /// A job was given up: its process may be being started again.
    may_refuse: AtomicBool,
}

impl Ordered {
    fn new(name: &str, device: Box<dyn Device>, wrapper: Wrapper) -> Ordered {
        let levels = (1..=9).collect();
        Ordered { name: name.into(), device, wrapper, levels, tickets: AtomicU64::new(1), may_refuse: AtomicBool::new(false) }
    }

    /// In pieces, which a device may have to join.
    fn order(&self, body: &[u8], level: u8) -> Result<Vec<u8>, Failure> {
        let (tell, told) = channel();
        let ending = Box::new(move |result: Result<Coded, Failure>| tell.send(result).unwrap());
        let pieces = body.chunks(300_000).map(|piece| Arc::new(piece.to_vec()) as Arc<dyn Piece>);
        let ticket = self.tickets.fetch_add(1, Relaxed);
        self.device.submit(vec![Order::new(ticket, Pieces::new(pieces.collect()), self.wrapper, Level(level), ending)]);
        told.recv_timeout(PATIENCE).unwrap().map(|coded| coded.bytes)
    }
}

impl Whole for Ordered {
    fn name(&self) -> String {
        format!("{}, {:?}", self.name, self.wrapper)
    }

    fn form(&self) -> Form {
        form(self.wrapper)
    }

    fn levels(&self) -> Vec<u8> {
        self.levels.clone()
    }

    fn code(&self, body: &[u8], level: u8, out: &mut Vec<u8>) -> Result<(), String> {
        let coded = until("a device that takes orders", || match self.order(body, level) {
            Err(Failure::Refused | Failure::Swept) if self.may_refuse.load(Relaxed) => None,
            result => Some(result),
        });
        self.may_refuse.store(false, Relaxed);
        out.extend(coded.map_err(|failure| format!("{failure:?}"))?);
        Ok(())
    }

    fn bound(&self, bytes: usize) -> usize {
        room_for(bytes)
    }

    fn abandon(&self, body: &[u8], level: u8) {
        let ticket = self.tickets.fetch_add(1, Relaxed);
        self.may_refuse.store(true, Relaxed);
        self.device.submit(vec![Order::new(ticket, body.to_vec().into(), self.wrapper, Level(level), Box::new(drop))]);
        self.device.overdue(ticket);
    }
}

/// Four threads give orders, and one that was given up keeps its place until it comes back.
fn settings(source: Source) -> EngineSettings {
    EngineSettings { source, threads: 2, said_jobs: Some(6), largest: 2 << 20, ..EngineSettings::default() }
}

fn apart(source: Source) -> Remote {
    let launch = Launch { program: Path::new(env!("CARGO_BIN_EXE_terse")), user: None, group: None, forget: &[], quiet: false };
    let settings = settings(source);
    let keeper = Keeper::start(&launch, &settings).unwrap();
    Remote::open(keeper, &settings, Arc::new(Limit::new(64 << 20))).unwrap()
}

#[test]
fn libraries_that_are_called() {
    for path in libraries() {
        for wrapper in WRAPPERS {
            let (name, library) = (path.display().to_string(), Library::open(&path).unwrap());
            whole::try_all(&Called { name, library, wrapper });
        }
    }
}

#[test]
fn libraries_within_this_process() {
    for path in libraries() {
        for wrapper in WRAPPERS {
            let device = Local::open(Library::open(&path).unwrap(), &settings(Source::Library(path.clone()))).unwrap();
            whole::try_all(&Ordered::new(&format!("{} within", path.display()), Box::new(device), wrapper));
        }
    }
}

#[test]
fn libraries_in_processes_of_their_own() {
    for path in libraries() {
        for wrapper in WRAPPERS {
            let face = Ordered::new(&format!("{} apart", path.display()), Box::new(apart(Source::Library(path.clone()))), wrapper);
            whole::try_all(&face);
            assert!(face.order(&vec![0; (2 << 20) + 1], 6).is_err(), "{}: a body larger than its largest", face.name);
            assert!(face.device.status().version.is_some_and(|version| version.starts_with('1')), "{}", face.name);
        }
    }
}

/// The GPU of this machine where `TERSE_TEST_GPU` is set, and otherwise its emulation, which cargo has built beside this program.
#[test]
fn a_gpu() {
    let folder = tempfile::TempDir::new().unwrap();
    if std::env::var_os("TERSE_TEST_GPU").is_none() {
        let emulation = std::env::current_exe().unwrap().with_file_name("libterse_testcuda.so");
        assert!(emulation.exists(), "{} is not there", emulation.display());
        std::os::unix::fs::symlink(emulation, folder.path().join("libcuda.so.1")).unwrap();
    }
    let program = folder.path().join("terse");
    let script = format!(
        "#!/bin/sh\nexport LD_LIBRARY_PATH=\"{}:$LD_LIBRARY_PATH\"\nexec {} \"$@\"\n",
        folder.path().display(),
        env!("CARGO_BIN_EXE_terse")
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let launch = Launch { program: &program, user: None, group: None, forget: &[], quiet: false };
    for wrapper in WRAPPERS {
        let settings = settings(Source::Cuda(0));
        // A process that another test starts just now has the script open for writing until it becomes another program.
        let keeper = until("a keeper", || Keeper::start(&launch, &settings).ok());
        let device = Remote::open(keeper, &settings, Arc::new(Limit::new(64 << 20))).unwrap();
        // It knows one way to compress.
        let face = Ordered { levels: vec![6], ..Ordered::new("a GPU", Box::new(device), wrapper) };
        whole::try_all(&face);
        assert!(face.order(&vec![0; (2 << 20) + 1], 6).is_err(), "a body larger than its largest");
        assert!(face.device.status().version.is_some_and(|version| version.contains("/CUDA-")), "{:?}", face.device.status());
    }
}
