"""Owns: a gateway in front of servers that change places: what follows them. Does not own: what holds in front of any server
(`test_gateway`)."""

import os
import subprocess
import tempfile
import unittest

from behind import PATIENT, REDIS, Redis, gateway
from certificates import Authority
from nodes import wait_for
from server import Closed, free_port, request

ROUNDS = 20


class Sentinel:
    """A Sentinel of the tests' own, which takes only a promise of the tests for a reason to act. `more`: lines of its settings."""

    def __init__(self, folder, port_of_master, more=""):
        self.port = free_port()
        path = f"{folder}/sentinel-{self.port}.conf"
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                f"port {self.port}\nbind 127.0.0.1\ndir {folder}\n{more}"
                f"sentinel monitor main 127.0.0.1 {port_of_master} 1\n"
                "sentinel down-after-milliseconds main 3600000\n"
            )
        self.process = subprocess.Popen([REDIS, path, "--sentinel"], stdout=subprocess.DEVNULL)
        wait_for(self.answers)

    answers, stop, connect = Redis.answers, Redis.end, Redis.connect


@unittest.skipUnless(REDIS, "redis-server is not installed: apt-get install redis-server")
class BehindOne(unittest.TestCase):
    def test_who_becomes_a_copy_is_left_to_whoever_made_it_one(self):
        """REPLICAOF, and no Sentinel: clients see what they would see of the server itself, and it goes on when it is a primary again."""
        one, two = self.enterContext(Redis()), self.enterContext(Redis())
        log = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "log")
        server = self.enterContext(gateway(one.port, *PATIENT, "--logfile", log))
        wire, tracks, subscriber, watches, blocks, reads, direct, other = (
            self.enterContext(of.connect()) for of in (server,) * 6 + (one, two)
        )
        tracks.call("HELLO", "3")
        self.assertEqual([wire.call("SET", "k", "1"), tracks.call("CLIENT", "TRACKING", "ON"), tracks.call("GET", "k")], ["+OK", "+OK", "1"])
        subscriber.send(request("SUBSCRIBE", "news"))
        self.assertEqual(subscriber.reply(), ["subscribe", "news", 1])
        self.assertEqual([watches.call("WATCH", "k"), other.call("SET", "k", "of two")], ["+OK", "+OK"])
        blocks.send(request("BLPOP", "list", "0"))
        wait_for(lambda: "blocked_clients:1\r\n" in direct.call("INFO", "clients"))

        self.assertEqual(direct.call("REPLICAOF", "127.0.0.1", two.port), "+OK")
        self.assertTrue(blocks.reply().startswith("-UNBLOCKED force unblock"))
        wait_for(lambda: "master_link_status:up" in direct.call("INFO", "replication"))
        # All that it had is gone.
        self.assertEqual([tracks.reply(), tracks.call("GET", "k")], [["invalidate", None], "of two"])
        for words in (("SET", "k", "2"), ("BLPOP", "list", "1"), ("EVAL", "return redis.call('SET', KEYS[1], '1')", "1", "k")):
            for client in (wire, blocks, direct):
                self.assertRegex(client.call(*words), "^-READONLY ", words)
        for client, begin in ((watches, ()), (wire, ()), (wire, (("WATCH", "k"),))):
            self.assertEqual([client.call(*words) for words in begin], ["+OK"] * len(begin))
            client.send(request("MULTI") + request("GET", "k") + request("SET", "k", "3") + request("EXEC"))
            self.assertRegex([client.reply() for _ in range(4)][3], "^-EXECABORT .*READONLY")
        self.assertEqual([wire.call("GET", "k"), wire.call("STRLEN", "k")], ["of two", 6])
        other.call("PUBLISH", "news", "from two")
        self.assertEqual(subscriber.reply(), ["message", "news", "from two"])
        reads.send(request("XREAD", "BLOCK", "0", "STREAMS", "stream", "$"))
        wait_for(lambda: "blocked_clients:1\r\n" in direct.call("INFO", "clients"))

        self.assertEqual(direct.call("REPLICAOF", "NO", "ONE"), "+OK")
        # Over the connections that there were.
        self.assertEqual([wire.call("XADD", "stream", "1-1", "a", "b"), reads.reply()], ["1-1", [["stream", [["1-1", ["a", "b"]]]]]])
        self.assertEqual([watches.call("WATCH", "k"), wire.call("RPUSH", "list", "v"), blocks.call("BLPOP", "list", "0")], ["+OK", 1, ["list", "v"]])
        watches.send(request("MULTI") + request("SET", "k", "4") + request("EXEC"))
        self.assertEqual([watches.reply() for _ in range(3)], ["+OK", "+QUEUED", ["+OK"]])
        self.assertEqual([tracks.reply(), tracks.call("GET", "k")], [["invalidate", ["k"]], "4"])
        figures = dict(line.partition(":")[::2] for line in wire.call("INFO", "gateway").splitlines())
        # SET, BLPOP and EVAL of two clients, three transactions; and of what was lost, who blocked.
        self.assertEqual((figures["gateway_readonly_total"], figures["gateway_connections_lost_total"]), ("9", "1"))
        with open(log, encoding="utf-8") as file:
            said = file.read()
        self.assertEqual(said.count("refuses writes as a replica does (READONLY)"), 1, said)


