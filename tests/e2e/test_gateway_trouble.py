"""Owns: a gateway and its clients when the network or the server behind misbehaves: late and trickling bytes, half-closed, reset and
silent connections, servers that are stopped or killed; time limits, the circuit breaker, and what is told of all that. Does not
own: what holds when all is well (`test_gateway`), slots and failovers (`test_gateway_cluster`)."""

import http.client
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import unittest.mock

from behind import PATIENT, REDIS, Busy, Redis, Relay, gateway
from nodes import wait_for
from server import REPLY_SECONDS, Closed, Server, halt, request
from toxic import Toxic, is_linearizable

CLIENTS = 6
ROUNDS = 40
LIMIT_MS = 1_500
# A client that was refused asks again so much later.
BACK_OFF_SECONDS = 0.02
SHORT_MS = 1_500
# A connection that is silent for so long is asked whether its server is there, which has as long to answer.
IDLE_MS = 4_000


def figures(server):
    """What INFO has of the one server behind."""
    with server.connect() as wire:
        lines = dict(line.partition(":")[::2] for line in wire.call("INFO", "gateway").splitlines())
    node = dict(field.partition("=")[::2] for field in lines["gateway_node0"].split(","))
    return lines, node


class Counting(Busy):
    """Clients that count together, each in so many pipelines, and write down what they are told and when."""

    def __init__(self, port, pipelines=ROUNDS):
        self.pipelines, self.told, self.errors = pipelines, [], []
        super().__init__(port, CLIENTS)

    def work(self, wire, number):
        for turn in range(self.pipelines):
            count = 1 + (number + turn) % 5
            begin = time.monotonic()
            wire.send(request("INCR", "n") * count)
            for _ in range(count):
                reply = wire.reply()
                with self.lock:
                    if isinstance(reply, int):
                        self.told.append((begin, time.monotonic(), reply))
                    else:
                        self.errors.append(reply)
            if self.errors:
                time.sleep(BACK_OFF_SECONDS)


class Behind(unittest.TestCase):
    """One server behind a network of the tests."""

    def start(self, *flags, backend=None, **toxics):
        self.backend = backend or Server()
        self.addCleanup(self.backend.stop)
        self.network = Toxic(self.backend.port, **toxics)
        self.addCleanup(self.network.close)
        self.server = self.enterContext(gateway(self.network.port, *(flags or PATIENT), threads=1))

    def connect(self):
        return self.enterContext(self.server.connect())

    def direct(self, *words):
        with self.backend.connect() as wire:
            return wire.call(*words)

    def assert_exact(self, counting):
        numbers = [number for _, _, number in counting.told]
        self.assertTrue(is_linearizable(counting.told))
        self.assertLessEqual(set(numbers), self.network.numbers(), "the gateway has told what the server has not")
        self.assertLessEqual(max(numbers), int(self.direct("GET", "n")))


