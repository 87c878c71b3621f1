//! Owns what is known of a cluster: its nodes, each with a connection and with what it says of itself and of all
//! others. Does not own what is made of it.

use std::fmt;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use weft_client::{Address, Config, Connection, Error, Reply};

use super::slots::{SLOTS, Slots};
use crate::cli::could_not_connect;

/// Nodes of a cluster that are looked at; the specification of Redis names 1,000 as what a cluster can have.
const NODES_MAX: usize = 4096;
/// Requests of one sending.
const PIPELINE: usize = 1000;

/// A line of CLUSTER NODES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) id: String,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) bus_port: u16,
    pub(super) flags: Vec<String>,
    /// Whom it replicates.
    pub(super) primary: Option<String>,
    pub(super) epoch: u64,
    connected: bool,
    pub(super) slots: Slots,
    /// Slots with the node that they go to; of the answering node alone.
    pub(super) migrating: Vec<(u16, String)>,
    /// Slots with the node that they come from.
    pub(super) importing: Vec<(u16, String)>,
}

impl Line {
    fn parse(text: &str) -> Option<Line> {
        let mut words = text.split(' ');
        let id = words.next()?.to_string();
        // Address and ports, then names that are not needed here.
        let address = words.next()?.split(',').next()?;
        let (address, bus_port) = address.split_once('@').unwrap_or((address, "0"));
        let (host, port) = address.rsplit_once(':')?;
        let flags = words.next()?.split(',').map(str::to_string).collect();
        let primary = words.next().filter(|id| *id != "-").map(str::to_string);
        let mut words = words.skip(2);
        let epoch = words.next()?.parse().ok()?;
        let connected = words.next()? == "connected";
        let mut line = Line {
            id,
            host: host.to_string(),
            port: port.parse().ok()?,
            bus_port: bus_port.parse().ok()?,
            flags,
            primary,
            epoch,
            connected,
            slots: Slots::new(),
            migrating: Vec::new(),
            importing: Vec::new(),
        };
        words.try_for_each(|word| line.take(word))?;
        Some(line)
    }

    /// `5`, `0-5460`, `[93->-ID]`, `[93-<-ID]`
    fn take(&mut self, word: &str) -> Option<()> {
        let number = |text: &str| text.parse().ok().filter(|slot| *slot < SLOTS);
        if let Some(open) = word.strip_prefix('[') {
            let open = open.strip_suffix(']')?;
            match (open.split_once("->-"), open.split_once("-<-")) {
                (Some((slot, id)), _) => self.migrating.push((number(slot)?, id.to_string())),
                (_, Some((slot, id))) => self.importing.push((number(slot)?, id.to_string())),
                _ => return None,
            }
            return Some(());
        }
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        (number(first)?..=number(last)?).for_each(|slot| self.slots.insert(slot));
        Some(())
    }

    pub(super) fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|own| own == flag)
    }

    pub(super) fn is_replica(&self) -> bool {
        self.has("slave")
    }

    fn is_reachable(&self) -> bool {
        self.connected && !["noaddr", "fail", "handshake"].iter().any(|flag| self.has(flag))
    }
}

/// A node that answers.
pub(super) struct Node {
    /// What it says of itself.
    pub(super) line: Line,
    /// What it says of all others.
    pub(super) others: Vec<Line>,
    pub(super) config: Config,
    connection: Connection,
}

/// `host:port`
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line.host, self.line.port)
    }
}

impl Node {
    /// Connects; a server that is no node of a cluster is an error.
    pub(super) fn connect(config: &Config, host: &str, port: u16) -> Result<Node> {
        let config = Config { address: Address::Tcp(host.to_string(), port), ..config.clone() };
        let mut connection = Connection::connect(&config).map_err(|error| match error {
            Error::Handshake { .. } => anyhow!("{host}:{port}: {error}"),
            error => anyhow!(could_not_connect(&config, &error)),
        })?;
        let info: String = connection.query(&["INFO", "cluster"])?;
        ensure!(
            info.lines().any(|line| line.trim() == "cluster_enabled:1"),
            "[ERR] Node {host}:{port} is not configured as a cluster node."
        );
        let (line, others) = lines(&mut connection, host, port)?;
        Ok(Node { line, others, config, connection })
    }

