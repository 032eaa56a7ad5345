"""Several workers on one server: a stand-by, two that share the channels, one that replaces
another. Whichever goes, no client notices."""
import signal

from asker import Asker, wait_for_progress
from harness import Load

import pytest

ROUNDS = 5


class Clients:
    """Askers on every channel, beside the load client with short and with long messages."""

    def __init__(self, stage, server, channels=1):
        self._loads = [Load(stage, server, "-t", 2, "--size", size, seconds=1)
                       for size in (64, 4000)]
        self._port, self._count = server.port, 2 * channels

    def __enter__(self):
        for load in self._loads:
            load.__enter__()
        self._askers = [Asker(self._port) for _ in range(self._count)]
        self.wait_for_progress()
        return self

    def wait_for_progress(self):
        for asker in self._askers:
            wait_for_progress(asker)

    def __exit__(self, kind, *rest):
        for load in self._loads:
            load.__exit__(kind, *rest)
        if kind is None:
            for asker in self._askers:
                asker.stop()


def test_a_stand_by_serves_when_the_worker_is_killed(stage):
    server, worker = stage.pair("--max-message-length", 4096)
    with Clients(stage, server) as clients:
        for kill in range(ROUNDS):
            stand_by = stage.worker("--stand-by")
            stand_by.wait_for_log("standing by: no channel is assigned")
            worker.kill()
            server.wait_until_worker_gone(kill + 1)
            stand_by.wait_for_log("1 of 1 channels are assigned")
            clients.wait_for_progress()
            worker = stand_by


def test_a_stand_by_has_no_share(stage):
    """An active worker would get one of the two channels."""
    server, _ = stage.pair("--threads", 2)
    stand_by = stage.worker("--stand-by")
    server.wait_until_attached(2)
    stand_by.wait_for_log("channels? (is|are) assigned")
    stage.run_client(server, "-t", 2, "-i", 100)
    assert "standing by: no channel is assigned" in stand_by.log and "of 2 channels" not in stand_by.log


def test_a_stand_by_serves_where_no_other_worker_is(stage):
    server = stage.server()
    worker = stage.worker("--stand-by")
    server.wait_until_listening()
    worker.wait_for_log("1 of 1 channels are assigned")
    stage.run_client(server, "-i", 100)


def test_two_workers_share_the_channels(stage):
    server, one = stage.pair("--threads", 4, "--max-message-length", 4096)
    with Clients(stage, server, channels=4) as clients:
        other = stage.worker()
        for worker in (one, other):
            worker.wait_for_log("2 of 4 channels are assigned")
        clients.wait_for_progress()
        one.kill()
        other.wait_for_log("4 of 4 channels are assigned")
        clients.wait_for_progress()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_one_of_two_workers_is_told_to_end(stage, number):
    server, one = stage.pair("--threads", 2, "--max-message-length", 4096)
    other = stage.worker()
    other.wait_for_log("1 of 2 channels are assigned")
    with Clients(stage, server, channels=2) as clients:
        one.send_signal(number)
        assert one.wait() == 0, one.log
        assert "the server has detached this worker" in one.log
        other.wait_for_log("2 of 2 channels are assigned")
        clients.wait_for_progress()
        assert server.alive


def test_workers_replace_each_other(stage):
    """Each ends once the next one serves, with status 0."""
    server, worker = stage.pair("--threads", 2, "--max-message-length", 4096)
    with Clients(stage, server, channels=2) as clients:
        for _ in range(ROUNDS):
            former, worker = worker, stage.worker("--replace")
            assert former.wait() == 0, former.log
            assert "the server has detached this worker" in former.log
            worker.wait_for_log("2 of 2 channels are assigned")
            clients.wait_for_progress()
    assert " error " not in server.log


def test_a_replacement_without_a_worker_just_serves(stage):
    server = stage.server()
    stage.worker("--replace").wait_for_log("1 of 1 channels are assigned")
    server.wait_until_listening()
    stage.run_client(server, "-i", 100)


def test_a_replacement_that_comes_back_replaces_nobody(stage):
    """It lost its server, not its manners: the option counts for the first time it attaches."""
    server, former = stage.pair()
    worker = stage.worker("--replace")
    assert former.wait() == 0
    worker.send_signal(signal.SIGSTOP)  # so that another is there before it
    server.kill()
    successor = stage.server()
    other = stage.worker()
    other.wait_for_log("attached to")
    worker.send_signal(signal.SIGCONT)
    successor.wait_until_attached(2)
    worker.wait_for_log("no channel is assigned")
    assert worker.alive and other.alive
    assert "worker 1, " not in "".join(line for line in successor.log.splitlines() if "gone" in line)
