//! The tables of a run, built from its results. Owns what is shown and in which words.

use super::ladder::Step;
use super::results::{Cell, Measured, Results};
use super::seed::{self, CLAIMS, RESP, RESPB, VALKEY};
use super::stream::Wire;
use weft_measure::{Table, number};

/// Every table, in the order in which they are read.
pub(super) fn all(results: &Results) -> Vec<Table> {
    let mut tables = vec![summary(results)];
    for cell in &results.cells {
        tables.extend([ladder(cell), contestants(cell), heap(cell), counts(cell), latency(cell)]);
    }
    if results.cells.iter().any(|cell| cell.size_mb == 1 && cell.key_length == 6) {
        tables.push(targets(results));
    }
    tables.retain(|table| !table.is_empty());
    tables
}

fn per_cent(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_string(), |value| format!("{value:.1} %"))
}

/// Millions of commands a second of one core.
fn throughput(cpu_ns: Option<f64>) -> String {
    cpu_ns.map_or_else(|| "–".to_string(), |ns| format!("{:.1}M cmd/s", 1000.0 / ns))
}

pub(super) fn name(cell: &Cell) -> String {
    match (cell.key_length, cell.size_mb) {
        (0, _) => cell.workload.clone(),
        (key, mb) => format!("{}, keys of {key}, {mb} MB", cell.workload),
    }
}

/// The founding benchmark's table: Valkey's parser against RESPB, its own figures below ours.
pub(super) fn summary(results: &Results) -> Table {
    let mut table = Table::new(
        "RESP is Valkey's parser, RESPB is Weft's decoder with every field decoded and checked; below each \
         workload what the founding benchmark says",
        &[
            "Workload",
            "RESP Throughput",
            "RESPB Throughput",
            "Speedup",
            "Bandwidth Savings",
            "Memory Savings",
        ],
    );
    for cell in &results.cells {
        let peak =
            |id: &str| cell.get(id).and_then(|measured| measured.heap).map(|heap| heap.peak_bytes as f64);
        let memory = match (peak(VALKEY), peak(RESPB)) {
            (Some(theirs), Some(ours)) if theirs > 0.0 => Some(100.0 - 100.0 * ours / theirs),
            _ => None,
        };
        table.row(vec![
            name(cell),
            throughput(cell.cpu(VALKEY)),
            throughput(cell.cpu(RESPB)),
            cell.times(VALKEY, RESPB).map_or_else(|| "–".to_string(), |times| format!("{times:.1}x")),
            per_cent(Some(cell.saved())),
            per_cent(memory),
        ]);
        let is_last = !results
            .cells
            .iter()
            .rev()
            .take_while(|other| !std::ptr::eq(*other, cell))
            .any(|other| other.workload == cell.workload);
        if let Some(claim) = CLAIMS.iter().find(|claim| claim.workload == cell.workload && is_last) {
            table.row(vec![
                format!("  {} in the seed", claim.workload),
                format!("{:.1}M cmd/s", claim.resp),
                format!("{:.1}M cmd/s", claim.respb),
                format!("{:.1}x", claim.speedup),
                per_cent(Some(claim.bandwidth)),
                per_cent(Some(claim.memory)),
            ]);
        }
    }
    table
}

/// What each step of taking a command in costs, on each wire.
pub(super) fn ladder(cell: &Cell) -> Table {
    let title = format!("The ladder, {}: CPU ns per command", name(cell));
    let mut table = Table::new(
        title,
        &["step", "RESP", "RESPB ARGV", "RESPB", "RESP / RESPB", "step RESP", "step RESPB"],
    );
    let mut before = [0.0; 2];
    for step in Step::ALL {
        let cpu = |wire: Wire| cell.cpu(&format!("weft/{}/{}", wire.id(), step.id()));
        let (Some(resp), Some(respb)) = (cpu(Wire::Resp), cpu(Wire::Respb)) else { continue };
        table.row(vec![
            step.name().to_string(),
            number(Some(resp), 1),
            number(cpu(Wire::Argv), 1),
            number(Some(respb), 1),
            number(Some(resp / respb), 2),
            format!("{:+.1}", resp - before[0]),
            format!("{:+.1}", respb - before[1]),
        ]);
        before = [resp, respb];
    }
    let reading = |index: usize| cell.reading.get(index).copied();
    table.row(vec![
        "only reading the bytes".to_string(),
        number(reading(0), 1),
        "–".to_string(),
        number(reading(1), 1),
        number(reading(0).zip(reading(1)).map(|(resp, respb)| resp / respb), 2),
        String::new(),
        String::new(),
    ]);
    table
}