    pub(super) fn refresh(&mut self) -> Result<()> {
        let (host, port) = (self.line.host.clone(), self.line.port);
        (self.line, self.others) = lines(&mut self.connection, &host, port)?;
        Ok(())
    }

    /// Runs a command; its error says which node gave it.
    pub(super) fn run<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Result<Reply> {
        let reply = self.connection.command(args);
        reply.with_context(|| format!("Node {self} replied with error"))
    }

    /// Runs a command that may fail.
    pub(super) fn try_run<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Result<Reply> {
        self.connection.exchange(args).with_context(|| self.to_string())
    }

    /// Keys of database 0.
    pub(super) fn keys(&mut self) -> Result<i64> {
        match self.run(&["DBSIZE"])? {
            Reply::Int(count) => Ok(count),
            _ => bail!("{self} answers DBSIZE with no number"),
        }
    }

    /// Of each slot, the keys that this node has in it.
    pub(super) fn keys_in(&mut self, slots: &[u16]) -> Result<Vec<u64>> {
        let mut counts = Vec::with_capacity(slots.len());
        for slots in slots.chunks(PIPELINE) {
            let mut pipeline = self.connection.pipeline();
            for slot in slots {
                pipeline.add(&["CLUSTER", "COUNTKEYSINSLOT", &slot.to_string()])?;
            }
            for reply in pipeline.execute()? {
                match reply {
                    Reply::Int(count) => counts.push(count.max(0) as u64),
                    other => bail!("{self} answers COUNTKEYSINSLOT with {other:?}"),
                }
            }
        }
        Ok(counts)
    }

    /// Whether it knows nobody and has no key.
    pub(super) fn is_empty(&mut self) -> Result<bool> {
        let info: String = self.connection.query(&["CLUSTER", "INFO"])?;
        let alone = info.lines().any(|line| line.trim() == "cluster_known_nodes:1");
        Ok(alone && self.keys()? == 0)
    }

    /// What it thinks who has which slots, in an order that all nodes share.
    fn view(&self) -> Vec<String> {
        let all = std::iter::once(&self.line).chain(&self.others);
        let mut view: Vec<String> = all
            .filter(|line| line.slots.count() > 0)
            .map(|line| format!("{}:{}", line.id, line.slots))
            .collect();
        view.sort_unstable();
        view
    }
}

/// What a node says: of itself, and of the others.
fn lines(connection: &mut Connection, host: &str, port: u16) -> Result<(Line, Vec<Line>)> {
    let text: String = connection.query(&["CLUSTER", "NODES"])?;
    ensure!(text.lines().count() <= NODES_MAX, "{host}:{port} knows more than {NODES_MAX} nodes");
    let (mut own, mut others) = (None, Vec::new());
    for text in text.lines() {
        let mut line = Line::parse(text).with_context(|| format!("{host}:{port} says of a node: {text}"))?;
        if line.has("myself") {
            // It may not know its own address yet, and this one leads to it.
            (line.host, line.port) = (host.to_string(), port);
            own = Some(line);
        } else {
            others.push(line);
        }
    }
    Ok((own.with_context(|| format!("{host}:{port} does not say which node it is"))?, others))
}

/// The nodes of a cluster that can be reached.
pub(super) struct Cluster {
    pub(super) nodes: Vec<Node>,
    /// Primaries that some node knows and that cannot be reached.
    pub(super) unreachable_primaries: usize,
}

