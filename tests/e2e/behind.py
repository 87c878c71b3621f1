"""Owns: what stands in front and behind in tests of the gateway: the gateway itself before one server or before a cluster, a
redis-server, a relay that holds back and cuts. Does not own: what is tested, a cluster's nodes (`nodes`)."""

import resource
import shutil
import socket
import subprocess
import tempfile
import threading

from nodes import Cluster, wait_for
from server import REPLY_SECONDS, START_SECONDS, Server, Wire, free_port

REDIS = shutil.which("redis-server")
FILES = 8_000
# Nothing is late where that is not what is tested, however busy the machine is.
PATIENT = ("--upstream-timeout", str(REPLY_SECONDS * 1000))


def allow_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES if hard == resource.RLIM_INFINITY else min(hard, FILES), hard))


# The gateway inherits what this process may open.
allow_files()


class Redis:
    """A redis-server of the tests' own, whose files, such as a copy's dump.rdb, go with it."""

    def __init__(self, *flags, port=None):
        self.port = port or free_port()
        self.folder = tempfile.TemporaryDirectory()
        words = [REDIS, "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--daemonize", "no", "--dir", self.folder.name, *flags]
        self.process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)
        wait_for(self.answers)

    def answers(self):
        assert self.process.poll() is None, "redis-server has ended"
        try:
            with Wire(self.port) as wire:
                return wire.call("PING") in ("+PONG", "-NOAUTH Authentication required.")
        except OSError:
            return False

    def connect(self):
        return Wire(self.port)

    def end(self):
        self.process.kill()
        self.process.wait(REPLY_SECONDS)

    def stop(self):
        self.end()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Relay:
    """Stands between the gateway and the server, holds back replies, and cuts."""

    def __init__(self, port):
        self.behind = port
        self.lock = threading.Condition()
        self.held = False
        self.hold_behind = None
        self.refusing = False
        self.instead = None
        self.late = None
        self.asked = b""
        self.pairs = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.behind), START_SECONDS)
            with self.lock:
                self.pairs.append((near, far))
            if self.refusing:
                self.cut()
            threading.Thread(target=self.serve, args=(near, far), daemon=True).start()

    def serve(self, near, far):
        requests = threading.Thread(target=self.pass_on, args=(near, far, False), daemon=True)
        requests.start()
        self.pass_on(far, near, True)
        requests.join()
        with self.lock:
            self.pairs = [pair for pair in self.pairs if pair[0] is not near]
            near.close()
            far.close()

    def pass_on(self, source, target, is_reply):
        try:
            while piece := source.recv(1 << 16):
                with self.lock:
                    if is_reply:
                        self.lock.wait_for(lambda: not self.held, REPLY_SECONDS)
                    else:
                        piece = piece.replace(*self.instead) if self.instead else piece
                        self.asked += piece
                        self.held = self.held or self.hold_behind is not None and self.hold_behind in piece
                        self.lock.notify_all()
                        self.lock.wait_for(lambda piece=piece: self.late is None or self.late not in piece, REPLY_SECONDS)
                target.sendall(piece)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def hold(self):
        with self.lock:
            self.held = True

    def go_on(self):
        with self.lock:
            self.held = False
            self.late = None
            self.lock.notify_all()

    def wait_for_request(self, part, times=1):
        with self.lock:
            assert self.lock.wait_for(lambda: self.asked.count(part) >= times, REPLY_SECONDS), (part, self.asked[-500:])

    def cut(self):
        """Ends all connections; what was held back is never seen."""
        with self.lock:
            for end in (end for pair in self.pairs for end in pair):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def refuse(self):
        """Ends all connections, and whichever comes, until it is told to let them."""
        self.refusing = True
        self.cut()

    def close(self):
        # An accept that waits keeps the socket until it returns.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()


def gateway(to, *flags, threads=2):
    """Before the server of a port, or of a URL."""
    url = to if isinstance(to, str) else f"redis://127.0.0.1:{to}"
    return Server("--to", url, *flags, threads=threads, command="gateway")


class Front:
    """A gateway for all tests of a class, and connections to it; who takes it in has `server` and `backend` started."""

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        assert status == 0, status

    def connect(self, protocol=2):
        wire = self.enterContext(self.server.connect())
        if protocol == 3:
            wire.call("HELLO", "3")
        return wire


class BeforeOne(Front):
    """Before one server: who takes it in has `start`, which starts that."""

    @classmethod
    def setUpClass(cls):
        cls.backend = cls.enterClassContext(cls.start())
        cls.server = gateway(cls.backend.port, *PATIENT)

    def direct(self, *words):
        with self.backend.connect() as wire:
            return wire.call(*words)


class BeforeMany(Front):
    """Before a cluster."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster())
        cls.server = gateway(cls.cluster.url(), *PATIENT)


class Busy:
    """Clients that take one turn after the other, each over a connection and on a thread of its own, until they are stopped. Who takes
    it in has `turn(wire, number)`, and counts `rounds`."""

    def __init__(self, port, count):
        self.port, self.rounds, self.failures = port, 0, []
        self.lock, self.over = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(number,), daemon=True) for number in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        try:
            with Wire(self.port) as wire:
                self.work(wire, number)
        except Exception as failure:  # The test fails by it, whatever it is.
            self.failures.append(repr(failure))

    def work(self, wire, number):
        while not self.over.is_set():
            self.turn(wire, number)

    def go_on(self, rounds=40):
        """Until so much more has been done."""
        end = self.rounds + rounds
        wait_for(lambda: self.failures or self.rounds >= end)

    def join(self):
        for thread in self.threads:
            thread.join(REPLY_SECONDS)
            assert not thread.is_alive(), "a client has got no reply"
        assert not self.failures, self.failures

    def stop(self):
        self.over.set()
        self.join()
