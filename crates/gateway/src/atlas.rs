//! Owns: which node of a cluster has which slots, asked of the nodes themselves on a thread that may wait. Does not
//! own: what goes to which node (`crate::cluster`).
//!
//! It is asked for when a node redirects, when one cannot be reached, and every now and then. Each time another node is
//! asked first: one that is cut off from the others does not know it. A seed that is none of the nodes is asked when
//! none of them answers: it may be gone for good.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use weft_client::{Address, Config, Connection, Protocol, Reply, Timeouts};

/// Slots of a cluster.
pub(crate) const SLOTS: usize = 16_384;
/// No node has the slot.
pub(crate) const NOBODY: u16 = u16::MAX;
/// How often nodes are asked although nobody wants to know.
const LOOK: Duration = Duration::from_secs(10);
/// The pause between two askings.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest that one node is waited for.
const WAIT: Duration = Duration::from_secs(1);
/// Replicas of one primary that may be read from.
const REPLICAS_MAX: usize = 8;
/// Nodes that are listened to.
const NODES_MAX: usize = 500;

/// Who has which slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Map {
    /// The nodes that have slots, by the lowest of them.
    pub(crate) primaries: Vec<Address>,
    /// The replicas of each, in the same order.
    pub(crate) replicas: Vec<Vec<Address>>,
    /// Their lowest slots.
    pub(crate) lowest: Vec<u16>,
    /// For each slot, which of them has it.
    pub(crate) owners: Vec<u16>,
    /// All nodes that may be asked.
    pub(crate) nodes: Vec<Address>,
}

struct Known {
    map: Option<Arc<Map>>,
    /// Why there is none.
    why: String,
    is_wanted: bool,
    wakes: Vec<Arc<dyn Fn() + Send + Sync>>,
}

/// What is known of the nodes.
pub(crate) struct Atlas {
    known: Mutex<Known>,
    changed: Condvar,
    /// Another number for each map.
    version: AtomicU64,
    seeds: Vec<Address>,
}

impl fmt::Debug for Atlas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Atlas").field("seeds", &self.seeds).finish_non_exhaustive()
    }
}

impl Atlas {
    /// Starts the thread, which asks at once.
    pub(crate) fn start(to: &Config, seeds: Vec<Address>) -> io::Result<Arc<Self>> {
        let known =
            Known { map: None, why: "no node has been asked yet".into(), is_wanted: true, wakes: Vec::new() };
        let atlas = Arc::new(Self {
            known: Mutex::new(known),
            changed: Condvar::new(),
            version: AtomicU64::new(0),
            seeds,
        });
        let wait = to.timeouts.reply.map_or(WAIT, |wait| wait.min(WAIT));
        let to = to.clone().with_protocol(Protocol::Resp2).with_timeouts(Timeouts::all(Some(wait)));
        let own = Arc::clone(&atlas);
        thread::Builder::new().name("weft-atlas".into()).spawn(move || own.run(&to))?;
        Ok(atlas)
    }

