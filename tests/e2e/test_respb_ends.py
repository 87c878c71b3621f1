"""Owns: how channels and RESPB connections end (specification, sections 8.1 to 8.5 and 8.8), on a real socket: what has
run is answered, in order, before CLOSE or behind GOAWAY, and nothing runs or is sent afterwards. Does not own: what they
do while they are open (`test_respb`)."""

import tempfile
import unittest

from server import Closed, Respb, Server, argv, cancel, close, window

QUEUE_BYTES, OUTPUT_BYTES, VALUE_BYTES = 4096, 3_000_000, 1_000_000
KILLED = (0, ("goaway", 4, "killed"))


def short(frame):
    """A frame of which a large value is told by its first character and its length."""
    channel, value = frame
    return (channel, (value[0], len(value))) if isinstance(value, str) and len(value) > 1000 else frame


def is_control(frame, *what):
    return isinstance(frame[1], tuple) and frame[1][: len(what)] == what


def value(number):
    return (str(number), VALUE_BYTES)


class Ends(unittest.TestCase):
    # Values that wait for a slow reader are more than what a socket takes.
    flags = ("--respb-queue-bytes", QUEUE_BYTES, "--respb-output-bytes", OUTPUT_BYTES)

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.flags)
        with Respb(cls.server.port) as wire:
            while wire.call_on(0, "GET", "b0") is not None:
                pass  # it loads what it has kept
            for number in range(6):
                assert wire.call_on(0, "SET", f"b{number}", str(number) * VALUE_BYTES) == "+OK"

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def open(self):
        wire = Respb(self.server.port)
        self.addCleanup(wire.close)
        return wire

    def frames(self, wire, count):
        return [short(wire.frame()) for _ in range(count)]

    def to_the_end(self, wire):
        """All frames, and that the end is a clean one."""
        frames = []
        try:
            while True:
                frames.append(short(wire.frame()))
        except Closed:
            self.assertFalse(wire.buffer, "the stream ends between two frames")
            return frames

    def id_of(self, wire, channel):
        return wire.call_on(channel, "CLIENT", "ID")


