"""Owns: a server of the tests' own, on a port of its own, ended with the test. Does not own: what is tested.

WEFT names the program. A server is a child process; nothing here touches one that it did not start.
"""

import os
import select
import signal
import socket
import struct
import subprocess
import time

PROGRAM = os.environ.get("WEFT", "weft")
# What the server says when it cannot have its port.
PORT_TAKEN = "another port with --port"
# What must come is waited for so long: never reached when all is well, however busy the machine is.
START_SECONDS = 240
REPLY_SECONDS = 240
# How often another port is tried when the one that was free is taken before the server has it.
STARTS_MAX = 5


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A running server: `with Server("--maxclients", "5") as server: …`. `file`: that of its configuration.
    `command`: what of `weft` it is."""

    def __init__(self, *flags, threads=2, file=None, command="serve"):
        self.asked = False
        for left in reversed(range(STARTS_MAX)):
            self.port = free_port()
            words = [PROGRAM, command, *([file] if file else []), "--port", str(self.port), "--bind", "127.0.0.1"]
            words += ["--threads", str(threads)]
            self.process = subprocess.Popen(words + [str(flag) for flag in flags], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            if self.answers():
                return
            with self.process.stderr as stderr:
                said = stderr.read().decode()
            if left == 0 or PORT_TAKEN not in said:
                raise AssertionError(said)

    def answers(self):
        """Waits until it does; whether it has not ended."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), START_SECONDS).close()
                # Somebody else may have the port.
                return self.process.poll() is None
            except OSError:
                if self.process.poll() is not None:
                    return False
                if time.monotonic() > deadline:
                    self.stop()
                    raise
                # Nothing tells when a socket begins to listen but trying.
                time.sleep(0.01)

    def connect(self):
        return Wire(self.port)

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def stop(self):
        """SIGTERM; gives the exit status."""
        self.signal_stop()
        status = self.process.wait(REPLY_SECONDS)
        self.process.stderr.close()
        return status

    def signal_stop(self):
        """Asks it to stop, once, and does not wait: asked twice it stops at once."""
        if self.process.poll() is None and not self.asked:
            self.process.send_signal(signal.SIGTERM)
            self.asked = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def halt(server):
    """SIGSTOP; it does nothing more from here on. The signal alone is on its way while its threads run."""
    server.process.send_signal(signal.SIGSTOP)
    os.waitpid(server.process.pid, os.WUNTRACED)


class Closed(Exception):
    """The server has closed the connection."""


class Wire:
    """A raw connection that reads RESP2 and RESP3."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), REPLY_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()

    def send(self, data):
        self.socket.sendall(data)

    def call(self, *words):
        self.send(request(*words))
        return self.reply()

    def fill(self):
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise Closed
        self.buffer += piece

    def take(self, count):
        while len(self.buffer) < count:
            self.fill()
        piece = bytes(self.buffer[:count])
        del self.buffer[:count]
        return piece

    def line(self):
        while b"\r\n" not in self.buffer:
            self.fill()
        line, _, rest = self.buffer.partition(b"\r\n")
        self.buffer = bytearray(rest)
        return bytes(line)

    def reply(self):
        line = self.line()
        kind, text = line[:1], line[1:]
        if kind in b"+-":
            return line.decode()
        if kind == b":":
            return int(text)
        if kind == b"_":
            return None
        if kind in b"$=":
            if text == b"-1":
                return None
            bulk = self.take(int(text) + 2)[:-2]
            return bulk.decode("latin-1")
        if kind in b"*~>":
            return None if text == b"-1" else [self.reply() for _ in range(int(text))]
        if kind == b"%":
            return {self.reply(): self.reply() for _ in range(int(text))}
        if kind in b",#(":
            return text.decode()
        raise AssertionError(f"no reply: {line!r}")

    def is_silent(self, seconds=0.2):
        """Whether nothing comes: for what must not be answered. Bounded, since there is no event to wait for."""
        return not self.buffer and not select.select([self.socket], [], [], seconds)[0]

    def until_closed(self):
        """Everything up to the end of the stream."""
        try:
            while True:
                self.fill()
        except Closed:
            return bytes(self.buffer)
        except ConnectionResetError:
            return bytes(self.buffer)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def request(*words):
    """A command in RESP."""
    pieces = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        pieces.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(pieces)


class Respb(Wire):
    """A raw RESPB connection. A frame is (channel, value) or (channel, ("close", code)), (channel, ("goaway", code,
    reason)) or (channel, ("push", …))."""

    def send_command(self, channel, *words):
        self.send(argv(channel, *words))

    def call_on(self, channel, *words):
        self.send_command(channel, *words)
        got, value = self.frame()
        assert got == channel, (got, channel, value)
        return value

    def frame(self):
        opcode, channel = struct.unpack(">HH", self.take(4))
        if opcode >= 0xF001:
            payload = self.take(struct.unpack(">I", self.take(4))[0])
            if opcode == 0xFF01:
                return channel, ("close", struct.unpack(">H", payload[:2])[0] if payload else 0)
            if opcode == 0xFF04:
                return channel, ("goaway", struct.unpack(">H", payload[:2])[0], payload[2:].decode())
            if opcode == 0xFF10:
                return channel, ("slice", payload[0], payload[1:])
            return channel, ("control", opcode, payload)
        high, low = opcode >> 8, opcode & 0xFF
        if high == 0x81:
            return channel, low
        if high == 0x82:
            return channel, self.take(low).decode("latin-1")
        if high == 0x83:
            return channel, "+" + self.take(low).decode()
        assert high == 0x80, hex(opcode)
        return channel, self.value(low)

    def element(self):
        tag = self.take(1)[0]
        if tag >= 0x80:
            return self.take(tag & 0x7F).decode("latin-1")
        return tag - 0x41 if tag >= 0x40 else self.value(tag)

    def value(self, kind):
        def number(form):
            return struct.unpack(form, self.take(struct.calcsize(form)))[0]

        if kind == 0x00:
            return "+OK"
        if kind == 0x01:
            return "-" + self.take(number(">H")).decode()
        if kind == 0x02:
            return number(">q")
        if kind == 0x03:
            return self.take(number(">I")).decode("latin-1")
        if kind in (0x04, 0x09):
            return [self.element() for _ in range(number(">I"))]
        if kind == 0x0A:
            return ("push", *[self.element() for _ in range(number(">I"))])
        if kind == 0x05:
            return None
        if kind == 0x06:
            return bool(number(">B"))
        if kind == 0x07:
            return number(">d")
        if kind == 0x08:
            return {self.element(): self.element() for _ in range(number(">I"))}
        if kind == 0x0B:
            return "+" + self.take(number(">H")).decode()
        if kind == 0x0D:
            self.take(3)
            return self.take(number(">I")).decode()
        if kind == 0x0F:
            return "-" + self.take(number(">I")).decode()
        if kind == 0x10:
            return number(">i")
        raise AssertionError(hex(kind))


def long_frame(opcode, channel, payload):
    return struct.pack(">HHI", opcode, channel, len(payload)) + payload


def argv(channel, *words):
    """A command as an ARGV frame."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return long_frame(0xF001, channel, b"".join(struct.pack(">I", len(word)) + word for word in words))


def close(channel, code=None):
    return long_frame(0xFF01, channel, b"" if code is None else struct.pack(">H", code))


def cancel(channel, sequence):
    return long_frame(0xFF02, channel, struct.pack(">I", sequence))


def window(channel, more):
    return long_frame(0xFF03, channel, struct.pack(">I", more))


def get(channel, key):
    return struct.pack(">HHH", 0x0000, channel, len(key)) + key.encode()
