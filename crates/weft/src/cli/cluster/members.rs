//! Owns what changes or asks the nodes of a cluster one by one: `add-node`, `del-node`, `call`, `set-timeout`,
//! `import`, `backup`. Does not own slots.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use weft_client::{Address, Config, Connection, Reply};
use weft_engine::keys::key_slot;

use super::create::{meet, replicate, until};
use super::moving::{login, migration};
use super::nodes::{Cluster, Node};
use super::{Flags, Place, check};
use crate::cli::output::{Format, Style};
use crate::cli::replica;

/// The shortest time after which a node may count as lost.
const NODE_TIMEOUT_MS_MIN: u64 = 100;
/// Keys of a step of `import`.
const IMPORT_STEP: &str = "1000";

/// `--cluster add-node NEW EXISTING`
pub(super) fn add(config: &Config, flags: &Flags, new: &Place, cluster: &mut Cluster) -> Result<()> {
    println!(">>> Adding node {}:{} to cluster {}", new.0, new.1, cluster.nodes[0]);
    if !check::check(cluster, flags, false, false)? {
        bail!("*** Please fix your cluster problems before adding a node");
    }
    let primary = match (&flags.master_id, flags.slave) {
        (Some(id), true) => {
            let index = cluster.find(id).filter(|&index| !cluster.nodes[index].line.is_replica());
            Some(index.with_context(|| format!("[ERR] No such master ID {id}"))?)
        }
        (None, true) => {
            let fewest = cluster
                .primaries()
                .into_iter()
                .min_by_key(|&index| cluster.replicas(&cluster.nodes[index].line.id));
            fewest.inspect(|&index| println!("Automatically selected master {}", cluster.nodes[index]))
        }
        _ => None,
    };
    let mut node = Node::connect(config, &new.0, new.1)?;
    ensure!(
        node.is_empty()?,
        "[ERR] Node {node} is not empty. Either the node already knows other nodes (check with CLUSTER NODES) or \
         contains some key in database 0."
    );
    // A master without the functions of the others would answer who calls them with an error.
    if primary.is_none() {
        println!(">>> Getting functions from cluster");
        if let Reply::Bulk(functions) = cluster.nodes[0].try_run(&["FUNCTION", "DUMP"])? {
            println!(">>> Send FUNCTION RESTORE to {node}");
            node.run(&[&b"FUNCTION"[..], b"RESTORE", &functions])?;
        }
    }
    println!(">>> Send CLUSTER MEET to node {node} to make it join the cluster.");
    meet(&mut node, &cluster.nodes[0])?;
    let id = node.line.id.clone();
    println!("Waiting for the cluster to join");
    until("the cluster does not know the new node", || {
        cluster.refresh()?;
        Ok(cluster
            .nodes
            .iter()
            .all(|node| node.others.iter().any(|line| line.id == id && !line.has("handshake"))))
    })?;
    if let Some(primary) = primary {
        println!(">>> Configure node as replica of {}.", cluster.nodes[primary]);
        replicate(&mut node, &cluster.nodes[primary].line.id)?;
    }
    println!("[OK] New node added correctly.");
    Ok(())
}

/// `--cluster del-node HOST:PORT ID`
pub(super) fn delete(cluster: &mut Cluster, id: &str) -> Result<()> {
    println!(">>> Removing node {id} from cluster {}", cluster.nodes[0]);
    let index = cluster.find(id).with_context(|| format!("[ERR] No such node ID {id}"))?;
    let mut node = cluster.nodes.remove(index);
    ensure!(node.line.slots.count() == 0, "[ERR] Node {node} is not empty! Reshard data away and try again.");
    println!(">>> Sending CLUSTER FORGET messages to the cluster...");
    let id = node.line.id.clone();
    for index in 0..cluster.nodes.len() {
        if cluster.nodes[index].line.primary.as_deref() == Some(&id) {
            // Its replicas go to whoever has the fewest.
            let fewest = cluster
                .primaries()
                .into_iter()
                .min_by_key(|&index| cluster.replicas(&cluster.nodes[index].line.id));
            let primary = cluster.nodes[fewest.context("[ERR] No other master is left")?].line.id.clone();
            println!(">>> {} as replica of {primary}", cluster.nodes[index]);
            replicate(&mut cluster.nodes[index], &primary)?;
        }
        cluster.nodes[index].run(&["CLUSTER", "FORGET", &id])?;
    }
    println!(">>> Sending CLUSTER RESET SOFT to the deleted node.");
    node.run(&["CLUSTER", "RESET", "SOFT"])?;
    Ok(())
}

/// `--cluster call HOST:PORT COMMAND …`
pub(super) fn call(cluster: &mut Cluster, flags: &Flags, args: &[Vec<u8>]) -> Result<()> {
    let words: Vec<_> = args.iter().map(|word| String::from_utf8_lossy(word)).collect();
    println!(">>> Calling {}", words.join(" "));
    // Whatever format was asked for; an error reply is one answer of many.
    let format = Format { reply_delimiter: Vec::new(), ..Format::of(Style::Raw) };
    for node in &mut cluster.nodes {
        let is_replica = node.line.is_replica();
        if (flags.only_masters && is_replica) || (flags.only_replicas && !is_replica) {
            continue;
        }
        let reply = node.try_run(args)?;
        println!("{node}: {}", String::from_utf8_lossy(&format.reply(&reply)));
    }
    Ok(())
}

