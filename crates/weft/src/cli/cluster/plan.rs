//! Owns `reshard` and `rebalance`: which slots go from whom to whom. Does not own how one goes.

use std::io::Write as _;

use anyhow::{Context as _, Result, bail, ensure};

use super::moving::Moving;
use super::nodes::Cluster;
use super::slots::SLOTS;
use super::{Flags, answer, check, confirmed};

/// `--cluster reshard`
pub(super) fn reshard(cluster: &mut Cluster, flags: &Flags) -> Result<()> {
    if !check::check(cluster, flags, false, false)? {
        bail!("*** Please fix your cluster problems before resharding");
    }
    let count = match flags.slots {
        Some(count) => count,
        None => loop {
            let asked = answer(&format!("How many slots do you want to move (from 1 to {SLOTS})? "))?;
            if let Ok(count) = asked.parse()
                && (1..=SLOTS).contains(&count)
            {
                break count;
            }
        },
    };
    let to = match &flags.to {
        Some(id) => primary(cluster, id)?,
        None => loop {
            match primary(cluster, &answer("What is the receiving node ID? ")?) {
                Ok(index) => break index,
                Err(error) => println!("{error}"),
            }
        },
    };
    let sources = sources(cluster, flags, to)?;
    println!("\nReady to move {count} slots.\n  Source nodes:");
    for &index in &sources {
        println!("    {}", cluster.describe(index).replace('\n', "\n    "));
    }
    println!("  Destination node:\n    {}", cluster.describe(to).replace('\n', "\n    "));
    println!("  Resharding plan:");
    let plan = table(cluster, &sources, usize::from(count));
    for (slot, from) in &plan {
        println!("    Moving slot {slot} from {}", cluster.nodes[*from].line.id);
    }
    if !confirmed(flags, "Do you want to proceed with the proposed reshard plan (yes/no)? ")? {
        bail!("nothing was moved");
    }
    let moving = Moving { flags, replaces: flags.replace, shows_keys: true };
    plan.into_iter().try_for_each(|(slot, from)| moving.slot(cluster, slot, from, to))
}

/// The primary of an id.
fn primary(cluster: &Cluster, id: &str) -> Result<usize> {
    let index = cluster.find(id.trim()).filter(|&index| !cluster.nodes[index].line.is_replica());
    index
        .with_context(|| format!("*** The specified node ({id}) is not known or not a master, please retry."))
}

/// Who gives.
fn sources(cluster: &Cluster, flags: &Flags, to: usize) -> Result<Vec<usize>> {
    let mut sources = Vec::new();
    let mut take = |id: &str| -> Result<()> {
        if id == "all" {
            sources = cluster.primaries();
            sources.retain(|&index| index != to && cluster.nodes[index].line.slots.count() > 0);
            return Ok(());
        }
        let index = primary(cluster, id)?;
        ensure!(index != to, "*** It is not possible to use the target node as source node.");
        if !sources.contains(&index) {
            sources.push(index);
        }
        Ok(())
    };
    match &flags.from {
        Some(ids) => ids.split(',').try_for_each(&mut take)?,
        None => {
            println!("Please enter all the source node IDs.");
            println!("  Type 'all' to use all the nodes as source nodes for the hash slots.");
            println!("  Type 'done' once you entered all the source nodes IDs.");
            for number in 1.. {
                let id = answer(&format!("Source node #{number}: "))?;
                if id == "done" {
                    break;
                }
                if let Err(error) = take(&id) {
                    println!("{error}");
                }
                if id == "all" {
                    break;
                }
            }
        }
    }
    ensure!(!sources.is_empty(), "*** No source nodes given, operation aborted.");
    Ok(sources)
}

/// So many slots of these nodes, of each in proportion to what it has.
fn table(cluster: &Cluster, sources: &[usize], count: usize) -> Vec<(u16, usize)> {
    let has = |index: usize| cluster.nodes[index].line.slots.count();
    let mut sources = sources.to_vec();
    sources.sort_by_key(|&index| std::cmp::Reverse(has(index)));
    let shares = shares(&sources.iter().map(|&index| has(index)).collect::<Vec<_>>(), count);
    let each = sources.iter().zip(shares);
    each.flat_map(|(&index, share)| {
        cluster.nodes[index].line.slots.iter().take(share).map(move |slot| (slot, index))
    })
    .collect()
}

/// Of so many slots a share for each, by what it has; what rounding leaves goes to the first that have more.
fn shares(has: &[usize], count: usize) -> Vec<usize> {
    let total: usize = has.iter().sum();
    let count = count.min(total);
    let mut shares: Vec<usize> = has.iter().map(|has| count * has / total.max(1)).collect();
    let mut rest = count - shares.iter().sum::<usize>();
    for (share, has) in shares.iter_mut().zip(has) {
        let more = rest.min(usize::from(*share < *has));
        *share += more;
        rest -= more;
    }
    shares
}

