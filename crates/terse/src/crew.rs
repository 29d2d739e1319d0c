//! The threads that serve.

use crate::process::workers;
use std::any::Any;
use std::io;
use std::thread::JoinHandle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Work of a thread: a worker's life.
pub struct Job {
    /// The processors that it may use; `None`: the process's.
    pub processors: Option<Vec<usize>>,
    /// Its life; it returns when the worker has been told to end.
    pub work: Box<dyn FnOnce() -> io::Result<()> + Send>,
}

/// Threads, one for each job.
#[derive(Debug)]
pub struct Crew {
    threads: Vec<Option<JoinHandle<io::Result<()>>>>,
    ends: UnboundedReceiver<usize>,
}

/// End of a thread.
#[derive(Debug)]
pub struct End {
    /// Index of the thread.
    pub index: usize,
    /// Reason, when it was not told to end.
    pub failure: Option<String>,
}

impl Crew {
    /// Starts a thread for each job.
    ///
    /// # Errors
    /// The system has no thread to give. Those that were started go on until they are told to end.
    pub fn start(jobs: Vec<Job>) -> io::Result<Crew> {
        let (tell, ends) = unbounded_channel();
        let mut threads = Vec::new();
        for (index, job) in jobs.into_iter().enumerate() {
            let farewell = Farewell { index, tell: tell.clone() };
            let body = move || {
                let _farewell = farewell;
                if let Some(processors) = job.processors {
                    workers::pin(&processors)?;
                }
                (job.work)()
            };
            threads.push(Some(std::thread::Builder::new().name(format!("worker/{index}")).spawn(body)?));
        }
        Ok(Crew { threads, ends })
    }

    /// Waits for the next thread to end; `None` once all have.
    pub async fn next_end(&mut self) -> Option<End> {
        let index = self.ends.recv().await?;
        let thread = self.threads.get_mut(index)?.take()?;
        let failure = match thread.join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(panic) => Some(panic_text(panic)),
        };
        Some(End { index, failure })
    }
}

/// Tells that a thread ends, also when it panics.
struct Farewell {
    index: usize,
    tell: UnboundedSender<usize>,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.tell.send(self.index);
    }
}

fn panic_text(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panicked: {}", text.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(jobs: Vec<Job>) -> Vec<(usize, Option<String>)> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut crew = Crew::start(jobs).unwrap();
            let mut ends = Vec::new();
            while let Some(end) = crew.next_end().await {
                ends.push((end.index, end.failure));
            }
            ends.sort();
            ends
        })
    }

    fn job(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> Job {
        Job { processors: None, work: Box::new(work) }
    }

    #[test]
    fn every_end_is_told_with_its_reason() {
        let jobs = vec![job(|| Ok(())), job(|| Err(io::Error::other("no runtime"))), job(|| panic!("a {}", "bug"))];
        assert_eq!(ends(jobs), [(0, None), (1, Some("no runtime".into())), (2, Some("panicked: a bug".into()))]);
    }

    #[test]
    fn threads_run_where_they_are_put() {
        let here = rustix::thread::sched_getaffinity(None).unwrap();
        let last = (0..rustix::thread::CpuSet::MAX_CPU).rfind(|cpu| here.is_set(*cpu)).unwrap();
        let check = move || match rustix::thread::sched_getcpu() == last {
            true => Ok(()),
            false => Err(io::Error::other("elsewhere")),
        };
        let pinned = Job { processors: Some(vec![last]), work: Box::new(check) };
        let nowhere = Job { processors: Some(vec![rustix::thread::CpuSet::MAX_CPU - 1]), work: Box::new(|| Ok(())) };
        let ends = ends(vec![pinned, nowhere]);
        assert_eq!(ends[0], (0, None));
        assert!(ends[1].1.is_some(), "a processor that does not exist");
    }
}
