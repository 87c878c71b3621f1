"""Owns: CLIENT TRACKING through a gateway: whatever a client has read and been told to keep it is told of when it changes, by whoever
and wherever; and nothing that is kept stays stale. Before one server and before a cluster. Does not own: tracking itself, which
is the server's."""

import random
import threading
import time
import unittest

from behind import PATIENT, REDIS, BeforeMany, BeforeOne, Redis, Relay, gateway
from nodes import needs_nodes, wait_for
from server import REPLY_SECONDS, Respb, Server, Wire, request

# The load of the test of staleness.
KEYS = 24
CACHERS = 4
WRITERS = 2
ROUNDS = 150
SLOT_OF_STALE = 1540
SLOT_OF_B = 3300


class Cacher(Wire):
    """A connection that keeps pushes apart from replies."""

    def __init__(self, port, *options):
        super().__init__(port)
        self.pushes = []
        self.send(request("HELLO", "3"))
        assert isinstance(self.answer(), dict)
        if options:
            assert self.ask("CLIENT", "TRACKING", *options) == "+OK"

    def take_push(self):
        while not self.buffer:
            self.fill()
        if self.buffer[:1] != b">":
            return False
        self.pushes.append(self.reply())
        return True

    def answer(self):
        while self.take_push():
            pass
        return self.reply()

    def ask(self, *words):
        self.send(request(*words))
        return self.answer()

    def next_push(self):
        """The next one, which must come."""
        while not self.pushes:
            assert self.take_push(), self.buffer
        return self.pushes.pop(0)

    def has_no_push(self):
        """Whether none has come before the answers to what is asked now, of each server that has keys of the tests."""
        for key in ("a", "b", "c"):
            self.ask("STRLEN", f"nothing:{key}")
        return not self.pushes


class Clients:
    """Of whatever is behind; who takes it in has `server`, and `direct(*words)`, which changes something there."""

    def setUp(self):
        # What is told of keys of other tests is not told of these.
        self.k, self.k2 = (f"{self.id()}:{number}" for number in (1, 2))

    def cacher(self, *options):
        return self.enterContext(Cacher(self.server.port, *options))


class Tracked(Clients):
    """What holds for each of them."""

    def test_what_was_read_is_told_of_once(self):
        one, other, writer = self.cacher("ON"), self.cacher("ON"), self.connect()
        writer.call("SET", self.k, "1")
        self.assertEqual([one.ask("GET", self.k), other.ask("GET", self.k)], ["1", "1"])
        self.assertEqual(writer.call("SET", self.k, "2"), "+OK")
        self.assertEqual([one.next_push(), other.next_push()], [["invalidate", [self.k]]] * 2)
        # Who has not read it again hears nothing more.
        self.assertEqual(one.ask("MGET", self.k, self.k2), ["2", None])
        self.direct("SET", self.k, "3")
        self.assertEqual(one.next_push(), ["invalidate", [self.k]])
        self.direct("SET", self.k2, "3")
        self.assertEqual(one.next_push(), ["invalidate", [self.k2]])
        self.assertTrue(other.has_no_push())
        self.assertIn("on", one.ask("CLIENT", "TRACKINGINFO")["flags"])
        self.assertEqual(one.ask("CLIENT", "TRACKING", "OFF"), "+OK")
        one.ask("GET", self.k)
        writer.call("SET", self.k, "4")
        self.assertTrue(one.has_no_push())

    def test_only_what_is_asked_for(self):
        optin, optout, writer = self.cacher("ON", "OPTIN"), self.cacher("ON", "OPTOUT"), self.connect()
        optin.ask("GET", self.k)
        self.assertEqual([optin.ask("CLIENT", "CACHING", "YES"), optin.ask("GET", self.k2)], ["+OK", None])
        optout.ask("GET", self.k)
        self.assertEqual([optout.ask("CLIENT", "CACHING", "NO"), optout.ask("GET", self.k2)], ["+OK", None])
        writer.call("SET", self.k, "1")
        writer.call("SET", self.k2, "1")
        self.assertEqual([optin.next_push(), optout.next_push()], [["invalidate", [self.k2]], ["invalidate", [self.k]]])
        self.assertTrue(optin.has_no_push() and optout.has_no_push())

    def test_as_rueidis_asks(self):
        """One pipeline: CLIENT CACHING YES, MULTI, PTTL, GET, EXEC."""
        wire, writer = self.cacher("ON", "OPTIN"), self.connect()
        writer.call("SET", self.k, "1")
        for value in ("1", "2"):
            words = (("CLIENT", "CACHING", "YES"), ("MULTI",), ("PTTL", self.k), ("GET", self.k), ("EXEC",))
            wire.send(b"".join(request(*one) for one in words))
            self.assertEqual([wire.answer() for _ in words], ["+OK", "+OK", "+QUEUED", "+QUEUED", [-1, value]])
            writer.call("SET", self.k, "2")
            self.assertEqual(wire.next_push(), ["invalidate", [self.k]])

    def test_over_respb(self):
        wire, writer = Respb(self.server.port), self.connect()
        self.addCleanup(wire.close)
        self.assertEqual(wire.call_on(1, "CLIENT", "TRACKING", "ON"), "+OK")
        self.assertIsNone(wire.call_on(1, "GET", self.k))
        self.assertIsNone(wire.call_on(2, "GET", self.k2))
        writer.call("SET", self.k2, "1")
        writer.call("SET", self.k, "1")
        channel, push = wire.frame()
        self.assertEqual((channel, push[0], self.k in str(push[1:])), (1, "push", True), push)

    def test_a_script_is_taken_to_read_its_keys(self):
        wire, writer = self.cacher("ON"), self.connect()
        self.assertIsNone(wire.ask("EVAL", "return redis.call('GET', KEYS[1])", "1", self.k))
        writer.call("SET", self.k, "1")
        self.assertEqual(wire.next_push(), ["invalidate", [self.k]])

    def test_what_is_not_tracked_is_not_to_be_kept(self):
        """Over a connection of its own nobody tells of later changes: what was read is taken back at once."""
        wire = self.cacher("ON")
        self.assertEqual([wire.ask(*words) for words in (("WATCH", self.k), ("MULTI",), ("GET", self.k), ("EXEC",))], ["+OK", "+OK", "+QUEUED", [None]])
        self.assertEqual(wire.next_push(), ["invalidate", [self.k]])

    def test_what_is_refused(self):
        for options, why in ((("ON", "BCAST"), "would be told of every write"), (("ON", "REDIRECT", "1"), "track over RESP3 or RESPB")):
            self.assertIn(why, self.cacher().ask("CLIENT", "TRACKING", *options))
        self.assertIn("HELLO 3", self.connect().call("CLIENT", "TRACKING", "ON"))
        self.assertIn("has to do with the gateway", [wire := self.cacher(), wire.ask("MULTI"), wire.ask("CLIENT", "TRACKING", "ON")][2])


