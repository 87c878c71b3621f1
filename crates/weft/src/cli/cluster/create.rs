//! Owns `create`: who becomes what, and the way to one cluster. Does not own the nodes.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use weft_client::{Config, Reply};

use super::nodes::{Cluster, Node};
use super::slots::{SLOTS, Slots};
use super::{Flags, Place, check, confirmed};

/// Masters that a cluster begins with.
const PRIMARIES_MIN: usize = 3;
/// How long nodes that were told of each other may take until all know all.
const JOIN_TIME: Duration = Duration::from_secs(120);
/// How often they are asked.
const JOIN_LOOK: Duration = Duration::from_millis(100);

/// `--cluster create HOST:PORT …`
pub(super) fn create(config: &Config, flags: &Flags, places: &[Place]) -> Result<bool> {
    let (count, replicas) = (places.len(), flags.replicas as usize);
    let primaries = count / (replicas + 1);
    if primaries < PRIMARIES_MIN {
        bail!(
            "*** ERROR: Invalid configuration for cluster creation.\n*** A cluster requires at least {PRIMARIES_MIN} \
             master nodes.\n*** This is not possible with {count} nodes and {replicas} replicas per node.\n*** \
             At least {} nodes are required.",
            PRIMARIES_MIN * (replicas + 1)
        );
    }
    let mut cluster = Cluster { nodes: Vec::new(), unreachable_primaries: 0 };
    for (host, port) in places {
        let mut node = Node::connect(config, host, *port)?;
        ensure!(
            node.is_empty()?,
            "[ERR] Node {node} is not empty. Either the node already knows other nodes (check with CLUSTER NODES) or \
             contains some key in database 0."
        );
        let known = cluster.nodes.iter().any(|other| other.line.id == node.line.id);
        ensure!(!known, "[ERR] Node {node} is named twice.");
        cluster.nodes.push(node);
    }
    println!(">>> Performing hash slots allocation on {count} nodes...");
    let layout = Layout::of(&places.iter().map(|(host, _)| host.as_str()).collect::<Vec<_>>(), primaries);
    layout.say(&cluster);
    if !confirmed(flags, "Can I set the above configuration? (type 'yes' to accept): ")? {
        bail!("nothing was set");
    }
    join(&mut cluster, &layout)?;
    let (host, port) = &places[0];
    let mut cluster = Cluster::load(config, host, *port)?;
    check::check(&mut cluster, flags, false, false)
}

fn join(cluster: &mut Cluster, layout: &Layout) -> Result<()> {
    for (index, slots) in &layout.primaries {
        let numbers: Vec<String> = slots.iter().map(|slot| slot.to_string()).collect();
        let words = ["CLUSTER", "ADDSLOTS"].into_iter().chain(numbers.iter().map(String::as_str));
        cluster.nodes[*index].run(&words.collect::<Vec<_>>())?;
    }
    println!(">>> Nodes configuration updated");
    println!(">>> Assign a different config epoch to each node");
    for (index, node) in cluster.nodes.iter_mut().enumerate() {
        // One that has an epoch keeps it: they are apart already.
        node.try_run(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()])?;
    }
    println!(">>> Sending CLUSTER MEET messages to join the cluster");
    let (first, others) = cluster.nodes.split_at_mut(1);
    others.iter_mut().try_for_each(|node| meet(node, &first[0]))?;
    println!("Waiting for the cluster to join");
    until("the nodes do not all know each other", || {
        cluster.refresh()?;
        let all = cluster.nodes.iter().all(|node| node.others.len() + 1 == cluster.nodes.len());
        Ok(all && cluster.agrees())
    })?;
    for (index, primary) in &layout.replicas {
        let id = cluster.nodes[*primary].line.id.clone();
        replicate(&mut cluster.nodes[*index], &id)?;
    }
    until("the replicas are not known to all", || {
        cluster.refresh()?;
        let replicas =
            |node: &Node| node.others.iter().chain([&node.line]).filter(|line| line.is_replica()).count();
        Ok(cluster.nodes.iter().all(|node| replicas(node) == layout.replicas.len()))
    })
}

/// Tells a node of another.
pub(super) fn meet(node: &mut Node, other: &Node) -> Result<()> {
    let (port, bus_port) = (other.line.port.to_string(), other.line.bus_port.to_string());
    let mut args = vec!["CLUSTER", "MEET", &other.line.host, &port];
    if other.line.bus_port != 0 && u32::from(other.line.bus_port) != u32::from(other.line.port) + 10_000 {
        args.push(&bus_port);
    }
    node.run(&args).map(drop)
}

/// Makes a node a replica. It may not have heard of the other one yet.
pub(super) fn replicate(node: &mut Node, id: &str) -> Result<()> {
    until(&format!("{node} does not become a replica of {id}"), || {
        match node.try_run(&["CLUSTER", "REPLICATE", id])? {
            Reply::Error(text) if text.starts_with(b"ERR Unknown node") => Ok(false),
            Reply::Error(text) => {
                bail!("Node {node} replied with error:\n{}", String::from_utf8_lossy(&text))
            }
            _ => Ok(true),
        }
    })
}

