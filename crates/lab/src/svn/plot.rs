//! The results as bars, in SVG: a panel for each figure, a bar for each scenario.

use super::scenario::{Measured, SCENARIOS};
use std::fmt::Write;

/// A figure: its name, how it is read from a result, and how it is written.
type Panel = (&'static str, fn(&Measured) -> f64, fn(f64) -> String);

const PANELS: &[Panel] = &[
    ("bytes read, MB", |m| m.bytes_read as f64 / 1e6, |v| format!("{v:.2}")),
    ("bytes written, KB", |m| m.bytes_written as f64 / 1e3, |v| format!("{v:.0}")),
    ("total time, s", |m| m.time.as_secs_f64(), |v| format!("{v:.1}")),
    ("CPU of the proxies, s", |m| m.cpu.as_secs_f64(), |v| format!("{v:.2}")),
];

pub(super) fn svg(all: &[Measured]) -> String {
    let height = TOP + PANEL * PANELS.len().div_ceil(2) as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>{TITLE}</title>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"20\" y=\"26\" font-size=\"16\">{TITLE}</text>\n"
    );
    for (number, (name, read, written)) in PANELS.iter().enumerate() {
        let left = 20.0 + (number % 2) as f64 * WIDTH / 2.0;
        let top = TOP + (number / 2) as f64 * PANEL;
        let most = all.iter().map(read).fold(f64::MIN_POSITIVE, f64::max);
        let _ = writeln!(out, "<text x=\"{left}\" y=\"{:.1}\" font-weight=\"bold\">{name}</text>", top + 14.0);
        for (i, (scenario, measured)) in SCENARIOS.iter().zip(all).enumerate() {
            let y = top + 26.0 + i as f64 * BAR;
            let value = read(measured);
            let width = value / most * BARS;
            let _ = writeln!(out, "<text x=\"{left}\" y=\"{:.1}\">{}</text>", y + 13.0, scenario.name);
            let _ = writeln!(
                out,
                "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                left + NAMES,
                BAR - 5.0,
                COLOURS[i % COLOURS.len()]
            );
            let _ = writeln!(out, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", left + NAMES + width + 6.0, y + 13.0, written(value));
        }
    }
    out.push_str("</svg>\n");
    out
}

const TITLE: &str = "svn checkout over 4 Mbit/s: who compresses (shorter is better)";
const WIDTH: f64 = 760.0;
const TOP: f64 = 44.0;
const PANEL: f64 = 182.0;
const BAR: f64 = 23.0;
const NAMES: f64 = 64.0;
const BARS: f64 = 230.0;

/// Colours that can be told apart by colour-blind readers, too (Okabe and Ito).
const COLOURS: [&str; 6] = ["#d55e00", "#0072b2", "#999999", "#009e73", "#cc79a7", "#e69f00"];
