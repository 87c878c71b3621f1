"""Owns: a gateway in front of a cluster: which node runs what, what is made of several replies, and what clients see while slots
move and nodes fail. Does not own: what holds in front of any server (`test_gateway`)."""

import collections
import os
import signal
import struct
import time
import unittest

try:
    import redis
except ImportError:
    redis = None

from behind import PATIENT, BeforeMany, Busy, gateway
from nodes import NOTICED_MS, PATIENT_MS, Cluster, needs_nodes, wait_for
from server import Closed, Respb, argv, halt, request
from toxic import is_linearizable

# Keys whose slots are of the first, second and third primary, as they begin; and one of the first's slot.
KEYS = ("b", "c", "a")
SLOT_OF_B = 3300
# How often slots and nodes change places; `make test-gateway-long` says more.
ROUNDS = int(os.environ.get("WEFT_ROUNDS", "2"))
COUNTERS = 8
CLIENTS = 8
SHORT_MS = 2_000
BLOCKED_SECONDS = 3
OWED_BYTES = 100_000


def connection_lost(reply):
    return isinstance(reply, str) and reply.startswith("-ERR the connection to the server behind the gateway was lost")


@needs_nodes
class BehindCluster(BeforeMany, unittest.TestCase):
    def setUp(self):
        self.cluster.flush()

    def test_keys_are_where_their_slots_are(self):
        for wire in (self.connect(), self.connect(3)):
            wire.send(b"".join(request("SET", f"k{number}", number) + request("GET", f"k{number}") for number in range(300)))
            self.assertEqual([wire.reply() for _ in range(600)], [reply for number in range(300) for reply in ("+OK", str(number))])
            self.assertEqual(wire.call("DBSIZE"), 300)
            self.assertEqual(sorted(wire.call("KEYS", "*")), sorted(f"k{number}" for number in range(300)))
            self.assertEqual(wire.call("FLUSHALL"), "+OK")
            self.assertEqual(wire.call("DBSIZE"), 0)
            self.assertIsNone(wire.call("RANDOMKEY"))
        with Respb(self.server.port) as respb:
            for channel, key in enumerate(KEYS, 1):
                self.assertEqual(respb.call_on(channel, "INCR", key), 1)
        for number, key in enumerate(KEYS):
            self.assertEqual(self.cluster.nodes[number].call("GET", key), "1")

    def test_many_keys_are_split_and_merged(self):
        wire = self.connect(3)
        keys = [f"k{number}" for number in range(40)]
        for key in keys[::2]:
            self.assertEqual(wire.call("SET", key, f"of {key}"), "+OK")
        values = [None if number % 2 else f"of {key}" for number, key in enumerate(keys)]
        self.assertEqual(wire.call("MGET", *keys, keys[0]), [*values, values[0]])
        self.assertEqual(self.connect().call("MGET", *keys), values)
        self.assertEqual(wire.call("EXISTS", *keys, keys[0]), 21)
        self.assertEqual(wire.call("TOUCH", *keys), 20)
        self.assertEqual(wire.call("DEL", *keys[:20]), 10)
        self.assertEqual(wire.call("UNLINK", *keys), 10)
        self.assertEqual(wire.call("MGET", "one"), [None])
        self.assertEqual(wire.call("MSET", "{t}a", "1", "{t}b", "2"), "+OK")
        wire.call("LPUSH", "c", "no text")
        self.assertEqual(wire.call("MGET", *KEYS), [None] * 3)
        for words in (("MSET", "a", "1", "b", "2"), ("RENAME", "a", "b"), ("SUNION", "a", "b"), ("EVAL", "return 1", "2", "a", "b")):
            self.assertEqual(
                wire.call(*words), "-CROSSSLOT Keys in request don't hash to the same slot: 'a' has slot 15495, 'b' has slot 3300"
            )

    def test_scan_finds_all_once(self):
        wire = self.connect()
        keys = {f"k{number}" for number in range(1000)}
        wire.send(b"".join(request("SET", key, "v") for key in keys))
        self.assertEqual({wire.reply() for _ in keys}, {"+OK"})
        found, cursor = collections.Counter(), "0"
        while True:
            cursor, some = wire.call("SCAN", cursor, "COUNT", "50", "MATCH", "k*")
            found.update(some)
            if cursor == "0":
                break
        self.assertEqual(set(found), keys)
        self.assertEqual(wire.call("SCAN", "x"), "-ERR invalid cursor")

    def test_transactions_are_of_one_slot(self):
        one, two = self.connect(), self.connect(3)
        self.assertEqual([one.call(*words) for words in (("MULTI",), ("INCR", "{b}1"), ("INCR", "{b}2"))], ["+OK", "+QUEUED", "+QUEUED"])
        self.assertEqual(one.call("EXEC"), [1, 1])
        self.assertEqual([one.call(*words) for words in (("MULTI",), ("INCR", "a"), ("INCR", "b"))], ["+OK", "+QUEUED", "+QUEUED"])
        self.assertIn("CROSSSLOT", one.call("EXEC"))
        self.assertEqual([one.call("GET", key) for key in ("a", "b")], [None, None])
        for key in KEYS:
            self.assertEqual([one.call(*words) for words in (("WATCH", key), ("GET", key), ("MULTI",), ("SET", key, "1"))][0], "+OK")
            self.assertEqual(two.call("SET", key, "0"), "+OK")
            self.assertIsNone(one.call("EXEC"), "somebody else has written it")
            self.assertEqual([one.call(*words) for words in (("WATCH", key), ("GET", "a"), ("MULTI",), ("SET", key, "1"))][3], "+QUEUED")
            self.assertEqual(one.call("EXEC"), ["+OK"])
        self.assertEqual(one.call("WATCH", "a"), "+OK")
        self.assertIn("CROSSSLOT", one.call("WATCH", "b"))
        self.assertEqual([one.call(*words) for words in (("MULTI",), ("SET", "b", "1"))], ["+OK", "+QUEUED"])
        self.assertIn("CROSSSLOT", one.call("EXEC"))
        self.assertEqual([one.call(*words) for words in (("WATCH", "a"), ("UNWATCH",), ("MULTI",), ("INCR", "b"), ("EXEC",))][4], [2])
        for words in (("MULTI",), ("DBSIZE",)):
            reply = one.call(*words)
        self.assertIn("'dbsize' is run by all primaries", reply)
        self.assertEqual(one.call("DISCARD"), "+OK")

    def test_who_blocks_is_served_by_the_right_node(self):
        writer = self.connect()
        for key in KEYS:
            waiting = self.connect()
            waiting.send(request("BLPOP", key, "0") + request("PING"))
            node = self.cluster.primary_of(writer.call("CLUSTER", "KEYSLOT", key))
            wait_for(lambda node=node: node.info("clients")["blocked_clients"] == "1")
            self.assertEqual(writer.call("RPUSH", key, "v"), 1)
            self.assertEqual([waiting.reply(), waiting.reply()], [[key, "v"], "+PONG"])
            self.assertIsNone(waiting.call("BLPOP", key, "0.01"))

    def moves(self):
        """Moves b's slot to the second node, and back when the test is over."""
        self.addCleanup(self.cluster.move_slot, SLOT_OF_B, self.cluster.nodes[0])
        self.cluster.move_slot(SLOT_OF_B, self.cluster.nodes[1])

    def test_who_blocks_waits_where_its_slot_has_moved_to(self):
        waiting, writer = self.connect(), self.connect()
        waiting.send(request("BLPOP", "b", "0") + request("PING"))
        wait_for(lambda: self.cluster.nodes[0].info("clients")["blocked_clients"] == "1")
        self.moves()
        wait_for(lambda: self.cluster.nodes[1].info("clients")["blocked_clients"] == "1")
        self.assertEqual(writer.call("RPUSH", "b", "v"), 1)
        self.assertEqual([waiting.reply(), waiting.reply()], [["b", "v"], "+PONG"])
        self.assertEqual(writer.call("DEL", "b"), 0)

    def test_what_is_watched_has_changed_when_its_slot_moves(self):
        wire = self.connect()
        self.assertEqual([wire.call("SET", "b", "1"), wire.call("WATCH", "b"), wire.call("GET", "b")], ["+OK", "+OK", "1"])
        self.moves()
        self.assertEqual([wire.call("MULTI"), wire.call("SET", "b", "2")], ["+OK", "+QUEUED"])
        self.assertIsNone(wire.call("EXEC"))
        self.assertEqual(wire.call("GET", "b"), "1")
        self.assertEqual([wire.call(*words) for words in (("WATCH", "b"), ("MULTI",), ("SET", "b", "2"), ("EXEC",))][3], ["+OK"])

    def test_what_was_lost_stays_lost_however_much_is_watched_behind_it(self):
        wire = self.connect()
        self.assertEqual([wire.call("SET", "b", "1"), wire.call("WATCH", "b")], ["+OK", "+OK"])
        self.moves()
        for key in ("{b}2", "{b}3", "b"):
            self.assertEqual(wire.call("WATCH", key), "+OK")
        self.assertEqual([wire.call("MULTI"), wire.call("SET", "b", "2")], ["+OK", "+QUEUED"])
        self.assertIsNone(wire.call("EXEC"))
        self.assertEqual([wire.call(*words) for words in (("WATCH", "b"), ("MULTI",), ("INCR", "b"), ("EXEC",))][3], [2])

    def test_what_has_passed_of_its_time_counts_where_its_slot_has_moved_to(self):
        waiting = self.connect()
        begun = time.monotonic()
        waiting.send(request("BLPOP", "b", str(BLOCKED_SECONDS)))
        wait_for(lambda: self.cluster.nodes[0].info("clients")["blocked_clients"] == "1")
        wait_for(lambda: time.monotonic() - begun > BLOCKED_SECONDS / 2)
        self.moves()
        wait_for(lambda: self.cluster.nodes[1].info("clients")["blocked_clients"] == "1")
        there = time.monotonic()
        self.assertIsNone(waiting.reply())
        over = time.monotonic()
        self.assertGreaterEqual(over - begun, BLOCKED_SECONDS)
        self.assertLess(over - there, BLOCKED_SECONDS)

    def test_replies_that_wait_for_a_silent_node_are_owed(self):
        """By the limit that holds at once, and by the one of so many seconds, though nothing more happens."""
        other = self.connect()
        name = "client-output-buffer-limit"
        (_, before) = other.call("CONFIG", "GET", name)
        self.addCleanup(other.call, "CONFIG", "SET", name, before)
        self.assertEqual(other.call("SET", "a", "x" * OWED_BYTES), "+OK")
        silent = self.cluster.nodes[0]
        for limit in (f"normal {OWED_BYTES * 10} 0 0", f"normal 0 {OWED_BYTES * 10} 1"):
            self.assertEqual(other.call("CONFIG", "SET", name, limit), "+OK")
            wire, little = self.connect(), self.connect()
            halt(silent)
            try:
                little.send(request("GET", "b") + request("GET", "a") * 5)
                wire.send(request("GET", "b") + request("GET", "a") * 30)
                self.assertRaises((Closed, ConnectionResetError), wire.reply)
            finally:
                os.kill(silent.process.pid, signal.SIGCONT)
            # What has waited does so no more.
            for _ in range(2):
                self.assertEqual([little.reply() for _ in range(6)], [None] + ["x" * OWED_BYTES] * 5, limit)
                little.send(request("GET", "b") + request("GET", "a") * 5)
            self.assertEqual(other.call("GET", "b"), None)

    def test_replies_of_channels_that_wait_are_owed_by_their_connection(self):
        other = self.connect()
        name = "client-output-buffer-limit"
        (_, before) = other.call("CONFIG", "GET", name)
        self.addCleanup(other.call, "CONFIG", "SET", name, before)
        self.assertEqual(other.call("SET", "a", "x" * OWED_BYTES), "+OK")
        self.assertEqual(other.call("CONFIG", "SET", name, f"normal {OWED_BYTES * 10} 0 0"), "+OK")
        silent = self.cluster.nodes[0]
        pair = [("GET", "b"), ("GET", "a")]

        def ask(respb, channels):
            # Each of them alone is owed little.
            respb.send(b"".join(argv(channel, *words) for channel in channels for words in pair))

        def until_told(respb):
            while respb.frame()[1][:2] != ("goaway", 2):
                pass

        with Respb(self.server.port) as respb, Respb(self.server.port) as little:
            for turn in range(8):
                halt(silent)
                try:
                    ask(little, channels := range(5 * turn + 1, 5 * turn + 6))
                    wait_for(lambda: f"gateway_kept_bytes:{5 * OWED_BYTES // 10_000}" in other.call("INFO", "gateway"))
                    # One that ends is owed nothing more.
                    little.send(struct.pack(">HHI", 0xFF01, channels[0], 0))
                    self.assertEqual(little.frame(), (channels[0], ("close", 0)))
                    if turn == 7:
                        ask(respb, range(1, 30))
                        until_told(respb)
                finally:
                    os.kill(silent.process.pid, signal.SIGCONT)
                self.assertCountEqual([little.frame()[1] for _ in range(8)], [None, "x" * OWED_BYTES] * 4)

    def test_what_is_refused_for_now_has_its_time(self):
        source, target = self.cluster.nodes[:2]
        with gateway(self.cluster.url(), *PATIENT, "--command-timeout", str(SHORT_MS)) as hasty, hasty.connect() as wire:
            patient = self.connect()
            wait_for(lambda: wire.call("SET", "{b}1", "v") == "+OK")
            self.assertEqual(target.call("CLUSTER", "SETSLOT", SLOT_OF_B, "IMPORTING", source.id()), "+OK")
            self.assertEqual(source.call("CLUSTER", "SETSLOT", SLOT_OF_B, "MIGRATING", target.id()), "+OK")
            # One of the keys is here, the other may be there.
            patient.send(request("MGET", "{b}1", "{b}2"))
            begin = time.monotonic()
            self.assertTrue(wire.call("MGET", "{b}1", "{b}2").startswith("-TRYAGAIN"))
            self.assertGreaterEqual(time.monotonic() - begin, SHORT_MS / 1000 * 0.9)
            lines = dict(line.partition(":")[::2] for line in wire.call("INFO", "gateway").splitlines())
            self.assertGreater(int(lines["gateway_try_again_total"]), 1)
            self.moves()
            self.assertEqual([patient.reply(), wire.call("MGET", "{b}1", "{b}2")], [["v", None]] * 2)

    @unittest.skipUnless(redis, "redis-py is not installed: tests/e2e/run installs it")
    def test_redis_py_needs_not_know_and_may(self):
        plain = redis.Redis(port=self.server.port)
        self.addCleanup(plain.close)
        for protocol in (2, 3):
            knows = redis.cluster.RedisCluster(host="127.0.0.1", port=self.server.port, protocol=protocol)
            self.addCleanup(knows.close)
            self.assertEqual([node.port for node in knows.get_nodes()], [self.server.port])
            for client in (plain, knows):
                client.flushall()
                pipeline = client.pipeline(transaction=False)
                for number in range(20):
                    pipeline.incr(f"n{number}")
                self.assertEqual(pipeline.execute(), [1] * 20)
                self.assertEqual(client.mget("{n}1", "{n}2"), [None, None])
                self.assertEqual(len(set(client.scan_iter("n*", count=5))), 20)
                self.assertEqual((client.dbsize(), client.delete("n1"), client.exists("n2")), (20, 1, 1))
                self.assertEqual(client.hset("h", mapping={"f": 1}), 1)
                self.assertEqual(client.hgetall("h"), {b"f": b"1"})
                self.assertEqual(client.eval("return redis.call('INCR', KEYS[1])", 1, "n3"), 2)
        transaction = plain.pipeline(transaction=True)
        self.assertEqual(transaction.incr("{n}1").incr("{n}2").execute(), [1, 1])
        self.assertEqual(plain.mget("n3", "n4", "nothing"), [b"2", b"1", None])

    def test_it_shows_itself_as_the_only_node(self):
        wire = self.connect()
        ((begin, end, (host, port, own)),) = [[begin, end, node[:3]] for begin, end, node in wire.call("CLUSTER", "SLOTS")]
        self.assertEqual((begin, end, host, port, own), (0, 16383, "127.0.0.1", self.server.port, wire.call("CLUSTER", "MYID")))
        self.assertIn("cluster_state:ok", wire.call("CLUSTER", "INFO"))
        self.assertIn(f"127.0.0.1:{self.server.port}@{self.server.port} myself,master", wire.call("CLUSTER", "NODES"))
        self.assertEqual(wire.call("CLUSTER", "SHARDS")[0][:2], ["slots", [0, 16383]])
        self.assertEqual(wire.call("READONLY"), "+OK")
        self.assertIn("redis_mode:cluster", wire.call("INFO", "server"))
        for words, why in (
            (("SELECT", "1"), "it has database 0"),
            (("SWAPDB", "0", "1"), "a cluster has database 0"),
            (("CLUSTER", "FORGET", "x"), "it shows itself as a cluster's only node"),
            (("WAIT", "1", "0"), "it would be about a connection that others share"),
        ):
            self.assertIn(why, wire.call(*words))
        self.assertEqual(wire.call("SELECT", "0"), "+OK")


