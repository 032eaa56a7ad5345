#!/usr/bin/env python3
"""Measures the cost of offload-client: its rate and latency beside those of a client that does the minimum.

Both load the bare echo server in turn, some rounds. Prints the median of the ratios, with many
requests in flight and with one. Processor time depends less on the machine's other work than rate and
latency do. With --verify it compares the ways to check responses with each other. Exit status 0 only if
every response was right.
"""

import argparse
import json
import resource
import statistics
import struct
import subprocess
import tempfile
from pathlib import Path

from end_to_end import BIN, start, stop, wait_for_port


def cpu_seconds():
    """The processor time of all programs that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(command, result):
    """Runs a client, and returns its JSON, with the processor time of each response in us."""
    before = cpu_seconds()
    subprocess.run([*map(str, command), "--output", str(result)], check=True, stdout=subprocess.DEVNULL)
    return json.loads(result.read_text()), 1e6 * (cpu_seconds() - before)


def load(folder, port, seconds, in_flight, size, checking=("--service", "echo")):
    """The rate, the mean latency, the processor time of a response, and the median latency, of offload-client."""
    sizes = () if "--requests" in checking else ("--size", size)
    result, cpu_us = measure([BIN / "offload-client", "-s", "127.0.0.1", "-p", port, *checking, *sizes,
                              "--max-concurrent-messages", in_flight, "--duration", seconds,
                              "--log-level", "warning"], folder / "client.json")
    run = result["runs"][0]
    latency = run["service_time_us"]
    return run["io_rate_miops"], latency["mean"], cpu_us / run["operation_count"], latency["p50"]


def least(folder, port, seconds, in_flight, size):
    """The same of the client that does the least, which has no median."""
    run, cpu_us = measure([BIN / "bench-tcp-client", "-p", port, "--size", size, "--max-concurrent-messages", in_flight,
                           "--duration", seconds], folder / "least.json")
    return run["io_rate_miops"], run["mean_us"], cpu_us / (run["io_rate_miops"] * 1e6 * seconds)


def verifications(folder, size):
    """The options for each way to check the responses of an echo server."""
    payload = bytes(size)
    (folder / "response").write_bytes(payload)
    frames = b"".join(struct.pack(">III", 12 + size, kind, size) + payload for kind in (4, 5))
    (folder / "requests").write_bytes(frames * 256)
    return {"builtin": ["--service", "echo"], "none": ["--verify", "none"], "length": ["--verify", "length"],
            "length:BYTES": ["--verify", f"length:{size}"],
            "file:PATH": ["--verify", f"file:{folder / 'response'}", "--payload", "constant:0"],
            "command:cat": ["--verify", "command:cat"],
            "recorded": ["--requests", str(folder / "requests")]}


def compare_verifications(folder, port, options):
    """Prints the median latency of each way beside that of builtin: one in flight, in turn, some rounds. Some rounds of a
    busy machine are far off, so it prints quartiles."""
    ways = verifications(folder, options.size)
    rounds = [{name: load(folder, port, options.seconds, 1, options.size, checking)
               for name, checking in ways.items()} for _ in range(options.rounds)]
    for name in ways:
        p50s = [each[name][3] for each in rounds]
        ratios = statistics.quantiles([each[name][3] / each["builtin"][3] for each in rounds])
        print(f"--verify {name}: p50 {statistics.median(p50s):.2f} us (best round {min(p50s):.2f}), beside builtin "
              f"{ratios[1]:.3f} (quartiles {ratios[0]:.2f} to {ratios[2]:.2f})")
    return rounds


def spread(values):
    return f"{statistics.median(values):.3f} ({min(values):.2f} to {max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2, help="of each run")
    parser.add_argument("--size", type=int, default=64, help="bytes")
    parser.add_argument("--in-flight", type=int, default=128)
    parser.add_argument("--verify", action="store_true", help="compare the ways to check responses instead")
    parser.add_argument("--output", help="write the figures of all rounds to this file")
    options = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as name:
        folder = Path(name)
        server, log = start(folder, "bench-tcp-echo", "-p", 0)
        try:
            port = wait_for_port(server, log)
            if options.verify:
                figures["verify"] = compare_verifications(folder, port, options)
            for in_flight in () if options.verify else (options.in_flight, 1):
                rounds = [(least(folder, port, options.seconds, in_flight, options.size),
                           load(folder, port, options.seconds, in_flight, options.size))
                          for _ in range(options.rounds)]
                figures[in_flight] = rounds
                print(f"{in_flight} in flight, {options.size} bytes: "
                      f"least {statistics.median(low[0] for low, _ in rounds):.3f} M/s, "
                      f"rate ratio {spread([own[0] / low[0] for low, own in rounds])}, "
                      f"mean latency ratio {spread([own[1] / low[1] for low, own in rounds])}, "
                      f"processor time of a response {statistics.median(own[2] for _, own in rounds):.3f} us, "
                      f"ratio {spread([own[2] / low[2] for low, own in rounds])}")
        finally:
            stop(server)
    if options.output:
        Path(options.output).write_text(json.dumps({"options": vars(options), "rounds": figures},
                                                   indent=2))


if __name__ == "__main__":
    main()
