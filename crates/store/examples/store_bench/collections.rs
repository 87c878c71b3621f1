//! Collections: memory of small ones, and how long a large one holds its shard.

use crate::{again, cpu, keyspace, resident_bytes, write_key};
use std::time::Duration;
use weft_store::{
    Batch, Changed, End, HashLimits, Key, ListLimit, Maintenance, Op, Recorder, Rng, SetLimits,
    SortedSetLimits, XorShift,
};

/// Members of a small collection, of 16 bytes each.
const MEMBERS: usize = 10;
const TYPES: [&str; 5] = ["set", "hash", "zset", "zset-fractions", "list"];

pub(crate) fn table(count: u64) {
    println!(
        "\n{count} collections of {MEMBERS} elements of 16 bytes (hashes: fields and values), keys of 16 bytes"
    );
    println!("{:>16} {:>10} {:>10}", "type", "counted", "resident");
    let millions = (count as f64 / 1e6).to_string();
    TYPES.iter().for_each(|kind| again(&["collections-one", &millions, kind]));
    println!(
        "bytes a collection, with its key and its share of the tables; Valkey: MEMORY USAGE and used_memory"
    );
}

fn member(rng: &mut XorShift) -> [u8; 16] {
    let mut member = [0; 16];
    member[..8].copy_from_slice(format!("{:08x}", rng.next_u64() as u32).as_bytes());
    member[8..].copy_from_slice(format!("{:08x}", rng.next_u64() as u32).as_bytes());
    member
}

/// Adds a member to a collection of a kind.
fn add(batch: &Batch<'_>, key: &Key<'_>, kind: &str, member: &[u8], score: f64) {
    let mut sink = Recorder::default();
    let mut op = Op::new(0, 1, &mut sink);
    let mut shard = batch.lock(key);
    match kind {
        "set" => shard.change_set(&mut op, key, true, SetLimits::default(), |set| {
            set.add(member);
            Changed::yes(())
        }),
        "hash" => shard.change_hash(&mut op, key, true, HashLimits::default(), |hash| {
            hash.set(member, member);
            Changed::yes(())
        }),
        "list" => shard.change_list(&mut op, key, true, ListLimit::default(), |list| {
            list.push(End::Back, member);
            Changed::yes(())
        }),
        _ => shard.change_sorted_set(&mut op, key, true, SortedSetLimits::default(), |set| {
            set.add(member, score);
            Changed::yes(())
        }),
    }
    .expect("the key has this type");
}

pub(crate) fn one(count: u64, kind: &str) {
    let keyspace = keyspace();
    let mut worker = keyspace.worker().expect("a worker is free");
    let mut rng = XorShift::new(1);
    let mut name = [0; 16];
    let before = resident_bytes();
    for number in 0..count {
        write_key(&mut name, number);
        let batch = worker.enter();
        let key = keyspace.key(&name);
        for place in 0..MEMBERS {
            let score = if kind == "zset" { place as f64 } else { rng.next_u64() as f64 / 1e19 };
            add(&batch, &key, kind, &member(&mut rng), score);
        }
    }
    let mut maintenance = Maintenance::default();
    while !maintenance.step(&worker.enter()).idle {}
    let each = |bytes: usize| bytes as f64 / count as f64;
    let (counted, resident) = (each(keyspace.used_bytes()), each(resident_bytes() - before));
    println!("{kind:>16} {counted:>10.1} {resident:>10.1}");
}

/// The longest of many steps, by the CPU time of this thread.
#[derive(Default)]
struct Longest(Duration);

impl Longest {
    fn time<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let start = cpu();
        let result = work();
        self.0 = self.0.max(cpu() - start);
        result
    }
}

pub(crate) fn large(members: u64) {
    println!(
        "\none collection of {members} members of 16 bytes: bytes a member, and the longest single step in µs"
    );
    println!(
        "{:>8} {:>8} {:>10} {:>10} {:>10} {:>10} {:>12}",
        "type", "bytes", "mean add", "add", "remove", "delete", "maintenance"
    );
    for kind in ["set", "hash", "zset", "list"] {
        let keyspace = keyspace();
        let mut worker = keyspace.worker().expect("a worker is free");
        let mut rng = XorShift::new(1);
        let key = keyspace.key(b"large");
        let (mut adding, mut removing, mut deleting, mut freeing) =
            (Longest::default(), Longest::default(), Longest::default(), Longest::default());
        let start = cpu();
        for _ in 0..members {
            let member = member(&mut rng);
            let score = (rng.next_u64() >> 12) as f64;
            let batch = worker.enter();
            adding.time(|| add(&batch, &key, kind, &member, score));
        }
        let mean = (cpu() - start) / u32::try_from(members).unwrap_or(u32::MAX);
        let bytes = keyspace.used_bytes() as f64 / members as f64;
        let mut again = XorShift::new(1);
        for _ in 0..members / 2 {
            let member = member(&mut again);
            again.next_u64();
            let batch = worker.enter();
            removing.time(|| remove(&batch, &key, kind, &member));
        }
        let batch = worker.enter();
        let garbage = deleting.time(|| {
            let mut sink = Recorder::default();
            batch.lock(&key).remove(&mut Op::new(0, 1, &mut sink), &key).expect("the key is there")
        });
        drop(batch);
        keyspace.discard(garbage);
        let mut maintenance = Maintenance::default();
        while keyspace.discarded_bytes() > 0 {
            let batch = worker.enter();
            freeing.time(|| maintenance.step(&batch));
        }
        let us = |longest: &Longest| longest.0.as_secs_f64() * 1e6;
        println!(
            "{kind:>8} {bytes:>8.1} {:>10.2} {:>10.0} {:>10.0} {:>10.0} {:>12.0}",
            mean.as_secs_f64() * 1e6,
            us(&adding),
            us(&removing),
            us(&deleting),
            us(&freeing),
        );
    }
}

fn remove(batch: &Batch<'_>, key: &Key<'_>, kind: &str, member: &[u8]) {
    let mut sink = Recorder::default();
    let mut op = Op::new(0, 1, &mut sink);
    let mut shard = batch.lock(key);
    match kind {
        "set" => shard.change_set(&mut op, key, false, SetLimits::default(), |set| {
            set.remove(member);
            Changed::yes(())
        }),
        "hash" => shard.change_hash(&mut op, key, false, HashLimits::default(), |hash| {
            hash.remove(member, |_| ());
            Changed::yes(())
        }),
        "list" => shard.change_list(&mut op, key, false, ListLimit::default(), |list| {
            list.pop(End::Front, |_| ());
            Changed::yes(())
        }),
        _ => shard.change_sorted_set(&mut op, key, false, SortedSetLimits::default(), |set| {
            set.remove(member);
            Changed::yes(())
        }),
    }
    .expect("the key has this type");
}
