//! Owns how a line that somebody typed becomes words: blanks, quotes and escapes as redis-cli has them. Does not own
//! what the words mean.

use weft_protocol::request::unquote;

/// A word of a line, with its place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// First byte in the line.
    pub(super) start: usize,
    /// Behind the last byte.
    pub(super) end: usize,
    /// The word with quotes and escapes resolved.
    pub(super) text: Vec<u8>,
    /// It has quotes.
    pub(super) quoted: bool,
    /// A quote is open at the end of the line, or something other than a blank follows a closing one.
    pub(super) broken: bool,
}

impl Word {
    /// Whether it is this keyword, in any case.
    pub(super) fn is(&self, keyword: &str) -> bool {
        self.text.eq_ignore_ascii_case(keyword.as_bytes())
    }
}

/// All words of a line; the last one may be broken.
pub(super) fn split(line: &str) -> Vec<Word> {
    let bytes = line.as_bytes();
    let (mut words, mut at) = (Vec::new(), 0);
    loop {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        if at == bytes.len() {
            return words;
        }
        let (end, broken, quoted) = word_end(bytes, at);
        let mut text = Vec::new();
        unquote(&bytes[at..end], &mut text);
        words.push(Word { start: at, end, text, quoted, broken });
        at = end;
    }
}

/// Where the word that starts at `start` ends, whether its quotes are in order, and whether it has any.
fn word_end(bytes: &[u8], start: usize) -> (usize, bool, bool) {
    let (mut at, mut open, mut quoted) = (start, None, false);
    while let Some(&byte) = bytes.get(at) {
        match open {
            None if byte.is_ascii_whitespace() => break,
            None if byte == b'"' || byte == b'\'' => (open, quoted) = (Some(byte), true),
            None => {}
            Some(b'"') if byte == b'\\' => at += 1,
            Some(b'\'') if byte == b'\\' && bytes.get(at + 1) == Some(&b'\'') => at += 1,
            Some(quote) if byte == quote => {
                let next = bytes.get(at + 1);
                return (at + 1, next.is_some_and(|next| !next.is_ascii_whitespace()), true);
            }
            Some(_) => {}
        }
        at += 1;
    }
    (at.min(bytes.len()), open.is_some(), quoted)
}

/// The arguments of a line; none where a quote is not in order.
pub(crate) fn arguments(line: &str) -> Option<Vec<Vec<u8>>> {
    let words = split(line);
    words.iter().all(|word| !word.broken).then(|| words.into_iter().map(|word| word.text).collect())
}

/// A word as it can be typed, in quotes where it needs them.
pub(super) fn typed(word: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'\\|".contains(byte);
    match std::str::from_utf8(word) {
        Ok(text) if !word.is_empty() && word.iter().all(plain) => text.to_string(),
        _ => super::output::repr(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        arguments(line).unwrap().iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    #[test]
    fn quotes_and_escapes() {
        assert_eq!(words("  set k   v "), ["set", "k", "v"]);
        assert_eq!(words(r#"set "a b" 'c\'d' "\x41\n""#), ["set", "a b", "c'd", "A\n"]);
        assert_eq!(words(r#"echo "" ''"#), ["echo", "", ""]);
        assert_eq!(words(r#"echo a"b c""#), ["echo", "ab c"]);
        assert_eq!(words(""), Vec::<String>::new());
    }

    #[test]
    fn quotes_that_are_not_in_order_are_told() {
        for line in [r#"set "a"#, "set 'a", r#"set "a"b"#, r#"set "a\""#] {
            assert_eq!(arguments(line), None, "{line}");
        }
        let last = split("get \"some key").pop().unwrap();
        assert_eq!((last.start, last.text.as_slice(), last.broken), (4, &b"some key"[..], true));
    }

    #[test]
    fn words_can_be_typed_again() {
        for word in [&b"plain:1"[..], b"two words", b"", b"\"q\"", b"\x00\xff", b"a|b", "é".as_bytes()] {
            assert_eq!(arguments(&typed(word)), Some(vec![word.to_vec()]), "{word:?}");
        }
    }
}
