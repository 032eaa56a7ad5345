"""A client harms at most itself, whatever it sends or does: a healthy client of the same I/O thread runs in parallel
with each case and notices nothing."""
import contextlib
import random
import re
import resource
import socket
import ssl
import threading
import time

import pytest

from harness import PATIENCE, SANITIZE, TIME_FACTOR, Load, statistics, wait_until
from wire import (ERROR, MISMATCH, MISPLACED, REQUEST, TOO_LONG, TOO_SHORT, UNKNOWN, Wire, frame,
                  header, payloads, reverse)

LIMIT = 256

BAD_FRAMES = [
    (header(0, REQUEST, 0), TOO_SHORT),  # stops the reference server
    (header(1, REQUEST, 0), TOO_SHORT),
    (header(8, REQUEST, 0)[:8], TOO_SHORT),  # 8 to 11 make the reference's GPU reverse 4 GiB
    (header(9, REQUEST, 0)[:9], TOO_SHORT),
    (header(11, REQUEST, 0), TOO_SHORT),
    (header(0, REQUEST, 0)[:4], TOO_SHORT),  # known to be bad before its header is complete
    (header(12, REQUEST, 1), MISMATCH),
    (header(20, REQUEST, 7) + bytes(8), MISMATCH),
    (header(20, REQUEST, 9) + bytes(8), MISMATCH),
    (header(20, REQUEST, 0xffffffff) + bytes(8), MISMATCH),
    (header(0xffffffff, REQUEST, 0xfffffff3), TOO_LONG),
    (header(0x80000000, REQUEST, 0x7ffffff4), TOO_LONG),
    (header(12 + LIMIT + 1, REQUEST, LIMIT + 1), TOO_LONG),
    (frame(bytes(LIMIT + 1)), TOO_LONG),  # stops the reference server
    (frame(bytes(1 << 20)), TOO_LONG),
    *((frame(b"payload", msg_id), UNKNOWN) for msg_id in (7, 8, 15, 27, 255, 0xffffffff)),
    *((frame(b"", msg_id), MISPLACED) for msg_id in (0, 1, 2, 3, 5, 6, *range(16, 27))),
    *((frame(b"payload", msg_id), MISPLACED) for msg_id in (0, 5, 6, 16)),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", TOO_LONG),
]


@pytest.fixture(scope="module")
def server(shared_stage):
    """A server with one I/O thread, which all clients share. It serves every test of this file."""
    return shared_stage.pair("--max-message-length", LIMIT, "--max-concurrent-messages", 32)[0]


@pytest.fixture
def beside(shared_stage, server):
    """Returns a context in which a healthy client runs, which must not notice anything."""
    return lambda: Load(shared_stage, server, "--size", 100, "--max-concurrent-messages", 8)


@pytest.fixture
def no_leak(server):
    """Checks that all descriptors that a test made the server open are closed after it."""
    before = server.descriptors()
    yield
    wait_until(lambda: server.descriptors() <= before, "the server closes its connections")


def expect_own_answers(server):
    """Checks that a new client gets the answers to its own requests and to no others."""
    with Wire(server.port) as wire:
        wire.ask(payloads(100, range(LIMIT), seed=time.monotonic_ns()))


def test_malformed_frames(server, beside, no_leak):
    owed = payloads(20, range(LIMIT))
    with beside():
        for bad, code in BAD_FRAMES:
            with Wire(server.port) as wire:
                with wire.sending(b"".join(map(frame, owed)) + bad):
                    wire.expect(map(reverse, owed))
                assert wire.receive_error() == code, bad[:20].hex()
                wire.expect_end()
            assert server.alive, bad[:20].hex()


@pytest.mark.parametrize("request_line", [
    "GET / HTTP/1.1", "HEAD / HTTP/1.0", "POST /metrics HTTP/1.1", "PRI * HTTP/2.0"])
