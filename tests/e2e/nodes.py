"""Owns: a cluster of Valkey's or Redis's own servers for tests: three primaries and three replicas on ports of the moment. Does not
own: what is tested."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from server import REPLY_SECONDS, Wire, free_port, request

VALKEY = "9.1.2"
CACHE = pathlib.Path(os.environ.get("WEFT_CACHE") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "weft")
BUILT = CACHE / f"valkey-{VALKEY}" / "source" / "src" / "valkey-server"
SLOTS = 16_384
PRIMARIES = 3
# How long a node may say nothing until the others take it for lost: where none is, no busy machine may look like that. Nodes vote
# for a primary's replica once in twice this time, and what they have voted for in vain is asked again until REPLY_SECONDS.
PATIENT_MS = 60_000
NOTICED_MS = 5_000
# For so many of these times a Redis takes votes that it has won by for votes of the next election: it becomes a primary without one,
# and is none a moment later (https://github.com/redis/redis/pull/8753). That is waited for: where WEFT_NODE has named it, by hand, the
# time is shorter.
VOTES_LAST = 2
REDIS_PATIENT_MS = 10_000
# A failover that is asked for is given up after five seconds.
FAILOVER_SECONDS = 6


def program():
    """What WEFT_NODE names; else Valkey as scripts/valkey-driver has built it, or what is installed; nothing if neither is there."""
    if named := os.environ.get("WEFT_NODE"):
        assert shutil.which(named), f"WEFT_NODE names no program: {named}"
        return shutil.which(named)
    if BUILT.exists():
        return str(BUILT)
    return shutil.which("valkey-server") or shutil.which("redis-server")


def is_redis():
    return not subprocess.run([program(), "--version"], capture_output=True, text=True, check=True).stdout.startswith("Valkey")


needs_nodes = unittest.skipUnless(program(), "neither valkey-server nor redis-server is there: scripts/valkey-driver builds the first")


def wait_for(holds, seconds=REPLY_SECONDS):
    """Until something holds that nothing tells of: bounded, and asked for again and again."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not come about"
        time.sleep(0.02)


class Node:
    """One server."""

    def __init__(self, folder, timeout_ms, certificates, is_logged):
        self.folder, self.timeout_ms, self.certificates, self.is_logged = folder, timeout_ms, certificates, is_logged
        self.port = free_port()
        self.tls_port = free_port() if certificates else None
        self.bus = free_port()
        self.start()

    def start(self):
        # Valkey is built without TLS.
        words = [
            shutil.which("redis-server") if self.certificates else program(), "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--dir", self.folder, "--cluster-enabled", "yes",
            "--cluster-port", self.bus, "--cluster-config-file", f"nodes-{self.port}.conf", "--cluster-node-timeout", self.timeout_ms,
            "--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0",
        ]
        if self.is_logged:
            words += ["--appendonly", "yes", "--appendfsync", "always", "--appenddirname", self.log_folder(), "--auto-aof-rewrite-percentage", "0"]
        if self.certificates:
            words += ["--tls-port", self.tls_port, "--tls-cluster", "yes", "--tls-replication", "yes", *self.certificates]
        self.process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)
        wait_for(self.answers)

    def log_folder(self):
        return f"log-{self.port}"

    def has_run(self, *words):
        """How often it has run a request that it logs, by its log; it has answered nothing that is not there."""
        files = (pathlib.Path(self.folder) / self.log_folder()).glob("*.incr.aof")
        return sum(file.read_bytes().count(request(*words)) for file in files)

    def answers(self):
        assert self.process.poll() is None, "a node has ended"
        try:
            return self.call("PING") == "+PONG"
        except OSError:
            return False

    def connect(self):
        return Wire(self.port)

    def call(self, *words):
        with self.connect() as wire:
            return wire.call(*words)

    def info(self, section):
        return dict(line.partition(":")[::2] for line in self.call("INFO", section).splitlines())

    def is_primary(self):
        return self.info("replication")["role"] == "master"

    def id(self):
        return self.call("CLUSTER", "MYID")

    def kill(self):
        self.process.kill()
        self.process.wait(REPLY_SECONDS)


