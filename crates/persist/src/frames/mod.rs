//! Owns: which RESPB request says which effect. Does not own: the bytes of a request (`weft_protocol`), blocks
//! (`crate::block`), what an effect does (`weft_store::replay`).
//!
//! An effect is a request whose channel is the database. One that a command says exactly is that command: SET,
//! PEXPIREAT, RPUSH, HSET, ZADD, XADD and so on, in its typed layout. One that no command says is an ARGV with a name
//! that begins with `WEFT.`. So tools that read RESPB read the log, and replaying needs no commands.
//!
//! | effect | request |
//! |---|---|
//! | `Set` | `SET key value [PXAT ms]` |
//! | `New` | `WEFT.NEW key kind [ms]`; the members follow |
//! | `Write` | `SETRANGE key offset bytes` |
//! | `Expire` | `PEXPIREAT key ms`, `PERSIST key` |
//! | `Delete` | `DEL key`, whatever the cause |
//! | `Move`, `Copy` | `WEFT.MOVE key db key`, `COPY key key DB db REPLACE` |
//! | lists | `LPUSH`, `RPUSH`, `LPOP`, `RPOP`, `LSET`, `WEFT.LINSERT key index element`, `WEFT.LREMOVE key index` |
//! | hashes | `HSET`, `HSETEX key PXAT ms FIELDS 1 field value`, `HPEXPIREAT`, `HPERSIST`, `HDEL` |
//! | sets, sorted sets | `SADD`, `SREM`, `ZADD key score member`, `ZREM` |
//! | streams | `XADD`, `XDEL`, `XTRIM key MAXLEN n`, `XSETID key id ENTRIESADDED n MAXDELETEDID id` |
//! | groups | `XGROUP CREATE key group id MKSTREAM [ENTRIESREAD n]`, `XGROUP SETID`, `DESTROY`, `DELCONSUMER`, `XACK` |
//! | consumers | `WEFT.CONSUMER key group consumer seen [active]`, `WEFT.PENDING key group consumer id ms n` |
//! | entries of the catalogue | `WEFT.ENTRY name section [bytes]`; without bytes it is gone |
//! | barriers | `FLUSHDB`, `SWAPDB db db` |
//!
//! Neighbours that say the same of one key are one request with several members. More than one request that belong
//! together stand between MULTI and EXEC.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use decode::{Decoder, Mark, ROW_MAX, Strange};
pub use encode::Encoder;

/// Members of one request at most. A typed list has room for 65,535.
pub(crate) const MEMBERS_MAX: usize = 512;

/// Names of effects that no command says.
mod name {
    pub(super) const NEW: &str = "WEFT.NEW";
    pub(super) const MOVE: &str = "WEFT.MOVE";
    pub(super) const LIST_INSERT: &str = "WEFT.LINSERT";
    pub(super) const LIST_REMOVE: &str = "WEFT.LREMOVE";
    pub(super) const CONSUMER: &str = "WEFT.CONSUMER";
    pub(super) const PENDING: &str = "WEFT.PENDING";
    pub(super) const ENTRY: &str = "WEFT.ENTRY";
}

/// Sections of the catalogue, in the order of their numbers.
const SECTIONS: [&str; weft_store::Section::ALL.len()] =
    ["functions", "programs", "triggers", "users", "outbox"];

/// Kinds of collections by their names.
const KINDS: [(&str, weft_store::effect::Kind); 5] = {
    use weft_store::effect::Kind;
    [
        ("list", Kind::List),
        ("hash", Kind::Hash),
        ("set", Kind::Set),
        ("zset", Kind::SortedSet),
        ("stream", Kind::Stream),
    ]
};
