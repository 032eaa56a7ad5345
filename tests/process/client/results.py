"""Reads the output of the load client for its tests, with separate code: its JSON, its log of requests, and
HdrHistogram's encoding."""
import base64
import csv
import itertools
import json
import struct
import zlib
from collections import Counter

from harness import RIGHT, TIME_FACTOR

_numbers = itertools.count()
STEP_BITS = 7  # for 2 significant digits: a power of two is divided into 128 buckets


def start(stage, server, *options, **where):
    """Starts the client, with a JSON file for it alone."""
    path = stage.folder / f"result-{next(_numbers)}.json"
    client = stage.client(server, *options, "--output", path, **where)
    client.json_file = path
    return client


def finish(client, status=RIGHT):
    """Returns the client's JSON, after it has ended with `status`, or one of several."""
    allowed = (status,) if isinstance(status, int) else status
    assert client.wait(60 * TIME_FACTOR) in allowed, client.out + client.log
    return json.loads(client.json_file.read_text())


def load(stage, server, *options, status=RIGHT):
    """Runs a client to its end and returns its JSON."""
    return finish(start(stage, server, *options), status)


def load_once(stage, server, *options, status=RIGHT):
    """Runs a client and returns the only run in its JSON."""
    run, = load(stage, server, *options, status=status)["runs"]
    return run


def requests_of(path):
    """Returns the lines of --log-requests, with numbers as such."""
    with open(path, newline="") as file:
        return [{name: int(text) if name != "outcome" else text for name, text in line.items()}
                for line in csv.DictReader(file)]


def _variable_numbers(data):
    """Decodes ZigZag LEB128 of at most 9 bytes, where all eight bits of the ninth count."""
    at = 0
    while at < len(data):
        value = 0
        for index in range(9):
            byte = data[at]
            at += 1
            value |= (byte if index == 8 else byte & 0x7f) << 7 * index
            if byte < 0x80:
                break
        yield value >> 1 ^ -(value & 1)


def decode_histogram(text):
    """Returns the counts by bucket of HdrHistogram's compressed V2 encoding."""
    data = base64.b64decode(text, validate=True)
    cookie, length = struct.unpack_from(">II", data)
    assert cookie == 0x1c849314 and len(data) == 8 + length
    payload = zlib.decompress(data[8:])
    cookie, length, offset, digits, lowest, _, ratio = struct.unpack_from(">IIIIQQd", payload)
    assert (cookie, offset, digits, lowest, ratio) == (0x1c849313, 0, 2, 1, 1.0)
    assert len(payload) == 40 + length
    counts, bucket = Counter(), 0
    for number in _variable_numbers(payload[40:]):
        if number > 0:
            counts[bucket] = number
        bucket += -number if number < 0 else 1
    return counts


def bucket_of(nanoseconds):
    """Returns the number of the bucket that a latency belongs to."""
    shift = max(0, nanoseconds.bit_length() - (STEP_BITS + 1))
    return (shift << STEP_BITS) + (nanoseconds >> shift)
