//! Configuration files of real users: terse's verdict on each beside HAProxy's.
//!
//! ```text
//! folder -> Collection (a prepared copy) -> Reading (one program, one file) -> Comparison -> the table, and what is missing
//! ```
//!
//! The folder is copied, so that nothing in it changes. A `prepare-stubs.sh` in it is run in the copy: it makes the files that the
//! configurations name. `verdicts.tsv` holds HAProxy's verdicts; the `haproxy` of this machine, where there is one, is asked too.
//!
//! Two readings agree when both accept the file, or both refuse it and name a line in common: HAProxy stops at fewer problems, and
//! lists only its first in `verdicts.tsv`.

mod collection;
mod comparison;
mod reading;

use anyhow::Result;
use collection::Collection;
use comparison::{Comparison, Kind};
use reading::Reading;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Settings of the comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of files.
    pub folder: PathBuf,
    /// terse.
    pub program: PathBuf,
    /// HAProxy; where it does not run, only the recorded verdicts count.
    pub haproxy: PathBuf,
}

/// Compares all; true if all agree.
pub fn run(options: &Options) -> Result<bool> {
    let collection = Collection::prepare(&options.folder)?;
    let haproxy = reading::find(&options.haproxy);
    let mut comparisons = Vec::new();
    for file in &collection.files {
        let ours = Reading::of(&options.program, file)?;
        let theirs = haproxy.as_ref().map(|program| Reading::of(program, file)).transpose()?;
        let comparison = Comparison::new(file, ours, theirs);
        print!("{}", comparison.row());
        comparisons.push(comparison);
    }
    print!("{}", missing(&comparisons));
    print!("{}", score(&comparisons));
    Ok(comparisons.iter().all(Comparison::agrees))
}

/// Lists the reasons why files are refused that HAProxy accepts, most files first.
fn missing(comparisons: &[Comparison]) -> String {
    let mut reasons: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for comparison in comparisons.iter().filter(|comparison| comparison.kind == Kind::Refused) {
        for problem in &comparison.ours.alerts {
            reasons.entry(problem.what()).or_default().insert(&comparison.name);
        }
    }
    let mut ranked: Vec<_> = reasons.into_iter().collect();
    ranked.sort_by_key(|(_, files)| std::cmp::Reverse(files.len()));
    let line = |(what, files): (String, BTreeSet<&str>)| {
        format!("{:>4}  {what}  ({})\n", files.len(), files.into_iter().collect::<Vec<_>>().join(" "))
    };
    match ranked.is_empty() {
        true => String::new(),
        false => format!("\nmissing, by files:\n{}", ranked.into_iter().map(line).collect::<String>()),
    }
}

fn score(comparisons: &[Comparison]) -> String {
    let count = |kinds: &[Kind]| comparisons.iter().filter(|comparison| kinds.contains(&comparison.kind)).count();
    let valid = count(&[Kind::BothAccept, Kind::Refused]);
    let invalid = count(&[Kind::BothRefuse, Kind::OtherLine, Kind::Accepted]);
    format!(
        "\nvalid files accepted: {} of {valid}; invalid files refused: {} of {invalid}, at a line that HAProxy names: {}\n",
        count(&[Kind::BothAccept]),
        count(&[Kind::BothRefuse, Kind::OtherLine]),
        count(&[Kind::BothRefuse]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// Makes a program that refuses a file with the word `bad` in it, at its line.
    fn program(folder: &Path, word: &str) -> PathBuf {
        let file = folder.join(word);
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = -v ] && exit 0\nline=$(grep -n {word} \"$3\" | cut -d: -f1)\n[ -z \"$line\" ] && exit 0\n\
             echo \"[ALERT]    (7) : config : parsing [$3:$line] : unknown keyword '{word}' here\" >&2\nexit 1\n"
        );
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    #[test]
    fn readings_are_compared() {
        let (files, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (name, text) in
            [("a.cfg", "global\n"), ("b.cfg", "global\n bad\n"), ("c.cfg", "global\n worse\n"), ("d.cfg", "bad\nworse\n")]
        {
            fs::write(files.path().join(name), text).unwrap();
        }
        let collection = Collection::prepare(files.path()).unwrap();
        let (ours, theirs) = (program(programs.path(), "bad"), program(programs.path(), "worse"));
        let compared: Vec<_> = collection
            .files
            .iter()
            .map(|file| Comparison::new(file, Reading::of(&ours, file).unwrap(), Some(Reading::of(&theirs, file).unwrap())))
            .collect();
        let kinds: Vec<_> = compared.iter().map(|comparison| comparison.kind).collect();
        assert_eq!(kinds, [Kind::BothAccept, Kind::Refused, Kind::Accepted, Kind::OtherLine]);
        assert_eq!(missing(&compared), "\nmissing, by files:\n   1  unknown keyword 'bad'  (b)\n");
        assert!(score(&compared).contains("accepted: 1 of 2; invalid files refused: 1 of 2, at a line that HAProxy names: 0"));
        assert!(compared[1].row().contains("line 2: unknown keyword 'bad' here"), "{}", compared[1].row());
        let options = Options { folder: files.path().into(), program: ours.clone(), haproxy: ours };
        assert!(run(&options).unwrap());
    }

    #[test]
    fn recorded_verdicts_hold_where_nobody_can_be_asked() {
        let files = tempfile::tempdir().unwrap();
        fs::create_dir(files.path().join("cfg")).unwrap();
        fs::write(files.path().join("cfg/1.cfg"), "global\n bad\n").unwrap();
        fs::write(files.path().join("prepare-stubs.sh"), "mkdir prepared; cp cfg/1.cfg prepared; echo A=b > prepared/1.env")
            .unwrap();
        let verdicts = "number\tref\trc35\trc26\talert35\talert26\n1\tinvalid\t1\t1\tconfig : parsing [prepared/1.cfg:2] : no\t\n";
        fs::write(files.path().join("verdicts.tsv"), verdicts).unwrap();
        let collection = Collection::prepare(files.path()).unwrap();
        let programs = tempfile::tempdir().unwrap();
        let ours = Reading::of(&program(programs.path(), "bad"), &collection.files[0]).unwrap();
        assert_eq!(collection.files[0].environment, [("A".to_owned(), "b".to_owned())]);
        assert_eq!(Comparison::new(&collection.files[0], ours, None).kind, Kind::BothRefuse);
        assert!(!files.path().join("prepared").exists(), "the folder stays as it was");
    }
}
