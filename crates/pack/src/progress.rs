//! A progress line on the terminal.

use crate::report::write_error;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Progress of a file. Shown only on a terminal, and only for long work.
pub(crate) struct Progress {
    name: String,
    total: Option<u64>,
    done: AtomicU64,
    begun: Instant,
    /// Time of the last drawing; `None` inside: not yet. No lock where nothing is shown.
    drawn: Option<Mutex<Option<Instant>>>,
}

/// Time before which nothing is shown.
const PATIENCE: Duration = Duration::from_millis(700);
/// Interval of drawings.
const PAUSE: Duration = Duration::from_millis(200);
/// Width of the bar, in columns.
const BAR: u64 = 24;

impl Progress {
    /// Progress of a file of that name, and of that length if it is known.
    pub(crate) fn new(name: &str, total: Option<u64>, quiet: bool) -> Progress {
        let is_shown = !quiet && std::io::stderr().is_terminal();
        Progress {
            name: name.chars().filter(|c| !c.is_control()).take(30).collect(),
            total,
            done: AtomicU64::new(0),
            begun: Instant::now(),
            drawn: is_shown.then(|| Mutex::new(None)),
        }
    }

    /// Adds processed bytes.
    pub(crate) fn add(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if let Some(drawn) = &self.drawn
            && self.begun.elapsed() > PATIENCE
            && let Ok(mut drawn) = drawn.try_lock()
            && drawn.is_none_or(|time| time.elapsed() > PAUSE)
        {
            *drawn = Some(Instant::now());
            write_error(&format!("\r{}\x1b[K", line(&self.name, done, self.total, self.begun.elapsed())));
        }
    }
}

/// Removes the line.
impl Drop for Progress {
    fn drop(&mut self) {
        let was_drawn = self.drawn.as_mut().and_then(|drawn| drawn.get_mut().ok()).is_some_and(|drawn| drawn.is_some());
        if was_drawn {
            write_error("\r\x1b[K");
        }
    }
}

fn line(name: &str, done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(0.001);
    let told = format!("{:.0} MB, {:.0} MB/s", done as f64 / 1e6, rate / 1e6);
    match total.filter(|total| *total >= done && *total > 0) {
        Some(total) => {
            let filled = (done as u128 * u128::from(BAR) / u128::from(total)) as usize;
            let bar = format!("{}{}", "#".repeat(filled), ".".repeat(BAR as usize - filled));
            let left = ((total - done) as f64 / rate.max(1.0)).min(359_999.0) as u64;
            format!("{name}  [{bar}] {:3} %  {told}, {}:{:02} left", done as u128 * 100 / u128::from(total), left / 60, left % 60)
        }
        None => format!("{name}  {told}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_and_how_long() {
        let second = Duration::from_secs(1);
        assert_eq!(
            line("x", 50_000_000, Some(200_000_000), second),
            "x  [######..................]  25 %  50 MB, 50 MB/s, 0:03 left"
        );
        assert_eq!(line("x", 5_000_000, None, second), "x  5 MB, 5 MB/s");
        assert_eq!(line("x", 5_000_000, Some(1), second), "x  5 MB, 5 MB/s", "a file that grew");
    }
}
