"""The services of examples/services through the three programs: compares each answer with Python's own."""
import hashlib
import importlib.util
import math
import random
import re
import struct
import threading

import pytest

import wire
from harness import ROOT, SERVICES, TIME_FACTOR, scaled, wait_until

NOWHERE = 2**32 - 1


def serve(stage, name, *options, server_options=()):
    """Starts a server of the service `name` and a worker; also returns the worker's options for the service."""
    server = stage.server("--service", name, *server_options)
    options = ["--service-module", SERVICES / f"{name}.so",
               *(text for option in options for text in ("--service-option", option))]
    worker = stage.worker(*options)
    server.wait_until_listening()
    return server, worker, options


def ask(server, requests, answer):
    with wire.Wire(server.port) as client:
        client.ask(requests, answer)


def lengths():
    """Returns lengths around a packet, a chunk of SHA-256 and the longest message that is in packets, and longer
    ones."""
    return [*range(130), 371, 372, 373, 1000, 4095, 4096, 5000, 65535, 65536]


# ---- sha256

def sha256(message):
    return hashlib.sha256(message).digest()


def test_sha256(stage):
    server, *_ = serve(stage, "sha256", server_options=["--max-message-length", "64k"])
    source = random.Random(1)
    ask(server, [source.randbytes(length) for length in lengths()], sha256)
    ask(server, wire.payloads(scaled(20_000), [0, 8, 55, 56, 64, 200]), sha256)


# ---- lookup

@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Returns the table's file and its pairs."""
    path = ROOT / "examples/services/lookup/make_table.py"
    spec = importlib.util.spec_from_file_location("make_table", path)
    make_table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_table)
    pairs = make_table.random_pairs(scaled(100_000))
    pairs.update({0: 2**64 - 1, 1: 0, 2**64 - 2: 7})
    file = tmp_path_factory.mktemp("lookup") / "table"
    make_table.write_table(file, pairs)
    return file, pairs


def lookup(pairs):
    def answer(request):
        if len(request) != 8:
            return b""
        value = pairs.get(struct.unpack("<Q", request)[0])
        return struct.pack("<IQ", value is not None, value or 0)
    return answer


def keys(pairs, count):
    """Returns keys, half of which are in the table, and the key that means "empty" in it."""
    source = random.Random(2)
    known = list(pairs)
    both = [source.choice(known) if i % 2 else source.getrandbits(64) for i in range(count)]
    return [struct.pack("<Q", key) for key in [*both, 0, 1, 2**64 - 2, 2**64 - 1]]


def test_lookup(stage, table):
    file, pairs = table
    server, *_ = serve(stage, "lookup", f"table={file}",
                       server_options=["--max-message-length", 1024])
    ask(server, keys(pairs, scaled(20_000)), lookup(pairs))
    ask(server, [bytes(length) for length in (*range(20), 372, 1000)], lookup(pairs))


def test_workers_killed_under_load_cost_no_answer(stage, table):
    file, pairs = table
    server, worker, options = serve(stage, "lookup", f"table={file}")
    requests = keys(pairs, 500)
    rounds = []
    over = threading.Event()

    def load():
        with wire.Wire(server.port) as client:
            while not over.is_set():
                client.ask(requests, lookup(pairs))
                rounds.append(len(requests))

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    try:
        for _ in range(3):
            following = stage.worker("--stand-by", *options)
            assert following.wait_for_log("attached to")
            before = len(rounds)
            wait_for_load(lambda: len(rounds) > before + 3 or not thread.is_alive())
            worker.kill()
            worker = following
        before = len(rounds)
        wait_for_load(lambda: len(rounds) > before + 3 or not thread.is_alive())
        assert thread.is_alive(), "an answer was wrong or did not come"
    finally:
        over.set()
        thread.join(60 * TIME_FACTOR)
    assert not thread.is_alive()


@pytest.mark.parametrize("content, says", [
    (b"", "not a table"),
    (b"lookup-2" + bytes(8), "not a table"),
    (b"lookup-1" + struct.pack("<Q", 2**62), "over 2^30 keys"),
    (b"lookup-1" + struct.pack("<QQ", 1, 5), "ends before its last key"),
    (b"lookup-1" + struct.pack("<QQQB", 1, 5, 6, 7), "goes on after its keys"),
    (b"lookup-1" + struct.pack("<QQQQQ", 2, 5, 6, 5, 7), "the key 5 is there twice"),
    (b"lookup-1" + struct.pack("<QQQ", 1, 2**64 - 1, 6), "2^64 - 1 cannot be in a table"),
])
def test_a_table_that_is_none_is_one_line(stage, tmp_path, content, says):
    file = tmp_path / "table"
    file.write_bytes(content)
    expect_refusal(stage, "lookup", [f"table={file}"], says)


def wait_for_load(condition):
    wait_until(condition, "the load goes on", 60 * TIME_FACTOR)


def expect_refusal(stage, name, options, says):
    worker = stage.worker("--service-module", SERVICES / f"{name}.so",
                          *(text for option in options for text in ("--service-option", option)))
    assert worker.wait(20 * TIME_FACTOR) == 1
    lines = [line for line in worker.log.splitlines() if line.startswith("offload-worker:")]
    assert len(lines) == 1 and says in lines[0], worker.log


# ---- mlp

SHAPE = [(256, 512), (512, 512), (512, 10)]


@pytest.fixture(scope="module")
def perceptron(tmp_path_factory):
    """Returns the file of its parameters, and its layers as (weights by output, biases)."""
    source = random.Random(3)
    layers = []
    parameters = []
    for inputs, outputs in SHAPE:
        bound = 1 / math.sqrt(inputs)
        numbers = as_fp32([source.uniform(-bound, bound) for _ in range((inputs + 1) * outputs)])
        parameters += numbers
        rows = [numbers[row * inputs:(row + 1) * inputs] for row in range(outputs)]
        layers.append((rows, numbers[inputs * outputs:]))
    file = tmp_path_factory.mktemp("mlp") / "parameters.npy"
    file.write_bytes(npy(parameters))
    return file, layers


