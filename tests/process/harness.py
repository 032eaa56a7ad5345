"""Runs the three programs as processes, as a user would, with a time limit on every wait."""
import contextlib
import itertools
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(os.environ.get("OFFLOAD_BIN_DIR", ROOT / "build/release/bin"))
SERVICES = BIN.parent / "services"  # modules, of examples/services and tests/services
BACKEND = os.environ.get("OFFLOAD_BACKEND", "cpu")
# The connection of server and worker: unix, or tcp or rdma as if on two machines; rdma if there is
# a device, as in the guest of scripts/rdma-guest.
TRANSPORT = os.environ.get("OFFLOAD_TRANSPORT", "unix")
# The sender of responses over rdma: a thread that posts them (cpu), or the back end (gpu).
DATA_PATH = os.environ.get("OFFLOAD_DATA_PATH", "cpu")
# The device of that machine: rxe0 of Soft-RoCE, or mlx5_0 of the software card (softcard/guest).
RDMA_DEVICE = next((place.name for place in Path("/sys/class/infiniband").glob("*")), "none")
# Sanitizers make the programs slower: time limits grow by this, and counts shrink.
TIME_FACTOR = float(os.environ.get("OFFLOAD_TIME_FACTOR", "1"))
SANITIZE = os.environ.get("OFFLOAD_SANITIZE", "").split(",")
EXTENSIONS = os.environ.get("OFFLOAD_EXTENSIONS", "tasks rdma_tasks packets report doctor").split()
LONG = os.environ.get("OFFLOAD_LONG") == "1"
# The time limit for anything that should be quick. It is far above the usual time: 20 s of it are for a machine that
# does much other work.
PATIENCE = 20 + 10 * TIME_FACTOR

# Exit statuses of a client whose responses were all right; 3, 4: late, as on a busy machine; 5: too few to tell.
RIGHT = (0, 3, 4, 5)

# A sample's exit status where the machine lacks the device.
NO_DEVICE = 77

needs_cpu_worker = pytest.mark.skipif(
    BACKEND != "cpu", reason="a GPU works on while the worker's process is stopped")

on_one_machine = pytest.mark.skipif(
    TRANSPORT != "unix", reason="about a worker that the server's kernel knows the process of")

CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
SANITIZER_REPORT = re.compile(r"(Address|Thread|Leak|UndefinedBehavior)Sanitizer|runtime error:")


def denying(call, number):
    """Returns a wrapper that runs a program for which that system call fails with this errno, as the
    seccomp profiles of containers do."""
    return [str(BIN / "deny_syscall"), call, str(number)]


def scaled(count, lowest=1):
    """Returns `count` operations, or fewer in a build that is slow."""
    return max(lowest, int(count / TIME_FACTOR))


reservations = []


