"""Owns: directives whose effect shows only in a running server: its process, its files, its ends, its limits. Does not own: how
directives are written and checked, those of TLS (`test_tls`), those of clients and channels (`test_respb`, `test_hostile`)."""

import os
import stat
import tempfile
import unittest

from server import REPLY_SECONDS, Respb, Server, argv, request


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_pidfile(self):
        path = f"{self.folder}/weft.pid"
        with Server("--pidfile", path) as server, server.connect() as wire:
            # It listens before that is written, and serves behind it.
            self.assertEqual(wire.call("PING"), "+PONG")
            with open(path, encoding="ascii") as file:
                self.assertEqual(file.read(), f"{server.process.pid}\n")
        self.assertFalse(os.path.exists(path))
        # One that cannot be written keeps nobody from being served.
        with Server("--pidfile", f"{self.folder}/nowhere/weft.pid") as server, server.connect() as wire:
            self.assertEqual(wire.call("PING"), "+PONG")

    def test_unixsocketperm(self):
        path = f"{self.folder}/socket"
        for octal in ("600", "770"):
            with Server("--unixsocket", path, "--unixsocketperm", octal) as server, server.connect() as wire:
                # Its port listens before the path does, and before signals are taken that let it take the path away.
                self.assertEqual(wire.call("PING"), "+PONG")
                self.assertEqual(mode(path), int(octal, 8))

    def test_a_folder_that_was_changed_is_found_again(self):
        config, other = f"{self.folder}/weft.conf", f"{self.folder}/other"
        os.mkdir(other)
        with open(config, "w", encoding="ascii") as file:
            file.write("enable-protected-configs yes\n")
        with Server(file=config) as server, server.connect() as wire:
            self.assertEqual(wire.call("CONFIG", "SET", "dir", self.folder), "+OK")
            # As it is named from there.
            self.assertEqual(wire.call("CONFIG", "SET", "dir", "other"), "+OK")
            for words in (("SET", "k", "v"), ("SAVE",), ("CONFIG", "REWRITE")):
                self.assertEqual(wire.call(*words), "+OK")
        for _ in range(2):
            with Server(file=config) as server, server.connect() as wire:
                while (value := wire.call("GET", "k")).startswith("-LOADING"):
                    pass
                self.assertEqual(value, "v")
                self.assertEqual(wire.call("CONFIG", "REWRITE"), "+OK")
            with open(config, encoding="ascii") as file:
                self.assertEqual([line for line in file.read().splitlines() if line.startswith("dir")], [f"dir {other}"])

    def test_files_that_are_replaced_keep_their_modes(self):
        """Under a umask that would let everybody read."""
        users, config = f"{self.folder}/users.acl", f"{self.folder}/weft.conf"
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        for kept in (0o600, 0o640):
            for path, text in ((users, "user default on nopass ~* &* +@all\n"), (config, "maxclients 100\n")):
                with open(path, "w", encoding="ascii") as file:
                    file.write(text)
                os.chmod(path, kept)
            with Server("--aclfile", users, file=config) as server, server.connect() as wire:
                self.assertEqual(wire.call("ACL", "SETUSER", "ann", "on", ">secret"), "+OK")
                self.assertEqual(wire.call("CONFIG", "SET", "maxclients", "99"), "+OK")
                self.assertEqual((wire.call("ACL", "SAVE"), wire.call("CONFIG", "REWRITE")), ("+OK", "+OK"))
            for path, said in ((users, "user ann"), (config, "maxclients 99")):
                self.assertEqual(mode(path), kept)
                with open(path, encoding="ascii") as file:
                    self.assertIn(said, file.read())
        # What was not there before is its owner's.
        os.remove(users)
        with open(users, "w", encoding="ascii"):
            pass
        with Server("--aclfile", users) as server, server.connect() as wire:
            os.remove(users)
            self.assertEqual(wire.call("ACL", "SAVE"), "+OK")
        self.assertEqual(mode(users), 0o600)


