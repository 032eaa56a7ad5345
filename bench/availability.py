#!/usr/bin/env python3
"""Measures what clients notice when workers are killed, replaced or frozen under load, with the real programs.

A probe on each connection sends requests at a fixed rate, no two alike, and checks every byte of
every answer; offload-client loads the server beside it. The gap of an event is the longest time
between two answers on a connection from the event on. Exit status 0 only if every request was
answered, and rightly; without a stand-by refusals are counted.
"""

import argparse
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from probe import MIB, PATIENCE_S, Probe

BIN = Path(os.environ.get("OFFLOAD_BIN_DIR",
                          Path(__file__).resolve().parent.parent / "build/release/bin"))


class Program:
    """One of the programs, its log in a file."""

    def __init__(self, folder, name, *arguments, before=()):
        """`before`: a command that runs it."""
        number = len(list(folder.iterdir()))
        self.log_file = folder / f"{name}-{number}.log"
        with self.log_file.open("w") as sink:
            self.process = subprocess.Popen([*before, BIN / name, *map(str, arguments)], stdout=sink,
                                            stderr=sink)

    def wait_for_log(self, pattern, count=1):
        """The `count`-th match of `pattern`."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            log = self.log_file.read_text(errors="replace")
            found = list(re.finditer(pattern, log))
            if len(found) >= count:
                return found[count - 1]
            if self.process.poll() is not None:
                sys.exit(f"{self.log_file.name}: exit {self.process.returncode} before "
                         f"'{pattern}':\n{log[-4000:]}")
            time.sleep(0.002)
        sys.exit(f"{self.log_file.name} does not say '{pattern}':\n{log[-4000:]}")

    def count_in_log(self, pattern):
        return len(re.findall(pattern, self.log_file.read_text(errors="replace")))

    def send(self, number):
        self.process.send_signal(number)

    def wait(self):
        return self.process.wait(PATIENCE_S)

    def end(self):
        if self.process.poll() is None:
            self.send(signal.SIGCONT)
            self.send(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE_S / 2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Stage:
    """A server under load, and its workers."""

    def __init__(self, options, folder, size, worker_timeout):
        self.options, self.folder = options, folder
        folder.mkdir()
        slots = max(4, min(128, 16 * MIB // size))
        self.comch = ["--comch", f"unix:{folder}/comch.sock"]
        self.server = Program(folder, "offload-server", "-p", 0, *self.comch, "--threads",
                              options.threads, "--max-message-length", max(256, size),
                              "--max-concurrent-messages", slots, "--worker-timeout",
                              worker_timeout)
        self.workers = []
        self.made = self.attached = 0
        self.size = size
        self.probe = self.client = None

    def worker(self, *more):
        """One more, once it serves."""
        gpu = self.options.gpu[self.made % len(self.options.gpu)] if self.options.gpu else None
        backend = self.options.backend[self.made % len(self.options.backend)]
        self.made += 1
        self.workers.append(Program(self.folder, "offload-worker", *self.comch, "--backend",
                                    backend, *(["-g", gpu] if gpu else []), *more))
        return self.workers[-1]

    def wait_until_attached(self):
        self.attached += 1
        self.server.wait_for_log(r"worker \d+, .* is ready", self.attached)

    def begin_load(self):
        port = int(self.server.wait_for_log(r"listening on \S*:(\d+)")[1])
        options = self.options
        in_flight = options.in_flight if self.size <= 64 * 1024 else 1
        if options.load:
            self.client = Program(self.folder, "offload-client", "-s", "127.0.0.1", "-p", port,
                                  "-t", options.load, "--size", self.size, "--duration", "24h",
                                  "--max-concurrent-messages", in_flight,
                                  "--response-timeout", f"{PATIENCE_S}s")
            self.client.wait_for_log("connected to")
        self.probe = Probe(port, self.size, options.threads, max(2, in_flight), options.interval)
        self.probe.mark()
        self.probe.gap_until_served()

    def end(self):
        """Ends all: what the load and the probe saw."""
        answered, wrong, refused, unanswered = self.probe.end()
        result = {"answered": answered, "wrong": wrong, "refused": refused,
                  "unanswered": unanswered}
        if self.client:
            self.client.send(signal.SIGINT)
            status = self.client.wait()
            text = self.client.log_file.read_text()
            table = {name: float(value) for name, value in
                     re.findall(r"^(.+?):\s+([\d.]+)$", text, re.MULTILINE)}
            result["load_answered"] = int(table.get("Valid responses", 0))
            result["load_failed"] = int(status not in (0, 130) or "Unanswered requests" in table
                                        or table["Valid responses"] != table["Operation count"])
            if result["load_failed"]:
                print(text[-2000:], file=sys.stderr)
        for program in [*self.workers, self.server]:
            program.end()
        return result


def losses(options, stage, stand_by):
    """Kills the active worker again and again; with `stand_by` another waits, else it is started
    at once, as a supervisor would."""
    active = stage.worker()
    stage.wait_until_attached()
    waiting = stage.worker("--stand-by") if stand_by else None
    if waiting:
        stage.wait_until_attached()
    stage.begin_load()
    gaps = []
    for _ in range(options.losses if stand_by else min(options.losses, 20)):
        stage.probe.mark()
        active.process.kill()
        active = waiting or stage.worker()
        if not waiting:
            stage.wait_until_attached()
        gaps.append(stage.probe.gap_until_served())
        if waiting:
            waiting = stage.worker("--stand-by")
            stage.wait_until_attached()
        time.sleep(options.pause)
    return gaps


def replacements(options, stage):
    active = stage.worker()
    stage.wait_until_attached()
    stage.begin_load()
    gaps = []
    for _ in range(options.replacements):
        stage.probe.mark()
        former, active = active, stage.worker("--replace")
        stage.wait_until_attached()
        if former.wait() != 0:
            sys.exit(f"the worker that was replaced failed:\n{former.log_file.read_text()}")
        gaps.append(stage.probe.gap_until_served())
        time.sleep(options.pause)
    return gaps


def freezes(stage, count):
    """Stops the active worker until another has its channels, then lets it continue: it attaches again as
    the stand-by."""
    active, waiting = stage.worker("--stand-by"), stage.worker("--stand-by")
    for worker in (active, waiting):
        stage.wait_until_attached()
        worker.wait_for_log("attached to")
    if not active.count_in_log(r"of \d+ channels are assigned"):
        active, waiting = waiting, active
    stage.begin_load()
    gaps = []
    for event in range(count):
        stage.probe.mark()
        active.send(signal.SIGSTOP)
        gone = stage.server.wait_for_log(r"worker \d+, .* is gone: (.*)", event + 1)[1]
        gaps.append(stage.probe.gap_until_served())
        active.send(signal.SIGCONT)
        active.wait_for_log("attached to", 1 + event // 2 + 1)
        stage.wait_until_attached()
        active, waiting = waiting, active
    print(f"  (last one given up: {gone})")
    return gaps


def show(name, gaps, seen):
    ranked = sorted(gap * 1e3 for gap in gaps)

    def rank(share):
        return ranked[min(len(ranked) - 1, math.ceil(share * len(ranked)) - 1)]

    print(f"{name:32} {len(gaps):4} times: gap p50 {rank(.5):8.1f}  p99 {rank(.99):8.1f}  "
          f"max {ranked[-1]:8.1f} ms;  {seen['answered'] + seen.get('load_answered', 0)} answers, "
          f"{seen['wrong']} wrong, {seen['refused']} refused, {seen['unanswered']} unanswered"
          f"{', LOAD FAILED' if seen.get('load_failed') else ''}", flush=True)
    return {"name": name, "gaps_ms": ranked, "p50_ms": rank(.5), "p99_ms": rank(.99),
            "max_ms": ranked[-1], **seen}


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", action="append", choices=["cpu", "cuda", "graph"],
                        help="of the workers; more than one: in turn (default: cpu)")
    parser.add_argument("-g", "--gpu", action="append", metavar="ADDRESS",
                        help="of the workers; more than one: in turn")
    parser.add_argument("--threads", type=int, default=1, help="I/O threads of the server")
    parser.add_argument("--losses", type=int, default=100)
    parser.add_argument("--replacements", type=int, default=50)
    parser.add_argument("--freezes", type=int, default=200, help="of all sizes together")
    parser.add_argument("--size", type=int, default=64, help="bytes, of losses and replacements")
    parser.add_argument("--sizes", type=lambda text: [int(each) for each in text.split(",")],
                        default=[64, 4096, 65536, MIB, 16 * MIB], help="bytes, of freezes")
    parser.add_argument("--in-flight", type=int, default=16, help="per connection")
    parser.add_argument("--interval", type=float, default=0.001,
                        help="seconds between two requests of a probe's connection")
    parser.add_argument("--load", type=int, default=1, help="threads of offload-client; 0: none")
    parser.add_argument("--pause", type=float, default=0.1, help="seconds after each event")
    parser.add_argument("--worker-timeout", default="1s", help="of the server, in freezes")
    parser.add_argument("--output", help="write all figures to this file")
    options = parser.parse_args()
    options.backend = options.backend or ["cpu"]
    if any(size % 8 or size == 0 for size in [*options.sizes, options.size]):
        parser.error("a size is a multiple of 8")
    return options


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    runs = [("loss, with a stand-by", options.size, options.losses, "10s",
             lambda stage: losses(options, stage, stand_by=True)),
            ("loss, another is started", options.size, options.losses, "10s",
             lambda stage: losses(options, stage, stand_by=False)),
            ("--replace", options.size, options.replacements, "10s",
             lambda stage: replacements(options, stage))]
    share = options.freezes // len(options.sizes)
    runs += [(f"frozen, resumed, {size} bytes", size, share, options.worker_timeout,
              lambda stage: freezes(stage, share)) for size in options.sizes]
    print(f"{'+'.join(options.backend)} workers, {options.threads} I/O threads, "
          f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}", flush=True)
    results = []
    for name, size, count, timeout, run in runs:
        if count == 0:
            continue
        with tempfile.TemporaryDirectory(prefix="offload-bench-") as folder:
            stage = Stage(options, Path(folder) / "run", size, timeout)
            try:
                gaps = run(stage)
                results.append(show(name, gaps, stage.end()))
            finally:
                for program in [*stage.workers, stage.server, stage.client]:
                    if program and program.process.poll() is None:
                        program.process.kill()
    if options.output:
        Path(options.output).write_text(json.dumps({"options": vars(options), "runs": results},
                                                 indent=2))
    bad = [run for run in results if run["wrong"] or run["refused"] or run["unanswered"]
           or run.get("load_failed")]
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
