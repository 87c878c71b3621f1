//! Owns `peek KEY`: what is in a key, whatever its type, a part of it if it is large. Does not own the connection.

use std::fmt::Write as _;

use weft_client::{Error, Reply};

use super::link::{Link, Outcome};
use super::output::{Format, Style, repr};

/// Elements that are shown.
const ELEMENTS: usize = 10;
/// Bytes of a string that are shown.
const BYTES: usize = 512;

/// How a type is read: its name, how large a value is, how a part of it is read.
type Reading<'a> = (&'static str, Vec<&'a [u8]>, Vec<&'a [u8]>);

fn reading<'a>(kind: &[u8], key: &'a [u8]) -> Option<Reading<'a>> {
    Some(match kind {
        b"string" => ("bytes", vec![b"STRLEN", key], vec![b"GETRANGE", key, b"0", b"511"]),
        b"list" => ("elements", vec![b"LLEN", key], vec![b"LRANGE", key, b"0", b"9"]),
        b"hash" => ("fields", vec![b"HLEN", key], vec![b"HSCAN", key, b"0", b"COUNT", b"10"]),
        b"set" => ("members", vec![b"SCARD", key], vec![b"SSCAN", key, b"0", b"COUNT", b"10"]),
        b"zset" => ("members", vec![b"ZCARD", key], vec![b"ZRANGE", key, b"0", b"9", b"WITHSCORES"]),
        b"stream" => ("entries", vec![b"XLEN", key], vec![b"XREVRANGE", key, b"+", b"-", b"COUNT", b"10"]),
        _ => return None,
    })
}

/// The text for a key; an error of the server is in it.
pub(super) fn text(link: &mut Link, key: &[u8]) -> Result<Vec<u8>, Error> {
    let format = Format::of(Style::Standard);
    if link.session().in_transaction() {
        return Ok(b"(peek waits until the transaction has ended)\n".to_vec());
    }
    let kind = match ask(link, &[b"TYPE", key])? {
        Reply::Simple(kind) | Reply::Bulk(kind) => kind,
        other => return Ok(format.reply(&other)),
    };
    if kind == b"none" {
        return Ok(format!("{}: no such key\n", repr(key)).into_bytes());
    }
    let mut head = format!("{}: {}", repr(key), String::from_utf8_lossy(&kind));
    let Some((unit, size, part)) = reading(&kind, key) else {
        return Ok(format!("{head}, of which peek knows no more\n").into_bytes());
    };
    let count = match ask(link, &size)? {
        Reply::Int(count) => usize::try_from(count).unwrap_or(0),
        other => return Ok(format.reply(&other)),
    };
    let _ = match (count, unit) {
        (1, "entries") => write!(head, ", 1 entry"),
        (1, unit) => write!(head, ", 1 {}", unit.trim_end_matches('s')),
        (_, unit) => write!(head, ", {count} {unit}"),
    };
    if let Reply::Bulk(encoding) | Reply::Simple(encoding) = ask(link, &[b"OBJECT", b"ENCODING", key])? {
        let _ = write!(head, ", encoding {}", String::from_utf8_lossy(&encoding));
    }
    if let Reply::Int(bytes) = ask(link, &[b"MEMORY", b"USAGE", key])? {
        let _ = write!(head, ", {bytes} bytes of memory");
    }
    if let Reply::Int(ms @ 0..) = ask(link, &[b"PTTL", key])? {
        let _ = write!(head, ", expires in {:.1} s", ms as f64 / 1000.0);
    }
    head.push('\n');
    let mut out = head.into_bytes();
    let value = match (&kind[..], ask(link, &part)?) {
        (b"string", Reply::Bulk(bytes)) => return Ok([out, string(&bytes, count)].concat()),
        // A step of a scan: the cursor is of no interest.
        (b"hash", Reply::Array(step)) => paired(step.into_iter().nth(1)),
        (b"set", Reply::Array(step)) => step.into_iter().nth(1).unwrap_or(Reply::Null),
        (b"zset", reply) => paired(Some(reply)),
        (_, reply) => reply,
    };
    let (value, shown) = first(value);
    out.extend_from_slice(&format.reply(&value));
    if shown < count {
        let order = if kind == b"stream" { "the last" } else { "the first" };
        let order = if matches!(&kind[..], b"hash" | b"set") { "some" } else { order };
        out.extend_from_slice(format!("({order} {shown} of {count} {unit})\n").as_bytes());
    }
    Ok(out)
}

fn ask(link: &mut Link, args: &[&[u8]]) -> Result<Reply, Error> {
    match link.run(args, &mut |_| {})? {
        Outcome::Reply(reply) => Ok(reply),
        Outcome::Interrupted | Outcome::Ended => Err(Error::Config("interrupted".into())),
    }
}

/// A string as text where it is text, else in quotes.
fn string(bytes: &[u8], len: usize) -> Vec<u8> {
    let printable = |text: &str| text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t');
    let mut out = match std::str::from_utf8(bytes) {
        Ok(text) if printable(text) => text.as_bytes().to_vec(),
        _ => repr(bytes).into_bytes(),
    };
    out.push(b'\n');
    if len > bytes.len() {
        out.extend_from_slice(format!("(the first {} of {len} bytes)\n", bytes.len().min(BYTES)).as_bytes());
    }
    out
}

/// Key and value together: over RESP2 they come one after the other.
fn paired(reply: Option<Reply>) -> Reply {
    match reply {
        Some(Reply::Array(elements)) if elements.iter().all(|one| matches!(one, Reply::Array(_))) => {
            let pair = |one| match one {
                Reply::Array(mut pair) if pair.len() == 2 => pair.pop().zip(pair.pop()).map(|(v, k)| (k, v)),
                _ => None,
            };
            Reply::Map(elements.into_iter().filter_map(pair).collect())
        }
        Some(Reply::Array(elements)) => {
            let (mut elements, mut pairs) = (elements.into_iter(), Vec::new());
            while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
                pairs.push((key, value));
            }
            Reply::Map(pairs)
        }
        other => other.unwrap_or(Reply::Null),
    }
}

/// The first elements of a reply, and how many they are: small collections come whole from a scan.
fn first(reply: Reply) -> (Reply, usize) {
    match reply {
        Reply::Array(mut all) => {
            all.truncate(ELEMENTS);
            let count = all.len();
            (Reply::Array(all), count)
        }
        Reply::Set(mut all) => {
            all.truncate(ELEMENTS);
            let count = all.len();
            (Reply::Set(all), count)
        }
        Reply::Map(mut pairs) => {
            pairs.truncate(ELEMENTS);
            let count = pairs.len();
            (Reply::Map(pairs), count)
        }
        other => (other, 0),
    }
}
