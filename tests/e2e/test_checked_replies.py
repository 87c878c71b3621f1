"""Owns: that every reply of mixed pipelines with large values is its request's own, over RESP2, RESP3, RESPB with
channels and HTTP, while what they wait for is paused, stopped and cut off. Does not own: what is replied
(`test_gateway_random`), how RESPB connections end (`test_respb_random`).

Each client has keys of its own, and each value says which key it is for and how long it is. SECONDS says how long
clients go on, CLIENTS how many there are, SEED how requests and pauses are chosen."""

import collections
import itertools
import json
import os
import random
import signal
import threading
import time
import unittest

from behind import REDIS, Redis, gateway
from server import REPLY_SECONDS, Respb, Server, Wire, argv, get, halt, request

SECONDS = float(os.environ.get("SECONDS", "4"))
CLIENTS = int(os.environ.get("CLIENTS", "10"))
SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
WIRES = ("RESP2", "RESP3", "RESPB", "HTTP")
COMMANDS = ("SET", "GET", "MGET", "EVAL", "RPUSH", "BLPOP", "ECHO", "PING", "WATCH", "MULTI", "EXEC")
# Over each wire, and of each command, something is answered and not with an error before clients end.
ALL = frozenset(WIRES + COMMANDS)
# The last is more than is read at once.
FILLER_BYTES = (0, 0, 0, 5_000, 70_000)
KEYS = 8
CHANNELS = 5
# Of one pipeline, groups of requests; of one connection, pipelines.
DEEP = 6
LONG = 20
# How many go away and do not read what they are owed.
LEAVES = 0.05
HTTP_HEAD = b"POST /pipeline HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
STATUSES = ("OK", "PONG", "QUEUED")
PAUSES_MS = (5, 20, 50, 200)
STOPS_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.5)
# The longest stop is longer.
UPSTREAM_TIMEOUT_MS = 1_000
# Fewer than would block at once.
LEASES = 6
EXCUSED = "excused"
# What a gateway says of a server that is stopped or cut off.
EXCUSES = (
    "-ERR the connection to the server behind the gateway was lost",
    "-ERR the server behind the gateway cannot be reached",
    "-ERR no connection to the server behind the gateway came free",
)


def value_of(name, number):
    return f"{name}={number}:" + "y" * FILLER_BYTES[number % len(FILLER_BYTES)]


def is_value_of(name, reply):
    """Whether it is, byte for byte, one that was made for this key."""
    number = reply.removeprefix(f"{name}=").partition(":")[0] if isinstance(reply, str) else ""
    return number.isdigit() and reply == value_of(name, int(number))


def may_be_value_of(name):
    return lambda reply: reply is None or is_value_of(name, reply)


def equals(expected):
    return lambda reply: reply == expected


def each(*holds):
    """An array of so many elements, each of which one of these holds for."""

    def all_hold(reply):
        is_whole = isinstance(reply, list) and len(reply) == len(holds)
        return is_whole and all(one_holds(one) for one_holds, one in zip(holds, reply, strict=True))

    return all_hold


def plain(reply):
    """A reply without what marks a status over some wires."""
    if isinstance(reply, list):
        return [plain(one) for one in reply]
    return reply[1:] if isinstance(reply, str) and reply.startswith("+") and reply[1:] in STATUSES else reply


def shortened(something):
    """As it is shown when it is wrong: values are long."""
    if isinstance(something, (list, tuple)):
        return [shortened(one) for one in something]
    text = str(something)
    return text if len(text) <= 100 else f"{text[:100]}... ({len(text)})"


# A request, and what says whether a reply can be its own.
Asked = collections.namedtuple("Asked", "words holds")


