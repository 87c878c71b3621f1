//! Nanoseconds per command of the decoders, RESP beside RESPB: `cargo bench`, with `--json` for a machine.
//!
//! Rounds of all workloads take turns, so that a change of the machine's speed meets all of them, and the median of the
//! rounds counts. What is decoded is consumed as in `examples/decode_cost.rs`: every length and number and the first
//! and last byte of each argument are folded into a checksum that is compared. Arguments are visited; no object is
//! built and no command is looked up.

use std::hint::black_box;
use std::time::Instant;

#[path = "../examples/decode_cost.rs"]
#[allow(dead_code, reason = "its `main` is for callgrind")]
mod decode_cost;

use decode_cost::{Stream, decode_resp, decode_respb, stream};

const WORKLOADS: [(&str, &str); 3] = [
    ("get", "GET, 20-byte key"),
    ("set", "SET, 20-byte key, 50-byte value"),
    ("mget", "MGET, 10 keys of 20 bytes"),
];
/// Rounds that count, and rounds before them that do not.
const ROUNDS: usize = 51;
const WARM_UP_ROUNDS: usize = 5;

struct Row {
    name: &'static str,
    streams: [Stream; 2],
    /// Nanoseconds per command of each round; RESP, RESPB.
    rounds: [Vec<f64>; 2],
}

fn measure(stream: &Stream, decode: fn(&[u8]) -> u64) -> f64 {
    let begun = Instant::now();
    let checksum = decode(black_box(&stream.bytes));
    let elapsed = begun.elapsed();
    assert_eq!(checksum, stream.checksum, "decoding gave other arguments");
    elapsed.as_nanos() as f64 / stream.commands as f64
}

/// Lower quartile, median, upper quartile.
fn quartiles(rounds: &[f64]) -> [f64; 3] {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| sorted[(sorted.len() - 1) * quarter / 4])
}

fn main() {
    // Cargo passes `--bench`.
    let json = std::env::args().any(|argument| argument == "--json");
    let mut rows: Vec<Row> = WORKLOADS
        .iter()
        .map(|&(workload, name)| Row {
            name,
            streams: [stream(workload, false), stream(workload, true)],
            rounds: [Vec::new(), Vec::new()],
        })
        .collect();
    for round in 0..WARM_UP_ROUNDS + ROUNDS {
        for row in &mut rows {
            let measured = [measure(&row.streams[0], decode_resp), measure(&row.streams[1], decode_respb)];
            if round >= WARM_UP_ROUNDS {
                row.rounds.iter_mut().zip(measured).for_each(|(rounds, ns)| rounds.push(ns));
            }
        }
    }
    if json {
        print_json(&rows);
    } else {
        print_table(&rows);
    }
}

fn print_table(rows: &[Row]) {
    println!(
        "Decoding, ns per command: median of {ROUNDS} rounds of about 1 MB (lower and upper quartile)\n"
    );
    println!("{:<34}{:>24}{:>24}{:>8}", "", "RESP", "RESPB", "ratio");
    for row in rows {
        let [resp, respb] = [&row.rounds[0], &row.rounds[1]].map(|rounds| quartiles(rounds));
        let cell = |[low, median, high]: [f64; 3]| format!("{median:.1} ({low:.1}–{high:.1})");
        println!("{:<34}{:>24}{:>24}{:>8.2}", row.name, cell(resp), cell(respb), resp[1] / respb[1]);
    }
    let per_command = |stream: &Stream| stream.bytes.len() as f64 / stream.commands as f64;
    println!("\nBytes per command: RESP, RESPB");
    for row in rows {
        let [resp, respb] = [&row.streams[0], &row.streams[1]].map(per_command);
        println!("{:<34}{resp:>24.1}{respb:>24.1}{:>8.2}", row.name, resp / respb);
    }
}

fn print_json(rows: &[Row]) {
    let mut entries = Vec::new();
    for row in rows {
        for (wire, index) in [("resp", 0), ("respb", 1)] {
            let ([low, median, high], stream) = (quartiles(&row.rounds[index]), &row.streams[index]);
            let rounds: Vec<String> = row.rounds[index].iter().map(|ns| format!("{ns:.2}")).collect();
            entries.push(format!(
                "{{\"workload\":\"{}\",\"wire\":\"{wire}\",\"ns_median\":{median:.2},\
                 \"ns_quartiles\":[{low:.2},{high:.2}],\"commands\":{},\"bytes\":{},\"ns_rounds\":[{}]}}",
                row.name,
                stream.commands,
                stream.bytes.len(),
                rounds.join(",")
            ));
        }
    }
    println!("[{}]", entries.join(",\n"));
}
