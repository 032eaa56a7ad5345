"""Coordinated omission: the time in which a stopped server does not answer shows in the response time, which counts
from the due times of requests, but not in a closed loop. The verdict names the side that was late."""
import signal
import time
from types import SimpleNamespace

import pytest

from harness import TIME_FACTOR, needs_cpu_worker
from results import finish, start

RATE = 2000
SECONDS, STOPPED = 5, 1
# The delay by other work on this machine that the verdict tolerates; less than the stop.
TOLERANT = ["--lag-tolerance", f"{min(0.2 * TIME_FACTOR, 0.4 * STOPPED)}s"]
OPEN = ["--rate", RATE, "--duration", f"{SECONDS}s", *TOLERANT]
DEADLINE = 0.2


def stop_for(program, seconds):
    """Stops the program for about `seconds`; returns the measured time."""
    begin = time.monotonic()
    program.stop()
    time.sleep(seconds)
    program.send_signal(signal.SIGCONT)
    return time.monotonic() - begin


@pytest.fixture(scope="module", name="stopped")
def fixture_stopped(shared_stage):
    """Runs three open loops against a server that is stopped for a second: with room for all due requests, with
    room for few of them, and with a deadline."""
    server, _ = shared_stage.pair()
    clients = {
        "wide": (start(shared_stage, server, *OPEN, "--max-concurrent-messages", 8192), 0),
        "narrow": (start(shared_stage, server, *OPEN, "--max-concurrent-messages", 16), 3),
        "deadline": (start(shared_stage, server, *OPEN, "--max-concurrent-messages", 8192, "--on-error",
                           "count", "--deadline", f"{DEADLINE}s"), 1),
    }
    for client, _ in clients.values():
        client.wait_for_log("connected to")
    time.sleep(SECONDS / 5)  # load before the stop
    seconds = stop_for(server, STOPPED)
    results = {name: finish(client, status) for name, (client, status) in clients.items()}
    return SimpleNamespace(seconds=seconds, **results)


def late_by(stop, quantile):
    """Returns the response time at `quantile`, in us, of a run in which nothing else is slow: a request that is due
    at the begin of the stop waits for all of it."""
    return max(0, stop - SECONDS * (1 - quantile)) * 1e6


@pytest.mark.parametrize("name", ["wide", "narrow"])
def test_the_response_time_shows_the_stop(stopped, name):
    run, = getattr(stopped, name)["runs"]
    response, service = run["response_time_us"], run["service_time_us"]
    for quantile, key in ((0.90, "p90"), (0.95, "p95"), (0.99, "p99")):
        # A wide range: the machine may have been slow before and after it.
        expected = late_by(stopped.seconds, quantile)
        assert response[key] >= 0.6 * expected, key
        # With room for few, the requests that have gathered are sent a few at a time, which takes longer.
        if name == "wide":
            assert response[key] <= 1.2 * expected + 1e5 * TIME_FACTOR, key
    assert response["max"] >= 0.6 * stopped.seconds * 1e6
    assert service["p50"] < 0.1 * STOPPED * 1e6
    # Requests that are noticed only after the end of the run are not sent any more.
    assert 0.98 * SECONDS * RATE <= run["valid_responses"] == response["count"] <= SECONDS * RATE


def test_the_service_time_alone_would_hide_it(stopped):
    """With 16 in flight, only 16 of 10,000 requests were in progress when the server stopped."""
    run, = stopped.narrow["runs"]
    assert run["service_time_us"]["p99"] < 0.2 * STOPPED * 1e6
    assert run["service_time_us"]["max"] >= 0.6 * STOPPED * 1e6


def test_the_server_is_named(stopped):
    """The verdict names it if there was no room for the due requests. If there was, the load was as requested."""
    verdict = stopped.narrow["runs"][0]["verdict"]
    assert verdict["code"] == "server_late"
    assert "the server was late" in verdict["text"]
    assert stopped.wide["runs"][0]["verdict"]["code"] == "kept_up"
    assert stopped.narrow["status"] == stopped.wide["status"] == "ok"


def test_what_comes_after_the_deadline_is_counted(stopped):
    run, = stopped.deadline["runs"]
    expected = (stopped.seconds - DEADLINE) * RATE
    assert set(run["errors"]) == {"late"}
    assert 0.6 * expected <= run["errors"]["late"] <= 1.2 * expected + 0.1 * RATE * TIME_FACTOR
    assert run["valid_responses"] + run["errors"]["late"] == run["operation_count"]
    assert 0.98 * SECONDS * RATE <= run["operation_count"] <= SECONDS * RATE
    assert run["response_time_us"]["count"] == run["operation_count"]  # late ones are latencies too
    assert run["response_time_us"]["max"] > DEADLINE * 1e6
    assert stopped.deadline["status"] == "failed"
    assert "the response came after --deadline" in stopped.deadline["faults"][0]


def test_a_closed_loop_hides_the_stop(stage):
    server, _ = stage.pair()
    client = start(stage, server, "--duration", "2s", "--max-concurrent-messages", 16)
    client.wait_for_log("connected to")
    time.sleep(0.5)
    seconds = stop_for(server, 0.6)
    run, = finish(client)["runs"]
    assert run["service_time_us"]["p99"] < 0.1 * seconds * 1e6
    assert run["service_time_us"]["max"] >= 0.6 * seconds * 1e6
    assert run["response_time_us"] is None and run["schedule_lag_us"] is None
    assert run["offered_per_second"] is None and run["arrivals"] is None
    assert run["verdict"]["code"] == "closed_loop"


def test_the_client_is_named(stage):
    """The client was stopped itself, so it was too late to say anything about the server: exit status 4."""
    server, _ = stage.pair()
    client = start(stage, server, "--rate", RATE, "--duration", "2s", "--lag-tolerance", "100ms",
                   "--max-concurrent-messages", 8192)
    client.wait_for_log("connected to")
    time.sleep(0.5)
    seconds = stop_for(client, 0.6)
    run, = finish(client, 4)["runs"]
    assert run["verdict"]["code"] == "client_late"
    assert "this client was late" in run["verdict"]["text"]
    lag = run["schedule_lag_us"]
    assert 0.6 * seconds * 1e6 <= lag["max"] and lag["p99"] >= 0.6 * (seconds - 0.02) * 1e6
    # Although sent late, the requests count from their due times.
    assert run["response_time_us"]["p99"] >= 0.6 * (seconds - 0.02) * 1e6
    assert run["service_time_us"]["p50"] < 0.1 * seconds * 1e6


@needs_cpu_worker
def test_a_deadline_that_stops_the_run(stage):
    server, worker = stage.pair()
    client = start(stage, server, "--duration", "60s", "--deadline", "300ms")
    client.wait_for_log("connected to")
    stop_for(worker, 0.5)
    result = finish(client, 1)
    assert result["runs"][0]["errors"] == {"late": 1}
    assert "the response came after --deadline" in client.log
