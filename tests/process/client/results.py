"""What the load client's tests read with code of their own: its JSON, its log of requests, and
HdrHistogram's encoding."""
import base64
import csv
import itertools
import json
import struct
import zlib
from collections import Counter

from harness import TIME_FACTOR

_numbers = itertools.count()
# Every response was right. A machine that is busy with other tests may have been late, on either side.
RIGHT = (0, 3, 4, 5)
STEP_BITS = 7  # of 2 significant digits: a power of two is divided into 128 buckets


def start(stage, server, *options, **where):
    """The client, with a JSON file of its own."""
    path = stage.folder / f"result-{next(_numbers)}.json"
    client = stage.client(server, *options, "--output", path, **where)
    client.json_file = path
    return client


def finish(client, status=RIGHT):
    """Its JSON, after it ended with `status`, or one of several."""
    allowed = (status,) if isinstance(status, int) else status
    assert client.wait(60 * TIME_FACTOR) in allowed, client.out + client.log
    return json.loads(client.json_file.read_text())


def load(stage, server, *options, status=RIGHT):
    """The JSON of a client's whole life."""
    return finish(start(stage, server, *options), status)


def load_once(stage, server, *options, status=RIGHT):
    """The one run in it."""
    run, = load(stage, server, *options, status=status)["runs"]
    return run


def requests_of(path):
    """The lines of --log-requests, numbers as such."""
    with open(path, newline="") as file:
        return [{name: int(text) if name != "outcome" else text for name, text in line.items()}
                for line in csv.DictReader(file)]


def _variable_numbers(data):
    """ZigZag LEB128, of 9 bytes at most: all eight bits of the ninth count."""
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
    """The counts by bucket of HdrHistogram's V2 encoding, compressed."""
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
    """The number of the bucket that a latency belongs to."""
    shift = max(0, nanoseconds.bit_length() - (STEP_BITS + 1))
    return (shift << STEP_BITS) + (nanoseconds >> shift)
