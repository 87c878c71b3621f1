"""Owns: that random ends of channels and RESPB connections leave nothing in doubt (specification, sections 8.1 to 8.5), and
give their memory back. Does not own: each kind of end by itself (`test_respb_ends`).

Each channel pushes numbers onto a list of its own, between requests that block, wait, queue or owe much, until the server,
the client or a limit ends it. What its list has then is compared with the replies: where the server ended it, what was
answered ran and nothing else did. ROUNDS says how many connections, SEED how they are chosen."""

import os
import random
import unittest
from collections import Counter

from server import Closed, Respb, Server, Wire, argv, cancel, close, window

ROUNDS = int(os.environ.get("ROUNDS", "150"))
SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
VALUE = b"v" * 40_000
FLAGS = ("--respb-queue-bytes", 4096, "--respb-output-bytes", 200_000,
         "--respb-connection-queue-bytes", 16_384, "--respb-connection-output-bytes", 600_000, "--respb-channels", 7)
# Of a connection: what its markers are asked on, which no end is chosen for.
MARKS = 9
# What is left when all is over may differ so much from what it was before: buffers that are kept for the next.
USED_BYTES_MAX, RESIDENT_BYTES_MAX = 1 << 20, 24 << 20


# Ends that come in any hundred rounds.
OFTEN = {("close", code) for code in (0, 1, 2, 5)} | {("goaway", code) for code in (0, 4, 7, 8)}


class Life:
    """A channel from its opening to its end."""

    def __init__(self, name, is_open):
        self.list, self.waits = f"list:{name}", f"waits:{name}"
        self.sent, self.replies, self.numbers, self.given = [], [], 0, 0
        # Who ended it: "client" if its CLOSE was first, "server".
        self.end, self.is_open = None, is_open

    def known(self):
        """What has run as the replies tell it: numbers on the list, and elements taken."""
        ran, queued, is_multi, taken = [], [], False, 0
        for (kind, number), reply in zip(self.sent, self.replies):
            if isinstance(reply, str) and reply.startswith("-"):
                # It did not run: CANCELLED, or an EXEC without MULTI or of a transaction that was spoiled.
                if kind == "exec" and not reply.startswith("-CANCELLED"):
                    queued, is_multi = [], False
            elif kind == "multi":
                is_multi = True
            elif kind == "exec":
                assert isinstance(reply, list) and len(reply) == len(queued), (queued, type(reply))
                ran += [number for what, number in queued if what == "push"]
                taken += sum(what == "pop" and got is not None for (what, _), got in zip(queued, reply))
                queued, is_multi = [], False
            elif is_multi and kind != "quit":
                assert reply == "+QUEUED", (kind, reply)
                queued.append((kind, number))
            elif kind == "push":
                ran.append(number)
                assert reply == len(ran), (ran, reply)
            elif kind == "pop":
                taken += reply is not None
            elif kind == "large":
                assert reply == len(VALUE), reply
            elif kind == "echo":
                assert reply == f"e{number}", (number, reply)
            elif kind == "id":
                assert isinstance(reply, int), reply
            else:
                assert (kind, reply) == ("quit", "+OK"), (kind, reply)
        return ran, taken


