//! Owns: glob patterns as KEYS, SCAN, PSUBSCRIBE and CONFIG GET take them. Does not own: who is asked.
//!
//! `*` any bytes, `?` one byte, `[a-c]` and `[^a-c]` a class, `\` takes the next byte as it is. The time is at most the
//! product of the two lengths: a failed match goes back to the last `*` only. As in Valkey, nothing matches a pattern
//! with more than a thousand `*` that something stands behind.

/// Stars with something behind them that a match may have passed.
const STARS_MAX: usize = 1000;

/// Whether `text` matches `pattern`.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    matches_by(pattern, text, |one, other| one == other)
}

/// Whether `text` matches `pattern`, letters in any case.
#[must_use]
pub fn matches_nocase(pattern: &[u8], text: &[u8]) -> bool {
    matches_by(pattern, text, |one, other| one.eq_ignore_ascii_case(&other))
}

fn matches_by(pattern: &[u8], text: &[u8], same: impl Fn(u8, u8) -> bool + Copy) -> bool {
    let (mut at, mut place) = (0, 0);
    // Where to go on when a match fails: behind the last `*`, one byte of text later.
    let mut retry: Option<(usize, usize)> = None;
    let mut stars = 0;
    loop {
        if let Some(&byte) = pattern.get(at) {
            if byte == b'*' {
                at += 1;
                match pattern.get(at) {
                    None => return true,
                    Some(b'*') => continue,
                    Some(_) if stars == STARS_MAX => return false,
                    Some(_) => stars += 1,
                }
                retry = Some((at, place));
                continue;
            }
            if let Some(&next) = text.get(place)
                && let Some(width) = one(&pattern[at..], next, same)
            {
                at += width;
                place += 1;
                continue;
            }
        } else if place == text.len() {
            return true;
        }
        match retry {
            Some((star, from)) if from < text.len() => {
                (at, place) = (star, from + 1);
                retry = Some((star, from + 1));
            }
            _ => return false,
        }
    }
}

/// Matches one byte against the element that `pattern` begins with; gives that element's length.
fn one(pattern: &[u8], byte: u8, same: impl Fn(u8, u8) -> bool + Copy) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', class @ ..] => {
            let (found, width) = in_class(class, byte, same);
            found.then_some(width + 1)
        }
        [b'\\', literal, ..] => same(*literal, byte).then_some(2),
        [literal, ..] => same(*literal, byte).then_some(1),
        [] => None,
    }
}

/// Whether a byte is in a class, which begins behind its bracket, and how long the class is with its closing bracket. A
/// class that is not closed ends with the pattern.
fn in_class(class: &[u8], byte: u8, same: impl Fn(u8, u8) -> bool + Copy) -> (bool, usize) {
    let negated = class.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut found = false;
    while at < class.len() {
        match class[at..] {
            [b']', ..] => return (found != negated, at + 1),
            [b'\\', literal, ..] => {
                found |= same(literal, byte);
                at += 2;
            }
            [from, b'-', to, ..] => {
                let (low, high) = (from.min(to), from.max(to));
                found |= (low..=high).contains(&byte)
                    || same(b'a', b'A') && (low..=high).any(|inside| same(inside, byte));
                at += 3;
            }
            [literal, ..] => {
                found |= same(literal, byte);
                at += 1;
            }
            [] => break,
        }
    }
    (found != negated, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_redis_does() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "any", true),
            ("a**", "any", true),
            ("a**y", "any", true),
            ("a**x", "any", false),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a[", "a", false),
            ("[a\\]]", "]", true),
            ("", "", true),
            ("", "a", false),
            ("**a**b**", "xaxb", true),
            ("a?", "a", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} on {text}");
        }
        assert!(matches_nocase(b"MAX*", b"maxmemory") && matches_nocase(b"[a-c]", b"B"));
        assert!(!matches(b"MAX*", b"maxmemory"));
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let text = vec![b'a'; 2000];
        let pattern = [b"*a".repeat(200), b"b".to_vec()].concat();
        assert!(!matches(&pattern, &text));
    }
}
