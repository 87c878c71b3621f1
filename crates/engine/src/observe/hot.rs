//! Owns: which keys are asked for most, by samples that are taken only while somebody looks (the console's Slow and
//! hot). Does not own: when a sample is taken (`crate::executor`), how the list is sent (the server).
//!
//! Of each batch one request is taken by chance, and weighs as many as the batch has: what that costs does not grow
//! with what is asked for, and every request counts alike. A worker counts in a table of its own: [`SETS`] sets of
//! [`WAYS`] keys, a key's set being that of its hash. One that is not there takes the place of the lightest of its set
//! and what that one weighed, which is kept as its error ("space saving", in sets so that it takes the same few steps
//! always). So a key that has a larger part of all requests than about one in [`SETS`] times [`WAYS`] stays, and what
//! is told of it is no more than what the samples of it weighed.
//!
//! Each second the tables are added up and lose a tenth: what is told is about the last ten seconds.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::acl::User;
use crate::base64;
use crate::mailbox::{Mailboxes, Message};
use crate::reply::{JsonForm, Output, Protocol, ReplySink, Wire};
use crate::special::{self, Special};

const SETS: usize = 64;
const WAYS: usize = 8;
/// Bytes of a key's name that are kept; a longer one is told of by its beginning. Half a MiB for a worker at most.
const NAME_MAX: usize = 1024;
/// Keys that are told.
const SHOWN_MAX: usize = 50;
/// What is left of the weights when a second has passed.
const LEFT: f64 = 0.9;
/// Samples, as far as they are left, from which on a key is told: fewer are chance.
const TIMES_MIN: f64 = 2.5;

/// A key of a table.
#[derive(Clone, Debug, Default)]
struct Way {
    hash: u64,
    db: u8,
    weight: f64,
    /// As much of it as may be another key's.
    error: f64,
    times: f64,
    name: Box<[u8]>,
    name_bytes: usize,
}

/// One worker's table.
#[derive(Debug, Default)]
struct Table {
    ways: Vec<Way>,
    /// The requests of all keys.
    weight: f64,
}

impl Table {
    fn add(&mut self, db: u8, hash: u64, name: &[u8], weight: f64) {
        if self.ways.is_empty() {
            return; // Nobody looks any more.
        }
        self.weight += weight;
        let set = (hash as usize % SETS) * WAYS;
        let ways = &mut self.ways[set..set + WAYS];
        let place = ways.iter().position(|way| way.hash == hash && way.db == db && way.times > 0.0);
        if let Some(way) = place.map(|place| &mut ways[place]) {
            way.weight += weight;
            way.times += 1.0;
            return;
        }
        let Some(way) = ways.iter_mut().min_by(|one, other| one.weight.total_cmp(&other.weight)) else {
            return;
        };
        *way = Way {
            hash,
            db,
            weight: way.weight + weight,
            error: way.weight,
            times: 1.0,
            name: name[..name.len().min(NAME_MAX)].into(),
            name_bytes: name.len(),
        };
    }
    fn fade(&mut self, left: f64) {
        self.weight *= left;
        for way in &mut self.ways {
            (way.weight, way.error, way.times) = (way.weight * left, way.error * left, way.times * left);
        }
    }
}

/// A key that is told of.
#[derive(Clone, Debug, PartialEq)]
pub struct HotKey {
    db: u8,
    name: Box<[u8]>,
    name_bytes: usize,
    per_second: f64,
}

/// What was found in the last seconds.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    requests_per_second: f64,
    keys: Vec<HotKey>,
}

#[derive(Debug, Default)]
struct Watch {
    watchers: usize,
    last_ms: u64,
    /// Seconds that the weights are of.
    seconds: f64,
    /// Lists that there ever were, and the last one.
    count: u64,
    found: Arc<Found>,
}

/// The tables, and who looks.
#[derive(Debug)]
pub struct Hot {
    tables: Box<[Mutex<Table>]>,
    watch: Mutex<Watch>,
}

impl Hot {
    pub(crate) fn new(workers: u16) -> Self {
        Self { tables: (0..workers.max(1)).map(|_| Mutex::default()).collect(), watch: Mutex::default() }
    }
    /// A request of a batch, for all `weight` of it.
    #[cold]
    pub(crate) fn add(&self, worker: u16, (db, hash, name): (u8, u64, &[u8]), weight: usize) {
        if let Some(table) = self.tables.get(usize::from(worker)) {
            table.lock().add(db, hash, name, weight as f64);
        }
    }
    /// How many lists there ever were, and the last one.
    #[must_use]
    pub fn found(&self) -> (u64, Arc<Found>) {
        let watch = self.watch.lock();
        (watch.count, Arc::clone(&watch.found))
    }
}

impl Hot {
    /// Somebody looks from now on.
    pub(crate) fn join(&self, special: &Special, now_ms: u64) {
        let mut watch = self.watch.lock();
        watch.watchers += 1;
        if watch.watchers == 1 {
            *watch = Watch { watchers: 1, last_ms: now_ms, count: watch.count, ..Watch::default() };
            for table in &self.tables {
                *table.lock() = Table { ways: vec![Way::default(); SETS * WAYS], weight: 0.0 };
            }
            special.set(special::SAMPLED, true);
        }
    }
    /// Somebody looks no more.
    pub(crate) fn leave(&self, special: &Special) {
        let mut watch = self.watch.lock();
        watch.watchers -= 1;
        if watch.watchers == 0 {
            special.set(special::SAMPLED, false);
            self.tables.iter().for_each(|table| *table.lock() = Table::default());
            watch.found = Arc::default();
        }
    }

