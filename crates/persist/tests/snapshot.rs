//! A snapshot by itself, on a disk that loses power at any step of writing one and of the start that follows: the new
//! one is there or the one before, each whole.

mod support;

use weft_persist::disk::simulated::Simulated;
use weft_persist::{SnapshotWriter, clear_unfinished, read_snapshot};
use weft_store::effect::{Effect, Tape, Text};

use support::Dice;

const NAME: &str = "dump.weft";

/// Writes a snapshot of many keys, in several blocks.
fn write(disk: &Simulated, value: u8) -> std::io::Result<()> {
    let mut writer = SnapshotWriter::create(support::arc(disk), NAME.into(), 1, u64::from(value))?;
    let mut dice = Dice::new(u64::from(value));
    for number in 0..40 {
        let mut tape = Tape::default();
        // What cannot be packed, so that there are several blocks.
        let text: Vec<u8> = (0..20_000).map(|_| dice.below(256) as u8).collect();
        let effect = Effect::Set { value: Text::Bytes(&text), expire_ms: None };
        tape.push(0, format!("{value}:{number}").as_bytes(), &effect);
        writer.push_all(weft_store::effect::Read::new(tape.bytes()))?;
    }
    writer.finish().map(drop)
}

/// The requests of all blocks of the snapshot.
fn read(disk: &Simulated) -> Vec<Vec<u8>> {
    let mut blocks = Vec::new();
    let read = read_snapshot(disk, NAME, |_, requests| {
        blocks.push(requests.to_vec());
        Ok(())
    });
    read.expect("what has this name is whole");
    blocks
}

#[test]
fn a_snapshot_by_itself_that_is_cut_at_any_step_is_the_new_one_or_the_one_before() {
    let before = Simulated::default();
    write(&before, 1).expect("nothing fails");
    let both = before.copy();
    write(&both, 2).expect("nothing fails");
    let (old, new) = (read(&before), read(&both));
    assert!(old != new && new.len() > 2, "{} blocks", new.len());
    let mut seen = [0; 2];
    for seed in support::seeds(5) {
        for step in 0..=both.steps() {
            let disk = before.copy();
            disk.cut_at(step);
            let written = write(&disk, 2);
            let mut dice = Dice::new(seed * 10_000 + step);
            let after = disk.after_cut(&mut |below| dice.below(below));
            let is_new = read(&after) == new;
            assert!(is_new || read(&after) == old, "step {step}, seed {seed}: it is one of them");
            assert!(is_new || written.is_err(), "step {step}, seed {seed}: it was said to be there");
            seen[usize::from(is_new)] += 1;
            // The next start removes what is left of it, and the power goes during that.
            after.cut_at(after.steps() + dice.below(2) as u64);
            let _ = clear_unfinished(&after, NAME);
            let last = after.after_cut(&mut |below| dice.below(below));
            assert_eq!(read(&last) == new, is_new, "step {step}, seed {seed}: a start changes nothing");
            // Whatever is left, the next one is written.
            write(&last, 2).expect("nothing fails");
            assert!(read(&last) == new, "step {step}, seed {seed}");
        }
    }
    println!("{seen:?} cuts left the one before, and the new one");
    assert!(seen.iter().all(|seen| *seen > 2), "{seen:?}");
}
