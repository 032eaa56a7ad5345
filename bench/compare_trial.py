#!/usr/bin/env python3
"""Tests whether offload-report compare distinguishes a slower server from an equal one.

Comparisons of the bare echo server, busy for some microseconds with each request, with itself, where a finding
is a false alarm, and with one that takes a fifth longer, which has to be found. Each comparison is of
alternated runs. Prints what came of each. Exit status 0 only if no comparison was wrong.
"""

import argparse
import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

from end_to_end import BIN, start, stop, wait_for_port

VERDICTS = {0: "no difference", 1: "slower", 3: "no verdict"}


@contextlib.contextmanager
def server(folder, name, work_us):
    """The port of a server that is busy for `work_us` with each request."""
    own = folder / f"{name}-server"
    own.mkdir()
    process, log = start(own, "bench-tcp-echo", "-p", 0, "--work", f"{work_us}us")
    try:
        yield wait_for_port(process, log)
    finally:
        stop(process)


def measure(folder, ports, options):
    """The result files of alternated runs against each of the ports."""
    for name in ports:
        (folder / name).mkdir()
    for number in range(options.pairs):
        for name, port in ports.items():
            subprocess.run([BIN / "offload-client", "-s", "127.0.0.1", "-p", port, "--service", "echo",
                            "--size", "64", "--max-concurrent-messages", str(options.in_flight),
                            "--warmup", "50ms", "--duration", str(options.seconds), "--log-level",
                            "warning", "--output", folder / name / f"{number:02}.json"],
                           check=True, stdout=subprocess.DEVNULL)


def compare(options, works):
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as name:
        folder = Path(name)
        with server(folder, "base", works[0]) as base, server(folder, "new", works[1]) as new:
            measure(folder, {"base": base, "new": new}, options)
        done = subprocess.run([BIN / "offload-report", "compare", folder / "base", folder / "new",
                               "--fail", options.fail], capture_output=True, text=True, check=False)
    if options.verbose:
        print(done.stdout, done.stderr)
    return VERDICTS.get(done.returncode, f"failed: {done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=20, help="of each kind")
    parser.add_argument("--pairs", type=int, default=10, help="runs of each server in a comparison")
    parser.add_argument("--seconds", type=float, default=0.4, help="of each run")
    parser.add_argument("--in-flight", type=int, default=2)
    parser.add_argument("--work-us", type=float, default=200, help="of a request")
    parser.add_argument("--fail", default="p50>1.1")
    parser.add_argument("--verbose", action="store_true", help="print each comparison")
    options = parser.parse_args()
    wrong = 0
    for kind, factor, right in (("equal", 1, "no difference"), ("a fifth slower", 1.2, "slower")):
        seen = [compare(options, (options.work_us, factor * options.work_us))
                for _ in range(options.comparisons)]
        wrong += sum(each != right for each in seen)
        print(f"{kind}: " + ", ".join(f"{seen.count(each)} {each}" for each in dict.fromkeys(seen)),
              flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
