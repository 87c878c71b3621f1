//! Owns: `import-mode` and CLIENT IMPORT-SOURCE: what has expired stays, who brings it in sees it, everybody else does
//! not, and nothing is evicted.

mod support;

use support::{ALL, Bench};
use weft_engine::background::Background;
use weft_engine::reply::Protocol;

struct Importing {
    bench: Bench,
    source: u32,
    other: u32,
}

impl Importing {
    fn new(protocol: Protocol) -> Self {
        let (bench, [source, other]) = Bench::with_clients([protocol; 2]);
        let mut this = Self { bench, source, other };
        assert_eq!(this.source("CLIENT IMPORT-SOURCE ON"), "-ERR Server is not in import mode");
        assert_eq!(this.source("CLIENT IMPORT-SOURCE OFF"), "OK");
        assert_eq!(this.other("CONFIG SET import-mode yes"), "OK");
        assert_eq!(this.source("CLIENT IMPORT-SOURCE maybe"), "-ERR syntax error");
        assert_eq!(this.source("CLIENT IMPORT-SOURCE ON"), "OK");
        this
    }
    /// What the server does by itself, until nothing is left to do.
    fn background(&self) {
        let mut worker = self.bench.engine.keyspace.worker().expect("a place for one more");
        let mut background = Background::new(self.bench.engine);
        while !background.step(self.bench.engine, &mut worker, |_| ()).is_idle {}
    }
    fn source(&mut self, command: &str) -> String {
        self.bench.text(self.source, command)
    }
    fn other(&mut self, command: &str) -> String {
        self.bench.text(self.other, command)
    }
}

#[test]
fn who_brings_keys_in_sees_those_whose_time_has_come() {
    for protocol in ALL {
        let mut at = Importing::new(protocol);
        at.source("SET text v PX 50");
        at.source("SADD set a b");
        at.source("PEXPIRE set 50");
        at.source("HSET hash f v g w");
        at.source("HPEXPIRE hash 50 FIELDS 1 f");
        at.bench.pass(50);
        // Before and after others have looked, alone and several at once, by walks and in a transaction.
        for _ in 0..2 {
            assert_eq!(at.source("GET text"), "v", "{protocol:?}");
            assert_eq!(at.source("MGET text text"), "[v v]");
            assert_eq!(at.source("SINTERCARD 2 set set"), "2");
            assert_eq!(at.source("HGET hash f"), "v");
            assert_eq!(at.source("PTTL text"), "0");
            assert_eq!(at.source("EXISTS text set hash"), "3");
            assert!(at.source("SCAN 0 COUNT 1000").contains("text"));
            assert!(at.source("KEYS *").contains("set"));
            assert_eq!(at.other("GET text"), "nil");
            assert_eq!(at.other("MGET text text"), "[nil nil]");
            assert_eq!(at.other("SINTERCARD 2 set set"), "0");
            assert_eq!(at.other("HGET hash f"), "nil");
            assert_eq!(at.other("EXISTS text set hash"), "1");
            assert!(!at.other("SCAN 0 COUNT 1000").contains("text"));
            assert_eq!(at.other("DBSIZE"), "3", "nothing is removed by looking");
            at.background();
        }
        // It goes on writing to them, and removes them.
        assert_eq!(at.source("APPEND text w"), "2");
        assert_eq!(at.source("DEL text"), "1");
        assert_eq!(at.source("DEL set"), "1");
        assert_eq!(at.other("DBSIZE"), "1");
    }
}

#[test]
fn a_time_that_has_come_can_be_given() {
    let mut at = Importing::new(Protocol::Resp3);
    at.source("SET a 1");
    assert_eq!(at.source("PEXPIREAT a 1000"), "1");
    at.source("SET b 2 PXAT 1000");
    at.source("HSET c f v");
    assert_eq!(at.source("HPEXPIREAT c 1000 FIELDS 1 f"), "[1]");
    assert_eq!(at.source("MGET a b"), "[1 2]");
    assert_eq!(at.source("HGET c f"), "v");
    assert_eq!(at.other("MGET a b"), "[nil nil]");
    // The first moment that there is, and what lies before it.
    for time in ["0", "-1", "-10000"] {
        at.source("SET old 1");
        assert_eq!(at.source(&format!("EXPIREAT old {time}")), "1");
        assert_eq!(at.source("GET old"), "1", "{time}");
    }
    at.source("DEL old");
    assert_eq!(at.source("HSETEX d EXAT 0 FIELDS 1 f v"), "1");
    assert_eq!(at.source("HGET d f"), "v");
    at.source("DEL d");
    // Writing over what has expired is a write to nothing for others.
    assert_eq!(at.other("SET b 3 NX"), "OK");
    // The end of it: what has expired goes.
    assert_eq!(at.other("CONFIG SET import-mode no"), "OK");
    assert_eq!(at.source("GET a"), "nil", "a source of no import is like others");
    assert_eq!(at.source("HGET c f"), "nil");
    at.background();
    assert_eq!(at.other("DBSIZE"), "1");
    assert_eq!(at.other("GET b"), "3");
    assert_eq!(at.source("PEXPIREAT b 1000"), "1");
    assert_eq!(at.other("EXISTS b"), "0");
}

#[test]
fn nothing_is_evicted() {
    let mut at = Importing::new(Protocol::Resp2);
    let value = "x".repeat(1000);
    for number in 0..100 {
        at.source(&format!("SET k:{number} {value}"));
    }
    let half = at.bench.engine.keyspace.used_bytes() / 2;
    at.other(&format!("CONFIG SET maxmemory-policy allkeys-lru maxmemory {half}"));
    at.background();
    assert_eq!(at.source("SET more x"), "-OOM command not allowed when used memory > 'maxmemory'.");
    assert_eq!(at.other("DBSIZE"), "100");
    at.other("CONFIG SET import-mode no");
    assert_eq!(at.source("SET more x"), "OK");
    assert_ne!(at.other("DBSIZE"), "101", "keys went");
}