class Networks(Behind):
    def test_late_and_byte_by_byte(self):
        self.start(delay=0.02, trickles=True)
        counting = Counting(self.server.port)
        counting.join()
        self.assertEqual(counting.errors, [])
        self.assert_exact(counting)
        self.assertEqual(int(self.direct("GET", "n")), len(counting.told))

    def test_several_gateways_need_nothing_of_each_other(self):
        self.start()
        other = gateway(self.network.port, *PATIENT, threads=1)
        countings = [Counting(self.server.port), Counting(other.port)]
        countings[1].join()
        self.assertEqual(other.stop(), 0)
        countings[0].join()
        told = countings[0].told + countings[1].told
        self.assertEqual(countings[0].errors + countings[1].errors, [])
        self.assertTrue(is_linearizable(told))
        self.assertEqual(int(self.direct("GET", "n")), len(told))

    def test_connections_that_break_again_and_again(self):
        self.start(delay=0.005)
        counting = Counting(self.server.port, 4 * ROUNDS)
        for turn in range(8):
            before = len(counting.told)
            wait_for(lambda before=before: len(counting.told) > before + 20 or not any(thread.is_alive() for thread in counting.threads))
            (self.network.half_close if turn % 2 else self.network.reset)()
        counting.join()
        self.assert_exact(counting)
        # Each error says whether it may have run, or why it was not tried.
        for error in counting.errors:
            self.assertTrue("was lost" in error or "cannot be reached" in error, error)
        in_doubt = sum("is not known" in error for error in counting.errors)
        self.assertLessEqual(int(self.direct("GET", "n")), len(counting.told) + in_doubt)
        _, node = figures(self.server)
        self.assertGreater(int(node["connections_lost_total"]), 0)

    def test_a_network_that_swallows(self):
        self.start("--upstream-timeout", str(SHORT_MS))
        wire = self.connect()
        wait_for(lambda: wire.call("SET", "k", "v") == "+OK")
        self.network.swallow(True)
        self.assertIn("upstream-timeout", wire.call("INCR", "n"))
        # Nobody waits for a server that says nothing.
        self.assertIn("cannot be reached", wire.call("GET", "k"))
        self.assertIn(figures(self.server)[1]["state"], ("down", "trying"))
        self.network.swallow(False)
        # It is tried though nobody asks for anything.
        wait_for(lambda: figures(self.server)[1]["state"] == "up")
        wait_for(lambda: wire.call("GET", "k") == "v")

    def test_a_server_that_stands_still(self):
        self.start("--upstream-timeout", str(SHORT_MS))
        wire = self.connect()
        wait_for(lambda: wire.call("SET", "k", "v") == "+OK")
        halt(self.backend)
        try:
            self.assertIn("upstream-timeout", wire.call("INCR", "n"))
            self.assertIn("cannot be reached", wire.call("GET", "k"))
        finally:
            os.kill(self.backend.process.pid, signal.SIGCONT)
        wait_for(lambda: wire.call("GET", "k") == "v")


class Subscriptions(Behind):
    """Who listens counts on hearing."""

    def subscribed(self, channel):
        wire = self.connect()

        def is_subscribed():
            # The server may have been tried in vain just now.
            wire.send(request("SUBSCRIBE", channel))
            return wire.reply() == ["subscribe", channel, 1]

        wait_for(is_subscribed)
        return wire

    def test_a_server_that_stands_still(self):
        self.start("--upstream-timeout", str(SHORT_MS))
        subscriber, late = self.subscribed("news"), self.connect()
        halt(self.backend)
        try:
            late.send(request("SUBSCRIBE", "other"))
            self.assertRegex(late.reply(), f"cannot be reached: nothing came for {SHORT_MS} ms")
            # Whoever is subscribed would miss what is published.
            self.assertRaises((Closed, ConnectionResetError), subscriber.reply)
        finally:
            os.kill(self.backend.process.pid, signal.SIGCONT)
        again = self.subscribed("news")
        self.assertEqual(self.direct("PUBLISH", "news", "m"), 1)
        self.assertEqual(again.reply(), ["message", "news", "m"])
        self.assertEqual(late.call("PING"), "+PONG")

    def test_a_busy_channel_holds_up_nobody(self):
        backend = Flooding()
        self.addCleanup(backend.close)
        server = self.enterContext(gateway(backend.port, *PATIENT, threads=1))
        for number in range(3):
            with server.connect() as wire:
                self.assertEqual(wire.call("SUBSCRIBE", f"c{number}"), ["subscribe", f"c{number}", 1])

    def test_who_hears_nothing_for_long_stays(self):
        backends = [Server()] if REDIS is None else [Server(), Redis()]
        for backend in backends:
            with self.subTest(backend=type(backend).__name__):
                self.addCleanup(backend.stop)
                relay = Relay(backend.port)
                self.addCleanup(relay.close)
                server = self.enterContext(gateway(relay.port, "--upstream-timeout", str(IDLE_MS), threads=1))
                with server.connect() as wire, backend.connect() as direct:
                    wait_for(lambda wire=wire: wire.call("SUBSCRIBE", "news") == ["subscribe", "news", 1])
                    # The server is asked again only when it has answered, and nothing else is asked here.
                    for times in range(2, 4):
                        relay.wait_for_request(request("PING"), times)
                    self.assertEqual(direct.call("PUBLISH", "news", "m"), 1)
                    self.assertEqual(wire.reply(), ["message", "news", "m"])


