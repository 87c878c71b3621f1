//! Bytes from hexadecimal digits, as people copy them from dumps.

use anyhow::{Result, bail, ensure};

/// Reads pairs of digits; passes over blanks, line ends, colons, commas, dashes and `0x`.
pub(super) fn parse(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut high = None;
    let mut rest = text.char_indices().peekable();
    while let Some((at, char)) = rest.next() {
        let is_prefix =
            char == '0' && high.is_none() && rest.peek().is_some_and(|(_, next)| matches!(next, 'x' | 'X'));
        if is_prefix {
            rest.next();
            continue;
        }
        if char.is_whitespace() || matches!(char, ':' | ',' | '-') {
            ensure!(high.is_none(), "--hex: one digit alone before position {}: a byte has two", at + 1);
            continue;
        }
        let Some(digit) = char.to_digit(16) else {
            bail!("--hex: {char:?} at position {} is no hexadecimal digit", at + 1);
        };
        match high.take() {
            None => high = Some(digit),
            Some(first) => bytes.push((first * 16 + digit) as u8),
        }
    }
    ensure!(high.is_none(), "--hex: an odd number of digits");
    ensure!(!bytes.is_empty(), "--hex: no bytes");
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_come_in_many_dresses() {
        for text in
            ["00056dFF", "00 05 6d ff", "0x00056dff", "0x00,0x05,0x6D,0xFF", "00:05:6d:ff\n", "00-05\n6d-ff"]
        {
            assert_eq!(parse(text).unwrap(), [0, 5, 0x6d, 0xff], "{text}");
        }
        assert_eq!(
            parse("0 0x").unwrap_err().to_string(),
            "--hex: one digit alone before position 2: a byte has two"
        );
        for (text, said) in [("0g", "'g' at position 2"), ("000", "odd number"), (" ", "no bytes")] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
