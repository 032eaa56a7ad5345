"""Neither side trusts the content of a channel's memory: a worker's malformed responses harm at most one request, a
server's malformed requests are refused, and another implementation works."""
import contextlib
import struct

import pytest

from control import RINGS_DOORBELL, FakeServer, FakeWorker
from harness import PATIENCE, needs_cpu_worker, wait_until
from wire import RESPONSE, WORKER_FAILED, Wire, frame, payloads, reverse


@contextlib.contextmanager
def fake_worker(stage, capabilities):
    server = stage.server("--max-concurrent-messages", 4, "--max-message-length", 1000)
    server.wait_for_log("waiting for a worker")
    with FakeWorker(stage.comch, capabilities) as worker:
        server.wait_until_listening()
        worker.server = server
        yield worker


@pytest.fixture
def fake(stage):
    """Yields a fake worker of a server with four slots for up to 1000 bytes."""
    with fake_worker(stage, capabilities=0) as worker:
        yield worker


@pytest.fixture
def ringing_fake(stage):
    """Yields a fake worker that can also ring, as one that is no GPU."""
    with fake_worker(stage, RINGS_DOORBELL) as worker:
        yield worker


def take(fake, sequence):
    """Returns the request of this number, once it is there."""
    return wait_until(lambda: fake.memory.read(sequence, response=False),
                      f"request {sequence} in its slot")[1]


NONSENSE = {
    "longer than the limit": {"length": 1001},
    "4 GiB long": {"length": 0xffffffff},
    "refused": {"status": 1},
    "of an unknown status": {"status": 0xdeadbeef},
    "of a status and too long": {"length": 0x80000000, "status": 77},
}


@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE)
@pytest.mark.parametrize("size", [0, 10, 372, 373, 1000])
def test_a_response_that_makes_no_sense(fake, nonsense, size):
    """The client gets an error instead of this response, and the right answers before and after it; so
    does another client of the thread."""
    one, other, last = payloads(3, size, seed=size)
    with Wire(fake.server.port) as wire, Wire(fake.server.port) as neighbour:
        wire.send(frame(one))
        assert take(fake, 0) == one
        neighbour.send(frame(other))
        assert take(fake, 1) == other
        wire.send(frame(last))
        assert take(fake, 2) == last
        fake.memory.write(0, reverse(one), response=True, **nonsense)
        fake.memory.write(1, reverse(other), response=True)
        fake.memory.write(2, reverse(last), response=True)
        assert wire.receive_error() == WORKER_FAILED
        wire.expect([reverse(last)])
        neighbour.expect([reverse(other)])


@pytest.mark.parametrize("turn", [0, 2, 3, 0xffffffff])
@pytest.mark.parametrize("size", [0, 100, 1000])
def test_a_response_of_another_turn_is_none(fake, turn, size):
    request = payloads(1, size)[0]
    with Wire(fake.server.port) as wire:
        wire.send(frame(request))
        assert take(fake, 0) == request
        fake.memory.write(0, b"nonsense", response=True, turn=turn)
        expect_silence(wire)
        fake.memory.write(0, reverse(request), response=True)
        wire.expect([reverse(request)])


def expect_silence(wire):
    """Checks that nothing arrives while the server has the time to poll a thousand times."""
    wire.socket.settimeout(0.05)
    with pytest.raises(TimeoutError):
        wire.socket.recv(1)
    wire.socket.settimeout(PATIENCE)


def test_a_response_that_is_not_whole_yet(fake):
    request = payloads(1, 372)[0]
    with Wire(fake.server.port) as wire:
        wire.send(frame(request))
        assert take(fake, 0) == request
        for vectors in (0, 1, 30):
            fake.memory.write(0, reverse(request), response=True, vectors=vectors)
            expect_silence(wire)
        fake.memory.write(0, reverse(request), response=True)
        wire.expect([reverse(request)])


