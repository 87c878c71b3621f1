//! Owns: where the keys of a command stand, by the table, and whether it comes to others. Does not own: what is done
//! with them.

use weft_protocol::table::{KeyBegin, KeyFind, KeySpec, key_flag, policy};

use crate::args::Args;

/// What an operation needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Everything.
    World,
    /// These shards, in any order.
    Shards(Vec<u32>),
}

/// Whether a command looks at all keys, or changes them: by what it is, or by what these arguments ask it for.
pub(crate) fn looks_at_all(args: &Args<'_>) -> bool {
    args.spec.policy & policy::LOOKS_AT_ALL != 0 || has_unnamed(args)
}

/// Whether SORT comes to keys that stand in no certain place: those of a pattern, or the one behind STORE.
pub(crate) fn has_unnamed(args: &Args<'_>) -> bool {
    args.spec.key_specs.iter().any(|spec| matches!(spec.find, KeyFind::Unknown))
        && (2..args.len()).any(|at| args.is(at, "BY") || args.is(at, "GET") || args.is(at, "STORE"))
}

/// Slots of a cluster.
const SLOTS: u16 = 16_384;

/// The slot of a key in a cluster: of the key, or of what stands between braces in it.
pub fn key_slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        rest.iter().position(|byte| *byte == b'}').filter(|len| *len > 0).map(|len| &rest[..len])
    });
    // Its table is made once, not for each key.
    static CRC: crc::Crc<u16> = crc::Crc::<u16>::new(&crc::CRC_16_XMODEM);
    CRC.checksum(tag.unwrap_or(key)) % SLOTS
}

/// Calls `visit` with the place of each key. A command whose keys cannot be told from its arguments, or whose arguments
/// make no sense, gives none: its handler answers the error.
#[inline]
pub fn each(args: &Args<'_>, mut visit: impl FnMut(usize)) {
    match args.spec.key_specs {
        [] => {}
        [KeySpec { begin: KeyBegin::Index(1), find: KeyFind::Range { last: 0, .. }, flags }]
            if flags & key_flag::NOT_KEY == 0 =>
        {
            if args.len() > 1 {
                visit(1);
            }
        }
        _ if args.spec.policy & policy::KEYS_MIGRATE != 0 => migrate_keys(args).for_each(visit),
        specs => {
            specs.iter().for_each(|spec| each_of(spec, args, &mut visit));
            if let Some(index) = sort_store(args) {
                visit(index);
            }
        }
    }
}

/// Where the keys of MIGRATE stand: behind the first KEYS among its options, if its third argument leaves room for
/// them, else there. The table finds the last KEYS, which may be a key or a password.
fn migrate_keys(args: &Args<'_>) -> std::ops::Range<usize> {
    let (one, mut at) = (MIGRATE_KEY_AT..MIGRATE_KEY_AT + 1, MIGRATE_OPTIONS_AT);
    while at < args.len() {
        at += match () {
            () if args.is(at, "KEYS") && args.bytes(MIGRATE_KEY_AT).is_empty() => return at + 1..args.len(),
            () if args.is(at, "AUTH") => 2,
            () if args.is(at, "AUTH2") => 3,
            () => 1,
        };
    }
    one
}

/// Where MIGRATE has its key, or an empty text before KEYS.
pub(crate) const MIGRATE_KEY_AT: usize = 3;
/// Where its options begin.
pub(crate) const MIGRATE_OPTIONS_AT: usize = 6;

/// Calls `visit` with the place of each key and what the command does with it: bits of
/// [`key_flag`](weft_protocol::table::key_flag), as these arguments mean it.
pub fn each_with_flags(args: &Args<'_>, mut visit: impl FnMut(usize, u16)) {
    if args.spec.policy & policy::KEYS_MIGRATE != 0 {
        let flags = args.spec.key_specs.first().map_or(0, |spec| spec.flags);
        return migrate_keys(args).for_each(|index| visit(index, flags));
    }
    for spec in args.spec.key_specs {
        let flags =
            if spec.flags & key_flag::VARIABLE_FLAGS == 0 { spec.flags } else { variable_flags(args) };
        each_of(spec, args, &mut |index| visit(index, flags));
    }
    if let Some(index) = sort_store(args) {
        visit(index, key_flag::OW | key_flag::UPDATE);
    }
}

