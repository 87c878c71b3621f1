//! The suite in a small form: every contestant that is there, on every workload and on random commands of the table.

use super::contest::{Drivers, Field, Plan};
use super::sample;
use super::stream::{Stream, Wire};
use crate::workload::kind::Kind;
use weft_measure::Random;

const PLAN: Plan = Plan { rounds: 2, passes: 1, samples: 20, counts: false };

/// `run` fails when a sum differs from the workload's or a byte of any argument does.
#[test]
fn everyone_agrees_on_every_workload() {
    let mut field = Field::gather(&Drivers::find()).unwrap();
    for kind in Kind::ALL {
        let stream = Stream::generate(kind, 200_000, 20, 5).unwrap();
        let cell = field.run(&stream, &PLAN).unwrap();
        for id in [super::seed::RESP, super::seed::RESPB] {
            let heap = cell.get(id).unwrap().heap.unwrap();
            assert!(heap.bytes == 0.0, "{id} allocates");
        }
    }
}

#[test]
fn everyone_agrees_on_random_commands_of_the_table() {
    let mut random = Random::new(11);
    let commands: Vec<_> = (0..4)
        .flat_map(|_| sample::commands().collect::<Vec<_>>())
        .map(|id| sample::random(id, &mut random))
        .collect();
    let stream = Stream::of(&commands).unwrap();
    assert!(stream.typed * 10 > stream.commands * 9, "{} of {} typed", stream.typed, stream.commands);
    let mut field = Field::gather(&Drivers::default()).unwrap();
    field.run(&stream, &Plan { samples: 0, ..PLAN }).unwrap();
    // What is written is what is read back, on every wire.
    for wire in Wire::ALL {
        let again = Stream::parse(&stream.on(wire).bytes).unwrap();
        assert!(again.flat == stream.flat, "{}", wire.name());
    }
}

#[test]
fn a_difference_is_found() {
    let stream = Stream::generate(Kind::Small, 10_000, 6, 1).unwrap();
    let mut wrong = Stream::generate(Kind::Small, 10_000, 6, 1).unwrap();
    let last = wrong.flat.len() - 1;
    wrong.flat[last] ^= 1;
    let mut field = Field::gather(&Drivers::default()).unwrap();
    assert!(field.run(&stream, &Plan { samples: 0, ..PLAN }).is_ok());
    let error = field.run(&wrong, &PLAN).unwrap_err().to_string();
    assert!(error.contains(&format!("byte {last}")), "{error}");
    wrong.flat[last] ^= 1;
    wrong.checksum += 1;
    assert!(field.run(&wrong, &PLAN).unwrap_err().to_string().contains("sum"));
}
