"""Owns: what is Valkey's own in Valkey with RESPB: its settings, its clients, its tracking, shutdown, I/O threads, and Weft's
tools against it. Does not own the scenarios of the protocol (tests/e2e)."""

import json
import os
import subprocess
import unittest

from server import Closed, Respb, Server, Wire, argv, close, get, long_frame, request


VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "conformance", "vectors", "respb", "typed", "valid")
# What would end, replace or stop the server, or tells the time or chance.
APART = {
    "acl", "auth", "bgrewriteaof", "bgsave", "client", "cluster", "command", "config", "debug", "exec", "failover", "function", "hello",
    "info", "latency", "lastsave", "lolwut", "memory", "migrate", "module", "multi", "object", "psync", "quit", "reset", "replconf",
    "replicaof", "restore-asking", "save", "script", "shutdown", "slaveof", "slowlog", "commandlog", "sync", "time", "pfselftest", "swapdb",
    "pfdebug", "discard", "sentinel", "monitor", "xadd",
}


def wire_bytes(pieces):
    """Bytes of a vector."""
    if isinstance(pieces, str):
        return bytes.fromhex(pieces)
    return b"".join(bytes.fromhex(p) if isinstance(p, str) else bytes.fromhex(p["repeat"]) * p["count"] for p in pieces)


class Valkey(unittest.TestCase):
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.flags)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def open(self):
        wire = Respb(self.server.port)
        self.addCleanup(wire.close)
        return wire

    def resp(self):
        wire = Wire(self.server.port)
        self.addCleanup(wire.close)
        return wire


