//! CPU time per GET and SET, one at a time and in batches with prefetch, uniform over all keys.

use crate::{cpu, keyspace, write_key};
use weft_store::{
    Batch, Expiry, Key, Keyspace, Maintenance, NewValue, Op, Recorder, Rng, ValueRef, XorShift,
};

const VALUE: [u8; 16] = *b"value-of-16-byte";

pub(crate) fn run(keys: u64, operations: usize) {
    let keyspace = keyspace();
    let mut worker = keyspace.worker().expect("a worker is free");
    let started = cpu();
    let mut key = [0; 16];
    for number in 0..keys {
        write_key(&mut key, number);
        let batch = worker.enter();
        let named = keyspace.key(&key);
        batch.lock(&named).set(
            &mut Op::new(0, 1, &mut Recorder::default()),
            &named,
            NewValue::string(&VALUE),
            Expiry::None,
        );
    }
    let mut maintenance = Maintenance::default();
    let loaded = cpu() - started;
    while !maintenance.step(&worker.enter()).idle {}
    println!(
        "\nlookup: {keys} keys of 16 bytes, values of 16 bytes, uniform; load {:.0} ns a key",
        loaded.as_nanos() as f64 / keys as f64
    );
    println!("{:>6} {:>10} {:>10} {:>10}", "batch", "GET ns", "SET ns", "checked");
    for size in sizes() {
        let mut worker = || {
            let mut rng = XorShift::new(7);
            let mut names = vec![[0_u8; 16]; size];
            let mut checked = 0_usize;
            let mut timed = |set: bool, checked: &mut usize| {
                let started = cpu();
                for _ in 0..operations / size {
                    for name in &mut names {
                        write_key(name, u64::from(rng.below(keys as u32)));
                    }
                    let mut batch = worker.enter();
                    *checked += if set {
                        sets(&keyspace, &mut batch, &names)
                    } else {
                        gets(&keyspace, &mut batch, &names)
                    };
                }
                (cpu() - started).as_nanos() as f64 / operations as f64
            };
            let get = timed(false, &mut checked);
            let set = timed(true, &mut checked);
            (get, set, checked)
        };
        let (get, set, checked) = worker();
        println!("{size:>6} {get:>10.0} {set:>10.0} {checked:>10}");
    }
    let started = cpu();
    let mut rng = XorShift::new(7);
    let mut sum = 0_u64;
    for _ in 0..operations {
        write_key(&mut key, u64::from(rng.below(keys as u32)));
        sum = sum.wrapping_add(keyspace.key(&key).hash());
    }
    println!(
        "of which making the key and hashing it: {:.0} ns ({sum:x})",
        (cpu() - started).as_nanos() as f64 / operations as f64
    );
}

/// Hashes the names and, for more than one, asks for buckets and then for entries.
fn prefetch<'a>(keyspace: &Keyspace, batch: &mut Batch<'_>, names: &'a [[u8; 16]]) -> Vec<Key<'a>> {
    let keys: Vec<Key<'a>> = names.iter().map(|name| keyspace.key(name)).collect();
    if names.len() > 1 {
        keys.iter().for_each(|key| batch.prefetch_bucket(0, key.hash(), false));
        batch.prefetch_entries(0, keys.iter().map(|key| (key.hash(), true)));
    }
    keys
}

/// Not inlined, so that callgrind counts it by name.
#[inline(never)]
fn gets(keyspace: &Keyspace, batch: &mut Batch<'_>, names: &[[u8; 16]]) -> usize {
    let mut reply = [0_u8; 16];
    let mut right = 0;
    let mut sink = Recorder::default();
    let mut op = Op::new(0, 1000, &mut sink);
    for key in &prefetch(keyspace, batch, names) {
        let mut guard = batch.lock(key);
        if let Some(ValueRef::Bytes(bytes)) = guard.get(&mut op, key) {
            reply.copy_from_slice(bytes);
            right += usize::from(reply == VALUE);
        }
    }
    right
}

#[inline(never)]
fn sets(keyspace: &Keyspace, batch: &mut Batch<'_>, names: &[[u8; 16]]) -> usize {
    let mut sink = Recorder::default();
    let mut op = Op::new(0, 2000, &mut sink);
    for key in &prefetch(keyspace, batch, names) {
        batch.lock(key).set(&mut op, key, NewValue::string(&VALUE), Expiry::None);
    }
    names.len()
}

/// All three sizes, or the one in `WEFT_BATCH`.
fn sizes() -> Vec<usize> {
    let only = std::env::var("WEFT_BATCH").ok().and_then(|text| text.parse().ok());
    only.map_or_else(|| vec![1, 16, 64], |size| vec![size])
}
