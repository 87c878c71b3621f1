#!/usr/bin/env python3
"""Writes the frames of the conformance vectors as seeds of tests/fuzz.c: `fuzz_seeds.py LINES FOLDER`."""

import hashlib
import pathlib
import sys

BYTES_MAX = 512


def main() -> None:
    """Each frame for each mode that reads its kind, with the default limits and with low ones."""
    lines, folder = sys.argv[1:]
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    protocol = direction = ""
    with open(lines, encoding="ascii") as file:
        for line in file:
            name, _, rest = line.rstrip("\n").partition(" ")
            if name == "protocol":
                protocol = rest
            elif name == "direction":
                direction = rest
            elif name == "wire" and all(c in "0123456789abcdef" for c in rest) and len(rest) <= 2 * BYTES_MAX:
                reply = direction == "reply"
                modes = [int(reply) + (0 if protocol == "4" else 2)]
                if reply and protocol == "4":
                    modes.append(6)
                for mode in modes:
                    for choice in (4, 7):
                        seed = bytes((mode, choice)) + bytes.fromhex(rest)
                        (out / hashlib.sha1(seed).hexdigest()).write_bytes(seed)


main()
