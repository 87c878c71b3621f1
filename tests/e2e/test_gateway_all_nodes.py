"""Owns: what in front of a cluster has to do with several nodes and with no key: scripts, that each node has for itself, channels, and
events of keys; and a cluster under TLS. Does not own: where keys are (`test_gateway_cluster`)."""

import os
import signal
import socket
import tempfile
import unittest

from behind import PATIENT, REDIS, BeforeMany, gateway
from certificates import Authority
from nodes import Cluster, needs_nodes, wait_for
from server import Closed, Respb, halt, request

# Keys whose slots are of the first, second and third primary, as they begin.
KEYS = ("b", "c", "a")
SLOT_OF_B = 3300
# More than the sockets between two processes take.
NAMES = 100_000
NAME_BYTES = 200
# How long a script runs before its node says that it is busy.
BUSY_MS = 50
INCR = "return redis.call('INCR', KEYS[1])"
SAYS = "redis.call('INCR', KEYS[1]) return redis.error_reply(ARGV[1])"
SAYING = "#!lua name=saying\nredis.register_function('says', function(KEYS, ARGV) redis.call('INCR', KEYS[1]) return redis.error_reply(ARGV[1]) end)"
FOREVER = "while true do end"
WRITES_FOREVER = "redis.call('SET', KEYS[1], '1') while true do end"
LIBRARY = "#!lua name=lib\nredis.register_function('f', function(keys) return redis.call('INCR', keys[1]) end)"
ENDLESS = "#!lua name=endless\nredis.register_function('endless', function() while true do end end)"


