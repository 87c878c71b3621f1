//! The masters of a cluster as servers under test, and tags that bring keys to them. Owns what CLUSTER SLOTS says and
//! which tag is in which slot. Does not own where in a request a tag stands.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use weft_client::{Address, Config, Connection, Protocol};
use weft_engine::keys::key_slot;
use weft_protocol::Reply;

/// Bytes of a tag: enough for a word in each slot of letters and digits.
pub(super) const TAG_BYTES: usize = 3;
/// Slots of a cluster.
const SLOTS: usize = 16_384;
/// What tags are made of.
const LETTERS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Masters that are driven, each by a thread at least.
const MASTERS_MAX: usize = 256;

/// The words of one master's slots: a key with `{word}` in it is that master's.
pub(super) type Tags = Vec<[u8; TAG_BYTES]>;

/// A master under test.
#[derive(Clone, Debug)]
pub(crate) struct Shard {
    pub(super) config: Config,
    /// Its process, if it is on this machine.
    pub(super) pid: Option<u32>,
    pub(super) tags: Arc<Tags>,
}

/// Asks one node for all masters with slots.
pub(super) fn shards(config: &Config, process: impl Fn(&Address) -> Option<u32>) -> Result<Vec<Shard>> {
    let asking = Config { protocol: Protocol::Resp2, ..config.clone() };
    let reply = Connection::connect(&asking)?.exchange(&["CLUSTER", "SLOTS"])?;
    let Reply::Array(ranges) = reply else {
        let Reply::Error(text) = reply else { bail!("{}: CLUSTER SLOTS gives no list", config.address) };
        bail!("--cluster: {} is no node of a cluster: {}", config.address, String::from_utf8_lossy(&text));
    };
    let words = words();
    let mut masters: Vec<(Address, Tags)> = Vec::new();
    for range in &ranges {
        let (first, last, address) = range_of(range, &config.address)
            .with_context(|| format!("{}: a range of CLUSTER SLOTS is {range:?}", config.address))?;
        let tags = words[first..=last].iter().copied();
        match masters.iter_mut().find(|(known, _)| *known == address) {
            Some((_, known)) => known.extend(tags),
            None => masters.push((address, tags.collect())),
        }
    }
    ensure!(!masters.is_empty(), "--cluster: {} knows no master that has slots", config.address);
    ensure!(masters.len() <= MASTERS_MAX, "--cluster: {} masters, at most {MASTERS_MAX}", masters.len());
    let shard = |(address, tags): (Address, Tags)| Shard {
        pid: process(&address),
        config: Config { address, ..config.clone() },
        tags: Arc::new(tags),
    };
    Ok(masters.into_iter().map(shard).collect())
}

/// `[first, last, [host, port, …], …]`
fn range_of(range: &Reply, asked: &Address) -> Option<(usize, usize, Address)> {
    let Reply::Array(range) = range else { return None };
    let [Reply::Int(first), Reply::Int(last), Reply::Array(master), ..] = &range[..] else { return None };
    let [host, Reply::Int(port), ..] = &master[..] else { return None };
    let host = match (host, asked) {
        (Reply::Bulk(host), _) if !host.is_empty() => String::from_utf8(host.clone()).ok()?,
        // A node that does not know its own address is the one that was asked.
        (_, Address::Tcp(host, _)) => host.clone(),
        _ => return None,
    };
    let (first, last) = (usize::try_from(*first).ok()?, usize::try_from(*last).ok()?);
    (first <= last && last < SLOTS).then_some((first, last, Address::Tcp(host, u16::try_from(*port).ok()?)))
}

/// Of each slot a word in it.
fn words() -> Vec<[u8; TAG_BYTES]> {
    let mut words = vec![[0; TAG_BYTES]; SLOTS];
    for &a in LETTERS {
        for &b in LETTERS {
            for &c in LETTERS {
                words[usize::from(key_slot(&[a, b, c]))] = [a, b, c];
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_a_word() {
        for (slot, word) in words().into_iter().enumerate() {
            assert_eq!(usize::from(key_slot(&word)), slot);
            assert_eq!(usize::from(key_slot(&[b"key:{", &word[..], b"}:1"].concat())), slot);
        }
    }

    #[test]
    fn ranges_are_read() {
        let asked = Address::Tcp("here".into(), 1);
        let master = |host: Reply| Reply::Array(vec![host, Reply::Int(7000), Reply::Bulk(b"id".to_vec())]);
        let range = |host, last| Reply::Array(vec![Reply::Int(5), Reply::Int(last), master(host)]);
        let host = || Reply::Bulk(b"::1".to_vec());
        assert_eq!(range_of(&range(host(), 9), &asked), Some((5, 9, Address::Tcp("::1".into(), 7000))));
        let unknown = range_of(&range(Reply::Null, 9), &asked);
        assert_eq!(unknown, Some((5, 9, Address::Tcp("here".into(), 7000))));
        assert_eq!(range_of(&range(host(), 16_384), &asked), None);
        assert_eq!(range_of(&range(host(), 4), &asked), None);
        assert_eq!(range_of(&Reply::Int(1), &asked), None);
    }
}