/// `--cluster rebalance`
pub(super) fn rebalance(cluster: &mut Cluster, flags: &Flags) -> Result<()> {
    if !check::check(cluster, flags, false, true)? {
        bail!("*** Please fix your cluster problems before rebalancing");
    }
    let weights = weights(cluster, flags)?;
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    ensure!(total > 0.0, "*** No node has a weight above 0");
    let has: Vec<usize> = weights.iter().map(|(index, _)| cluster.nodes[*index].line.slots.count()).collect();
    let sum: usize = has.iter().sum();
    let wanted = shares_of(&weights.iter().map(|(_, weight)| *weight).collect::<Vec<_>>(), sum);
    let over = |index: usize| {
        let gap = has[index].abs_diff(wanted[index]) as f64;
        gap > 0.0 && 100.0 * gap / (wanted[index].max(1) as f64) > flags.threshold
    };
    if !(0..has.len()).any(over) {
        println!("*** No rebalancing needed! All nodes are within the {:.2}% threshold.", flags.threshold);
        return Ok(());
    }
    println!(">>> Rebalancing across {} nodes. Total weight = {total:.2}", weights.len());
    let moving = Moving { flags, replaces: flags.replace, shows_keys: false };
    for (from, to, count) in transfers(&has, &wanted) {
        let (from, to) = (weights[from].0, weights[to].0);
        println!("Moving {count} slots from {} to {}", cluster.nodes[from], cluster.nodes[to]);
        let slots: Vec<u16> = cluster.nodes[from].line.slots.iter().take(count).collect();
        for slot in slots {
            if !flags.simulate {
                moving.slot(cluster, slot, from, to)?;
            }
            print!("#");
            std::io::stdout().flush()?;
        }
        println!();
    }
    Ok(())
}

/// The primaries that take part, with their weights.
fn weights(cluster: &Cluster, flags: &Flags) -> Result<Vec<(usize, f64)>> {
    let mut given = Vec::new();
    for text in &flags.weight {
        let pair = text.split_once('=').and_then(|(id, weight)| Some((id, weight.parse::<f64>().ok()?)));
        let Some((id, weight)) = pair.filter(|(_, weight)| weight.is_finite() && *weight >= 0.0) else {
            bail!("*** {text} is no weight: --cluster-weight NODE-ID=NUMBER")
        };
        given.push((cluster.find(id).with_context(|| format!("*** No such master node {id}"))?, weight));
    }
    let weight = |index| given.iter().find(|(node, _)| *node == index).map(|(_, weight)| *weight);
    let mut weights = Vec::new();
    for index in cluster.primaries() {
        // Who has nothing is to have something only if that was said.
        let takes_part = cluster.nodes[index].line.slots.count() > 0 || flags.use_empty_masters;
        weights.extend(takes_part.then(|| (index, weight(index).unwrap_or(1.0))));
    }
    Ok(weights)
}

/// Of so many slots a share for each by its weight: all of them, and the larger rests first.
fn shares_of(weights: &[f64], count: usize) -> Vec<usize> {
    let total: f64 = weights.iter().sum();
    let exact: Vec<f64> = weights.iter().map(|weight| count as f64 * weight / total).collect();
    let mut shares: Vec<usize> = exact.iter().map(|share| share.floor() as usize).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&a, &b| (exact[b] - exact[b].floor()).total_cmp(&(exact[a] - exact[a].floor())));
    let rest = count - shares.iter().sum::<usize>();
    order.iter().take(rest).for_each(|&index| shares[index] += 1);
    shares
}

/// Who gives how many to whom, so that each has what it is to have: the largest gaps first.
fn transfers(has: &[usize], wanted: &[usize]) -> Vec<(usize, usize, usize)> {
    let mut gaps: Vec<(usize, i64)> =
        has.iter().zip(wanted).map(|(has, wanted)| *has as i64 - *wanted as i64).enumerate().collect();
    gaps.sort_by_key(|(_, gap)| *gap);
    let (mut low, mut high) = (0, gaps.len().saturating_sub(1));
    let mut transfers = Vec::new();
    while low < high {
        let count = gaps[high].1.min(-gaps[low].1);
        if count > 0 {
            transfers.push((gaps[high].0, gaps[low].0, count as usize));
            gaps[high].1 -= count;
            gaps[low].1 += count;
        }
        match gaps[low].1 >= 0 {
            true => low += 1,
            false => high -= 1,
        }
    }
    transfers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_up_and_nobody_gives_more_than_it_has() {
        for (has, count) in
            [(&[5461, 5462, 5461][..], 100), (&[1, 1, 1], 2), (&[1, 0, 5], 6), (&[3, 3], 100), (&[0], 5)]
        {
            let shares = shares(has, count);
            assert_eq!(shares.iter().sum::<usize>(), count.min(has.iter().sum()), "{has:?}");
            assert!(shares.iter().zip(has).all(|(share, has)| share <= has), "{has:?} {shares:?}");
        }
        assert_eq!(shares_of(&[1.0, 1.0, 1.0], 16_384), [5462, 5461, 5461]);
        assert_eq!(shares_of(&[0.0, 1.0, 3.0], 16_384), [0, 4096, 12_288]);
    }

    #[test]
    fn transfers_close_every_gap() {
        for (has, wanted) in [
            (&[16_384, 0, 0][..], &[5462, 5461, 5461][..]),
            (&[5000, 5000, 6384, 0], &[4096, 4096, 4096, 4096]),
            (&[1, 2, 3], &[1, 2, 3]),
            (&[10], &[10]),
        ] {
            let mut now: Vec<usize> = has.to_vec();
            for (from, to, count) in transfers(has, wanted) {
                now[from] -= count;
                now[to] += count;
            }
            assert_eq!(now, wanted);
        }
    }
}
