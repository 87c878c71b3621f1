"""Owns: a network that misbehaves, between a gateway and a server: pieces that are late or come byte by byte, connections over which
nothing comes any more, that are half closed or reset; and what came over it. Does not own: what is tested."""

import random
import re
import socket
import struct
import threading

from server import START_SECONDS

# Bytes that are passed on at once where they trickle.
TRICKLE_BYTES = 7
NUMBER = re.compile(rb":(\d+)\r\n")


class Pair:
    """Two sockets that belong together."""

    def __init__(self, near, far):
        self.near, self.far = near, far
        self.replies = bytearray()
        self.left = 2

    def ends(self):
        return self.near, self.far


class Toxic:
    """Passes bytes on between a port of its own and that of a server. `delay`: at most so many seconds for each piece. `trickles`: in
    pieces of few bytes. While it `swallows` nothing comes through, in either direction, and nobody is told."""

    def __init__(self, behind, delay=0.0, trickles=False, seed=1):
        self.behind, self.delay, self.trickles = behind, delay, trickles
        self.dice = random.Random(seed)
        self.lock = threading.Condition()
        self.swallows = False
        self.pairs = []
        self.all = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.wake = threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.behind), START_SECONDS)
            except OSError:
                if self.wake.is_set():
                    return
                near.close()
                continue
            pair = Pair(near, far)
            with self.lock:
                self.pairs.append(pair)
                self.all.append(pair)
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self.pass_on, args=(pair, source, target), daemon=True).start()

    def pass_on(self, pair, source, target):
        try:
            while piece := source.recv(1 << 16):
                with self.lock:
                    self.lock.wait_for(lambda: not self.swallows or self.wake.is_set())
                    late = self.dice.random() * self.delay
                if late:
                    # What the network takes; nothing is waited for.
                    self.wake.wait(late)
                step = TRICKLE_BYTES if self.trickles else len(piece)
                if source is pair.far:
                    pair.replies += piece
                for begin in range(0, len(piece), step):
                    target.sendall(piece[begin : begin + step])
            target.shutdown(socket.SHUT_WR)
        except OSError:
            for end in pair.ends():
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        with self.lock:
            pair.left -= 1
            if not pair.left:
                self.pairs = [other for other in self.pairs if other is not pair]
                for end in pair.ends():
                    end.close()

    def swallow(self, does):
        with self.lock:
            self.swallows = does
            self.lock.notify_all()

    def half_close(self):
        """The gateway hears that no more replies come; what it sends goes on."""
        self.each(lambda pair: pair.near.shutdown(socket.SHUT_WR))

    def reset(self):
        def reset(pair):
            pair.near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            pair.near.shutdown(socket.SHUT_RD)
            pair.far.shutdown(socket.SHUT_RDWR)

        self.each(reset)

    def each(self, act):
        with self.lock:
            pairs = list(self.pairs)
        for pair in pairs:
            try:
                act(pair)
            except OSError:
                pass

    def numbers(self):
        """All numbers that the server has answered."""
        return {int(number) for pair in self.all for number in NUMBER.findall(bytes(pair.replies))}

    def close(self):
        self.wake.set()
        with self.lock:
            self.lock.notify_all()
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.each(lambda pair: [end.shutdown(socket.SHUT_RDWR) for end in pair.ends()])


def is_linearizable(operations):
    """Whether what clients were told of a counter fits one order in which each is between its begin and its end. Operations: begin,
    end, the number that it became. All that is not known may have been in between."""
    earliest = float("inf")
    for begin, end, _ in sorted(operations, key=lambda operation: -operation[2]):
        # Somebody with a higher number was through before this one began.
        if earliest < begin:
            return False
        earliest = min(earliest, end)
    numbers = [number for _, _, number in operations]
    return len(numbers) == len(set(numbers))
