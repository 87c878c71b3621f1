//! Owns: the form in which the store tells what it has changed. Does not own: what is done with it: the log, keyspace
//! notifications, triggers, tracking and replicas all read this one stream.
//!
//! An effect is emitted under the lock of its shard, so the effects of a key come in the order of its writes. The
//! sequence is one counter for the keyspace: a transaction's effects need not be adjacent, but whoever holds all its
//! locks gets numbers that no conflicting write can come between.

use crate::ahead::Ahead;
use crate::value::ValueRef;

/// Why a key went away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A command removed it.
    Deleted,
    /// Its time had come.
    Expired,
    /// Memory was needed.
    Evicted,
}

/// What happened to one key, in terms that replay without clock or dice.
#[derive(Clone, Copy, Debug)]
pub enum Effect<'a> {
    /// The key has this value now, and this expiry.
    Set {
        /// The key.
        key: &'a [u8],
        /// The value.
        value: ValueRef<'a>,
        /// Absolute expiry.
        expire_ms: Option<u64>,
    },
    /// Bytes were written into the string at an offset, the gap before being zeros.
    Write {
        /// The key.
        key: &'a [u8],
        /// Where.
        offset: usize,
        /// What.
        bytes: &'a [u8],
    },
    /// The key's absolute expiry, or that it has none any more.
    Expire {
        /// The key.
        key: &'a [u8],
        /// Absolute expiry.
        expire_ms: Option<u64>,
    },
    /// The key is gone.
    Delete {
        /// The key.
        key: &'a [u8],
        /// Why.
        cause: Cause,
    },
    /// A change inside an object, in the words of the command table: an opcode and the members that were chosen.
    /// Emitted by the command's handler through [`crate::ShardGuard::emit`].
    Change {
        /// The key.
        key: &'a [u8],
        /// The command's opcode.
        opcode: u16,
        /// Its arguments after the key, with every choice made.
        arguments: &'a [&'a [u8]],
    },
    /// Fields of a hash are gone because their time had come. If they were the last ones, [`Effect::Delete`] follows.
    FieldsExpired {
        /// The key.
        key: &'a [u8],
        /// The fields.
        fields: &'a [&'a [u8]],
        /// Whether they were the last ones.
        last: bool,
    },
    /// All keys of the database are gone: a barrier.
    Flush,
    /// The database has changed places with another: a barrier.
    Swap {
        /// The other one.
        with: u8,
    },
}

/// Takes effects under the shard's lock: it must not block and must not call the store.
pub trait EffectSink {
    /// Whether there is a reader at all. If not, and if the keyspace has no
    /// [listeners](crate::Keyspace::write_listeners), no sequence is drawn and nothing is emitted.
    fn wants(&self) -> bool {
        true
    }
    /// What the next requests will look for in the collection that this one is about.
    fn ahead(&self) -> Ahead {
        Ahead::default()
    }
    /// A key was written to in any way: for those who need to know that and no more. Comes before the effect, also
    /// when nobody [wants](Self::wants) effects, but only while the keyspace has
    /// [listeners](crate::Keyspace::write_listeners).
    fn wrote(&mut self, key: &[u8]) {
        let _ = key;
    }
    /// A key that was not there is now. Comes before the effect, also when nobody [wants](Self::wants) effects.
    fn created(&mut self, db: u8, key: &[u8]) {
        let _ = (db, key);
    }
    /// A key was looked for to be read, and was not there.
    fn missed(&mut self, db: u8, key: &[u8]) {
        let _ = (db, key);
    }
    /// One effect. Sequences begin at 1 and are unique in the keyspace.
    fn emit(&mut self, sequence: u64, db: u8, effect: &Effect<'_>);
}

/// No reader.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoEffects;

impl EffectSink for NoEffects {
    fn wants(&self) -> bool {
        false
    }
    fn emit(&mut self, _: u64, _: u8, _: &Effect<'_>) {}
}
