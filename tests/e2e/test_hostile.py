"""Owns: what one client must not be able to do to others, or to the server's memory, by the order and the size of what it
sends. Does not own: single malformed frames (`test_trouble`), what channels promise (`test_respb`)."""

import re
import resource
import select
import struct
import tempfile
import unittest

from server import REPLY_SECONDS, Respb, Server, argv, cancel, close, get, request, window

# More than a connection has copied back into the arena: the rest of it is decoded in a buffer of the connection's own.
OWN_BUFFER_BYTES = 100_000
CANCELLED = "-CANCELLED the request was cancelled by its client"


class Counted(Respb):
    """A connection that knows how much of what it has sent the server has taken."""

    def __init__(self, server, asker):
        super().__init__(server.port)
        self.sent = 0
        self.asker = asker
        self.id = self.call_on(0, "CLIENT", "ID")

    def send(self, data):
        super().send(data)
        self.sent += len(data)

    def wait_until_taken(self):
        while True:
            line = self.asker.call_on(0, "CLIENT", "LIST", "ID", self.id)
            if int(re.search(r"tot-net-in=(\d+)", line)[1]) == self.sent:
                return


class OwnEnd(unittest.TestCase):
    """A client that ends itself in the midst of a pipeline: that is answered, and nothing behind it runs."""

    def setUp(self):
        self.server = Server(threads=1)
        self.addCleanup(lambda: self.assertEqual(self.server.stop(), 0))
        self.other = self.server.connect()
        self.addCleanup(self.other.close)

    def ends(self, sent, replies, code, pushed):
        """`sent(id)` are requests and then the end. 1,000 elements and a message are behind it; `pushed` are those before."""
        behind = [("RPUSH", "list", "behind")] * 1_000 + [("PUBLISH", "news", "behind"), ("PING",), ("SET", "key", "behind")]
        for hello in ("2", "3"):
            with self.server.connect() as wire:
                wire.call("HELLO", hello)
                wire.send(b"".join(request(*words) for words in sent(wire.call("CLIENT", "ID")) + behind))
                self.assertEqual([wire.reply() for _ in replies], replies)
                self.assertEqual(wire.until_closed(), b"")
            self.nothing_has_run(pushed)
        wire = Respb(self.server.port)
        wire.send(b"".join(argv(1, *words) for words in sent(wire.call_on(1, "CLIENT", "ID")) + behind))
        self.assertEqual([wire.frame() for _ in replies], [(1, reply) for reply in replies])
        self.assertEqual(wire.frame(), (1, ("close", code)))
        # The connection goes on.
        self.assertEqual(wire.call_on(2, "PING"), "+PONG")
        wire.close()
        self.nothing_has_run(pushed)

    def nothing_has_run(self, pushed):
        self.assertEqual(self.other.call("LLEN", "list"), pushed)
        self.assertEqual(self.other.call("EXISTS", "key"), 0)
        self.other.call("DEL", "list")

    def test_by_client_kill(self):
        self.ends(lambda own: [("RPUSH", "list", "before"), ("CLIENT", "KILL", "ID", str(own), "SKIPME", "no")], [1, 1], 4, 1)

    def test_by_quit(self):
        self.ends(lambda _: [("QUIT",)], ["+OK"], 0, 0)

    def test_by_client_kill_in_a_transaction(self):
        """What was queued behind it runs, as in Valkey."""
        killed = lambda own: [("MULTI",), ("CLIENT", "KILL", "ID", str(own), "SKIPME", "no"), ("RPUSH", "list", "queued"), ("EXEC",)]
        self.ends(killed, ["+OK", "+QUEUED", "+QUEUED", [1, 1]], 4, 1)


