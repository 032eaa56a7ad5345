"""A request kills each worker that gets it: its client is refused, and no other client is."""
import signal
import threading

import pytest

from harness import BACKEND, PATIENCE, SERVICES, wait_until
from wire import WORKER_FAILED, Wire, frame

pytestmark = pytest.mark.skipif(BACKEND != "cpu", reason="the modules of tests have no code for GPUs")

OPTIONS = ["--service-module", SERVICES / "test_shifted.so", "--service-option", "die-on=0"]
FATAL = frame(b"\0 kills the worker")


class Honest(threading.Thread):
    """A client that always has a request in flight; stop() raises if an answer was missing or wrong."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.wire = Wire(port)
        self.answered = 0
        self.failure = None
        self._stopping = threading.Event()
        self.start()

    def run(self):
        try:
            while not self._stopping.is_set():
                request = b"question %d" % self.answered
                self.wire.ask([request], lambda asked: bytes(octet + 1 for octet in asked))
                self.answered += 1
        except Exception as failure:  # of any kind: stop() raises it
            self.failure = failure

    def wait_for_progress(self, answers=20):
        aim = self.answered + answers
        wait_until(lambda: self.answered >= aim or self.failure, f"{answers} more answers")

    def stop(self):
        self._stopping.set()
        self.join(PATIENCE)
        assert not self.is_alive(), "an answer is missing"
        if self.failure:
            raise self.failure


def expect_refusal(wire):
    assert wire.receive_error() == WORKER_FAILED
    wire.expect_end()


@pytest.mark.parametrize("threads", [1, 2])
def test_three_workers_are_lost_and_no_answer(stage, threads):
    server = stage.server("--service", "shifted", "--threads", threads, "--worker-timeout", f"{2 * PATIENCE}s")
    workers = [stage.worker(*OPTIONS) for _ in range(3)]
    server.wait_until_attached(3)
    server.wait_until_listening()
    clients = [Honest(server.port) for _ in range(4)]
    with Wire(server.port, source="127.0.0.9") as culprit, Wire(server.port, source="127.0.0.9") as sibling:
        for client in clients:
            client.wait_for_progress()
        culprit.send(FATAL * 3)
        for worker in workers:
            assert worker.wait() == -signal.SIGKILL
        fourth = stage.worker(*OPTIONS)
        expect_refusal(culprit)
        sibling.send(FATAL)
        for client in clients:
            client.wait_for_progress()
        assert fourth.alive, "a request of an address that waits got to a worker"
    server.wait_for_log(r"client \d+, 127.0.0.9:\d+: three workers were lost with its request")
    with Wire(server.port, source="127.0.0.9") as newcomer:
        expect_refusal(newcomer)
    clients.append(Honest(server.port))
    for client in clients:
        client.wait_for_progress()
        client.stop()
    assert fourth.alive and len(server.log.split(" is gone: ")) == 4, "three workers were lost"
