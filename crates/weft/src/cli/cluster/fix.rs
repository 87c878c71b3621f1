//! Owns what `fix` does: slots that are half on their way, slots that nobody has, slots that several have. Does not own
//! how a slot is moved.

use anyhow::{Result, bail};
use weft_client::Reply;

use super::check::list;
use super::moving::{Moving, give, set};
use super::nodes::Cluster;
use super::{Flags, confirmed};

/// Who has what of a slot.
struct Claims {
    migrating: Vec<usize>,
    importing: Vec<usize>,
    /// Primaries that say that it is theirs.
    owners: Vec<usize>,
    /// Of each primary, its keys in it.
    keys: Vec<(usize, u64)>,
}

impl Claims {
    fn of(cluster: &mut Cluster, slot: u16) -> Result<Claims> {
        let mut claims = Claims { migrating: vec![], importing: vec![], owners: vec![], keys: vec![] };
        for index in cluster.primaries() {
            let node = &mut cluster.nodes[index];
            let keys = node.keys_in(&[slot])?[0];
            claims.keys.push((index, keys));
            let owns = node.line.slots.contains(slot);
            if owns {
                claims.owners.push(index);
            }
            if node.line.migrating.iter().any(|open| open.0 == slot) {
                claims.migrating.push(index);
            } else if node.line.importing.iter().any(|open| open.0 == slot) {
                claims.importing.push(index);
            } else if keys > 0 && !owns {
                println!("*** Found keys about slot {slot} in node {node}!");
                claims.importing.push(index);
            }
        }
        Ok(claims)
    }

    fn keys(&self, index: usize) -> u64 {
        self.keys.iter().find(|(node, _)| *node == index).map_or(0, |(_, keys)| *keys)
    }

    /// Who has the most keys, if anybody has any.
    fn richest(&self, among: impl Fn(usize) -> bool) -> Option<usize> {
        let rich = self.keys.iter().filter(|(index, keys)| *keys > 0 && among(*index));
        // Of equal ones the first.
        rich.rev().max_by_key(|(_, keys)| *keys).map(|(index, _)| *index)
    }
}

fn moving(flags: &Flags) -> Moving<'_> {
    // What is found twice was sent once and not yet deleted: the source's is the newer one.
    Moving { flags, replaces: true, shows_keys: true }
}

/// Ends what is open about a slot. Whether that could be done.
pub(super) fn open_slot(cluster: &mut Cluster, flags: &Flags, slot: u16) -> Result<bool> {
    println!(">>> Fixing open slot {slot}");
    let mut claims = Claims::of(cluster, slot)?;
    let names = |cluster: &Cluster, nodes: &[usize]| {
        nodes.iter().map(|&index| cluster.nodes[index].to_string()).collect::<Vec<_>>().join(",")
    };
    if !claims.migrating.is_empty() {
        println!("Set as migrating in: {}", names(cluster, &claims.migrating));
    }
    if !claims.importing.is_empty() {
        println!("Set as importing in: {}", names(cluster, &claims.importing));
    }
    let Some(owner) = one_owner(cluster, slot, &mut claims)? else {
        println!("[ERR] Can't select a slot owner. Impossible to fix.");
        return Ok(false);
    };
    match (&claims.migrating[..], &claims.importing[..]) {
        (&[from], &[to]) => {
            println!(">>> Case 1: Moving slot {slot} from {} to {}", cluster.nodes[from], cluster.nodes[to]);
            moving(flags).slot(cluster, slot, from, to)?;
        }
        ([], _) => gather(cluster, flags, slot, owner, &claims.importing)?,
        (&[from], importing) if importing.iter().all(|&index| claims.keys(index) == 0) => {
            let goal = cluster.nodes[from].line.migrating.iter().find(|open| open.0 == slot);
            let goal = goal.and_then(|(_, id)| cluster.find(id)).filter(|index| importing.contains(index));
            close_or_move(cluster, flags, slot, from, goal, importing)?;
        }
        (migrating, importing) => {
            println!(
                "[ERR] Sorry, can't fix this slot yet. Slot is set as migrating in {}, as importing in {}, owner is {}",
                names(cluster, migrating),
                names(cluster, importing),
                cluster.nodes[owner]
            );
            return Ok(false);
        }
    }
    Ok(true)
}