def free_port():
    """Returns a TCP port of loopback that is free, and that no other test gets before this process ends: an abstract
    socket stands for it (tests/net/free_port.hpp has the same). It is below those that the kernel gives to port 0: the
    kernel would give a port that was just free to the next program that asks."""
    for _ in range(1000):
        port = random.randrange(10000, 30000)
        reservation = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            reservation.bind(f"\0offload-test-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            reservation.close()
            continue
        reservations.append(reservation)
        return port
    raise AssertionError("no port of loopback is free")


def wait_until(condition, what, seconds=PATIENCE):
    """Waits until `condition()` is true and returns its value; fails with `what` if it does not become
    true in time."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {seconds:.1f} s: {what}"
        time.sleep(0.002)


class Program:
    """A process of one of the programs. Its output goes to files, so that it never blocks."""

    _numbers = itertools.count()

    def __init__(self, folder, name, *options, wrapper=()):
        """`wrapper`: the words of a command that replaces itself by the program."""
        self.command = [*wrapper, str(BIN / name), *map(str, options)]
        self.kind = name
        self.name = f"{name}-{next(self._numbers)}"
        self._out = folder / f"{self.name}.out"
        self._err = folder / f"{self.name}.err"
        self._expected = False  # the test saw its end, or killed it
        self._told = False  # to end, by a signal
        with open(self._out, "wb") as out, open(self._err, "wb") as err:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=err)
        self.pid = self.process.pid

    @property
    def out(self):
        return self._out.read_text(errors="replace")

    @property
    def log(self):
        return self._err.read_text(errors="replace")

    @property
    def alive(self):
        return self.process.poll() is None

    def wait_for_log(self, pattern, seconds=PATIENCE, count=1):
        """Returns the match of the `count`-th occurrence of `pattern` in the log, once it is there."""
        def found():
            ended = not self.alive  # asked before the log is read, which is then complete
            matches = list(re.finditer(pattern, self.log))
            if len(matches) >= count:
                return matches[count - 1]
            assert not ended, \
                f"{self.name} exited with {self.process.returncode} before it logged '{pattern}'"
            return None
        return wait_until(found, f"'{pattern}' in the log of {self.name}", seconds)

    def send_signal(self, number):
        if number in (signal.SIGINT, signal.SIGTERM) and not self._told:
            # A program that has only just begun would not handle it.
            wait_until(lambda: not self.alive or self.blocks(number), f"{self.name} takes signals")
            self._told = True
        self.process.send_signal(number)

    def stop(self):
        """Sends SIGSTOP; returns when none of its threads runs any more. Needs a SIGCONT or kill()."""
        self.send_signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{self.pid}/task")
        wait_until(lambda: all(self._stat(task)[0] == "T" for task in tasks.iterdir()),
                   f"{self.name} stops")

    def terminate(self):
        """Sends SIGTERM; returns the exit status."""
        self.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self):
        """Sends SIGKILL, as part of the test; returns when the process is gone."""
        self._expected = True
        self.process.kill()
        self.process.wait(PATIENCE)

    def wait(self, seconds=PATIENCE):
        """Returns the exit status, once the program has exited by itself."""
        wait_until(lambda: not self.alive, f"{self.name} exits", seconds)
        self._expected = True
        return self.process.returncode

    def end(self):
        """Ends it at the end of a test; returns its faults, empty if there were none."""
        faults = []
        told = self.alive
        if told:
            self.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
                faults.append(f"{self.name} did not exit on SIGTERM and had to be killed")
        status = self.process.returncode
        if not self._expected and status not in ((0, 130) if told else (0,)):
            why = "on SIGTERM" if told else "by itself"
            faults.append(f"{self.name} exited with {status} {why}")
        if self._expected and -status in CRASHES:
            faults.append(f"{self.name} crashed with signal {-status}")
        if SANITIZER_REPORT.search(self.log):
            faults.append(f"{self.name} has a sanitizer's report in its log")
        return faults

    # ---- The kernel's information about it

    def blocks(self, number):
        """Returns whether it blocks that signal, to handle it itself: true until it was told to end."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return bool(int(re.search(r"SigBlk:\s+(\w+)", status)[1], 16) >> (number - 1) & 1)

    def cpu_seconds(self):
        """Returns the user and system time of all its threads until now."""
        fields = self._stat()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wait_until_it_works(self):
        """Waits until it has used a processor for a while from now on: for longer than a program needs for
        the rest of its start."""
        before = self.cpu_seconds()
        wait_until(lambda: self.cpu_seconds() > before + 0.05 * TIME_FACTOR, "the program works")

    def _stat(self, of=None):
        """Returns the fields of the process's stat file, or of one of its threads, from the state on."""
        stat = ((of or Path(f"/proc/{self.pid}")) / "stat").read_text()
        return stat[stat.rindex(")") + 2:].split()

    def resident_bytes(self):
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self):
        """Returns the processors that each thread may run on, as in "0-3", by the thread's name."""
        cpus = {}
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            status = (task / "status").read_text()
            name = re.search(r"Name:\s+(.*)", status)[1]
            cpus[name] = re.search(r"Cpus_allowed_list:\s+(.*)", status)[1]
        return cpus