/// Whether a command announces more keys than it has arguments, or ends before keys that it may have.
pub fn are_too_few(args: &Args<'_>) -> bool {
    args.spec.key_specs.iter().any(|spec| {
        let Some(begin) = begin(spec.begin, args) else { return matches!(spec.begin, KeyBegin::Index(_)) };
        let KeyFind::Count { at, first, step } = spec.find else { return false };
        let left = args.len() as i64 - (begin as i64 + i64::from(first));
        let at = usize::try_from(begin as i64 + i64::from(at)).ok().filter(|at| *at < args.len());
        let count = at.and_then(|at| args.int(at).ok()).unwrap_or(0);
        count > 0 && (count - 1).saturating_mul(step.into()) >= left
    })
}

/// Where the key stands that SORT writes to: the table cannot say it, since the word may be the value of an option.
fn sort_store(args: &Args<'_>) -> Option<usize> {
    if args.spec.policy & policy::KEYS_SORT == 0 {
        return None;
    }
    let (mut at, mut found) = (2, None);
    while at + 1 < args.len() {
        at += if args.is(at, "LIMIT") {
            3
        } else if args.is(at, "GET") || args.is(at, "BY") {
            2
        } else if args.is(at, "STORE") {
            found = Some(at + 1);
            2
        } else {
            1
        };
    }
    found
}

/// Where the key stands that GEORADIUS or GEORADIUSBYMEMBER writes to: of several, the last one counts.
fn radius_store(args: &Args<'_>) -> Option<usize> {
    let (mut at, mut found) = (5, None);
    while at + 1 < args.len() {
        if args.is(at, "STORE") || args.is(at, "STOREDIST") {
            at += 1;
            found = Some(at);
        }
        at += 1;
    }
    found
}

/// What commands do with their key whose options decide it.
fn variable_flags(args: &Args<'_>) -> u16 {
    use key_flag::{ACCESS, OW, RO, RW, UPDATE};
    let has = |word: &str, from: usize| (from..args.len()).any(|index| args.is(index, word));
    match args.spec.policy {
        policy if policy & policy::ACCESS_SET != 0 && !has("GET", 3) => OW | UPDATE,
        policy if policy & policy::KEYS_RADIUS != 0 => OW | UPDATE,
        policy if policy & policy::ACCESS_BITFIELD != 0 && !has("SET", 2) && !has("INCRBY", 2) => RO | ACCESS,
        _ => RW | ACCESS | UPDATE,
    }
}

fn each_of(spec: &KeySpec, args: &Args<'_>, visit: &mut impl FnMut(usize)) {
    if spec.flags & key_flag::NOT_KEY != 0 {
        return;
    }
    let Some(begin) = begin(spec.begin, args) else { return };
    let len = args.len() as i64;
    match spec.find {
        KeyFind::Unknown => {}
        KeyFind::Range { last, step, limit } => {
            let (last, step, limit) = (i64::from(last), i64::from(step).max(1), i64::from(limit));
            let begin = begin as i64;
            let end = match last {
                0.. => begin + last,
                _ if limit <= 1 => len + last,
                _ => begin + (len - begin) / limit + last,
            };
            let mut at = begin;
            while at <= end.min(len - 1) {
                visit(at as usize);
                at += step;
            }
        }
        KeyFind::Count { at, first, step } => {
            let (Ok(at), Ok(first)) = (
                usize::try_from(begin as i64 + i64::from(at)),
                usize::try_from(begin as i64 + i64::from(first)),
            ) else {
                return;
            };
            let Ok(count) = args.int(at) else { return };
            let step = step.max(1) as usize;
            let places = (first..args.len()).step_by(step);
            places.take(usize::try_from(count).unwrap_or(0)).for_each(visit);
        }
    }
}