class Reentry(unittest.TestCase):
    """Control frames in the midst of what a connection reads from its own buffer."""

    def setUp(self):
        self.server = Server(threads=1)
        self.other = Respb(self.server.port)
        self.wire = Counted(self.server, self.other)

    def tearDown(self):
        self.wire.close()
        self.other.close()
        self.assertEqual(self.server.stop(), 0)

    def send_in_own_buffer(self, behind):
        """A large SET in two pieces, and `behind` together with the second."""
        frame = argv(2, "SET", "large", b"x" * OWN_BUFFER_BYTES)
        half = len(frame) // 2
        self.wire.send(frame[:half])
        self.wire.wait_until_taken()
        self.wire.send(frame[half:] + behind)

    def frames(self, count):
        """By channel, since nothing is said about the order of several."""
        got = {}
        for _ in range(count):
            channel, value = self.wire.frame()
            got.setdefault(channel, []).append(value)
        return got

    def runs_once(self, control, channel_1):
        """`control`, which ends a wait on channel 1, comes behind an RPUSH that is run only once."""
        self.wire.send(argv(1, "BLPOP", "nothing", "0") + argv(1, "RPUSH", "held", "once"))
        self.send_in_own_buffer(argv(2, "RPUSH", "list", "once") + control + argv(2, "LLEN", "list") + get(3, "k"))
        got = self.frames(4 + len(channel_1))
        self.assertEqual(got, {1: channel_1, 2: ["+OK", 1, 1], 3: [None]})
        self.assertEqual(self.other.call_on(0, "LLEN", "list"), 1)
        self.assertTrue(self.wire.is_silent(), "nothing is answered twice")

    def test_cancel(self):
        self.runs_once(cancel(1, 0), [CANCELLED, 1])

    def test_close(self):
        self.runs_once(close(1), [("close", 0)])

    def test_close_of_channel_0(self):
        self.runs_once(cancel(1, 0) + close(1), [CANCELLED, 1, ("close", 0)])

    def test_window(self):
        self.runs_once(window(1, 1 << 20) + cancel(1, 0), [CANCELLED, 1])

    def test_kill_and_unblock_by_the_client_itself(self):
        blocked = self.wire.call_on(1, "CLIENT", "ID")
        self.wire.send(argv(1, "BLPOP", "nothing", "0") + argv(1, "RPUSH", "held", "once"))
        self.send_in_own_buffer(
            argv(2, "RPUSH", "list", "once") + argv(3, "CLIENT", "UNBLOCK", blocked) + argv(2, "LLEN", "list")
            + argv(4, "CLIENT", "ID")
        )
        got = self.frames(7)
        self.assertEqual((got[1], got[2], got[3]), ([None, 1], ["+OK", 1, 1], [1]))
        self.send_in_own_buffer(argv(2, "RPUSH", "list", "twice") + argv(3, "CLIENT", "KILL", "ID", blocked) + get(4, "k"))
        got = self.frames(5)
        self.assertEqual(got, {1: [("close", 4)], 2: ["+OK", 2], 3: [1], 4: [None]})
        self.assertTrue(self.wire.is_silent(), "nothing is answered twice")

    def test_the_end_of_a_pause(self):
        self.other.call_on(0, "CLIENT", "PAUSE", "60000", "WRITE")
        self.send_in_own_buffer(argv(2, "RPUSH", "list", "once") + argv(3, "CLIENT", "UNPAUSE") + argv(4, "RPUSH", "list", "x"))
        got = self.frames(4)
        self.assertEqual((got[3], set(got[2][:1])), (["+OK"], {"+OK"}))
        self.assertEqual(self.other.call_on(0, "LLEN", "list"), 2)
        self.assertTrue(self.wire.is_silent(), "nothing is answered twice")

    def test_bytes_of_others_stay_theirs(self):
        """Requests of others lie in the same memory while the connection's own buffer is decoded."""
        self.wire.send(argv(1, "BLPOP", "nothing", "0"))
        secret = "s" * 64
        neighbours = [Respb(self.server.port) for _ in range(8)]
        for turn in range(50):
            frame = argv(2, "SET", "large", b"x" * OWN_BUFFER_BYTES)
            half = len(frame) // 2
            self.wire.send(frame[:half])
            self.wire.wait_until_taken()
            for neighbour in neighbours:
                neighbour.send(argv(0, "SET", f"secret:{turn}", secret))
            self.wire.send(frame[half:] + get(3, "secret") + cancel(1, turn) + get(3, "k") + argv(1, "BLPOP", "nothing", "0"))
            for neighbour in neighbours:
                self.assertEqual(neighbour.frame(), (0, "+OK"))
            got = self.frames(4)
            self.assertEqual(got, {1: [CANCELLED], 2: ["+OK"], 3: [None, None]})
        for neighbour in neighbours:
            neighbour.close()


