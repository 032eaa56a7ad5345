"""Workers die, hang and come late; requests are neither lost nor answered twice."""
import os
import random
import re
import signal
import time

import pytest

from asker import Asker, wait_for_progress
from harness import LONG, PATIENCE, TIME_FACTOR, Load, needs_cpu_worker, wait_until
from wire import WORKER_UNAVAILABLE, Wire, frame, payloads, reverse

KILLS = int(os.environ.get("OFFLOAD_KILLS", "20"))
# A worker that a signal has stopped counts as gone after five keep-alive intervals of a second.
SILENCE = 10 + PATIENCE


def test_workers_killed_under_load(stage):
    """Short, packed messages by some clients, long, plain ones by others, all different by a third
    kind; the workers are killed in the midst of them."""
    server, worker = stage.pair("--threads", 2, "--max-message-length", 4096)
    askers = [Asker(server.port) for _ in range(2)]
    with Load(stage, server, "-t", 2, "--size", 64, seconds=1), \
            Load(stage, server, "-t", 2, "--size", 4000, seconds=1):
        for kill in range(KILLS):
            for asker in askers:
                wait_for_progress(asker)
            worker.kill()
            server.wait_until_worker_gone(kill + 1)
            worker = stage.worker()
            server.wait_until_attached(kill + 2)
    for asker in askers:
        wait_for_progress(asker)
        asker.stop()


def test_workers_killed_while_they_attach(stage):
    """They are killed at any moment: some before they greet, some while they take over."""
    server, worker = stage.pair("--max-message-length", 1000, "--worker-timeout",
                                f"{60 * TIME_FACTOR}s")
    asker = Asker(server.port)
    source = random.Random(5)
    for kill in range(KILLS):
        if kill % 2 == 0:
            asker = wait_for_progress_or_refusal(server, asker, f"127.0.0.{kill + 2}")
        worker.kill()
        worker = stage.worker()
        # The kill comes at whatever stage it is in: many random moments are tried.
        time.sleep(source.uniform(0, 0.03 * TIME_FACTOR))
    wait_for_progress_or_refusal(server, asker, "127.0.0.100").stop()


def wait_for_progress_or_refusal(server, asker, source):
    """The asker; or the next one, from address `source`, if one of its requests was alone with the third worker
    that was killed, as is a request that crashes workers."""
    try:
        wait_for_progress(asker)
    except AssertionError as refusal:
        assert "the worker could not process the request" in str(refusal)
        asker = Asker(server.port, source=source)
        wait_for_progress(asker)
    return asker


def expect_errors(wire, count):
    assert [wire.receive_error() for _ in range(count)] == [WORKER_UNAVAILABLE] * count


def send_pending(wire, requests):
    """Sends requests that no worker answers yet; returns when the server has them."""
    wire.send(b"".join(map(frame, requests)))
    wire.wait_until_read()


@needs_cpu_worker
def test_pending_requests_are_answered_by_the_next_worker(stage):
    """Four are in slots, the others behind them: in the server, or in the kernel as long as the
    channel is full."""
    server, worker = stage.pair("--max-concurrent-messages", 4)
    worker.stop()
    one, other = payloads(30, 100, seed=1), payloads(30, 100, seed=2)
    with Wire(server.port) as first, Wire(server.port) as second:
        send_pending(first, one)
        second.send(b"".join(map(frame, other)))
        worker.kill()
        server.wait_until_worker_gone()
        stage.worker()
        for wire, requests in ((first, one), (second, other)):
            wire.expect(map(reverse, requests))
            wire.ask(payloads(5, 100, seed=3))
            wire.finish_sending()
            wire.expect_end()


@needs_cpu_worker
def test_no_worker_in_time(stage):
    """Requests in slots, behind them and those that come later are refused, each once and in
    order. Then a worker comes, and none of the old answers turns up."""
    server, worker = stage.pair("--worker-timeout", "300ms", "--max-concurrent-messages", 4)
    worker.stop()
    with Wire(server.port) as one, Wire(server.port) as other:
        send_pending(one, payloads(10, 50))
        other.send(b"".join(map(frame, payloads(10, 50))))
        worker.kill()
        expect_errors(one, 10)
        expect_errors(other, 10)
        server.wait_for_log("no worker is attached: requests are refused until one attaches")
        send_pending(one, payloads(20, 50))
        expect_errors(one, 20)

        stage.worker()
        server.wait_until_served(2)
        one.ask(payloads(50, 50, seed=2))
        other.ask(payloads(50, 50, seed=3))
        for wire in (one, other):
            wire.finish_sending()
            wire.expect_end()