class Round:
    """One connection."""

    def __init__(self, dice, port, name, admin, seen):
        self.dice, self.name, self.admin, self.seen = dice, name, admin, seen
        self.wire = Respb(port)
        self.lives, self.all, self.output = {}, [], bytearray()
        self.goaway, self.is_over, self.is_unmarked, self.marks, self.marked = None, False, False, 0, 0
        self.user = dice.random() < 0.2
        if self.user:
            admin.call("ACL", "SETUSER", name, "on", ">pw", "~*", "&*", "+@all")
            self.wire.call_on(0, "AUTH", name, "pw")
        self.identity = self.wire.call_on(0, "CLIENT", "ID")
        self.wire.call_on(MARKS, "PING")
        self.closing, self.kills, self.ids, self.answers = {}, [], {0: self.identity}, bytearray()

    def life(self, channel):
        if channel not in self.lives:
            self.lives[channel] = Life(f"{self.name}:{channel}:{len(self.all)}", channel == 0)
            self.all.append(self.lives[channel])
            if channel != 0 and self.dice.random() < 0.5:
                self.ask(channel, "id", "CLIENT", "ID")
        return self.lives[channel]

    def ask(self, channel, kind, *words):
        life = self.life(channel)
        life.is_open = True
        life.sent.append((kind, life.numbers))
        self.output += argv(channel, *words)

    def push(self, channel):
        life = self.life(channel)
        self.ask(channel, "push", "RPUSH", life.list, life.numbers)
        life.numbers += 1

    def step(self, channel):
        """Something that channels do."""
        dice, life = self.dice, self.life(channel)
        what = dice.choice("push push push push echo large pop multi exec window cancel give".split())
        if what == "push":
            self.push(channel)
        elif what == "echo":
            self.ask(channel, "echo", "ECHO", f"e{life.numbers}")
        elif what == "large":
            self.ask(channel, "large", "GET", "value")
        elif what == "pop":
            self.ask(channel, "pop", "BLPOP", life.waits, dice.choice(["0", "0.01"]))
        elif what == "multi":
            self.ask(channel, "multi", "MULTI")
        elif what == "exec":
            self.ask(channel, "exec", "EXEC")
        elif what == "window":
            life.is_open = True
            self.output += window(channel, dice.choice([0, 1, 100, 50_000]))
        elif what == "cancel":
            self.output += cancel(channel, dice.randrange(8))
        else:
            life.given += 1
            self.output += argv(MARKS, "RPUSH", life.waits, "x")
            self.marks += 1

    def end(self, channel):
        """Something that ends a channel or the connection, or may."""
        dice, life = self.dice, self.life(channel)
        what = dice.choice("quit close close queue kill_here kill output".split())
        if what == "quit":
            self.ask(channel, "quit", "QUIT")
        elif what == "close":
            if life.is_open:
                self.output += close(channel, dice.choice([None, 0, 300]))
                life.end = life.end or "client"
                self.lives.pop(channel)
                self.closing[channel] = life
        elif what == "queue":
            self.ask(channel, "pop", "BLPOP", life.waits, "0")
            for _ in range(dice.randrange(80)):
                self.push(channel)
        elif what == "output":
            self.output += window(channel, 0)
            life.is_open = True
            for _ in range(dice.randrange(8)):
                self.ask(channel, "large", "GET", "value")
        elif life.is_open or channel == 0:
            self.kills.append(channel)
            if what == "kill_here":
                self.output += argv(MARKS, "CLIENT", "KILL", "ID", self.ids.get(channel, 0))
                self.marks += 1

    def take(self, channel, value):
        """A frame of the server."""
        kind = value[0] if isinstance(value, tuple) else None
        if kind in ("goaway", "close"):
            self.seen[kind, "0" if channel in self.closing else value[1]] += 1
        value = len(value) if isinstance(value, str) and len(value) == len(VALUE) else value
        if kind == "goaway":
            assert self.goaway is None, "one GOAWAY"
            self.goaway = value
        elif kind == "close":
            assert self.goaway is None, f"CLOSE of {channel} behind GOAWAY"
            if channel in self.closing:
                # The answer, or the server's own: nothing is said of what has no reply.
                self.closing.pop(channel)
                return
            if channel == MARKS:
                # The last straw of all that the connection owes. A new one might wait for the user of channel 0.
                self.marked, self.is_unmarked = self.marks, True
                return
            life = self.lives.pop(channel)
            assert life.is_open, channel
            life.end = "server"
            self.answers += close(channel)
        elif channel == MARKS:
            self.marked += 1
        elif channel in self.closing:
            self.closing[channel].replies.append(value)
        else:
            life = self.lives[channel]
            life.replies.append(value)
            assert len(life.replies) <= len(life.sent), (channel, value)
            if life.sent[len(life.replies) - 1][0] == "id":
                self.ids[channel] = value

    def flush(self, cut):
        """Sends what there is, in pieces."""
        try:
            while self.output:
                count = self.dice.randrange(1, len(self.output) + 1) if cut else len(self.output)
                self.wire.send(self.output[:count])
                del self.output[:count]
        except (BrokenPipeError, ConnectionResetError):
            self.output.clear()

    def until_marked(self):
        """Reads until the server has come to all that was sent, or has ended the connection."""
        self.output += argv(MARKS, "PING")
        self.marks += 1
        self.flush(self.dice.random() < 0.3)
        self.is_over = not self.read(lambda: self.marked < self.marks)

    def read(self, goes_on):
        """Takes what comes as long as it is to; whether the connection has not ended."""
        try:
            while goes_on():
                self.take(*self.wire.frame())
            return True
        except Closed:
            assert not self.wire.buffer, "the stream ends between two frames"
        except ConnectionResetError:
            # This machine has kept us from ending for longer than the server reads on: after a reset nobody knows.
            assert self.goaway, "the connection was reset without a word"
            self.seen["reset", ""] += 1
            self.close_abruptly()
        return False

    def run(self):
        dice, paused = self.dice, False
        for _ in range(dice.randrange(1, 4)):
            channels = dice.sample(range(8), dice.randrange(1, 6))
            if dice.random() < 0.25:
                self.admin.call("CLIENT", "PAUSE", dice.choice(["5", "20"]), dice.choice(["WRITE", "ALL"]))
                paused = True
            for _ in range(dice.randrange(1, 40)):
                channel = dice.choice(channels)
                # Behind our CLOSE nothing is sent before the answer.
                if channel not in self.closing:
                    (self.end if dice.random() < 0.08 else self.step)(channel)
            if dice.random() < 0.5:
                self.flush(True)
                for channel in self.kills:
                    if channel in self.ids:
                        self.admin.call("CLIENT", "KILL", "ID", self.ids[channel])
                if self.user and dice.random() < 0.3:
                    self.admin.call("ACL", "DELUSER", self.name)
            if paused and dice.random() < 0.5:
                self.admin.call("CLIENT", "UNPAUSE")
            self.until_marked()
            self.kills.clear()
            if self.is_over:
                return
            self.output += self.answers
            self.answers.clear()
            if self.is_unmarked:
                break
        last = dice.choice("quit quit malformed kill user reset half".split())
        if last == "reset":
            self.flush(False)
            return self.close_abruptly()
        if last == "quit" and 0 not in self.closing:
            self.ask(0, "quit", "QUIT")
        elif last == "user" and self.user:
            self.admin.call("ACL", "DELUSER", self.name)
        elif last == "kill":
            self.admin.call("CLIENT", "KILL", "ID", self.identity)
        if last != "half":
            # It may be another client by now, or QUIT waits.
            self.output += bytes.fromhex("05ff0001")
        self.flush(dice.random() < 0.3)
        if last == "half":
            self.wire.socket.shutdown(1)
        self.read(lambda: True)
        if last == "half":
            # The client has ended: nobody said anything of what has no reply.
            self.close_abruptly()

    def close_abruptly(self):
        for life in self.lives.values():
            life.end = "client"
        self.wire.close()

    def check(self):
        """What ran is what was answered."""
        self.wire.close()
        if any(life.is_open and life.end is None for life in self.all):
            assert self.goaway, "the connection ended without a word"
        for life in self.all:
            ran, taken = life.known()
            pushed = [int(each) for each in self.admin.call("LRANGE", life.list, 0, -1)]
            left = self.admin.call("LLEN", life.waits)
            if life.end == "client":
                assert pushed[: len(ran)] == ran, (life.list, pushed, ran)
            else:
                assert pushed == ran, (life.list, pushed, ran, life.sent[len(life.replies):])
                if life.given:
                    assert left <= life.given - taken, (life.waits, left, life.given, taken)
            self.admin.call("DEL", life.list, life.waits)