    /// One that asks nobody.
    #[cfg(test)]
    pub(crate) fn unasked(seeds: Vec<Address>) -> Arc<Self> {
        let known = Known { map: None, why: String::new(), is_wanted: false, wakes: Vec::new() };
        Arc::new(Self {
            known: Mutex::new(known),
            changed: Condvar::new(),
            version: AtomicU64::new(0),
            seeds,
        })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Has somebody woken whenever there is a new map.
    pub(crate) fn wake_by(&self, wake: Arc<dyn Fn() + Send + Sync>) {
        self.known().wakes.push(wake);
    }
    /// Has the nodes asked soon.
    pub(crate) fn want(&self) {
        let mut known = self.known();
        if !known.is_wanted {
            known.is_wanted = true;
            self.changed.notify_one();
        }
    }
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Relaxed)
    }
    /// The map, or why there is none.
    pub(crate) fn map(&self) -> Result<Arc<Map>, String> {
        let known = self.known();
        known.map.clone().ok_or_else(|| known.why.clone())
    }
    /// All nodes that may be asked: those that have slots, then their replicas, then those that were named at first.
    pub(crate) fn nodes(&self) -> Vec<Address> {
        self.in_turn(0)
    }
    /// The same, another one of them first in each turn; seeds that are none of the nodes stay behind these.
    fn in_turn(&self, turn: usize) -> Vec<Address> {
        let map = self.known().map.clone();
        let mut nodes: Vec<Address> = Vec::new();
        let add = |nodes: &mut Vec<Address>, node: &Address| {
            if !nodes.contains(node) {
                nodes.push(node.clone());
            }
        };
        map.iter()
            .flat_map(|map| map.primaries.iter().chain(&map.nodes))
            .for_each(|node| add(&mut nodes, node));
        let of_map = nodes.len();
        self.seeds.iter().for_each(|seed| add(&mut nodes, seed));
        let first = if of_map > 0 { &mut nodes[..of_map] } else { &mut nodes[..] };
        first.rotate_left(turn % first.len().max(1));
        nodes
    }

    fn run(&self, to: &Config) {
        for turn in 0.. {
            let nodes = self.in_turn(turn);
            let mut asked = Err("no node is known".to_string());
            for node in &nodes {
                asked = ask(node, to).map_err(|why| format!("{node}: {why}"));
                if asked.is_ok() {
                    break;
                }
            }
            self.learn(asked);
            thread::sleep(PAUSE);
            let end = Instant::now() + LOOK;
            let mut known = self.known();
            while !known.is_wanted && Instant::now() < end {
                let left = end.saturating_duration_since(Instant::now());
                known = self.changed.wait_timeout(known, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            known.is_wanted = false;
        }
    }

    fn learn(&self, asked: Result<Map, String>) {
        let mut known = self.known();
        match asked {
            Ok(map) if known.map.as_deref() == Some(&map) => return,
            Ok(map) => {
                known.map = Some(Arc::new(map));
                self.version.fetch_add(1, Relaxed);
            }
            // What was known is all there is.
            Err(why) => {
                known.why = why;
                known.is_wanted |= known.map.is_none();
            }
        }
        known.wakes.iter().for_each(|wake| wake());
    }
}

fn ask(node: &Address, to: &Config) -> Result<Map, String> {
    let config = Config { address: node.clone(), ..to.clone() };
    let reply = Connection::connect(&config).and_then(|mut node| node.command(&["CLUSTER", "SLOTS"]));
    read(&reply.map_err(|error| error.to_string())?, node)
        .ok_or_else(|| "it says of no slot who has it".into())
}

/// Reads CLUSTER SLOTS. A node that does not know its own name is the one that was asked.
fn read(reply: &Reply, asked: &Address) -> Option<Map> {
    let Reply::Array(ranges) = reply else { return None };
    if ranges.len() > SLOTS {
        return None;
    }
    let mut found: Vec<(u16, u16, Address, Vec<Address>)> = Vec::new();
    let mut nodes = Vec::new();
    for range in ranges {
        let Reply::Array(parts) = range else { return None };
        let [Reply::Int(begin), Reply::Int(end), of @ ..] = parts.as_slice() else { return None };
        let is_slot = |slot: i64| (0..SLOTS as i64).contains(&slot);
        if !is_slot(*begin) || !is_slot(*end) || begin > end {
            return None;
        }
        for (node, at) in of.iter().zip(0..) {
            let Some(address) = address(node, asked) else { continue };
            if at == 0 {
                found.push((*begin as u16, *end as u16, address.clone(), Vec::new()));
            } else if let Some((first, .., replicas)) = found.last_mut()
                // Where the primary cannot be told of, they are nobody's.
                && i64::from(*first) == *begin
                && replicas.len() < REPLICAS_MAX
            {
                replicas.push(address.clone());
            }
            if !nodes.contains(&address) && nodes.len() < NODES_MAX {
                nodes.push(address);
            }
        }
    }
    found.sort_by_key(|(begin, ..)| *begin);
    let mut map = Map {
        primaries: Vec::new(),
        replicas: Vec::new(),
        lowest: Vec::new(),
        owners: vec![NOBODY; SLOTS],
        nodes,
    };
    for (begin, end, address, replicas) in found {
        let known = map.primaries.iter().position(|known| *known == address);
        let at = known.unwrap_or_else(|| {
            map.primaries.push(address);
            map.replicas.push(replicas);
            map.lowest.push(begin);
            map.primaries.len() - 1
        });
        map.owners[usize::from(begin)..=usize::from(end)].fill(at as u16);
    }
    (!map.primaries.is_empty() && map.primaries.len() <= NODES_MAX).then_some(map)
}

fn address(node: &Reply, asked: &Address) -> Option<Address> {
    let Reply::Array(parts) = node else { return None };
    let [host, Reply::Int(port), ..] = parts.as_slice() else { return None };
    let host = match host {
        Reply::Bulk(host) if host == b"?" => return None,
        Reply::Bulk(host) if !host.is_empty() => String::from_utf8(host.clone()).ok()?,
        _ => match asked {
            Address::Tcp(host, _) => host.clone(),
            Address::Unix(_) => return None,
        },
    };
    Some(Address::Tcp(host, u16::try_from(*port).ok().filter(|port| *port > 0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: &str, port: i64) -> Reply {
        Reply::Array(vec![Reply::Bulk(host.into()), Reply::Int(port), Reply::Bulk(b"id".to_vec())])
    }
    fn range(begin: i64, end: i64, nodes: Vec<Reply>) -> Reply {
        Reply::Array([Reply::Int(begin), Reply::Int(end)].into_iter().chain(nodes).collect())
    }

    #[test]
    fn slots_are_read() {
        let asked = Address::Tcp("asked".into(), 1);
        let reply = Reply::Array(vec![
            range(100, 16_383, vec![node("b", 2), node("c", 3)]),
            range(0, 9, vec![node("", 1)]),
            range(50, 60, vec![node("", 1)]),
        ]);
        let map = read(&reply, &asked).unwrap();
        assert_eq!(map.primaries, [asked.clone(), Address::Tcp("b".into(), 2)]);
        assert_eq!(map.lowest, [0, 100]);
        assert_eq!(
            [0, 9, 10, 55, 99, 100, 16_383].map(|slot: usize| map.owners[slot]),
            [0, 0, NOBODY, 0, NOBODY, 1, 1]
        );
        assert_eq!(map.nodes.len(), 3);
        assert_eq!(map.replicas, [vec![], vec![Address::Tcp("c".into(), 3)]]);
    }

    #[test]
    fn seeds_that_are_no_nodes_are_asked_last() {
        let all: Vec<Address> = (0..5).map(|port| Address::Tcp("node".into(), port)).collect();
        let ports = |nodes: Vec<Address>| -> Vec<u16> {
            nodes.iter().map(|node| if let Address::Tcp(_, port) = node { *port } else { 9 }).collect()
        };
        let atlas = Atlas::unasked(vec![all[0].clone(), all[1].clone()]);
        assert_eq!([0, 1, 2].map(|turn| ports(atlas.in_turn(turn))), [[0, 1], [1, 0], [0, 1]]);
        let reply = range(0, 9, all[1..4].iter().zip(1..).map(|(_, port)| node("node", port)).collect());
        atlas.learn(Ok(read(&Reply::Array(vec![reply]), &all[4]).expect("it is a map")));
        assert_eq!(
            [0, 1, 3].map(|turn| ports(atlas.in_turn(turn))),
            [[1, 2, 3, 0], [2, 3, 1, 0], [1, 2, 3, 0]]
        );
    }

    #[test]
    fn nonsense_is_no_map() {
        let asked = Address::Tcp("asked".into(), 1);
        for reply in [
            Reply::Int(3),
            Reply::Array(vec![]),
            Reply::Array(vec![Reply::Null]),
            Reply::Array(vec![range(5, 4, vec![node("a", 1)])]),
            Reply::Array(vec![range(0, 16_384, vec![node("a", 1)])]),
            Reply::Array(vec![range(-1, 4, vec![node("a", 1)])]),
            Reply::Array(vec![range(0, 4, vec![node("?", 1)])]),
            Reply::Array(vec![range(0, 4, vec![node("a", 70_000)])]),
            Reply::Array(vec![range(0, 4, vec![node("a", 1)]); SLOTS + 1]),
        ] {
            assert_eq!(read(&reply, &asked), None, "{reply:?}");
        }
    }
}