/// The owner of the slot: who says so, or, where nobody or several do, who has the most keys. The others import from
/// now on.
fn one_owner(cluster: &mut Cluster, slot: u16, claims: &mut Claims) -> Result<Option<usize>> {
    if let [owner] = claims.owners[..] {
        return Ok(Some(owner));
    }
    println!(">>> No single clear owner for the slot, selecting an owner by # of keys...");
    let owners = std::mem::take(&mut claims.owners);
    let richest = claims.richest(|index| owners.is_empty() || owners.contains(&index));
    let Some(owner) = richest.or_else(|| owners.first().or(claims.importing.first()).copied()) else {
        return Ok(None);
    };
    println!("*** Configuring {} as the slot owner", cluster.nodes[owner]);
    own(cluster, slot, owner)?;
    for index in owners.into_iter().filter(|&index| index != owner) {
        let id = cluster.nodes[owner].line.id.clone();
        let node = &mut cluster.nodes[index];
        delete(node, slot)?;
        set(node, slot, &["IMPORTING", &id])?;
        claims.migrating.retain(|&other| other != index);
        if !claims.importing.contains(&index) {
            claims.importing.push(index);
        }
    }
    claims.migrating.retain(|&index| index != owner);
    claims.importing.retain(|&index| index != owner);
    claims.owners = vec![owner];
    Ok(Some(owner))
}

fn delete(node: &mut super::nodes::Node, slot: u16) -> Result<()> {
    // That it has it no longer is what is wanted.
    match node.try_run(&["CLUSTER", "DELSLOTS", &slot.to_string()])? {
        Reply::Error(text) if !text.ends_with(b"already unassigned") => {
            bail!("Node {node} replied with error:\n{}", String::from_utf8_lossy(&text))
        }
        _ => Ok(()),
    }
}

/// Makes a node the owner of a slot, in a new epoch, so that all others believe it.
fn own(cluster: &mut Cluster, slot: u16, owner: usize) -> Result<()> {
    let node = &mut cluster.nodes[owner];
    set(node, slot, &["STABLE"])?;
    delete(node, slot)?;
    node.run(&["CLUSTER", "ADDSLOTS", &slot.to_string()])?;
    node.run(&["CLUSTER", "BUMPEPOCH"])?;
    node.line.slots.insert(slot);
    Ok(())
}

/// Nobody migrates: the keys that importing nodes have go to the owner.
fn gather(cluster: &mut Cluster, flags: &Flags, slot: u16, owner: usize, importing: &[usize]) -> Result<()> {
    println!(">>> Case 2: Moving all the {slot} slot keys to its owner {}", cluster.nodes[owner]);
    let id = cluster.nodes[owner].line.id.clone();
    for &index in importing.iter().filter(|&&index| index != owner) {
        // Where a slot is neither one's own nor open, whoever asks for its keys is sent elsewhere, MIGRATE too.
        set(&mut cluster.nodes[index], slot, &["IMPORTING", &id])?;
        moving(flags).keys(cluster, slot, index, owner)?;
        println!(">>> Setting {slot} as STABLE in {}", cluster.nodes[index]);
        set(&mut cluster.nodes[index], slot, &["STABLE"])?;
    }
    give(cluster, slot, owner, owner)
}

/// One migrates, and those that import have no keys: to the one that is meant, and the others are done.
fn close_or_move(
    cluster: &mut Cluster,
    flags: &Flags,
    slot: u16,
    from: usize,
    goal: Option<usize>,
    importing: &[usize],
) -> Result<()> {
    match goal {
        Some(to) => {
            let (source, target) = (&cluster.nodes[from], &cluster.nodes[to]);
            println!(
                ">>> Case 3: Moving slot {slot} from {source} to {target} and closing it on all the other importing nodes."
            );
            moving(flags).slot(cluster, slot, from, to)?;
        }
        None if importing.is_empty() => {
            println!(">>> Case 4: Closing slot {slot} on {}", cluster.nodes[from])
        }
        None => println!(">>> Case 3: Closing slot {slot} on both migrating and importing nodes."),
    }
    let others = importing.iter().copied().filter(|index| Some(*index) != goal);
    let closed: Vec<usize> = others.chain(goal.is_none().then_some(from)).collect();
    closed.into_iter().try_for_each(|index| set(&mut cluster.nodes[index], slot, &["STABLE"]))
}