@unittest.skipUnless(REDIS, "redis-server is not installed: apt-get install redis-server")
class Closing(unittest.TestCase):
    def test_a_server_that_closes_behind_its_answer(self):
        backend = self.enterContext(Redis())
        relay = Relay(backend.port)
        self.addCleanup(relay.close)
        with gateway(relay.port, *PATIENT, threads=1) as server, server.connect() as wire:
            self.assertEqual(wire.call("SET", "k", "v"), "+OK")
            relay.hold()
            wire.send(request("GET", "k"))
            with backend.connect() as direct:
                wait_for(lambda: "cmdstat_get:calls=1," in direct.call("INFO", "commandstats"))
            halt(server)
            try:
                # Both are there when it looks: the answer, and the end.
                relay.go_on()
                backend.end()
                wait_for(lambda: not relay.pairs)
            finally:
                os.kill(server.process.pid, signal.SIGCONT)
            self.assertEqual(wire.reply(), "v")
            self.enterContext(Redis(port=backend.port))
            # It was not sent where nobody is any more.
            self.assertEqual(wire.call("SET", "k", "2"), "+OK")


class Flooding:
    """A server that sends messages of a channel of nobody's, faster than anybody takes them, from the first subscription on."""

    FLOOD = b">3\r\n$7\r\nmessage\r\n$7\r\nnobody'\r\n$1\r\nm\r\n" * (1 << 14)

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.over = threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.over.is_set():
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        lock, count = threading.Lock(), 0
        try:
            while piece := peer.recv(1 << 16):
                words = piece.split(b"\r\n")
                if b"SUBSCRIBE" not in words:
                    peer.sendall(b"%1\r\n+proto\r\n:3\r\n" if b"HELLO" in words else b"+OK\r\n")
                    continue
                name = words[words.index(b"SUBSCRIBE") + 2]
                count += 1
                with lock:
                    peer.sendall(b">3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:%d\r\n" % (len(name), name, count))
                if count == 1:
                    threading.Thread(target=self.flood, args=(peer, lock), daemon=True).start()
        except OSError:
            pass

    def flood(self, peer, lock):
        try:
            while not self.over.is_set():
                with lock:
                    peer.sendall(self.FLOOD)
        except OSError:
            pass

    def close(self):
        self.over.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class OutOfTurn(Behind):
    """Replies that cannot be: nobody gets what is another's."""

    def setUp(self):
        self.start()
        self.relay = Relay(self.backend.port)
        self.addCleanup(self.relay.close)
        self.server = self.enterContext(gateway(self.relay.port, *PATIENT, threads=1))

    def test_exec_that_leaves_the_transaction_open(self):
        # As by a server that refuses EXEC and stays in MULTI: a word that it does not know is in EXEC's place.
        one, other, reads = self.connect(), self.connect(), self.connect()
        self.assertEqual([other.call("SET", "k", "v"), reads.call("GET", "k")], ["+OK", "v"])
        self.relay.instead = (b"$4\r\nEXEC\r\n", b"$4\r\nEXAC\r\n")
        self.relay.hold()
        one.send(request("MULTI") + request("SET", "k", "1") + request("EXEC"))
        self.relay.wait_for_request(b"EXAC")
        self.relay.instead = None
        other.send(request("SET", "k", "2"))
        self.relay.wait_for_request(request("SET", "k", "2"))
        reads.send(request("GET", "k"))
        self.relay.wait_for_request(request("GET", "k"), 2)
        self.relay.go_on()
        self.assertEqual([one.reply(), one.reply()], ["+OK", "+QUEUED"])
        self.assertRegex(one.reply(), "has refused EXEC .*: whether the transaction has run is not known")
        self.assertRegex(other.reply(), "has left a transaction open.*: whether the request has run is not known")
        self.assertEqual([reads.reply(), reads.call("SET", "k", "3"), other.call("GET", "k")], ["v", "+OK", "3"])

    def test_a_connection_in_somebodys_transaction(self):
        wire = self.connect()
        self.assertEqual(wire.call("SET", "k", "v"), "+OK")
        self.relay.instead = (b"$1\r\nx\r\n", b"$1\r\nx\r\n*1\r\n$5\r\nMULTI\r\n")
        wire.send(request("GET", "x") + request("INCR", "n") + request("INCR", "n"))
        replies = [wire.reply() for _ in range(3)]
        # The reply to MULTI has come in the place of INCR's: that is not seen, but what comes behind it is.
        self.assertEqual(replies[:2], [None, "+OK"])
        self.assertRegex(replies[2], "a reply came that cannot be the one that is due.*: whether the request has run is not known")
        self.relay.instead = None
        self.assertEqual([wire.call("GET", "n"), wire.call("GET", "k")], [None, "v"])


