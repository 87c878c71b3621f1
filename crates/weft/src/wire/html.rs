//! The report in HTML: one file with its plots in it, for a browser without a network. Owns the page around tables
//! and plots.

use super::results::{Cell, Results};
use super::seed::CLAIMS;
use super::{page, tables};
use weft_measure::escape;
use weft_measure::plot::{self, Bar};

pub(crate) const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:960px;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:1.5em \
0;font-size:13px}caption{text-align:left;font-weight:bold;padding-bottom:.4em}\
th,td{padding:.15em .7em;text-align:right;border-bottom:1px solid #ddd}th:first-child,td:first-child{text-align:left}\
svg{width:100%;height:auto;margin:1em 0}\
@media (prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}th,td{border-color:#30363d}}";

pub(super) fn report(results: &Results) -> String {
    let paragraphs = |texts: Vec<String>| -> String {
        texts.iter().map(|text| format!("<p>{}</p>\n", escape(&text.replace('`', "")))).collect()
    };
    let list = |texts: Vec<String>| -> String {
        let items: String =
            texts.iter().map(|text| format!("<li>{}</li>\n", escape(&text.replace('`', "")))).collect();
        format!("<ul>\n{items}</ul>\n")
    };
    let plots: String = results.cells.iter().filter(|cell| cell.key_length != 20).map(cpu).collect();
    let all: String = tables::all(results).iter().map(|table| table.html()).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>weft \
         wire</title><style>{STYLE}</style></head>\n\
         <body>\n<h1>What decoding a request costs</h1>\n<h2>Method</h2>\n{}<h2>Times faster than Valkey's \
         parser</h2>\n{}\
         <h2>CPU time</h2>\n{plots}<h2>Tables</h2>\n{all}<h2>Conclusion</h2>\n{}<h2>Where the founding documents \
         contradict themselves</h2>\n{}</body>\n</html>\n",
        list(page::method(results)),
        speedups(results),
        paragraphs(page::conclusion(results)),
        list(page::contradictions())
    )
}

fn group(id: &str) -> usize {
    match id {
        id if id.starts_with("valkey") => 0,
        id if id.contains("argv") => 3,
        id if id.contains("respb") => 2,
        _ => 1,
    }
}

/// Everyone's CPU time on a stream.
fn cpu(cell: &Cell) -> String {
    let bars: Vec<Bar> = cell
        .contestants
        .iter()
        .map(|measured| Bar {
            label: measured.label.clone(),
            value: measured.cpu_ns.median,
            spread: Some((measured.cpu_ns.low, measured.cpu_ns.high)),
            group: group(&measured.id),
            goal: None,
        })
        .collect();
    plot::bars(
        &format!(
            "{}: CPU time per command, the line from the lowest round to the highest",
            tables::name(cell)
        ),
        "ns",
        1,
        &bars,
    )
}

/// The headline, with the founding benchmark's beside it.
pub(super) fn speedups(results: &Results) -> String {
    let mut bars = Vec::new();
    for cell in results.cells.iter().filter(|cell| cell.key_length != 20 && cell.size_mb <= 1) {
        let mut bar = |label: String, value: Option<f64>, group| {
            bars.extend(value.map(|value| Bar { label, value, spread: None, group, goal: None }));
        };
        let claim = CLAIMS.iter().find(|claim| claim.workload == cell.workload);
        bar(format!("{}, the seed's claim", cell.workload), claim.map(|claim| claim.speedup), 3);
        for (what, fast, group) in [("RESPB", super::seed::RESPB, 2), ("Weft's RESP", super::seed::RESP, 1)] {
            bar(
                format!("{}, {what}, fields decoded and checked", cell.workload),
                cell.times(super::seed::VALKEY, fast),
                group,
            );
        }
        let objects = cell.times("valkey/lookup", "weft/respb/objects");
        bar(format!("{}, RESPB, looked up, with an object for each argument", cell.workload), objects, 2);
    }
    plot::bars("Times faster than Valkey's parser, 1 MB", "times", 1, &bars)
}
