#!/usr/bin/env python3
"""Writes the lines of a text as requests for the service grep, each with the answer that Python's re gives.

usage: make_requests.py PATTERNS < TEXT > REQUESTS
"""
import re
import struct
import sys

NOWHERE = 2**32 - 1
REQUEST, RESPONSE = 4, 5  # kinds of frames (docs/reference/wire-protocol.md)


def frame(kind, payload):
    return struct.pack(">III", 12 + len(payload), kind, len(payload)) + payload


def answer(patterns, request):
    found = [pattern.search(request) for pattern in patterns]
    mask = sum(1 << number for number, match in enumerate(found) if match)
    first = min((match.start() for match in found if match), default=NOWHERE)
    return struct.pack("<QI", mask, first)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1].strip())
    with open(sys.argv[1], "rb") as file:
        patterns = [re.compile(line, re.DOTALL) for line in file.read().splitlines()]
    for request in sys.stdin.buffer.read().splitlines():
        sys.stdout.buffer.write(frame(REQUEST, request) + frame(RESPONSE, answer(patterns, request)))


if __name__ == "__main__":
    main()
