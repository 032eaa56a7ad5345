"""A signal ends the program that gets it: a worker exits without the server, and waits for the next
server when its server exits. Each program has its exit status, and its time limit."""
import contextlib
import ctypes
import os
import re
import signal
import socket
import struct
import time
from pathlib import Path

import pytest

from control import (DETACH, RELEASED, SERVER_LEAVES, SHUTDOWN_COMPLETE, START_SHUTDOWN,
                           TOGETHER, FakeServer)
from harness import PATIENCE, needs_cpu_worker, on_one_machine, wait_until
from wire import ERROR, Wire, frame, payloads, reverse

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])


@BOTH
def test_a_signal_to_the_worker_leaves_the_server_up(stage, number):
    server, worker = stage.pair()
    with Wire(server.port) as wire:
        wire.ask([b"before"])
        worker.send_signal(number)
        assert worker.wait() == 0
        wire.send(frame(b"meanwhile"))
        stage.worker()
        wire.expect([reverse(b"meanwhile")])
    assert server.alive
    assert "the server has detached this worker" in worker.log


def test_a_worker_that_leaves_answers_what_it_was_asked(stage):
    server, worker = stage.pair("--max-concurrent-messages", 4)
    requests = payloads(2000, range(256))
    with Wire(server.port) as wire, wire.sending(b"".join(map(frame, requests))):
        wire.expect([reverse(requests[0])])
        stage.worker().wait_for_log("attached to")
        worker.send_signal(signal.SIGTERM)
        wire.expect(map(reverse, requests[1:]))
    assert worker.wait() == 0


@BOTH
def test_a_signal_to_the_server_leaves_the_worker_waiting(stage, number):
    server, worker = stage.pair()
    server.send_signal(number)
    assert server.wait() == 0
    worker.wait_for_log("the server is shutting down: waiting for the next one")
    server = stage.server()
    server.wait_until_listening()
    with Wire(server.port) as wire:
        wire.ask([b"the same worker"])
    assert worker.alive
    assert worker.terminate() == 0


def test_a_worker_waits_no_longer_than_it_is_told(stage):
    server = stage.server()
    worker = stage.worker("--connect-timeout", "300ms")
    server.wait_until_listening()
    assert server.terminate() == 0
    assert worker.wait() == 1
    assert "accepted this worker within" in worker.log


def test_together_a_signal_to_the_worker_ends_both(stage):
    server = stage.server()
    worker = stage.worker("--shutdown-together")
    server.wait_until_listening()
    assert worker.terminate() == 0
    assert server.wait() == 0


def test_together_the_servers_end_is_the_workers(stage):
    server = stage.server()
    worker = stage.worker("--shutdown-together")
    server.wait_until_listening()
    assert server.terminate() == 0
    assert worker.wait() == 0


def test_a_newer_worker_takes_the_place_of_the_older(stage):
    server, old = stage.pair()
    with Wire(server.port) as wire:
        wire.ask([b"old"])
        new = stage.worker("--replace")
        assert old.wait() == 0
        wire.ask([b"new"])
    assert "the server has detached this worker" in old.log
    assert new.terminate() == 0


def test_a_stand_by_serves_once_the_other_is_gone(stage):
    server, active = stage.pair()
    waiting = stage.worker("--stand-by")
    waiting.wait_for_log("standing by: no channel is assigned")
    with Wire(server.port) as wire:
        wire.ask([b"active"])
        active.kill()
        wire.ask([b"stand-by"])
    waiting.wait_for_log("1 of 1 channels are assigned")


# ---- Signals during the attachment


def expect_end_within_a_step(worker):
    """A step of a connection's set-up may take seconds: the worker exits before the step is over."""
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert not re.search("did not prove a key in time|the server is gone", worker.log)


def test_a_signal_while_there_is_no_server(stage):
    worker = stage.worker("--log-level", "debug")
    worker.wait_for_log("cannot connect to")
    assert worker.terminate() == 0


def test_a_signal_while_a_server_never_answers_the_greeting(stage):
    with FakeServer(stage.folder / "fake.sock") as fake:
        worker = stage.worker("--log-level", "debug", comch=stage.folder / "fake.sock")
        fake.accept()
        expect_end_within_a_step(worker)


