#!/usr/bin/env python3
"""Writes the frames of the conformance vectors as seeds of tests/fuzz.c: `fuzz_seeds.py LINES FOLDER`."""

import hashlib
import pathlib
import re
import struct
import sys

BYTES_MAX = 512
# Modes of fuzz.c.
EXACT, FOLD, REPLIES_AGAIN, NUMBERS = 4, 5, 6, 7


def command_seed(argv: bytes, ids: dict[bytes, int]) -> bytes | None:
    """A RESP array as fuzz.c takes a command: its number, then the arguments, a line end between them."""
    args = [bulk.split(b"\r\n", 1)[1][:-2] for bulk in argv.split(b"$")[1:] if b"\r\n" in bulk]
    if not args or args[0] not in ids:
        return None
    return ids[args[0]].to_bytes(2, "big") + b"\n".join(args[1:])


def main() -> None:
    """Each frame for each mode that reads its kind, with the default limits and with low ones; each command for both encoders."""
    lines, folder = sys.argv[1:]
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    table = (pathlib.Path(__file__).parent.parent / "respb_table.h").read_text(encoding="ascii")
    rows = re.findall(r'^    \{"([^"]+)", -?\d+, \d+u, (\d+),', table, re.MULTILINE)
    ids = {name.encode(): int(number) for name, number in rows}
    protocol = direction = ""

    def write(seed: bytes) -> None:
        (out / hashlib.sha1(seed).hexdigest()).write_bytes(seed)

    for text in ("0.1", "-1.5e+300", "9007199254740993", "1e-7", "inf", "-0", "4611686018427387904"):
        write(bytes((NUMBERS, 0)) + text.encode())
        write(bytes((NUMBERS, 0)) + struct.pack("=d", float(text)))
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
                    modes.append(REPLIES_AGAIN)
                for mode in modes:
                    for choice in (4, 7):
                        write(bytes((mode, choice)) + bytes.fromhex(rest))
            elif name == "argv" and len(rest) <= 2 * BYTES_MAX and "," not in rest and "*" not in rest and rest != "-":
                seed = command_seed(bytes.fromhex(rest), ids)
                for mode in (EXACT, FOLD) if seed else ():
                    write(bytes((mode, 0)) + seed)


main()
