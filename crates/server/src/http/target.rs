//! Owns: commands in a path: `/set/key/value?EX=10`. Does not own: which paths are commands (`super::routes`).
//!
//! Every `/` separates two arguments, so that `/get/` asks for the key without a name. `%XX` is a byte, in the query
//! `+` is a blank.

use weft_engine::args::Slots;
use weft_protocol::request::ArgVisitor;

use super::head::Span;

/// The parameter with a token: never an argument, and never in the log.
pub(crate) const TOKEN: &[u8] = b"_token";

/// The arguments of a path, from its first segment on.
pub(crate) fn path(request: &[u8], path: Span, slots: &mut Slots) -> Result<(), String> {
    let path = path.of(request).strip_prefix(b"/").unwrap_or_default();
    if path.contains(&b'%') {
        return path.split(|&byte| byte == b'/').try_for_each(|segment| push(request, segment, false, slots));
    }
    let mut at = Span::within(request, path).from as usize;
    for segment in path.split(|&byte| byte == b'/') {
        slots.bytes(at, segment);
        at += segment.len() + 1;
    }
    Ok(())
}

/// The arguments of a query: `EX=10` is two, `NX` is one.
pub(crate) fn query(request: &[u8], query: Span, slots: &mut Slots) -> Result<(), String> {
    for (name, value) in parameters(query.of(request)).filter(|&(name, _)| name != TOKEN) {
        push(request, name, true, slots)?;
        value.map_or(Ok(()), |value| push(request, value, true, slots))?;
    }
    Ok(())
}

/// The token in a query, as it stands there.
pub(crate) fn token(request: &[u8], query: Option<Span>) -> Option<&[u8]> {
    let found = parameters(query?.of(request)).find(|&(name, _)| name == TOKEN);
    found.and_then(|(_, value)| value)
}

/// Names and values; a name alone has no value.
pub(crate) fn parameters(query: &[u8]) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
    query.split(|&byte| byte == b'&').filter(|parameter| !parameter.is_empty()).map(|parameter| {
        match parameter.iter().position(|&byte| byte == b'=') {
            Some(at) => (&parameter[..at], Some(&parameter[at + 1..])),
            None => (parameter, None),
        }
    })
}

/// An argument of an address: a piece of the request, where nothing in it is escaped.
pub(crate) fn push(
    request: &[u8],
    part: &[u8],
    plus_is_blank: bool,
    slots: &mut Slots,
) -> Result<(), String> {
    if !part.iter().any(|&byte| byte == b'%' || byte == b'+' && plus_is_blank) {
        slots.bytes(Span::within(request, part).from as usize, part);
        return Ok(());
    }
    let mut result = Ok(());
    slots.aside(|side| result = decode(part, plus_is_blank, side));
    result
}

/// Undoes percent-encoding.
pub(crate) fn decode(part: &[u8], plus_is_blank: bool, into: &mut Vec<u8>) -> Result<(), String> {
    let mut rest = part;
    while let [first, behind @ ..] = rest {
        rest = behind;
        into.push(match first {
            b'%' => {
                let [high, low, behind @ ..] = behind else { return Err(wrong(part)) };
                let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(|| wrong(part));
                rest = behind;
                (digit(*high)? << 4 | digit(*low)?) as u8
            }
            b'+' if plus_is_blank => b' ',
            byte => *byte,
        });
    }
    Ok(())
}

fn wrong(part: &[u8]) -> String {
    let part = String::from_utf8_lossy(&part[..part.len().min(64)]);
    format!("ERR '{part}' in the address has a % without two hexadecimal digits behind it: write %25 for %")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_engine::args::Slot;

    fn words(text: &str) -> Result<Vec<String>, String> {
        let (whole, mark) = (text.as_bytes(), text.find('?').unwrap_or(text.len()));
        let mut slots = Slots::default();
        path(whole, Span::within(whole, &whole[..mark]), &mut slots)?;
        if mark < whole.len() {
            query(whole, Span::within(whole, &whole[mark + 1..]), &mut slots)?;
        }
        let text = |slot: &Slot| match *slot {
            Slot::Frame { offset, len } => &whole[offset as usize..][..len as usize],
            Slot::Side { offset, len } => &slots.side[offset as usize..][..len as usize],
            _ => panic!("no other slots"),
        };
        Ok(slots.list.iter().map(|slot| String::from_utf8_lossy(text(slot)).into_owned()).collect())
    }

    #[test]
    fn a_path_is_arguments() {
        assert_eq!(
            words("/set/k/v?EX=10&NX&_token=secret").expect("it is one"),
            ["set", "k", "v", "EX", "10", "NX"]
        );
        assert_eq!(words("/get/a%2Fb+c%20").expect("it is one"), ["get", "a/b+c "]);
        assert_eq!(words("/set/k?a+b=%2B&c=").expect("it is one"), ["set", "k", "a b", "+", "c", ""]);
        assert_eq!(words("/get/").expect("it is one"), ["get", ""]);
        for bad in ["/get/%", "/get/%4", "/get/%zz", "/get/k?%1"] {
            assert!(words(bad).is_err_and(|why| why.contains("write %25")), "{bad}");
        }
    }

    #[test]
    fn a_token_is_found_and_no_argument() {
        let request = b"a=b&_token=x%2E&c";
        let query = Span::within(request, request);
        assert_eq!(token(request, Some(query)), Some(&b"x%2E"[..]));
        assert_eq!(token(b"_token", Some(Span { from: 0, len: 6 })), None);
    }
}