class Cluster:
    """Three primaries, each with a replica. With an authority for certificates they speak TLS, beside what they speak without. Where
    they are `logged` each write is in a file before it is answered."""

    def __init__(self, timeout_ms=PATIENT_MS, authority=None, is_logged=False):
        self.folder = tempfile.TemporaryDirectory()
        self.is_tls = authority is not None
        self.keeps_votes = self.is_tls or is_redis()
        if self.keeps_votes and os.environ.get("WEFT_NODE"):
            timeout_ms = min(timeout_ms, REDIS_PATIENT_MS)
        self.timeout_ms = timeout_ms
        # Nodes that have become primaries, and when.
        self.elected = {}
        certificates = authority.flags(*authority.sign("node")) if self.is_tls else ()
        self.nodes = [Node(self.folder.name, timeout_ms, certificates, is_logged) for _ in range(2 * PRIMARIES)]
        first = self.nodes[0]
        primaries, replicas = self.nodes[:PRIMARIES], self.nodes[PRIMARIES:]
        for number, node in enumerate(primaries):
            begin, end = SLOTS * number // PRIMARIES, SLOTS * (number + 1) // PRIMARIES - 1
            assert node.call("CLUSTER", "ADDSLOTSRANGE", begin, end) == "+OK"
            assert node.call("CLUSTER", "SET-CONFIG-EPOCH", number + 1) == "+OK"
        for node in self.nodes[1:]:
            assert node.call("CLUSTER", "MEET", "127.0.0.1", first.port, first.bus) == "+OK"
        wait_for(lambda: all(len(node.call("CLUSTER", "NODES").splitlines()) == len(self.nodes) for node in self.nodes))
        for primary, replica in zip(primaries, replicas, strict=True):
            wait_for(lambda primary=primary, replica=replica: replica.call("CLUSTER", "REPLICATE", primary.id()) == "+OK")
        self.wait_until_well()

    def is_well(self):
        alive = [node for node in self.nodes if node.process.poll() is None]
        for node in alive:
            if "cluster_state:ok" not in node.call("CLUSTER", "INFO"):
                return False
            if not node.is_primary() and node.info("replication")["master_link_status"] != "up":
                return False
        return True

    def wait_until_well(self):
        wait_for(self.is_well, 2 * REPLY_SECONDS)

    def url(self):
        primaries = self.nodes[:PRIMARIES]
        if self.is_tls:
            return "cluster+tls://" + ",".join(f"127.0.0.1:{node.tls_port}" for node in primaries)
        return "cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in primaries)

    def primary_of(self, slot):
        """Who has a slot, by what the nodes say."""
        alive = next(node for node in self.nodes if node.process.poll() is None)
        for begin, end, (_, port, *_), *_ in alive.call("CLUSTER", "SLOTS"):
            if begin <= slot <= end:
                return next(node for node in self.nodes if node.port == port)
        raise AssertionError(f"nobody has slot {slot}")

    def replica_of(self, primary):
        wanted = primary.port
        return next(
            node
            for node in self.nodes
            if node is not primary and node.process.poll() is None and node.info("replication").get("master_port") == str(wanted)
        )

    def fail_over(self, primary):
        """Its replica takes its place, and loses nothing. The new primary."""
        replica = self.replica_of(primary)
        wait_for(lambda: not self.keeps_votes or time.monotonic() > self.elected.get(replica, 0) + VOTES_LAST * self.timeout_ms / 1000 + 1)
        wait_for(lambda: self.has_taken_over(replica))
        self.elected[replica] = time.monotonic()
        return replica

    def has_taken_over(self, replica):
        replica.call("CLUSTER", "FAILOVER")
        deadline = time.monotonic() + FAILOVER_SECONDS
        while not replica.is_primary() and time.monotonic() < deadline:
            time.sleep(0.02)
        return replica.is_primary()

    def flush(self):
        for node in self.nodes:
            if node.process.poll() is None and node.is_primary():
                assert node.call("FLUSHALL") == "+OK"

    def move_slot(self, slot, target):
        """The old way: key by key."""
        source = self.primary_of(slot)
        assert target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id()) == "+OK"
        assert source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id()) == "+OK"
        while keys := source.call("CLUSTER", "GETKEYSINSLOT", slot, 10):
            reply = source.call("MIGRATE", "127.0.0.1", target.tls_port or target.port, "", 0, REPLY_SECONDS * 1000, "KEYS", *keys)
            assert reply in ("+OK", "+NOKEY"), reply
        target_id = target.id()
        for node in (target, source, *self.nodes):
            if node.process.poll() is None and node.is_primary():
                assert node.call("CLUSTER", "SETSLOT", slot, "NODE", target_id) == "+OK"

    def stop(self):
        for node in self.nodes:
            if node.process.poll() is None:
                node.process.kill()
            node.process.wait(REPLY_SECONDS)
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
