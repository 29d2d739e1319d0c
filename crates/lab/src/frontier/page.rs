//! The page of the manual.

use super::program::OURS;
use super::verdict::{Answer, Verdict};
use super::{Mode, Point, size_word};
use crate::breakeven::median;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Number of exceptions that are shown of each group.
const SHOWN: usize = 4;

pub(crate) fn text(points: &[Point], verdict: &Verdict<'_>, machine: &str) -> String {
    let mut page = format!(
        "# Bytes and time\n\nWritten by `make frontier`: {machine}\n\nEach point is a coder at a level on bodies of one kind and size: the bytes that \
         come out, and the processor time that they cost. Bodies are pieces of files from npm. *In pieces* means pieces of 8 KB, each of which \
         the client can decode at once. All coders keep their states warm and run in turns on one core; the best round counts. \
         All numbers: [frontier.tsv](../bench/frontier.tsv).\n\n![Bytes and time of bodies of 132 KB](frontier.svg)\n\n"
    );
    page.push_str(&summary(verdict));
    page.push_str(&exceptions(verdict));
    page.push_str(&frontier(points));
    page
}

/// The part of each rival's points that ours answer.
fn summary(verdict: &Verdict<'_>) -> String {
    let mut groups: BTreeMap<(&str, &str, &str), Vec<&Answer<'_>>> = BTreeMap::new();
    for answer in &verdict.answers {
        groups.entry((&answer.rival.coding, &answer.rival.program, answer.rival.mode.word())).or_default().push(answer);
    }
    let (all, ahead) = (verdict.answers.len(), verdict.exceptions().count());
    let mut text = format!(
        "## Beside others\n\nA point of a rival is answered if a level of terse gives no more bytes (+0.05 %) for at most 0.95 of its time \
         (1.02 where the same library does the work). Of {all} points {} are answered, {ahead} are not ({:.1} %).\n\n\
         | coding | program | comes | points | answered | our time over theirs, median |\n|---|---|---|---:|---:|---:|\n",
        all - ahead,
        100.0 * ahead as f64 / all.max(1) as f64
    );
    for ((coding, program, mode), answers) in groups {
        let held = answers.iter().filter(|answer| answer.holds()).count();
        let ratio = median(answers.iter().filter_map(|answer| answer.ratio())).map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let _ = writeln!(text, "| {coding} | {program} | {} | {} | {held} | {ratio} |", comes(mode), answers.len());
    }
    text
}

fn comes(mode: &str) -> &str {
    if mode == "parts" { "in pieces" } else { mode }
}

/// Points that lie ahead of ours, the worst of each rival.
fn exceptions(verdict: &Verdict<'_>) -> String {
    let mut groups: BTreeMap<(&str, &str), Vec<&Answer<'_>>> = BTreeMap::new();
    for answer in verdict.exceptions() {
        groups.entry((&answer.rival.program, answer.rival.mode.word())).or_default().push(answer);
    }
    if groups.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n## Where others are ahead\n\nUp to {SHOWN} of each, those first for which ours take longest. Bytes @ µs; ours is the cheapest level with no \
         more bytes.\n\n| program | comes | level | body | theirs | ours | time |\n|---|---|---:|---|---:|---:|---:|\n"
    );
    for ((program, mode), mut answers) in groups {
        let time = |answer: &Answer<'_>| answer.ratio().unwrap_or(f64::INFINITY);
        answers.sort_by(|a, b| time(b).total_cmp(&time(a)));
        for answer in answers.iter().take(SHOWN) {
            let rival = answer.rival;
            let ours = answer
                .ours
                .map_or("more bytes at every level".into(), |p| format!("{}: {:.0} @ {:.0}", p.level, p.bytes, p.cpu_us));
            let ratio = answer.ratio().map_or("-".into(), |ratio| format!("{ratio:.2}"));
            let (level, body, mode) = (rival.level, format!("{} {}", size_word(rival.size), rival.kind), comes(mode));
            let _ = writeln!(
                text,
                "| {program} | {mode} | {level} | {body} | {:.0} @ {:.0} | {ours} | {ratio} |",
                rival.bytes, rival.cpu_us
            );
        }
    }
    text
}

/// The programs on the frontier of each coding at the usual size.
fn frontier(points: &[Point]) -> String {
    let size = points.iter().map(|point| point.size).filter(|size| *size <= 132 << 10).max().unwrap_or(0);
    let mut text = format!(
        "\n## The frontier at {}\n\nOf all coders, those that none beats in both bytes and time. Level: bytes @ µs.\n\n\
         | body | comes | coding | frontier |\n|---|---|---|---|\n",
        size_word(size)
    );
    let mut sets: Vec<(&str, Mode, &str)> = Vec::new();
    for point in points.iter().filter(|point| point.size == size) {
        let set = (point.kind, point.mode, point.coding.as_str());
        if !sets.contains(&set) {
            sets.push(set);
        }
    }
    for (kind, mode, coding) in sets {
        let alike = |p: &&Point| (p.kind, p.size, p.mode, p.coding.as_str()) == (kind, size, mode, coding);
        let best: Vec<String> = lowest(points.iter().filter(alike).collect()).into_iter().map(named).collect();
        let _ = writeln!(text, "| {kind} | {} | {coding} | {} |", comes(mode.word()), best.join(", "));
    }
    text
}

fn named(point: &Point) -> String {
    let name = format!("{} {}: {:.0} @ {:.0}", point.program, point.level, point.bytes, point.cpu_us);
    if point.program == OURS { format!("**{name}**") } else { name }
}

/// Points that no other one beats in both, from the quickest to the smallest.
fn lowest(mut points: Vec<&Point>) -> Vec<&Point> {
    points.sort_by(|a, b| a.cpu_us.total_cmp(&b.cpu_us));
    let mut least = f64::INFINITY;
    points.retain(|point| {
        let is_less = point.bytes < least;
        least = least.min(point.bytes);
        is_less
    });
    points
}

#[cfg(test)]
mod tests {
    use super::super::verdict::tests::point;
    use super::*;

    #[test]
    fn the_page_names_what_is_ahead_and_who_is_on_the_frontier() {
        let points = [
            point(OURS, 1, 500.0, 10.0),
            point("zlib-1", 1, 499.0, 9.0),
            point("zlib-1", 2, 520.0, 11.0),
            point("zlib-1", 9, 400.0, 90.0),
        ];
        let verdict = super::super::verdict::of(&points);
        let page = text(&points, &verdict, "a machine");
        assert!(page.contains("Of 3 points 1 are answered, 2 are not (66.7 %)"), "{page}");
        assert!(page.contains("| gzip | zlib-1 | whole | 3 | 1 | 0.91 |"), "{page}");
        assert!(page.contains("| zlib-1 | whole | 1 | 1 KB js | 499 @ 9 | more bytes at every level | - |"), "{page}");
        assert!(page.contains("| js | whole | gzip | zlib-1 1: 499 @ 9, zlib-1 9: 400 @ 90 |"), "{page}");
    }
}
