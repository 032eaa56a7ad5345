#!/usr/bin/env python3
"""The example services' figures: a hop through a channel, what it costs to be a module (pairs), a soak through the three
programs with workers killed, and four services at once. Bounded in time; runs in a source tree, or where scripts/bundle put
it.

usage: bench/services.py [hop] [pairs] [soak] [four] [--backend cuda|cpu] [--requests COUNT] [--seconds S]
Programs: OFFLOAD_BIN_DIR, else build/release/bin. Exit 0: no answer was wrong and none was lost.
"""
import argparse
import array
import contextlib
import io
import json
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
arguments = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
arguments.add_argument("parts", nargs="*", default=[], metavar="hop|pairs|soak|four")
arguments.add_argument("--backend", choices=["cuda", "cpu"], default="cuda")
arguments.add_argument("--requests", type=int, default=1_000_000, help="of each service in the soak")
arguments.add_argument("--soak-seconds", type=float, default=200, help="of each service, at most")
arguments.add_argument("--messages", type=int, default=20_000_000, help="on each channel of a hop in batches")
arguments.add_argument("--seconds", type=float, default=3, help="of each run of four services")
arguments = arguments.parse_args()
os.environ["OFFLOAD_BACKEND"] = arguments.backend
sys.path[:0] = [str(ROOT / "tests/process"), str(ROOT / "tests/process/examples")]

import harness  # noqa: E402, after the variables that it reads
import test_examples as examples  # noqa: E402, their answers in Python
import wire  # noqa: E402

LIMIT_S = 120  # of one run of a program
KILLS = 3
PAIRS = 10
HOP_KEYS = 1_000_000


def module(name, *options):
    return ["--service-module", harness.SERVICES / f"{name}.so",
            *(word for option in options for word in ("--service-option", option))]


# ---- What the services are made from

def make_table(folder):
    path = ROOT / "examples/services/lookup/make_table.py"
    maker = examples.importlib.util.module_from_spec(spec := examples.importlib.util.spec_from_file_location("make_table", path))
    spec.loader.exec_module(maker)
    pairs = maker.random_pairs(HOP_KEYS)
    maker.write_table(folder / "table", pairs)
    return pairs


def make_weights(folder):
    """The file of NumPy's format, and the layers as test_examples.infer() takes them."""
    source = random.Random(3)
    layers, parameters = [], []
    for inputs, outputs in examples.SHAPE:
        numbers = examples.as_fp32([source.uniform(-1, 1) / inputs ** 0.5 for _ in range((inputs + 1) * outputs)])
        parameters += numbers
        layers.append(([numbers[row * inputs:(row + 1) * inputs] for row in range(outputs)], numbers[inputs * outputs:]))
    (folder / "weights.npy").write_bytes(examples.npy(parameters))
    return layers


# ---- A hop: bench-gpu-hop, one process

def hop(name, *options):
    result = FOLDER / "hop.json"
    command = [harness.BIN / "bench-gpu-hop", "--backend", arguments.backend, "--output", result, *options]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT_S)
    if run.returncode != 0:
        print(f"{name}: {run.stderr.strip()}", flush=True)
        return None
    figures = json.loads(result.read_text())["results"][0]
    print(f"{name:52} {figures['rate_per_s'] / 1e6:9.3f} M/s   p50 {figures['p50_us']:8.2f} us   "
          f"p99 {figures['p99_us']:8.2f} us", flush=True)
    return figures


