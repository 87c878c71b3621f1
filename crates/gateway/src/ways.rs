//! Owns: which way each command goes: here, to the server behind, or nowhere, with the reason. Does not own: what
//! becomes of it on its way.

use weft_engine::forward::{Merge, SubscriptionKind, Way};
use weft_protocol::table::{CommandId, CommandSpec, flag};

const NO_CLUSTER: &str = "what is behind it is one server";
const NO_REPLICATION: &str = "replication has to do with one connection, and its connections are shared";
const OTHERS_STATE: &str = "it would be about a connection that others share";
const SAVING: &str = "ask the server behind it";

const FRONT: &str = "it shows itself as a cluster's only node: ask the nodes";
const ONE_DATABASE: &str = "a cluster has database 0";

/// Which way a command goes in front of a cluster.
#[must_use]
pub fn of_cluster(id: CommandId) -> Way {
    let spec = id.spec();
    let container = spec.container.map_or("", |container| container.spec().name);
    match (container, spec.name) {
        ("", "DEL" | "EXISTS" | "TOUCH" | "UNLINK") => Way::Scatter(Merge::Sum),
        ("", "MGET") => Way::Scatter(Merge::Places),
        ("", "DBSIZE") => Way::Everywhere(Merge::Sum),
        ("", "KEYS") => Way::Everywhere(Merge::Joined),
        ("", "RANDOMKEY") => Way::Everywhere(Merge::Any),
        ("", "FLUSHALL" | "FLUSHDB")
        | ("SCRIPT", "FLUSH" | "LOAD")
        | ("FUNCTION", "DELETE" | "FLUSH" | "LOAD" | "RESTORE") => Way::Everywhere(Merge::Same),
        ("SCRIPT", "EXISTS") => Way::Everywhere(Merge::Least),
        ("", "SCAN") => Way::Scan,
        ("", "READONLY" | "READWRITE")
        | ("CLUSTER", "INFO" | "KEYSLOT" | "MYID" | "MYSHARDID" | "NODES" | "SHARDS" | "SLOTS") => Way::Here,
        ("CLUSTER", name) if name != "HELP" => Way::Refused(FRONT),
        ("", "ASKING" | "CLUSTERSCAN") => Way::Refused(FRONT),
        ("", "MOVE" | "SWAPDB") => Way::Refused(ONE_DATABASE),
        ("PUBSUB", "CHANNELS" | "SHARDCHANNELS") => Way::Everywhere(Merge::Union),
        ("PUBSUB", "NUMSUB" | "SHARDNUMSUB") => Way::Everywhere(Merge::Counts),
        ("PUBSUB", "NUMPAT") => Way::Everywhere(Merge::Sum),
        ("SCRIPT" | "FUNCTION", "KILL") => Way::Everywhere(Merge::Killed),
        _ => of(id),
    }
}

/// Which way a command goes in front of one server.
#[must_use]
pub fn of(id: CommandId) -> Way {
    let spec = id.spec();
    match spec.container {
        Some(container) => subcommand(container.spec(), spec),
        None => command(spec),
    }
}

fn command(spec: &CommandSpec) -> Way {
    match spec.name {
        "AUTH" | "DISCARD" | "EXEC" | "HELLO" | "INFO" | "MONITOR" | "MULTI" | "QUIT" | "RESET"
        | "SHUTDOWN" | "UNWATCH" | "UNSUBSCRIBE" | "PUNSUBSCRIBE" | "SUNSUBSCRIBE" | "COMMAND" => Way::Here,
        "ECHO" | "PING" => Way::Anywhere,
        "SELECT" => Way::Select,
        "WATCH" => Way::Watch,
        "SUBSCRIBE" => Way::Subscribe(SubscriptionKind::Channel),
        "PSUBSCRIBE" => Way::Subscribe(SubscriptionKind::Pattern),
        "SSUBSCRIBE" => Way::Subscribe(SubscriptionKind::Shard),
        "WAIT" | "WAITAOF" => Way::Refused(OTHERS_STATE),
        "SYNC" | "PSYNC" | "REPLCONF" | "REPLICAOF" | "SLAVEOF" | "FAILOVER" => Way::Refused(NO_REPLICATION),
        "ASKING" | "READONLY" | "READWRITE" | "RESTORE-ASKING" | "CLUSTERSCAN" => Way::Refused(NO_CLUSTER),
        "SAVE" | "BGSAVE" | "BGREWRITEAOF" | "DEBUG" => Way::Refused(SAVING),
        _ if spec.flags & flag::BLOCKING != 0 => Way::Blocks,
        _ => Way::There,
    }
}

