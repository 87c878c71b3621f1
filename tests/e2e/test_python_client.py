"""Owns: whether examples/python, which knows the specification and nothing else, passes the vectors of the profile
Channels and works with `weft serve`. Does not own the client."""

import glob
import json
import math
import os
import socket
import struct
import sys
import threading
import unittest

from server import Server

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "examples", "python"))

import respb  # noqa: E402 (found by the line above)


def octets(json_bytes):
    """Bytes of a vector: hex, or pieces with repeats."""
    if isinstance(json_bytes, str):
        return bytes.fromhex(json_bytes)
    if isinstance(json_bytes, dict):
        return bytes.fromhex(json_bytes["repeat"]) * json_bytes["count"]
    return b"".join(map(octets, json_bytes))


def text(value):
    return value["text"].encode() if "text" in value else octets(value["bytes"])


def elements(items):
    """An array with its repeats written out."""
    out = []
    for item in items:
        out += [each for _ in range(item["count"]) for each in item["repeat"]] if "repeat" in item else [item]
    return out


def tree(value):
    """A reply of a vector as the client gives it."""
    if "nest" in value:
        inner = tree(value["value"])
        for _ in range(value["depth"]):
            wrap = {
                "array": lambda x: [x],
                "set": lambda x: respb.Set([x]),
                "map_value": lambda x: respb.Map([(b"k", x)]),
                "map_key": lambda x: respb.Map([(x, None)]),
            }
            inner = wrap[value["nest"]](inner)
        return inner
    if "attribute" in value:
        return respb.Attributed([(tree(key), tree(item)) for key, item in value["attribute"]], tree(value["value"]))
    kind, content = next(iter(value.items()))
    make = {
        "simple": lambda: respb.Simple(text(content)),
        "error": lambda: respb.Error(text(content)),
        "bulk": lambda: text(content),
        "big": lambda: respb.BigNumber(text(content)),
        "int": lambda: int(content),
        "bool": lambda: content,
        "null": lambda: None,
        "double": lambda: struct.unpack(">d", bytes.fromhex(value["bits"]))[0],
        "verbatim": lambda: respb.Verbatim(content[0].encode(), text(content[1])),
        "array": lambda: [tree(item) for item in elements(content)],
        "set": lambda: respb.Set([tree(item) for item in elements(content)]),
        "push": lambda: respb.Push([tree(item) for item in elements(content)]),
        "map": lambda: respb.Map([(tree(key), tree(item)) for key, item in content]),
    }
    return make[kind]()


def meaning(value):
    """A frame of a vector as the client gives it."""
    if "reply" in value:
        return tree(value["reply"])
    if value["frame"] == "unknown":
        return respb.Unknown(int(value["opcode"], 16))
    kind = {"close": respb.Close, "goaway": respb.GoAway}[value["frame"]]
    return kind(int(value["code"]), text(value["reason"]))


def same(one, other):
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, (list, tuple)) and type(one) is type(other) and len(one) == len(other):
        return all(map(same, one, other))
    return type(one) is type(other) and one == other


def vectors(kind, direction):
    for path in sorted(glob.glob(os.path.join(ROOT, "conformance/vectors/respb/channels", kind, "*.json"))):
        with open(path, encoding="utf-8") as file:
            yield from (vector for vector in json.load(file)["vectors"] if vector["direction"] == direction)


def decoder(vector):
    return respb.Decoder(**{name: value for name, value in vector.get("limits", {}).items() if name.endswith("_max")
                            and name not in ("arguments_max", "inline_bytes_max")})


