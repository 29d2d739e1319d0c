//! Cost of the look-up of a variable, by the number of variables: a list, a tree, a hash table, and slots.
//!
//! The first two are what HAProxy had and has; all three look for the 64-bit hash of a name, which is known when the configuration
//! has been read. Slots are ours. The result is a plot for the manual and a table of its numbers.

mod contest;
mod plot;

use anyhow::{Context, Result};
use contest::Contest;
use plot::{Line, Mark, Plot};
use std::fmt::Write;
use std::path::PathBuf;

/// Length of the measurement, and files for the results.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of measurements of each structure at each count; the best one is kept.
    pub rounds: usize,
    /// File for the plot.
    pub plot: PathBuf,
    /// File for the numbers.
    pub numbers: PathBuf,
}

/// Measures, and writes both files.
pub fn run(options: &Options) -> Result<bool> {
    let costs: Vec<_> = COUNTS.iter().map(|&count| Contest::new(count).costs(options.rounds)).collect();
    let curves: Vec<Curve> = (0..NAMES.len())
        .map(|i| Curve { name: NAMES[i], costs: COUNTS.iter().zip(&costs).map(|(&n, costs)| (n as f64, costs[i])).collect() })
        .collect();
    let crossings = crossings(&curves);
    for crossing in &crossings {
        println!("{} passes {} at {:.0} names", curves[crossing.upper].name, curves[crossing.lower].name, crossing.at);
    }
    let (least, most) = curves[SLOTS].range();
    println!("slots: {least:.2} to {most:.2} ns");
    std::fs::write(&options.numbers, numbers(&curves)).with_context(|| options.numbers.display().to_string())?;
    std::fs::write(&options.plot, plot(&curves, &crossings)).with_context(|| options.plot.display().to_string())?;
    Ok(true)
}

/// Costs of a structure in nanoseconds a look-up, by the number of names.
#[derive(Clone, PartialEq, Debug)]
struct Curve {
    name: &'static str,
    costs: Vec<(f64, f64)>,
}

/// Point where a curve rises above another for good.
#[derive(Clone, PartialEq, Debug)]
struct Crossing {
    upper: usize,
    lower: usize,
    at: f64,
    cost: f64,
}

impl Curve {
    fn range(&self) -> (f64, f64) {
        let costs = self.costs.iter().map(|(_, cost)| *cost);
        costs.fold((f64::INFINITY, 0.0), |(least, most), cost| (least.min(cost), most.max(cost)))
    }
}

/// All places where a curve that began below another one passes it for the last time.
fn crossings(curves: &[Curve]) -> Vec<Crossing> {
    let pairs = (0..curves.len()).flat_map(|upper| (0..curves.len()).map(move |lower| (upper, lower)));
    let found = pairs.filter_map(|(upper, lower)| {
        let gaps: Vec<f64> = curves[upper].costs.iter().zip(&curves[lower].costs).map(|(u, l)| (u.1 / l.1).ln()).collect();
        let below = gaps.iter().rposition(|gap| *gap < 0.0)?;
        let above = below + 1;
        let part = gaps[below] / (gaps[below] - gaps.get(above)?);
        let between = |from: f64, to: f64| (from.ln() + part * (to / from).ln()).exp();
        let [(from, cheap), (to, dear)] = [curves[upper].costs[below], curves[upper].costs[above]];
        Some(Crossing { upper, lower, at: between(from, to), cost: between(cheap, dear) })
    });
    found.collect()
}

fn numbers(curves: &[Curve]) -> String {
    let names: Vec<_> = curves.iter().map(|curve| curve.name).collect();
    let mut out = format!("names\t{}\n", names.join("\t"));
    for (i, count) in COUNTS.iter().enumerate() {
        let cells: Vec<_> = curves.iter().map(|curve| format!("{:.2}", curve.costs[i].1)).collect();
        let _ = writeln!(out, "{count}\t{}", cells.join("\t"));
    }
    out
}

fn plot(curves: &[Curve], crossings: &[Crossing]) -> String {
    let plot = Plot {
        title: "One look-up of a variable",
        across: "names that are set",
        up: "nanoseconds",
        lines: curves.iter().map(|curve| Line { name: curve.name, points: &curve.costs }).collect(),
        marks: crossings.iter().map(|c| Mark { at: (c.at, c.cost), text: format!("{:.0}", c.at) }).collect(),
    };
    plot.svg()
}

const NAMES: [&str; 4] = ["list", "tree (ceb)", "hash table", "slots"];
const SLOTS: usize = 3;

/// Evenly spaced on a logarithmic axis, as far as whole numbers are.
const COUNTS: &[usize] =
    &[1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 63, 80, 100, 126, 158, 200, 251, 316, 398, 501, 631, 794, 1000];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_cross_where_they_do() {
        let rising = Curve { name: "list", costs: [1.0, 10.0, 100.0, 1000.0].map(|n| (n, n)).to_vec() };
        let flat = Curve { name: "slots", costs: [1.0, 10.0, 100.0, 1000.0].map(|n| (n, 50.0)).to_vec() };
        let found = crossings(&[rising.clone(), flat]);
        assert_eq!(found.len(), 1);
        assert!(
            (found[0].upper, found[0].lower) == (0, 1) && (found[0].at - 50.0).abs() < 0.1 && (found[0].cost - 50.0).abs() < 0.1
        );
        assert_eq!(rising.range(), (1.0, 1000.0));
    }

    #[test]
    fn every_structure_finds_the_same() {
        for count in [1, 2, 100] {
            assert!(Contest::new(count).agree());
        }
        let curves: Vec<_> = NAMES.map(|name| Curve { name, costs: COUNTS.iter().map(|n| (*n as f64, 2.0)).collect() }).to_vec();
        assert_eq!(numbers(&curves).lines().count(), COUNTS.len() + 1);
        let drawn = plot(&curves, &[]);
        assert!(drawn.starts_with("<svg") && drawn.ends_with("</svg>\n") && drawn.matches("<polyline").count() == 4);
    }
}