def as_fp32(numbers):
    return list(struct.unpack(f"<{len(numbers)}f", struct.pack(f"<{len(numbers)}f", *numbers)))


def npy(numbers):
    """Returns a file in NumPy's format, version 1.0, of one dimension."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
    header = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + \
        struct.pack(f"<{len(numbers)}f", *numbers)


def infer(layers, numbers):
    """Computes the outputs in double precision."""
    for index, (rows, biases) in enumerate(layers):
        sums = (bias + sum(map(float.__mul__, row, numbers)) for row, bias in zip(rows, biases))
        numbers = [value if index == 2 or value > 0 else 0.0 for value in sums]
    return numbers


@pytest.mark.parametrize("storage, error", [("fp32", 1e-6), ("bf16", 3e-3)])
def test_mlp(stage, perceptron, storage, error):
    file, layers = perceptron
    server, *_ = serve(stage, "mlp", f"weights={file}", f"storage={storage}",
                       server_options=["--max-message-length", 1024])
    source = random.Random(4)
    inputs = [as_fp32([source.gauss(0, 1) for _ in range(256)]) for _ in range(8)] + [[0.0] * 256]
    expected = [infer(layers, numbers) for numbers in inputs]
    assert max(map(abs, expected[0])) > 10 * error
    requests = [struct.pack("<256f", *numbers) for numbers in inputs]
    rounds = scaled(100)
    with wire.Wire(server.port) as client:
        with client.sending(b"".join(map(wire.frame, requests)) * rounds):
            for _ in range(rounds):
                for outputs in expected:
                    kind, payload = client.receive()
                    assert kind == wire.RESPONSE and len(payload) == 40
                    got = struct.unpack("<10f", payload)
                    assert max(abs(a - b) for a, b in zip(got, outputs)) < error, (got, outputs)
        # Requests of other lengths, and NaNs, are answered too.
        client.ask([bytes(length) for length in (0, 8, 1020, 1023)], lambda request: b"")
        client.send(wire.frame(struct.pack("<256f", *[math.nan] * 256)))
        assert len(client.receive()[1]) == 40


@pytest.mark.parametrize("content, says", [
    (b"", "ends too early"),
    (b"\x93NUMPX" + bytes(20), "not a .npy file"),
    (npy([1.0]), "not an array of float32 of shape (399370,)"),
    (npy([1.0]).replace(b"(1,), }     ", b"(399370,), }"), "ends too early"),
    (b"\x93NUMPY\x02\x00" + bytes([255] * 4), "too long a header"),
])
def test_weights_that_are_none_are_one_line(stage, tmp_path, content, says):
    file = tmp_path / "weights.npy"
    file.write_bytes(content)
    expect_refusal(stage, "mlp", [f"weights={file}"], says)


# ---- grep

PATTERNS = [rb"error", rb"[Ww]arn", rb"\d\d\d", rb"a.c", rb"[^\x00-\x7f]", rb"\[[a-f-]\]", rb"\x00\n",
            rb"\w\W\w\s", rb"x" * 64, rb"[]x]\.", rb"the quick brown fox jumps over", rb"\S\D\\"]


def grep(patterns):
    compiled = [re.compile(pattern, re.DOTALL) for pattern in patterns]

    def answer(request):
        found = [each.search(request) for each in compiled]
        mask = sum(1 << i for i, match in enumerate(found) if match)
        return struct.pack("<QI", mask, min((match.start() for match in found if match),
                                            default=NOWHERE))
    return answer


def texts(count):
    """Yields random bytes, and random letters with some matches of the patterns in them."""
    source = random.Random(5)
    planted = [b"error", b"Warn", b"123", b"abc", b"\xc3", b"[-]", b"\x00\n", b"a,b ", b"x" * 64, b"].",
               b"the quick brown fox jumps over", b"ab\\"]
    for length in [*lengths(), *(source.choice([8, 40, 300, 900]) for _ in range(count))]:
        text = bytearray(source.choices(b"qwertyu xzE", k=length))
        for _ in range(source.randrange(4)):
            piece = source.choice(planted)
            at = source.randrange(length + 1)
            text[at:at + len(piece)] = piece
        yield source.randbytes(length) if source.random() < 0.1 else bytes(text[:length])


def test_grep(stage, tmp_path):
    file = tmp_path / "patterns"
    file.write_bytes(b"".join(pattern + b"\n" for pattern in PATTERNS))
    server, *_ = serve(stage, "grep", f"patterns={file}",
                       server_options=["--max-message-length", "64k"])
    ask(server, list(texts(scaled(3000))), grep(PATTERNS))


@pytest.mark.parametrize("options, says", [
    ([], "it needs --service-option pattern="),
    (["pattern=a", "patterns=b"], "it needs --service-option pattern="),
    (["pattern="], "has 0 positions"),
    (["pattern=" + "x" * 65], "has 65 positions"),
    (["pattern=a*"], "'*' is not supported"),
    (["pattern=[z-a]"], "an invalid range"),
    (["pattern=[abc"], "it ends too early"),
    (["pattern=\\x4"], "it ends too early"),
    (["pattern=\\x4g"], "two hexadecimal digits"),
    (["pattern=\\b"], "\\b is not supported"),
    (["patterns=/nowhere"], "cannot read /nowhere"),
])
def test_a_pattern_that_is_none_is_one_line(stage, options, says):
    expect_refusal(stage, "grep", options, says)
