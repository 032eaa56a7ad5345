"""With --on-error count a run continues after errors, and counts them by kind; without it the first error ends the
run."""
import time

import pytest

from harness import PATIENCE, TIME_FACTOR, free_port, needs_cpu_worker
from results import finish, load, load_once, requests_of, start
from wire import Wire

COUNT = ["--on-error", "count"]


def lost_of(run):
    """Returns the number of requests whose connection ended: by a FIN or, if it had unread bytes, by a RST."""
    return run["errors"].get("closed", 0) + run["errors"].get("reset", 0)


def test_a_server_that_is_killed_and_started_again(stage):
    """The server is stopped first, so that the number in flight is known: it is the largest allowed."""
    port, connections, window = free_port(), 4, 16
    server = stage.server("-p", port)
    stage.worker()
    server.wait_until_listening()
    log = stage.folder / "requests.csv"
    client = start(stage, server, "-t", 2, "--connections", connections // 2, "--rate", 4000,
                   "--max-concurrent-messages", window, "--duration", f"{6 + TIME_FACTOR}s", *COUNT,
                   "--log-requests", log)
    client.wait_for_log("connected to")
    time.sleep(0.3)
    server.stop()
    time.sleep(0.3 * TIME_FACTOR)  # for 1,200 requests: they fill the windows, 64 in all
    server.kill()
    time.sleep(0.2)  # during this time no server listens
    stage.server("-p", port).wait_until_listening()
    result = finish(client, 1)
    run, = result["runs"]
    assert result["status"] == "failed"
    assert set(run["errors"]) <= {"closed", "reset", "refused"}
    # A server that dies may still accept a connection again, which is then lost as well.
    assert lost_of(run) == run["unanswered_requests"] >= connections * window
    assert run["errors"]["refused"] >= connections
    assert run["connect_time_us"]["count"] >= 2 * connections
    assert run["valid_responses"] == run["operation_count"]
    # The run continued: there are responses long after the first connections were lost.
    requests = requests_of(log)
    lost = [each for each in requests if each["outcome"] != "ok"]
    assert len(lost) == lost_of(run)
    assert {each["connection"] for each in lost} == set(range(connections))
    for connection in range(connections):
        last = max(each["done_ns"] for each in requests if each["connection"] == connection)
        assert last > max(each["done_ns"] for each in lost)
    # There is one line for each thread that saw an error.
    assert len(result["faults"]) == 2
    assert all("16 requests unanswered" in fault for fault in result["faults"])


def test_a_server_that_does_not_come_back(stage):
    """Each connection is given up after --connect-timeout, and then no connection remains."""
    server, _ = stage.pair()
    client = start(stage, server, "--connections", 3, "--duration", "60s", *COUNT, "--connect-timeout",
                   "200ms")
    client.wait_for_log("connected to")
    client.wait_until_it_works()
    server.kill()
    result = finish(client, 1)
    run, = result["runs"]
    assert run["errors"]["never_connected"] == 3 and run["errors"]["refused"] >= 3
    assert run["connect_time_us"]["count"] == 3 and run["valid_responses"] > 0
    assert result["status"] == "failed"


def test_too_many_clients(stage):
    server, _ = stage.pair("--max-clients", 1)
    with Wire(server.port) as wire:
        wire.ask([b"the only one"])
        run = load_once(stage, server, "--duration", "500ms", *COUNT, status=1)
        assert run["errors"]["too_many_clients"] > 0
        assert run["valid_responses"] == 0
        assert run["rx_data_rate_gib_s"] == 0 < run["rx_wire_rate_gib_s"]  # a refusal has no payload
        # The server accepted the connection again, and refused it again.
        assert run["connect_time_us"]["count"] > 1
        # The run stops at once if errors are not counted.
        run = load_once(stage, server, "--duration", "60s", status=1)
        assert run["errors"] == {"too_many_clients": 1}


def test_frames_that_are_too_long(stage):
    server, _ = stage.pair("--max-message-length", "1k")
    result = load(stage, server, "--size", "2k", "--duration", "500ms", "--max-concurrent-messages", 1,
                  *COUNT, status=1)
    run, = result["runs"]
    # The server sends the error and closes: with one in flight, nothing else is lost.
    assert run["errors"]["frame_too_long"] == run["operation_count"] > 1
    assert run["connect_time_us"]["count"] >= run["operation_count"]
    assert run["valid_responses"] == 0
    assert "the server reports error 2" in result["faults"][0]


