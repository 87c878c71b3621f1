//! Owns: the classes of keyspace events, as the letters of `notify-keyspace-events` name them. Does not own: publishing
//! events (`crate::notify`).

/// `K`: publish to `__keyspace@db__:key`.
pub const KEYSPACE: u32 = 1 << 0;
/// `E`: publish to `__keyevent@db__:event`.
pub const KEYEVENT: u32 = 1 << 1;
/// `g`: commands of any type.
pub const GENERIC: u32 = 1 << 2;
/// `$`
pub const STRING: u32 = 1 << 3;
/// `l`
pub const LIST: u32 = 1 << 4;
/// `s`
pub const SET: u32 = 1 << 5;
/// `h`
pub const HASH: u32 = 1 << 6;
/// `z`
pub const ZSET: u32 = 1 << 7;
/// `x`: a key's time had come.
pub const EXPIRED: u32 = 1 << 8;
/// `e`: a key had to go for memory.
pub const EVICTED: u32 = 1 << 9;
/// `t`
pub const STREAM: u32 = 1 << 10;
/// `m`: a key was looked for and not found.
pub const KEY_MISS: u32 = 1 << 11;
/// `d`: events of modules.
pub const MODULE: u32 = 1 << 12;
/// `n`: a key that was not there is.
pub const NEW: u32 = 1 << 13;
/// `A`: all but `m` and `n`.
pub const ALL: u32 = GENERIC | STRING | LIST | SET | HASH | ZSET | EXPIRED | EVICTED | STREAM | MODULE;

const LETTERS: [(u8, u32); 15] = [
    (b'A', ALL),
    (b'g', GENERIC),
    (b'$', STRING),
    (b'l', LIST),
    (b's', SET),
    (b'h', HASH),
    (b'z', ZSET),
    (b'x', EXPIRED),
    (b'e', EVICTED),
    (b't', STREAM),
    (b'd', MODULE),
    (b'K', KEYSPACE),
    (b'E', KEYEVENT),
    (b'm', KEY_MISS),
    (b'n', NEW),
];

/// The flags that letters stand for; nothing when one is unknown.
#[must_use]
pub fn parse(letters: &str) -> Option<u32> {
    letters.bytes().try_fold(0, |flags, letter| {
        LETTERS.iter().find(|(other, _)| *other == letter).map(|(_, flag)| flags | flag)
    })
}

/// The letters of flags, as CONFIG GET shows them.
#[must_use]
pub fn letters(flags: u32) -> String {
    let mut left = flags;
    let mut text = String::new();
    for (letter, flag) in LETTERS {
        if left & flag == flag {
            text.push(char::from(letter));
            left &= !flag;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_flags() {
        assert_eq!(parse("AKE"), Some(ALL | KEYSPACE | KEYEVENT));
        assert_eq!(letters(ALL | KEYSPACE), "AK");
        assert_eq!(letters(parse("g$").unwrap()), "g$");
        assert_eq!(parse("q"), None);
    }
}
