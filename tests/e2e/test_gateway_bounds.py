"""Owns: what bounds a gateway in front of one server has, and how it is started: memory, time, connections to be lent, TLS and the
password behind, what is said of an option that is wrong. Does not own: what clients are promised within them (`test_gateway`)."""

import os
import select
import signal
import socket
import subprocess
import tempfile
import unittest

from behind import PATIENT, REDIS, Redis, Relay, gateway
from certificates import Authority
from nodes import wait_for
from server import PROGRAM, REPLY_SECONDS, Closed, Respb, Server, argv, cancel, close, free_port, halt, request

# Replies of which so many take memory that is seen.
LARGE = 256 << 10
MANY = 1_000
# Of replies that are larger, more than sockets hold.
FEW = 40
SHORT_MS = 1_500


def kept(wire):
    """Bytes of requests that are not answered."""
    lines = dict(line.partition(":")[::2] for line in wire.call("INFO", "gateway").splitlines())
    return int(lines["gateway_kept_bytes"])


def requests(wire):
    """How many the server behind was sent."""
    lines = dict(line.partition(":")[::2] for line in wire.call("INFO", "gateway").splitlines())
    return int(lines["gateway_requests_total"])


class Bounds(unittest.TestCase):
    def test_who_wants_no_reply_gets_no_error(self):
        """Of the gateway's own either: what comes next would be taken for another one's."""
        with gateway(free_port(), *PATIENT) as server, server.connect() as wire:
            for number in range(2):
                # Refused while the connection is tried, and when it has been tried in vain.
                for words in (("GET", "k"), ("BLPOP", "k", "1"), ("WATCH", "k"), ("SUBSCRIBE", "news"), ("SCRIPT", "KILL")):
                    wire.send(request("CLIENT", "REPLY", "SKIP") + request(*words) + request("ECHO", f"{words[0]} {number}"))
                    self.assertEqual(wire.reply(), f"{words[0]} {number}")

    def test_who_does_not_read_is_owed_little(self):
        with Server() as backend, gateway(backend.port, *PATIENT, threads=1) as server, server.connect() as wire, backend.connect() as direct:
            self.assertEqual(wire.call("SET", "k", "x" * LARGE), "+OK")

            def asked():
                stats = dict(line.partition(":")[::2] for line in direct.call("INFO", "commandstats").splitlines())
                return int(stats.get("cmdstat_get", "calls=0,").partition("calls=")[2].partition(",")[0])

            def is_still():
                with server.connect() as other:
                    return "in_flight=0," in other.call("INFO", "gateway")

            def rests():
                before = asked()
                return before > 0 and all(is_still() and asked() == before for _ in range(20))

            # In pieces of a request, which are decoded as they come.
            for _ in range(MANY):
                wire.send(request("GET", "k"))
            # How much that is depends on what sockets hold here.
            wait_for(rests)
            self.assertLess(asked(), MANY // 2)
            self.assertLess(server.resident_bytes(), MANY * LARGE // 2)
            # All of it comes when it is read.
            self.assertEqual({wire.reply() for _ in range(MANY)}, {"x" * LARGE})
            wire.send(request("GET", "k") * MANY)
            wire.socket.shutdown(socket.SHUT_WR)
            self.assertEqual({wire.reply() for _ in range(MANY)}, {"x" * LARGE})
            self.assertRaises(Closed, wire.reply)

    def test_who_is_owed_too_much_is_closed(self):
        """What is under way when he stops reading comes all the same, and has a bound of bytes."""
        limit = ("--client-output-buffer-limit", "normal 8mb 0 0")
        with Server() as backend, gateway(backend.port, *PATIENT, *limit, threads=1) as server, server.connect() as wire, server.connect() as other:
            self.assertEqual(wire.call("SET", "k", "x" * 4 * LARGE), "+OK")
            own = f"id={wire.call('CLIENT', 'ID')} "
            self.assertIn(own, other.call("CLIENT", "LIST"))
            wire.send(request("GET", "k") * 64)
            wait_for(lambda: own not in other.call("CLIENT", "LIST"))
            with self.assertRaises((Closed, ConnectionResetError)):
                for _ in range(64):
                    wire.reply()
            self.assertEqual(other.call("EXISTS", "k"), 1)
        with gateway(free_port(), *PATIENT) as server, server.connect() as wire:
            self.assertEqual(wire.call("CONFIG", "GET", "client-output-buffer-limit")[1].split()[:4], ["normal", str(1 << 30), "0", "0"])

    def test_channels_of_who_does_not_read_have_nothing_more_run(self):
        """All of a connection's together; what is under way has the bound of `respb-connection-output-bytes`."""
        with Server() as backend, gateway(backend.port, *PATIENT, threads=1) as server, server.connect() as other, backend.connect() as direct:
            self.assertEqual(other.call("SET", "k", "x" * 4 * LARGE), "+OK")

            def asked():
                stats = dict(line.partition(":")[::2] for line in direct.call("INFO", "commandstats").splitlines())
                return int(stats.get("cmdstat_get", "calls=0,").partition("calls=")[2].partition(",")[0])

            with Respb(server.port) as respb:
                respb.send(b"".join(argv(1, "GET", "k") for _ in range(FEW)))
                wait_for(lambda: asked() == FEW and "gateway_in_flight:0" in other.call("INFO", "gateway"))
                respb.send(b"".join(argv(channel, "GET", "k") for channel in range(2, FEW + 2)))
                for _ in range(FEW):
                    self.assertEqual((other.call("EXISTS", "k"), asked()), (1, FEW))
                # All of it comes when it is read.
                channels = [channel for channel, value in (respb.frame() for _ in range(2 * FEW)) if value == "x" * 4 * LARGE]
                self.assertEqual(sorted(channels), [1] * FEW + list(range(2, FEW + 2)))
        limit = ("--respb-connection-output-bytes", "16mb")
        with Server() as backend, gateway(backend.port, *PATIENT, *limit, threads=1) as server, server.connect() as other:
            self.assertEqual(other.call("SET", "k", "x" * 4 * LARGE), "+OK")
            with Respb(server.port) as respb:
                other.call("GET", "k")
                before = server.resident_bytes()
                respb.send(b"".join(argv(channel, "GET", "k") for channel in range(1, MANY // 2)))
                wait_for(lambda: requests(other) >= MANY // 2 and "gateway_in_flight:0" in other.call("INFO", "gateway"))
                self.assertLess(server.resident_bytes() - before, MANY * LARGE // 2)
                self.assertEqual(other.call("EXISTS", "k"), 1)

    @unittest.skipUnless(REDIS, "redis-server is not installed: apt-get install redis-server")
    def test_more_than_may_wait_is_refused(self):
        backend = self.enterContext(Redis())
        with gateway(backend.port, *PATIENT, threads=1) as server, server.connect() as one, server.connect() as two, server.connect() as admin:
            self.assertEqual([one.call("SET", "a", "1"), two.call("SET", "b", "1")], ["+OK", "+OK"])
            halt(backend)
            try:
                one.send(request("SET", "a", "x" * (160 << 20)))
                # What its sockets do not take waits; all of it does, until it is answered.
                wait_for(lambda: kept(admin) > 160 << 20)
                two.send(request("SET", "b", "x" * (160 << 20)))
                # It is not kept, and its answer comes when its turn comes.
                wait_for(lambda: "in_flight=2," in admin.call("INFO", "gateway"))
                self.assertLess(kept(admin), 161 << 20)
            finally:
                os.kill(backend.process.pid, signal.SIGCONT)
            self.assertEqual(one.reply(), "+OK")
            self.assertRegex(two.reply(), f"^-ERR .*too much waits on a connection to the server behind the gateway .{256 << 20} bytes.")
            self.assertEqual(two.call("GET", "b"), "1")
            wait_for(lambda: kept(admin) == 0)

    def test_a_password_needs_not_be_seen(self):
        with tempfile.TemporaryDirectory() as folder, Server("--requirepass", "long secret") as backend:
            secret, settings = os.path.join(folder, "secret"), os.path.join(folder, "gateway.conf")
            with open(secret, "w", encoding="ascii") as file:
                file.write("long secret\n")
            with open(settings, "w", encoding="ascii") as file:
                file.write(f"to redis://127.0.0.1:{backend.port}\nto-password-file {secret}\nleases 7\n")
            for server in (
                Server(file=settings, command="gateway"),
                gateway(backend.port, "--to-password-file", secret),
            ):
                with server, server.connect() as wire:
                    wait_for(lambda wire=wire: wire.call("SET", "k", "v") == "+OK")
                    with open(f"/proc/{server.process.pid}/cmdline", encoding="utf-8") as words:
                        self.assertNotIn("long secret", words.read())

    def test_a_server_that_does_not_answer(self):
        with Server() as backend:
            relay = Relay(backend.port)
            with gateway(relay.port, "--upstream-timeout", SHORT_MS, threads=1) as server, server.connect() as wire:
                wait_for(lambda: wire.call("SET", "k", "v") == "+OK")
                relay.hold()
                self.assertIn(f"nothing came for {SHORT_MS} ms (upstream-timeout)", wire.call("INCR", "n"))
                relay.cut()
                relay.go_on()
                wait_for(lambda: wire.call("GET", "k") == "v")
            relay.close()

    def test_no_connection_left_is_told(self):
        flags = ("--leases", "2", "--upstream-timeout", SHORT_MS)
        with Server() as backend, gateway(backend.port, *flags, threads=1) as server, backend.connect() as direct:
            wires = [server.connect() for _ in range(4)]

            def blocked(count):
                return f"blocked_clients:{count}\r\n" in direct.call("INFO", "clients")

            for count, wire in enumerate(wires[:2], 1):
                wire.send(request("BLPOP", "list", "0"))

                def blocks(count=count, wire=wire):
                    # Making a connection may have taken longer.
                    if select.select([wire.socket], [], [], 0)[0]:
                        wire.reply()
                        wire.send(request("BLPOP", "list", "0"))
                    return blocked(count)

                wait_for(blocks)
            wires[2].send(request("BLPOP", "list", "0"))
            wires[3].send(request("WATCH", "k"))
            for wire in wires[2:]:
                refused = wire.reply()
                self.assertTrue(refused.startswith("-ERR no connection to the server behind"), refused)
                self.assertIn(f"came free in {SHORT_MS} ms (leases, 2 of this worker)", refused)
            self.assertEqual(wires[2].call("SET", "k", "v"), "+OK", "others are not held up")
            # What is there is taken without a connection to oneself.
            self.assertEqual((wires[2].call("RPUSH", "there", "a"), wires[2].call("BLPOP", "there", "0")), (1, ["there", "a"]))
            wires[0].close()
            wait_for(lambda: blocked(1))
            wait_for(lambda: wires[2].call("BLPOP", "list", "0.01") is None)
            for wire in wires[1:]:
                wire.close()

    def test_who_sends_no_more_keeps_no_connection_for_what_it_watches(self):
        """Other channels of its own may wait for it, and have answers to come."""
        # What is not whole at the end is kept, and looked at again and again.
        for behind in (b"", argv(5, "GET", "cut")[:-2]):
            with Server() as backend, gateway(backend.port, "--leases", "1", *PATIENT, threads=1) as server:
                with Respb(server.port) as wire, server.connect() as other:
                    self.assertEqual(wire.call_on(1, "WATCH", "k"), "+OK")
                    wire.send(argv(9, "WATCH", "k") + argv(9, "MULTI") + argv(9, "SET", "k", "v"))
                    wire.send(argv(700, "WATCH", "k") + argv(700, "MULTI") + argv(700, "INCR", "n") + argv(700, "EXEC"))
                    wait_for(lambda: "leases_waiting=2," in other.call("INFO", "gateway"))
                    wire.send(behind)
                    wire.socket.shutdown(socket.SHUT_WR)
                    frames = [wire.frame() for _ in range(7)]
                    self.assertEqual([value for channel, value in frames if channel == 9], ["+OK", "+OK", "+QUEUED"])
                    self.assertEqual([value for channel, value in frames if channel == 700], ["+OK", "+OK", "+QUEUED", [1]])
                    self.assertEqual(wire.until_closed(), b"")

    def test_channels_of_who_sends_no_more_keep_what_they_watch_until_their_exec(self):
        """Also where a queue holds the connection back, so that nothing is decoded: what a channel has sent is not known then."""
        flags = (*PATIENT, "--leases", "4", "--respb-queue-bytes", "20000")
        for is_changed in (False, True):
            with self.subTest(is_changed=is_changed), Server() as backend, backend.connect() as direct:
                relay = Relay(backend.port)
                with gateway(relay.port, *flags, threads=1) as server, Respb(server.port) as wire, server.connect() as other:
                    self.assertEqual((wire.call_on(1, "SET", "k", "old"), wire.call_on(1, "WATCH", "k")), ("+OK", "+OK"))
                    self.assertEqual(other.call("CLIENT", "PAUSE", "60000", "WRITE"), "+OK")
                    relay.hold_behind = b"under-way"
                    wire.send(argv(3, "GET", "under-way"))
                    relay.wait_for_request(b"under-way")
                    # More than may wait on that channel.
                    for number in range(40):
                        wire.send(argv(2, "SET", f"pad-{number}", "p" * 1_000))
                    wire.send(argv(1, "MULTI") + argv(1, "SET", "k", "mine") + argv(1, "EXEC"))
                    wire.socket.shutdown(socket.SHUT_WR)
                    # What comes later is answered: the end has been read.
                    self.assertEqual(other.call("PING"), "+PONG")
                    if is_changed:
                        self.assertEqual(direct.call("SET", "k", "other"), "+OK")
                    self.assertEqual(other.call("CLIENT", "UNPAUSE"), "+OK")
                    relay.hold_behind = None
                    relay.go_on()
                    frames = []
                    with self.assertRaises(Closed):
                        while True:
                            frames.append(wire.frame())
                    own = [value for channel, value in frames if channel == 1]
                    self.assertEqual(own, ["+OK", "+QUEUED", None if is_changed else ["+OK"]])
                relay.close()

    def test_who_is_ended_in_the_moment_in_which_he_blocks_blocks_nobody(self):
        """Both come at once: what blocks has not gone to the server behind when its end comes."""
        with Server() as backend, gateway(backend.port, "--leases", "1", *PATIENT, threads=1) as server, backend.connect() as direct:
            ends = {
                "kill": lambda own: argv(2, "CLIENT", "KILL", "ID", own),
                "unblock": lambda own: argv(2, "CLIENT", "UNBLOCK", own),
                "cancel": lambda _: cancel(1, 1),
                "close": lambda _: close(1),
            }
            for name, end in ends.items():
                with self.subTest(name), Respb(server.port) as wire, server.connect() as other:
                    own = wire.call_on(1, "CLIENT", "ID")
                    wire.send(argv(1, "BLPOP", "list", "0") + end(own))
                    self.assertEqual((other.call("WATCH", "k"), other.call("UNWATCH")), ("+OK", "+OK"))
                    wait_for(lambda: "blocked_clients:0\r\n" in direct.call("INFO", "clients"))
                    self.assertEqual((direct.call("RPUSH", "list", "x"), direct.call("DEL", "list")), (1, 1))

    def test_one_connection_is_lent_to_clients_of_either_protocol(self):
        with Server() as backend, gateway(backend.port, "--leases", "1", *PATIENT, threads=1) as server:
            wires = [server.connect() for _ in range(4)]
            for wire in wires[1::2]:
                wire.call("HELLO", "3")
            for _ in range(20):
                for wire in wires:
                    wire.send(request("BLPOP", "list", "0.001"))
                self.assertEqual([wire.reply() for wire in wires], [None] * 4)
                # Nothing is left of who had it before: EXEC would be null.
                for wire in wires:
                    self.assertEqual([wire.call("WATCH", "k"), wire.call("SET", "k", "v"), wire.call("UNWATCH")], ["+OK"] * 3)
                for wire in wires:
                    wire.send(request("WATCH", "other") + request("MULTI") + request("HGETALL", "none") + request("EXEC"))
                for at, wire in enumerate(wires):
                    self.assertEqual([wire.reply() for _ in range(4)], ["+OK", "+OK", "+QUEUED", [{} if at % 2 else []]])
            for wire in wires:
                wire.close()

    def test_who_needs_a_connection_of_his_own_while_a_script_runs_is_told_so(self):
        """In the server's own words: it is there, and clients know what BUSY means."""
        with Server("--busy-reply-threshold", "20") as backend, gateway(backend.port, *PATIENT, threads=1) as server:
            with server.connect() as wire, backend.connect() as direct, backend.connect() as runs:
                self.assertIsNone(wire.call("GET", "k"))
                runs.send(request("EVAL", "while true do end", "0"))
                wait_for(lambda: str(direct.call("GET", "k")).startswith("-BUSY"))
                # The second time it has been tried in vain.
                for _ in range(2):
                    for words in (("BLPOP", "list", "0.01"), ("WATCH", "k")):
                        self.assertTrue(str(refused := wire.call(*words)).startswith("-BUSY "), (words, refused))
                self.assertEqual(wire.call("SCRIPT", "KILL"), "+OK")
                self.assertRegex(runs.reply(), "killed")
                wait_for(lambda: wire.call("BLPOP", "list", "0.01") is None)

    def test_a_password_behind(self):
        with Server("--requirepass", "s3cret") as backend:
            with gateway(f"redis://default:s3cret@127.0.0.1:{backend.port}") as server, server.connect() as wire:
                self.assertEqual(wire.call("SET", "k", "v"), "+OK")
            with gateway(f"redis://default:wrong@127.0.0.1:{backend.port}") as server, server.connect() as wire:
                reply = wire.call("GET", "k")
                self.assertIn("cannot be reached", reply)
                self.assertIn("WRONGPASS", reply)
                self.assertNotIn("wrong@", reply)

    def test_tls_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            authority, stranger = Authority(folder), Authority(folder, "stranger")
            flags = authority.flags(*authority.sign("server"), clients="yes")
            certificate, key = authority.sign("client")
            with Server(*flags) as backend:
                to = f"rediss://127.0.0.1:{backend.port}"
                shown = ("--upstream-cert", certificate, "--upstream-key", key)
                with gateway(to, "--upstream-ca", authority.file, *shown) as server, server.connect() as wire:
                    self.assertEqual((wire.call("SET", "k", "x" * 100_000), wire.call("STRLEN", "k")), ("+OK", 100_000))
                    wire.send(b"".join(request("GET", "k") for _ in range(100)))
                    self.assertEqual({wire.reply() for _ in range(100)}, {"x" * 100_000})
                with gateway(to, "--upstream-ca", stranger.file, *shown) as server, server.connect() as wire:
                    self.assertIn("cannot be reached", wire.call("GET", "k"))
            self.assertEqual(backend.process.returncode, 0)

    def test_words_of_the_command_line(self):
        def run(*words):
            done = subprocess.run([PROGRAM, "gateway", *words], capture_output=True, text=True, timeout=REPLY_SECONDS, check=False)
            return done.returncode, done.stdout + done.stderr

        self.assertEqual(run("--help")[0], 0)
        self.assertIn("weft gateway --to redis://10.0.0.5:6379", run("--help")[1])
        for words, why in (
            ((), "--to redis://host:port"),
            (("--to", "redis://127.0.0.1:1", "--leases", "0"), "--leases is a number from 1 to 10000"),
            (("--to", "cluster://127.0.0.1:1,"), "hosts stand behind each other with commas"),
            (("--to", "sentinel://127.0.0.1:1"), "sentinel://host:26379/mymaster"),
            (("--to", "redis://127.0.0.1:1", "--upstream-ca", "x"), "--upstream-ca is about TLS: --to rediss://host:port"),
            (("--to", "redis://127.0.0.1:1", "--nonsense", "x"), "nonsense"),
        ):
            status, said = run(*words)
            self.assertEqual((status, why in said), (2, True), said)
        status, said = run("--to", "redis://127.0.0.1:1", "--appendonly", "yes", "--port", "0")
        self.assertTrue(status != 0 and "a gateway has no keys to keep" in said, said)

if __name__ == "__main__":
    unittest.main()
