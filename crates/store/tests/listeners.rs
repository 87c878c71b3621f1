//! Who wants to be told of writes: once he has counted himself in and locked a key, he is told of every later write.
// Which state a thread is in is read from /proc.
#![cfg(all(target_os = "linux", not(miri)))]
#![allow(clippy::unwrap_used)]

use std::sync::mpsc::channel;
use std::{fs, thread};
use weft_store::{Config, Expiry, Keyspace, NewValue, Op, Recorder, wants};

/// Waits until a thread sleeps: in the kernel, until somebody wakes it.
fn wait_until_asleep(task: &std::path::Path) {
    loop {
        let stat = fs::read_to_string(task.join("stat")).unwrap();
        // Behind the name, which stands in brackets.
        if stat.rsplit(')').next().unwrap().trim_start().starts_with('S') {
            return;
        }
        thread::yield_now();
    }
}

#[test]
fn a_write_that_waited_for_the_shard_is_told_of() {
    let keyspace = Keyspace::new(Config { shards: 1, ..Config::default() });
    let (mut reader, mut writer) = (keyspace.worker().unwrap(), keyspace.worker().unwrap());
    let key = keyspace.key(b"key");
    let mut recorder = Recorder::default();
    let mut op = Op::new(0, 1, &mut recorder);
    reader.enter().lock(&key).set(&mut op, &key, NewValue::string(b"before"), Expiry::None);
    thread::scope(|scope| {
        let batch = reader.enter();
        let mut guard = batch.lock(&key);
        let (about_to_write, is_about_to_write) = channel();
        let keyspace = &keyspace;
        let writing = scope.spawn(move || {
            let key = keyspace.key(b"key");
            let mut told = Recorder::default();
            let mut batch = writer.enter();
            batch.prefetch_bucket(0, key.hash(), false);
            batch.prefetch_entries(0, [(key.hash(), true)]);
            about_to_write.send(fs::canonicalize("/proc/thread-self").unwrap()).unwrap();
            let mut op = Op::new(0, 1, &mut told);
            // The fast way first, as for every SET.
            let is_written = batch.rewrite(0, &mut op, &key, b"behind");
            if !is_written {
                batch.lock(&key).set(&mut op, &key, NewValue::string(b"behind"), Expiry::None);
            }
            (is_written, !told.is_clear())
        });
        let task = is_about_to_write.recv().unwrap();
        wait_until_asleep(&task);
        // The writer waits for the shard: its write comes behind what is read now, and must be told of.
        keyspace.subscribe(wants::KEYS);
        let mut recorder = Recorder::default();
        let mut op = Op::new(0, 1, &mut recorder);
        assert!(guard.get(&mut op, &key).is_some());
        drop(guard);
        drop(batch);
        assert_eq!(writing.join().unwrap(), (false, true), "written on the fast way, told of it");
    });
}
