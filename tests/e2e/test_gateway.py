"""Owns: a gateway in front of another server, and what its clients are promised: the answers that the server itself gives, in
order, over few connections; what happens when it is lost. The same tests run with redis-server behind, where it is installed,
and with `weft serve`. Does not own: the wires in front (`test_respb`, `test_real_use`), what commands do."""

import http.client
import itertools
import json
import socket
import threading
import unittest

from behind import PATIENT, REDIS, BeforeOne, Redis, Relay, gateway
from nodes import wait_for
from server import REPLY_SECONDS, Closed, Respb, Server, argv, cancel, close, request

# What docs/gateway.md says is refused, beside what the tests name with its reason.
NOT_SERVED = (
    ("WAITAOF", "0", "0", "0"), ("CLIENT", "NO-TOUCH", "ON"), ("CLIENT", "IMPORT-SOURCE", "ON"), ("SYNC",), ("REPLCONF", "CAPA", "eof"),
    ("REPLICAOF", "NO", "ONE"), ("FAILOVER",), ("SAVE",), ("BGREWRITEAOF",), ("DEBUG", "SLEEP", "0"), ("MODULE", "LOAD", "x"),
    ("SCRIPT", "DEBUG", "NO"), ("ASKING",), ("READONLY",), ("CLUSTER", "NODES"), ("CLIENT", "TRACKING", "ON", "BCAST"),
    ("CLIENT", "TRACKING", "ON", "REDIRECT", "1"),
)
# Logical clients of one test: half of them have a connection, half share one.
CLIENTS = 2_000
# Connections that one worker shares among all.
SHARED_A_WORKER = 2


def names_of_clients(wire):
    return [dict(field.partition("=")[::2] for field in line.split()) for line in wire.call("CLIENT", "LIST").splitlines()]


def own_connections(wire):
    return [client for client in names_of_clients(wire) if client["name"] == "weft-gateway"]


