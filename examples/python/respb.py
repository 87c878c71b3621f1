"""A client of RESPB/1, profile *Channels*, written from spec/RESPB.md and its vectors alone. Standard library only.

    with Connection("127.0.0.1", 6379) as connection:
        worker = connection.channel()                   # a client of its own: transaction, database, subscriptions
        replies = [worker.send("INCR", "n") for _ in range(100)]    # a pipeline: nothing waits yet
        print(connection.main.call("PING"), replies[-1].result())

Owns the profile's frames as a client sees them, the states of channels, and what becomes of a request without a reply.
Does not own typed frames (every command goes as ARGV), FRAGMENT, WINDOW, CANCEL, TLS, a start over RESP. One thread
uses a connection at a time. Numbers in brackets are sections of the specification.
"""

import selectors
import socket
import struct
import time
from collections import deque, namedtuple
from contextlib import AbstractContextManager

ARGV, CLOSE, GOAWAY = 0xF001, 0xFF01, 0xFF04
NOT_FOR_US = {0xF000, ARGV, 0xFF02, 0xFF03, 0xFFFF, 0xFF10}  # only clients send these; FRAGMENT we did not announce
OK, ERROR, INTEGER, BULK, ARRAY, NULL, BOOLEAN, DOUBLE, MAP, SET, PUSH, SIMPLE = range(12)
BIG, VERBATIM, ATTRIBUTE, LONG_ERROR, SHORT_INTEGER = range(12, 17)
NUMBERS = {INTEGER: ">q", DOUBLE: ">d", SHORT_INTEGER: ">i"}
OUTPUT_BYTES_MAX, READ_BYTES = 1 << 16, 1 << 16  # collected before it is sent unasked; read at once
PUSHES_MAX, REFUSAL_BYTES_MAX = 1 << 16, 1 << 12  # pushes of a channel that nobody took; an error line of RESP (7.1)

# What of section 10 concerns a client; all inclusive.
Limits = namedtuple("Limits", "channels frame_bytes arguments argument_bytes nesting elements")
DEFAULTS = Limits(65536, 1 << 30, (1 << 31) - 1, 1 << 29, 128, (1 << 32) - 1)

# A reply or push has a value, CLOSE and GOAWAY have code and reason; every other frame is to be passed over.
Frame = namedtuple("Frame", "opcode channel value code reason", defaults=(0, b""))

# Values: int, bytes (a bulk), None, bool, float and list (an array, a push) are themselves; others are what follows.
Simple = type("Simple", (bytes,), {"__doc__": 'A simple string; OK is Simple(b"OK").'})
Big = type("Big", (bytes,), {"__doc__": "The digits of a big number."})
Set = type("Set", (list,), {"__doc__": "The elements of a set as they came."})
Verbatim = namedtuple("Verbatim", "form text")
Attribute = namedtuple("Attribute", "pairs value")


class Map(list):
    """The pairs of a map as they came: keys may be of any type, and equal."""

    def get(self, name, default=None):
        return next((value for key, value in self if key == name), default)


class ReplyError(Exception):
    """An error reply, after which everything goes on; inside an aggregate it is a value."""

    def __init__(self, text):
        super().__init__(text.decode("utf-8", "replace"))
        self.text, self.code = text, text.split(b" ", 1)[0].decode("utf-8", "replace")


class WireError(Exception):
    """Bytes that break the rules (11): a name of errors.json, and the offset in the frame (E.4)."""

    def __init__(self, name, offset):
        super().__init__(f"{name} at byte {offset} of the frame: the stream is lost")
        self.name, self.offset = name, offset


class Ended(Exception):
    """The channel or the connection ended before the reply. `ran` is False if the request surely did not run (8.4, 8.5)."""

    def __init__(self, text, code=None, reason=b"", ran=True):
        super().__init__(text if code is None else f"{text} (code {code}): {reason.decode('utf-8', 'replace')}")
        self.code, self.reason, self.ran = code, reason, ran


def encode_argv(channel, arguments, limits=DEFAULTS):
    """A request (3.6). What the server would take for a wire error, which ends every channel, is refused here."""
    parts = [part if isinstance(part, bytes) else str(part).encode() for part in arguments]
    total = sum(4 + len(part) for part in parts)
    if not 1 <= len(parts) <= limits.arguments:
        raise ValueError(f"{len(parts)} arguments: send 1 to {limits.arguments}")
    if max(map(len, parts)) > limits.argument_bytes or 8 + total > limits.frame_bytes:
        raise ValueError(f"send at most {limits.argument_bytes} bytes an argument, {limits.frame_bytes} a frame")
    pieces = (piece for part in parts for piece in (struct.pack(">I", len(part)), part))
    return struct.pack(">HHI", ARGV, channel, total) + b"".join(pieces)


