//! Bytes per key beyond key and value.

use crate::{again, keyspace, resident_bytes, write_key};
use weft_store::{Expiry, Maintenance, NewValue, Op, Recorder};

const KEY_BYTES: usize = 16;

pub(crate) fn table(keys: u64) {
    println!("\nmemory: {keys} keys of {KEY_BYTES} bytes; bytes a key beyond key and value");
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>12} {:>10} {:>10}",
        "value", "loaded", "settled", "counted", "slab pages", "tables", "table runs"
    );
    let millions = (keys as f64 / 1e6).to_string();
    for len in [8, 32, 64, 100, 256] {
        again(&["memory-one", &millions, &len.to_string()]);
    }
    println!(
        "loaded, settled: resident growth right after loading and after maintenance; counted: used_memory;"
    );
    println!(
        "slab pages: spans, kept pages and descriptors; tables: bucket arrays; table runs: pages under them"
    );
}

pub(crate) fn one(keys: u64, len: usize) {
    let keyspace = keyspace();
    let mut worker = keyspace.worker().expect("a worker is free");
    let value = vec![b'v'; len];
    let mut key = [0; KEY_BYTES];
    let before = resident_bytes();
    for number in 0..keys {
        write_key(&mut key, number);
        let batch = worker.enter();
        let named = keyspace.key(&key);
        batch.lock(&named).set(
            &mut Op::new(0, 1, &mut Recorder::default()),
            &named,
            NewValue::string(&value),
            Expiry::None,
        );
    }
    let loaded = resident_bytes() - before;
    let mut maintenance = Maintenance::default();
    while !maintenance.step(&worker.enter()).idle {}
    let settled = resident_bytes() - before;
    let payload = KEY_BYTES + len;
    let each = |bytes: usize| bytes as f64 / keys as f64;
    let entry = (8 + payload).next_multiple_of(8);
    println!(
        "{len:>8} {:>10.1} {:>10.1} {:>10.1} {:>12.1} {:>10.1} {:>10.1}",
        each(loaded) - payload as f64,
        each(settled) - payload as f64,
        each(keyspace.used_bytes()) - payload as f64,
        each(keyspace.page_stats().resident_bytes()) - payload as f64,
        each(keyspace.used_bytes()) - entry as f64,
        each(keyspace.table_resident_bytes()),
    );
}
