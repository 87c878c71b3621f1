//! What it costs to turn a number into its text and back, for `spec/for-maintainers.md`: a server that hands a typed
//! command's numbers on to what wants strings (a module, a log, MONITOR) prints them, one that is given text parses it.
//!
//! `number_cost (print|parse)-(int|double) REPEATS` does so for 1,000 numbers, REPEATS times; callgrind counts.

use std::hint::black_box;

use weft_protocol::number;

fn ints() -> Vec<i64> {
    (0..1000_i64).map(|i| i * i * 7919 % 1_000_003).collect()
}

fn doubles() -> Vec<f64> {
    ints().into_iter().map(|int| int as f64 / 64.0).collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, repeats] = arguments.as_slice() else {
        eprintln!("usage: number_cost (print|parse)-(int|double) REPEATS");
        std::process::exit(2);
    };
    let repeats: u64 = repeats.parse().expect("REPEATS is a number");
    let (ints, doubles) = (ints(), doubles());
    let texts: Vec<Vec<u8>> = match what.ends_with("int") {
        true => ints.iter().map(|int| int.to_string().into_bytes()).collect(),
        false => doubles.iter().map(|double| double.to_string().into_bytes()).collect(),
    };
    let (mut out, mut fold) = (Vec::with_capacity(64), 0u64);
    for _ in 0..repeats {
        for at in 0..texts.len() {
            out.clear();
            match what.as_str() {
                "print-int" => number::push_int(&mut out, black_box(ints[at])),
                "print-double" => number::push_double(&mut out, black_box(doubles[at])),
                "parse-int" => fold += number::parse_int(black_box(&texts[at])).unwrap_or(0) as u64,
                _ => fold ^= number::parse_double(black_box(&texts[at])).unwrap_or(0.0).to_bits(),
            }
            fold = fold.wrapping_add(out.len() as u64);
        }
    }
    println!("{} {fold}", repeats * texts.len() as u64);
}
