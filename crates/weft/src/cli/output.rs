//! Owns how a reply is shown: to people, raw, as CSV, as JSON, to the letter as redis-cli shows it. Does not own where
//! it goes.

use std::fmt::Write as _;

use weft_client::Reply;
use weft_protocol::number::push_double;

/// A way to show replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// With types and quotes, for a terminal.
    Standard,
    /// The values alone.
    Raw,
    /// Values with commas, texts in quotes.
    Csv,
    /// JSON, texts as UTF-8.
    Json,
    /// JSON, texts escaped as in `Standard`.
    QuotedJson,
}

/// How replies are shown.
#[derive(Clone, Debug)]
pub(super) struct Format {
    pub(super) style: Style,
    /// Between the elements of a raw reply.
    pub(super) element_delimiter: Vec<u8>,
    /// Behind a reply that is not shown to people.
    pub(super) reply_delimiter: Vec<u8>,
    /// Whether pushes are shown that no command asked for; messages always are.
    pub(super) pushes: bool,
}

impl Format {
    /// A style with the usual delimiters.
    pub(super) fn of(style: Style) -> Self {
        let newline = || b"\n".to_vec();
        Format { style, element_delimiter: newline(), reply_delimiter: newline(), pushes: true }
    }

    /// The format for the reply of a command: some replies are pages of text, which are shown as they stand, with
    /// nothing behind them, whatever was asked for.
    pub(super) fn of_command(&self, args: &[impl AsRef<[u8]>]) -> Format {
        match is_page(args) {
            true => Format { reply_delimiter: Vec::new(), pushes: self.pushes, ..Format::of(Style::Raw) },
            false => self.clone(),
        }
    }

    /// A reply with what stands behind it.
    pub(super) fn reply(&self, reply: &Reply) -> Vec<u8> {
        let mut out = Vec::new();
        match self.style {
            Style::Standard => standard(reply, &mut String::new(), &mut out),
            Style::Raw => {
                raw(reply, &self.element_delimiter, &mut out);
                out.extend_from_slice(&self.reply_delimiter);
            }
            Style::Csv => {
                csv(reply, &mut out);
                out.push(b'\n');
            }
            Style::Json | Style::QuotedJson => {
                json(reply, self.style, &mut out);
                out.push(b'\n');
            }
        }
        out
    }

    /// What came without being a reply; nothing where it is not to be shown.
    pub(super) fn push(&self, push: &Reply) -> Vec<u8> {
        let Reply::Push(parts) = push else { return self.reply(push) };
        match &parts[..] {
            // A line of MONITOR alone, without the word before it.
            [Reply::Bulk(word), Reply::Bulk(line)] if word == b"monitor" => {
                self.reply(&Reply::Simple(line.clone()))
            }
            [Reply::Bulk(word), ..] if word.ends_with(b"message") => self.reply(push),
            _ if !self.pushes => Vec::new(),
            [Reply::Bulk(word), Reply::Array(keys)]
                if word == b"invalidate" && self.style == Style::Standard =>
            {
                let names = keys.iter().map(|key| match key {
                    Reply::Bulk(name) => [b"'", &name[..], b"'"].concat(),
                    _ => Vec::new(),
                });
                [b"-> invalidate: ", &names.collect::<Vec<_>>().join(&b", "[..])[..], b"\n"].concat()
            }
            _ => self.reply(push),
        }
    }
}

