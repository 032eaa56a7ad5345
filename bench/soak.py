#!/usr/bin/env python3
"""Runs the three programs under load while a schedule, drawn from a seed, injects faults.

Starts a server with two workers and a stand-by, over a Unix socket or TCP, a load client, and probes that check
every byte. Meanwhile, one after another: a worker is killed, stopped for a while, or told to detach; the server
rereads its files, some of them invalid, drains, and gets no more memory or descriptors for a while; clients send
invalid requests, send many requests without reading responses, disconnect in the middle of a request, and connect
and disconnect. Over TCP one worker is at the other end of a cable (a network namespace; needs root), which is
unplugged for a while.
At the end no response may be lost or wrong, and the server may use no more memory and descriptors than after
the first tenth of the time. Exit status 0 only if so; the seed repeats the schedule.
"""

import argparse
import contextlib
import os
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from availability import BIN, Program
from probe import REQUEST, Probe

# Growth that does not count: pages that an allocator keeps, descriptors of a client about to be admitted.
SPARE_BYTES, SPARE_FDS = 16 << 20, 32


class Cable:
    """Two ends of a wire, the far one in a separate network namespace."""

    ADDRESS, FAR_ADDRESS = "10.213.77.1", "10.213.77.2"

    def __init__(self):
        self.far = f"soak{os.getpid()}"
        self.near_end, self.far_end = f"sk{os.getpid()}a", f"sk{os.getpid()}b"
        try:
            self.ip("netns", "add", self.far)
            self.ip("link", "add", self.near_end, "type", "veth", "peer", "name", self.far_end, "netns", self.far)
            self.ip("address", "add", f"{self.ADDRESS}/30", "dev", self.near_end)
            self.ip("-n", self.far, "address", "add", f"{self.FAR_ADDRESS}/30", "dev", self.far_end)
            self.ip("-n", self.far, "link", "set", self.far_end, "up")
            self.plug()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def ip(*command):
        subprocess.run(["ip", *command], check=True, stderr=subprocess.PIPE, timeout=10)

    def plug(self):
        self.ip("link", "set", self.near_end, "up")

    def pull(self):
        self.ip("link", "set", self.near_end, "down")

    def close(self):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            self.ip("netns", "del", self.far)


def make_cable():
    """None, and a line that says why, where it takes what this user may not."""
    try:
        return Cable()
    except (OSError, subprocess.SubprocessError) as error:
        print(f"no cable: {(getattr(error, 'stderr', None) or str(error).encode()).decode().strip()}", flush=True)
        return None


