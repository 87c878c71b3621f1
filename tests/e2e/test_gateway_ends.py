"""Owns: what becomes at a gateway of what a client has asked for when its client, or its wait, ends: nothing is lost, nobody else is
ended. Does not own: waking who blocks by the server's own word (`test_gateway_bounds`), transactions (`test_gateway`)."""

import socket
import unittest

from behind import PATIENT, Relay, gateway
from nodes import wait_for
from server import Closed, Respb, Server, argv, cancel, close, request

# What a connection that is being made asks for last.
HANDSHAKE = b"SETNAME"
# Of a reply so many bytes are more than sockets hold and than the limit allows.
LARGE = 30_000_000
LIMIT = 20_000_000

WIRES = ("resp2", "resp3", "respb")


class Client:
    """Over one of the wires; of RESPB on channel 1."""

    def __init__(self, server, wire):
        self.is_respb = wire == "respb"
        self.wire = Respb(server.port) if self.is_respb else server.connect()
        if wire == "resp3":
            self.wire.call("HELLO", "3")
        self.id = self.call("CLIENT", "ID")

    def call(self, *words):
        self.send(words)
        return self.reply()

    def send(self, *requests):
        encode = (lambda words: argv(1, *words)) if self.is_respb else (lambda words: request(*words))
        self.wire.send(b"".join(encode(words) for words in requests))

    def reply(self):
        return self.wire.frame()[1] if self.is_respb else self.wire.reply()

    def sends_no_more(self):
        self.wire.socket.shutdown(socket.SHUT_WR)

    def rest(self):
        """All that comes until the end."""
        all_of_it = []
        try:
            while True:
                all_of_it.append(self.reply())
        except Closed:
            return all_of_it


def blocked(wire):
    return int(wire.call("INFO", "clients").partition("blocked_clients:")[2].partition("\r\n")[0])