fn subcommand(container: &CommandSpec, spec: &CommandSpec) -> Way {
    match (container.name, spec.name) {
        ("CLIENT", "TRACKING") => Way::Track,
        ("CLIENT", "NO-TOUCH" | "NO-EVICT" | "IMPORT-SOURCE") => Way::Refused(OTHERS_STATE),
        ("ACL" | "CLIENT" | "COMMAND" | "COMMANDLOG" | "CONFIG" | "LATENCY" | "SLOWLOG", _) | (_, "HELP") => {
            Way::Here
        }
        ("CLUSTER" | "SENTINEL", _) => Way::Refused(NO_CLUSTER),
        ("MODULE", "LOAD" | "LOADEX" | "UNLOAD") | ("SCRIPT", "DEBUG") => Way::Refused(SAVING),
        // What runs would be before it on the shared connection.
        ("SCRIPT" | "FUNCTION", "KILL") => Way::Alone,
        _ => Way::There,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_protocol::table::{self, COMMANDS, policy};

    fn way(name: &str) -> Way {
        let (name, sub) = name.split_once(' ').map_or((name, None), |(name, sub)| (name, Some(sub)));
        let id = table::by_name(name.as_bytes()).unwrap();
        of(sub.map_or(id, |sub| table::subcommand(id, sub.as_bytes()).unwrap()))
    }

    #[test]
    fn keys_are_always_there() {
        for id in (0..COMMANDS.len() as u16).map(CommandId) {
            let spec = id.spec();
            // Shard channels stand where keys do.
            let is_key = spec.keys.0 != 0 && spec.group != "pubsub";
            let about_data = is_key || spec.flags & flag::WRITE != 0;
            if about_data && spec.container.is_none_or(|container| container.spec().name != "CLUSTER") {
                assert_ne!(of(id), Way::Here, "{}", spec.name);
            }
        }
    }

    #[test]
    fn what_changes_the_client_stays_here() {
        for id in (0..COMMANDS.len() as u16).map(CommandId) {
            if id.spec().policy & (policy::CHANGES_USER | policy::CONTROL) != 0 {
                assert_eq!(of(id), Way::Here, "{}", id.spec().name);
            }
        }
    }

    #[test]
    fn each_way_has_its_commands() {
        assert_eq!((way("GET"), way("EVALSHA"), way("SCAN")), (Way::There, Way::There, Way::There));
        assert_eq!((way("BLPOP"), way("XREADGROUP"), way("BZMPOP")), (Way::Blocks, Way::Blocks, Way::Blocks));
        assert_eq!(
            (way("SELECT"), way("WATCH"), way("SSUBSCRIBE")),
            (Way::Select, Way::Watch, Way::Subscribe(SubscriptionKind::Shard))
        );
        assert_eq!(
            (way("CONFIG GET"), way("CLIENT ID"), way("OBJECT HELP")),
            (Way::Here, Way::Here, Way::Here)
        );
        assert_eq!((way("SCRIPT KILL"), way("PUBSUB NUMSUB")), (Way::Alone, Way::There));
        for name in ["WAIT", "PSYNC", "CLUSTER SLOTS", "CLIENT NO-EVICT", "BGSAVE"] {
            assert!(matches!(way(name), Way::Refused(_)), "{name}");
        }
    }
}
