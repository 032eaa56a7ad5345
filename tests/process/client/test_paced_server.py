"""The paced server has the capacity that it was given; the tests of the client's search rely on it."""
import random
import socket
import struct
import time

import pytest

from harness import statistics
from paced_server import PacedServer, Pacer
from wire import REQUEST, Wire, frame, header, payloads


def test_requests_within_the_bucket_are_answered_at_once():
    pacer = Pacer(rate=100, burst=5)
    times = [number / 100 for number in range(1000)]
    assert [pacer.admit(now) for now in times] == pytest.approx(times)
    # Idle time makes room for a burst, and for no more than that.
    for start in (100, 1000):
        got = [pacer.admit(start) - start for _ in range(8)]
        assert got == pytest.approx([0] * 5 + [0.01, 0.02, 0.03])


def test_requests_beyond_it_wait_in_their_order():
    pacer = Pacer(rate=100, burst=5)
    answered = [pacer.admit(number / 200) for number in range(2000)]  # twice the rate, for 10 s
    # Half of them use new tokens by the end, and the last waits as long as those took.
    assert answered[-1] == pytest.approx((2000 - 5) / 100)
    assert max(after - before for before, after in zip(answered[5:], answered[6:])) \
        == pytest.approx(0.01)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_holds_for_any_arrivals(seed):
    """In any interval it answers at most the burst and the requests that the rate allows, and it answers as soon as
    they allow."""
    source = random.Random(seed)
    rate, burst, now = 50, source.randint(1, 20), 0.0
    pacer = Pacer(rate, burst)
    arrived, answered = [], []
    for _ in range(400):
        now += source.choice((0, 0, source.expovariate(rate), source.expovariate(rate / 20)))
        arrived.append(now)
        answered.append(pacer.admit(now))
    assert answered == sorted(answered)
    for first, begin in enumerate(answered):
        for last in range(first + burst, len(answered)):
            assert last - first + 1 <= burst + rate * (answered[last] - begin) + 1e-6
    for come, answer, before in zip(arrived, answered, [0, *answered]):
        assert answer == come or answer <= before + 1 / rate + 1e-9


def test_it_does_not_wait_within_the_bucket():
    with PacedServer(rate=1, burst=201) as server, Wire(server.port) as wire:
        wire.ask(payloads(200, [0, 1, 300, 5000]), answer=bytes)  # new tokens would take 199 s


def test_it_answers_at_its_rate_beyond_the_bucket():
    rate, burst, each = 500, 20, 260
    with PacedServer(rate, burst) as server, Wire(server.port) as one, Wire(server.port) as other:
        requests = payloads(each, 100)
        start = time.monotonic()
        for wire in (one, other):
            wire.send(b"".join(map(frame, requests)))
        # The first connection's requests came first, so the other's wait for them.
        one.expect(requests)
        assert time.monotonic() - start >= (each - burst) / rate
        other.expect(requests)
        assert time.monotonic() - start >= (2 * each - burst) / rate


@pytest.mark.parametrize("rate", [2000, 20_000])
def test_a_load_above_its_rate_gets_its_rate(stage, rate):
    with PacedServer(rate) as server:
        client = stage.run_client(server, "--service", "echo", "--size", 32, "-t", 2, "--connections", 4,
                                  "--duration", "1s", "--max-concurrent-messages", 16)
    got = statistics(client)
    achieved = got["IO rate (MIOP/s)"] * 1e6  # within the duration
    # The two clocks differ: the client's second may be some milliseconds longer than the server's.
    assert achieved <= 1.05 * (rate + 32 + 1)
    assert achieved > 0  # a machine with other work to do is slower
    print(f"{achieved:.0f} of {rate} requests/s")


def test_requests_in_pieces_and_bad_frames():
    with PacedServer(rate=1e6) as server, Wire(server.port) as wire:
        request = payloads(1, 300)[0]
        data = frame(request) * 3
        with wire.sending(*(data[cut:cut + 7] for cut in range(0, len(data), 7))):
            wire.expect([request] * 3)
        for bad in (header(12, REQUEST, 1), frame(b"hello", 5), header(12 + (1 << 21), REQUEST, 1 << 21)):
            with Wire(server.port) as other:
                other.send(bad)
                other.expect_end()
        # The client reads only when all is sent, and this is more than the sockets' buffers take.
        long = payloads(20, 1 << 20)
        wire.ask(long, answer=bytes)
        with Wire(server.port) as leaver:
            leaver.send(data)
            leaver.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wire.ask([request], answer=bytes)
