"""Owns: whether examples/python, which knows the specification and nothing else, works with `weft serve`, and holds to
the rules for clients with servers that this test plays. Does not own the client, nor its vectors
(test_python_vectors.py)."""

import json
import os
import socket
import sys
import threading
import unittest
import unittest.mock

from server import Server

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "python"))

from respb import (  # noqa: E402 (found by the line above)
    Connection, Decoder, Ended, Map, Pending, ReplyError, Set, Simple, WireError, encode_argv,
)

CLIENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "conformance", "clients")
WAIT = 240  # what must come is waited for so long: never reached when all is well


def rules(name, what):
    """Those of conformance/clients that are for a client which announces nothing."""
    with open(os.path.join(CLIENTS, name), encoding="ascii") as file:
        return [rule for rule in json.load(file)[what] if rule["capabilities"] == 0]


def connect(server, **options):
    return Connection("127.0.0.1", server.port, timeout=WAIT, **options)


class Live(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        self.connection = connect(self.server)
        self.addCleanup(self.connection.close)
        self.main = self.connection.main
        self.main.call("FLUSHALL")

    def test_hello(self):
        respb = self.connection.hello.get(b"respb")
        self.assertEqual(respb.get(b"version"), 1)
        self.assertIn(b"channels", respb.get(b"profiles"))
        self.assertEqual(self.connection.limits.channels, respb.get(b"limits").get(b"channels"))
        with connect(self.server, name="clean") as named:
            self.assertEqual(named.main.call("CLIENT", "GETNAME"), b"clean")
        with self.assertRaises(ReplyError) as caught:
            self.main.call("HELLO", "2")
        self.assertEqual(caught.exception.code, "NOPROTO")

    def test_replies(self):
        call = self.main.call
        self.assertEqual(call("SET", "k", "v"), Simple(b"OK"))
        self.assertEqual(call("GET", "k"), b"v")
        self.assertIsNone(call("GET", "none"))
        self.assertEqual(call("PING"), Simple(b"PONG"))
        for number in (-1, 0, 255, 256, -(2**31), 2**31, 2**63 - 1, -(2**63)):
            call("SET", "n", number)
            self.assertEqual(call("INCRBY", "n", 0), number)
        for size in (0, 127, 128, 255, 256, 70000):
            call("SET", "b", b"x" * size)
            self.assertEqual(call("MGET", "b", "none", "b"), [b"x" * size, None, b"x" * size])
            self.assertEqual(call("GET", "b"), b"x" * size)
        call("HSET", "h", "a", 1)
        self.assertEqual(call("HGETALL", "h"), Map([(b"a", b"1")]))
        call("ZADD", "z", 1.5, "m")
        self.assertEqual(call("ZSCORE", "z", "m"), 1.5)
        with self.assertRaises(ReplyError) as caught:
            call("INCR", "b")
        self.assertEqual(caught.exception.code, "ERR")
        call("SADD", "s", "one")
        members = call("SMEMBERS", "s")
        self.assertEqual((type(members), members), (Set, [b"one"]))

    def test_pipeline(self):
        channels = [self.connection.channel() for _ in range(20)]
        pending = [(i, c.send("ECHO", f"{c.number}-{i}")) for i in range(500) for c in channels]
        for (i, each), c in zip(pending, channels * 500):
            self.assertEqual(each.result(WAIT), f"{c.number}-{i}".encode())
        large = [self.main.send("ECHO", b"x" * 100000) for _ in range(300)]  # more than sockets hold
        self.assertTrue(all(each.result(WAIT) == b"x" * 100000 for each in large))

    def test_channels_share_nothing(self):
        one, two = self.connection.channel(), self.connection.channel()
        self.assertEqual(one.call("SELECT", 3), b"OK")
        one.call("SET", "k", 1)
        self.assertIsNone(two.call("GET", "k"))
        one.call("MULTI")
        self.assertEqual(one.call("INCR", "k"), Simple(b"QUEUED"))
        self.assertIsNone(two.call("GET", "k"))
        self.assertEqual(one.call("EXEC"), [2])

    def test_blocking_holds_back_one_channel(self):
        one, two = self.connection.channel(), self.connection.channel()
        first, second = one.send("BLPOP", "list", 0), one.send("PING")
        self.assertEqual(two.call("PING", timeout=WAIT), b"PONG")
        with self.assertRaises(TimeoutError):
            second.result(0)
        two.call("RPUSH", "list", "x")
        self.assertEqual(first.result(WAIT), [b"list", b"x"])
        self.assertEqual(second.result(WAIT), b"PONG")

    def test_pushes(self):
        listener = self.connection.channel()
        self.assertEqual(listener.call("SUBSCRIBE", "a", "b"), [[b"subscribe", b"a", 1], [b"subscribe", b"b", 2]])
        self.main.call("PUBLISH", "a", "hello")
        self.assertEqual(listener.push(WAIT), [b"message", b"a", b"hello"])
        self.assertEqual(listener.call("PING"), b"PONG")
        self.assertEqual(listener.call("UNSUBSCRIBE", "a"), [[b"unsubscribe", b"a", 1]])

    def test_close_and_open_again(self):
        channel = self.connection.channel()
        number = channel.number
        channel.call("SELECT", 5)
        blocked = channel.send("BLPOP", "none", 0)
        channel.close(300, b"enough", timeout=WAIT)
        with self.assertRaises(Ended):
            blocked.result(WAIT)
        with self.assertRaises(Ended):
            channel.send("PING")
        again = self.connection.channel()
        self.assertEqual(again.number, number)
        again.call("SET", "k", "in database 0")
        self.assertEqual(self.main.call("GET", "k"), b"in database 0")
        idle = self.connection.channel()
        idle.close(timeout=WAIT)
        self.main.call("SELECT", 5)
        self.main.close(timeout=WAIT)
        self.assertEqual(self.main.call("GET", "k"), b"in database 0")

    def test_closed_by_the_server(self):
        channel = self.connection.channel()
        identity = channel.call("CLIENT", "ID")
        blocked = channel.send("BLPOP", "none", 0)
        self.assertEqual(self.main.call("CLIENT", "KILL", "ID", identity), 1)
        with self.assertRaises(Ended) as caught:
            blocked.result(WAIT)
        self.assertEqual((caught.exception.code, caught.exception.ran), (4, False))
        with self.assertRaises(Ended) as caught:
            channel.send("PING")
        again = self.connection.channel()
        self.assertEqual((again.number, again.call("PING")), (channel.number, b"PONG"))
        self.assertEqual(again.call("QUIT"), b"OK")
        with self.assertRaises(Ended) as caught:
            again.push(WAIT)
        self.assertEqual(caught.exception.code, 0)

    def test_goaway(self):
        ran, last, behind = self.main.send("PING"), self.main.send("QUIT"), self.main.send("PING")
        self.assertEqual((ran.result(WAIT), last.result(WAIT)), (b"PONG", b"OK"))
        with self.assertRaises(Ended) as caught:
            behind.result(WAIT)
        self.assertEqual((caught.exception.code, caught.exception.ran), (0, False))

    def test_wire_errors_of_ours(self):
        before = self.main.send("PING")
        self.connection.output += b"\x07\xfe\x00\x00"
        self.assertEqual(before.result(WAIT), b"PONG")
        with self.assertRaises(Ended) as caught:
            self.main.call("PING", timeout=WAIT)
        self.assertEqual(caught.exception.code, 8)
        self.assertTrue(caught.exception.reason.startswith(b"ERR Protocol error:"), caught.exception.reason)
        self.assertIn(b"07FE", caught.exception.reason)

    def test_unknown_frames(self):
        self.connection.output += b"\xff\x7f\x00\x00\x00\x00\x00\x02xx"
        self.assertEqual(self.main.call("PING", timeout=WAIT), b"PONG")
        self.main.waiting.append(pending := Pending(self.connection))
        self.connection.output += b"\xf0\x02\x00\x00\x00\x00\x00\x02xx"
        with self.assertRaises(ReplyError):
            pending.result(WAIT)

    def test_a_request_too_large_is_refused_here(self):
        with self.assertRaises(ValueError):
            encode_argv(0, [b"x" * 11], self.connection.limits._replace(argument_bytes=10))
        with self.assertRaises(ValueError):
            self.main.send()
        self.assertEqual(self.main.call("PING"), b"PONG")


class Talk:
    """A conversation: the client's user and the server in turns."""

    def __init__(self, test, connection, server):
        self.test, self.connection, self.socket = test, connection, server["socket"]
        self.socket.settimeout(WAIT)
        self.input, self.channels, self.numbers, self.asked = bytearray(), {"0": connection.main}, {"0": 0}, {}

    def channel(self, name):
        return self.channels.get(name) or self.channels.setdefault(name, self.connection.channel())

    def hold(self, steps):
        for what, *words in steps:
            getattr(self, what.replace(" ", "_"))(*words)
        if ["ends"] in steps:
            self.connection.wait(lambda: self.connection.ended, WAIT)
            self.test.assertEqual((self.socket.recv(4096), self.input), (b"", b""), "it sends nothing more")

    def frame(self):
        """The client's next frame: its opcode, its channel, what it carries."""
        self.connection.wait(lambda: not self.connection.output, WAIT)
        head = self.take(8)
        opcode, number, length = int.from_bytes(head[:2], "big"), int.from_bytes(head[2:4], "big"), int.from_bytes(head[4:], "big")
        return opcode, number, self.take(length)

    def take(self, count):
        while len(self.input) < count:
            self.input += self.socket.recv(4096)
        piece = bytes(self.input[:count])
        del self.input[:count]
        return piece

    def asks(self, name, request):
        self.asked[request] = self.channel(name).send("PING")
        opcode, number, words = self.frame()
        self.test.assertEqual((opcode, number, words[4:]), (0xF001, self.numbers.setdefault(name, number), b"PING"))

    def asks_in_vain(self, name, request):
        try:
            self.asked[request] = self.channel(name).send("PING")
        except Ended as error:
            self.asked[request] = Pending(self.connection)
            self.asked[request].done, self.asked[request].value = True, error

    def closes(self, name):
        self.channel(name).begin_close(0, b"")
        self.gets_close(name)

    def closes_unused(self, name):
        self.channel(name).begin_close(0, b"")

    def gets_close(self, name):
        self.test.assertEqual(self.frame()[:2], (0xFF01, self.numbers[name]))

    def server(self, text):
        for name, number in self.numbers.items():
            text = text.replace("{" + name + "}", f"{number:04x}")
        self.socket.sendall(bytes.fromhex(text))

    def answered(self, request):
        self.test.assertEqual(self.asked[request].result(WAIT), b"PONG")

    def ended(self, request, ran):
        with self.test.assertRaises(Ended) as caught:
            self.asked[request].result(WAIT)
        self.test.assertEqual(caught.exception.ran, ran, caught.exception)

    def did_not_run(self, request):
        self.ended(request, False)

    def may_have_run(self, request):
        self.ended(request, True)

    def ends(self):
        self.socket.shutdown(socket.SHUT_WR)

    def resets(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()


class Apart(unittest.TestCase):
    """What wants a server of its own, or one that is none."""

    def test_authentication(self):
        server = Server("--requirepass", "secret")
        self.addCleanup(server.stop)
        with self.assertRaises(ReplyError) as caught:
            connect(server)
        self.assertEqual(caught.exception.code, "NOAUTH")
        with connect(server, password="secret") as connection:
            self.assertEqual(connection.channel().call("PING"), b"PONG")  # the user of channel 0
            self.assertEqual(connection.main.call("RESET"), b"RESET")
            with self.assertRaises(ReplyError) as caught:
                connection.channel().call("PING")
            self.assertEqual(caught.exception.code, "NOAUTH")
            login = connection.main.send("AUTH", "default", "secret")
            self.assertEqual(connection.channel().call("PING"), b"PONG")  # ordered behind AUTH on channel 0
            self.assertEqual(login.result(WAIT), b"OK")

    def test_too_many_channels(self):
        server = Server("--requirepass", "secret")
        self.addCleanup(server.stop)
        with socket.create_connection(("127.0.0.1", server.port), WAIT) as raw:
            raw.sendall(b"".join(encode_argv(n, ["PING"]) for n in range(17)))
            frames, decoder = [], Decoder()
            while len(frames) < 17:
                frames += decoder.feed(raw.recv(4096))
            codes = {f.channel: (f.opcode, f.code) for f in frames}
            self.assertEqual(codes[16], (0xFF01, 5))
            self.assertEqual(codes[15], (0x8001, 0))

    def test_shut_down(self):
        server = Server()
        self.addCleanup(server.stop)
        connection = connect(server)
        self.addCleanup(connection.close)
        blocked = connection.channel().send("BLPOP", "none", 0)
        connection.main.call("PING")
        server.signal_stop()
        with self.assertRaises(Ended) as caught:
            blocked.result(WAIT)
        self.assertEqual((caught.exception.code, caught.exception.ran), (6, False))

    def played(self, *answers):
        """A connection whose server, in this test's hands, has answered HELLO, and the server's end of it."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        hello = bytes.fromhex("8008000000000001" + "857265737062" + "0800000001" + "866c696d697473" + "0800000000")
        done = {}

        def answer():
            done["socket"], _ = listener.accept()
            done["socket"].recv(4096)
            done["socket"].sendall(b"".join(answers) or hello)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            connection = Connection(*listener.getsockname(), timeout=WAIT)
            self.addCleanup(connection.close)
            return connection, done
        finally:
            thread.join()
            self.addCleanup(done["socket"].close)

    def test_refused_before_the_protocol_is_known(self):
        with self.assertRaises(ReplyError) as caught:
            self.played(b"-ERR max number of clients reached\r\n")
        self.assertEqual(str(caught.exception), "ERR max number of clients reached")

    def test_a_refusal_in_pieces_and_one_without_end(self):
        for pieces in ((b"-ERR one", b" two\r\nthree"), (b"-ERR one two", b"\r\n"), (b"-ERR one two" + b"x" * 5000,)):
            connection, _ = self.played()
            connection.begun = False
            for piece in pieces:
                self.assertIsNone(connection.ended)
                connection._read(piece)
            self.assertTrue(str(connection.ended).startswith("ERR one two"), connection.ended)

    def test_the_limits_are_the_servers(self):
        with Server("--respb-channels", 3, "--proto-max-bulk-len", 2 << 20) as server, connect(server) as connection:
            self.assertEqual(connection.limits.argument_bytes, 2 << 20)
            with self.assertRaises(ValueError):
                connection.main.send("SET", "k", b"x" * (2 << 20) + b"x")
            for channel in [connection.channel(), connection.channel()]:
                self.assertEqual(channel.call("PING"), b"PONG")
            with self.assertRaises(RuntimeError):
                connection.channel()

    def test_pushes_and_output_have_bounds(self):
        connection, server = self.played()
        with unittest.mock.patch("respb.PUSHES_MAX", 2):
            channel = connection.channel()
            channel.send("SUBSCRIBE", "c")
            connection.wait(lambda: not connection.output, WAIT)
            server["socket"].sendall(bytes.fromhex("800a0001000000018178") * 2)
            connection.wait(lambda: len(channel.pushes) == 2, WAIT)
            self.assertFalse(channel.closing)
            server["socket"].sendall(bytes.fromhex("800a0001000000018178"))
            connection.wait(lambda: channel.closing, WAIT)
        with unittest.mock.patch("respb.OUTPUT_BYTES_MAX", 10):
            for _ in range(3):
                connection.main.send("PING")
                self.assertLessEqual(len(connection.output), 10)

    def test_what_is_not_sent_when_goaway_comes_is_not(self):
        connection, server = self.played()
        connection.output += bytes(64 << 20)  # more than sockets take
        server["socket"].sendall(bytes.fromhex("ff040000000000020006"))
        connection.wait(lambda: connection.goaway, WAIT)
        self.assertEqual(connection.output, b"")

    def test_what_nothing_asked_for_ends_the_connection(self):
        for frame in ("81050000", "81050007", "800a000700000000", "8205000768656c6c6f", "08000000"):
            connection, server = self.played()
            server["socket"].sendall(bytes.fromhex(frame))
            with self.assertRaises(WireError):
                connection.main.push(WAIT)

    def test_the_rules_for_clients(self):
        """conformance/clients, single frames."""
        cases = rules("rules.json", "cases")
        self.assertEqual(len(cases), 26)
        for case in cases:
            with self.subTest(case["id"]):
                connection, server = self.played()
                first = connection.main.send("PING")
                connection.wait(lambda: not connection.output, WAIT)
                server["socket"].sendall(bytes.fromhex(case["wire"]))
                if case["then"] == "goes on":
                    self.assertEqual(first.result(WAIT), b"PONG")
                    second = connection.main.send("PING")
                    server["socket"].sendall(bytes.fromhex("83040000504f4e47"))
                    self.assertEqual(second.result(WAIT), b"PONG")
                else:
                    connection.wait(lambda: connection.ended, WAIT)
                    self.assertIsInstance(connection.ended, WireError)

    def test_the_conversations_of_clients(self):
        """conformance/clients, how channels and connections end."""
        conversations = rules("conversations.json", "conversations")
        self.assertEqual(len(conversations), 15)
        for conversation in conversations:
            with self.subTest(conversation["id"]):
                Talk(self, *self.played()).hold(conversation["steps"])


if __name__ == "__main__":
    unittest.main()
