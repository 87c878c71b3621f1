//! Compaction after mass deletion, expiry at its time, and churn of random sizes.

use crate::{cpu, keyspace, resident_bytes, write_key};
use std::time::{Duration, Instant};
use weft_store::{Expiry, ExpiryCycle, Keyspace, Maintenance, NewValue, Op, Recorder, Rng, Worker, XorShift};

const MIB: f64 = (1 << 20) as f64;

fn load(keyspace: &Keyspace, worker: &mut Worker<'_>, keys: u64, expiry: impl Fn(u64) -> Expiry) {
    let mut key = [0; 16];
    for number in 0..keys {
        write_key(&mut key, number);
        let batch = worker.enter();
        let named = keyspace.key(&key);
        let value = NewValue::Bytes(b"a value of thirty-two bytes long");
        batch.lock(&named).set(&mut Op::new(0, 1, &mut Recorder::default()), &named, value, expiry(number));
    }
}

/// Runs `step` until it says it is done, and gives the longest (by CPU time and by the wall) and the total time.
fn run(limit: Duration, mut step: impl FnMut() -> bool) -> ([Duration; 2], Duration, usize) {
    let started = Instant::now();
    let (mut longest, mut steps) = ([Duration::ZERO; 2], 0);
    while started.elapsed() < limit {
        let (at, at_cpu) = (Instant::now(), cpu());
        let done = step();
        longest = [longest[0].max(cpu() - at_cpu), longest[1].max(at.elapsed())];
        steps += 1;
        if done {
            break;
        }
    }
    (longest, started.elapsed(), steps)
}

pub(crate) fn compact(keys: u64) {
    let keyspace = keyspace();
    let mut worker = keyspace.worker().expect("a worker is free");
    load(&keyspace, &mut worker, keys, |_| Expiry::None);
    let (full, full_used) = (resident_bytes(), keyspace.used_bytes());
    let mut rng = XorShift::new(3);
    let mut key = [0; 16];
    let mut slowest = [Duration::ZERO; 2];
    for number in 0..keys {
        if rng.below(2) == 0 {
            write_key(&mut key, number);
            let (started, started_cpu) = (Instant::now(), cpu());
            let batch = worker.enter();
            let named = keyspace.key(&key);
            batch.lock(&named).remove(&mut Op::new(0, 1, &mut Recorder::default()), &named);
            slowest = [slowest[0].max(cpu() - started_cpu), slowest[1].max(started.elapsed())];
        }
    }
    let (after, freed) = (resident_bytes(), full_used - keyspace.used_bytes());
    let mut maintenance = Maintenance::default();
    let (longest, took, steps) = run(Duration::from_secs(10), || maintenance.step(&worker.enter()).idle);
    let compacted = resident_bytes();
    println!(
        "\ncompaction: {keys} keys, every second one deleted at random (slowest deletion (CPU, wall) {slowest:?})"
    );
    println!(
        "resident MiB: {:.0} full, {:.0} after deletion, {:.0} compacted; freed {:.0}",
        full as f64 / MIB,
        after as f64 / MIB,
        compacted as f64 / MIB,
        freed as f64 / MIB
    );
    println!(
        "given back: {:.1} % of the freed bytes in {took:?}; {steps} steps, longest (CPU, wall) {longest:?}",
        (full - compacted) as f64 * 100.0 / freed as f64
    );
}

pub(crate) fn expire(keys: u64) {
    let keyspace = keyspace();
    let mut worker = keyspace.worker().expect("a worker is free");
    for (title, spread_ms) in [("all at one time", 1), ("over 10 seconds", 10_000)] {
        load(&keyspace, &mut worker, keys, |number| {
            if number % 100 == 0 { Expiry::At(1_000_000 + number / 100 % spread_ms) } else { Expiry::None }
        });
        let expiring = keyspace.expiring(0);
        let mut cycle = ExpiryCycle::default();
        let started = Instant::now();
        let (mut idle_rounds, mut idle) = (0, Duration::ZERO);
        while idle_rounds < 100 {
            let at = Instant::now();
            cycle.step(&worker.enter(), 2, 200, &mut Recorder::default());
            idle += at.elapsed();
            idle_rounds += 1;
        }
        let mut late_ms = 0;
        let mut busy = Duration::ZERO;
        let begin = Instant::now();
        let mut slowest = [Duration::ZERO; 2];
        // The clock of the keys runs with the machine's from the first due time on; a round every 100 ms.
        while keyspace.expiring(0) > 0 && started.elapsed() < Duration::from_secs(60) {
            let now_ms = 1_000_000 + begin.elapsed().as_millis() as u64;
            let (longest, took, _) = run(Duration::from_secs(5), || {
                cycle.step(&worker.enter(), now_ms, 64, &mut Recorder::default()).round_done
            });
            slowest = [slowest[0].max(longest[0]), slowest[1].max(longest[1])];
            busy += took;
            late_ms = late_ms.max(1_000_000 + begin.elapsed().as_millis() as u64 - now_ms);
            let next = Duration::from_millis(100 * (begin.elapsed().as_millis() as u64 / 100 + 1));
            std::thread::sleep(next.saturating_sub(begin.elapsed()));
        }
        println!("\nexpiry: {keys} keys, {expiring} with a time to live, due {title}");
        println!(
            "longest step (CPU, wall) {slowest:?}; {busy:?} of work in all; a round took at most {late_ms} ms (added to at most 100 ms between rounds)"
        );
        println!("a round with nothing due: {:?}", idle / idle_rounds);
    }
}

pub(crate) fn churn(keys: u64, seconds: f64) {
    let keyspace = keyspace();
    let mut worker = keyspace.worker().expect("a worker is free");
    let mut rng = XorShift::new(5);
    let value = vec![b'v'; 1024];
    let mut maintenance = Maintenance::default();
    let started = Instant::now();
    println!(
        "\nchurn: {keys} keys overwritten with values of 1 to 1,000 bytes; MiB, and slab pages beyond entries in percent"
    );
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>10} {:>8}",
        "s", "overwrites", "resident", "counted", "pages", "spare %"
    );
    let mut key = [0; 16];
    let mut written = 0_u64;
    let mut next_report = 0.0;
    while started.elapsed().as_secs_f64() < seconds {
        for _ in 0..64 {
            let number = if written < keys { written } else { u64::from(rng.below(keys as u32)) };
            write_key(&mut key, number);
            let batch = worker.enter();
            let named = keyspace.key(&key);
            let bytes = NewValue::Bytes(&value[..1 + rng.below(1000) as usize]);
            batch.lock(&named).set(&mut Op::new(0, 1, &mut Recorder::default()), &named, bytes, Expiry::None);
            written += 1;
        }
        maintenance.step(&worker.enter());
        let seconds = started.elapsed().as_secs_f64();
        if seconds >= next_report && written >= keys {
            let (used, pages) = (keyspace.used_bytes() as f64, keyspace.page_stats().resident_bytes() as f64);
            println!(
                "{seconds:>8.1} {written:>10} {:>10.0} {:>10.0} {:>10.0} {:>8.1}",
                resident_bytes() as f64 / MIB,
                used / MIB,
                pages / MIB,
                (pages / used - 1.0) * 100.0
            );
            next_report = seconds + 5.0;
        }
    }
}
