"""Owns: many clients of a gateway that ask in one look at its sockets, when what they ask may wait for the next looks: each is answered
its own, in order, and nothing is lost at an end. Does not own: what a server behind saves by it (`make bench-gateway`)."""

import contextlib
import signal
import unittest

from behind import PATIENT, Redis, gateway
from nodes import wait_for
from server import REPLY_SECONDS, Closed, request

CLIENTS = 200


@contextlib.contextmanager
def one_look(server):
    """What is sent meanwhile the gateway finds all at once."""
    pid = server.process.pid

    def is_stopped():
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "T"

    server.process.send_signal(signal.SIGSTOP)
    wait_for(is_stopped)
    try:
        yield
    finally:
        server.process.send_signal(signal.SIGCONT)


class Crowds(unittest.TestCase):
    def setUp(self):
        self.backend = self.enterContext(Redis())
        self.server = gateway(self.backend.port, *PATIENT, threads=1)
        self.addCleanup(self.server.stop)
        self.clients = [self.enterContext(self.server.connect()) for _ in range(CLIENTS)]
        self.counts = [0] * CLIENTS
        # Only of those that have asked lately some may wait.
        self.crowd(range(CLIENTS))

    def ask(self, numbers, times=1):
        for number in numbers:
            self.clients[number].send(request("INCR", f"own{number}") * times)

    def answers(self, numbers, times=1):
        for number in numbers:
            for _ in range(times):
                self.counts[number] += 1
                self.assertEqual(self.clients[number].reply(), self.counts[number], f"of client {number}")

    def crowd(self, numbers, times=1):
        with one_look(self.server):
            self.ask(numbers, times)
        self.answers(numbers, times)

    def direct(self, *words):
        with self.backend.connect() as wire:
            return wire.call(*words)

    def test_each_is_answered_its_own(self):
        for begin in range(10):
            self.crowd(range(begin, begin + 30), times=1 + begin % 3)
        self.crowd(range(CLIENTS), times=2)
        # What is not plain, of others, beside what is.
        numbers = range(20, 50)
        with one_look(self.server):
            for number in numbers:
                self.clients[number].send(request("SELECT", str(number % 10)))
                self.clients[number].send(request("MULTI") + request("INCR", f"m{number}") + request("EXEC"))
                self.clients[number].send(request("SET", "k", str(number)) + request("SELECT", "0"))
            self.ask(range(20))
        for number in numbers:
            got = [self.clients[number].reply() for _ in range(6)]
            self.assertEqual(got, ["+OK", "+OK", "+QUEUED", [1], "+OK", "+OK"])
        self.answers(range(20))

    def test_what_blocks_goes_with_all_before_it(self):
        taker, waiter = (self.enterContext(self.server.connect()) for _ in range(2))
        with one_look(self.server):
            self.ask(range(20))
            taker.send(request("RPUSH", "q", "e") + request("BLPOP", "q", "0") + request("INCR", "n"))
            waiter.send(request("BLPOP", "empty", "0"))
            self.ask(range(20, 40))
        self.assertEqual([taker.reply() for _ in range(3)], [1, ["q", "e"], 1])
        self.answers(range(40))
        wait_for(lambda: "blocked_clients:1" in self.direct("INFO", "clients"))
        # It leaves while others ask: what comes then is not for it.
        with one_look(self.server):
            self.ask(range(20))
            waiter.close()
        self.answers(range(20))
        wait_for(lambda: "blocked_clients:0" in self.direct("INFO", "clients"))
        self.assertEqual(self.direct("RPUSH", "empty", "e"), 1)
        self.crowd(range(30))
        self.assertEqual(self.direct("LLEN", "empty"), 1)

    def test_what_has_run_is_answered_before_the_gateway_ends(self):
        asks = range(40)
        with one_look(self.server):
            self.ask(asks, times=3)
            self.server.signal_stop()
        for number in asks:
            said = []
            with contextlib.suppress(Closed, ConnectionResetError):
                while True:
                    said.append(self.clients[number].reply())
            ran = int(self.direct("GET", f"own{number}"))
            self.assertEqual(said, list(range(self.counts[number] + 1, ran + 1)), f"client {number}")
        self.assertEqual(self.server.process.wait(REPLY_SECONDS), 0)


if __name__ == "__main__":
    unittest.main()