class Commands(Valkey):
    def test_channels_do_what_clients_do(self):
        wire = self.open()
        self.assertEqual(wire.call_on(1, "PING"), "+PONG")
        self.assertEqual(wire.call_on(1, "SET", "k", "v"), "+OK")
        self.assertEqual(wire.call_on(2, "GET", "k"), "v")
        self.assertEqual(wire.call_on(2, "INCRBYFLOAT", "f", "1.5"), "1.5")
        self.assertEqual(wire.call_on(2, "ZADD", "z", "1.5", "m"), 1)
        self.assertEqual(wire.call_on(2, "ZSCORE", "z", "m"), 1.5)
        self.assertEqual(wire.call_on(2, "HSET", "h", "a", "1", "b", "2"), 2)
        self.assertEqual(wire.call_on(2, "HGETALL", "h"), {"a": "1", "b": "2"})
        self.assertEqual(wire.call_on(2, "SADD", "s", "x"), 1)
        self.assertEqual(wire.call_on(2, "SMEMBERS", "s"), ["x"])
        self.assertIsNone(wire.call_on(2, "LPOP", "nothing", "3"))
        self.assertTrue(wire.call_on(2, "LPUSH", "k", "x").startswith("-WRONGTYPE"))
        self.assertTrue(wire.call_on(2, "GET").startswith("-ERR wrong number of arguments for 'get'"))
        self.assertTrue(wire.call_on(2, "INCRBY", "k", "x").startswith("-ERR value is not an integer"))
        self.assertEqual(wire.call_on(2, "EVAL", "return {1, 'two', {3}, false}", "0"), [1, "two", [3], None])
        self.assertIn("redis_version", wire.call_on(2, "INFO", "server"))

    def test_replies_that_come_in_pieces_are_whole(self):
        """Of all lengths around those of the server's buffers, with others between them, two channels in turns."""
        wire, lengths = self.open(), [0, 1, 250, 1000, 1024, 5000, 16_370, 16_384, 16_400, 40_000]
        for length in lengths:
            self.assertEqual(wire.call_on(1, "SET", f"s{length}", "x" * length), "+OK")
        wire.call_on(1, "RPUSH", "list", *("y" * length for length in lengths))
        sent, expected = b"", {1: [], 2: []}
        for turn in range(120):
            channel, length = 1 + turn // 7 % 2, lengths[turn * 7 % len(lengths)]
            for words, reply in ((("GET", f"s{length}"), "x" * length), (("GET", "nothing"), None), (("STRLEN", f"s{length}"), length),
                                 (("LRANGE", "list", "0", str(turn % 10)), ["y" * each for each in lengths[: turn % 10 + 1]])):
                sent += argv(channel, *words)
                expected[channel].append(reply)
        wire.send(sent)
        got = {1: [], 2: []}
        for _ in range(4 * 120):
            channel, value = wire.frame()
            got[channel].append(value)
        for channel, replies in expected.items():
            self.assertEqual([at for at, reply in enumerate(replies) if reply != got[channel][at]], [])

    def test_hello_names_the_profiles(self):
        about = self.open().call_on(5, "HELLO", "3")["respb"]
        self.assertEqual(about["profiles"], ["channels", "typed", "cancel", "passthrough"])
        self.assertEqual(about["capabilities"], 0)

    def test_typed_frames_are_the_commands_that_they_stand_for(self):
        """Every typed vector and its argument form, each in a transaction of its own, so that nothing blocks, with nothing stored."""
        wire, count = self.open(), 0
        for name in sorted(os.listdir(VECTORS)):
            with open(os.path.join(VECTORS, name), encoding="ascii") as file:
                vectors = json.load(file)["vectors"]
            for vector in vectors:
                value = vector.get("value", {})
                command = value.get("command", "").lower()
                if value.get("frame") != "core" or command in APART or "limits" in vector or "argv" not in vector:
                    continue
                typed, resp = wire_bytes(vector["wire"]), wire_bytes(vector["argv"])
                if len(typed) > 10_000:
                    continue
                answers = []
                for frame in (typed[:2] + b"\x00\x01" + typed[4:], long_frame(0xFFFF, 1, resp)):
                    wire.send(argv(1, "MULTI") + argv(1, "FLUSHALL") + frame + argv(1, "EXEC") + argv(1, "RESET"))
                    answers.append([wire.frame() for _ in range(5)])
                self.assertEqual(answers[0], answers[1], vector["id"])
                count += 1
        self.assertGreater(count, 1500)

    def test_values_of_every_size(self):
        wire = self.open()
        for size in (0, 1, 127, 128, 255, 256, 1000, 16_384, 65_535, 65_536, 1_000_000, 20_000_000):
            value = b"v" * size
            wire.send(argv(1, "SET", "sized", value) + get(1, "sized") + argv(2, "MGET", "sized", "sized", "none"))
            frames = [wire.frame() for _ in range(3)]
            self.assertEqual([frame for frame in frames if frame[0] == 1], [(1, "+OK"), (1, value.decode())], size)
            self.assertIn((2, [value.decode(), value.decode(), None]), frames, size)

    def test_requests_of_many_arguments_in_pieces(self):
        wire = self.open()
        words = [str(number) for number in range(30_000)]
        frame = argv(1, "RPUSH", "many", *words)
        for at in range(0, len(frame), 7919):
            wire.send(frame[at : at + 7919])
        self.assertEqual(wire.frame(), (1, len(words)))
        self.assertEqual(wire.call_on(1, "LRANGE", "many", "0", "-1"), words)

    def test_replies_wait_for_a_slow_reader_in_turns(self):
        wire = self.open()
        wire.call_on(1, "SET", "big", b"b" * 1_000_000)
        for channel in range(1, 9):
            wire.send(get(channel, "big") * 8)
        frames = [wire.frame() for _ in range(64)]
        self.assertEqual({value for _, value in frames}, {"b" * 1_000_000})
        for channel in range(1, 9):
            self.assertEqual(sum(who == channel for who, _ in frames), 8)

    def test_client_list_and_kill_and_unblock(self):
        wire, admin = self.open(), self.resp()
        ids = {channel: wire.call_on(channel, "CLIENT", "ID") for channel in (0, 1, 2)}
        wire.call_on(1, "CLIENT", "SETNAME", "one")
        listed = admin.call("CLIENT", "LIST")
        for identity in ids.values():
            self.assertIn(f"id={identity} ", listed)
        self.assertIn(" name=one ", listed)
        wire.send_command(2, "BLPOP", "nothing", "0")
        while admin.call("CLIENT", "UNBLOCK", ids[2]) != 1:
            pass
        self.assertEqual(wire.frame(), (2, None))
        self.assertEqual(admin.call("CLIENT", "KILL", "ID", ids[1]), 1)
        self.assertEqual(wire.frame(), (1, ("close", 4)))
        self.assertNotIn(f"id={ids[1]} ", admin.call("CLIENT", "LIST"))

    def test_tracking_is_the_channels(self):
        wire, other = self.open(), self.open()
        wire.call_on(1, "SET", "tracked", "1")
        self.assertEqual(wire.call_on(1, "CLIENT", "TRACKING", "ON"), "+OK")
        wire.call_on(1, "GET", "tracked")
        wire.call_on(2, "GET", "tracked")
        other.call_on(0, "SET", "tracked", "2")
        self.assertEqual(wire.frame(), (1, ("push", "invalidate", ["tracked"])))
        self.assertEqual(wire.call_on(2, "PING"), "+PONG")

    def test_a_publisher_that_is_subscribed_has_its_reply_first(self):
        wire = self.open()
        wire.call_on(1, "SUBSCRIBE", "self")
        wire.send_command(1, "PUBLISH", "self", "m")
        self.assertCountEqual([wire.frame(), wire.frame()], [(1, 1), (1, ("push", "message", "self", "m"))])
        self.assertEqual(wire.call_on(1, "SSUBSCRIBE", "shard"), [["ssubscribe", "shard", 1]])
        self.assertEqual(wire.call_on(1, "PSUBSCRIBE", "p*", "q*"), [["psubscribe", "p*", 2], ["psubscribe", "q*", 3]])
        self.assertEqual(len(wire.call_on(1, "PUNSUBSCRIBE")), 2)

    def test_monitor_of_a_channel_that_runs_a_transaction(self):
        wire = self.open()
        self.assertEqual(wire.call_on(1, "MONITOR"), "+OK")
        wire.send(argv(1, "MULTI") + argv(1, "PING") + argv(1, "EXEC") + argv(1, "MONITOR"))
        replies = []
        while len(replies) < 4:
            _, value = wire.frame()
            if isinstance(value, tuple):
                self.assertEqual(value[:2], ("push", "monitor"))
            else:
                replies.append(value)
        self.assertEqual(replies, ["+OK", "+QUEUED", ["+PONG"], "+OK"])

    def test_debug_reload_on_a_channel(self):
        wire = self.open()
        wire.send(argv(1, "SET", "kept", "1") + argv(1, "DEBUG", "RELOAD") + argv(1, "GET", "kept") + argv(2, "PING"))
        frames = [wire.frame() for _ in range(4)]
        self.assertEqual([value for channel, value in frames if channel == 1], ["+OK", "+OK", "1"])

    def test_what_is_behind_hello_as_resp_ends_the_connection(self):
        wire = self.open()
        wire.send(request("HELLO", "3", "PROTO", "respb") + request("PING"))
        self.assertEqual(wire.reply()["respb"]["version"], 1)
        self.assertEqual(wire.frame()[1][:2], ("goaway", 8))
        with self.assertRaises(Closed):
            wire.frame()

    def test_hello_over_resp_answers_what_was_asked_before_in_resp(self):
        wire = self.open()
        wire.send(request("SET", "r", "1") + request("GET", "r") + request("HELLO", "3", "PROTO", "respb", "SETNAME", "me"))
        self.assertEqual([wire.reply(), wire.reply()], ["+OK", "1"])
        self.assertEqual(wire.reply()["respb"]["limits"]["channels"], 65536)
        self.assertEqual(wire.call_on(0, "CLIENT", "GETNAME"), "me")
        self.assertEqual(wire.call_on(3, "GET", "r"), "1")

    def test_resp_is_what_it_was(self):
        wire = self.resp()
        self.assertEqual(wire.call("HELLO", "3")["proto"], 3)
        self.assertNotIn("respb", wire.call("HELLO", "3"))
        self.assertTrue(wire.call("HELLO", "3", "NOSUCH", "x").startswith("-ERR Syntax error in HELLO option 'NOSUCH'"))
        self.assertTrue(wire.call("HELLO", "2", "PROTO", "respb").startswith("-NOPROTO"))
        self.assertEqual(wire.call("SUBSCRIBE", "a"), ["subscribe", "a", 1])
        inline = self.resp()
        inline.send(b"\r\nPING\r\n")
        self.assertEqual(inline.reply(), "+PONG")
        # Only the first bytes of a connection tell its protocol.
        inline.send(b"\x01\x02\r\nPING\r\n")
        self.assertTrue(inline.reply().startswith("-ERR unknown command"))
        self.assertEqual(inline.reply(), "+PONG")

    def test_it_can_be_switched_off(self):
        with Server("--respb-enabled", "no") as server, Wire(server.port) as wire:
            self.assertTrue(wire.call("HELLO", "3", "PROTO", "respb").startswith("-ERR Syntax error in HELLO option 'PROTO'"))
            self.assertEqual(wire.call("CONFIG", "SET", "respb-enabled", "yes"), "+OK")
            self.assertIn("respb", wire.call("HELLO", "3", "PROTO", "respb"))

    def test_shutdown_answers_and_says_goaway(self):
        with Server() as server:
            wire = Respb(server.port)
            wire.call_on(1, "SET", "w", "x" * 300)
            wire.send_command(2, "BLPOP", "never", "0")
            wire.send_command(2, "SET", "behind", "1")
            self.assertEqual(wire.call_on(3, "PING"), "+PONG")
            server.signal_stop()
            self.assertEqual(wire.frame(), (0, ("goaway", 6, "the server shuts down")))
            wire.send(argv(3, "SET", "meanwhile", "y" * 200_000))
            with self.assertRaises(Closed):
                wire.frame()
            wire.close()
            self.assertEqual(server.stop(), 0)

    def test_an_unauthenticated_connection_is_small(self):
        with Server("--requirepass", "secret") as server:
            with Respb(server.port) as wire:
                wire.send(argv(0, "SET", "k", b"x" * 20_000))
                self.assertEqual(wire.frame()[1][:2], ("goaway", 8))
            with Respb(server.port) as wire:
                wire.send(argv(0, "AUTH", "secret") + argv(0, "SET", "k", b"x" * 20_000) + close(0))
                self.assertEqual([wire.frame() for _ in range(3)], [(0, "+OK"), (0, "+OK"), (0, ("close", 0))])
                self.assertTrue(wire.call_on(0, "GET", "k").startswith("-NOAUTH"))


