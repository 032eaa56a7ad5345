"""The Python client without asyncio, with the real server and worker."""
import asyncio
import signal
import socket
import subprocess
import sys
import threading

import pytest

from harness import PATIENCE, ROOT, free_port, needs_cpu_worker, scaled
from test_python_client_pool import FullQueue
from wire import payloads, reverse

from offload_client import (AsyncClient, Client, ConnectFailed, ConnectionLost, OffloadError, Refusal,
                            RequestRefused, ResponseTimeout)

CRC32C = {b"": "00000000", b"123456789": "e3069283", bytes(32): "8a9136aa"}  # RFC 3720, B.4


def connect(server, **options):
    return Client("127.0.0.1", server.port, **{"timeout": PATIENCE, **options})


@pytest.mark.parametrize("service, answer", [("reverse", reverse), ("echo", bytes)])
def test_services_and_lengths(stage, service, answer):
    server, _ = stage.pair("--service", service, "--max-message-length", "1m", "--max-concurrent-messages", 16)
    with connect(server) as client:
        for request in payloads(100, [0, 1, 12, 48, 372, 373, 5000]) + payloads(2, 1 << 20):
            assert client.request(request) == answer(request)
        assert client.request(bytearray(b"hello")) == answer(b"hello")


def test_an_address_as_a_url(stage):
    server, _ = stage.pair()
    with Client.from_url(f"offload://127.0.0.1:{server.port}", timeout=PATIENCE) as client:
        assert client.request(b"hello") == b"olleh"


def put_before_all_addresses(first, monkeypatch):
    """Each name has the address `first`, too, in the form of getaddrinfo()."""
    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda *arguments, **options: [first, *resolve(*arguments, **options)])


def hello(server, **options):
    with connect(server, **options) as client:
        assert client.request(b"hello") == b"olleh"

    async def on_a_loop():
        async with AsyncClient("127.0.0.1", server.port, timeout=PATIENCE, **options) as client:
            assert await client.request(b"hello") == b"olleh"
    asyncio.run(on_a_loop())


def test_a_kind_of_address_that_the_kernel_does_not_have(stage, monkeypatch):
    server, _ = stage.pair()
    put_before_all_addresses((socket.AF_APPLETALK, socket.SOCK_STREAM, 0, "", ("", 0)), monkeypatch)
    hello(server)


def test_an_address_that_does_not_answer(stage, monkeypatch):
    server, _ = stage.pair()
    with FullQueue() as queue:
        queue.fill()
        address = ("127.0.0.1", queue.port)
        put_before_all_addresses((socket.AF_INET, socket.SOCK_STREAM, 0, "", address), monkeypatch)
        hello(server, connect_timeout=1.0)


def test_crc32c(stage):
    server, _ = stage.pair("--service", "crc32c")
    with connect(server) as client:
        for request, checksum in CRC32C.items():
            assert client.request(request)[::-1].hex() == checksum


def test_the_longest_message_of_all(stage):
    server, _ = stage.pair("--max-message-length", "16m", "--max-concurrent-messages", 1, "--threads", 1)
    request = payloads(1, 16 << 20)[0]
    with connect(server, timeout=6 * PATIENCE) as client:
        assert client.request(request) == reverse(request)
        # More is in flight than the sockets' buffers take: the client must send and receive in turns.
        assert list(client.requests([request] * 3)) == [reverse(request)] * 3


def test_pipelined(stage):
    server, _ = stage.pair()
    requests = payloads(scaled(10_000), [0, 1, 20, 256])
    with connect(server) as client:
        for in_flight in (1, 64, 20_000):
            got = list(client.requests(iter(requests), in_flight))
            assert got == [*map(reverse, requests)]
        assert list(client.requests([])) == []
        with pytest.raises(ValueError):
            client.requests([b""], in_flight=0)


def test_no_more_in_flight_than_asked_for(stage):
    server, _ = stage.pair()
    taken = []

    def taking():
        for number in range(100):
            taken.append(number)
            yield b"%d" % number

    with connect(server) as client:
        responses = client.requests(taking(), in_flight=10)
        for number in range(100):
            assert next(responses) == reverse(b"%d" % number)
            assert len(taken) == min(number + 10, 100)


def test_iterations_that_end_early_or_overlap(stage):
    server, _ = stage.pair()
    with connect(server) as client:
        for response in client.requests(payloads(100, 200), in_flight=50):
            assert len(response) == 200
            break
        assert client.request(b"hello") == b"olleh"
        one = client.requests([b"one", b"two", b"three"])
        other = client.requests([b"four", b"five"])
        assert [next(one), next(other)] == [b"eno", b"ruof"]
        assert client.request(b"six") == b"xis"
        assert list(one) == [b"owt", b"eerht"] and list(other) == [b"evif"]


def test_too_long_a_message(stage):
    server, _ = stage.pair("--max-message-length", 256)
    client = connect(server)
    requests = [b"good", bytes(257), b"good", b"never taken"]
    responses = client.requests(iter(requests), in_flight=3)
    assert next(responses) == b"doog"
    with pytest.raises(RequestRefused) as refused:
        next(responses)
    assert refused.value.refusal is Refusal.FRAME_TOO_LONG
    assert refused.value.text == "the message is longer than this server accepts"
    assert refused.value.unanswered[0] == requests[1]
    # The server has closed the connection, and had sent the reason.
    with pytest.raises(ConnectionLost) as lost:
        client.request(b"more")
    assert lost.value.refusal is Refusal.FRAME_TOO_LONG
    assert lost.value.unanswered == (b"more",)
    client.close()