def test_a_browser_is_told_what_the_port_speaks(server, beside, no_leak, request_line):
    with beside(), Wire(server.port) as wire:
        wire.send(f"{request_line}\r\nHost: 127.0.0.1\r\n\r\n".encode())
        answer = wire.receive_rest()
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\n\r\nThis port speaks the protocol of dpu-gpu-offload" in answer and answer.endswith(b"--metrics.\n")


def test_the_log_names_a_browser(stage):
    server, _ = stage.pair()
    with Wire(server.port) as wire:
        wire.send(b"GET / HTTP/1.1\r\n\r\n")
        server.wait_for_log("is disconnected: it is an HTTP client at a port that does not speak HTTP")


def test_a_tls_client_at_a_port_without_tls(stage):
    """An alert would say that the port speaks TLS. OpenSSL's word for anything else is "wrong version number"."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    server, _ = stage.pair()
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as plain:
        with pytest.raises(ssl.SSLError, match="WRONG_VERSION_NUMBER|wrong version number"):
            context.wrap_socket(plain)
    server.wait_for_log("a TLS client at a port without TLS")


def test_nothing_after_a_malformed_frame_is_answered(server, beside, no_leak):
    with beside(), Wire(server.port) as wire:
        wire.send(frame(b"before") + header(3, REQUEST, 0) + frame(b"after") * 100)
        wire.expect([reverse(b"before")])
        assert wire.receive_error() == TOO_SHORT
        wire.expect_end()


def test_refusals_are_counted_and_not_all_logged(stage):
    server, _ = stage.pair()
    for _ in range(100):
        with Wire(server.port) as wire:
            wire.send(header(0, REQUEST, 0))
            assert wire.receive_error() == TOO_SHORT
    logged = re.findall(r"client \d+, 127\.0\.0\.1:\d+, is disconnected: the frame is shorter", server.log)
    assert 1 <= len(logged) <= 20
    assert server.terminate() == 0
    assert "100 connections, 0 responses, 100 refusals" in server.log


@pytest.mark.parametrize("stream", [
    frame(b"unfinished")[:3],
    frame(b"unfinished")[:12],
    frame(b"unfinished")[:-1],
    frame(b"whole") + frame(b"unfinished")[:15],
], ids=["in the size", "after the header", "in the payload", "after a whole one"])
@pytest.mark.parametrize("leave", [Wire.close, Wire.reset])
def test_a_client_that_vanishes_in_a_frame(server, beside, no_leak, stream, leave):
    with beside():
        for _ in range(20):
            wire = Wire(server.port)
            wire.send(stream)
            leave(wire)
        expect_own_answers(server)


@pytest.mark.parametrize("leave", [Wire.close, Wire.reset])
def test_a_client_that_vanishes_with_requests_in_flight(server, beside, no_leak, leave):
    """In the reference, the next client on the thread can receive its answers."""
    with beside():
        for number in range(20):
            wire = Wire(server.port)
            wire.send(b"".join(frame(b"orphan %d" % i) for i in range(200)))
            if number % 2:
                wire.receive()
            leave(wire)
            expect_own_answers(server)


def test_a_client_that_vanishes_in_a_response(stage):
    server, _ = stage.pair("--max-message-length", "1m", "--max-concurrent-messages", 8)
    descriptors = server.descriptors()
    for leave in [Wire.close, Wire.reset] * 5:
        wire = Wire(server.port, receive_buffer=4096)
        with wire.sending(frame(bytes(1 << 20)) * 4):
            assert wire.socket.recv(100)
        leave(wire)
    stage.run_client(server, "-i", 100, "--size", "1m", "--max-concurrent-messages", 4)
    wait_until(lambda: server.descriptors() == descriptors, "the server closes the connections")


@pytest.mark.parametrize("rest", [b"", frame(b"unfinished")[:14]], ids=["whole", "within a frame"])
def test_a_client_that_sends_no_more_gets_what_it_is_owed(server, beside, no_leak, rest):
    owed = payloads(1000, range(LIMIT))
    with beside(), Wire(server.port) as wire:
        with wire.sending(b"".join(map(frame, owed)) + rest):
            wire.expect(map(reverse, owed[:-1]))
            wire.finish_sending()
            wire.expect([reverse(owed[-1])])
        wire.expect_end()


def fill_until_blocked(wire, data):
    """Sends `data` again and again until the socket takes no more; returns the number of bytes sent."""
    most = 256 << 20  # the kernel's buffers of both ends are smaller
    wire.socket.settimeout(0.5)
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < most:
            sent += wire.socket.send(data[sent % len(data):])
    wire.socket.settimeout(PATIENCE)
    assert sent < most, "the server reads on and on"
    return sent


@pytest.mark.parametrize("size", [20, 65536])
def test_clients_that_never_read(stage, size):
    """The server holds the responses to each client's requests in flight, and no more; the other clients
    of its thread continue."""
    server, _ = stage.pair("--max-message-length", "64k", "--max-concurrent-messages", 32)
    stage.run_client(server, "--size", size, "-i", 100)
    before = server.resident_bytes()
    wires = [Wire(server.port, receive_buffer=4096) for _ in range(3)]
    for wire in wires:
        fill_until_blocked(wire, frame(bytes(size)) * (200_000 // size))
    client = stage.run_client(server, "-i", 5000, "--size", 100)
    assert statistics(client)["Valid responses"] == 5000
    in_flight = 32 * 65536
    assert server.resident_bytes() - before < TIME_FACTOR * len(wires) * 2 * in_flight
    for wire in wires:
        wire.close()


def test_a_client_that_never_reads_is_closed_in_the_end(stage):
    """The server frees the memory that it holds for this client. Quiet clients stay connected."""
    server, _ = stage.pair("--max-message-length", "64k", "--client-timeout", "1s")
    with Wire(server.port) as quiet:
        quiet.send(frame(b"one"))
        quiet.expect([b"eno"])
        before = server.descriptors()
        with Wire(server.port, receive_buffer=4096) as silent:
            fill_until_blocked(silent, frame(bytes(20_000)) * 100)
            wait_until(lambda: server.descriptors() <= before, "the server closes the silent one")
        quiet.send(frame(b"two"))
        quiet.expect([b"owt"])


def test_a_slow_reader_gets_everything_in_the_end(stage):
    """The kernel decides how much the sockets' buffers take: the stream is as long as needed to fill them."""
    server, _ = stage.pair("--max-message-length", "64k", "--max-concurrent-messages", 16)
    requests = payloads(100, [0, 100, 20_000, 65_536])
    with Wire(server.port, receive_buffer=4096) as wire:
        stream = b"".join(map(frame, requests))
        sent = fill_until_blocked(wire, stream)
        rounds = sent // len(stream) + 1
        with wire.sending((stream * rounds)[sent:]):
            wire.expect(map(reverse, requests * rounds))