def encode_close(channel, code=0, reason=b""):
    payload = struct.pack(">H", code) + reason if code or reason else b""
    return struct.pack(">HHI", CLOSE, channel, len(payload)) + payload


class _Aggregate:
    """One that lacks `left` values. Its kind is a number of section 5.1, its depth that of what is in it."""

    def __init__(self, kind, count, outer):
        self.kind, self.outer, self.values = kind, outer, []
        self.left = count if kind in (ARRAY, SET, PUSH) else count * 2 + (kind == ATTRIBUTE)

    def depth(self):
        return self.outer + (self.kind != ATTRIBUTE or self.left > 1)  # an attribute's value is on its level (10)

    def finish(self):
        if self.kind in (ARRAY, SET, PUSH):
            return Set(self.values) if self.kind == SET else self.values
        pairs = Map(zip(self.values[0::2], self.values[1::2]))
        return pairs if self.kind == MAP else Attribute(pairs, self.values[-1])


class Decoder:
    """Frames of a server from bytes in pieces of any size. It goes on at the value in which it stopped: linear time."""

    def __init__(self, limits=DEFAULTS):
        self.limits, self.buffer = limits, bytearray()
        self.opcode, self.at, self.open = None, 0, []  # of this frame: the next byte, the aggregates still open

    def feed(self, data):
        """Yields the frames that these bytes complete. WireError is the end."""
        self.buffer += data
        try:
            while True:
                if self.opcode is None:
                    self._header()
                frame = self._reply() if self.opcode < 0x9000 else self._carried()
                del self.buffer[: self.at]
                self.opcode, self.at = None, 0
                yield frame
        except EOFError:  # more bytes are needed
            return

    def _header(self):
        opcode, self.channel = struct.unpack(">HH", self._bytes(0, 4))
        if opcode < 0x0800 or opcode in NOT_FOR_US:
            raise WireError("wrong-direction", 0)
        if not (0x8000 <= opcode <= 0x8010 or 0x8100 <= opcode <= 0x83FF or opcode > 0xF000):
            raise WireError("unknown-opcode", 0)
        self.opcode, self.at = opcode, 4

    def _bytes(self, at, count):
        if len(self.buffer) < at + count:
            raise EOFError
        return bytes(self.buffer[at : at + count])

    def _integer(self, at, width):
        return int.from_bytes(self._bytes(at, width), "big")

    def _field(self, at, form):
        """A field of fixed size, and where it ends."""
        end = at + struct.calcsize(form)
        if end > self.limits.frame_bytes:
            raise WireError("frame-too-long", at)
        return struct.unpack(form, self._bytes(at, end - at))[0], end

    def _carried(self):
        length = self._integer(4, 4)
        if 8 + length > self.limits.frame_bytes:
            raise WireError("frame-too-long", 4)
        if self.opcode == GOAWAY and length < 2 or self.opcode == CLOSE and length == 1:
            raise WireError("bad-control", 8)
        payload, self.at = self._bytes(8, length), 8 + length
        return Frame(self.opcode, self.channel, None, int.from_bytes(payload[:2], "big"), payload[2:])

    def _reply(self):
        while True:
            value, self.at = self._element() if self.open else self._whole()
            while True:
                if isinstance(value, _Aggregate):
                    self.open.append(value)
                elif not self.open:
                    return Frame(self.opcode, self.channel, value)
                else:
                    self.open[-1].values.append(value)
                    self.open[-1].left -= 1
                if self.open[-1].left:
                    break
                value = self.open.pop().finish()

    def _whole(self):
        kind, low = self.opcode >> 8, self.opcode & 0xFF
        if kind == 0x80:
            return self._value(low, 0, 4, 0)
        return (low, 4) if kind == 0x81 else self._text(low, 0, 4, bytes if kind == 0x82 else Simple)

    def _element(self):
        tag, at = self._field(self.at, ">B")
        if tag >= 0x40:
            return self._text(tag - 0x80, self.at, at) if tag >= 0x80 else (tag - 0x41, at)
        if tag > SHORT_INTEGER or tag == PUSH:
            raise WireError("misplaced" if tag == PUSH else "unknown-tag", self.at)
        return self._value(tag, self.at, at, self.open[-1].depth())

    def _value(self, kind, mark, at, depth):
        """A value of type 80tt (5.1), its opcode or tag at `mark`, its payload from `at`; and where that ends."""
        if kind in (OK, NULL):
            return (Simple(b"OK") if kind == OK else None), at
        if kind in (ARRAY, MAP, SET, PUSH, ATTRIBUTE):
            count = self._integer(at, 4)
            if count > self.limits.elements or depth >= self.limits.nesting:
                raise WireError("too-many-elements" if count > self.limits.elements else "too-deep", mark)
            return _Aggregate(kind, count, depth), self._field(at, ">I")[1]
        if kind in NUMBERS:
            return self._field(at, NUMBERS[kind])
        if kind == BOOLEAN:
            number, end = self._field(at, ">B")
            if number > 1:
                raise WireError("bad-bool", at)
            return number == 1, end
        start, width = (at + 3 if kind == VERBATIM else at), (2 if kind in (ERROR, SIMPLE) else 4)
        text, end = self._text(self._integer(start, width), start, start + width)
        if kind == BIG and not text[text[:1] in (b"-", b"+") :].isdigit():
            raise WireError("bad-number", start + width)
        if kind == VERBATIM:
            return Verbatim(self._bytes(at, 3), text), end
        return {BULK: bytes, SIMPLE: Simple, BIG: Big}.get(kind, ReplyError)(text), end

    def _text(self, length, mark, at, kind=bytes):
        if length > self.limits.argument_bytes or at + length > self.limits.frame_bytes:
            raise WireError("argument-too-long" if length > self.limits.argument_bytes else "frame-too-long", mark)
        return kind(self._bytes(at, length)), at + length


