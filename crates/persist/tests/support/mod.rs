//! Owns: what the tests of logs share: groups, and reading them back as text.
#![allow(dead_code)]

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use weft_persist::disk::simulated::Simulated;
use weft_persist::{Decoder, Disk, FoundLog, Log, LogOptions, Problem, Summary};
use weft_store::effect::{Effect, Tape, Text};

pub(crate) const BASE: &str = "a.aof";

pub(crate) fn options(segment_bytes: u64) -> LogOptions {
    LogOptions { base: BASE.into(), segment_bytes }
}
pub(crate) fn arc(disk: &Simulated) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

/// Chance with a seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub(crate) fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below.max(1)
    }
}

/// Seeds that a proof goes through: a few, or for `WEFT_DISK_SECONDS` as many as there is time for, from
/// `WEFT_TEST_SEED` or the day's second on.
pub(crate) fn seeds(few: u64) -> impl Iterator<Item = u64> {
    let number = |name: &str| {
        let text = std::env::var(name).ok();
        text.map(|text| text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is a number")))
    };
    let seconds = number("WEFT_DISK_SECONDS");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let first = number("WEFT_TEST_SEED").or(seconds.map(|_| now)).unwrap_or(0);
    let began = Instant::now();
    if seconds.is_some() {
        println!("seeds from {first}");
    }
    (0..).map_while(move |at| {
        let goes_on = seconds.map_or(at < few, |seconds| began.elapsed().as_secs() < seconds);
        goes_on.then_some(first + at)
    })
}

/// A group with its number in it, of one to three effects: its epoch, its tape, and what reading it gives.
pub(crate) fn group(number: u64) -> (u64, Tape, Vec<String>) {
    let mut tape = Tape::default();
    let key = format!("key:{number}");
    let value = "v".repeat((number % 7 * 20) as usize);
    let mut text = Vec::new();
    for at in 0..=number % 3 {
        let (db, value) = (at as u8, format!("{value}{at}"));
        let effect = Effect::Set { value: Text::Bytes(value.as_bytes()), expire_ms: None };
        tape.push(db, key.as_bytes(), &effect);
        text.push(format!("{db} {key} {effect:?}"));
    }
    if text.len() > 1 {
        text = vec![text.join("; ")];
    }
    (number + 1, tape, text)
}

/// A group that has a block of its own, of requests of which some join others, and what reading it gives.
pub(crate) fn large_group() -> (Tape, String) {
    let mut tape = Tape::default();
    let mut text = Vec::new();
    for at in 0..30_u8 {
        let key = format!("large:{}", at / 4);
        let value = vec![b'a' + at % 26; usize::from(at) * 4096 % 70_000 + 30_000];
        let effect = match at % 4 {
            0 => Effect::Delete { cause: weft_store::effect::Cause::Deleted },
            1 => Effect::Set { value: Text::Bytes(&value), expire_ms: None },
            _ => Effect::HashSet { field: &[at], value: &value, expire_ms: None },
        };
        tape.push(1, key.as_bytes(), &effect);
        text.push(format!("1 {key} {effect:?}"));
    }
    (tape, text.join("; "))
}

pub(crate) fn write_groups(log: &mut Log, from: u64, count: u64, expected: &mut Vec<String>) {
    for number in from..from + count {
        let (epoch, tape, text) = group(number);
        log.push(epoch, tape.read()).expect("it is taken");
        expected.extend(text);
    }
}

pub(crate) fn find(disk: &Simulated) -> Option<FoundLog> {
    FoundLog::find(arc(disk), BASE).expect("its manifest is whole")
}

/// All groups as text, each whole.
pub(crate) fn replay(kept: &mut FoundLog) -> Result<(Vec<String>, Summary), Problem> {
    let mut groups: Vec<String> = Vec::new();
    let mut decoder = Decoder::default();
    let summary = kept.replay(|_, requests| {
        let mut open: Option<Vec<String>> = None;
        decoder.each(requests, |mark, told| match mark {
            weft_persist::Mark::Begin => open = Some(Vec::new()),
            weft_persist::Mark::End => groups.extend(open.take().map(|group| group.join("; "))),
            weft_persist::Mark::Effects => {
                let shown = told.iter().map(|told| {
                    format!("{} {} {:?}", told.db, String::from_utf8_lossy(told.key), told.effect)
                });
                match &mut open {
                    Some(group) => group.extend(shown),
                    None => groups.extend(shown),
                }
            }
        })
    })?;
    Ok((groups, summary))
}

/// What a disk has kept; nothing where there is no log yet.
pub(crate) fn read(disk: &Simulated) -> Result<(Vec<String>, Summary), Problem> {
    match FoundLog::find(arc(disk), BASE)? {
        Some(mut kept) => replay(&mut kept),
        None => Ok(Default::default()),
    }
}

/// The power goes at every step of the next start in turn: the one behind it finds the same.
pub(crate) fn start_is_cut_at_any_step(disk: &Simulated, expected: &[String], dice: &mut Dice) {
    let start = |disk: &Simulated| -> std::io::Result<()> {
        let Some(mut kept) = find(disk) else { return Ok(()) };
        replay(&mut kept).expect("it was read before");
        Log::go_on(arc(disk), options(1500), kept)?.close()
    };
    let whole = disk.copy();
    start(&whole).expect("nothing fails");
    // Not all of them each time: chance takes the same places often enough.
    for _ in 0..3 {
        let cut = disk.copy();
        let step = dice.below(whole.steps() as usize + 1) as u64;
        cut.cut_at(step);
        let _ = start(&cut);
        let after = cut.after_cut(&mut |below| dice.below(below));
        let (read, _) = read(&after).unwrap_or_else(|error| panic!("cut at {step} of a start: {error}"));
        assert_eq!(read, expected, "cut at {step} of a start");
    }
}