@needs_nodes
class Scripts(BeforeMany, unittest.TestCase):
    def setUp(self):
        self.cluster.flush()
        for node in self.cluster.nodes:
            self.assertEqual(node.call("CONFIG", "SET", "busy-reply-threshold", BUSY_MS), "+OK")
        self.assertEqual(self.connect().call("SCRIPT", "FLUSH"), "+OK")

    def test_what_was_loaded_is_everywhere(self):
        wire = self.connect()
        digest = wire.call("SCRIPT", "LOAD", INCR)
        self.assertEqual(wire.call("SCRIPT", "EXISTS", digest, "0" * 40), [1, 0])
        self.assertEqual([wire.call("EVALSHA", digest, "1", key) for key in KEYS], [1, 1, 1])
        # A node that has lost it is given it again.
        self.assertEqual(self.cluster.nodes[1].call("SCRIPT", "FLUSH"), "+OK")
        self.assertEqual([wire.call("EVALSHA", digest, "1", key) for key in KEYS], [2, 2, 2])
        self.assertTrue(wire.call("EVALSHA", "0" * 40, "0").startswith("-NOSCRIPT"))

    def test_what_eval_has_brought_to_one_others_are_given(self):
        wire, other = self.connect(), self.connect(3)
        digest = self.cluster.nodes[0].call("SCRIPT", "LOAD", INCR)
        self.cluster.nodes[0].call("SCRIPT", "FLUSH")
        self.assertTrue(wire.call("EVALSHA", digest, "1", "b").startswith("-NOSCRIPT"))
        self.assertEqual(wire.call("EVAL", INCR, "1", "b"), 1)
        for client in (other, wire):
            # One client's, one behind the other, as a pipeline has them.
            client.send(b"".join(request("EVALSHA", digest.upper(), "1", key) for key in KEYS))
            self.assertEqual(len({client.reply() for _ in KEYS[1:]} | {client.reply()}), 2)
        self.assertEqual([wire.call("GET", key) for key in KEYS], ["3", "2", "2"])
        with Respb(self.server.port) as respb:
            self.assertEqual(respb.call_on(1, "EVALSHA", digest, "1", "c"), 3)
        self.assertEqual(wire.call("SCRIPT", "EXISTS", digest, "0" * 40), [1, 0])
        # Who flushes means it.
        self.assertEqual(wire.call("SCRIPT", "FLUSH"), "+OK")
        self.assertTrue(all(wire.call("EVALSHA", digest, "1", key).startswith("-NOSCRIPT") for key in KEYS))
        self.assertEqual(wire.call("SCRIPT", "EXISTS", digest), [0])

    def test_in_a_transaction_too(self):
        """Where nobody could ask again for what has failed."""
        wire = self.connect()
        digest = self.cluster.nodes[0].call("SCRIPT", "LOAD", INCR)
        self.cluster.nodes[0].call("SCRIPT", "FLUSH")
        self.assertEqual([wire.call(*words) for words in (("MULTI",), ("EVAL", INCR, "1", "b"), ("EXEC",))][2], [1])
        for watches in (False, True):
            for key in KEYS:
                words = [("MULTI",), ("INCR", key), ("EVALSHA", digest, "1", key), ("EVALSHA", digest, "1", key), ("EXEC",)]
                replies = [wire.call(*one) for one in ([("WATCH", key)] if watches else []) + words]
                self.assertEqual(len(replies[-1]), 3, replies)
                self.assertTrue(all(isinstance(reply, int) for reply in replies[-1]), replies)
                self.assertEqual(self.cluster.nodes[KEYS.index(key)].call("SCRIPT", "FLUSH"), "+OK")

    def test_what_a_script_says_is_its_own(self):
        """A node's word, to the letter: it has run, and runs once; nobody is asked elsewhere, least of all with a password."""
        with socket.create_server(("127.0.0.1", 0)) as elsewhere:
            elsewhere.setblocking(False)
            address = f"127.0.0.1:{elsewhere.getsockname()[1]}"
            words = [f"MOVED {SLOT_OF_B} {address}", f"ASK {SLOT_OF_B} {address}", "TRYAGAIN no", "CLUSTERDOWN no", "LOADING no"]
            words += ["MASTERDOWN no", "READONLY no", "NOSCRIPT no", "OOM no", "NOPERM no"]
            wire, watching = self.connect(), self.connect(3)
            self.assertEqual(watching.call("WATCH", "b"), "+OK")
            digest = wire.call("SCRIPT", "LOAD", SAYS)
            self.assertEqual(wire.call("FUNCTION", "LOAD", SAYING), "saying")
            self.addCleanup(wire.call, "FUNCTION", "FLUSH")
            runs = 0
            for word in words:
                for client in (wire, watching):
                    for run in (("EVAL", SAYS), ("EVALSHA", digest), ("FCALL", "says")):
                        self.assertEqual(client.call(*run, "1", "b", word), f"-{word}", run)
                        runs += 1
                    self.assertEqual(client.call("GET", "b"), str(runs), (word, client is wire))
            self.assertEqual([wire.call(*words) for words in (("MULTI",), ("EVAL", SAYS, "1", "b", words[0]), ("EXEC",))][2], [f"-{words[0]}"])
            with Respb(self.server.port) as respb:
                self.assertEqual(respb.call_on(1, "EVAL", "return {1, false, {'a'}}", "1", "b"), [1, None, ["a"]])
            self.assertRaises(BlockingIOError, elsewhere.accept)

    def test_a_node_without_memory_runs_what_needs_none(self):
        node, wire = self.cluster.nodes[0], self.connect()
        self.assertEqual(wire.call("SET", "b", "1"), "+OK")
        self.assertEqual(node.call("CONFIG", "SET", "maxmemory", "1"), "+OK")
        self.addCleanup(node.call, "CONFIG", "SET", "maxmemory", "0")
        self.assertTrue(wire.call("SET", "b", "2").startswith("-OOM"))
        self.assertEqual(wire.call("EVAL", "return redis.call('GET', KEYS[1])", "1", "b"), "1")

    def test_who_may_not_ask_for_scripts_runs_them(self):
        for node in self.cluster.nodes:
            self.assertEqual(node.call("ACL", "SETUSER", "gw", "on", ">pw", "~*", "&*", "+@all", "-script|exists"), "+OK")
        with gateway(self.cluster.url().replace("://", "://gw:pw@"), *PATIENT) as server, server.connect() as wire:
            digest = wire.call("SCRIPT", "LOAD", INCR)
            self.assertEqual([wire.call("EVALSHA", digest, "1", key) for key in KEYS], [1, 1, 1])

    def test_a_script_that_does_not_compile(self):
        wire = self.connect()
        for _ in range(2):
            self.assertIn("compiling", wire.call("EVAL", "this is none", "0"))

    def test_functions_are_everywhere(self):
        wire = self.connect()
        self.assertEqual(wire.call("FUNCTION", "LOAD", LIBRARY), "lib")
        self.assertIn("already exists", wire.call("FUNCTION", "LOAD", LIBRARY))
        self.assertEqual([wire.call("FCALL", "f", "1", key) for key in KEYS], [1, 1, 1])
        self.assertEqual(wire.call("FUNCTION", "DELETE", "lib"), "+OK")
        self.assertTrue(all("not found" in wire.call("FCALL", "f", "1", key) for key in KEYS))

    def test_what_runs_on_one_node_is_ended(self):
        wire = self.connect()
        self.assertEqual(wire.call("FUNCTION", "LOAD", ENDLESS), "endless")
        self.addCleanup(wire.call, "FUNCTION", "FLUSH")
        for kill in ("SCRIPT", "FUNCTION"):
            self.assertTrue(wire.call(kill, "KILL").startswith("-NOTBUSY"))
        for kill, runs in (("SCRIPT", ("EVAL", FOREVER, "1")), ("FUNCTION", ("FCALL", "endless", "1"))):
            for number, key in enumerate(KEYS):
                busy = self.connect()
                busy.send(request(*runs, key))
                node = self.cluster.nodes[number]
                wait_for(lambda node=node, key=key: str(node.call("GET", key)).startswith("-BUSY"))
                with self.server.connect() as other:
                    self.assertEqual(other.call(kill, "KILL"), "+OK")
                self.assertRegex(busy.reply(), "killed")
                self.assertIsNone(wire.call("GET", key))

    def test_what_has_written_is_not_ended(self):
        wire, busy = self.connect(), self.connect()
        busy.send(request("EVAL", WRITES_FOREVER, "1", "b"))
        node = self.cluster.nodes[0]
        wait_for(lambda: str(node.call("GET", "b")).startswith("-BUSY"))
        self.assertTrue(wire.call("SCRIPT", "KILL").startswith("-UNKILLABLE"))
        # Nothing but its end ends it.
        node.kill()
        node.start()
        self.cluster.wait_until_well()


