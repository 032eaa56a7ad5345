"""The programs' messages to systemd; the test acts as systemd: sd_notify(3)."""
import select
import signal
import socket

import pytest

from harness import PATIENCE


class Manager:
    """The socket of sd_notify, and a wrapper that runs a program with it, its watchdog's limit 0.9 s."""

    def __init__(self, folder):
        path = folder / "notify"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self.wrapper = ["env", f"NOTIFY_SOCKET={path}", "WATCHDOG_USEC=900000"]

    def hears(self, seconds):
        """Returns the next message, None if none comes in that time."""
        return self._socket.recv(256).decode() if select.select([self._socket], [], [], seconds)[0] else None

    def wait_for(self, message):
        for _ in range(1000):
            heard = self.hears(PATIENCE)
            assert heard, f"'{message}' does not come"
            if message in heard:
                return
        raise AssertionError(f"'{message}' is not among a thousand messages")

    def drop(self):
        while self.hears(0):
            pass


@pytest.fixture
def manager(stage):
    return Manager(stage.folder)


def test_the_server_says_what_it_does(stage, manager):
    server = stage.server(wrapper=manager.wrapper)
    manager.wait_for("READY=1\nSTATUS=waiting for the first worker")
    manager.wait_for("WATCHDOG=1")  # without a worker, too
    worker = stage.worker()
    manager.wait_for("STATUS=serving")
    worker.kill()
    manager.wait_for("STATUS=no worker is attached: requests wait")
    stage.worker()
    manager.wait_for("STATUS=serving")
    manager.wait_for("WATCHDOG=1")
    assert server.terminate() == 0
    manager.wait_for("STOPPING=1")


def test_the_worker_says_what_it_does(stage, manager):
    worker = stage.worker(wrapper=manager.wrapper)
    manager.wait_for("READY=1")  # without a server: one may be started after the other
    manager.wait_for("WATCHDOG=1")
    stage.server().wait_until_listening()
    manager.drop()
    manager.wait_for("WATCHDOG=1")
    assert worker.terminate() == 0
    manager.wait_for("STOPPING=1")


@pytest.mark.parametrize("program", ["server", "worker"])
def test_one_that_stands_still_says_nothing(stage, manager, program):
    running = getattr(stage, program)(wrapper=manager.wrapper)
    manager.wait_for("WATCHDOG=1")
    running.stop()
    manager.drop()
    assert manager.hears(1.5) is None
    running.send_signal(signal.SIGCONT)
    manager.wait_for("WATCHDOG=1")
