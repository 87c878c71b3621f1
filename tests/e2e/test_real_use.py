"""Owns: what clients see under conditions of real use: pipelines beside the same commands one by one, restricted users,
caching readers, keyspace events, keys that expire, a memory limit. Does not own: single commands.

Commands are random; the seed is printed, and WEFT_SEED repeats a run. WEFT_ROUNDS makes each test longer by so many times."""

import os
import random
import re
import threading
import time
import unittest

from commands import command
from server import Respb, Server, Wire, argv, request

BATCH = 64
ROUNDS = int(os.environ.get("WEFT_ROUNDS", "1"))
TWO_THREADS = ["--threads-always-active", "yes"]
LRU = ["--maxmemory-policy", "allkeys-lru"]


def dice():
    seed = int(os.environ.get("WEFT_SEED") or random.randrange(1 << 30))
    print(f"seed {seed} (WEFT_SEED)", flush=True)
    return random.Random(seed)


def serve(*flags, threads=1):
    return Server("--enable-debug-command", "yes", *flags, threads=threads)


def pipe(wire, commands):
    """The replies of commands that are sent together."""
    wire.send(b"".join(request(*words) for words in commands))
    return [wire.reply() for _ in commands]


def call_all(wire, commands):
    for words in commands:
        reply = wire.call(*words)
        assert not isinstance(reply, str) or not reply.startswith("-"), (words, reply)