class Server(Program):
    """offload-server, on a separate control socket and any free port unless the options say otherwise."""

    def __init__(self, folder, comch, *options, socket_file=None, wrapper=()):
        port = [] if "-p" in options or "--listen" in options else ["-p", 0]
        super().__init__(folder, "offload-server", *comch, *port, *options, wrapper=wrapper)
        self.socket_file = socket_file
        self.port = None

    def wait_until_listening(self):
        found = self.wait_for_log(r"listening on (\S+):(\d+) with \d+ threads, service \w+")
        self.port = int(found[2])
        return found

    def wait_until_attached(self, count=1):
        """Waits until a worker has attached for the `count`-th time."""
        return self.wait_for_log(r"worker (\d+), .+ is ready", count=count)

    def wait_until_served(self, count=1):
        """Waits until a worker has been given channels for the `count`-th time. Before, requests may be refused
        because there is no worker; afterwards they are answered."""
        return self.wait_for_log(r"worker (\d+), .+ serves [1-9]\d* of", count=count)

    def wait_until_worker_gone(self, count=1):
        return self.wait_for_log(r"worker (\d+), .+ is gone: (.*)", count=count)


class Stage:
    """The programs of one test, their logs and their control socket. Ends all programs that it started."""

    def __init__(self):
        # A Unix socket's path has at most 107 bytes, and pytest's folders are longer.
        self.folder = Path(tempfile.mkdtemp(prefix="offload-", dir="/tmp"))
        self.comch = self.folder / "comch.sock"
        self._key_file = self.folder / "comch.key"
        self._key_file.touch(mode=0o600)
        self._key_file.write_bytes(os.urandom(32))
        self._port = free_port()
        self._programs = []

    @property
    def comch_address(self):
        if TRANSPORT == "unix":
            return f"unix:{self.comch}"
        host = os.environ["RDMA_GUEST_ADDRESS"] if TRANSPORT == "rdma" else "127.0.0.1"
        return f"{TRANSPORT}:{host}:{self._port}"

    def key_options(self):
        return ["--comch-key-file", self._key_file]

    def comch_options(self, path=None):
        """Returns the options for the place where server and worker meet; a socket at `path` if given."""
        if path is not None:
            return ["--comch", f"unix:{path}"]
        key = [] if TRANSPORT == "unix" else self.key_options()
        return ["--comch", self.comch_address, *key]

    def add(self, program):
        self._programs.append(program)
        return program

    def program(self, name, *options, wrapper=()):
        if name == "offload-server" and "--comch" in options and "-p" not in options:
            options += ("-p", 0)  # another test may have the port that a server has by default
        return self.add(Program(self.folder, name, *options, wrapper=wrapper))

    def server(self, *options, comch=None, wrapper=()):
        on_socket = comch is not None or TRANSPORT == "unix"
        return self.add(Server(self.folder, self.comch_options(comch), *options, wrapper=wrapper,
                               socket_file=(comch or self.comch) if on_socket else None))

    def worker(self, *options, comch=None, wrapper=(), data_path=DATA_PATH):
        path = ["--data-path", data_path] if TRANSPORT == "rdma" else []
        return self.program("offload-worker", *self.comch_options(comch), "--backend", BACKEND, *path,
                            *options, wrapper=wrapper)

    def pair(self, *options):
        """Starts a server with `options`, and its worker; returns both once the server listens."""
        server = self.server(*options)
        worker = self.worker()
        server.wait_until_listening()
        return server, worker

    def client(self, server, *options, host="127.0.0.1"):
        """Starts offload-client with `server` (or a port) as its server."""
        port = getattr(server, "port", server)
        return self.program("offload-client", "-s", host, "-p", port, *options)

    def run_client(self, server, *options, host="127.0.0.1", seconds=60 * TIME_FACTOR):
        """Runs a client to its end; it must exit with 0, with every response right."""
        client = self.client(server, *options, host=host)
        assert client.wait(seconds) == 0, client.log
        return client

    def close(self):
        """Ends the remaining programs; raises if a program crashed, hung or did not exit as it should."""
        faults = []
        for program in self._programs:
            program.send_signal(signal.SIGCONT)
        # In this order no client waits for a response, and a server detaches its worker.
        order = ["offload-client", "client_library_load", "offload-server", "offload-worker"]
        for program in sorted(self._programs, key=lambda each: order.index(each.kind)):
            faults += program.end()
        for program in self._programs:  # pytest shows it if the test failed
            if program.kind == "offload-client" and program.process.returncode == 0:
                continue
            print(f"---- {' '.join(program.command)}\n{program.log[-4000:]}")
        shutil.rmtree(self.folder)
        assert not faults, "; ".join(faults)


