//! Owns: glob patterns as KEYS, SCAN, PSUBSCRIBE and CONFIG GET take them. Does not own: who is asked.
//!
//! `*` any bytes, `?` one byte, `[a-c]` and `[^a-c]` a class, `\` takes the next byte as it is. What stands before the
//! first `*` and behind the last one is compared once; only what stands between two is looked for, in at most the
//! product of its length and the text's. As in Valkey, nothing matches a pattern with more than a thousand `*` that
//! something stands behind.

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
    // What stands before the first `*` begins the text.
    let (mut at, mut place) = match segment(pattern, text, same) {
        Some((width, len)) => (width, len),
        None => return false,
    };
    let mut stars = 0;
    while pattern.get(at) == Some(&b'*') {
        at += 1;
        match pattern.get(at) {
            None => return true,
            Some(b'*') => continue,
            Some(_) if stars == STARS_MAX => return false,
            Some(_) => stars += 1,
        }
        let rest = &pattern[at..];
        let (width, len) = measure(rest);
        if at + width == pattern.len() {
            // What stands behind the last `*` ends the text.
            return text.len() - place >= len && segment(rest, &text[text.len() - len..], same).is_some();
        }
        // What stands between two is taken where it comes first.
        let Some(last) = (text.len() - place).checked_sub(len) else { return false };
        let Some(from) = (place..=place + last).find(|from| segment(rest, &text[*from..], same).is_some())
        else {
            return false;
        };
        (at, place) = (at + width, from + len);
    }
    place == text.len()
}

/// Matches the beginning of `text` against what stands before the next `*`; gives how long both are.
#[inline]
fn segment(pattern: &[u8], text: &[u8], same: impl Fn(u8, u8) -> bool + Copy) -> Option<(usize, usize)> {
    let (mut at, mut place) = (0, 0);
    while let Some(&byte) = pattern.get(at)
        && byte != b'*'
    {
        at += one(&pattern[at..], *text.get(place)?, same)?;
        place += 1;
    }
    Some((at, place))
}

/// How long what stands before the next `*` is, and how many bytes it matches.
fn measure(pattern: &[u8]) -> (usize, usize) {
    let (mut at, mut len) = (0, 0);
    while let Some(&byte) = pattern.get(at)
        && byte != b'*'
    {
        at += match byte {
            b'[' => in_class(&pattern[at + 1..], 0, |one, other| one == other).1 + 1,
            b'\\' if at + 1 < pattern.len() => 2,
            _ => 1,
        };
        len += 1;
    }
    (at, len)
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

    /// The same by trying everything.
    fn slowly(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', rest @ ..] => (0..=text.len()).any(|from| slowly(rest, &text[from..])),
            _ => text.split_first().is_some_and(|(byte, behind)| {
                one(pattern, *byte, |one, other| one == other)
                    .is_some_and(|width| slowly(&pattern[width..], behind))
            }),
        }
    }

    #[test]
    fn random_patterns_match_what_trying_everything_matches() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut draw = |from: &[u8], most: u64| -> Vec<u8> {
            let mut next = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state >> 20
            };
            (0..next() % (most + 1)).map(|_| from[next() as usize % from.len()]).collect()
        };
        let mut matched = 0;
        for _ in 0..200_000 {
            let (pattern, text) = (draw(b"aab***?[]^-\\", 7), draw(b"aaab*]", 7));
            let expected = slowly(&pattern, &text);
            assert_eq!(matches(&pattern, &text), expected, "{pattern:?} on {text:?}");
            matched += u32::from(expected);
        }
        assert!(matched > 5_000, "{matched}");
    }

    #[test]
    fn what_ends_a_long_text_is_compared_once() {
        let text = vec![b'a'; 1 << 20];
        let pattern = [b"*", &text[1..], b"b"].concat();
        assert!(!matches(&pattern, &text));
        assert!(matches(&[b"a*", &text[2..]].concat(), &text));
    }
}
