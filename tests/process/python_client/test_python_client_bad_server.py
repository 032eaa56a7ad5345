"""Servers that violate the protocol: the Python client reports it, never hangs, and takes no response for that of
another request."""
import asyncio
import contextlib
import socket
import struct
import threading

import pytest

from harness import PATIENCE
from wire import BadServer, ERROR, RESPONSE, frame, header

from offload_client import (AsyncClient, Client, ConnectFailed, ConnectionLost, OffloadError,
                            ProtocolError, Refusal, RequestRefused, ResponseTimeout)


def ask_sync(port, **options):
    with Client("127.0.0.1", port, **{"timeout": PATIENCE, **options}) as client:
        return client.request(b"hello")


def ask_async(port, **options):
    async def ask():
        async with AsyncClient("127.0.0.1", port, **{"timeout": PATIENCE, **options}) as client:
            return await client.request(b"hello")
    return asyncio.run(asyncio.wait_for(ask(), 3 * PATIENCE))


both = pytest.mark.parametrize("ask", [ask_sync, ask_async])


@both
@pytest.mark.parametrize("answer, message", [
    (header(0, RESPONSE, 0), "a frame of 0 bytes"),
    (header(17, RESPONSE, 6), "a frame of 17 bytes"),
    (header(0xffffffff, RESPONSE, 0xfffffff3), "a response of 4294967283 bytes; at most 1000 are allowed"),
    (header(1013, RESPONSE, 1001), "a response of 1001 bytes"),
    (frame(b"hello", 16), "msg_id 16"),
    (frame(b"", ERROR), "an error frame with 0 bytes"),
    (header(12 + 5000, ERROR, 5000), "an error frame with 5000 bytes"),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", "bytes says"),
], ids=range(8))
def test_malformed_frames(ask, answer, message):
    """The client closes, though more might come."""
    with BadServer(answer) as server, pytest.raises(ProtocolError, match=message) as error:
        ask(server.port, max_response_length=1000)
    assert error.value.unanswered == (b"hello",)
    assert server.client_closed


def test_the_connection_ends_with_the_error():
    """It ends before the program closes the client."""
    malformed = frame(b"hello", 16)
    with BadServer(malformed) as server, Client("127.0.0.1", server.port, timeout=PATIENCE) as client:
        with pytest.raises(ProtocolError):
            client.request(b"hello")
        server.join(PATIENCE)
        assert server.client_closed

    async def ask(server):
        async with AsyncClient("127.0.0.1", server.port, timeout=PATIENCE) as client:
            with pytest.raises(ProtocolError):
                await client.request(b"hello")
            await asyncio.get_running_loop().run_in_executor(None, server.join, PATIENCE)
            assert server.client_closed

    with BadServer(malformed) as server:
        asyncio.run(ask(server))


def test_what_it_said_is_read_when_sending_fails(monkeypatch):
    """Also what one recv() does not take."""
    monkeypatch.setattr("offload_client.connection.RECEIVE_SIZE", 4)
    out_of_memory = frame(struct.pack(">I", Refusal.OUT_OF_MEMORY) + b"full", ERROR)
    for _ in range(20):
        # The reset may come before the client is connected.
        with contextlib.suppress(ConnectFailed), BadServer(out_of_memory, "reset", size=0) as server, \
                Client("127.0.0.1", server.port, timeout=PATIENCE) as client:
            server.join(PATIENCE)
            with pytest.raises(ConnectionLost) as lost:
                client.request(b"hello")
            break
    assert lost.value.refusal is Refusal.OUT_OF_MEMORY and lost.value.text == "full"


@both
def test_it_takes_the_reference_servers_responses(ask):
    with BadServer(frame(b"olleh", 4)) as server:
        assert ask(server.port) == b"olleh"


@both
@pytest.mark.parametrize("then", ["close", "reset"])
@pytest.mark.parametrize("answer", [b"", frame(b"olleh", RESPONSE)[:11], frame(b"olleh", RESPONSE)[:-1]])
def test_it_ends_too_soon(ask, then, answer):
    with BadServer(answer, then) as server, pytest.raises(ConnectionLost) as error:
        ask(server.port)
    assert error.value.unanswered == (b"hello",)
    assert not isinstance(error.value, ProtocolError)


@both
@pytest.mark.parametrize("answer", [b"", frame(b"olleh", RESPONSE)[:-1]])
def test_it_stays_silent(ask, answer):
    with BadServer(answer) as server, pytest.raises(ResponseTimeout):
        ask(server.port, timeout=0.1)


def test_it_trickles():
    """Bytes now and then do not prolong the limit."""
    over = threading.Event()

    def trickle(listener):
        connection, _ = listener.accept()
        with connection:
            connection.sendall(header(1012, RESPONSE, 1000))
            while not over.wait(0.01):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=trickle, args=(listener,), daemon=True)
        server.start()
        with Client("127.0.0.1", listener.getsockname()[1], timeout=0.2) as client:
            with pytest.raises(ResponseTimeout):
                client.request(b"hello")
            over.set()
            server.join(PATIENCE)


def test_more_responses_than_requests():
    with BadServer(frame(b"one", RESPONSE) + frame(b"two", RESPONSE)) as server:
        with Client("127.0.0.1", server.port, timeout=PATIENCE) as client:
            assert client.request(b"hello") == b"one"
            with pytest.raises(ProtocolError, match="a response without a request"):
                client.request(b"world")
    assert server.client_closed


@both
def test_errors_of_any_kind(ask):
    with BadServer(frame(struct.pack(">I", 999) + b"\x1b[31m\xff", ERROR)) as server:
        with pytest.raises(RequestRefused) as refused:
            ask(server.port)
    assert refused.value.code == 999 and refused.value.refusal is None
    assert refused.value.text == "\\x1b[31m\ufffd" and str(refused.value).isprintable()
    out_of_memory = frame(struct.pack(">I", Refusal.OUT_OF_MEMORY) + b"full", ERROR)
    with BadServer(out_of_memory, "close") as server, pytest.raises(ConnectionLost) as lost:
        ask(server.port)
    assert lost.value.refusal is Refusal.OUT_OF_MEMORY and lost.value.text == "full"
    assert isinstance(lost.value, OffloadError)
