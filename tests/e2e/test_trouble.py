"""Owns: bad input, slow and vanishing clients, limits, many connections, and how the server ends. Does not own: commands."""

import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from server import PORT_TAKEN, PROGRAM, REPLY_SECONDS, Closed, Server, request


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.other = cls.server.connect()

    @classmethod
    def tearDownClass(cls):
        assert cls.other.call("PING") == "+PONG", "the others have noticed nothing"
        cls.other.close()
        assert cls.server.stop() == 0

    def answer(self, data):
        with self.server.connect() as wire:
            wire.send(data)
            return wire.until_closed()

    def test_malformed_requests_get_redis_texts_and_the_end(self):
        for data, text in (
            (b"*1\r\n:1\r\n", b"-ERR Protocol error: expected '$', got ':'\r\n"),
            (b"*x\r\n", b"-ERR Protocol error: invalid multibulk length\r\n"),
            (b"*1\r\n$x\r\n", b"-ERR Protocol error: invalid bulk length\r\n"),
            (b"*1\r\n$600000000\r\n", b"-ERR Protocol error: invalid bulk length\r\n"),
            (b"GET 'a\r\n", b"-ERR Protocol error: unbalanced quotes in request\r\n"),
        ):
            got = self.answer(data)
            self.assertTrue(got.startswith(text[:30]), (data, got))

    def test_what_was_before_is_answered_first(self):
        got = self.answer(request("PING") + request("ECHO", "x") + b"*1\r\n!\r\n")
        self.assertTrue(got.startswith(b"+PONG\r\n$1\r\nx\r\n-ERR Protocol error"), got)

    def test_unknown_protocols(self):
        self.assertIn(b" 501 ", self.answer(b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        self.assertTrue(self.answer(b"\x16\x03\x01\x02\x00\x01").startswith(b"-ERR"))
        self.assertTrue(self.answer(b"$5\r\nhello\r\n").startswith(b"-ERR"))

    def test_inline_commands(self):
        with self.server.connect() as wire:
            wire.send(b"\r\n  SET inline 'a b'\r\nget inline\r\n\r\nPING\r\n")
            self.assertEqual([wire.reply() for _ in range(3)], ["+OK", "a b", "+PONG"])
        with self.server.connect() as wire:
            wire.send(b"ECHO HTTP/1.x\r\n")
            self.assertEqual(wire.reply(), "HTTP/1.x")

    def test_announced_lengths_cost_nothing(self):
        before = self.server.resident_bytes()
        wires = []
        for data in (b"*2147483647\r\n", b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$512000000\r\n"):
            for _ in range(50):
                wire = self.server.connect()
                wire.send(data)
                wires.append(wire)
        self.assertEqual(self.other.call("PING"), "+PONG")
        grown = self.server.resident_bytes() - before
        self.assertLess(grown, 8 << 20)
        for wire in wires:
            wire.close()

    def test_requests_in_pieces(self):
        with self.server.connect() as wire:
            for byte in request("SET", "piece", "value") + request("GET", "piece"):
                wire.send(bytes([byte]))
            self.assertEqual([wire.reply(), wire.reply()], ["+OK", "value"])

    def test_a_large_value_in_and_out(self):
        value = os.urandom(1 << 10) * (20 << 10)
        with self.server.connect() as wire:
            self.assertEqual(wire.call("SET", "large", value), "+OK")
            wire.send(request("GET", "large") + request("PING"))
            self.assertEqual(wire.reply().encode("latin-1"), value)
            self.assertEqual(wire.reply(), "+PONG")
            self.assertEqual(wire.call("DEL", "large"), 1)

    def test_blpop_with_a_pipeline_that_arrives_in_pieces(self):
        with self.server.connect() as wire, self.server.connect() as pusher:
            pipeline = request("BLPOP", "piecewise", "0") + request("SET", "after", "1") + request("GET", "after")
            for at in range(0, len(pipeline), 7):
                wire.send(pipeline[at:at + 7])
            self.assertTrue(wire.is_silent())
            self.assertIsNone(pusher.call("GET", "after"))
            pusher.call("RPUSH", "piecewise", "x")
            self.assertEqual([wire.reply() for _ in range(3)], [["piecewise", "x"], "+OK", "1"])

    def test_half_closed_sockets_get_their_replies(self):
        with self.server.connect() as wire:
            wire.send(request("SET", "half", "closed") + request("GET", "half"))
            wire.socket.shutdown(socket.SHUT_WR)
            self.assertEqual(wire.until_closed(), b"+OK\r\n$6\r\nclosed\r\n")

    def test_a_client_that_vanishes_while_it_blocks_takes_nothing(self):
        wire = self.server.connect()
        wire.send(request("BLPOP", "vanished", "0"))
        while "cmd=blpop" not in self.other.call("CLIENT", "LIST"):
            pass
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        wire.close()
        while "cmd=blpop" in self.other.call("CLIENT", "LIST"):
            pass
        self.assertEqual(self.other.call("RPUSH", "vanished", "x"), 1)
        self.assertEqual(self.other.call("LLEN", "vanished"), 1)


class Limits(unittest.TestCase):
    def test_maxclients(self):
        with Server("--maxclients", "3") as server:
            wires = [self.admitted(server) for _ in range(3)]
            with server.connect() as one_more:
                self.assertEqual(one_more.until_closed(), b"-ERR max number of clients reached\r\n")
            wires.pop().close()
            wires.append(self.admitted(server))
            for wire in wires:
                wire.close()

    def admitted(self, server):
        """A connection that was let in: the place of one that has just left is given back a moment later."""
        deadline = time.monotonic() + REPLY_SECONDS
        while time.monotonic() < deadline:
            wire = server.connect()
            try:
                if wire.call("PING") == "+PONG":
                    return wire
            except (Closed, ConnectionResetError, BrokenPipeError):
                pass
            wire.close()
        self.fail("the place of a client that left was not given back")

    def test_a_reader_that_stalls_is_cut_at_its_limit(self):
        with Server("--client-output-buffer-limit", "normal", "8mb", "0", "0", threads=1) as server:
            with server.connect() as slow, server.connect() as other:
                other.call("SET", "big", b"x" * (1 << 20))
                before = server.resident_bytes()
                try:
                    for _ in range(64):
                        slow.send(request("LRANGE", "none", "0", "1") + request("GETRANGE", "big", "0", "-1"))
                except (BrokenPipeError, ConnectionResetError):
                    pass
                self.assertEqual(other.call("PING"), "+PONG")
                deadline = time.monotonic() + REPLY_SECONDS
                while other.call("CLIENT", "LIST").count("\n") > 1 and time.monotonic() < deadline:
                    pass
                self.assertEqual(other.call("CLIENT", "LIST").strip().count("\n"), 0)
                self.assertLess(server.resident_bytes() - before, 32 << 20)

    def test_a_subscriber_that_stalls_is_cut(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        log = pathlib.Path(folder.name) / "log"
        with Server("--client-output-buffer-limit", "pubsub", "1mb", "0", "0", "--logfile", str(log)) as server:
            with server.connect() as slow, server.connect() as other:
                slow.call("CLIENT", "SETNAME", "the-slow-one")
                slow.call("SUBSCRIBE", "flood")
                message = b"m" * 100_000
                for _ in range(500):
                    if other.call("PUBLISH", "flood", message) == 0:
                        break
                else:
                    self.fail("the subscriber was not cut")
                # Whom it was is found in the log.
                self.assertRegex(log.read_text(), r"client id=\d+ addr=\S+ name=the-slow-one user=default was closed")

    def test_an_idle_client_is_closed(self):
        with Server() as server, server.connect() as wire, server.connect() as subscriber:
            self.assertEqual(subscriber.call("SUBSCRIBE", "c"), ["subscribe", "c", 1])
            # Set by the client itself: its time begins with the reply, however late that comes.
            self.assertEqual(wire.call("CONFIG", "SET", "timeout", "1"), "+OK")
            self.assertEqual(wire.until_closed(), b"")
            # Those that wait for messages are not idle.
            subscriber.send(request("PING"))
            self.assertEqual(subscriber.reply(), ["pong", ""])


class Many(unittest.TestCase):
    def test_ten_thousand_connections(self):
        with Server("--maxclients", "20000", "--tcp-backlog", "4096") as server:
            first = server.connect()
            first.call("PING")
            before = server.resident_bytes()
            count = min(10_000, files_max() - 100)
            wires = [server.connect() for _ in range(count)]
            for wire in wires:
                wire.send(request("PING"))
            for wire in wires:
                self.assertEqual(wire.reply(), "+PONG")
            each = (server.resident_bytes() - before) / count
            print(f"\n{count} idle connections, {each:.0f} bytes resident each", flush=True)
            self.assertLess(each, 2048)
            for wire in wires:
                wire.close()
            deadline = time.monotonic() + REPLY_SECONDS
            while "connected_clients:1\r\n" not in first.call("INFO", "clients"):
                self.assertLess(time.monotonic(), deadline, "clients that left are still counted")
            first.close()


class End(unittest.TestCase):
    def test_sigterm_under_load(self):
        server = Server()
        stop = threading.Event()
        counts = []

        def load():
            answered = 0
            try:
                with server.connect() as wire:
                    while not stop.is_set():
                        wire.send(request("INCR", "n") * 50)
                        for _ in range(50):
                            wire.reply()
                            answered += 1
            except (Closed, ConnectionResetError, BrokenPipeError):
                pass
            counts.append(answered)

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        with server.connect() as watcher:
            while int(watcher.call("GET", "n") or 0) < 1000:
                pass
        self.assertEqual(server.stop(), 0)
        stop.set()
        for thread in threads:
            thread.join()
        self.assertGreater(sum(counts), 0)

    def test_shutdown_and_the_port_is_free_again(self):
        server = Server()
        with server.connect() as wire:
            wire.send(request("SHUTDOWN", "NOSAVE"))
            wire.until_closed()
        self.assertEqual(server.process.wait(REPLY_SECONDS), 0)
        server.stop()

    def test_a_port_that_is_taken(self):
        with Server() as server:
            words = [PROGRAM, "serve", "--port", str(server.port), "--bind", "127.0.0.1"]
            second = subprocess.run(words, capture_output=True, timeout=REPLY_SECONDS, check=False)
            self.assertEqual(second.returncode, 1)
            self.assertIn(PORT_TAKEN.encode(), second.stderr)

    def test_killed_clients_leak_nothing(self):
        with Server() as server, server.connect() as watcher:
            program = (
                "import sys; sys.path.insert(0, sys.argv[2]); from server import Wire, request\n"
                "wires = [Wire(int(sys.argv[1])) for _ in range(50)]\n"
                "for wire in wires: wire.call('WATCH', 'k'); wire.call('SUBSCRIBE', 'c')\n"
                "print('ready', flush=True); wires[0].until_closed()"
            )
            import sys

            here = os.path.dirname(os.path.abspath(__file__))
            words = [sys.executable, "-c", program, str(server.port), here]
            child = subprocess.Popen(words, stdout=subprocess.PIPE)
            self.assertEqual(child.stdout.readline(), b"ready\n")
            self.assertEqual(watcher.call("PUBSUB", "NUMSUB", "c"), ["c", 50])
            child.send_signal(signal.SIGKILL)
            child.wait()
            child.stdout.close()
            deadline = time.monotonic() + REPLY_SECONDS
            while watcher.call("PUBSUB", "NUMSUB", "c") != ["c", 0]:
                self.assertLess(time.monotonic(), deadline)
            self.assertIn("watching_clients:0", watcher.call("INFO", "clients"))


def files_max():
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, 25_000) if hard > 0 else 25_000
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


# The server inherits what this process may open.
files_max()

if __name__ == "__main__":
    unittest.main()