impl Cluster {
    /// Asks one node for all others, and connects to each.
    pub(super) fn load(config: &Config, host: &str, port: u16) -> Result<Cluster> {
        let first = Node::connect(config, host, port)?;
        let known = first.others.clone();
        let mut cluster = Cluster { nodes: vec![first], unreachable_primaries: 0 };
        for line in known {
            let node = match line.is_reachable() {
                true => {
                    Node::connect(config, &line.host, line.port).map_err(|error| eprintln!("{error:#}")).ok()
                }
                false => None,
            };
            cluster.unreachable_primaries += usize::from(node.is_none() && !line.is_replica());
            cluster.nodes.extend(node);
        }
        Ok(cluster)
    }

    pub(super) fn refresh(&mut self) -> Result<()> {
        self.nodes.iter_mut().try_for_each(Node::refresh)
    }

    /// Where the primaries stand among the nodes.
    pub(super) fn primaries(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|&index| !self.nodes[index].line.is_replica()).collect()
    }

    /// The node of this id, or of ids that begin so if there is one alone.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        let id = id.to_ascii_lowercase();
        let mut found = self.nodes.iter().enumerate().filter(|(_, node)| node.line.id.starts_with(&id));
        let (index, node) = found.next()?;
        (node.line.id == id || found.next().is_none()).then_some(index)
    }

    pub(super) fn replicas(&self, id: &str) -> usize {
        self.nodes.iter().filter(|node| node.line.primary.as_deref() == Some(id)).count()
    }

    /// All nodes think the same of who has which slots.
    pub(super) fn agrees(&self) -> bool {
        self.nodes.windows(2).all(|pair| pair[0].view() == pair[1].view())
    }

    /// The slots that somebody has.
    pub(super) fn covered(&self) -> Slots {
        let mut all = Slots::new();
        self.nodes.iter().for_each(|node| all.add(&node.line.slots));
        all
    }

    /// A node as a paragraph.
    pub(super) fn describe(&self, index: usize) -> String {
        let node = &self.nodes[index];
        let line = &node.line;
        let role = if line.is_replica() { "S" } else { "M" };
        let flags: Vec<&str> =
            line.flags.iter().map(String::as_str).filter(|flag| *flag != "myself").collect();
        let (slots, count, flags) = (&line.slots, line.slots.count(), flags.join(","));
        let mut text = format!("{role}: {} {node}\n   slots:{slots} ({count} slots) {flags}", line.id);
        if let Some(primary) = &line.primary {
            text += &format!("\n   replicates {primary}");
        } else if self.replicas(&line.id) > 0 {
            text += &format!("\n   {} additional replica(s)", self.replicas(&line.id));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cluster_nodes_are_read() {
        let line = Line::parse(
            "07c37dfeb235213a872192d90877d0cd55635b91 127.0.0.1:30004@31004,host,tls-port=0 myself,master - 0 \
             1426238317239 4 connected 0-2 5 [93-<-292f8b36] [77->-e7d1eecc]",
        )
        .unwrap();
        assert_eq!(
            (line.host.as_str(), line.port, line.bus_port, line.epoch),
            ("127.0.0.1", 30_004, 31_004, 4)
        );
        assert_eq!((line.slots.to_string(), line.is_reachable()), ("[0-2],[5]".into(), true));
        assert_eq!(line.importing, [(93, "292f8b36".to_string())]);
        assert_eq!(line.migrating, [(77, "e7d1eecc".to_string())]);
        let line = Line::parse("aa ::1:7000@17000 slave,fail bb 0 0 4 disconnected").unwrap();
        assert_eq!((line.host.as_str(), line.primary.as_deref()), ("::1", Some("bb")));
        assert!(line.is_replica() && !line.is_reachable());
        let alone = Line::parse("aa :7000@17000 myself,master - 0 0 0 connected").unwrap();
        assert_eq!((alone.host.as_str(), alone.slots.count()), ("", 0));
        for bad in [
            "",
            "aa",
            "aa x - -",
            "aa h:1@2 master - 0 0 0 connected 16384",
            "aa h:1@2 master - 0 0 0 connected [5-6]",
        ] {
            assert_eq!(Line::parse(bad), None, "{bad}");
        }
    }
}