class Choice:
    """Groups of requests of one client, each with what it may be answered."""

    def __init__(self, dice, number):
        self.dice, self.name, self.values = dice, f"own{number}", 0
        self.watched, self.list, self.empty = (f"{self.name}-{what}" for what in ("watched", "list", "empty"))
        self.groups = (
            self.write, self.write, self.reads, self.reads, self.reads, self.read_many, self.script, self.push_and_pop,
            self.wait, self.echo, self.transaction, self.watched_transaction,
        )

    def key(self):
        return f"{self.name}-{self.dice.randrange(KEYS)}"

    def value(self, name):
        self.values += 1
        return value_of(name, self.values)

    def next(self):
        return self.dice.choice(self.groups)()

    def write(self):
        key = self.key()
        return [Asked(("SET", key, self.value(key)), equals("OK"))]

    def read(self):
        key = self.key()
        return Asked(("GET", key), may_be_value_of(key))

    def reads(self):
        return [self.read() for _ in range(self.dice.randrange(1, 12))]

    def read_many(self):
        keys = [self.key() for _ in range(6)]

        return [Asked(("MGET", *keys), each(*(may_be_value_of(key) for key in keys)))]

    def script(self):
        key = self.key()
        value = self.value(key)
        return [Asked(("EVAL", "return ARGV[1]", "1", key, value), equals(value))]

    def push_and_pop(self):
        is_popped = each(equals(self.list), lambda value: is_value_of(self.list, value))
        return [
            Asked(("RPUSH", self.list, self.value(self.list)), lambda reply: type(reply) is int and reply > 0),
            Asked(("BLPOP", self.list, "0.2"), lambda reply: reply is None or is_popped(reply)),
        ]

    def wait(self):
        return [Asked(("BLPOP", self.empty, "0.05"), equals(None))]

    def echo(self):
        value = self.value("echo")
        return [Asked(("ECHO", value), equals(value)), Asked(("PING",), equals("PONG"))]

    def transaction(self):
        key, read = self.key(), self.read()
        return [
            Asked(("MULTI",), equals("OK")),
            Asked(("SET", key, self.value(key)), equals("QUEUED")),
            Asked(read.words, equals("QUEUED")),
            Asked(("EXEC",), each(equals("OK"), read.holds)),
        ]

    def watched_transaction(self):
        value = self.value(self.watched)
        return [
            Asked(("WATCH", self.watched), equals("OK")),
            Asked(("GET", self.watched), may_be_value_of(self.watched)),
            Asked(("MULTI",), equals("OK")),
            Asked(("SET", self.watched, value), equals("QUEUED")),
            Asked(("GET", self.watched), equals("QUEUED")),
            Asked(("EXEC",), lambda reply: reply is None or reply == ["OK", value]),
        ]


class Client:
    """One client on a thread of its own, with one connection after the other."""

    def __init__(self, crowd, number):
        self.crowd, self.number = crowd, number
        self.dice = random.Random(f"{SEED}:{number}")
        self.choice = Choice(self.dice, number)
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        try:
            while not self.crowd.over.is_set():
                wire = self.dice.choice(WIRES)
                {"RESPB": self.channels, "HTTP": self.http}.get(wire, self.resp)(wire)
        except Exception as failure:  # The test fails by it, whatever it is.
            self.crowd.fail(self.number, repr(failure))

    def pipelines(self):
        """Each a list of groups, as long as there is no failure and time is left."""
        for _ in range(self.dice.randrange(1, LONG)):
            if self.crowd.over.is_set():
                return
            yield [self.choice.next() for _ in range(self.dice.randrange(1, DEEP))]

    def leaves(self):
        return self.dice.random() < LEAVES

    def send(self, connection, data):
        """In two pieces."""
        cut = self.dice.randrange(len(data))
        connection.send(data[:cut])
        connection.send(data[cut:])

    def check(self, wire, asked, reply, pipeline):
        reply = plain(reply)
        if isinstance(reply, str) and reply.startswith(self.crowd.excuses):
            self.crowd.saw(EXCUSED)
        elif asked.holds(reply):
            self.crowd.saw(wire, asked.words[0])
        else:
            self.crowd.fail(self.number, wire, asked.words, reply, "of", [one.words for one in pipeline])

    def resp(self, wire):
        with Wire(self.crowd.port) as connection:
            if wire == "RESP3":
                connection.call("HELLO", "3")
            for groups in self.pipelines():
                pipeline = [*itertools.chain(*groups)]
                self.send(connection, b"".join(request(*asked.words) for asked in pipeline))
                if self.leaves():
                    return
                for asked in pipeline:
                    self.check(wire, asked, connection.reply(), pipeline)

    def frame(self, channel, words):
        is_core = words[0] == "GET" and self.dice.random() < 0.5
        return get(channel, words[1]) if is_core else argv(channel, *words)

    def channels(self, wire):
        with Respb(self.crowd.port) as connection:
            for groups in self.pipelines():
                pipelines = collections.defaultdict(list)
                for group in groups:
                    pipelines[self.dice.randrange(CHANNELS)] += group
                # Requests of several channels stand between each other's.
                turns = [channel for channel, pipeline in pipelines.items() for _ in pipeline]
                self.dice.shuffle(turns)
                asked = {channel: iter(pipeline) for channel, pipeline in pipelines.items()}
                self.send(connection, b"".join(self.frame(channel, next(asked[channel]).words) for channel in turns))
                if self.leaves():
                    return
                owed = {channel: iter(pipeline) for channel, pipeline in pipelines.items()}
                for _ in turns:
                    channel, reply = connection.frame()
                    self.check(wire, next(owed[channel]), reply, pipelines[channel])

    def http(self, wire):
        with Wire(self.crowd.port) as connection:
            for groups in self.pipelines():
                # Each group is a request of HTTP, and they do not wait for each other.
                bodies = [json.dumps([asked.words for asked in group]).encode() for group in groups]
                self.send(connection, b"".join(HTTP_HEAD % len(body) + body for body in bodies))
                if self.leaves():
                    return
                for group in groups:
                    self.check_answers(wire, group, self.answers(connection))

    def answers(self, connection):
        status = connection.line()
        assert status.startswith(b"HTTP/1.1 200 "), status
        headers = dict(line.lower().split(b": ", 1) for line in iter(connection.line, b""))
        if b"content-length" in headers:
            return json.loads(connection.take(int(headers[b"content-length"])))
        body = bytearray()
        while chunk_bytes := int(connection.line(), 16):
            body += connection.take(chunk_bytes)
            connection.line()
        connection.line()
        return json.loads(body)

    def check_answers(self, wire, group, answers):
        assert isinstance(answers, list), answers
        for asked, answer in zip(group, answers, strict=True):
            reply = answer["result"] if "result" in answer else "-" + answer["error"]
            self.check(wire, asked, reply, group)