class Soak:
    """The programs, and what may be done to them. Each function of events() is one."""

    def __init__(self, options, folder, schedule):
        self.folder, self.schedule = folder, schedule
        self.comch, key, self.cable = [], folder / "key", None
        if options.transport == "tcp":
            self.cable = make_cable()
            subprocess.run(["openssl", "rand", "-hex", "-out", key, "32"], check=True)
            key.chmod(0o600)
            with socket.socket() as probe:
                probe.bind((Cable.ADDRESS if self.cable else "127.0.0.1", 0))
                address, port = probe.getsockname()
            self.comch = ["--comch", f"tcp:{address}:{port}", "--comch-key-file", key]
        else:
            self.comch = ["--comch", f"unix:{folder}/comch.sock"]
        self.file, self.admin = folder / "server.toml", f"unix:{folder}/admin.sock"
        self.write_file()
        self.programs = []
        self.server = self.start("offload-server", "-p", 0, "--threads", 2, *self.comch, "--admin", self.admin,
                                 "--config", self.file, "--client-memory", 64 << 20, "--frame-timeout", "2s",
                                 "--max-message-length", 4096)
        self.workers = [self.worker(place) for place in range(3)]
        self.port = int(self.server.wait_for_log(r"listening on \S*:(\d+)")[1])

    def start(self, name, *arguments, before=()):
        self.programs.append(Program(self.folder, name, *arguments, before=before))
        return self.programs[-1]

    def worker(self, place):
        """The first is at the far end of the cable, the last stands by."""
        before = ["ip", "netns", "exec", self.cable.far] if self.cable and place == 0 else []
        return self.start("offload-worker", *self.comch, "--backend", "cpu", *["--stand-by"] * (place == 2), before=before)

    def write_file(self, wrong=False):
        self.file.write_text("worker-timeout = [\n" if wrong else "worker-timeout = \"10s\"\n")

    def client(self):
        return contextlib.closing(socket.create_connection(("127.0.0.1", self.port), 10))

    def replace_worker(self, end):
        """Ends one of them by `end`, and starts another in its place."""
        index = self.schedule.randrange(len(self.workers))
        former = self.workers[index]
        end(former)
        # SIGTERM: it has only just begun, and takes no signals yet.
        if former.wait() not in (0, -signal.SIGKILL, -signal.SIGTERM):
            sys.exit(f"a worker ended with {former.process.returncode}: {former.log_file}")
        self.workers[index] = self.worker(index)

    # ---- Events

    def kill_worker(self):
        self.replace_worker(lambda worker: worker.send(signal.SIGKILL))

    def let_worker_leave(self):
        self.replace_worker(lambda worker: worker.send(signal.SIGTERM))

    def freeze_worker(self):
        worker = self.schedule.choice(self.workers)
        worker.send(signal.SIGSTOP)
        time.sleep(self.schedule.uniform(0.01, 3))
        worker.send(signal.SIGCONT)

    def reload(self):
        self.write_file(wrong=self.schedule.random() < 0.3)
        self.server.send(signal.SIGHUP)

    def drain(self):
        for command in ("drain", "undrain"):
            subprocess.run([BIN / "offload-ctl", "--admin", self.admin, command], check=True,
                           stdout=subprocess.DEVNULL, timeout=30)

    def send_nonsense(self):
        with self.client() as client, contextlib.suppress(OSError):
            client.sendall(self.schedule.randbytes(self.schedule.randrange(1, 2000)))
            client.settimeout(1)
            while client.recv(4096):
                pass

    def ask_and_read_nothing(self):
        """A greedy client: as many requests as the server takes, none of the answers."""
        request = struct.pack(">III", 12 + 4096, REQUEST, 4096) + bytes(4096)
        with self.client() as client, contextlib.suppress(OSError):
            client.setblocking(False)
            until = time.monotonic() + self.schedule.uniform(0.1, 1)
            while time.monotonic() < until:
                with contextlib.suppress(BlockingIOError):
                    client.send(request * 16)

    def go_in_a_request(self):
        with self.client() as client:
            client.sendall(struct.pack(">III", 12 + 4096, REQUEST, 4096)[:self.schedule.randrange(1, 12)])
            if self.schedule.random() < 0.5:  # by a reset
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def come_and_go(self):
        for _ in range(self.schedule.randrange(1, 200)):
            self.client().thing.close()

    def pull_cable(self):
        self.cable.pull()
        time.sleep(self.schedule.uniform(0.01, 8))
        self.cable.plug()

    @contextlib.contextmanager
    def limit(self, what, most):
        former = resource.prlimit(self.server.process.pid, what)
        resource.prlimit(self.server.process.pid, what, (most, former[1]))
        yield
        resource.prlimit(self.server.process.pid, what, former)

    def take_memory(self):
        size = int(Path(f"/proc/{self.server.process.pid}/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
        with self.limit(resource.RLIMIT_AS, size + self.schedule.randrange(8 << 20)):
            self.meanwhile()

    def take_descriptors(self):
        with self.limit(resource.RLIMIT_NOFILE, self.held()[1] + self.schedule.randrange(8)):
            self.meanwhile()

    def meanwhile(self):
        """Work that needs memory and descriptors."""
        for _ in range(3):
            with contextlib.suppress(OSError):
                self.schedule.choice((self.ask_and_read_nothing, self.come_and_go, self.send_nonsense, self.kill_worker))()

    def events(self):
        return (self.kill_worker, self.let_worker_leave, self.freeze_worker, self.reload, self.drain,
                self.send_nonsense, self.ask_and_read_nothing, self.go_in_a_request, self.come_and_go,
                self.take_memory, self.take_descriptors, *([self.pull_cable] if self.cable else []))

    # ---- What it holds

    def held(self):
        """Bytes of memory, and descriptors."""
        folder = Path(f"/proc/{self.server.process.pid}")
        pages = int((folder / "statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE"), len(list((folder / "fd").iterdir()))

    def close(self):
        for program in self.programs:
            if program.process.poll() is None:
                program.process.kill()
                program.process.wait()
        if self.cable:
            self.cable.close()

    def end(self):
        for worker in self.workers:
            worker.send(signal.SIGCONT)
        ended = [program.end() for program in (*self.workers, self.server)]
        if any(status not in (0, -signal.SIGTERM) for status in ended[:-1]) or ended[-1]:
            sys.exit(f"the workers and the server ended with {ended}")


def run(options, folder):
    schedule = random.Random(options.seed)
    with contextlib.closing(Soak(options, folder, schedule)) as soak:
        return put_through(options, schedule, soak)


def put_through(options, schedule, soak):
    load = soak.start("offload-client", "-s", "127.0.0.1", "-p", soak.port, "-t", 1, "--connections", 4,
                      "--max-concurrent-messages", 8, "--duration", "24h", "--rate", options.rate,
                      "--response-timeout", "60s", "--quiet")
    probes = [Probe(soak.port, size, 2, 4, 0.01) for size in (64, 1024)]
    began, done, first, most = time.monotonic(), Counter(), None, (0, 0)
    while (passed := time.monotonic() - began) < options.seconds:
        event = schedule.choice(soak.events())
        event()
        done[event.__name__] += 1
        if load.process.poll() is not None or soak.server.process.poll() is not None:
            sys.exit(f"ended early: {load.log_file.read_text()[-2000:]}{soak.server.log_file.read_text()[-2000:]}")
        if passed < options.seconds / 10:
            first = tuple(map(max, first or (0, 0), soak.held()))
        time.sleep(schedule.uniform(0, 2 * options.pause))
    time.sleep(10)  # what clients left behind is over by now
    most = soak.held()
    print(", ".join(f"{name} {count}" for name, count in sorted(done.items())))
    sums = [sum(each) for each in zip(*(probe.end() for probe in probes))]
    print("probes: {} answered, {} wrong, {} refused, {} unanswered".format(*sums))
    load.send(signal.SIGINT)
    status, text = load.wait(), load.log_file.read_text()
    print("\n".join(line for line in text.splitlines() if line.split(":")[0] in
                    ("Operation count", "Valid responses", "Unanswered requests")))
    print(f"server: {first[0] >> 20} MiB and {first[1]} descriptors at most in the first tenth, "
          f"{most[0] >> 20} MiB and {most[1]} after the last")
    grew = most[0] > first[0] + SPARE_BYTES or most[1] > first[1] + SPARE_FDS
    soak.end()
    return status in (0, 130) and not any(sums[1:]) and not grew


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--transport", choices=("unix", "tcp"), default="unix")
    parser.add_argument("--rate", type=int, default=5000, help="requests a second of the load client")
    parser.add_argument("--pause", type=float, default=0.5, help="mean seconds between two events")
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.seconds:.0f} s, {options.transport}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="offload-soak-"))
    held = run(options, folder)
    if held:
        shutil.rmtree(folder)
    print("nothing lost, nothing wrong, no growth" if held else f"NOT so: see above, and the logs in {folder}")
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