class Pause(unittest.TestCase):
    def test_replies_stay_in_order(self):
        """What a pause lets through does not overtake what it holds, on RESP, RESPB and in one batch or several."""
        with Server() as server, server.connect() as other, server.connect() as resp, Respb(server.port) as respb:
            for turn in range(3):
                self.assertEqual(other.call("CLIENT", "PAUSE", "60000", "WRITE"), "+OK")
                resp.send(request("SET", "paused", turn) + request("GET", "paused") + request("PING"))
                respb.send(argv(1, "SET", "paused-b", turn) + get(1, "paused-b") + get(2, "none"))
                self.assertEqual(respb.frame(), (2, None), "other channels go on")
                respb.send(argv(1, "PING"))
                self.assertTrue(resp.is_silent() and respb.is_silent())
                self.assertEqual(other.call("CLIENT", "UNPAUSE"), "+OK")
                self.assertEqual([resp.reply() for _ in range(3)], ["+OK", str(turn), "+PONG"])
                self.assertEqual([respb.frame() for _ in range(3)], [(1, "+OK"), (1, str(turn)), (1, "+PONG")])


class Leftovers(unittest.TestCase):
    def test_cancelled_waits_leave_nothing(self):
        """A wait with a time that is cancelled, unblocked, closed or served takes its time along."""
        with Server(threads=1) as server, Respb(server.port) as wire:
            turns, each = 30, 5000  # 16 bytes that each leaves would be above the bound

            def turn(first):
                wait = argv(1, "BLPOP", "nothing", "86400")
                wire.send(b"".join(wait + cancel(1, first + at) for at in range(each)))
                for _ in range(each):
                    self.assertEqual(wire.frame(), (1, CANCELLED))

            turn(0)
            before = server.resident_bytes()
            for at in range(1, turns):
                turn(at * each)
            self.assertLess(server.resident_bytes() - before, 2 << 20)


