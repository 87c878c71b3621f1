//! Owns: the words of a line of a configuration file: blanks, quotes, escapes, as Redis reads them.

/// Splits a line into words. Inside double quotes `\n`, `\r`, `\t`, `\b`, `\a`, `\xHH` and `\` before any other byte
/// are escapes; inside single quotes only `\'` is. Nothing when a quote is not closed, or something follows a
/// closing quote without a blank.
#[must_use]
pub fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii_start();
    while let Some(&first) = rest.first() {
        let mut word = Vec::new();
        rest = match first {
            b'"' | b'\'' => quoted(rest, &mut word)?,
            _ => bare(rest, &mut word)?,
        };
        words.push(word);
        rest = rest.trim_ascii_start();
    }
    Some(words)
}

/// A word without quotes at its beginning; a quote inside begins a quoted part.
fn bare<'a>(text: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'"' | b'\'' => return quoted(&text[at..], word),
            byte if byte.is_ascii_whitespace() => return Some(&text[at..]),
            _ => word.push(*byte),
        }
    }
    Some(b"")
}

/// A part in quotes, and what is behind it.
fn quoted<'a>(text: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    let quote = text[0];
    let mut at = 1;
    loop {
        match (*text.get(at)?, text.get(at + 1)) {
            (byte, next) if byte == quote => {
                return next.is_none_or(u8::is_ascii_whitespace).then(|| &text[at + 1..]);
            }
            (b'\\', Some(b'\'')) if quote == b'\'' => {
                word.push(b'\'');
                at += 2;
            }
            (b'\\', Some(&escape)) if quote == b'"' => {
                at += 2 + escaped(escape, text.get(at + 2..).unwrap_or_default(), word);
            }
            (byte, _) => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

/// What an escape stands for; gives how many bytes behind it belong to it.
fn escaped(escape: u8, behind: &[u8], word: &mut Vec<u8>) -> usize {
    let hex = |at: usize| behind.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    if escape == b'x'
        && let (Some(high), Some(low)) = (hex(0), hex(1))
    {
        word.push((high * 16 + low) as u8);
        return 2;
    }
    word.push(match escape {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    });
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_quotes() {
        let words = |line: &str| {
            split(line.as_bytes()).map(|words| {
                words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>()
            })
        };
        assert_eq!(words("  save 900\t1 ").unwrap(), ["save", "900", "1"]);
        assert_eq!(words(r#"a "b c" 'd \' e' "" "\x41\n\q""#).unwrap(), ["a", "b c", "d ' e", "", "A\nq"]);
        assert_eq!(words(r#"pre"fix ed""#).unwrap(), ["prefix ed"]);
        assert_eq!(words(r#"a "b"#), None);
        assert_eq!(words(r#""a"b"#), None);
        assert_eq!(words("'a"), None);
        assert_eq!(words("").unwrap(), Vec::<String>::new());
    }
}
