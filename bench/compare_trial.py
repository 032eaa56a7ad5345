#!/usr/bin/env python3
"""Tests whether offload-bench distinguishes a slower server from an equal one, on a machine as busy as it is.

Comparisons of the bare echo server, busy for some microseconds with each request, with itself, where "slower" or
"faster" is a false alarm; with one that takes 3 % longer; and with one that takes 10 % longer. Prints the verdicts of
each kind. Exit status 0 only if at most 1 of 20 equal ones was called different, at least 9 of 10 of the second kind
were found, and all of the third.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from end_to_end import BIN

KINDS = (("equal", 1), ("3 % slower", 1.03), ("10 % slower", 1.1))


def text_of(options, works, seed):
    """The file of an experiment."""
    tables = "".join(
        f'[{name}]\naddress = "127.0.0.1:{options.port + i}"\n'
        f'start = ["exec {BIN}/bench-tcp-echo -p {options.port + i} --work {work:g}us"]\n'
        for i, (name, work) in enumerate(zip(("base", "new"), works)))
    return (f'question = "compare"\ntime = "{options.seconds:g}s"\nslice = "{options.slice_ms:g}ms"\n'
            f'seed = {seed}\n{tables}[[load]]\nsize = 64\nservice = "echo"\n'
            f'max-concurrent-messages = {options.in_flight}\n')


def compare(options, works, seed):
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as name:
        path, answer = Path(name) / "experiment.toml", Path(name) / "answer.json"
        path.write_text(text_of(options, works, seed))
        done = subprocess.run([BIN / "offload-bench", path, "-o", answer, "--logs", name],
                              capture_output=True, text=True, check=False)
        if not answer.exists():
            return {"verdict": f"failed: {done.stderr}", "sentence": done.stderr, "loads": []}
        return json.loads(answer.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=60, help="of each kind")
    parser.add_argument("--seconds", type=float, default=60, help="limit of each comparison")
    parser.add_argument("--slice-ms", type=float, default=80)
    parser.add_argument("--in-flight", type=int, default=2)
    parser.add_argument("--work-us", type=float, default=200, help="of a request")
    parser.add_argument("--port", type=int, default=23451, help="of BASE; NEW has the next one")
    parser.add_argument("--verbose", action="store_true", help="print each answer")
    options = parser.parse_args()
    verdicts = {}
    for kind, factor in KINDS:
        verdicts[kind] = []
        times = []
        for number in range(options.comparisons):
            answer = compare(options, (options.work_us, factor * options.work_us), number + 1)
            verdicts[kind].append(answer["verdict"])
            times += [load["seconds"] for load in answer["loads"]]
            if options.verbose:
                print(f"  {kind}, seed {number + 1}: {answer['sentence']}; load average {os.getloadavg()[0]:.1f}",
                      flush=True)
        seen = verdicts[kind]
        print(f"{kind}: " + ", ".join(f"{seen.count(each)} {each}" for each in dict.fromkeys(seen))
              + f"; {min(times, default=0):.0f} to {max(times, default=0):.0f} s each", flush=True)
    wrong = [each for each in verdicts["equal"] if each not in ("equal", "cannot_tell")]
    found = [verdicts[kind].count("slower") for kind, _ in KINDS[1:]]
    count = options.comparisons
    sys.exit(0 if 20 * len(wrong) <= count and 10 * found[0] >= 9 * count and found[1] == count else 1)


if __name__ == "__main__":
    main()
