"""A client for RESPB/1, profile Channels, written from spec/RESPB.md and the vectors alone.

It owns frames, replies and the life of channels on one blocking socket. It has no command table: every command goes as
ARGV (section 3.6), which a server of any profile understands. One thread uses a connection.

    with Connection("127.0.0.1", 6379) as server:
        one, two = server.channel(), server.channel()
        one.call("SET", "key", "value")
        for future in [one.send("GET", "key"), two.send("INCR", "n")]:
            print(future.result())
"""

import collections
import socket
import struct

ARGV, CLOSE, CANCEL, WINDOW, GOAWAY, PASSTHROUGH = 0xF001, 0xFF01, 0xFF02, 0xFF03, 0xFF04, 0xFFFF


class WireError(Exception):
    """Bytes that are no frame: a name of spec/errors.json, and the offset in the frame."""

    def __init__(self, name, offset):
        super().__init__(f"{name} at offset {offset}")
        self.name, self.offset = name, offset


class Incomplete(Exception):
    """A frame is well-formed so far and not yet whole: nothing is gained before `need` bytes are there."""

    def __init__(self, need):
        super().__init__(need)
        self.need = need


class ServerError(Exception):
    """An error reply."""


class ChannelClosed(Exception):
    """The server has closed the channel; whether what was asked has run is not known."""


class ConnectionLost(Exception):
    """The connection has ended; whether what was asked has run is not known."""


class WentAway(ConnectionLost):
    """The server has ended the connection and said why. What was asked and has no reply did not run."""

    def __init__(self, code, reason):
        super().__init__(f"code {code}: {reason}")
        self.code, self.reason = code, reason


# Values of replies that Python has no type for, control frames, and what of the rest a client passes over.
Simple = collections.namedtuple("Simple", "text")
Error = collections.namedtuple("Error", "text")
BigNumber = collections.namedtuple("BigNumber", "digits")
Verbatim = collections.namedtuple("Verbatim", "format text")
Map = collections.namedtuple("Map", "pairs")
Set = collections.namedtuple("Set", "items")
Push = collections.namedtuple("Push", "items")
Attributed = collections.namedtuple("Attributed", "pairs value")
Close = collections.namedtuple("Close", "code reason")
GoAway = collections.namedtuple("GoAway", "code reason")
Unknown = collections.namedtuple("Unknown", "opcode")

Frame = collections.namedtuple("Frame", "channel value length")


