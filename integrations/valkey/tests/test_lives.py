"""Owns: what becomes of channels when Valkey does something with their clients: kills, evicts, pauses, fails over, loads, saves, runs a
script that never ends, shuts down; RESPB over TLS, on a replica and on a node of a cluster. Meant for a server with AddressSanitizer too.
Does not own the ends that the protocol itself knows (tests/e2e/test_respb_ends.py)."""

import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest

from certificates import Authority
from server import REPLY_SECONDS, Closed, Respb, Server, Wire, argv, cancel, close, free_port, get, request
from test_valkey import Valkey

ENDLESS = ("EVAL", "while true do end", "0")
MEGABYTE = 1 << 20


def until(true):
    """Asks until it is so: each time is a round trip, and a server that never says so is the harness's time-out."""
    while not true():
        pass


def listed(admin, word):
    """Clients whose line has it: not asked while a script keeps all waiting."""
    clients = "-BUSY"
    while clients.startswith("-BUSY"):
        clients = admin.call("CLIENT", "LIST")
    return [line for line in clients.splitlines() if word in line]


def until_busy(admin):
    until(lambda: str(admin.call("GET", "x")).startswith("-BUSY"))


def kill_script(admin):
    assert admin.call("SCRIPT", "KILL") == "+OK"


class Ends(Valkey):
    def test_close_in_a_transaction(self):
        wire = self.open()
        wire.send(argv(1, "WATCH", "w") + argv(1, "MULTI") + argv(1, "SET", "in-multi", "1") + close(1) + get(1, "in-multi") + argv(1, "EXEC"))
        self.assertEqual([wire.frame() for _ in range(3)], [(1, "+OK"), (1, "+OK"), (1, "+QUEUED")])
        self.assertEqual([wire.frame() for _ in range(2)], [(1, ("close", 0)), (1, None)])
        self.assertTrue(wire.frame()[1].startswith("-ERR EXEC without MULTI"))

    def test_kill_of_a_channel_that_blocks(self):
        wire, admin = self.open(), self.resp()
        wire.call_on(1, "CLIENT", "SETNAME", "blocks")
        wire.send(argv(1, "BLPOP", "nothing", "0") + argv(1, "SET", "behind-kill", "1") + argv(2, "PING"))
        self.assertEqual(wire.frame(), (2, "+PONG"))
        self.assertEqual(admin.call("CLIENT", "KILL", "ID", re.search(r"^id=(\d+)", listed(admin, "name=blocks")[0]).group(1)), 1)
        self.assertEqual(wire.frame(), (1, ("close", 4)))
        self.assertEqual(wire.call_on(2, "EXISTS", "behind-kill"), 0)
        wire.send(close(1) + argv(1, "PING"))
        self.assertEqual(wire.frame(), (1, "+PONG"))

    def test_a_channel_that_kills_channel_0(self):
        wire, admin = self.open(), self.resp()
        zero = wire.call_on(0, "CLIENT", "ID")
        wire.send(argv(1, "CLIENT", "KILL", "ID", zero) + argv(2, "INCR", "behind-zero") + argv(1, "INCR", "behind-zero"))
        self.assertEqual(wire.frame(), (1, 1))
        self.assertEqual(wire.frame()[1][:2], ("goaway", 4))
        self.assertEqual(admin.call("EXISTS", "behind-zero"), 0)

    def test_kill_by_address_ends_the_connection(self):
        wire, admin = self.open(), self.resp()
        wire.send(b"".join(argv(channel, "PING") for channel in range(9)))
        for _ in range(9):
            wire.frame()
        own = wire.call_on(1, "CLIENT", "INFO")
        self.assertEqual(admin.call("CLIENT", "KILL", "ADDR", re.search(r" addr=(\S+)", own).group(1)), 9)
        self.assertEqual(wire.frame()[1][:2], ("goaway", 4))
        with self.assertRaises(Closed):
            wire.frame()

    def test_monitor_of_a_channel_that_ends(self):
        """By RESET, CLOSE and the end of its connection, while there is something to tell."""
        wire, admin = self.open(), self.resp()
        wire.send(argv(1, "CLIENT", "SETNAME", "monitor") + argv(1, "MONITOR") + argv(2, "PING") + argv(1, "RESET") + argv(1, "PING"))
        got = [wire.frame() for _ in range(6)]
        self.assertIn((2, "+PONG"), got)
        self.assertEqual([value for channel, value in got if channel == 1 and not isinstance(value, tuple)], ["+OK", "+OK", "+RESET", "+PONG"])
        self.assertEqual([frame[1][:2] for frame in got if isinstance(frame[1], tuple)], [("push", "monitor")])
        wire.send(argv(3, "MONITOR") + close(3) + argv(1, "PING"))
        self.assertCountEqual([wire.frame() for _ in range(3)], [(3, "+OK"), (3, ("close", 0)), (1, "+PONG")])
        wire.send(argv(4, "CLIENT", "SETNAME", "monitor") + argv(4, "MONITOR"))
        self.assertEqual([wire.frame() for _ in range(2)], [(4, "+OK"), (4, "+OK")])
        wire.close()
        until(lambda: not listed(admin, "name=monitor"))

    def test_monitor_of_its_own_transaction(self):
        """No line stands inside EXEC's reply, whichever commands it has."""
        wire = self.open()
        self.assertEqual(wire.call_on(1, "MONITOR"), "+OK")
        wire.send(b"".join(argv(1, *words) for words in (["MULTI"], ["SUBSCRIBE", "a", "b"], ["ECHO", "e"], ["UNSUBSCRIBE", "a"], ["EXEC"], ["PING"])))
        got, lines = [], []
        while len(got) < 6 or len(lines) < 6:
            channel, value = wire.frame()
            (lines if channel == 1 and isinstance(value, tuple) else got).append(value)
        self.assertEqual(got, ["+OK", "+QUEUED", "+QUEUED", "+QUEUED", [[["subscribe", "a", 1], ["subscribe", "b", 2]], "e", [["unsubscribe", "a", 1]]], "+PONG"])
        self.assertEqual([re.findall(r'"(\w+)"', line[2])[0] for line in lines], ["MULTI", "SUBSCRIBE", "ECHO", "UNSUBSCRIBE", "EXEC", "PING"])

    def test_reset_of_a_channel(self):
        wire, other = self.open(), self.open()
        for words in (("SELECT", "3"), ("CLIENT", "SETNAME", "n"), ("SUBSCRIBE", "s"), ("CLIENT", "TRACKING", "ON"), ("CLIENT", "NO-EVICT", "ON"), ("MULTI",)):
            wire.call_on(1, *words)
        self.assertEqual(wire.call_on(1, "RESET"), "+RESET")
        other.call_on(0, "HSET", "reset", "f", "v")
        self.assertEqual(wire.call_on(1, "HGETALL", "reset"), {"f": "v"})
        other.call_on(0, "HSET", "reset", "f", "w")
        other.call_on(0, "PUBLISH", "s", "m")
        self.assertIsNone(wire.call_on(1, "CLIENT", "GETNAME"))

    def test_an_evicted_channel_and_one_that_is_not(self):
        with Server("--maxmemory-clients", "8mb") as server, Wire(server.port) as admin, Respb(server.port) as wire:
            for channel in (1, 2):
                wire.call_on(channel, "CLIENT", "SETNAME", f"evicted-{channel}")
            self.assertEqual(wire.call_on(2, "CLIENT", "NO-EVICT", "ON"), "+OK")
            frames = []
            for channel, count in ((2, 3), (1, 12)):
                wire.send(argv(channel, "MULTI") + argv(channel, "SET", f"evict{channel}", b"x" * MEGABYTE) * count + argv(channel, "EXEC"))
            while len([frame for frame in frames if frame[0] == 2]) < 5:
                frames.append(wire.frame())
            self.assertIn((2, ["+OK"] * 3), frames)
            while (1, ("close", 4)) not in frames:
                frames.append(wire.frame())
            self.assertEqual(wire.call_on(0, "PING"), "+PONG")
            self.assertEqual([len(listed(admin, f"name=evicted-{channel} ")) for channel in (1, 2)], [0, 1])

    def test_output_limit_of_subscribers(self):
        """Hard and soft: the channel that does not take what it is sent ends, the others of its connection do not."""
        for limit in ("pubsub 1mb 0 0", "pubsub 0 64kb 1"):
            with Server("--client-output-buffer-limit", limit) as server, Wire(server.port) as admin, Respb(server.port) as wire:
                wire.call_on(1, "CLIENT", "SETNAME", "slow")
                wire.call_on(1, "SUBSCRIBE", "news")
                wire.call_on(2, "SET", "kept", "k")
                # More than the sockets take.
                for _ in range(40):
                    admin.call("PUBLISH", "news", b"n" * MEGABYTE)
                until(lambda: not listed(admin, "name=slow"))
                wire.send(get(2, "kept"))
                frames = []
                while (2, "k") not in frames or (1, ("close", 2)) not in frames:
                    frames.append(wire.frame())
                for channel, value in frames:
                    self.assertIn(value if channel == 2 else value[:2], ("k", ("push", "message"), ("close", 2)))

    def test_client_eviction_where_nothing_is_taken(self):
        """An evicted channel is answered what it has run; a connection that takes nothing of that would keep it: it ends."""
        with Server("--maxmemory-clients", "20mb") as server, Wire(server.port) as admin:
            admin.call("CLIENT", "NO-EVICT", "ON")
            admin.call("SET", "big", b"b" * MEGABYTE)
            wires = []
            for _ in range(4):
                wires.append(Respb(server.port))
                self.addCleanup(wires[-1].close)
                wires[-1].send(b"".join(get(channel, "big") * 10 for channel in range(1, 21)))
            until(lambda: "evicted_clients:0" not in admin.call("INFO", "stats") and len(listed(admin, "id=")) == 1)
            # Of 800 MiB that they are owed; what is less than the limit may wait to be taken.
            self.assertLess(int(re.search(r"used_memory:(\d+)", admin.call("INFO", "memory")).group(1)), 100 * MEGABYTE)

    def test_limits_that_are_lowered(self):
        with Server() as server, Wire(server.port) as admin, Respb(server.port) as wire:
            wire.send(b"".join(argv(channel, "PING") for channel in range(20)))
            for _ in range(20):
                wire.frame()
            admin.call("CONFIG", "SET", "respb-channels", "5")
            self.assertEqual(wire.call_on(19, "PING"), "+PONG")
            self.assertEqual(wire.call_on(20, "PING"), ("close", 5))
            admin.call("CONFIG", "SET", "respb-enabled", "no")
            self.assertIn("respb", wire.call_on(3, "HELLO", "3"))
            wire.send(close(3))
            self.assertEqual(wire.frame(), (3, ("close", 0)))
            admin.call("CONFIG", "SET", "respb-queue-bytes", "0")
            wire.send(argv(4, "BLPOP", "nothing", "0") + argv(4, "PING"))
            self.assertEqual(wire.frame(), (4, ("close", 1)))