class Stale(Clients):
    """Clients that keep what they read, while others change it."""

    def change(self, rng, wire):
        """Something else that happens meanwhile."""

    def test_nothing_stays_stale(self):
        keys = [f"stale:{number}" for number in range(KEYS)]
        caches = [{} for _ in range(CACHERS)]
        failures, over = [], threading.Event()

        def take(cacher, cache):
            for _, names in cacher.pushes:
                for name in cache.copy() if names is None else names:
                    cache.pop(name, None)
            cacher.pushes.clear()

        def read(number):
            rng, cache = random.Random(number), caches[number]
            try:
                cacher = self.cacher("ON")
                while not over.is_set():
                    wanted = rng.sample(keys, 5)
                    missing = [key for key in wanted if key not in cache]
                    if not missing:
                        # Something to do with the connection, so that what is told is read.
                        missing = wanted[:1]
                    cacher.send(b"".join(request("GET", key) for key in missing))
                    for key in missing:
                        value = cacher.answer()
                        # What was told before the reply is about what was kept before.
                        take(cacher, cache)
                        cache[key] = value
                # All that was told of before this answer.
                deadline = time.monotonic() + REPLY_SECONDS
                while time.monotonic() < deadline:
                    cacher.ask("PING")
                    take(cacher, cache)
                    if all(self.direct("GET", key) == value for key, value in cache.items()):
                        return
                    time.sleep(0.05)
                failures.append(f"cacher {number} keeps {[key for key, value in cache.items() if self.direct('GET', key) != value]}")
            except Exception as failure:  # The test fails by it, whatever it is.
                failures.append(repr(failure))

        def write(number):
            rng = random.Random(100 + number)
            try:
                with self.server.connect() as wire:
                    for turn in range(ROUNDS):
                        key = rng.choice(keys)
                        if turn % 3 == 0:
                            self.direct("SET", key, f"{number}:{turn}")
                        else:
                            wire.send(request("SET", key, f"{number}:{turn}") + request("DEL", rng.choice(keys)))
                            wire.reply(), wire.reply()
                        self.change(rng, wire)
            except Exception as failure:
                failures.append(repr(failure))

        readers = [threading.Thread(target=read, args=(number,), daemon=True) for number in range(CACHERS)]
        writers = [threading.Thread(target=write, args=(number,), daemon=True) for number in range(WRITERS)]
        for thread in readers + writers:
            thread.start()
        for thread in writers:
            thread.join(REPLY_SECONDS)
        over.set()
        for thread in readers:
            thread.join(2 * REPLY_SECONDS)
            self.assertFalse(thread.is_alive())
        self.assertEqual(failures, [])
        self.assertTrue(any(caches), "nothing was kept")


