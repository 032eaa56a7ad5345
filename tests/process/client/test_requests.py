"""The load client sends the sizes, payloads, schedules and connections that were requested, and checks every byte that
it receives."""
import socket
import sys
import threading
from collections import Counter

import pytest

from harness import PATIENCE, ROOT, TIME_FACTOR, scaled
from results import load_once, requests_of
from wire import RESPONSE, frame

sys.path.insert(0, str(ROOT / "tests/process/tls"))

from certificates import Authority, needs_openssl, own, trusting  # noqa: E402

HEADER = 12
SERVICES = {"reverse": lambda size: size, "crc32c": lambda size: 4}
LONG_ENOUGH = ["--max-message-length", "64k"]
TOLERANT = ["--lag-tolerance", f"{0.5 * TIME_FACTOR}s"]


def run_of_sizes(stage, server, *options, count, service="reverse"):
    """Returns the sizes of the requests of a successful run; checks that its byte counts are those of their frames."""
    log = stage.folder / "requests.csv"
    run = load_once(stage, server, *options, "-i", count // 2, "--connections", 2, "--service", service,
                    "--log-requests", log)
    sizes = [each["bytes"] for each in requests_of(log)]
    assert run["valid_responses"] == len(sizes) == count
    assert run["tx_bytes"] == sum(HEADER + size for size in sizes)
    assert run["rx_bytes"] == sum(HEADER + SERVICES[service](size) for size in sizes)
    return sizes


@pytest.mark.parametrize("service", SERVICES)
def test_a_mix_of_sizes(stage, service):
    server, _ = stage.pair("--service", service, *LONG_ENOUGH)
    count = scaled(4000, 400)
    sizes = Counter(run_of_sizes(stage, server, "--mix", "0:1,64:89,4k:7,64k:3", count=count,
                                 service=service))
    assert set(sizes) == {0, 64, 4096, 65536}
    for size, weight in ((0, 1), (64, 89), (4096, 7), (65536, 3)):
        expected = count * weight / 100
        # The tolerance is more than five standard deviations, in case the client's generator ever changes.
        assert abs(sizes[size] - expected) <= 6 * expected ** 0.5, size


@pytest.mark.parametrize("low, high, different", [("100", "103", 4), ("0", "16k", 256), ("5", "5", 1)])
def test_all_sizes_of_a_range(stage, low, high, different):
    server, _ = stage.pair(*LONG_ENOUGH)
    count = scaled(4000, 400)
    sizes = Counter(run_of_sizes(stage, server, "--uniform-size", f"{low}-{high}", count=count))
    bounds = [int(text.replace("k", "")) * (1024 if "k" in text else 1) for text in (low, high)]
    assert bounds[0] <= min(sizes) and max(sizes) <= bounds[1]
    # With 16 of each on average, each is missing with a probability of e^-16.
    assert len(sizes) == different or TIME_FACTOR > 1
    assert sum(sizes.elements()) / count == pytest.approx(sum(bounds) / 2, rel=0.1)


def test_sizes_of_a_file(stage):
    server, _ = stage.pair(*LONG_ENOUGH)
    path = stage.folder / "sizes"
    path.write_text("# as they were seen\n100\n1k\n100\n\n 100 # again\n")
    count = scaled(2000, 400)
    sizes = Counter(run_of_sizes(stage, server, "--size-file", path, count=count))
    assert set(sizes) == {100, 1024}
    assert sizes[100] / count == pytest.approx(3 / 4, abs=6 * (3 / 16 / count) ** 0.5)


class Recorder(threading.Thread):
    """An echo server for one connection that keeps the requests that it received."""

    def __init__(self):
        super().__init__(daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE)
        self.port = self._listener.getsockname()[1]
        self.payloads = []
        self.start()

    def run(self):
        with self._listener, self._listener.accept()[0] as connection, \
                connection.makefile("rb") as stream:
            connection.settimeout(PATIENCE)
            while head := stream.read(HEADER):
                self.payloads.append(stream.read(int.from_bytes(head[8:], "big")))
                connection.sendall(frame(self.payloads[-1], RESPONSE))


@pytest.mark.parametrize("options, right", [
    (["--size", 100, "--payload", "constant:7"], lambda sent: set(sent) == {bytes([7]) * 100}),
    (["--size", 7, "--payload", "file:{}"], lambda sent: set(sent) == {b"abcabca"}),
    (["--mix", "1:1,2:1", "--payload", "file:{}"], lambda sent: set(sent) == {b"a", b"ab"}),
    (["--payload", "file:{}"], lambda sent: set(sent) == {b"abc"}),
    (["--size", 100, "--payload", "random"],
     lambda sent: len(set(sent)) > 50 and all(len(set(each)) > 10 for each in sent)),
    (["-m", "grüß\tdich"], lambda sent: set(sent) == {"grüß\tdich".encode()}),
    (["-m", ""], lambda sent: set(sent) == {b""}),
], ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "")
def test_the_bytes_of_requests(stage, options, right):
    path = stage.folder / "payload"
    path.write_bytes(b"abc")
    server = Recorder()
    run = load_once(stage, server, *(str(word).format(path) for word in options), "--service", "echo", "-i",
                    100)
    server.join(PATIENCE)
    assert len(server.payloads) == run["valid_responses"] == 100
    assert right(server.payloads), server.payloads[:3]
    assert run["tx_bytes"] == run["rx_bytes"] == sum(HEADER + len(each) for each in server.payloads)


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("payload", ["random", "constant:0", "file:/bin/sh"])
def test_payloads_through_the_real_server(stage, payload, service):
    server, _ = stage.pair("--service", service, *LONG_ENOUGH)
    assert set(run_of_sizes(stage, server, "--size", "3000", "--payload", payload, count=200,
                            service=service)) == {3000}