def test_a_refused_client_that_sends_on(server, beside, no_leak):
    """It has a moment to read why it was refused; then it is disconnected."""
    with beside(), Wire(server.port) as wire:
        wire.send(header(0, REQUEST, 0))
        deadline = time.monotonic() + PATIENCE
        with pytest.raises(ConnectionError):
            while time.monotonic() < deadline:
                wire.send(bytes(65536))


def test_garbage(server, beside, no_leak):
    with beside():
        for seed in range(30):
            with Wire(server.port) as wire:
                wire.send(random.Random(seed).randbytes(16384))
                assert wire.receive()[0] == ERROR


def test_a_flood_of_garbage(server, beside, no_leak):
    """The clients continue to send when they are refused: these may lose the error to a reset."""
    with beside():
        for seed in range(30):
            with Wire(server.port) as wire, contextlib.suppress(ConnectionError):
                for _ in range(64):
                    wire.send(random.Random(seed).randbytes(16384))
                wire.receive()
        expect_own_answers(server)


def misbehave(server, seed):
    """Misbehaves in one of the ways, at random."""
    source = random.Random(seed)
    good, bad = frame(source.randbytes(100)), source.choice(BAD_FRAMES)[0]
    with Wire(server.port, receive_buffer=source.choice([None, 4096])) as wire:
        wire.socket.settimeout(0.05)
        with contextlib.suppress(OSError):
            for _ in range(source.randrange(20)):
                wire.send(source.choice([good, good * 50, good[:source.randrange(100)], bad]))
                if source.random() < 0.2:
                    wire.socket.recv(source.randrange(1, 4000), socket.MSG_DONTWAIT)
            source.choice([Wire.close, Wire.reset, Wire.finish_sending])(wire)