/// Whether redis-cli, too, shows the reply of this command as a page.
fn is_page(args: &[impl AsRef<[u8]>]) -> bool {
    let word = |index: usize| args.get(index).map_or(&b""[..], |word| word.as_ref());
    let is = |index: usize, names: &[&str]| {
        names.iter().any(|name| word(index).eq_ignore_ascii_case(name.as_bytes()))
    };
    match args.len() {
        0 => false,
        1 => is(0, &["INFO", "LOLWUT"]),
        count => {
            is(0, &["INFO", "LOLWUT"])
                || (is(0, &["CLIENT"]) && is(1, &["LIST", "INFO"]))
                || (is(0, &["MEMORY"]) && is(1, &["DOCTOR", "MALLOC-STATS"]))
                || (is(0, &["DEBUG"]) && is(1, &["HTSTATS", "HTSTATS-KEY", "CLIENT-EVICTION"]))
                || (is(0, &["PROXY"]) && is(1, &["INFO"]))
                || (is(0, &["CLUSTER"]) && is(1, &["NODES", "INFO"]) && count == 2)
                || (is(0, &["LATENCY"]) && is(1, &["DOCTOR"]) && count == 2)
                || (is(0, &["LATENCY"]) && is(1, &["GRAPH"]) && count == 3)
        }
    }
}

/// Bytes in double quotes with escapes, as redis-cli writes them.
pub(super) fn repr(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            7 => text.push_str("\\a"),
            8 => text.push_str("\\b"),
            0x20..0x7F => text.push(char::from(byte)),
            // Writing to a String cannot fail.
            _ => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text.push('"');
    text
}

fn double(value: f64) -> Vec<u8> {
    let mut text = Vec::new();
    if value.is_nan() {
        return b"nan".to_vec();
    }
    push_double(&mut text, value);
    text
}

/// The elements of an aggregate that is no map.
fn elements(reply: &Reply) -> Option<&[Reply]> {
    match reply {
        Reply::Array(elements) | Reply::Set(elements) | Reply::Push(elements) => Some(elements),
        _ => None,
    }
}

/// `prefix` is what stands before the lines behind the first of a nested reply.
fn standard(reply: &Reply, prefix: &mut String, out: &mut Vec<u8>) {
    let mut line = |parts: &[&[u8]]| {
        parts.iter().for_each(|part| out.extend_from_slice(part));
        out.push(b'\n');
    };
    match reply {
        Reply::Error(text) => line(&[b"(error) ", text]),
        Reply::Simple(text) | Reply::Verbatim(_, text) => line(&[text]),
        Reply::Bulk(text) => line(&[repr(text).as_bytes()]),
        Reply::Int(value) => line(&[b"(integer) ", value.to_string().as_bytes()]),
        Reply::Double(value) => line(&[b"(double) ", &double(*value)]),
        Reply::BigNumber(digits) => line(&[b"(big number) ", digits]),
        Reply::Bool(value) => line(&[if *value { b"(true)" } else { b"(false)" }]),
        Reply::Null | Reply::NullArray => line(&[b"(nil)"]),
        Reply::Map(pairs) if pairs.is_empty() => line(&[b"(empty hash)"]),
        Reply::Map(pairs) => {
            for (index, (key, value)) in pairs.iter().enumerate() {
                number(index, pairs.len(), '#', prefix, out);
                nested(key, pairs.len(), prefix, out);
                out.truncate(out.len() - 1);
                out.extend_from_slice(b" => ");
                // What has several lines begins on one of its own.
                if is_long(value) {
                    let indent = digits(pairs.len()) + 2;
                    out.extend_from_slice(format!("\n{prefix}{:indent$}", "").as_bytes());
                }
                nested(value, pairs.len(), prefix, out);
            }
        }
        Reply::Attributed(_, value) => standard(value, prefix, out),
        other => {
            let all = elements(other).unwrap_or_default();
            let (empty, mark) = match other {
                Reply::Set(_) => ("(empty set)", '~'),
                Reply::Push(_) => ("(empty push)", ')'),
                _ => ("(empty array)", ')'),
            };
            if all.is_empty() {
                line(&[empty.as_bytes()]);
            }
            for (index, element) in all.iter().enumerate() {
                number(index, all.len(), mark, prefix, out);
                nested(element, all.len(), prefix, out);
            }
        }
    }
}