def test_some_frames_are_too_long(stage):
    """One of two sizes is refused, with the requests that were in flight behind it; the other continues."""
    server, _ = stage.pair("--max-message-length", "1k")
    run = load_once(stage, server, "--mix", "64:99,2k:1", "-i", 3000, "--max-concurrent-messages",
                    4, *COUNT, status=1)
    refused = run["errors"].pop("frame_too_long")
    assert refused > 1 and run["valid_responses"] > refused
    assert run["operation_count"] == run["valid_responses"] + refused
    assert run["unanswered_requests"] == lost_of(run)
    assert set(run["errors"]) <= {"closed", "reset"}


def test_no_worker(stage):
    server, worker = stage.pair("--worker-timeout", "100ms")
    worker.kill()
    server.wait_until_worker_gone()
    run = load_once(stage, server, "-i", 100, *COUNT, status=1)
    assert run["errors"] == {"worker_unavailable": 100}
    assert (run["operation_count"], run["valid_responses"], run["unanswered_requests"]) == (100, 0, 0)
    assert run["service_time_us"]["count"] == 0 and run["service_time_us"]["max"] is None


@pytest.mark.parametrize("expected", ["wrong", "much too long", "no", ""])
def test_every_wrong_answer_is_counted(stage, expected):
    server, _ = stage.pair("--service", "echo")
    log = stage.folder / "requests.csv"
    result = load(stage, server, "-i", 100, "-t", 2, "-m", "hello", "-e", expected, *COUNT,
                  "--log-requests", log, status=1)
    run, = result["runs"]
    assert run["errors"] == {"mismatch": 200}
    assert (run["operation_count"], run["valid_responses"], run["unanswered_requests"]) == (200, 0, 0)
    assert result["status"] == "failed" and len(result["faults"]) == 2
    assert all("request 0: the response" in fault for fault in result["faults"])
    assert [each["outcome"] for each in requests_of(log)] == ["mismatch"] * 200


def test_the_first_wrong_answer_stops_the_run(stage):
    server, _ = stage.pair("--service", "echo")
    result = load(stage, server, "--duration", "60s", "-m", "hello", "-e", "wrong", status=1)
    run, = result["runs"]
    assert run["errors"] == {"mismatch": 1} and run["operation_count"] == 1
    assert result["status"] == "failed"
    assert result["faults"] == ["thread 0, request 0: the response differs at offset 0 of 5: expected "
                                "77 72 6f 6e 67, got 68 65 6c 6c 6f"]


@pytest.mark.parametrize("loop", [[], ["--rate", "4k"]], ids=["closed", "open"])
def test_a_lost_server_stops_the_run(stage, loop):
    server, _ = stage.pair()
    client = start(stage, server, "-t", 2, "--duration", "60s", "--max-concurrent-messages", 8, *loop)
    client.wait_for_log("connected to")
    client.wait_until_it_works()
    server.stop()
    time.sleep(0.1 * TIME_FACTOR)
    server.kill()
    assert client.wait(PATIENCE) == 1
    result = finish(client, 1)
    run, = result["runs"]
    # One thread tells the other to stop, which may have seen the error as well by then.
    assert lost_of(run) in (8, 16) and run["unanswered_requests"] == 16
    assert set(run["errors"]) <= {"closed", "reset"}
    assert run["connect_time_us"]["count"] == 2
    assert client.log.splitlines()[-1].startswith("offload-client: thread ")


@needs_cpu_worker
def test_a_server_that_never_answers_is_asked_again(stage):
    """A time-out closes the connection, and the requests on it are lost."""
    server, worker = stage.pair()
    worker.stop()
    run = load_once(stage, server, "--duration", "1s", "--max-concurrent-messages", 5, *COUNT,
                    "--response-timeout", "300ms", status=1)
    assert set(run["errors"]) == {"time_out"}
    assert run["errors"]["time_out"] == run["unanswered_requests"]
    assert run["errors"]["time_out"] % 5 == 0 and run["connect_time_us"]["count"] >= 2
