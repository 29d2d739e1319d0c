//! The benchmark: terse beside other proxies, on the same files and traffic, in turns.
//!
//! Every proxy stays on its own core; wrk, the clients and the origin stay on another. So the proxy's CPU time is counted without
//! them. The figure that counts is CPU time per answer: it does not change when the load generator is the slower side. All proxies
//! of a scenario run at the same time and are loaded one after the other, a round each. So a noisy minute hits them alike. Commands
//! that compress files ([`files`]) have the machine to themselves, in turns too.

mod bystander;
pub(crate) mod card;
mod counts;
mod files;
mod goals;
mod h2load;
pub(crate) mod machine;
mod measure;
mod report;
pub(crate) mod rival;
mod sample;
mod scenario;
pub(crate) mod wrk;

pub use rival::{Kind, Rival};

use crate::cores;
use crate::origin::{Options as OriginOptions, Origin};
use crate::program::beside_this_one;
use crate::secure;
use anyhow::{Context, Result, bail};
use card::Card;
use files::{FILE_SCENARIOS, Inputs};
use goals::ON_OUR_ZLIB;
use h2load::H2load;
use measure::Bench;
use report::Results;
use rival::{Running, Setting};
use sample::Sample;
use scenario::{FOUNDING, PLAIN, SCENARIOS, Scenario, Traffic, WITHOUT_CARD};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wrk::Wrk;

/// Scenarios to run, their durations and their output.
#[derive(Clone, Debug)]
pub struct Options {
    /// Proxies that take part.
    pub rivals: Vec<Rival>,
    /// The load generator.
    pub wrk: PathBuf,
    /// The same for HTTP/2.
    pub h2load: PathBuf,
    /// gzip, if it takes part where files are compressed.
    pub gzip: Option<PathBuf>,
    /// The folder of the scenarios' files.
    pub scenarios: PathBuf,
    /// Rounds of each scenario.
    pub rounds: usize,
    /// Duration of a proxy's load in one round.
    pub time: Duration,
    /// Less of the work that takes long.
    pub is_quick: bool,
    /// A folder with the Canterbury corpus in `canterbury`, if there is one.
    pub corpora: Option<PathBuf>,
    /// The beginnings of the names of the wanted scenarios; empty: all. `counts` is the name for the counts of `plain`.
    pub only: Vec<String>,
    /// Folder for `results.md` and `results.tsv`; none: the page goes to the standard output.
    pub out: Option<PathBuf>,
}

/// Runs it; true if everything worked.
pub fn run(options: &Options) -> Result<bool> {
    options.check_names()?;
    let begun = Instant::now();
    let cores = cores::available();
    let (Some(&first), Some(&last)) = (cores.first(), cores.last()) else { bail!("no core to run on") };
    let second = cores.get(1).copied().unwrap_or(first);
    // A third core keeps the load off the second worker's.
    let load_core = if cores.len() > 2 { last } else { second };
    raise_descriptor_limit();
    let origin = Origin::start(&OriginOptions { core: Some(load_core), ..OriginOptions::local(1) })?;
    let address = origin.addresses()[0];
    let wrk = Wrk::new(&options.wrk, load_core)?;
    let h2load = H2load::new(&options.h2load, load_core);
    let certificate = tempfile::Builder::new().prefix("terse-bench-").suffix(".pem").tempfile()?;
    secure::write_certificate(certificate.path())?;
    let mut run = Run {
        options,
        bench: Bench { wrk: &wrk, h2load: &h2load, core: load_core, origin: address, time: options.time },
        worker_cores: [first, second],
        card: None,
        certificate: certificate.path().to_owned(),
        inputs: Inputs::new(options)?,
        results: Results {
            programs: options.programs(),
            samples: Vec::new(),
            calls: Vec::new(),
            problems: Vec::new(),
            left_out: Vec::new(),
            how: format!(
                "Rounds: {}, interleaved, {} s each. The proxy on core {first}, load and origin on core {load_core}; in `scale` and `bystander` two workers, and commands, on cores {first} and {second}. In `tail` and `bystander`, the small requests' client {} its core.{}",
                options.rounds,
                options.time.as_secs(),
                if wrk.may_go_first() { "goes before all others on" } else { "shares" },
                if options.is_quick { " Quick: of the image a tenth, from its middle." } else { "" },
            ),
        },
    };
    for scenario in SCENARIOS.iter().filter(|scenario| options.wants(scenario.name)) {
        run.scenario(scenario);
    }
    for scenario in FILE_SCENARIOS.iter().filter(|scenario| options.wants(scenario.name)) {
        run.files(scenario);
    }
    if options.wants(COUNTS) {
        run.counts();
    }
    run.results.how += &format!(" It took {:.1} minutes.", begun.elapsed().as_secs_f64() / 60.0);
    run.results.write(options)?;
    Ok(run.results.problems.is_empty() && !run.results.samples.is_empty())
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }

    /// Measured programs, and their versions.
    fn programs(&self) -> Vec<(String, String)> {
        let gzip = self.gzip.as_deref().filter(|_| FILE_SCENARIOS.iter().any(|scenario| self.wants(scenario.name)));
        let gzip = gzip.map(|program| ("gzip".to_owned(), rival::version(program)));
        self.rivals.iter().map(|rival| (rival.name.clone(), rival.version())).chain(gzip).collect()
    }

    /// Returns an error that tells which of the wanted names no scenario begins with.
    fn check_names(&self) -> Result<()> {
        let names: Vec<&str> = scenarios().map(|(name, _)| name).chain([COUNTS]).collect();
        match self.only.iter().find(|prefix| !names.iter().any(|name| name.starts_with(prefix.as_str()))) {
            Some(prefix) => bail!("no scenario's name begins with {prefix:?}; there are {}", names.join(", ")),
            None => Ok(()),
        }
    }
}

