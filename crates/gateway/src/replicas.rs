//! Owns: which replicas of a cluster may be read from, since they have all that was written up to a moment ago. Does
//! not own: which requests go to one (`crate::cluster`), who is whose replica (`crate::atlas`).
//!
//! A thread asks each primary how far it is, and then its replicas. One that has come as far as the primary had when
//! it was asked may be read from until the bound is over, counted from before the primary was asked: what it answers by
//! then has all that was written longer ago than the bound.
//!
//! It waits only for nodes that have answered before, and for one that says nothing once: connections are made on
//! threads of their own.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
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
/// One that was waited for in vain is left alone for so long.
const AGAIN: Duration = Duration::from_millis(500);

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
        let mut nodes = Nodes::new(to.clone().with_timeouts(Timeouts::all(Some(WAIT))));
        let own = Arc::clone(&replicas);
        thread::Builder::new().name("weft-replicas".into()).spawn(move || own.run(&mut nodes, &atlas))?;
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

    fn run(&self, nodes: &mut Nodes, atlas: &Atlas) {
        loop {
            if let Ok(map) = atlas.map() {
                let is_replica = |address: &Address| map.replicas.iter().any(|all| all.contains(address));
                nodes.keep(|address| map.primaries.contains(address) || is_replica(address));
                for (primary, replicas) in map.primaries.iter().zip(&map.replicas) {
                    if !replicas.is_empty() {
                        self.look(nodes, primary, replicas);
                    }
                }
                self.fresh
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .retain(|address, _| is_replica(address));
            }
            thread::sleep((self.bound / LOOKS).clamp(PAUSE_MIN, PAUSE_MAX));
        }
    }

    /// Looks at one primary and its replicas.
    fn look(&self, nodes: &mut Nodes, primary: &Address, replicas: &[Address]) {
        let asked = Instant::now();
        let far = nodes.ask(primary).filter(|far| far.is_primary);
        for replica in replicas {
            let own = nodes.ask(replica);
            if own.zip(far.as_ref()).is_some_and(|(own, far)| own.has_come_as_far_as(far)) {
                let mut fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
                fresh.insert(replica.clone(), asked + self.bound);
            }
        }
    }
}

/// A connection to a node.
enum Way {
    Up(Box<Connection>),
    /// It is being made.
    Coming,
    /// It could not be made, or nothing came over it: it is tried again at this time.
    Down(Instant),
}

/// The nodes that are asked.
struct Nodes {
    to: Config,
    ways: HashMap<Address, Way>,
    made: (Sender<Made>, Receiver<Made>),
}

/// A connection to a node that was made, if it could be.
type Made = (Address, Option<Box<Connection>>);

impl Nodes {
    fn new(to: Config) -> Self {
        Self { to: to.with_protocol(Protocol::Resp2), ways: HashMap::new(), made: channel() }
    }
    /// Forgets the others.
    fn keep(&mut self, is_one: impl Fn(&Address) -> bool) {
        self.ways.retain(|address, _| is_one(address));
    }
    /// How far a node is, if it tells now.
    fn ask(&mut self, node: &Address) -> Option<Far> {
        while let Ok((address, made)) = self.made.1.try_recv() {
            if let Some(way) = self.ways.get_mut(&address) {
                *way = made.map_or_else(|| Way::Down(Instant::now() + AGAIN), Way::Up);
            }
        }
        match self.ways.get_mut(node) {
            Some(Way::Up(connection)) => {
                let told = connection.query::<String>(&["INFO", "replication"]);
                if told.is_err() {
                    self.ways.insert(node.clone(), Way::Down(Instant::now() + AGAIN));
                }
                Far::read(&told.ok()?)
            }
            Some(Way::Down(until)) if Instant::now() >= *until => self.connect(node),
            None => self.connect(node),
            Some(Way::Coming | Way::Down(_)) => None,
        }
    }
    /// Has a connection made. Nothing is known until it is there.
    fn connect(&mut self, node: &Address) -> Option<Far> {
        let (to, made) = (Config { address: node.clone(), ..self.to.clone() }, self.made.0.clone());
        let work = move || {
            let connection = Connection::connect(&to).ok().map(Box::new);
            // The thread that asks lives as long as the process.
            let _ = made.send((to.address, connection));
        };
        let is_begun = thread::Builder::new().name("weft-dial".into()).spawn(work).is_ok();
        let way = if is_begun { Way::Coming } else { Way::Down(Instant::now() + AGAIN) };
        self.ways.insert(node.clone(), way);
        None
    }
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
    use std::net::TcpListener;

    use super::*;
    use crate::options::Options;
    use crate::testing::Peer;

    /// Far beyond what a node that says nothing is waited for here, far below what it would be waited for.
    const SOON: Duration = Duration::from_secs(30);
    const LONG: Duration = Duration::from_secs(120);

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

    /// However many say nothing: connecting to them is nobody's to wait for.
    #[test]
    fn who_says_nothing_keeps_nobody_from_being_fresh() {
        let info = |role: &str, offset: &str| {
            let text = format!("role:{role}\r\nmaster_link_status:up\r\nmaster_replid:a\r\n{offset}:7\r\n");
            let reply = format!("${}\r\n{text}\r\n", text.len());
            Peer::start(move |_| Some(reply.clone()))
        };
        let (primary, good) = (info("master", "master_repl_offset"), info("slave", "slave_repl_offset"));
        // They take connections, and that is all.
        let silent: Vec<_> =
            (0..3).map(|_| TcpListener::bind("127.0.0.1:0").expect("there is a port")).collect();
        let at = |port| Address::Tcp("127.0.0.1".into(), port);
        let mut of: Vec<_> =
            silent.iter().map(|one| at(one.local_addr().expect("it is bound").port())).collect();
        of.push(at(good.port));
        let options = Options::to("cluster://127.0.0.1:1").expect("it is a URL");
        let mut nodes = Nodes::new(options.to.with_timeouts(Timeouts::all(Some(LONG))));
        let replicas = Replicas { fresh: Mutex::default(), bound: LONG };
        let begun = Instant::now();
        while replicas.choose(&of, 0) != of.last() {
            replicas.look(&mut nodes, &at(primary.port), &of);
            assert!(begun.elapsed() < SOON, "it is not fresh");
            thread::yield_now();
        }
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
