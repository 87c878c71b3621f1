"""Owns: how many instructions a request costs inside Valkey in RESP3, in RESP3 with the parser of integrations/valkey/measure, and in
RESPB, counted by callgrind with fixed work. Does not own: the page (valkey_page.py), that build (integrations/valkey/build)."""

import os
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

REQUESTS = int(os.environ.get("REQUESTS") or 6000)
# Counted so often, each way in turn: what the server does by the clock falls into some.
ROUNDS = 3
KEY = b"key:000000000001"
WAYS = ("RESP3", "RESP3, better parser", "RESPB")
SEED = 1
# What callgrind says of them is of all that they call.
OUTER = re.compile(r"main|\(below|__libc_start|0x0")


def resp(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def cells():
    """(title, pipeline, for each way one request and its reply)."""
    for size, name in ((16, "16 B"), (1024, "1 KB")):
        value = b"x" * size
        bulk = b"$%d\r\n%s\r\n" % (size, value)
        bulk_b = (struct.pack(">HH", 0x8200 | size, 0) if size <= 255 else struct.pack(">HHI", 0x8003, 0, size)) + value
        key = struct.pack(">HH", 0, len(KEY)) + KEY
        for command, in_resp, in_respb in (
            ("GET", (resp(b"GET", KEY), bulk), (struct.pack(">H", 0) + key, bulk_b)),
            ("SET", (resp(b"SET", KEY, value), b"+OK\r\n"),
             (struct.pack(">H", 1) + key + struct.pack(">I", size) + value + b"\0", struct.pack(">HH", 0x8000, 0))),
        ):
            for pipeline in (1, 16, 100):
                yield f"{command} {name}, pipeline {pipeline}", pipeline, (in_resp, in_resp, in_respb)


class Counted:
    """A valkey-server under callgrind, whose counters are set to nothing and read while it runs."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp()
        path = os.path.join(self.folder, "socket")
        words = [program, "--port", "0", "--unixsocket", path, "--save", "", "--dir", self.folder, "--respb-enabled", "yes", "--hz", "1"]
        self.process = subprocess.Popen(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={self.folder}/out", *words],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder)
        self.path, end = path, time.monotonic() + 120
        while not os.path.exists(path):
            if self.process.poll() is not None or time.monotonic() > end:
                sys.exit("bench-valkey: valkey-server under valgrind does not begin")
            time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)

    def connect(self):
        wire = socket.socket(socket.AF_UNIX)
        wire.settimeout(120)
        wire.connect(self.path)
        return wire

    def set_fast(self, on):
        with self.connect() as wire:
            wire.sendall(resp(b"CONFIG", b"SET", b"fast-resp", b"yes" if on else b"no"))
            assert wire.recv(100) == b"+OK\r\n", "not a build for measuring"

    def control(self, flag):
        done = subprocess.run(["callgrind_control", flag, str(self.process.pid)], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"bench-valkey: callgrind_control {flag}: {done.stdout}{done.stderr}")

    def dumped(self):
        """Instructions since zero(), by function."""
        before = set(os.listdir(self.folder))
        self.control("--dump")
        (name,) = (name for name in set(os.listdir(self.folder)) - before if name.startswith("out"))
        said = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", os.path.join(self.folder, name)],
                              capture_output=True, text=True, check=True).stdout
        total = int(re.search(r"^\s*([\d,]+).*PROGRAM TOTALS", said, re.M).group(1).replace(",", ""))
        found = {}
        for count, function in re.findall(r"^\s*([\d,]+) \([\s\d.]+%\)\s+\S*?:(\S+)", said, re.M):
            if OUTER.match(function):
                continue
            function = re.sub(r"\.(isra|constprop|part|lto_priv|cold)\b[.\d]*", "", function).split("'")[0]
            found[function] = found.get(function, 0) + int(count.replace(",", ""))
        return total, found


def drive(wire, request, reply, pipeline, count):
    """Sends `count` requests, `pipeline` at a time, and compares every reply."""
    batch, expected = request * pipeline, reply * pipeline
    for _ in range(count // pipeline):
        wire.sendall(batch)
        got = bytearray()
        while len(got) < len(expected):
            more = wire.recv(1 << 20)
            assert more, "the server has closed the connection"
            got += more
        assert got == expected, (bytes(got[:200]), expected[:200])


def agree(server):
    """Both parsers of RESP say the same of requests of all kinds, in pieces: what this measures is not bought with mistakes."""
    dice = random.Random(SEED)
    word = lambda most: bytes(dice.choices(b"ab\r\n$*1 ", k=dice.randint(0, most)))
    kinds = [
        lambda: resp(dice.choice((b"SET", b"set", b"SeT")), b"k%d" % dice.randint(0, 9), word(dice.choice((3, 30, 300, 3000, 20_000)))),
        lambda: resp(dice.choice((b"GET", b"get", b"STRLEN", b"TYPE", b"TTL")), b"k%d" % dice.randint(0, 9)),
        lambda: resp(b"MGET", *(b"k%d" % at for at in range(dice.randint(0, 14)))),
        lambda: resp(b"SET"), lambda: resp(b"NOSUCH", b"x"), lambda: resp(b"INCRBYFLOAT", b"f", b"1"), lambda: b"PING inline\r\n",
        lambda: resp(b"OBJECT", b"ENCODING", b"k1"), lambda: resp(b"APPEND", b"k2", word(20)), lambda: b"*0\r\n", lambda: resp(b"CONFIG", b"NO"),
    ]
    bad = [b"*2\r\n$3\r\nGET\r\n$01\r\na\r\n", b"*2\r\n$3\r\nGETxx$1\r\na\r\n", b"*2\r\n$3\r\nGET\r\n$1\r\nab\r\n", b"*2\r\n$3\r\nGET\r\n:1\r\n",
           b"*1\r\n$-1\r\n", b"*2\r\n$3\r\nGET\r\n$1x\r\na\r\n", b"*a\r\n"]
    for number in range(40):
        stream = b"".join(dice.choice(kinds)() for _ in range(100)) + resp(b"ECHO", b"the end")
        stream += bad[number % len(bad)]
        pieces, at = [], 0
        while at < len(stream):
            pieces.append(stream[at : at + dice.choice((1, 7, 100, 16_384, 40_000))])
            at += len(pieces[-1])
        answers = []
        for fast in (False, True):
            server.set_fast(fast)
            with server.connect() as wire:
                wire.sendall(resp(b"FLUSHALL"))
                got = b""
                for piece in pieces:
                    wire.sendall(piece)
                    got += receive(wire, False)
                answers.append(got + receive(wire, True))
        assert b"the end\r\n-ERR Protocol error" in answers[0], answers[0][-100:]
        assert answers[0] == answers[1], f"seed {SEED}, stream {number}: the parsers differ"


def receive(wire, to_end):
    """What there is, or all until the server closes."""
    got = b""
    wire.setblocking(to_end)
    while True:
        try:
            more = wire.recv(1 << 20)
        except BlockingIOError:
            break
        if not more:
            break
        got += more
    wire.settimeout(120)
    return got


def count(server, way, pipeline, request, reply):
    """Instructions a request, and those of each function."""
    server.set_fast(way == WAYS[1])
    with server.connect() as wire:
        drive(wire, request, reply, pipeline, 10 * pipeline)
        server.control("--zero")
        requests = max(REQUESTS // (3 if pipeline == 1 else 1) // pipeline, 1) * pipeline
        drive(wire, request, reply, pipeline, requests)
        total, functions = server.dumped()
    return total / requests, {name: each / requests for name, each in functions.items()}


def measure(program):
    found = {}
    with Counted(program) as server:
        agree(server)
        for title, pipeline, ways in cells():
            with server.connect() as wire:
                drive(wire, resp(b"SET", KEY, b"x" * (1024 if "1 KB" in title else 16)), b"+OK\r\n", 1, 1)
            runs = {way: [] for way in WAYS}
            for _ in range(ROUNDS):
                for way, (request, reply) in zip(WAYS, ways):
                    runs[way].append(count(server, way, pipeline, request, reply))
            found[title] = {}
            for way, counts in runs.items():
                total, functions = sorted(counts, key=lambda each: each[0])[ROUNDS // 2]
                most = dict(sorted(functions.items(), key=lambda each: -each[1])[:12])
                found[title][way] = {"runs": [each[0] for each in counts], "functions": most}
                print(f"{title}, {way}: {total:.0f}", file=sys.stderr)
    return found
