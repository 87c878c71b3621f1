//! Bars with their numbers. Owns the drawing.

use std::fmt::Write as _;

use super::{COLOURS, WIDTH, head};
use crate::table::escape;

/// A bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// To its left.
    pub label: String,
    /// How long it is.
    pub value: f64,
    /// The ends of the line that shows how far the rounds lie apart, or an interval reaches.
    pub spread: Option<(f64, f64)>,
    /// Which of the colours.
    pub group: usize,
    /// Where a goal stands.
    pub goal: Option<f64>,
}

/// Room for labels, and at most for long ones.
const LABELS: f64 = 330.0;
const LABELS_MAX: f64 = 560.0;
/// A letter takes at most so much on average, in the wider of the usual fonts.
const LETTER: f64 = 7.0;
/// Between a label and its bar.
const GAP: f64 = 6.0;
const ROW: f64 = 22.0;
/// Room to the right of the longest bar for its number.
const NUMBERS: f64 = 80.0;

/// Horizontal bars under a title, each with its number in so many decimals.
pub fn bars(title: &str, unit: &str, decimals: usize, bars: &[Bar]) -> String {
    let reach = |bar: &Bar| {
        bar.spread.map_or(bar.value, |(_, high)| high.max(bar.value)).max(bar.goal.unwrap_or(0.0))
    };
    let most = bars.iter().map(reach).fold(f64::MIN_POSITIVE, f64::max);
    let letters = bars.iter().map(|bar| bar.label.chars().count()).max().unwrap_or(0);
    let labels = (letters as f64 * LETTER + GAP).clamp(LABELS, LABELS_MAX);
    let x = |value: f64| labels + value / most * (WIDTH - labels - NUMBERS);
    let mut svg = head(title, 34.0 + ROW * bars.len() as f64);
    for (index, bar) in bars.iter().enumerate() {
        let y = 28.0 + ROW * index as f64;
        let (width, middle) = (x(bar.value) - labels, y + ROW / 2.0 - 3.0);
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><rect class=\"c{}\" x=\"{labels}\" \
             y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\">{:.decimals$} \
             {}</text>",
            labels - GAP,
            middle + 4.0,
            escape(&bar.label),
            bar.group % COLOURS,
            ROW - 6.0,
            x(reach(bar)) + 6.0,
            middle + 4.0,
            bar.value,
            escape(unit)
        );
        if let Some((low, high)) = bar.spread {
            let _ = writeln!(
                svg,
                "<line class=\"mark\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\" \
                 stroke-width=\"1.5\"/>",
                x(low),
                x(high)
            );
        }
        if let Some(goal) = bar.goal {
            let _ = writeln!(
                svg,
                "<line class=\"mark\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1:.1}\" y2=\"{2:.1}\" \
                 stroke-width=\"2\" stroke-dasharray=\"3 2\"/>",
                x(goal),
                y - 2.0,
                y + ROW - 4.0
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
        let bar = |value| Bar { label: "a<b".to_string(), value, spread: None, group: 0, goal: None };
        let svg = bars("T", "ns", 1, &[bar(1.0), bar(2.0)]);
        let full = WIDTH - LABELS - NUMBERS;
        assert!(
            svg.contains(&format!("width=\"{:.1}\"", full))
                && svg.contains(&format!("width=\"{:.1}\"", full / 2.0))
        );
        assert!(svg.contains("a&lt;b"));
    }

    #[test]
    fn long_labels_have_room() {
        let bar = |label: &str| Bar { label: label.into(), value: 1.0, spread: None, group: 0, goal: None };
        for (letters, labels) in [(1, LABELS), (60, 60.0 * LETTER + GAP), (200, LABELS_MAX)] {
            let svg = bars("T", "ns", 1, &[bar("a"), bar(&"é".repeat(letters))]);
            let rect = format!("x=\"{labels}\" y=\"28.0\" width=\"{:.1}\"", WIDTH - labels - NUMBERS);
            assert!(svg.contains(&rect), "{letters}: {svg}");
        }
    }
}
