//! The benchmark: terse beside other proxies, on the same files and traffic, in turns.
//!
//! Every proxy stays on its own core, wrk, the clients and the origin on another one, so that the proxy's CPU time is counted
//! without them. What counts is CPU time per answer: it does not change when the load generator is the slower side. All proxies of
//! a scenario run at the same time and are loaded one after the other, a round each, so that a noisy minute hits them alike.

pub(crate) mod card;
mod counts;
mod goals;
pub(crate) mod machine;
mod measure;
mod report;
mod rival;
mod sample;
mod scenario;
mod wrk;

pub use rival::{Kind, Rival};

use crate::cores;
use crate::origin::{Options as OriginOptions, Origin};
use crate::secure;
use anyhow::{Context, Result, bail};
use card::Card;
use measure::Bench;
use report::Results;
use rival::{Running, Setting};
use sample::Sample;
use scenario::{FOUNDING, PLAIN, SCENARIOS, Scenario, Traffic, WITHOUT_CARD};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wrk::Wrk;

/// What is run, and how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who takes part.
    pub rivals: Vec<Rival>,
    /// The load generator.
    pub wrk: PathBuf,
    /// The folder of the scenarios' files.
    pub scenarios: PathBuf,
    /// Rounds of each scenario.
    pub rounds: usize,
    /// How long one round loads a proxy.
    pub time: Duration,
    /// The beginnings of the names of the scenarios that are wanted; empty: all. `counts` stands for the counts of `plain`.
    pub only: Vec<String>,
    /// Where `results.md` and `results.tsv` are written; none: the page goes to the standard output.
    pub out: Option<PathBuf>,
}

/// Runs it; true if everything worked.
pub fn run(options: &Options) -> Result<bool> {
    let cores = cores::available();
    let (Some(&first), Some(&last)) = (cores.first(), cores.last()) else { bail!("no core to run on") };
    let second = cores.get(1).copied().unwrap_or(first);
    // A third core keeps the load off the second worker's.
    let load_core = if cores.len() > 2 { last } else { second };
    raise_descriptor_limit();
    let origin = Origin::start(&OriginOptions { core: Some(load_core), ..OriginOptions::local(1) })?;
    let address = origin.addresses()[0];
    let wrk = Wrk::new(&options.wrk, load_core)?;
    let certificate = tempfile::Builder::new().prefix("terse-bench-").suffix(".pem").tempfile()?;
    secure::write_certificate(certificate.path())?;
    let mut run = Run {
        options,
        bench: Bench { wrk: &wrk, core: load_core, origin: address, time: options.time },
        worker_cores: [first, second],
        card: None,
        certificate: certificate.path().to_owned(),
        results: Results {
            rivals: options.rivals.iter().map(|rival| (rival.name.clone(), rival.version())).collect(),
            samples: Vec::new(),
            calls: Vec::new(),
            problems: Vec::new(),
            how: format!(
                "Rounds: {}, interleaved, {} s each. The proxy on core {first}, load and origin on core {load_core}; in `scale` two workers on cores {first} and {second}.",
                options.rounds,
                options.time.as_secs(),
            ),
        },
    };
    for scenario in SCENARIOS.iter().filter(|scenario| options.wants(scenario.name)) {
        run.scenario(scenario);
    }
    if options.wants("counts") {
        run.counts();
    }
    run.results.write(options)?;
    Ok(run.results.problems.is_empty())
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|prefix| name.starts_with(prefix.as_str()))
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
    results: Results,
}

/// A proxy in a scenario, with a file and so many workers.
struct Entrant<'a> {
    name: String,
    rival: &'a Rival,
    config: &'static str,
    workers: usize,
}

impl Run<'_> {
    fn scenario(&mut self, scenario: &Scenario) {
        eprintln!("{}", scenario.name);
        if let (Traffic::Card(_), None) = (scenario.traffic, &self.card) {
            match Card::new(self.bench.origin, scenario.path) {
                Ok(card) => self.card = Some(card),
                Err(error) => return self.problem(scenario, "the card", &error),
            }
        }
        let entrants = entrants(&self.options.rivals, scenario, &self.options.scenarios);
        let mut field: Vec<(&Entrant<'_>, Running)> = Vec::new();
        for entrant in &entrants {
            match self.enter(scenario, entrant) {
                Ok(running) => field.push((entrant, running)),
                Err(error) => self.problem(scenario, &entrant.name, &error),
            }
        }
        let rounds = if let Traffic::Idle(_) = scenario.traffic { 1 } else { self.options.rounds };
        for round in 1..=rounds {
            for place in 0..field.len() {
                let (entrant, running) = &field[(place + round) % field.len()];
                match self.bench.round(scenario, running) {
                    Ok(numbers) => self.keep(scenario, &entrant.name, round, numbers),
                    Err(error) => self.problem(scenario, &entrant.name, &error),
                }
            }
        }
    }

    /// Starts it, sees that it works, and warms it up.
    fn enter(&mut self, scenario: &Scenario, entrant: &Entrant<'_>) -> Result<Running> {
        let running = entrant.rival.start(&self.setting(entrant.config, entrant.workers))?;
        if let Traffic::Card(_) = scenario.traffic {
            // A card is given bodies when it has passed a probe.
            self.bench.check(scenario, entrant.config, &running)?;
        }
        let numbers = self.bench.check(scenario, entrant.config, &running)?;
        self.keep(scenario, &entrant.name, 0, numbers);
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
        }
    }

    fn keep(&mut self, scenario: &Scenario, entrant: &str, round: usize, numbers: measure::Numbers) {
        let shown: Vec<_> =
            numbers.iter().map(|(metric, value)| format!("{} {value:.*}", metric.title(), metric.decimals())).collect();
        eprintln!("  {round}  {entrant:<18} {}", shown.join(", "));
        self.results.samples.extend(numbers.into_iter().map(|(metric, value)| Sample {
            scenario: scenario.name.into(),
            entrant: entrant.into(),
            round,
            metric,
            value,
        }));
    }

    fn problem(&mut self, scenario: &Scenario, entrant: &str, error: &anyhow::Error) {
        let problem = format!("{}, {entrant}: {error:#}", scenario.name);
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
                Ok(number) => self.keep(scenario, &rival.name, 1, vec![number]),
                Err(error) => self.problem(scenario, &rival.name, &error),
            }
            match calls {
                Ok((number, calls)) => {
                    self.keep(scenario, &rival.name, 1, vec![number]);
                    self.results.calls.push((rival.name.clone(), calls));
                }
                Err(error) => self.problem(scenario, &rival.name, &error),
            }
        }
    }
}

/// Who runs in a scenario: each proxy that has a file for it once, or once with one worker and once with two, or in several ways.
fn entrants<'a>(rivals: &'a [Rival], scenario: &Scenario, folder: &Path) -> Vec<Entrant<'a>> {
    let of = |rival: &'a Rival| -> Vec<Entrant<'a>> {
        let entrant = |words: &str, config, workers| Entrant { name: format!("{}{words}", rival.name), rival, config, workers };
        match (scenario.traffic, rival.kind) {
            (Traffic::Scale(_), _) => {
                [(", 1 worker", 1), (", 2 workers", 2)].map(|(words, workers)| entrant(words, scenario.config, workers)).into()
            }
            (Traffic::Card(_), Kind::Terse) => [("", scenario.config), (", software", WITHOUT_CARD), (", uncompressed", PLAIN)]
                .map(|(words, config)| entrant(words, config, 1))
                .into(),
            (Traffic::Card(_), Kind::Nginx) => vec![entrant("", FOUNDING, 1)],
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
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If it cannot be raised, the scenario that needs it says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