def test_no_worker(stage):
    server, worker = stage.pair("--worker-timeout", "1s")
    with connect(server) as client:
        assert client.request(b"hello") == b"olleh"
        worker.kill()
        with pytest.raises(RequestRefused) as refused:
            client.request(b"hello")
        assert refused.value.refusal is Refusal.WORKER_UNAVAILABLE
        assert refused.value.unanswered == (b"hello",)
        stage.worker()
        server.wait_until_served(2)
        assert client.request(b"hello") == b"olleh"


@needs_cpu_worker
def test_time_outs(stage):
    server, worker = stage.pair("--worker-timeout", "100s", "--shutdown-timeout", "1s")
    with connect(server, timeout=0.2) as client:
        worker.stop()
        with pytest.raises(ResponseTimeout, match="within 0.2 s") as late:
            client.request(b"late")
        assert late.value.unanswered == (b"late",)
        with pytest.raises(ResponseTimeout) as late:
            list(client.requests([b"one", b"two"]))
        assert late.value.unanswered == (b"one", b"two")
        assert isinstance(late.value, TimeoutError)
        with pytest.raises(ResponseTimeout, match="within 0.05 s"):
            client.request(b"late", timeout=0.05)
        with pytest.raises(ResponseTimeout, match="within 0.06 s"):
            list(client.requests([b"late"], timeout=0.06))
        worker.send_signal(signal.SIGCONT)
        # Late responses belong to no request.
        assert client.request(b"hello", timeout=PATIENCE) == b"olleh"
        assert list(client.requests([b"hello"], timeout=None)) == [b"olleh"]
        client.timeout = PATIENCE
        assert client.request(b"hello") == b"olleh"


@needs_cpu_worker
def test_the_server_is_killed_with_requests_in_flight(stage):
    server, worker = stage.pair("--worker-timeout", "100s")
    requests = [b"%d" % number for number in range(100)]
    with connect(server) as client:
        responses = client.requests(iter(requests), in_flight=20)
        assert next(responses) == b"0"
        worker.stop()
        killer = threading.Timer(0.3, server.kill)
        killer.start()
        got = 1
        with pytest.raises(ConnectionLost) as lost:
            for response in responses:
                assert response == reverse(requests[got])
                got += 1
        killer.join()
        assert isinstance(lost.value, ConnectionError)
        assert lost.value.code is None
        unanswered = list(lost.value.unanswered)
        assert unanswered == requests[got:got + 20]
        with pytest.raises(ConnectionLost):
            client.request(b"more")
    worker.kill()


def test_an_orderly_end_of_the_server(stage):
    server, _ = stage.pair()
    with connect(server) as client:
        assert client.request(b"hello") == b"olleh"
        assert server.terminate() == 0
        with pytest.raises(ConnectionLost, match="ended the connection"):
            client.request(b"hello")


def test_a_client_too_many(stage):
    server, _ = stage.pair("--max-clients", 1, "--max-clients-per-address", 1)
    with connect(server) as client:
        client.request(b"hello")
        with connect(server) as other, pytest.raises(ConnectionLost) as lost:
            other.request(b"hello")
        assert lost.value.refusal in (Refusal.TOO_MANY_CLIENTS, Refusal.TOO_MANY_OF_ADDRESS)
        assert lost.value.unanswered == (b"hello",)
        assert client.request(b"hello") == b"olleh"


def test_an_idle_client(stage):
    server, _ = stage.pair("--idle-timeout", "500ms")
    with connect(server) as client:
        client.request(b"hello")
        server.wait_for_log("is disconnected: the client sent no request")
        # The server's reason is reported, not the failure to send.
        with pytest.raises(ConnectionLost) as lost:
            client.request(b"hello")
        assert lost.value.refusal is Refusal.IDLE_TIMED_OUT


def test_nobody_listens():
    with pytest.raises(ConnectFailed, match="refused") as failed:
        Client("127.0.0.1", free_port())
    assert isinstance(failed.value, OffloadError) and isinstance(failed.value, ConnectionError)


def test_after_close(stage):
    server, _ = stage.pair()
    client = connect(server)
    responses = client.requests([b"one", b"two"], in_flight=1)
    assert next(responses) == b"eno"
    client.close()
    client.close()
    with pytest.raises(ConnectionLost, match="closed") as lost:
        next(responses)
    assert lost.value.unanswered == (b"two",)
    with pytest.raises(ConnectionLost, match="closed"):
        client.request(b"hello")


def test_the_example(stage):
    server, _ = stage.pair()
    done = subprocess.run([sys.executable, ROOT / "clients/python/examples/three_ways.py", "127.0.0.1",
                           str(server.port)], text=True, timeout=6 * PATIENCE, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={"PYTHONPATH": str(ROOT / "clients/python/src")})
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines() == [
        "b'hello' -> b'olleh'", "b'world' -> b'dlrow'",
        "10000 pipelined requests, 118890 bytes of responses", "b'task 99' -> b'99 ksat'"]