struct Run<'a> {
    options: &'a Options,
    bench: Bench<'a>,
    worker_cores: [usize; 2],
    /// Made when it is wanted.
    card: Option<Card>,
    /// A certificate and its key.
    certificate: PathBuf,
    inputs: Inputs,
    results: Results,
}

/// A proxy in a scenario, with a file and so many workers.
struct Entrant<'a> {
    name: String,
    rival: &'a Rival,
    config: &'static str,
    workers: usize,
    /// True if our library replaces zlib.
    is_on_our_zlib: bool,
}

impl Run<'_> {
    fn scenario(&mut self, scenario: &Scenario) {
        eprintln!("{}", scenario.name);
        if let (Traffic::Card(_), None) = (scenario.traffic, &self.card) {
            match Card::of_body(self.bench.origin, scenario.path) {
                Ok(card) => self.card = Some(card),
                Err(error) => return self.problem(scenario.name, "the card", &error),
            }
        }
        let entrants = entrants(&self.options.rivals, scenario, &self.options.scenarios);
        let mut field: Vec<(&Entrant<'_>, Running)> = Vec::new();
        for entrant in &entrants {
            match self.enter(scenario, entrant) {
                Ok(running) => field.push((entrant, running)),
                Err(error) => self.problem(scenario.name, &entrant.name, &error),
            }
        }
        let rounds = if let Traffic::Idle(_) = scenario.traffic { 1 } else { self.options.rounds };
        for round in 1..=rounds {
            for place in 0..field.len() {
                let (entrant, running) = &field[(place + round) % field.len()];
                match self.bench.round(scenario, running) {
                    Ok(numbers) => self.keep(scenario.name, &entrant.name, round, numbers),
                    Err(error) => self.problem(scenario.name, &entrant.name, &error),
                }
            }
        }
    }

    /// Starts it, sees that it works, and warms it up.
    fn enter(&mut self, scenario: &Scenario, entrant: &Entrant<'_>) -> Result<Running> {
        let library = entrant.is_on_our_zlib.then(|| beside_this_one(&[OUR_ZLIB])).transpose();
        let library = library.context("scripts/libterse_z has not run")?;
        let setting = Setting { preloaded: library.as_deref(), ..self.setting(entrant.config, entrant.workers) };
        let running = entrant.rival.start(&setting)?;
        if let Traffic::Card(_) = scenario.traffic {
            // A card is given bodies when it has passed a probe.
            self.bench.check(scenario, entrant.config, &running)?;
        }
        let numbers = self.bench.check(scenario, entrant.config, &running)?;
        self.keep(scenario.name, &entrant.name, 0, numbers);
        Ok(running)
    }

    fn setting<'s>(&'s self, config: &'s str, workers: usize) -> Setting<'s> {
        Setting {
            config,
            folder: &self.options.scenarios,
            origin: self.bench.origin,
            workers,
            cores: &self.worker_cores[..workers],
            under: &[],
            card: self.card.as_ref(),
            certificate: &self.certificate,
            preloaded: None,
        }
    }

    fn keep(&mut self, scenario: &str, entrant: &str, round: usize, numbers: measure::Numbers) {
        let shown: Vec<_> =
            numbers.iter().map(|(metric, value)| format!("{} {value:.*}", metric.title(), metric.decimals())).collect();
        eprintln!("  {round}  {entrant:<22} {}", shown.join(", "));
        self.results.samples.extend(numbers.into_iter().map(|(metric, value)| Sample {
            scenario: scenario.into(),
            entrant: entrant.into(),
            round,
            metric,
            value,
        }));
    }

    fn problem(&mut self, scenario: &str, entrant: &str, error: &anyhow::Error) {
        let problem = format!("{scenario}, {entrant}: {error:#}");
        eprintln!("  {problem}");
        self.results.problems.push(problem);
    }

    fn counts(&mut self) {
        eprintln!("counts");
        let scenario = &SCENARIOS[0];
        for rival in &self.options.rivals {
            let setting = self.setting(scenario.config, 1);
            let instructions = counts::instructions(rival, &setting);
            let calls = counts::system_calls(rival, &setting);
            match instructions {
                Ok(number) => self.keep(scenario.name, &rival.name, 1, vec![number]),
                Err(error) => self.problem(scenario.name, &rival.name, &error),
            }
            match calls {
                Ok((number, calls)) => {
                    self.keep(scenario.name, &rival.name, 1, vec![number]);
                    self.results.calls.push((rival.name.clone(), calls));
                }
                Err(error) => self.problem(scenario.name, &rival.name, &error),
            }
        }
    }
}

