//! Figures of dictionaries: of each, of each proxy that has some, and of the process. The source of `show dictionary`, the console, its API
//! and metrics.

use crate::halves::{self, Half};
use crate::history::unix_ms;
use serde::{Serialize, Serializer};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use terse_compress::dictionary::{Held, Usage};
use terse_compress::{Coding, Compression, Counters};
use terse_dictionary::Dictionary;
use terse_proxy::plan::Plan;

/// A dictionary.
#[derive(Serialize, Debug)]
pub(crate) struct OfDictionary {
    pub(crate) name: Arc<str>,
    pub(crate) hash: String,
    pub(crate) bytes: u64,
    #[serde(rename = "match")]
    pub(crate) pattern: String,
    pub(crate) path: Box<str>,
    pub(crate) age_s: u64,
    pub(crate) announced: u64,
    pub(crate) fetched: u64,
    pub(crate) offered: u64,
    pub(crate) used: u64,
    pub(crate) not_worth: u64,
    /// Answers that it was no help for, as far as they are noted.
    pub(crate) notes: u64,
    #[serde(rename = "in")]
    pub(crate) bytes_in: u64,
    #[serde(rename = "out")]
    pub(crate) bytes_out: u64,
    /// Origin of a learned one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<String>,
}

impl OfDictionary {
    /// All dictionaries of the process.
    pub(crate) fn all(plan: &Plan) -> Vec<OfDictionary> {
        let given = plan
            .dictionaries
            .all()
            .map(|dictionary| OfDictionary::of(dictionary, now_s().saturating_sub(dictionary.since_s.load(Relaxed)), None));
        let learned = plan.dictionaries.learner().list();
        let run_s = plan.started.elapsed().as_secs();
        let learned = learned
            .iter()
            .map(|one| OfDictionary::of(&one.dictionary, run_s.saturating_sub(one.since), Some(one.origin.to_string())));
        given.chain(learned).collect()
    }

    fn of(dictionary: &Dictionary, age_s: u64, origin: Option<String>) -> OfDictionary {
        let counters = &dictionary.counters;
        OfDictionary {
            name: dictionary.name.clone(),
            hash: dictionary.hash().hex(),
            bytes: dictionary.bytes().len() as u64,
            pattern: dictionary.use_as.pattern.as_str().to_owned(),
            path: dictionary.path.clone(),
            age_s,
            announced: counters.announced.load(Relaxed),
            fetched: counters.fetched.load(Relaxed),
            offered: counters.offered.load(Relaxed),
            used: counters.used.load(Relaxed),
            not_worth: counters.not_worth.load(Relaxed),
            notes: dictionary.notes.count() as u64,
            bytes_in: counters.bytes[0].load(Relaxed),
            bytes_out: counters.bytes[1].load(Relaxed),
            origin,
        }
    }
}

/// Half of a proxy that has dictionaries, or has counted what became of clients'.
#[derive(Serialize, Debug)]
pub(crate) struct OfProxy {
    pub(crate) name: Arc<str>,
    pub(crate) side: &'static str,
    pub(crate) announced: u64,
    pub(crate) offered: u64,
    /// What became of clients' dictionaries.
    #[serde(serialize_with = "by_name")]
    pub(crate) outcomes: Vec<(Usage, u64)>,
    #[serde(rename = "in")]
    pub(crate) bytes_in: u64,
    #[serde(rename = "out")]
    pub(crate) bytes_out: u64,
    /// Dictionaries that its own line names.
    pub(crate) count: u64,
    pub(crate) held: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) oldest_s: Option<u64>,
}

