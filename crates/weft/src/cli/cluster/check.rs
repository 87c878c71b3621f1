//! Owns what `info` and `check` find and print, as redis-cli prints it. Does not own what is done about it.

use anyhow::Result;

use super::Flags;
use super::fix;
use super::nodes::Cluster;
use super::slots::SLOTS;

/// The primaries with their keys.
pub(super) fn info(cluster: &mut Cluster) -> Result<()> {
    let (mut keys, primaries) = (0, cluster.primaries());
    for &index in &primaries {
        let id = cluster.nodes[index].line.id.clone();
        let replicas = cluster.replicas(&id);
        let node = &mut cluster.nodes[index];
        let count = node.keys()?;
        let slots = node.line.slots.count();
        println!(
            "{node} ({}...) -> {count} keys | {slots} slots | {replicas} slaves.",
            id.get(..8).unwrap_or(&id)
        );
        keys += count;
    }
    println!("[OK] {keys} keys in {} masters.", primaries.len());
    println!("{:.2} keys per slot on average.", keys as f64 / f64::from(SLOTS));
    Ok(())
}

/// Everything that can be wrong; with `mends` it is mended where that can be done. Whether all is well.
pub(super) fn check(cluster: &mut Cluster, flags: &Flags, mends: bool, quiet: bool) -> Result<bool> {
    println!(">>> Performing Cluster Check (using node {})", cluster.nodes[0]);
    if !quiet {
        (0..cluster.nodes.len()).for_each(|index| println!("{}", cluster.describe(index)));
    }
    let mut well = agreement(cluster);
    well &= open_slots(cluster, flags, mends)?;
    well &= coverage(cluster, flags, mends)?;
    if flags.search_multiple_owners {
        well &= owners(cluster, flags, mends)?;
    }
    Ok(well)
}

fn agreement(cluster: &Cluster) -> bool {
    let agrees = cluster.agrees();
    match agrees {
        true => println!("[OK] All nodes agree about slots configuration."),
        false => println!("[ERR] Nodes don't agree about configuration!"),
    }
    agrees
}

/// Slots that are on their way from one node to another.
fn open_slots(cluster: &mut Cluster, flags: &Flags, mends: bool) -> Result<bool> {
    println!(">>> Check for open slots...");
    let mut open: Vec<u16> = Vec::new();
    for node in &cluster.nodes {
        for (state, slots) in [("migrating", &node.line.migrating), ("importing", &node.line.importing)] {
            if !slots.is_empty() {
                println!(
                    "[WARNING] Node {node} has slots in {state} state {}.",
                    list(slots.iter().map(|open| open.0))
                );
                open.extend(slots.iter().map(|open| open.0));
            }
        }
    }
    open.sort_unstable();
    open.dedup();
    if open.is_empty() {
        return Ok(true);
    }
    println!("[WARNING] The following slots are open: {}.", list(open.iter().copied()));
    let mut mended = mends;
    for slot in open.into_iter().filter(|_| mends) {
        mended &= fix::open_slot(cluster, flags, slot)?;
        cluster.refresh()?;
    }
    Ok(mended)
}

fn coverage(cluster: &mut Cluster, flags: &Flags, mends: bool) -> Result<bool> {
    println!(">>> Check slots coverage...");
    let missing = cluster.covered().missing();
    if missing.is_empty() {
        println!("[OK] All {SLOTS} slots covered.");
        return Ok(true);
    }
    println!("[ERR] Not all {SLOTS} slots are covered by nodes.\n");
    if !mends {
        return Ok(false);
    }
    fix::coverage(cluster, flags, &missing)
}

/// Slots of which more than one primary says that they are its own, or has keys.
fn owners(cluster: &mut Cluster, flags: &Flags, mends: bool) -> Result<bool> {
    println!(">>> Check for multiple slot owners...");
    let all: Vec<u16> = (0..SLOTS).collect();
    let mut keys = Vec::new();
    for index in cluster.primaries() {
        keys.push((index, cluster.nodes[index].keys_in(&all)?));
    }
    let (mut well, mut any) = (true, false);
    for slot in all {
        let owns = |(index, keys): &&(usize, Vec<u64>)| {
            keys[usize::from(slot)] > 0 || cluster.nodes[*index].line.slots.contains(slot)
        };
        let owners: Vec<usize> = keys.iter().filter(owns).map(|(index, _)| *index).collect();
        if owners.len() < 2 {
            continue;
        }
        any = true;
        println!("[WARNING] Slot {slot} has {} owners:", owners.len());
        owners.iter().for_each(|&index| println!("    {}", cluster.nodes[index]));
        well &= mends && fix::owners(cluster, flags, slot, &owners)?;
    }
    if !any {
        println!("[OK] No multiple owners found.");
    }
    Ok(well)
}

/// Numbers with commas.
pub(super) fn list(slots: impl Iterator<Item = u16>) -> String {
    slots.map(|slot| slot.to_string()).collect::<Vec<_>>().join(",")
}
