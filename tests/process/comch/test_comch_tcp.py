"""Server and worker over TCP, as on two machines: a peer without the key is refused, and a peer
that violates the protocol harms only itself. What holds for all transports is in other files."""
import contextlib
import hashlib
import hmac
import os
import socket
import struct
import time

import pytest

from control import (ATTACH_CHANNEL, CHALLENGE, CHANNEL_ATTACHED, CONSUMER_ID_REQUEST,
                     CONSUMER_ID_RESPONSE, DESCRIPTOR, HELLO, KEEP_ALIVE, PROOF, WELCOME,
                     consumer_id, hello)
from harness import PATIENCE, TIME_FACTOR, free_port, wait_until
from wire import BAD_HELLO, BAD_KEY, ERROR, UNKNOWN, Wire, frame, payloads, reverse

NO_KEY = b""


def mac(key, role, of_peer, own):
    return hmac.new(key, b"dpu-gpu-offload " + role + of_peer + own, hashlib.sha256).digest()


class Peer:
    """One end of a connection over TCP that speaks frames."""

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
        """The next message other than a keep-alive, as (msg_id, payload); None at the end."""
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
    """A worker's connection, with or without the proofs done."""

    def __init__(self, port, key=NO_KEY, prove=True):
        super().__init__(socket.create_connection(("127.0.0.1", port), PATIENCE))
        self.challenge = self.expect(CHALLENGE)
        assert len(self.challenge) == 32
        if prove:
            self.prove(key)
            answer = self.expect(PROOF)
            assert answer[32:] == mac(key, b"server", self.nonce, self.challenge)

    def prove(self, key):
        self.nonce = os.urandom(32)
        self.send(PROOF, self.nonce + mac(key, b"worker", self.challenge, self.nonce))

    def greet(self):
        """The token of each channel."""
        self.send(HELLO, hello())
        channels = struct.unpack_from(">HH", self.expect(WELCOME))[1]
        return [self.expect(DESCRIPTOR)[-16:] for _ in range(channels)]

    def attach_channel(self, channel, token):
        self.send(ATTACH_CHANNEL, struct.pack(">I", channel) + token + bytes(2))


def message(sequence, payload, status=0, length=None):
    return struct.pack(">QII", sequence, len(payload) if length is None else length,
                       status) + payload


@pytest.fixture
def tcp(stage):
    """What starts a server on TCP, a worker for it, and says at which port they meet."""
    class Tcp:
        port = free_port()
        comch = ["--comch", f"tcp:127.0.0.1:{port}"]

        def server(self, *options):
            server = stage.program("offload-server", *self.comch, "-p", 0, *options)
            server.wait_for_log("waiting for a worker")
            return server

        def worker(self, *options):
            return stage.program("offload-worker", *self.comch, "--backend", "cpu", *options)

        def expect_service(self, server, *options, count=1):
            """A real worker attaches, and requests are answered."""
            self.worker(*options)
            server.wait_for_log("the worker serves all channels", count=count)
            port = int(server.wait_for_log(r"listening on \S+:(\d+) with")[1])
            with Wire(port) as wire:
                wire.ask(payloads(20, 100))
    return Tcp()


def key_file(stage, name, content, mode=0o600):
    path = stage.folder / name
    path.write_bytes(content)
    path.chmod(mode)
    return ["--comch-key-file", path]


def test_without_a_key_on_loopback(tcp):
    tcp.expect_service(tcp.server())


@pytest.mark.parametrize("program", ["offload-server", "offload-worker"])
def test_no_key_no_network(stage, program):
    """192.0.2.0/24 is reserved for documentation (RFC 5737): no host answers."""
    away = stage.program(program, "--comch", "tcp:192.0.2.1:4711")
    assert away.wait() == 1
    assert "is not on this machine: it takes a key (--comch-key-file)" in away.log


@pytest.mark.parametrize("content, mode, text", [
    (bytes(32), 0o644, "open to others"), (bytes(15), 0o600, "16 to 4096 bytes")])
def test_a_bad_key_file(stage, content, mode, text):
    for program in ("offload-server", "offload-worker"):
        ended = stage.program(program, "--comch", "tcp:127.0.0.1:0",
                              *key_file(stage, "key", content, mode))
        assert ended.wait() == 1
        assert text in ended.log


def test_another_key(stage, tcp):
    right = key_file(stage, "right", b"a key that is right")
    server = tcp.server(*right)
    for wrong in ([], key_file(stage, "wrong", b"a key that is wrong")):
        worker = tcp.worker(*wrong)
        assert worker.wait() == 1
        assert "the peer does not have this server's key" in worker.log
    tcp.expect_service(server, *right)


def test_a_server_that_does_not_have_the_key(stage):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        worker = stage.program("offload-worker", "--backend", "cpu", "--comch",
                               f"tcp:127.0.0.1:{listener.getsockname()[1]}",
                               *key_file(stage, "key", bytes(32)))
        with Peer(listener.accept()[0]) as server:
            server.send(CHALLENGE, bytes(32))
            server.expect(PROOF)
            server.send(PROOF, bytes(64))
            server.expect_refusal(BAD_KEY)
    assert worker.wait() == 1
    assert "the server does not have this worker's key" in worker.log


def test_a_server_that_answers_byte_by_byte(stage):
    """The time is that of the whole answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        worker = stage.program("offload-worker", "--backend", "cpu", "--connect-timeout", "1s",
                               "--comch", f"tcp:127.0.0.1:{listener.getsockname()[1]}")
        with listener.accept()[0] as connection:
            connection.sendall(frame(bytes(1000), CHALLENGE)[:12])

            def ends_meanwhile():
                with contextlib.suppress(ConnectionError):
                    connection.sendall(bytes(1))
                time.sleep(0.2)
                return not worker.alive
            wait_until(ends_meanwhile, "the worker gives up", 20 * TIME_FACTOR)
    assert worker.wait() == 1
    assert "no server let this worker in" in worker.log


STRANGERS = {
    "nothing right": lambda peer: peer.prove(b"no such key"),
    "greets at once": lambda peer: peer.send(HELLO, hello()),
    "attaches at once": lambda peer: peer.attach_channel(0, bytes(16)),
    "an empty proof": lambda peer: peer.send(PROOF),
    "a long proof": lambda peer: peer.send(PROOF, bytes(65)),
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_strangers(tcp, kind):
    server = tcp.server()
    with FakeWorker(tcp.port, prove=False) as stranger:
        STRANGERS[kind](stranger)
        stranger.expect_refusal(BAD_KEY)
    tcp.expect_service(server)


def test_garbage(tcp):
    server = tcp.server()
    with FakeWorker(tcp.port, prove=False) as stranger:
        stranger.socket.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
        try:
            while stranger.socket.recv(4096):
                pass
        except ConnectionError:
            pass
    tcp.expect_service(server)


def test_more_strangers_than_are_listened_to(tcp):
    server = tcp.server()
    strangers = [socket.create_connection(("127.0.0.1", tcp.port), PATIENCE) for _ in range(200)]
    for stranger in strangers:
        stranger.close()
    tcp.expect_service(server)


def test_silent_strangers_do_not_keep_a_worker_out(tcp):
    """As many as are listened to at once; they would be sent away by themselves after 5 s."""
    server = tcp.server()
    with contextlib.ExitStack() as strangers:
        for _ in range(64):
            strangers.enter_context(FakeWorker(tcp.port, prove=False))
        tcp.expect_service(server, "--connect-timeout", f"{int(3 * TIME_FACTOR)}s")


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
    """It is disconnected; what it has not answered, a real one does."""
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
