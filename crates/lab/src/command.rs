//! The sub-commands.

use crate::arguments::Arguments;
use crate::bench::{self, Kind, Rival};
use crate::origin::{Options, Origin};
use crate::{breakeven, card, configs, conformance, curve, demo, floor, frontier, holds, hostile, releases, secure, soak, svn};
use anyhow::{Context, Result, bail};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Runs a command line, without the program's name; true if it went well.
pub fn run(mut words: impl Iterator<Item = String>) -> Result<bool> {
    let name = words.next().unwrap_or_default();
    let arguments = Arguments::new(words);
    match name.as_str() {
        "origin" => origin(arguments),
        "demo" => demo(arguments),
        "floor" => floor(arguments),
        "hostile" => hostile(arguments),
        "soak" => soak(arguments),
        "bench" => bench(arguments),
        "breakeven" => breakeven(arguments),
        "holds" => holds(arguments),
        "releases" => releases(arguments),
        "curve" => curve(arguments),
        "frontier" => frontier(arguments),
        "card" => card(arguments),
        "conformance" => conformance(arguments),
        "configs" => configs(arguments),
        "svn" => svn(arguments),
        "certificate" => certificate(arguments),
        "-h" | "--help" | "help" => {
            print!("{HELP}");
            Ok(true)
        }
        other => bail!("{other:?} is no sub-command\n{HELP}"),
    }
}

fn origin(mut arguments: Arguments) -> Result<bool> {
    let mut options = Options { listen: Vec::new(), seed: 1, core: None, only_http2: arguments.switch("--http2") };
    while let Some(address) = arguments.value::<SocketAddr>("--listen")? {
        options.listen.push(address);
    }
    if let Some(seed) = arguments.value("--seed")? {
        options.seed = seed;
    }
    options.core = arguments.value("--core")?;
    arguments.end()?;
    if options.listen.is_empty() {
        options.listen.push(SocketAddr::from(([127, 0, 0, 1], 9080)));
    }
    let origin = Origin::start(&options)?;
    for address in origin.addresses() {
        println!("listening on http://{address}/");
    }
    origin.wait();
    Ok(true)
}

fn demo(mut arguments: Arguments) -> Result<bool> {
    let port = std::env::var("PORT").ok().filter(|port| !port.is_empty());
    let port = port.map(|port| port.parse()).transpose().context("PORT")?;
    let options = demo::Options {
        terse: program("TERSE", "target/release/terse"),
        config: arguments.value("--config")?.unwrap_or_else(|| PathBuf::from("examples/demo.cfg")),
        port: port.unwrap_or(8080),
        once: arguments.switch("--once"),
    };
    arguments.end()?;
    demo::run(&options)
}

fn floor(mut arguments: Arguments) -> Result<bool> {
    let options = floor::Options {
        listen: arguments.value("--listen")?.context("--listen: an address and a port")?,
        to: arguments.value("--to")?.context("--to: the origin's address and port")?,
        core: arguments.value("--core")?,
    };
    arguments.end()?;
    floor::run(&options)
}

fn hostile(mut arguments: Arguments) -> Result<bool> {
    let options = hostile::Options {
        terse: program("TERSE", "target/release/terse"),
        wrk: program("WRK", "wrk"),
        time: Duration::from_secs(arguments.value("--seconds")?.unwrap_or(5)),
        clients: arguments.value("--clients")?.filter(|clients| *clients > 0).unwrap_or(20),
        pause: Duration::from_millis(arguments.value("--pause-ms")?.unwrap_or(50)),
        only: arguments.words()?,
    };
    hostile::run(&options)
}

fn soak(mut arguments: Arguments) -> Result<bool> {
    let options = soak::Options {
        terse: program("TERSE", "target/release/terse"),
        haproxy: (!arguments.switch("--alone")).then(|| program("HAPROXY", "haproxy")),
        time: Duration::from_secs(arguments.value("--seconds")?.unwrap_or(600)),
        quiet: Duration::from_secs(60),
        clients: arguments.value("--clients")?.filter(|clients| *clients > 0).unwrap_or(1),
        only: arguments.words()?,
    };
    soak::run(&options)
}

