"""Server and worker exit on request, within their time limits, after all accepted requests have been answered."""
import contextlib
import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import (PATIENCE, expect_end_of_both, expect_server_left, needs_cpu_worker, statistics,
                     wait_until)
from wire import RESPONSE, SHUTTING_DOWN, Wire, frame, payloads, reverse

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM],
                                  ids=["SIGINT", "SIGTERM"])


@SIGNALS
def test_an_idle_server(stage, number):
    server, worker = stage.pair("--threads", 2)
    server.send_signal(number)
    expect_server_left(server, worker)
    assert f"{number.name}: shutting down" in server.log
    assert worker.terminate() == 0


SIDES = pytest.mark.parametrize("side", ["server", "worker", "both"])


def pair_that_ends_together(stage, side):
    """One of them, or both, have --shutdown-together, as in the reference application."""
    together = ["--shutdown-together"]
    server = stage.server(*(together if side != "worker" else []))
    worker = stage.worker(*(together if side != "server" else []))
    server.wait_until_listening()
    return server, worker


@SIDES
def test_the_server_ends_both(stage, side):
    server, worker = pair_that_ends_together(stage, side)
    server.send_signal(signal.SIGTERM)
    expect_end_of_both(server, worker)
    assert "the server has ended: shutting down" in worker.log


def test_a_server_with_several_workers(stage):
    """Each worker confirms the end."""
    server, worker = stage.pair("--threads", 2)
    others = [stage.worker(), stage.worker("--stand-by")]
    server.wait_until_attached(3)
    server.send_signal(signal.SIGTERM)
    expect_server_left(server, worker)
    assert len(re.findall("is gone: it has shut down", server.log)) == 3
    for other in others:
        other.wait_for_log("the server is shutting down: waiting for the next one")


@SIGNALS
def test_a_server_without_a_worker(stage, number):
    server = stage.server()
    server.wait_for_log("waiting for a worker")
    server.send_signal(number)
    assert server.wait() == 0
    assert not (server.socket_file and server.socket_file.exists())


def test_a_server_with_silent_connections(stage):
    server, worker = stage.pair("--threads", 2)
    wires = [Wire(server.port) for _ in range(20)]
    for wire in wires:
        wire.ask([b"here I am"])
    server.send_signal(signal.SIGTERM)
    for wire in wires:
        wire.expect_end()
        wire.close()
    expect_server_left(server, worker)


def receive_all(wire):
    """Returns all frames up to the end of file."""
    return list(iter(wire.receive, None))


@SIGNALS
def test_a_server_under_load(stage, number):
    """Each client gets right answers to the first of its requests, and an end of file: no reset that could
    have dropped answers."""
    server, worker = stage.pair("--threads", 2, "--max-message-length", 1000)
    wires = [Wire(server.port) for _ in range(4)]
    requests = payloads(5000, range(1000))
    stream = b"".join(map(frame, requests))
    with contextlib.ExitStack() as sending:
        for wire in wires:
            sending.enter_context(contextlib.suppress(AssertionError))  # not all must be sent
            sending.enter_context(wire.sending(stream))
        for wire in wires:
            wire.expect([reverse(requests[0])])
        # They read in parallel: the server waits for them for a second.
        readers = sending.enter_context(ThreadPoolExecutor(len(wires)))
        received = readers.map(receive_all, wires)
        server.send_signal(number)
        for wire, answers in zip(wires, received):
            assert answers == [(RESPONSE, reverse(each)) for each in requests[1:len(answers) + 1]]
            wire.close()
    expect_server_left(server, worker)


@needs_cpu_worker
def test_what_was_accepted_is_answered(stage):
    """The worker hangs; the server has read thirty requests and has slots for four; it is told to end. When the
    worker continues, all thirty are answered."""
    server, worker = stage.pair("--max-concurrent-messages", 4, "--shutdown-timeout", "60s")
    worker.stop()
    with Wire(server.port) as wire:
        requests = payloads(30, 100)
        wire.send(b"".join(map(frame, requests)))
        wire.wait_until_read()
        server.send_signal(signal.SIGTERM)
        server.wait_for_log("shutting down")
        worker.send_signal(signal.SIGCONT)
        wire.expect(map(reverse, requests))
        wire.expect_end()
    expect_server_left(server, worker)


@needs_cpu_worker
def test_what_no_worker_can_answer_is_refused(stage):
    server, worker = stage.pair("--worker-timeout", "60s", "--max-concurrent-messages", 4)
    worker.stop()
    with Wire(server.port) as wire:
        wire.send(b"".join(map(frame, payloads(30, 100))))
        wire.wait_until_read()
        worker.kill()
        server.wait_until_worker_gone()
        server.send_signal(signal.SIGTERM)
        assert [wire.receive_error() for _ in range(30)] == [SHUTTING_DOWN] * 30
        wire.expect_end()
    assert server.wait() == 0