def test_responses_out_of_order(fake):
    requests = payloads(4, 100)
    with Wire(fake.server.port) as wire:
        for sequence, request in enumerate(requests):  # each in a separate slot
            wire.send(frame(request))
            assert take(fake, sequence) == request
        for sequence in (3, 1, 2):
            fake.memory.write(sequence, reverse(requests[sequence]), response=True)
        expect_silence(wire)
        fake.memory.write(0, reverse(requests[0]), response=True)
        wire.expect(map(reverse, requests))


def test_many_laps_by_hand(fake):
    """Another implementation sees the same layout and turns."""
    requests = payloads(100, [0, 11, 12, 13, 371, 372, 373, 1000])
    with Wire(fake.server.port) as wire:
        for sequence, request in enumerate(requests):
            wire.send(frame(request))
            assert take(fake, sequence) == request
            fake.memory.write(sequence, reverse(request), response=True)
            wire.expect([reverse(request)])


def unpack(content, count):
    """Returns the requests of a batch."""
    lengths = struct.unpack_from(f"<{count}H", content)
    at = 2 * count
    messages = []
    for length in lengths:
        messages.append(content[at:at + length])
        at += length
    assert at == len(content)
    return messages


@pytest.mark.parametrize("sizes", [[1, 0, 3], [0] * 20, [60, 61, 62, 63] * 8])
def test_batches_by_hand(ringing_fake, sizes):
    """Another implementation sees and answers requests that are there together."""
    fake = ringing_fake
    requests = payloads(len(sizes), sizes)
    with Wire(fake.server.port) as wire:
        wire.send(b"".join(map(frame, requests)))
        sequence, taken, batches = 0, [], 0
        while len(taken) < len(requests):  # the stream may have been split
            content = take(fake, sequence)
            count = fake.memory.count(sequence, response=False)
            messages = unpack(content, count) if count else [content]
            batches += count > 1
            taken += messages
            frames = b"".join(frame(reverse(message), RESPONSE) for message in messages)
            fake.memory.write(sequence, frames if count else reverse(content), response=True,
                              count=count)
            fake.ring()
            sequence += 1
        assert taken == requests and batches
        wire.expect(map(reverse, requests))


@pytest.mark.parametrize("scribble", [b"\x00", b"\x55", b"\xff"])
def test_a_worker_that_scribbles_over_the_channels_header(stage, fake, scribble):
    """The server does not trust the content of the header, and the next worker continues in the right place."""
    request = payloads(1, 100)[0]
    with Wire(fake.server.port) as wire:
        fake.memory.responses[:fake.memory.RESPONSE_HEADER] = scribble * fake.memory.RESPONSE_HEADER
        wire.send(frame(request))
        assert take(fake, 0) == request
        fake.memory.write(0, reverse(request), response=True)
        wire.expect([reverse(request)])
        fake.memory.responses[:fake.memory.RESPONSE_HEADER] = scribble * fake.memory.RESPONSE_HEADER
        wire.send(frame(request))
        assert take(fake, 1) == request
        fake.control.socket.close()
        stage.worker()
        wire.expect([reverse(request)])


def test_a_worker_that_rings(stage):
    """The doorbell wakes a server that has gone to sleep over a request."""
    server = stage.server("--spin", 0)
    server.wait_for_log("waiting for a worker")
    with FakeWorker(stage.comch, RINGS_DOORBELL) as worker:
        server.wait_until_listening()
        with Wire(server.port) as wire:
            for sequence in range(10):
                wire.send(frame(b"hello"))
                take(worker, sequence)
                wait_until(worker.server_sleeps, "the server arms its doorbell")
                worker.memory.write(sequence, b"olleh", response=True)
                worker.ring()
                wire.expect([b"olleh"])


# ---- What a server writes into the channel


@pytest.fixture
def real_worker(stage):
    """Yields a fake server with four slots for up to 256 bytes, which a real worker serves."""
    with FakeServer(stage.comch, depth=4, max_length=256) as server:
        server.program = stage.worker()
        server.attach()
        yield server


def answer(server, sequence):
    """Returns the worker's response of this number, as (status, payload)."""
    server.ring()
    return wait_until(lambda: server.memory.read(sequence, response=True),
                      f"response {sequence} in its slot")


