"""Owns: the server as a service: what systemd is told, sockets that systemd opens, a configuration that is only checked. Does
not own: what is served."""

import os
import signal
import socket
import subprocess
import tempfile
import unittest

from server import PROGRAM, REPLY_SECONDS, Server, Wire


class Systemd(unittest.TestCase):
    def test_it_is_told_of_the_start_of_reloads_and_of_the_end(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, shown in ((f"{folder}/notify", f"{folder}/notify"), ("\0weft-tests-" + str(os.getpid()), None)):
                with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
                    told.settimeout(REPLY_SECONDS)
                    told.bind(name)
                    os.environ["NOTIFY_SOCKET"] = shown or name.replace("\0", "@")
                    try:
                        server = Server("--supervised", "systemd")
                    finally:
                        del os.environ["NOTIFY_SOCKET"]
                    self.assertTrue(told.recv(1000).startswith(b"READY=1\n"))
                    with server.connect() as wire:
                        self.assertIn("process_supervised:systemd", wire.call("INFO", "server"))
                    server.process.send_signal(signal.SIGHUP)
                    self.assertTrue(told.recv(1000).startswith(b"RELOADING=1\nMONOTONIC_USEC="))
                    self.assertTrue(told.recv(1000).startswith(b"READY=1\n"))
                    self.assertEqual(server.stop(), 0)
                    self.assertTrue(told.recv(1000).startswith(b"STOPPING=1\n"))

    def test_another_supervisor_is_refused_with_what_to_do(self):
        words = [PROGRAM, "serve", "--port", "0", "--supervised", "upstart"]
        refused = subprocess.run(words, capture_output=True, text=True, timeout=REPLY_SECONDS, check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("Type=notify", refused.stderr + refused.stdout)

    def test_its_sockets_are_listened_on_and_nothing_else(self):
        with socket.create_server(("127.0.0.1", 0)) as tcp, tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/socket"
            with socket.socket(socket.AF_UNIX) as unix:
                unix.bind(path)
                unix.listen()
                # The process that they are for is the one that the shell becomes.
                become = f'exec 3<&{tcp.fileno()} 4<&{unix.fileno()}; LISTEN_FDS=2 LISTEN_PID=$$ exec "$@"'
                words = ["bash", "-c", become, "bash", PROGRAM, "serve", "--port", "1"]
                server = subprocess.Popen(words, pass_fds=(tcp.fileno(), unix.fileno()), stdout=subprocess.DEVNULL)
                try:
                    with Wire(tcp.getsockname()[1]) as wire:
                        self.assertEqual(wire.call("SET", "k", "v"), "+OK")
                    with socket.socket(socket.AF_UNIX) as client:
                        client.connect(path)
                        client.sendall(b"GET k\r\n")
                        self.assertEqual(client.recv(100), b"$1\r\nv\r\n")
                finally:
                    server.send_signal(signal.SIGTERM)
                    self.assertEqual(server.wait(REPLY_SECONDS), 0)
                # They are systemd's: the file stays, and the next start finds them.
                self.assertTrue(os.path.exists(path))


class Reload(unittest.TestCase):
    def test_sighup_reads_the_acl_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file, log = f"{folder}/users.acl", f"{folder}/log"

            def write(text):
                with open(file, "w", encoding="ascii") as users:
                    users.write(text)

            def wait_for_log(text):
                while True:
                    with open(log, encoding="utf-8") as lines:
                        if text in lines.read():
                            return

            write("user default on nopass ~* &* +@all\nuser ann on >one ~* +@all\n")
            with Server("--aclfile", file, "--logfile", log) as server, server.connect() as wire:
                self.assertEqual(wire.call("AUTH", "ann", "one"), "+OK")
                write("user default on nopass ~* &* +@all\nuser bob on >two ~* +@all\n")
                server.process.send_signal(signal.SIGHUP)
                # Who is no user any more is closed, as by ACL LOAD.
                self.assertEqual(wire.until_closed(), b"")
                with server.connect() as other:
                    self.assertEqual(other.call("ACL", "USERS"), ["bob", "default"])
                    write("user nonsense +nothing\n")
                    server.process.send_signal(signal.SIGHUP)
                    wait_for_log("users stay as they are: ")
                    self.assertEqual(other.call("ACL", "USERS"), ["bob", "default"])


    def test_sighup_opens_the_log_again(self):
        with tempfile.TemporaryDirectory() as folder:
            log, moved = f"{folder}/log", f"{folder}/log.1"
            with Server("--logfile", log) as server:
                os.rename(log, moved)
                server.process.send_signal(signal.SIGHUP)
                # It appears with its first line.
                while not os.path.exists(log) or os.path.getsize(log) == 0:
                    self.assertIsNone(server.process.poll())
                with open(moved, encoding="utf-8") as lines:
                    self.assertNotIn("SIGHUP", lines.read())


class HttpLog(unittest.TestCase):
    def answer(self, server, line, headers=""):
        """The head of the answer, and its X-Request-Id."""
        with server.connect() as wire:
            wire.socket.sendall(f"{line}\r\nHost: localhost\r\n{headers}Connection: close\r\n\r\n".encode())
            head = wire.until_closed().decode().split("\r\n\r\n")[0]
            ids = [line.removeprefix("X-Request-Id: ") for line in head.split("\r\n") if line.startswith("X-Request-Id: ")]
            self.assertLessEqual(len(ids), 1, head)
            return head, ids[0] if ids else None

    def ask(self, server, path, request_id):
        _, said = self.answer(server, f"GET {path} HTTP/1.1", f"X-Request-Id: {request_id}\r\n")
        self.assertEqual(said, request_id)

    def test_requests_and_their_ids_are_told_and_secrets_are_not(self):
        with tempfile.TemporaryDirectory() as folder:
            log = f"{folder}/log"
            with Server("--logfile", log, "--loglevel", "verbose") as server:
                self.ask(server, "/get/secret-1", "one")
                self.ask(server, "/lpush/secret-2?_token=secret-3", "two")
                self.ask(server, "/v1/nothing", "three")
                with server.connect() as wire:
                    self.assertEqual(wire.call("CONFIG", "SET", "loglevel", "debug"), "+OK")
                self.ask(server, "/get/secret-4", "four")
                # A line is written before its answer is sent.
                with open(log, encoding="utf-8") as file:
                    text = file.read()
            lines = [line.split(" GET ", 1)[1] for line in text.splitlines() if " GET " in line]
            wanted = ["/lpush 403 request-id=two", "/v1/nothing 404 request-id=three", "/get 200 request-id=four"]
            self.assertEqual(lines, wanted, text)
            self.assertNotIn("secret", text)

    def test_a_request_without_an_id_is_given_one_where_the_log_tells_of_it(self):
        with tempfile.TemporaryDirectory() as folder:
            log = f"{folder}/log"
            with Server("--logfile", log) as server:
                for line in ("GET /get/k HTTP/1.1", "GET /lpush/k HTTP/1.1"):
                    self.assertIsNone(self.answer(server, line)[1], "an id that stands nowhere names nothing")
                with server.connect() as wire:
                    self.assertEqual(wire.call("CONFIG", "SET", "loglevel", "debug"), "+OK")
                given = []
                for line, headers, told in (
                    ("GET /get/k HTTP/1.1", "", "GET /get 200"),
                    ("GET /get/k HTTP/1.1", "X-Request-Id: not one\r\n", "GET /get 200"),
                    ("GET /lpush/k HTTP/1.1", "", "GET /lpush 403"),
                    ("GET  /get/k HTTP/1.1", "", "- - 400"),
                    ("BREW / HTTP/1.1", "", "- - 501"),
                    ("POST / HTTP/1.1", f"Content-Length: {1 << 40}\r\n", "POST / 413"),
                ):
                    head, request_id = self.answer(server, line, headers)
                    self.assertRegex(request_id or head, "^[0-9a-f]{8}-[0-9]+$")
                    given.append((request_id, told))
                self.assertEqual(len({request_id for request_id, _ in given}), len(given))
                with open(log, encoding="utf-8") as file:
                    text = file.read()
            for request_id, told in given:
                self.assertIn(f" {told} request-id={request_id}\n", text)


class CheckConfig(unittest.TestCase):
    def check(self, *words):
        command = [PROGRAM, "serve", *words, "--check-config"]
        return subprocess.run(command, capture_output=True, text=True, timeout=REPLY_SECONDS, check=False)

    def test_what_is_good_is_said_and_not_served(self):
        done = self.check("--port", "1", "--maxmemory", "1gb")
        self.assertEqual((done.returncode, done.stdout), (0, "The configuration is good.\n"), done.stderr)

    def test_an_address_in_use_is_said_and_is_no_fault(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            done = self.check("--bind", "127.0.0.1", "--port", str(port))
            self.assertEqual((done.returncode, done.stdout), (0, "The configuration is good.\n"), done.stderr)
            self.assertIn(f"127.0.0.1:{port} is in use", done.stderr)

    def test_what_is_wrong_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/weft.conf"
            for line, said in (
                ("maxmemory lots", "weft.conf:1"),
                ("colour blue", "there is no directive 'colour'"),
                ("user ann +nosuch", "weft.conf:1"),
                ("aclfile /nowhere/users.acl", "/nowhere/users.acl"),
                ("tls-port 6380", "tls-port needs tls-cert-file"),
                ("tls-cert-file /nowhere.crt", "belong together"),
                ("dir /nowhere", "/nowhere"),
                ("bind 192.0.2.1", "cannot listen on 192.0.2.1:6379"),
                ("unixsocket /nowhere/weft.sock", "there is no folder /nowhere"),
            ):
                with open(file, "w", encoding="utf-8") as text:
                    text.write(line + "\n")
                done = self.check(file)
                self.assertNotEqual(done.returncode, 0, line)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
