//! Lines as SVG: latencies over percentiles, and values over a logarithmic axis. Owns the drawing.

use std::fmt::Write as _;

use super::{COLOURS, WIDTH, head};
use crate::table::escape;

/// A line with its points, in order of x.
#[derive(Clone, Debug)]
pub struct Line {
    /// In the key below the plot.
    pub label: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
}

const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 50.0;
/// Height of a line of the key below the plot.
const KEY_ROW: f64 = 18.0;
/// Nines that the axis of percentiles goes to: 99.999 %.
const NINES: f64 = 5.0;

/// Latencies over percentiles: each step to the right is another nine.
pub fn percentiles(title: &str, unit: &str, lines: &[Line]) -> String {
    let nines = |quantile: f64| (-(1.0 - quantile).max(1e-12).log10()).clamp(0.0, NINES);
    let lines: Vec<Line> = lines
        .iter()
        .map(|line| {
            let mut points: Vec<(f64, f64)> =
                line.points.iter().map(|&(quantile, value)| (nines(quantile), value)).collect();
            points.dedup_by(|next, kept| next.0 == kept.0 && next.0 < NINES);
            Line { label: line.label.clone(), points }
        })
        .collect();
    let ticks =
        [(0.0, "0 %"), (1.0, "90 %"), (2.0, "99 %"), (3.0, "99.9 %"), (4.0, "99.99 %"), (5.0, "99.999 %")];
    let ticks: Vec<(f64, String)> = ticks.iter().map(|(at, text)| (*at, text.to_string())).collect();
    draw(title, unit, &lines, (0.0, NINES), &ticks)
}

/// Values over an axis whose steps are factors, such as numbers of clients.
pub fn over_factors(title: &str, unit: &str, lines: &[Line]) -> String {
    let mut xs: Vec<f64> = lines.iter().flat_map(|line| line.points.iter().map(|point| point.0)).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let (Some(&low), Some(&high)) = (xs.first(), xs.last()) else { return String::new() };
    let ticks: Vec<(f64, String)> = xs.iter().map(|&x| (x.log10(), format!("{x}"))).collect();
    let lines: Vec<Line> = lines
        .iter()
        .map(|line| Line {
            label: line.label.clone(),
            points: line.points.iter().map(|&(x, y)| (x.log10(), y)).collect(),
        })
        .collect();
    draw(title, unit, &lines, (low.log10(), high.log10().max(low.log10() + 1e-9)), &ticks)
}

/// Lines over `x_range`; values on a logarithmic axis from the power of ten below the least to that above the most.
fn draw(title: &str, unit: &str, lines: &[Line], x_range: (f64, f64), ticks: &[(f64, String)]) -> String {
    let values =
        || lines.iter().flat_map(|line| line.points.iter().map(|point| point.1)).filter(|&y| y > 0.0);
    let least = values().fold(f64::INFINITY, f64::min).log10().floor();
    let most = values().fold(f64::MIN_POSITIVE, f64::max).log10().ceil().max(least + 1.0);
    let (least, most) = if least.is_finite() { (least, most) } else { (0.0, 1.0) };
    let x = |at: f64| LEFT + (at - x_range.0) / (x_range.1 - x_range.0) * (WIDTH - LEFT - RIGHT);
    let bottom = HEIGHT - BOTTOM;
    let y =
        |value: f64| bottom - (value.max(1e-12).log10() - least).max(0.0) / (most - least) * (bottom - TOP);
    let height = HEIGHT + KEY_ROW * lines.len() as f64;
    let mut svg = head(title, height);
    // Writing to a String cannot fail.
    for (at, text) in ticks {
        let (x, text) = (x(*at), escape(text));
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" class=\"grid\"/><text x=\"{x:.1}\" \
             y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            bottom + 18.0
        );
    }
    for power in least as i32..=most as i32 {
        let at = y(10f64.powi(power));
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\" class=\"grid\"/><text x=\"{:.1}\" \
             y=\"{:.1}\" text-anchor=\"end\">{} {}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            10f64.powi(power),
            escape(unit)
        );
    }
    for (index, line) in lines.iter().enumerate() {
        let colour = index % COLOURS;
        let points: Vec<String> =
            line.points.iter().map(|&(at, value)| format!("{:.1},{:.1}", x(at), y(value))).collect();
        let row = HEIGHT + KEY_ROW * index as f64;
        let _ = writeln!(
            svg,
            "<polyline class=\"c{colour}\" fill=\"none\" stroke-width=\"2\" points=\"{}\"/><rect class=\"c{colour}\" x=\"{LEFT}\" \
             y=\"{row:.1}\" width=\"14\" height=\"10\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            points.join(" "),
            LEFT + 20.0,
            row + 10.0,
            escape(&line.label)
        );
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_drawn_between_their_powers_of_ten() {
        let line = Line {
            label: "a<b".into(),
            points: vec![(0.0, 1.0), (0.9, 10.0), (0.99999, 100.0), (1.0, 100.0)],
        };
        let svg = percentiles("T", "ms", &[line]);
        let bottom = HEIGHT - BOTTOM;
        assert!(svg.contains(&format!("{LEFT:.1},{bottom:.1} ")), "{svg}");
        assert!(svg.contains(&format!("{:.1},{TOP:.1}\"", WIDTH - RIGHT)), "{svg}");
        assert!(svg.contains("a&lt;b") && svg.contains("100 ms"));
        let line = Line { label: "c".into(), points: vec![(10.0, 5.0), (1000.0, 50.0)] };
        let svg = over_factors("T", "µs", &[line]);
        assert!(svg.contains(">1000</text>") && svg.contains("100 µs"), "{svg}");
        assert!(percentiles("T", "ms", &[]).ends_with("</svg>\n"));
    }
}