impl OfProxy {
    /// All of them.
    pub(crate) fn all(plan: &Plan) -> Vec<OfProxy> {
        let backends = plan.backends.now();
        let of = |half: Half<'_>| match half {
            Half::Front(_, front) => OfProxy::of(half.name(), "frontend", front.compression.as_deref(), &front.tally.compression()),
            Half::Back(back) => OfProxy::of(half.name(), "backend", back.compression.as_deref(), &back.tally.compression()),
        };
        halves::of(plan, &backends).into_iter().filter_map(of).collect()
    }

    /// The half of that name; nothing where it has nothing to do with dictionaries.
    pub(crate) fn of(name: &str, side: &'static str, lines: Option<&Compression>, counters: &Counters) -> Option<OfProxy> {
        let held =
            lines.and_then(|lines| lines.dictionary.as_ref()).filter(|line| !line.names.is_empty()).map(|line| line.given.held());
        let figures = counters.of_dictionaries();
        if held.is_none() && figures.is_none() {
            return None;
        }
        let held = held.unwrap_or_default();
        let [_, bytes_in, bytes_out] = counters.of_coding(Coding::Dcz);
        Some(OfProxy {
            name: name.into(),
            side,
            announced: figures.map_or(0, |figures| figures.announced.load(Relaxed)),
            offered: figures.map_or(0, |figures| figures.offered()),
            outcomes: figures
                .map(|figures| Usage::ALL.iter().map(|usage| (*usage, figures.of(*usage))).collect())
                .unwrap_or_default(),
            bytes_in,
            bytes_out,
            count: held.count,
            held: held.bytes,
            oldest_s: held.oldest_s(now_s()),
        })
    }

    /// Number of answers of which that became.
    pub(crate) fn outcome(&self, usage: Usage) -> u64 {
        self.outcomes.iter().find(|(one, _)| *one == usage).map_or(0, |(_, number)| *number)
    }
}

/// Folder of learned dictionaries.
#[derive(Serialize, Debug)]
pub(crate) struct OfStore {
    pub(crate) folder: String,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) failures: u64,
    pub(crate) last_failure: String,
}

impl OfStore {
    /// That of the process, if it has one.
    pub(crate) fn of(plan: &Plan) -> Option<OfStore> {
        let (place, figures) = plan.dictionaries.learner().store()?;
        Some(OfStore {
            folder: place.folder.display().to_string(),
            files: figures.files.load(Relaxed),
            bytes: figures.bytes.load(Relaxed),
            failures: figures.failures.load(Relaxed),
            last_failure: figures.last_failure(),
        })
    }
}

/// Dictionaries of the process at a glance: what frontends counted, and what is held.
#[derive(Clone, Copy, Serialize, Debug)]
pub(crate) struct OfAll {
    pub(crate) count: u64,
    pub(crate) held: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) oldest_s: Option<u64>,
    pub(crate) announced: u64,
    pub(crate) offered: u64,
    pub(crate) used: u64,
    pub(crate) unknown: u64,
    pub(crate) refused: u64,
    pub(crate) not_worth: u64,
    #[serde(rename = "in")]
    pub(crate) bytes_in: u64,
    #[serde(rename = "out")]
    pub(crate) bytes_out: u64,
}

impl OfAll {
    /// Those of a process, from the sum of its frontends; nothing where there are none.
    pub(crate) fn of(plan: &Plan, sum: &Counters) -> Option<OfAll> {
        let held = Held::of(plan.dictionaries.all().map(|dictionary| &**dictionary));
        let learned = plan.dictionaries.learner().all();
        let all = OfProxy::of("", "frontend", None, sum);
        if held.count == 0 && learned.is_empty() && all.is_none() {
            return None;
        }
        let oldest = learned.iter().map(|one| one.since).min().map(|since| plan.started.elapsed().as_secs().saturating_sub(since));
        let of = |usage: Usage| all.as_ref().map_or(0, |all| all.outcome(usage));
        let [_, bytes_in, bytes_out] = sum.of_coding(Coding::Dcz);
        Some(OfAll {
            count: held.count + learned.len() as u64,
            held: held.bytes + learned.iter().map(|one| one.dictionary.bytes().len() as u64).sum::<u64>(),
            oldest_s: held.oldest_s(now_s()).max(oldest),
            announced: all.as_ref().map_or(0, |all| all.announced),
            offered: all.as_ref().map_or(0, |all| all.offered),
            used: of(Usage::Used),
            unknown: of(Usage::Unknown),
            refused: of(Usage::Refused),
            not_worth: of(Usage::NotWorth),
            bytes_in,
            bytes_out,
        })
    }
}

fn now_s() -> u64 {
    unix_ms() / 1000
}

fn by_name<S: Serializer>(outcomes: &[(Usage, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(outcomes.iter().filter(|(_, number)| *number > 0).map(|(usage, number)| (usage.name(), number)))
}