/// Names of all scenarios, and their descriptions, in the order in which they are measured.
fn scenarios() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_files = FILE_SCENARIOS.iter().map(|scenario| (scenario.name, scenario.about));
    SCENARIOS.iter().map(|scenario| (scenario.name, scenario.about)).chain(of_files)
}

/// Name of [`counts`] for `--only`.
const COUNTS: &str = "counts";
/// Path of the library of scripts/libterse_z, beside this program.
const OUR_ZLIB: &str = "zlib/libterse_z.so";

/// Returns the contestants of a scenario. Each proxy that has a file for it is there once, or once with one worker and once with
/// two, or in several ways.
fn entrants<'a>(rivals: &'a [Rival], scenario: &Scenario, folder: &Path) -> Vec<Entrant<'a>> {
    let of = |rival: &'a Rival| -> Vec<Entrant<'a>> {
        let entrant = |words: &str, config, workers| Entrant {
            name: format!("{}{words}", rival.name),
            rival,
            config,
            workers,
            is_on_our_zlib: false,
        };
        match (scenario.traffic, rival.kind) {
            (_, Kind::Floor) if scenario.name != PLAIN => Vec::new(),
            (Traffic::Scale(_), _) => {
                [(", 1 worker", 1), (", 2 workers", 2)].map(|(words, workers)| entrant(words, scenario.config, workers)).into()
            }
            (Traffic::Bystander(_), _) => vec![entrant("", scenario.config, 2)],
            (Traffic::Card(_), Kind::Terse) => [("", scenario.config), (", software", WITHOUT_CARD), (", uncompressed", PLAIN)]
                .map(|(words, config)| entrant(words, config, 1))
                .into(),
            (Traffic::Card(_), Kind::Nginx) => vec![entrant("", FOUNDING, 1)],
            (Traffic::Library(_), Kind::Nginx) => {
                let ours = Entrant { name: ON_OUR_ZLIB.into(), is_on_our_zlib: true, ..entrant("", scenario.config, 1) };
                vec![entrant("", scenario.config, 1), ours]
            }
            (Traffic::Library(_), _) => Vec::new(),
            _ => vec![entrant("", scenario.config, 1)],
        }
    };
    rivals.iter().flat_map(of).filter(|entrant| entrant.rival.takes_part(folder, entrant.config)).collect()
}

impl Results {
    fn write(&self, options: &Options) -> Result<()> {
        match &options.out {
            None => print!("{}", self.page()),
            Some(folder) => {
                for (name, text) in [("results.md", self.page()), ("results.tsv", self.numbers())] {
                    let file = folder.join(name);
                    std::fs::write(&file, text).with_context(|| file.display().to_string())?;
                    println!("{}", file.display());
                }
            }
        }
        Ok(())
    }
}

/// 4,500 connections want as many descriptors, and the proxies inherit the limit.
pub(crate) fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If it cannot be raised, the scenario that needs it reports that.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