fn begin(begin: KeyBegin, args: &Args<'_>) -> Option<usize> {
    match begin {
        KeyBegin::Unknown => None,
        KeyBegin::Index(index) => {
            let index = if index < 0 { args.len() as i64 + i64::from(index) } else { i64::from(index) };
            usize::try_from(index).ok().filter(|&index| index > 0 && index < args.len())
        }
        KeyBegin::Keyword(word @ ("STORE" | "STOREDIST"), _) => {
            radius_store(args).filter(|&index| args.is(index - 1, word))
        }
        KeyBegin::Keyword(word, from) if from >= 0 => {
            (from as usize..args.len()).find(|&index| args.is(index, word)).map(|index| index + 1)
        }
        KeyBegin::Keyword(word, from) => {
            let last = args.len() as i64 + i64::from(from);
            (1..=last.max(0) as usize).rev().find(|&index| args.is(index, word)).map(|index| index + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::OwnedArgs;
    use weft_protocol::table;

    fn keys(command: &str) -> Vec<String> {
        let words: Vec<&str> = command.split(' ').collect();
        let spec = table::by_name(words[0].as_bytes()).expect("a command of the table").spec();
        let owned = OwnedArgs::new(spec, words.iter().map(|word| word.as_bytes()));
        let args = owned.args();
        let mut found = Vec::new();
        each(&args, |index| found.push(String::from_utf8(args.bytes(index).to_vec()).unwrap()));
        found
    }

    #[test]
    fn keys_stand_where_the_table_says() {
        for (command, expected) in [
            ("GET a", "a"),
            ("MSET a 1 b 2", "a b"),
            ("DEL a b c", "a b c"),
            ("BLPOP a b 0", "a b"),
            ("BLMOVE a b LEFT RIGHT 0", "a b"),
            ("RENAME a b", "a b"),
            ("SORT a", "a"),
            ("SORT a BY STORE LIMIT 0 1 STORE d", "a d"),
            ("XREAD COUNT 2 STREAMS a b 0 0", "a b"),
            ("XREADGROUP GROUP g c STREAMS a b 0 0", "a b"),
            ("ZUNIONSTORE d 2 a b WEIGHTS 1 2", "d a b"),
            ("SINTERCARD 2 a b LIMIT 1", "a b"),
            ("SINTERCARD 9 a b", "a b"),
            ("SINTERCARD x a b", ""),
            ("BLMPOP 0 2 a b LEFT", "a b"),
            ("GEORADIUS a 0 0 1 km STORE b STOREDIST c", "a c"),
            ("GEORADIUS a 0 0 1 km STOREDIST b STORE c STORE", "a c"),
            ("GEORADIUSBYMEMBER a STORE 1 km STORE STORE STORE b ASC", "a b"),
            ("MIGRATE h 1 k 0 1000", "k"),
            ("MIGRATE h 1 k 0 1000 COPY", "k"),
            ("MIGRATE h 1  0 1000", ""),
            ("MIGRATE h 1  0 1000 COPY", ""),
            ("MIGRATE h 1  0 1000 KEYS a keys b", "a keys b"),
            ("MIGRATE h 1  0 1000 AUTH keys KEYS a b", "a b"),
            ("MIGRATE h 1  0 1000 AUTH2 keys keys REPLACE keys a keys", "a keys"),
            ("MIGRATE h 1 k 0 1000 KEYS a b", "k"),
            ("EVAL s 1 a b", "a"),
            ("BITOP AND d a b", "d a b"),
            ("PING", ""),
            ("PUBLISH c m", ""),
            ("SPUBLISH c m", ""),
        ] {
            assert_eq!(keys(command).join(" "), expected, "{command}");
        }
    }
}