def test_a_signal_while_a_server_never_begins_its_proof(stage):
    """Each step of the proof may wait for seconds: the main thread does not wait with it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        worker = stage.program("offload-worker", "--backend", "cpu", *stage.key_options(),
                               "--log-level", "debug", "--comch", f"tcp:127.0.0.1:{listener.getsockname()[1]}")
        with listener.accept()[0]:
            expect_end_within_a_step(worker)


# ---- What a server says


@pytest.mark.parametrize("reason, options, status", [
    (RELEASED, [], 0), (TOGETHER, [], 0), (SERVER_LEAVES, ["--shutdown-together"], 0),
    (SERVER_LEAVES, ["--connect-timeout", "300ms"], 1)],
    ids=["released", "together", "leaves, together", "leaves"])
def test_the_end_that_a_server_asks_for(stage, reason, options, status):
    with FakeServer(stage.folder / "fake.sock") as fake:
        worker = stage.worker(*options, comch=stage.folder / "fake.sock")
        fake.attach()
        fake.control.send(START_SHUTDOWN, reason)
        fake.control.expect(SHUTDOWN_COMPLETE)
        fake.listener.close()
        assert worker.wait() == status


@pytest.mark.parametrize("options, message", [([], DETACH), (["--shutdown-together"], START_SHUTDOWN)],
                         ids=["alone", "together"])
def test_what_a_worker_asks_for(stage, options, message):
    with FakeServer(stage.folder / "fake.sock") as fake:
        worker = stage.worker(*options, "--shutdown-timeout", "500ms",
                              comch=stage.folder / "fake.sock")
        fake.attach()
        worker.send_signal(signal.SIGTERM)
        assert fake.control.expect(message)[0] == b""
        assert worker.wait() == 0  # a server that does not answer does not delay it
        assert "the server did not detach this worker in time" in worker.log


def test_a_second_signal_ends_it_at_once(stage):
    with FakeServer(stage.folder / "fake.sock") as fake:
        worker = stage.worker("--shutdown-timeout", "60s", comch=stage.folder / "fake.sock")
        fake.attach()
        worker.send_signal(signal.SIGTERM)
        fake.control.expect(DETACH)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait() == -signal.SIGTERM


def test_a_server_that_wants_too_much_memory(stage):
    server = stage.server("--max-message-length", "256k", "--max-concurrent-messages", 16)
    server.wait_for_log("waiting for a worker")
    worker = stage.worker("--max-memory", "4m")
    assert worker.wait() == 1
    assert "--max-memory" in worker.log
    assert server.alive
    stage.worker("--max-memory", "64m").wait_for_log("attached to")


# ---- A back end that hangs

PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000


@contextlib.contextmanager
def frozen(worker, name):
    """Freezes one thread of the program, as a debugger does; its other threads continue."""
    libc = ctypes.CDLL(None, use_errno=True)
    def find():
        return [int(task.name) for task in Path(f"/proc/{worker.pid}/task").iterdir()
                if (task / "comm").read_text().strip() == name]
    tids = wait_until(find, f"{worker.name} has a thread {name}")
    if libc.ptrace(PTRACE_SEIZE, tids[0], 0, 0) != 0:
        pytest.skip(f"ptrace is denied here: {os.strerror(ctypes.get_errno())}")
    assert libc.ptrace(PTRACE_INTERRUPT, tids[0], 0, 0) == 0
    assert os.waitpid(tids[0], WALL)[0] == tids[0]
    yield
    with contextlib.suppress(ChildProcessError):  # only the tracer can wait for its end
        wait_until(lambda: os.waitpid(tids[0], WALL | os.WNOHANG)[0] != 0, "the thread is gone")


@needs_cpu_worker
@on_one_machine
def test_a_back_end_that_hangs_as_it_is_stopped(stage):
    """The thread of a channel never returns: the program exits with a separate status, and its server
    detects the exit at once."""
    with FakeServer(stage.folder / "fake.sock") as fake:
        worker = stage.worker(comch=stage.folder / "fake.sock")
        fake.attach()
        with frozen(worker, "worker-0"):
            worker.send_signal(signal.SIGTERM)
            fake.control.expect(DETACH)
            fake.control.send(START_SHUTDOWN, RELEASED)
            fake.control.expect_end()
        assert worker.wait() == 3
    assert "the back end hangs" in worker.log
    assert "exiting with status 3" in worker.log


@needs_cpu_worker
@on_one_machine
def test_a_worker_that_was_given_up_but_is_well_attaches_again(stage):
    with FakeServer(stage.folder / "fake.sock") as fake:
        worker = stage.worker(comch=stage.folder / "fake.sock")
        fake.attach()
        fake.control.send(ERROR, struct.pack(">I", 14) + b"it has not answered for 2 s")
        worker.wait_for_log("the server has dropped this worker: it has not answered for 2 s")
        fake.attach()
        assert worker.alive


@needs_cpu_worker
@on_one_machine
def test_a_worker_that_was_given_up_and_hangs_leaves(stage):
    with FakeServer(stage.folder / "fake.sock") as fake:
        worker = stage.worker(comch=stage.folder / "fake.sock")
        fake.attach()
        with frozen(worker, "worker-0"):
            fake.control.send(ERROR, struct.pack(">I", 14) + b"it has not answered for 2 s")
            fake.control.expect_end()
        assert worker.wait() == 3


def test_a_worker_that_was_stopped_as_a_whole_does_not_hang(stage):
    """A SIGSTOP that is longer than any limit is no hang once the program continues."""
    with FakeServer(stage.folder / "fake.sock") as fake:
        worker = stage.worker(comch=stage.folder / "fake.sock")
        fake.attach()
        worker.stop()
        time.sleep(0.5)
        worker.send_signal(signal.SIGCONT)
        worker.send_signal(signal.SIGTERM)
        fake.control.expect(DETACH)
        fake.control.send(START_SHUTDOWN, RELEASED)
        fake.control.expect(SHUTDOWN_COMPLETE)
        assert worker.wait() == 0