fn bench(mut arguments: Arguments) -> Result<bool> {
    let quick = arguments.switch("--quick");
    let only: Option<String> = arguments.value("--only")?;
    let all = !quick && only.is_none();
    let wanted: Option<String> = arguments.value("--rivals")?;
    let wanted = |name: &str| wanted.as_ref().is_none_or(|list| list.split(',').any(|one| one == name));
    let options = bench::Options {
        rivals: rivals().into_iter().filter(|rival| wanted(&rival.name)).collect(),
        wrk: program("WRK", "wrk"),
        h2load: program("H2LOAD", "h2load"),
        gzip: wanted("gzip").then(|| PathBuf::from("gzip")),
        scenarios: arguments.value("--scenarios")?.unwrap_or_else(|| PathBuf::from("bench/scenarios")),
        rounds: arguments.value("--rounds")?.unwrap_or(if quick { 1 } else { 5 }),
        time: Duration::from_secs(arguments.value("--seconds")?.unwrap_or(1)),
        is_quick: quick,
        corpora: corpora(),
        only: only.iter().flat_map(|list| list.split(',')).map(String::from).collect(),
        out: arguments.value("--out")?.or(all.then(|| PathBuf::from("bench"))),
    };
    arguments.end()?;
    bench::run(&options)
}

fn holds(mut arguments: Arguments) -> Result<bool> {
    let options = holds::Options {
        page: arguments.value("--page")?.unwrap_or_else(|| PathBuf::from("bench/holds.md")),
        rounds: arguments.value("--rounds")?.unwrap_or(3),
    };
    arguments.end()?;
    holds::run(&options)
}

fn releases(mut arguments: Arguments) -> Result<bool> {
    let options = releases::Options {
        packages: arguments.value("--packages")?.context("--packages: the folder that scripts/releases has filled")?,
        page: arguments.value("--page")?.unwrap_or_else(|| PathBuf::from("bench/releases.md")),
        rounds: arguments.value("--rounds")?.unwrap_or(5),
    };
    arguments.end()?;
    releases::run(&options)
}

fn curve(mut arguments: Arguments) -> Result<bool> {
    let options = curve::Options {
        rounds: arguments.value("--rounds")?.unwrap_or(300),
        plot: arguments.value("--plot")?.unwrap_or_else(|| PathBuf::from("docs/variables.svg")),
        numbers: arguments.value("--numbers")?.unwrap_or_else(|| PathBuf::from("bench/variables.tsv")),
    };
    arguments.end()?;
    curve::run(&options)
}

fn frontier(mut arguments: Arguments) -> Result<bool> {
    let mut options = frontier::Options {
        packages: arguments.value("--packages")?.context("--packages: a folder with packages from npm")?,
        rivals: Vec::new(),
        rounds: arguments.value("--rounds")?.unwrap_or(3),
        time: Duration::from_micros(arguments.value("--time-us")?.unwrap_or(2000)),
        only: Vec::new(),
        page: arguments.value("--page")?.unwrap_or_else(|| PathBuf::from("docs/frontier.md")),
        plot: arguments.value("--plot")?.unwrap_or_else(|| PathBuf::from("docs/frontier.svg")),
        numbers: arguments.value("--numbers")?.unwrap_or_else(|| PathBuf::from("bench/frontier.tsv")),
    };
    while let Some(rival) = arguments.value("--rival")? {
        options.rivals.push(rival);
    }
    options.only = arguments.words()?;
    frontier::run(&options)
}

fn certificate(mut arguments: Arguments) -> Result<bool> {
    let file: PathBuf = arguments.value("--file")?.context("--file FILE")?;
    arguments.end()?;
    secure::write_certificate(&file)?;
    Ok(true)
}

fn breakeven(mut arguments: Arguments) -> Result<bool> {
    let options = breakeven::Options {
        rounds: arguments.value("--rounds")?.unwrap_or(20),
        page: arguments.value("--page")?.unwrap_or_else(|| PathBuf::from("bench/breakeven.md")),
        numbers: arguments.value("--numbers")?.unwrap_or_else(|| PathBuf::from("bench/breakeven.tsv")),
    };
    arguments.end()?;
    breakeven::run(&options)
}

fn card(mut arguments: Arguments) -> Result<bool> {
    let options = card::Options {
        results: arguments.value("--results")?.context("--results: a folder")?,
        level: arguments.value("--level")?.unwrap_or(6),
        chunk_bytes: arguments.value("--chunk")?,
        files: arguments.words()?.into_iter().map(PathBuf::from).collect(),
    };
    card::run(&options)
}

fn conformance(mut arguments: Arguments) -> Result<bool> {
    let options = conformance::Options {
        tests: arguments.value("--tests")?.context("--tests: HAProxy's folder reg-tests")?,
        vtest: arguments.value("--vtest")?.context("--vtest: the program VTest")?,
        program: arguments.value("--terse")?.unwrap_or_else(|| program("TERSE", "target/release/terse")),
        jobs: arguments.value("--jobs")?.unwrap_or(2),
        time_limit: Duration::from_secs(arguments.value("--time-limit")?.unwrap_or(20)),
        list: arguments.value("--list")?.unwrap_or_else(|| PathBuf::from("conformance/passing.txt")),
        update: arguments.switch("--update"),
        logs: arguments.value("--logs")?,
        only: arguments.words()?,
    };
    conformance::run(&options)
}