class Leases(Behind):
    def test_who_has_a_connection_keeps_it_when_another_ones_exec_is_answered(self):
        self.start()
        self.relay = Relay(self.backend.port)
        self.addCleanup(self.relay.close)
        self.server = self.enterContext(gateway(self.relay.port, *PATIENT, "--leases", "1", threads=1))
        leaves, watches, waits = self.connect(), self.connect(), self.connect()
        self.assertEqual([leaves.call("WATCH", "a"), leaves.call("MULTI"), leaves.call("SET", "a", "1")], ["+OK", "+OK", "+QUEUED"])
        self.relay.hold()
        leaves.send(request("EXEC"))
        self.relay.wait_for_request(request("SET", "a", "1") + request("EXEC"))
        # It is reset: a client that only says no more has its answers first.
        leaves.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        leaves.close()
        # Its connection is lent on when that EXEC, and what leaves nothing of it, is answered.
        watches.send(request("WATCH", "b") + request("GET", "b"))
        wait_for(lambda: figures(self.server)[1]["leases_waiting"] == "1")
        waits.send(request("WATCH", "c"))
        self.relay.go_on()
        self.assertEqual([watches.reply(), watches.reply()], ["+OK", None])
        self.assertTrue(waits.is_silent())
        self.assertEqual([watches.call("MULTI"), watches.call("SET", "b", "1"), watches.call("EXEC")], ["+OK", "+QUEUED", ["+OK"]])
        self.assertEqual(waits.reply(), "+OK")

    def test_who_is_to_be_woken_and_has_what_he_waited_for_wakes_nobody_else(self):
        self.start()
        self.relay = Relay(self.backend.port)
        self.addCleanup(self.relay.close)
        self.server = self.enterContext(gateway(self.relay.port, *PATIENT, "--leases", "1", threads=1))
        first, second, admin = self.connect(), self.connect(), self.connect()
        number = first.call("CLIENT", "ID")
        first.send(request("BLPOP", "a", "0"))
        wait_for(lambda: "blocked_clients:1\r\n" in self.direct("INFO", "clients"))
        self.relay.late = b"UNBLOCK"
        self.assertEqual(admin.call("CLIENT", "UNBLOCK", str(number)), 1)
        self.relay.wait_for_request(b"UNBLOCK")
        self.assertEqual(self.direct("RPUSH", "a", "1"), 1)
        self.assertEqual(first.reply(), ["a", "1"])
        second.send(request("WATCH", "b") + request("BLPOP", "b", "0"))
        self.assertTrue(second.is_silent(), "the connection may still be woken")
        self.relay.go_on()
        self.assertEqual(second.reply(), "+OK")
        wait_for(lambda: "blocked_clients:1\r\n" in self.direct("INFO", "clients"))
        self.assertEqual(self.direct("RPUSH", "b", "2"), 1)
        self.assertEqual(second.reply(), ["b", "2"])