class Sums(unittest.TestCase):
    def test_what_the_channels_of_a_connection_queue_together_is_bounded(self):
        with Server() as server, Respb(server.port) as wire:
            limits = wire.call_on(0, "HELLO", "3")["respb"]["limits"]
            self.assertEqual((limits["connection_queue_bytes"], limits["connection_output_bytes"]), (16 << 20, 512 << 20))
            before, channels = server.resident_bytes(), 60
            for channel in range(1, channels + 1):
                wire.send(argv(channel, "BLPOP", "nothing", "0") + argv(channel, "SET", "held", b"x" * 900_000))
            # 16 MiB hold 18 of them; each channel behind those is closed with the reason.
            closed = [wire.frame() for _ in range(channels - 18)]
            self.assertEqual(closed, [(channel, ("close", 1)) for channel in range(19, channels + 1)])
            self.assertLess(server.resident_bytes() - before, 32 << 20)
            self.assertEqual(wire.call_on(0, "PING"), "+PONG")


    def test_who_waits_is_not_read_from_without_end(self):
        """Over RESP: what comes behind a request that waits stays with its client, and runs in the end."""
        with Server(threads=1) as server, server.connect() as wire, server.connect() as other:
            wire.send(request("BLPOP", "list", "0"))
            while "blocked_clients:1" not in other.call("INFO", "clients"):
                pass
            before, behind, sent, wanted = server.resident_bytes(), request("SET", "k", "x" * 100_000), 0, 640
            data = memoryview(behind * wanted)
            wire.socket.setblocking(False)
            # No event tells that a socket will not be read from.
            while sent < len(data) and select.select([], [wire.socket], [], 1)[1]:
                sent += wire.socket.send(data[sent : sent + (64 << 10)])
            self.assertLess(sent, len(data) // 2)
            self.assertLess(server.resident_bytes() - before, 16 << 20)
            wire.socket.setblocking(True)
            wire.socket.settimeout(REPLY_SECONDS)
            self.assertEqual(other.call("RPUSH", "list", "v"), 1)
            wire.send(data[sent:])
            self.assertEqual(wire.reply(), ["list", "v"])
            self.assertEqual([wire.reply() for _ in range(wanted)], ["+OK"] * wanted)


class Closing(unittest.TestCase):
    """What comes on a channel that the server has closed is thrown away until the client's CLOSE (section 8)."""

    def setUp(self):
        self.server = Server()
        self.other = self.server.connect()
        self.wire = Respb(self.server.port)

    def tearDown(self):
        self.wire.close()
        self.other.close()
        self.assertEqual(self.server.stop(), 0)

    def late(self, channel):
        return b"".join(argv(channel, "SET", f"late:{at}", "y") for at in range(5))

    def nothing_was_late(self, channel):
        """Nothing that came behind has run, and the channel can be opened again."""
        self.assertEqual(self.wire.call_on(9, "PING"), "+PONG", "the connection goes on")
        self.assertEqual(self.other.call("EXISTS", *(f"late:{at}" for at in range(5))), 0)
        self.wire.send(close(channel))
        self.assertEqual(self.wire.call_on(channel, "PING"), "+PONG")

    def test_a_queue_that_is_full(self):
        flood = argv(1, "BLPOP", "nothing", "0") + b"".join(argv(1, "SET", f"q:{at}", "x" * 100_000) for at in range(14))
        for together in (True, False):
            if together:
                self.wire.send(flood + self.late(1))
                self.assertEqual(self.wire.frame(), (1, ("close", 1)))
            else:
                self.wire.send(flood)
                self.assertEqual(self.wire.frame(), (1, ("close", 1)))
                self.wire.send(self.late(1))
            self.nothing_was_late(1)
            self.assertEqual(self.other.call("DBSIZE"), 0)

    def test_what_a_pause_holds(self):
        """It is held back and not closed, however much it is; all of it runs in the end."""
        self.assertEqual(self.other.call("CLIENT", "PAUSE", "60000", "WRITE"), "+OK")
        self.wire.send(b"".join(argv(4, "SET", f"p:{at}", "x" * 100_000) for at in range(14)))
        self.assertTrue(self.wire.is_silent())
        self.assertEqual(self.other.call("CLIENT", "UNPAUSE"), "+OK")
        self.assertEqual([self.wire.frame() for _ in range(14)], [(4, "+OK")] * 14)
        self.assertEqual(self.other.call("DBSIZE"), 14)

    def test_kill_of_one_that_is_idle_or_waits(self):
        for held in (b"", argv(1, "BLPOP", "nothing", "0") + argv(1, "SET", "late:0", "held")):
            number = self.wire.call_on(1, "CLIENT", "ID")
            self.wire.send(held)
            # The answer on another channel: what came before it is decoded.
            self.assertEqual(self.wire.call_on(2, "PING"), "+PONG")
            self.assertEqual(self.other.call("CLIENT", "KILL", "ID", number), 1)
            self.assertEqual(self.wire.frame(), (1, ("close", 4)))
            self.wire.send(self.late(1))
            self.nothing_was_late(1)

    def test_behind_its_own_quit(self):
        self.wire.send(argv(3, "SET", "before", "1") + argv(3, "QUIT") + self.late(3))
        self.assertEqual([self.wire.frame() for _ in range(3)], [(3, "+OK"), (3, "+OK"), (3, ("close", 0))])
        self.nothing_was_late(3)


class Memory(unittest.TestCase):
    def test_a_pipeline_of_far_offsets_stops_at_maxmemory(self):
        """Each of them makes megabytes of few bytes: the limit is asked for between them, not between batches."""
        limit, each = 50 << 20, 8 << 20
        with Server("--maxmemory", limit, threads=1) as server, server.connect() as wire:
            for words in (("SETRANGE", each - 1, "x"), ("SETBIT", 8 * each - 1, 1), ("BITFIELD", "SET", "u8", 8 * each - 8, 1)):
                command, *rest = words
                wire.send(b"".join(request(command, f"k:{at}", *rest) for at in range(60)))
                replies = [wire.reply() for _ in range(60)]
                refused = sum(str(reply).startswith("-OOM") for reply in replies)
                self.assertGreaterEqual(refused, 60 - limit // each - 1, command)
                used = int(re.search(r"used_memory:(\d+)", wire.call("INFO", "memory"))[1])
                self.assertLess(used, limit + 2 * each, command)
                self.assertEqual(wire.call("FLUSHALL"), "+OK")


class Descriptors(unittest.TestCase):
    def test_without_descriptors_clients_wait_and_then_are_served(self):
        with (
            tempfile.TemporaryDirectory() as folder,
            Server("--logfile", f"{folder}/log") as server,
            server.connect() as there,
        ):
            self.assertEqual(there.call("PING"), "+PONG")
            limits = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
            # Those that are open stay; there is no number left for another one.
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (1, limits[1]))
            with server.connect() as late:
                late.send(request("PING"))
                self.assertTrue(late.is_silent())
                self.assertEqual(there.call("PING"), "+PONG")
                resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, limits)
                self.assertEqual(late.reply(), "+PONG")
            # It is said once, not for each attempt.
            with open(f"{folder}/log", encoding="utf-8") as log:
                self.assertEqual(log.read().count("cannot accept connections"), 1)


