//! A log as it is written, cut, damaged and read back, on a disk that does what it is told.

mod support;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use weft_persist::disk::File;
use weft_persist::disk::simulated::{self, Simulated};
use weft_persist::reader::{Blocks, End, Extent, Fault};
use weft_persist::{Disk as _, Log, Problem, Snapshot, SnapshotWriter, repair, survey_log};

use support::{BASE, Dice, group, options, read, write_groups};

fn names(disk: &Simulated, end: &str) -> Vec<String> {
    use weft_persist::Disk as _;
    let mut names = disk.names().expect("a simulated disk lists");
    names.retain(|name| name.ends_with(end));
    names.sort();
    names
}

#[test]
fn what_was_written_comes_back_over_many_segments_and_starts() {
    let disk = Simulated::default();
    let mut expected = Vec::new();
    for start in 0..4 {
        let mut log = match support::find(&disk) {
            None => Log::begin(support::arc(&disk), options(2000)).expect("it begins"),
            Some(mut kept) => {
                assert_eq!(support::replay(&mut kept).expect("it is whole").0, expected);
                Log::go_on(support::arc(&disk), options(2000), kept).expect("it goes on")
            }
        };
        for ten in 0..10 {
            write_groups(&mut log, start * 100 + ten * 10, 10, &mut expected);
            log.flush().expect("it writes");
        }
        if start % 2 == 0 {
            log.close().expect("it ends");
        }
    }
    assert_eq!(read(&disk).expect("it is whole").0, expected);
    assert!(names(&disk, ".log").len() > 8, "many segments");
}

#[test]
fn a_log_cut_at_every_byte_ends_with_a_whole_group() {
    let disk = Simulated::default();
    let mut log = Log::begin(support::arc(&disk), options(4000)).expect("it begins");
    let mut expected = Vec::new();
    for at in 0..12 {
        write_groups(&mut log, at, 1, &mut expected);
        log.flush().expect("it writes");
    }
    let name = names(&disk, ".log").pop().expect("one");
    let bytes = disk.bytes(&name);
    let used = log.bytes() as usize;
    let mut last = [0; 2];
    for cut in 32..=used {
        let copy = disk.copy();
        // Room that was asked for reads as zeros, or is not there.
        for (room, last) in [cut, bytes.len()].into_iter().zip(&mut last) {
            let mut bytes = bytes[..cut].to_vec();
            bytes.resize(room, 0);
            copy.put(&name, &bytes);
            let (read, summary) = read(&copy).expect("a torn end is no damage");
            assert!(expected.starts_with(&read), "cut at {cut}");
            assert!(read.len() >= *last, "cut at {cut}");
            assert_eq!(
                summary.torn.is_some(),
                copy_is_torn(&bytes, &summary.bytes),
                "cut at {cut}: {summary:?}"
            );
            *last = read.len();
        }
    }
    assert_eq!(last, [expected.len(); 2]);
}

/// Whether something stands behind the last whole block.
fn copy_is_torn(bytes: &[u8], whole: &u64) -> bool {
    bytes[*whole as usize..].iter().any(|byte| *byte != 0)
}

/// A file that counts what is read of it.
#[derive(Debug)]
struct Counted(Arc<dyn File>, AtomicUsize);

impl File for Counted {
    fn bytes(&self) -> io::Result<u64> {
        self.0.bytes()
    }
    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.0.allocate(bytes)
    }
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write(at, bytes)
    }
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(at, into)?;
        self.1.fetch_add(read, Relaxed);
        Ok(read)
    }
    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
    fn identity(&self) -> io::Result<(u64, u64)> {
        self.0.identity()
    }
}

/// Reads a file to its end: how often its bytes were read, and how it ended.
fn read_counted(disk: &Simulated, name: &str) -> (usize, Result<End, Fault>) {
    let file = Arc::new(Counted(disk.open(name).expect("it is there"), AtomicUsize::new(0)));
    let mut blocks =
        Blocks::open(Arc::clone(&file) as Arc<dyn File>, Extent::Open).expect("its head is whole");
    let end = loop {
        match blocks.next_block() {
            Ok(Some(_)) => {}
            Ok(None) => break Ok(blocks.end().expect("all were given")),
            Err(fault) => break Err(fault),
        }
    };
    (file.1.load(Relaxed) / disk.bytes(name).len(), end)
}

