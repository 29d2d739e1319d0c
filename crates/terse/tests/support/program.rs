//! Programs that are not ours. Tests that need a program that is not there print that and leave it out.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Output of a program.
#[derive(Debug)]
pub struct Said {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Exit status.
    pub code: Option<i32>,
}

/// Returns the path of a program; prints that a test is left out when there is none.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        println!("left out: {name} is not installed");
    }
    found
}

/// Runs a program to its end.
pub fn run(program: &PathBuf, words: &[&str]) -> Said {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { stdout: text(&output.stdout), stderr: text(&output.stderr), code: output.status.code() }
}

/// Returns curl, if it is installed: it runs with these arguments, at most for the time that anything may take.
pub fn curl() -> Option<impl Fn(&[&str]) -> Said> {
    let program = find("curl")?;
    Some(move |words: &[&str]| {
        let limit = super::PATIENCE.as_secs().to_string();
        run(&program, &[&["--max-time", &limit, "--noproxy", "*"], words].concat())
    })
}

/// A program that runs until it is dropped.
pub struct Running(Child);

impl Running {
    /// Starts it in a folder, with its output in files there.
    pub fn start(program: &Path, words: &[&str], folder: &Path) -> Running {
        let output = |name: &str| std::fs::File::create(folder.join(name)).unwrap();
        let mut command = Command::new(program);
        command.args(words).current_dir(folder).stdin(Stdio::null()).stdout(output("stdout")).stderr(output("stderr"));
        Running(command.spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
