#!/usr/bin/env python3
"""Compares the three programs over loopback with the bare echo server, with the same client and load.

Runs the two in turn, some rounds, and prints the median of each figure and of the ratios round by
round: a machine whose speed drifts drifts for both. Exit status 0 only if every response was right.
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

BIN = Path(os.environ.get("OFFLOAD_BIN_DIR",
                          Path(__file__).resolve().parent.parent / "build/release/bin"))
START_LIMIT_S = 30
STOP_LIMIT_S = 20
# The default of offload-server, and its maximum.
USUAL_SLOTS, MOST_SLOTS = 128, 4096
LONGEST_TO_SHARE = 1024


def start(folder, name, *arguments):
    """Starts a program with its log in `folder`; returns the process and the log's path."""
    log = folder / f"{name}.log"
    with log.open("w") as sink:
        process = subprocess.Popen([BIN / name, *map(str, arguments)], stdout=sink, stderr=sink)
    return process, log


def wait_for_port(process, log):
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        found = re.search(r"listening on \S*:(\d+)", log.read_text())
        if found:
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.02)
    sys.exit(f"{log.name} does not listen:\n{log.read_text()}")


def stop(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        return process.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        sys.exit(f"{process.args[0]} did not stop")


def load(folder, port, options, row, service):
    result = folder / "client.json"
    subprocess.run([BIN / "offload-client", "-s", "127.0.0.1", "-p", port,
                    "-t", str(row.client_threads),
                    "--connections", str(row.connections // row.client_threads),
                    "--max-concurrent-messages", str(row.in_flight), "--connect-timeout", "60",
                    "--size", str(options.size), "--duration", str(options.seconds), "--service",
                    service, "--output", result, "--log-level", "warning"],
                   check=True, stdout=subprocess.DEVNULL)
    measured = json.loads(result.read_text())["runs"][0]
    return measured["io_rate_miops"], measured["service_time_us"]["p50"]


def echo(folder, options, row):
    server, log = start(folder, "bench-tcp-echo", "-p", 0, "--threads", options.threads,
                        "--max-message-length", max(options.size, 256))
    try:
        return load(folder, wait_for_port(server, log), options, row, "echo")
    finally:
        stop(server)


def offload(folder, options, row):
    comch = f"unix:{folder}/comch.sock"
    server, log = start(folder, "offload-server", "-p", 0, "--comch", comch, "--threads",
                        options.threads, "--max-message-length", max(options.size, 256),
                        "--max-concurrent-messages", row.slots(options.threads, options.size))
    worker, _ = start(folder, "offload-worker", "--comch", comch, "--backend", options.backend)
    try:
        return load(folder, wait_for_port(server, log), options, row, "reverse")
    finally:
        stop(server)
        stop(worker)


class Row(NamedTuple):
    """A load: connections, spread over the client's threads, and requests in flight on each."""
    connections: int
    client_threads: int
    in_flight: int

    def slots(self, threads, size):
        """The depth of each I/O thread's channel. Short requests share slots; there are as many long ones as
        are in flight, as the echo has no limit."""
        if size <= LONGEST_TO_SHARE:
            return USUAL_SLOTS
        wanted = -(-self.connections // threads) * self.in_flight
        return min(max(wanted, USUAL_SLOTS), MOST_SLOTS)

    def __str__(self):
        return f"{self.connections} connections, {self.in_flight} in flight on each"


def rows_of(options):
    if not options.spread:
        connections = options.connections or options.threads
        return [Row(connections, min(connections, options.threads), options.in_flight)]
    return [Row(connections, min(connections, options.threads), options.in_flight // connections)
            for connections in options.spread]


def show(row, rounds):
    def median(figure):
        return statistics.median(map(figure, rounds))

    ratios = [each["rate"] / each["echo_rate"] for each in rounds]
    print(f"{row}")
    print(f"  bare echo {median(lambda r: r['echo_rate']):8.3f} M/s   "
          f"p50 {median(lambda r: r['echo_p50']):9.2f} us")
    print(f"  offload   {median(lambda r: r['rate']):8.3f} M/s   "
          f"p50 {median(lambda r: r['p50']):9.2f} us")
    print(f"  ratio     {statistics.median(ratios):8.3f}       "
          f"p50 {median(lambda r: r['p50'] / r['echo_p50']):9.3f}"
          f"   (rate: {min(ratios):.2f} to {max(ratios):.2f})")


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=["cpu", "cuda", "graph"], default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="I/O threads of either server")
    parser.add_argument("--connections", type=int, default=0,
                        help="connections, on as many client threads as --threads says at most; "
                             "default: as many as threads")
    parser.add_argument("--in-flight", type=int, default=128, help="per connection")
    parser.add_argument("--spread", type=lambda text: [int(each) for each in text.split(",")],
                        metavar="COUNTS", default=[],
                        help="such as 1,100,10000: instead of --connections, one load after the "
                             "other with this number of connections, --in-flight requests on all of them "
                             "together")
    parser.add_argument("--size", type=int, default=64, help="bytes")
    parser.add_argument("--seconds", type=float, default=3, help="of each run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", help="write the figures of all rounds to this file")
    options = parser.parse_args()
    for connections in options.spread:
        if options.in_flight % connections:
            parser.error(f"--spread {connections}: no whole number of requests for each connection")
    for connections in [*options.spread, options.connections]:
        if connections % min(connections or 1, options.threads):
            parser.error(f"no whole number of {connections} connections for each thread")
    if options.output and len(rows_of(options)) > 1:
        parser.error("--output takes one load")
    return options


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # with the programs, not without them
    print(f"{options.backend} worker, {options.threads} I/O threads, {options.size} bytes, "
          f"{options.rounds} rounds of {options.seconds:g} s")
    rows = rows_of(options)
    figures = {row: [] for row in rows}
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as name:
        for _ in range(options.rounds):
            for row in rows:
                echo_rate, echo_p50 = echo(Path(name), options, row)
                rate, p50 = offload(Path(name), options, row)
                figures[row].append({"echo_rate": echo_rate, "rate": rate, "echo_p50": echo_p50,
                                     "p50": p50})
    for row, rounds in figures.items():
        show(row, rounds)
    if options.output:
        options.connections = rows[0].connections
        Path(options.output).write_text(json.dumps({"options": vars(options),
                                                  "rounds": figures[rows[0]]}, indent=2))


if __name__ == "__main__":
    main()
