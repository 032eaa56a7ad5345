"""The Python client for UDP, with a server of the test's; process.test_udp has it with the real worker."""
import socket
import struct
import threading

import pytest

from harness import PATIENCE, free_port
from test_python_client_owners import in_a_child
from wire import ERROR, RESPONSE, frame

from offload_client import (ConnectFailed, ConnectionLost, NotOwner, PacketClient, Refusal, RequestRefused,
                            ResponseTimeout)


class Worker:
    """Receives datagrams, and sends what `answer` returns for each: a list of datagrams, by sequence and request."""

    def __init__(self, answer):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.got = []
        self._thread = threading.Thread(target=self._serve, args=(answer,), daemon=True)
        self._thread.start()

    def _serve(self, answer):
        while True:
            data, sender = self._socket.recvfrom(1 << 16)
            if not data:
                return
            self.got.append(data)
            for each in answer(data[:8], data[20:]):
                self._socket.sendto(each, sender)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ends:
            ends.sendto(b"", ("127.0.0.1", self.port))
        self._thread.join(PATIENCE)
        self._socket.close()


def right(sequence, request):
    return [sequence + frame(request[::-1], RESPONSE)]


def test_a_request_and_its_response():
    with Worker(right) as worker, PacketClient("127.0.0.1", worker.port, timeout=PATIENCE) as client:
        for request in (b"hello", b"", bytes(1452)):
            assert client.request(request) == request[::-1]
        sequences = [struct.unpack(">Q", data[:8])[0] for data in worker.got]
        assert [(sequence - sequences[0]) % (1 << 64) for sequence in sequences] == [0, 1, 2]
        assert worker.got[0][8:] == frame(b"hello")


def test_other_datagrams_are_dropped():
    def noise(sequence, request):
        earlier = struct.pack(">Q", struct.unpack(">Q", sequence)[0] ^ 1)
        good = frame(b"right", RESPONSE)
        return [b"", b"x", sequence, earlier + good, sequence + good[:-1], sequence + good + good, sequence + b"HTTP" * 9,
                sequence + frame(b"", 7), sequence + good]

    with Worker(noise) as worker, PacketClient("127.0.0.1", worker.port, timeout=PATIENCE) as client:
        for _ in range(3):
            assert client.request(b"hello") == b"right"


def test_a_refusal():
    def refuses(sequence, request):
        return [sequence + frame(struct.pack(">I", 8), ERROR)]

    with Worker(refuses) as worker, PacketClient("127.0.0.1", worker.port, timeout=PATIENCE) as client:
        with pytest.raises(RequestRefused) as refused:
            client.request(b"hello")
        assert refused.value.refusal is Refusal.WORKER_FAILED and refused.value.unanswered == (b"hello",)


@pytest.mark.parametrize("attempts", [1, 3])
def test_a_lost_datagram_is_sent_again_only_if_that_is_allowed(attempts):
    with Worker(lambda *_: []) as worker:
        with PacketClient("127.0.0.1", worker.port, timeout=0.3, attempts=attempts) as client:
            with pytest.raises(ResponseTimeout, match="within 0.3 s") as late:
                client.request(b"hello")
            assert late.value.unanswered == (b"hello",)
    assert len(worker.got) == attempts and len(set(worker.got)) == 1


def test_the_second_attempt_is_answered():
    seen = []

    def second(sequence, request):
        seen.append(request)
        return right(sequence, request) if len(seen) == 2 else []

    with Worker(second) as worker:
        with PacketClient("127.0.0.1", worker.port, timeout=2 * PATIENCE, attempts=100) as client:
            assert client.request(b"hello") == b"olleh"


def test_errors_of_the_system():
    with PacketClient("127.0.0.1", free_port(), timeout=PATIENCE) as client:
        with pytest.raises(ConnectionLost, match="not delivered") as lost:
            client.request(b"hello")
        assert lost.value.unanswered == (b"hello",)
        with pytest.raises(ValueError, match="at most"):
            client.request(bytes(1 << 16))
    with pytest.raises(ConnectionLost):
        client.request(b"closed")
    with pytest.raises(ConnectFailed):
        PacketClient("255.255.255.255", 1)  # a broadcast, which the socket is not for
    with pytest.raises(ValueError, match="attempts"):
        PacketClient("127.0.0.1", 1, attempts=0)


def test_a_forked_process():
    with Worker(right) as worker, PacketClient("127.0.0.1", worker.port, timeout=PATIENCE) as client:
        def child():
            with pytest.raises(NotOwner, match="fork"):
                client.request(b"child")
            client.close()

        in_a_child(child)
        assert client.request(b"parent") == b"tnerap"