/// Gives slots that nobody has to somebody: to who has their keys. Whether all could be given.
pub(super) fn coverage(cluster: &mut Cluster, flags: &Flags, missing: &[u16]) -> Result<bool> {
    if cluster.unreachable_primaries > 0 && !flags.fix_with_unreachable_masters {
        println!(
            "*** Fixing slots coverage with {} unreachable masters is dangerous: their slots would be taken for slots \
             that nobody has, and given to the masters that can be reached, so that their data is lost. If that is \
             wanted: --cluster-fix-with-unreachable-masters.",
            cluster.unreachable_primaries
        );
        return Ok(false);
    }
    println!(">>> Fixing slots coverage...");
    let primaries = cluster.primaries();
    let mut holders: Vec<Vec<(usize, u64)>> = vec![Vec::new(); missing.len()];
    for &index in &primaries {
        for (holders, keys) in holders.iter_mut().zip(cluster.nodes[index].keys_in(missing)?) {
            holders.extend((keys > 0).then_some((index, keys)));
        }
    }
    let of = |wanted: fn(usize) -> bool| -> Vec<(u16, Vec<(usize, u64)>)> {
        let all = missing.iter().copied().zip(&holders);
        all.filter(|(_, holders)| wanted(holders.len()))
            .map(|(slot, holders)| (slot, holders.clone()))
            .collect()
    };
    let (none, single, many) = (of(|count| count == 0), of(|count| count == 1), of(|count| count > 1));
    let slots = |of: &[(u16, Vec<(usize, u64)>)]| list(of.iter().map(|(slot, _)| *slot));
    if !none.is_empty() {
        println!("The following uncovered slots have no keys across the cluster:\n{}", slots(&none));
        if !confirmed(flags, "Fix these slots by covering with a random node? (type 'yes' to accept): ")? {
            return Ok(false);
        }
    }
    if !single.is_empty() {
        println!("The following uncovered slots have keys in just one node:\n{}", slots(&single));
        if !confirmed(flags, "Fix these slots by covering with those nodes? (type 'yes' to accept): ")? {
            return Ok(false);
        }
    }
    if !many.is_empty() {
        println!("The following uncovered slots have keys in multiple nodes:\n{}", slots(&many));
        if !confirmed(flags, "Fix these slots by moving keys into a single node? (type 'yes' to accept): ")? {
            return Ok(false);
        }
    }
    for (slot, holders) in none.into_iter().chain(single).chain(many) {
        cover(cluster, flags, slot, &primaries, &holders)?;
    }
    Ok(true)
}

fn cover(
    cluster: &mut Cluster,
    flags: &Flags,
    slot: u16,
    primaries: &[usize],
    holders: &[(usize, u64)],
) -> Result<()> {
    let richest = holders.iter().rev().max_by_key(|(_, keys)| *keys).map(|(index, _)| *index);
    // Where nobody has a key, whoever has the fewest slots.
    let poorest = || primaries.iter().copied().min_by_key(|&index| cluster.nodes[index].line.slots.count());
    let Some(owner) = richest.or_else(poorest) else { bail!("there is no master") };
    println!(">>> Covering slot {slot} with {}", cluster.nodes[owner]);
    own(cluster, slot, owner)?;
    let id = cluster.nodes[owner].line.id.clone();
    for &(index, _) in holders.iter().filter(|(index, _)| *index != owner) {
        set(&mut cluster.nodes[index], slot, &["IMPORTING", &id])?;
        moving(flags).keys(cluster, slot, index, owner)?;
        set(&mut cluster.nodes[index], slot, &["STABLE"])?;
    }
    Ok(())
}

/// Leaves a slot to one of its owners.
pub(super) fn owners(cluster: &mut Cluster, flags: &Flags, slot: u16, owners: &[usize]) -> Result<bool> {
    println!(">>> Fixing multiple owners for slot {slot}...");
    let mut claims = Claims::of(cluster, slot)?;
    claims.owners = owners.to_vec();
    let Some(owner) = one_owner(cluster, slot, &mut claims)? else { return Ok(false) };
    for index in owners.iter().copied().filter(|&index| index != owner) {
        moving(flags).keys(cluster, slot, index, owner)?;
        set(&mut cluster.nodes[index], slot, &["STABLE"])?;
    }
    give(cluster, slot, owner, owner)?;
    cluster.refresh()?;
    Ok(true)
}
