//! Runs batches of SETs that a log is told of and prints how many.
//!
//! `server_costs log WIRE-PIPELINE REPEATS` runs REPEATS × [`ROUNDS`] × [`BATCHES`] batches of 64 SETs over strings
//! that are there, for clients with as many requests in a row as the pipeline says, as a worker does with what a look
//! at its sockets has brought. The first of each batch is a number, which goes a longer way: those behind it do not.
//! Behind each round the log's thread has its turn: what was told is merged, and written to a disk that keeps nothing.
//! `none` has no log: what is beside it is what a log costs.

use std::io;
use std::sync::{Arc, Mutex};

use crate::worker::{Worker, encode, engine};
use weft_engine::reply::Protocol;
use weft_engine::requests::BATCH_MAX;
use weft_persist::disk::{Disk, File};
use weft_persist::{Log, LogOptions, SEGMENT_BYTES};
use weft_store::{Merger, wants};

/// Keys in use.
const KEYS: usize = 1024;
/// Batches before the log's thread has its turn: about what comes in two milliseconds.
const BATCHES: usize = 64;
/// Turns of one repeat.
const ROUNDS: usize = 4;

const USAGE: &str = "usage: server_costs log resp-16|resp-64|none-16|none-64 REPEATS";

pub(crate) fn run(args: &[String]) {
    let [workload, repeats] = args else { panic!("{USAGE}") };
    let repeats: usize = repeats.parse().expect(USAGE);
    let (wire, pipeline) = workload.split_once('-').expect(USAGE);
    let pipeline: usize = pipeline.parse().expect(USAGE);
    let clients = BATCH_MAX / pipeline;
    let engine = engine(1);
    let mut worker = Worker::of(engine, 0, Protocol::Resp2, clients as u32);
    let batches: Vec<Vec<Vec<u8>>> =
        (0..KEYS).step_by(BATCH_MAX).map(|first| batch(first, (clients, pipeline))).collect();
    // Every key is there before.
    for batch in &batches {
        worker.run(batch);
    }
    let mut follower = engine.keyspace.worker().expect("there is a place");
    let mut log =
        (wire != "none").then(|| Following::new(follower.merger(wants::VALUES).expect("the first")));
    let mut round = |log: &mut Option<Following>| {
        for at in 0..BATCHES {
            let replies = worker.run(&batches[at % batches.len()]);
            assert_eq!(replies, BATCH_MAX * "+OK\r\n".len(), "every SET is answered");
        }
        if let Some(log) = log {
            log.follow();
        }
    };
    // Buffers get their size.
    (0..2).for_each(|_| round(&mut log));
    let before = log.as_ref().map_or(0, Following::bytes);
    (0..repeats * ROUNDS).for_each(|_| round(&mut log));
    let sets = repeats * ROUNDS * BATCHES * BATCH_MAX;
    let bytes = log.as_ref().map_or(0, Following::bytes) - before;
    assert!(log.is_none() || bytes > 42 * sets as u64, "all of them are in the log: {bytes} bytes");
    println!("{sets} SETs, {bytes} bytes of the log");
}

/// What clients have sent.
fn batch(first: usize, (clients, pipeline): (usize, usize)) -> Vec<Vec<u8>> {
    let mut sent = vec![Vec::new(); clients];
    for at in 0..clients * pipeline {
        let key = format!("key:{:012}", (first + at) % KEYS).into_bytes();
        let value = if at == 0 { b"1234567890123456" } else { b"vvvvvvvvvvvvvvvv" };
        encode(&[b"SET".to_vec(), key, value.to_vec()], Protocol::Resp2, &mut sent[at / pipeline]);
    }
    sent
}

/// A log that follows the merger, as the server's thread has it.
struct Following {
    merger: Merger<'static>,
    log: Log,
}

impl Following {
    fn new(merger: Merger<'static>) -> Self {
        let options = LogOptions { base: "a.aof".into(), segment_bytes: SEGMENT_BYTES };
        Self { merger, log: Log::begin(Arc::new(Nowhere::default()), options).expect("it never fails") }
    }
    /// The rows of the last epoch come out with the next look.
    fn follow(&mut self) {
        let log = &mut self.log;
        let polled = self.merger.poll(|group| {
            let pushed = match group.row() {
                Some(row) => log.push_row(group.epoch(), row),
                None => log.push(group.epoch(), group.read()),
            };
            pushed.expect("it never fails");
        });
        polled.expect("nothing is lost");
        self.log.flush().expect("it never fails");
    }
    fn bytes(&self) -> u64 {
        self.log.bytes()
    }
}

/// A disk that has names, and keeps nothing else.
#[derive(Debug, Default)]
struct Nowhere(Mutex<Vec<String>>);

impl Nowhere {
    fn names(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.0.lock().expect("nobody panics with it")
    }
}

impl Disk for Nowhere {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.names().clone())
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.names().push(name.into());
        self.open(name)
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let is_segment = name.ends_with(".log") && self.names().iter().any(|own| own == name);
        if is_segment || name.ends_with(".tmp") {
            Ok(Arc::new(Self::default()))
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.names().retain(|name| name != from);
        self.names().push(to.into());
        Ok(())
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.names().retain(|own| own != name);
        Ok(())
    }
    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }
    fn shown(&self, name: &str) -> String {
        name.into()
    }
    fn has(&self, _: &str, _: &dyn File) -> io::Result<bool> {
        Ok(true)
    }
}

impl File for Nowhere {
    fn bytes(&self) -> io::Result<u64> {
        Ok(0)
    }
    fn allocate(&self, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
    fn read(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
    fn set_len(&self, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn identity(&self) -> io::Result<(u64, u64)> {
        Ok((0, 0))
    }
}