def test_new_clients_are_turned_away_meanwhile(stage):
    server, _ = stage.pair("--shutdown-timeout", "60s")
    with Wire(server.port, receive_buffer=4096) as wire:
        hold_up(wire)
        server.send_signal(signal.SIGTERM)
        wait_until(lambda: not accepts(server.port), "the server listens no more")
        assert server.alive
    assert server.wait() == 0


def test_clients_that_connect_as_the_server_is_told_to_end(stage):
    """Every accepted client gets an end of stream, even if no I/O thread has taken it over yet, and none
    delays the shutdown."""
    server, worker = stage.pair("--threads", 2)
    sockets = []
    with contextlib.suppress(ConnectionError):
        for number in range(2000):
            sockets.append(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE))
            if number == 200:
                server.send_signal(signal.SIGTERM)
    assert len(sockets) > 200
    # If a connection is made at the moment when the listener closes, the kernel may keep only the
    # client's half of it: the client notices when it sends.
    with contextlib.suppress(ConnectionError):
        sockets[-1].sendall(b"?")
    for each in sockets:
        with each, contextlib.suppress(ConnectionResetError):  # was not accepted yet
            assert each.recv(1) == b""
    expect_server_left(server, worker)
    assert "not all clients could be answered in time" not in server.log


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
        return True
    except ConnectionRefusedError:
        return False


def hold_up(wire):
    """Requests more than the sockets' buffers take and reads none of it."""
    wire.socket.settimeout(0.5)
    with contextlib.suppress(TimeoutError):
        while True:
            wire.send(frame(bytes(256)) * 1000)


def test_the_bound_holds_for_a_client_that_does_not_read(stage):
    server, worker = stage.pair("--shutdown-timeout", "1s")
    with Wire(server.port, receive_buffer=4096) as wire:
        hold_up(wire)
        begin = time.monotonic()
        server.send_signal(signal.SIGTERM)
        expect_server_left(server, worker)
        assert time.monotonic() - begin >= 0.5
    assert "not all clients could be answered in time" in server.log


@needs_cpu_worker
def test_the_bound_holds_for_a_worker_that_hangs(stage):
    """There is one time limit for all: half of it is for the clients, the rest for the worker's confirmation."""
    server, worker = stage.pair("--shutdown-timeout", "1s")
    worker.stop()
    with Wire(server.port) as wire:
        wire.send(frame(b"nobody hears me"))
        wire.wait_until_read()
        assert server.terminate() == 0
    assert "not all workers confirmed that they have stopped" in server.log


@SIGNALS
def test_a_second_signal_ends_the_server_at_once(stage, number):
    server, worker = stage.pair("--shutdown-timeout", "60s")
    with Wire(server.port, receive_buffer=4096) as wire:
        hold_up(wire)
        server.send_signal(number)
        server.wait_for_log("shutting down")
        assert server.alive
        server.send_signal(number)
        assert server.wait() == -number
    worker.wait_for_log("the server is gone")


@SIDES
def test_the_worker_ends_both(stage, side):
    server, worker = pair_that_ends_together(stage, side)
    worker.wait_for_log("attached to")
    with Wire(server.port) as wire:
        wire.ask([b"before"])
        worker.send_signal(signal.SIGTERM)
        wire.expect_end()
    expect_end_of_both(server, worker)


def test_the_worker_ends_both_under_load(stage):
    server, worker = pair_that_ends_together(stage, "both")
    client = stage.client(server, "--duration", "60s")
    client.wait_for_log("connected to")
    worker.send_signal(signal.SIGTERM)
    expect_end_of_both(server, worker)
    assert client.wait() == 1
    assert "the server closed the connection" in client.log
    table = statistics(client)
    assert table["Valid responses"] == table["Operation count"]


@SIGNALS
def test_a_worker_without_a_server(stage, number):
    worker = stage.worker("--log-level", "debug")
    worker.wait_for_log("cannot connect to")
    worker.send_signal(number)
    assert worker.wait() == 0


def test_a_worker_whose_server_hangs(stage):
    server = stage.server()
    worker = stage.worker("--shutdown-timeout", "1s")
    server.wait_until_listening()
    worker.wait_for_log("attached to")
    server.stop()
    assert worker.terminate() == 0
    assert "the server did not detach this worker in time" in worker.log
