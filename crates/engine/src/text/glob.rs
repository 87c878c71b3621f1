//! Owns: glob patterns as KEYS, SCAN, PSUBSCRIBE and CONFIG GET take them. Does not own: who is asked.
//!
//! `*` any bytes, `?` one byte, `[a-c]` and `[^a-c]` a class, `\` takes the next byte as it is. What stands before the
//! first `*` and behind the last one is compared once; only what stands between two is looked for: letters alone in the
//! time of the text's length, with classes and `?` in that of the product of both lengths by 64, since a bit for each
//! element says whether what was read ends there. [`work`] says which it is. As in Valkey, nothing matches a pattern
//! with more than a thousand `*` that something stands behind, and of patterns with `*` only that alone stands for no
//! byte at all (`**` does not).

use std::borrow::Cow;

use super::find::find;

/// Stars with something behind them that a match may have passed.
const STARS_MAX: usize = 1000;
/// What stands between two `*` is compared at each place of a text, if its bytes times the text's are no more.
const PLACES_MAX: usize = 4096;
/// Bits of a word.
const BITS: usize = u64::BITS as usize;

/// What stands for more than itself in a pattern.
const SPECIAL: &[u8] = b"*?[\\";

/// What every text begins with that a pattern stands for.
pub(crate) fn literal(pattern: &[u8]) -> &[u8] {
    pattern.iter().position(|byte| SPECIAL.contains(byte)).map_or(pattern, |end| &pattern[..end])
}

/// What every text begins and ends with that a pattern with something special stands for; nothing of what stands behind
/// a class or a backslash. Nothing of a pattern that stands for itself alone.
pub(crate) fn ends(pattern: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = literal(pattern);
    let last = pattern.iter().rposition(|byte| SPECIAL.contains(byte))? + 1;
    let is_plain = !pattern.iter().any(|byte| matches!(byte, b'[' | b'\\'));
    Some((first, if is_plain { &pattern[last..] } else { b"" }))
}

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
    if text.is_empty() {
        return pattern.is_empty() || pattern == b"*";
    }
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
        let Some(from) = first(&rest[..width], len, &text[place..], same) else { return false };
        (at, place) = (at + width, place + from + len);
    }
    place == text.len()
}

/// Bytes that are gone over, at most, to match a text of this length: each in about the same short time.
#[must_use]
pub fn work(pattern: &[u8], len: usize) -> u64 {
    let (mut at, _) = measure(pattern);
    let (mut ends, mut between, mut is_searched) = (at.min(len), 0, false);
    while at < pattern.len() {
        // Behind a star.
        at += 1;
        let (width, _) = measure(&pattern[at..]);
        if at + width == pattern.len() {
            ends += width.min(len);
        } else if width > 0 {
            is_searched = true;
            between += match letters(&pattern[at..at + width]) {
                Some(_) => width,
                // Each byte that the text has is held against each element once.
                None => width.saturating_mul(len.min(256)) + len.saturating_mul(width / BITS),
            };
        }
        at += width;
    }
    (ends + between + if is_searched { len } else { 0 }) as u64
}

/// Where what stands between two `*`, and matches `len` bytes, is first met.
fn first(pattern: &[u8], len: usize, text: &[u8], same: impl Fn(u8, u8) -> bool + Copy) -> Option<usize> {
    let last = text.len().checked_sub(len)?;
    if let Some(letters) = letters(pattern).filter(|_| !same(b'a', b'A')) {
        find(text, &letters)
    } else if pattern.len().saturating_mul(text.len()) <= PLACES_MAX {
        (0..=last).find(|from| segment(pattern, &text[*from..], same).is_some())
    } else {
        first_of_many(pattern, len, text, same)
    }
}

/// The same for what is long (the method of Baeza-Yates and Gonnet): of the elements those have their bit at which what
/// was read may end.
fn first_of_many(
    pattern: &[u8],
    len: usize,
    text: &[u8],
    same: impl Fn(u8, u8) -> bool + Copy,
) -> Option<usize> {
    // Which elements match a byte, for those that the text has.
    let mut matching: Vec<Option<Box<[u64]>>> = vec![None; 256];
    let mut ends = vec![0_u64; len.div_ceil(BITS)];
    for (place, &byte) in text.iter().enumerate() {
        let matching =
            matching[usize::from(byte)].get_or_insert_with(|| elements_of(pattern, len, byte, same));
        // Each goes on by one element, and a new one begins.
        let mut carried = 1;
        for (ends, matching) in ends.iter_mut().zip(matching) {
            let next = (*ends << 1) | carried;
            carried = *ends >> (BITS - 1);
            *ends = next & *matching;
        }
        if ends[(len - 1) / BITS] >> ((len - 1) % BITS) & 1 == 1 {
            return Some(place + 1 - len);
        }
    }
    None
}

