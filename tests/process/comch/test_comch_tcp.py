"""Server and worker over TCP, as on two machines: a peer without the key is refused, and a peer
that violates the protocol harms only itself. Other files have the tests for all transports."""
import contextlib
import socket
import struct
import time

import pytest

from control import (ATTACH_CHANNEL, CHANNEL_ATTACHED, CONSUMER_ID_REQUEST, CONSUMER_ID_RESPONSE,
                     DESCRIPTOR, HELLO, KEEP_ALIVE, WELCOME, consumer_id, hello)
from harness import PATIENCE, TIME_FACTOR, free_port, wait_until
from wire import BAD_HELLO, ERROR, UNKNOWN, Wire, frame, payloads, reverse


class Peer:
    """One end of a connection over TCP, without TLS, that speaks frames."""

    def __init__(self, connected):
        self.socket = connected
        self.socket.settimeout(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, msg_id, payload=b""):
        self.socket.sendall(frame(payload, msg_id))

    def exactly(self, count):
        got = b""
        while len(got) < count:
            part = self.socket.recv(count - len(got))
            if not part:
                return None
            got += part
        return got

    def receive(self):
        """Returns the next message other than a keep-alive, as (msg_id, payload); None at the end."""
        while True:
            header = self.exactly(12)
            if header is None:
                return None
            wire_size, msg_id, length = struct.unpack(">III", header)
            assert wire_size == 12 + length
            payload = self.exactly(length)
            if msg_id != KEEP_ALIVE:
                return msg_id, payload

    def expect(self, msg_id):
        got = self.receive()
        assert got is not None and got[0] == msg_id, got
        return got[1]

    def expect_refusal(self, code):
        assert struct.unpack_from(">I", self.expect(ERROR))[0] == code
        assert self.receive() is None


class FakeWorker(Peer):
    """A worker's connection to a server that runs with --insecure."""

    def __init__(self, port):
        super().__init__(socket.create_connection(("127.0.0.1", port), PATIENCE))

    def greet(self):
        """Greets the server; returns the token of each channel."""
        self.send(HELLO, hello())
        channels = struct.unpack_from(">HH", self.expect(WELCOME))[1]
        return [self.expect(DESCRIPTOR)[14:30] for _ in range(channels)]

    def attach_channel(self, channel, token):
        self.send(ATTACH_CHANNEL, struct.pack(">I", channel) + token + bytes(2))


def message(sequence, payload, status=0, length=None):
    return struct.pack(">QII", sequence, len(payload) if length is None else length,
                       status) + payload


@pytest.fixture
def tcp(stage):
    """Returns an object that starts a server on TCP and a worker for it, and has the port at which they meet. Without
    further options there is no TLS, for tests of the messages in it."""
    class Tcp:
        port = free_port()
        comch = ["--comch", f"tcp:127.0.0.1:{port}"]

        def server(self, *options):
            server = stage.program("offload-server", *self.comch, "-p", 0,
                                   *(options or ["--insecure"]))
            server.wait_for_log("waiting for a worker")
            return server

        def worker(self, *options):
            return stage.program("offload-worker", *self.comch, "--backend", "cpu",
                                 *(options or ["--insecure"]))

        def expect_service(self, server, *options, count=1):
            """Attaches a real worker; checks that requests are answered."""
            self.worker(*options)
            server.wait_for_log("is ready", count=count)
            port = int(server.wait_for_log(r"listening on \S+:(\d+) with")[1])
            with Wire(port) as wire:
                wire.ask(payloads(20, 100))
    return Tcp()


def test_insecure(tcp):
    server = tcp.server()
    assert "--insecure: every peer that reaches tcp:" in server.log
    tcp.expect_service(server)