fn configs(mut arguments: Arguments) -> Result<bool> {
    let options = configs::Options {
        folder: arguments.value("--folder")?.context("--folder: configuration files")?,
        program: program("TERSE", "target/release/terse"),
        haproxy: program("HAPROXY", "haproxy"),
    };
    arguments.end()?;
    configs::run(&options)
}

fn svn(mut arguments: Arguments) -> Result<bool> {
    let options = svn::Options {
        terse: program("TERSE", "target/release/terse"),
        files: arguments.value("--files")?.unwrap_or(2000),
        rounds: arguments.value("--rounds")?.unwrap_or(2),
        kilobits: arguments.value("--kbits")?.unwrap_or(4000),
        page: arguments.value("--page")?.unwrap_or_else(|| PathBuf::from("docs/svn-experiment.md")),
        plot: arguments.value("--plot")?.unwrap_or_else(|| PathBuf::from("docs/svn-experiment.svg")),
        numbers: arguments.value("--numbers")?.unwrap_or_else(|| PathBuf::from("bench/svn-experiment.tsv")),
    };
    arguments.end()?;
    svn::run(&options)
}

/// Contestants: programs by environment variables.
fn rivals() -> Vec<Rival> {
    let rival = |name: &str, kind, program| Rival { name: name.into(), kind, program };
    let mut rivals = vec![
        rival("terse", Kind::Terse, program("TERSE", "target/release/terse")),
        rival("haproxy", Kind::Haproxy, program("HAPROXY", "haproxy")),
        rival("nginx", Kind::Nginx, program("NGINX", "nginx")),
    ];
    if let Some(program) = std::env::var_os("HAPROXY2") {
        rivals.push(rival("haproxy2", Kind::Haproxy, program.into()));
    }
    if std::env::var_os("CADDY").is_some() {
        rivals.push(rival("caddy", Kind::Caddy, program("CADDY", "caddy")));
    }
    if let Ok(program) = std::env::current_exe() {
        rivals.push(rival("floor", Kind::Floor, program));
    }
    rivals
}

/// Folder of the Canterbury corpus.
fn corpora() -> Option<PathBuf> {
    let shared = || Some(PathBuf::from(std::env::var_os("TERSE_SHARED")?).join("corpora"));
    std::env::var_os("TERSE_CORPORA").map(PathBuf::from).or_else(shared)
}

/// A program by an environment variable, or else by its name; made absolute, because it is started elsewhere.
fn program(variable: &str, name: &str) -> PathBuf {
    let path = std::env::var_os(variable).map_or_else(|| PathBuf::from(name), PathBuf::from);
    if path.components().count() > 1 { std::path::absolute(&path).unwrap_or(path) } else { path }
}

const HELP: &str = "usage: terse-lab origin [--listen ADDRESS:PORT]... [--seed N] [--core N] [--http2]
       terse-lab demo [--once] [--config FILE]
                 environment: TERSE=, PORT=
       terse-lab floor --listen ADDRESS:PORT --to ADDRESS:PORT [--core N]
       terse-lab bench [--quick] [--only SCENARIO,...] [--rivals NAME,...] [--rounds N] [--seconds N] [--out FOLDER]
                 environment: TERSE=, HAPROXY=, HAPROXY2=, NGINX=, CADDY=, WRK=, H2LOAD=, TERSE_CORPORA=
       terse-lab hostile [--seconds N] [--clients N] [--pause-ms N] [PATTERN]...
                 environment: TERSE=, WRK=
       terse-lab soak [--seconds N] [--clients N] [--alone] [KIND]...
                 environment: TERSE=, HAPROXY=
       terse-lab breakeven [--rounds N] [--page FILE] [--numbers FILE]
       terse-lab holds [--rounds N] [--page FILE]
       terse-lab releases --packages FOLDER [--rounds N] [--page FILE]
       terse-lab curve [--rounds N] [--plot FILE] [--numbers FILE]
       terse-lab frontier --packages FOLDER [--rival PROGRAM]... [--rounds N] [--time-us N] [--page FILE] [--plot FILE] [--numbers FILE]
                 [KIND]...
       terse-lab card --results FOLDER [--level N] [--chunk BYTES] FILE...
       terse-lab conformance --tests FOLDER --vtest PROGRAM [--terse PROGRAM] [--jobs N] [--time-limit N] [--list FILE]
                 [--update] [--logs FOLDER] [CATEGORY/[TEST]]...
       terse-lab configs --folder FOLDER
                 environment: TERSE=, HAPROXY=
       terse-lab certificate --file FILE
       terse-lab svn [--files N] [--rounds N] [--kbits N] [--page FILE] [--plot FILE] [--numbers FILE]
                 environment: TERSE=, APACHE=
";