class Users(Valkey):
    """Whose user a channel gets that is opened while channel 0 blocks."""

    def test_it_waits_for_the_last_request_that_may_change_it(self):
        admin = self.resp()
        for name in ("alice", "bob"):
            admin.call("ACL", "SETUSER", name, "on", "nopass", "+@all", "~*")
        auth = {name: argv(0, "AUTH", name, "x") for name in ("alice", "bob")}
        blocks, ask, ping = argv(0, "BLPOP", "who", "0"), argv(1, "ACL", "WHOAMI"), argv(0, "PING")
        for behind, waits, user in (
            (ping * 100, False, "default"),
            (auth["alice"] + ping * 100, True, "alice"),
            (ping * 100 + auth["alice"] + ping + auth["bob"] + ping, True, "bob"),
            # Cancelled: the one before decides, or none.
            (auth["alice"] + ping * 100 + auth["bob"] + cancel(0, 102), True, "alice"),
            (ping + auth["bob"] + cancel(0, 2), False, "default"),
            (auth["alice"] + auth["bob"] + cancel(0, 1) + cancel(0, 2) + auth["alice"] * 20 + cancel(0, 22) + cancel(0, 3), True, "alice"),
        ):
            with Respb(self.server.port) as wire:
                wire.send(blocks + behind + ask + argv(2, "PING"))
                if not waits:
                    self.assertCountEqual([wire.frame(), wire.frame()], [(1, user), (2, "+PONG")])
                else:
                    self.assertTrue(wire.is_silent())
                admin.call("RPUSH", "who", "x")
                wire.send(argv(0, "ECHO", "end"))
                got = [wire.frame()]
                while got[-1] != (0, "end"):
                    got.append(wire.frame())
                while waits and not {(1, user), (2, "+PONG")} <= set(each for each in got if each[0]):
                    got.append(wire.frame())

    def test_one_that_is_opened_behind_the_close_of_channel_0(self):
        """The requests of the channel 0 that was are no longer waited for."""
        with Respb(self.server.port) as wire:
            wire.send(argv(0, "BLPOP", "never", "0") + argv(0, "RESET") * 9 + close(0) + argv(0, "BLPOP", "never", "0") + argv(0, "PING") * 9)
            self.assertEqual(wire.frame(), (0, ("close", 0)))
            wire.send(argv(1, "PING"))
            self.assertEqual(wire.frame(), (1, "+PONG"))