class Limits(Behind):
    def test_a_command_has_its_time(self):
        self.start(*PATIENT, "--command-timeout", str(LIMIT_MS))
        wire, other, waits = self.connect(), self.connect(), self.connect()
        wait_for(lambda: [wire.call("SET", "k", "v"), other.call("GET", "k")] == ["+OK", "v"])
        waits.send(request("BLPOP", "list", "0"))
        wait_for(lambda: "blocked_clients:1\r\n" in self.direct("INFO", "clients"))
        self.network.swallow(True)
        wire.send(request("INCR", "n") + request("GET", "k"))
        for _ in range(2):
            self.assertIn(f"has not answered in {LIMIT_MS} ms (command-timeout): whether the request has run is not known", wire.reply())
        self.network.swallow(False)
        # Replies that come late are nobody's.
        self.assertEqual([wire.call("GET", "k"), other.call("STRLEN", "k"), wire.call("GET", "n")], ["v", 1, "1"])
        self.assertTrue(waits.is_silent(), "who blocks has all the time that he wants")
        self.assertEqual(other.call("RPUSH", "list", "x"), 1)
        self.assertEqual(waits.reply(), ["list", "x"])
        self.assertGreaterEqual(int(figures(self.server)[1]["late_total"]), 2)

    def test_what_is_told(self):
        self.start()
        wire = self.connect()
        self.assertEqual([wire.call("SET", "k", "v"), wire.call("WATCH", "k")], ["+OK", "+OK"])
        # Some figures are looked at ten times a second.
        wait_for(lambda: figures(self.server)[1]["leases"] == "1")
        lines, node = figures(self.server)
        self.assertEqual((lines["gateway_nodes"], node["state"], node["connections"]), ("1", "up", "1"))
        self.assertEqual(lines["gateway_requests_total"], node["requests_total"])
        self.assertGreaterEqual(int(node["requests_total"]), 2)
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=REPLY_SECONDS)
        self.addCleanup(connection.close)
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        shown = f'{{node="127.0.0.1:{self.network.port}"'
        self.assertIn(f'weft_gateway_node_up{shown},state="up"}} 1\n', page)
        self.assertIn(f"weft_gateway_connections{shown}}} 1\n", page)
        self.assertIn("# TYPE weft_gateway_requests_total counter\n", page)
        with self.backend.connect() as direct:
            self.assertEqual(direct.call("INFO", "gateway"), "")


class Vanished(Behind):
    """The other end of a connection is gone, and no packet says so."""

    def test_who_blocks_is_asked_for_by_the_system(self):
        self.start()
        with self.connect() as wire:
            wait_for(lambda: wire.call("SET", "k", "v") == "+OK")
            wire.send(request("BLPOP", "list", "0"))
            wait_for(lambda: self.direct("INFO", "clients").count("blocked_clients:1\r\n"))
            with self.server.connect() as admin:
                lines = dict(line.partition(":")[::2] for line in admin.call("INFO", "gateway").splitlines())
            count = int(lines["gateway_connections"]) + int(lines["gateway_leases"])
            self.assertGreater(count, 1)

            def are_asked_for():
                # Within thirty seconds, and given up as long after.
                timers = alarms(self.network.port)
                return len(timers) == count and all(kind == KEEP_ALIVE and seconds <= 30 for kind, seconds in timers)

            wait_for(are_asked_for)


# The kind of a socket's timer that asks whether the other end is there.
KEEP_ALIVE = 2


def alarms(port):
    """Of each connection to a port of this machine: the kind of its timer, and in how many seconds it goes off."""
    found = []
    with open("/proc/net/tcp", encoding="ascii") as table:
        for line in table.readlines()[1:]:
            _, _, remote, state, _, timer, *_ = line.split()
            if int(remote.partition(":")[2], 16) == port and state == "01":
                kind, ticks = (int(number, 16) for number in timer.split(":"))
                found.append((kind, ticks / os.sysconf("SC_CLK_TCK")))
    return found