class Channels(Ends):
    def test_quit_answers_what_waits_before_it(self):
        wire = self.open()
        wire.send(argv(1, "GET", "b0") + argv(1, "GET", "b1") + argv(1, "QUIT") + argv(1, "SET", "behind", "1"))
        self.assertEqual(self.frames(wire, 4), [(1, value(0)), (1, value(1)), (1, "+OK"), (1, ("close", 0))])
        wire.send(close(1))
        self.assertIsNone(wire.call_on(1, "GET", "behind"))

    def test_quit_answers_what_waits_in_slices(self):
        wire = self.open()
        wire.call_on(0, "HELLO", "3", "CAPS", "1")
        wire.send(argv(1, "GET", "b0") + argv(1, "GET", "b1") + argv(1, "QUIT"))
        whole, frame = bytearray(), wire.frame()
        while frame[1][0] == "slice":
            whole += frame[1][2]
            frame = wire.frame()
        self.assertEqual(len(whole), 2 * (VALUE_BYTES + 8))
        self.assertEqual([frame, wire.frame()], [(1, "+OK"), (1, ("close", 0))])

    def test_quit_answers_what_waits_for_credit(self):
        for credit in (0, 1):
            wire = self.open()
            wire.send(window(1, credit) + b"".join(argv(1, "ECHO", f"e{number}") for number in range(3)) + argv(1, "QUIT"))
            self.assertEqual(self.frames(wire, 5), [(1, "e0"), (1, "e1"), (1, "e2"), (1, "+OK"), (1, ("close", 0))])
            wire.send(window(1, 9) + close(1) + argv(1, "ECHO", "new"))
            self.assertEqual(wire.frame(), (1, "new"))

    def test_quit_behind_what_blocks(self):
        wire = self.open()
        wire.send(window(1, 0) + argv(1, "BLPOP", "none", "0.05") + argv(1, "ECHO", "z") + argv(1, "QUIT"))
        self.assertEqual(self.frames(wire, 4), [(1, None), (1, "z"), (1, "+OK"), (1, ("close", 0))])

    def test_past_the_output_limit_nothing_more_runs(self):
        for first in (window(1, 0), b""):
            wire = self.open()
            wire.call_on(0, "SET", "ran", "0")
            # In one piece: the limit counts between two requests of a batch.
            wire.send(first + b"".join(argv(1, "INCR", "ran") + argv(1, "GET", f"b{number}") for number in range(6)))
            frames = self.frames(wire, 1)
            while frames[-1] != (1, ("close", 2)):
                self.assertLess(len(frames), 12, "all have run, and the limit was not looked at")
                frames += self.frames(wire, 1)
            answered = [frame for frame in frames[:-1] if isinstance(frame[1], int)]
            expected = [(1, reply) for number in range(6) for reply in (number + 1, value(number))]
            self.assertEqual(frames[:-1], expected[: len(frames) - 1], "in order, and none is left out")
            self.assertEqual(wire.call_on(2, "GET", "ran"), str(len(answered)), "what ran is what was answered")

    def test_a_killed_channel_answers_what_it_has_run(self):
        wire = self.open()
        victim = self.id_of(wire, 5)
        wire.send(window(5, 0) + argv(5, "INCR", "killed") + argv(5, "BLPOP", "none", "0") + argv(5, "INCR", "killed"))
        wire.send_command(6, "CLIENT", "KILL", "ID", victim)
        frames = self.frames(wire, 3)
        self.assertEqual([frame for frame in frames if frame[0] == 5], [(5, 1), (5, ("close", 4))])
        self.assertIn((6, 1), frames)
        self.assertEqual(wire.call_on(6, "GET", "killed"), "1")

    def test_a_channel_kills_itself(self):
        wire = self.open()
        own = self.id_of(wire, 1)
        self.assertEqual(wire.call_on(1, "CLIENT", "KILL", "ID", own, "SKIPME", "no"), 1)
        self.assertEqual(wire.frame(), (1, ("close", 4)))

    def test_closes_that_meet(self):
        wire = self.open()
        # The server ends the channel, and is still sending, when it reads the client's CLOSE: one answers the other.
        wire.send(argv(1, "GET", "b0") * 2 + argv(1, "QUIT") + close(1) + argv(1, "ECHO", "new"))
        frames = self.frames(wire, 2)
        while frames[-1] != (1, "new"):
            frames += self.frames(wire, 1)
        self.assertEqual([frame for frame in frames if frame[1] == ("close", 0)], [(1, ("close", 0))])

    def test_the_user_of_channels_that_wait_has_its_own_bound(self):
        wire = self.open()
        wire.call_on(3, "PING")
        wire.send(argv(0, "BLPOP", "none", "0") + argv(0, "RESET"))
        wire.send(argv(1, "SET", "x", "y" * 1000) * 200 + argv(2, "ECHO", "waits") + argv(3, "PING"))
        self.assertEqual(self.frames(wire, 2), [(1, ("close", 1)), (3, "+PONG")])
        wire.send(cancel(0, 0))
        frames = self.frames(wire, 3)
        self.assertEqual([reply for channel, reply in frames if channel == 0][1], "+RESET")
        self.assertIn((2, "waits"), frames)

    def test_the_user_is_the_one_behind_all_that_stands_before(self):
        self.open().call_on(0, "ACL", "SETUSER", "heir", "on", ">pw", "~*", "+@all")
        auth = argv(0, "MULTI") + argv(0, "AUTH", "heir", "pw")
        for before in (b"", argv(0, "BLPOP", "none", "0.05")):
            wire = self.open()
            wire.send(before + auth + argv(0, "EXEC") + argv(2, "ACL", "WHOAMI"))
            self.assertIn((2, "heir"), self.frames(wire, 5 if before else 4))
            # It is queued only.
            wire = self.open()
            wire.send(before + auth + argv(2, "ACL", "WHOAMI") + argv(0, "EXEC"))
            self.assertIn((2, "default"), self.frames(wire, 5 if before else 4))


    def test_a_pause_closes_nothing_until_it_is_over(self):
        wire, other = self.open(), self.open()
        wire.call_on(2, "PING")
        other.call_on(0, "CLIENT", "PAUSE", "60000", "WRITE")
        # More than may wait behind what blocks.
        wire.send(argv(1, "BLPOP", "none", "0") + argv(1, "SET", "paused", "y" * 100) * 60)
        wire.send(argv(2, "ECHO", "e"))
        other.call_on(0, "CLIENT", "UNPAUSE")
        self.assertCountEqual(self.frames(wire, 2), [(1, ("close", 1)), (2, "e")])
        self.assertIsNone(other.call_on(0, "GET", "paused"))


