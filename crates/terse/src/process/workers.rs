//! Number of workers, and the processors that each may use.

use super::settings::ProcessSettings;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeSet;
use std::io;
use std::ops::RangeInclusive;

/// The most workers.
pub const MOST: usize = 1024;

/// A `cpu-map` line: workers, and the processors that they get.
///
/// HAProxy counts threads inside groups. Workers are not grouped here; with `thread-groups` they are counted as if they were, in
/// equal parts, so that a file's map means the same processors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessorMap {
    /// `auto:`: one processor for each worker instead of all for all.
    pub spread: bool,
    /// Groups, from 1.
    pub groups: NumberSet,
    /// Workers in each group, from 1.
    pub workers: NumberSet,
    /// Processors, from 0, ascending.
    pub processors: Vec<usize>,
}

/// `all`, `odd`, `even`, `n`, `n-` or `n-m`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NumberSet {
    range: RangeInclusive<usize>,
    step: usize,
}

impl NumberSet {
    /// Reads a set of numbers between 1 and [`MOST`].
    pub fn parse(word: &str) -> Result<NumberSet, String> {
        let (range, step) = match word {
            "all" => (1..=MOST, 1),
            "odd" => (1..=MOST, 2),
            "even" => (2..=MOST, 2),
            _ => (range(word, 1, MOST)?, 1),
        };
        Ok(NumberSet { range, step })
    }

    /// True if there is an end that the file has set itself.
    fn is_bounded(&self) -> bool {
        *self.range.end() < MOST
    }

    fn has(&self, n: usize) -> bool {
        self.range.contains(&n) && (n - self.range.start()).is_multiple_of(self.step)
    }

    /// Number of members before `n`.
    fn rank(&self, n: usize) -> usize {
        (n - self.range.start()) / self.step
    }

    fn len(&self) -> usize {
        (self.range.end() + 1 - self.range.start()).div_ceil(self.step)
    }
}

impl ProcessorMap {
    /// Parses `[auto:]<group>[/<worker>]` and the sets of processors after it.
    ///
    /// # Errors
    /// The index of the wrong argument among those given, and the reason.
    pub fn parse(words: &[&str]) -> Result<ProcessorMap, (usize, String)> {
        let [first, sets @ ..] = words else { return Err((0, "expects a thread set".into())) };
        let (spread, set) = first.strip_prefix("auto:").map_or((false, *first), |rest| (true, rest));
        let (groups, workers) = set.split_once('/').unwrap_or((set, "all"));
        let groups = NumberSet::parse(groups).map_err(|e| (0, e))?;
        let workers = NumberSet::parse(workers).map_err(|e| (0, e))?;
        if sets.is_empty() {
            return Err((0, "expects at least one set of processors".into()));
        }
        let mut processors = Vec::new();
        for (at, word) in sets.iter().enumerate() {
            for part in word.split(',') {
                processors.extend(range(part, 0, CpuSet::MAX_CPU - 1).map_err(|e| (at + 1, e))?);
            }
        }
        processors.sort_unstable();
        processors.dedup();
        let map = ProcessorMap { spread, groups, workers, processors };
        match map.spread && map.workers.is_bounded() && map.workers.len() != map.processors.len() {
            true => Err((0, format!("{} threads and {} processors cannot be paired", map.workers.len(), map.processors.len()))),
            false => Ok(map),
        }
    }

    /// The processors that this line gives to a worker of a group, both counted from 1.
    fn choose(&self, group: usize, worker: usize) -> Option<&[usize]> {
        if !self.groups.has(group) || !self.workers.has(worker) {
            return None;
        }
        match self.spread {
            false => Some(&self.processors),
            true => {
                let rank = self.workers.rank(worker);
                self.processors.get(rank..=rank)
            }
        }
    }
}

/// Number of processors that the process may use: one worker each unless `nbthread` sets another number.
pub fn default_count() -> usize {
    sched_getaffinity(None).map_or(1, |set| set.count() as usize).clamp(1, MOST)
}

/// Number of workers to start.
pub fn count(settings: &ProcessSettings) -> usize {
    settings.workers.unwrap_or_else(|| default_count().min(settings.workers_most.unwrap_or(MOST))).max(1)
}

/// Processors of each worker; `None` where no line sets them. A later line replaces an earlier one.
pub fn processors(settings: &ProcessSettings) -> Vec<Option<Vec<usize>>> {
    let count = count(settings);
    let group_size = count.div_ceil(settings.groups.unwrap_or(1).max(1));
    (0..count)
        .map(|index| {
            let (group, worker) = (index / group_size + 1, index % group_size + 1);
            settings.processors.iter().rev().find_map(|map| map.choose(group, worker)).map(<[usize]>::to_vec)
        })
        .collect()
}

