#!/usr/bin/env python3
"""A light client's latency beside heavy ones: one request in flight of 64 bytes, alone, beside 50
deep pipelines and beside four clients of 16 MiB messages, all through offload-client.

Runs the three in turn, some rounds, and prints the medians; the ratios are to the same round's
figure alone. Several --server compare builds in the same rounds.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import end_to_end
from end_to_end import BIN, stop, wait_for_port

# How long heavy clients have to begin, seconds: connect, and fill the channel.
WARM_UP_S = 0.7


class Case(NamedTuple):
    name: str
    longest: str  # of the server
    slots: int
    heavy: tuple  # options of the heavy client; none: the light one is alone


DEEP = ("--connections", 50, "--max-concurrent-messages", 128, "--size", 64)
LONG = ("--connections", 4, "--max-concurrent-messages", 2, "--size", "16m")
CASES = (
    Case("short messages: alone", "256", 128, ()),
    Case("beside 50 deep pipelines", "256", 128, DEEP),
    Case("long messages: alone", "16m", 8, ()),
    Case("beside 4 of 16 MiB messages", "16m", 8, LONG),
)


def client(folder, port, name, seconds, options):
    result = folder / f"{name}.json"
    process = subprocess.Popen(
        [BIN / "offload-client", "-s", "127.0.0.1", "-p", port, "--duration", f"{seconds}s",
         "--output", result, "--log-level", "warning", *map(str, options)],
        stdout=subprocess.DEVNULL)
    return process, result


def measure(folder, programs, case, seconds):
    """p50 and p99 of the light client, us, and requests/s of the heavy ones."""
    end_to_end.BIN = programs
    comch = f"unix:{folder}/comch.sock"
    server, log = end_to_end.start(folder, "offload-server", "-p", 0, "--comch", comch,
                                   "--max-message-length", case.longest,
                                   "--max-concurrent-messages", case.slots)
    worker, _ = end_to_end.start(folder, "offload-worker", "--comch", comch, "--backend", "cpu")
    heavy = None
    try:
        port = wait_for_port(server, log)
        if case.heavy:
            heavy, heavy_result = client(folder, port, "heavy", seconds + 2 * WARM_UP_S, case.heavy)
            time.sleep(WARM_UP_S)
        light, result = client(folder, port, "light", seconds,
                               ("--max-concurrent-messages", 1, "--size", 64))
        processes = [each for each in (light, heavy) if each]
        if any(each.wait(seconds + 60) != 0 for each in processes):
            sys.exit(f"{case.name}: a client failed\n{log.read_text()}")
        latency = json.loads(result.read_text())["runs"][0]["service_time_us"]
        rate = json.loads(heavy_result.read_text())["runs"][0]["io_rate_miops"] * 1e6 if heavy else 0
        return {"p50": latency["p50"], "p99": latency["p99"], "heavy_rate": rate}
    finally:
        for each in (heavy, server, worker):
            if each:
                stop(each)


def show(name, rounds):
    print(name)
    for index, case in enumerate(CASES):
        figures = {key: statistics.median(each[index][key] for each in rounds)
                   for key in ("p50", "p99", "heavy_rate")}
        line = (f"  {case.name:28} p50 {figures['p50']:9.1f} us   p99 {figures['p99']:9.1f} us")
        if case.heavy:
            ratio = statistics.median(each[index]["p99"] / each[index - 1]["p99"] for each in rounds)
            line += f"   p99 ÷ alone {ratio:6.2f}   heavy {figures['heavy_rate']:10.0f}/s"
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, action="append", metavar="FOLDER",
                        help="with offload-server and offload-worker; may be repeated")
    parser.add_argument("--seconds", type=float, default=2, help="of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", help="write the figures of all rounds to this file")
    options = parser.parse_args()
    servers = options.server or [BIN]
    rounds = {str(each): [] for each in servers}
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as name:
        for _ in range(options.rounds):
            for programs in servers:
                rounds[str(programs)].append([measure(Path(name), programs, case, options.seconds)
                                              for case in CASES])
    for each, figures in rounds.items():
        show(each, figures)
    if options.output:
        Path(options.output).write_text(json.dumps(
            {"cases": [case.name for case in CASES], "rounds": rounds}, indent=2))


if __name__ == "__main__":
    main()
