//! Owns: looking for a part in bytes. Does not own: patterns (`super::glob`).

/// Parts up to this long are compared at each place.
const SHORT_PART: usize = 16;

/// Where a part stands in a text. An empty one stands at its beginning. Takes time in proportion to both together, also
/// where both repeat themselves.
pub(crate) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    match part.len() {
        0 => Some(0),
        len if len > text.len() => None,
        len if len <= SHORT_PART => text.windows(len).position(|window| window == part),
        _ => find_long(text, part),
    }
}

/// How often a part stands in a text, one behind the other.
pub(crate) fn occurrences(text: &[u8], part: &[u8]) -> usize {
    let (mut times, mut rest) = (0, text);
    while !part.is_empty()
        && let Some(at) = find(rest, part)
    {
        (times, rest) = (times + 1, &rest[at + part.len()..]);
    }
    times
}

/// By the method of Knuth, Morris and Pratt: no byte of the text is looked at again.
fn find_long(text: &[u8], part: &[u8]) -> Option<usize> {
    // How much of the part's beginning stands again at the end of its first bytes, by their number less one.
    let mut again = vec![0_usize; part.len()];
    let mut len = 0;
    for at in 1..part.len() {
        while len > 0 && part[len] != part[at] {
            len = again[len - 1];
        }
        len += usize::from(part[len] == part[at]);
        again[at] = len;
    }
    let mut met = 0;
    for (at, byte) in text.iter().enumerate() {
        while met > 0 && part[met] != *byte {
            met = again[met - 1];
        }
        met += usize::from(part[met] == *byte);
        if met == part.len() {
            return Some(at + 1 - met);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_where_it_first_stands() {
        let naive = |text: &[u8], part: &[u8]| text.windows(part.len()).position(|window| window == part);
        // Two letters with a few beginnings in common, so that parts repeat themselves.
        let mut state = 7_u64;
        let mut letters = |len: usize| -> Vec<u8> {
            (0..len)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    if state >> 61 == 0 { b'b' } else { b'a' }
                })
                .collect()
        };
        for round in 0..3000 {
            let text = letters(round % 200);
            let mut part = letters(1 + round % 40);
            assert_eq!(find(&text, &part), naive(&text, &part));
            if text.len() > part.len() {
                part = text[text.len() - part.len()..].to_vec();
                assert_eq!(find(&text, &part), naive(&text, &part));
            }
        }
        assert_eq!((find(b"", b""), find(b"", b"a"), find(b"a", b"")), (Some(0), None, Some(0)));
    }

    #[test]
    fn looking_for_a_part_that_is_nearly_everywhere_takes_no_longer_than_both_are() {
        // Compared at each place this takes hours.
        let (text, part) = (vec![b'a'; 8 << 20], [vec![b'a'; 4 << 20], vec![b'b']].concat());
        assert_eq!(find(&text, &part), None);
        assert_eq!(find(&[&text[..], b"b"].concat(), &part), Some(4 << 20));
    }
}
