//! Owns: what the hot path asks of a command, two bytes each, computed once from the table. Does not own: the table.

use std::sync::LazyLock;
use weft_protocol::table::{COMMANDS, CommandId, CommandSpec, KeyBegin, KeyFind, flag, key_flag, policy};

/// Nothing behind the command may be decoded before it has run: it may change how bytes are read, or end the
/// connection.
pub const BARRIER: u16 = 1 << 0;
/// It has subcommands.
pub const CONTAINER: u16 = 1 << 1;
/// It always takes about the same short time: it shares its batch's time and is not timed by itself.
pub const QUICK: u16 = 1 << 2;
/// It has keys.
pub const KEYS: u16 = 1 << 3;
/// Its first argument is its only key.
pub const ONE_KEY: u16 = 1 << 4;
/// It has a fast function in the executor, if its arguments allow it: one of those that follow.
pub const FAST: u16 = FAST_GET | FAST_SET | FAST_PING | FAST_MGET | FAST_MSET;
/// GET.
pub const FAST_GET: u16 = 1 << 7;
/// SET.
pub const FAST_SET: u16 = 1 << 8;
/// PING.
pub const FAST_PING: u16 = 1 << 9;
/// MGET.
pub const FAST_MGET: u16 = 1 << 10;
/// MSET.
pub const FAST_MSET: u16 = 1 << 11;

/// Its second argument, behind the key, is a member or field that it looks for.
pub const MEMBER_SECOND: u16 = 1 << 5;
/// Its third argument is.
pub const MEMBER_THIRD: u16 = 1 << 6;

/// It opens a transaction: MULTI.
pub const OPENS_TRANSACTION: u16 = 1 << 12;
/// It ends one, and runs what was queued: EXEC. A barrier if something of that may be one.
pub const ENDS_TRANSACTION: u16 = 1 << 13;

static TRAITS: LazyLock<Box<[u16]>> = LazyLock::new(|| COMMANDS.iter().map(of_spec).collect());

/// The traits of all commands, by id.
#[must_use]
pub fn all() -> &'static [u16] {
    &TRAITS
}

/// The traits of a command.
#[inline]
#[must_use]
pub fn of(id: CommandId) -> u16 {
    TRAITS[usize::from(id.0)]
}

fn of_spec(spec: &CommandSpec) -> u16 {
    let root = spec.container.is_none();
    let mut traits = 0;
    if spec.policy & policy::BARRIER != 0 {
        traits |= BARRIER;
    }
    if root && COMMANDS.iter().any(|other| other.container.is_some_and(|id| std::ptr::eq(id.spec(), spec))) {
        traits |= CONTAINER;
    }
    if spec.flags & flag::FAST != 0 || spec.policy & policy::QUICK != 0 {
        traits |= QUICK;
    }
    if !spec.key_specs.is_empty() {
        traits |= KEYS;
    }
    if let [only] = spec.key_specs
        && only.begin == KeyBegin::Index(1)
        && matches!(only.find, KeyFind::Range { last: 0, .. })
        && only.flags & key_flag::NOT_KEY == 0
    {
        traits |= ONE_KEY;
    }
    let of_policy = [
        (policy::MEMBER_SECOND, MEMBER_SECOND),
        (policy::MEMBER_THIRD, MEMBER_THIRD),
        (policy::FAST_GET, FAST_GET),
        (policy::FAST_SET, FAST_SET),
        (policy::FAST_PING, FAST_PING),
        (policy::FAST_MGET, FAST_MGET),
        (policy::FAST_MSET, FAST_MSET),
        (policy::OPENS_TRANSACTION, OPENS_TRANSACTION),
        (policy::ENDS_TRANSACTION, ENDS_TRANSACTION),
    ];
    of_policy.iter().fold(traits, |all, (bit, its)| if spec.policy & bit != 0 { all | its } else { all })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_protocol::table;

    #[test]
    fn traits_follow_from_the_table() {
        let of_name = |name: &str| of(table::by_name(name.as_bytes()).expect("a command"));
        assert_eq!(of_name("GET"), QUICK | KEYS | ONE_KEY | FAST_GET);
        assert_eq!(of_name("SET"), QUICK | KEYS | ONE_KEY | FAST_SET);
        assert_eq!(of_name("SADD"), QUICK | KEYS | ONE_KEY | MEMBER_SECOND);
        assert_eq!(of_name("HGET") & MEMBER_SECOND, MEMBER_SECOND);
        assert_eq!(of_name("ZADD") & MEMBER_THIRD, MEMBER_THIRD);
        assert_eq!(of_name("MGET"), QUICK | KEYS | FAST_MGET);
        assert_eq!(of_name("MSET"), KEYS | FAST_MSET);
        assert_eq!(of_name("BLPOP"), KEYS);
        assert_eq!(of_name("CLIENT"), CONTAINER);
        assert_eq!(of_name("HELLO") & BARRIER, BARRIER);
        assert_eq!(of_name("SPUBLISH") & ONE_KEY, 0);
        // What may wait never runs among neighbours, nor in a transaction that has come whole.
        let waits = COMMANDS.iter().filter(|spec| spec.flags & flag::BLOCKING != 0);
        assert!(waits.map(of_spec).all(|traits| traits & (ONE_KEY | FAST) == 0));
        assert_eq!(of_name("MULTI"), QUICK | OPENS_TRANSACTION);
        assert_eq!(of_name("EXEC"), ENDS_TRANSACTION);
    }
}