    /// A second has passed: what was found is put together, and those who look are told.
    pub(crate) fn note_second(&self, mailboxes: &Mailboxes, now_ms: u64) {
        let mut watch = self.watch.lock();
        if watch.watchers == 0 {
            return;
        }
        watch.seconds += now_ms.saturating_sub(watch.last_ms) as f64 / 1000.0;
        watch.last_ms = now_ms;
        let seconds = watch.seconds.max(0.001);
        let mut all: HashMap<(u8, u64), (HotKey, f64)> = HashMap::new();
        let mut weight = 0.0;
        for table in &self.tables {
            let mut table = table.lock();
            weight += table.weight;
            for way in table.ways.iter().filter(|way| way.times > 0.0) {
                let (key, times) = all.entry((way.db, way.hash)).or_insert_with(|| {
                    let (name, name_bytes) = (way.name.clone(), way.name_bytes);
                    (HotKey { db: way.db, name, name_bytes, per_second: 0.0 }, 0.0)
                });
                key.per_second += (way.weight - way.error) / seconds;
                *times += way.times;
            }
            table.fade(LEFT);
        }
        let told = all.into_values().filter(|(_, times)| *times >= TIMES_MIN);
        let mut keys: Vec<HotKey> = told.map(|(key, _)| key).collect();
        keys.sort_by(|one, other| {
            other.per_second.total_cmp(&one.per_second).then(one.name.cmp(&other.name))
        });
        keys.truncate(SHOWN_MAX);
        watch.seconds *= LEFT;
        watch.count += 1;
        watch.found = Arc::new(Found { requests_per_second: weight / seconds, keys });
        drop(watch);
        mailboxes.post_all(|| Message::Figures);
    }
}

impl Found {
    /// As JSON, `{"requests_per_s":…,"keys":[{"db":…,"key":…,"base64":…,"bytes":…,"per_s":…},…]}`: the keys that a
    /// user may read. Whoever may not read all is told of no name that is cut, since his rights are about whole ones.
    #[must_use]
    pub fn json(&self, user: &User) -> Vec<u8> {
        let may_see = |key: &&HotKey| {
            user.all || key.name.len() == key.name_bytes && user.reads_key_in(key.db, &key.name)
        };
        let keys: Vec<&HotKey> = self.keys.iter().filter(may_see).collect();
        let mut output = Output::default();
        let wire = Wire { protocol: Protocol::Json(JsonForm::Plain), ..Wire::default() };
        let mut sink = ReplySink::new(&mut output, wire);
        sink.map(2);
        sink.bulk(b"requests_per_s");
        sink.int(self.requests_per_second.round() as i64);
        sink.bulk(b"keys");
        sink.array(keys.len());
        for key in keys {
            sink.map(5);
            sink.bulk(b"db");
            sink.int(key.db.into());
            sink.bulk(b"key");
            sink.bulk(&key.name);
            let mut text = Vec::new();
            base64::push(&mut text, &key.name);
            sink.bulk(b"base64");
            sink.bulk(&text);
            sink.bulk(b"bytes");
            sink.int(key.name_bytes as i64);
            sink.bulk(b"per_s");
            sink.int(key.per_second.round() as i64);
        }
        output.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_store::{Rng, XorShift};

    fn table() -> Table {
        Table { ways: vec![Way::default(); SETS * WAYS], weight: 0.0 }
    }

    #[test]
    fn what_has_its_part_stays_among_many() {
        let (mut table, mut rng) = (table(), XorShift::new(7));
        const REQUESTS: u64 = 400_000;
        for _ in 0..REQUESTS {
            // One in twenty is for one of two keys, the others for one of a million.
            let hash = match rng.next_u64() % 40 {
                hot @ 0..2 => hot + 1,
                _ => 1000 + rng.next_u64() % 1_000_000,
            };
            table.add(0, hash.wrapping_mul(0x9e37_79b9_7f4a_7c15), &hash.to_le_bytes(), 1.0);
        }
        let mut heaviest: Vec<&Way> = table.ways.iter().collect();
        heaviest.sort_by(|one, other| (other.weight - other.error).total_cmp(&(one.weight - one.error)));
        for (way, next) in heaviest[..2].iter().zip([1, 2]) {
            assert!(way.name[0] == 1 || way.name[0] == 2, "{next}: {way:?}");
            let sure = way.weight - way.error;
            assert!((9_000.0..=10_600.0).contains(&sure), "{way:?}");
        }
        assert!(heaviest[2].weight - heaviest[2].error < 100.0, "{:?}", heaviest[2]);
        assert_eq!(table.weight, REQUESTS as f64);
    }

    #[test]
    fn what_was_hot_fades_and_makes_room() {
        let mut table = table();
        (0..100).for_each(|_| table.add(0, 5, b"before", 1.0));
        (0..60).for_each(|_| table.fade(LEFT));
        assert!(table.ways.iter().map(|way| way.weight).sum::<f64>() < 1.0);
        for hash in 0..WAYS as u64 {
            table.add(1, 5 + hash * SETS as u64, b"now", 1.0);
        }
        assert!(table.ways.iter().all(|way| &*way.name != b"before"));
        let long = vec![b'x'; NAME_MAX + 1];
        table.add(0, 6, &long, 1.0);
        let way = table.ways.iter().find(|way| way.hash == 6).map(|way| (way.name.len(), way.name_bytes));
        assert_eq!(way, Some((NAME_MAX, NAME_MAX + 1)));
    }
}
