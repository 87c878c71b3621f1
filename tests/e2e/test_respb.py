"""Owns: what RESPB promises over time, on a real socket: the scenarios of the specification. Does not own: single frames,
which the vectors prove."""

import struct
import unittest

from server import Closed, Respb, Server, argv, cancel, close, get, long_frame, request, window


class Channels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def open(self):
        wire = Respb(self.server.port)
        self.addCleanup(wire.close)
        return wire

    def test_typed_argv_and_passthrough_say_the_same(self):
        wire = self.open()
        self.assertEqual(wire.call_on(3, "SET", "typed", "v"), "+OK")
        wire.send(get(3, "typed"))
        self.assertEqual(wire.frame(), (3, "v"))
        wire.send(long_frame(0xFFFF, 4, request("GET", "typed")))
        self.assertEqual(wire.frame(), (4, "v"))
        wire.send(bytes.fromhex("03000005"))
        self.assertEqual(wire.frame(), (5, "+PONG"))

    def test_channels_are_clients_of_their_own(self):
        wire = self.open()
        ids = [wire.call_on(channel, "CLIENT", "ID") for channel in range(4)]
        self.assertEqual(len(set(ids)), 4)
        wire.call_on(1, "SELECT", "5")
        wire.call_on(1, "SET", "own", "one")
        self.assertIsNone(wire.call_on(2, "GET", "own"))
        wire.call_on(1, "CLIENT", "SETNAME", "first")
        self.assertIn(wire.call_on(2, "CLIENT", "GETNAME"), (None, ""))
        self.assertEqual(wire.call_on(1, "MULTI"), "+OK")
        self.assertEqual(wire.call_on(1, "SET", "t", "1"), "+QUEUED")
        self.assertIsNone(wire.call_on(2, "GET", "t"))
        self.assertEqual(wire.call_on(1, "EXEC"), ["+OK"])
        # WATCH of one channel sees the writes of another.
        wire.call_on(1, "WATCH", "t")
        wire.call_on(1, "MULTI")
        wire.call_on(1, "GET", "t")
        wire.call_on(3, "SELECT", "5")
        wire.call_on(3, "SET", "t", "2")
        self.assertIsNone(wire.call_on(1, "EXEC"))

    def test_a_blocked_channel_holds_back_only_itself(self):
        wire = self.open()
        wire.send_command(1, "BLPOP", "blocked", "0")
        wire.send_command(1, "PING")
        wire.send(argv(2, "SET", "k", "v") + get(2, "k"))
        self.assertEqual([wire.frame(), wire.frame()], [(2, "+OK"), (2, "v")])
        wire.send_command(2, "RPUSH", "blocked", "x")
        frames = [wire.frame() for _ in range(3)]
        self.assertIn((2, 1), frames)
        self.assertEqual([value for channel, value in frames if channel == 1], [["blocked", "x"], "+PONG"])

    def test_a_wait_ends_by_its_time(self):
        wire = self.open()
        wire.send_command(1, "BLPOP", "nothing", "0.05")
        wire.send_command(1, "PING")
        self.assertEqual([wire.frame(), wire.frame()], [(1, None), (1, "+PONG")])

    def test_cancel_ends_what_blocks_and_what_waits(self):
        wire = self.open()
        wire.send(argv(1, "PING") + argv(1, "BLPOP", "none", "0") + argv(1, "ECHO", "waits") + argv(1, "PING"))
        self.assertEqual(wire.frame(), (1, "+PONG"))
        wire.send(cancel(1, 2) + cancel(1, 7) + cancel(9, 0))
        wire.send(cancel(1, 1))
        frames = [wire.frame() for _ in range(3)]
        self.assertTrue(frames[0][1].startswith("-CANCELLED"), frames)
        self.assertTrue(frames[1][1].startswith("-CANCELLED"), frames)
        self.assertEqual(frames[2], (1, "+PONG"))

    def test_close_in_both_directions(self):
        wire = self.open()
        before = wire.call_on(7, "CLIENT", "ID")
        wire.call_on(7, "SELECT", "3")
        wire.send(close(7))
        self.assertEqual(wire.frame(), (7, ("close", 0)))
        self.assertNotEqual(wire.call_on(7, "CLIENT", "ID"), before)
        self.assertIn(" db=0 ", wire.call_on(7, "CLIENT", "INFO"))
        # QUIT: OK, then CLOSE by the server; what comes before our CLOSE is discarded.
        wire.send(argv(7, "QUIT") + argv(7, "PING"))
        self.assertEqual([wire.frame(), wire.frame()], [(7, "+OK"), (7, ("close", 0))])
        wire.send(argv(7, "PING") + close(7) + argv(7, "ECHO", "again"))
        self.assertEqual(wire.frame(), (7, "again"))
        # Of a channel that is not open CLOSE is ignored: no answer can meet one that is opened meanwhile.
        wire.send(close(77) + argv(77, "ECHO", "opens"))
        self.assertEqual(wire.frame(), (77, "opens"))
        self.assertTrue(wire.is_silent())

    def test_close_of_a_blocked_channel_gives_its_place_back(self):
        wire, other = self.open(), self.open()
        wire.send_command(1, "BLPOP", "left", "0")
        wire.send(close(1))
        self.assertEqual(wire.frame(), (1, ("close", 0)))
        self.assertEqual(other.call_on(0, "RPUSH", "left", "stays"), 1)
        self.assertEqual(other.call_on(0, "LPOP", "left"), "stays")

    def test_channel_0_starts_anew(self):
        wire = self.open()
        self.open().call_on(0, "ACL", "SETUSER", "zero", "on", ">pw", "~*", "+@all")
        wire.call_on(0, "AUTH", "zero", "pw")
        wire.call_on(0, "SELECT", "2")
        first = wire.call_on(0, "CLIENT", "ID")
        wire.send(argv(0, "MULTI") + argv(0, "SET", "zero", "1") + close(0) + argv(0, "BLPOP", "none", "0") + cancel(0, 0))
        frames = [wire.frame() for _ in range(4)]
        self.assertEqual(frames[:3], [(0, "+OK"), (0, "+QUEUED"), (0, ("close", 0))])
        self.assertTrue(frames[3][1].startswith("-CANCELLED"), "its requests are numbered from 0")
        self.assertEqual(wire.call_on(0, "ACL", "WHOAMI"), "default")
        self.assertIn(" db=0 ", wire.call_on(0, "CLIENT", "INFO"))
        self.assertTrue(wire.call_on(0, "EXEC").startswith("-ERR"))
        self.assertNotEqual(wire.call_on(0, "CLIENT", "ID"), first)
        wire.send_command(0, "QUIT")
        self.assertEqual([wire.frame(), wire.frame()], [(0, "+OK"), (0, ("goaway", 0, ""))])
        with self.assertRaises(Closed):
            wire.frame()

    def test_a_full_queue_closes_its_channel_and_no_other(self):
        wire = self.open()
        wire.send_command(1, "BLPOP", "never", "0")
        value = b"x" * 100_000
        for _ in range(12):
            wire.send_command(1, "SET", "held", value)
        self.assertEqual(wire.frame(), (1, ("close", 1)))
        self.assertEqual(wire.call_on(2, "PING"), "+PONG")

    def test_window_is_credit_in_bytes(self):
        wire = self.open()
        wire.call_on(1, "SET", "w", "x" * 300)
        wire.send(window(1, 1))
        # One frame may begin with a credit of one byte; the next waits. It has taken 308.
        wire.send(get(1, "w") + get(1, "w"))
        self.assertEqual(wire.frame(), (1, "x" * 300))
        for more in (300, 7):
            wire.send(window(1, more))
            self.assertEqual(wire.call_on(2, "PING"), "+PONG")
            self.assertTrue(wire.is_silent(), "each adds its own")
        wire.send(window(1, 1))
        self.assertEqual(wire.frame(), (1, "x" * 300))

    def test_large_replies_come_in_slices_between_others(self):
        wire = self.open()
        hello = wire.call_on(0, "HELLO", "3", "CAPS", "1")
        self.assertEqual(hello["respb"]["capabilities"], 1)
        size = 8 << 20
        wire.call_on(1, "SET", "large", b"y" * size)
        wire.send(get(1, "large") + get(2, "w2") + get(3, "w3"))
        whole, between, last = bytearray(), 0, False
        while not last:
            channel, value = wire.frame()
            if channel == 1:
                self.assertEqual(value[0], "slice")
                last = value[1] == 1
                whole += value[2]
            else:
                between += 1
        self.assertEqual(whole[:8], struct.pack(">HHI", 0x8003, 1, size))
        self.assertEqual(len(whole), size + 8)
        self.assertEqual(between, 2, "other channels were answered before the last slice")

    def test_slices_of_two_channels_take_turns(self):
        wire = self.open()
        wire.call_on(0, "HELLO", "3", "CAPS", "1")
        # More than sockets take.
        wire.call_on(1, "SET", "turns", b"y" * (24 << 20))
        wire.send(get(1, "turns") + get(2, "turns"))
        frames = [wire.frame()]
        wire.send(get(3, "nothing"))
        while not all(any(channel == who and value[1] == 1 for channel, value in frames if value) for who in (1, 2)):
            frames.append(wire.frame())
        last = [max(at for at, (channel, _) in enumerate(frames) if channel == who) for who in (1, 2)]
        self.assertLess(min(at for at, (channel, _) in enumerate(frames) if channel == 2), last[0])
        self.assertLess(frames.index((3, None)), min(last), "a small reply does not wait for the last slice")
        turns = sum(one[0] != two[0] for one, two in zip(frames, frames[1:]))
        self.assertGreater(turns, 100, "one slice of each in turn")

    def test_subscribe_answers_once_and_pushes_follow(self):
        wire = self.open()
        answer = wire.call_on(1, "SUBSCRIBE", "news", "more")
        self.assertEqual(answer, [["subscribe", "news", 1], ["subscribe", "more", 2]])
        self.assertEqual(wire.call_on(2, "PUBLISH", "news", "hello"), 1)
        self.assertEqual(wire.frame(), (1, ("push", "message", "news", "hello")))
        self.assertEqual(wire.call_on(1, "PING"), "+PONG")
        self.assertEqual(wire.call_on(1, "UNSUBSCRIBE", "gone"), [["unsubscribe", "gone", 2]])

    def test_hello_switches_from_resp(self):
        for version in ("3",):
            wire = self.open()
            wire.send(request("SET", "before", "1"))
            self.assertEqual(wire.reply(), "+OK")
            wire.send(request("SELECT", "1"))
            wire.reply()
            wire.send(request("HELLO", version, "PROTO", "respb") + get(0, "before"))
            answer = wire.reply()
            self.assertEqual(answer["respb"]["version"], 1)
            self.assertEqual(wire.frame(), (0, None), "database 1 is kept")

    def test_hello_that_switches_ends_client_reply(self):
        for mode in ("OFF", "SKIP"):
            wire = self.open()
            wire.send(request("CLIENT", "REPLY", mode) + request("HELLO", "3", "PROTO", "respb"))
            self.assertEqual(wire.reply()["respb"]["version"], 1)
            self.assertEqual([wire.call_on(channel, "PING") for channel in (0, 1, 0)], ["+PONG"] * 3)

    def test_hello_with_proto_is_refused_inside_multi_over_resp_alone(self):
        wire = self.open()
        wire.send(request("MULTI") + request("HELLO", "3", "PROTO", "respb") + request("EXEC"))
        replies = [wire.reply() for _ in range(3)]
        self.assertEqual([reply.split()[0] for reply in replies], ["+OK", "-ERR", "-EXECABORT"])
        wire = self.open()
        wire.send(argv(1, "MULTI") + argv(1, "HELLO", "3", "PROTO", "respb") + argv(1, "EXEC"))
        replies = [wire.frame()[1] for _ in range(3)]
        self.assertEqual((replies[:2], replies[2][0]["proto"]), (["+OK", "+QUEUED"], 3))

    def test_reset_leaves_a_new_client(self):
        wire, other = self.open(), self.open()
        other.call_on(0, "ACL", "SETUSER", "before", "on", ">pw", "~*", "&*", "+@all")
        wire.send(argv(1, "AUTH", "before", "pw") + argv(1, "SELECT", "4") + argv(1, "CLIENT", "SETNAME", "n") + argv(1, "WATCH", "reset"))
        wire.send(argv(1, "SUBSCRIBE", "reset") + argv(1, "MULTI") + argv(1, "SET", "reset", "1") + argv(1, "RESET"))
        self.assertEqual([wire.frame() for _ in range(8)][-1], (1, "+RESET"))
        self.assertEqual(wire.call_on(1, "ACL", "WHOAMI"), "default")
        self.assertIn(wire.call_on(1, "CLIENT", "GETNAME"), (None, ""))
        self.assertIn(" db=0 sub=0 psub=0 ", wire.call_on(1, "CLIENT", "INFO"))
        self.assertTrue(wire.call_on(1, "EXEC").startswith("-ERR"))
        self.assertEqual(other.call_on(0, "PUBLISH", "reset", "nobody"), 0)

    def test_subscriptions_inside_exec_and_monitor(self):
        wire = self.open()
        wire.send(argv(1, "MULTI") + argv(1, "SUBSCRIBE", "a", "b") + argv(1, "UNSUBSCRIBE", "a") + argv(1, "EXEC"))
        self.assertEqual([wire.frame()[1] for _ in range(4)][3], [[["subscribe", "a", 1], ["subscribe", "b", 2]], [["unsubscribe", "a", 1]]])
        self.assertEqual(wire.call_on(2, "UNSUBSCRIBE"), [["unsubscribe", None, 0]])
        wire = self.open()
        self.assertEqual(wire.call_on(1, "MONITOR"), "+OK")
        wire.send_command(2, "GET", "monitored")
        frames = [wire.frame() for _ in range(2)]
        push = next(value for channel, value in frames if channel == 1)
        self.assertEqual(push[:2], ("push", "monitor"))
        self.assertIn('"GET" "monitored"', push[2])

    def test_what_is_refused(self):
        wire = self.open()
        for words in (("CLIENT", "REPLY", "OFF"), ("SYNC",), ("PSYNC", "?", "-1")):
            self.assertTrue(wire.call_on(1, *words).startswith("-ERR"), words)
        self.assertTrue(wire.call_on(1, "NOSUCH").startswith("-ERR unknown command"))
        wire.send(long_frame(0xF777, 2, b"whatever"))
        channel, value = wire.frame()
        self.assertEqual(channel, 2)
        self.assertTrue(value.startswith("-ERR"), value)
        wire.send(long_frame(0xFF77, 2, b"ignored"))
        self.assertEqual(wire.call_on(2, "PING"), "+PONG")

    def test_an_unknown_frame_is_an_unknown_command(self):
        unknown = long_frame(0xF002, 1, b"abc")
        wire = self.open()
        wire.send(argv(1, "BLPOP", "none", "0.05") + unknown + argv(1, "MULTI") + unknown + argv(1, "SET", "a", "1") + argv(1, "EXEC"))
        replies = [wire.frame() for _ in range(6)]
        self.assertEqual([replies[at][1] for at in (0, 2, 4)], [None, "+OK", "+QUEUED"])
        for at, code in ((1, "-ERR unknown frame 0xF002"), (3, "-ERR unknown frame 0xF002"), (5, "-EXECABORT")):
            self.assertTrue(replies[at][1].startswith(code), replies)
        with Server("--requirepass", "secret") as server, Respb(server.port) as other:
            other.send(unknown)
            self.assertEqual(other.frame(), (1, "-ERR unknown frame 0xF002"))

    def test_wire_errors_answer_name_the_opcode_and_close(self):
        for bad, text in (
            ("07ff0001", "unknown opcode 0x07FF"),
            ("08000000", "unknown opcode 0x0800"),
            ("80000000", "opcode of the other direction"),
            ("f000000100ff0007", "unknown opcode 0xF000 module 0x00FF command 0x0007"),
        ):
            wire = self.open()
            # What was decoded before is answered first.
            wire.send(argv(1, "PING") + bytes.fromhex(bad))
            self.assertEqual(wire.frame(), (1, "+PONG"))
            channel, (kind, code, reason) = wire.frame()
            self.assertEqual((channel, kind, code), (0, "goaway", 8))
            self.assertTrue(reason.startswith("ERR Protocol error: " + text), (bad, reason))
            # What is behind it is read and thrown away: the end is a clean one.
            wire.send(argv(1, "SET", "behind", "x" * 100_000))
            with self.assertRaises(Closed):
                wire.frame()

    def test_hello_knows_one_version(self):
        wire = self.open()
        self.assertTrue(wire.call_on(1, "HELLO", "2").startswith("-NOPROTO"))
        self.assertTrue(wire.call_on(1, "HELLO", "4").startswith("-NOPROTO"))
        self.assertEqual(wire.call_on(1, "HELLO", "3")["proto"], 3)

    def test_a_stream_of_zeros_is_refused(self):
        wire = self.open()
        wire.send(bytes(64))
        channel, (kind, code, reason) = wire.frame()
        self.assertEqual((channel, kind, code), (0, "goaway", 8))
        self.assertIn("empty key", reason)
        with self.assertRaises(Closed):
            wire.frame()

    def test_frames_in_pieces(self):
        wire = self.open()
        stream = argv(1, "SET", "pieces", "abc") + get(1, "pieces") + long_frame(0xFFFF, 2, request("GET", "pieces"))
        for byte in stream:
            wire.send(bytes([byte]))
        frames = [wire.frame() for _ in range(3)]
        self.assertEqual([frame for frame in frames if frame[0] == 1], [(1, "+OK"), (1, "abc")])
        self.assertIn((2, "abc"), frames)

    def test_a_killed_channel(self):
        wire = self.open()
        victim = wire.call_on(5, "CLIENT", "ID")
        wire.send_command(6, "CLIENT", "KILL", "ID", victim)
        self.assertCountEqual([wire.frame(), wire.frame()], [(6, 1), (5, ("close", 4))])
        self.assertEqual(wire.call_on(6, "PING"), "+PONG")
        zero = wire.call_on(0, "CLIENT", "ID")
        wire.send_command(6, "CLIENT", "KILL", "ID", zero)
        frames = [wire.frame(), wire.frame()]
        self.assertCountEqual(frames, [(6, 1), (0, ("goaway", 4, "killed"))])
        with self.assertRaises(Closed):
            wire.frame()

    def test_a_new_channel_waits_for_the_user_of_channel_0(self):
        admin, wire = self.open(), self.open()
        for name in ("first", "second"):
            admin.call_on(0, "ACL", "SETUSER", name, "on", ">pw", "~*", "+@all")
        wire.send_command(0, "BLPOP", "heir", "0")
        wire.send_command(1, "ACL", "WHOAMI")
        self.assertEqual(wire.frame(), (1, "default"))
        wire.send_command(0, "AUTH", "first", "pw")
        wire.send_command(2, "ACL", "WHOAMI")
        wire.send_command(0, "AUTH", "second", "pw")
        wire.send_command(3, "ACL", "WHOAMI")
        wire.send_command(1, "ACL", "WHOAMI")
        self.assertEqual(wire.frame(), (1, "default"))
        self.assertTrue(wire.is_silent())
        admin.call_on(0, "RPUSH", "heir", "x")
        frames = [wire.frame() for _ in range(5)]
        self.assertEqual([value for channel, value in frames if channel == 0], [["heir", "x"], "+OK", "+OK"])
        self.assertIn((2, "first"), frames)
        self.assertIn((3, "second"), frames)

    def test_a_channel_whose_user_never_comes_keeps_the_one_there_was(self):
        wire = self.open()
        wire.send_command(0, "BLPOP", "heir:none", "0")
        wire.send_command(0, "AUTH", "nobody", "pw")
        wire.send_command(2, "ACL", "WHOAMI")
        self.assertTrue(wire.is_silent())
        wire.send(close(0))
        self.assertCountEqual([wire.frame(), wire.frame()], [(0, ("close", 0)), (2, "default")])
        # CANCEL of the request that it waits for lets it go on too.
        wire.send_command(0, "BLPOP", "heir:none", "0")
        wire.send_command(0, "RESET")
        wire.send_command(3, "ACL", "WHOAMI")
        self.assertTrue(wire.is_silent())
        wire.send(cancel(0, 1) + cancel(0, 0))
        frames = [wire.frame() for _ in range(3)]
        self.assertIn((3, "default"), frames)

    def test_capabilities_are_those_of_the_first_hello(self):
        wire = self.open()
        self.assertEqual(wire.call_on(1, "HELLO", "3")["respb"]["capabilities"], 0)
        about = wire.call_on(0, "HELLO", "3", "CAPS", "1")["respb"]
        self.assertEqual(about["capabilities"], 0)
        self.assertEqual(about["profiles"], ["channels", "typed", "flow", "cancel", "passthrough"])
        self.assertEqual(wire.call_on(0, "COMMAND", "OPCODES", "get")["table"], about["table"])

    def test_going_away_sends_what_lacks_credit_and_ends_what_blocks(self):
        with Server() as server:
            wire = Respb(server.port)
            wire.call_on(1, "SET", "w", "x" * 300)
            wire.send(window(1, 1) + get(1, "w") + get(1, "w"))
            self.assertEqual(wire.frame(), (1, "x" * 300))
            wire.send_command(2, "BLPOP", "never", "0")
            wire.send_command(2, "SET", "behind", "1")
            self.assertEqual(wire.call_on(3, "PING"), "+PONG")
            server.signal_stop()
            frames = [wire.frame(), wire.frame()]
            self.assertCountEqual(frames, [(0, ("goaway", 6, "the server shuts down")), (1, "x" * 300)])
            # Whatever is sent meanwhile is thrown away, and the stream has a clean end.
            wire.send(argv(3, "SET", "meanwhile", "y" * 200_000))
            with self.assertRaises(Closed):
                wire.frame()
            wire.close()
            self.assertEqual(server.stop(), 0)

    def test_ten_thousand_channels_of_which_half_block(self):
        wire = self.open()
        count = 10_000
        for channel in range(1, count + 1):
            words = ("BLPOP", f"many:{channel}", "0") if channel % 2 else ("SET", f"many:{channel}", channel)
            wire.send_command(channel, *words)
        done = dict(wire.frame() for _ in range(count // 2))
        self.assertEqual(set(done.values()), {"+OK"})
        pusher = self.open()
        for channel in range(1, count + 1, 2):
            pusher.send_command(0, "RPUSH", f"many:{channel}", channel)
        served = dict(wire.frame() for _ in range(count // 2))
        self.assertEqual(served, {channel: [f"many:{channel}", str(channel)] for channel in range(1, count + 1, 2)})


class Authentication(unittest.TestCase):
    def test_before_it_little_is_allowed(self):
        with Server("--requirepass", "secret") as server:
            wire = Respb(server.port)
            self.assertTrue(wire.call_on(0, "GET", "k").startswith("-NOAUTH"))
            for channel in range(1, 16):
                self.assertTrue(wire.call_on(channel, "GET", "k").startswith("-NOAUTH"))
            # One CLOSE, whatever is under way; what is behind it is dropped until we have answered.
            wire.send(get(16, "k") + get(16, "k") + window(16, 5) + get(1, "k"))
            self.assertEqual(wire.frame(), (16, ("close", 5)))
            self.assertTrue(wire.frame()[1].startswith("-NOAUTH"))
            self.assertEqual(wire.call_on(0, "AUTH", "secret"), "+OK")
            # Channels that are open already keep the user they had; new ones take that of channel 0.
            self.assertTrue(wire.call_on(1, "GET", "k").startswith("-NOAUTH"))
            self.assertIsNone(wire.call_on(20, "GET", "k"))
            wire.send(get(16, "k") + close(16))
            self.assertIsNone(wire.call_on(16, "GET", "k"))
            wire.close()

    def test_channels_that_stay_refused_end_the_connection(self):
        with Server("--requirepass", "secret") as server:
            wire = Respb(server.port)
            for channel in range(1, 16):
                wire.call_on(channel, "PING")
            for channel in range(16, 16 + 1024):
                wire.send(get(channel, "k"))
                self.assertEqual(wire.frame(), (channel, ("close", 5)))
            wire.send(close(16) + get(5000, "k"))
            self.assertEqual(wire.frame(), (5000, ("close", 5)))
            wire.send(get(5001, "k"))
            self.assertEqual(wire.frame(), (5001, ("close", 5)))
            self.assertEqual(wire.frame()[1][:2], ("goaway", 5))
            with self.assertRaises(Closed):
                wire.frame()
            wire.close()

    def test_respb_detect_no(self):
        with Server("--respb-detect", "no") as server:
            wire = Respb(server.port)
            wire.send(argv(1, "PING"))
            self.assertTrue(wire.until_closed().startswith(b"-ERR Protocol error"))
            wire.close()


if __name__ == "__main__":
    unittest.main()