def test_a_server_that_answers_byte_by_byte(stage):
    """The time limit is for the whole answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        worker = stage.program("offload-worker", "--backend", "cpu", "--connect-timeout", "1s",
                               "--comch", f"tcp:127.0.0.1:{listener.getsockname()[1]}",
                               *stage.key_options())
        with listener.accept()[0] as connection:
            connection.sendall(b"\x16\x03\x03\x03\xe8")  # the header of a TLS record of 1000 bytes

            def ends_meanwhile():
                with contextlib.suppress(ConnectionError):
                    connection.sendall(bytes(1))
                time.sleep(0.2)
                return not worker.alive
            wait_until(ends_meanwhile, "the worker gives up", 20 * TIME_FACTOR)
    assert worker.wait() == 1
    assert "accepted this worker within" in worker.log


STRANGERS = {
    "greets at once": frame(hello(), HELLO),
    "attaches at once": frame(bytes(22), ATTACH_CHANNEL),
    "speaks HTTP": b"GET / HTTP/1.1\r\n\r\n" * 100,
    "a record of TLS without an end": b"\x16\x03\x01\xff\xff" + bytes(3000),
    "a record of TLS with nothing in it": b"\x16\x03\x01\x00\x00",
    "half a record of TLS": b"\x16\x03\x01\x02\x00" + bytes(100),
    "one byte of TLS": b"\x16",
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_strangers(stage, tcp, kind):
    """The server closes the connection at once, and does not poll it meanwhile."""
    server = tcp.server(*stage.key_options())
    with socket.create_connection(("127.0.0.1", tcp.port), PATIENCE) as stranger:
        stranger.sendall(STRANGERS[kind])
        if kind in ("half a record of TLS", "one byte of TLS"):
            busy = server.cpu_seconds()
            time.sleep(0.3)
            assert server.cpu_seconds() - busy < 0.2 * TIME_FACTOR
            stranger.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                assert stranger.recv(1) == b""
            # The server closes it without an error when the time for the greeting is over.
            server.wait_for_log("is refused: it knows no key of this server")
        else:
            with contextlib.suppress(ConnectionError):
                assert stranger.recv(1) == b""
    tcp.expect_service(server, *stage.key_options())


def test_more_strangers_than_are_listened_to(stage, tcp):
    server = tcp.server(*stage.key_options())
    strangers = [socket.create_connection(("127.0.0.1", tcp.port), PATIENCE) for _ in range(200)]
    for stranger in strangers:
        stranger.close()
    tcp.expect_service(server, *stage.key_options())


def test_silent_strangers_do_not_keep_a_worker_out(stage, tcp):
    """These are as many as the server listens to at a time; without the worker it would close them after 5 s."""
    server = tcp.server(*stage.key_options())
    with contextlib.ExitStack() as strangers:
        for _ in range(64):
            strangers.enter_context(socket.create_connection(("127.0.0.1", tcp.port), PATIENCE))
        tcp.expect_service(server, *stage.key_options(), "--connect-timeout",
                           f"{int(3 * TIME_FACTOR)}s")


def test_a_channel_takes_its_sessions_token(tcp):
    server = tcp.server()
    with FakeWorker(tcp.port) as worker:
        token = worker.greet()[0]
        for channel, guess in ((0, bytes(16)), (1, token), (0xffffffff, token)):
            with FakeWorker(tcp.port) as other:
                other.attach_channel(channel, guess)
                other.expect_refusal(BAD_HELLO)
        with FakeWorker(tcp.port) as right, FakeWorker(tcp.port) as second:
            right.attach_channel(0, token)
            assert right.expect(CHANNEL_ATTACHED) == b""
            second.attach_channel(0, token)
            second.expect_refusal(BAD_HELLO)
    server.wait_for_log("is gone")
    tcp.expect_service(server)


def test_a_consumer_without_a_connection(tcp):
    server = tcp.server()
    with FakeWorker(tcp.port) as worker:
        worker.greet()
        worker.send(CONSUMER_ID_REQUEST, consumer_id(0))
        worker.expect_refusal(BAD_HELLO)
    tcp.expect_service(server)


LIES = {
    "a response that nobody asked for": (b"", message(0, b"x")),
    "the wrong one": (b"ab", message(1, b"ba")),
    "longer than the channel's": (b"ab", message(0, b"", length=257)),
    "as long as can be": (b"ab", message(0, b"", length=0xffffffff)),
    "one twice": (b"ab", message(0, b"ba") * 2),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_worker_that_lies(tcp, lie):
    """It is disconnected; a real worker answers the requests that it has not answered."""
    request, answer = LIES[lie]
    server = tcp.server()
    with FakeWorker(tcp.port) as worker, FakeWorker(tcp.port) as data:
        data.attach_channel(0, worker.greet()[0])
        data.expect(CHANNEL_ATTACHED)
        worker.send(CONSUMER_ID_REQUEST, consumer_id(0))
        worker.expect(CONSUMER_ID_RESPONSE)
        port = int(server.wait_for_log(r"listening on \S+:(\d+) with")[1])
        with Wire(port) as wire:
            if request:
                wire.send(frame(request))
                assert data.exactly(16 + len(request)) == message(0, request)
            data.socket.sendall(answer)
            server.wait_for_log("is gone: the peer sent a message")
            tcp.expect_service(server, count=2)
            wire.expect([reverse(request)] if request else [])
            wire.ask(payloads(5, 100))


def test_a_frame_that_is_no_control_message(tcp):
    server = tcp.server()
    with FakeWorker(tcp.port) as worker:
        worker.greet()
        worker.send(99)
        worker.expect_refusal(UNKNOWN)
    tcp.expect_service(server)