class Crowd:
    """All clients of a server, until it is over."""

    def __init__(self, port, excuses):
        self.port, self.excuses = port, excuses
        self.over, self.failures = threading.Event(), []
        self.lock, self.seen = threading.Lock(), collections.Counter()
        self.clients = [Client(self, number) for number in range(CLIENTS)]

    def fail(self, *what):
        self.failures.append(shortened(what))
        self.over.set()

    def saw(self, *what):
        with self.lock:
            self.seen.update(what)

    def goes_on(self, end):
        """Whether there is no failure, and time is left or something has not been seen yet."""
        now = time.monotonic()
        return not self.over.is_set() and (now < end or now < end + REPLY_SECONDS and not ALL <= self.seen.keys())

    def run(self, disturb):
        """Something disturbs them again and again; it is told what waits for a time that is part of that."""
        dice = random.Random(SEED)
        for client in self.clients:
            client.thread.start()
        end = time.monotonic() + SECONDS
        while self.goes_on(end):
            # What has not been seen by the end comes sooner undisturbed.
            if time.monotonic() < end:
                disturb(dice, self.over.wait)
            self.over.wait(dice.random() / 2)
        self.over.set()
        for client in self.clients:
            client.thread.join(REPLY_SECONDS)
            if client.thread.is_alive():
                self.failures.append(f"client {client.number} has got no reply")


class Checked(unittest.TestCase):
    def check(self, server, disturb, excuses=()):
        crowd = Crowd(server.port, excuses)
        crowd.run(disturb)
        print(f"SEED={SEED}: {({what: crowd.seen[what] for what in (*WIRES, EXCUSED)})}", flush=True)
        self.assertEqual(crowd.failures[:1], [], f"SEED={SEED}")
        self.assertEqual(ALL - crowd.seen.keys(), set(), f"SEED={SEED}: no reply came")
        self.assertEqual(server.stop(), 0)


class Serve(Checked):
    def test_while_clients_are_paused(self):
        server = self.enterContext(Server("--threads-always-active", "yes", threads=2))
        admin = self.enterContext(server.connect())
        while str(admin.call("SET", "loaded", "yes")).startswith("-LOADING"):
            pass

        def disturb(dice, _):
            admin.call("CLIENT", "PAUSE", dice.choice(PAUSES_MS), dice.choice(["WRITE", "ALL"]))

        self.check(server, disturb)


@unittest.skipUnless(REDIS, "redis-server is not installed: apt-get install redis-server")
class Gateway(Checked):
    def test_while_the_server_behind_is_stopped_and_cut_off(self):
        backend = self.enterContext(Redis())
        server = self.enterContext(gateway(backend.port, "--leases", LEASES, "--upstream-timeout", UPSTREAM_TIMEOUT_MS))

        def disturb(dice, wait):
            if dice.random() < 0.6:
                halt(backend)
                wait(dice.choice(STOPS_SECONDS))
                backend.process.send_signal(signal.SIGCONT)
            else:
                with backend.connect() as direct:
                    direct.call("CLIENT", "KILL", "TYPE", "normal")

        self.check(server, disturb, EXCUSES)


if __name__ == "__main__":
    unittest.main()
