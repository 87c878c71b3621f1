"""Owns: whether examples/python passes each vector of profile *Channels*: whole, with other bytes behind, byte by byte,
cut in two, encoded again. Does not own the client. What a client lacks (encoding replies, reading requests) stands here,
as small as it can be and written from the specification like the client, so that no vector is left out."""

import json
import pathlib
import struct
import sys
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "examples" / "python"))

import respb  # noqa: E402 (found by the line above)
from respb import Attribute, Big, Decoder, Map, ReplyError, Set, Simple, Verbatim, WireError  # noqa: E402

FOLDER = REPOSITORY / "conformance/vectors/respb/channels"
VALID, INVALID = 656, 153
BEHIND = (b"", b"\0" * 16, b"\xff" * 16, b"\r\n\r\n", b"*1\r\n$4\r\nPING\r\n")


def unhex(value):
    if isinstance(value, str):
        return bytes.fromhex(value)
    return b"".join(bytes.fromhex(p) if isinstance(p, str) else bytes.fromhex(p["repeat"]) * p["count"] for p in value)


def text(value):
    return value["text"].encode() if "text" in value else unhex(value["bytes"])


def several(trees):
    out = []
    for each in trees:
        out += several(each["repeat"]) * each["count"] if "repeat" in each else [tree(each)]
    return out


def nested(value):
    inner = tree(value["value"])
    for _ in range(value["depth"]):
        inner = {
            "array": lambda v: [v],
            "set": lambda v: Set([v]),
            "map_value": lambda v: Map([(b"k", v)]),
            "map_key": lambda v: Map([(v, None)]),
        }[value["nest"]](inner)
    return inner


def tree(value):
    """A vector's tree as the client's values."""

    def pairs(name):
        return Map((tree(key), tree(each)) for key, each in value[name])

    makers = {
        "nest": lambda: nested(value),
        "simple": lambda: Simple(text(value["simple"])),
        "error": lambda: ReplyError(text(value["error"])),
        "bulk": lambda: text(value["bulk"]),
        "big": lambda: Big(text(value["big"])),
        "int": lambda: int(value["int"]),
        "double": lambda: struct.unpack(">d", bytes.fromhex(value["bits"]))[0],
        "bool": lambda: value["bool"],
        "null": lambda: None,
        "verbatim": lambda: Verbatim(value["verbatim"][0].encode(), text(value["verbatim"][1])),
        "array": lambda: several(value["array"]),
        "push": lambda: several(value["push"]),
        "set": lambda: Set(several(value["set"])),
        "map": lambda: pairs("map"),
        "attribute": lambda: Attribute(pairs("attribute"), tree(value["value"])),
    }
    return next(make for name, make in makers.items() if name in value)()