@pytest.mark.parametrize("threads", [1, 3])
def test_a_schedule(stage, threads):
    """The due times of requests, and their sizes, are those of the file's lines."""
    lines = [(0, 64), (0, 0), (1500, 4096), (1500, 64)] + [
        (2000 + 100 * number, 64 << number % 11) for number in range(3000)]
    path, log = stage.folder / "schedule", stage.folder / "requests.csv"
    path.write_text("# microseconds\n" + "".join(f"{offset}us {size}\n" for offset, size in lines))
    server, _ = stage.pair(*LONG_ENOUGH)
    run = load_once(stage, server, "--schedule", path, "-t", threads, "--log-requests", log, *TOLERANT)
    requests = requests_of(log)
    start = min(each["intended_ns"] for each in requests)
    got = [(each["intended_ns"] - start, each["bytes"]) for each in requests]
    assert Counter(got) == Counter((1000 * offset, size) for offset, size in lines)
    assert all(each["sent_ns"] >= each["intended_ns"] for each in requests)
    assert start < 1e9 * TIME_FACTOR
    assert run["tx_bytes"] == run["rx_bytes"] == sum(HEADER + size for _, size in lines)
    assert run["arrivals"] == "schedule" and run["response_time_us"]["count"] == len(lines)
    assert run["duration_seconds"] >= lines[-1][0] / 1e6


def test_a_schedule_in_seconds_and_more_of_it_than_other_runs_have_requests(stage):
    path = stage.folder / "schedule"
    count = 10_000 + 1000
    path.write_text("".join(f"{number / 100_000:.5f}, 1k\n" for number in range(count)))
    server, _ = stage.pair(*LONG_ENOUGH)
    run = load_once(stage, server, "--schedule", path, *TOLERANT)
    assert run["valid_responses"] == count
    assert run["tx_bytes"] == count * (HEADER + 1024)


def test_a_schedule_that_is_cut_by_the_duration(stage):
    path = stage.folder / "schedule"
    path.write_text("".join(f"{10 * number}ms 64\n" for number in range(1000)))
    server, _ = stage.pair(*LONG_ENOUGH)
    run = load_once(stage, server, "--schedule", path, "--duration", "305ms", *TOLERANT)
    # A machine that is busy at the end of the time sends fewer.
    assert 1 <= run["valid_responses"] <= 31
    assert 0.3 <= run["duration_seconds"] < 9


@pytest.mark.parametrize("tls", [pytest.param(True, marks=needs_openssl), False], ids=["tls", "plain"])
@pytest.mark.parametrize("loop", [[], ["--rate", "4k", *TOLERANT]], ids=["closed", "open"])
def test_connections_made_anew(stage, tls, loop):
    options = [], []
    if tls:
        ours = Authority(stage.folder, "ours")
        options = own(ours.issue("server", "IP:127.0.0.1")), trusting(ours)
    server, _ = stage.pair("--threads", 2, *options[0])
    run = load_once(stage, server, *options[1], "-t", 2, "--connections", 2, "-i", 255,
                    "--reconnect-every", 10, "--max-concurrent-messages", 7, *loop)
    assert run["valid_responses"] == 1020 and run["errors"] == {} and run["unanswered_requests"] == 0
    connect = run["connect_time_us"]
    if loop:  # the connections with room take the due requests
        assert 1020 / 10 <= connect["count"] <= 1020 / 10 + 4
    else:
        assert connect["count"] == 4 * 26  # of 10 requests each, the last of 5
    assert 0 < connect["min"] <= connect["p50"] <= connect["max"]
    assert server.terminate() == 0
    accepted = sum(int(line.split(":")[-1].split()[0]) for line in server.log.splitlines()
                   if "connections, " in line)
    # When the last response of an open loop comes, other connections may still be in set-up.
    assert connect["count"] <= accepted <= connect["count"] + (3 if loop else 0)


def test_no_connection_is_made_anew_without_need(stage):
    server, _ = stage.pair(*LONG_ENOUGH)
    run = load_once(stage, server, "-i", 200, "--reconnect-every", 200)
    assert run["connect_time_us"]["count"] == 1
    run = load_once(stage, server, "-i", 20, "--reconnect-every", 1)
    assert run["connect_time_us"]["count"] == 20 and run["valid_responses"] == 20
