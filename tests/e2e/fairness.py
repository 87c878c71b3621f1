"""Owns: a figure, not a test: how long a GET on one channel takes while another channel fetches 64 MiB again and again over
the same connection, with slices (FRAGMENT) and without. `WEFT=target/release/weft python3 tests/e2e/fairness.py`."""

import struct
import time

from server import Respb, Server, get

LARGE_BYTES = 64 << 20
GETS = 300
CHANNEL_LARGE, CHANNEL_SMALL = 1, 2


def measure(server, capabilities):
    wire = Respb(server.port)
    wire.call_on(0, "HELLO", "3", "CAPS", capabilities)
    taken = []
    sent = 0.0
    received = 0

    wire.send(get(CHANNEL_LARGE, "large"))
    sent = time.perf_counter()
    wire.send(get(CHANNEL_SMALL, "small"))
    while len(taken) < GETS:
        opcode, channel = struct.unpack(">HH", wire.take(4))
        if channel == CHANNEL_SMALL:
            wire.take(opcode & 0xFF)
            taken.append(time.perf_counter() - sent)
            sent = time.perf_counter()
            wire.send(get(CHANNEL_SMALL, "small"))
            continue
        payload = struct.unpack(">I", wire.take(4))[0]
        skip(wire, payload)
        received += payload
        if received >= LARGE_BYTES:
            received = 0
            wire.send(get(CHANNEL_LARGE, "large"))
    wire.close()
    taken.sort()
    return taken[len(taken) // 2], taken[len(taken) * 99 // 100]


def skip(wire, count):
    """Reads past bytes without keeping them."""
    drop = min(count, len(wire.buffer))
    del wire.buffer[:drop]
    count -= drop
    while count > 0:
        count -= len(wire.socket.recv(min(count, 1 << 18)))


def main():
    with Server(threads=1) as server:
        with server.connect() as wire:
            wire.call("SET", "large", b"x" * LARGE_BYTES)
            wire.call("SET", "small", "y")
        for name, capabilities in (("whole", 0), ("slices", 1)):
            half, most = measure(server, capabilities)
            print(f"{name:7}  p50 {half * 1e3:8.2f} ms   p99 {most * 1e3:8.2f} ms")


if __name__ == "__main__":
    main()
