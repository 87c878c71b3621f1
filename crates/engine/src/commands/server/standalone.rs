//! Owns: what a server without replicas and without a cluster answers to commands about them, and MONITOR. Does not
//! own: WAIT.

use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::keys;
use crate::reply::ReplySink;
use crate::session::client_flag;

pub(crate) const LIST: &[Entry] = &[
    ("MONITOR", Scope::None, monitor),
    ("ROLE", Scope::None, role),
    ("REPLICAOF", Scope::None, replicaof),
    ("SLAVEOF", Scope::None, replicaof),
    ("FAILOVER", Scope::None, failover),
    ("SYNC", Scope::None, no_replicas),
    ("PSYNC", Scope::None, no_replicas),
    ("REPLCONF", Scope::None, no_replicas),
    ("READONLY", Scope::None, |context, args, sink| readonly(context, args, sink, true)),
    ("READWRITE", Scope::None, |context, args, sink| readonly(context, args, sink, false)),
    ("SENTINEL HELP", Scope::None, crate::commands::common::help::help),
    ("ASKING", Scope::None, no_cluster),
    ("CLUSTERSCAN", Scope::None, no_cluster),
    ("CLUSTER KEYSLOT", Scope::None, keyslot),
    ("CLUSTER ADDSLOTS", Scope::None, no_cluster),
    ("CLUSTER ADDSLOTSRANGE", Scope::None, no_cluster),
    ("CLUSTER BUMPEPOCH", Scope::None, no_cluster),
    ("CLUSTER CANCELSLOTMIGRATIONS", Scope::None, no_cluster),
    ("CLUSTER COUNT-FAILURE-REPORTS", Scope::None, no_cluster),
    ("CLUSTER COUNTKEYSINSLOT", Scope::None, no_cluster),
    ("CLUSTER DELSLOTS", Scope::None, no_cluster),
    ("CLUSTER DELSLOTSRANGE", Scope::None, no_cluster),
    ("CLUSTER FAILOVER", Scope::None, no_cluster),
    ("CLUSTER FLUSHSLOT", Scope::None, no_cluster),
    ("CLUSTER FLUSHSLOTS", Scope::None, no_cluster),
    ("CLUSTER FORGET", Scope::None, no_cluster),
    ("CLUSTER GETKEYSINSLOT", Scope::None, no_cluster),
    ("CLUSTER GETSLOTMIGRATIONS", Scope::None, no_cluster),
    ("CLUSTER HELP", Scope::None, cluster_help),
    ("CLUSTER INFO", Scope::None, super::front::info),
    ("CLUSTER LINKS", Scope::None, no_cluster),
    ("CLUSTER MEET", Scope::None, no_cluster),
    ("CLUSTER MIGRATESLOTS", Scope::None, no_cluster),
    ("CLUSTER MYID", Scope::None, super::front::id),
    ("CLUSTER MYSHARDID", Scope::None, super::front::id),
    ("CLUSTER NODES", Scope::None, super::front::nodes),
    ("CLUSTER REPLICAS", Scope::None, no_cluster),
    ("CLUSTER REPLICATE", Scope::None, no_cluster),
    ("CLUSTER RESET", Scope::None, no_cluster),
    ("CLUSTER SAVECONFIG", Scope::None, no_cluster),
    ("CLUSTER SET-CONFIG-EPOCH", Scope::None, no_cluster),
    ("CLUSTER SETSLOT", Scope::None, no_cluster),
    ("CLUSTER SHARDS", Scope::None, super::front::shards),
    ("CLUSTER SLAVES", Scope::None, no_cluster),
    ("CLUSTER SLOT-STATS", Scope::None, no_cluster),
    ("CLUSTER SLOTS", Scope::None, super::front::slots),
    ("CLUSTER SYNCSLOTS", Scope::None, no_cluster),
];

fn no_cluster(_: &mut Context<'_, '_>, _: &Args<'_>, _: &mut ReplySink<'_>) -> Result {
    Err(Error::err("This instance has cluster support disabled"))
}

/// Of what the table has under CLUSTER this server answers little; what it refuses is not offered.
fn cluster_help(_: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let lines = [
        "KEYSLOT <key>",
        "    The slot that a key would have in a cluster.",
        "INFO, NODES, SLOTS, SHARDS and all others",
        "    Are refused: this server is no node of a cluster.",
    ];
    crate::commands::common::help::answer(sink, "CLUSTER", &lines);
    Ok(())
}

/// A replica's first words. There is no log yet that could be sent.
fn no_replicas(_: &mut Context<'_, '_>, _: &Args<'_>, _: &mut ReplySink<'_>) -> Result {
    Err(Error::err(
        "this server does not replicate: it sends neither its data nor its changes. weft export rdb FILE writes its data, \
         MONITOR shows what it is sent",
    ))
}

fn keyslot(_: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.int(keys::key_slot(args.bytes(2)).into());
    Ok(())
}

fn readonly(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>, on: bool) -> Result {
    context.session.info.set_flag(client_flag::READONLY, on);
    sink.ok();
    Ok(())
}

fn role(_: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.array(3);
    sink.bulk(b"master");
    sink.int(0);
    sink.array(0);
    Ok(())
}

/// NO ONE is what the server is anyway; another server it cannot follow.
fn replicaof(_: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if args.is(1, "NO") && args.is(2, "ONE") {
        sink.ok();
        return Ok(());
    }
    let port = args.int(2).ok().filter(|port| (0..=65_535).contains(port));
    let port = port.ok_or_else(|| Error::err("Invalid master port"))?;

    let host = String::from_utf8_lossy(args.bytes(1)).into_owned();
    Err(Error::err(format!("this server does not replicate: it cannot follow {host}:{port}")))
}

fn failover(_: &mut Context<'_, '_>, args: &Args<'_>, _: &mut ReplySink<'_>) -> Result {
    if args.len() == 2 && args.is(1, "ABORT") {
        return Err(Error::err("No failover in progress."));
    }
    check_failover(args)?;
    Err(Error::err("FAILOVER requires connected replicas."))
}

/// The arguments of FAILOVER are read before it is seen that there is no replica.
fn check_failover(args: &Args<'_>) -> Result {
    let (mut at, mut to, mut force, mut timeout) = (1, false, false, false);
    while at < args.len() {
        let more = args.len() - at - 1;
        if !timeout && more >= 1 && args.is(at, "TIMEOUT") {
            if args.int(at + 1)? <= 0 {
                return Err(Error::err("FAILOVER timeout must be greater than 0"));
            }
            (timeout, at) = (true, at + 2);
        } else if !to && more >= 2 && args.is(at, "TO") {
            args.int(at + 2)?;
            (to, at) = (true, at + 3);
        } else if !force && args.is(at, "FORCE") {
            (force, at) = (true, at + 1);
        } else {
            return Err(ErrorCode::Syntax.into());
        }
    }
    Ok(())
}

fn monitor(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if !context.may_block() {
        return Err(Error::err("MONITOR isn't allowed for DENY BLOCKING client"));
    }
    context.engine.monitors.join(context.session, &context.engine.special);
    sink.ok();
    Ok(())
}