def test_everything_at_once(server, beside, no_leak):
    def many(first):
        for seed in range(first, first + 100):
            misbehave(server, seed)
    threads = [threading.Thread(target=many, args=(1000 * n,)) for n in range(4)]
    with beside():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        expect_own_answers(server)


def test_clients_that_begin_long_messages(stage):
    """An announced message takes no memory before it arrives."""
    server, _ = stage.pair("--max-message-length", "16m", "--max-concurrent-messages", 1)
    before = server.resident_bytes()
    wires = [Wire(server.port) for _ in range(100)]
    for wire in wires:
        wire.send(header(12 + (16 << 20), REQUEST, 16 << 20) + bytes(1000))
    wires[-1].wait_until_read()
    with Wire(server.port) as wire:
        wire.ask([b"a short one between them"])
    assert server.resident_bytes() - before < (16 << 20) * TIME_FACTOR
    for wire in wires:
        wire.close()


def test_port_scans(server, beside, no_leak):
    with beside():
        for number in range(200):
            wire = Wire(server.port)
            (wire.reset if number % 2 else wire.close)()
        expect_own_answers(server)


def test_connections_that_were_never_completed(server, beside, no_leak):
    """The clients close them while they still wait to be accepted."""
    with beside():
        sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
        for each in sockets:
            each.close()
        expect_own_answers(server)


def test_more_clients_than_descriptors(stage):
    """Clients beyond the limit are rejected; the others are served, also by a worker that attaches
    later."""
    server = stage.server("--max-clients-per-address", 100, wrapper=["prlimit", "--nofile=64:64"])
    worker = stage.worker()
    server.wait_until_listening()
    before = server.descriptors()
    wires = [Wire(server.port) for _ in range(60)]
    served = [wire for wire in wires if is_served(wire)]
    assert 3 <= len(served) <= 64 - before
    assert re.search(r"client \d+, 127\.0\.0\.1:\d+, is rejected: the limit of open files is reached",
                     server.log)
    worker.kill()
    stage.worker()
    server.wait_until_attached(2)
    assert all(map(is_served, served))
    for wire in wires:
        wire.close()
    wait_until(lambda: server.descriptors() <= before + 1, "the server closes its connections")
    expect_own_answers(server)


def test_descriptors_are_left_for_one_more_worker(stage):
    """Another worker attaches while one serves, and clients use all descriptors that clients may use."""
    server = stage.server("--threads", 4, wrapper=["prlimit", "--nofile=140:140"])
    worker = stage.worker()
    server.wait_until_listening()
    wires = [Wire(server.port) for _ in range(140)]
    assert sum(map(is_served, wires)) > 20
    stage.worker("--replace")
    assert worker.wait() == 0
    assert is_served(wires[0])
    for wire in wires:
        wire.close()


@pytest.mark.skipif("undefined" in SANITIZE,
                    reason="the sanitizer takes descriptors itself, to look at an object's type")
def test_the_machine_runs_out_of_descriptors(stage):
    """New clients wait in the backlog, cost no processor time, and are served later."""
    server, _ = stage.pair()
    expect_own_answers(server)
    limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (0, limits[1]))
    wire = Wire(server.port)
    server.wait_for_log("no client is accepted for now: Too many open files")
    before = server.cpu_seconds()
    time.sleep(1)
    assert server.cpu_seconds() - before < 0.2
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
    wire.ask([b"who is in?"])


def is_served(wire):
    try:
        wire.ask([b"who is in?"])
    except (ConnectionError, AssertionError):
        return False
    return True
