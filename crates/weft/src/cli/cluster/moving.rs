//! Owns how a slot goes from one node to another with its keys. Does not own which slot goes where.
//!
//! ```text
//! target  CLUSTER SETSLOT slot IMPORTING source
//! source  CLUSTER SETSLOT slot MIGRATING target     from here clients are sent after keys that have gone
//! source  CLUSTER GETKEYSINSLOT slot n  ─► MIGRATE target … KEYS …, until there are no more
//! target, source, all other primaries: CLUSTER SETSLOT slot NODE target
//! ```

use std::io::Write as _;

use anyhow::{Result, bail};
use weft_client::Reply;

use super::Flags;
use super::nodes::{Cluster, Node};

/// How keys are moved.
pub(super) struct Moving<'a> {
    pub(super) flags: &'a Flags,
    /// A key that the target has, too, becomes the source's.
    pub(super) replaces: bool,
    /// What is shown for each sending of keys.
    pub(super) shows_keys: bool,
}

impl Moving<'_> {
    /// Moves a slot as a whole, and tells all primaries.
    pub(super) fn slot(&self, cluster: &mut Cluster, slot: u16, from: usize, to: usize) -> Result<()> {
        let (source, target) = (cluster.nodes[from].line.id.clone(), cluster.nodes[to].line.id.clone());
        self.say(cluster, slot, from, to);
        set(&mut cluster.nodes[to], slot, &["IMPORTING", &source])?;
        set(&mut cluster.nodes[from], slot, &["MIGRATING", &target])?;
        self.keys_of(cluster, slot, from, to)?;
        give(cluster, slot, from, to)?;
        if self.shows_keys {
            println!();
        }
        cluster.nodes[from].line.slots.remove(slot);
        cluster.nodes[to].line.slots.insert(slot);
        Ok(())
    }

    /// Moves the keys alone; who has the slot stays as it is.
    pub(super) fn keys(&self, cluster: &mut Cluster, slot: u16, from: usize, to: usize) -> Result<()> {
        self.say(cluster, slot, from, to);
        self.keys_of(cluster, slot, from, to)?;
        if self.shows_keys {
            println!();
        }
        Ok(())
    }

    fn say(&self, cluster: &Cluster, slot: u16, from: usize, to: usize) {
        if self.shows_keys {
            print!("Moving slot {slot} from {} to {}: ", cluster.nodes[from], cluster.nodes[to]);
        }
    }

    fn keys_of(&self, cluster: &mut Cluster, slot: u16, from: usize, to: usize) -> Result<()> {
        let target = cluster.nodes[to].line.clone();
        let source = &mut cluster.nodes[from];
        let (slot, count) = (slot.to_string(), self.flags.pipeline.to_string());
        loop {
            let Reply::Array(keys) = source.run(&["CLUSTER", "GETKEYSINSLOT", &slot, &count])? else {
                bail!("{source} answers GETKEYSINSLOT with no list")
            };
            if keys.is_empty() {
                return Ok(());
            }
            let keys: Vec<Vec<u8>> = keys
                .into_iter()
                .filter_map(|key| if let Reply::Bulk(key) = key { Some(key) } else { None })
                .collect();
            self.migrate(source, &target.host, target.port, &keys)?;
            if self.shows_keys {
                print!("{}", ".".repeat(keys.len()));
                std::io::stdout().flush()?;
            }
        }
    }

    /// Sends keys to another server.
    pub(super) fn migrate(&self, source: &mut Node, host: &str, port: u16, keys: &[Vec<u8>]) -> Result<()> {
        let mut args = migration(host, port, self.flags.timeout);
        if self.replaces {
            args.push("REPLACE".into());
        }
        args.extend(login(source.config.username.as_deref(), source.config.password.as_deref()));
        let mut args: Vec<Vec<u8>> = args.into_iter().map(String::into_bytes).collect();
        args.push(b"KEYS".to_vec());
        args.extend_from_slice(keys);
        match source.try_run(&args)? {
            Reply::Error(text)
                if text.starts_with(b"BUSYKEY") || text.windows(8).any(|part| part == b"BUSYKEY ") =>
            {
                bail!(
                    "*** {host}:{port} has a key, too, that is to go there. --cluster-replace takes the one that comes"
                )
            }
            Reply::Error(text) => {
                bail!("Node {source} replied with error:\n{}", String::from_utf8_lossy(&text))
            }
            _ => Ok(()),
        }
    }
}

/// `MIGRATE host port "" 0 timeout`
pub(super) fn migration(host: &str, port: u16, timeout_ms: u64) -> Vec<String> {
    ["MIGRATE", host, &port.to_string(), "", "0", &timeout_ms.to_string()].map(String::from).to_vec()
}

/// What MIGRATE is told so that it can log in.
pub(super) fn login(user: Option<&str>, password: Option<&str>) -> Vec<String> {
    match (user, password) {
        (Some(user), Some(password)) => ["AUTH2", user, password].map(String::from).to_vec(),
        (None, Some(password)) => ["AUTH", password].map(String::from).to_vec(),
        _ => Vec::new(),
    }
}

/// `CLUSTER SETSLOT slot …`
pub(super) fn set(node: &mut Node, slot: u16, state: &[&str]) -> Result<()> {
    let slot = slot.to_string();
    let args: Vec<&str> = ["CLUSTER", "SETSLOT", &slot].into_iter().chain(state.iter().copied()).collect();
    node.run(&args).map(drop)
}

/// Tells everybody who has the slot now: first the new owner, so that no moment has none.
pub(super) fn give(cluster: &mut Cluster, slot: u16, from: usize, to: usize) -> Result<()> {
    let id = cluster.nodes[to].line.id.clone();
    set(&mut cluster.nodes[to], slot, &["NODE", &id])?;
    let (slot, mut rest) = (slot.to_string(), cluster.primaries());
    rest.retain(|&index| index != to);
    rest.sort_by_key(|&index| index != from);
    for index in rest {
        let node = &mut cluster.nodes[index];
        if let Reply::Error(text) = node.try_run(&["CLUSTER", "SETSLOT", &slot, "NODE", &id])? {
            // Who has given its last slot away may be a replica of the new owner by now.
            let text = String::from_utf8_lossy(&text).into_owned();
            if !text.contains("Please use SETSLOT only with") {
                bail!("Node {node} replied with error:\n{text}");
            }
        }
    }
    Ok(())
}
