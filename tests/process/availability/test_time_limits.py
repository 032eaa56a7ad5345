"""--request-timeout: only requests that are not answered in time are refused, with an error that says so."""
import signal

from harness import TIME_FACTOR, needs_cpu_worker
from wire import REQUEST_TIMED_OUT, RESPONSE, Wire, frame, payloads, reverse

pytestmark = needs_cpu_worker

LIMITS = ["--request-timeout", f"{300 * min(TIME_FACTOR, 3):.0f}ms", "--worker-timeout", "1h"]


def test_a_request_that_is_not_answered_in_time(stage):
    """The worker's later answers are dropped."""
    server, worker = stage.pair(*LIMITS, "--max-concurrent-messages", 8)
    with Wire(server.port) as wire, Wire(server.port) as other:
        wire.ask([b"in time"])
        worker.stop()
        wire.send(b"".join(map(frame, payloads(6, 100))))
        assert [wire.receive_error() for _ in range(6)] == [REQUEST_TIMED_OUT] * 6
        other.send(frame(b"of another client"))
        assert other.receive_error() == REQUEST_TIMED_OUT
        worker.send_signal(signal.SIGCONT)
        for each in (wire, other):
            each.ask(payloads(50, 100, seed=2))
            each.finish_sending()
            each.expect_end()
    assert "is gone" not in server.log


def test_zero_is_no_limit(stage):
    server, worker = stage.pair("--request-timeout", 0, "--worker-timeout", "1h")
    with Wire(server.port) as wire:
        worker.stop()
        wire.send(frame(b"question"))
        wire.wait_until_read()
        worker.send_signal(signal.SIGCONT)
        assert wire.receive() == (RESPONSE, reverse(b"question"))


def test_a_client_that_has_gone_meanwhile(stage):
    server, worker = stage.pair(*LIMITS)
    with Wire(server.port) as wire:
        worker.stop()
        with Wire(server.port) as gone:
            gone.send(frame(b"nobody waits for it") * 5)
            gone.wait_until_read()
            gone.reset()
        wire.send(frame(b"question"))
        assert wire.receive_error() == REQUEST_TIMED_OUT
        worker.send_signal(signal.SIGCONT)
        wire.ask(payloads(20, 100))