@needs_nodes
class Messages(BeforeMany, unittest.TestCase):
    def subscriber(self, *commands):
        wire = self.connect(3)
        for words in commands:
            wire.send(request(*words))
            for _ in words[1:]:
                self.assertEqual(wire.reply()[0], words[0].lower())
        return wire

    def events(self, flags):
        for node in self.cluster.nodes:
            self.assertEqual(node.call("CONFIG", "SET", "notify-keyspace-events", flags), "+OK")

    def test_each_message_comes_once(self):
        subscriber = self.subscriber(("SUBSCRIBE", "news"), ("PSUBSCRIBE", "n*"))
        for node in self.cluster.nodes:
            node.call("PUBLISH", "news", f"from {node.port}")
            heard = [subscriber.reply(), subscriber.reply()]
            self.assertIn(["message", "news", f"from {node.port}"], heard)
            self.assertIn(["pmessage", "n*", "news", f"from {node.port}"], heard)
        self.assertEqual(subscriber.call("PING"), "+PONG")

    def test_what_is_published_is_counted_where_it_is_brought(self):
        subscriber = self.subscriber(("SUBSCRIBE", "news"), ("PSUBSCRIBE", "n?ws"))
        # Whoever publishes, and whichever node would have its requests without keys.
        for number in range(2 * len(KEYS)):
            publisher = self.connect()
            self.assertEqual(publisher.call("PUBLISH", "news", number), 2)
            self.assertEqual([publisher.call(*words) for words in (("MULTI",), ("publish", "news", "m"), ("EXEC",))][2], [2])
            for message in (str(number), "m"):
                heard = [subscriber.reply(), subscriber.reply()]
                self.assertIn(["message", "news", message], heard)
                self.assertIn(["pmessage", "n?ws", "news", message], heard)
        self.assertEqual(publisher.call("PUBLISH", "nobody", "m"), 0)
        subscriber.close()
        wait_for(lambda: publisher.call("PUBSUB", "NUMPAT") == 0)

    def test_shard_channels_are_where_their_slots_are(self):
        subscriber = self.subscriber(*(("SSUBSCRIBE", key) for key in KEYS))
        publisher = self.connect()
        for number, key in enumerate(KEYS):
            self.assertEqual(publisher.call("SPUBLISH", key, "through"), 1)
            self.assertEqual(subscriber.reply(), ["smessage", key, "through"])
            self.assertEqual(self.cluster.nodes[number].call("SPUBLISH", key, "beside"), 1)
            self.assertEqual(subscriber.reply(), ["smessage", key, "beside"])
        self.assertEqual(sorted(publisher.call("PUBSUB", "SHARDCHANNELS")), sorted(KEYS))
        self.assertEqual(publisher.call("PUBSUB", "SHARDNUMSUB", "a", "x", "b"), ["a", 1, "x", 0, "b", 1])
        self.assertIn("CROSSSLOT", publisher.call("SSUBSCRIBE", "a", "b"))
        self.assertEqual(publisher.call("SPUBLISH", "nobody", "m"), 0)
        # Given up when nobody wants them any more.
        subscriber.close()
        wait_for(lambda: publisher.call("PUBSUB", "SHARDCHANNELS") == [])

    def test_a_node_that_reads_nothing_holds_up_its_own_channels_only(self):
        subscriber, wants, asks = self.subscriber(("SUBSCRIBE", "news")), self.connect(3), self.connect()
        silent = self.cluster.nodes[2]
        self.assertEqual(silent.call("CLIENT", "LIST", "TYPE", "PUBSUB"), "", "it brings what is published anywhere")
        halt(silent)
        try:
            wants.send(request("SSUBSCRIBE", *(f"{{a}}{number}".ljust(NAME_BYTES, "x") for number in range(NAMES))))
            wait_for(lambda: "cmd=ssubscribe" in asks.call("CLIENT", "LIST"))
            for number in range(20):
                self.assertEqual(asks.call("PUBLISH", "news", number), 1)
                self.assertEqual(subscriber.reply(), ["message", "news", str(number)])
                self.subscriber(("SUBSCRIBE", f"other {number}")).close()
        finally:
            os.kill(silent.process.pid, signal.SIGCONT)
        self.assertEqual({wants.reply()[0] for _ in range(NAMES)}, {"ssubscribe"})
        wants.close()
        wait_for(lambda: asks.call("PUBSUB", "SHARDCHANNELS") == [])

    def test_who_is_subscribed_where_a_slot_moves_is_closed(self):
        plain = self.subscriber(("SUBSCRIBE", "b"))
        for target in (1, 0):
            subscriber, other = self.subscriber(("SSUBSCRIBE", "b")), self.subscriber(("SSUBSCRIBE", "a"))
            self.cluster.move_slot(SLOT_OF_B, self.cluster.nodes[target])
            with self.assertRaises(Closed):
                while True:
                    subscriber.reply()
            again = self.connect(3)
            self.assertEqual(again.call("SSUBSCRIBE", "b"), ["ssubscribe", "b", 1])
            self.assertEqual(self.cluster.nodes[target].call("SPUBLISH", "b", "m"), 1)
            self.assertEqual(again.reply(), ["smessage", "b", "m"])
            # Whom it does not concern nothing happens to.
            self.assertEqual(self.cluster.nodes[2].call("SPUBLISH", "a", "m"), 1)
            self.assertEqual(other.reply(), ["smessage", "a", "m"])
            self.assertEqual(self.cluster.nodes[2].call("PUBLISH", "b", "m"), 0)
            self.assertEqual(plain.reply(), ["message", "b", "m"], "it is another channel")
            again.close()

    def test_who_knows_what_is_subscribed(self):
        wire = self.connect()
        self.subscriber(("SUBSCRIBE", "one", "two"), ("PSUBSCRIBE", "t*"))
        with self.cluster.nodes[1].connect() as direct, self.cluster.nodes[2].connect() as other:
            direct.call("SUBSCRIBE", "two")
            other.call("SUBSCRIBE", "three")
            self.assertEqual(sorted(wire.call("PUBSUB", "CHANNELS", "t*")), ["three", "two"])
            self.assertEqual(wire.call("PUBSUB", "NUMSUB", "two", "three", "none"), ["two", 2, "three", 1, "none", 0])
            self.assertEqual(wire.call("PUBSUB", "NUMPAT"), 1)

    def test_events_of_all_primaries(self):
        self.events("KEA")
        self.addCleanup(self.events, "")
        named = self.subscriber(("SUBSCRIBE", "__keyevent@0__:set"))
        patterns = self.subscriber(("PSUBSCRIBE", "*"))
        writer = self.connect()
        for key in KEYS:
            self.assertEqual(writer.call("SET", key, "v"), "+OK")
            self.assertEqual(named.reply(), ["message", "__keyevent@0__:set", key])
            heard = [patterns.reply(), patterns.reply()]
            self.assertIn(["pmessage", "*", f"__keyspace@0__:{key}", "set"], heard)
            self.assertIn(["pmessage", "*", "__keyevent@0__:set", key], heard)
        # What is published comes once still, and replicas' events not at all.
        writer.call("PUBLISH", "news", "m")
        self.assertEqual(patterns.reply(), ["pmessage", "*", "news", "m"])
        self.assertEqual([named.call("PING"), patterns.call("PING")], ["+PONG"] * 2)

    def test_events_end_where_a_primary_changes(self):
        """Who would miss what happens there is closed, and hears the new one when he asks again."""
        self.events("KEA")
        self.addCleanup(self.events, "")
        for _ in range(2):
            subscriber, plain = self.subscriber(("SUBSCRIBE", "__keyevent@0__:set")), self.subscriber(("SUBSCRIBE", "news"))
            primary = self.cluster.primary_of(SLOT_OF_B)
            self.cluster.fail_over(primary)
            writer = self.connect()
            writer.call("SET", "b", "v")
            with self.assertRaises(Closed):
                while True:
                    subscriber.reply()
            again = self.subscriber(("SUBSCRIBE", "__keyevent@0__:set"))
            self.assertEqual(writer.call("SET", "b", "v"), "+OK")
            self.assertEqual(again.reply(), ["message", "__keyevent@0__:set", "b"])
            writer.call("PUBLISH", "news", "m")
            self.assertEqual(plain.reply(), ["message", "news", "m"])
            self.cluster.wait_until_well()