class Pipelined(unittest.TestCase):
    """A client sends its commands together, another, to a server of its own, the same commands one by one."""

    KEYS = [f"app:{number}" for number in range(12)]

    def compare(self, *flags, threads=1, keys=KEYS, set_up=lambda admin, client: None, before=lambda admin, turn: None):
        turns = dice()
        with serve(*flags, threads=threads) as one, serve(*flags, threads=threads) as other:
            with one.connect() as piped, other.connect() as single, one.connect() as admin, other.connect() as beside:
                set_up(admin, piped)
                set_up(beside, single)
                for turn in range(20 * ROUNDS):
                    batch = [command(turns, keys) for _ in range(BATCH)]
                    before(admin, turns)
                    got = pipe(piped, batch)
                    for at, (words, reply) in enumerate(zip(batch, got)):
                        self.assertEqual(reply, single.call(*words), (turn, at, words, batch[max(0, at - 6):at]))
                    piped.call("DISCARD")
                    single.call("DISCARD")
                    self.assertEqual(admin.call("DEBUG", "DIGEST"), beside.call("DEBUG", "DIGEST"), turn)

    def test_plain(self):
        self.compare()

    def test_two_threads(self):
        self.compare(*TWO_THREADS, threads=2)

    def test_memory_limit(self):
        self.compare("--maxmemory", "1gb", *LRU)

    def test_restricted_user(self):
        def set_up(admin, client):
            rules = ["on", "nopass", "~app:*", "+@all", "-@dangerous", "%R~ro:*", "%W~wo:*", "(+get +mget ~foreign)"]
            call_all(admin, [["SET", "foreign", "secret"], ["ACL", "SETUSER", "user", *rules]])
            call_all(client, [["AUTH", "user", "x"]])

        self.compare(keys=self.KEYS + ["foreign", "ro:1", "ro:2", "wo:1", "app", "app:"], set_up=set_up)

    def test_pauses(self):
        def pause(admin, turns):
            call_all(admin, [["CLIENT", "PAUSE", "20", turns.choice(["WRITE", "ALL"])]])

        self.compare(before=pause)
        self.compare(*TWO_THREADS, threads=2, before=pause)

    def test_others_track(self):
        """Both tracking clients of both servers go on reading what they are told, which is discarded here."""
        readers = []

        def set_up(admin, client):
            for words in (["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "app:1"], ["CLIENT", "TRACKING", "ON"]):
                reader = threading.Thread(target=track, args=(admin.socket.getpeername()[1], words))
                reader.start()
                readers.append(reader)

        def track(port, words):
            with Wire(port) as wire:
                call_all(wire, [["HELLO", "3"], words])
                wire.send(b"".join(request("GET", key) for key in self.KEYS))
                wire.until_closed()

        self.compare(set_up=set_up)
        for reader in readers:
            reader.join()

    def test_events_come_in_the_same_order(self):
        turns = dice()
        told = []
        with serve() as one, serve() as other, one.connect() as piped, other.connect() as single:
            wires = [one.connect(), other.connect()]
            for server, wire in zip((one, other), wires):
                with server.connect() as admin:
                    call_all(admin, [["CONFIG", "SET", "notify-keyspace-events", "KEA"]])
                call_all(wire, [["PSUBSCRIBE", "__key*__:*"]])
            for _ in range(10 * ROUNDS):
                batch = [command(turns, self.KEYS) for _ in range(BATCH)]
                pipe(piped, batch)
                for words in batch:
                    single.call(*words)
            for client, wire in zip((piped, single), wires):
                client.call("DISCARD")
                client.call("SELECT", "0")
                client.call("SET", "the last", "")
                told.append(list(iter(wire.reply, ["pmessage", "__key*__:*", "__keyevent@0__:set", "the last"])))
                wire.close()
        self.assertGreater(len(told[0]), 100)
        self.assertEqual(told[0], told[1])

    def test_channels_under_pauses(self):
        """Each channel of a connection has its own keys; the commands of all are sent together, in two pieces."""
        for flags, threads in (([], 1), (TWO_THREADS, 2)):
            turns = dice()
            with serve(*flags, threads=threads) as one, serve() as other, one.connect() as admin:
                with Respb(one.port) as piped, Respb(other.port) as single:
                    for turn in range(15 * ROUNDS):
                        self.channels(turns, (piped, single, admin), turn)
                    with other.connect() as beside:
                        self.assertEqual(admin.call("DEBUG", "DIGEST"), beside.call("DEBUG", "DIGEST"))

    def channels(self, turns, wires, turn):
        piped, single, admin = wires
        batch = []
        while len(batch) < BATCH:
            channel = turns.randrange(5)
            words = command(turns, [f"k{channel}:{number}" for number in range(6)])
            # What others have does not matter to a channel.
            if words[0].upper() != "DBSIZE":
                batch.append((channel, words))
        # Nothing of a transaction is left over.
        batch += [(channel, ["DISCARD"]) for channel in range(5)]
        sent = b"".join(argv(channel, *words) for channel, words in batch)
        cut = turns.randrange(len(sent))
        if turns.random() < 0.7:
            call_all(admin, [["CLIENT", "PAUSE", "15", turns.choice(["WRITE", "ALL"])]])
        piped.send(sent[:cut])
        if turns.random() < 0.3:
            call_all(admin, [["CLIENT", "UNPAUSE"]])
        piped.send(sent[cut:])
        got = {channel: [] for channel in range(5)}
        for _ in batch:
            channel, value = piped.frame()
            got[channel].append(value)
        want = {channel: [] for channel in range(5)}
        for channel, words in batch:
            want[channel].append(single.call_on(channel, *words))
        for channel, replies in got.items():
            sent_there = [words for of, words in batch if of == channel]
            for words, reply, wanted in zip(sent_there, replies, want[channel]):
                self.assertEqual(reply, wanted, (turn, channel, words))
            self.assertEqual(len(replies), len(want[channel]))


class Rights(unittest.TestCase):
    USERS = {
        "pattern": ["~app:*", "+@all", "-@dangerous"],
        "directions": ["%R~ro:*", "%W~wo:*", "~app:*", "+@all"],
        "selectors": ["~app:*", "+@all", "-set", "(+set ~sel:*)", "(+mget +get ~foreign)"],
        "no-keys": ["+@all"],
        "only-get": ["~*", "+get", "+ping"],
        "no-get": ["~app:*", "+set", "+mget"],
        "glob": ["~app:[ab]*", "~x?y", "+@all"],
        "no-select": ["~app:*", "+@all", "-select"],
    }
    KEYS = ["foreign", "app:1", "app:a", "app:b", "ro:1", "wo:1", "sel:1", "app", "app:", "apps:1", "APP:1", "xzy", "x",
            "\x00app:1", "app:1\x00", "app\n:", "app:*", "l"]
    CONDITIONS = (([], 1), (TWO_THREADS, 2), (["--maxmemory", "1gb"], 1))

    def commands(self, turns):
        key = lambda: turns.choice(self.KEYS)
        some = lambda most: range(turns.randint(1, most))
        return [turns.choice([
            ["GET", key()], ["SET", key(), turns.randrange(99)], ["MGET", *[key() for _ in some(6)]],
            ["MSET", *[word for _ in some(5) for word in (key(), "z")]], ["SET", key(), "v", "GET"],
            ["SET", key(), "v", "NX"], ["GETSET", key(), "1"], ["PING"], ["INCR", key()], ["APPEND", key(), "q"],
            ["STRLEN", key()], ["LPUSH", key(), "1"], ["LRANGE", key(), "0", "-1"], ["SELECT", turns.choice("01")],
            ["GETDEL", key()], ["EXISTS", key()], ["HSET", key(), "a", "b"], ["GETRANGE", key(), "0", "1"],
            ["TTL", key()], ["DEL", key()], ["TYPE", key()],
        ]) for _ in range(24)]

    def test_what_is_refused_among_neighbours_is_what_dryrun_refuses(self):
        turns = dice()
        for flags, threads in self.CONDITIONS:
            with serve(*flags, threads=threads) as server, server.connect() as admin:
                for name, rules in self.USERS.items():
                    call_all(admin, [["ACL", "SETUSER", name, "on", "nopass", *rules]])
                    with server.connect() as wire:
                        call_all(wire, [["AUTH", name, "x"]])
                        for _ in range(10 * ROUNDS):
                            batch = self.commands(turns)
                            got = pipe(wire, batch)
                            verdicts = pipe(admin, [["ACL", "DRYRUN", name, *words] for words in batch])
                            for words, reply, verdict in zip(batch, got, verdicts):
                                refused = isinstance(reply, str) and reply.startswith("-NOPERM")
                                self.assertEqual(refused, verdict != "+OK", (flags, name, words, reply, verdict))

    def test_a_right_that_is_taken_away_is_gone(self):
        """With the reply of ACL SETUSER, and it does not come back in what was sent before."""
        for flags, threads in self.CONDITIONS:
            with serve(*flags, threads=threads) as server, server.connect() as admin, server.connect() as wire:
                call_all(admin, [["SET", "foreign", "secret"], ["ACL", "SETUSER", "user", "on", "nopass", "+@all"]])
                call_all(wire, [["AUTH", "user", "x"]])
                for _ in range(50 * ROUNDS):
                    call_all(admin, [["ACL", "SETUSER", "user", "~foreign"]])
                    wire.send(request("GET", "foreign") * 50)
                    call_all(admin, [["ACL", "SETUSER", "user", "resetkeys"]])
                    wire.send(request("GET", "foreign") * 3)
                    refused = [wire.reply() != "secret" for _ in range(53)]
                    self.assertEqual(refused, sorted(refused))
                    self.assertTrue(all(refused[-3:]))
                call_all(admin, [["ACL", "SETUSER", "user", "off"]])
                with server.connect() as late:
                    self.assertTrue(late.call("AUTH", "user", "x").startswith("-WRONGPASS"))


class Reader:
    """A client that caches what it reads, until it is told otherwise."""

    def __init__(self, server):
        self.wire = server.connect()
        call_all(self.wire, [["HELLO", "3"], ["CLIENT", "TRACKING", "ON"]])
        self.cache = {}

    def reply(self):
        """The next reply; what comes before it is taken note of."""
        while self.wire.buffer[:1] in (b"", b">"):
            if self.wire.buffer:
                self.invalidation()
            else:
                self.wire.fill()
        return self.wire.reply()

    def invalidation(self):
        kind, keys = self.wire.reply()
        assert kind == "invalidate", kind
        for key in self.cache.copy() if keys is None else keys:
            self.cache.pop(key, None)

    def read(self, turns, keys):
        for _ in range(3):
            commands = [["GET", turns.choice(keys)] if turns.random() < 0.5 else ["MGET", *turns.sample(keys, 4)]
                        for _ in range(10)]
            self.wire.send(b"".join(request(*words) for words in commands))
            for name, *names in commands:
                got = self.reply()
                self.cache.update(zip(names, [got] if name == "GET" else got))


class Caching(unittest.TestCase):
    KEYS = [f"t:{number}" for number in range(40)]

    def write(self, server, seed, keys):
        turns = random.Random(seed)
        some = lambda: turns.randrange(10**9)
        with server.connect() as wire:
            pipe(wire, [turns.choice([
                ["SET", turns.choice(keys), some()], ["SET", turns.choice(keys), some()], ["DEL", turns.choice(keys)],
                ["MSET", turns.choice(keys), some(), turns.choice(keys), some()], ["APPEND", turns.choice(keys), "z"],
                ["SET", turns.choice(keys), "v", "PX", "1"], ["SETEX", turns.choice(keys), "100", "q"],
                ["GETSET", turns.choice(keys), some()],
            ]) for _ in range(40)])

    def test_no_reader_keeps_what_is_gone(self):
        """What a reader has cached and is not so is taken back: here it waits until it is."""
        turns = dice()
        with serve(*TWO_THREADS, threads=2) as server, server.connect() as probe:
            readers = [Reader(server) for _ in range(3)]
            for _ in range(60 * ROUNDS):
                keys = turns.sample(self.KEYS, 12)
                jobs = [(self.write, (server, turns.randrange(1 << 30), keys)) for _ in range(3)]
                jobs += [(reader.read, (random.Random(turns.randrange(1 << 30)), keys)) for reader in readers]
                threads = [threading.Thread(target=job, args=args) for job, args in jobs]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                # A key whose time comes only now is told of as well.
                actual = dict(zip(self.KEYS, probe.call("MGET", *self.KEYS)))
                for reader in readers:
                    while any(actual[key] != cached for key, cached in reader.cache.items()):
                        reader.invalidation()
            for reader in readers:
                reader.wire.close()


class Events(unittest.TestCase):
    def test_none_is_lost_behind_the_reply_of_a_subscription(self):
        """While others subscribe and leave, and the setting goes off and on."""
        writes = [["SET", "e:1", "v"], ["SET", "e:1", "w"], ["INCR", "c:1"], ["MSET", "e:1", "1", "zz", "2"], ["GET", "e:1"],
                  ["SET", "e:1", "v"], ["DEL", "e:1"]]
        ways = [[["SUBSCRIBE", "__keyspace@0__:e:1"]], [["PSUBSCRIBE", "__keyspace@0__:e:*"]],
                [["SSUBSCRIBE", "x"], ["SUBSCRIBE", "__keyspace@0__:e:1"]]]
        for flags, threads in (([], 1), (TWO_THREADS, 2)):
            with serve(*flags, threads=threads) as server, server.connect() as admin, server.connect() as writer:
                call_all(admin, [["CONFIG", "SET", "notify-keyspace-events", "KEA"]])
                ended = threading.Event()
                others = threading.Thread(target=self.come_and_go, args=(server, ended))
                others.start()
                try:
                    for turn in range(60 * ROUNDS):
                        with server.connect() as wire:
                            off = [["CONFIG", "SET", "notify-keyspace-events", ""]] if turn % 4 == 3 else []
                            call_all(admin, off)
                            call_all(wire, ways[turn % 3])
                            call_all(admin, [["CONFIG", "SET", "notify-keyspace-events", "KEA"]])
                            pipe(writer, writes)
                            told = [wire.reply()[-1] for _ in range(5)]
                            self.assertEqual(told, ["set"] * 4 + ["del"], turn)
                finally:
                    ended.set()
                    others.join()

    def come_and_go(self, server, ended):
        with server.connect() as writer, server.connect() as wire:
            while not ended.is_set():
                pipe(writer, [["SET", f"n:{number}", "v"] for number in range(32)])
                pipe(wire, [["PSUBSCRIBE", "nothing*"], ["PUNSUBSCRIBE", "nothing*"]])


class Stops(unittest.TestCase):
    """What stops writers is set by who hears of one: behind its reply nothing more is written, however much has been sent."""

    def test_who_is_told_stops_who_tells(self):
        pipeline = (request("PUBLISH", "news", "m" * 100) + request("INCR", "n")) * 120
        with serve(*TWO_THREADS, threads=2) as server:
            # Of two that listen one lives on the other thread.
            with server.connect() as writer, server.connect() as one, server.connect() as other:
                for listener in (one, other):
                    listener.call("HELLO", "3")
                    listener.call("SUBSCRIBE", "news")
                for turn in range(150 * ROUNDS):
                    listener = (one, other)[turn % 2]
                    writer.send(pipeline)
                    self.assertEqual(listener.reply()[0], "message")
                    self.assertEqual(self.answer(listener, "CLIENT", "PAUSE", "60000", "WRITE"), "+OK")
                    paused = self.answer(listener, "GET", "n")
                    for _ in range(20):
                        self.assertEqual(self.answer(listener, "GET", "n"), paused, turn)
                    self.answer(listener, "CLIENT", "UNPAUSE")
                    for _ in range(240):
                        writer.reply()
                    for each in (one, other):
                        self.answer(each, "ECHO", "done")

    def answer(self, listener, *words):
        listener.send(request(*words))
        while isinstance(reply := listener.reply(), list):
            pass
        return reply


class Expiry(unittest.TestCase):
    KEYS = 20

    def test_a_key_that_is_gone_stays_away_and_goes_in_time(self):
        """Each command of a batch agrees with the one before it, neither earlier nor later than the clock says."""
        turns = dice()
        for flags, threads in (([], 1), (TWO_THREADS, 2)):
            with serve(*flags, threads=threads) as server, server.connect() as wire:
                for _ in range(60 * ROUNDS):
                    ttl_ms = turns.randrange(1, 12)
                    text = "v" * turns.choice([5, 20, 300])
                    names = [f"x:{number}" for number in range(self.KEYS)]
                    begun = time.time()
                    pipe(wire, [["SET", name, text, "PX", ttl_ms] for name in names])
                    all_set = time.time()
                    seen = True
                    while seen:
                        seen = self.look(wire, names, (begun, all_set, ttl_ms))

    def look(self, wire, names, times):
        """Asks for each key in many ways; whether one is still there."""
        begun, all_set, ttl_ms = times
        ways = lambda name: [["GET", name], ["GET", name], ["MGET", name, "none", name], ["EXISTS", name], ["STRLEN", name],
                             ["GET", name], ["PTTL", name], ["TYPE", name]]
        sent = time.time()
        replies = pipe(wire, [words for name in names for words in ways(name)])
        got = time.time()
        # The server counts whole milliseconds.
        late, early = sent - all_set > ttl_ms / 1000 + 0.002, got - begun < ttl_ms / 1000 - 0.002
        some = False
        for at in range(len(names)):
            first, second, many, exists, length, third, left_ms, kind = replies[8 * at:8 * at + 8]
            seen = [first is not None, second is not None, many[0] is not None, many[2] is not None, exists == 1, length > 0,
                    third is not None, left_ms != -2, kind != "+none"]
            self.assertEqual(seen, sorted(seen, reverse=True), "it does not come back")
            self.assertFalse(seen[0] and late, (ttl_ms, sent - all_set))
            self.assertFalse(not seen[-1] and early, (ttl_ms, got - begun))
            some |= seen[-1]
        return some


class Memory(unittest.TestCase):
    LIMIT_BYTES = 4 << 20
    # What is under way in one batch of each worker, and what tables grow by meanwhile.
    OVER_BYTES_MAX = 1 << 20

    def test_near_the_limit_what_is_there_is_what_was_set(self):
        turns = dice()
        for flags, threads in (([], 1), (TWO_THREADS, 2)):
            limit = ["--maxmemory", str(self.LIMIT_BYTES), *LRU]
            with serve(*limit, *flags, threads=threads) as server, server.connect() as wire, server.connect() as admin:
                model, evicted = {}, 0
                for _ in range(500 * ROUNDS):
                    batch = [self.words(turns) for _ in range(BATCH)]
                    for words, reply in zip(batch, pipe(wire, batch)):
                        if words[0] in ("SET", "MSET"):
                            self.assertEqual(reply, "+OK")
                            model.update(zip(words[1::2], words[2::2]))
                            continue
                        for key, value in zip(words[1:], [reply] if words[0] == "GET" else reply):
                            evicted += value is None and key in model
                            self.assertIn(value, (None, model.get(key)))
                    used = int(re.search(r"used_memory:(\d+)", admin.call("INFO", "memory"))[1])
                    self.assertLess(used, self.LIMIT_BYTES + self.OVER_BYTES_MAX)
                self.assertGreater(evicted, 0)

    def words(self, turns):
        key = lambda: f"k{turns.randrange(60_000)}"
        value = lambda: f"{turns.randrange(10**6)}-" + "x" * turns.choice([1, 30, 300, 1000])
        return turns.choices(
            [["SET", key(), value()], ["GET", key()], ["MGET", key(), key()], ["MSET", key(), value(), key(), value()]],
            [6, 2, 1, 1],
        )[0]


if __name__ == "__main__":
    unittest.main()