/// True if there are more processors than the workers can use at the same time.
pub fn leave_some(settings: &ProcessSettings) -> bool {
    default_count() > used(&processors(settings).into_iter().map(|chosen| chosen.and_then(present)).collect::<Vec<_>>())
}

/// Those of the processors that the process may use; `None` where there is none, and a worker has its choice.
pub fn present(processors: Vec<usize>) -> Option<Vec<usize>> {
    let Ok(here) = sched_getaffinity(None) else { return Some(processors) };
    let found: Vec<usize> = processors.into_iter().filter(|&cpu| cpu < CpuSet::MAX_CPU && here.is_set(cpu)).collect();
    (!found.is_empty()).then_some(found)
}

/// Number of processors that workers can use at the same time.
fn used(workers: &[Option<Vec<usize>>]) -> usize {
    let bound = workers.iter().flatten();
    let processors: BTreeSet<usize> = bound.clone().flatten().copied().collect();
    let bound = bound.count();
    workers.len() - bound + bound.min(processors.len())
}

/// Keeps the calling thread on these processors.
///
/// # Errors
/// `EINVAL` when none of them exists or may be used.
pub fn pin(processors: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    processors.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// `n`, `n-` or `n-m`.
fn range(word: &str, least: usize, most: usize) -> Result<RangeInclusive<usize>, String> {
    let number = |text: &str| text.parse().ok().filter(|n| (least..=most).contains(n));
    let (from, to) = match word.split_once('-') {
        None => (number(word), number(word)),
        Some((from, "")) => (number(from), Some(most)),
        Some((from, to)) => (number(from), number(to)),
    };
    match (from, to) {
        (Some(from), Some(to)) if from <= to => Ok(from..=to),
        (Some(from), Some(to)) => Ok(to..=from),
        _ => Err(format!("'{word}' is not a number or range between {least} and {most}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(line: &str) -> Result<ProcessorMap, (usize, String)> {
        ProcessorMap::parse(&line.split(' ').collect::<Vec<_>>())
    }

    fn spread(lines: &[&str], workers: usize, groups: usize) -> Vec<Option<Vec<usize>>> {
        let maps = lines.iter().map(|line| map(line).unwrap()).collect();
        processors(&ProcessSettings {
            workers: Some(workers),
            groups: Some(groups),
            processors: maps,
            ..ProcessSettings::default()
        })
    }

    #[test]
    fn auto_gives_each_worker_its_own() {
        for line in ["auto:1/1-4 0-3", "auto:1/1-4 0-1 2-3", "auto:1/1-4 3 2 1 0", "auto:1/1-4 3,2,1,0"] {
            assert_eq!(spread(&[line], 4, 1), (0..4).map(|cpu| Some(vec![cpu])).collect::<Vec<_>>(), "{line}");
        }
        assert_eq!(spread(&["auto:1/even 4-5"], 4, 1), [None, Some(vec![4]), None, Some(vec![5])]);
    }

    #[test]
    fn without_auto_all_share_and_later_lines_win() {
        assert_eq!(spread(&["1/all 0-1", "1/2 3"], 3, 1), [Some(vec![0, 1]), Some(vec![3]), Some(vec![0, 1])]);
        assert_eq!(spread(&["1 0", "2 1"], 2, 1), [Some(vec![0]), Some(vec![0])], "there is no second group");
        assert_eq!(spread(&["1 0", "2 1"], 4, 2), [vec![0], vec![0], vec![1], vec![1]].map(Some));
    }

    #[test]
    fn workers_use_a_processor_each_and_no_more_than_they_are_bound_to() {
        let used = |lines: &[&str], workers| used(&spread(lines, workers, 1));
        assert_eq!(used(&[], 4), 4);
        assert_eq!(used(&["auto:1/1-4 0-3"], 4), 4);
        assert_eq!(used(&["1/all 0-1"], 4), 2);
        assert_eq!(used(&["1/all 0-7"], 4), 4);
        assert_eq!(used(&["1/1-2 0"], 4), 3, "two have one, the others any");
    }

    #[test]
    fn sets_that_cannot_be_are_refused() {
        assert!(map("auto:1/1-4 0").unwrap_err().1.contains("4 threads and 1 processors"));
        assert!(map("auto:1/1 0-3").is_err());
        assert_eq!(map("1 0 x").unwrap_err().0, 2);
        assert_eq!(map("1").unwrap_err().0, 0);
        assert_eq!(map("0 1").unwrap_err().0, 0);
    }
}
