#!/usr/bin/env python3
"""offload-rdma beside perftest, on a machine with an RDMA device: same operation, size and depth.

    scripts/rdma-guest --timeout 900 -- bench/rdma/compare.py

Runs the two in turn, some rounds, each end on a separate processor and polling for completions, and
prints the medians of both and of the ratios round by round. For bandwidth both use one doorbell and one
completion for 32 messages. offload-rdma sends inline what perftest reports that it sends inline, which
perftest does only on known cards. Needs the package perftest. Neither of the two checks data.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = (Path(os.environ.get("OFFLOAD_BIN_DIR", Path(__file__).parents[2] / "build/release/bin"))
           / "offload-rdma")
LIMIT_S = 60
SMALL, LARGE, DEPTH, BATCH = 8, 65536, 128, 32


def both(responder, requester):
    """Runs the two ends at a time, each on its processor; the output of the requester."""
    def on(processor):
        return lambda: os.sched_setaffinity(0, {processor % os.cpu_count()})
    with subprocess.Popen(responder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          preexec_fn=on(0)) as other:
        deadline = time.monotonic() + LIMIT_S
        try:
            while True:  # perftest does not wait for a server to come up
                one = subprocess.run(requester, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     text=True, timeout=LIMIT_S, preexec_fn=on(1))
                if one.returncode == 0:
                    other.communicate(timeout=LIMIT_S)
                    return one.stdout
                if other.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"{requester} failed:\n{one.stdout}")
                time.sleep(0.1)
        finally:
            if other.poll() is None:
                other.kill()


def perftest(operation, kind, size, count, gid_index):
    """p50 in us of "lat", (MiB/s, M messages/s) of "bw"; and the bytes that it sends inline."""
    command = [f"ib_{operation}_{kind}", "-F", "-x", gid_index, "-s", size, "-n", count]
    if kind == "bw":
        command += ["-t", DEPTH, "-l", BATCH]
    command = [str(word) for word in command]
    output = both(command, [*command, "127.0.0.1"])
    inline = re.search(r"Max inline data\s*:\s*(\d+)", output)
    lines = output.splitlines()
    found = [line.split() for line in lines if line.split()[:1] == [str(size)]]
    if not found:
        raise SystemExit("perftest printed no result:\n" + "\n".join(lines))
    figures = float(found[0][4]) if kind == "lat" else (float(found[0][3]), float(found[0][4]))
    return figures, inline[1] if inline else 0


def offload(operation, kind, size, count, inline, address):
    """The same of offload-rdma."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [PROGRAM, operation, "--cm", address, "--size", size, "-n", count,
                   "--inline", inline, "--no-verify"]
        if kind == "bw":
            command += ["--in-flight", DEPTH, "--batch", BATCH]
        command = [str(word) for word in command]
        both([*command, "--role", "responder"],
             [*command, "--role", "requester", "--output", str(result)])
        found = json.loads(result.read_text())["results"][0]
    if kind == "lat":
        return found["latency_us"]["p50"]
    return found["bandwidth_mib_s"], found["message_rate_mps"]


def measure(operation, options):
    """Runs one round: returns pairs of (offload-rdma's figure, perftest's), by their names."""
    def pair(kind, size, count):
        theirs, inline = perftest(operation, kind, size, count, options.gid_index)
        return offload(operation, kind, size, count, inline, options.address), theirs
    pairs = {f"{operation} latency, {SMALL} bytes, us": pair("lat", SMALL, options.latencies)}
    ours, theirs = pair("bw", LARGE, options.large)
    pairs[f"{operation} bandwidth, {LARGE} bytes, MiB/s"] = ours[0], theirs[0]
    ours, theirs = pair("bw", SMALL, options.small)
    pairs[f"{operation} rate, {SMALL} bytes, M/s"] = ours[1], theirs[1]
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--operations", nargs="+", default=["send", "write", "read"])
    parser.add_argument("--address", default=os.environ.get("RDMA_GUEST_ADDRESS"),
                        help="of the RDMA device; default: the guest's")
    parser.add_argument("--gid-index", default="1", help="of that address, for perftest")
    parser.add_argument("--latencies", type=int, default=5000, help="iterations of each")
    parser.add_argument("--large", type=int, default=512)
    parser.add_argument("--small", type=int, default=5120,
                        help="of small messages; as of the large ones, a multiple of 32")
    options = parser.parse_args()
    if not options.address:
        parser.error("--address: which one, as this is not the guest?")

    taken = {}
    for _ in range(options.rounds):
        for operation in options.operations:
            for name, pair in measure(operation, options).items():
                taken.setdefault(name, []).append(pair)
    print(f"{'median of ' + str(options.rounds) + ' rounds':<36}"
          f"{'offload-rdma':>14}{'perftest':>14}{'ratio':>8}")
    for name, pairs in taken.items():
        ours, theirs = (statistics.median(side) for side in zip(*pairs))
        ratio = statistics.median(one / other for one, other in pairs)
        print(f"{name:<36}{ours:>14.4g}{theirs:>14.4g}{ratio:>8.2f}")


if __name__ == "__main__":
    sys.exit(main())
