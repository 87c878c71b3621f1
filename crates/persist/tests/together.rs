//! What was flushed together is kept together or not at all: what came over several workers has no order there.

mod support;

use std::collections::BTreeSet;

use weft_persist::disk::simulated::Simulated;
use weft_persist::reader::{Blocks, Extent};
use weft_persist::{Disk as _, Log};
use weft_store::effect::{Effect, Tape, Text};

use support::{options, read, write_groups};

/// However many blocks and large groups it has.
#[test]
fn what_is_flushed_together_is_kept_together() {
    for segment_bytes in [16 << 20, 50 << 10] {
        let disk = Simulated::default();
        let mut log = Log::begin(support::arc(&disk), options(segment_bytes)).expect("it begins");
        let (mut expected, mut ends) = (Vec::new(), vec![0]);
        for run in 0..3_u8 {
            for at in 0..4 {
                let mut tape = Tape::default();
                let value = vec![b'a' + at; 33 << 10];
                let effect = Effect::Set { value: Text::Bytes(&value), expire_ms: None };
                tape.push(run, &[at], &effect);
                expected.push(format!("{run} {} {effect:?}", at as char));
                log.push(u64::from(run) + 1, tape.read()).expect("it is taken");
                if run == 1 && at == 2 {
                    let (tape, text) = support::large_group();
                    log.push(2, tape.read()).expect("it is taken");
                    expected.push(text);
                }
            }
            log.flush().expect("it writes");
            log.sync().expect("it syncs");
            ends.push(expected.len());
        }
        assert_eq!(read(&disk).expect("it is whole").0, expected);
        let mut names = disk.names().expect("a simulated disk lists");
        names.retain(|name| name.ends_with(".log"));
        let name = names.iter().max().expect("one");
        let bytes = disk.bytes(name);
        let mut blocks =
            Blocks::open(disk.open(name).expect("it is there"), Extent::Open).expect("it has a head");
        let mut cuts = vec![32];
        while let Some(block) = blocks.next_block().expect("it is whole") {
            cuts.extend([block.at - 1, block.at, block.at + 1, block.at + 24, block.at + 20_000]);
        }
        let used = blocks.end().expect("it was read").at;
        cuts.extend([used - 1, used]);
        cuts.retain(|cut| (32..=used).contains(cut));
        cuts.sort_unstable();
        let mut seen = BTreeSet::new();
        for cut in cuts {
            let copy = disk.copy();
            copy.put(name, &bytes[..cut as usize]);
            let (read, summary) = read(&copy).expect("a torn end is no damage");
            assert!(expected.starts_with(&read) && ends.contains(&read.len()), "{} at {cut}", read.len());
            assert_eq!(summary.epoch, ends.iter().position(|end| *end == read.len()).unwrap_or(9) as u64);
            seen.insert(read.len());
            // It goes on behind what is whole.
            let mut kept = support::find(&copy).expect("it is there");
            support::replay(&mut kept).expect("it is no damage");
            let mut log = Log::go_on(support::arc(&copy), options(segment_bytes), kept).expect("it goes on");
            let mut more = read;
            write_groups(&mut log, 100, 1, &mut more);
            log.close().expect("it ends");
            assert_eq!(support::read(&copy).expect("it is whole").0, more, "cut at {cut}");
        }
        let all = if segment_bytes > 1 << 20 { &ends[..] } else { &ends[2..] };
        assert!(seen.iter().eq(all), "{seen:?}");
        // What was on the disk is damage, wherever it stands in what belongs together.
        let copy = disk.copy();
        let mut flipped = bytes;
        flipped[40_000] ^= 1;
        copy.put(name, &flipped);
        if segment_bytes > 1 << 20 {
            read(&copy).expect_err("it is damaged");
        }
    }
}