class Tracking(Valkey):
    def test_one_channel_gets_what_another_reads(self):
        wire, other = self.open(), self.open()
        target = wire.call_on(1, "CLIENT", "ID")
        self.assertEqual(wire.call_on(2, "CLIENT", "TRACKING", "ON", "REDIRECT", target), "+OK")
        wire.call_on(2, "GET", "redirected")
        other.call_on(0, "SET", "redirected", "1")
        self.assertEqual(wire.frame(), (1, ("push", "invalidate", ["redirected"])))
        wire.send(close(1))
        self.assertEqual(wire.frame(), (1, ("close", 0)))
        wire.call_on(2, "GET", "redirected")
        other.call_on(0, "SET", "redirected", "2")
        self.assertEqual(wire.frame(), (2, ("push", "tracking-redir-broken", target)))

    def test_all_keys_of_a_prefix(self):
        wire, other = self.open(), self.open()
        self.assertEqual(wire.call_on(1, "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "b:"), "+OK")
        other.call_on(3, "MSET", "b:1", "x", "c:1", "x")
        self.assertEqual(wire.frame(), (1, ("push", "invalidate", ["b:1"])))
        wire.send(close(1) + argv(2, "PING"))
        self.assertEqual([wire.frame(), wire.frame()], [(1, ("close", 0)), (2, "+PONG")])
        other.call_on(3, "SET", "b:1", "y")
        self.assertEqual(wire.call_on(2, "PING"), "+PONG")


class Held(Valkey):
    """What a pause, a long script, loading and saving do."""

    def test_a_pause_of_writes(self):
        wire, admin = self.open(), self.resp()
        self.assertEqual(admin.call("CLIENT", "PAUSE", "1000000", "WRITE"), "+OK")
        wire.send(argv(1, "SET", "paused", "1") + argv(1, "GET", "paused") + argv(2, "GET", "paused") + argv(3, "INCR", "paused"))
        self.assertEqual(wire.frame(), (2, None))
        wire.send(close(3))
        self.assertEqual(wire.frame(), (3, ("close", 0)))
        self.assertEqual(admin.call("CLIENT", "UNPAUSE"), "+OK")
        self.assertEqual([wire.frame(), wire.frame()], [(1, "+OK"), (1, "1")])

    def test_a_pause_of_auth(self):
        """When it is answered the limits are those of who has authenticated."""
        with Server("--requirepass", "secret") as server, Wire(server.port) as admin, Respb(server.port) as wire:
            admin.call("AUTH", "secret")
            # It holds CLIENT UNPAUSE too.
            self.assertEqual(admin.call("CLIENT", "PAUSE", "300", "ALL"), "+OK")
            self.assertEqual(wire.call_on(0, "AUTH", "secret"), "+OK")
            self.assertEqual(wire.call_on(0, "SET", "k", b"v" * 20_000), "+OK")
            self.assertEqual([wire.call_on(channel, "PING") for channel in range(1, 30)], ["+PONG"] * 29)

    def test_connections_that_end_while_a_script_runs(self):
        """They count as clients no more, and an end is told: that script may run for ever, and loading take long."""
        with Server("--busy-reply-threshold", "20", "--maxclients", "40") as server, Wire(server.port) as admin, Wire(server.port) as runs:
            runs.send(request(*ENDLESS))
            until_busy(admin)
            for _ in range(50):
                with Respb(server.port) as wire:
                    wire.send(argv(0, "PING") + argv(1, "PING"))
                    self.assertCountEqual([wire.frame()[0] for _ in range(2)], [0, 1])
            for sent, code in ((argv(0, "QUIT"), 0), (b"\x80\0\0\0", 8)):
                with Respb(server.port) as wire:
                    wire.send(argv(1, "PING") + sent)
                    frames = [wire.frame()]
                    while frames[-1][1][0] != "goaway":
                        frames.append(wire.frame())
                    self.assertEqual(frames[-1][1][1], code)
                    self.assertIn(1, [channel for channel, _ in frames])
                    self.assertEqual(wire.until_closed(), b"")
            with Respb(server.port) as wire:
                wire.send(request("HELLO", "3", "PROTO", "respb") + argv(0, "GET", "x"))
                self.assertEqual(wire.reply()["respb"]["version"], 1)
                self.assertTrue(wire.frame()[1].startswith("-BUSY"))
            kill_script(admin)

    def test_a_connection_that_ends_behind_its_script(self):
        """The script is answered behind GOAWAY, or before."""
        with Server("--busy-reply-threshold", "20") as server, Wire(server.port) as admin, Respb(server.port) as wire:
            wire.send(argv(1, "BLPOP", "list", "0") + argv(1, *ENDLESS) + argv(2, "PING"))
            self.assertEqual(wire.frame(), (2, "+PONG"))
            with Wire(server.port) as pusher:
                pusher.send(request("RPUSH", "list", "x"))
                until_busy(admin)
                wire.send(argv(0, "QUIT"))
                until_busy(admin)
                kill_script(admin)
            frames = [wire.frame() for _ in range(4)]
            self.assertEqual([value for channel, value in frames if channel == 1][0], ["list", "x"])
            self.assertIn("kill", [value for channel, value in frames if channel == 1][1])
            self.assertEqual(wire.until_closed(), b"")

    def test_a_request_behind_close_while_a_script_runs(self):
        """It is of the next channel. Nobody is told what the one before does still."""
        with Server("--busy-reply-threshold", "20") as server, Wire(server.port) as admin, Respb(server.port) as wire:
            for number in (1, 0):
                wire.send(argv(number, "BLPOP", "list", "0") + argv(number, *ENDLESS) + argv(2, "PING"))
                self.assertEqual(wire.frame(), (2, "+PONG"))
                with Wire(server.port) as pusher:
                    pusher.send(request("RPUSH", "list", "x"))
                    until_busy(admin)
                    wire.send(close(number) + argv(number, "MULTI") + argv(number, "GET", "x") + close(number) + argv(number, "HELLO", "3"))
                    got = [wire.frame() for _ in range(5)]
                    self.assertEqual({channel for channel, _ in got}, {number})
                    self.assertEqual([value for _, value in got[:2]], [("close", 0), "+OK"])
                    self.assertTrue(got[2][1].startswith("-BUSY"))
                    self.assertEqual(got[3][1], ("close", 0))
                    self.assertIn("respb", got[4][1])
                    kill_script(admin)
                until(lambda: admin.call("GET", "x") is None)
                self.assertEqual([wire.call_on(channel, "PING") for channel in (number, 2)], ["+PONG"] * 2)
                until(lambda: len(listed(admin, "id=")) == 4)

    def test_a_script_without_end_behind_hello(self):
        """The carriers that wait to be looked at change while the script runs the loop."""
        for _ in range(4):
            with Server("--busy-reply-threshold", "20") as server, Wire(server.port) as admin:
                first = Respb(server.port)
                self.addCleanup(first.close)
                first.call("PING")
                others = [Respb(server.port) for _ in range(8)]
                for wire in others:
                    self.addCleanup(wire.close)
                    wire.call_on(1, "PING")
                # All that follows is there when the sleep is over.
                admin.send(request("DEBUG", "SLEEP", "0.3"))
                first.send(request("HELLO", "3", "PROTO", "respb") + argv(0, *ENDLESS))
                for wire in others:
                    wire.send(argv(1, "PING") + close(1))
                self.assertEqual(admin.reply(), "+OK")
                until_busy(admin)
                for wire in others:
                    wire.send(argv(2, "PING"))
                    self.assertEqual(wire.frame()[0], 1)
                kill_script(admin)
                self.assertEqual(first.reply()["respb"]["version"], 1)
                self.assertIn("kill", first.frame()[1])
                for wire in others:
                    self.assertEqual(wire.frame(), (1, ("close", 0)))
                    self.assertEqual(wire.frame()[0], 2)

    def test_a_script_without_end_that_waited(self):
        """It runs where Valkey unblocks its channel: the connection is read meanwhile, and may end."""
        with Server("--busy-reply-threshold", "20") as server, Wire(server.port) as admin:
            for end in ("close", "socket", "none"):
                with Respb(server.port) as wire:
                    wire.call_on(1, "CLIENT", "SETNAME", "runs")
                    wire.send(argv(1, "BLPOP", "list", "0") + argv(1, *ENDLESS) + argv(1, "PING") + argv(2, "PING"))
                    self.assertEqual(wire.frame(), (2, "+PONG"))
                    with Wire(server.port) as pusher:
                        pusher.send(request("RPUSH", "list", "x"))
                        until_busy(admin)
                        wire.send(argv(2, "PING") + argv(1, "PING") + argv(3, "PING"))
                        self.assertTrue(wire.frame()[1].startswith("-BUSY"))
                        self.assertTrue(wire.frame()[1].startswith("-BUSY"))
                        if end == "close":
                            wire.send(close(1) + close(2) + argv(2, "PING"))
                            self.assertEqual([wire.frame(), wire.frame()], [(1, ("close", 0)), (2, ("close", 0))])
                            self.assertTrue(wire.frame()[1].startswith("-BUSY"))
                        if end == "socket":
                            wire.close()
                        kill_script(admin)
                        self.assertEqual(pusher.reply(), 1)
                    if end == "close":
                        # What was not answered is void.
                        until(lambda: wire.call_on(1, "PING") == "+PONG")
                    if end == "none":
                        self.assertEqual(wire.frame(), (1, ["list", "x"]))
                        self.assertIn("kill", wire.frame()[1])
                        self.assertEqual([wire.frame(), wire.frame()], [(1, "+PONG"), (1, "+PONG")])
                until(lambda: not listed(admin, "name=runs"))

    def test_a_connection_that_ends_while_its_script_runs(self):
        with Server("--busy-reply-threshold", "20") as server, Wire(server.port) as admin:
            for count in range(1, 4):
                with Respb(server.port) as wire:
                    wire.call_on(1, "CLIENT", "SETNAME", "runs")
                    wire.send(argv(1, *ENDLESS) + argv(1, "INCR", "ran") + argv(2, "INCR", "ran"))
                    until_busy(admin)
                kill_script(admin)
                until(lambda: not listed(admin, "name=runs"))
                self.assertEqual(admin.call("GET", "ran"), str(2 * count))

    def test_a_socket_that_ends_while_a_child_saves(self):
        """The child has the socket too: its other side must not wait for the child."""
        with Server("--rdb-key-save-delay", "10000000") as server, Wire(server.port) as admin:
            admin.call("MSET", *(f"{n // 2}" for n in range(200)))
            quits, halves = Respb(server.port), Respb(server.port)
            for wire in (quits, halves):
                self.addCleanup(wire.close)
                wire.call_on(1, "PING")
            self.assertEqual(admin.call("BGSAVE"), "+Background saving started")
            halves.socket.shutdown(socket.SHUT_WR)
            self.assertEqual(halves.until_closed(), b"")
            quits.send(argv(0, "QUIT"))
            self.assertEqual([quits.frame()[1], quits.frame()[1][:2]], ["+OK", ("goaway", 0)])
            quits.socket.shutdown(socket.SHUT_WR)
            self.assertEqual(quits.until_closed(), b"")
            self.assertRegex(admin.call("INFO", "persistence"), "rdb_bgsave_in_progress:1")
            os.kill(int(subprocess.run(["pgrep", "-P", str(server.process.pid)], check=True, capture_output=True, text=True).stdout), 9)


class UnixSocket(unittest.TestCase):
    def test_all_channels_are_of_it(self):
        """CLIENT INFO says so of channel 0, of another, and of the channel 0 that follows its CLOSE."""
        with tempfile.TemporaryDirectory() as folder, Server("--unixsocket", f"{folder}/s") as server, Respb(server.port) as wire:
            wire.socket.close()
            wire.socket = socket.socket(socket.AF_UNIX)
            wire.socket.settimeout(REPLY_SECONDS)
            wire.socket.connect(f"{folder}/s")
            for before, channel in ((b"", 0), (b"", 1), (close(0), 0), (b"", 2)):
                wire.send(before + argv(channel, "CLIENT", "INFO"))
                frame = wire.frame()
                if before:
                    self.assertEqual(frame, (0, ("close", 0)))
                    frame = wire.frame()
                self.assertIn(" flags=U ", frame[1], (before, channel))


class Shutdown(unittest.TestCase):
    def test_a_channel_shuts_the_server_down(self):
        """At once, and behind what blocked."""
        for before in (b"", argv(1, "BLPOP", "list", "0")):
            with Server() as server, Respb(server.port) as wire, Respb(server.port) as other:
                other.send(argv(1, "BLPOP", "never", "0") + argv(2, "PING"))
                self.assertEqual(other.frame(), (2, "+PONG"))
                wire.send((before or argv(2, "PING")) + argv(1, "SHUTDOWN", "NOSAVE"))
                if before:
                    other.call_on(3, "RPUSH", "list", "x")
                self.assertEqual(other.frame()[1], ("goaway", 6, "the server shuts down"))
                other.close()
                # What it ran before is answered, whether or not its connection is the one whose requests are being run.
                self.assertEqual(wire.frame(), (1, ["list", "x"]) if before else (2, "+PONG"))
                self.assertEqual(wire.frame()[1], ("goaway", 6, "the server shuts down"))
                wire.until_closed()
                self.assertEqual(server.process.wait(60), 0)


class Nodes(unittest.TestCase):
    def test_a_replica_and_a_failover(self):
        with Server() as primary, Server("--replicaof", f"127.0.0.1 {primary.port}") as replica, Respb(primary.port) as wire, Respb(replica.port) as behind:
            until(lambda: "master_link_status:up" in behind.call_on(0, "INFO", "replication"))
            self.assertEqual(wire.call_on(1, "SET", "r", "1"), "+OK")
            self.assertEqual(wire.call_on(1, "WAIT", "1", "0"), 1)
            self.assertEqual(behind.call_on(1, "GET", "r"), "1")
            self.assertTrue(behind.call_on(1, "SET", "r", "2").startswith("-READONLY"))
            self.assertTrue(wire.call_on(2, "SYNC").startswith("-ERR"))
            self.assertTrue(wire.call_on(2, "REPLCONF", "listening-port", "1").startswith("-ERR"))
            self.assertEqual(behind.call_on(2, "MONITOR"), "+OK")
            behind.send(close(2))
            while behind.frame() != (2, ("close", 0)):
                pass
            wire.send(argv(5, "BLPOP", "nothing", "0") + argv(5, "PING") + argv(6, "SUBSCRIBE", "s"))
            self.assertEqual(wire.frame()[0], 6)
            self.assertEqual(wire.call_on(1, "FAILOVER"), "+OK")
            self.assertTrue(wire.frame()[1].startswith("-UNBLOCKED"))
            self.assertEqual(wire.frame(), (5, ("close", 4)))
            until(lambda: "role:slave" in wire.call_on(7, "INFO", "replication"))
            self.assertTrue(wire.call_on(7, "SET", "r", "3").startswith("-READONLY"))
            self.assertEqual(behind.call_on(7, "SET", "r", "3"), "+OK")

    def test_a_node_of_a_cluster(self):
        with Server("--cluster-enabled", "yes", "--cluster-port", free_port(), "--cluster-require-full-coverage", "no") as server, Respb(server.port) as wire:
            self.assertEqual(wire.call("CLUSTER", "ADDSLOTSRANGE", "0", "12181"), "+OK")
            self.assertEqual(wire.call("HELLO", "3", "PROTO", "respb")["respb"]["version"], 1)
            until(lambda: "cluster_state:ok" in wire.call_on(0, "CLUSTER", "INFO"))
            self.assertEqual(wire.call_on(1, "SET", "bar", "1"), "+OK")  # 5061
            self.assertTrue(wire.call_on(1, "GET", "foo").startswith("-CLUSTERDOWN"))  # 12182
            self.assertTrue(wire.call_on(1, "MGET", "bar", "hello").startswith("-CROSSSLOT"))  # 866
            wire.send(argv(1, "MULTI") + get(1, "bar") + get(1, "foo") + argv(1, "EXEC"))
            replies = [wire.frame()[1] for _ in range(4)]
            self.assertEqual(replies[:2], ["+OK", "+QUEUED"])
            self.assertTrue(replies[3].startswith("-EXECABORT"))
            self.assertEqual(wire.call_on(2, "SSUBSCRIBE", "bar"), [["ssubscribe", "bar", 1]])
            self.assertEqual(wire.call_on(3, "SPUBLISH", "bar", "m"), 1)
            self.assertEqual(wire.frame(), (2, ("push", "smessage", "bar", "m")))
            self.assertEqual(wire.call_on(4, "READONLY"), "+OK")
            # A shard that moves away takes its subscribers with it.
            self.assertEqual(wire.call_on(3, "CLUSTER", "DELSLOTSRANGE", "5061", "5061"), "+OK")
            self.assertEqual(wire.frame(), (2, ("push", "sunsubscribe", "bar", 0)))
            self.assertTrue(wire.call_on(3, "CLUSTER", "SYNCSLOTS", "x").startswith("-ERR"))


def has_tls(program):
    return b"libssl" in subprocess.run(["ldd", program], capture_output=True, check=False).stdout


def is_open(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


class Sealed(Respb):
    """RESPB over TLS. An end that the server has not said (close_notify), which anybody on the way could have made, is an ssl.SSLEOFError."""

    def __init__(self, port, authority):
        super().__init__(port)
        context = ssl.create_default_context(cafile=authority.file)
        context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # Python's default takes the one for the other
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost", suppress_ragged_eofs=False)


@unittest.skipUnless(has_tls(os.environ.get("VALKEY_SERVER", "")), "the server has no TLS: `TLS=1 build` gives one that does")
class Tls(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.authority = Authority(folder.name)
        self.flags = self.authority.flags(*self.authority.sign("server"))

    def server(self, *flags):
        self.port = free_port()
        server = Server("--tls-port", self.port, *self.flags, *flags)
        # It listens there behind the port that Server has waited for.
        until(lambda: server.process.poll() is not None or is_open(self.port))
        return server

    def test_what_channels_do_over_it(self):
        for threads in ((), ("--io-threads", "3", "--io-threads-always-active", "yes")):
            with self.server(*threads) as server:
                for by_hello in (False, True):
                    with Sealed(self.port, self.authority) as wire:
                        if by_hello:
                            self.assertEqual(wire.call("SET", "resp", "1"), "+OK")
                            self.assertEqual(wire.call("HELLO", "3", "PROTO", "respb")["respb"]["version"], 1)
                        for size in (1, 16_384, 100_000, 5 * MEGABYTE):
                            wire.send(argv(1, "SET", "k", b"v" * size) + argv(1, "GET", "k") * 3 + argv(2, "PING"))
                            got = [wire.frame() for _ in range(5)]
                            self.assertEqual([value for channel, value in got if channel == 1], ["+OK"] + ["v" * size] * 3)
                            self.assertIn((2, "+PONG"), got)
                        wire.send(b"".join(argv(channel, "INCR", "sum") for channel in range(1, 3000)))
                        self.assertEqual(len({wire.frame()[0] for _ in range(2999)}), 2999)
                        # One byte a record.
                        for byte in argv(1, "PING") + close(1):
                            wire.send(bytes([byte]))
                        self.assertEqual([wire.frame(), wire.frame()], [(1, "+PONG"), (1, ("close", 0))])
                        wire.send(argv(5, "BLPOP", "nothing", "0") + argv(0, "QUIT"))
                        self.assertEqual(wire.frame(), (0, "+OK"))
                        self.assertEqual(wire.frame()[1][:2], ("goaway", 0))
                    with Wire(server.port) as admin:
                        until(lambda: admin.call("INFO", "clients").find("connected_clients:1\r") > 0)

    def test_a_slow_reader(self):
        with self.server() as server, Sealed(self.port, self.authority) as wire, Wire(server.port) as admin:
            admin.call("SET", "big", b"b" * MEGABYTE)
            wire.send(b"".join(get(channel, "big") for channel in range(1, 41)))
            self.assertEqual(admin.call("PING"), "+PONG")
            self.assertEqual({wire.frame()[1] for _ in range(40)}, {"b" * MEGABYTE})

    def test_every_end_is_told(self):
        """Behind GOAWAY the server says that it is the end, whoever has ended it, and only its own direction ends."""
        quits, unreadable = argv(0, "QUIT"), b"\x80\x00\x00\x00"
        for code, sent, asked in ((0, quits, ()), (8, unreadable, ()), (4, b"", ("CLIENT", "KILL", "USER", "alice")), (7, b"", ("ACL", "DELUSER", "alice")),
                                  (6, b"", ("SHUTDOWN", "NOSAVE"))):
            for saves in (False, True):
                with self.server("--rdb-key-save-delay", "10000000") as server, Wire(server.port) as admin, Sealed(self.port, self.authority) as wire:
                    admin.call("ACL", "SETUSER", "alice", "on", "nopass", "+@all", "~*")
                    self.assertEqual(wire.call_on(0, "AUTH", "alice", "x"), "+OK")
                    self.assertEqual(wire.call_on(1, "PING"), "+PONG")
                    if saves:
                        admin.call("SET", "k", "v")
                        self.assertEqual(admin.call("BGSAVE"), "+Background saving started")
                    wire.send(sent)
                    if asked:
                        admin.send(request(*asked))
                    frame = wire.frame()
                    while frame[1] == "+OK" or frame[1][0] != "goaway":
                        frame = wire.frame()
                    self.assertEqual(frame[1][1], code)
                    # What a client sends before it has read that is taken: a reset would be an end that nobody said.
                    wire.send(argv(1, "PING") * 1000)
                    self.assertEqual(wire.until_closed(), b"")

    def test_the_end_is_told_to_who_reads_late(self):
        """It is the last that comes, behind replies that have waited for room."""
        with self.server() as server, Wire(server.port) as admin:
            for size in (MEGABYTE, 4 * MEGABYTE, 16 * MEGABYTE):
                admin.call("SET", "big", b"b" * size)
                with Sealed(self.port, self.authority) as wire:
                    wire.send(get(1, "big") + argv(0, "QUIT"))
                    # The server has done all that it can before anything is read.
                    until(lambda: len(listed(admin, "id=")) == 1)
                    self.assertCountEqual([len(wire.frame()[1]) for _ in range(3)], [size, 3, 3])
                    self.assertEqual(wire.until_closed(), b"")

    def test_ports_of_a_cluster_are_those_for_tls(self):
        with self.server("--cluster-enabled", "yes", "--cluster-port", free_port()) as server:
            with Sealed(self.port, self.authority) as wire:
                self.assertEqual(wire.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383"), "+OK")
                until(lambda: "cluster_state:ok" in wire.call("CLUSTER", "INFO"))
                self.assertEqual(wire.call("CLUSTER", "SLOTS")[0][2][1], self.port)
                wire.call("HELLO", "3", "PROTO", "respb")
                for channel in (0, 1):
                    self.assertEqual(wire.call_on(channel, "CLUSTER", "SLOTS")[0][2][1], self.port)
            with Respb(server.port) as wire:
                self.assertEqual(wire.call_on(1, "CLUSTER", "SLOTS")[0][2][1], server.port)

    def test_shutdown(self):
        with self.server() as server, Sealed(self.port, self.authority) as wire:
            wire.send(argv(1, "BLPOP", "nothing", "0") + argv(2, "PING"))
            self.assertEqual(wire.frame(), (2, "+PONG"))
            server.signal_stop()
            self.assertEqual(wire.frame()[1][:2], ("goaway", 6))
            self.assertEqual(wire.until_closed(), b"")


if __name__ == "__main__":
    sys.exit("tests/run starts these")