/// What stands in a value is up to whoever stores it, and a search goes through it.
#[test]
fn a_search_among_what_looks_like_blocks_reads_the_file_some_times_only() {
    let disk = Simulated::default();
    let mut log = Log::begin(support::arc(&disk), options(1 << 20)).expect("it begins");
    write_groups(&mut log, 0, 3, &mut Vec::new());
    log.flush().expect("it writes");
    let name = names(&disk, ".log").pop().expect("one");
    let at = log.bytes() as usize;
    let mut bytes = disk.bytes(&name)[..at].to_vec();
    // A CRC that is not its own, 65,536 bytes, an epoch, a request, a byte that is not synced.
    let mut head = [0; 24];
    head[..8].copy_from_slice(&[1, 2, 3, 4, 0, 1, 0, 0]);
    head[14..].copy_from_slice(&[1, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
    while bytes.len() < 160_000 {
        bytes.extend_from_slice(&head);
    }
    disk.put(&name, &bytes);
    let (times, end) = read_counted(&disk, &name);
    let end = end.expect("a torn end is no damage");
    assert_eq!((end.at, end.torn), (at as u64, (bytes.len() - at) as u64));
    assert!(times < 400, "4000 blocks of 65,536 bytes are read: {times} times the file");
}

#[test]
fn a_search_goes_from_block_to_block() {
    let disk = Simulated::default();
    let mut log = Log::begin(support::arc(&disk), options(1 << 20)).expect("it begins");
    for number in 0..2000 {
        write_groups(&mut log, number, 1, &mut Vec::new());
        log.flush().expect("it writes");
    }
    let name = names(&disk, ".log").pop().expect("one");
    let mut bytes = disk.bytes(&name);
    bytes.truncate(log.bytes() as usize);
    bytes[40] ^= 1;
    disk.put(&name, &bytes);
    // None says that the first one was on the disk.
    let (times, end) = read_counted(&disk, &name);
    assert_eq!(end.expect("nothing was synced").at, 32);
    assert!(times < 10, "{times} times the file");
    // The last one does.
    let mut log = Log::begin(support::arc(&disk), options(1 << 20)).expect("it begins");
    for number in 0..2000 {
        write_groups(&mut log, number, 1, &mut Vec::new());
        log.flush().expect("it writes");
    }
    log.close().expect("it ends");
    let name = names(&disk, ".log").pop().expect("one");
    let mut bytes = disk.bytes(&name);
    bytes[40] ^= 1;
    disk.put(&name, &bytes);
    let (times, end) = read_counted(&disk, &name);
    let damage = |fault| match fault {
        Fault::Damage { at: 32, next: Some(next), .. } => next,
        fault => panic!("{fault:?}"),
    };
    let next = end.map_err(damage).expect_err("the end says that all of it was written");
    assert!(next < 200, "{next}: the first block that proves");
    assert!(times < 10, "{times} times the file");
}

#[test]
fn every_flipped_bit_of_what_was_safe_is_found() {
    let disk = Simulated::default();
    let mut log = Log::begin(support::arc(&disk), options(900)).expect("it begins");
    let mut expected = Vec::new();
    for at in 0..20 {
        write_groups(&mut log, at, 1, &mut expected);
        log.flush().expect("it writes");
        log.sync().expect("it syncs");
    }
    log.close().expect("it ends");
    let (mut found, mut harmless) = (0, 0);
    for name in names(&disk, "").into_iter().filter(|name| name.starts_with(BASE)) {
        let bytes = disk.bytes(&name);
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        for bit in 0..used * 8 {
            let copy = disk.copy();
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            copy.put(&name, &bytes);
            match read(&copy) {
                Err(_) => found += 1,
                // The last block holds nothing: without it the end is torn, and nothing is lost.
                Ok((read, summary)) => {
                    assert_eq!(read, expected, "{name}, bit {bit}");
                    assert!(summary.torn.is_some(), "{name}, bit {bit}: it is said");
                    harmless += 1;
                }
            }
        }
    }
    assert!(found > 8000 && harmless <= 24 * 8, "{found} found, {harmless} in the last block");
}

/// A snapshot in the place of the first groups, and groups behind it.
fn behind_a_snapshot(disk: &Simulated, safe: &mut u64) -> std::io::Result<Log> {
    let mut log = Log::begin(support::arc(disk), options(900))?;
    for number in 0..20 {
        if number == 12 {
            let segments = log.cut()?;
            let taken = log.take_number();
            let (place, base) = log.place();
            let mut writer = SnapshotWriter::of_log(place, base, taken, number)?;
            for number in 0..number {
                writer.push_all(group(number).1.read())?;
            }
            let snapshot = writer.finish()?;
            log.replace(segments, snapshot)?;
        }
        let (epoch, tape, _) = group(number);
        log.push(epoch, tape.read())?;
        log.flush()?;
        log.sync()?;
        *safe = number + 1;
    }
    Ok(log)
}

/// Effects of the groups from the first one on, in any order: as many groups as are there, none by half.
fn whole_groups(read: &[String]) -> u64 {
    let mut there: Vec<&str> = read.iter().flat_map(|text| text.split("; ")).collect();
    there.sort_unstable();
    let mut expected = Vec::new();
    for groups in 0.. {
        let mut sorted: Vec<&str> = expected.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        if sorted == there {
            return groups;
        }
        assert!(sorted.len() < there.len(), "these are no whole groups: {read:?}");
        expected.extend(group(groups).2.iter().flat_map(|text| text.split("; ")).map(String::from));
    }
    0
}

#[test]
fn every_flipped_bit_of_a_snapshot_and_its_manifest_is_found() {
    let disk = Simulated::default();
    behind_a_snapshot(&disk, &mut 0).and_then(Log::close).expect("nothing fails");
    assert_eq!(whole_groups(&read(&disk).expect("it is whole").0), 20);
    let mut flips = 0;
    let is_named = |name: &String| name.ends_with(".snapshot") || name.ends_with(".weft");
    for name in names(&disk, "").into_iter().filter(is_named) {
        let bytes = disk.bytes(&name);
        for bit in 0..bytes.len() * 8 {
            let copy = disk.copy();
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            copy.put(&name, &bytes);
            assert!(read(&copy).is_err(), "{name}, bit {bit}");
            flips += 1;
        }
    }
    assert!(flips > 3000, "{flips} bits of a snapshot and a manifest");
}

/// Cuts the power at every operation of a run in which a snapshot takes the place of the first segments: before it
/// does, they are there, and then it is.
#[test]
fn a_snapshot_that_is_cut_at_any_step_loses_nothing() {
    let whole = Simulated::default();
    behind_a_snapshot(&whole, &mut 0).expect("nothing fails");
    let mut cuts = 0;
    for seed in support::seeds(3) {
        for step in 0..whole.steps() {
            let disk = Simulated::default();
            disk.cut_at(step);
            let mut safe = 0;
            // What only gives room back may fail without a word.
            let _ = behind_a_snapshot(&disk, &mut safe);
            cuts += 1;
            let mut dice = Dice::new(seed * 10_000 + step);
            let after = disk.after_cut(&mut |below| dice.below(below));
            let (read, _) = read(&after).unwrap_or_else(|error| panic!("step {step}, seed {seed}: {error}"));
            let there = whole_groups(&read);
            assert!((safe..=20).contains(&there), "step {step}, seed {seed}: {there} of {safe}");
            support::start_is_cut_at_any_step(&after, &read, &mut dice);
        }
    }
    println!("{cuts} cuts, and three of a start behind each");
}

#[test]
fn damage_names_its_place_and_what_is_lost() {
    let disk = Simulated::default();
    let mut log = Log::begin(support::arc(&disk), options(1 << 20)).expect("it begins");
    let mut places = Vec::new();
    for at in 0..3 {
        places.push(log.bytes());
        write_groups(&mut log, at, 1, &mut Vec::new());
        log.flush().expect("it writes");
        log.sync().expect("it syncs");
    }
    let name = names(&disk, ".log").pop().expect("one");
    let mut bytes = disk.bytes(&name);
    bytes[places[1] as usize + 30] ^= 1;
    disk.put(&name, &bytes);
    let error = read(&disk).expect_err("it is damaged");
    let end = bytes.len() as u64;
    assert_eq!(error, Problem::Damage { file: name.clone(), at: places[1], next: Some(places[2]), end });
    assert!(error.to_string().contains("restore the folder from a backup"), "{error}");
    // A file that is not there is no end either.
    let (missing, disk) = (names(&disk, ".log").pop().expect("one"), disk.copy());
    weft_persist::Disk::remove(&disk, &missing).expect("it is there");
    assert_eq!(read(&disk).expect_err("it is missing"), Problem::Missing { file: missing });
}

#[test]
fn a_log_without_its_manifest_is_no_empty_one() {
    let disk = Simulated::default();
    let mut log = Log::begin(support::arc(&disk), options(1 << 20)).expect("it begins");
    write_groups(&mut log, 0, 1, &mut Vec::new());
    log.close().expect("it ends");
    weft_persist::Disk::remove(&disk, "a.aof.weft").expect("it is there");
    assert!(matches!(read(&disk), Err(Problem::NoManifest { .. })));
}

/// Cuts the power at every operation of a run in turn: what was synced is there, and what is there is a beginning of
/// what was written. `behind` has each disk with what is there. Says how many ends were torn.
fn cut_at_any_step(
    seeds: impl Iterator<Item = u64>,
    run: impl Fn(&Simulated, &mut usize, &mut Vec<String>) -> io::Result<()>,
    behind: impl Fn(&Simulated, &[String], &mut Dice),
) -> usize {
    let whole = Simulated::default();
    let mut written = Vec::new();
    run(&whole, &mut 0, &mut written).expect("nothing fails");
    assert_eq!(read(&whole).expect("it is whole").0, written);
    let mut torn = 0;
    // The last step removes what is no part of the log.
    for (seed, step) in seeds.flat_map(|seed| (0..whole.steps() - 1).map(move |step| (seed, step))) {
        let disk = Simulated::default();
        disk.cut_at(step);
        let (mut safe, mut written) = (0, Vec::new());
        run(&disk, &mut safe, &mut written).expect_err("the power goes");
        let mut dice = Dice::new(seed * 10_000 + step);
        let after = disk.after_cut(&mut |below| dice.below(below));
        let (read, summary) =
            read(&after).unwrap_or_else(|error| panic!("step {step}, seed {seed}: {error}"));
        assert!(read.len() >= safe && written.starts_with(&read), "step {step}, seed {seed}: {safe}");
        torn += usize::from(summary.torn.is_some());
        behind(&after, &read, &mut dice);
    }
    torn
}

/// What was synced is there wherever the power goes, and the next start goes on from it, also when the power goes
/// during that.
#[test]
fn what_was_synced_outlives_a_cut_at_any_step() {
    let run = |disk: &Simulated, safe: &mut usize, written: &mut Vec<String>| -> io::Result<()> {
        let mut log = Log::begin(support::arc(disk), options(1500))?;
        for at in 0..40 {
            // What is added may reach the disk from here on.
            let (epoch, tape, text) = group(at);
            written.extend(text);
            log.push(epoch, tape.read())?;
            log.flush()?;
            if at % 3 == 0 {
                log.sync()?;
                *safe = written.len();
            }
        }
        log.close()
    };
    let torn = cut_at_any_step(support::seeds(3), run, support::start_is_cut_at_any_step);
    println!("{torn} ends were torn, and three of a start cut behind each");
    assert!(torn > 20, "{torn} ends were torn");
}

/// A group that is written piece by piece is there as a whole or not at all, wherever the power goes.
#[test]
fn a_large_group_is_never_kept_by_half() {
    let (large, shown) = support::large_group();
    let run = |disk: &Simulated, safe: &mut usize, written: &mut Vec<String>| -> io::Result<()> {
        let mut log = Log::begin(support::arc(disk), options(100_000))?;
        for at in 0..2 {
            written.push(group(0).2.join("; "));
            log.push(at + 1, group(0).1.read())?;
            written.push(shown.clone());
            log.push(at + 1, large.read())?;
            log.flush()?;
            log.sync()?;
            *safe = written.len();
        }
        log.close()
    };
    let torn = cut_at_any_step(support::seeds(1), run, |_, _, _| ());
    println!("{torn} ends were torn");
    assert!(torn > 5, "{torn} ends were torn");
}

#[test]
fn what_fails_is_said_and_what_was_synced_stays() {
    let (large, shown) = support::large_group();
    let faults = [simulated::Fault::Write, simulated::Fault::ShortWrite, simulated::Fault::Sync];
    for (fault, is_large) in faults.into_iter().flat_map(|fault| [(fault, false), (fault, true)]) {
        let disk = Simulated::default();
        let mut log = Log::begin(support::arc(&disk), options(1 << 20)).expect("it begins");
        let mut expected = Vec::new();
        write_groups(&mut log, 0, 5, &mut expected);
        log.flush().and_then(|()| log.sync()).expect("it works");
        disk.fail(Some(fault));
        let mut more = expected.clone();
        let pushed = if is_large {
            more.push(shown.clone());
            log.push(6, large.read())
        } else {
            write_groups(&mut log, 5, 1, &mut more);
            Ok(())
        };
        pushed.and_then(|()| log.flush()).and_then(|()| log.sync()).expect_err("it fails");
        disk.fail(None);
        let mut dice = Dice::new(1);
        let after = disk.after_cut(&mut |below| dice.below(below));
        let (read, _) = read(&after).expect("what was synced is whole");
        assert!(read.len() >= expected.len() && more.starts_with(&read), "{fault:?}, {is_large}");
    }
}

/// What a sync that failed was to write is read by the next start, and is on the disk when that has begun, though the
/// system takes it for written already.
#[test]
fn what_a_failed_sync_has_left_is_written_again() {
    let (large, shown) = support::large_group();
    for (is_large, seed) in [(false, 1), (true, 2), (false, 3), (true, 4)] {
        let disk = Simulated::default();
        let mut log = Log::begin(support::arc(&disk), options(1 << 20)).expect("it begins");
        let mut expected = Vec::new();
        write_groups(&mut log, 0, 5, &mut expected);
        log.flush().and_then(|()| log.sync()).expect("it works");
        write_groups(&mut log, 5, 5, &mut expected);
        if is_large {
            log.push(10, large.read()).expect("it works");
            expected.push(shown.clone());
        }
        log.flush().expect("it works");
        disk.fail(Some(simulated::Fault::Sync));
        log.sync().expect_err("it fails");
        drop(log);
        disk.fail(None);
        let mut kept = support::find(&disk).expect("it is there");
        assert_eq!(support::replay(&mut kept).expect("programs see all of it").0, expected);
        let mut log = Log::go_on(support::arc(&disk), options(1 << 20), kept).expect("it goes on");
        write_groups(&mut log, 20, 1, &mut expected);
        log.flush().and_then(|()| log.sync()).expect("it works");
        let mut dice = Dice::new(seed);
        let after = disk.after_cut(&mut |below| dice.below(below));
        let (read, _) = read(&after).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(read, expected, "seed {seed}");
    }
}

/// Behind a rest every bit of the last block is vouched for, whatever comes then; nothing is written where nothing is
/// new, or where it is not on the disk.
#[test]
fn a_log_that_rests_says_that_its_last_block_is_on_the_disk() {
    let disk = Simulated::default();
    let mut log = Log::begin(support::arc(&disk), options(2000)).expect("it begins");
    assert!(!log.vouch().expect("it works"), "it holds nothing");
    let mut expected = Vec::new();
    for at in 0..2 {
        write_groups(&mut log, at, 1, &mut expected);
        assert!(!log.vouch().expect("it works"), "it is not written");
        log.flush().expect("it works");
        assert!(!log.vouch().expect("it works"), "it is not on the disk");
        log.sync().expect("it works");
        let before = log.bytes() as usize;
        assert!(log.vouch().expect("it works"));
        assert_eq!((log.bytes() as usize - before, log.unsynced_bytes()), (24, 0));
        assert!(!log.vouch().expect("it works"), "once");
        let name = names(&disk, ".log").pop().expect("one");
        let bytes = disk.bytes(&name);
        for bit in 32 * 8..before * 8 {
            let copy = disk.copy();
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            copy.put(&name, &bytes);
            let error = read(&copy).expect_err("it is damaged");
            assert!(matches!(error, Problem::Damage { .. }), "bit {bit}: {error}");
        }
        assert_eq!(read(&disk).expect("it is whole").0, expected);
    }
    log.close().expect("it ends");
    assert_eq!(read(&disk).expect("it is whole").0, expected);
}

#[test]
fn a_full_disk_is_seen_before_anything_is_lost() {
    let disk = Simulated::default();
    let mut log = Log::begin(support::arc(&disk), options(4000)).expect("it begins");
    assert!(!log.lacks_room());
    disk.limit(Some(9000));
    let mut expected = Vec::new();
    let mut at = 0;
    while !log.lacks_room() {
        write_groups(&mut log, at, 1, &mut expected);
        log.flush().expect("there is room for what is under way");
        at += 1;
    }
    log.make_room().expect("a full disk is no failure");
    assert!(log.lacks_room());
    write_groups(&mut log, at, 5, &mut expected);
    log.flush().and_then(|()| log.sync()).expect("there is still room");
    disk.limit(None);
    log.make_room().expect("there is room");
    assert!(!log.lacks_room());
    log.close().expect("it ends");
    assert_eq!(read(&disk).expect("it is whole").0, expected);
}

/// The log begins behind what `before` holds, so that a snapshot takes the place of its first segments.
fn snapshot(log: &mut Log) -> std::io::Result<(usize, Snapshot)> {
    let segments = log.cut()?;
    let number = log.take_number();
    let (disk, base) = log.place();
    Ok((segments, SnapshotWriter::of_log(disk, base, number, 0)?.finish()?))
}

/// What a log that began behind a snapshot leaves: its own files, its room, and none of those before.
#[test]
fn a_log_that_began_behind_a_snapshot_has_its_room_and_leaves_no_files() {
    let disk = Simulated::default();
    let mut before = Log::begin(support::arc(&disk), options(2000)).expect("it begins");
    write_groups(&mut before, 0, 40, &mut Vec::new());
    before.flush().and_then(|()| before.sync()).expect("it writes");
    drop(before);
    let mut expected = Vec::new();
    let mut log = Log::begin_pending(support::arc(&disk), options(2000)).expect("it begins");
    write_groups(&mut log, 100, 1, &mut Vec::new());
    let (segments, first) = snapshot(&mut log).expect("there is room");
    log.make_room().expect("there is room");
    log.replace(segments, first).expect("it takes its place");
    assert!(!log.lacks_room());
    let all = names(&disk, "");
    assert_eq!(all.len(), 4, "manifest, snapshot, segment, room: {all:?}");
    // The room that it has is still there to be taken.
    for number in 101..104 {
        write_groups(&mut log, number, 1, &mut expected);
        let (segments, next) = snapshot(&mut log).expect("its room is there");
        expected.clear();
        log.replace(segments, next).expect("it takes its place");
    }
    write_groups(&mut log, 104, 1, &mut expected);
    log.close().expect("it ends");
    assert_eq!(read(&disk).expect("it is whole").0, expected);
}

#[test]
fn a_full_disk_ends_no_log_and_what_failed_leaves_nothing() {
    let disk = Simulated::default();
    let mut log = Log::begin(support::arc(&disk), options(4000)).expect("it begins");
    let mut expected = Vec::new();
    write_groups(&mut log, 0, 20, &mut expected);
    log.flush().expect("there is room");
    // The first takes the room that there is, the second finds none.
    disk.limit(Some(disk.used() + 2000));
    for segments in [1, 2] {
        assert_eq!(log.cut().expect("it goes on without room"), segments);
        assert!(log.lacks_room());
    }
    disk.fail(Some(simulated::Fault::Full));
    assert!(snapshot(&mut log).is_err(), "a rewrite has no room");
    // What it has room for is still written.
    let ended = (20..100).find(|at| {
        write_groups(&mut log, *at, 1, &mut expected);
        log.flush().is_err()
    });
    assert!(ended.is_some(), "there is no byte left");
    expected.pop();
    drop(log);
    let before = names(&disk, "");
    for _ in 0..3 {
        assert!(Log::begin_pending(support::arc(&disk), options(4000)).is_err(), "it is full");
        assert_eq!(
            names(&disk, ".log"),
            before.iter().filter(|n| n.ends_with(".log")).cloned().collect::<Vec<_>>()
        );
    }
    assert_eq!(read(&disk).expect("what was there is whole").0, expected);
    // A start goes on where a few bytes are left, and has room when there is some.
    disk.fail(None);
    let mut kept = support::find(&disk).expect("it is there");
    support::replay(&mut kept).expect("it is whole");
    let mut log = Log::go_on(support::arc(&disk), options(4000), kept).expect("it goes on");
    assert!(log.lacks_room());
    disk.limit(None);
    log.make_room().expect("there is room");
    assert!(!log.lacks_room());
    write_groups(&mut log, 100, 1, &mut expected);
    log.close().expect("it ends");
    assert_eq!(read(&disk).expect("it is whole").0, expected);
}

/// A log of several segments behind a snapshot; damaged in any of its blocks, what is before comes back, and with what
/// is behind all but that block. What was looked at is as it was.
#[test]
fn a_repair_takes_what_proves_and_changes_nothing() {
    let disk = Simulated::default();
    let mut log = Log::begin(support::arc(&disk), options(900)).expect("it begins");
    let (segments, base) = snapshot(&mut log).expect("there is room");
    log.replace(segments, base).expect("it takes its place");
    let (mut places, mut expected) = (Vec::new(), Vec::new());
    for at in 0..12 {
        write_groups(&mut log, at, 1, &mut expected);
        log.flush().and_then(|()| log.sync()).expect("it writes");
    }
    log.close().expect("it ends");
    let whole = survey_log(&disk, BASE, &mut |place, _| {
        places.push((place.file.to_owned(), place.at));
        true
    });
    let whole = whole.expect("it can be read");
    assert!(whole.problems.is_empty() && whole.files.len() > 3, "{whole:?}");
    assert_eq!(places.len(), 12);
    let repaired = |disk: &Simulated, keeps_rest| {
        let to = Simulated::default();
        repair(disk, &support::arc(&to), BASE, keeps_rest)
            .map(|_| read(&to).expect("what was written is whole").0)
    };
    for (number, (file, at)) in places.iter().enumerate() {
        let damaged = disk.copy();
        let mut bytes = damaged.bytes(file);
        bytes[*at as usize + 30] ^= 1;
        damaged.put(file, &bytes);
        read(&damaged).expect_err("it is damaged");
        assert_eq!(repaired(&damaged, false).expect("there is a beginning"), expected[..number]);
        let mut rest = expected.clone();
        rest.remove(number);
        assert_eq!(repaired(&damaged, true).expect("all but a block"), rest);
        assert_eq!(damaged.bytes(file), bytes);
    }
    // A file that is gone takes what is behind it along; without a manifest names say which files there are.
    let gone = disk.copy();
    let file = &places[6].0;
    weft_persist::Disk::remove(&gone, file).expect("it is there");
    let before = places.iter().position(|(other, _)| other == file).expect("it has blocks");
    assert_eq!(repaired(&gone, false).expect("there is a beginning"), expected[..before]);
    let nameless = disk.copy();
    weft_persist::Disk::remove(&nameless, "a.aof.weft").expect("it is there");
    assert_eq!(repaired(&nameless, false).expect("the files are there"), expected);
    // Nothing is built on a snapshot that is damaged.
    let damaged = disk.copy();
    let name = &names(&disk, ".snapshot")[0];
    let mut bytes = damaged.bytes(name);
    bytes[40] ^= 1;
    damaged.put(name, &bytes);
    let error = repaired(&damaged, false).expect_err("it is damaged").to_string();
    assert!(error.contains("--keep-rest"), "{error}");
    assert_eq!(repaired(&damaged, true).expect("what there is"), expected);
}
