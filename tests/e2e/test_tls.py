"""Owns: TLS as clients meet it: protocols, certificates of both sides, reloading, resumption, and what breaks a handshake.
Does not own: what passes through it, and clients in other languages, which their own tests run under it."""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

from certificates import Authority
from server import PROGRAM, REPLY_SECONDS, Closed, Respb, Server, Wire, argv, get, request

try:
    import redis
except ImportError:
    redis = None


def context(authority, client=None, version=None):
    made = ssl.create_default_context(cafile=authority.file)
    if client:
        made.load_cert_chain(*client)
    if version:
        made.minimum_version = made.maximum_version = version
    return made


def under_tls(kind, port, made, session=None):
    """A connection of one of server.py's kinds, under TLS."""
    wire = kind(port)
    wire.socket = made.wrap_socket(wire.socket, server_hostname="localhost", session=session)
    return wire


class WithCertificates(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.authority = Authority(cls.folder.name)
        cls.own = cls.authority.sign("server")
        cls.ann = cls.authority.sign("ann", names="URI:weft:user:bob,DNS:ann")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def server(self, *flags, clients="optional"):
        server = Server(*self.authority.flags(*self.own, clients=clients), *flags)
        self.addCleanup(server.stop)
        return server

    def refused(self, server, client=None):
        """Whether a handshake, or what follows it, fails."""
        try:
            with under_tls(Wire, server.port, context(self.authority, client)) as wire:
                wire.call("PING")
                return False
        except (ssl.SSLError, ConnectionError, Closed):
            return True


class Protocols(WithCertificates):
    def test_every_wire_under_both_versions_beside_plain_ones(self):
        server = self.server()
        value = os.urandom(1 << 10).hex() * 1500
        with server.connect() as plain:
            self.assertEqual(plain.call("SET", "shared", "v"), "+OK")
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                made = context(self.authority, version=version)
                with under_tls(Wire, server.port, made) as resp, under_tls(Respb, server.port, made) as respb:
                    self.assertEqual(resp.call("GET", "shared"), "v")
                    respb.send(get(7, "shared"))
                    self.assertEqual(respb.frame(), (7, "v"))
                    # Large, in both directions, and a pipeline.
                    self.assertEqual(resp.call("SET", "large", value), "+OK")
                    self.assertEqual(respb.call_on(2, "GET", "large"), value)
                    resp.send(request("GET", "shared") * 5000)
                    self.assertEqual([resp.reply() for _ in range(5000)], ["v"] * 5000)
                    # HELLO switches to RESPB as it does without.
                    resp.send(request("HELLO", "3", "PROTO", "respb"))
                    self.assertEqual(resp.reply()["respb"]["version"], 1)
                    # Pushes come without being asked for.
                    self.assertEqual(respb.call_on(1, "SUBSCRIBE", "news"), [["subscribe", "news", 1]])
                    self.assertEqual(plain.call("PUBLISH", "news", "hello"), 1)
                    self.assertEqual(respb.frame(), (1, ("push", "message", "news", "hello")))
            self.assertEqual(plain.call("PING"), "+PONG")

    def test_clients_of_http_are_told_its_version(self):
        server = self.server()
        for offered, chosen in (([], None), (["h2", "http/1.1"], "http/1.1")):
            made = context(self.authority)
            if offered:
                made.set_alpn_protocols(offered)
            with under_tls(Wire, server.port, made) as wire:
                self.assertEqual(wire.call("PING"), "+PONG")
                self.assertEqual(wire.socket.selected_alpn_protocol(), chosen)

    def test_requests_in_records_of_one_byte(self):
        server = self.server()
        with under_tls(Respb, server.port, context(self.authority)) as wire:
            for byte in argv(1, "SET", "piece", "value") + get(1, "piece"):
                wire.send(bytes([byte]))
            self.assertEqual([wire.frame(), wire.frame()], [(1, "+OK"), (1, "value")])

    def test_what_one_receive_cannot_take_is_taken_by_the_next(self):
        """Plaintext that is left over when a receive of 64 KiB is full: no event tells of it."""
        server = self.server()
        with under_tls(Wire, server.port, context(self.authority)) as wire:
            for count in (65_536, 65_537, 70_000, 2 * 65_536, 2 * 65_536 + 1):
                head = len(request("ECHO", "x" * count)) - count
                value = "x" * (count - head)
                wire.send(request("ECHO", value))
                self.assertEqual(wire.reply(), value)

    def test_a_port_of_its_own_speaks_nothing_else(self):
        from server import free_port

        tls_port = free_port()
        server = self.server("--tls-port", str(tls_port))
        with under_tls(Wire, tls_port, context(self.authority)) as wire:
            self.assertEqual(wire.call("PING"), "+PONG")
            self.assertIn("name=tls", wire.call("INFO", "server"))
        with Wire(tls_port) as plain:
            plain.send(request("PING"))
            self.assertNotIn(b"PONG", plain.until_closed())

    def test_versions_and_suites_are_those_that_are_named(self):
        server = self.server("--tls-protocols", "TLSv1.3", "--tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256")
        with under_tls(Wire, server.port, context(self.authority)) as wire:
            self.assertEqual(wire.socket.cipher()[0], "TLS_CHACHA20_POLY1305_SHA256")
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            under_tls(Wire, server.port, context(self.authority, version=ssl.TLSVersion.TLSv1_2))
        with server.connect() as plain:
            for name, value in (("tls-protocols", "SSLv3"), ("tls-ciphersuites", "TLS_NONE"), ("tls-ciphers", "RC4")):
                self.assertIn(value, plain.call("CONFIG", "SET", name, value))

    def test_whose_order_of_suites_counts(self):
        first, second = "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"
        server = self.server("--tls-ciphers", f"{second}:{first}")
        made = context(self.authority, version=ssl.TLSVersion.TLSv1_2)
        made.set_ciphers(f"{first}:{second}")
        for prefers_own, chosen in (("no", first), ("yes", second)):
            with server.connect() as plain:
                self.assertEqual(plain.call("CONFIG", "SET", "tls-prefer-server-ciphers", prefers_own), "+OK")
            with under_tls(Wire, server.port, made) as wire:
                self.assertEqual(wire.socket.cipher()[0], chosen)

    def test_as_many_sessions_are_kept_as_is_said(self):
        """Those of clients of TLS 1.2 without tickets, which the server must remember."""
        server = self.server()
        made = context(self.authority, version=ssl.TLSVersion.TLSv1_2)
        made.options |= ssl.OP_NO_TICKET

        def session():
            with under_tls(Wire, server.port, made) as wire:
                wire.call("PING")
                return wire.socket.session

        def is_resumed(session):
            with under_tls(Wire, server.port, made, session) as wire:
                return wire.socket.session_reused

        # 0 for as many as there may be, and however many are wanted, the server goes on.
        for size, kept in (("2", [False, True, True]), ("0", [True] * 3), ("2147483647", [True] * 3)):
            with server.connect() as plain:
                self.assertEqual(plain.call("CONFIG", "SET", "tls-session-cache-size", size), "+OK")
            sessions = [session() for _ in range(3)]
            self.assertEqual([is_resumed(session) for session in reversed(sessions)], kept[::-1], size)

    def test_sessions_are_resumed(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            server = self.server()
            made = context(self.authority, version=version)
            with under_tls(Wire, server.port, made) as first:
                # What resumes a session of TLS 1.3 comes behind the handshake.
                first.call("PING")
                session = first.socket.session
            with under_tls(Wire, server.port, made, session) as second:
                self.assertTrue(second.socket.session_reused)
                self.assertIn("tls_handshakes_resumed:1", second.call("INFO", "tls"))
                self.assertEqual(second.call("CONFIG", "SET", "tls-session-caching", "no"), "+OK")
            with under_tls(Wire, server.port, made, session) as third:
                self.assertFalse(third.socket.session_reused)

    def test_a_certificate_for_a_try(self):
        with Server("--tls-self-signed", "yes") as server:
            made = ssl.create_default_context()
            made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
            with under_tls(Wire, server.port, made) as wire:
                self.assertEqual(wire.call("PING"), "+PONG")
                der = wire.socket.getpeercert(binary_form=True)
            # It is whole: it verifies by itself, for its names.
            with tempfile.NamedTemporaryFile("w", suffix=".crt") as file:
                file.write(ssl.DER_cert_to_PEM_cert(der))
                file.flush()
                made = ssl.create_default_context(cafile=file.name)
                with under_tls(Wire, server.port, made) as wire:
                    self.assertEqual(wire.call("PING"), "+PONG")


class Certificates(WithCertificates):
    def test_clients_show_theirs_or_not(self):
        strangers = Authority(self.folder.name, "strangers").sign("stranger")
        for clients, with_none, with_good, with_bad in (
            ("yes", True, False, True),
            ("optional", False, False, True),
            ("no", False, False, False),
        ):
            server = self.server(clients=clients)
            got = [self.refused(server, client) for client in (None, self.ann, strangers)]
            self.assertEqual(got, [with_none, with_good, with_bad], clients)
            with server.connect() as plain:
                failed = sum(got)
                self.assertIn(f"tls_handshakes_failed:{failed}", plain.call("INFO", "tls"))

    def test_authorities_of_a_folder(self):
        """All of a folder count, beside what else stands there; one that comes later is read on SIGHUP."""
        others = Authority(self.folder.name, "others")
        folder = os.path.join(self.folder.name, "authorities")
        os.mkdir(folder)
        shutil.copy(self.authority.file, os.path.join(folder, "first.pem"))
        os.mkdir(os.path.join(folder, "subfolder"))
        with open(os.path.join(folder, "README"), "w", encoding="ascii") as file:
            file.write("no certificate")
        log = os.path.join(self.folder.name, "folder.log")
        server = Server(
            *("--tls-cert-file", self.own[0], "--tls-key-file", self.own[1], "--tls-ca-cert-dir", folder, "--logfile", log)
        )
        self.addCleanup(server.stop)
        other = others.sign("other")
        self.assertEqual([self.refused(server, client) for client in (self.ann, other, None)], [False, True, True])
        shutil.copy(others.file, os.path.join(folder, "second.pem"))
        server.process.send_signal(signal.SIGHUP)
        while self.refused(server, other):
            self.assertIsNone(server.process.poll())
        self.assertEqual([self.refused(server, client) for client in (self.ann, None)], [False, True])

    def test_a_certificate_names_its_user(self):
        for source, user in (("CN", "ann"), ("URI", "weft:user:bob"), ("off", None)):
            server = self.server("--requirepass", "secret", "--tls-auth-clients-user", source)
            with under_tls(Wire, server.port, context(self.authority, self.ann)) as wire:
                # Nobody of that name is there yet.
                self.assertTrue(wire.call("PING").startswith("-NOAUTH"))
                self.assertEqual(wire.call("AUTH", "secret"), "+OK")
                self.assertEqual(wire.call("ACL", "SETUSER", user or "ann", "on", "allkeys", "allcommands"), "+OK")
            with under_tls(Respb, server.port, context(self.authority, self.ann)) as wire:
                if user:
                    self.assertEqual(wire.call_on(3, "ACL", "WHOAMI"), user)
                else:
                    self.assertTrue(wire.call_on(3, "ACL", "WHOAMI").startswith("-NOAUTH"))
            with under_tls(Wire, server.port, context(self.authority)) as wire:
                self.assertTrue(wire.call("PING").startswith("-NOAUTH"))
                self.assertEqual(wire.call("AUTH", "secret"), "+OK")
                wire.call("ACL", "SETUSER", user or "ann", "off")
            self.assertNotEqual(self.whoami(server, self.ann), user or "ann")

    def whoami(self, server, client):
        with under_tls(Wire, server.port, context(self.authority, client)) as wire:
            return wire.call("ACL", "WHOAMI")

    def subject(self, server):
        with under_tls(Wire, server.port, context(self.authority)) as wire:
            names = [pair for part in wire.socket.getpeercert()["subject"] for pair in part]
            return dict(names)["commonName"]

    def test_files_are_read_anew_and_nobody_is_dropped(self):
        certificate, key = (shutil.copy(path, f"{path}.copy") for path in self.own)
        server = Server(*self.authority.flags(certificate, key), "--logfile", f"{self.folder.name}/log")
        self.addCleanup(server.stop)
        with under_tls(Wire, server.port, context(self.authority)) as old:
            self.assertEqual(old.call("PING"), "+PONG")
            # By CONFIG SET: certificate and key together, and nothing when they do not belong together.
            second = self.authority.sign("second")
            wrong = old.call("CONFIG", "SET", "tls-cert-file", second[0])
            self.assertIn("do not go together", wrong)
            self.assertIn("there is no", old.call("CONFIG", "SET", "tls-cert-file", "/dev/null").lower())
            self.assertEqual(self.subject(server), "server")
            self.assertEqual(old.call("CONFIG", "SET", "tls-cert-file", second[0], "tls-key-file", second[1]), "+OK")
            self.assertEqual(self.subject(server), "second")
            self.assertEqual(old.call("CONFIG", "SET", "tls-cert-file", certificate, "tls-key-file", key), "+OK")
            # By SIGHUP: the files have others in them.
            third = self.authority.sign("third", days=3)
            shutil.copy(third[0], certificate)
            shutil.copy(third[1], key)
            self.assertEqual(self.subject(server), "server")
            server.process.send_signal(signal.SIGHUP)
            while self.subject(server) != "third":
                pass
            left = int(old.call("INFO", "tls").split("tls_server_cert_expires_in_seconds:")[1].split()[0])
            self.assertTrue(2 * 86_400 < left <= 3 * 86_400, left)
            with open(f"{self.folder.name}/log", encoding="utf-8") as log:
                self.assertRegex(log.read(), "the certificate of TLS expires in [23] days")
            # What is broken changes nothing.
            with open(key, "w", encoding="ascii") as file:
                file.write("no key")
            server.process.send_signal(signal.SIGHUP)
            while "TLS stays as it is" not in open(f"{self.folder.name}/log", encoding="utf-8").read():
                pass
            self.assertEqual(self.subject(server), "third")
            self.assertEqual(old.call("PING"), "+PONG")

    def test_a_server_without_what_it_needs_does_not_start(self):
        certificate, key = self.own
        for flags, said in (
            (("--tls-port", "1"), "tls-port needs tls-cert-file"),
            (("--tls-cert-file", certificate), "belong together"),
            (("--tls-cert-file", certificate, "--tls-key-file", key), "tls-auth-clients is yes"),
            (("--tls-cert-file", certificate, "--tls-key-file", self.ann[1], "--tls-auth-clients", "no"), "do not go together"),
            (("--tls-cert-file", "/nowhere", "--tls-key-file", key), "/nowhere"),
        ):
            words = [PROGRAM, "serve", "--port", "0", *flags]
            done = subprocess.run(words, capture_output=True, timeout=REPLY_SECONDS, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr.decode())


class Clients(WithCertificates):
    def setUp(self):
        self.running = self.server("--tls-auth-clients-user", "CN")
        with self.running.connect() as wire:
            wire.call("ACL", "SETUSER", "ann", "on", "allkeys", "allcommands", "allchannels")

    def run_cli(self, *words):
        done = subprocess.run(words, capture_output=True, timeout=REPLY_SECONDS, check=False)
        return (done.stdout + done.stderr).decode().strip()

    def both(self, *words):
        """Without a certificate, and with one."""
        files = ("--cert", self.ann[0], "--key", self.ann[1])
        for client, user in (((), "default"), (files, "ann")):
            self.assertIn(user, self.run_cli(*words, *client, "ACL", "WHOAMI"))

    @unittest.skipUnless(shutil.which("redis-cli"), "redis-cli is not installed")
    def test_redis_cli(self):
        self.both("redis-cli", "-h", "localhost", "-p", str(self.running.port), "--tls", "--cacert", self.authority.file)

    def test_weft_cli(self):
        where = ("-h", "localhost", "-p", str(self.running.port), "--tls", "--cacert", self.authority.file)
        for protocol in ("-2", "-3", "-4"):
            self.both(PROGRAM, "cli", protocol, *where)

    def test_weft_bench(self):
        """Under load, with values checked, with and without a certificate, over each wire."""
        server = self.server(clients="yes")
        where = ("-h", "localhost", "-p", str(server.port), "--tls", "--cacert", self.authority.file)
        client = ("--cert", self.ann[0], "--key", self.ann[1])
        load = ("-n", "20000", "-c", "8", "-P", "16", "-d", "10-5000", "-r", "100", "-t", "set,get", "--verify", "--json")
        for protocol in (("-2",), ("-3",), ("-4",), ("-4", "--mux", "5")):
            done = subprocess.run(
                (PROGRAM, "bench", *where, *client, *protocol, *load), capture_output=True, timeout=REPLY_SECONDS, check=False
            )
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            tests = json.loads(done.stdout)["tests"]
            self.assertEqual([test["replies"] for test in tests], [20000, 20000], protocol)
        # A connection for each request, by URL.
        words = ("-u", f"rediss://localhost:{server.port}", *where[5:], *client, "-k", "0", "-c", "2", "-n", "50", "-t", "get", "-q")
        done = subprocess.run((PROGRAM, "bench", *words), capture_output=True, timeout=REPLY_SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        refused = subprocess.run((PROGRAM, "bench", *where, *load), capture_output=True, timeout=REPLY_SECONDS, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("it wants a certificate of the client", refused.stderr.decode())

    @unittest.skipUnless(redis, "redis-py is not installed: tests/e2e/run does so")
    def test_weft_bench_sends_all_before_it_is_answered(self):
        """What it has to send is not left lying where the socket takes all of it and nothing comes back."""
        requests, value = 64, 67485
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(*self.own)

        def answer(wire):
            """SETs are answered when all of them have come, everything else at once."""
            with wire, wire.makefile("rb") as reader:
                sets = 0
                while line := reader.readline():
                    words = [reader.read(int(reader.readline()[1:]) + 2)[:-2] for _ in range(int(line[1:]))]
                    if words[0].upper() != b"SET":
                        wire.sendall(b"+OK\r\n")
                        continue
                    sets += 1
                    if sets == requests:
                        wire.sendall(b"+OK\r\n" * requests)

        def serve():
            while True:
                try:
                    wire = made.wrap_socket(listener.accept()[0], server_side=True)
                except OSError:
                    return
                threading.Thread(target=answer, args=(wire,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        where = ("-h", "127.0.0.1", "-p", str(listener.getsockname()[1]), "--tls", "--cacert", self.authority.file)
        load = ("-t", "set", "-c", "1", "-P", str(requests), "-n", str(requests), "-d", str(value), "-q")
        done = subprocess.run((PROGRAM, "bench", *where, *load), capture_output=True, timeout=REPLY_SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_redis_py(self):
        files = {"ssl_certfile": self.ann[0], "ssl_keyfile": self.ann[1]}
        for client, user in (({}, "default"), (files, "ann")):
            where = {"host": "localhost", "port": self.running.port, "ssl": True, "ssl_ca_certs": self.authority.file}
            with redis.Redis(**where, **client, decode_responses=True, socket_timeout=2 * REPLY_SECONDS) as connection:
                self.assertEqual(connection.acl_whoami(), user)
                pipeline = connection.pipeline()
                for at in range(1000):
                    pipeline.set(f"py:{at}", at)
                self.assertEqual(pipeline.execute(), [True] * 1000)


class Hostile(WithCertificates):
    def descriptors(self, server):
        return len(os.listdir(f"/proc/{server.process.pid}/fd"))

    def test_garbage_and_what_ends_too_early(self):
        server = self.server("--auth-timeout", "0")
        hello = self.hello()
        with under_tls(Wire, server.port, context(self.authority)) as honest:
            honest.call("PING")
            before = self.descriptors(server)
            with_garbage = [b"\x16" + os.urandom(200), b"\x16\x03\x01\xff\xff" + bytes(300), hello[:-1] + b"\xff" * 300]
            for data in with_garbage + [hello[:cut] for cut in range(1, len(hello), 7)]:
                with server.connect() as wire:
                    wire.send(data)
                    wire.socket.shutdown(socket.SHUT_WR)
                    # An alert of TLS, if anything: the head of its record is never that of an error of RESP.
                    self.assertNotIn(b"PONG", wire.until_closed())
                self.assertEqual(honest.call("PING"), "+PONG")
            # In pieces of one byte it is a handshake as any other.
            with server.connect() as wire:
                for byte in hello:
                    wire.send(bytes([byte]))
                self.assertEqual(wire.take(1), b"\x16")
            while self.descriptors(server) > before:
                pass

    def hello(self):
        """The first bytes that a client sends."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        made = context(self.authority).wrap_bio(incoming, outgoing, server_hostname="localhost")
        with self.assertRaises(ssl.SSLWantReadError):
            made.do_handshake()
        return outgoing.read()

    def test_a_reader_that_stalls_is_cut_at_its_limit(self):
        server = self.server("--client-output-buffer-limit", "normal 4mb 0 0")
        with under_tls(Wire, server.port, context(self.authority)) as wire:
            wire.call("SET", "k", "x" * 100_000)
            with self.assertRaises((ConnectionError, ssl.SSLError, Closed)):
                for _ in range(2000):
                    wire.send(request("GET", "k"))
                while True:
                    wire.reply()
        with server.connect() as plain:
            self.assertEqual(plain.call("PING"), "+PONG")

    def test_clients_of_others_wait_for_no_handshake(self):
        """Many handshakes at once: all of them end, and so do requests in between."""
        server = self.server()
        made = context(self.authority)
        with server.connect() as honest:
            wires = [Wire(server.port) for _ in range(200)]
            pairs = []
            for wire in wires:
                incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                client = made.wrap_bio(incoming, outgoing, server_hostname="localhost")
                with self.assertRaises(ssl.SSLWantReadError):
                    client.do_handshake()
                pairs.append((wire, client, incoming, outgoing))
                wire.send(outgoing.read())
                self.assertEqual(honest.call("PING"), "+PONG")
            for wire, client, incoming, outgoing in pairs:
                while True:
                    try:
                        client.do_handshake()
                        break
                    except ssl.SSLWantReadError:
                        incoming.write(wire.socket.recv(1 << 16))
                client.write(request("PING"))
                wire.send(outgoing.read())
            for wire, client, incoming, _ in pairs:
                got = b""
                while got != b"+PONG\r\n":
                    incoming.write(wire.socket.recv(1 << 16))
                    try:
                        got += client.read(100)
                    except ssl.SSLWantReadError:
                        pass
                wire.close()
            self.assertIn("tls_handshakes:200", honest.call("INFO", "tls"))


if __name__ == "__main__":
    unittest.main()