/// A bit for each element of a pattern: whether a byte matches it.
fn elements_of(pattern: &[u8], len: usize, byte: u8, same: impl Fn(u8, u8) -> bool + Copy) -> Box<[u64]> {
    let mut matching = vec![0_u64; len.div_ceil(BITS)];
    let mut at = 0;
    for element in 0..len {
        let found = one(&pattern[at..], byte, same).is_some();
        matching[element / BITS] |= u64::from(found) << (element % BITS);
        at += width(&pattern[at..]);
    }
    matching.into()
}

/// The bytes that a pattern without `*` matches, if it has no classes and no `?`.
fn letters(pattern: &[u8]) -> Option<Cow<'_, [u8]>> {
    let mut letters = Cow::Borrowed(pattern);
    let mut at = 0;
    while let Some(&byte) = pattern.get(at) {
        match (byte, pattern.get(at + 1)) {
            (b'?' | b'[', _) => return None,
            (b'\\', Some(&literal)) => {
                if let Cow::Borrowed(_) = letters {
                    letters = Cow::Owned(pattern[..at].to_vec());
                }
                letters.to_mut().push(literal);
                at += 2;
            }
            _ => {
                if let Cow::Owned(letters) = &mut letters {
                    letters.push(byte);
                }
                at += 1;
            }
        }
    }
    Some(letters)
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
        at += width(&pattern[at..]);
        len += 1;
    }
    (at, len)
}

/// How long the element is that `pattern` begins with.
fn width(pattern: &[u8]) -> usize {
    match pattern {
        [b'[', class @ ..] => in_class(class, 0, |one, other| one == other).1 + 1,
        [b'\\', _, ..] => 2,
        _ => 1,
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
            ("**", "", false),
            ("*?", "", false),
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
            let expected = if text.is_empty() {
                [&b""[..], b"*"].contains(&&pattern[..])
            } else {
                slowly(&pattern, &text)
            };
            assert_eq!(matches(&pattern, &text), expected, "{pattern:?} on {text:?}");
            matched += u32::from(expected);
        }
        assert!(matched > 5_000, "{matched}");
    }

    #[test]
    fn long_parts_are_found_where_trying_every_place_finds_them() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) % below
        };
        let exact = |one: u8, other: u8| one == other;
        let mut found = 0;
        for round in 0..3_000 {
            let text: Vec<u8> = (0..next(300)).map(|_| b"aaaaaaabB"[next(9) as usize]).collect();
            let elements: [&[u8]; 9] = [b"a", b"a", b"a", b"?", b"[ab]", b"[^c]", b"\\a", b"[a-b\\]]", b"b"];
            let pattern: Vec<u8> =
                (0..=next(150)).flat_map(|_| elements[next(9) as usize].iter().copied()).collect();
            let (width, len) = measure(&pattern);
            assert_eq!(width, pattern.len());
            let slowly = |same: fn(u8, u8) -> bool| {
                (0..(text.len() + 1).saturating_sub(len))
                    .find(|from| segment(&pattern, &text[*from..], same).is_some())
            };
            let expected = slowly(exact);
            let nocase = slowly(|one, other| one.eq_ignore_ascii_case(&other));
            assert_eq!(first_of_many(&pattern, len, &text, exact), expected, "{round}");
            assert_eq!(first(&pattern, len, &text, exact), expected, "{round}");
            let folded = |one: u8, other: u8| one.eq_ignore_ascii_case(&other);
            assert_eq!(first(&pattern, len, &text, folded), nocase, "{round}");
            found += u32::from(expected.is_some());
        }
        assert!(found > 100, "{found}");
    }

    #[test]
    fn what_stands_between_two_stars_takes_no_product_of_lengths() {
        // Compared at each place these take hours.
        let text = vec![b'a'; 1 << 22];
        let letters = [b"*", &text[..1 << 21], b"b*"].concat();
        assert!(!matches(&letters, &text));
        let text = &text[..200_000];
        for part in [&b"[a]"[..], b"?", b"\\a", b"[^b]"] {
            let pattern = [b"*", &part.repeat(4_000)[..], b"b*"].concat();
            assert!(!matches(&pattern, text));
            assert!(matches(&pattern, &[text, b"b"].concat()));
            assert!(work(&pattern, text.len()) < 300_000_000);
        }
        let mut large = [b"*[", &vec![b'b'; 1 << 20][..], b"]*"].concat();
        assert!(!matches(&large, text));
        large[2] = b'a';
        assert!(matches(&large, text));
    }

    #[test]
    fn patterns_as_they_mostly_are_take_little_work() {
        for (pattern, most) in [
            (&b"user:*"[..], 5),
            (b"*", 0),
            (b"user:1", 6),
            (b"*abc*", 43),
            (b"u*[ab]*", 201),
            (b"a*b*c*d", 44),
        ] {
            assert!(work(pattern, 40) <= most, "{}", work(pattern, 40));
        }
    }

    #[test]
    fn what_ends_a_long_text_is_compared_once() {
        let text = vec![b'a'; 1 << 20];
        let pattern = [b"*", &text[1..], b"b"].concat();
        assert!(!matches(&pattern, &text));
        assert!(matches(&[b"a*", &text[2..]].concat(), &text));
    }
}