class Connections(Ends):
    def test_a_limit_of_channel_0_leaves_nothing_in_doubt(self):
        for credit in (window(0, 0), b""):
            wire = self.open()
            wire.call_on(9, "SET", "ran", "0")
            wire.send(credit + b"".join(argv(0, "INCR", "ran") + argv(0, "GET", f"b{number}") for number in range(6)))
            frames = self.to_the_end(wire)
            replies = [frame for frame in frames if not is_control(frame, "goaway", 2)]
            self.assertEqual(len(replies), len(frames) - 1, "one GOAWAY")
            expected = [(0, reply) for number in range(6) for reply in (number + 1, value(number))]
            self.assertEqual(replies, expected[: len(replies)])
            answered = sum(isinstance(frame[1], int) for frame in replies)
            self.assertEqual(self.open().call_on(0, "GET", "ran"), str(answered))

    def test_a_close_that_comes_with_what_is_too_much(self):
        # In one piece: GOAWAY is on its way when it is read. It is not answered, and opens nothing anew.
        for last in (close(0), close(1), argv(7, "ECHO", "opens"), window(7, 0)):
            wire = self.open()
            wire.call_on(1, "PING")
            wire.send(window(0, 0) + argv(0, "GET", "b0") * 6 + last + argv(1, "PING"))
            frames = self.to_the_end(wire)
            self.assertTrue(is_control(frames[0], "goaway", 2), frames)
            self.assertFalse({channel for channel, _ in frames} - {0}, frames)
            self.assertFalse([frame for frame in frames if is_control(frame, "close")], frames)

    def test_a_full_queue_of_channel_0(self):
        wire = self.open()
        wire.send(window(0, 0) + argv(0, "INCR", "full") + argv(0, "BLPOP", "none", "0") + argv(0, "INCR", "full") * 200)
        frames = self.to_the_end(wire)
        self.assertEqual(sum(is_control(frame, "goaway", 1) for frame in frames), 1, frames)
        self.assertEqual([frame for frame in frames if not is_control(frame, "goaway")], [(0, 1)])
        self.assertEqual(self.open().call_on(0, "GET", "full"), "1")

    def test_a_killed_connection_answers_what_it_has_run(self):
        wire, other = self.open(), self.open()
        victim = self.id_of(wire, 0)
        wire.send(window(0, 0) + window(1, 0) + argv(0, "INCR", "k0") + argv(1, "INCR", "k1") + argv(1, "GET", "b0") + argv(2, "PING"))
        self.assertEqual(wire.frame(), (2, "+PONG"))
        self.assertEqual(other.call_on(0, "CLIENT", "KILL", "ID", victim), 1)
        self.assertCountEqual(self.to_the_end(wire), [KILLED, (0, 1), (1, 1), (1, value(0))])

    def test_behind_goaway_comes_no_close(self):
        wire, other = self.open(), self.open()
        for channel in range(4):
            wire.call_on(channel, "PING")
        # One of them is being closed already, and its CLOSE waits behind a reply.
        wire.send(argv(1, "GET", "b0") * 3 + argv(1, "QUIT") + argv(3, "SET", "has:run", "1"))
        while other.call_on(0, "GET", "has:run") is None:
            pass
        other.call_on(0, "CLIENT", "KILL", "TYPE", "normal")
        frames = self.to_the_end(wire)
        at = frames.index(KILLED)
        self.assertFalse([frame for frame in frames[at:] if is_control(frame, "close")], frames)
        self.assertEqual([frame for frame in frames if frame[0] == 1][:4], [(1, value(0))] * 3 + [(1, "+OK")])

    def test_a_user_that_is_removed_ends_the_connection_once(self):
        wire, other = self.open(), self.open()
        other.call_on(0, "ACL", "SETUSER", "gone", "on", ">pw", "~*", "+@all")
        wire.call_on(0, "AUTH", "gone", "pw")
        for channel in range(1, 4):
            self.assertEqual(wire.call_on(channel, "ACL", "WHOAMI"), "gone")
        other.call_on(0, "ACL", "DELUSER", "gone")
        frames = self.to_the_end(wire)
        self.assertTrue(is_control(frames[-1], "goaway", 7), frames)
        self.assertFalse(set(frames[:-1]) - {(channel, ("close", 7)) for channel in range(1, 4)}, frames)


