//! The plot: a panel for each coding and way of coming, time across, bytes upward, a line for each program.

use super::program::OURS;
use super::{Mode, Point};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Nanoseconds a byte, and bytes of a hundred.
type Place = (f64, f64);

struct Panel {
    title: String,
    lines: Vec<(String, Vec<Place>)>,
}

/// The whole picture, of the bodies of 132 KB or the next smaller size.
pub(crate) fn svg(points: &[Point]) -> String {
    let size = points.iter().map(|point| point.size).filter(|size| *size <= 132 << 10).max().unwrap_or(0);
    let mut panels = Vec::new();
    for mode in [Mode::Whole, Mode::Parts] {
        for coding in ["gzip", "zstd", "br"] {
            panels.push(panel(points, size, mode, coding));
        }
    }
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Bytes and time, all kinds of bodies</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        3.0 * WIDTH,
        2.0 * HEIGHT
    );
    for (number, panel) in panels.iter().enumerate() {
        let (x, y) = ((number % 3) as f64 * WIDTH, (number / 3) as f64 * HEIGHT);
        let _ = writeln!(out, "<g transform=\"translate({x} {y})\">");
        panel.draw(&mut out);
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

/// The means over the kinds of bodies.
fn panel(points: &[Point], size: usize, mode: Mode, coding: &str) -> Panel {
    let mut sums: BTreeMap<&str, BTreeMap<i32, (f64, f64, f64)>> = BTreeMap::new();
    for point in points.iter().filter(|p| p.size == size && p.mode == mode && p.coding == coding) {
        let sum = sums.entry(&point.program).or_default().entry(point.level).or_default();
        *sum = (sum.0 + point.cpu_us * 1e3 / size as f64, sum.1 + 100.0 * point.bytes / size as f64, sum.2 + 1.0);
    }
    let lines = sums.into_iter().map(|(name, levels)| {
        let mut places: Vec<Place> = levels.into_values().map(|(ns, bytes, count)| (ns / count, bytes / count)).collect();
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        (name.to_owned(), places)
    });
    let comes = if mode == Mode::Whole { "whole" } else { "in pieces" };
    Panel { title: format!("{coding}, {comes}"), lines: lines.collect() }
}

impl Panel {
    fn draw(&self, out: &mut String) {
        let _ = writeln!(out, "<text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{}</text>", self.title);
        let places = || self.lines.iter().flat_map(|line| line.1.iter());
        let (least, most) = places().fold((f64::INFINITY, 0.0f64), |(l, m), p| (l.min(p.1), m.max(p.1)));
        let (first, last) = places().fold((f64::INFINITY, 0.0f64), |(l, m), p| (l.min(p.0), m.max(p.0)));
        if most <= 0.0 || first <= 0.0 {
            return;
        }
        let (low, high) = (least.floor(), (most.ceil()).max(least.floor() + 1.0));
        let (from, to) = (first.log10() - 0.05, last.log10() + 0.05);
        let place = |&(ns, bytes): &Place| {
            let across = (ns.log10() - from) / (to - from);
            let up = (bytes - low) / (high - low);
            (LEFT + across * (WIDTH - LEFT - RIGHT), TOP + (1.0 - up) * (HEIGHT - TOP - BOTTOM))
        };
        axes(out, (low, high), (from, to), &place);
        for (number, (name, places)) in self.lines.iter().enumerate() {
            let is_ours = name == OURS;
            let colour = if is_ours { "#000" } else { COLOURS.get(number % COLOURS.len()).copied().unwrap_or("#888") };
            let at: Vec<(f64, f64)> = places.iter().map(place).collect();
            let path: Vec<String> = at.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let width = if is_ours { 2.5 } else { 1.2 };
            let _ = writeln!(
                out,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" points=\"{}\"/>",
                path.join(" ")
            );
            for (x, y) in &at {
                let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{width}\" fill=\"{colour}\"/>");
            }
            let y = TOP + 4.0 + 14.0 * number as f64;
            let _ =
                writeln!(out, "<text x=\"{}\" y=\"{y}\" text-anchor=\"end\" fill=\"{colour}\">{name}</text>", WIDTH - RIGHT - 4.0);
        }
    }
}

fn axes(out: &mut String, (low, high): Place, (from, to): Place, place: &dyn Fn(&Place) -> (f64, f64)) {
    let step = ((high - low) / 5.0).ceil().max(1.0);
    let mut part = low;
    while part <= high {
        let (_, y) = place(&(1.0, part));
        let _ = writeln!(out, "<path d=\"M{LEFT} {y:.1}H{}\" stroke=\"#ddd\"/>", WIDTH - RIGHT);
        let _ = writeln!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{part} %</text>", LEFT - 5.0, y + 4.0);
        part += step;
    }
    for power in -1..5 {
        for digit in [1.0, 2.0, 5.0] {
            let ns: f64 = digit * 10f64.powi(power);
            if (from..=to).contains(&ns.log10()) {
                let (x, _) = place(&(ns, low));
                let bottom = HEIGHT - BOTTOM;
                let _ = writeln!(out, "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#eee\"/>");
                let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{ns}</text>", bottom + 16.0);
            }
        }
    }
    let _ = writeln!(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">ns a byte</text>", WIDTH - RIGHT, HEIGHT - 8.0);
}

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 40.0;

/// Colours that can be told apart by colour-blind readers, too (Okabe and Ito).
const COLOURS: [&str; 7] = ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999"];

#[cfg(test)]
mod tests {
    use super::super::verdict::tests::point;
    use super::*;

    #[test]
    fn every_program_has_a_line_in_its_panel() {
        let points = [point(OURS, 1, 500.0, 10.0), point(OURS, 6, 400.0, 30.0), point("zlib-1", 1, 499.0, 9.0)];
        let svg = svg(&points);
        assert_eq!(svg.matches("<polyline").count(), 2, "{svg}");
        assert!(svg.contains(">gzip, whole</text>") && svg.contains(">zlib-1</text>") && !svg.contains("NaN"), "{svg}");
    }
}
