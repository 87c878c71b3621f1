"""Owns: what a hostile client can cost Valkey with RESPB: the limits that its own scenarios (tests/e2e) do not reach, memory that comes
back, what is answered whatever was set before, and bytes that nobody would send. Does not own those scenarios. SEED says which bytes, ROUNDS how many connections."""

import json
import os
import random
import re
import socket
import struct
import unittest

from server import REPLY_SECONDS, Closed, Respb, Server, Wire, argv, cancel, close, get, long_frame, request
from test_valkey import VECTORS, Valkey, wire_bytes

SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
ROUNDS = int(os.environ.get("ROUNDS", "300"))
MEGABYTE = 1 << 20
# What may be left when all is over: buffers that are kept for the next, and replies of who asks.
LEFT_BYTES_MAX = MEGABYTE


def info(wire, field):
    return int(re.search(rf"^{field}:(\d+)", wire.call("INFO", "everything"), re.M).group(1))


def cpu_ms(wire):
    """What the server has had of a CPU."""
    return 1000 * sum(float(each) for each in re.findall(r"^used_cpu_(?:sys|user):([\d.]+)", wire.call("INFO", "cpu"), re.M))


def to_the_end(wire):
    frames = []
    try:
        while True:
            frames.append(wire.frame())
    except (Closed, ConnectionResetError):
        return frames


