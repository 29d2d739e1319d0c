//! A plot as SVG: both axes logarithmic, lines with their names at their ends, marks with numbers.

use std::fmt::Write;

/// A plot's data.
pub(super) struct Plot<'a> {
    pub(super) title: &'a str,
    /// Quantity of the horizontal axis.
    pub(super) across: &'a str,
    /// Quantity of the vertical axis.
    pub(super) up: &'a str,
    pub(super) lines: Vec<Line<'a>>,
    pub(super) marks: Vec<Mark>,
}

/// A line through points, from the left to the right.
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    pub(super) points: &'a [(f64, f64)],
}

/// A circle with a label above it.
pub(super) struct Mark {
    pub(super) at: (f64, f64),
    pub(super) text: String,
}

/// From numbers to places in the picture.
struct Scale {
    /// The powers of ten at both ends of each axis.
    across: (i32, i32),
    up: (i32, i32),
}

impl Plot<'_> {
    pub(super) fn svg(&self) -> String {
        let scale = self.scale();
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
             <title>{}</title>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
             <text x=\"{EDGE}\" y=\"24\" font-size=\"16\">{}</text>\n",
            self.title, self.title
        );
        self.axes(&mut out, &scale);
        for (line, colour) in self.lines.iter().zip(COLOURS.iter().cycle()) {
            let points: Vec<_> = line.points.iter().map(|point| scale.place(*point)).collect();
            let path: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let _ = writeln!(out, "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>", path.join(" "));
            if let Some((x, y)) = points.last() {
                let _ = writeln!(out, "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{}</text>", x + 8.0, y + 4.0, line.name);
            }
        }
        for mark in &self.marks {
            let (x, y) = scale.place(mark.at);
            let _ =
                writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"none\" stroke=\"#222\" stroke-width=\"1.5\"/>");
            // With an edge of white: a line may pass underneath.
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#222\" stroke=\"#fff\" stroke-width=\"4\" \
                 paint-order=\"stroke\">{}</text>",
                y - 9.0,
                mark.text
            );
        }
        out.push_str("</svg>\n");
        out
    }

    fn axes(&self, out: &mut String, scale: &Scale) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for power in scale.across.0..=scale.across.1 {
            let (x, _) = scale.place((10f64.powi(power), 1.0));
            let _ = writeln!(out, "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/>");
            let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>", bottom + 18.0, number(power));
        }
        for power in scale.up.0..=scale.up.1 {
            let (_, y) = scale.place((1.0, 10f64.powi(power)));
            let _ = writeln!(out, "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#ddd\"/>");
            let _ = writeln!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", LEFT - 8.0, y + 4.0, number(power));
        }
        let middle = (LEFT + right) / 2.0;
        let _ = writeln!(out, "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>", bottom + 38.0, self.across);
        let _ = writeln!(out, "<text x=\"{EDGE}\" y=\"{}\">{}</text>", TOP - 14.0, self.up);
    }

    /// Whole powers of ten around all points.
    fn scale(&self) -> Scale {
        let points = || self.lines.iter().flat_map(|line| line.points);
        let around = |values: Vec<f64>| {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            let ends = (least.log10().floor() as i32, most.log10().ceil() as i32);
            if ends.0 < ends.1 { ends } else { (ends.0, ends.0 + 1) }
        };
        Scale { across: around(points().map(|p| p.0).collect()), up: around(points().map(|p| p.1).collect()) }
    }
}

impl Scale {
    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let part = |value: f64, ends: (i32, i32)| (value.log10() - f64::from(ends.0)) / f64::from(ends.1 - ends.0);
        let bottom = HEIGHT - BOTTOM;
        (LEFT + part(x, self.across) * (WIDTH - RIGHT - LEFT), bottom - part(y, self.up) * (bottom - TOP))
    }
}

/// A power of ten as it is read.
fn number(power: i32) -> String {
    match power {
        0.. => format!("1{}", "0".repeat(power as usize)),
        _ => format!("{}", 10f64.powi(power)),
    }
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
/// Left edge of the title.
const EDGE: f64 = 20.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 100.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 55.0;

/// Colours that can be told apart by colour-blind readers, too (Okabe and Ito).
const COLOURS: [&str; 4] = ["#d55e00", "#0072b2", "#009e73", "#cc79a7"];