/// Whether a reply has several lines, or its only part has.
fn is_long(value: &Reply) -> bool {
    match value {
        Reply::Map(pairs) => match &pairs[..] {
            [(_, only)] => is_long(only),
            pairs => pairs.len() > 1,
        },
        Reply::Attributed(_, value) => is_long(value),
        other => match elements(other).unwrap_or_default() {
            [only] => is_long(only),
            elements => elements.len() > 1,
        },
    }
}

fn digits(count: usize) -> usize {
    count.to_string().len()
}

/// `12) `, as wide as the last number.
fn number(index: usize, count: usize, mark: char, prefix: &str, out: &mut Vec<u8>) {
    let prefix = if index == 0 { "" } else { prefix };
    let text = format!("{prefix}{:width$}{mark} ", index + 1, width = digits(count));
    out.extend_from_slice(text.as_bytes());
}

fn nested(reply: &Reply, count: usize, prefix: &mut String, out: &mut Vec<u8>) {
    let len = prefix.len();
    prefix.extend(std::iter::repeat_n(' ', digits(count) + 2));
    standard(reply, prefix, out);
    prefix.truncate(len);
}

fn raw(reply: &Reply, delimiter: &[u8], out: &mut Vec<u8>) {
    match reply {
        Reply::Error(text) => {
            out.extend_from_slice(text);
            out.push(b'\n');
        }
        Reply::Simple(text) | Reply::Bulk(text) | Reply::Verbatim(_, text) | Reply::BigNumber(text) => {
            out.extend_from_slice(text);
        }
        Reply::Int(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Reply::Double(value) => out.extend_from_slice(&double(*value)),
        Reply::Bool(value) => out.extend_from_slice(if *value { b"(true)" } else { b"(false)" }),
        Reply::Map(pairs) => {
            for (index, (key, value)) in pairs.iter().enumerate() {
                if index > 0 {
                    out.extend_from_slice(delimiter);
                }
                raw(key, delimiter, out);
                out.push(b' ');
                raw(value, delimiter, out);
            }
        }
        Reply::Attributed(_, value) => raw(value, delimiter, out),
        other => {
            for (index, element) in elements(other).unwrap_or_default().iter().enumerate() {
                if index > 0 {
                    out.extend_from_slice(delimiter);
                }
                raw(element, delimiter, out);
            }
        }
    }
}

fn csv(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Error(text) => {
            out.extend_from_slice(b"ERROR,");
            out.extend_from_slice(repr(text).as_bytes());
        }
        Reply::Simple(text) | Reply::Bulk(text) | Reply::Verbatim(_, text) => {
            out.extend_from_slice(repr(text).as_bytes());
        }
        Reply::Int(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Reply::Double(value) => out.extend_from_slice(&double(*value)),
        Reply::BigNumber(digits) => out.extend_from_slice(digits),
        Reply::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Reply::Null | Reply::NullArray => out.extend_from_slice(b"NULL"),
        Reply::Map(pairs) => {
            for (index, (key, value)) in pairs.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                csv(key, out);
                out.push(b',');
                csv(value, out);
            }
        }
        Reply::Attributed(_, value) => csv(value, out),
        other => {
            for (index, element) in elements(other).unwrap_or_default().iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                csv(element, out);
            }
        }
    }
}

fn json(reply: &Reply, style: Style, out: &mut Vec<u8>) {
    match reply {
        Reply::Error(text) => {
            out.extend_from_slice(b"error:");
            json_text(text, style, out);
        }
        Reply::Simple(text) | Reply::Bulk(text) | Reply::Verbatim(_, text) => json_text(text, style, out),
        Reply::Int(value) => out.extend_from_slice(value.to_string().as_bytes()),
        // JSON has no number for these.
        Reply::Double(value) if !value.is_finite() => json_text(&double(*value), style, out),
        Reply::Double(value) => out.extend_from_slice(&double(*value)),
        Reply::BigNumber(digits) => out.extend_from_slice(digits),
        Reply::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Reply::Null | Reply::NullArray => out.extend_from_slice(b"null"),
        Reply::Map(pairs) => {
            out.push(b'{');
            for (index, (key, value)) in pairs.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                json_key(key, style, out);
                out.push(b':');
                json(value, style, out);
            }
            out.push(b'}');
        }
        Reply::Attributed(_, value) => json(value, style, out),
        other => {
            out.push(b'[');
            for (index, element) in elements(other).unwrap_or_default().iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                json(element, style, out);
            }
            out.push(b']');
        }
    }
}