class Pending:
    """A request whose reply may not have come yet."""

    def __init__(self, connection):
        self.connection, self.done, self.value = connection, False, None

    def result(self, timeout=None):
        """The reply. Raises an error reply, an end without reply, and TimeoutError, which leaves it pending."""
        self.connection.wait(lambda: self.done, timeout)
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


class Channel:
    """A logical client (8). It opens with its first request and ends for good; connection.channel() gives another."""

    def __init__(self, connection, number):
        self.connection, self.number, self.opened = connection, number, number == 0
        self.closing, self.ended, self.waiting, self.pushes = False, None, deque(), deque()

    def send(self, *arguments):
        """Adds a request to what is sent next, without waiting."""
        if self.closing or self.ended:
            raise self.ended or Ended("the channel is closing", ran=False)
        self.connection.write(encode_argv(self.number, arguments, self.connection.limits))
        pending, self.opened = Pending(self.connection), True
        self.waiting.append(pending)
        self.connection.wait(lambda: len(self.connection.output) <= OUTPUT_BYTES_MAX)
        return pending

    def call(self, *arguments, timeout=None):
        return self.send(*arguments).result(timeout)

    def push(self, timeout=None):
        """The next push."""
        self.connection.wait(lambda: self.pushes or self.ended, timeout)
        if not self.pushes:
            raise self.ended
        return self.pushes.popleft()

    def close(self, code=0, reason=b"", timeout=None):
        """Voids what has no reply, and waits for the answer, after which the number is free; channel 0 starts anew."""
        self.begin_close(code, reason)
        self.connection.wait(lambda: not self.closing, timeout)

    def begin_close(self, code, reason):
        ended = Ended("the channel was closed here", ran=self.opened)
        if not self.opened:  # CLOSE on an idle channel must not be sent (8.1)
            self.end(ended)
        elif not self.closing and not self.ended:
            self.connection.write(encode_close(self.number, code, reason))
            self.closing = True
            self.void(ended)

    def settle(self, value):
        pending = self.waiting.popleft()
        pending.done, pending.value = True, value

    def void(self, ended):
        while self.waiting:
            self.settle(ended)

    def end(self, ended):
        self.closing = False  # both directions have ended
        self.void(ended)
        if self.number and not self.ended:
            self.ended = ended
            self.connection.free.append(self.number)
            del self.connection.channels[self.number]

    def take(self, frame):
        """A frame of this channel from the server."""
        if frame.opcode == CLOSE:
            if not self.closing:
                self.connection.write(encode_close(self.number))
            self.end(Ended("the server closed the channel", frame.code, frame.reason, ran=False))
        elif self.closing:
            return  # all but CLOSE is discarded (8.1)
        elif frame.opcode == 0x8000 | PUSH:
            self.pushes.append(frame.value)
            if len(self.pushes) > PUSHES_MAX and not self.connection.goaway:
                self.begin_close(1, b"too many pushes that nobody takes")
        elif self.waiting:
            self.settle(frame.value)
        else:
            raise WireError("a reply that nothing asked for", 0)