def run_hops(pairs):
    source = random.Random(5)
    keys = source.sample(list(pairs), 100_000)
    (FOLDER / "gets").write_bytes(struct.pack("<3I", 8, 12, 1) + b"".join(
        struct.pack("<QIQ", key, 1, pairs[key]) for key in keys))
    (FOLDER / "inputs").write_bytes(struct.pack("<3I", 1024, 40, 0) + b"".join(
        struct.pack("<256f", *(source.gauss(0, 1) for _ in range(256))) + bytes(40) for _ in range(61)))
    lookup = [*module("lookup", f"table={FOLDER / 'table'}"), "--service", "lookup", "--answers", FOLDER / "gets"]
    few = max(2000, arguments.messages // 100)
    alone = hop("reverse, 8 bytes, 1 in flight", "--sizes", 8, "--messages", few)
    get = hop("lookup, 1 in flight", *lookup, "--messages", few)
    if alone and get:
        print(f"lookup's p50 is {get['p50_us'] / alone['p50_us']:.2f} of reverse's (bar: 1.5)")
    for channels in (1, 4, 8):
        for in_flight in (2048, 8192):
            hop(f"lookup, {channels} channels, {in_flight} in flight on each", *lookup, "--channels", channels,
                "--in-flight", in_flight, "--messages", arguments.messages // channels)
    for storage in ("fp32", "bf16"):
        mlp = [*module("mlp", f"weights={FOLDER / 'weights.npy'}", f"storage={storage}"), "--service", "mlp",
               "--answers", FOLDER / "inputs"]
        hop(f"mlp {storage}, 1 in flight (bar: p50 of 20 us)", *mlp, "--messages", max(500, few // 10))
        for in_flight in (8, 32, 128):  # the highest rate whose p99 is within 200 us
            hop(f"mlp {storage}, {in_flight} in flight", *mlp, "--in-flight", in_flight,
                "--messages", max(500, few // 4))


def run_pairs():
    """`reverse` as a module and built in, in turn: the medians of the ratios, with least and most."""
    as_module = ["--service-module", harness.SERVICES / "reverse-module.so", "--service", "reverse-module"]
    alone = ["--sizes", 64, "--messages", max(2000, arguments.messages // 50)]
    batches = ["--sizes", 64, "--channels", 12, "--in-flight", 1024, "--messages", arguments.messages]
    for name, figure, load in (("1 in flight", "p50_us", alone), ("12 channels, 1024 in flight", "rate_per_s", batches)):
        ratios = []
        for each in range(PAIRS):
            order = (as_module, []) if each % 2 else ([], as_module)
            first, second = (hop(f"reverse{', a module' if kind else ''}, {name}", *load, *kind) for kind in order)
            if not (first and second):
                return
            ratios.append(first[figure] / second[figure] if order[0] else second[figure] / first[figure])
        print(f"{name}: {figure} of the module / built in: median {statistics.median(ratios):.3f}, "
              f"{min(ratios):.3f} to {max(ratios):.3f} (bar: within 0.02 of 1)", flush=True)


def close(stage, name):
    """Ends its programs; what they logged is of no interest unless one failed."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            stage.close()
    except AssertionError as fault:
        print(f"{said.getvalue()}{name}: {fault}")


# ---- A soak: three programs, each answer checked, the worker killed meanwhile

def same_bytes(got, expected):
    return 0 if got == expected else sum(a != b for a, b in zip(got, expected)) or 1


def close_numbers(got, expected):
    """Counts wrong answers of mlp: frames with a header of 12 bytes, and 10 numbers each."""
    wrong = 0
    for at in range(0, len(expected), 52):
        numbers = array.array("f", got[at + 12:at + 52]), array.array("f", expected[at + 12:at + 52])
        wrong += got[at:at + 12] != expected[at:at + 12] or max(abs(a - b) for a, b in zip(*numbers)) > 1e-5
    return wrong


def soak(name, requests, answer, *options, compare=same_bytes):
    """Sends `requests` again and again over one connection. True: nothing was wrong or lost."""
    sent = b"".join(map(wire.frame, requests))
    answers = [answer(request) for request in requests]
    expected = b"".join(wire.frame(each, wire.RESPONSE) for each in answers)
    rounds = -(-arguments.requests // len(requests))
    stage = harness.Stage()
    wrong = received = kills = 0
    in_time_so_far = False
    begun = time.monotonic()
    try:
        server = stage.server("--service", name, "--max-message-length", 4096)
        worker = stage.worker(*module(name, *options))
        server.wait_until_listening()
        with wire.Wire(server.port) as client:
            client.socket.settimeout(arguments.soak_seconds)

            def send():
                with contextlib.suppress(OSError):  # closed: cut short
                    for _ in range(rounds):
                        client.socket.sendall(sent)

            sender = threading.Thread(target=send, daemon=True)
            sender.start()
            for each in range(rounds):
                if each * (KILLS + 1) // rounds > kills:
                    kills += 1
                    following = stage.worker("--stand-by", *module(name, *options))
                    following.wait_for_log("attached to", 60)
                    worker.kill()
                    worker = following
                got = client._stream.read(len(expected))
                received += len(requests) if len(got) == len(expected) else 0
                wrong += compare(got, expected)
                if time.monotonic() - begun > arguments.soak_seconds:
                    in_time_so_far = received == (each + 1) * len(requests)
                    break
            sender.join(1)
    finally:
        close(stage, name)
    whole = rounds * len(requests)
    said = "0 lost" if received == whole else "cut short by --soak-seconds" if in_time_so_far else "some lost"
    print(f"soak {name:10} {received} of {whole} answered, {wrong} wrong, {said}, {kills} workers killed, "
          f"{time.monotonic() - begun:.0f} s", flush=True)
    return wrong == 0 and received == whole


def run_soaks(pairs, layers):
    source = random.Random(7)
    patterns = FOLDER / "patterns"
    patterns.write_bytes(b"".join(pattern + b"\n" for pattern in examples.PATTERNS))
    texts = [text for text in examples.texts(1000) if len(text) <= 1024][:1000]
    inputs = [examples.as_fp32([source.gauss(0, 1) for _ in range(256)]) for _ in range(20)]
    outputs = {struct.pack("<256f", *numbers): struct.pack("<10f", *examples.infer(layers, numbers)) for numbers in inputs}
    results = [
        soak("complement", [source.randbytes(i % 500) for i in range(1000)],
             lambda request: bytes(255 - octet for octet in request)),
        soak("sha256", [source.randbytes(i % 200) for i in range(1000)], examples.sha256),
        soak("lookup", examples.keys(pairs, 996), examples.lookup(pairs), f"table={FOLDER / 'table'}"),
        soak("grep", texts, examples.grep(examples.PATTERNS), f"patterns={patterns}"),
        soak("mlp", [source.choice(list(outputs)) for _ in range(500)], outputs.__getitem__,
             f"weights={FOLDER / 'weights.npy'}", compare=close_numbers),
    ]
    return all(results)


# ---- Four services at once, one of them slow

def p99_us(client, result):
    if client.wait(arguments.seconds + 60) not in (0, 3, 4):  # 4: it was late itself, as on a busy machine
        raise RuntimeError(client.log)
    return find_key(json.loads(result.read_text()), "service_time_us")["p99"]


def find_key(tree, name):
    """The first value called so, wherever it is."""
    if isinstance(tree, dict):
        if name in tree:
            return tree[name]
        tree = list(tree.values())
    for each in tree if isinstance(tree, list) else ():
        if (found := find_key(each, name)) is not None:
            return found
    return None


def run_four():
    """The p99 of reverse, echo and crc32c at a steady rate, alone and while a fourth is worked to its limit: on a GPU mlp,
    on a CPU one that sleeps 5 ms for each request."""
    slow = "mlp" if arguments.backend == "cuda" else "shifted"
    options = (module("mlp", f"weights={FOLDER / 'weights.npy'}") if slow == "mlp"
               else module("test_shifted", "pause-us=5000", "by=1"))
    rate = 20_000 if arguments.backend == "cuda" else 1000
    stage = harness.Stage()
    try:
        quick = ("reverse", "echo", "crc32c")
        server = stage.server(*(word for each in (*quick, slow) for word in ("--listen", f"0={each}")),
                              "--max-message-length", 1024)
        stage.worker(*options)
        server.wait_for_log(r"listening on \S+", 60, count=4)
        ports = {service: int(port) for port, service in examples.re.findall(
            r"listening on \S+:(\d+) with \d+ threads, service ([\w-]+)", server.log)}

        def measure():
            figures = {}
            clients = {}
            for each in quick:
                clients[each] = stage.client(ports[each], "--service", each, "--size", 64, "--rate", rate, "--duration",
                                             f"{arguments.seconds}s", "--output", FOLDER / f"{each}.json")
            for each in quick:
                figures[each] = p99_us(clients[each], FOLDER / f"{each}.json")
            return figures

        measure()  # warm
        alone = measure()
        over = threading.Event()
        asked = [0]
        request = wire.frame(bytes(1024))

        def press():
            with wire.Wire(ports[slow]) as client:
                client.socket.sendall(request * 64)
                while not over.is_set():
                    client.receive()
                    client.socket.sendall(request)
                    asked[0] += 1

        threads = [threading.Thread(target=press, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        beside = measure()
        over.set()
        for thread in threads:
            thread.join(30)
        print(f"beside {slow}, which answered {asked[0]} meanwhile:")
        for each in quick:
            print(f"{each:8} at {rate}/s: p99 {alone[each]:.1f} us alone, {beside[each]:.1f} beside, "
                  f"{beside[each] / alone[each]:.2f} (bar: 1.5)", flush=True)
    finally:
        close(stage, "four services")


def main():
    parts = set(arguments.parts) or {"hop", "pairs", "soak", "four"}
    layers = make_weights(FOLDER)
    pairs = make_table(FOLDER) if parts & {"hop", "soak"} else None
    if "hop" in parts:
        run_hops(pairs)
    if "pairs" in parts:
        run_pairs()
    if "four" in parts:
        run_four()
    return 0 if "soak" not in parts or run_soaks(pairs, layers) else 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = Path(folder)
        sys.exit(main())
