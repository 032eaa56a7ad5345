"""Services of modules, with the three programs: they answer, take over, and what is wrong with one is one line."""
import pytest

import wire
from harness import BACKEND, SERVICES, TIME_FACTOR, scaled

on_a_cpu = pytest.mark.skipif(BACKEND != "cpu", reason="the modules of tests have no code for GPUs")


def module(name):
    return ["--service-module", SERVICES / f"{name}.so"]


def shifted(request, by=1):
    return bytes((octet + by) % 256 for octet in request)


def complement(request):
    return bytes(255 - octet for octet in request)


def sizes():
    return [0, 1, 12, 48, 372, 373, 1024, 5000, 65536]


def ask_every_size(server, answer):
    requests = [bytes((i * 7 + size) % 256 for i in range(size)) for size in sizes()]
    with wire.Wire(server.port) as client:
        client.ask(requests, answer)


def test_the_template_answers(stage):
    server = stage.server("--service", "complement", "--max-message-length", "64k")
    stage.worker(*module("complement"))
    server.wait_until_listening()
    ask_every_size(server, complement)


@on_a_cpu
def test_state_is_made_of_options_and_again_by_who_takes_over(stage):
    server = stage.server("--service", "shifted", "--max-message-length", "64k")
    options = [*module("test_shifted"), "--service-option", "by=3"]
    worker = stage.worker(*options)
    assert worker.wait_for_log(r"service shifted of \S+ is ready: \d+ bytes .*by=3")
    server.wait_until_listening()
    ask_every_size(server, lambda request: shifted(request, 3))
    worker.kill()
    following = stage.worker(*options)
    assert following.wait_for_log(r"service shifted of \S+ is ready: \d+ bytes .*by=3")
    ask_every_size(server, lambda request: shifted(request, 3))


@on_a_cpu
def test_killed_workers_cost_no_answer(stage):
    server = stage.server("--service", "shifted")
    options = [*module("test_shifted"), "--service-option", "by=1"]
    worker = stage.worker(*options)
    server.wait_until_listening()
    client = stage.client(server, "-m", "HAL", "-e", "IBM", "--duration", f"{2 * TIME_FACTOR}s",
                          "-t", 2, "--response-timeout", f"{60 * TIME_FACTOR}s")
    for _ in range(3):
        following = stage.worker("--stand-by", *options)
        assert following.wait_for_log("attached to")
        worker.kill()
        worker = following
        with wire.Wire(server.port) as other:  # each request that was with the killed one is answered before
            other.ask([b"HAL"], lambda _: b"IBM")
    assert client.wait(120 * TIME_FACTOR) == 0, client.log


@on_a_cpu
@pytest.mark.parametrize("options, says", [
    (module("not_there"), "No such file"),
    (module("test_no_function"), "no function offload_service"),
    (module("test_other_version"), "built for version 4711"),
    (module("test_bad_name"), "a-z, 0-9"),
    ([*module("complement"), *module("complement")], "a service 'complement' already"),
    ([*module("test_shifted"), "--service-option", "throw=1"], "cannot create service shifted: as it was"),
    ([*module("test_shifted"), "--service-option", "bye=1"], "--service-option bye"),
])
def test_what_is_wrong_is_one_line_and_status_1(stage, options, says):
    worker = stage.worker(*options)
    assert worker.wait(20 * TIME_FACTOR) == 1
    lines = [line for line in worker.log.splitlines() if line.startswith("offload-worker:")]
    assert len(lines) == 1 and says in lines[0], worker.log


@on_a_cpu
def test_a_server_refuses_who_lacks_its_service(stage):
    server = stage.server("--service", "shifted")
    worker = stage.worker()
    assert worker.wait(20 * TIME_FACTOR) == 1
    assert "the worker has no service 'shifted'; it has: reverse, echo, crc32c" in worker.log
    assert server.wait_for_log("has no service 'shifted'")
    assert "listening" not in server.log
    stage.worker(*module("test_shifted"))
    server.wait_until_listening()
    ask_short(server)


def ask_short(server):
    with wire.Wire(server.port) as client:
        client.ask([b"HAL"], shifted)


@on_a_cpu
def test_a_replacement_that_cannot_serve_replaces_nobody(stage):
    server = stage.server("--service", "shifted")
    worker = stage.worker(*module("test_shifted"))
    server.wait_until_listening()
    assert stage.worker("--replace").wait(20 * TIME_FACTOR) == 1
    ask_short(server)
    assert worker.alive and "is gone" not in server.log


@on_a_cpu
def test_responses_that_are_too_long_are_refused_before_they_are_sent(stage):
    options = [*module("test_shifted"), "--service-option", "longer=100"]
    server = stage.server("--service", "shifted")
    worker = stage.worker(*options)
    assert worker.wait(20 * TIME_FACTOR) == 1
    assert "answers 100 bytes to a request of 0; at most 48 are allowed" in worker.log
    assert server.alive


@on_a_cpu
@pytest.mark.parametrize("longest, options", [(356, []), (4000, []), (356, ["--max-message-length", 256])])
def test_responses_may_be_longer_than_requests_if_the_server_says_so(stage, longest, options):
    server = stage.server("--service", "shifted", "--max-response-length", longest, *options)
    stage.worker(*module("test_shifted"), "--service-option", "longer=100")
    server.wait_until_listening()
    requests = [bytes([i % 200]) * (i % 257) for i in range(scaled(2000))]
    with wire.Wire(server.port) as client:
        client.ask(requests, lambda request: shifted(request) + bytes(100))


@on_a_cpu
def test_one_that_never_returns_is_found_and_ends_its_worker(stage):
    server = stage.server("--service", "shifted", "--worker-timeout", "1s")
    worker = stage.worker(*module("test_shifted"), "--service-option", f"hang-on={ord('H')}",
                          "--stuck-after", "200ms")
    server.wait_until_listening()
    with wire.Wire(server.port) as client:
        client.send(wire.frame(b"Hang"))
        assert worker.wait_for_log("channel 0 .*unanswered")
        assert server.wait_for_log("it has answered no request on channel 0")
        assert worker.wait(30 * TIME_FACTOR) == 3
    # The request that did that to a worker is answered by one that it does not harm.
    stage.worker(*module("test_shifted"))
    server.wait_until_served(2)
    ask_short(server)
