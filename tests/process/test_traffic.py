"""Requests in all shapes get the right answers, byte for byte, in order."""
import json
import random
import re
import signal
import struct

import pytest

from harness import LONG, PATIENCE, TIME_FACTOR, needs_cpu_worker, scaled, statistics, wait_until
from wire import TOO_LONG, Wire, frame, payloads, reverse

# Around what changes the form of a message: empty, 12 bytes a vector, 16 a block, the longest
# packed one (372), a page, the receive buffer.
SIZES = [0, 1, 11, 12, 15, 16, 17, 255, 256, 371, 372, 373, 374, 4096, 65536]
MAXIMUM = 16 << 20


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return struct.pack("<I", crc ^ 0xffffffff)


ANSWERS = {"reverse": reverse, "echo": lambda payload: payload, "crc32c": crc32c}


def connections_of_threads(server):
    """Connections and responses of each I/O thread, from the log of a server that has ended."""
    found = re.findall(r"I/O thread \d+: (\d+) connections, (\d+) responses", server.log)
    return [(int(connections), int(responses)) for connections, responses in found]


def test_a_run_as_with_the_reference(stage, tmp_path):
    server, _ = stage.pair("--threads", 2)
    count = scaled(100_000)
    client = stage.run_client(server, "-t", 4, "-i", count, "-m", "hello", "-e", "olleh",
                              "--output", tmp_path / "result.json")
    table = statistics(client)
    assert table["Operation count"] == table["Valid responses"] == 4 * count
    assert table["Duration (seconds)"] > 0 and table["IO rate (MIOP/s)"] > 0
    result = json.loads((tmp_path / "result.json").read_text())
    run, = result["runs"]
    assert result["status"] == "ok" and run["valid_responses"] == 4 * count
    assert run["tx_bytes"] == run["rx_bytes"] == 4 * count * len(frame(b"hello"))


@pytest.mark.parametrize("service", ANSWERS)
def test_every_size_by_the_client(stage, service):
    server, _ = stage.pair("--max-message-length", "64k", "--threads", 2, "--service", service)
    for size in SIZES:
        count = scaled(200, lowest=20)
        client = stage.run_client(server, "--size", size, "-t", 2, "-i", count,
                                  "--service", service)
        assert statistics(client)["Valid responses"] == 2 * count


@pytest.mark.parametrize("service", ANSWERS)
def test_every_size_by_hand(stage, service):
    server, _ = stage.pair("--max-message-length", "64k", "--service", service)
    # In Python, the checksum of 64 KiB takes a while.
    sizes = SIZES[:-1] if service == "crc32c" else SIZES
    requests = [payload for size in sizes for payload in payloads(3, size, seed=size)]
    random.Random(7).shuffle(requests)
    with Wire(server.port) as wire:
        wire.ask(requests, ANSWERS[service])


def test_the_longest_message(stage):
    server, _ = stage.pair("--max-message-length", "16m", "--max-concurrent-messages", 2)
    client = stage.run_client(server, "--size", "16m", "-i", 4, "--max-concurrent-messages", 3)
    assert statistics(client)["Valid responses"] == 4
    with Wire(server.port) as wire:
        wire.ask(payloads(2, MAXIMUM))


@pytest.mark.parametrize("limit", [0, 1, 48, 256, 372, 373, 4096])
def test_a_request_exactly_at_the_limit(stage, limit):
    server, _ = stage.pair("--max-message-length", limit)
    with Wire(server.port) as wire:
        wire.ask(payloads(300, [limit, max(0, limit - 1)]))
        wire.send(frame(bytes(limit + 1)))
        assert wire.receive_error() == TOO_LONG
        wire.expect_end()


def test_many_io_threads_share_the_connections(stage):
    server, _ = stage.pair("--threads", 3)
    wires = [Wire(server.port) for _ in range(60)]
    for number, wire in enumerate(wires):
        wire.ask(payloads(10, 40, seed=number))
    for wire in wires:
        wire.close()
    assert server.terminate() == 0
    assert connections_of_threads(server) == [(20, 200)] * 3


def test_few_connections_leave_no_io_thread_idle(stage):
    """A client's connections are made at once; each thread gets as many."""
    server, _ = stage.pair("--threads", 4)
    stage.run_client(server, "-t", 8, "-i", 100)
    assert server.terminate() == 0
    assert connections_of_threads(server) == [(2, 200)] * 4


def test_who_comes_later_fills_the_gaps(stage):
    server, _ = stage.pair("--threads", 2)
    wires = [Wire(server.port) for _ in range(8)]  # in turn: thread 0, 1, 0, 1, ...
    for wire in wires:
        wire.ask([b"first"])
    before = server.descriptors()
    for wire in wires[::2]:
        wire.close()
    wait_until(lambda: server.descriptors() == before - 4, "four connections are closed")
    for _ in range(4):
        wires.append(Wire(server.port))
        wires[-1].ask([b"second"])
    for wire in wires:
        wire.close()
    assert server.terminate() == 0
    assert connections_of_threads(server) == [(8, 8), (4, 4)]


def test_ipv6(stage):
    server = stage.server("--listen-address", "::1", "--threads", 2)
    stage.worker()
    assert server.wait_until_listening()[1] == "[::1]"
    stage.run_client(server, "-t", 2, "-i", 1000, host="::1")
    with Wire(server.port, host="::1") as wire:
        wire.ask([b"six"])