/// Asks again and again, but not for ever.
pub(super) fn until(fails: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let began = Instant::now();
    while !is_so()? {
        ensure!(began.elapsed() < JOIN_TIME, "[ERR] After {} s {fails}", JOIN_TIME.as_secs());
        std::thread::sleep(JOIN_LOOK);
    }
    Ok(())
}

/// Who becomes what.
struct Layout {
    primaries: Vec<(usize, Slots)>,
    /// Replicas, and whose.
    replicas: Vec<(usize, usize)>,
}

impl Layout {
    /// Masters on as many machines as there are, and replicas on another machine than their master's and than each
    /// other's, where that is possible.
    fn of(hosts: &[&str], primaries: usize) -> Layout {
        let order = by_turns(hosts);
        let (first, rest) = order.split_at(primaries);
        let bound = |number: usize| (usize::from(SLOTS) * number / primaries) as u16;
        let primaries: Vec<(usize, Slots)> = first
            .iter()
            .enumerate()
            .map(|(number, &index)| (index, (bound(number)..bound(number + 1)).collect()))
            .collect();
        let mut replicas: Vec<(usize, usize)> = Vec::new();
        let mut free = rest.to_vec();
        // In turns, so that nobody has two before everybody has one.
        for &(primary, _) in primaries.iter().cycle().take(rest.len()) {
            let strange = |&index: &usize| {
                let others = replicas.iter().filter(|(_, of)| *of == primary).map(|(index, _)| *index);
                let same = others.filter(|&other| hosts[other] == hosts[index]).count();
                (usize::from(hosts[index] == hosts[primary]), same)
            };
            let best = (0..free.len()).min_by_key(|&place| strange(&free[place]));
            replicas.extend(best.map(|place| (free.remove(place), primary)));
        }
        swap_for_the_better(hosts, &mut replicas);
        Layout { primaries, replicas }
    }

    fn say(&self, cluster: &Cluster) {
        for (number, (_, slots)) in self.primaries.iter().enumerate() {
            let (first, last) = (slots.iter().next().unwrap_or(0), slots.iter().last().unwrap_or(0));
            println!("Master[{number}] -> Slots {first} - {last}");
        }
        for (index, primary) in &self.replicas {
            println!("Adding replica {} to {}", cluster.nodes[*index], cluster.nodes[*primary]);
        }
        for (index, slots) in &self.primaries {
            let node = &cluster.nodes[*index];
            println!("M: {} {node}\n   slots:{slots} ({} slots) master", node.line.id, slots.count());
        }
        for (index, primary) in &self.replicas {
            let (node, of) = (&cluster.nodes[*index], &cluster.nodes[*primary]);
            println!("S: {} {node}\n   replicates {}", node.line.id, of.line.id);
        }
    }
}

/// All nodes, each time one of the next machine.
fn by_turns(hosts: &[&str]) -> Vec<usize> {
    let mut machines: Vec<(&str, Vec<usize>)> = Vec::new();
    for (index, host) in hosts.iter().enumerate() {
        match machines.iter_mut().find(|(known, _)| known == host) {
            Some((_, nodes)) => nodes.push(index),
            None => machines.push((host, vec![index])),
        }
    }
    let longest = machines.iter().map(|(_, nodes)| nodes.len()).max().unwrap_or(0);
    (0..longest)
        .flat_map(|turn| machines.iter().filter_map(move |(_, nodes)| nodes.get(turn).copied()))
        .collect()
}

/// The last replicas may have had no choice: two that both stand better in the other's place change places.
fn swap_for_the_better(hosts: &[&str], replicas: &mut [(usize, usize)]) {
    let clashes = |replicas: &[(usize, usize)]| {
        let own = replicas.iter().filter(|(index, of)| hosts[*index] == hosts[*of]).count();
        let pairs = (0..replicas.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        let same = pairs
            .filter(|&(a, b)| replicas[a].1 == replicas[b].1 && hosts[replicas[a].0] == hosts[replicas[b].0]);
        10 * own + same.count()
    };
    // A swap is kept only if it is better, so that there are at most as many as there are clashes.
    for a in 0..replicas.len() {
        for b in 0..a {
            let before = clashes(replicas);
            if before == 0 {
                return;
            }
            let (left, right) = (replicas[a].0, replicas[b].0);
            (replicas[a].0, replicas[b].0) = (right, left);
            if clashes(replicas) >= before {
                (replicas[a].0, replicas[b].0) = (left, right);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_slots_are_given_out_and_replicas_stand_elsewhere() {
        let three = ["a", "a", "b", "b", "c", "c"];
        let layout = Layout::of(&three, 3);
        let mut all = Slots::new();
        layout.primaries.iter().for_each(|(_, slots)| all.add(slots));
        assert_eq!(all.count(), usize::from(SLOTS));
        let masters: Vec<&str> = layout.primaries.iter().map(|(index, _)| three[*index]).collect();
        assert_eq!(masters, ["a", "b", "c"]);
        assert_eq!(layout.replicas.len(), 3);
        assert!(
            layout.replicas.iter().all(|(index, of)| three[*index] != three[*of]),
            "{:?}",
            layout.replicas
        );
        // Everything on one machine is possible, too.
        let layout = Layout::of(&["a"; 7], 3);
        assert_eq!((layout.primaries.len(), layout.replicas.len()), (3, 4));
        assert_eq!(layout.primaries[1].1.to_string(), "[5461-10921]");
    }
}