class BeforeAuthentication(unittest.TestCase):
    def test_long_frames_are_refused_by_their_heads(self):
        with Server("--requirepass", "secret") as server:
            for opcode in (0xF001, 0xF002, 0xF777, 0xFF01, 0xFF7F, 0xFFFF):
                with Respb(server.port) as wire:
                    before = server.resident_bytes()
                    try:
                        wire.send(struct.pack(">HHI", opcode, 0, 1 << 29) + bytes(16 << 20))
                    except (BrokenPipeError, ConnectionResetError):
                        pass
                    wire.until_closed()
                    self.assertLess(server.resident_bytes() - before, 4 << 20, hex(opcode))

    def test_what_is_passed_over_is_not_kept_after_it_either(self):
        with Server() as server, Respb(server.port) as wire:
            wire.call_on(0, "PING")
            for opcode, answer in ((0xF777, True), (0xFF7F, False), (0xFF01, True)):
                before = server.resident_bytes()
                wire.send(struct.pack(">HHI", opcode, 5, 64 << 20) + bytes(60 << 20))
                self.assertLess(server.resident_bytes() - before, 4 << 20, hex(opcode))
                wire.send(bytes(4 << 20) + get(6, "k"))
                got = [wire.frame() for _ in range(1 + answer)]
                self.assertEqual(got[-1], (6, None))
                self.assertEqual([channel for channel, _ in got[:-1]], [5] * answer)

    def test_requests_of_resp_are_refused_by_their_heads(self):
        heads = (b"*2\r\n$3\r\nGET\r\n$1000000000\r\n", b"*1000000\r\n$3\r\nGET\r\n", b"x" * 70_000, b"*99999999999999999999\r\n")
        with Server("--requirepass", "secret") as server:
            before = server.resident_bytes()
            wires = [server.connect() for _ in range(200)]
            for at, wire in enumerate(wires):
                try:
                    wire.send(heads[at % len(heads)] + b"x" * 200_000)
                except (BrokenPipeError, ConnectionResetError):
                    pass
            for wire in wires:
                wire.until_closed()
            self.assertLess(server.resident_bytes() - before, 8 << 20)
            with server.connect() as wire:
                for words in (("GET", "k"), ("CONFIG", "GET", "*"), ("MULTI",), ("EVAL", "return 1", "0")):
                    self.assertTrue(wire.call(*words).startswith("-NOAUTH"), words)
                self.assertTrue(wire.call("HELLO", "3", "AUTH", "default", "wrong").startswith("-WRONGPASS"))
                self.assertEqual(wire.call("AUTH", "secret"), "+OK")
                self.assertEqual(wire.call("RESET"), "+RESET")
                self.assertTrue(wire.call("GET", "k").startswith("-NOAUTH"), "RESET takes it back")

    def test_requests_at_the_limit_and_one_byte_past_it(self):
        limit = 16 << 10
        with Server("--requirepass", "secret") as server:
            for past in (0, 1):
                whole = request("ECHO", "x" * (limit + past - len(request("ECHO", "x" * 10_000)) + 10_000))
                framed = argv(3, "ECHO", b"x" * (limit + past - len(argv(3, "ECHO", b"x" * 10_000)) + 10_000))
                self.assertEqual((len(whole), len(framed)), (limit + past, limit + past))
                with server.connect() as wire, Respb(server.port) as respb:
                    wire.send(whole)
                    respb.send(framed)
                    said, (_, frame) = wire.line().decode(), respb.frame()
                if past:
                    self.assertIn("exceeds the frame size limit", said)
                    self.assertEqual(frame[0], "goaway")
                else:
                    self.assertTrue(said.startswith("-NOAUTH") and frame.startswith("-NOAUTH"), (said, frame))

    def test_a_first_line_has_no_other_limit_than_later_ones(self):
        limit = 16 << 10
        with Server("--requirepass", "secret") as server:
            for before in (b"", b"PING\r\n"):
                with server.connect() as wire:
                    wire.send(before + b"G" * (limit + 1))
                    self.assertIn(b"too big inline request", wire.until_closed())

    def test_who_does_not_authenticate_in_time_is_closed(self):
        with Server("--requirepass", "secret", "--auth-timeout", "1") as server:
            with server.connect() as late, server.connect() as in_time, Respb(server.port) as respb:
                self.assertEqual(in_time.call("AUTH", "secret"), "+OK")
                # Asking does not prolong the time.
                self.assertTrue(respb.call_on(3, "PING").startswith("-NOAUTH"))
                self.assertTrue(late.until_closed().startswith(b"-ERR this connection has not authenticated in time"))
                self.assertIn("(auth-timeout)", respb.frame()[1][2])
                self.assertEqual(respb.until_closed(), b"")
                self.assertEqual(in_time.call("PING"), "+PONG")


if __name__ == "__main__":
    unittest.main()