class Connection(AbstractContextManager):
    """Begins with RESPB at once (7.3), by HELLO as ARGV on channel 0, and keeps to the limits that its reply names."""

    def __init__(self, host, port, *, user="default", password=None, name=None, limits=DEFAULTS, timeout=10):
        self.limits, self.decoder, self.output = limits, Decoder(limits), bytearray()
        self.goaway, self.ended, self.begun, self.refusal = None, None, False, b""
        self.channels, self.free = {0: Channel(self, 0)}, list(range(65535, 0, -1))
        self.main = self.channels[0]
        self.socket = socket.create_connection((host, port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(0)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.socket, selectors.EVENT_READ)
        options = (["AUTH", user, password] if password is not None else []) + (["SETNAME", name] if name else [])
        try:
            self.hello = self.main.call("HELLO", "3", *options, timeout=timeout)
        except BaseException:
            self.close()
            raise
        said = self.hello.get(b"respb").get(b"limits")
        self.limits = Limits(*(said.get(name.encode(), ours) for name, ours in zip(Limits._fields, limits)))

    def __exit__(self, *_):
        self.close()

    def channel(self):
        """A channel of a free number, idle until its first request."""
        if self.ended or len(self.channels) >= self.limits.channels:
            raise self.ended or RuntimeError(f"{len(self.channels)} channels are open, as many as may be: close one")
        number = self.free.pop()
        return self.channels.setdefault(number, Channel(self, number))

    def write(self, data):
        if self.ended or self.goaway:
            raise self.ended or self.goaway
        self.output += data

    def wait(self, condition, timeout=None):
        """Sends and reads until the condition holds or the connection has ended, which settles every request."""
        end = None if timeout is None else time.monotonic() + timeout
        while not condition() and not self.ended:
            self._exchange(end)

    def _exchange(self, end):
        """Sends and reads what goes at once: it reads while it sends, so that neither side holds up the other."""
        self.selector.modify(self.socket, selectors.EVENT_READ | (selectors.EVENT_WRITE if self.output else 0))
        events = self.selector.select(None if end is None else max(0, end - time.monotonic()))
        if not events:
            raise TimeoutError("nothing came in time; what was asked for is still pending")
        try:
            if events[0][1] & selectors.EVENT_WRITE:
                del self.output[: self.socket.send(self.output)]
            if events[0][1] & selectors.EVENT_READ:
                self._read(self.socket.recv(READ_BYTES))
        except OSError as error:
            self._end(Ended(f"the connection was lost: {error}"))
        except WireError as error:
            self._end(error)

    def _read(self, data):
        if not data:
            is_clean = self.goaway and not self.decoder.buffer  # and no frame cut off
            self._end(self.goaway if is_clean else Ended("the server ended the connection"))
        elif self.refusal or not self.begun and data[:1] == b"-":  # an error line of RESP (7.1)
            self.refusal += data
            if b"\r\n" in self.refusal or len(self.refusal) > REFUSAL_BYTES_MAX:
                self._end(ReplyError(self.refusal[1:].split(b"\r\n")[0]))
        else:
            self.begun = True
            for frame in self.decoder.feed(data):
                self._take(frame)

    def _take(self, frame):
        channel = self.channels.get(frame.channel)
        if frame.opcode == GOAWAY:  # replies may follow; a clean end then says that the rest did not run (8.5)
            self.goaway = Ended("the server ends the connection", frame.code, frame.reason, ran=False)
            self.output.clear()
        elif frame.opcode < 0x9000 and not (channel and channel.opened):
            raise WireError("a reply on an idle channel", 0)
        elif frame.opcode < 0x9000 or frame.opcode == CLOSE and channel and channel.opened and not self.goaway:
            channel.take(frame)

    def _end(self, ended):
        if not self.ended:
            self.ended = self.main.ended = ended
            for channel in list(self.channels.values()):
                channel.end(ended)
            self.selector.close()
            self.socket.close()

    def close(self):
        self._end(Ended("the connection was closed here"))