class Threads(Commands):
    """The same where I/O threads read and write what is RESP."""

    flags = ("--io-threads", "3", "--io-threads-always-active", "yes")


@unittest.skipUnless(os.environ.get("VALKEY_WEFT"), "no program of Weft was given: `run SERVER WEFT`")
class Tools(Valkey):
    """weft cli and weft bench, for which a server that breaks the protocol is an error."""

    def weft(self, *words):
        done = subprocess.run([os.environ["VALKEY_WEFT"], words[0], "-p", str(self.server.port), *words[1:]],
                              check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def test_cli(self):
        for protocol in ("-2", "-3", "-4"):
            self.assertEqual(self.weft("cli", protocol, "SET", "tool", "41"), "OK")
            self.assertEqual(self.weft("cli", protocol, "INCR", "tool"), "42")
            self.assertEqual(self.weft("cli", protocol, "GET", "tool"), "42")
        self.assertEqual(self.weft("cli", "-4", "--mux", "9", "GET", "tool"), "42")

    def test_bench(self):
        for flags in (("-c", "4", "-P", "16"), ("--mux", "50", "-c", "2"), ("-c", "2", "-d", "5000", "-P", "8")):
            self.assertIn("GET", self.weft("bench", "-4", "-t", "ping,set,get,incr,lpush,hset,zadd,mset", "-n", "2000", *flags))


if __name__ == "__main__":
    unittest.main()