/// The keys of a JSON object are texts.
fn json_key(key: &Reply, style: Style, out: &mut Vec<u8>) {
    let mut text = Vec::new();
    json(key, style, &mut text);
    if text.first() == Some(&b'"') {
        out.extend_from_slice(&text);
    } else {
        json_text(&text, Style::Json, out);
    }
}

fn json_text(bytes: &[u8], style: Style, out: &mut Vec<u8>) {
    let quoted;
    let bytes = if style == Style::QuotedJson {
        quoted = repr(bytes);
        &quoted.as_bytes()[1..quoted.len() - 1]
    } else {
        bytes
    };
    out.push(b'"');
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.into())
    }

    fn shown(reply: &Reply, style: Style) -> String {
        String::from_utf8(Format::of(style).reply(reply)).unwrap()
    }

    #[test]
    fn nested_replies_stand_below_each_other() {
        let inner = Reply::Array(vec![Reply::Int(2), bulk("a\"b\n")]);
        let map =
            Reply::Map(vec![(bulk("k"), inner.clone()), (Reply::Int(1), Reply::Set(vec![Reply::Null]))]);
        let reply = Reply::Array([vec![inner, map], vec![Reply::Bool(true); 8]].concat());
        let expected = concat!(
            " 1) 1) (integer) 2\n",
            "    2) \"a\\\"b\\n\"\n",
            " 2) 1# \"k\" => \n",
            "       1) (integer) 2\n",
            "       2) \"a\\\"b\\n\"\n",
            "    2# (integer) 1 => 1~ (nil)\n",
            " 3) (true)\n",
        );
        assert!(shown(&reply, Style::Standard).starts_with(expected), "{}", shown(&reply, Style::Standard));
        assert_eq!(shown(&Reply::Array(Vec::new()), Style::Standard), "(empty array)\n");
        assert_eq!(shown(&Reply::Map(Vec::new()), Style::Standard), "(empty hash)\n");
    }

    #[test]
    fn every_style_shows_every_type() {
        let all = Reply::Array(vec![
            bulk("é\x01"),
            Reply::Int(-1),
            Reply::Double(1.5),
            Reply::Double(f64::INFINITY),
            Reply::Bool(false),
            Reply::Null,
            Reply::Map(vec![(Reply::Int(1), Reply::Simple(b"OK".to_vec()))]),
            Reply::Verbatim(*b"txt", b"v".to_vec()),
            Reply::BigNumber(b"123456789012345678901234567890".to_vec()),
        ]);
        assert_eq!(
            shown(&all, Style::Csv),
            "\"\\xc3\\xa9\\x01\",-1,1.5,inf,false,NULL,1,\"OK\",\"v\",123456789012345678901234567890\n"
        );
        assert_eq!(
            shown(&all, Style::Json),
            "[\"é\\u0001\",-1,1.5,\"inf\",false,null,{\"1\":\"OK\"},\"v\",123456789012345678901234567890]\n"
        );
        assert!(shown(&all, Style::QuotedJson).starts_with("[\"\\\\xc3\\\\xa9\\\\x01\",-1"));
        assert_eq!(
            shown(&all, Style::Raw),
            "é\x01\n-1\n1.5\ninf\n(false)\n\n1 OK\nv\n123456789012345678901234567890\n"
        );
    }
}