class Random(unittest.TestCase):
    def used_bytes(self, admin):
        lines = dict(line.split(":", 1) for line in admin.call("INFO", "memory").splitlines() if ":" in line)
        return int(lines["used_memory"])

    def rounds(self, server, admin, seed, count):
        for number in range(count):
            dice = random.Random(f"{seed}:{number}")
            one = Round(dice, server.port, f"r{number}", admin, self.seen)
            try:
                one.run()
                one.check()
            except BaseException:
                print(f"SEED={seed}, round {number}", flush=True)
                raise
            finally:
                one.wire.close()
            if one.user:
                admin.call("ACL", "DELUSER", one.name)

    def ends(self, *flags, threads):
        self.seen = Counter()
        with Server(*FLAGS, *flags, threads=threads) as server, Wire(server.port) as admin:
            while str(admin.call("SET", "value", VALUE)).startswith("-LOADING"):
                pass
            self.rounds(server, admin, SEED, ROUNDS // 3 + 1)
            self.alone(admin)
            used, resident = self.used_bytes(admin), server.resident_bytes()
            self.rounds(server, admin, SEED + 1, ROUNDS)
            self.alone(admin)
            grown = self.used_bytes(admin) - used, server.resident_bytes() - resident
            print(f"SEED={SEED}, {threads} threads, {ROUNDS} rounds: {grown[0]} bytes used more, {grown[1]} resident", dict(sorted(self.seen.items(), key=str)), flush=True)
            missing = OFTEN - set(self.seen)
            self.assertFalse(missing if ROUNDS >= 100 else None, f"SEED={SEED}: ends that the rounds are for did not come")
            self.assertLess(grown[0], USED_BYTES_MAX, f"SEED={SEED}")
            self.assertLess(grown[1], RESIDENT_BYTES_MAX, f"SEED={SEED}")

    def alone(self, admin):
        """Nobody else is left, and nothing that blocks."""
        while len(admin.call("CLIENT", "LIST").splitlines()) > 1:
            pass
        # What a client that was gone had sent may have run behind the look at it.
        for key in admin.call("KEYS", "*:*"):
            admin.call("DEL", key)
        self.assertEqual(admin.call("DBSIZE"), 1)
        self.assertIn("blocked_clients:0", admin.call("INFO", "clients"))

    def test_ends_with_one_thread(self):
        self.ends(threads=1)

    def test_ends_with_two_threads(self):
        self.ends("--threads-always-active", "yes", threads=2)


if __name__ == "__main__":
    unittest.main()