/// `--cluster set-timeout HOST:PORT MILLISECONDS`
pub(super) fn set_timeout(cluster: &mut Cluster, ms: &str) -> Result<bool> {
    let time: u64 = ms.parse().ok().with_context(|| format!("*** {ms} is no number of milliseconds"))?;
    ensure!(
        time >= NODE_TIMEOUT_MS_MIN,
        "Setting a node timeout of less than {NODE_TIMEOUT_MS_MIN} milliseconds is a bad idea."
    );
    println!(">>> Reconfiguring node timeout in every cluster node...");
    let (mut good, mut bad) = (0, 0);
    for node in &mut cluster.nodes {
        let set = node.run(&["CONFIG", "SET", "cluster-node-timeout", ms]);
        // What is not written down would be the old one after a restart.
        match set.and_then(|_| node.run(&["CONFIG", "REWRITE"])) {
            Ok(_) => {
                good += 1;
                println!("*** New timeout set for {node}");
            }
            Err(error) => {
                bad += 1;
                println!("ERR setting node-timeout for {node}: {error:#}");
            }
        }
    }
    println!(">>> New node timeout set. {good} OK, {bad} ERR.");
    Ok(bad == 0)
}

/// `--cluster import HOST:PORT --cluster-from HOST:PORT`: the keys of a server that is no cluster.
pub(super) fn import(config: &Config, flags: &Flags, cluster: &mut Cluster) -> Result<()> {
    let from = flags
        .from
        .as_deref()
        .context("[ERR] Option '--cluster-from' is required for subcommand 'import'.")?;
    let (host, port) = super::place(from)?;
    println!(">>> Importing data from {host}:{port} to cluster {}", cluster.nodes[0]);
    ensure!(cluster.covered().missing().is_empty(), "*** Please fix your cluster problems before importing");
    let password = match (&flags.from_pass, flags.from_askpass) {
        (Some(password), _) => Some(password.clone()),
        (None, true) => Some(crate::endpoint::ask()?),
        (None, false) => None,
    };
    let source = Config {
        address: Address::Tcp(host, port),
        username: flags.from_user.clone(),
        password,
        ..config.clone()
    };
    let mut source = Connection::connect(&source).with_context(|| format!("the source at {from}"))?;
    let keys: i64 = source.query(&["DBSIZE"])?;
    println!("*** Importing {keys} keys from DB 0");
    let options = login(config.username.as_deref(), config.password.as_deref());
    let mut cursor = "0".to_string();
    loop {
        let (next, keys): (String, Vec<Vec<u8>>) = source.query(&["SCAN", &cursor, "COUNT", IMPORT_STEP])?;
        keys.iter().try_for_each(|key| import_key(&mut source, cluster, flags, &options, key))?;
        if next == "0" {
            return Ok(());
        }
        cursor = next;
    }
}

fn import_key(
    source: &mut Connection,
    cluster: &Cluster,
    flags: &Flags,
    login: &[String],
    key: &[u8],
) -> Result<()> {
    let slot = key_slot(key);
    let target = cluster.nodes.iter().find(|node| node.line.slots.contains(slot));
    let target = target.with_context(|| format!("nobody has slot {slot}"))?;
    let mut args: Vec<Vec<u8>> = migration(&target.line.host, target.line.port, flags.timeout)
        .into_iter()
        .map(String::into_bytes)
        .collect();
    args[3] = key.to_vec();
    let options = [("COPY", flags.copy), ("REPLACE", flags.replace)];
    args.extend(options.iter().filter(|(_, asked)| *asked).map(|(word, _)| word.as_bytes().to_vec()));
    args.extend(login.iter().map(|word| word.as_bytes().to_vec()));
    let name = String::from_utf8_lossy(key);
    match source.exchange(&args)? {
        Reply::Error(text) => bail!(
            "Source replied with error for {name}:\n{}\nA key that is there already is replaced with --cluster-replace",
            String::from_utf8_lossy(&text)
        ),
        _ => {
            println!("Migrating {name} to {target}: OK");
            Ok(())
        }
    }
}

/// `--cluster backup HOST:PORT FOLDER`: the data of each master, and a description of all nodes.
pub(super) fn backup(config: &Config, flags: &Flags, cluster: &mut Cluster, folder: &Path) -> Result<bool> {
    let well = check::check(cluster, flags, false, false)?;
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let nodes: Vec<serde_json::Value> = cluster
        .nodes
        .iter()
        .map(|node| {
            let line = &node.line;
            serde_json::json!({
                "name": line.id, "host": line.host, "port": line.port, "replicate": line.primary,
                "slots": line.slots.to_string(), "slots_count": line.slots.count(),
                "flags": line.flags.join(","), "current_epoch": line.epoch,
            })
        })
        .collect();
    for index in cluster.primaries() {
        let line = &cluster.nodes[index].line;
        let file = folder.join(format!("redis-node-{}-{}-{}.rdb", line.host, line.port, line.id));
        println!(">>> Node {} -> Saving RDB...", cluster.nodes[index]);
        let config = Config { address: Address::Tcp(line.host.clone(), line.port), ..config.clone() };
        replica::save_quietly(&file, Connection::connect(&config)?)?;
    }
    let path = folder.join("nodes.json");
    std::fs::write(&path, serde_json::to_string_pretty(&nodes)? + "\n")
        .with_context(|| path.display().to_string())?;
    println!("Saved cluster configuration and the data of each master in {}", folder.display());
    if !well {
        println!(
            "*** Cluster seems to have some problems, please be aware of it if you're going to restore this backup."
        );
    }
    Ok(well)
}