class Load:
    """A context that runs healthy clients in parallel with its body: runs of the load client, one after
    the other, each of which must end with every response right."""

    def __init__(self, stage, server, *options, seconds=0.3):
        self._start = lambda: stage.client(server, *options, "--duration", f"{seconds}s",
                                           "--response-timeout", f"{60 * TIME_FACTOR}s")
        self._limit = seconds + 60 * TIME_FACTOR
        self._running = threading.Event()
        self._over = threading.Event()
        self._failure = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            while not self._over.is_set():
                client = self._start()
                client.wait_for_log("connected to")
                self._running.set()
                assert client.wait(self._limit) == 0, client.log
                table = statistics(client)
                assert table["Valid responses"] == table["Operation count"] > 0, client.out
                assert "Unanswered requests" not in table, client.out
        except Exception as failure:  # of any kind: __exit__ raises it
            self._failure = failure
        self._running.set()

    def __enter__(self):
        self._thread.start()
        assert self._running.wait(PATIENCE), "the load does not start"
        return self

    def __exit__(self, kind, *_):
        self._over.set()
        self._thread.join(self._limit + PATIENCE)
        if kind is None:
            assert not self._thread.is_alive(), "the load does not end"
            if self._failure:
                raise self._failure


def statistics(client):
    """Returns the client's table as a dictionary of numbers; the latencies are those of the service time,
    as "service time p50"."""
    lines = re.findall(r"^(\S.+?):\s+([\d.]+)$", client.out, re.MULTILINE)
    latencies = re.findall(r"^  (\S+)\s+([\d.]+)(?:\s+[\d.]+)?$", client.out, re.MULTILINE)
    return {**{name: float(value) for name, value in lines},
            **{f"service time {name}": float(value) for name, value in latencies}}


def hang_up_with_fifo(program, file, count):
    """Sends SIGHUP with a FIFO instead of the file, for the count-th time: expects an error, and restores the file."""
    kept = file.read_bytes()
    file.unlink()
    os.mkfifo(file, 0o600)
    program.send_signal(signal.SIGHUP)
    program.wait_for_log("SIGHUP: nothing was changed: .*is not a regular file", count=count)
    file.unlink()
    file.write_bytes(kept)
    file.chmod(0o600)


def expect_server_left(server, worker):
    """Checks that the server has ended as it should, and that its worker waits for the next one."""
    assert server.wait() == 0, server.log
    worker.wait_for_log("the server is shutting down: waiting for the next one")
    assert not (server.socket_file and server.socket_file.exists()), "the socket file is still there"


def expect_end_of_both(server, worker):
    """Checks that server and worker have exited, after a signal to one of them."""
    assert server.wait() == 0, server.log
    assert worker.wait() == 0, worker.log
    assert not (server.socket_file and server.socket_file.exists()), "the socket file is still there"


def run_sample(name):
    """Returns the output of the sample, after it has ended with exit status 0."""
    ended = subprocess.run([BIN / name], capture_output=True, text=True, timeout=3 * PATIENCE)
    if ended.returncode == NO_DEVICE:
        pytest.skip(ended.stdout.strip())
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stderr == ""
    return ended.stdout