class Ends(unittest.TestCase):
    def client(self, server, wire):
        client = Client(server, wire)
        self.addCleanup(client.wire.close)
        return client

    def test_who_sends_no_more_is_served_what_there_is(self):
        """It is tried, and that has not come back, when the end of sending is read: as a server of its own would."""
        cases = {
            "alone": ([("BLPOP", "list", "0")], [["list", "x"]]),
            "before another": ([("BLPOP", "list", "0"), ("INCR", "n")], [["list", "x"], 1]),
            "behind another": ([("SET", "k", "v"), ("BLPOP", "list", "0")], ["+OK", ["list", "x"]]),
            "under WATCH": ([("WATCH", "k"), ("BLPOP", "list", "0")], ["+OK", ["list", "x"]]),
            "moves": ([("BLMOVE", "list", "other", "LEFT", "RIGHT", "0")], ["x"]),
            "nothing": ([("SET", "k", "v"), ("BLPOP", "none", "0"), ("INCR", "n")], ["+OK"]),
            "nothing under WATCH": ([("WATCH", "k"), ("BLPOP", "none", "0"), ("INCR", "n")], ["+OK"]),
        }
        with Server() as backend, gateway(backend.port, *PATIENT, threads=1) as server, backend.connect() as direct:
            for wire in WIRES:
                # Its shared connection stands.
                self.client(server, wire).call("GET", "k")
                for name, (requests, expected) in cases.items():
                    with self.subTest(wire=wire, case=name):
                        direct.call("DEL", "list", "other", "n")
                        direct.call("RPUSH", "list", "x")
                        client = self.client(server, wire)
                        client.send(*requests)
                        client.sends_no_more()
                        self.assertEqual(client.rest(), expected)
                        wait_for(lambda: blocked(direct) == 0)
                        is_taken = "none" not in requests[-2 if len(requests) > 2 else -1]
                        self.assertEqual(direct.call("LLEN", "list"), 0 if is_taken else 1)
                        client.wire.close()

    def test_a_group_keeps_nothing_for_who_was_not_told(self):
        with Server() as backend, gateway(backend.port, *PATIENT, threads=1) as server, backend.connect() as direct:
            direct.call("XGROUP", "CREATE", "stream", "group", "$", "MKSTREAM")
            with server.connect() as other:
                other.call("GET", "k")
            for _ in range(20):
                entry = direct.call("XADD", "stream", "*", "f", "v")
                client = self.client(server, "resp2")
                client.send(("XREADGROUP", "GROUP", "group", "me", "BLOCK", "0", "STREAMS", "stream", ">"))
                client.sends_no_more()
                self.assertEqual(client.rest(), [[["stream", [[entry, ["f", "v"]]]]]])
                client.wire.close()

    def test_what_has_not_gone_to_the_server_does_not_run_for_who_has_left(self):
        """The connection to it is being made. What comes on the list until then belongs to others."""
        ends = {
            "killed": (lambda client, other: other.call("CLIENT", "KILL", "ID", str(client.id)), WIRES),
            "leaves": (lambda client, _: client.wire.close(), WIRES),
            "closes its channel": (lambda client, _: client.wire.send(close(1)), ("respb",)),
            "cancels": (lambda client, _: client.wire.send(cancel(1, 1)), ("respb",)),
            "woken": (lambda client, other: other.call("CLIENT", "UNBLOCK", str(client.id), "ERROR"), WIRES),
        }
        for name, (end, wires) in ends.items():
            for wire in wires:
                with self.subTest(end=name, wire=wire), Server() as backend, backend.connect() as direct:
                    relay = Relay(backend.port)
                    with gateway(relay.port, *PATIENT, threads=1) as server, server.connect() as other:
                        relay.late = HANDSHAKE
                        client = self.client(server, wire)
                        client.send(("BLPOP", "list", "0"))
                        relay.wait_for_request(HANDSHAKE)
                        end(client, other)
                        if name in ("killed", "leaves"):
                            wait_for(lambda: other.call("CLIENT", "LIST", "ID", str(client.id)) == "")
                        else:
                            # It has been seen to: what comes behind it was.
                            self.assertEqual(other.call("PING"), "+PONG")
                        self.assertEqual(direct.call("RPUSH", "list", "x"), 1)
                        relay.go_on()
                        # It goes over the same connection, behind what was to block.
                        behind = self.client(server, wire)
                        self.assertIsNone(behind.call("GET", "k"))
                        self.assertEqual(direct.call("LLEN", "list"), 1)
                        if name == "cancels":
                            self.assertTrue(client.reply().startswith("-CANCELLED"))
                        if name == "woken":
                            self.assertTrue(client.reply().startswith("-UNBLOCKED"))
                    relay.close()

    def test_the_end_of_one_wait_is_not_that_of_the_next(self):
        """Who watches keys blocks over one connection. The server hears that the first is to end when the first has been served: until
        then the next does not go there, and one that is ended meanwhile is answered at once."""
        for wire in WIRES:
            with self.subTest(wire), Server() as backend, backend.connect() as direct:
                relay = Relay(backend.port)
                with gateway(relay.port, *PATIENT, threads=1) as server, server.connect() as other:
                    client = self.client(server, wire)
                    self.assertEqual(client.call("WATCH", "k"), "+OK")
                    client.send(("BLPOP", "first", "0"), ("BLPOP", "ended", "0"), ("BLPOP", "second", "0"), ("GET", "k"))
                    wait_for(lambda: blocked(direct) == 1)
                    relay.late = b"UNBLOCK"

                    def end(sequence):
                        if wire == "respb":
                            client.wire.send(cancel(1, sequence))
                        else:
                            self.assertEqual(other.call("CLIENT", "UNBLOCK", str(client.id), "ERROR"), 1)

                    end(2)
                    relay.wait_for_request(b"UNBLOCK")
                    direct.call("RPUSH", "first", "x")
                    self.assertEqual(client.reply(), ["first", "x"])
                    end(3)
                    self.assertTrue(client.reply().startswith(("-UNBLOCKED", "-CANCELLED")))
                    # What comes next has been decoded, and waits.
                    self.assertEqual(other.call("PING"), "+PONG")
                    self.assertNotIn(b"ended", relay.asked)
                    self.assertNotIn(b"second", relay.asked)
                    relay.go_on()
                    relay.wait_for_request(b"second")
                    wait_for(lambda: blocked(direct) == 1)
                    direct.call("RPUSH", "second", "y")
                    self.assertEqual([client.reply(), client.reply()], [["second", "y"], None])
                    self.assertEqual(direct.call("LLEN", "ended"), 0)
                relay.close()

    def test_a_channel_that_was_let_go_keeps_no_connection(self):
        """Its client sends no more, and another channel is still served; it is ended before that is."""
        with Server() as backend, backend.connect() as direct:
            relay = Relay(backend.port)
            with gateway(relay.port, *PATIENT, threads=1) as server, server.connect() as other:
                client = self.client(server, "respb")
                client.wire.call_on(2, "GET", "k")
                self.assertEqual(direct.call("CLIENT", "PAUSE", "60000", "WRITE"), "+OK")
                relay.hold_behind = b"XREAD"
                # What reads is not paused, and finds nothing.
                client.wire.send(argv(1, "XREAD", "BLOCK", "0", "STREAMS", "none", "0-1") + argv(2, "SET", "k", "v"))
                client.sends_no_more()
                relay.wait_for_request(b"XREAD")
                self.assertEqual(other.call("PING"), "+PONG")
                relay.hold_behind = None
                relay.go_on()
                wait_for(lambda: "in_flight=1," in other.call("INFO", "gateway"))
                self.assertEqual(other.call("CLIENT", "KILL", "ID", str(client.id)), 1)
                self.assertEqual(direct.call("CLIENT", "UNPAUSE"), "+OK")
                self.assertIn((2, "+OK"), self.frames(client))
                wait_for(lambda: "connected_clients:1\r\n" in other.call("INFO", "clients"))
            relay.close()

    def test_a_channel_that_blocks_gives_its_connection_to_one_that_is_served(self):
        """Their client sends no more: it waits for nothing, and the other one's reply is still awaited."""
        for own in ([], [("WATCH", "k")]):
            with self.subTest(own=own), Server() as backend, gateway(backend.port, "--leases", "1", *PATIENT, threads=1) as server:
                with backend.connect() as direct:
                    client = self.client(server, "respb")
                    client.send(*own, ("BLPOP", "list", "0"), ("INCR", "n"))
                    wait_for(lambda: blocked(direct) == 1)
                    client.wire.send(argv(2, "WATCH", "other") + argv(2, "GET", "other"))
                    client.sends_no_more()
                    self.assertEqual(self.frames(client), [(1, "+OK")] * len(own) + [(2, "+OK"), (2, None)])
                    wait_for(lambda: blocked(direct) == 0)
                    self.assertIsNone(direct.call("GET", "n"))

    def frames(self, client):
        all_of_it = []
        try:
            while True:
                all_of_it.append(client.wire.frame())
        except Closed:
            return all_of_it

    def test_who_is_ended_by_an_answer_waits_for_nothing_more(self):
        """He does not read it, and is owed it for a while; another channel of his blocks."""
        with Server() as backend, gateway(backend.port, *PATIENT, threads=1) as server, backend.connect() as direct, server.connect() as other:
            direct.call("SET", "large", "x" * LARGE)
            self.assertEqual(other.call("CONFIG", "SET", "client-output-buffer-limit", f"normal {LIMIT} 0 0"), "+OK")
            with Respb(server.port) as wire:
                wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
                self.assertIsNone(wire.call_on(2, "GET", "k"))
                wire.send(argv(1, "BLPOP", "list", "0"))
                wait_for(lambda: blocked(direct) == 1)
                clients = int(other.call("INFO", "clients").partition("connected_clients:")[2].partition("\r\n")[0])
                wire.send(argv(2, "GET", "large"))
                wait_for(lambda: blocked(direct) == 0)
                # He has ten seconds to read what he is owed, and is there until then.
                self.assertIn(f"connected_clients:{clients}\r\n", other.call("INFO", "clients"))
                self.assertEqual((direct.call("RPUSH", "list", "x"), direct.call("LLEN", "list")), (1, 1))


if __name__ == "__main__":
    unittest.main()
