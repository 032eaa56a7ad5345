"""The limits of clients, and their time limits: a client that exceeds one gets an error and is disconnected, and no
other client loses anything."""
import contextlib
import re
import resource
import select
import socket
import time

import pytest

from harness import LONG, PATIENCE, SANITIZE, TIME_FACTOR, Load, needs_cpu_worker, wait_until
from wire import (FRAME_TIMED_OUT, IDLE_TIMED_OUT, OUT_OF_MEMORY, REQUEST, TOO_MANY,
                  TOO_MANY_OF_ADDRESS, WORKER_UNAVAILABLE, Wire, frame, header, reverse)

MEGABYTE = 1 << 20
# A prefix of a frame of 1 MiB: its header and one byte.
BEGUN = header(12 + MEGABYTE, REQUEST, MEGABYTE) + b"x"


def address_of(wire):
    host, port = wire.socket.getsockname()[:2]
    return f"{host}:{port}"


def is_open(wire):
    watched = select.poll()  # select() accepts no descriptor beyond 1023
    watched.register(wire.socket, select.POLLIN)
    return not watched.poll(0)


@pytest.fixture
def wires():
    """Returns a function that makes connections; they are closed at the end of the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *arguments, **options: stack.enter_context(Wire(*arguments, **options))


# ---- Unfinished frames

def test_many_clients_that_have_begun_a_long_frame(stage, wires):
    """There are 15,000 of them, or as many as descriptors allow, within 1 GiB of address space."""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    count = min(15_000 if LONG or TIME_FACTOR == 1 else 1000, descriptors - 500)
    limit = [] if SANITIZE != [""] else ["prlimit", f"--as={1 << 30}"]
    server = stage.server("--max-message-length", "1m", "--max-concurrent-messages", 16,
                          "--max-clients-per-address", count, "--frame-timeout", 0, wrapper=limit)
    stage.worker()
    server.wait_until_listening()
    before = server.resident_bytes()
    with Load(stage, server, "--size", 1000, "--max-concurrent-messages", 8):
        for number in range(count):
            wire = wires(server.port, source=f"127.0.0.{2 + number % 20}")
            wire.send(BEGUN)
        wire.wait_until_read()
        assert is_open(wire)
    print(f"{count} clients hold {(server.resident_bytes() - before) / count:.0f} bytes each")
    assert server.resident_bytes() - before < count * 4096 * TIME_FACTOR
    assert "disconnected" not in server.log


def test_a_frame_that_does_not_come_whole(stage, wires):
    """A few bytes of a frame are no progress, a whole frame is; a frame that was begun after it has a separate
    time limit."""
    server, _ = stage.pair("--frame-timeout", "2s")
    quiet, dripping, lively = wires(server.port), wires(server.port), wires(server.port)
    text = frame(b"0123456789")
    dripping.send(text[:1])
    lively.send(text[:len(text) // 2])
    drops = iter(text[1:-1])  # 3 s
    while "is disconnected" not in server.log:
        with contextlib.suppress(OSError):
            dripping.send(bytes([next(drops)]))
        lively.send(text[len(text) // 2:] + text[:len(text) // 2])
        lively.expect([b"9876543210"])
        time.sleep(0.15)
    assert dripping.receive_error() == FRAME_TIMED_OUT
    dripping.expect_end()
    server.wait_for_log(rf"client \d+, {address_of(dripping)}, is disconnected: the rest of the frame")
    quiet.ask([b"still here"])


def test_a_client_with_nothing_to_say(stage, wires):
    server, _ = stage.pair("--idle-timeout", "2s")
    idle, busy = wires(server.port), wires(server.port)
    deadline = time.monotonic() + PATIENCE
    while "is disconnected" not in server.log:
        assert time.monotonic() < deadline, "the idle one stays"
        busy.ask([b"busy"])
        time.sleep(0.1)
    assert idle.receive_error() == IDLE_TIMED_OUT
    idle.expect_end()
    server.wait_for_log(rf"client \d+, {address_of(idle)}, is disconnected: the client sent no request")
    busy.ask([b"busy"])


# ---- Named by a proxy

def proxied(client):
    """A PROXY header, version 2, of a connection of that IPv4 address."""
    return b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + socket.inet_aton(client) + b"\xc6\x33\x64\x02\x12\x67\x01\xbb"


def test_clients_that_a_proxy_names(stage, wires):
    server, _ = stage.pair("--proxy-from", "127.0.0.1", "--max-clients-per-address", 1)
    first, again, other, bare = (wires(server.port) for _ in range(4))
    header_of_first = proxied("192.0.2.1")
    first.send(header_of_first[:5])
    first.send(header_of_first[5:] + frame(b"begun with its header"))
    first.expect([reverse(b"begun with its header")])
    again.send(proxied("192.0.2.1"))
    assert again.receive_error() == TOO_MANY_OF_ADDRESS
    server.wait_for_log(r"client \d+, 192\.0\.2\.1:4711, is rejected: the limit of clients of this address")
    other.send(proxied("192.0.2.2"))
    other.ask([b"another client"])
    bare.send(frame(b"no header"))
    with pytest.raises(ConnectionResetError):
        bare.receive()
    server.wait_for_log("a connection of proxy 127.0.0.1:.* is closed: it does not begin with a PROXY header")
    direct = wires(server.port, source="127.0.0.2")
    direct.ask([b"not from a proxy"])
    first.ask([b"still there"])


def test_a_header_from_nowhere_allowed(stage, wires):
    server, _ = stage.pair("--proxy-from", "127.0.0.2")
    wire = wires(server.port)
    wire.send(proxied("192.0.2.1"))
    wire.receive_error()
    server.wait_for_log("it begins with a PROXY header, and its address is not in --proxy-from")


# ---- How many

def test_connections_of_one_address(stage, wires):
    server, _ = stage.pair("--max-clients-per-address", 3)
    first = [wires(server.port) for _ in range(3)]
    for wire in first:
        wire.ask([b"in"])
    one_more = wires(server.port)
    assert one_more.receive_error() == TOO_MANY_OF_ADDRESS
    one_more.expect_end()
    server.wait_for_log(rf"client \d+, {address_of(one_more)}, is rejected: the limit of clients of this address")
    wires(server.port, source="127.0.0.2").ask([b"another address"])
    first.pop().close()

    def let_in():
        wire = wires(server.port)
        with contextlib.suppress(ConnectionError, AssertionError):
            wire.ask([b"in its place"])
            return True
        return False
    wait_until(let_in, "the place of the one that left is free")


def test_connections_in_all(stage, wires):
    server, _ = stage.pair("--max-clients", 4, "--max-clients-per-address", 4)
    for number in range(4):
        wires(server.port, source=f"127.0.0.{2 + number}").ask([b"in"])
    assert wires(server.port).receive_error() == TOO_MANY


def test_one_address_leaves_places_for_others(stage, wires):
    """Silent connections of one address, as many as it can have, do not lock out all other addresses."""
    server = stage.server(wrapper=["prlimit", "--nofile=200:200"])
    stage.worker()
    server.wait_until_listening()
    for _ in range(250):
        with contextlib.suppress(ConnectionError):
            wires(server.port)
    for number in range(10):
        wires(server.port, source=f"127.0.0.{2 + number}").ask([b"also in"])


# ---- Memory

def test_the_budget_of_memory(stage, wires):
    """The largest holders of unfinished frames are disconnected; clients that hold little and clients that
    wait only for the server stay."""
    server, _ = stage.pair("--max-message-length", "4m", "--max-concurrent-messages", 4,
                           "--client-memory", "16m")
    small = [wires(server.port) for _ in range(20)]
    for wire in small:
        wire.send(frame(b"begun early")[:-1])
    with Load(stage, server, "--size", 1000, "--max-concurrent-messages", 4):
        large = [wires(server.port, source="127.0.0.2") for _ in range(12)]
        for wire in large:
            with contextlib.suppress(OSError):
                wire.send(header(12 + 4 * MEGABYTE, REQUEST, 4 * MEGABYTE) + bytes(3 * MEGABYTE))
        wait_until(lambda: sum(not is_open(wire) for wire in large) >= 3, "some are closed")
    closed = [wire for wire in large if not is_open(wire)]
    assert len(closed) < len(large)
    codes = []
    for wire in closed:
        with contextlib.suppress(ConnectionError):
            codes.append(wire.receive_error())
    assert set(codes) == {OUT_OF_MEMORY}
    server.wait_for_log(r"client \d+, 127\.0\.0\.2:\d+, is disconnected: the memory for clients")
    for wire in small:
        wire.send(frame(b"begun early")[-1:])
        wire.expect([b"ylrae nugeb"])


@pytest.mark.skipif(SANITIZE != [""], reason="a sanitizer has a heap, and an address space, of its own")
@needs_cpu_worker
def test_memory_that_cannot_be_had(stage, wires):
    """The client that needs the memory is disconnected, with the reason."""
    server, _ = stage.pair("--max-message-length", "4m", "--max-concurrent-messages", 4)
    healthy = wires(server.port)
    healthy.ask([b"before"] * 100)
    used = int(re.search(r"VmSize:\s+(\d+)", open(f"/proc/{server.pid}/status").read())[1]) * 1024
    resource.prlimit(server.pid, resource.RLIMIT_AS, (used + 4 * MEGABYTE,) * 2)
    greedy = [wires(server.port) for _ in range(30)]
    for wire in greedy:
        with contextlib.suppress(OSError):
            wire.send(header(12 + 4 * MEGABYTE, REQUEST, 4 * MEGABYTE) + bytes(3 * MEGABYTE))
    server.wait_for_log(r"client \d+, 127\.0\.0\.1:\d+, is disconnected: the memory for clients")
    healthy.ask([b"after"] * 100)
    assert server.alive


# ---- Output

def fill_with_responses(server, wire):
    """Sends requests until the server stops reading them; receives no response."""
    wire.socket.settimeout(0.3)
    with contextlib.suppress(TimeoutError):
        while True:
            wire.send(frame(bytes(60_000)) * 10)
    wire.socket.settimeout(PATIENCE)


def test_a_client_that_trickles_its_responses(stage, wires):
    """A byte now and then is no progress: the client must read, within the time limit, the data that was pending
    at its begin."""
    server, _ = stage.pair("--max-message-length", "64k", "--client-timeout", "1s")
    wire = wires(server.port, receive_buffer=4096)
    fill_with_responses(server, wire)
    wire.socket.setblocking(False)
    deadline = time.monotonic() + PATIENCE
    while "reads its responses too slowly" not in server.log:
        assert time.monotonic() < deadline, "it is not closed"
        with contextlib.suppress(OSError):
            wire.socket.recv(2048)
        time.sleep(0.02)
    assert re.search(rf"client \d+, {address_of(wire)}, is disconnected: it reads its responses", server.log)


def test_refusals_that_nobody_reads(stage, wires):
    """While no worker is attached, the server stops reading from a client that reads none of its refusals."""
    server, worker = stage.pair("--worker-timeout", "100ms", "--max-message-length", "64k")
    worker.kill()
    server.wait_for_log("requests are refused")
    before = server.resident_bytes()
    unread = [wires(server.port, receive_buffer=4096) for _ in range(4)]
    for wire in unread:
        wire.socket.settimeout(0.3)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 256 * MEGABYTE:
                sent += wire.socket.send(frame(b"") * 10_000)
        assert sent < 256 * MEGABYTE, "the server reads on and on"
    assert server.resident_bytes() - before < 4 * MEGABYTE * TIME_FACTOR
    reader = wires(server.port)
    reader.send(frame(b"anybody?"))
    assert reader.receive_error() == WORKER_UNAVAILABLE


# ---- Fairness

@needs_cpu_worker
def test_a_light_client_beside_deep_pipelines(stage, wires):
    """It does not wait behind all requests of the others. bench/fairness.py measures it."""
    server, _ = stage.pair()
    light = wires(server.port)
    heavy = stage.client(server, "--connections", 20, "--max-concurrent-messages", 128, "--size",
                         64, "--duration", "1s")
    heavy.wait_for_log("connected to")
    asked = 0
    while heavy.alive:
        light.ask([b"light"])
        asked += 1
    assert heavy.wait(60 * TIME_FACTOR) == 0
    assert asked >= 20 / TIME_FACTOR
