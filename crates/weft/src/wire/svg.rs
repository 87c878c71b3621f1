//! Bars as SVG: enough for the report, so that no plotting library is needed (docs/adr/0008-wire-benchmark.md). Owns
//! the drawing.

use std::fmt::Write as _;

use super::table::escape;

/// A bar.
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) value: f64,
    /// The ends of the line that shows how far the rounds lie apart.
    pub(super) spread: Option<(f64, f64)>,
    /// Which of the colours.
    pub(super) group: usize,
}

/// Told apart by brightness as well as by hue.
const COLOURS: [&str; 4] = ["#8a4b08", "#1f6fb2", "#2a9d5c", "#999999"];
const WIDTH: f64 = 860.0;
const LABELS: f64 = 330.0;
const ROW: f64 = 22.0;
/// Room to the right of the longest bar for its number.
const NUMBERS: f64 = 80.0;

/// Horizontal bars under a title, each with its number.
pub(super) fn bars(title: &str, unit: &str, bars: &[Bar]) -> String {
    let reach = |bar: &Bar| bar.spread.map_or(bar.value, |(_, high)| high.max(bar.value));
    let most = bars.iter().map(reach).fold(f64::MIN_POSITIVE, f64::max);
    let x = |value: f64| LABELS + value / most * (WIDTH - LABELS - NUMBERS);
    let height = 34.0 + ROW * bars.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<title>{0}</title>\n<text x=\"0\" y=\"16\" \
         font-size=\"14\" font-weight=\"bold\">{0}</text>\n",
        escape(title)
    );
    for (index, bar) in bars.iter().enumerate() {
        let y = 28.0 + ROW * index as f64;
        let (width, middle) = (x(bar.value) - LABELS, y + ROW / 2.0 - 3.0);
        let colour = COLOURS[bar.group % COLOURS.len()];
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><rect x=\"{LABELS}\" y=\"{y:.1}\" \
             width=\"{width:.1}\" height=\"{:.1}\" fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{:.1}\">{:.1} \
             {}</text>",
            LABELS - 6.0,
            middle + 4.0,
            escape(&bar.label),
            ROW - 6.0,
            x(reach(bar)) + 6.0,
            middle + 4.0,
            bar.value,
            escape(unit)
        );
        if let Some((low, high)) = bar.spread {
            let _ = writeln!(
                svg,
                "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\" stroke=\"#222\" \
                 stroke-width=\"1.5\"/>",
                x(low),
                x(high)
            );
        }
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_values() {
        let bar = |value| Bar { label: "a<b".to_string(), value, spread: None, group: 0 };
        let svg = bars("T", "ns", &[bar(1.0), bar(2.0)]);
        let full = WIDTH - LABELS - NUMBERS;
        assert!(
            svg.contains(&format!("width=\"{:.1}\"", full))
                && svg.contains(&format!("width=\"{:.1}\"", full / 2.0))
        );
        assert!(svg.contains("a&lt;b"));
    }
}
