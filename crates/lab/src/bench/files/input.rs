//! The files that are compressed.

use super::scenario::Input;
use crate::bench::Options;
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The files, made when they are first wanted.
#[derive(Debug)]
pub(in crate::bench) struct Inputs {
    folder: tempfile::TempDir,
    is_quick: bool,
    corpora: Option<PathBuf>,
}

impl Inputs {
    pub(in crate::bench) fn new(options: &Options) -> Result<Inputs> {
        let folder = tempfile::Builder::new().prefix("terse-files-").tempdir()?;
        Ok(Inputs { folder, is_quick: options.is_quick, corpora: options.corpora.clone() })
    }

    /// Reason why this machine lacks the source of the input; `None` if it has it.
    pub(super) fn missing(&self, input: Input) -> Option<&'static str> {
        let is_missing = input != Input::Image && self.corpora.is_none();
        is_missing.then_some("TERSE_CORPORA names no folder with the Canterbury corpus")
    }

    /// The input's file.
    pub(super) fn path(&self, input: Input) -> Result<PathBuf> {
        let name = match input {
            Input::Image => "usr.iso".to_owned(),
            Input::Corpus => "canterbury.tar".to_owned(),
            Input::CorpusTimes(times) => format!("canterbury-{times}"),
        };
        let path = self.folder.path().join(name);
        if !path.exists() {
            match input {
                Input::Image => self.make_image(&path)?,
                Input::Corpus => self.make_tar(&path)?,
                Input::CorpusTimes(times) => self.make_long(&path, times)?,
            }
        }
        Ok(path)
    }

    /// The image takes half a minute to make: it is kept beside this program.
    fn make_image(&self, path: &Path) -> Result<()> {
        let program = std::env::current_exe()?;
        let kept = program.parent().context("this program's folder")?.join(KEPT_IMAGE);
        if fs::metadata(&kept).map(|file| file.len()).ok() != Some(IMAGE_BYTES) {
            eprintln!("  making {}", kept.display());
            let part = kept.with_extension("part");
            write_image(&part)?;
            fs::rename(&part, &kept)?;
        }
        if !self.is_quick {
            return Ok(std::os::unix::fs::symlink(kept, path)?);
        }
        let mut image = File::open(kept)?;
        // An image begins with lists of its files, which are not like their contents.
        image.seek(SeekFrom::Start(IMAGE_BYTES / 2))?;
        io::copy(&mut image.take(IMAGE_BYTES / 10), &mut File::create(path)?)?;
        Ok(())
    }

    fn make_tar(&self, path: &Path) -> Result<()> {
        let folder = self.corpora.as_deref().context("TERSE_CORPORA")?.join("canterbury");
        let mut command = Command::new("tar");
        command.args(["--sort=name", "--owner=0", "--group=0", "--mtime=@0", "-cf"]).arg(path).arg("-C").arg(&folder).arg(".");
        let output = command.stdin(Stdio::null()).output().context("starting tar")?;
        ensure!(output.status.success(), "tar: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(())
    }

    fn make_long(&self, path: &Path, times: usize) -> Result<()> {
        let once = fs::read(self.path(Input::Corpus)?)?;
        let mut file = File::create(path)?;
        (0..times).try_for_each(|_| file.write_all(&once))?;
        Ok(())
    }
}

/// Takes as much of genisoimage's image as is wanted: the rest is not made.
fn write_image(path: &Path) -> Result<()> {
    let mut command = Command::new("genisoimage");
    command.args(["-quiet", "-R", "-o", "-", "/usr"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().context("starting genisoimage")?;
    let image = child.stdout.take().context("its output")?;
    let written = io::copy(&mut image.take(IMAGE_BYTES), &mut File::create(path)?);
    // It ends at the next byte, which is not read.
    child.wait()?;
    match written? {
        IMAGE_BYTES => Ok(()),
        bytes => bail!("genisoimage's image of /usr has {bytes} bytes, fewer than {IMAGE_BYTES}"),
    }
}

const KEPT_IMAGE: &str = "usr.iso";
/// Size of the founding document's file.
const IMAGE_BYTES: u64 = 533_000_000;
