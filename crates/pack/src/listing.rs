//! `-l`: sizes of compressed files, which are decompressed for it: the size that a gzip file holds is modulo 2^32, and
//! of its last member.

use crate::form::Form;
use crate::options::Options;
use crate::report::percent;
use crate::suffix;
use crate::unpack::Unpacked;
use std::fs::Metadata;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The lines so far.
#[derive(Default)]
pub(crate) struct Listing {
    files: u64,
    compressed: u64,
    uncompressed: u64,
}

impl Listing {
    /// Prints a file's line.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn add(
        &mut self,
        options: &Options,
        name: &Path,
        is_stdin: bool,
        metadata: Option<&Metadata>,
        form: Form,
        unpacked: &Unpacked,
        taken: u64,
    ) -> io::Result<()> {
        let mut text = String::new();
        if self.files == 0 && !options.quiet {
            if options.verbose {
                text += "method  crc      changed   ";
            }
            text += "         compressed        uncompressed  ratio uncompressed_name\n";
        }
        self.files += 1;
        self.compressed += taken;
        self.uncompressed += unpacked.bytes;
        if options.verbose {
            let method = if form == Form::Gzip { "defla" } else { form.name() };
            let checksum = unpacked.checksum.map_or("--------".into(), |sum| format!("{sum:08x}"));
            let time = match unpacked.header.time {
                0 => metadata.map_or(0, Metadata::mtime),
                time => time.into(),
            };
            text += &format!("{method:<6}  {checksum} {time:<10} ");
        }
        text += &sizes(taken, unpacked.frame, unpacked.bytes);
        let mut line = text.into_bytes();
        if is_stdin {
            line.extend_from_slice(b"stdout");
        } else if options.names == Some(true)
            && let Some(stored) = &unpacked.header.name
        {
            line.extend_from_slice(stored);
        } else {
            let shown = suffix::stripped(name, options.suffix.as_deref()).map_or_else(|| name.to_owned(), |(stripped, _)| stripped);
            line.extend_from_slice(shown.as_os_str().as_bytes());
        }
        line.push(b'\n');
        io::stdout().lock().write_all(&line)
    }

    /// Prints the sums, if there is more than one line.
    pub(crate) fn end(&self, options: &Options) -> io::Result<()> {
        if self.files < 2 || options.quiet {
            return Ok(());
        }
        let margin = if options.verbose { " ".repeat(28) } else { String::new() };
        let line = format!("{margin}{}(totals)\n", sizes(self.compressed, 0, self.uncompressed));
        io::stdout().lock().write_all(line.as_bytes())
    }
}

/// Ratio of the data without head and tail, as gzip has it.
fn sizes(compressed: u64, frame: u64, uncompressed: u64) -> String {
    let ratio = percent(i128::from(uncompressed) - i128::from(compressed) + i128::from(frame), uncompressed);
    format!("{compressed:>19} {uncompressed:>19} {ratio} ")
}
