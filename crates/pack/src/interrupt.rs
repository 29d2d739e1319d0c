//! Cleanup on SIGINT, SIGTERM and SIGHUP: files with a temporary name.
//!
//! Only file systems without nameless files need this ([`crate::draft`]); elsewhere signals have their usual effect.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::signal::unix::{SignalKind, signal};

/// Files to remove.
static GUARDED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
/// Whether the thread that waits for signals was started.
static WATCHED: OnceLock<()> = OnceLock::new();

/// Registers a file until [`release`]: a signal that ends the process removes it first.
///
/// # Errors
/// The system has no thread to give, or no signals.
pub(crate) fn guard(file: &Path) -> io::Result<()> {
    if WATCHED.get().is_none() {
        watch()?;
        let _ = WATCHED.set(());
    }
    guarded().insert(file.to_owned());
    Ok(())
}

/// Unregisters a file, which has its final name, or is gone.
pub(crate) fn release(file: &Path) {
    guarded().remove(file);
}

fn guarded() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    GUARDED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupt, mut terminate, mut hangup) = {
        let _entered = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?)
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let number = runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => 2,
                _ = terminate.recv() => 15,
                _ = hangup.recv() => 1,
            }
        });
        // A thread that is about to give a file its name does it now or not at all.
        let guarded = guarded();
        for file in guarded.iter() {
            let _ = std::fs::remove_file(file);
        }
        // The exit code by which a shell shows a program that the signal ended.
        std::process::exit(128 + number);
    })?;
    Ok(())
}
