#!/usr/bin/env python3
"""Measures the cost of offload-client: its rate and latency beside those of a client that does the minimum.

Both load the bare echo server in turn, some rounds. Prints the median of the ratios, with many
requests in flight and with one. Exit status 0 only if every response was right.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

from end_to_end import BIN, start, stop, wait_for_port


def load(folder, port, seconds, in_flight, size):
    """The rate and the mean latency, as offload-client sees them."""
    result = folder / "client.json"
    subprocess.run([BIN / "offload-client", "-s", "127.0.0.1", "-p", port, "--service", "echo",
                    "--size", str(size), "--max-concurrent-messages", str(in_flight),
                    "--duration", str(seconds), "--output", result, "--log-level", "warning"],
                   check=True, stdout=subprocess.DEVNULL)
    run = json.loads(result.read_text())["runs"][0]
    return run["io_rate_miops"], run["service_time_us"]["mean"]


def least(folder, port, seconds, in_flight, size):
    """The same of the client that does the least."""
    result = folder / "least.json"
    subprocess.run([BIN / "bench-tcp-client", "-p", port, "--size", str(size),
                    "--max-concurrent-messages", str(in_flight), "--duration", str(seconds),
                    "--output", result], check=True, stdout=subprocess.DEVNULL)
    run = json.loads(result.read_text())
    return run["io_rate_miops"], run["mean_us"]


def spread(values):
    return f"{statistics.median(values):.3f} ({min(values):.2f} to {max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2, help="of each run")
    parser.add_argument("--size", type=int, default=64, help="bytes")
    parser.add_argument("--in-flight", type=int, default=128)
    parser.add_argument("--output", help="write the figures of all rounds to this file")
    options = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as name:
        folder = Path(name)
        server, log = start(folder, "bench-tcp-echo", "-p", 0)
        try:
            port = wait_for_port(server, log)
            for in_flight in (options.in_flight, 1):
                rounds = [(least(folder, port, options.seconds, in_flight, options.size),
                           load(folder, port, options.seconds, in_flight, options.size))
                          for _ in range(options.rounds)]
                figures[in_flight] = rounds
                print(f"{in_flight} in flight, {options.size} bytes: "
                      f"least {statistics.median(low[0] for low, _ in rounds):.3f} M/s, "
                      f"rate ratio {spread([own[0] / low[0] for low, own in rounds])}, "
                      f"mean latency ratio {spread([own[1] / low[1] for low, own in rounds])}")
        finally:
            stop(server)
    if options.output:
        Path(options.output).write_text(json.dumps({"options": vars(options), "rounds": figures},
                                                   indent=2))


if __name__ == "__main__":
    main()
