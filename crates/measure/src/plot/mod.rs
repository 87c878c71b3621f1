//! Plots as SVG: enough for the reports, so that no plotting library is needed (docs/adr/0008-wire-benchmark.md). Owns
//! the frame and the colours, for a light and a dark page, which the reader's browser chooses between; [`bars`] and
//! [`lines`] draw.

mod bars;
mod lines;

pub use bars::{Bar, bars};
pub use lines::{Line, over_factors, percentiles};

use crate::table::escape;

/// Width of every plot.
const WIDTH: f64 = 860.0;
/// How many colours there are; further series begin again.
const COLOURS: usize = 8;

/// Told apart by brightness as well as by hue, on white and on black. Scoped by a class: a page may have several plots
/// in it, and a text of its own.
const STYLE: &str = "\
.plot text{fill:#1f2328}.plot .grid{stroke:#d8dee4}.plot .mark{stroke:#1f2328}\
.plot .c0{--c:#8a4b08}.plot .c1{--c:#1f6fb2}.plot .c2{--c:#2a9d5c}.plot .c3{--c:#8c959f}\
.plot .c4{--c:#c43c5a}.plot .c5{--c:#6a4fb3}.plot .c6{--c:#b58105}.plot .c7{--c:#0f4c4c}\
.plot rect{fill:var(--c)}.plot polyline{stroke:var(--c)}\
@media (prefers-color-scheme:dark){.plot text{fill:#e6edf3}.plot .grid{stroke:#30363d}.plot .mark{stroke:#e6edf3}\
.plot .c0{--c:#e0965a}.plot .c1{--c:#58a6ff}.plot .c2{--c:#56d391}.plot .c3{--c:#8b949e}\
.plot .c4{--c:#ff7b94}.plot .c5{--c:#b69cff}.plot .c6{--c:#e3b341}.plot .c7{--c:#4fc1c1}}";

/// The beginning of a plot of some height, its title included. `</svg>` ends it.
fn head(title: &str, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" class=\"plot\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<style>{STYLE}</style>\n<title>{0}</title>\n<text x=\"0\" \
         y=\"16\" font-size=\"14\" font-weight=\"bold\">{0}</text>\n",
        escape(title)
    )
}
