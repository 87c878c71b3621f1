//! Owns: what CLUSTER says of a gateway in front of a cluster: it is one whose only node is the gateway itself, so that
//! clients which know clusters send it everything. Does not own: the cluster behind (`weft-gateway`).

use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::reply::ReplySink;

/// The last slot.
const LAST: i64 = 16_383;

/// The only node: its id, and where it is, as the client has come to it. An error where there is no cluster behind.
fn only_node(context: &Context<'_, '_>) -> Result<(String, String, i64)> {
    if !context.engine.is_cluster() {
        return Err(Error::err("This instance has cluster support disabled"));
    }
    let id = context.engine.facts.run_id.clone();
    let local = &*context.session.info.connection.local;
    let split = local.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    Ok(match split {
        Some((host, port)) => (id, host.trim_matches(['[', ']']).to_string(), port),
        None => (id, String::new(), i64::from(*context.engine.facts.port.read())),
    })
}

pub(super) fn slots(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (id, host, port) = only_node(context)?;
    sink.array(1);
    sink.array(3);
    sink.int(0);
    sink.int(LAST);
    sink.array(4);
    sink.bulk(host.as_bytes());
    sink.int(port);
    sink.bulk(id.as_bytes());
    sink.array(0);
    Ok(())
}

pub(super) fn shards(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (id, host, port) = only_node(context)?;
    sink.array(1);
    sink.map(2);
    sink.bulk(b"slots");
    sink.array(2);
    sink.int(0);
    sink.int(LAST);
    sink.bulk(b"nodes");
    sink.array(1);
    sink.map(7);
    for (name, value) in [("id", &*id), ("ip", &host), ("endpoint", &host), ("role", "master")] {
        sink.bulk(name.as_bytes());
        sink.bulk(value.as_bytes());
    }
    sink.bulk(b"port");
    sink.int(port);
    sink.bulk(b"replication-offset");
    sink.int(0);
    sink.bulk(b"health");
    sink.bulk(b"online");
    Ok(())
}

pub(super) fn nodes(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (id, host, port) = only_node(context)?;
    let line = format!("{id} {host}:{port}@{port} myself,master - 0 0 1 connected 0-{LAST}\n");
    sink.bulk(line.as_bytes());
    Ok(())
}

pub(super) fn info(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    only_node(context)?;
    let text = format!(
        "cluster_enabled:1\r\ncluster_state:ok\r\ncluster_slots_assigned:{0}\r\ncluster_slots_ok:{0}\r\n\
         cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:1\r\ncluster_size:1\r\n\
         cluster_current_epoch:1\r\ncluster_my_epoch:1\r\n",
        LAST + 1
    );
    sink.bulk(text.as_bytes());
    Ok(())
}

pub(super) fn id(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (id, ..) = only_node(context)?;
    sink.bulk(id.as_bytes());
    Ok(())
}