@unittest.skipUnless(shutil.which("cc"), "there is no compiler for a clock that the test sets")
class Clocks(Behind):
    """The clock of the machine is set; that is about no limit of time."""

    # The time of day, so many seconds from what it is.
    SOURCE = """
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        #include <sys/syscall.h>
        #include <time.h>
        #include <unistd.h>
        int clock_gettime(clockid_t clock, struct timespec *time) {
            static const long *offset;
            int result = syscall(SYS_clock_gettime, clock, time);
            if (!offset) offset = mmap(0, 8, PROT_READ, MAP_SHARED, open(getenv("CLOCK_OFFSET"), O_RDONLY), 0);
            if (clock == CLOCK_REALTIME) time->tv_sec += *offset;
            return result;
        }
    """

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source, library, self.offset = (os.path.join(folder.name, name) for name in ("clock.c", "clock.so", "offset"))
        with open(source, "w", encoding="ascii") as file:
            file.write(self.SOURCE)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        with open(self.offset, "wb") as file:
            file.write(struct.pack("=q", 0))
        self.environment = unittest.mock.patch.dict(os.environ, {"LD_PRELOAD": library, "CLOCK_OFFSET": self.offset})
        self.backend = self.enterContext(Server())

    def gateway(self, *flags):
        with self.environment:
            return self.enterContext(gateway(self.backend.port, *flags, threads=1))

    def jump(self, seconds):
        with open(self.offset, "r+b") as file:
            file.write(struct.pack("=q", seconds))

    def time(self, wire):
        return float(dict(line.partition(":")[::2] for line in wire.call("INFO", "server").splitlines())["server_time_usec"]) / 1e6

    def test_it_is_set_back(self):
        server = self.gateway("--upstream-timeout", str(SHORT_MS))
        with server.connect() as wire:
            wait_for(lambda: wire.call("SET", "k", "v") == "+OK")
            before = self.time(wire)
            self.jump(-3_600)
            wait_for(lambda: self.time(wire) < before - 1_800)
            halt(self.backend)
            try:
                self.assertIn("upstream-timeout", wire.call("INCR", "n"))
                self.jump(-7_200)
            finally:
                os.kill(self.backend.process.pid, signal.SIGCONT)
            wait_for(lambda: wire.call("GET", "k") == "v")

    def test_it_is_set_forth(self):
        server = self.gateway(*PATIENT)
        with server.connect() as wire, server.connect() as other:
            self.assertEqual(wire.call("SET", "n", "1"), "+OK")
            halt(self.backend)
            try:
                wire.send(request("INCR", "n"))
                wait_for(lambda: "gateway_in_flight:1" in other.call("INFO", "gateway"))
                before = self.time(other)
                self.jump(36_000)
                wait_for(lambda: self.time(other) > before + 18_000)
                self.assertIn("gateway_in_flight:1", other.call("INFO", "gateway"))
            finally:
                os.kill(self.backend.process.pid, signal.SIGCONT)
            self.assertEqual(wire.reply(), 2)


class Kills(Behind):
    """The server is killed, and begins again where its log ends."""

    def kills(self, make):
        self.start(backend=make(None))
        counting = Counting(self.server.port, 6 * ROUNDS)
        for _ in range(3):
            before = len(counting.told)
            wait_for(lambda before=before: len(counting.told) > before + 30 or not any(thread.is_alive() for thread in counting.threads))
            self.backend.process.kill()
            self.backend.process.wait(REPLY_SECONDS)
            self.backend = make(self.backend.port)
            self.addCleanup(self.backend.stop)
        counting.join()
        numbers = {number for _, _, number in counting.told}
        self.assertLessEqual(numbers, self.network.numbers(), "the gateway has told what the server has not")
        return counting

    @unittest.skipUnless(REDIS, "redis-server is not installed: apt-get install redis-server")
    def test_what_was_told_is_what_the_server_told(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        counting = self.kills(lambda port: Redis("--appendonly", "yes", "--appendfsync", "always", "--dir", folder.name, port=port))
        # With each write on the disk before its reply nothing that was told is lost.
        self.assert_exact(counting)


if __name__ == "__main__":
    unittest.main()