class Ends(unittest.TestCase):
    def test_shutdown_timeout(self):
        """One server waits for a client that takes its time, as long as it is told to; the other one does not wait. The first is
        asked to stop first, and is there when the second has ended."""
        size, count = 1 << 20, 64
        value = "x" * size
        with Server("--shutdown-timeout", "86400") as waits, Server("--shutdown-timeout", "0") as goes:
            wires = []
            for server in (waits, goes):
                wire = server.connect()
                self.assertEqual(wire.call("SET", "k", value), "+OK")
                # More than sockets have room for.
                wire.send(request("GET", "k") * count)
                wires.append(wire)
                with server.connect() as other:
                    while "cmdstat_get:calls=%d," % count not in other.call("INFO", "commandstats"):
                        pass
            waits.signal_stop()
            goes.signal_stop()
            self.assertEqual(goes.process.wait(REPLY_SECONDS), 0)
            self.assertIsNone(waits.process.poll())
            for _ in range(count):
                self.assertEqual(len(wires[0].reply()), size)
            self.assertEqual(wires[0].until_closed(), b"")
            self.assertEqual(waits.process.wait(REPLY_SECONDS), 0)
            self.assertLess(len(wires[1].until_closed()), count * size)
            for wire in wires:
                wire.close()


class Users(unittest.TestCase):
    def test_acl_pubsub_default(self):
        for said, hears in (("allchannels", True), ("resetchannels", False)):
            with Server("--acl-pubsub-default", said) as server, server.connect() as wire, server.connect() as user:
                wire.call("ACL", "SETUSER", "ann", "on", "nopass", "+@all")
                self.assertEqual(user.call("AUTH", "ann", "x"), "+OK")
                answer = user.call("SUBSCRIBE", "news")
                self.assertEqual(answer == ["subscribe", "news", 1], hears, answer)
                # Those that there are stay as they are.
                other = "resetchannels" if hears else "allchannels"
                self.assertEqual(wire.call("CONFIG", "SET", "acl-pubsub-default", other), "+OK")
                wire.call("ACL", "SETUSER", "bob", "on")
                for name, has_all in (("ann", hears), ("bob", not hears)):
                    line = next(line for line in wire.call("ACL", "LIST") if line.startswith(f"user {name} "))
                    self.assertEqual("&*" in line, has_all, line)


class Limits(unittest.TestCase):
    def test_programs(self):
        """At each limit and one past it."""
        with Server() as server, server.connect() as wire:

            def run(steps):
                return str(wire.call("PROGRAM", "EVAL", f'{{"limits":{{"time-ms":60000}},"steps":[{steps},{{"return":"done"}}]}}'))

            for name, value, at, past, said in (
                ("program-bytes-max", 1024, ("SET", "k", "x" * 1020), ("SET", "k", "x" * 1021), "too many bytes written"),
                ("program-keys-max", 3, ("MGET", "a", "b", "c"), ("MGET", "a", "b", "c", "d"), "too many keys"),
            ):
                self.assertEqual(wire.call("CONFIG", "SET", name, value), "+OK")
                told = [run(f"[{','.join(f'{chr(34)}{word}{chr(34)}' for word in words)}]") for words in (at, past)]
                self.assertEqual(told[0], "done", name)
                self.assertIn(said, told[1], name)
            self.assertEqual(wire.call("CONFIG", "SET", "program-memory-max", 1 << 20), "+OK")
            double = '{"let":{"x":"0123456789"}},{"for":"i","range":[0,%d],"do":[{"let":{"x":"${x}${x}"}}]}'
            self.assertEqual(run(double % 9), "done")
            self.assertIn("too many bytes of values", run(double % 30))

    def test_frames_of_respb(self):
        limit = 1 << 20
        with Server("--respb-frame-bytes", limit) as server:
            for past in (0, 1):
                with Respb(server.port) as wire:
                    self.assertEqual(wire.call_on(0, "HELLO", "3")["respb"]["limits"]["frame_bytes"], limit)
                    head = len(argv(1, "SET", "k", b""))
                    try:
                        wire.send(argv(1, "SET", "k", b"x" * (limit - head + past)))
                    except (BrokenPipeError, ConnectionResetError):
                        pass
                    channel, got = wire.frame()
                    if past:
                        self.assertEqual(got[0], "goaway")
                    else:
                        self.assertEqual((channel, got), (1, "+OK"))

    def test_times_of_http(self):
        head = b"POST /set/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"
        for name, other, part in (
            ("http-head-timeout", "http-body-timeout", head[:30]),
            ("http-body-timeout", "http-head-timeout", head + b"abc"),
        ):
            with Server(f"--{name}", "1", f"--{other}", "86400") as server, server.connect() as wire:
                wire.send(part)
                answer = wire.until_closed()
                self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
                self.assertIn(name.encode(), answer)


if __name__ == "__main__":
    unittest.main()