def test_frames_split_and_merged_anywhere(stage):
    server, _ = stage.pair("--max-message-length", "2k", "--max-concurrent-messages", 16)
    requests = payloads(scaled(3000, 300), range(0, 2049))
    stream = b"".join(map(frame, requests))
    source = random.Random(2)
    cuts = sorted(source.sample(range(1, len(stream)), len(requests)))
    pieces = [stream[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(stream)])]
    with Wire(server.port) as wire, wire.sending(*pieces):
        wire.expect(map(reverse, requests))


def test_one_byte_at_a_time(stage):
    server, _ = stage.pair()
    requests = payloads(60, range(0, 21))
    stream = b"".join(map(frame, requests))
    with Wire(server.port) as wire, wire.sending(*(bytes([byte]) for byte in stream)):
        wire.expect(map(reverse, requests))


def test_a_thousand_connections_at_once(stage):
    server, _ = stage.pair("--threads", 2)
    wires = [Wire(server.port) for _ in range(1000)]
    for _ in range(2):
        for number, wire in enumerate(wires):
            wire.send(frame(b"connection %d" % number))
        for number, wire in enumerate(wires):
            wire.expect([reverse(b"connection %d" % number)])
    for wire in wires:
        wire.close()


def test_thousands_of_connections_of_one_client(stage):
    """With far more requests under way than there are slots, all are answered."""
    server, _ = stage.pair("--threads", 2)
    count = scaled(4000)
    client = stage.run_client(server, "-t", 2, "--connections", count // 2, "-i", 5, "--size", 64,
                              "--max-concurrent-messages", 2)
    assert statistics(client)["Valid responses"] == 5 * (count // 2 * 2)
    assert server.terminate() == 0
    assert [connections for connections, _ in connections_of_threads(server)] == [count // 2] * 2


@needs_cpu_worker
def test_who_waits_for_room_takes_no_buffer(stage):
    """A thousand clients ask while the channel is full: what they sent stays in the kernel. One
    that leaves meanwhile is let go."""
    server, worker = stage.pair("--max-concurrent-messages", 1)
    wires = [Wire(server.port) for _ in range(1000)]
    for wire in wires:
        wire.ask([b"who is in?"])
    leaver = Wire(server.port)
    leaver.ask([b"not for long"])
    before, descriptors = server.resident_bytes(), server.descriptors()
    worker.stop()
    for number, wire in enumerate(wires):
        wire.send(frame(b"connection %d" % number))
    leaver.close()
    wait_until(lambda: server.descriptors() < descriptors, "the server closes one connection")
    assert server.resident_bytes() - before < (1 << 20) * TIME_FACTOR
    worker.send_signal(signal.SIGCONT)
    for number, wire in enumerate(wires):
        wire.expect([reverse(b"connection %d" % number)])
        wire.close()


def test_connections_one_after_the_other(stage):
    server, _ = stage.pair()
    for number in range(200):
        with Wire(server.port) as wire:
            wire.ask([b"visitor %d" % number])


@pytest.mark.parametrize("depth", [1, 2, 8])
def test_more_in_flight_than_slots(stage, depth):
    """Twenty clients of one thread send all they have before they read the first answer."""
    server, _ = stage.pair("--max-concurrent-messages", depth, "--max-message-length", 1000)
    wires = [Wire(server.port) for _ in range(20)]
    requests = {wire: payloads(50, [0, 20, 372, 1000], seed=number)
                for number, wire in enumerate(wires)}
    for wire in wires:
        wire.send(b"".join(map(frame, requests[wire])))
    for wire in wires:
        wire.expect(map(reverse, requests[wire]))
        wire.close()


@pytest.mark.parametrize("depth", [1, 2])
def test_few_slots_and_a_client_that_wants_many(stage, depth):
    server, _ = stage.pair("--max-concurrent-messages", depth)
    count = scaled(5_000)
    client = stage.run_client(server, "-t", 2, "-i", count, "--size", 100,
                              "--max-concurrent-messages", 128)
    assert statistics(client)["Valid responses"] == 2 * count


@pytest.mark.parametrize("depth", [1, 16])
def test_a_deep_pipeline_leaves_room_for_its_neighbours(stage, depth):
    """A client with one request in flight gets its share of the slots beside one with 4096."""
    server, _ = stage.pair("--max-concurrent-messages", depth)
    greedy = stage.client(server, "--max-concurrent-messages", 4096, "--duration", "60s")
    greedy.wait_for_log("connected to")
    with Wire(server.port) as wire:
        for number in range(100):
            wire.ask([b"number %d" % number])
    assert greedy.alive


def test_nothing_has_a_checksum_too(stage):
    server, _ = stage.pair("--service", "crc32c")
    with Wire(server.port) as wire:
        wire.ask([b""] * 1000, lambda _: bytes(4))


@pytest.mark.skipif(not LONG, reason="a minute: process.long runs it")
def test_a_long_mix(stage):
    server, _ = stage.pair("--threads", 2, "--max-message-length", "64k")
    clients = [stage.client(server, "--size", size, "-t", 2, "--duration", "60s")
               for size in (8, 300, 5000, 65536)]
    for client in clients:
        assert client.wait(60 + PATIENCE) == 0, client.log
