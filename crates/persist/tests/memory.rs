//! What is told and not written yet, and what a snapshot takes, against an allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use weft_persist::{Folder, Log, LogOptions, SnapshotWriter};
use weft_store::effect::Tape;
use weft_store::{Config, Expiry, Keyspace, NewValue, Op, Recorder, wants};

thread_local! {
    /// Bytes that this thread has asked for and not given back, and the most that they were.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

impl Counting {
    fn count(bytes: isize) {
        LIVE.set(LIVE.get() + bytes);
        PEAK.set(PEAK.get().max(LIVE.get()));
    }
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size() as isize);
        // SAFETY: passed on as it came.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::count(-(layout.size() as isize));
        // SAFETY: passed on as it came.
        unsafe { System.dealloc(pointer, layout) }
    }
    /// What is moved by the system is in memory once.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count(size as isize - layout.size() as isize);
        // SAFETY: passed on as it came.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Keys that one group sets, and bytes of each: together a little less than a power of two, so that what doubles
/// is nearly full.
const KEYS: usize = 60;
const VALUE_BYTES: usize = 1 << 20;
const ALL_BYTES: isize = (KEYS * VALUE_BYTES) as isize;

/// However much one command tells, it is in memory once until it is written, beside what the keyspace has of it:
/// neither the way to the log nor the log has a copy.
#[test]
fn what_a_command_tells_is_in_memory_once() {
    let place = std::env::temp_dir().join(format!("weft-told-{}", std::process::id()));
    let disk = Arc::new(Folder::lock(&place).expect("a folder"));
    let options = LogOptions { base: "a.aof".into(), segment_bytes: 1 << 20 };
    let mut log = Log::begin(disk, options).expect("there is room");
    let keyspace = Keyspace::new(Config { shards: 4, ..Config::default() });
    let mut worker = keyspace.worker().expect("there is a place");
    let mut merger = worker.merger(wants::VALUES).expect("it is the first");
    let mut recorder = Recorder::default();
    recorder.attach(&keyspace);
    let names: Vec<String> = (0..KEYS).map(|at| format!("key:{at}")).collect();
    let keys: Vec<_> = names.iter().map(|name| keyspace.key(name.as_bytes())).collect();
    let value = vec![b'v'; VALUE_BYTES];

    let before = LIVE.get();
    {
        let batch = worker.enter();
        let mut guards = batch.lock_keys(&keys);
        for key in &keys {
            let mut op = Op::new(0, 1, &mut recorder);
            guards.shard(key).set(&mut op, key, NewValue::Bytes(&value), Expiry::None);
        }
        recorder.end_group();
    }
    assert_eq!(recorder.tape().read().count(), KEYS, "whoever wants to reads it where it was told");
    recorder.clear();
    let told = keyspace.backlog_bytes() as isize;
    assert!(told > ALL_BYTES && told < ALL_BYTES + 4096, "{told} wait");
    let peak = PEAK.get() - before;
    assert!(peak < ALL_BYTES * 22 / 10, "{peak} bytes: the keys, and once what was told of them");

    PEAK.set(LIVE.get());
    let waiting = LIVE.get();
    let mut failed = None;
    let polled = merger.poll(|group| {
        if let Err(error) = log.push(group.epoch(), group.read()) {
            failed = Some(error);
        }
    });
    assert!(failed.is_none(), "{failed:?}");
    assert_eq!(polled.expect("nothing is lost").given, 1);
    let more = PEAK.get() - waiting;
    assert!(more < 4 * VALUE_BYTES as isize, "{more} bytes more while it is written");
    assert!(log.bytes() as isize > ALL_BYTES, "it is");
    let kept = LIVE.get() - before;
    assert!(kept < ALL_BYTES * 11 / 10, "{kept} bytes when it is written: the keys");
    std::fs::remove_dir_all(place).expect("it is ours");
}

/// However large a string is, a snapshot of it takes little memory beside it.
#[test]
fn a_large_string_is_saved_by_piece() {
    let place = std::env::temp_dir().join(format!("weft-saved-{}", std::process::id()));
    let disk = Arc::new(Folder::lock(&place).expect("a folder"));
    let keyspace = Keyspace::new(Config { shards: 4, ..Config::default() });
    let mut worker = keyspace.worker().expect("there is a place");
    // As much as there is of it stays when it is packed.
    let mut state = 1_u64;
    let bytes = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    });
    let value: Vec<u8> = bytes.take(VALUE_BYTES * KEYS).collect();
    let key = keyspace.key(b"key");
    let mut recorder = Recorder::default();
    let mut op = Op::new(0, 1, &mut recorder);
    worker.enter().lock(&key).set(&mut op, &key, NewValue::string(&value), Expiry::None);

    let before = LIVE.get();
    PEAK.set(before);
    let mut tape = Tape::default();
    let mut saver = worker.saver(&mut tape).expect("it is the first");
    let mut writer = SnapshotWriter::create(disk, "a.weft".into(), 0, saver.epoch()).expect("there is room");
    loop {
        let more = saver.step(&mut worker, &mut tape);
        writer.push_all(tape.read()).expect("there is room");
        tape.clear();
        if !more {
            break;
        }
    }
    let more = PEAK.get() - before;
    assert!(more < 2 * VALUE_BYTES as isize, "{more} bytes beside it");
    assert!(writer.bytes() as usize > VALUE_BYTES * KEYS / 2, "{} bytes: all of it is there", writer.bytes());
    drop((saver, writer));
    std::fs::remove_dir_all(place).expect("it is ours");
}
