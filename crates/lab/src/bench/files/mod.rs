//! Files compressed by commands: terse gzip beside gzip, alone and two at once, in software and through the test card.
//!
//! Each contestant is first checked, all of them at the same time, then timed alone, in turns. Its output goes to /dev/null, so
//! that the disk is not measured.

mod command;
mod input;
mod scenario;

pub(super) use input::Inputs;
pub(super) use scenario::{FILE_SCENARIOS, FileScenario, WITH_CARD, WITH_CARD_TWICE};

use super::card::Card;
use super::measure::Numbers;
use super::{Kind, Run};
use anyhow::{Context, Result};
use scenario::{Contestant, Tool};
use std::fs;
use std::path::Path;
use std::process::Command;
use terse_compress::Coding;

impl Run<'_> {
    /// Measures one scenario.
    pub(super) fn files(&mut self, scenario: &FileScenario) {
        eprintln!("{}", scenario.name);
        if let Some(reason) = self.inputs.missing(scenario.input) {
            eprintln!("  left out: {reason}");
            self.results.left_out.push(format!("{}: {reason}", scenario.name));
            return;
        }
        let field: Vec<&Contestant> = scenario.contestants.iter().filter(|one| self.takes_part(one.tool)).collect();
        if field.is_empty() {
            return;
        }
        if let Err(error) = self.compete(scenario, field) {
            self.problem(scenario.name, "the file", &error);
        }
    }

    fn compete(&mut self, scenario: &FileScenario, mut field: Vec<&Contestant>) -> Result<()> {
        let input = self.inputs.path(scenario.input)?;
        let input_bytes = fs::metadata(&input)?.len();
        let card = field.iter().any(|one| one.tool == Tool::TerseWithCard).then(Card::learning).transpose()?;
        let card = card.as_ref();
        for (contestant, checked) in self.check(&field, &input, card) {
            match checked {
                Ok(numbers) => self.keep(scenario.name, contestant.name, 0, numbers),
                Err(error) => {
                    self.problem(scenario.name, contestant.name, &error);
                    field.retain(|one| one.name != contestant.name);
                }
            }
        }
        for round in 1..=self.options.rounds {
            for place in 0..field.len() {
                let contestant = field[(place + round) % field.len()];
                if round > contestant.most_rounds {
                    continue;
                }
                let command = self.command(contestant, &input, card)?;
                match command::time(command, contestant.at_once, &self.worker_cores, input_bytes) {
                    Ok(numbers) => self.keep(scenario.name, contestant.name, round, numbers),
                    Err(error) => self.problem(scenario.name, contestant.name, &error),
                }
            }
        }
        Ok(())
    }

    /// Checks the contestants. A card learns its results here. Two at once write the same as one: only one is looked at.
    fn check<'c>(&self, field: &[&'c Contestant], input: &Path, card: Option<&Card>) -> Vec<(&'c Contestant, Result<Numbers>)> {
        let check = |contestant: &Contestant| command::check(self.command(contestant, input, card)?, input, contestant.coding());
        std::thread::scope(|scope| {
            let alone = field.iter().filter(|contestant| contestant.at_once == 1);
            let checks: Vec<_> = alone.map(|contestant| (*contestant, scope.spawn(|| check(contestant)))).collect();
            let died = || Err(anyhow::anyhow!("the check died"));
            checks.into_iter().map(|(contestant, check)| (contestant, check.join().unwrap_or_else(|_| died()))).collect()
        })
    }

    fn takes_part(&self, tool: Tool) -> bool {
        match tool {
            Tool::Gzip => self.options.gzip.is_some(),
            Tool::Terse | Tool::TerseWithCard => self.terse().is_some(),
        }
    }

    fn terse(&self) -> Option<&Path> {
        self.options.rivals.iter().find(|rival| rival.kind == Kind::Terse).map(|rival| rival.program.as_path())
    }

    /// The command that writes the input's compressed form to its standard output.
    fn command(&self, contestant: &Contestant, input: &Path, card: Option<&Card>) -> Result<Command> {
        let mut command = match contestant.tool {
            Tool::Gzip => Command::new(self.options.gzip.as_deref().context("gzip")?),
            Tool::Terse | Tool::TerseWithCard => {
                let mut command = Command::new(self.terse().context("terse")?);
                command.arg("gzip");
                command
            }
        };
        if contestant.tool == Tool::TerseWithCard {
            let card = card.context("the card")?;
            command.args(["--engine", "card", "--config"]).arg(self.options.scenarios.join(CARD_CONFIG));
            command.envs(card.environment()).env("CARD", card.library()).envs(UNUSED);
        }
        command.args(contestant.arguments).arg("-c").arg(input);
        // gzip takes options from it.
        command.env_remove("GZIP");
        Ok(command)
    }
}

impl Contestant {
    /// Coding to undo where the output is checked; gzip is believed.
    fn coding(&self) -> Option<Coding> {
        match self.tool {
            Tool::Gzip => None,
            _ if self.arguments.contains(&"--zstd") => Some(Coding::Zstd),
            _ => Some(Coding::Gzip),
        }
    }
}

/// The proxy's file. Of it `terse gzip` takes the section `engine card`, and its `verify none` for `checksum`.
const CARD_CONFIG: &str = "card.terse.cfg";
/// Variables that the rest of the file needs.
const UNUSED: [(&str, &str); 3] = [("LISTEN", "127.0.0.1:1"), ("ORIGIN", "127.0.0.1:1"), ("WORKERS", "1")];