class Vectors(unittest.TestCase):
    def outcome(self, vector, data):
        try:
            return decoder(vector).decode(data)
        except respb.WireError as error:
            return error.name, error.offset
        except respb.Incomplete as error:
            self.assertGreater(error.need, len(data), vector["id"])
            return None

    def test_replies(self):
        count = 0
        for vector in vectors("valid", "reply"):
            if "encode_only" in vector:
                continue
            wire = octets(vector["wire"])
            for behind in (b"", b"\x00\xff\n*"):
                frame = self.outcome(vector, wire + behind)
                self.assertTrue(frame and same(frame.value, meaning(vector["value"])), (vector["id"], frame))
                self.assertEqual((frame.channel, frame.length), (vector["value"]["channel"], len(wire)), vector["id"])
            cuts = range(len(wire)) if len(wire) <= 300 else [0, 1, 5, 8, len(wire) // 2, len(wire) - 1]
            for cut in cuts:
                self.assertIsNone(self.outcome(vector, wire[:cut]), (vector["id"], cut))
            count += 1
        self.assertGreater(count, 400)

    def test_what_is_malformed(self):
        count = 0
        for vector in vectors("invalid", "reply"):
            wire, wanted = octets(vector["wire"]), (vector["error"], vector["offset"])
            self.assertEqual(self.outcome(vector, wire), wanted, vector["id"])
            for cut in range(min(len(wire), 64)):
                self.assertIn(self.outcome(vector, wire[:cut]), (None, wanted), (vector["id"], cut))
            count += 1
        self.assertGreater(count, 60)

    def test_requests(self):
        count = 0
        for vector in vectors("valid", "request"):
            value, wire = vector["value"], octets(vector["wire"])
            if value["frame"] == "argv":
                words = octets(vector["argv"])
                self.assertEqual(respb.argv_frame(value["channel"], resp_array(words)), wire, vector["id"])
            elif value["frame"] == "close" and vector["canonical"]:
                self.assertEqual(respb.close_frame(value["channel"], int(value["code"]), text(value["reason"])), wire)
            else:
                continue
            count += 1
        self.assertGreater(count, 100)


def resp_array(data):
    """The arguments of a RESP array of bulks."""
    words, at = [], data.index(b"\r\n") + 2
    while at < len(data):
        end = data.index(b"\r\n", at)
        length = int(data[at + 1:end])
        words.append(data[end + 2:end + 2 + length])
        at = end + 4 + length
    return words


class WithServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def connect(self, **about):
        connection = respb.Connection("127.0.0.1", self.server.port, **about)
        self.addCleanup(connection.close)
        return connection

    def test_commands_pipelines_and_errors(self):
        server = self.connect(name="clean-room")
        self.assertIn(b"channels", server.about[b"respb"][b"profiles"])
        one, two = server.channel(), server.channel()
        self.assertEqual(one.call("SET", "py", "v"), b"OK")
        futures = [one.send("GET", "py"), two.send("STRLEN", "py"), one.send("INCR", "py"), two.send("HGETALL", "none")]
        self.assertEqual([futures[0].result(), futures[1].result(), futures[3].result()], [b"v", 1, {}])
        with self.assertRaisesRegex(respb.ServerError, "not an integer"):
            futures[2].result()
        large = b"x" * 3_000_000
        self.assertEqual(one.call("SET", "py:large", large), b"OK")
        self.assertEqual(one.call("GET", "py:large"), large)
        self.assertEqual(server.zero.call("CLIENT", "GETNAME"), b"clean-room")

    def test_channels_are_apart_and_numbers_are_used_again(self):
        server = self.connect()
        one, two = server.channel(), server.channel()
        blocked = one.send("BLPOP", "py:list", 0)
        self.assertEqual(two.call("RPUSH", "py:list", "x"), 1)
        self.assertEqual(blocked.result(), [b"py:list", b"x"])
        one.call("SELECT", 3)
        one.close()
        two.call("PING")
        again = server.channel()
        self.assertEqual((again.number, again.call("CLIENT", "INFO").count(b" db=0 ")), (1, 1))
        idle = server.channel()
        idle.close()
        self.assertEqual(two.call("SUBSCRIBE", "py:news"), [[b"subscribe", b"py:news", 1]])
        self.assertEqual(again.call("PUBLISH", "py:news", "hello"), 1)
        self.assertEqual(two.push(), [b"message", b"py:news", b"hello"])

    def test_a_killed_channel_and_the_others(self):
        server = self.connect()
        victim, other = server.channel(), server.channel()
        number = victim.call("CLIENT", "ID")
        blocked = victim.send("BLPOP", "py:never", 0)
        self.assertEqual(other.call("CLIENT", "KILL", "ID", number), 1)
        with self.assertRaisesRegex(respb.ChannelClosed, "code 4: killed"):
            blocked.result()
        self.assertEqual(other.call("PING"), b"PONG")

    def test_going_away(self):
        with Server() as server:
            connection = respb.Connection("127.0.0.1", server.port)
            channel = connection.channel()
            blocked = channel.send("BLPOP", "py:never", 0)
            self.assertEqual(connection.zero.call("PING"), b"PONG")
            server.signal_stop()
            with self.assertRaisesRegex(respb.WentAway, "code 6: the server shuts down"):
                blocked.result()
            with self.assertRaises(respb.WentAway):
                channel.call("PING")
            connection.close()

    def test_a_refusal_before_the_protocol_is_known(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def refuse():
                peer, _ = listener.accept()
                with peer:
                    peer.sendall(b"-ERR max number of clients reached\r\n")
            thread = threading.Thread(target=refuse)
            thread.start()
            with self.assertRaisesRegex(respb.ConnectionLost, "ERR max number of clients reached|reset"):
                respb.Connection("127.0.0.1", listener.getsockname()[1])
            thread.join()


if __name__ == "__main__":
    unittest.main()