@pytest.mark.parametrize("length", [257, 372, 373, 4096, 0x80000000, 0xffffffff])
def test_a_request_that_is_too_long(real_worker, length):
    """The worker reports it in the response and in its log, and answers the next."""
    real_worker.memory.write(0, b"nonsense", response=False, length=length)
    assert answer(real_worker, 0) == (1, b"")
    real_worker.memory.write(1, b"sense", response=False)
    assert answer(real_worker, 1) == (0, b"esnes")
    real_worker.program.wait_for_log(f"channel 0 slot 0: refused .*{length} bytes")


@pytest.mark.parametrize("turn", [0, 2, 0xffffffff])
def test_a_request_of_another_turn_is_none(real_worker, turn):
    real_worker.memory.write(0, b"nonsense", response=False, turn=turn)
    real_worker.ring()
    real_worker.memory.write(0, b"sense", response=False)
    assert answer(real_worker, 0) == (0, b"esnes")


def test_many_requests_by_hand(real_worker):
    for sequence, request in enumerate(payloads(100, range(257))):
        real_worker.memory.write(sequence, request, response=False)
        assert answer(real_worker, sequence) == (0, reverse(request))


@pytest.mark.parametrize("sizes", [[1, 0, 3], [0], [256] * 19, [5] * 64])
def test_batches_of_requests_by_hand(real_worker, sizes):
    requests = payloads(len(sizes), sizes)
    table = struct.pack(f"<{len(sizes)}H", *map(len, requests))
    content = table + b"".join(requests)
    for sequence in range(10):
        real_worker.memory.write(sequence, content, response=False, count=len(sizes))
        frames = b"".join(frame(reverse(request), RESPONSE) for request in requests)
        assert answer(real_worker, sequence) == (0, frames)
        assert real_worker.memory.count(sequence, response=True) == len(sizes)


@pytest.mark.parametrize("content, count", [
    (b"", 1), (b"\1", 1), (b"\2\0a", 1), (b"\0\0a", 1), (b"\xff\xff\xff\xff", 2),
    (struct.pack("<H", 257) + bytes(257), 1), (bytes(130), 65), (bytes(200), 0xffffffff),
    (bytes(5121), 2), (struct.pack("<20H", *[250] * 20) + bytes(250 * 20), 20)])
def test_batches_that_are_none(real_worker, content, count):
    """These are too short for their tables, of other lengths, over the limits, or have too long responses."""
    real_worker.memory.write(0, content, response=False, count=count)
    assert answer(real_worker, 0) == (1, b"")
    real_worker.memory.write(1, b"sense", response=False)
    assert answer(real_worker, 1) == (0, b"esnes")


def test_a_server_that_scribbles_over_the_channels_header(real_worker):
    memory = real_worker.memory
    memory.requests[:memory.REQUEST_HEADER] = b"\x55" * memory.REQUEST_HEADER
    memory.responses[:memory.RESPONSE_HEADER] = b"\x55" * memory.RESPONSE_HEADER
    real_worker.memory.write(0, b"sense", response=False)
    assert answer(real_worker, 0) == (0, b"esnes")


@needs_cpu_worker  # a GPU's warps poll all slots at the same time
def test_a_worker_names_the_stuck_channel(stage):
    """The worker does not see a request in a slot that is not the next one, and its watchdog reports it."""
    with FakeServer(stage.comch, depth=4, max_length=256) as server:
        worker = stage.worker("--stuck-after", "3s")
        server.attach()
        server.memory.write(0, b"first", response=False)
        assert answer(server, 0) == (0, b"tsrif")
        struct.pack_into("=Q", server.memory.requests, 0, 2)  # as if two had been consumed
        server.memory.write(2, b"third", response=False)
        stuck = worker.wait_for_log(r"channel 0 is stuck: its slot 2 \(message 2\) has been unanswered for ([\d.]+) s")
        assert float(stuck[1]) >= 3  # by default it would be logged after 2 s
        server.memory.write(1, b"second", response=False)
        assert answer(server, 2) == (0, b"driht")
        worker.wait_for_log("channel 0 is working again")