class ClassLimits(Ends):
    flags = ("--client-output-buffer-limit", f"normal {OUTPUT_BYTES} 0 0")

    def test_the_limit_of_its_class_ends_a_connection_by_goaway(self):
        for channel in (0, 1):
            wire = self.open()
            wire.call_on(9, "SET", "ran", "0")
            wire.send(window(channel, 0))
            for number in range(6):
                wire.send(argv(channel, "INCR", "ran") + argv(channel, "GET", f"b{number}"))
            frames = self.to_the_end(wire)
            self.assertEqual(sum(is_control(frame, "goaway", 2) for frame in frames), 1, frames)
            answered = sum(isinstance(frame[1], int) for frame in frames)
            self.assertEqual(self.open().call_on(0, "GET", "ran"), str(answered))


class Kept(Ends):
    """Replies that wait for the disk."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.flags = ("--appendonly", "yes", "--appendfsync", "always", "--dir", cls.folder.name)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def test_quit_waits_for_what_is_kept(self):
        wire = self.open()
        wire.send(argv(1, "INCR", "a") + argv(1, "INCR", "a") + argv(1, "ECHO", "e") + argv(1, "QUIT"))
        self.assertEqual(self.frames(wire, 5), [(1, 1), (1, 2), (1, "e"), (1, "+OK"), (1, ("close", 0))])
        wire.send(window(2, 1) + argv(2, "INCR", "b") + argv(2, "INCR", "b") + argv(2, "QUIT"))
        self.assertEqual(self.frames(wire, 4), [(2, 1), (2, 2), (2, "+OK"), (2, ("close", 0))])

    def test_a_connection_waits_for_what_is_kept(self):
        wire = self.open()
        own = self.id_of(wire, 0)
        wire.send(argv(0, "INCR", "c") + argv(1, "INCR", "d") + argv(1, "CLIENT", "KILL", "ID", own))
        self.assertCountEqual(self.to_the_end(wire), [KILLED, (0, 1), (1, 1), (1, 1)])


class Busy(Ends):
    """A script that takes its time: until it is over nobody's wait can be given up. That the connection then ends at once is
    tested where time stands still (`worker::tests::ends`)."""

    flags = ("--busy-reply-threshold", 20)
    # For a script TIME stands still, what it has used of the CPU does not.
    SCRIPT = "local ends = os.clock() + 0.5 while os.clock() < ends do end return 7"

    def test_a_connection_ends_when_the_script_has(self):
        for last in (argv(0, "QUIT"), bytes.fromhex("05ff0001")):
            wire, other = self.open(), self.open()
            wire.send(argv(1, "BLPOP", "none", "0") + argv(2, "EVAL", self.SCRIPT, "0"))
            while not str(other.call_on(0, "GET", "b0")).startswith("-BUSY"):
                pass
            wire.send(last)
            frames = self.to_the_end(wire)
            self.assertIn((2, 7), frames)
            self.assertEqual([frame for frame in frames if frame[0] == 1], [], "it has not run")

    def test_a_wait_that_ends_by_itself_is_owed_no_more(self):
        wire, other = self.open(), self.open()
        wire.send(argv(1, "BLPOP", "none", "0.05") + argv(2, "EVAL", self.SCRIPT, "0"))
        while not str(other.call_on(0, "GET", "b0")).startswith("-BUSY"):
            pass
        wire.send(argv(0, "QUIT"))
        self.assertIn((2, 7), self.to_the_end(wire))


if __name__ == "__main__":
    unittest.main()