/// Every contestant's CPU time.
pub(super) fn contestants(cell: &Cell) -> Table {
    let title = format!(
        "Contestants, {}: {} commands, {} bytes in RESP, {} in RESPB, sum {}",
        name(cell),
        cell.commands,
        cell.resp_bytes,
        cell.respb_bytes,
        cell.checksum
    );
    let mut table = Table::new(
        title,
        &["contestant", "ns/cmd", "lowest", "highest", "M cmd/s", "MB/s", "times faster than Valkey"],
    );
    let valkey = cell.cpu(VALKEY);
    for measured in &cell.contestants {
        let median = measured.cpu_ns.median;
        let bytes = match measured.id.as_str() {
            id if id.contains("argv") => cell.argv_bytes,
            id if id.contains("respb") => cell.respb_bytes,
            _ => cell.resp_bytes,
        };
        table.row(vec![
            measured.label.clone(),
            number(Some(median), 1),
            number(Some(measured.cpu_ns.low), 1),
            number(Some(measured.cpu_ns.high), 1),
            number(Some(1000.0 / median), 1),
            format!("{:.0}", bytes as f64 / cell.commands as f64 / median * 1000.0),
            number(valkey.map(|valkey| valkey / median), 2),
        ]);
    }
    table
}

/// What is allocated: the founding benchmark's memory column, for a command.
pub(super) fn heap(cell: &Cell) -> Table {
    let title = format!("Heap, {}", name(cell));
    let mut table =
        Table::new(title, &["contestant", "allocations/cmd", "bytes/cmd", "peak bytes of a pass"]);
    for measured in &cell.contestants {
        if let Some(heap) = &measured.heap {
            table.row(vec![
                measured.label.clone(),
                number(Some(heap.allocations), 2),
                number(Some(heap.bytes), 1),
                heap.peak_bytes.to_string(),
            ]);
        }
    }
    table
}

fn optional(
    cell: &Cell,
    title: &str,
    head: &[&str],
    row: impl Fn(&Measured) -> Option<Vec<String>>,
) -> Table {
    let mut table = Table::new(format!("{title}, {}", name(cell)), head);
    for measured in &cell.contestants {
        if let Some(cells) = row(measured) {
            table.row(std::iter::once(measured.label.clone()).chain(cells).collect());
        }
    }
    table
}

pub(super) fn counts(cell: &Cell) -> Table {
    let head = ["contestant", "instructions", "branch misses", "L1 misses", "last-level misses"];
    optional(cell, "Callgrind, for each command", &head, |measured| {
        let counts = measured.counts?;
        let values = [counts.instructions, counts.branch_misses, counts.l1_misses, counts.last_misses];
        Some(
            [1, 2, 2, 2].iter().zip(values).map(|(&decimals, value)| number(Some(value), decimals)).collect(),
        )
    })
}

pub(super) fn latency(cell: &Cell) -> Table {
    let clock =
        cell.contestants.iter().find_map(|measured| measured.latency).map_or(0, |latency| latency.clock_ns);
    let title = format!("Latency of a batch of 64 commands in ns, {clock} ns of clock taken off");
    optional(cell, &title, &["contestant", "p50", "p90", "p99", "max", "samples"], |measured| {
        let latency = measured.latency?;
        let values = [latency.p50, latency.p90, latency.p99, latency.max, latency.samples as u64];
        Some(values.iter().map(u64::to_string).collect())
    })
}

pub(super) fn targets(results: &Results) -> Table {
    let mut table = Table::new("Targets: 1 MB, keys of 6 bytes", &["target", "at least", "measured", ""]);
    for target in seed::targets(results) {
        table.row(vec![
            target.what.clone(),
            number(Some(target.least), 1),
            target.reached.map_or_else(
                || "–".to_string(),
                |ratio| match ratio.low == ratio.high {
                    true => number(Some(ratio.value), 1),
                    false => format!("{:.1} ({:.1}–{:.1})", ratio.value, ratio.low, ratio.high),
                },
            ),
            target.verdict().map_or_else(String::new, |verdict| verdict.to_string()),
        ]);
    }
    table
}

/// How the gain over Valkey's parser divides: ns of a command saved by binary lengths, by opcodes, by not making
/// objects.
pub(super) fn split(results: &Results) -> Table {
    let mut table = Table::new(
        "Where the gain comes from, CPU ns per command",
        &[
            "workload",
            "Valkey, looked up",
            "no objects",
            "binary lengths",
            "opcode for a name",
            "RESPB, looked up",
        ],
    );
    for cell in &results.cells {
        let cpu = |id: &str| cell.cpu(id);
        let (Some(valkey), Some(resp), Some(respb)) =
            (cpu("valkey/lookup"), cpu("weft/resp/lookup"), cpu("weft/respb/lookup"))
        else {
            continue;
        };
        let (fields_resp, fields_respb) = (cpu(RESP).unwrap_or(0.0), cpu(RESPB).unwrap_or(0.0));
        table.row(vec![
            name(cell),
            number(Some(valkey), 1),
            format!("−{:.1}", valkey - resp),
            format!("−{:.1}", fields_resp - fields_respb),
            format!("−{:.1}", (resp - fields_resp) - (respb - fields_respb)),
            number(Some(respb), 1),
        ]);
    }
    table
}
