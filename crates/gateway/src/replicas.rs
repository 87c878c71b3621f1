//! Owns: which replicas of a cluster may be read from, since they have all that was written up to a moment ago. Does
//! not own: which requests go to one (`crate::cluster`), who is whose replica (`crate::atlas`).
//!
//! A thread asks each primary how far it is, and then its replicas. One that has come as far as the primary had when
//! it was asked may be read from until the bound is over, counted from before the primary was asked: what it answers by
//! then has all that was written longer ago than the bound.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use weft_client::{Address, Config, Connection, Protocol, Timeouts};

use crate::atlas::Atlas;

/// In a bound everybody is asked so often.
const LOOKS: u32 = 4;
/// The shortest pause between two looks, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// The longest that one node is waited for.
const WAIT: Duration = Duration::from_millis(500);

/// Until when each replica may be read from.
#[derive(Debug)]
pub(crate) struct Replicas {
    fresh: Mutex<HashMap<Address, Instant>>,
    bound: Duration,
}

/// How far a node is.
#[derive(Debug, PartialEq, Eq)]
struct Far {
    is_primary: bool,
    /// The history that the offset is of.
    history: String,
    offset: u64,
}

impl Replicas {
    /// Starts the thread.
    pub(crate) fn start(to: &Config, atlas: Arc<Atlas>, bound: Duration) -> io::Result<Arc<Self>> {
        let replicas = Arc::new(Self { fresh: Mutex::default(), bound });
        let to = to.clone().with_protocol(Protocol::Resp2).with_timeouts(Timeouts::all(Some(WAIT)));
        let own = Arc::clone(&replicas);
        thread::Builder::new().name("weft-replicas".into()).spawn(move || own.run(&to, &atlas))?;
        Ok(replicas)
    }

    /// One of these that may be read from now; `first`: which is looked at first.
    pub(crate) fn choose<'r>(&self, of: &'r [Address], first: usize) -> Option<&'r Address> {
        if of.is_empty() {
            return None;
        }
        let now = Instant::now();
        let fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        let mut turns = (0..of.len()).map(|step| &of[(first + step) % of.len()]);
        turns.find(|address| fresh.get(address).is_some_and(|until| now < *until))
    }

    fn run(&self, to: &Config, atlas: &Atlas) {
        let mut connections = HashMap::new();
        loop {
            if let Ok(map) = atlas.map() {
                connections.retain(|address, _| {
                    map.primaries.contains(address) || map.replicas.iter().any(|all| all.contains(address))
                });
                for (primary, replicas) in map.primaries.iter().zip(&map.replicas) {
                    if !replicas.is_empty() {
                        self.look(to, &mut connections, primary, replicas);
                    }
                }
                let known = |address: &Address| map.replicas.iter().any(|all| all.contains(address));
                self.fresh.lock().unwrap_or_else(PoisonError::into_inner).retain(|address, _| known(address));
            }
            thread::sleep((self.bound / LOOKS).clamp(PAUSE_MIN, PAUSE_MAX));
        }
    }

    /// Looks at one primary and its replicas.
    fn look(
        &self,
        to: &Config,
        connections: &mut HashMap<Address, Connection>,
        primary: &Address,
        replicas: &[Address],
    ) {
        let asked = Instant::now();
        let Some(far) = ask(to, connections, primary).filter(|far| far.is_primary) else { return };
        for replica in replicas {
            let own = ask(to, connections, replica);
            if own.is_some_and(|own| own.has_come_as_far_as(&far)) {
                let mut fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
                fresh.insert(replica.clone(), asked + self.bound);
            }
        }
    }
}

fn ask(to: &Config, connections: &mut HashMap<Address, Connection>, node: &Address) -> Option<Far> {
    if !connections.contains_key(node) {
        let made = Connection::connect(&Config { address: node.clone(), ..to.clone() }).ok()?;
        connections.insert(node.clone(), made);
    }
    let told = connections.get_mut(node)?.query::<String>(&["INFO", "replication"]);
    if told.is_err() {
        connections.remove(node);
    }
    Far::read(&told.ok()?)
}

impl Far {
    /// Reads INFO's section. A replica without its primary is nowhere.
    fn read(info: &str) -> Option<Self> {
        let fields: HashMap<&str, &str> = info.lines().filter_map(|line| line.split_once(':')).collect();
        let field = |name: &str| fields.get(name).map(|text| text.trim());
        let is_primary = field("role")? == "master";
        if !is_primary && field("master_link_status")? != "up" {
            return None;
        }
        let offset = field(if is_primary { "master_repl_offset" } else { "slave_repl_offset" })?;
        Some(Self { is_primary, history: field("master_replid")?.into(), offset: offset.parse().ok()? })
    }
    fn has_come_as_far_as(&self, primary: &Self) -> bool {
        !self.is_primary && self.history == primary.history && self.offset >= primary.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_come_how_far() {
        let primary = Far::read("role:master\r\nmaster_replid:a\r\nmaster_repl_offset:70\r\n").unwrap();
        let replica = |link: &str, history: &str, offset: u64| {
            let text = format!(
                "role:slave\r\nmaster_link_status:{link}\r\nslave_repl_offset:{offset}\r\nmaster_replid:{history}\r\nmaster_repl_offset:99\r\n"
            );
            Far::read(&text).is_some_and(|far| far.has_come_as_far_as(&primary))
        };
        assert!(replica("up", "a", 70) && replica("up", "a", 71));
        assert!(!replica("up", "a", 69) && !replica("down", "a", 70) && !replica("up", "b", 70));
        assert!(!primary.has_come_as_far_as(&primary));
        assert_eq!(Far::read("role:master\r\n"), None);
    }

    #[test]
    fn only_who_is_fresh_is_read_from() {
        let replicas = Replicas { fresh: Mutex::default(), bound: Duration::from_secs(1) };
        let of = [Address::Tcp("a".into(), 1), Address::Tcp("b".into(), 2)];
        assert_eq!(replicas.choose(&of, 0), None);
        let mut fresh = replicas.fresh.lock().unwrap();
        let now = Instant::now();
        fresh.insert(of[0].clone(), now);
        fresh.insert(of[1].clone(), now + Duration::from_secs(3_600));
        drop(fresh);
        assert_eq!([replicas.choose(&of, 0), replicas.choose(&of, 1)], [Some(&of[1]); 2]);
        assert_eq!(replicas.choose(&[], 0), None);
    }
}
