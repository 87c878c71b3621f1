//! Owns: the list of directives: every name that Redis 7.2 and Valkey 9.1 have, and Weft's own. Does not own: what a
//! directive is (`super::directive`).
//!
//! A directive either acts (in the engine or in the server), or is kept: it is accepted and shown so that tools and
//! configuration files work unchanged, and nothing follows from it because Weft has no such thing, or does it in
//! another way. A value that would promise what is not served is refused ([`Directive::only`]).

pub mod about;
mod clients;
mod files;
mod limits;
mod peers;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::directive::Directive;
use crate::near::nearest;

/// The most that a 64-bit signed number holds: no limit of its own.
const ANY: i64 = i64::MAX;
/// The most that an `int` of C holds.
const INT: i64 = i32::MAX as i64;

/// All directives.
pub static DIRECTIVES: LazyLock<Vec<Directive>> = LazyLock::new(|| {
    let mut all: Vec<Directive> = [clients::LIST, files::LIST, limits::LIST, peers::LIST].concat();
    all.sort_by_key(|directive| directive.name);
    all
});

static NAMES: LazyLock<HashMap<&'static str, usize>> = LazyLock::new(|| {
    let mut names = HashMap::new();
    for (at, directive) in DIRECTIVES.iter().enumerate() {
        for name in [directive.name, directive.alias] {
            let twice = !name.is_empty() && names.insert(name, at).is_some();
            assert!(!twice, "{name} stands twice in the table of directives");
        }
    }
    names
});

/// The place of a directive in [`DIRECTIVES`], by its name or alias in any case.
#[must_use]
pub fn find(name: &[u8]) -> Option<usize> {
    let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
    NAMES.get(name.as_str()).copied()
}

/// All names and aliases with their directives.
pub fn names() -> impl Iterator<Item = (&'static str, usize)> {
    NAMES.iter().map(|(name, at)| (*name, *at))
}

/// The name that is most like a misspelt one, if one is near.
#[must_use]
pub fn suggest(name: &str) -> Option<&'static str> {
    nearest(name, NAMES.keys().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_guessed() {
        assert_eq!(DIRECTIVES[find(b"MaxMemory").unwrap()].name, "maxmemory");
        assert_eq!(find(b"hash-max-ziplist-value"), find(b"hash-max-listpack-value"));
        assert_eq!(suggest("maxmemroy"), Some("maxmemory"));
        assert_eq!(suggest("max-memory-policy"), Some("maxmemory-policy"));
        assert_eq!((suggest("hs"), suggest("colour")), (Some("hz"), None));
        assert_eq!((suggest(""), suggest("x"), suggest("ab")), (None, None, None), "nothing of it is right");
    }
}