class Decoder:
    """Decodes one frame of a server at the start of a buffer."""

    def __init__(self, frame_bytes_max=1 << 30, argument_bytes_max=512 << 20, nesting_max=128, elements_max=2**32 - 1):
        self.frame_bytes_max, self.argument_bytes_max = frame_bytes_max, argument_bytes_max
        self.nesting_max, self.elements_max = nesting_max, elements_max

    def decode(self, data):
        """The frame; raises Incomplete or WireError."""
        self.data, self.at = data, 0
        opcode, channel = self.number(">H"), self.number(">H")
        if opcode <= 0x07FF or opcode in (0xF000, ARGV, CANCEL, WINDOW, PASSTHROUGH):
            raise WireError("wrong-direction", 0)
        if opcode >= 0xF002:
            return Frame(channel, self.carried(opcode), self.at)
        high, low = opcode >> 8, opcode & 0xFF
        if high in (0x81, 0x82, 0x83):
            value = low if high == 0x81 else self.take(low, 0)
            return Frame(channel, Simple(value) if high == 0x83 else value, self.at)
        if high != 0x80 or low > 0x10:
            raise WireError("unknown-opcode", 0)
        return Frame(channel, self.value(low, 0, 0, True), self.at)

    def need(self, count, offset):
        """So many bytes from here on: `offset` is where an error about them is."""
        if self.at + count > self.frame_bytes_max:
            raise WireError("frame-too-long", offset)
        if self.at + count > len(self.data):
            raise Incomplete(self.at + count)

    def number(self, form, offset=None):
        size = struct.calcsize(form)
        self.need(size, self.at if offset is None else offset)
        (number,) = struct.unpack_from(form, self.data, self.at)
        self.at += size
        return number

    def take(self, count, offset):
        if count > self.argument_bytes_max:
            raise WireError("argument-too-long", offset)
        self.need(count, offset)
        piece = bytes(self.data[self.at:self.at + count])
        self.at += count
        return piece

    def carried(self, opcode):
        length = self.number(">I")
        self.need(length, 4)
        payload, self.at = bytes(self.data[self.at:self.at + length]), self.at + length
        if opcode == CLOSE and not payload:
            return Close(0, b"")
        if opcode in (CLOSE, GOAWAY):
            if length < 2:
                raise WireError("bad-control", 8)
            kind = Close if opcode == CLOSE else GoAway
            return kind(struct.unpack_from(">H", payload)[0], payload[2:])
        return Unknown(opcode)

    def value(self, kind, offset, depth, top=False):
        """A value of this type; `offset` is that of its opcode or tag, `depth` how many aggregates it is in."""
        if kind == 0x00:
            return Simple(b"OK")
        if kind in (0x01, 0x0B):
            length = self.number(">H")
            text = self.take(length, self.at - 2)
            return Error(text) if kind == 0x01 else Simple(text)
        if kind in (0x02, 0x10):
            return self.number(">q" if kind == 0x02 else ">i")
        if kind in (0x03, 0x0F):
            at = self.at
            text = self.take(self.number(">I"), at)
            return Error(text) if kind == 0x0F else text
        if kind == 0x05:
            return None
        if kind == 0x06:
            at, truth = self.at, self.number(">B")
            if truth > 1:
                raise WireError("bad-bool", at)
            return truth == 1
        if kind == 0x07:
            return self.number(">d")
        if kind == 0x0C:
            return self.big()
        if kind == 0x0D:
            at = self.at
            self.need(3, at)
            form, self.at = bytes(self.data[at:at + 3]), at + 3
            return Verbatim(form, self.take(self.number(">I"), at + 3))
        if kind in (0x04, 0x08, 0x09, 0x0A, 0x0E):
            return self.aggregate(kind, offset, depth, top)
        raise WireError("unknown-tag", offset)

    def big(self):
        at = self.at
        digits = self.take(self.number(">I"), at)
        if not digits[digits[:1] in (b"-", b"+"):].isdigit():
            raise WireError("bad-number", at + 4)
        return BigNumber(digits)

    def aggregate(self, kind, offset, depth, top):
        if kind == 0x0A and not top:
            raise WireError("misplaced", offset)
        count = self.number(">I")
        if count > self.elements_max:
            raise WireError("too-many-elements", offset)
        if depth >= self.nesting_max:
            raise WireError("too-deep", offset)
        if kind in (0x08, 0x0E):
            pairs = [(self.element(depth + 1), self.element(depth + 1)) for _ in range(count)]
            # An attribute's value is not inside it.
            return Map(pairs) if kind == 0x08 else Attributed(pairs, self.element(depth))
        items = [self.element(depth + 1) for _ in range(count)]
        return {0x04: list, 0x09: Set, 0x0A: Push}[kind](items)

    def element(self, depth):
        at, tag = self.at, self.number(">B")
        if tag >= 0x80:
            return self.take(tag & 0x7F, at)
        if tag >= 0x40:
            return tag - 0x41
        return self.value(tag, at, depth)


def argv_frame(channel, arguments):
    """A command as ARGV."""
    words = (each if isinstance(each, bytes) else str(each).encode() for each in arguments)
    payload = b"".join(struct.pack(">I", len(word)) + word for word in words)
    return struct.pack(">HHI", ARGV, channel, len(payload)) + payload


def close_frame(channel, code=0, reason=b""):
    """CLOSE; code 0 without a reason is an empty payload."""
    payload = struct.pack(">H", code) + reason if code or reason else b""
    return struct.pack(">HHI", CLOSE, channel, len(payload)) + payload


def plain(value):
    """A reply without wrappers: maps are dictionaries, an attribute's value stands for it, errors are raised."""
    if isinstance(value, Error):
        raise ServerError(value.text.decode(errors="replace"))
    if isinstance(value, Attributed):
        return plain(value.value)
    if isinstance(value, Map):
        return {plain(key): plain(item) for key, item in value.pairs}
    if isinstance(value, (Set, Push)):
        return [plain(item) for item in value.items]
    if isinstance(value, list):
        return [item if isinstance(item, Error) else plain(item) for item in value]
    if isinstance(value, BigNumber):
        return int(value.digits)
    return value.text if isinstance(value, (Simple, Verbatim)) else value


class Future:
    """The reply to one request."""

    def __init__(self, channel):
        self.channel, self.is_done, self.reply, self.error = channel, False, None, None

    def result(self):
        """Waits for the reply; raises what it was, or why there is none."""
        while not self.is_done:
            self.channel.connection.receive()
        if self.error:
            raise self.error
        return plain(self.reply)

    def finish(self, reply=None, error=None):
        self.is_done, self.reply, self.error = True, reply, error