class OneServer(BeforeOne, Stale, Tracked):
    def test_all_may_be_gone(self):
        backend = self.start()
        self.addCleanup(backend.stop)
        server = self.enterContext(gateway(backend.port, *PATIENT))
        wire = self.enterContext(Cacher(server.port, "ON"))
        self.assertIsNone(wire.ask("GET", self.k))
        with server.connect() as other:
            other.call("FLUSHALL")
        self.assertEqual(wire.next_push(), ["invalidate", None])

    def test_a_connection_that_broke_may_have_missed_something(self):
        relay = Relay(self.backend.port)
        self.addCleanup(relay.close)
        server = self.enterContext(gateway(relay.port, *PATIENT, threads=1))
        wire = self.enterContext(Cacher(server.port, "ON"))
        self.assertIsNone(wire.ask("GET", self.k))
        relay.cut()
        self.assertEqual(wire.next_push(), ["invalidate", None])
        # What is read from then on is told of again.
        wait_for(lambda: wire.ask("GET", self.k) is None)
        wire.pushes.clear()
        self.direct("SET", self.k, "1")
        self.assertEqual(wire.next_push(), ["invalidate", [self.k]])


@unittest.skipUnless(REDIS, "redis-server is not installed: apt-get install redis-server")
class BeforeRedis(OneServer, unittest.TestCase):
    @staticmethod
    def start():
        return Redis()


class BeforeWeft(OneServer, unittest.TestCase):
    @staticmethod
    def start():
        return Server()

    def test_a_server_that_may_not_be_asked(self):
        with Server() as backend, backend.connect() as admin:
            admin.call("ACL", "SETUSER", "gate", "on", ">secret", "~*", "&*", "+@all", "-client|tracking")
            to = f"redis://gate:secret@127.0.0.1:{backend.port}"
            with gateway(to, *PATIENT) as server:
                wire = Cacher(server.port)
                self.assertIn("does not tell of changes: NOPERM", wire.ask("CLIENT", "TRACKING", "ON"))
                self.assertEqual(wire.ask("SET", "k", "v"), "+OK")
                wire.close()

    def test_what_may_not_be_noted_is_not_to_be_kept(self):
        with Server() as backend, backend.connect() as admin:
            admin.call("ACL", "SETUSER", "gate", "on", ">secret", "~*", "&*", "+@all", "-client|caching")
            with gateway(f"redis://gate:secret@127.0.0.1:{backend.port}", *PATIENT) as server:
                wire = Cacher(server.port, "ON")
                self.assertIsNone(wire.ask("GET", "k"))
                self.assertEqual(wire.next_push(), ["invalidate", ["k"]])
                wire.close()


class Clustered(BeforeMany):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # One that nobody tracks through, for changes.
        cls.other = gateway(cls.cluster.url(), *PATIENT, threads=1)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        assert cls.other.stop() == 0

    def direct(self, *words):
        with self.other.connect() as wire:
            return wire.call(*words)


@needs_nodes
class BeforeCluster(Clustered, Tracked, unittest.TestCase):
    pass


@needs_nodes
class WhileSlotsMove(Clustered, Stale, unittest.TestCase):
    """The same, and what is told when slots change their place."""

    moved = 0
    moving = threading.Lock()

    def change(self, rng, wire):
        with self.moving:
            if self.moved < 4 and rng.random() < 0.1:
                self.moved += 1
                self.cluster.move_slot(SLOT_OF_STALE, self.cluster.nodes[self.moved % 3])

    def test_slots_move_under_who_keeps_keys(self):
        wire = self.cacher("ON")
        self.direct("SET", "b", "1")
        self.assertEqual(wire.ask("GET", "b"), "1")
        for target in (1, 0):
            self.cluster.move_slot(SLOT_OF_B, self.cluster.nodes[target])
            # What has changed its place is told of, by who has had it or by the gateway.
            self.assertIn(wire.next_push()[1], (["b"], None))
            self.assertEqual(wire.ask("GET", "b"), "1")
            wire.pushes.clear()
            self.direct("SET", "b", "1")
            self.assertIn(wire.next_push()[1], (["b"], None))
            self.assertEqual(wire.ask("GET", "b"), "1")

