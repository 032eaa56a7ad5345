#!/usr/bin/env python3
"""Makes a table for the service lookup (its README.md has the format).

usage: make_table.py FILE --random COUNT [--seed SEED] [--requests REQUESTS]
       make_table.py FILE [--requests REQUESTS] < PAIRS       (lines of KEY VALUE, decimal or 0x...)

REQUESTS: a file for offload-client --requests, with 10,000 requests and their answers; every second key is in the table.
"""
import argparse
import random
import struct
import sys

MAGIC = b"lookup-1"
NO_KEY = 2**64 - 1
REQUEST, RESPONSE = 4, 5  # kinds of frames (docs/reference/wire-protocol.md)


def random_pairs(count, seed=1):
    """`count` different keys with their values, the same for the same seed."""
    source = random.Random(seed)
    pairs = {}
    while len(pairs) < count:
        pairs[source.randrange(NO_KEY)] = source.getrandbits(64)
    return pairs


def read_pairs(lines):
    pairs = {}
    for number, line in enumerate(lines, 1):
        try:
            key, value = (int(text, 0) for text in line.split())
        except ValueError:
            sys.exit(f"line {number}: not KEY VALUE: {line.strip()[:40]}")
        if not (0 <= key < NO_KEY and 0 <= value < 2**64) or key in pairs:
            sys.exit(f"line {number}: the key is there twice, or a number is out of range")
        pairs[key] = value
    return pairs


def write_table(path, pairs):
    with open(path, "wb") as file:
        file.write(MAGIC + struct.pack("<Q", len(pairs)))
        file.write(b"".join(struct.pack("<QQ", key, value) for key, value in pairs.items()))


def frame(kind, payload):
    return struct.pack(">III", 12 + len(payload), kind, len(payload)) + payload


def write_requests(path, pairs, seed, count=10_000):
    source = random.Random(seed)
    known = list(pairs)
    with open(path, "wb") as file:
        for number in range(count):
            key = source.choice(known) if known and number % 2 else source.getrandbits(64)
            answer = struct.pack("<IQ", key in pairs, pairs.get(key, 0))
            file.write(frame(REQUEST, struct.pack("<Q", key)) + frame(RESPONSE, answer))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage:")[1].strip())
    parser.add_argument("--requests")
    parser.add_argument("file")
    parser.add_argument("--random", type=int, metavar="COUNT")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    pairs = (read_pairs(sys.stdin) if arguments.random is None
             else random_pairs(arguments.random, arguments.seed))
    write_table(arguments.file, pairs)
    if arguments.requests:
        write_requests(arguments.requests, pairs, arguments.seed)


if __name__ == "__main__":
    main()
