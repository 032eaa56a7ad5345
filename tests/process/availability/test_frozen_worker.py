"""Workers freeze, as a whole or in the thread that serves a channel: another worker gets their requests, and no client
receives what they write when they continue."""
import errno
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from asker import Asker, wait_for_progress
from freeze import FrozenThread
from harness import TIME_FACTOR, Program, denying, needs_cpu_worker, on_one_machine, \
    wait_until
from wire import WORKER_UNAVAILABLE, Wire, frame, payloads, reverse

pytestmark = [needs_cpu_worker, on_one_machine]

# The smallest timeout that is allowed.
TIMEOUT = ["--worker-timeout", "1s"]
STUCK = "it has answered no request on channel 0 for"
# With a sanitizer, a busy machine needs longer than the timeout for the longest message alone.
LENGTHS = {"64B": 64, "4KiB": 4096, "64KiB": 64 << 10, "1MiB": 1 << 20} | (
    {"16MiB": 16 << 20} if TIME_FACTOR == 1 else {})
SIZES = pytest.mark.parametrize("size", LENGTHS.values(), ids=LENGTHS.keys())


class Stopped:
    """A whole process, stopped by SIGSTOP."""

    def __init__(self, worker):
        self._worker = worker
        worker.stop()

    def thaw(self):
        self._worker.send_signal(signal.SIGCONT)


FREEZES = pytest.mark.parametrize("freeze", [Stopped, FrozenThread],
                                  ids=["the process", "the channel's thread"])


def shape(size):
    return ["--max-message-length", max(size, 256), "--max-concurrent-messages", 4]


def freeze_in_turn(server, workers, freeze, size, rounds):
    """Freezes the serving worker under load until another one serves; then lets it continue, so that it
    writes what it was about to write, and attaches again. Every answer must be right."""
    one, other = workers
    attached = {worker: 1 for worker in workers}
    # The server stops reading from a client that does not read its answers, and this one sends first.
    asker = Asker(server.port, in_flight=4 if size <= 65536 else 1, size=size)
    wait_for_progress(asker, 10)
    for turn in range(1, rounds + 1):
        frozen = freeze(one)
        try:
            gone = server.wait_until_worker_gone(turn)
            assert STUCK in gone[2]
            wait_for_progress(asker, 10)
        finally:
            frozen.thaw()
        attached[one] += 1
        one.wait_for_log("the server has dropped this worker: " + STUCK, count=attached[one] - 1)
        one.wait_for_log("attached to", count=attached[one])
        one.wait_for_log("standing by: no channel is assigned", count=attached[one] - 1)
        wait_for_progress(asker, 10)
        one, other = other, one
    asker.stop()


def two_workers(stage, server, wrapper=()):
    one = stage.worker(wrapper=wrapper)
    server.wait_until_listening()
    other = stage.worker("--stand-by", wrapper=wrapper)
    other.wait_for_log("standing by: no channel is assigned")
    return one, other


@SIZES
@FREEZES
def test_a_frozen_worker_goes_on(stage, freeze, size):
    server = stage.server(*TIMEOUT, *shape(size))
    freeze_in_turn(server, two_workers(stage, server), freeze, size, rounds=2)


def test_without_pidfd_open(stage):
    """pidfd_open() is denied, as in a container whose seccomp profile does not know it."""
    wrapper = denying("pidfd_open", errno.EPERM)
    server = stage.server(*TIMEOUT, *shape(65536), wrapper=wrapper)
    freeze_in_turn(server, two_workers(stage, server, wrapper), Stopped, 65536, rounds=2)


class NamespacedProgram(Program):
    """A program in a separate PID namespace, as in a separate container. Signals go to the program, not to
    unshare(1), which exits with the program's status. LeakSanitizer stops a program's threads by
    numbers that they do not have in the namespace, and reports the memory of the others as leaks: it is off."""

    def __init__(self, folder, name, *options):
        options_of_asan = os.environ.get("ASAN_OPTIONS", "")
        super().__init__(folder, name, *options,
                         wrapper=["env", f"ASAN_OPTIONS={options_of_asan}:detect_leaks=0",
                                  "unshare", "--pid", "--fork", "--kill-child"])
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        wait_until(children.read_text, "unshare starts its program")
        self.pid = int(children.read_text().split()[0])
        wait_until(lambda: Path(f"/proc/{self.pid}/comm").read_text().strip() == name[:15],
                   "the program runs")

    def send_signal(self, number):
        if not self.alive:
            return
        wait_until(lambda: not self.alive or self.blocks(signal.SIGTERM), f"{self.name} is up")
        if self.alive:
            os.kill(self.pid, number)


def can_unshare():
    return shutil.which("unshare") and subprocess.run(
        ["unshare", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL).returncode == 0


@pytest.mark.skipif(not can_unshare(), reason="no PID namespace can be made here (needs root)")
def test_workers_in_other_pid_namespaces(stage):
    """The workers are as in separate containers: to the server they are process 1, or have no process id."""
    server = stage.server(*TIMEOUT, *shape(65536))

    def worker(*options):
        return stage.add(NamespacedProgram(stage.folder, "offload-worker", *stage.comch_options(),
                                           "--backend", "cpu", *options))
    one = worker()
    server.wait_until_listening()
    other = worker("--stand-by")
    other.wait_for_log("standing by: no channel is assigned")
    freeze_in_turn(server, (one, other), Stopped, 65536, rounds=2)


@FREEZES
def test_without_another_worker(stage, freeze):
    """Its requests are refused in time; it serves again when it continues."""
    server, worker = stage.pair(*TIMEOUT)
    with Wire(server.port) as wire:
        wire.ask([b"before"])
        frozen = freeze(worker)
        try:
            wire.send(b"".join(map(frame, payloads(5, 100))))
            assert [wire.receive_error() for _ in range(5)] == [WORKER_UNAVAILABLE] * 5
            assert STUCK in server.wait_until_worker_gone()[2]
        finally:
            frozen.thaw()
        server.wait_until_served(2)
        wire.ask(payloads(20, 100, seed=2))
    assert "the server has dropped this worker: " + STUCK in worker.log


def test_a_worker_that_stays_frozen_leaves_with_a_status_of_its_own(stage):
    """Its control thread learns that the server has dropped the worker, and cannot end the thread that hangs."""
    server, worker = stage.pair(*TIMEOUT)
    other = stage.worker("--stand-by")
    other.wait_for_log("standing by")
    with Wire(server.port) as wire, FrozenThread(worker) as frozen:
        requests = payloads(5, 100)
        wire.send(b"".join(map(frame, requests)))
        wire.expect(map(reverse, requests))
        frozen.wait_for_end()
        assert worker.wait() == 3
        assert "exiting with status 3: a back end hangs" in worker.log


def test_an_idle_worker_that_freezes_is_no_failure(stage):
    """It has no request to answer."""
    server, worker = stage.pair(*TIMEOUT)
    with Wire(server.port) as wire:
        wire.ask([b"before"])
        with FrozenThread(worker):
            with pytest.raises(AssertionError):
                server.wait_for_log("is gone", seconds=2)
        wire.ask([b"after"])
