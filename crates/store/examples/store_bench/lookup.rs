//! ns per GET and SET, one at a time and in batches with prefetch, uniform over all keys.

use crate::{keyspace, write_key};
use std::time::Instant;
use weft_store::{Batch, Expiry, Keyspace, NewValue, NoEffects, Op, Rng, ValueRef, XorShift};

const OPERATIONS: usize = 4_000_000;
const VALUE: [u8; 16] = *b"value-of-16-byte";

pub(crate) fn run(keys: u64) {
    let keyspace = keyspace();
    let mut worker = keyspace.worker().expect("a worker is free");
    let started = Instant::now();
    let mut key = [0; 16];
    for number in 0..keys {
        write_key(&mut key, number);
        let batch = worker.enter();
        let named = keyspace.key(&key);
        batch.lock(&named).set(
            &mut Op::new(0, 1, &mut NoEffects),
            &named,
            NewValue::string(&VALUE),
            Expiry::None,
        );
    }
    println!(
        "\nlookup: {keys} keys of 16 bytes, values of 16 bytes, uniform; load {:.0} ns a key",
        started.elapsed().as_nanos() as f64 / keys as f64
    );
    println!("{:>6} {:>10} {:>10} {:>10}", "batch", "GET ns", "SET ns", "checked");
    for size in [1, 16, 64] {
        let mut worker = || {
            let mut rng = XorShift::new(7);
            let mut names = vec![[0_u8; 16]; size];
            let mut checked = 0_usize;
            let mut timed = |set: bool, checked: &mut usize| {
                let started = Instant::now();
                for _ in 0..OPERATIONS / size {
                    for name in &mut names {
                        write_key(name, u64::from(rng.below(keys as u32)));
                    }
                    let batch = worker.enter();
                    *checked +=
                        if set { sets(&keyspace, &batch, &names) } else { gets(&keyspace, &batch, &names) };
                }
                started.elapsed().as_nanos() as f64 / OPERATIONS as f64
            };
            let get = timed(false, &mut checked);
            let set = timed(true, &mut checked);
            (get, set, checked)
        };
        let (get, set, checked) = worker();
        println!("{size:>6} {get:>10.0} {set:>10.0} {checked:>10}");
    }
    let started = Instant::now();
    let mut rng = XorShift::new(7);
    let mut sum = 0_u64;
    for _ in 0..OPERATIONS {
        write_key(&mut key, u64::from(rng.below(keys as u32)));
        sum = sum.wrapping_add(keyspace.key(&key).hash());
    }
    println!(
        "of which making the key and hashing it: {:.0} ns ({sum:x})",
        started.elapsed().as_nanos() as f64 / OPERATIONS as f64
    );
}

fn prefetch<'a>(
    keyspace: &Keyspace,
    batch: &Batch<'_>,
    names: &'a [[u8; 16]],
    hashed: &mut [Option<weft_store::Key<'a>>; 64],
) {
    for (name, place) in names.iter().zip(hashed.iter_mut()) {
        let key = keyspace.key(name);
        if names.len() > 1 {
            batch.prefetch_bucket(0, key.hash());
        }
        *place = Some(key);
    }
    if names.len() > 1 {
        for key in hashed.iter().flatten() {
            batch.prefetch_entry(0, key.hash());
        }
    }
}

fn gets(keyspace: &Keyspace, batch: &Batch<'_>, names: &[[u8; 16]]) -> usize {
    let mut hashed = [None; 64];
    prefetch(keyspace, batch, names, &mut hashed);
    let mut reply = [0_u8; 16];
    let mut right = 0;
    for key in hashed.iter().flatten() {
        let mut guard = batch.lock(key);
        if let Some(ValueRef::Bytes(bytes)) = guard.get(&mut Op::new(0, 1000, &mut NoEffects), key) {
            reply.copy_from_slice(bytes);
            right += usize::from(reply == VALUE);
        }
    }
    right
}

fn sets(keyspace: &Keyspace, batch: &Batch<'_>, names: &[[u8; 16]]) -> usize {
    let mut hashed = [None; 64];
    prefetch(keyspace, batch, names, &mut hashed);
    for key in hashed.iter().flatten() {
        let mut guard = batch.lock(key);
        guard.set(&mut Op::new(0, 2000, &mut NoEffects), key, NewValue::string(&VALUE), Expiry::None);
    }
    names.len()
}