class Forwards(BeforeOne):
    """What holds whichever server is behind; who takes it in names the server."""

    def setUp(self):
        with self.backend.connect() as wire:
            self.assertEqual(wire.call("FLUSHALL"), "+OK")

    def behind(self):
        return self.enterContext(self.backend.connect())

    def respb(self):
        return self.enterContext(Respb(self.server.port))

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=REPLY_SECONDS)
        self.addCleanup(connection.close)
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def test_every_wire_has_the_same_keys(self):
        resp2, resp3, respb = self.connect(), self.connect(3), self.respb()
        self.assertEqual(resp2.call("HSET", "h", "f", "1", "g", "2"), 2)
        self.assertEqual(resp2.call("ZADD", "z", "1.5", "m"), 1)
        self.assertEqual(resp2.call("HGETALL", "h"), ["f", "1", "g", "2"])
        self.assertEqual(resp3.call("HGETALL", "h"), {"f": "1", "g": "2"})
        self.assertEqual(respb.call_on(1, "HGETALL", "h"), {"f": "1", "g": "2"})
        self.assertEqual(self.ask("GET", "/hgetall/h"), (200, {"result": ["f", "1", "g", "2"]}))
        self.assertEqual((resp2.call("ZSCORE", "z", "m"), respb.call_on(2, "ZSCORE", "z", "m")), ("1.5", 1.5))
        self.assertEqual(resp2.call("ZRANGE", "z", 0, -1, "WITHSCORES"), ["m", "1.5"])
        self.assertEqual(resp3.call("ZRANGE", "z", 0, -1, "WITHSCORES"), [["m", "1.5"]])
        self.assertEqual(self.ask("POST", "/", json.dumps(["SET", "k", "over HTTP"])), (200, {"result": "OK"}))
        self.assertEqual(self.ask("POST", "/multi-exec", json.dumps([["INCR", "n"], ["INCR", "n"]])), (200, [{"result": 1}, {"result": 2}]))
        self.assertEqual(respb.call_on(3, "GET", "k"), "over HTTP")
        self.assertEqual(self.behind().call("GET", "n"), "2")
        status, answer = self.ask("POST", "/lpush/k/x")
        self.assertEqual((status, answer["error"][:9]), (400, "WRONGTYPE"))

    def test_a_pipeline_is_answered_as_by_the_server_itself(self):
        """What is the gateway's own, what goes there, what waits there, and errors of both, one behind the other."""
        words = []
        for turn in range(100):
            words += [
                ("SET", f"k{turn}", turn), ("PING",), ("GET", f"k{turn}"), ("INCR", "n"), ("LPUSH", "n", "x"),
                ("ECHO", f"e{turn}"), ("GET",), ("SELECT", turn % 4), ("SET", "here", turn), ("NOSUCHCOMMAND", "a"),
                ("RPUSH", "list", turn), ("BLPOP", "list", "0"), ("SELECT", "0"), ("MULTI",), ("INCR", "in"), ("GET", f"k{turn}"),
                ("LPUSH", "n", "x"), ("EXEC",), ("MULTI",), ("GET",), ("EXEC",), ("EXEC",), ("DISCARD",), ("WATCH", "n"),
                ("MULTI",), ("SET", "w", turn), ("EXEC",), ("SELECT", "x"), ("EVAL", "return {1, KEYS[1]}", "1", f"k{turn}"),
            ]
        pipeline = b"".join(request(*each) for each in words)
        answers = []
        for wire in (self.behind(), self.connect()):
            wire.call("FLUSHALL")
            writer = threading.Thread(target=wire.send, args=(pipeline,))
            writer.start()
            answers.append([wire.reply() for _ in words])
            writer.join()
        own = ("ERR unknown command", "ERR wrong number", "ERR value is not", "ERR invalid DB index", "EXECABORT")
        for asked, there, here in zip(words, *answers, strict=True):
            # The gateway refuses by itself what no server can run, in its own words.
            same = there == here or (str(there).startswith("-") and str(here)[1:].startswith(own))
            self.assertTrue(same, (asked, there, here))

    def test_nothing_runs_in_the_gateway_itself(self):
        """Commands with a short form in `weft serve`, behind one that is the gateway's own: they go there nevertheless."""
        short = [("SET", "k", "v"), ("GET", "k"), ("MSET", "a", "1", "b", "2"), ("MGET", "a", "b", "k"), ("INCR", "a"), ("SETNX", "k", "w")]
        for own in (("PING",), ("ECHO", "e"), ("CLIENT", "ID"), ("DISCARD",)):
            for protocol in (2, 3):
                self.behind().call("FLUSHALL")
                wire = self.connect(protocol)
                wire.send(b"".join(request(*own) + request(*words) for words in short))
                answers = [wire.reply() for _ in range(2 * len(short))][1::2]
                self.assertEqual(answers, ["+OK", "v", "+OK", ["1", "2", "v"], 2, 0], own)
                self.assertEqual(self.behind().call("MGET", "k", "a", "b"), ["v", "2", "2"], own)

    def test_transactions(self):
        one, two = self.connect(), self.connect(3)
        self.assertEqual([one.call(*words) for words in (("WATCH", "k"), ("MULTI",), ("SET", "k", "1"))], ["+OK", "+OK", "+QUEUED"])
        self.assertEqual(two.call("SET", "k", "0"), "+OK")
        self.assertIsNone(one.call("EXEC"), "somebody else has written it")
        self.assertEqual([one.call(*words) for words in (("WATCH", "k"), ("UNWATCH",), ("MULTI",), ("SET", "k", "1"))][3], "+QUEUED")
        self.assertEqual(two.call("SET", "k", "2"), "+OK")
        self.assertEqual(one.call("EXEC"), ["+OK"], "nothing is watched any more")
        self.assertEqual([two.call(*words) for words in (("MULTI",), ("GET", "k"), ("DISCARD",))], ["+OK", "+QUEUED", "+OK"])
        two.call("MULTI")
        self.assertTrue(two.call("GET").startswith("-ERR wrong number"))
        self.assertTrue(two.call("EXEC").startswith("-EXECABORT"))
        two.call("MULTI")
        self.assertTrue(two.call("SELECT", "1").startswith("-ERR 'select' has to do with the gateway"))
        self.assertTrue(two.call("EXEC").startswith("-EXECABORT"))
        self.assertEqual(one.call("GET", "k"), "1")
        respb = self.respb()
        for channel in (1, 2):
            self.assertEqual(respb.call_on(channel, "WATCH", "k"), "+OK")
            self.assertEqual(respb.call_on(channel, "MULTI"), "+OK")
            self.assertEqual(respb.call_on(channel, "INCR", "k"), "+QUEUED")
        self.assertEqual(respb.call_on(2, "EXEC"), [2])
        self.assertIsNone(respb.call_on(1, "EXEC"), "channels watch by themselves")

    def test_databases_are_each_clients_own(self):
        one, two = self.connect(), self.connect()
        self.assertEqual(one.call("SELECT", "3"), "+OK")
        one.send(b"".join(request("SET", f"k{number}", "three") for number in range(50)))
        two.send(b"".join(request("SET", f"k{number}", "none") for number in range(50)))
        self.assertEqual([wire.reply() for wire in (one, two) for _ in range(50)], ["+OK"] * 100)
        self.assertEqual((one.call("GET", "k7"), two.call("GET", "k7")), ("three", "none"))
        self.assertTrue(one.call("SELECT", "16").startswith("-ERR DB index is out of range"))
        self.assertEqual(one.call("GET", "k7"), "three")

    def blocked(self, count):
        """Waits until so many clients block at the server behind."""
        direct = self.behind()
        wait_for(lambda: f"blocked_clients:{count}\r\n" in direct.call("INFO", "clients"))

    def test_blocking(self):
        first, second, writer, respb = self.connect(), self.connect(3), self.connect(), self.respb()
        first.send(request("BLPOP", "list", "0") + request("PING"))
        self.blocked(1)
        second.send(request("BLPOP", "list", "0"))
        self.blocked(2)
        respb.send_command(1, "BLMOVE", "list", "other", "LEFT", "RIGHT", "0")
        self.blocked(3)
        self.assertEqual(respb.call_on(2, "PING"), "+PONG", "other channels go on")
        self.assertEqual(writer.call("RPUSH", "list", "a", "b", "c"), 3)
        self.assertEqual((first.reply(), first.reply()), (["list", "a"], "+PONG"))
        self.assertEqual(second.reply(), ["list", "b"])
        self.assertEqual(respb.frame(), (1, "c"))
        self.assertIsNone(first.call("BLPOP", "list", "0.01"))
        writer.call("XADD", "stream", "1-1", "f", "v")
        first.send(request("XREAD", "BLOCK", "0", "STREAMS", "stream", "$"))
        self.blocked(1)
        writer.call("XADD", "stream", "2-1", "f", "w")
        self.assertEqual(first.reply(), [["stream", [["2-1", ["f", "w"]]]]])
        number = first.call("CLIENT", "ID")
        first.send(request("BLPOP", "list", "0"))
        self.blocked(1)
        self.assertEqual(writer.call("CLIENT", "UNBLOCK", number, "ERROR"), 1)
        self.assertTrue(first.reply().startswith("-UNBLOCKED"))
        respb.send_command(1, "BLPOP", "list", "0")
        self.blocked(1)
        respb.send(cancel(1, 1))
        self.assertEqual(respb.frame(), (1, "-CANCELLED the request was cancelled by its client"))
        self.blocked(0)
        # A channel that is closed waits no more, nor does one whose connection goes away.
        respb.send_command(1, "BLPOP", "list", "0")
        self.blocked(1)
        respb.send(close(1))
        while respb.frame() != (1, ("close", 0)):
            pass
        self.blocked(0)
        respb.send_command(2, "BLPOP", "list", "0")
        self.blocked(1)
        number = respb.call_on(0, "CLIENT", "ID")
        self.assertEqual(first.call("CLIENT", "KILL", "ID", str(number)), 1)
        with self.assertRaises(Closed):
            while True:
                respb.frame()
        self.blocked(0)

    def test_a_client_that_leaves_takes_nothing(self):
        gone, writer = self.connect(), self.connect()
        gone.send(request("BLPOP", "list", "0"))
        self.blocked(1)
        gone.close()
        self.blocked(0)
        writer.call("RPUSH", "list", "a")
        self.assertEqual(writer.call("LRANGE", "list", "0", "-1"), ["a"])

    def test_messages_fan_out(self):
        wires = [self.connect(3 if number % 2 else 2) for number in range(40)]
        for wire in wires:
            wire.send(request("SUBSCRIBE", "news", "other"))
        for wire in wires:
            self.assertEqual([wire.reply(), wire.reply()], [["subscribe", "news", 1], ["subscribe", "other", 2]])
        stream = self.connect()
        stream.send(b"GET /subscribe/news HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while b"data: subscribe,news,1\n" not in stream.line():
            pass
        pattern, respb = self.connect(3), self.respb()
        pattern.send(request("PSUBSCRIBE", "n*"))
        self.assertEqual(pattern.reply(), ["psubscribe", "n*", 1])
        respb.send_command(1, "SUBSCRIBE", "news")
        self.assertEqual(respb.frame(), (1, [["subscribe", "news", 1]]))
        publisher, direct = self.connect(), self.behind()
        # The gateway is one subscriber of the channel, and one of the pattern.
        self.assertEqual(publisher.call("PUBLISH", "news", "hello"), 2)
        self.assertEqual(direct.call("PUBLISH", "other", "there"), 1)
        for wire in wires:
            self.assertEqual([wire.reply(), wire.reply()], [["message", "news", "hello"], ["message", "other", "there"]])
        while b"data: message,news,hello\n" not in stream.line():
            pass
        self.assertEqual(pattern.reply(), ["pmessage", "n*", "news", "hello"])
        self.assertEqual(respb.frame(), (1, ("push", "message", "news", "hello")))
        self.assertEqual(len([one for one in own_connections(direct) if one["sub"] != "0" or one["psub"] != "0"]), 1)
        for wire in (stream, *wires):
            wire.close()
        # Names that nobody wants any more are given up.
        wait_for(lambda: direct.call("PUBSUB", "CHANNELS") == ["news"])

    def test_scripts_and_scans(self):
        wire = self.connect(3)
        digest = wire.call("SCRIPT", "LOAD", "return redis.call('INCR', KEYS[1])")
        self.assertEqual([wire.call("EVALSHA", digest, "1", "n") for _ in range(2)], [1, 2])
        wire.send(b"".join(request("SET", f"k{number}", "v") for number in range(500)))
        self.assertEqual([wire.reply() for _ in range(500)], ["+OK"] * 500)
        found, cursor = set(), "0"
        while True:
            cursor, keys = wire.call("SCAN", cursor, "MATCH", "k*", "COUNT", "100")
            found.update(keys)
            if cursor == "0":
                break
        self.assertEqual(len(found), 500)
        self.assertEqual(wire.call("DBSIZE"), 501)
        # A script's error is as long as it is, and ends nobody's connection.
        told = wire.call("EVAL", "return redis.error_reply('LONG ' .. string.rep('x', 70000))", "0")
        self.assertEqual(told, "-LONG " + "x" * 70_000)

    def test_what_is_refused_says_why(self):
        wire = self.connect()
        for words, why in (
            (("WAIT", "1", "0"), "'wait' is not served by a gateway: it would be about a connection that others share"),
            (("CLIENT", "NO-EVICT", "ON"), "'client|no-evict' is not served by a gateway: it would be about a connection that others share"),
            (("CLUSTER", "SLOTS"), "'cluster|slots' is not served by a gateway: what is behind it is one server"),
            (("PSYNC", "?", "-1"), "'psync' is not served by a gateway: replication"),
            (("BGSAVE",), "'bgsave' is not served by a gateway: ask the server behind it"),
            *((words, "is not served by a gateway") for words in NOT_SERVED),
        ):
            self.assertIn(why, wire.call(*words))
        self.assertEqual(wire.call("PING"), "+PONG")
        for method in ("GET", "PUT"):
            status, answer = self.ask(method, "/v1/db/0/keys/k", "v" if method == "PUT" else None)
            self.assertEqual((status, "not served by a gateway" in str(answer)), (400, True), answer)

    def test_users_are_the_gateways(self):
        admin = self.connect()
        self.assertEqual(admin.call("ACL", "SETUSER", "ann", "on", ">secret", "~a:*", "+@read", "+multi", "+exec", "+set"), "+OK")
        ann = self.connect()
        self.assertTrue(ann.call("AUTH", "ann", "wrong").startswith("-WRONGPASS"))
        self.assertEqual(ann.call("AUTH", "ann", "secret"), "+OK")
        self.assertEqual(ann.call("SET", "a:1", "v"), "+OK")
        self.assertTrue(ann.call("SET", "b:1", "v").startswith("-NOPERM"))
        self.assertTrue(ann.call("DEL", "a:1").startswith("-NOPERM"))
        self.assertEqual(ann.call("MULTI"), "+OK")
        self.assertEqual(ann.call("SET", "a:1", "w"), "+QUEUED")
        self.assertEqual(admin.call("ACL", "SETUSER", "ann", "-set"), "+OK")
        self.assertTrue(ann.call("EXEC").startswith("-NOPERM"), "rights are looked at again")
        self.assertEqual(ann.call("GET", "a:1"), "v")
        # Pipelined behind a request that is under way, rights hold as well.
        ann.send(request("GET", "a:1") + request("DEL", "a:1") + request("GET", "b:1") + request("GET", "a:1"))
        replies = [ann.reply() for _ in range(4)]
        self.assertEqual([str(reply)[:7] for reply in replies], ["v", "-NOPERM", "-NOPERM", "v"])
        self.assertNotIn("ann", self.behind().call("ACL", "USERS"))
        self.assertEqual(admin.call("ACL", "DELUSER", "ann"), 1)

    def test_nobody_has_more_rights_by_what_runs_there(self):
        """What a script does its words do not show, and the server behind knows one user only."""
        admin = self.connect()
        self.addCleanup(admin.call, "ACL", "DELUSER", "bob", "eve")
        self.assertEqual(admin.call("ACL", "SETUSER", "bob", "on", ">p", "~app:*", "resetchannels", "+@all", "-@dangerous", "+sort"), "+OK")
        self.assertEqual(admin.call("ACL", "SETUSER", "eve", "on", ">p", "~*", "&*", "+@all"), "+OK")
        self.assertEqual([admin.call("SET", key, "v") for key in ("secret", "w_1")], ["+OK"] * 2)
        digest = admin.call("SCRIPT", "LOAD", "return redis.call('GET', 'secret')")
        bob, eve = self.connect(), self.connect()
        self.assertEqual([wire.call("AUTH", name, "p") for wire, name in ((bob, "bob"), (eve, "eve"))], ["+OK"] * 2)
        self.assertEqual([bob.call("SET", "app:k", "v"), bob.call("RPUSH", "app:l", "2", "1")], ["+OK", 2])
        runs = [("EVAL", "return redis.call('FLUSHALL')", "0"), ("EVAL_RO", "return redis.call('GET', 'secret')", "0"), ("EVALSHA", digest, "0")]
        runs += [("FCALL", "f", "0"), ("PROGRAM", "EVAL", "[]"), ("TRIGGER", "SET", "t", "{}")]
        for words in runs:
            # TRIGGER is dangerous: he may not use it anywhere.
            refused = "-NOPERM" if words[0] == "TRIGGER" else f"-NOPERM '{words[0].lower()}"
            self.assertTrue(bob.call(*words).startswith(refused), words)
            # Behind one that is under way, and in a transaction.
            bob.send(request("GET", "app:k") + request(*words))
            self.assertEqual(bob.reply(), "v")
            self.assertTrue(bob.reply().startswith(refused), words)
            self.assertEqual(bob.call("MULTI"), "+OK")
            self.assertTrue(bob.call(*words).startswith(refused), words)
            self.assertTrue(bob.call("EXEC").startswith("-EXECABORT"))
            self.assertFalse(str(eve.call(*words)).startswith("-NOPERM"), words)
            self.assertEqual([admin.call("SET", key, "v") for key in ("secret", "w_1", "app:k")], ["+OK"] * 3)
            admin.call("DEL", "app:l")
            self.assertEqual(bob.call("RPUSH", "app:l", "2", "1"), 2)
        for words in (("GET", "w_*"), ("BY", "w_*")):
            self.assertIn("denied due to insufficient ACL permissions", bob.call("SORT", "app:l", *words))
        self.assertTrue(bob.call("SORT", "app:l", "STORE", "other").startswith("-NOPERM"))
        self.assertEqual((bob.call("SORT", "app:l"), eve.call("SORT", "app:l", "GET", "w_*")), (["1", "2"], ["v", None]))
        # Rights that are taken between a command and its EXEC.
        self.assertEqual([eve.call("MULTI"), eve.call("EVAL", "return 1", "0")], ["+OK", "+QUEUED"])
        self.assertEqual(admin.call("ACL", "SETUSER", "eve", "resetkeys", "~app:*"), "+OK")
        self.assertTrue(eve.call("EXEC").startswith("-NOPERM"))

    def test_two_thousand_clients_over_few_connections(self):
        respb, direct = self.respb(), self.behind()
        wires = [self.connect() for _ in range(CLIENTS // 2)]
        for turn in range(2):
            for number, wire in enumerate(wires):
                wire.send(request("INCRBY", f"n{number % 7}", turn + 1))
            respb.send(b"".join(argv(channel, "INCRBY", "channels", "1") for channel in range(CLIENTS // 2)))
            replies = [wire.reply() for wire in wires]
            self.assertTrue(all(isinstance(reply, int) for reply in replies), replies[:5])
            channels = sorted(respb.frame() for _ in range(CLIENTS // 2))
            self.assertEqual([channel for channel, _ in channels], list(range(CLIENTS // 2)))
            self.assertEqual({value for _, value in channels}, set(range(turn * CLIENTS // 2 + 1, (turn + 1) * CLIENTS // 2 + 1)))
        self.assertEqual(sum(int(direct.call("GET", f"n{number}")) for number in range(7)), 3 * CLIENTS // 2)
        plain = [one for one in own_connections(direct) if one["sub"] == one["psub"] == "0"]
        # Those of other tests that were lent out may be there still; none is made here.
        self.assertLessEqual(len([one for one in plain if one["cmd"].startswith("incrby")]), SHARED_A_WORKER * 2)


@unittest.skipUnless(REDIS, "redis-server is not installed: apt-get install redis-server")
class BeforeRedis(Forwards, unittest.TestCase):
    @staticmethod
    def start():
        return Redis()


class BeforeWeft(Forwards, unittest.TestCase):
    @staticmethod
    def start():
        return Server()


class Lost(unittest.TestCase):
    """The server behind is lost, late, or comes back."""

    def setUp(self):
        self.backend = self.enterContext(Server())
        self.relay = Relay(self.backend.port)
        self.addCleanup(self.relay.close)
        self.server = self.enterContext(gateway(self.relay.port, *PATIENT, threads=1))

    def connect(self):
        return self.enterContext(self.server.connect())

    def test_what_was_under_way(self):
        reader, writer, both, exec_ = (self.connect() for _ in range(4))
        for wire in (reader, writer, both, exec_):
            self.assertIsNone(wire.call("GET", "k"))
        elsewhere = self.connect()
        self.assertEqual([elsewhere.call("SELECT", "3"), elsewhere.call("SET", "in-three", "3")], ["+OK", "+OK"])
        self.assertIsNone(reader.call("GET", "k"))
        self.relay.hold()
        reader.send(request("GET", "k") + request("STRLEN", "read-only"))
        writer.send(request("INCR", "write-alone"))
        both.send(request("GET", "k") + request("INCR", "write-second"))
        exec_.send(request("MULTI") + request("INCR", "in-a-transaction") + request("EXEC"))
        for part in (b"read-only", b"write-alone", b"write-second", b"in-a-transaction"):
            self.relay.wait_for_request(part)
        # Its database has a connection of its own; it is selected again on the next one.
        elsewhere.send(request("GET", "in-three") + request("STRLEN", "in-three"))
        self.relay.wait_for_request(request("STRLEN", "in-three"))
        self.relay.cut()
        unknown = "-ERR the connection to the server behind the gateway was lost"
        for wire, replies in ((writer, 1), (both, 2)):
            for _ in range(replies):
                reply = wire.reply()
                self.assertTrue(reply.startswith(unknown) and reply.endswith("whether the request has run is not known"), reply)
        self.assertEqual([exec_.reply(), exec_.reply()], ["+OK", "+QUEUED"])
        self.assertTrue(exec_.reply().startswith(unknown))
        self.relay.go_on()
        # Reads go again, over a new connection.
        self.assertEqual([reader.reply(), reader.reply()], [None, 0])
        self.assertEqual([elsewhere.reply(), elsewhere.reply()], ["3", 1])
        # What was told to be in doubt has run once at most.
        with self.backend.connect() as direct:
            for key in ("write-alone", "write-second", "in-a-transaction"):
                self.assertIn(direct.call("GET", key), (None, "1"))
        self.assertEqual(self.relay.asked.count(b"write-alone"), 1)

    def test_what_is_refused_when_it_is_confirmed_has_nothing_run_in_its_place(self):
        wire, other = self.connect(), self.connect()
        self.assertEqual(other.call("SET", "k", "v"), "+OK")
        self.relay.hold_behind = b"news"
        wire.send(request("SUBSCRIBE", "news"))
        self.relay.wait_for_request(b"news")
        self.assertEqual(other.call("CLIENT", "PAUSE", "1000000"), "+OK")
        self.relay.hold_behind = None
        self.relay.go_on()
        self.assertIn("CLIENT PAUSE has begun", wire.reply())
        self.assertEqual(other.call("CLIENT", "UNPAUSE"), "+OK")
        self.assertEqual(wire.call("GET", "k"), "v")

    def test_a_read_goes_again_once(self):
        reader = self.connect()
        self.assertIsNone(reader.call("GET", "k"))
        self.relay.hold_behind = b"again"
        reader.send(request("STRLEN", "again"))
        for times in (1, 2):
            self.relay.wait_for_request(b"again", times)
            self.relay.cut()
            # What the next connection is asked at its beginning is answered.
            self.relay.go_on()
        self.assertIn("was lost", reader.reply())
        self.assertEqual(reader.call("STRLEN", "k"), 0)

    def test_nobody_there_and_back_again(self):
        wire, subscriber = self.connect(), self.connect()
        self.assertEqual(wire.call("SET", "k", "v"), "+OK")
        subscriber.send(request("SUBSCRIBE", "news"))
        self.assertEqual(subscriber.reply(), ["subscribe", "news", 1])
        watcher = self.connect()
        self.assertEqual([watcher.call(*words) for words in (("WATCH", "k"), ("MULTI",), ("SET", "k", "w"))], ["+OK", "+OK", "+QUEUED"])
        self.relay.refuse()
        self.assertRaises((Closed, ConnectionResetError), subscriber.reply)
        # The first may have been on its way.
        wait_for(lambda: "cannot be reached" in str(wire.call("GET", "k")))
        self.assertEqual(wire.call("PING"), "+PONG", "what is its own goes on")
        self.assertIn("cannot be reached", wire.call("BLPOP", "list", "0"))
        self.assertIsNone(watcher.call("EXEC"), "the watch was lost, and nothing has run")
        late = self.connect()
        late.send(request("SUBSCRIBE", "news"))
        self.assertIn("cannot be reached", late.reply())
        self.relay.refusing = False
        wait_for(lambda: wire.call("GET", "k") == "v")

        def is_subscribed():
            late.send(request("SUBSCRIBE", "news"))
            return late.reply() == ["subscribe", "news", 1]

        wait_for(is_subscribed)
        self.assertEqual(wire.call("PUBLISH", "news", "again"), 1)
        self.assertEqual(late.reply(), ["message", "news", "again"])

    def test_sigterm_waits_for_what_is_under_way(self):
        wire = self.connect()
        self.assertIsNone(wire.call("GET", "k"))
        self.relay.hold()
        wire.send(request("SET", "last", "v"))
        self.relay.wait_for_request(b"last")
        self.server.signal_stop()
        self.relay.go_on()
        self.assertEqual(wire.reply(), "+OK")
        self.assertEqual(self.server.stop(), 0)

    def test_a_half_closed_client_gets_its_replies(self):
        wire = self.connect()
        self.assertIsNone(wire.call("GET", "k"))
        self.relay.hold()
        # More than may be under way at once.
        wire.send(request("INCR", "half-closed") + request("INCR", "n") * 150)
        wire.socket.shutdown(socket.SHUT_WR)
        self.relay.wait_for_request(b"half-closed")
        self.relay.go_on()
        self.assertEqual(wire.until_closed(), b":1\r\n" + b"".join(b":%d\r\n" % number for number in range(1, 151)))

    def test_a_half_closed_client_keeps_what_it_watches_until_its_exec(self):
        """Whatever of what it has sent was decoded when it ended its sending."""
        for protocol, pad, is_changed in itertools.product((2, 3), (10, 100_000), (False, True)):
            with self.subTest(protocol=protocol, pad=pad, is_changed=is_changed):
                wire, look = self.connect(), f"look-{protocol}-{pad}-{is_changed}"
                wire.call("HELLO", protocol)
                wire.call("SET", "watched", "old")
                self.relay.hold_behind = look.encode()
                wire.send(request("WATCH", "watched") + request("GET", look))
                self.relay.wait_for_request(look.encode())
                queued = request("SET", "pad", "p" * pad) + request("SET", "watched", "mine")
                wire.send(request("MULTI") + queued + request("EXEC"))
                wire.socket.shutdown(socket.SHUT_WR)
                with self.backend.connect() as direct:
                    # What comes later is answered: the end has been read.
                    self.connect().call("PING")
                    if is_changed:
                        direct.call("SET", "watched", "other")
                    self.relay.hold_behind = None
                    self.relay.go_on()
                    self.assertEqual([wire.reply() for _ in range(5)], ["+OK", None, "+OK", "+QUEUED", "+QUEUED"])
                    self.assertEqual(wire.reply(), None if is_changed else ["+OK", "+OK"])
                    self.assertEqual(wire.until_closed(), b"")
                    self.assertEqual(direct.call("GET", "watched"), "other" if is_changed else "mine")

    def test_channels_of_a_half_closed_client_get_their_replies(self):
        """What blocks is given up; what is under way is answered, with what waits behind it, on each channel."""
        wire = self.enterContext(Respb(self.server.port))
        self.assertIsNone(wire.call_on(1, "GET", "k"))
        self.relay.hold()
        # More than may be under way of one channel at once.
        many = [argv(1, "INCR", "of-a-channel") for _ in range(150)]
        wire.send(argv(9, "BLPOP", "none", "0") + b"".join(many) + argv(700, "INCR", "channel-half") + argv(700, "PING"))
        wire.socket.shutdown(socket.SHUT_WR)
        self.relay.wait_for_request(b"channel-half")
        self.relay.go_on()
        frames = [wire.frame() for _ in range(len(many) + 2)]
        self.assertEqual([value for channel, value in frames if channel == 1], list(range(1, 151)))
        self.assertEqual([value for channel, value in frames if channel == 700], [1, "+PONG"])
        self.assertEqual(wire.until_closed(), b"")

    def test_a_channel_that_is_killed_while_it_blocks_is_told_why_and_nothing_else(self):
        with Respb(self.server.port) as wire, self.connect() as other, self.backend.connect() as direct:
            own = wire.call_on(5, "CLIENT", "ID")
            wire.send(argv(5, "INCR", "before-the-kill") + argv(5, "BLPOP", "none", "0") + argv(5, "INCR", "before-the-kill"))
            self.assertEqual(wire.frame(), (5, 1))
            wait_for(lambda: "blocked_clients:1\r\n" in direct.call("INFO", "clients"))
            self.assertEqual(other.call("CLIENT", "KILL", "ID", own), 1)
            self.assertEqual(wire.frame(), (5, ("close", 4)))
            wire.send(close(5))
            self.assertEqual(wire.call_on(6, "GET", "before-the-kill"), "1")

    def test_a_half_closed_client_over_http_gets_its_replies(self):
        wire, other = self.connect(), self.connect()
        # Clients of RESP2 and HTTP share a connection, which stands when this is answered.
        self.assertIsNone(other.call("GET", "k"))
        self.relay.hold()
        ask = b"POST /incr/http-half HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
        wire.send(ask + ask)
        wire.socket.shutdown(socket.SHUT_WR)
        self.relay.wait_for_request(b"http-half")
        self.relay.go_on()
        answers = wire.until_closed()
        self.assertIn(b'{"result":1}', answers)
        self.assertTrue(answers.endswith(b'{"result":2}'), answers)


if __name__ == "__main__":
    unittest.main()