@needs_cpu_worker
def test_a_server_without_patience(stage):
    server, worker = stage.pair("--worker-timeout", 0)
    with Wire(server.port) as wire:
        wire.ask([b"served"])
        worker.kill()
        server.wait_for_log("no worker is attached: requests are refused")
        wire.send(frame(b"not served") * 3)
        expect_errors(wire, 3)


@needs_cpu_worker
def test_workers_come_too_late_again_and_again(stage):
    """Abandoned requests still stand in the slots when the next worker dies."""
    server, worker = stage.pair("--worker-timeout", "100ms", "--max-concurrent-messages", 8)
    with Wire(server.port) as wire:
        for turn in range(5):
            worker.stop()
            send_pending(wire, payloads(turn * 3 + 1, 50, seed=turn))
            worker.kill()
            expect_errors(wire, turn * 3 + 1)
            worker = stage.worker()
            server.wait_until_served(turn + 2)
            wire.ask(payloads(turn, 50, seed=turn))


def test_a_second_worker_takes_over_when_the_first_dies(stage):
    """It has no channel until then, as there is one only."""
    server, worker = stage.pair()
    second = stage.worker()
    second.wait_for_log("standing by: no channel is assigned")
    with Wire(server.port) as wire:
        wire.ask([b"served by the first"])
        worker.kill()
        second.wait_for_log("1 of 1 channels are assigned")
        wire.ask([b"served by the second"])


def test_many_workers_for_one_server(stage):
    """They come at once; whichever serves is killed, until none is left."""
    workers = [stage.worker() for _ in range(4)]
    server = stage.server()
    server.wait_until_attached(4)
    server.wait_until_listening()
    with Wire(server.port) as wire:
        for turn in range(4):
            wait_until(lambda: serving(workers), "a worker serves the channel")
            wire.ask(payloads(10, 100, seed=turn))
            worker = serving(workers)[0]
            workers.remove(worker)
            worker.kill()
        server.wait_until_worker_gone(4)
    assert not workers


def serving(workers):
    return [worker for worker in workers if "1 of 1 channels are assigned" in worker.log]


@needs_cpu_worker
def test_workers_that_are_stopped(stage):
    """They are gone for the server once they have been silent; another serves though their processes
    live. One that goes on comes back by itself."""
    server, ends = stage.pair("--worker-timeout", "60s")
    goes_on = stage.worker()
    goes_on.wait_for_log("standing by: no channel is assigned")
    with Wire(server.port) as wire:
        for worker in (ends, goes_on):
            worker.stop()
        requests = payloads(20, 100)
        send_pending(wire, requests)
        for count in (1, 2):
            gone = server.wait_for_log(r"worker \d, .+ is gone: (.*)", SILENCE, count=count)
            assert gone[1] == "it has been silent for too long"
        other = stage.worker()
        wire.expect(map(reverse, requests))
        assert ends.alive and goes_on.alive
        ends.kill()
        goes_on.send_signal(signal.SIGCONT)
        goes_on.wait_for_log("attached to", count=2)
        other.kill()
        wire.ask(payloads(20, 100, seed=2))


def test_a_worker_that_comes_before_its_server(stage):
    worker = stage.worker("--log-level", "debug")
    worker.wait_for_log("cannot connect to", count=3)
    server = stage.server()
    server.wait_until_listening()
    stage.run_client(server, "-i", 100)


def test_a_worker_gives_up_when_no_server_comes(stage):
    worker = stage.worker("--connect-timeout", "300ms")
    assert worker.wait() == 1
    assert f"no server at {stage.comch_address} accepted this worker" in worker.log


def test_a_worker_attaches_to_the_next_server_by_itself(stage):
    server, worker = stage.pair()
    for _ in range(3):
        server.kill()
        server = stage.server()
        server.wait_until_listening()
        stage.run_client(server, "-i", 100, "--size", 50)
    worker.wait_for_log("the server is gone", count=3)


def test_servers_killed_under_load(stage):
    """Their clients say so; their worker attaches to the next each time."""
    server, worker = stage.pair()
    for death in range(min(5, KILLS)):
        client = stage.client(server, "-t", 2, "--duration", "60s")
        client.wait_for_log("connected to")
        server.kill()
        assert client.wait() == 1
        assert re.search(r"thread \d, request \d+: the (server closed the connec|connection failed)",
                         client.log)
        worker.wait_for_log("the server is gone", count=death + 1)
        server = stage.server()
        server.wait_until_listening()
        stage.run_client(server, "-i", 100, "--size", 50)


@pytest.mark.skipif(not LONG, reason="minutes: process.long runs it")
def test_many_workers_killed(stage):
    server, worker = stage.pair("--max-message-length", 1000)
    askers = [Asker(server.port) for _ in range(4)]
    for _ in range(500):
        for asker in askers:
            wait_for_progress(asker, 50)
        worker.kill()
        worker = stage.worker()
    for asker in askers:
        asker.stop()
