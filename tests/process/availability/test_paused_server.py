"""A server is paused, as by a debugger, a freezer of containers or its virtual machine: it loses the time, and must
not blame its peers for it. Limits are small, so that short pauses exceed them."""
import contextlib
import signal
import time

import pytest

from asker import Asker, wait_for_progress
from harness import TIME_FACTOR, needs_cpu_worker, wait_until
from wire import Wire, frame, reverse

pytestmark = needs_cpu_worker

SECOND = min(TIME_FACTOR, 3)
LIMITS = [option for name, limit in (("worker", 1), ("request", 1), ("frame", 1), ("client", 1),
                                     ("idle", 2))
          for option in (f"--{name}-timeout", f"{limit * SECOND:.0f}s")]
PAUSE = 2.5 * SECOND
# A worker disconnects from a server after 5 s of silence.
LONG_PAUSE = 6


@contextlib.contextmanager
def paused(*programs, seconds=PAUSE, once=lambda: True):
    """Pauses the programs for `seconds`, longer than anything else here takes. The pause begins when `once()` is true,
    which is checked while the programs are stopped: a busy machine could otherwise delay the check beyond their
    limits."""
    def stopped():
        for program in programs:
            program.stop()
        if once():
            return True
        for program in programs:
            program.send_signal(signal.SIGCONT)
        return False
    wait_until(stopped, "the pause may begin")
    end = time.monotonic() + seconds
    yield
    time.sleep(max(end - time.monotonic(), 0))
    for program in programs:
        program.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("with_worker", [False, True], ids=["alone", "with its worker"])
def test_no_limit_counts_a_pause(stage, with_worker):
    server, worker = stage.pair(*LIMITS, "--max-message-length", "64k")
    programs = (server, worker) if with_worker else (server,)
    askers = [Asker(server.port, in_flight=40), Asker(server.port, in_flight=4, size=60000)]
    for pause in range(2):
        for asker in askers:
            wait_for_progress(asker, 50)
        with Wire(server.port) as halting, Wire(server.port) as idle:
            question = b"in two halves, %d" % pause * 100
            whole = frame(question)
            idle.ask([b"before"])
            halting.send(whole[:500])
            with paused(*programs, once=lambda: halting.rest_unread() == 0):
                halting.send(whole[500:])
                idle.send(frame(b"meanwhile"))
            halting.expect([reverse(question)])
            idle.expect([reverse(b"meanwhile")])
    for asker in askers:
        asker.stop()
    assert "is gone" not in server.log
    assert "is disconnected" not in server.log


def test_a_worker_that_gave_the_server_up_serves_again(stage):
    """The worker was right to do so, as it was not paused itself. No request waits for it as long as
    --worker-timeout."""
    patience = f"{2 * TIME_FACTOR:.0f}s"
    server, worker = stage.pair("--worker-timeout", patience, "--max-message-length", 1024)
    asker = Asker(server.port)
    wait_for_progress(asker)
    with paused(server, seconds=LONG_PAUSE):
        worker.wait_for_log("it has been silent for too long")
    server.wait_until_attached(2)
    wait_for_progress(asker)
    asker.stop()
    assert "requests are refused" not in server.log
