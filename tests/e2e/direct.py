"""Owns: what clients of a cluster see when a primary is killed or stands still, through a gateway beside redis-py's own cluster
client, under the same load: both counts of errors, by their kinds. Does not own: whether what they were told is true
(`test_gateway_cluster`).

`direct.py` prints a line for each; WEFT names the program. Each side has a cluster of its own, so that neither sees what the other
has left behind."""

import argparse
import collections
import os
import re
import signal
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry

from behind import gateway
from nodes import NOTICED_MS, Cluster, wait_for
from server import halt

SLOT_OF_B = 3300
KEYS = [f"{{b}}{number}" for number in range(4)] + [f"k{number}" for number in range(4)]
CLIENTS = 8


class Load:
    """Clients that count, each with what `connect` gives it."""

    def __init__(self, connect):
        self.done, self.errors = 0, collections.Counter()
        self.last = collections.defaultdict(float)
        self.lock, self.over = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(connect, number), daemon=True) for number in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self, connect, number):
        client = None
        while not self.over.is_set():
            key = KEYS[number % len(KEYS)]
            for work in (lambda c: c.incr(key), lambda c: c.get(key), lambda c: c.mget_all(KEYS)):
                try:
                    client = client or connect()
                    work(client)
                    failure = None
                except (redis.RedisError, OSError) as error:
                    failure = kind(error)
                with self.lock:
                    if failure is None:
                        self.done += 1
                        self.last[key] = time.monotonic()
                    else:
                        self.errors[failure] += 1

    def is_going_on(self):
        """Whether every client has been answered by someone since it was asked."""
        since = time.monotonic()
        wait_for(lambda: all(self.last[key] > since for key in KEYS[:CLIENTS]))
        return True

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


def kind(error):
    """An error without what is another one each time."""
    text = re.sub(r"127\.0\.0\.1:\d+|\d+", "N", str(error))
    return f"{type(error).__name__}: {text[:90]}"


class Plain(redis.Redis):
    def mget_all(self, keys):
        return self.mget(keys)


class Knows(RedisCluster):
    def mget_all(self, keys):
        return self.mget_nonatomic(keys)


def through(port, _):
    # What is tried again, the gateway tries.
    return lambda: Plain(port=port, socket_timeout=60, retry=Retry(NoBackoff(), 0))


def directly(port, seconds):
    return lambda: Knows(host="127.0.0.1", port=port, socket_timeout=seconds, socket_connect_timeout=seconds)


def run(is_gateway, is_killed, seconds):
    """One side's load while a primary goes: how much was done, and the errors. Either waits so long for a node that says nothing."""
    cluster, server = Cluster(NOTICED_MS), None
    try:
        port = cluster.nodes[1].port
        if is_gateway:
            server = gateway(cluster.url(), "--upstream-timeout", str(seconds * 1000))
            port = server.port
        load = Load((through if is_gateway else directly)(port, seconds))
        load.is_going_on()
        lost = cluster.primary_of(SLOT_OF_B)
        heir = cluster.replica_of(lost)
        if is_killed:
            lost.kill()
        else:
            halt(lost)
        try:
            wait_for(heir.is_primary)
            load.is_going_on()
        finally:
            if not is_killed:
                os.kill(lost.process.pid, signal.SIGCONT)
        load.is_going_on()
        load.stop()
        return load.done, load.errors
    finally:
        if server:
            server.stop()
        cluster.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=10, help="how long either waits for a node that says nothing")
    flags = parser.parse_args()
    for _ in range(flags.rounds):
        for is_killed in (True, False):
            for is_gateway in (True, False):
                done, errors = run(is_gateway, is_killed, flags.seconds)
                what = "killed" if is_killed else "silent"
                who = "gateway" if is_gateway else "direct"
                print(f"{what} {who}: {sum(errors.values())} errors beside {done} answers", flush=True)
                for name, count in errors.most_common():
                    print(f"    {count} {name}", flush=True)


if __name__ == "__main__":
    main()