@unittest.skipUnless(REDIS, "redis-server, which has TLS, is not installed: apt-get install redis-server")
class BehindTls(unittest.TestCase):
    def test_a_cluster_under_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            authority = Authority(folder)
            cluster = self.enterContext(Cluster(authority=authority))
            to = cluster.url()
            shown = [word for flag, word in zip(("--upstream-cert", "--upstream-key"), authority.sign("gateway"), strict=True) for word in (flag, word)]
            with gateway(to, *PATIENT, "--upstream-ca", authority.file, "--upstream-name", "localhost", *shown) as server:
                with server.connect() as wire, server.connect() as subscriber:
                    self.assertEqual([wire.call("INCR", key) for key in KEYS], [1, 1, 1])
                    self.assertEqual(wire.call("MGET", *KEYS), ["1", "1", "1"])
                    self.assertIsNone(wire.call("BLPOP", "list", "0.01"))
                    self.assertEqual(subscriber.call("SUBSCRIBE", "news"), ["subscribe", "news", 1])
                    self.assertEqual(wire.call("SPUBLISH", "b", "m"), 0)
                    self.assertEqual(wire.call("PUBLISH", "news", "m"), 1)
                    self.assertEqual(subscriber.reply(), ["message", "news", "m"])
                    # A slot that moves is found under TLS too.
                    cluster.move_slot(SLOT_OF_B, cluster.nodes[1])
                    self.assertEqual(wire.call("INCR", "b"), 2)
            with gateway(to, "--upstream-timeout", "500", "--upstream-ca", authority.file, "--upstream-name", "another", *shown) as server:
                with server.connect() as wire:
                    self.assertIn("cannot be reached", wire.call("GET", "b"))
