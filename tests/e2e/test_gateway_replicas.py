"""Owns: a gateway that reads from replicas: how old what they answer may be, who is answered by primaries only, and that no update is
lost by it. Does not own: which node runs what else (`test_gateway_cluster`)."""

import collections
import os
import signal
import threading
import time
import unittest

from behind import PATIENT, Busy, gateway
from nodes import Cluster, needs_nodes, wait_for
from server import REPLY_SECONDS, halt, request

SLOT_OF_B = 3300
# How often slots and nodes change places, and rounds between two changes.
ROUNDS = int(os.environ.get("WEFT_ROUNDS", "2"))
UPDATES = 400
CLIENTS = 8
BOUND_MS = 2_000
# How long values are written that replicas are read behind.
REPLICA_SECONDS = 3


@needs_nodes
class FromReplicas(unittest.TestCase):
    """Reads by replicas that are fresh enough, and by primaries where none is."""

    bound_seconds = 0.3

    def setUp(self):
        self.cluster = self.enterContext(Cluster())
        self.primary = self.cluster.primary_of(SLOT_OF_B)
        self.replica = self.cluster.replica_of(self.primary)

    def start(self, *flags):
        return self.enterContext(gateway(self.cluster.url(), *flags, "--replica-reads", str(int(self.bound_seconds * 1000))))

    def reads(self):
        stats = self.replica.info("commandstats").get("cmdstat_get", "calls=0,")
        return int(stats.partition("calls=")[2].partition(",")[0])

    def until_replica_answers(self, wire):
        self.assertEqual(wire.call("SET", "b", "0"), "+OK")
        before = self.reads()
        wait_for(lambda: wire.call("GET", "b") == "0" and self.reads() > before)

    def test_a_replica_that_stands_still_is_left(self):
        """Long before a primary would be: its reads go to the primary, which is well."""
        with self.start(*PATIENT).connect() as wire:
            self.until_replica_answers(wire)
            halt(self.replica)
            try:
                with self.primary.connect() as direct:
                    self.assertEqual(direct.call("SET", "b", "1"), "+OK")
                for _ in range(50):
                    self.assertEqual(wire.call("GET", "b"), "1")
            finally:
                os.kill(self.replica.process.pid, signal.SIGCONT)

    def test_who_watches_keys_reads_what_its_primary_has(self):
        with self.start(*PATIENT).connect() as wire:
            self.until_replica_answers(wire)
            self.assertEqual(wire.call("WATCH", "b"), "+OK")
            before = self.reads()
            for _ in range(50):
                self.assertEqual(wire.call("GET", "b"), "0")
            self.assertEqual(self.reads(), before)
            self.assertEqual(wire.call("UNWATCH"), "+OK")
            self.until_replica_answers(wire)

    def test_a_replica_that_is_killed_is_passed_over(self):
        with self.start(*PATIENT).connect() as wire:
            self.until_replica_answers(wire)
            self.replica.kill()
            self.assertEqual([wire.call("GET", "b") for _ in range(50)], ["0"] * 50)

    def test_no_reply_is_older_than_the_bound(self):
        """While the replica loses its primary again and again, and answers old values to whoever asks."""
        written, failures, over = [], [], threading.Event()
        server = self.start(*PATIENT)

        def write():
            try:
                end, number = time.monotonic() + REPLICA_SECONDS, 0
                with server.connect() as wire, self.primary.connect() as direct:
                    while time.monotonic() < end:
                        number += 1
                        assert wire.call("SET", "b", number) == "+OK"
                        written.append((time.monotonic(), number))
                        if number % 1_000 == 0:
                            direct.call("CLIENT", "KILL", "TYPE", "replica")
            except Exception as failure:  # The test fails by it, whatever it is.
                failures.append(repr(failure))
            over.set()

        def read():
            known = 0
            try:
                with server.connect() as wire:
                    while not over.is_set():
                        begun = time.monotonic()
                        got = int(wire.call("GET", "b") or 0)
                        while known < len(written) and written[known][0] <= begun - self.bound_seconds:
                            known += 1
                        if known and got < written[known - 1][1]:
                            failures.append(f"{got} was read {self.bound_seconds} s behind {written[known - 1]}")
                            return
            except Exception as failure:
                failures.append(repr(failure))

        with server.connect() as wire:
            self.until_replica_answers(wire)
        before = self.reads()
        threads = [threading.Thread(target=work, daemon=True) for work in (write, read, read)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(REPLY_SECONDS)
            self.assertFalse(thread.is_alive())
        self.assertEqual(failures, [])
        self.assertGreater(self.reads(), before)


class Updating(Busy):
    """Clients that count up what they watch, as whoever updates a value: each with GET between WATCH and EXEC, some keys watched more
    than once, and EXEC whatever WATCH was answered."""

    def __init__(self, port, keys):
        self.keys, self.told = keys, collections.Counter()
        super().__init__(port, CLIENTS)

    def turn(self, wire, number):
        key = self.keys[number % len(self.keys)]
        for _ in range(1 + self.rounds % 3):
            wire.call("WATCH", key)
        value = int(wire.call("GET", key) or 0)
        wire.send(request("MULTI") + request("SET", key, value + 1) + request("EXEC"))
        replies = [wire.reply() for _ in range(3)]
        assert replies[2] in (None, ["+OK"]), replies
        with self.lock:
            self.told[key] += replies[2] is not None
            self.rounds += 1


@needs_nodes
class Updates(unittest.TestCase):
    """While slots move and nodes change places, and reads may go to replicas."""

    def test_no_update_is_lost(self):
        cluster = self.enterContext(Cluster())
        server = self.enterContext(gateway(cluster.url(), *PATIENT, "--replica-reads", str(BOUND_MS)))
        updating = Updating(server.port, ["{b}1", "{b}2"])
        for turn in range(4 * ROUNDS):
            updating.go_on(UPDATES)
            source = cluster.primary_of(SLOT_OF_B)
            if turn % 4 < 3:
                cluster.move_slot(SLOT_OF_B, next(node for node in cluster.nodes if node is not source and node.is_primary()))
                wait_for(lambda source=source: cluster.primary_of(SLOT_OF_B) is not source)
            else:
                cluster.fail_over(source)
                wait_for(cluster.is_well)
        updating.stop()
        with server.connect() as wire:
            self.assertEqual({key: int(wire.call("GET", key)) for key in updating.told}, dict(updating.told))


if __name__ == "__main__":
    unittest.main()
