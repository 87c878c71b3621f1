"""Owns: that random pipelines of several clients, cut anywhere, are answered through a gateway as by the server itself. Does not own:
what is the gateway's own (`test_gateway`).

Each client has keys of its own, here and there under different names, so that what it is answered does not depend on others. SEED says
how requests are chosen, CLIENTS and COMMANDS how many there are."""

import os
import random
import threading
import unittest

from behind import PATIENT, REDIS, Redis, gateway
from server import Server, request

SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
CLIENTS = int(os.environ.get("CLIENTS", "8"))
COMMANDS = int(os.environ.get("COMMANDS", "1000"))
# Requests of one pipeline.
DEEP = 40
# What every server refuses inside of a transaction, and the gateway too.
NOT_QUEUED = ("MULTI", "WATCH", "UNWATCH", "SELECT", "RESET")
# Where the owner's name stands in a request that has been chosen.
OWN = "\0:"


class Choice:
    """Requests of one client, one behind the other."""

    def __init__(self, dice):
        self.dice, self.queues = dice, False

    def key(self):
        return f"{OWN}k{self.dice.randrange(6)}"

    def value(self):
        if self.dice.random() < 0.03:
            return "L" * self.dice.randrange(20_000, 200_000)
        return self.dice.choice(["a", "1", "10", "xyz" * self.dice.randrange(1, 50), f"v{self.dice.randrange(100)}"])

    def words(self):
        dice, key, value = self.dice, self.key, self.value
        lists, hashed, ranked, stream, counted = (OWN + name for name in "lhzsn")
        return dice.choice((
            lambda: ("SET", key(), value()), lambda: ("GET", key()), lambda: ("INCR", key()), lambda: ("APPEND", key(), value()),
            lambda: ("DEL", key(), key()), lambda: ("MGET", key(), key(), key()), lambda: ("MSET", key(), value(), key(), value()),
            lambda: ("SETNX", key(), value()), lambda: ("GETSET", key(), value()), lambda: ("GETDEL", key()), lambda: ("RENAME", key(), key()),
            lambda: ("EXPIRE", key(), 10_000), lambda: ("PERSIST", key()), lambda: ("EXISTS", key(), key()), lambda: ("TYPE", key()),
            lambda: ("LPUSH", lists, value()), lambda: ("RPOP", lists), lambda: ("LRANGE", lists, 0, -1), lambda: ("BLPOP", lists, "0.01"),
            lambda: ("HSET", hashed, f"f{dice.randrange(4)}", value()), lambda: ("HGETALL", hashed), lambda: ("ZADD", ranked, dice.randrange(100), "m"),
            lambda: ("ZINCRBY", ranked, "1.5", "m"), lambda: ("ZRANGE", ranked, 0, -1, "WITHSCORES"), lambda: ("XADD", stream, f"{dice.randrange(9)}-1", "f", "v"),
            lambda: ("XRANGE", stream, "-", "+", "COUNT", 2), lambda: ("XREAD", "BLOCK", 5, "STREAMS", stream, "$"),
            lambda: ("EVAL", "return redis.call('INCR', KEYS[1])", 1, counted), lambda: ("EVAL", "return redis.error_reply('MY ERR')", 0),
            lambda: ("NOSUCHCOMMAND", key()), lambda: ("GET",), lambda: ("PING",), lambda: ("ECHO", "e"), lambda: ("SELECT", dice.choice("00093x")),
            lambda: ("RESET",) if dice.random() < 0.1 else ("PING", "p"), lambda: ("WATCH", key()), lambda: ("UNWATCH",), lambda: ("MULTI",),
            lambda: ("EXEC",), lambda: ("DISCARD",),
        ))()

    def next(self):
        words = self.words()
        while self.queues and words[0] in NOT_QUEUED:
            words = self.words()
        self.queues = words[0] == "MULTI" or self.queues and words[0] not in ("EXEC", "DISCARD")
        return words


def own(words, name):
    """A request as this owner sends it."""
    return request(*(word.replace(OWN, name) if isinstance(word, str) else word for word in words))


def without(reply, name):
    """A reply without its owner's name."""
    if isinstance(reply, str):
        return reply.replace(name, OWN)
    return [without(one, name) for one in reply] if isinstance(reply, list) else reply


def lives(number, protocol, here, there, failures):
    """One client, at the gateway and at the server itself."""
    dice = random.Random(SEED + number)
    choice, done = Choice(dice), []
    names = [f"{where}{number}:" for where in ("here", "there")]
    try:
        with here.connect() as near, there.connect() as far:
            for wire in (near, far):
                if protocol == 3:
                    wire.call("HELLO", "3")
            while len(done) < COMMANDS and not failures:
                asked = [choice.next() for _ in range(dice.randrange(1, DEEP))]
                bytes_near = b"".join(own(words, names[0]) for words in asked)
                cut = dice.randrange(len(bytes_near))
                for piece in (bytes_near[:cut], bytes_near[cut:]):
                    near.send(piece)
                far.send(b"".join(own(words, names[1]) for words in asked))
                for words in asked:
                    answers = [without(wire.reply(), name) for wire, name in zip((near, far), names, strict=True)]
                    done.append(words[0])
                    if answers[0] != answers[1] and not str(answers[0]).startswith("-ERR unknown command"):
                        failures.append((number, [str(word)[:40] for word in words], [str(answer)[:120] for answer in answers], done[-5:]))
                        return
    except Exception as error:
        failures.append((number, repr(error), done[-5:]))
        raise


class Random(unittest.TestCase):
    def same(self, backend):
        self.addCleanup(backend.stop)
        server = self.enterContext(gateway(backend.port, *PATIENT))
        failures = []
        clients = [threading.Thread(target=lives, args=(number, 2 + number % 2, server, backend, failures)) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        self.assertEqual(failures, [], f"SEED={SEED}")

    @unittest.skipUnless(REDIS, "redis-server is not installed: apt-get install redis-server")
    def test_before_redis(self):
        self.same(Redis())

    def test_before_weft(self):
        self.same(Server())


if __name__ == "__main__":
    unittest.main()