@needs_nodes
class Parts(unittest.TestCase):
    """What writes at several nodes, of which one is gone: nothing runs, or what has run is said."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(NOTICED_MS))
        for node in self.cluster.nodes:
            self.assertEqual(node.call("CONFIG", "SET", "cluster-require-full-coverage", "no"), "+OK")
        self.server = self.enterContext(gateway(self.cluster.url(), "--upstream-timeout", str(SHORT_MS), threads=1))
        self.wire = self.enterContext(self.server.connect())
        for key in KEYS:
            wait_for(lambda key=key: self.wire.call("SET", key, "v") == "+OK")
        self.first, *self.others = self.cluster.nodes[:3]

    def left(self):
        return [node.call("EXISTS", key) for node, key in zip(self.others, KEYS[1:], strict=True)]

    def test_nothing_runs_where_a_node_is_gone(self):
        self.cluster.replica_of(self.first).kill()
        self.first.kill()
        for words in (("DEL", *KEYS), ("UNLINK", *KEYS), ("FLUSHALL",), ("SCRIPT", "LOAD", "return 1")):
            self.assertRegex(self.wire.call(*words), "^-ERR the server behind the gateway cannot be reached: ", words)
            self.assertEqual(self.left(), [1, 1], words)
        # What needs only the others goes on.
        self.assertEqual(self.wire.call("DEL", *KEYS[1:]), 2)

    def test_what_has_run_is_said(self):
        halt(self.first)
        try:
            error = self.wire.call("DEL", *KEYS)
            self.assertRegex(error, r"^-ERR whether all of the request has run is not known: of 3 keys it has for 2 \('.', '.'\), it may have for 1 \('b'\): ")
            self.assertEqual(self.left(), [0, 0])
        finally:
            os.kill(self.first.process.pid, signal.SIGCONT)
        wait_for(lambda: self.wire.call("FLUSHALL") == "+OK")
        # One says by itself that it does not.
        self.assertEqual(self.first.call("CONFIG", "SET", "min-replicas-to-write", "9"), "+OK")
        error = self.wire.call("FLUSHALL")
        self.assertRegex(error, "^-NOREPLICAS a part of the request has not run: of 3 nodes it has at 2 ")
        self.assertIn(f"it has not at 1 (127.0.0.1:{self.first.port})", error)


class Load(Busy):
    """Clients that count, and write down what they are told."""

    def __init__(self, port, keys):
        self.keys = keys
        self.replies = collections.defaultdict(list)
        # Of each counter: when a number was asked for, when it came, which it was.
        self.times = collections.defaultdict(list)
        self.errors = []
        # Of each counter: how often it may have been counted up without anybody being told.
        self.in_doubt = collections.Counter()
        super().__init__(port, CLIENTS)

    def turn(self, wire, number):
        key = self.keys[number % len(self.keys)]
        other = self.keys[(number + 3) % len(self.keys)]
        begun = time.monotonic()
        wire.send(b"".join(request("INCR", one) for one in (key, key, other, key)))
        single = [(one, wire.reply(), (begun, time.monotonic())) for one in (key, key, other, key)]
        begun = time.monotonic()
        wire.send(request("MULTI") + request("INCR", key) + request("GET", key) + request("EXEC"))
        replies = [wire.reply() for _ in range(4)]
        together, during = replies[3], (begun, time.monotonic())
        if isinstance(together, list):
            assert str(together[0]) == together[1], replies
            together = together[0]
        many = wire.call("MGET", *self.keys)
        with self.lock:
            for one, reply, (begin, end) in (*single, (key, together, during)):
                if isinstance(reply, int):
                    self.replies[number, one].append(reply)
                    self.times[one].append((begin, end, reply))
                else:
                    self.errors.append(reply)
                    self.in_doubt[one] += connection_lost(reply)
            if not isinstance(many, list):
                self.errors.append(many)
            self.rounds += 1

    def go_on_all(self):
        """Until each counter has been counted by somebody who has begun after this."""
        since = time.monotonic()
        wait_for(lambda: self.failures or all(any(begin >= since for begin, _, _ in list(self.times[key])) for key in self.keys))


class Loaded:
    """A cluster of its own for each test, and clients that count in it."""

    is_logged = False

    def setUp(self):
        self.cluster = self.enterContext(Cluster(self.timeout_ms, is_logged=self.is_logged))
        self.server = self.enterContext(gateway(self.cluster.url(), *PATIENT))
        # The first half in one slot, which is the one that moves.
        self.keys = [f"{{b}}{number}" for number in range(COUNTERS // 2)] + [f"k{number}" for number in range(COUNTERS // 2)]
        self.load = Load(self.server.port, self.keys)
        self.load.go_on()

    def is_served(self):
        with self.server.connect() as wire:
            return [type(wire.call("INCR", f"probe{number}")) for number in range(20)] == [int] * 20

    def assert_exact(self):
        """Each counter was told every number once, to each client in rising order, and none was told too much; what clients were told
        at which time fits one order."""
        for (_, key), replies in self.load.replies.items():
            self.assertEqual(replies, sorted(replies), key)
        with self.server.connect() as wire:
            for key in self.keys:
                self.assert_told(self.load.times[key], int(wire.call("GET", key) or 0), key)

    def assert_told(self, times, last, key):
        """What clients were told of a counter is a part of what its nodes have, which is `last`."""
        numbers = [number for _, _, number in times]
        self.assertEqual(len(numbers), len(set(numbers)), f"{key}: a number was told twice")
        self.assertLessEqual(max(numbers, default=0), last, key)
        self.assertTrue(is_linearizable(times), key)


@needs_nodes
class Changes(Loaded, unittest.TestCase):
    """What clients see while slots move and nodes change places."""

    timeout_ms = PATIENT_MS

    def test_slots_move_and_nobody_notices(self):
        for _ in range(ROUNDS):
            for target in (1, 2, 0):
                self.cluster.move_slot(SLOT_OF_B, self.cluster.nodes[target])
                self.load.go_on()
        self.load.stop()
        self.assertEqual(self.load.errors, [])
        self.assert_exact()
        with self.server.connect() as wire:
            lines = dict(line.partition(":")[::2] for line in wire.call("INFO", "gateway").splitlines())
        self.assertGreater(int(lines["gateway_moved_total"]), 0, "nobody was sent on")

    def test_slots_move_as_a_whole_and_nobody_notices(self):
        source, target = self.cluster.nodes[0], self.cluster.nodes[1]
        reply = source.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", SLOT_OF_B - 10, SLOT_OF_B + 10, "NODE", target.id())
        if "nknown subcommand" in reply:
            self.load.stop()
            self.skipTest("this server moves slots only key by key: Valkey 9 moves them as a whole")
        self.assertEqual(reply, "+OK")
        wait_for(lambda: self.cluster.primary_of(SLOT_OF_B) is target)
        self.load.go_on()
        self.load.stop()
        self.assertEqual(self.load.errors, [])
        self.assert_exact()

    def test_who_blocks_waits_at_the_new_primary(self):
        with self.server.connect() as waiting, self.server.connect() as writer:
            waiting.send(request("BLPOP", "{b}list", "0"))
            old = self.cluster.primary_of(SLOT_OF_B)
            wait_for(lambda: old.info("clients")["blocked_clients"] == "1")
            # The old one tells whoever blocks that it is one no more.
            new = self.cluster.fail_over(old)
            wait_for(lambda: not waiting.is_silent(0) or new.info("clients")["blocked_clients"] == "1")
            self.assertEqual(writer.call("RPUSH", "{b}list", "v"), 1)
            self.assertEqual(waiting.reply(), ["{b}list", "v"])
        self.load.stop()
        self.assertEqual(self.load.errors, [])
        self.assert_exact()

    def test_a_failover_is_followed_and_nobody_notices(self):
        old = self.cluster.primary_of(SLOT_OF_B)
        for _ in range(ROUNDS):
            new = self.cluster.fail_over(old)
            wait_for(lambda new=new: self.cluster.primary_of(SLOT_OF_B) is new)
            self.load.go_on()
            wait_for(self.cluster.is_well)
            old = new
        self.load.stop()
        self.assertEqual(self.load.errors, [])
        self.assert_exact()


@needs_nodes
class Losses(Loaded, unittest.TestCase):
    """What they see when a node is gone, and the others have to notice."""

    timeout_ms = NOTICED_MS
    is_logged = True

    def counters_of(self, node):
        with self.server.connect() as wire:
            slots = {key: wire.call("CLUSTER", "KEYSLOT", key) for key in self.keys}
        return [key for key, slot in slots.items() if self.cluster.primary_of(slot) is node]

    def assert_acknowledged(self, of_lost, gone, back, told_before=collections.Counter()):
        """What clients were told is a part of what the nodes have: of one that is lost by its log, which says how far it has counted
        each of its counters, of its heir from when that served. An heir need not have what was told last (replication does not wait),
        and then counts some numbers again."""
        with self.server.connect() as wire:
            for key in self.keys:
                times, last = self.load.times[key], int(wire.call("GET", key) or 0)
                if key not in of_lost:
                    self.assert_told(times, last, key)
                    continue
                had = of_lost[key]
                before = [one for one in times if one[1] <= gone]
                self.assertGreater(len(before), 0, key)
                self.assert_told(before, had, key)
                # What it has counted and nobody was told of is in doubt, and was called so.
                told = {number for _, end, number in times if end <= back and number <= had}
                self.assertLessEqual(had - len(told) - told_before[key], self.load.in_doubt[key], key)
                behind = [one for one in times if one[0] >= back]
                self.assertGreater(len(behind), 0, key)
                self.assert_told(behind, last, key)
                self.assertLessEqual(max(number for _, _, number in times), max(had, last), key)

    def test_a_primary_is_killed(self):
        lost = self.cluster.primary_of(SLOT_OF_B)
        counters = self.counters_of(lost)
        self.load.go_on_all()
        gone = time.monotonic()
        lost.kill()
        # Each primary brings its own events: one that is not there is waited for, as by commands.
        subscriber = self.enterContext(self.server.connect())
        subscriber.send(request("PSUBSCRIBE", "*"))
        wait_for(lambda: self.cluster.primary_of(SLOT_OF_B) is not lost)
        wait_for(self.is_served)
        back = time.monotonic()
        self.assertEqual(subscriber.reply(), ["psubscribe", "*", 1])
        self.load.go_on_all()
        self.load.stop()
        # What was on its way is in doubt, and says so; what came later waited for the replica.
        self.assertEqual([reply for reply in self.load.errors if not connection_lost(reply)], [])
        self.assert_acknowledged({key: lost.has_run("INCR", key) for key in counters}, gone, back)
        # It was the first that the gateway was told of, and is none of the nodes until it comes back.
        with self.server.connect() as wire:
            wait_for(lambda: f"address=127.0.0.1:{lost.port}," not in wire.call("INFO", "gateway"))
            lost.start()
            wait_for(self.cluster.is_well)
            wait_for(lambda: f"address=127.0.0.1:{lost.port}," in wire.call("INFO", "gateway"))

    def test_a_primary_says_nothing(self):
        self.load.stop()
        self.assert_exact()
        told_before = collections.Counter({key: len(self.load.times[key]) for key in self.keys})
        self.server.stop()
        # What the silent node has been sent is given up soon.
        self.server = self.enterContext(gateway(self.cluster.url(), "--upstream-timeout", str(SHORT_MS)))
        self.load = Load(self.server.port, self.keys)
        self.load.go_on_all()
        lost = self.cluster.primary_of(SLOT_OF_B)
        heir = self.cluster.replica_of(lost)
        subscriber = self.enterContext(self.server.connect())
        self.assertEqual(subscriber.call("SUBSCRIBE", "news"), ["subscribe", "news", 1])
        # It is the one that brings what is published.
        self.assertEqual(lost.call("PUBSUB", "NUMSUB", "news"), ["news", 1])
        counters = self.counters_of(lost)
        gone = time.monotonic()
        halt(lost)
        try:
            wait_for(heir.is_primary)
            # Who has asked the one that says nothing is told so; then the heir is asked.
            wait_for(self.is_served)
            back = time.monotonic()
            # It has not yet taken over what its heir has.
            of_lost = {key: lost.has_run("INCR", key) for key in counters}
            # Who listens would miss what is published; others bring it.
            self.assertRaises((Closed, ConnectionResetError), subscriber.reply)
            with self.server.connect() as again, self.server.connect() as publisher:
                wait_for(lambda: again.call("SUBSCRIBE", "news") == ["subscribe", "news", 1])
                wait_for(lambda: publisher.call("PUBLISH", "news", "m") == 1)
                self.assertEqual(again.reply(), ["message", "news", "m"])
        finally:
            os.kill(lost.process.pid, signal.SIGCONT)
        wait_for(self.cluster.is_well)
        self.load.go_on_all()
        self.load.stop()
        # The limit is less than the others take to notice: until then requests are refused.
        refused = ("-ERR the server behind the gateway cannot be reached", "-CLUSTERDOWN")
        others = [reply for reply in self.load.errors if not connection_lost(reply) and not str(reply).startswith(refused)]
        self.assertEqual(others, [])
        self.assert_acknowledged(of_lost, gone, back, told_before)


if __name__ == "__main__":
    unittest.main()