class Channel:
    """A logical client. `pushes` holds what the server has sent unasked."""

    def __init__(self, connection, number):
        self.connection, self.number = connection, number
        self.due, self.pushes, self.end = collections.deque(), collections.deque(), None

    def send(self, *arguments):
        """Sends a command; many may be under way."""
        if self.end or self.connection.end:
            raise self.end or self.connection.end
        future = Future(self)
        self.due.append(future)
        self.connection.used.add(self.number)
        self.connection.write(argv_frame(self.number, arguments))
        return future

    def call(self, *arguments):
        """Sends a command and gives its reply."""
        return self.send(*arguments).result()

    def push(self):
        """The next push, as a list."""
        while not self.pushes:
            if self.end or self.connection.end:
                raise self.end or self.connection.end
            self.connection.receive()
        return self.pushes.popleft()

    def close(self):
        """Ends the channel. What it has asked for and has no reply is void."""
        if not self.end and not self.connection.end:
            self.connection.close_channel(self)

    def finish(self, error):
        self.end = self.end or error
        while self.due:
            self.due.popleft().finish(error=error)


class Connection:
    """A connection with its channels. Channel 0 is there from the start and has the user that others begin with."""

    def __init__(self, host, port, user=None, password=None, name=None):
        self.socket = socket.create_connection((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data, self.decoder = bytearray(), Decoder()
        self.end, self.goes_away, self.is_first, self.needed = None, None, True, 0
        # Numbers with a frame on the wire, those whose CLOSE is not answered, and the channels by number.
        self.used, self.closing, self.channels = {0}, set(), {}
        self.zero = self.channels[0] = Channel(self, 0)
        login = ["AUTH", user or "default", password] if password is not None else []
        self.about = self.zero.call("HELLO", 3, *login, *(["SETNAME", name] if name is not None else []))
        self.channels_max = self.about[b"respb"][b"limits"].get(b"channels", 1 << 16)

    def channel(self):
        """A channel that is not in use, the lowest number first."""
        for number in range(1, self.channels_max):
            if number not in self.channels and number not in self.closing:
                channel = self.channels[number] = Channel(self, number)
                return channel
        raise ChannelClosed("all channels of the connection are in use")

    def close_channel(self, channel):
        if channel.number == 0:
            raise ValueError("channel 0 is the connection's: close that")
        channel.finish(ChannelClosed("closed by this side"))
        del self.channels[channel.number]
        # A channel without a frame is idle: CLOSE must not be sent on it.
        if channel.number in self.used:
            self.used.discard(channel.number)
            self.closing.add(channel.number)
            self.write(close_frame(channel.number))

    def write(self, frame):
        # Behind GOAWAY nothing more is sent; the end of the stream tells who asked that it did not run.
        if not self.goes_away:
            try:
                self.socket.sendall(frame)
            except OSError as error:
                self.fail(ConnectionLost(str(error)))

    def receive(self):
        """Handles what has come, at least one frame or the end."""
        while not self.end:
            if self.is_first and self.data[:1] == b"-":
                return self.refused()
            if len(self.data) < max(self.needed, 1):
                self.read()
                continue
            try:
                frame = self.decoder.decode(self.data)
            except Incomplete as error:
                self.needed = error.need
                continue
            except WireError as error:
                return self.fail(ConnectionLost(f"the server sent {error}"))
            self.is_first, self.needed = False, 0
            del self.data[:frame.length]
            return self.handle(frame)

    def read(self):
        try:
            piece = self.socket.recv(1 << 16)
        except OSError as error:
            return self.fail(ConnectionLost(str(error)))
        if not piece:
            # Only a stream that ends behind a whole frame and GOAWAY has a clean end.
            is_clean = self.goes_away and not self.data
            return self.fail(self.goes_away if is_clean else ConnectionLost("the stream has ended"))
        self.data += piece

    def refused(self):
        """A server that did not know our protocol yet sends an error line of RESP."""
        while b"\r\n" not in self.data and not self.end:
            self.read()
        self.fail(ConnectionLost(bytes(self.data[1:]).partition(b"\r\n")[0].decode(errors="replace")))

    def handle(self, frame):
        number, value = frame.channel, frame.value
        if isinstance(value, GoAway):
            self.goes_away = WentAway(value.code, value.reason.decode(errors="replace"))
        elif isinstance(value, Close):
            self.closed(number, value)
        elif isinstance(value, Unknown) or number in self.closing:
            pass
        elif number not in self.channels:
            self.fail(ConnectionLost("a frame on a channel that is not open"))
        elif isinstance(value, Push):
            self.channels[number].pushes.append(plain(value))
        elif not self.channels[number].due:
            self.fail(ConnectionLost("a reply that nothing asked for"))
        else:
            self.channels[number].due.popleft().finish(reply=value)

    def closed(self, number, why):
        if number in self.closing:
            self.closing.discard(number)
        elif number in self.used:
            self.write(close_frame(number))
            self.used.discard(number)
            self.channels.pop(number).finish(ChannelClosed(f"code {why.code}: {why.reason.decode(errors='replace')}"))

    def fail(self, error):
        self.end = self.end or error
        self.socket.close()
        for channel in self.channels.values():
            channel.finish(self.end)

    def close(self):
        """Ends the connection and all its channels."""
        self.fail(ConnectionLost("closed by this side"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