def same(a, b):
    """Equal, types and the bits of doubles included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack(">d", a) == struct.pack(">d", b)
    if isinstance(a, ReplyError):
        return a.text == b.text
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def as_value(kind, value):
    """Type and payload of section 5.1, without what only a frame or only an element has."""
    if value is None:
        return b"\x05", b""
    if isinstance(value, bool):
        return b"\x06", bytes([value])
    if isinstance(value, int):
        short = -(1 << 31) <= value < 1 << 31
        return (b"\x10", struct.pack(">i", value)) if short else (b"\x02", struct.pack(">q", value))
    if isinstance(value, float):
        return b"\x07", struct.pack(">d", value) if value == value else b"\x7f\xf8" + bytes(6)
    if isinstance(value, ReplyError):
        return (b"\x01", size(value.text, ">H")) if len(value.text) < 65536 else (b"\x0f", size(value.text, ">I"))
    if isinstance(value, Big):
        return b"\x0c", size(value, ">I")
    if isinstance(value, Simple) and len(value) < 65536:
        return (b"\0", b"") if value == b"OK" else (b"\x0b", size(value, ">H"))
    if isinstance(value, bytes):
        return b"\x03", size(value, ">I")
    if isinstance(value, Verbatim):
        return b"\x0d", value.form + size(value.text, ">I")
    if isinstance(value, Map):
        return b"\x08", struct.pack(">I", len(value)) + b"".join(element(each) for pair in value for each in pair)
    if isinstance(value, Attribute):
        return b"\x0e", as_value(kind, value.pairs)[1] + element(value.value)
    return b"\x09" if isinstance(value, Set) else kind, struct.pack(">I", len(value)) + b"".join(map(element, value))


def size(data, form):
    return struct.pack(form, len(data)) + data


def element(value):
    if type(value) is int and -1 <= value <= 62:
        return bytes([value + 0x41])
    if type(value) is bytes and len(value) < 128:
        return bytes([0x80 + len(value)]) + value
    return b"".join(as_value(b"\x04", value))


def encode_reply(channel, value, push=False):
    number = struct.pack(">H", channel)
    if type(value) is int and 0 <= value < 256:
        return bytes([0x81, value]) + number
    if type(value) in (bytes, Simple) and len(value) < 256 and not (type(value) is Simple and value == b"OK"):
        return bytes([0x82 if type(value) is bytes else 0x83, len(value)]) + number + value
    tag, payload = as_value(b"\x0a" if push else b"\x04", value)
    return b"\x80" + tag + number + payload


def decode_request(data, limits, early):
    """What a server of *Channels* does with the frame at the start of the data: the frame and its length, or None."""
    if len(data) < 4:
        return None
    opcode, channel = struct.unpack(">HH", data[:4])
    if 0x8000 <= opcode < 0x9000 or opcode in (0xFF04, 0xFF10):
        raise WireError("wrong-direction", 0)
    if opcode < 0xF001:
        raise WireError("unknown-opcode", 0)
    if len(data) < 8:
        return None
    length = int.from_bytes(data[4:8], "big")
    if 8 + length > limits.frame_bytes:
        raise WireError("frame-too-long", 4)
    if opcode == 0xF001 and length == 0:
        raise WireError("empty-command", 4)
    at, arguments = 8, []
    while opcode == 0xF001 and at < 8 + length:
        if 8 + length - at < 4:
            raise WireError("length-mismatch", at)
        if len(data) < at + 4:
            return None
        count = int.from_bytes(data[at : at + 4], "big")
        if at + 4 + count > 8 + length:
            raise WireError("length-mismatch", at)
        if count > limits.argument_bytes:
            raise WireError("unauthenticated-argument" if early else "argument-too-long", at)
        if len(arguments) == limits.arguments:
            raise WireError("unauthenticated-arguments" if early else "too-many-arguments", at)
        arguments.append(data[at + 4 : at + 4 + count])
        at += 4 + count
    if len(data) < 8 + length:
        return None
    payload = data[8 : 8 + length]
    if opcode == 0xFF01:
        if length == 1:
            raise WireError("bad-control", 8)
        arguments = int.from_bytes(payload[:2], "big"), payload[2:]
    return opcode, channel, arguments, 8 + length


class Reader:
    """One frame of either direction, fed in pieces."""

    def __init__(self, vector, limits):
        self.decoder = Decoder(limits) if vector["direction"] == "reply" else None
        self.data, self.limits, self.early = b"", limits, "unauthenticated" in vector.get("limits", ())
        self.frame = None

    def feed(self, piece):
        """True once the frame is there."""
        if self.decoder:
            for frame in self.decoder.feed(piece):
                self.frame, self.length = frame, None
                break
        else:
            self.data += piece
            if frame := decode_request(self.data, self.limits, self.early):
                *self.frame, self.length = frame
        return self.frame is not None


def cuts(length):
    """Every byte of a short frame; of others the ends and a few between."""
    if length <= 300:
        return range(1, length)
    return sorted({*range(1, 17), *range(length - 8, length), *range(17, length, length // 5)})


def arguments_of(value):
    return [text(a) for e in value["args"] for a in (e["repeat"] * e["count"] if "repeat" in e else [e])]


class Vectors(unittest.TestCase):
    def check(self, vector, reader, expected):
        value, frame = vector["value"], reader.frame
        if reader.decoder:
            self.assertEqual(frame.channel, value["channel"])
            if value["frame"] in ("reply", "push"):
                self.assertEqual(frame.opcode == 0x800A, value["frame"] == "push")
                self.assertTrue(same(frame.value, expected))
                return
            opcode, told = frame.opcode, (frame.code, frame.reason)
        else:
            opcode, channel, told = frame
            self.assertEqual(channel, value["channel"])
        if value["frame"] == "argv":
            self.assertEqual(told, arguments_of(value))
        elif value["frame"] == "unknown":
            self.assertEqual(opcode, int(value["opcode"], 16))
            self.assertEqual(opcode >= 0xFF00, value["ignorable"])
        else:
            self.assertEqual(opcode, {"close": 0xFF01, "goaway": 0xFF04}[value["frame"]])
            self.assertEqual(told, (int(value["code"]), text(value["reason"])))

    def valid(self, vector, wire, limits):
        if not vector.get("encode_only"):
            expected = tree(vector["value"]["reply"]) if "reply" in vector["value"] else None
            for behind in BEHIND:
                reader = Reader(vector, limits)
                self.assertTrue(reader.feed(wire + behind))
                if reader.decoder:
                    self.assertEqual(reader.decoder.buffer, behind)
                else:
                    self.assertEqual(reader.length, len(wire))
                self.check(vector, reader, expected)
            whole = [[wire[at : at + 1] for at in range(len(wire))]] if len(wire) < 20_000 else []
            for pieces in whole + [[wire[:at], wire[at:]] for at in cuts(len(wire))]:
                reader = Reader(vector, limits)
                for piece in pieces[:-1]:
                    self.assertFalse(reader.feed(piece))
                self.assertTrue(reader.feed(pieces[-1]))
                self.check(vector, reader, expected)
        self.encode(vector, wire)

    def encode(self, vector, wire):
        value = vector["value"]
        if not vector["canonical"] and "canonical_wire" not in vector:
            return
        expected = wire if vector["canonical"] else unhex(vector["canonical_wire"])
        if value["frame"] == "argv":
            encoded = respb.encode_argv(value["channel"], arguments_of(value))
        elif value["frame"] == "close":
            encoded = respb.encode_close(value["channel"], int(value["code"]), text(value["reason"]))
        elif value["frame"] == "goaway":
            told = struct.pack(">H", int(value["code"])) + text(value["reason"])
            encoded = struct.pack(">HHI", 0xFF04, value["channel"], len(told)) + told
        else:
            encoded = encode_reply(value["channel"], tree(value["reply"]), value["frame"] == "push")
        self.assertEqual(encoded, expected)

    def invalid(self, vector, wire, limits):
        wanted = vector["error"], vector["offset"]

        def refused(pieces):
            reader = Reader(vector, limits)
            for piece in pieces:
                try:
                    self.assertFalse(reader.feed(piece))
                except WireError as error:
                    self.assertEqual((error.name, error.offset), wanted)
                    return
            self.fail("not refused")

        for behind in BEHIND:
            refused([wire + behind])
        refused(wire[at : at + 1] for at in range(len(wire)))
        for at in cuts(len(wire)):
            refused([wire[:at], wire[at:]])

    def test_every_vector(self):
        count = {True: 0, False: 0}
        for path in sorted(FOLDER.glob("*/*.json")):
            for vector in json.loads(path.read_text(encoding="utf-8"))["vectors"]:
                limits = {name.removesuffix("_max"): each for name, each in vector.get("limits", {}).items()}
                limits.pop("unauthenticated", None)
                is_valid = "value" in vector
                with self.subTest(vector["id"]):
                    run = self.valid if is_valid else self.invalid
                    run(vector, unhex(vector["wire"]), respb.DEFAULTS._replace(**limits))
                count[is_valid] += 1
        self.assertEqual((count[True], count[False]), (VALID, INVALID))


if __name__ == "__main__":
    unittest.main()