@unittest.skipUnless(REDIS, "redis-server is not installed: apt-get install redis-server")
class BehindSentinel(unittest.TestCase):
    def test_a_failover_is_followed(self):
        with tempfile.TemporaryDirectory() as folder:
            one = self.enterContext(Redis())
            two = self.enterContext(Redis("--replicaof", "127.0.0.1", one.port))
            sentinel = Sentinel(folder, one.port)
            self.addCleanup(sentinel.stop)
            # Nobody listens at the first address: the next is asked.
            to = f"sentinel://127.0.0.1:{free_port()},127.0.0.1:{sentinel.port}/main"
            server = self.enterContext(gateway(to, *PATIENT))

            def has(value):
                # Sentinel closes what is open when a server's part changes.
                with two.connect() as direct:
                    return direct.call("GET", "k") == value

            with server.connect() as wire, server.connect() as subscriber, sentinel.connect() as asked:
                self.assertEqual(wire.call("SET", "k", "before"), "+OK")
                subscriber.send(request("SUBSCRIBE", "news"))
                self.assertEqual(subscriber.reply(), ["subscribe", "news", 1])
                # The copy has all, and Sentinel knows of it.
                wait_for(lambda: has("before"))
                wait_for(lambda: asked.call("SENTINEL", "FAILOVER", "main") == "+OK")
                wait_for(lambda: asked.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main") == ["127.0.0.1", str(two.port)])
                wait_for(lambda: wire.call("SET", "k", "behind") == "+OK" and has("behind"))
                self.assertRaises((Closed, ConnectionResetError), subscriber.reply)
                self.assertEqual(wire.call("INCR", "n"), 1)

    def test_all_of_it_under_tls(self):
        """Sentinel, the master that it names and the one behind the failover; nothing of the gateway's goes without."""
        with tempfile.TemporaryDirectory() as folder:
            authority = Authority(folder)
            flags = authority.flags(*authority.sign("node"))
            ports = [free_port() for _ in range(2)]
            one = self.enterContext(Redis("--tls-port", ports[0], "--tls-replication", "yes", *flags))
            two = self.enterContext(Redis("--tls-port", ports[1], "--tls-replication", "yes", *flags, "--replicaof", "127.0.0.1", ports[0]))
            tls_port = free_port()
            words = [f"{name[2:]} {value}\n" for name, value in zip(flags[::2], flags[1::2], strict=True)]
            sentinel = Sentinel(folder, ports[0], f"tls-port {tls_port}\ntls-replication yes\n{''.join(words)}")
            self.addCleanup(sentinel.stop)
            server = self.enterContext(gateway(f"sentinel+tls://127.0.0.1:{tls_port}/main", *PATIENT, "--upstream-ca", authority.file))

            def has(value):
                with two.connect() as direct:
                    return direct.call("GET", "k") == value

            with server.connect() as wire, sentinel.connect() as asked, one.connect() as master:
                self.assertEqual(wire.call("SET", "k", "before"), "+OK")
                # The port without TLS has nobody but the test itself.
                plain = [line for line in master.call("CLIENT", "LIST").splitlines() if f"laddr=127.0.0.1:{one.port} " in line]
                self.assertEqual(len(plain), 1, plain)
                wait_for(lambda: has("before"))
                wait_for(lambda: asked.call("SENTINEL", "FAILOVER", "main") == "+OK")
                wait_for(lambda: asked.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main") == ["127.0.0.1", str(ports[1])])
                wait_for(lambda: wire.call("SET", "k", "behind") == "+OK" and has("behind"))
            # Whoever it is must show who it is.
            with tempfile.TemporaryDirectory() as elsewhere:
                others = Authority(elsewhere)
                with gateway(f"sentinel+tls://127.0.0.1:{tls_port}/main", "--upstream-ca", others.file) as server, server.connect() as wire:
                    self.assertIn("cannot be reached", wire.call("GET", "k"))

    def behind_a_sentinel(self, folder):
        """A gateway, the master that its sentinel names, and a server that may become one."""
        one, two = Redis(), Redis()
        self.addCleanup(one.stop)
        self.addCleanup(two.stop)
        sentinel = Sentinel(folder, one.port)
        self.addCleanup(sentinel.stop)
        server = self.enterContext(gateway(f"sentinel://127.0.0.1:{sentinel.port}/main", *PATIENT, threads=1))
        return server, one, two

    def test_a_script_that_says_it_is_a_copy(self):
        with tempfile.TemporaryDirectory() as folder:
            server, one, two = self.behind_a_sentinel(folder)

            def connections():
                return [line for line in admin.call("INFO", "stats").splitlines() if line.startswith("total_connections_received:")]

            with server.connect() as wire, server.connect() as other, one.connect() as admin:
                self.assertEqual([wire.call("INCR", "n"), other.call("INCR", "n")], [1, 2])
                before = connections()
                for number in range(ROUNDS):
                    wire.send(request("EVAL", "return redis.error_reply('READONLY no')", "0"))
                    self.assertEqual(other.call("INCR", "n"), number + 3)
                    self.assertEqual(wire.reply(), "-READONLY no")
                self.assertEqual(connections(), before, "a connection that others share was ended")
                # One that says so because it is so.
                self.assertEqual(admin.call("REPLICAOF", "127.0.0.1", two.port), "+OK")
                wait_for(lambda: "no master yet" in str(wire.call("EVAL", "return redis.call('SET', KEYS[1], '1')", "1", "n")))

    def test_a_copy_is_left_by_who_sends_only_transactions(self):
        with tempfile.TemporaryDirectory() as folder:
            server, one, two = self.behind_a_sentinel(folder)

            def together(first):
                wire.send(b"".join(request(*words) for words in (first, ("MULTI",), ("INCR", "n"), ("EXEC",))))
                return str([wire.reply() for _ in range(4)])

            with server.connect() as wire, one.connect() as admin:
                # Over the connection that all share, and over one of its own.
                for first in (("GET", "n"), ("WATCH", "n")):
                    self.assertEqual(admin.call("REPLICAOF", "NO", "ONE"), "+OK")
                    wait_for(lambda first=first: together(first).endswith("'+QUEUED', [1]]") and wire.call("DEL", "n") == 1)
                    # Nobody ends the connections that stand.
                    self.assertEqual(admin.call("REPLICAOF", "127.0.0.1", two.port), "+OK")
                    self.assertIn("READONLY", together(first))
                    self.assertIn("no master yet", together(first))

    def test_a_name_that_nobody_knows(self):
        with tempfile.TemporaryDirectory() as folder:
            one = self.enterContext(Redis())
            sentinel = Sentinel(folder, one.port)
            self.addCleanup(sentinel.stop)
            with gateway(f"sentinel://127.0.0.1:{sentinel.port}/other") as server, server.connect() as wire:
                self.assertIn("no Sentinel knows a master of that name", wire.call("GET", "k"))


if __name__ == "__main__":
    unittest.main()