class Costs(Valkey):
    def test_a_channel_begins_with_a_small_buffer(self):
        """1 KiB for replies, where a connection of RESP begins with 16."""
        admin, wire, count = self.resp(), self.open(), 1000
        wire.call_on(0, "PING")
        before = info(admin, "used_memory")
        wire.send(b"".join(argv(channel, "PING") for channel in range(1, count + 1)))
        for _ in range(count):
            self.assertEqual(wire.frame()[1], "+PONG")
        self.assertLess((info(admin, "used_memory") - before) / count, 5000)

    def test_refused_channels_before_authentication(self):
        """A connection of which all numbers are refused costs no page for each."""
        with Server("--requirepass", "secret") as server, Wire(server.port) as admin:
            admin.call("AUTH", "secret")
            before, wires = info(admin, "used_memory"), []
            for _ in range(20):
                wires.append(Respb(server.port))
                self.addCleanup(wires[-1].close)
                for channel in [*range(1, 16), *range(100, 65_536, 65)]:
                    wires[-1].send(get(channel, "k"))
                for _ in range(15 + len(range(100, 65_536, 65))):
                    wires[-1].frame()
            self.assertLess((info(admin, "used_memory") - before) / len(wires), 150_000)
            for channel in range(100, 65_536, 65):
                wires[0].send(close(channel))
            wires[0].send(close(1) + get(2000, "k"))
            self.assertEqual([wires[0].frame()[0] for _ in range(2)], [1, 2000])

    def test_what_is_owed_before_authentication(self):
        """As over RESP: who reads nothing does not have errors kept, nor what ends and refuses channels."""
        with Server("--requirepass", "secret") as server, Wire(server.port) as admin:
            admin.call("AUTH", "secret")
            before = info(admin, "used_memory")
            opened = b"".join(get(channel, "k") for channel in range(16))
            for unread in (get(5, "k"), opened, get(5, "k") + close(5), close(0) + get(0, "k"), get(100, "k") + close(100)):
                frames = self.unread(server, opened, unread * (8 * MEGABYTE // len(unread)))
                if close(0)[:2] in unread:
                    self.assertEqual(frames[-1][1][:2], ("goaway", 2), unread)
            self.assertLess(info(admin, "used_memory_peak") - before, 8 * MEGABYTE)

    def test_what_refused_channels_are_owed(self):
        """Their CLOSEs count as what channels are owed that have ended."""
        with Server("--respb-channels", "1", "--respb-connection-output-bytes", "1mb") as server, Wire(server.port) as admin:
            before = info(admin, "used_memory")
            unread = get(1, "k") + close(1)
            frames = self.unread(server, argv(0, "PING"), unread * (8 * MEGABYTE // len(unread)))
            self.assertEqual(frames[-1][1][:2], ("goaway", 2))
            self.assertLess(info(admin, "used_memory_peak") - before, 8 * MEGABYTE)

    def unread(self, server, first, data):
        """Sends and reads nothing meanwhile: more replies than the sockets take. Gives the frames that came."""
        with Respb(server.port) as wire:
            wire.send(first + data + argv(0, "QUIT"))
            return to_the_end(wire)

    def test_channels_that_open_behind_a_long_queue(self):
        """What has to be known of channel 0's queue when another opens costs the same however long that is."""
        count, spent = 10_000, []
        for waiting in (0, 60_000):
            with Server("--respb-queue-bytes", "64mb", "--respb-connection-queue-bytes", "64mb") as server, Wire(server.port) as admin, Respb(server.port) as wire:
                wire.send(argv(0, "BLPOP", "never", "0") + argv(0, "PING") * waiting + argv(1, "PING"))
                self.assertEqual(wire.frame(), (1, "+PONG"))
                before = cpu_ms(admin)
                wire.send(b"".join(argv(channel, "PING") for channel in range(2, count + 2)))
                for _ in range(count):
                    self.assertEqual(wire.frame()[1], "+PONG")
                spent.append(cpu_ms(admin) - before)
        # Walking that queue for each took 20 times as much.
        self.assertLess(spent[1], 6 * spent[0] + 50, spent)

    def test_channels_far_apart_that_have_ended(self):
        """What finds channels by number goes with them; while they are open it counts as the connection's memory."""
        numbers = range(256, 65_536, 256)
        with Server("--requirepass", "secret") as server, Wire(server.port) as admin, Respb(server.port) as wire:
            admin.call("AUTH", "secret")
            wire.call_on(0, "PING")
            before = info(admin, "used_memory")
            for number in numbers:
                wire.send(argv(number, "PING") + close(number))
                self.assertEqual([wire.frame()[0], wire.frame()], [number, (number, ("close", 0))])
            self.assertLess(info(admin, "used_memory") - before, 100_000)
            wire.call_on(0, "AUTH", "secret")
            wire.call_on(0, "CLIENT", "SETNAME", "far")
            sizes = [int(re.search(r"name=far .*tot-mem=(\d+)", admin.call("CLIENT", "LIST")).group(1))]
            wire.send(b"".join(argv(number, "PING") for number in numbers))
            for _ in numbers:
                wire.frame()
            wire.call_on(0, "PING")
            sizes.append(int(re.search(r"name=far .*tot-mem=(\d+)", admin.call("CLIENT", "LIST")).group(1)))
            self.assertGreater(sizes[1] - sizes[0], len(numbers) * 2048)

    def test_what_channels_that_have_ended_are_owed(self):
        """It has a limit, which ends the connection: each channel was within its own."""
        with Server("--respb-connection-output-bytes", "8mb") as server, Wire(server.port) as admin:
            admin.call("SET", "big", b"b" * MEGABYTE)
            with Respb(server.port) as wire:
                for channel in range(1, 200):
                    wire.send(get(channel, "big") + close(channel))
                while "cmd=get" in admin.call("CLIENT", "LIST"):
                    pass
                frames = to_the_end(wire)
                self.assertLess(info(admin, "used_memory_peak"), 60 * MEGABYTE)
            self.assertEqual(frames[-1][1][:2], ("goaway", 2))
            replies = [value for _, value in frames if isinstance(value, str)]
            self.assertEqual(set(replies), {"b" * MEGABYTE})
            self.assertLess(len(replies), 40)

    def test_what_open_channels_are_owed(self):
        with Server("--respb-connection-output-bytes", "8mb") as server, Wire(server.port) as admin:
            admin.call("SET", "big", b"b" * MEGABYTE)
            with Respb(server.port) as wire:
                wire.send(b"".join(argv(channel, "INCR", "ran") + get(channel, "big") for channel in range(1, 200)))
                got = {channel: [] for channel in range(1, 200)}
                while not all(values and (len(values) == 2 or values[-1] == ("close", 2)) for values in got.values()):
                    channel, value = wire.frame()
                    if channel == 0:
                        # Those that ended were owed as much.
                        self.assertEqual(value[:2], ("goaway", 2))
                        break
                    got[channel].append(value)
                self.assertLess(info(admin, "used_memory_peak"), 60 * MEGABYTE)
                answered = sum(isinstance(value, int) for values in got.values() for value in values)
                self.assertEqual(admin.call("GET", "ran"), str(answered), "what ran is what was answered")
                self.assertLess(answered, 60)

    def test_one_command_that_pushes_without_end(self):
        """What a script publishes to a channel that reads nothing is cut off inside the script."""
        with Server("--respb-output-bytes", "2mb") as server, Wire(server.port) as admin:
            with Respb(server.port) as wire:
                wire.call_on(1, "SUBSCRIBE", "news")
                wire.call_on(2, "MONITOR")
                admin.call("EVAL", "for i = 1, 300 do redis.call('PUBLISH', 'news', string.rep('n', 1000000)) end", "0")
                frames = []
                while sum(value == ("close", 2) for _, value in frames) < 2:
                    frames.append(wire.frame())
                for _, value in frames:
                    self.assertIn(value[:2], (("push", "message"), ("push", "monitor"), ("close", 2)))
                self.assertEqual(wire.call_on(3, "PING"), "+PONG")
            self.assertLess(info(admin, "used_memory_peak"), 60 * MEGABYTE)

    def test_requests_in_pieces_count_for_maxmemory_clients(self):
        with Server("--maxmemory-clients", "20mb") as server, Wire(server.port) as admin:
            with Respb(server.port) as wire:
                wire.call_on(1, "PING")
                frame = argv(1, "SET", "k", b"v" * (60 * MEGABYTE))
                try:
                    wire.send(frame[:-1])
                except (BrokenPipeError, ConnectionResetError):
                    pass
                self.assertEqual(wire.frame()[1][:2], ("goaway", 4))
            self.assertGreater(info(admin, "evicted_clients"), 0)


    def test_a_queue_of_many_requests(self):
        """65,535 may wait; those that have run do not count, though they are still there while the channel blocks again."""
        with Server("--respb-queue-bytes", "100mb", "--respb-connection-queue-bytes", "100mb") as server, Wire(server.port) as admin, Respb(server.port) as wire:
            wire.send(argv(1, "BLPOP", "a", "0") + argv(1, "PING") * 30_000 + argv(1, "BLPOP", "b", "0") + argv(1, "PING") * 30_000)
            self.assertEqual(wire.call_on(2, "PING"), "+PONG")
            admin.call("RPUSH", "a", "x")
            self.assertEqual([wire.frame() for _ in range(30_001)], [(1, ["a", "x"])] + [(1, "+PONG")] * 30_000)
            wire.send(argv(1, "PING") * 35_535)
            self.assertEqual(wire.call_on(2, "PING"), "+PONG")
            admin.call("RPUSH", "b", "x")
            self.assertEqual([wire.frame() for _ in range(65_536)], [(1, ["b", "x"])] + [(1, "+PONG")] * 65_535)
            wire.send(argv(1, "BLPOP", "a", "0") + argv(1, "PING") * 65_536)
            self.assertEqual(wire.frame(), (1, ("close", 1)))

    def test_a_long_queue_behind_what_decides_about_its_user(self):
        """More than half of what it may have at most: Valkey's own queues never do."""
        with Server("--respb-queue-bytes", "100mb", "--respb-connection-queue-bytes", "100mb") as server, Wire(server.port) as admin, Respb(server.port) as wire:
            self.assertEqual(wire.call_on(2, "PING"), "+PONG")
            wire.send(argv(0, "BLPOP", "a", "0") + argv(0, "RESET") + argv(1, "BLPOP", "b", "0") + argv(1, "PING") * 40_000)
            self.assertEqual(wire.call_on(2, "PING"), "+PONG")
            admin.call("RPUSH", "a", "x")
            self.assertEqual([wire.frame() for _ in range(2)], [(0, ["a", "x"]), (0, "+RESET")])
            admin.call("RPUSH", "b", "x")
            self.assertEqual([wire.frame() for _ in range(40_001)], [(1, ["b", "x"])] + [(1, "+PONG")] * 40_000)

    def test_what_has_run_waits_no_more(self):
        """For the limit of the connection, though its channel has sent nothing since; what is cancelled neither."""
        value = b"v" * 700_000
        with Server("--respb-connection-queue-bytes", "3mb") as server, Wire(server.port) as admin, Respb(server.port) as wire:
            for _ in range(2):
                for channel in range(1, 5):
                    wire.send(argv(channel, "BLPOP", channel, "0") + argv(channel, "SET", "k", value) + argv(channel, "BLPOP", f"{channel}-again", "0") + argv(channel, "PING"))
                self.assertEqual(wire.call_on(9, "PING"), "+PONG")
                for suffix, replies in (("", [["x"], "+OK"]), ("-again", [["x"], "+PONG"])):
                    for channel in range(1, 5):
                        admin.call("RPUSH", f"{channel}{suffix}", "x")
                        for reply in replies:
                            self.assertEqual(wire.frame(), (channel, [f"{channel}{suffix}", "x"] if reply == ["x"] else reply))
                        if not suffix:
                            # As much again as what has run here.
                            sequence = int(wire.call_on(channel + 10, "ECHO", "0"))
                            wire.send(argv(channel + 10, "BLPOP", "never", sequence) + argv(channel + 10, "SET", "k", value))
                            wire.send(cancel(channel + 10, 2) + cancel(channel + 10, 1) + close(channel + 10))
                            got = [wire.frame()]
                            while got[-1] != (channel + 10, ("close", 0)):
                                got.append(wire.frame())

    def test_a_connection_stays_authenticated(self):
        """Its limits do (section 10), though a channel may not: CLOSE and RESET take its user away."""
        with Server("--requirepass", "secret") as server:
            for end in (close(0), argv(0, "RESET")):
                with Respb(server.port) as wire:
                    self.assertEqual(wire.call_on(0, "AUTH", "secret"), "+OK")
                    wire.send(end)
                    self.assertIn(wire.frame(), ((0, ("close", 0)), (0, "+RESET")))
                    # Sixteen channels and 16,384 bytes are what there is before.
                    for channel in range(20):
                        self.assertTrue(wire.call_on(channel, "ECHO", b"e" * 20_000).startswith("-NOAUTH"))


class Answers(Valkey):
    def test_hello_that_switches_ends_client_reply(self):
        for mode in ("OFF", "SKIP"):
            wire = self.open()
            wire.send(request("CLIENT", "REPLY", mode) + request("HELLO", "3", "PROTO", "respb"))
            self.assertEqual(wire.reply()["respb"]["version"], 1)
            self.assertEqual([wire.call_on(channel, "PING") for channel in (0, 1, 0)], ["+PONG"] * 3)


    def test_replies_that_cannot_be_said(self):
        """A script may give what RESPB has no form for: it is answered an error, and the other channels never learn of it."""
        wire = self.open()
        for script in ("return {big_number='ten'}", "return {big_number=''}", "local t = {} for i = 1, 128 do t = {t} end return t",
                       "local t = {} for i = 1, 900 do t = {t} end return {t, string.rep('t', 100000), {map={a=t}}}",
                       "return {string.rep('b', 50000), {big_number='ten'}, string.rep('b', 50000), 'b'}",
                       "local t = {} for i = 1, 9000 do t[i] = {big_number='ten'} end return t"):
            wire.send(argv(1, "MULTI") + argv(1, "EVAL", "redis.setresp(3) " + script, "0") + argv(1, "ECHO", "e") + argv(1, "EXEC"))
            wire.send(argv(1, "EVAL", "redis.setresp(3) " + script, "0") + argv(1, "ECHO", "behind") + get(2, "nothing"))
            got = [wire.frame() for _ in range(7)]
            replies = [value for channel, value in got if channel == 1]
            self.assertEqual(replies[:3] + replies[5:], ["+OK", "+QUEUED", "+QUEUED", "behind"], script)
            self.assertEqual(replies[3:5], ["-ERR the reply to this is not available over RESPB"] * 2)
            self.assertIn((2, None), got)
        # A bulk that looks like one.
        self.assertEqual(wire.call_on(1, "EVAL", "redis.setresp(3) return {'(ten\\r\\n', {set={a=true}}}", "0"), ["(ten\r\n", ["a"]])
        self.assertEqual(wire.call_on(3, "PING"), "+PONG")


class Hostile(Valkey):
    """Frames that are cut, changed, and ended in every state."""

    flags = ("--respb-queue-bytes", "20000", "--respb-output-bytes", "300000", "--respb-connection-output-bytes", "900000",
             "--respb-channels", "50", "--latency-tracking", "no")
    # Its user may not stop or set the server.
    users = ("admin on nopass ~* &* +@all", "default -@admin -@dangerous -debug -shutdown -eval -wait")

    def frames(self):
        """Typed frames of the vectors, and frames that open, block, subscribe, watch, cancel and close."""
        frames = []
        for name in sorted(os.listdir(VECTORS)):
            with open(os.path.join(VECTORS, name), encoding="ascii") as file:
                for vector in json.load(file)["vectors"]:
                    data = wire_bytes(vector["wire"])
                    if len(data) < 2000:
                        frames.append(data)
        words = ("MULTI", "EXEC", "DISCARD", "WATCH k", "BLPOP nothing 0", "BLPOP nothing 0.01", "SUBSCRIBE a b", "UNSUBSCRIBE", "PSUBSCRIBE *",
                 "CLIENT TRACKING ON BCAST", "CLIENT TRACKING OFF", "RESET", "QUIT", "HELLO 3", "HELLO 2", "SELECT 3", "GET big", "LRANGE long 0 -1",
                 "PUBLISH a m", "LPUSH nothing x", "XREAD BLOCK 0 STREAMS s $", "AUTH default x", "CLIENT UNBLOCK 5", "SSUBSCRIBE s", "HGETALL hash")
        return frames, [word.split() for word in words]

    def mixed(self, chance, frames, words):
        """Bytes of a connection."""
        out = bytearray()
        for _ in range(chance.randrange(1, 60)):
            channel = chance.randrange(60) if chance.random() < 0.9 else chance.randrange(65_536)
            kind = chance.random()
            if kind < 0.5:
                out += argv(channel, *chance.choice(words))
            elif kind < 0.7:
                frame = bytearray(chance.choice(frames))
                frame[2:4] = struct.pack(">H", channel)
                out += frame
            elif kind < 0.8:
                out += close(channel, chance.choice((None, 0, 9)))
            elif kind < 0.9:
                out += cancel(channel, chance.randrange(4))
            elif kind < 0.97:
                out += long_frame(0xFFFF, channel, request(*chance.choice(words)))
            else:
                out += bytes([chance.choice((0, 1, 0x80, 0xF0, 0xFF)), chance.randrange(256)]) + struct.pack(">HI", channel, chance.randrange(40)) + chance.randbytes(20)
        for _ in range(chance.choice((0, 0, 1, 3))):
            out[chance.randrange(len(out))] = chance.randrange(256)
        # The first byte is RESPB's.
        return argv(0, "PING") + bytes(out)

    def test_random_bytes(self):
        print(f"SEED={SEED}")
        chance, (frames, words) = random.Random(SEED), self.frames()
        admin = self.resp()
        for user in self.users:
            self.assertEqual(admin.call("ACL", "SETUSER", *user.split()), "+OK")
        admin.call("AUTH", "admin", "x")
        fill = [("SET", "big", b"b" * 100_000), ("RPUSH", "long", *(str(n) * 50 for n in range(500))), ("HSET", "hash", *map(str, range(400)))]
        before, clients = None, info(admin, "connected_clients")
        for turn in range(ROUNDS):
            if turn % 50 == 0:
                admin.call("FLUSHALL")
                admin.call("SCRIPT", "FLUSH")
                for command in fill:
                    admin.call(*command)
                if turn:
                    self.settled(admin, clients, before)
                elif before is None:
                    before = info(admin, "used_memory")
            with Respb(self.server.port) as wire:
                data = self.mixed(chance, frames, words)
                at = 0
                wire.socket.setblocking(False)
                while at < len(data):
                    size = chance.choice((1, 7, 100, 5000, 100_000))
                    try:
                        at += wire.socket.send(data[at : at + size])
                    except BlockingIOError:
                        pass
                    except OSError:
                        break
                    if chance.random() < 0.3:
                        try:
                            wire.socket.recv(chance.choice((1, 1000, 1 << 20)))
                        except OSError:
                            pass
                if chance.random() < 0.7:
                    # All of it is read, and answered or refused, before the connection ends.
                    wire.socket.settimeout(REPLY_SECONDS)
                    try:
                        wire.socket.shutdown(socket.SHUT_WR)
                        while wire.socket.recv(1 << 16):
                            pass
                    except OSError as error:
                        self.assertNotIsInstance(error, TimeoutError)
            if chance.random() < 0.3:
                listed = re.findall(r"^id=(\d+) .* user=default ", admin.call("CLIENT", "LIST"), re.M)
                if listed:
                    admin.call("CLIENT", "KILL", "ID", chance.choice(listed))
            self.assertEqual(admin.call("PING"), "+PONG")

    def settled(self, admin, clients, before):
        """All clients are gone, and what they took is back."""
        while info(admin, "connected_clients") > clients:
            pass
        admin.call("CONFIG", "SET", "tracking-table-max-keys", "1")
        self.assertLess(info(admin, "used_memory"), before + LEFT_BYTES_MAX)


if __name__ == "__main__":
    unittest.main()
